"""Text tables with a feature a row and a sample a column, as expression matrices are published.

What is known of each sample comes from a sample table, joined by sample id.
"""

import codecs
import csv
import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from srs_ooc.base.arrays import Bools, Floats, Indices
from srs_ooc.base.budget import Lease, total_nbytes
from srs_ooc.base.errors import BudgetError, InputError, UsageError
from srs_ooc.base.text import MB, describe_nbytes
from srs_ooc.ingestion import csv as text_tables
from srs_ooc.ingestion import ingest_memory, ingest_options
from srs_ooc.ingestion.formats import TO_UTF8, Table, TextCoder
from srs_ooc.ingestion.formats.in_memory import read_lines
from srs_ooc.ingestion.ingest_options import FREE, IngestOptions, SideColumns, row_cells_of
from srs_ooc.ingestion.reading import TableReading, WorkFolder
from srs_ooc.ingestion.rows import shown
from srs_ooc.ingestion.scratch import (
    ScratchArray,
    TextSpool,
    anonymous_array,
    check_disk,
    joined,
    texts_of,
)
from srs_ooc.ingestion.sources import N_DECODERS, PieceReader, SourceFile
from srs_ooc.native import _native
from srs_ooc.store.manifest import CATEGORICAL


class FeatureRows(Table):
    """The features of a text table that holds one a row: a ``Table`` read by columns.

    Parameters
    ----------
    stream : CsvStream
        The file, its header read: what stands over the names, then the sample ids.
    sample_ids : TextSpool
        Its header.
    kept : bool (n_samples,)
        The samples to keep.
    scratch : Path
        Folder for the scratch file.
    names : TextSpool
        Where the names of the features go.
    tell : ByteProgress
        Told of the bytes read.
    max_category_nbytes : int
        Memory that the texts of categories may take.
    kinds : mapping of bytes to int, optional
        Kinds that are forced, by the names of the features.

    Attributes
    ----------
    pool : TextCoder
        The texts of features that hold texts.

    Raises
    ------
    InputError
        If a row is ragged, or a cell is no number.
    """

    def __init__(
        self,
        stream: text_tables.CsvStream,
        sample_ids: TextSpool,
        kept: Bools,
        scratch: Path,
        names: TextSpool,
        tell: ingest_options.ByteProgress,
        max_category_nbytes: int,
        kinds: Mapping[bytes, int] | None = None,
    ) -> None:
        n_samples, self._path = int(kept.sum()), scratch / "features"
        slots = np.full(len(sample_ids), text_tables.IGNORED, np.int32)
        slots[0] = text_tables.ROW_ID
        slots[1:][kept] = np.arange(n_samples, dtype=np.int32)
        forced = row_cells_of(kinds or {})
        reader = text_tables.TableReader(
            slots, stream, by_row=True, max_category_nbytes=max_category_nbytes, row_kinds=forced
        )
        self._lines = ScratchArray(scratch / "lines", np.int64)
        n_lines = max(1, PANEL_NBYTES // (8 * n_samples))
        panels = [anonymous_array((n_samples, n_lines)) for _ in range(2)]  # one is written
        reader.set_panel(panels[0])
        is_text: list[Bools] = []
        with self._path.open("wb") as file, ThreadPoolExecutor(1) as pool:
            writing = pool.submit(int)

            def panel_full() -> None:
                nonlocal writing
                writing.result()
                piece = panels[0][:, : reader.native.panel_row]
                writing = pool.submit(lambda: file.write(np.ascontiguousarray(piece.T).data))
                panels.reverse()
                reader.set_panel(panels[0])

            def take_rows(reader: text_tables.TableReader) -> None:
                texts = reader.take_texts(text_tables.ROW_ID)
                text_tables.check_utf8(texts, f"{stream.source}: the names of the features")
                names.append(texts)
                self._lines.append(reader.take_lines())
                cells = np.frombuffer(reader.native.take_row_cells(), np.uint8)
                is_text.append(np.isin(cells, (text_tables.TEXTS, text_tables.CATEGORIES)))

            text_tables.read_panels(stream, reader, sample_ids, take_rows, panel_full, tell)
            writing.result()
        self.format = f"csv{stream.pieces.suffix}, features as rows"
        self.narrow = reader.native.fits_float32
        self.n_read = reader.native.n_rows  # of the features, before those of samples
        self.shape: tuple[int, int] = (n_samples, reader.native.n_rows)
        self.names: TextSpool = names
        self.text_columns: Bools = np.concatenate(is_text)
        self.pool: TextCoder = TextCoder(max_category_nbytes)
        self.pool.code(*reader.categories())
        self._more = np.empty((0, n_samples))

    def append_features(
        self,
        names: list[str],
        columns: list[list[bytes]],
        where: Callable[[int], str],
        form: text_tables.TextForm,
        kinds: Mapping[bytes, int],
    ) -> None:
        """Add features that are held in memory, after those of the file.

        Parameters
        ----------
        names : list of str
            Their names.
        columns : list of list of bytes
            Their cells, as many as there are samples.
        where : callable
            Returns where a row of them stands, for messages.
        form : TextForm
            How cells are read.
        kinds : mapping of bytes to int
            Kinds that are forced, by name.

        Raises
        ------
        InputError
            If one holds both numbers and texts, or an infinity.
        """
        self.names.append(texts_of(names))
        self._more = np.empty((len(names), self.shape[0]))
        is_text = []
        for line, name, cells in zip(self._more, names, columns, strict=True):
            kind = kinds.get(name.encode(), FREE)
            is_text.append(_fill(line, name, cells, where, form, self.pool, kind))
        self.narrow &= _native.look_at(self._more)[1]
        self.shape = (self.shape[0], self.n_read + len(names))
        self.text_columns = np.append(self.text_columns, is_text)

    def line_of(self, position: int) -> int:
        """Return the line of the file that a feature stands on."""
        return int(self._lines[position : position + 1][0])

    def read(self, positions: Indices, pool: TextCoder) -> Floats:
        """Return features, each a row of the result."""
        held, path = positions >= self.n_read, self._path
        if not held.any():
            return read_lines(path, np.dtype(np.float64), 0, self.shape[0], positions, str(path))
        out = np.empty((len(positions), self.shape[0]))
        out[held] = self._more[positions[held] - self.n_read]
        out[~held] = self.read(positions[~held], pool)
        return out


def open_stream(source: SourceFile, form: Any, sample_ids: TextSpool) -> text_tables.CsvStream:
    """Open a file and read its header.

    Raises
    ------
    InputError
        If the header holds no sample ids.
    """
    row_names = text_tables.has_row_names(source, form)
    stream = text_tables.CsvStream(source, form, sample_ids.append, row_names=row_names)
    if len(sample_ids) < 2:
        raise InputError(
            f"{source}: expected a header of a first field and sample ids, found "
            f"{len(sample_ids)} field. Name the separator with --separator."
        )
    return stream


def _fill(
    line: Floats,
    name: str,
    cells: list[bytes],
    where: Callable[[int], str],
    form: text_tables.TextForm,
    pool: TextCoder,
    kind: int,
) -> bool:
    """Fill ``line`` with numbers, or with the numbers of texts in ``pool``; return which."""
    line[...], texts = np.nan, list[int]()
    for row in (row for row, cell in enumerate(cells) if not form.is_missing(cell)):
        value = None if kind == CATEGORICAL else form.number(cells[row])
        if value is None:
            texts.append(row)
        else:
            line[row] = value
    is_text = bool(texts) and bool(np.isnan(line).all())
    if texts and (not is_text or kind not in (FREE, CATEGORICAL)):
        raise InputError(
            f"{where(texts[0])}: column {name!r} (--sample-features): expected a number as in "
            f"other lines or as --kind says, found {shown(cells[texts[0]])}. Mend the cell, or "
            "say --kind NAME=categorical."
        )
    if np.isinf(line).any():
        row = int(np.isinf(line).argmax())
        raise InputError(
            f"{where(row)}: column {name!r} (--sample-features): expected a finite number, "
            f"found {shown(cells[row])}. Mend the cell."
        )
    if is_text:
        numbers = pool.code(*joined([cells[row] for row in texts]))
        if len(numbers) < len(texts):
            at, cell = where(texts[len(numbers)]), cells[texts[len(numbers)]]
            raise ingest_memory.many_texts(
                f"{at}: column {name!r} (--sample-features)", cell.decode()
            )
        line[texts] = numbers
    return is_text


# A sample table: what is known of each sample, by its id.

_SHOWN = 5
_LINE_END = re.compile(r"(?<=\n)|(?<=\r)(?=[^\n])")
LONGEST_LINE = 16 * MB
"""A line of a sample table has no more bytes."""
PANEL_NBYTES = 2 * MB
"""Features turned into lines of scratch together: some are read while others are written."""


def asked_of(options: IngestOptions) -> list[tuple[str, str]]:
    """Return (what it is, name) of each column of a sample table that is asked for."""
    return [*options.columns(), *(("sample_features", name) for name in options.sample_features)]


def read_samples(
    options: IngestOptions, ids: list[str], expected: str
) -> dict[str, tuple[int, tuple[str, ...]]]:
    """Return by id, in the order of a sample table, the line of each sample and its cells.

    ``expected`` says which ``ids`` are looked up in it.

    Raises
    ------
    InputError
        If a column is not there, a row is ragged, an id occurs twice, or none is among ``ids``.
    """
    known: dict[str, tuple[int, tuple[str, ...]]] = {}
    for line, sample, *cells in _samples(options):
        if sample in known:
            raise InputError(
                f"{options.samples}, line {line}: expected distinct ids in column "
                f"{options.id_name!r}, found {sample!r} again. Keep one line for each sample."
            )
        known[sample] = line, tuple(cells)
    if known.keys().isdisjoint(ids):
        raise InputError(
            f"{expected} as in column {options.id_name!r} of {options.samples} "
            f"({', '.join(map(repr, list(known)[:3]))}, ...), found none of them among "
            f"{', '.join(map(repr, ids[:3]))}, ... Name the column that holds them with --id."
        )
    return known


def sample_columns(options: IngestOptions) -> tuple[SourceFile, Any, list[str]]:
    """Return a sample table, its rows after the header, and the names of its columns."""
    assert options.samples is not None
    source, form = SourceFile(options.samples), options.text
    pieces = PieceReader(source).pieces()
    first = next(pieces, b"")
    separator = form.separator_of(first.decode(errors="replace"))
    rows = csv.reader(text_lines(source, first, pieces, form.comment), delimiter=separator)
    return source, rows, [name.strip(" \t") for name in next(filter(None, rows), [])]


def _samples(options: IngestOptions) -> Iterator[tuple[Any, ...]]:
    """Yield the line, the id and the columns asked for of each sample."""
    source, rows, header = sample_columns(options)
    places = []
    for what, name in (("id", str(options.id_name)), *asked_of(options)):
        if name not in header:
            raise InputError(
                f"{source}: no such column {name!r} ({options.flag_of(what)}); expected one of "
                f"{', '.join(map(repr, header[:20]))}."
            )
        if what == "covariates" and header.index(name) in places:
            raise UsageError(
                f"--covariates: expected columns of no other role, found {name!r}. Leave it out."
            )
        places.append(header.index(name))
    for row in filter(None, rows):
        if len(row) != len(header):
            raise InputError(
                f"{source}, line {rows.line_num}: expected {len(header)} fields as in the header, "
                f"found {len(row)}. Mend the line."
            )
        yield (rows.line_num, *(row[place].strip(" \t") for place in places))


def text_lines(
    source: SourceFile, first: bytes, pieces: Iterator[bytes], comment: str | None
) -> Iterator[str]:
    """Yield lines one at a time, with their ends; a file is never held whole.

    Raises
    ------
    InputError
        If it is not UTF-8, or a line is longer than :data:`LONGEST_LINE`.
    """
    decoder = codecs.getincrementaldecoder("utf-8")()
    rest = ""
    try:
        for piece in chain([first], pieces, [b""]):
            *lines, rest = _LINE_END.split(rest + decoder.decode(piece, final=not piece))
            if len(rest) > LONGEST_LINE:
                raise InputError(
                    f"{source}: expected lines of at most {describe_nbytes(LONGEST_LINE)}, "
                    "found a longer one. Give a text table with a line for each sample."
                )
            for line in lines:
                yield "\n" if comment and line.startswith(comment) else line
    except UnicodeDecodeError as error:
        raise InputError(f"{source}: expected UTF-8 text: {error.reason}. {TO_UTF8}") from None
    if rest:
        yield "\n" if comment and rest.startswith(comment) else rest


def unmatched(known: Collection[str], ids: list[str]) -> dict[str, Any]:
    """Count and list the ids of either side that the other lacks; JSON-ready."""
    here = set(ids)
    sides = {
        "samples_without_label": [name for name in ids if name not in known],
        "labels_without_sample": [name for name in known if name not in here],
    }
    return {side: {"n": len(some), "first": some[:_SHOWN]} for side, some in sides.items() if some}


# What the ingest of a text table with features as rows takes, sample table and kinds included.

_FEW_FEATURES = 1 << 16
"""Tables of so many features are asked for the same memory, however many they have."""


def _text_nbytes(text: str) -> int:
    return len(text) if text.isascii() else 4 * len(text)


def samples_lease(options: IngestOptions, n_ids: int, ids_nbytes: int) -> Lease:
    """Return what a sample table takes in memory, with so many ids that are looked up in it.

    Raises
    ------
    InputError
        If it cannot be read as asked.
    """
    # An id that is looked up, a sample in both mappings and a cell of it, as Python objects, beyond
    # their texts: 130, 202 and 62 bytes as measured at 10^6 samples.
    samples, n_columns = 140 * n_ids + ids_nbytes, len(options.columns())
    for _, sample, *cells in _samples(options):
        samples += 210 + _text_nbytes(sample)
        samples += sum(64 + _text_nbytes(cell) for cell in cells)
        samples += sum(48 + 2 * len(cell.encode()) for cell in cells[n_columns:])  # as categories
    return Lease("the samples", samples)


def reading_leases(source: SourceFile, n_samples: int, options: IngestOptions) -> list[Lease]:
    """Return what kinds that are said take in memory, and what reading features does besides."""
    # a name and its kind, and once more by the reader of the table
    names = sum(4 * len(name) + 540 for name in options.kinds.names()) if options.kinds else 0
    panels = 3 * max(PANEL_NBYTES, 8 * n_samples) + 12 * n_samples
    decoding = N_DECODERS * PieceReader(source).decoder_nbytes
    room = Lease("working room", ingest_memory.SLACK_NBYTES)
    return [Lease("kinds by name", names), room, Lease("reading features", panels + decoding)]


def feature_memory(
    source: SourceFile, header: TextSpool, options: IngestOptions
) -> ingest_memory.IngestMemory:
    """Return what a bound on the features takes, or their number where the bound is too high.

    Raises
    ------
    InputError
        If the sample table cannot be read as asked.
    """
    n_samples = len(header) - 1
    held = [samples_lease(options, n_samples, header.nbytes)]
    kinds, *reading = reading_leases(source, n_samples, options)
    held.append(kinds)
    lines = ingest_memory.lines_lease(n_samples)

    def memory(n_features: int) -> ingest_memory.IngestMemory:
        n_columns = max(n_features, _FEW_FEATURES) + len(options.sample_features)
        taken = options.memory(n_columns, n_samples, (*held, lines), (*held, *reading))
        return replace(taken, texts_nbytes=texts_nbytes)

    texts_nbytes = _texts_nbytes(source, n_samples, options)
    if (bound := text_tables.rows_at_most(source, n_samples + 1)) is not None:
        most = memory(bound)
        if most.fits or most.least_mb == memory(1).least_mb:
            return most
    return memory(text_tables.count_rows(source, options.text, n_samples + 1)[0])


def _texts_nbytes(
    source: SourceFile, n_samples: int, options: IngestOptions, **most: Any
) -> int | None:
    """Return what the texts of features count as; None where none was found."""
    form, n_asked = options.text, len(options.columns())
    stream = text_tables.CsvStream(source, form, row_names=text_tables.has_row_names(source, form))
    slots = np.arange(-1, n_samples, dtype=np.int32)
    slots[0] = text_tables.ROW_ID
    kinds, room = row_cells_of(options.kinds.by_name()), ingest_memory.COUNTED_NBYTES
    reader = text_tables.TableReader(
        slots, stream, by_row=True, max_category_nbytes=room, row_kinds=kinds, counts=True
    )
    nbytes = reader.counted_nbytes(stream, n_samples, **most)
    coder = TextCoder(room, counts=True)
    for _, _, *cells in _samples(options) if options.sample_features else ():
        texts = [cell.encode() for cell in cells[n_asked:]]
        coder.code(*joined([text for text in texts if kinds or form.number(text) is None]))
    return nbytes + coder.needed_nbytes or None


# A text table with features as rows, and a sample table: labels are joined by sample id.


def open_feature_rows(source: SourceFile, options: IngestOptions, work: WorkFolder) -> TableReading:
    """Read a table with a feature a row into scratch, and return it as a table of columns.

    Samples without a label, and labels without a sample, are left out; the manifest's ``inferred``
    counts them and lists the first.

    Raises
    ------
    UsageError
        If options are given that such a table leaves no room for.
    InputError
        If a table cannot be read as asked, or no sample has a label.
    StoreError
        If the disk has no room for the scratch.
    BudgetError
        If the memory cap cannot hold the work.
    """
    if not options.text.header or options.ignore or options.row_ids:
        raise UsageError(
            "expected no --no-header, --ignore or --row-ids with --orient features: the header "
            "holds the sample ids, the first column the names. Leave the option out."
        )
    header, names = (TextSpool(work.scratch, name) for name in ("samples", "rows"))
    stream = open_stream(source, options.text, header)
    memory = feature_memory(source, header, options)
    memory.check(source)
    ingest_options.check_distinct(source, header, "sample ids", "Rename them in the header.")
    ids = list(header)[1:]
    known = read_samples(options, ids, f"{source}: expected sample ids")
    matched = [sample for sample in ids if sample in known]
    kinds = options.kinds.by_name()
    n_rows = text_tables.estimate(source, options.text, len(header))[0]
    check_disk(work.folder, 8 * len(ids) * n_rows, 0)
    left = memory.cap_nbytes - total_nbytes(replace(memory, texts_nbytes=0).leases())
    category_nbytes = max(0, left) * 7 // 8
    kept = np.array([sample in known for sample in ids])

    columns: dict[str, list[tuple[str, list[str]]]] = {"row_ids": [(str(options.id_name), matched)]}
    for place, (what, name) in enumerate(asked_of(options)):
        cells = [known[sample][1][place] for sample in matched]
        columns.setdefault(what, []).append((name, cells))

    def where(row: int) -> str:
        return f"{options.samples}, line {known[matched[row]][0]}"

    try:
        features = FeatureRows(
            stream, header, kept, work.scratch, names, work.tell, category_nbytes, kinds
        )
        if more := columns.pop("sample_features", []):
            names_of = [name for name, _ in more]
            texts = [[cell.encode() for cell in cells] for _, cells in more]
            features.append_features(names_of, texts, where, options.text, kinds)
    except BudgetError as error:
        texts_nbytes = _texts_nbytes(source, len(ids), options, most_nbytes=math.inf) or 0
        raise memory.naming(error, texts_nbytes) from None
    side = SideColumns(columns=columns, inferred=unmatched(known, ids))

    def locate(column: int, row: int) -> str:
        name = next(islice(iter(names), column, None))
        if column >= features.n_read:
            return f"{where(row)}: column {name!r} (--sample-features)"
        return f"{source}, line {features.line_of(column)}: sample {matched[row]!r} of {name!r}"

    settled = options.without_columns()
    origin = stream.origin
    return TableReading(features, source, settled, side, work, origin, memory, where, locate)
