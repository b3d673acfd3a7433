"""Leverage scores from left singular vectors: one pass over the columns."""

import numpy as np
from numpy.typing import NDArray

from srs_ooc.column_scores.base import Columns

VECTOR_BITS = 26
"""Vectors are rounded to whole multiples of ``2**-VECTOR_BITS``, so that their products with codes
sum exactly, in whatever order they are added."""


class Projection:
    """pi_j = (1/r) sum over i <= r of v_i(j)^2 (Eq. 1), with v_i(j) = u_i . a_j / sigma_i.

    Parameters
    ----------
    n_columns : int
        d.
    vectors : float64 (r, n_rows)
        Left singular vectors u_i.
    squares : float64 (r,)
        sigma_i^2.
    """

    def __init__(
        self, n_columns: int, vectors: NDArray[np.float64], squares: NDArray[np.float64]
    ) -> None:
        self._vectors = np.rint(np.ldexp(vectors, VECTOR_BITS))
        self._scales = np.ldexp(1.0, -2 * VECTOR_BITS) / (squares * max(1, len(squares)))
        self.scores = np.zeros(n_columns)

    def update(self, first: int, columns: Columns) -> None:
        """Score some columns."""
        out = self.scores[first : first + len(columns)]
        # One vector after the other: a sum along rows may be taken in another order elsewhere.
        for products, scale in zip(self._vectors @ columns.T, self._scales, strict=True):
            out += np.square(products) * scale


def top_eigenvectors(
    symmetric: NDArray[np.float64], rank: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the eigenvectors of the largest eigenvalues, largest first, and these.

    Fewer than ``rank`` where the others are 0 as far as rounding lets one see.

    Returns
    -------
    vectors : float64 (r, n)
        Of length 1.
    values : float64 (r,)
        Above 0.
    """
    values, vectors = np.linalg.eigh(symmetric)
    n = len(values)
    tolerance = n * np.finfo(np.float64).eps * max(values[-1], 0.0)
    n_kept = min(rank, int(np.count_nonzero(values > tolerance)))
    top = slice(n - 1, n - 1 - n_kept if n_kept < n else None, -1)
    return np.ascontiguousarray(vectors[:, top].T), values[top].copy()
