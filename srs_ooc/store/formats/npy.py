"""``.npy`` and ``.npz`` files: read piece by piece, never whole."""

import os
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.errors import BudgetError, InputError
from srs_ooc.kernel.parse import TextCoder
from srs_ooc.sizes import MB, megabytes
from srs_ooc.store.formats.arrays import SparseTable, check_shape
from srs_ooc.store.formats.numbers import as_float64, check_dtype, is_narrow
from srs_ooc.store.labels import item_blocks

_PIECE_NBYTES = 2 * MB
_LONG_NBYTES = 1 << 14
"""Rows beyond this are not read whole for one cell of each."""
_N_CELLS = 1 << 14
_MAIN_KEYS = ("X", "x", "data", "arr_0")
_SPARSE_KEYS = {"data", "shape", "format"}


class NpyTable:
    """A ``.npy`` file: row by row in C order, column by column in Fortran order.

    The array is mapped to learn its shape; its cells are read, not mapped: pages of a map count as
    resident memory until the system takes them back.

    Raises
    ------
    InputError
        If the file holds no matrix of numbers, or is cut short.
    """

    format = "npy"
    work_nbytes = 0
    names: list[str] | None = None
    text_columns: NDArray[np.bool_] | None = None
    pool: TextCoder | None = None

    def __init__(self, path: Path, what: str) -> None:
        try:
            array = np.load(path, mmap_mode="r", allow_pickle=False)
        except (ValueError, EOFError, OSError) as error:
            raise InputError(f"{what}: expected a .npy file, could not read it: {error}") from error
        check_shape(array.shape, what)
        check_dtype(array.dtype, what)
        self.by_rows = bool(array.flags.c_contiguous)
        self.shape: tuple[int, int] = (int(array.shape[0]), int(array.shape[1]))
        self._path, self._what = path, what
        self.narrow = is_narrow(array.dtype)
        self._dtype, self._offset = array.dtype, int(array.offset)

    def read(self, positions: NDArray[np.intp], pool: TextCoder) -> NDArray[np.float64]:
        """Return rows or columns, as ``by_rows`` says, each a row of the result."""
        n_items = self.shape[1] if self.by_rows else self.shape[0]
        lines = read_lines(self._path, self._dtype, self._offset, n_items, positions)
        return as_float64(lines, self._what)

    def items(self, position: int) -> Iterator[list[Any]]:
        """Yield the cells of a column in blocks."""
        n_rows, n_columns = self.shape
        if not self.by_rows:
            column = np.array([position])
            line = read_lines(self._path, self._dtype, self._offset, n_rows, column)[0]
            yield from item_blocks(line)
            return
        line_nbytes = n_columns * self._dtype.itemsize
        if line_nbytes > _LONG_NBYTES:
            yield from self._single_cells(position, line_nbytes)
            return
        step = max(1, _PIECE_NBYTES // line_nbytes)
        for start in range(0, n_rows, step):
            rows = np.arange(start, min(start + step, n_rows))
            lines = read_lines(self._path, self._dtype, self._offset, n_columns, rows)
            yield lines[:, position].tolist()

    def _single_cells(self, position: int, line_nbytes: int) -> Iterator[list[Any]]:
        first = self._offset + position * self._dtype.itemsize
        with self._path.open("rb", buffering=0) as file:
            for start in range(0, self.shape[0], _N_CELLS):
                rows = range(start, min(start + _N_CELLS, self.shape[0]))
                cells = np.zeros(len(rows), self._dtype)
                for cell, row in zip(cells.reshape(-1, 1), rows, strict=True):
                    os.preadv(file.fileno(), [cell.data], first + row * line_nbytes)
                yield cells.tolist()


def read_lines(
    path: Path, dtype: np.dtype[Any], offset: int, n_items: int, positions: NDArray[np.intp]
) -> NDArray[Any]:
    """Return lines of ``n_items`` items, by position among those of a file from ``offset`` on."""
    first, count = int(positions[0]), len(positions)
    nbytes = n_items * dtype.itemsize
    if (np.diff(positions) == 1).all():  # a run, read at once
        run = np.fromfile(path, dtype, count * n_items, offset=offset + first * nbytes)
        return run.reshape(count, n_items)
    out = np.empty((count, n_items), dtype)
    for line, position in zip(out, positions.tolist(), strict=True):
        line[...] = np.fromfile(path, dtype, n_items, offset=offset + position * nbytes)
    return out


def open_npz(path: Path, what: str, scratch: Path, cap: int) -> NpyTable | SparseTable:
    """Return the table in a ``.npz`` file: a SciPy sparse matrix, or its one (or main) matrix.

    A dense matrix is unpacked into the folder ``scratch``; a sparse one is loaded.

    Raises
    ------
    InputError
        If it is damaged, or holds several matrices, none of them named X.
    BudgetError
        If a sparse matrix does not fit under the cap.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            sizes = {entry.filename.removesuffix(".npy"): entry for entry in archive.infolist()}
            if sizes.keys() >= _SPARSE_KEYS:
                return _open_sparse(path, what, sum(e.file_size for e in sizes.values()), cap)
            entry = sizes[_main_key(list(sizes), what)]
            copy = scratch / "matrix.npy"
            with archive.open(entry) as packed, copy.open("wb") as file:
                shutil.copyfileobj(packed, file, 1 << 18)
    except zipfile.BadZipFile as error:
        raise InputError(f"{what}: expected a .npz file, found damage: {error}") from error
    return NpyTable(copy, what)


def _main_key(keys: list[str], what: str) -> str:
    if len(keys) == 1:
        return keys[0]
    for key in _MAIN_KEYS:
        if key in keys:
            return key
    raise InputError(
        f"{what}: expected one matrix, or one named X, found {', '.join(keys)}. Save it alone."
    )


def _open_sparse(path: Path, what: str, nbytes: int, cap: int) -> SparseTable:
    import scipy.sparse

    # once as stored, once by columns, and what SciPy itself takes
    if 2 * nbytes + 90 * MB > cap:
        raise BudgetError(
            f"--memory-mb {megabytes(cap):g} cannot hold the sparse matrix of {what}: it takes "
            f"{megabytes(nbytes):g} MB as stored and as much by columns. Give at least "
            f"--memory-mb {(2 * nbytes + 90 * MB) // MB + 1}."
        )
    return SparseTable(scipy.sparse.load_npz(path), what)
