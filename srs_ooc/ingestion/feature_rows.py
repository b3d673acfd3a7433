"""Text tables with a feature a row and a sample a column, as expression matrices are published.

What is known of each sample comes from a sample table, joined by sample id.
"""

import codecs
import csv
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.budget import Lease
from srs_ooc.base.errors import InputError, UsageError
from srs_ooc.base.text import MB, describe_nbytes
from srs_ooc.ingestion.csv import (
    CATEGORIES,
    IGNORED,
    ROW_ID,
    TEXTS,
    CsvStream,
    TableReader,
    TextForm,
    check_utf8,
    count_rows,
    estimate,
    has_row_names,
    read_panels,
    rows_at_most,
)
from srs_ooc.ingestion.formats import TO_UTF8, Table, TextCoder
from srs_ooc.ingestion.formats.files import read_lines
from srs_ooc.ingestion.formats.in_memory import item_blocks, line_nbytes
from srs_ooc.ingestion.ingest_memory import CATEGORY_NBYTES, SLACK_NBYTES, Needs, check_disk
from srs_ooc.ingestion.ingest_options import (
    FREE,
    ByteProgress,
    IngestOptions,
    SampleTable,
    SideColumns,
    check_distinct,
    row_cells_of,
)
from srs_ooc.ingestion.reading import TableReading, Workplace
from srs_ooc.ingestion.rows import Wording, shown, wording_of
from srs_ooc.ingestion.scratch import ScratchArray, TextSpool, anonymous_array, joined, texts_of
from srs_ooc.ingestion.sources import N_DECODERS, PieceReader, SourceFile
from srs_ooc.store.manifest import CATEGORICAL

_PANEL_NBYTES = 3 * MB


