"""Second moments of many small sets of columns, and what follows from them by elimination."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from srs_ooc.native.numerics import products

LEAST_CELLS = 1 << 18
"""Cells of the tables of a batch of sets, where a table of all columns has fewer."""
SINGULAR = 1e-10
"""Share of a column's variance that its set must leave of it, or its moments count as singular."""
_WHOLE_IS_CHEAPER = 8
"""How many products of the whole table take as long as one of a small set's."""

Places = NDArray[np.integer]


@dataclass(frozen=True)
class Sets:
    """Sets of columns, of the same size or not.

    Attributes
    ----------
    places : int (n_members,)
        Rows of a transposed table, one set after another.
    bounds : int (n_sets + 1,)
        Where each begins, and the end.
    """

    places: Places
    bounds: NDArray[np.integer]

    @property
    def sizes(self) -> NDArray[np.integer]:
        """Columns of each set; int (n_sets,)."""
        return np.diff(self.bounds)

    def batches(
        self, largest: int, n_cells: Callable[[int], int], most_cells: int
    ) -> Iterator[tuple[NDArray[np.intp], Places]]:
        """Yield numbers of sets of one size, (k,), and their columns, (k, size).

        Sets of more than ``largest`` columns are left out. A set of d columns takes ``n_cells(d)``
        cells, a batch of several at most ``most_cells``.
        """
        sizes = self.sizes
        for size in np.unique(sizes[sizes <= largest]).tolist():
            numbers = np.flatnonzero(sizes == size)
            step = max(1, most_cells // n_cells(size))
            for first in range(0, len(numbers), step):
                some = numbers[first : first + step]
                yield some, self.places[self.bounds[some, None] + np.arange(size)]


class Products:
    """Mean products of columns, one small set at a time.

    Parameters
    ----------
    table : float64 (n_columns, n_rows)
        A column each, centered as the moments are to be.
    sets : Sets
        Those that will be asked for. Where they have about as many pairs as all columns have, the
        products of all columns are computed once.
    """

    def __init__(self, table: NDArray[np.float64], sets: Sets) -> None:
        n_columns, n_rows = table.shape
        n_pairs = int((sets.sizes.astype(np.int64) ** 2).sum())
        shares = n_columns <= n_rows and n_columns**2 <= _WHOLE_IS_CHEAPER * n_pairs
        self._table, self._scale = table, 1.0 / n_rows
        self._whole: NDArray[np.float64] | None = None
        if shares:
            rows = np.ascontiguousarray(table.T)
            self._whole = products(rows, rows) * self._scale

    def of(self, places: Places) -> NDArray[np.float64]:
        """Return the mean products of k sets of d columns; float64 (k, d, d)."""
        if self._whole is not None:
            some: NDArray[np.float64] = self._whole[places[:, :, None], places[:, None, :]]
            return some
        own = self._table[places]
        products_of_sets = row_products(own, own)
        products_of_sets *= self._scale
        return products_of_sets


def row_products(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the sums over rows of (k, c, n_rows) and (k, d, n_rows); float64 (k, c, d).

    By NumPy's own sums, which no BLAS takes in another order.
    """
    out = np.empty((len(a), a.shape[1], b.shape[1]))
    for i in range(a.shape[1]):
        for j in range(b.shape[1]):
            is_mirror = a is b and j < i
            out[:, i, j] = out[:, j, i] if is_mirror else (a[:, i] * b[:, j]).sum(axis=1)
    return out


def eliminated(
    moments: NDArray[np.float64], side: NDArray[np.float64], corner: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the pivots of symmetric matrices M, and ``corner - side' M^-1 side``.

    Gaussian elimination without exchanges, of all matrices at once. A pivot is what is left of a
    column's second moment once the columns before it are accounted for.

    Parameters
    ----------
    moments : float64 (k, d, d)
        M: positive semidefinite.
    side : float64 (k, d)
        A vector for each.
    corner : float
        A number for all.

    Returns
    -------
    tuple of float64 (k, d) and float64 (k,)
        Where a pivot is not above :data:`SINGULAR`, the second says nothing.
    """
    k, d = side.shape
    work = np.empty((k, d + 1, d + 1))
    work[:, :d, :d] = moments
    work[:, d, :d] = work[:, :d, d] = side
    work[:, d, d] = corner
    pivots = np.empty((k, d))
    for j in range(d):
        pivots[:, j] = work[:, j, j]
        row = work[:, j, j + 1 :]
        scaled = row / np.where(pivots[:, j] > SINGULAR, pivots[:, j], 1.0)[:, None]
        work[:, j + 1 :, j + 1 :] -= scaled[:, :, None] * row[:, None, :]
    return pivots, work[:, d, d]


def solved(matrices: NDArray[np.float64], sides: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ``M^-1 S`` of positive definite matrices, by Gauss and Jordan without exchanges.

    Parameters
    ----------
    matrices : float64 (k, d, d)
        M.
    sides : float64 (k, d, m)
        S.
    """
    d = matrices.shape[1]
    work = np.concatenate([matrices, sides], axis=2)
    for j in range(d):
        row = work[:, j] / work[:, j, j, None]
        work -= work[:, :, j, None] * row[:, None, :]
        work[:, j] = row
    return work[:, :, d:]
