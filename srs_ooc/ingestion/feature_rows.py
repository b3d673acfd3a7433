"""Text tables with a feature a row and a sample a column, as expression matrices are published.

What is known of each sample comes from a sample table, joined by sample id.
"""

import codecs
import csv
import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.arrays import Bools, Floats, Indices, Ints32
from srs_ooc.base.budget import Lease, total_nbytes
from srs_ooc.base.errors import BudgetError, InputError, UsageError, unfit
from srs_ooc.base.text import MB, describe_nbytes
from srs_ooc.ingestion import csv as text_tables
from srs_ooc.ingestion import ingest_memory, ingest_options, scratch
from srs_ooc.ingestion.formats import TO_UTF8, Table, TextCoder
from srs_ooc.ingestion.formats.genotypes import RAW, TRAW, VARIANT, in_role
from srs_ooc.ingestion.formats.in_memory import read_lines
from srs_ooc.ingestion.ingest_options import CELLS_OF, FREE, IngestOptions, Roles
from srs_ooc.ingestion.reading import TableReading, TextReading, WorkFolder
from srs_ooc.ingestion.rows import RowColumns, shown
from srs_ooc.ingestion.scratch import Panels, ScratchArray, TextSpool, joined, numbered, texts_of
from srs_ooc.ingestion.sources import N_DECODERS, PieceReader, SourceFile
from srs_ooc.native import _native
from srs_ooc.store.manifest import CATEGORICAL

_OF_TRAW = dict(zip(("chromosome", "cM", "position", *VARIANT[-2:]), (0, 2, 3, 4, 5), strict=True))


def begins_as(names: list[str], path: Path) -> bool:
    """Tell whether a file is a text whose columns have such names of PLINK at first."""
    from srs_ooc.ingestion.formats.files import opener_of

    is_text = path.is_file() and opener_of(path) is None
    start = next(PieceReader(SourceFile(path)).pieces(), b"") if is_text else b""
    return start.split(None, len(names))[: len(names)] == [one.encode() for one in names]


def n_before(header: Iterable[str]) -> int:
    """Return how many columns stand before the samples."""
    return len(TRAW) if list(islice(header, len(TRAW))) == TRAW else 1


def _slots(header: Collection[str], kept: Any = slice(None), beside: Iterable[int] = ()) -> Ints32:
    """Return where the cells of each column go: names, samples that are kept, what is beside."""
    first, slots = n_before(header), np.full(len(header), text_tables.IGNORED, np.int32)
    slots[TRAW.index("SNP") if first > 1 else 0] = text_tables.ROW_ID
    slots[first:][kept] = np.arange(len(slots[first:][kept]))
    slots[[*beside]] = text_tables.ROW_ID - 1 - np.arange(len([*beside]))
    return slots


