"""Distinct random integers: the face of the native draws.

:mod:`srs_ooc.samplers.distinct_reference` is the twin.
"""

import numpy as np
from numpy.typing import NDArray

from srs_ooc.native import _native

_NO_FEATURES = np.zeros(0, dtype=np.uint32)


def draw_distinct(
    key: int, bound: int, excluded: NDArray[np.uint32] | None, count: int
) -> NDArray[np.uint32]:
    """Draw ``count`` distinct integers below ``bound``, none of ``excluded``, in order drawn."""
    out = np.empty(count, dtype=np.uint32)
    _native.draw_distinct(key, bound, _NO_FEATURES if excluded is None else excluded, out)
    return out


def draw_blocks(
    key: int, bound: int, block_size: int, excluded: NDArray[np.uint32] | None, count: int
) -> NDArray[np.uint32]:
    """Draw ``count`` distinct integers below ``bound`` by blocks of neighbours.

    None is of ``excluded``; they are in the order drawn. Every integer not excluded is drawn with
    probability ``count / (bound - len(excluded))``; see the reference for how.
    """
    out = np.empty(count, dtype=np.uint32)
    given = _NO_FEATURES if excluded is None else excluded
    _native.draw_blocks(key, bound, block_size, given, out)
    return out
