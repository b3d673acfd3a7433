"""Leverage scores for tables of many rows, by a random range finder.

Halko, Martinsson and Tropp 2011 (SIAM Review 53, Algorithms 4.3 and 5.1), with random signs in
place of Gaussians: they have the same guarantees up to constants, and their sums are exact.
"""

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.seeds import derive, derive_array
from srs_ooc.base.sizes import ceil_div
from srs_ooc.column_scores.base import BLOCK_CELLS, BLOCK_COLUMNS, Columns, shifted
from srs_ooc.column_scores.projection import VECTOR_BITS, Projection
from srs_ooc.native.numerics import orthonormal, products, top_eigenvectors

MORE = 10
"""Columns of the sketch beyond the rank."""
_PRODUCT_BITS = 8
_LARGEST_SUM = 2.0 ** (53 - 2 * _PRODUCT_BITS)
"""Of products of codes (in place of missing ones means, of no more bits) and rounded products: up
to this float64 holds it exactly, whatever the order."""


class SketchedLeverage:
    """Approximate leverage scores (Eq. 1): of A projected on the range of A (A' A)^q S.

    S are random signs, r + 10 of each column. A pass makes A S, each power pass A A' Q from an
    orthonormal basis Q of what the pass before made; the last but one gives the singular vectors
    within the range of Q (Rayleigh and Ritz), the last one the scores.

    Parameters
    ----------
    n_rows, n_columns : int
        Size of the table: n and d.
    rank : int
        r.
    center : bool
        Take each column's mean off.
    power_passes : int
        q: more give a better range, for a pass over the table each.
    key : int
        64-bit key of the signs.
    exact : bool
        The numbers are codes, whose products float64 sums without rounding.
    """

    def __init__(
        self,
        n_rows: int,
        n_columns: int,
        rank: int,
        *,
        center: bool,
        power_passes: int,
        key: int,
        exact: bool = False,
    ) -> None:
        self._n_rows, self._n_columns, self._center = n_rows, n_columns, center
        self._rank, self._key, self._exact = min(rank, n_rows), key, exact
        self._width = min(self._rank + MORE, n_rows)
        self.n_passes = power_passes + 3
        self._pass = 0
        self._basis: NDArray[np.float64] | None = None
        self._sums: NDArray[np.float64] = np.zeros((0, 0))
        self._projection: Projection | None = None

    @property
    def nbytes(self) -> int:
        """Sums and basis with what making them takes, the scores, and a block twice."""
        matrices = 48 * self._n_rows * self._width + 24 * self._width * (
            BLOCK_COLUMNS + self._width
        )
        return matrices + 16 * max(self._n_rows, BLOCK_CELLS) + 8 * self._n_columns

    def update(self, first: int, columns: Columns) -> None:
        """Add some columns to the sums of this pass, or score them."""
        some = shifted(columns, center=self._center)
        if self._projection is not None:
            self._projection.update(first, some)
            return
        if not self._sums.size:
            self._sums = np.zeros((self._n_rows, self._width))
        if self._basis is None:
            factors = _signs(self._key, first, len(columns), self._width)
        else:
            factors = _rounded(products(some.T, self._basis.T, exact=self._exact))
        largest = float(np.abs(some).max()) * float(np.abs(factors).sum(axis=0).max())
        self._sums += products(some, factors, exact=self._exact and largest <= _LARGEST_SUM)

    def end_pass(self) -> None:
        """Turn the sums into a basis, or into the singular vectors."""
        self._pass += 1
        if self._projection is not None:
            return
        sums, self._sums = self._sums, np.zeros((0, 0))
        if self._center:
            sums -= sums.mean(axis=0)
        if self._pass < self.n_passes - 1:
            basis = orthonormal(np.ascontiguousarray(sums.T))
            self._basis = np.rint(np.ldexp(basis, VECTOR_BITS))
            return
        assert self._basis is not None
        basis = np.ldexp(self._basis, -VECTOR_BITS)
        inner = products(basis.T, sums)
        vectors, values = top_eigenvectors((inner + inner.T) / 2, self._rank)
        self._projection = Projection(
            self._n_columns, products(vectors.T, basis), values, exact=self._exact
        )
        self._basis = None

    def scores(self) -> NDArray[np.float64]:
        """Return the approximate leverage scores."""
        assert self._projection is not None
        return self._projection.scores


def _signs(key: int, first: int, n_columns: int, width: int) -> NDArray[np.float64]:
    """Return random signs (n_columns, width): bits of hashes of the columns' numbers."""
    numbers, shifts = np.arange(first, first + n_columns), np.arange(64, dtype=np.uint64)
    words = [derive_array(derive(key, word), numbers) for word in range(ceil_div(width, 64))]
    bits = [(hashes[:, None] >> shifts) & np.uint64(1) for hashes in words]
    return 2.0 * np.concatenate(bits, axis=1)[:, :width] - 1.0


def _rounded(products: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return products with vectors in units of 1, few enough bits for their own to sum exactly."""
    return np.ldexp(np.rint(np.ldexp(products, _PRODUCT_BITS - VECTOR_BITS)), -_PRODUCT_BITS)