class FeatureLines(Panels):
    """Features turned into lines of a file: those of each panel one after another."""

    def _pieces(self, panel: NDArray[Any], n_filled: int) -> Iterator[NDArray[Any]]:
        yield np.ascontiguousarray(panel[:, :n_filled].T)


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
    tell : ByteProgress
        Told of the bytes read.
    room : int
        Memory in bytes that the texts of categories may take.
    kinds : mapping of bytes to int, optional
        Kinds that are forced, by the names of the features.
    beside : mapping of str to int, optional
        Which columns say what else of the features; of a ``.traw`` those before the samples.

    Attributes
    ----------
    names : TextSpool
        The names of the features.
    pool : TextCoder
        The texts of features that hold texts.
    lines : ScratchArray
        The line of the file that each feature stands on.

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
        tell: ingest_options.ByteProgress,
        room: int,
        kinds: Mapping[bytes, int] | None = None,
        beside: Mapping[str, int] | None = None,
    ) -> None:
        n_samples, self._path = int(kept.sum()), scratch / "features"
        self.names: TextSpool = TextSpool(scratch, "rows")
        beside = beside or (_OF_TRAW if n_before(sample_ids) > 1 else {})
        said = {name: TextSpool(scratch, f"beside-{at}") for name, at in beside.items()}
        self._said, self.feature_columns = list(said.values()), dict[str, Collection[str]](said)
        forced = {name: int(CELLS_OF[kind]) for name, kind in (kinds or {}).items()}
        slots, gone = _slots(sample_ids, kept, beside.values()), stream.form.is_missing
        reader = text_tables.TableReader(slots, stream, max_category_nbytes=room, row_kinds=forced)
        self.lines = ScratchArray(scratch / "lines", np.int64)
        n_lines = max(1, PANEL_NBYTES // (8 * n_samples))
        panels = FeatureLines(self._path, n_samples, 2 * n_lines)
        is_text: list[Bools] = []

        def take_rows(reader: text_tables.TableReader) -> None:
            texts = reader.take_texts(text_tables.ROW_ID)
            text_tables.check_utf8(texts, f"{stream.source}: the names of the features")
            self.names.append(texts)
            for at, spool in enumerate(said.values(), 1):
                texts = reader.take_texts(text_tables.ROW_ID - at)
                text_tables.check_utf8(texts, f"{stream.source}: what is said of the features")
                spool.append(texts_of("" if gone(one) else one.decode() for one in texts))
            self.lines.append(reader.take_lines())
            cells = np.frombuffer(reader.native.take_row_cells(), np.uint8)
            is_text.append(np.isin(cells, (text_tables.TEXTS, text_tables.CATEGORIES)))

        text_tables.read_panels(reader, sample_ids, take_rows, panels, tell)
        self.format = f"csv{stream.pieces.suffix}, features as rows"
        self.narrow = reader.native.fits_float32
        self.n_read = reader.native.n_rows  # of the features, before those of samples
        self.shape: tuple[int, int] = (n_samples, reader.native.n_rows)
        self.text_columns: Bools = np.concatenate(is_text)
        self.pool: TextCoder = TextCoder(room)
        self.pool.code(*reader.categories())

    def append_features(
        self,
        columns: list[tuple[str, list[str]]],
        where: Callable[[int], str],
        options: IngestOptions,
    ) -> None:
        """Add features that are held in memory, after those of the file.

        Parameters
        ----------
        columns : list of (str, list of str)
            Their names and cells, as many as there are samples.
        where : callable
            Returns where a row of them stands, for messages.
        options : IngestOptions
            How cells are read, and kinds that are forced.

        Raises
        ------
        InputError
            If one holds both numbers and texts, or an infinity.
        """
        for spool in self._said:
            spool.append(texts_of([""] * len(columns)))
        self.names.append(texts_of(name for name, _ in columns))
        lines = np.full((len(columns), self.shape[0]), np.nan)
        form, kinds, is_text = options.text, options.kinds.by_name(), []
        for line, (name, texts) in zip(lines, columns, strict=True):
            kind, cells = kinds.get(name.encode(), FREE), [text.encode() for text in texts]
            there = [row for row, cell in enumerate(cells) if not form.is_missing(cell)]
            values: Any = [form.number(cells[row]) for row in there]
            pairs = zip(there, values, strict=True)
            words = [row for row, value in pairs if value is None or kind == CATEGORICAL]
            if words and (len(words) < len(there) or kind not in (FREE, CATEGORICAL)):
                here = f"{where(words[0])}: column {name!r} (--sample-features)"
                expected = "a number as in other lines or as --kind says"
                remedy = "Mend the cell, or say --kind NAME=categorical."
                raise unfit(here, expected, shown(cells[words[0]]), remedy)
            if words:
                at = partial(_in_samples, where, name, words)
                values = numbered(self.pool, [cells[row] for row in words], at)
            line[there] = values
            if np.isinf(line).any():
                row = int(np.isinf(line).argmax())
                here = f"{where(row)}: column {name!r} (--sample-features)"
                raise unfit(here, "a finite number", shown(cells[row]), "Mend the cell.")
            is_text.append(bool(words))
        with self._path.open("ab") as file:
            file.write(lines.data)
        self.narrow &= _native.look_at(lines)[1]
        self.shape = (self.shape[0], self.n_read + len(columns))
        self.text_columns = np.append(self.text_columns, is_text)

    def read(self, positions: Indices, pool: TextCoder) -> Floats:
        """Return features, each a row of the result."""
        dtype, path = np.dtype(np.float64), self._path
        return read_lines(path, dtype, 0, self.shape[0], positions, str(path))


def _in_samples(where: Callable[[int], str], name: str, rows: list[int], place: int) -> str:
    """Return where a cell of some rows of a feature of a sample table stands."""
    return f"{where(rows[place])}: column {name!r} (--sample-features)"


def open_stream(source: SourceFile, form: Any, sample_ids: TextSpool) -> text_tables.CsvStream:
    """Open a file and read its header.

    Raises
    ------
    InputError
        If the header holds no sample ids.
    """
    text_tables.has_row_names(source, form, sample_ids.append)
    stream = text_tables.CsvStream(source, form, sample_ids.append)
    if len(sample_ids) <= n_before(sample_ids):
        expected = "a header of a first field and sample ids"
        remedy = "Name the separator with --separator."
        raise unfit(source, expected, f"{len(sample_ids)} field", remedy)
    return stream


# A sample table: what is known of each sample, by its id.

Sample = tuple[tuple[int, ...], tuple[str, ...]]
"""The line in each sample table, 0 where there is none, and the cells of the columns asked for."""
_IID = {"IID", "#IID"}
_BY_PLACE = re.compile(r"(PHENO|COVAR)\d+(?=,|$)")
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
    options: IngestOptions, ids: list[str], expected: str, inferred: dict[str, Any]
) -> dict[str, Sample]:
    """Return by id, in the order of the sample tables, the lines of each sample and its cells.

    Facts for the manifest are noted as ``inferred``: how many ids of either side the other lacks,
    the first of them, and which tables have no header. ``expected`` says which ``ids`` are looked
    up. Where an id is PLINK's IID, it may also be looked up as FID (0 where there is none), ``:``
    or ``_``, IID.

    Raises
    ------
    InputError
        If a column is not there, a row is ragged, an id occurs twice, or none is among ``ids``.
    """
    known: dict[str, Sample] = {}
    here, gone = set(ids), next(iter(options.text.missing or ("",)))
    for table, line, family, iid, *cells in _samples(options):
        both = (f"{family or 0}{mark}{iid}" for mark in ":_" if family is not None)
        alone = iid if iid in here or not family else f"{family}:{iid}"
        sample = next((one for one in both if one in here), alone)
        lines, others = known.get(sample, ((0,) * len(options.samples), (gone,) * len(cells)))
        if lines[table]:
            raise InputError(
                f"{options.samples[table]}, line {line}: expected distinct ids in column "
                f"{options.id_name!r}, found {iid!r} again. Keep one line for each sample."
            )
        pairs = zip(cells, others, strict=True)
        all_cells = tuple(other if cell is None else cell for cell, other in pairs)
        known[sample] = (*lines[:table], line, *lines[table + 1 :]), all_cells
    if known.keys().isdisjoint(ids):
        raise InputError(
            f"{expected} as in column {options.id_name!r} of {', '.join(map(str, options.samples))}"
            f" ({', '.join(map(repr, list(known)[:3]))}, ...), found none of them among "
            f"{', '.join(map(repr, ids[:3]))}, ... Name the column that holds them with --id."
        )
    sides = {
        "samples_without_label": [name for name in ids if name not in known],
        "labels_without_sample": [name for name in known if name not in here],
    }
    tables = [(path, _sample_table(options, at)) for at, path in enumerate(options.samples)]
    found = [f"{path} has no header: {', '.join(one[1])}" for path, one in tables if not one[2]]
    inferred |= {"samples": "; ".join(found)} if found else {}
    few = {side: {"n": len(some), "first": some[:_SHOWN]} for side, some in sides.items() if some}
    inferred |= few
    return known


