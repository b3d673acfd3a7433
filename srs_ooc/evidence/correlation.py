"""Rank correlations of features, from their codes, in a bounded amount of memory.

Every sum is one of whole numbers below ``2**53``, so it is exact in whatever order it is taken:
the correlations, and what is decided by them, do not depend on threads or on the order of rows.
"""

import math

import numpy as np
from numpy.typing import NDArray

MOST_ROWS = 4096
"""Rows that are looked at, at most."""
_CELLS = 1 << 18
"""Codes, and correlations, that are looked at together, at most."""


def sampled_rows(n_rows: int, most: int = MOST_ROWS) -> NDArray[np.intp]:
    """Return evenly spaced rows, all of them where there are no more than ``most``."""
    return np.linspace(0, n_rows - 1, min(n_rows, most)).astype(np.intp)


class RankColumns:
    """Columns of ordinal codes, which are ranks, ready to be correlated.

    Parameters
    ----------
    codes : uint8 or uint16 (n, n_rows)
        Of at most ``MOST_ROWS`` rows: :func:`sampled_rows` says which.
    missing_code : int
        The code of a missing value; it counts as the mean of its column, rounded.

    Raises
    ------
    ValueError
        If there are more rows.
    """

    def __init__(self, codes: NDArray[np.integer], missing_code: int) -> None:
        if codes.shape[1] > MOST_ROWS:
            raise ValueError(f"expected at most {MOST_ROWS} rows, found {codes.shape[1]}")
        self._codes = codes.copy()
        self.n, self.n_rows = codes.shape
        self._sums = np.zeros(self.n)
        self._spread = np.zeros(self.n)
        for place in range(self.n):
            self._describe(place, missing_code)

    def _describe(self, place: int, missing_code: int) -> None:
        column = self._codes[place]
        is_missing = column == missing_code
        if is_missing.any():
            known = column[~is_missing]
            column[is_missing] = round(float(known.mean())) if len(known) else 0
        exact = column.astype(np.float64)
        total = float(exact.sum())
        self._sums[place] = total
        self._spread[place] = float(exact @ exact) - total * total / self.n_rows

    def squared(self, some: NDArray[np.intp], others: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return squared correlations; float64 (len(some), len(others)), 0 with a constant one.

        Two columns that are equal have exactly 1. :meth:`pieces` of both keep it small.
        """
        left, right = (self._codes[of].astype(np.float64) for of in (some, others))
        products = left @ right.T
        products -= self._sums[some][:, None] * self._sums[others] / self.n_rows
        scale = self._spread[some][:, None] * self._spread[others]
        out = np.zeros_like(products)
        np.divide(products * products, scale, out=out, where=scale > 0)
        return np.minimum(out, 1.0)

    def pieces(self, count: int) -> list[slice]:
        """Return ``count`` columns in pieces small enough to be correlated with each other."""
        size = max(1, min(math.isqrt(_CELLS), _CELLS // self.n_rows))
        return [slice(start, start + size) for start in range(0, count, size)]

    @staticmethod
    def nbytes(n: int, n_rows: int, code_nbytes: int) -> int:
        """Return the bytes that n columns take, with what correlating them needs besides."""
        return n * (min(n_rows, MOST_ROWS) * code_nbytes + 64) + 8 * 8 * _CELLS
