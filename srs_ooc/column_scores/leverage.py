"""Leverage scores in two passes, for tables of few rows."""

import numpy as np
from numpy.typing import NDArray

from srs_ooc.column_scores.base import BLOCK_CELLS, BLOCK_COLUMNS, Columns, shifted
from srs_ooc.column_scores.projection import Projection
from srs_ooc.native.numerics import products, top_eigenvectors

MOST_ROWS = 3000
"""Rows up to which the Gram matrix is made; above, see :mod:`srs_ooc.column_scores.sketch`."""


class Leverage:
    """Leverage scores (Eq. 1 of Kyrillidis and Zouzias 2014) by the Gram matrix of the rows.

    The first pass sums A A' = U S^2 U', the second scores the columns by its eigenvectors.

    Parameters
    ----------
    n_rows, n_columns : int
        Size of the table: n and d.
    rank : int
        r: singular vectors to sum over; as many as there are, where fewer.
    center : bool
        Take each column's mean off.
    exact : bool
        The numbers are codes, whose products float64 sums without rounding.
    """

    n_passes = 2

    def __init__(
        self, n_rows: int, n_columns: int, rank: int, *, center: bool, exact: bool = False
    ) -> None:
        self._n_rows, self._n_columns, self._exact = n_rows, n_columns, exact
        self._rank, self._center = min(rank, n_rows), center
        self._gram: NDArray[np.float64] | None = None
        self._projection: Projection | None = None

    @property
    def nbytes(self) -> int:
        """The Gram matrix, then what its eigenvectors take; vectors, scores, and a block."""
        # Eigenvectors: the matrix and a copy, LAPACK's 2 n^2 numbers of workspace, the result.
        summing = 16 * self._n_rows**2 + 16 * max(self._n_rows, BLOCK_CELLS)
        finding = 41 * self._n_rows**2
        vectors = 24 * self._rank * (self._n_rows + BLOCK_COLUMNS)
        return max(summing, finding) + vectors + 8 * self._n_columns

    def update(self, first: int, columns: Columns) -> None:
        """Add up products of rows, or score columns."""
        some = shifted(columns, center=self._center)
        if self._projection is not None:
            self._projection.update(first, some)
            return
        if self._gram is None:
            self._gram = np.zeros((self._n_rows, self._n_rows))
        self._gram += products(some, some, exact=self._exact)

    def end_pass(self) -> None:
        """Find the singular vectors once all products are there."""
        if self._projection is None:
            assert self._gram is not None
            if self._center:
                center_both(self._gram)
            found = top_eigenvectors(self._gram, self._rank)
            self._gram = None
            self._projection = Projection(self._n_columns, *found, exact=self._exact)

    def scores(self) -> NDArray[np.float64]:
        """Return the leverage scores; they sum to 1 unless all columns are constant."""
        assert self._projection is not None
        return self._projection.scores


def center_both(gram: NDArray[np.float64]) -> None:
    """Make A A' in place that of A with its columns' means taken off."""
    means = gram.mean(axis=0)
    gram -= means
    gram -= (means - means.mean())[:, None]