class FeatureRows:
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

    by_rows = False
    narrow = False
    work_nbytes = 0

    def __init__(
        self,
        stream: CsvStream,
        sample_ids: TextSpool,
        kept: NDArray[np.bool_],
        scratch: Path,
        names: TextSpool,
        tell: ByteProgress,
        max_category_nbytes: int,
        kinds: Mapping[bytes, int] | None = None,
    ) -> None:
        n_samples, self._path = int(kept.sum()), scratch / "features"
        slots = np.full(len(sample_ids), IGNORED, np.int32)
        slots[0] = ROW_ID
        slots[1:][kept] = np.arange(n_samples, dtype=np.int32)
        reader = TableReader(
            slots,
            stream.dialect,
            place=stream.place,
            by_row=True,
            max_category_nbytes=max_category_nbytes,
            row_kinds=row_cells_of(kinds or {}),
        )
        self._lines = ScratchArray(scratch / "lines", np.int64)
        n_lines = max(1, _PANEL_NBYTES // (8 * n_samples))
        panel = anonymous_array((n_samples, n_lines))
        reader.set_panel(panel)
        is_text: list[NDArray[np.bool_]] = []
        with self._path.open("wb") as file:

            def panel_full() -> None:
                file.write(np.ascontiguousarray(panel[:, : reader.n_panel_rows].T).data)
                reader.set_panel(panel)

            def take_rows(reader: TableReader) -> None:
                texts = reader.take_texts(ROW_ID)
                check_utf8(texts, f"{stream.source}: the names of the features")
                names.append(texts)
                self._lines.append(reader.take_lines())
                is_text.append(np.isin(reader.take_row_cells(), (TEXTS, CATEGORIES)))

            read_panels(stream, reader, sample_ids, take_rows, panel_full, tell)
        self.format = f"csv{stream.pieces.suffix}, features as rows"
        self.shape: tuple[int, int] = (n_samples, reader.n_rows)
        self.names = names
        self.text_columns: NDArray[np.bool_] | None = np.concatenate(is_text)
        self.pool: TextCoder | None = TextCoder(max_category_nbytes)
        self.pool.code(*reader.categories())

    def line_of(self, position: int) -> int:
        """Return the line of the file that a feature stands on."""
        return int(self._lines[position : position + 1][0])

    def read(self, positions: NDArray[np.intp], _: TextCoder | None) -> NDArray[np.float64]:
        """Return features, each a row of the result."""
        path = self._path
        return read_lines(path, np.dtype(np.float64), 0, self.shape[0], positions, str(path))

    def items(self, position: int) -> Iterator[list[Any]]:
        """Yield the values of a feature in blocks."""
        values = self.read(np.array([position]), None)
        return item_blocks(values[0])


def open_stream(source: SourceFile, form: Any, sample_ids: TextSpool) -> CsvStream:
    """Open a file and read its header.

    Raises
    ------
    InputError
        If the header holds no sample ids.
    """
    row_names = has_row_names(source, form)
    stream = CsvStream(source, form, sample_ids.append, row_names=row_names)
    if len(sample_ids) < 2:
        raise InputError(
            f"{source}: expected a header of a first field and sample ids, found "
            f"{len(sample_ids)} field. Name the separator with --separator."
        )
    return stream


# A table with more columns, from a sample table, after its own.


class CovariateTable:
    """The features of a table and, after them, covariates held in memory: a ``Table``.

    Parameters
    ----------
    features : FeatureRows
        The table.
    names : list of str
        Names of the covariates.
    columns : list of list of bytes
        Their cells, as many as the table has rows.
    wording : Wording
        How cells are read, and where they stand.
    kinds : mapping of bytes to int
        Kinds that are forced, by name.

    Raises
    ------
    InputError
        If a covariate holds both numbers and texts, or an infinity.
    """

    by_rows = False
    narrow = False
    work_nbytes = 0

    def __init__(
        self,
        features: FeatureRows,
        names: list[str],
        columns: list[list[bytes]],
        wording: Wording,
        kinds: Mapping[bytes, int],
    ) -> None:
        assert features.pool is not None
        assert features.text_columns is not None
        self.format, self.pool = features.format, features.pool
        self._features, self._n_features = features, features.shape[1]
        self.shape = (features.shape[0], features.shape[1] + len(names))
        self.names: Collection[str] | None = features.names
        features.names.append(texts_of(names))
        self._values = np.empty((len(names), features.shape[0]))
        is_text = []
        for line, name, cells in zip(self._values, names, columns, strict=True):
            kind = kinds.get(name.encode(), FREE)
            is_text.append(_read(line, name, cells, wording, features.pool, kind))
        self.text_columns: NDArray[np.bool_] | None = np.append(features.text_columns, is_text)

    def read(self, positions: NDArray[np.intp], pool: TextCoder) -> NDArray[np.float64]:
        """Return columns, each a row of the result."""
        out = np.empty((len(positions), self.shape[0]))
        mine = positions >= self._n_features
        out[mine] = self._values[positions[mine] - self._n_features]
        if not mine.all():
            out[~mine] = self._features.read(positions[~mine], pool)
        return out

    def items(self, position: int) -> Iterator[list[Any]]:
        """Yield the cells of a column in blocks."""
        if position < self._n_features:
            return self._features.items(position)
        return item_blocks(self._values[position - self._n_features])


def _read(
    line: NDArray[np.float64],
    name: str,
    cells: list[bytes],
    wording: Wording,
    pool: TextCoder,
    kind: int,
) -> bool:
    """Fill ``line`` with numbers, or with the numbers of texts in ``pool``; return which."""
    missing = [wording.is_missing(cell) for cell in cells]
    if kind == CATEGORICAL:
        values: list[float | None] = [None] * len(cells)
    else:
        values = [
            None if gone else wording.number(c) for c, gone in zip(cells, missing, strict=True)
        ]
    texts = [
        row
        for row, (value, gone) in enumerate(zip(values, missing, strict=True))
        if value is None and not gone
    ]
    is_text = bool(texts) and all(value is None for value in values)
    if texts and (not is_text or kind not in (FREE, CATEGORICAL)):
        raise InputError(
            f"{wording.where(texts[0])}: column {name!r} (--covariates): expected a number as in "
            f"other lines or as --kind says, found {shown(cells[texts[0]])}. Mend the cell, or "
            "say --kind NAME=categorical."
        )
    line[...] = [np.nan if value is None else value for value in values]
    if np.isinf(line).any():
        row = int(np.isinf(line).argmax())
        raise InputError(
            f"{wording.where(row)}: column {name!r} (--covariates): expected a finite number, "
            f"found {shown(cells[row])}. Mend the cell."
        )
    if is_text:
        numbers = pool.code(*joined([cells[row] for row in texts]))
        if len(numbers) < len(texts):
            raise InputError(
                f"column {name!r} (--covariates): expected categories whose texts fit into the "
                "memory that is left for them, found more. Raise --memory-mb."
            )
        line[texts] = numbers
    return is_text


# A sample table: what is known of each sample, by its id.

_SHOWN = 5
_LINE_END = re.compile(r"(?<=\n)|(?<=\r)(?=[^\n])")
_SAMPLE_NBYTES, _CELL_NBYTES, _ID_NBYTES = 210, 64, 140
"""Memory of a sample in both mappings, of a cell of it, and of an id that is looked up in them, as
Python objects, beyond their texts; measured 202, 62 and 130 at 10^6 samples."""
MOST_LINE_NBYTES = 16 * MB
"""A line of a sample table is no longer."""


def _text_nbytes(text: str) -> int:
    return len(text) if text.isascii() else 4 * len(text)


def read_samples(
    source: SourceFile, form: TextForm, id_name: str, wanted: Sequence[tuple[str, str]]
) -> dict[str, tuple[int, tuple[str, ...]]]:
    """Return by id, in the order of a sample table, the line of each sample and its cells.

    Parameters
    ----------
    source : SourceFile
        The file.
    form : TextForm
        What is said of it.
    id_name : str
        Column of the ids.
    wanted : sequence of (str, str)
        For each other column, the cells of which are asked for, the option that names it, and its
        name.

    Raises
    ------
    InputError
        If a column is not there, a row is ragged, or an id occurs twice.
    """
    known: dict[str, tuple[int, tuple[str, ...]]] = {}
    for line, sample, *cells in _samples(source, form, id_name, wanted):
        if sample in known:
            raise InputError(
                f"{source}, line {line}: expected distinct ids in column {id_name!r}, found "
                f"{sample!r} again. Keep one line for each sample."
            )
        known[sample] = line, tuple(cells)
    return known


def _samples(
    source: SourceFile, form: TextForm, id_name: str, wanted: Sequence[tuple[str, str]]
) -> Iterator[tuple[Any, ...]]:
    """Yield the line, the id and the columns asked for of each sample."""
    pieces = PieceReader(source).pieces()
    first = next(pieces, b"").removeprefix(b"\xef\xbb\xbf")
    separator = form.settle(first.decode(errors="replace")).separator
    rows = csv.reader(_lines(source, first, pieces, form.comment), delimiter=separator)
    filled = (row for row in rows if row)
    header = [name.strip(" \t") for name in next(filled, [])]
    places = []
    for option, name in (("--id", id_name), *wanted):
        if name not in header:
            raise InputError(
                f"{source}: no such column {name!r} ({option}); expected one of "
                f"{', '.join(map(repr, header[:20]))}."
            )
        places.append(header.index(name))
    for row in filled:
        if len(row) != len(header):
            raise InputError(
                f"{source}, line {rows.line_num}: expected {len(header)} fields as in the header, "
                f"found {len(row)}. Mend the line."
            )
        yield (rows.line_num, *(row[place].strip(" \t") for place in places))


def _lines(
    source: SourceFile, first: bytes, pieces: Iterator[bytes], comment: str | None
) -> Iterator[str]:
    """Yield lines one at a time, with their ends; a file is never held whole."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    rest = ""
    try:
        for piece in chain([first], pieces, [b""]):
            *lines, rest = _LINE_END.split(rest + decoder.decode(piece, final=not piece))
            if len(rest) > MOST_LINE_NBYTES:
                raise InputError(
                    f"{source}: expected lines of at most {describe_nbytes(MOST_LINE_NBYTES)}, "
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
    return {
        side: {"n": len(names), "first": names[:_SHOWN]} for side, names in sides.items() if names
    }


# What the ingest of a text table with features as rows takes, sample table and kinds included.

_FEW_FEATURES = 1 << 16
"""Tables of so many features are asked for the same memory, however many they have."""


def asked_of(samples: SampleTable, options: IngestOptions) -> list[tuple[str, str]]:
    """Return for each column of a sample table that is asked for the option, and its name."""
    asked = [(f"--{what}", name) for what, name in options.columns()]
    return asked + [("--covariates", name) for name in samples.covariates]


def feature_needs(
    source: SourceFile, header: TextSpool, samples: SampleTable, options: IngestOptions
) -> Needs:
    """Return what a bound on the features takes, or their number where the bound is too high.

    Raises
    ------
    InputError
        If the sample table cannot be read as asked.
    """
    n_samples, labels = len(header) - 1, SourceFile.file(samples.path)
    known = sum(
        _SAMPLE_NBYTES + _text_nbytes(sample) + sum(_CELL_NBYTES + _text_nbytes(c) for c in cells)
        for _, sample, *cells in _samples(
            labels, options.text, samples.id_name, asked_of(samples, options)
        )
    )
    known += _ID_NBYTES * n_samples + header.nbytes  # ids that are looked up
    held = [Lease("the samples", known)]
    if options.kinds:
        held.append(Lease("kinds by name", options.kinds.by_name_nbytes()))
    decoder = PieceReader(source).decoder_nbytes
    panels = 2 * max(_PANEL_NBYTES, 8 * n_samples) + 12 * n_samples  # and slots of the columns
    reading = Lease("reading features", panels + N_DECODERS * decoder)
    room = Lease("working room", SLACK_NBYTES)
    lines = Lease("lines on their way", line_nbytes((n_samples, 1), by_rows=False))

    def needs(n_features: int) -> Needs:
        n_columns = max(n_features, _FEW_FEATURES) + len(samples.covariates)
        return Needs.of(options, n_columns, n_samples, (*held, lines), (*held, room, reading))

    bound = rows_at_most(source, n_samples + 1)
    if bound is not None:
        most = needs(bound)
        if most.fits(options.memory_nbytes) or most.least_mb == needs(1).least_mb:
            return most
    return needs(count_rows(source, options.text, n_samples + 1)[0])


# A text table with features as rows, and a sample table: labels are joined by sample id.


def open_feature_rows(
    source: SourceFile, samples: SampleTable, options: IngestOptions, work: Workplace
) -> TableReading:
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
    asked = asked_of(samples, options)
    labels = SourceFile.file(samples.path)
    header, names = (
        work.stack.enter_context(TextSpool(work.scratch, name)) for name in ("samples", "rows")
    )
    stream = open_stream(source, options.text, header)
    needs = feature_needs(source, header, samples, options)
    needs.check(options.memory_nbytes, source)
    known = read_samples(labels, options.text, samples.id_name, asked)
    check_distinct(source, header, "sample ids", "Rename them in the header.")
    ids = list(header)[1:]
    matched = [sample for sample in ids if sample in known]
    if not matched:
        raise InputError(
            f"{source}: expected sample ids as in column {samples.id_name!r} of {samples.path} "
            f"({', '.join(map(repr, list(known)[:3]))}, ...), found none of them among "
            f"{', '.join(map(repr, ids[:3]))}, ... Name the column that holds them with --id."
        )
    kinds = options.kinds.by_name()
    n_rows = estimate(source, options.text, len(header))[0]
    check_disk(work.folder, 8 * len(ids) * n_rows, 0)
    category_nbytes = min(CATEGORY_NBYTES, needs.spare_nbytes(options.memory_nbytes) // 2)
    kept = np.array([sample in known for sample in ids])
    features = FeatureRows(
        stream, header, kept, work.scratch, names, work.tell, category_nbytes, kinds
    )
    wording = wording_of(options.text, lambda row: f"{labels}, line {known[matched[row]][0]}")
    columns: dict[str, list[tuple[str, list[str]]]] = {"row_ids": [(samples.id_name, matched)]}
    for place, (option, name) in enumerate(asked):
        cells = [known[sample][1][place] for sample in matched]
        columns.setdefault(option.removeprefix("--"), []).append((name, cells))
    table: Table = features
    if covariates := columns.pop("covariates", []):
        names_of = [name for name, _ in covariates]
        texts = [[cell.encode() for cell in cells] for _, cells in covariates]
        table = CovariateTable(features, names_of, texts, wording, kinds)
    side = SideColumns(columns=columns, inferred=unmatched(known, ids))

    def locate(column: int, row: int) -> str:
        name = next(islice(iter(table.names or ()), column, None))
        if column >= features.shape[1]:
            return f"{wording.where(row)}: column {name!r} (--covariates)"
        line = features.line_of(column)
        return f"{source}, line {line}: sample {matched[row]!r} of {name!r}"

    settled = replace(options, target=None, weights=None, strata=(), groups=None)
    return TableReading(table, source, settled, side, work, stream.origin(), needs, wording, locate)
