"""All columns of a store from first to last, as numbers: for passes that look at each of them."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import UsageError
from srs_ooc.store.store import Store
from srs_ooc.store.values import ValuesReader
from srs_ooc.trees.block import Block

MEAN_BITS = 8
"""The mean that stands for missing 8-bit codes is rounded to ``2**-MEAN_BITS``: sums stay exact."""
LARGEST = 1e100
"""Values above cannot be squared and summed."""


class Scan:
    """The columns of a store in stored order, read sequentially, some at a time.

    Missing values are the mean of their column. Columns left out are 0.

    Parameters
    ----------
    store : Store
        The store; it must be looked at again after the pass (:meth:`Store.unchanged`).
    block_columns : int
        Columns of a block.
    rows : int32 (n_kept,), optional
        Rows to keep, ascending; default all.
    excluded : uint32, optional
        Stored positions to leave out, ascending.
    values : bool
        The values themselves rather than their codes.

    Raises
    ------
    StoreError
        If the store keeps no values where they are wanted.
    """

    def __init__(
        self,
        store: Store,
        block_columns: int,
        *,
        rows: NDArray[np.int32] | None = None,
        excluded: NDArray[np.uint32] | None = None,
        values: bool = False,
    ) -> None:
        self._store, self._manifest, self._size = store, store.manifest, block_columns
        self._rows, self._excluded = rows, excluded
        self._reader = store.values() if values else None
        self.n_rows = store.n_rows if rows is None else len(rows)

    @property
    def nbytes(self) -> int:
        """Memory of a pass: a block as read and as numbers, and what making them takes."""
        n_stored = self._manifest.n_rows
        chunk = 2 * self._reader.chunk_nbytes if self._reader is not None else 128 * n_stored
        return 24 * self._size * n_stored + chunk

    def blocks(self) -> Iterator[tuple[int, NDArray[np.floating[Any]]]]:
        """Yield the first position and the columns (m, n_rows) of each block, float32 or float64.

        Raises
        ------
        StoreError
            If the store cannot be read to its end.
        UsageError
            If a value is too large for sums of squares.
        """
        blocks = self._codes() if self._reader is None else self._values(self._reader)
        for first, columns in blocks:
            if self._excluded is not None:
                ends = np.searchsorted(self._excluded, [first, first + len(columns)])
                columns[self._excluded[slice(*ends)] - first] = 0
            yield first, columns

    def _positions(self) -> Iterator[NDArray[np.int64]]:
        p = self._manifest.n_features
        for first in range(0, p, self._size):
            yield np.arange(first, min(first + self._size, p))

    def _codes(self) -> Iterator[tuple[int, NDArray[np.floating[Any]]]]:
        manifest = self._manifest
        block = Block(self._size, self.n_rows, manifest.code_nbytes, tiled=False)
        with self._store.columns(mapped=False) as columns:
            for positions in self._positions():
                columns.gather(positions.astype(np.uint32), block, self._rows)
                codes = block.as_columns(len(positions))
                yield int(positions[0]), code_numbers(codes, manifest.missing_code)

    def _values(self, reader: ValuesReader) -> Iterator[tuple[int, NDArray[np.floating[Any]]]]:
        whole = np.zeros((self._size, self._manifest.n_rows))
        for positions in self._positions():
            for i, row, values in reader.columns(positions):
                whole[i, row : row + len(values)] = values
            some = whole[: len(positions)]
            some = some.copy() if self._rows is None else np.take(some, self._rows, axis=1)
            fill_with_means(some, np.isnan(some))
            if not np.abs(some).max() <= LARGEST:
                raise UsageError(
                    f"{self._store.place}: expected values of at most {LARGEST:g}, found larger "
                    "ones, whose squares cannot be summed. Use the codes: --matrix codes."
                )
            yield int(positions[0]), some


def code_numbers(codes: NDArray[Any], missing_code: int) -> NDArray[np.floating[Any]]:
    """Return codes as numbers, missing ones as the rounded mean of their column.

    Returns
    -------
    float32 or float64 (n_columns, n_rows)
        float32 for 8-bit codes none of which is missing.
    """
    is_missing = codes == missing_code
    if not is_missing.any():
        return codes.astype(np.float32 if codes.itemsize == 1 else np.float64)
    numbers = codes.astype(np.float64)
    fill_with_means(numbers, is_missing, MEAN_BITS if codes.itemsize == 1 else 0)
    return numbers


def fill_with_means(
    numbers: NDArray[np.float64], is_missing: NDArray[np.bool_], bits: int | None = None
) -> None:
    """Put the mean of each column, rounded to ``2**-bits`` if given, where a value is missing."""
    n_missing = is_missing.sum(axis=1)
    if not n_missing.any():
        return
    numbers[is_missing] = 0.0
    means = numbers.sum(axis=1) / np.maximum(numbers.shape[1] - n_missing, 1)
    if bits is not None:
        means = np.ldexp(np.rint(np.ldexp(means, bits)), -bits)
    numbers[is_missing] = np.repeat(means, n_missing)
