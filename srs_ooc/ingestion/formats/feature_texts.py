"""Texts of which a row is a feature, with more than a table: GCT, GEO series matrices, BIOM.

What stands before the rows is read by lines, and says which fields are samples, and what is known
of them. The rows are streamed; BIOM 1.0, which is JSON, is held in memory.
"""

import csv
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from sys import getsizeof
from typing import Any

import numpy as np

from srs_ooc.base.budget import Lease, total_nbytes
from srs_ooc.base.errors import InputError
from srs_ooc.base.text import MB
from srs_ooc.ingestion import csv as text_tables
from srs_ooc.ingestion import ingest_memory
from srs_ooc.ingestion.feature_rows import FeatureRows, reading_leases, text_lines
from srs_ooc.ingestion.formats import Names, Table, in_memory
from srs_ooc.ingestion.formats.files import SCIPY_NBYTES, File
from srs_ooc.ingestion.scratch import TextSpool, texts_of
from srs_ooc.ingestion.sources import PieceReader, SourceFile

_MISSING = ("", "NA", "N/A", "#N/A", "na", "NaN", "nan", "null", "NULL", "None")
_BEGIN, _END = "!series_matrix_table_begin", "!series_matrix_table_end"
_TAXONOMY = ("taxonomy", "consensuslineage", "consensus lineage")
_MOST_WORDS = 1000
_Rows = Iterator[list[str]]


@dataclass
class _Head:
    """What a text says before its rows.

    Attributes
    ----------
    names : list of str
        Of all fields of a row: of the feature, what is known of it, sample ids.
    n_before, n_after : int
        Fields that are no samples.
    beside : sequence of (str, list)
        What is known of the samples: names and cells, None where one is missing.
    n_features : int or None
        Rows that it promises.
    missing, comment, end : tuple of str, str or None, bytes
        Texts for what is missing, how lines begin that are no rows, what stands at the end.
    """

    names: list[str]
    n_before: int = 1
    n_after: int = 0
    beside: Sequence[tuple[str, list[Any]]] = ()
    n_features: int | None = None
    missing: tuple[str, ...] = _MISSING
    comment: str | None = None
    end: bytes = b""

    @property
    def ids(self) -> list[str]:
        """The samples."""
        return self.names[self.n_before : len(self.names) - self.n_after]


def _gct(source: SourceFile, rows: _Rows) -> _Head:
    is_third, said = next(rows)[0].strip() == "#1.3", [one for one in next(rows, []) if one.strip()]
    if len(said) != (4 if is_third else 2) or not all(one.strip().isdecimal() for one in said):
        raise InputError(
            f"{source}, line 2: expected {'four' if is_third else 'two'} counts, of rows, columns"
            f"{' and what is known of either' * is_third}, found {said[:6]}. Get the file again."
        )
    n_features, n_samples, n_about, n_beside = [*map(int, said), 1, 0][:4]
    n_fields, top = 1 + n_about + n_samples, list[list[str]]()
    missing = (*_MISSING, "-666")
    while len(top) <= n_beside:
        top.append(next(rows, []))
        _check_fields(source, top[-1], n_fields, "as line 2 says")
    names, n_before = top[0], 1 + n_about
    beside = [
        (row[0], [None if one in missing else one for one in row[n_before:]]) for row in top[1:]
    ]
    return _Head(names, n_before, 0, beside, n_features, missing)


def _geo(source: SourceFile, rows: _Rows) -> _Head:
    fields, files, row = list[tuple[str, list[str]]](), list[str](), [""]
    for row in rows:
        what, _, name = row[0].partition("_")
        if row[0] == _BEGIN:
            break
        if what == "!Sample":
            fields.append((name, row[1:]))
        elif name.startswith("supplementary_file"):
            files += row[1:]
    if row[0] != _BEGIN or not (ids := (names := next(rows, []))[1:]):
        raise InputError(
            f"{source}: expected {_BEGIN} and a line of ID_REF and sample ids, found the end of "
            "the file before. Get the file of the series anew: GSE..._series_matrix.txt.gz."
        )
    at, first = source.head, next(rows, [""])[0]
    source.head = at  # only looked at
    if first == _END:
        raise InputError(
            f"{source}: expected rows after ID_REF, found none: of sequencing GEO has the counts "
            f"in a file beside ({', '.join(files) or 'none is named'}). Ingest that."
        )
    words, plain = dict[str, list[Any]](), list[tuple[str, list[Any]]]()
    for name, cells in fields:
        _check_fields(source, cells, len(ids), f"in !Sample_{name}, as samples in the table")
        if name == "geo_accession" and cells != ids:
            raise InputError(
                f"{source}: expected the samples of !Sample_geo_accession in the order of the "
                "table, found others. Get the file again."
            )
        if not name.startswith("characteristics"):
            plain.append((name, [cell or None for cell in cells]))
            continue
        for place, cell in enumerate(cells):
            word, mark, value = cell.partition(":") if ":" in cell else (name, "", cell)
            key = word.strip() + ":ch2" * (bool(mark) and name.endswith("ch2"))
            if value := value.strip():
                if len(words) == _MOST_WORDS and key not in words:
                    raise InputError(
                        f"{source}: expected characteristics as word: value, of at most "
                        f"{_MOST_WORDS} words, found more: {cell[:40]!r}. Get the file again."
                    )
                column = words.setdefault(key, [None] * len(ids))
                column[place] = value if column[place] is None else f"{column[place]};{value}"
    beside = [*plain, *words.items()]
    return _Head(names, beside=beside, comment="!", end=_END.encode())