def columns_of(
    options: IngestOptions, known: dict[str, Sample], ids: list[str], plink: Any, gone: Any = None
) -> Iterator[tuple[str, str, list[Any]]]:
    """Yield what each column asked for is, its name, and its cells in the rows of some ids.

    These are ``gone`` where no table has the id. Beside genotypes of PLINK they are taken as it
    does, and the facts ``plink`` count them.
    """
    for place, role in enumerate(asked_of(options)):
        cells = [known[one][1][place] if one in known else gone for one in ids]
        yield *role, cells if plink is None else in_role(options, role, cells, ids, plink)


def line_of(options: IngestOptions, sample: Sample) -> str:
    """Return where a sample stands, for messages."""
    pairs = zip(options.samples, sample[0], strict=True)
    return "; ".join(f"{table}, line {line}" for table, line in pairs if line)


def _sample_table(options: IngestOptions, table: int) -> tuple[Any, list[str], bool]:
    """Return the numbered rows of a sample table, the names of its columns, and if it has these.

    A table of PLINK may be padded with spaces. One without a header is taken for FID, IID and so
    on, where a column is asked for by its place: PHENO1, COVAR1.
    """
    source, form = SourceFile(options.samples[table]), options.text
    lines = partial(text_lines, source, form.comment)
    mark = form.separator_of(next(PieceReader(source).pieces(), b"").decode(errors="replace"))
    rows = csv.reader(lines(), delimiter=mark)
    header = [name.strip(" \t") for name in next(filter(None, rows), [])]
    below = next(islice(filter(None, csv.reader(lines(), delimiter=mark)), 1, None), header)
    if len(below) == len(header) + 1 and below[-1].strip():
        header.insert(0, "")  # as R writes names of rows
    split = ((number, line.split()) for number, line in enumerate(lines(), 1) if line.strip())
    number, own = next(split, (1, list[str]()))
    asked = {found[1] for _, name in asked_of(options) if (found := _BY_PLACE.match(name))}
    has_ids, is_plink = not _IID.isdisjoint(header), options.id_name in _IID and mark in "\t "
    if is_plink and not _IID.isdisjoint(own[:2]) and (mark == " " or not has_ids):
        return split, own, True
    if has_ids or not (is_plink and asked):
        return ((rows.line_num, row) for row in rows if row), header, True
    kind = ("COVAR" if table else "PHENO") if len(asked) > 1 else min(asked)
    names = ["FID", "IID", *(f"{kind}{place}" for place in range(1, len(own) - 1))]
    return chain([(number, own)], split), names[: len(own)], False


