"""The table of ``x log2 x`` that entropy is computed from, in fixed point and in integers only.

A mathematical library's logarithm differs between machines in its last bits; this one cannot.
"""

import numpy as np
from numpy.typing import NDArray

ENTROPY_BITS = 32
_LOG_BITS = 40
_MANTISSA_BITS = 31


def log2_table(size: int) -> NDArray[np.uint64]:
    """Return ``log2(x)`` for x in 1 .. size - 1 (entry 0 is 0), in units of ``2**-40``.

    The integer part is the position of the leading bit; each further bit comes from squaring the
    mantissa (kept to 31 bits, so the error stays below ``2**-24``).
    """
    x = np.arange(size, dtype=np.uint64)
    x[:1] = 1
    whole = np.zeros(size, dtype=np.uint64)
    for shift in (32, 16, 8, 4, 2, 1):
        large = (x >> whole) >= np.uint64(1 << shift)
        whole += np.where(large, np.uint64(shift), np.uint64(0))
    one = np.uint64(1 << _MANTISSA_BITS)
    mantissa = (x << np.uint64(_MANTISSA_BITS)) >> whole
    log = whole << np.uint64(_LOG_BITS)
    for bit in range(_LOG_BITS - 1, -1, -1):
        mantissa = (mantissa * mantissa) >> np.uint64(_MANTISSA_BITS)
        doubled = mantissa >= one + one
        log += np.where(doubled, np.uint64(1 << bit), np.uint64(0))
        mantissa = np.where(doubled, mantissa >> np.uint64(1), mantissa)
    return log


def xlogx_table(n_rows: int) -> NDArray[np.int64]:
    """Return ``x log2 x`` for x in 0 .. n_rows, in units of ``2**-32``; int64 (n_rows + 1,)."""
    x = np.arange(n_rows + 1, dtype=np.uint64)
    log = log2_table(n_rows + 1)
    # Two halves, so that the product of up to 24 and 45 bits does not overflow.
    high, low = log >> np.uint64(20), log & np.uint64((1 << 20) - 1)
    product = ((x * high) << np.uint64(12)) + ((x * low) >> np.uint64(8))
    return product.astype(np.int64)