def _otus(source: SourceFile, rows: _Rows) -> _Head:
    names = next((row for row in rows if len(row) > 1), ["", ""])
    at, last = source.head, next(rows, [""])[-1]
    source.head = at  # only looked at
    is_text = last not in _MISSING and text_tables.parse_decimal(last.strip().encode()) is None
    return _Head(names, n_after=int(is_text or names[-1].lower() in _TAXONOMY))


_HEADS: Mapping[str, Callable[[SourceFile, _Rows], _Head]] = {
    "GCT": _gct,
    "GEO series matrix": _geo,
    "BIOM TSV": _otus,
}


def _check_fields(source: SourceFile, row: list[str], expected: int, why: str) -> None:
    if len(row) != expected:
        raise InputError(
            f"{source}, line {source.head[1]}: expected {expected} fields {why}, found {len(row)}. "
            "Get the file again."
        )


def _rows(file: File, source: SourceFile, table: Table) -> _Rows:
    """Yield the rows before those of features; ``source.head`` is where the last one ends."""
    nbytes = n_lines = held = 0

    def lines() -> Iterator[str]:
        nonlocal nbytes, n_lines
        for line in text_lines(source, b"", PieceReader(source).pieces(), None):
            nbytes, n_lines = nbytes + len(line.encode()), n_lines + 1
            yield line

    try:
        for row in csv.reader(lines(), delimiter="\t"):
            source.head = nbytes, n_lines
            held += _held(row)
            table.opening = (Lease(_KNOWN, 2 * held),)  # as read, and as it is kept
            if held > _LOOK:
                file.check(table)
            if row:
                yield row
    except csv.Error:
        raise InputError(
            f"{source}, line {n_lines}: expected fields of at most 131,072 characters, found a "
            "longer one. Look for a missing closing quote."
        ) from None


_LOOK, _KNOWN = 4 * MB, "what is known of the samples"


def _held(cells: Sequence[Any]) -> int:
    return 8 * len(cells) + sum(map(getsizeof, cells))