def sample_columns(options: IngestOptions) -> list[str]:
    """Return the names of the columns of the sample tables."""
    tables = range(len(options.samples))
    return [name for table in tables for name in _sample_table(options, table)[1]]


def _samples(options: IngestOptions) -> Iterator[tuple[Any, ...]]:
    """Yield the table, the line, the family, the id and the columns asked for of each sample.

    Cells of other tables are None; so is the family where the id is not PLINK's.
    """
    tables = [_sample_table(options, table) for table in range(len(options.samples))]
    id_name, taken = str(options.id_name), list[tuple[int, int]]()

    def places(what: str, name: str, some: Sequence[int]) -> list[tuple[int, int]]:
        pairs = [(at, tables[at][1]) for at in some]
        found = [(at, of.index(one)) for at, of in pairs for one in (name, f"#{name}") if one in of]
        if not found:
            here = ", ".join(str(options.samples[at]) for at in some)
            own = ", ".join(map(repr, chain(*(of[:20] for _, of in pairs))))
            own += ". Without a header: PHENO1, COVAR1" * (what == "id" and name in _IID)
            raise InputError(
                f"{here}: no such column {name!r} ({options.flag_of(what)}); expected one of {own}."
            )
        return found

    ids = [places("id", id_name, [table])[0] for table in range(len(tables))]
    for what, name in asked_of(options):
        first, *others = places(what, name, range(len(tables)))
        if others and name not in ("FID", "#FID"):
            both = " and ".join(str(options.samples[at]) for at, _ in (first, *others))
            raise InputError(f"{both}: expected column {name!r} in one of them. Rename the others.")
        if what == "covariates" and first in [*ids, *taken]:
            raise UsageError(
                f"--covariates: expected columns of no other role, found {name!r}. Leave it out."
            )
        taken.append(first)
    for (table, at), (rows, header, _) in zip(ids, tables, strict=True):
        family = next((header.index(one) for one in ("FID", "#FID") if one in header), None)
        for line, row in rows:
            if len(row) != len(header):
                here = f"{options.samples[table]}, line {line}"
                expected = f"{len(header)} fields as in the header"
                raise unfit(here, expected, len(row), "Mend the line.")
            cells = (row[of].strip(" \t") if one == table else None for one, of in taken)
            fid = "" if family is None else row[family].strip(" \t")
            yield table, line, fid if id_name in _IID else None, row[at].strip(" \t"), *cells


