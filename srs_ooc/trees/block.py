"""A block: the codes of one subspace, paged in and laid out for the kernel.

Below it stands what memory a block takes, and whatever is done on it.
"""

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.arrays import Bytes, Integers, Ints, Ints32
from srs_ooc.base.text import MB, ceil_div
from srs_ooc.native import _native
from srs_ooc.trees.response import TreeLimits

ALIGNMENT = 64
_NO_VALUES = np.zeros((0, 0))


def padded_columns(n_columns: int) -> int:
    """Return for how many columns a block has room."""
    return ceil_div(n_columns, _native.TILE) * _native.TILE


class Block:
    """Memory for the codes of up to ``n_columns`` features, reused from one iteration to the next.

    Parameters
    ----------
    n_columns, n_rows : int
        Shape of the table it holds.
    code_nbytes : int
        1 for uint8 codes, 2 for uint16.
    tiled : bool
        Layout: tiles of 64 features, row-major inside a tile (scanning every feature of a node
        walks 64-byte lines), or else plain columns (for a learner that looks at few features).
    n_values : int
        Values of codes to make room for in each column; 0 for none.

    Attributes
    ----------
    codes : uint8 (nbytes,)
        The raw memory, aligned to 64 bytes.
    values : float64 (n_columns, n_values), padded to whole tiles, or None
        The value of each code of a column, ascending.
    """

    def __init__(
        self, n_columns: int, n_rows: int, code_nbytes: int, *, tiled: bool, n_values: int = 0
    ) -> None:
        self.n_columns, self.n_rows = n_columns, n_rows
        self.code_nbytes, self.tiled = code_nbytes, tiled
        nbytes = block_nbytes(n_columns, n_rows, code_nbytes)
        memory: Bytes = np.empty(nbytes, dtype=np.uint8)
        offset = -memory.ctypes.data % ALIGNMENT
        self.codes = memory[offset : offset + nbytes - ALIGNMENT]
        self.values = np.zeros((padded_columns(n_columns), n_values)) if n_values else None

    @property
    def native(self) -> _native.Block:
        """The same memory as native code takes it, in the layout that it has now."""
        layout = self.codes, self.n_columns, self.n_rows, self.code_nbytes, self.tiled
        return _native.Block(*layout, _NO_VALUES if self.values is None else self.values)

    def as_columns(self, n_columns: int | None = None) -> NDArray[Any]:
        """Return a copy of the codes as (n_columns, n_rows), whatever the layout."""
        codes = self._by_column()
        if self.tiled:
            codes = codes.transpose(0, 2, 1).reshape(-1, self.n_rows)
        return codes[: self.n_columns if n_columns is None else n_columns].copy()

    def _by_column(self) -> NDArray[Any]:
        """Return a view of the codes as (n_columns, n_rows), or of tiles as (tile, row, column)."""
        codes: NDArray[Any] = self.codes.view(f"u{self.code_nbytes}")
        if self.tiled:
            return codes.reshape(-1, self.n_rows, _native.TILE)
        return codes[: len(codes) // self.n_rows * self.n_rows].reshape(-1, self.n_rows)

    def codes_at(self, columns: Integers, rows: Integers) -> NDArray[Any]:
        """Return a copy of the codes of some columns at some rows; (n_columns, n_rows)."""
        codes, tiles, within = self._by_column(), columns // _native.TILE, columns % _native.TILE
        at = (tiles[:, None], rows, within[:, None]) if self.tiled else (columns[:, None], rows)
        found: NDArray[Any] = codes[at]
        return found

    def largest_codes(self, columns: Integers) -> Ints:
        """Return the largest code of each column, missing values not counted; 0 if all are."""
        codes, missing = self._by_column(), (1 << (8 * self.code_nbytes)) - 1
        out = np.zeros(len(columns), np.int64)
        for i, column in enumerate(columns.tolist()):
            tile, within = divmod(column, _native.TILE)
            own = codes[tile, :, within] if self.tiled else codes[column]
            out[i] = own.max(where=own != missing, initial=0)
        return out

    def only(self, columns: Ints32) -> "Block":
        """Return a copy of some columns, laid out as plain columns."""
        n_values = 0 if self.values is None else self.values.shape[1]
        out = Block(len(columns), self.n_rows, self.code_nbytes, tiled=False, n_values=n_values)
        codes, tile = self._by_column(), _native.TILE
        out._by_column()[: len(columns)] = (
            codes[columns // tile, :, columns % tile] if self.tiled else codes[columns]
        )
        if out.values is not None and self.values is not None:
            out.values[: len(columns)] = self.values[columns]
        return out

    def shuffle_column(self, source: int, target: int, key: int) -> None:
        """Write column ``source``, its rows freshly permuted by ``key``, to column ``target``."""
        _native.copy_shuffled(self.native, source, target, key)
        if self.values is not None:
            self.values[target] = self.values[source]


# What a block, trees on it, and the rows that they are grown on or asked about take of memory.

SAVED_PIECE_NBYTES = 1 << 18
"""Saved trees are read in pieces of so many bytes, ..."""
SAVED_BUFFER_NBYTES = 1 << 16
"""... and written once there are so many."""
WORK_NBYTES = 4 * MB
"""Memory for rows that a tree is asked about together."""


def block_nbytes(n_columns: int, n_rows: int, code_nbytes: int) -> int:
    """Return the bytes a block needs, in either layout, alignment included."""
    return padded_columns(n_columns) * n_rows * code_nbytes + ALIGNMENT


def values_nbytes(n_columns: int, n_values: int) -> int:
    """Return the bytes that the values of a block's codes need."""
    return 8 * padded_columns(n_columns) * n_values


def rows_nbytes(n_rows: int, impurity: str, n_channels: int = 0) -> int:
    """Return the bytes of :class:`TrainingRows`, the temporaries of making them included."""
    return n_rows * (4 + 8 + (48 if impurity == "entropy" else 0) + 40 * n_channels)


def scratch_nbytes(
    n_rows: int,
    n_columns: int,
    n_classes: int,
    code_nbytes: int,
    n_channels: int = 0,
    *,
    best: bool = False,
    n_threads: int = 1,
) -> int:
    """Return the bytes :func:`grow_tree` allocates while it works."""
    shape = n_rows, n_columns, n_classes, n_channels, code_nbytes
    return _native.scratch_nbytes(*shape, best, n_threads)


def record_nbytes(n_rows: int, n_classes: int, limits: TreeLimits) -> int:
    """Return the bytes needed to record a tree, the copies of its record on their way included.

    Seven numbers of 4 bytes a node while it grows; as bytes at most 16 a split, 4 a leaf, and 9 for
    a class in a leaf, held up to five times while they are put together, copied and written.
    """
    n_leaves = limits.most_leaves(n_rows)
    n_pairs = max(n_leaves, min(n_rows, n_leaves * n_classes))
    return n_leaves * (56 + 5 * 20) + n_pairs * (8 + 5 * 9)


def recorded_nbytes(n_rows: int, n_classes: int, limits: TreeLimits) -> int:
    """Return the most bytes the record of one tree takes."""
    n_leaves = limits.most_leaves(n_rows)
    return 12 * n_leaves + 6 * min(n_rows, n_leaves * n_classes)


@lru_cache(maxsize=4096)
def granted_nbytes(shape: tuple[int, int, int, int, int], limits: TreeLimits) -> int:
    """Return the bytes of growing a tree of a shape, and of recording it."""
    n_fitted, _, n_classes = shape[:3]
    return scratch_nbytes(*shape, best=True) + record_nbytes(n_fitted, n_classes, limits)


def effects_nbytes(n_slots: int, n_outputs: int, code_nbytes: int) -> int:
    """Return the bytes of a row: its codes, as they are and altered, and its effects."""
    return n_slots * (2 * code_nbytes + 8 * n_outputs) + 8 * n_outputs + 64
