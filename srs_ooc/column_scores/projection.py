"""Leverage scores from left singular vectors: one pass over the columns."""

import numpy as np
from numpy.typing import NDArray

from srs_ooc.column_scores.base import Columns
from srs_ooc.native.numerics import products

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
    exact : bool
        The columns are codes.
    """

    def __init__(
        self,
        n_columns: int,
        vectors: NDArray[np.float64],
        squares: NDArray[np.float64],
        *,
        exact: bool,
    ) -> None:
        self._vectors = np.rint(np.ldexp(vectors, VECTOR_BITS)).T
        self._exact = exact
        self._scales = np.ldexp(1.0, -2 * VECTOR_BITS) / (squares * max(1, len(squares)))
        self.scores = np.zeros(n_columns)

    def update(self, first: int, columns: Columns) -> None:
        """Score some columns."""
        out = self.scores[first : first + len(columns)]
        # One vector after the other: a sum along rows may be taken in another order elsewhere.
        found = products(self._vectors, columns.T, exact=self._exact)
        for of_one, scale in zip(found, self._scales, strict=True):
            out += np.square(of_one) * scale
