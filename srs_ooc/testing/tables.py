"""What a new part must pass: for a table format, :func:`check_table`.

A format is one file in ``srs_ooc/ingestion/formats`` with a class that has the shape of
:class:`srs_ooc.ingestion.formats.Table`, and a line in ``opening.py``. Its test makes a small table
in the format and calls :func:`check_table` with what the table should hold.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.ingestion.formats import Table, TextCoder
from srs_ooc.ingestion.formats.in_memory import text_of

_POOL_NBYTES = 1_000_000


def check_table(
    table: Table, columns: Sequence[Sequence[Any]], names: Sequence[str] | None = None
) -> None:
    """Check that a table keeps to the contract of a format.

    Parameters
    ----------
    table : Table
        A table of at least two rows and columns, opened.
    columns : sequence of sequences
        What each of its columns holds: numbers, with NaN where one is missing; or texts, with None.
    names : sequence of str, optional
        The names of its columns; None if the format has none.

    Raises
    ------
    AssertionError
        Saying which rule is broken.
    """
    n_rows, n_columns = len(columns[0]), len(columns)
    assert table.shape == (n_rows, n_columns), f"shape: {table.shape}"
    assert table.format, "format: empty"
    assert table.work_nbytes >= 0, f"work_nbytes: {table.work_nbytes}"
    found = None if table.names is None else list(table.names)
    assert found == (None if names is None else list(names)), f"names: {found}"
    is_text = [any(isinstance(cell, str) for cell in column) for column in columns]
    told = [False] * n_columns if table.text_columns is None else table.text_columns.tolist()
    assert told == is_text, f"text_columns: {told}"
    assert not (table.by_rows and any(is_text)), "by_rows: texts are read by columns"
    _check_reading(table, columns, is_text)
    for position, column in enumerate(columns):
        if not (is_text[position] and table.pool is not None):
            _check_items(table, position, column)


def _check_reading(table: Table, columns: Sequence[Sequence[Any]], is_text: list[bool]) -> None:
    pool = table.pool or TextCoder(_POOL_NBYTES)
    n_lines = table.shape[0] if table.by_rows else table.shape[1]
    everything = table.read(np.arange(n_lines), pool)
    assert everything.dtype == np.float64, f"read: dtype {everything.dtype}"
    assert everything.flags.c_contiguous, "read: not C-contiguous"
    whole = everything.T if table.by_rows else everything
    assert whole.shape == (len(columns), len(columns[0])), f"read: shape {everything.shape}"
    kept = np.array_equal(everything.astype(np.float32), everything, equal_nan=True)
    assert kept or not table.narrow, "narrow: float32 does not hold every value"
    texts = pool.texts()
    for position, column in enumerate(columns):
        _check_column(position, whole[position], column, texts if is_text[position] else None)
    wanted = [[0], [n_lines - 1], list(range(1, n_lines))]
    if not table.by_rows:  # rows are read from first to last, columns in any order
        wanted += [list(range(n_lines))[::-1], list(range(0, n_lines, 2))]
    for positions in wanted:
        part = table.read(np.array(positions, np.intp), pool)
        same = np.array_equal(part, everything[positions], equal_nan=True)
        assert same, f"read: {positions} differ from what reading all gave"
    assert pool.texts() == texts, "read: reading again numbered other texts"


def _check_column(
    position: int,
    values: NDArray[np.float64],
    column: Sequence[Any],
    texts: list[bytes] | None,
) -> None:
    if texts is None:
        right = np.array_equal(values, np.array(column, np.float64), equal_nan=True)
        assert right, f"read: column {position}: {values.tolist()}"
        return
    cells = [None if np.isnan(value) else texts[int(value)].decode() for value in values]
    assert cells == list(column), f"read: column {position}: {cells}"


def _check_items(table: Table, position: int, column: Sequence[Any]) -> None:
    cells = [text_of(cell) for block in table.items(position) for cell in block]
    wanted = [text_of(cell) for cell in column]
    assert [cell or None for cell in cells] == wanted, f"items: column {position}: {cells}"
