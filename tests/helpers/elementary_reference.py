"""Logarithms and powers that have the same bits on every machine.

A mathematical library may round its last digit differently from one processor to the next. These
use only what IEEE 754 fixes: sums, products, quotients, and exact scaling by powers of two.
"""

import numpy as np
from numpy.typing import NDArray

_LN2_HIGH = 0.6931471805598903
"""The first 42 bits of ln 2, so that its product with an exponent is exact."""
_LN2_LOW = 5.497923018708371e-14
_INV_LN2 = 1.4426950408889634
_SQRT_HALF = 0.7071067811865476
_LOG_TERMS = 12
_EXP_TERMS = 14
LEAST_POWER, LARGEST_POWER = -700.0, 700.0


def log(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return natural logarithms of finite numbers above 0, to about 2e-16 of their size.

    With ``x = m 2**e`` and m between sqrt(1/2) and sqrt(2):
    ``ln x = e ln 2 + 2 (s + s**3 / 3 + s**5 / 5 + ...)``, ``s = (m - 1) / (m + 1)``.
    """
    m, e = np.frexp(x)
    small = m < _SQRT_HALF
    m = np.where(small, 2.0 * m, m)
    exponent = (e - small).astype(np.float64)
    s = (m - 1.0) / (m + 1.0)
    square = s * s
    series = np.full_like(s, 1.0 / (2 * _LOG_TERMS - 1))
    for k in range(_LOG_TERMS - 2, -1, -1):
        series *= square
        series += 1.0 / (2 * k + 1)
    out: NDArray[np.float64] = exponent * _LN2_HIGH + (2.0 * s * series + exponent * _LN2_LOW)
    return out


def exp(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return e to the power of ``x``, which is taken as -700 at least and 700 at most."""
    x = np.clip(x, LEAST_POWER, LARGEST_POWER)
    k = np.rint(x * _INV_LN2)
    r = (x - k * _LN2_HIGH) - k * _LN2_LOW
    series = np.ones_like(r)
    for n in range(_EXP_TERMS, 0, -1):
        series *= r / n
        series += 1.0
    out: NDArray[np.float64] = np.ldexp(series, k.astype(np.int32))
    return out