def text_lines(source: SourceFile, comment: str | None) -> Iterator[str]:
    """Yield lines one at a time, with their ends; a file is never held whole."""
    reader, rest = PieceReader(source), ""
    if reader.arff is not None:
        raise InputError(f"{source}: expected CSV, found ARFF. Write the table as CSV.")
    try:
        for text in chain(codecs.iterdecode(reader.pieces(), "utf-8"), [None]):
            *lines, rest = (rest, "") if text is None else _LINE_END.split(rest + text)
            if len(rest) > LONGEST_LINE:
                expected = f"lines of at most {describe_nbytes(LONGEST_LINE)}"
                remedy = "Give a text table with a line for each sample."
                raise unfit(source, expected, "a longer one", remedy)
            for line in filter(None, lines):
                yield "\n" if comment and line.startswith(comment) else line
    except UnicodeDecodeError as error:
        raise InputError(f"{source}: expected UTF-8 text: {error.reason}. {TO_UTF8}") from None


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
    for _, _, _, sample, *cells in _samples(options):
        samples += 210 + 56 * len(options.samples) + _text_nbytes(sample)
        samples += sum(64 + _text_nbytes(cell or "") for cell in cells)
        samples += sum(48 + 2 * len((cell or "").encode()) for cell in cells[n_columns:])  # to code
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
    n_samples = len(header) - n_before(header)
    kinds, *reading = reading_leases(source, n_samples, options)
    held = (samples_lease(options, n_samples, header.nbytes), kinds)
    lines = ingest_memory.lines_lease(n_samples)

    def memory(n_features: int) -> ingest_memory.IngestMemory:
        n_columns = max(n_features, _FEW_FEATURES) + len(options.sample_features)
        taken = options.memory(n_columns, n_samples, (*held, lines), (*held, *reading))
        return replace(taken, texts_nbytes=texts_nbytes)

    texts_nbytes = _texts_nbytes(source, header, options)
    if (bound := text_tables.rows_at_most(source, len(header))) is not None:
        most = memory(bound)
        if most.fits or most.least_mb == memory(1).least_mb:
            return most
    return memory(text_tables.count_rows(source, options.text, len(header))[0])


