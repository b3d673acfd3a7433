"""Counter-based randomness: every random number is a hash of what it is for (law 9).

A 64-bit key is derived from (seed, round, slot, tree, node path, purpose) by a chain of
:func:`derive`; numbers are then hashes of (key, counter). Nothing here keeps state, so any
number can be recomputed in any order, on any thread, on any machine. The native kernel holds the
same functions (``native/hash.hpp``) and is tested to agree on fixed vectors.

``mix64`` is the finalizer of SplitMix64 (Steele, Lea, Flood 2014, variant 13 of Stafford).
"""

from enum import IntEnum
from functools import reduce

import numpy as np

from srs_ooc.base.arrays import Integers, Ints, Uints

UINT64_MASK = (1 << 64) - 1
UINT32_MASK = (1 << 32) - 1
GOLDEN = 0x9E3779B97F4A7C15


class Purpose(IntEnum):
    """What a key is for; values are part of every result and never change."""

    SEQUENCE = 1
    RETAINED = 2
    PROBE_COLUMN = 3
    PROBE_ROWS = 4
    TREE = 5
    THRESHOLD = 6
    TIE = 7
    CANDIDATE = 8
    LEFT = 9
    RIGHT = 10
    STORE_ORDER = 11
    SYNTH = 12
    CLOSING = 15
    RANK_TIE = 16
    CATEGORIES = 21
    BOOTSTRAP = 22
    COMPACT = 23
    HALVES = 24
    WEIGHTED = 25
    SKETCH = 26
    SUBSETS = 31
    FOLDS = 32
    JUDGED_SUBSETS = 36
    JUDGED_ROWS = 37
    EDGES = 41
    ALTERED = 51
    ROW_SAMPLE = 52


def mix64(x: int) -> int:
    """Return the SplitMix64 finalizer of a 64-bit integer."""
    x &= UINT64_MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & UINT64_MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & UINT64_MASK
    return x ^ (x >> 31)


def derive(key: int, word: int) -> int:
    """Return the 64-bit key of ``word`` (any 64-bit integer) under ``key``."""
    return mix64(key + mix64(word + GOLDEN))


def key_of(*words: int) -> int:
    """Return the key of a sequence of words: ``derive`` folded from 0."""
    return reduce(derive, words, 0)


def mix64_array(x: Uints) -> Uints:
    """Return :func:`mix64` of each element."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def derive_array(key: int | Uints, words: Integers) -> Uints:
    """Return :func:`derive` of one key, or of each of an array, and each of ``words``."""
    mixed = mix64_array(words.astype(np.uint64) + np.uint64(GOLDEN))
    return mix64_array(mixed + np.asarray(key, np.uint64))


def scale_below(hashes: Uints, bound: int | Ints) -> Uints:
    """Map 64-bit hashes to integers uniform in ``0 .. bound - 1``, for ``bound < 2**32``.

    ``bound`` is one for all, or one each. The high word of the 64 x 32-bit product, so the bias is
    below ``bound / 2**64``.
    """
    size = np.asarray(bound, np.uint64)
    high, low = hashes >> np.uint64(32), hashes & np.uint64(UINT32_MASK)
    return (high * size + ((low * size) >> np.uint64(32))) >> np.uint64(32)


def below(key: int, counter: int, bound: int) -> int:
    """Return the integer of ``counter`` under ``key``, uniform in ``0 .. bound - 1``."""
    return (derive(key, counter) * bound) >> 64
