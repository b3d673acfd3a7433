"""Texts of which a row is a feature, with more than a table: GCT, GEO series matrices, BIOM.

What stands before the rows is read by lines, and says which fields are samples, and what is known
of them. The rows are streamed; BIOM 1.0, which is JSON, is held in memory.
"""

import json
from collections.abc import Iterator, Sequence
from itertools import chain, takewhile
from sys import getsizeof
from typing import Any, NoReturn

import numpy as np

from srs_ooc.base.budget import Lease
from srs_ooc.base.errors import unfit
from srs_ooc.ingestion import csv as text_tables
from srs_ooc.ingestion.feature_rows import FeatureRows, reading_leases, text_lines
from srs_ooc.ingestion.formats import Names, Table, in_memory
from srs_ooc.ingestion.formats.files import SCIPY_NBYTES, File
from srs_ooc.ingestion.ingest_memory import PIECE_NBYTES
from srs_ooc.ingestion.scratch import TextSpool, texts_of
from srs_ooc.ingestion.sources import PieceReader, SourceFile

_MISSING = ("", "NA", "N/A", "#N/A", "na", "NaN", "nan", "null", "NULL", "None")
_BEGIN, _END = "!series_matrix_table_begin", "!series_matrix_table_end"
_TAXONOMY = ("taxonomy", "consensuslineage", "consensus lineage")
_MOST_WORDS, _KNOWN = 1000, "what is known of the samples"
_Rows = Iterator[list[str]]
_Head = tuple[list[str], slice, list[tuple[str, list[str]]], int | None]
"""Names of all fields of a row, which are samples, columns of these, and rows that are promised."""


def _refuse(
    source: SourceFile, expected: str, found: object, remedy: str = "Get the file again."
) -> NoReturn:
    at = f", line {source.head[1]}" * bool(source.head[1])
    raise unfit(f"{source}{at}", expected, found, remedy) from None


def _check(source: SourceFile, row: list[str], expected: int, why: str) -> None:
    if len(row) != expected:
        _refuse(source, f"{expected} fields {why}", len(row))


def _gct(source: SourceFile, rows: _Rows) -> _Head:
    is_third, counts = next(rows)[0].strip() == "#1.3", [*filter(str.strip, next(rows, []))]
    if len(counts) != (4 if is_third else 2) or not all(one.strip().isdecimal() for one in counts):
        _refuse(source, f"{'four' if is_third else 'two'} counts, of rows first", counts[:6])
    n_features, n_samples, n_about, n_beside = [*map(int, counts), 1, 0][:4]
    first, top = 1 + n_about, list[list[str]]()
    while len(top) <= n_beside:
        top.append(next(rows, []))
        _check(source, top[-1], first + n_samples, "as line 2 says")
    return top[0], slice(first, None), [(row[0], row[first:]) for row in top[1:]], n_features


def _geo(source: SourceFile, rows: _Rows) -> _Head:
    fields = [*takewhile(lambda row: row[0] != _BEGIN, rows)]
    if not (ids := (names := next(rows, []))[1:]):
        _refuse(source, f"{_BEGIN} and a line of sample ids", "the end of the file")
    if _next(source, rows)[0] == _END:
        found = "none: of sequencing GEO has the counts in files beside, which `!Series` lines name"
        _refuse(source, "rows of features", found, "Ingest those.")
    source.end, beside, words = _END.encode(), [], dict[str, list[str]]()
    for field, *cells in (row for row in fields if row[0].startswith("!Sample_")):
        _check(source, cells, len(ids), f"in {field}, as samples here")
        if not (name := field.removeprefix("!Sample_")).startswith("characteristics"):
            beside.append((name, cells))
            continue
        for place, cell in enumerate(cells):
            word, _, value = cell.partition(":") if ":" in cell else (name, "", cell)
            key = word.strip() + ":ch2" * (word != name and name.endswith("ch2"))
            if value := value.strip():
                column = words.setdefault(key, [""] * len(ids))
                column[place] = ";".join(filter(None, (column[place], value)))
            if len(words) > _MOST_WORDS:
                _refuse(source, f"characteristics of at most {_MOST_WORDS} words", cell[:40])
    return names, slice(1, None), [*beside, *words.items()], None


def _otus(source: SourceFile, rows: _Rows) -> _Head:
    names, last = next((row for row in rows if len(row) > 1), [""]), _next(source, rows)[-1]
    is_text = last not in _MISSING and text_tables.parse_decimal(last.strip().encode()) is None
    n_samples = len(names) - (is_text or names[-1].lower() in _TAXONOMY)
    return names, slice(1, n_samples), [], None


def _next(source: SourceFile, rows: _Rows) -> list[str]:
    """Look at the next row, which is a feature."""
    at, row = source.head, next(rows, [""])
    source.head = at
    return row


def _rows(file: File, source: SourceFile, table: Table) -> _Rows:
    """Yield the rows before those of features; ``source.head`` is where the last one ends."""
    nbytes = held = 0
    for number, line in enumerate(text_lines(source, None), 1):
        row = [_plain(cell) for cell in line.rstrip("\r\n").split("\t")]
        nbytes, held = nbytes + len(line.encode()), held + _held(row)
        source.head, table.opening = (nbytes, number), (Lease(_KNOWN, 2 * held),)  # read, and kept
        file.check(table)
        if row != [""]:
            yield row