def _texts_nbytes(
    source: SourceFile, header: TextSpool, options: IngestOptions, **most: Any
) -> int | None:
    """Return what the texts of features count as; None where none was found."""
    form, n_asked = options.text, len(options.columns())
    slots, stream = _slots(header), text_tables.CsvStream(source, form)
    kinds = {name: int(CELLS_OF[kind]) for name, kind in options.kinds.by_name().items()}
    room = ingest_memory.COUNTED_NBYTES
    reader = text_tables.TableReader(
        slots, stream, max_category_nbytes=room, row_kinds=kinds, counts=True
    )
    nbytes = reader.counted_nbytes(len(header) - n_before(header), **most)
    coder = TextCoder(room, counts=True)
    for _, _, _, _, *cells in _samples(options) if options.sample_features else ():
        texts = [(cell or "").encode() for cell in cells[n_asked:]]
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
    header = TextSpool(work.scratch, "samples")
    stream = open_stream(source, options.text, header)
    memory = feature_memory(source, header, options)
    memory.check(source)
    ingest_options.check_distinct(source, header, "sample ids", "Rename them in the header.")
    ids, of_plink = list(header)[n_before(header) :], n_before(header) > 1
    inferred = work.inferred
    known = read_samples(options, ids, f"{source}: expected sample ids", inferred)
    matched = [sample for sample in ids if sample in known]
    kinds = options.kinds.by_name()
    n_rows = text_tables.estimate(source, options.text, len(header))[0]
    scratch.check_disk(work.folder, 8 * len(ids) * n_rows, 0)
    left = memory.cap_nbytes - total_nbytes(replace(memory, texts_nbytes=0).leases())
    room = max(0, left) * 7 // 8  # for texts of categories
    kept = np.array([sample in known for sample in ids])
    if of_plink:
        inferred["alleles"] = "counted is that of column COUNTED"
    columns: dict[str, list[tuple[str, list[str]]]] = {"row_ids": [(str(options.id_name), matched)]}
    for what, name, cells in columns_of(options, known, matched, inferred if of_plink else None):
        columns.setdefault(what, []).append((name, cells))

    def where(row: int) -> str:
        return line_of(options, known[matched[row]])

    try:
        features = FeatureRows(stream, header, kept, work.scratch, work.tell, room, kinds)
        if more := columns.pop("sample_features", []):
            features.append_features(more, where, options)
    except BudgetError as error:
        texts_nbytes = _texts_nbytes(source, header, options, most_nbytes=math.inf) or 0
        raise memory.naming(error, texts_nbytes) from None

    def locate(column: int, row: int) -> str:
        name = features.names.get(column).decode()
        if column >= features.n_read:
            return _in_samples(where, name, [row], 0)
        (line,) = features.lines[column : column + 1]
        return f"{source}, line {line}: sample {matched[row]!r} of {name!r}"

    settled = replace(options.without_columns(), beside=columns)

    plink = {"plink": True} if of_plink else {}
    reading = TableReading(features, source, settled, work, lambda: stream.origin() | plink)
    reading.needs, reading.where, reading.locate = memory, where, locate
    return reading


# A ``.raw`` of PLINK, a sample a row, and sample tables.


class RawReading(TextReading):
    """One reading of a ``.raw``, whose rows are joined with sample tables by id.

    Columns that these lack may be of the file.

    Raises
    ------
    UsageError
        If options are given that leave no room for these.
    """

    def __init__(self, source: SourceFile, options: IngestOptions, work: WorkFolder) -> None:
        if options.row_ids or options.aggregate:
            raise UsageError(
                f"{source}: expected no --row-ids or --aggregate beside --samples, which is joined "
                "by the file's own row ids. Leave the option out."
            )
        in_table = sample_columns(options)
        self._asked = options.without_columns([one for one in RAW if one not in in_table])
        self._samples = samples_lease(self._asked, 0, 0)
        beside = {what: [(name, ())] for what, name in asked_of(self._asked)}
        super().__init__(source, replace(options.without_columns(in_table), beside=beside), work)

    def _memory(self, n_columns: int, n_rows: int = 1) -> ingest_memory.IngestMemory:
        memory = super()._memory(n_columns, n_rows)
        lease = replace(self._samples, n_bytes=self._samples.n_bytes + 180 * n_rows)
        return replace(memory, held=(*memory.held, lease))

    def read_rows(self, roles: Roles, rows: RowColumns) -> None:
        """Read all rows, and then the sample tables."""
        super().read_rows(roles, rows)
        (own,), gone = self._own_ids, next(iter(self.options.text.missing or ("",)))
        ids = list(own)
        inferred = self._work.inferred
        known = read_samples(self._asked, ids, f"{self.source}: expected row ids", inferred)
        for what, name, cells in columns_of(self._asked, known, ids, inferred, gone):
            rows.open(what, name).extend(cells)
