"""Logarithms and powers, natively: the bits of their twin :mod:`srs_ooc.base.elementary`."""

import numpy as np
from numpy.typing import NDArray

from srs_ooc.native import _native


def log(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return natural logarithms of finite numbers above 0; float64 (n,)."""
    out = np.empty(len(x))
    _native.logs(x, out)
    return out


def exp(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return e to the power of ``x``, taken as -700 at least and 700 at most; float64 (n,)."""
    out = np.empty(len(x))
    _native.powers(x, out)
    return out
