"""Rank correlations of features, from their codes, in a bounded amount of memory.

Every sum is one of whole numbers that float64 holds, so it is exact in whatever order BLAS takes
it; what follows is done one element at a time. So the correlations, and what is decided by them, do
not depend on threads, on the processor or on the order of rows.
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

    A missing code counts as the mean of what is known of its column.

    Parameters
    ----------
    codes : uint8 or uint16 (n, n_rows)
        Of at most ``MOST_ROWS`` rows: :func:`sampled_rows` says which. Kept, and not changed.
    missing_code : int
        The code of a missing value.

    Raises
    ------
    ValueError
        If there are more rows.
    """

    def __init__(self, codes: NDArray[np.integer], missing_code: int) -> None:
        if codes.shape[1] > MOST_ROWS:
            raise ValueError(f"expected at most {MOST_ROWS} rows, found {codes.shape[1]}")
        self._codes, self._missing_code = codes, missing_code
        self.n, self.n_rows = codes.shape
        self._counts, self._sums, self._spreads = np.empty((3, self.n))
        for place, column in enumerate(codes):
            known = column[column != missing_code].astype(np.float64)
            count, total = len(known), known.sum()
            self._counts[place], self._sums[place] = count, total
            self._spreads[place] = count * (count * np.square(known).sum() - total * total)

    def squared(self, some: NDArray[np.intp], others: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return squared correlations; float64 (len(some), len(others)), 0 with a constant one.

        With sums over the rows in which both are known, ``N = n m sum(xy) - m X sum(y) -
        n Y sum(x) + X Y sum(1)`` for columns of n and m known codes that sum to X and Y; then
        ``r^2 = N^2 / (n (n sum(x^2) - X^2) m (m sum(y^2) - Y^2))``. Of 8-bit codes N and both
        factors are below 2^53, so exact: equal columns have exactly 1, a tie at a half exactly
        1/4. :meth:`pieces` of both keep it small.
        """
        left, right = (self._codes[of].astype(np.float64) for of in (some, others))
        n, sums = self._counts[some][:, None], self._sums[some][:, None]
        m, other_sums = self._counts[others], self._sums[others]
        shared_x, shared_y, both = sums, other_sums, np.float64(self.n_rows)
        if (n < self.n_rows).any() or (m < self.n_rows).any():
            is_known, others_known = (
                (self._codes[of] != self._missing_code).astype(np.float64) for of in (some, others)
            )
            left *= is_known
            right *= others_known
            shared_x, shared_y = left @ others_known.T, is_known @ right.T
            both = is_known @ others_known.T
        numerators = n * m * (left @ right.T) - m * sums * shared_y
        numerators -= n * other_sums * shared_x - sums * other_sums * both
        scale = self._spreads[some][:, None] * self._spreads[others]
        out = np.zeros_like(numerators)
        np.divide(numerators * numerators, scale, out=out, where=scale > 0)
        return np.minimum(out, 1.0)

    def absolute(self) -> NDArray[np.float64]:
        """Return the absolute correlations of all columns; float64 (n, n)."""
        out, places = np.empty((self.n, self.n)), np.arange(self.n)
        for first in self.pieces(self.n):
            for other in self.pieces(self.n):
                out[first, other] = np.sqrt(self.squared(places[first], places[other]))
        return out

    def pieces(self, count: int) -> list[slice]:
        """Return ``count`` columns in pieces small enough to be correlated with each other."""
        size = max(1, min(math.isqrt(_CELLS), _CELLS // self.n_rows))
        return [slice(start, start + size) for start in range(0, count, size)]

    @staticmethod
    def nbytes(n: int, n_rows: int, code_nbytes: int) -> int:
        """Return the bytes that n columns take, with what correlating them needs besides."""
        return n * (min(n_rows, MOST_ROWS) * code_nbytes + 64) + 8 * 8 * _CELLS