def open_rows(file: File) -> FeatureRows:
    """Read the features of a text into scratch: a ``Table`` by columns.

    Raises
    ------
    InputError
        If the text is no such file, is cut short, or says otherwise than it holds.
    BudgetError
        If the cap cannot hold the ingest.
    """
    source, table, options = SourceFile(file.path, str(file)), Table(), file.options
    table.shape, table.held = (1, 1), ()
    head = _HEADS[file.format.name](source, _rows(file, source, table))
    source.end, n_fields, n_samples = head.end, len(head.names), len(head.ids)
    if not n_samples:
        raise InputError(
            f"{source}, line {source.head[1]}: expected sample ids, found {head.names[:3]}. Get "
            "the file again."
        )
    missing = (*head.missing, *(options.text.missing or ()))
    form = text_tables.TextForm("tab", head.comment, missing=missing, header=False)
    names = Names.numbered(["id", *(name for name, _ in head.beside)])
    beside = dict(zip(names, (head.ids, *(cells for _, cells in head.beside)), strict=True))
    known, opening = sum(map(_held, beside.values())), table.opening[0].n_bytes
    table.held = (Lease(_KNOWN, known),)
    opened = Lease(_KNOWN, max(known, opening))
    table.opening = (opened, *reading_leases(source, n_samples, options))
    bound = text_tables.rows_at_most(source, n_fields)
    table.shape = n_samples, min(bound or 1, head.n_features or bound or 1)
    if bound is None or not in_memory.memory_of(table, options).fits:
        table.shape = n_samples, max(1, text_tables.count_rows(source, form, n_fields)[0])
    file.check(table)
    n_rows = text_tables.estimate(source, form, n_fields)[0]
    file.scratch_file("features", 8 * n_samples * n_rows)
    memory = in_memory.memory_of(table, options)
    left = memory.cap_nbytes - total_nbytes(memory.leases())
    header, features = (TextSpool(file.scratch, name) for name in ("samples", "rows"))
    header.append(texts_of(head.names))
    places = np.arange(1, n_fields)
    kept = (places >= head.n_before) & (places < n_fields - head.n_after)
    stream = text_tables.CsvStream(source, form)
    room, kinds = min(left * 7 // 8, ingest_memory.CATEGORY_NBYTES), options.kinds.by_name()
    rows = FeatureRows(stream, header, kept, file.scratch, features, lambda *_: None, room, kinds)
    if head.n_features not in (None, rows.n_read):
        raise InputError(
            f"{source}: expected {head.n_features} rows as line 2 says, found {rows.n_read}. Get "
            "the file again."
        )
    rows.format = f"{file.format.name.lower()}{stream.pieces.suffix}"
    rows.annotations, rows.default_ids = beside, "id"
    rows.held, rows.opening = table.held, table.opening
    return rows


# BIOM 1.0: JSON, held in memory.

_JSON, _CELL = 20, 12
"""Bytes of memory that a byte of JSON takes while it is read, and what is made of it."""


def open_json(file: File) -> Table:
    """Return the matrix of a BIOM 1.0 file, and what it says of samples.

    Raises
    ------
    InputError
        If it is damaged, or says otherwise than it holds.
    BudgetError
        If the cap cannot hold all of it.
    """
    source, table = SourceFile(file.path, str(file)), Table()
    nbytes = sum(map(len, PieceReader(source).pieces()))
    scipy = Lease("SciPy", SCIPY_NBYTES)
    table.shape, table.held = (1, 1), (scipy, Lease("cells, names", _CELL * nbytes))
    table.opening = (scipy, Lease("the text and what it says", _JSON * nbytes))
    file.check(table)
    try:
        said = json.loads(b"".join(PieceReader(source).pieces()))
        (n_features, n_samples), cells = said["shape"], np.array(said["data"], np.float64)
        ids, names = ([str(one["id"]) for one in said[side]] for side in ("columns", "rows"))
        known = [one.get("metadata") or {} for one in said["columns"]]
        fields = dict.fromkeys(chain(*known))
        beside = {name: [_item(one.get(name)) for one in known] for name in fields}
    except _DAMAGE as error:
        where = f" at line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        raise _refused(source, f"damage{where}") from None
    if (len(names), len(ids)) != (n_features, n_samples):
        found = f"{len(names)} rows and {len(ids)} columns for the shape {said['shape']}"
        raise _refused(source, found)
    matrix: Table
    if said.get("matrix_type") == "dense":
        if cells.shape != (n_features, n_samples):
            raise _refused(source, f"data of the shape {cells.shape} for {said['shape']}")
        matrix = in_memory.ArrayTable(cells.T, str(file))
    else:
        from scipy import sparse

        rows, columns, values = cells.reshape(-1, 3).T
        for what, places, n in (("row", rows, n_features), ("column", columns, n_samples)):
            if np.any(wrong := ~np.isin(places, np.arange(n))):
                raise _refused(source, f"{what} {places[wrong.argmax()]:g} of {n}, counted from 0")
        at, shape = (columns.astype(np.intp), rows.astype(np.intp)), (n_samples, n_features)
        matrix = in_memory.SparseTable(sparse.coo_array((values, at), shape), str(file))
    matrix.format, matrix.names = file.format.name.lower(), names
    keys = Names.numbered(["id", *beside])
    matrix.annotations = dict(zip(keys, [ids, *beside.values()], strict=True))
    matrix.default_ids, matrix.held, matrix.opening = "id", table.held, table.opening
    return matrix


_DAMAGE = (ValueError, TypeError, KeyError, AttributeError, RecursionError)


def _item(cell: Any) -> Any:
    """Return what is said of a sample as one item: of several, as a taxonomy has them, a text."""
    return "; ".join(map(str, cell)) if isinstance(cell, list | dict) else cell


def _refused(source: SourceFile, found: str) -> InputError:
    return InputError(
        f"{source}: expected the JSON of a BIOM 1.0 table, of numbers, found {found}. Write it "
        "again: `biom convert --to-json`, or --to-hdf5."
    )
