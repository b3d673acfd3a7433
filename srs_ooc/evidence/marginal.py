"""One feature at a time: how strong its test is, and Benjamini and Hochberg.

On plain additive signal with few rows this beats any forest; users should see both. P-values are
held as strengths, minus their decimal logarithms: single precision then holds the smallest.
"""

import numpy as np
from numpy.typing import NDArray

from srs_ooc.native.numerics import log, logs, powers

_PIECE = 1 << 16
_LEAST = 1e-300
_LN10 = log(10.0)


def p_values_of(strengths: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return the p-values of strengths, at least 1e-300; NaN stays NaN."""
    p_values: NDArray[np.float64] = np.maximum(
        powers(-_LN10 * strengths.astype(np.float64)), _LEAST
    )
    return p_values


def least_passing(strengths: NDArray[np.floating], level: float) -> float:
    """Return the strength from which features pass at false discovery rate ``level``.

    Benjamini and Hochberg (1995), J. R. Statist. Soc. B 57, Section 3.1. Infinite if none passes;
    NaN is no feature.
    """
    descending = np.negative(strengths)
    descending.sort()
    nan = descending.dtype.type(np.nan)  # of another type it would have all of them copied
    n, weakest = int(np.searchsorted(descending, nan)), np.inf
    for start in range(0, n, _PIECE):  # a few numbers a feature would break the memory plan
        some = -descending[start : start + _PIECE]
        bar = -logs(level * np.arange(start + 1, start + 1 + len(some)) / n) / _LN10
        weakest = min(weakest, float(some[some >= bar].min(initial=np.inf)))
    return weakest
