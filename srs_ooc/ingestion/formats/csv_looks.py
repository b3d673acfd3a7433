"""Looks at a text table beside its one reading: how many rows it has, whether it names them."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from srs_ooc.base.errors import InputError
from srs_ooc.ingestion.formats.csv import CsvStream, fed
from srs_ooc.ingestion.formats.dialect import TextForm, name_of
from srs_ooc.ingestion.formats.faults import raise_fault
from srs_ooc.ingestion.formats.pieces import PieceReader
from srs_ooc.ingestion.formats.source import SourceFile
from srs_ooc.ingestion.parse import IGNORED, TARGET, TableReader
from srs_ooc.ingestion.texts import Texts

_SAMPLE_NBYTES = 1 << 20


@dataclass(frozen=True)
class Estimate:
    """What a look at the beginning of a file says of the whole.

    Attributes
    ----------
    n_rows : int
        Rows there are, about.
    text_nbytes : int
        Bytes of text there are, about; exact where the file is not compressed.
    """

    n_rows: int
    text_nbytes: int


def _skim(
    source: SourceFile, form: TextForm, n_columns: int, target: int | None = None
) -> tuple[CsvStream, TableReader]:
    stream = CsvStream(source, form, lambda names: None)
    slots = np.full(n_columns, IGNORED, np.int32)
    if target is not None:
        slots[target] = TARGET
    return stream, TableReader(slots, stream.dialect, place=stream.place)


def has_row_names(
    source: SourceFile, form: TextForm, check: Callable[[int], None] = lambda n_columns: None
) -> bool:
    """Tell whether the first row has one field more than the header, as R writes row names.

    ``check`` is told how many fields there are before memory is taken for each.

    Raises
    ------
    InputError
        If the last field of the first rows is empty, which a separator at their ends explains too.
    """
    if not form.header:
        return False
    n_columns = 0

    def count(names: Texts) -> None:
        nonlocal n_columns
        n_columns += len(names.ends)

    stream = CsvStream(source, form, count)
    check(n_columns)
    reader = TableReader(np.full(n_columns, IGNORED, np.int32), stream.dialect, place=stream.place)
    for _ in fed(stream, reader):
        if reader.n_rows:
            break
    problem = reader.problem
    found = (
        problem is not None
        and problem.fault == "ragged"
        and reader.n_rows == 1
        and problem.column == n_columns + 1
    )
    if found:
        _refuse_empty_ends(source, form, n_columns + 1)
    return found


def _refuse_empty_ends(source: SourceFile, form: TextForm, n_fields: int) -> None:
    stream = CsvStream(source, form, lambda names: None, row_names=True)
    slots = np.full(n_fields, IGNORED, np.int32)
    slots[-1] = TARGET
    reader = TableReader(slots, stream.dialect, place=stream.place)
    for _ in fed(stream, reader):
        if reader.n_rows:
            break
    if not any(reader.take_texts(TARGET)):
        raise InputError(
            f"{source}: expected as many fields in the rows as in the header, {n_fields - 1}, "
            f"found one more, the last of them empty. Remove the "
            f"{name_of(stream.dialect.separator)} at the ends of the lines; or, if the first "
            "column holds row ids, name it in the header."
        )


def estimate(source: SourceFile, form: TextForm, n_columns: int) -> Estimate:
    """Estimate the rows of a file from the first megabyte after its header."""
    stream, reader = _skim(source, form, n_columns)
    n_body = 0
    for n_fed in fed(stream, reader):
        n_body += n_fed
        if n_body >= _SAMPLE_NBYTES:
            break
    pieces = stream.pieces
    text_nbytes = int(pieces.nbytes * pieces.n_text / max(1, pieces.n_used))
    n_cells = reader.n_rows * n_columns + reader.column
    if not n_cells:
        return Estimate(0, text_nbytes)
    body_nbytes = text_nbytes - (pieces.n_text - n_body)
    return Estimate(int(body_nbytes * n_cells / (n_body * n_columns)) + 1, text_nbytes)


def rows_at_most(source: SourceFile, n_columns: int) -> int | None:
    """Return a bound on the rows of a file; None if its compression sets none worth having.

    A row takes at least a byte per column, and gzip packs at most 1032 bytes into one.
    """
    pieces = PieceReader(source)
    factor = {"": 1, ".gz": 1032}.get(pieces.suffix)
    return None if factor is None else pieces.nbytes * factor // n_columns + 1


def count_rows(
    source: SourceFile,
    form: TextForm,
    n_columns: int,
    *,
    target: int | None = None,
    is_missing: Callable[[bytes], bool] = lambda text: False,
) -> tuple[int, bool]:
    """Count the rows of a file by reading it; return whether one has no ``target``, too.

    Raises
    ------
    InputError
        If a row is ragged.
    """
    has_missing = False
    stream, reader = _skim(source, form, n_columns, target)
    for _ in fed(stream, reader):
        texts = reader.take_texts(TARGET) if target is not None else ()
        has_missing = has_missing or any(map(is_missing, texts))
    raise_fault(source, reader.problem, n_columns, str, stream.dialect)
    return reader.n_rows, has_missing


def cell_text(source: SourceFile, form: TextForm, n_columns: int, column: int, row: int) -> str:
    """Return the text of a cell, from 0, by reading the file up to there."""
    stream = CsvStream(source, form, lambda names: None)
    slots = np.full(n_columns, IGNORED, np.int32)
    slots[column] = TARGET
    reader = TableReader(slots, stream.dialect, place=stream.place)
    n_passed = 0
    for _ in fed(stream, reader):
        texts = reader.take_texts(TARGET)
        if n_passed + len(texts.ends) > row:
            return list(texts)[row - n_passed].decode("utf-8", "replace")
        n_passed += len(texts.ends)
    raise IndexError(f"{source}: no row {row}")
