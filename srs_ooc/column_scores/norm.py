"""Squared norms of columns ("Norm-based sampling", Section 5 of Kyrillidis and Zouzias 2014)."""

import numpy as np
from numpy.typing import NDArray

from srs_ooc.column_scores.base import BLOCK_CELLS, Columns, shifted


class SquaredNorm:
    """The squared Euclidean norm of each column; centred, it is the variance times the rows.

    Parameters
    ----------
    n_rows, n_columns : int
        Size of the table.
    center : bool
        Take each column's mean off.
    """

    n_passes = 1

    def __init__(self, n_rows: int, n_columns: int, *, center: bool) -> None:
        self._n_rows, self._n_columns, self._center = n_rows, n_columns, center
        self._scores: NDArray[np.float64] = np.zeros(0)

    @property
    def nbytes(self) -> int:
        """The scores, and a block three times."""
        return 8 * self._n_columns + 24 * max(self._n_rows, BLOCK_CELLS)

    def update(self, first: int, columns: Columns) -> None:
        """Add up the squares of some columns."""
        if not len(self._scores):
            self._scores = np.zeros(self._n_columns)
        some = shifted(columns, center=self._center).astype(np.float64)
        squares = np.square(some).sum(axis=1)
        if self._center:
            squares = np.maximum(squares - np.square(some.sum(axis=1)) / self._n_rows, 0.0)
        self._scores[first : first + len(columns)] = squares

    def end_pass(self) -> None:
        """There is nothing to do."""

    def scores(self) -> NDArray[np.float64]:
        """Return the squared norms."""
        return self._scores
