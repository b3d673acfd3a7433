"""Targets of problems: classes in given shares, and classes by an additive score in integers."""

import math

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.seeds import derive_array
from srs_ooc.synthetic.problem import Cells


def shuffled_classes(key: int, n_rows: int, n_ones: int) -> NDArray[np.uint8]:
    """Return class 1 for ``n_ones`` rows chosen at random, 0 for the others: uint8 (n_rows,)."""
    order = np.argsort(derive_array(key, np.arange(n_rows, dtype=np.uint64)), kind="stable")
    classes = np.zeros(n_rows, dtype=np.uint8)
    classes[order[:n_ones]] = 1
    return classes


def signs(key: int, n: int) -> NDArray[np.int64]:
    """Return n random signs: int64 (n,) of -1 and 1."""
    bits = derive_array(key, np.arange(n, dtype=np.uint64)) >> np.uint64(63)
    return 2 * bits.astype(np.int64) - 1


def additive_classes(
    causes: Cells, directions: NDArray[np.int64], noise: Cells
) -> NDArray[np.uint8]:
    """Return whether a signed sum of causes plus noise is above 0: uint8 (n,).

    Parameters
    ----------
    causes : int32 (n, r)
        Cells of the causes. Sums are integers, so no class hangs on the order of adding.
    directions : int64 (r,)
        Sign of each cause.
    noise : int32 (n, 1)
        Added with half the weight of all causes together, max(1, round(sqrt(r) / 2)).
    """
    weight = max(1, round(math.sqrt(len(directions)) / 2))
    score = causes @ directions + weight * noise[:, 0].astype(np.int64)
    return (score > 0).astype(np.uint8)