def _plain(cell: str) -> str:
    is_quoted = len(cell) > 1 and cell[0] == cell[-1] == '"'
    return cell[1:-1].replace('""', '"') if is_quoted else cell


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
    read: Any = {"GCT": _gct, "GEO series matrix": _geo}.get(file.format.name, _otus)
    names, samples, known, promised = read(source, _rows(file, source, table))
    ids, n_fields = names[samples], len(names)
    if not ids:
        _refuse(source, "sample ids", names[:3])
    missing = (*_MISSING, *["-666"] * (read == _gct), *(options.text.missing or ()))
    form = text_tables.TextForm("tab", "!" if source.end else None, missing=missing, header=False)
    cells = ([None if one in missing else one for one in column] for _, column in known)
    columns: list[list[Any]] = [ids, *cells]
    held = Lease(_KNOWN, sum(map(_held, columns)))
    opening = (*table.opening, *reading_leases(source, len(ids), options))
    table.held, table.opening = (held,), opening
    bound = text_tables.rows_at_most(source, n_fields) or 0
    table.shape = len(ids), min(bound, promised or bound)
    if not bound or not in_memory.memory_of(table, options).fits:
        table.shape = len(ids), max(1, text_tables.count_rows(source, form, n_fields)[0])
    file.check(table)
    file.scratch_file("", 8 * len(ids) * text_tables.estimate(source, form, n_fields)[0])
    header = TextSpool(file.scratch, "samples")
    header.append(texts_of(names))
    kept, stream = np.zeros(n_fields, np.bool_), text_tables.CsvStream(source, form)
    kept[samples] = True
    beside = {name: at for at, name in enumerate(names) if at and not kept[at]}
    how = (lambda *done: None, PIECE_NBYTES, options.kinds.by_name(), beside)
    rows = FeatureRows(stream, header, kept[1:], file.scratch, *how)
    if promised not in (None, rows.n_read):
        _refuse(source, f"{promised} rows below, as line 2 says", rows.n_read)
    rows.format = f"{file.format.name.lower()}{stream.pieces.suffix}"
    numbered = Names.numbered(["id", *(name for name, _ in known)])
    rows.annotations, rows.default_ids = dict(zip(numbered, columns, strict=True)), "id"
    rows.held, rows.opening = table.held, table.opening
    return rows


# BIOM 1.0: JSON, held in memory.

_JSON, _CELL = 20, 12
"""Bytes of memory that a byte of JSON takes while it is read, and what is made of it."""
_DAMAGE = (ValueError, TypeError, KeyError, AttributeError, RecursionError)


def open_json(file: File) -> Table:
    """Return the matrix of a BIOM 1.0 file, and what it says of samples.

    Raises
    ------
    InputError
        If it is damaged, or says otherwise than it holds.
    BudgetError
        If the cap cannot hold all of it.
    """
    source, table, scipy = SourceFile(file.path, str(file)), Table(), Lease("SciPy", SCIPY_NBYTES)
    nbytes = sum(map(len, PieceReader(source).pieces()))
    table.shape, table.held = (1, 1), (scipy, Lease("cells, names", _CELL * nbytes))
    table.opening = (scipy, Lease("the text and what it says", _JSON * nbytes))
    file.check(table)
    what, remedy = "JSON of a BIOM 1.0 table, of numbers", "Write it by `biom convert --to-json`."
    from scipy import sparse

    try:
        said = json.loads(b"".join(PieceReader(source).pieces()))
        cells, is_dense = np.array(said["data"], np.float64), said.get("matrix_type") == "dense"
        ids, names = ([str(one["id"]) for one in said[side]] for side in ("columns", "rows"))
        known, beside = (_columns_of(said[side]) for side in ("columns", "rows"))
        *places, values = [cells] if is_dense else cells.reshape(-1, 3).T
        at = tuple(one.astype(np.intp) for one in reversed(places))
        shape, found = (len(ids), len(names)), cells.T if is_dense else (values, at)
        whole = sparse.coo_array(found, None if is_dense else shape)
        is_right = said["shape"] == [*shape[::-1]] and whole.shape == shape
        is_right &= bool(np.all([one % 1 == 0 for one in places]))
    except _DAMAGE:
        is_right = False
    if not is_right:
        _refuse(source, what, "damage, texts, or counts that contradict", remedy)
    matrix = in_memory.SparseTable(whole, str(file))
    matrix.format, matrix.names, matrix.default_ids = file.format.name.lower(), names, "id"
    columns = zip(Names.numbered(["id", *known]), [ids, *known.values()], strict=True)
    matrix.annotations, matrix.feature_columns = dict(columns), beside
    matrix.held, matrix.opening = table.held, table.opening
    return matrix


def _columns_of(side: list[Any]) -> dict[str, list[Any]]:
    """Return what the metadata of samples, or of features, say by name."""
    known = [one.get("metadata") or {} for one in side]
    return {name: [_item(one.get(name)) for one in known] for name in dict.fromkeys(chain(*known))}


def _item(cell: Any) -> Any:
    return "; ".join(map(str, cell)) if isinstance(cell, list | dict) else cell
