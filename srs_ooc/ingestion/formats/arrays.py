"""NumPy arrays and SciPy sparse matrices in memory."""

from collections.abc import Collection, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import InputError
from srs_ooc.base.text import MB
from srs_ooc.ingestion.formats.numbers import as_float64, check_dtype, is_narrow
from srs_ooc.ingestion.labels import item_blocks
from srs_ooc.ingestion.texts import TextCoder

SCIPY_NBYTES = 20 * MB
"""SciPy's sparse matrices, loaded; measured 17 MB."""

LOADING_NBYTES = 40 * MB
"""SciPy, and what it takes while it loads a matrix."""

_SPARSE_NBYTES = 4 * MB  # two threads make columns dense at once


def check_shape(shape: tuple[int, ...], what: str) -> None:
    """Refuse what is no matrix.

    Raises
    ------
    InputError
        If there are not two dimensions, or one of them is empty.
    """
    if len(shape) != 2 or 0 in shape:
        raise InputError(
            f"{what}: expected a matrix of at least one row and column, found the shape {shape}. "
            "Give rows x columns."
        )


class ArrayTable:
    """A matrix (n_rows, n_columns) in memory, read by columns; masked cells are missing."""

    format = "numpy"
    by_rows = False
    work_nbytes = 0
    names: list[str] | None = None
    text_columns: NDArray[np.bool_] | None = None
    pool: TextCoder | None = None

    def __init__(self, array: NDArray[Any], what: str) -> None:
        check_shape(array.shape, what)
        check_dtype(array.dtype, what)
        self.narrow = is_narrow(array.dtype)
        self._mask: NDArray[np.bool_] | None = None
        if isinstance(array, np.ma.MaskedArray) and array.mask is not np.ma.nomask:
            self._mask = np.asarray(array.mask)
        self._array, self._what = np.asarray(array), what  # of a subclass, the plain array

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self._array.shape[0], self._array.shape[1]

    def read(self, positions: NDArray[np.intp], pool: TextCoder) -> NDArray[np.float64]:
        """Return columns, each a row of the result."""
        cells = self._array[:, positions].T
        if self._mask is None:
            return as_float64(cells, self._what)
        gone = self._mask[:, positions].T
        cells[gone] = 0  # what a mask hides need not be a number that can be held
        values = as_float64(cells, self._what)
        values[gone] = np.nan
        return values

    def items(self, position: int) -> Iterator[list[Any]]:
        """Yield the cells of a column in blocks."""
        column = self._array[:, position]
        if self._mask is None:
            return item_blocks(column)
        return item_blocks(np.ma.MaskedArray(column, self._mask[:, position]))


def _check_indices(matrix: Any, what: str) -> None:
    """Refuse indices outside the shape, which SciPy would follow wherever they point."""
    wrong = ""
    if hasattr(matrix, "check_format"):
        try:
            matrix.check_format(full_check=True)
        except (TypeError, ValueError) as error:
            wrong = str(error)
    elif matrix.format == "coo":
        for index, size in zip((matrix.row, matrix.col), matrix.shape, strict=True):
            if index.size and not 0 <= int(index.min()) <= int(index.max()) < size:
                wrong = f"indices {index.min()} to {index.max()} of {size}"
    if wrong:
        raise InputError(
            f"{what}: expected a sparse matrix with indices within its shape {matrix.shape}, found "
            f"damage: {wrong}. Make it again."
        )


class SparseTable:
    """A SciPy sparse matrix or array, made dense some columns at a time."""

    format = "scipy.sparse"
    by_rows = False
    work_nbytes = _SPARSE_NBYTES
    names: Collection[str] | None = None
    text_columns: NDArray[np.bool_] | None = None
    pool: TextCoder | None = None

    def __init__(self, matrix: Any, what: str) -> None:
        check_shape(matrix.shape, what)
        check_dtype(matrix.dtype, what)
        self.narrow = is_narrow(matrix.dtype)
        if matrix.format in ("lil", "dok"):
            matrix = matrix.tocsr()
        _check_indices(matrix, what)
        self._columns, self._what = matrix.tocsc(), what

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return int(self._columns.shape[0]), int(self._columns.shape[1])

    def read(self, positions: NDArray[np.intp], pool: TextCoder) -> NDArray[np.float64]:
        """Return columns, each a row of the result."""
        return as_float64(self._columns[:, positions].toarray(order="F").T, self._what)

    def items(self, position: int) -> Iterator[list[Any]]:
        """Yield the cells of a column in blocks."""
        return item_blocks(self._columns[:, [position]].toarray()[:, 0])
