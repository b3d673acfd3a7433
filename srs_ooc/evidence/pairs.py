"""All pairs of features, by halves: which are associated with the target only together.

Each feature parts the rows at the cut nearest its median, one of three levels also at the other: a
bit a row. With h = 1 and -1 for the halves of a feature, m their mean, and t the target less its
mean, a pair's score is

    |sum t (h_a - m_a) (h_b - m_b)| / sqrt((1 - m_a^2) (1 - m_b^2) sum t^2),

about the size of a standard normal where the two add nothing to their main effects. The
sum follows from how many rows differ by a and b in each class, which an exclusive or and a count of
bits count for 64 rows at a time. Nothing here decides: it proposes what is then tested.

Sums are of whole numbers or taken in one order, so that the pairs do not depend on threads, on the
processor or on which part is looked at first.
"""

from collections.abc import Iterable, Iterator
from math import isqrt
from typing import NamedTuple

import numpy as np

from srs_ooc.base.arrays import Bools, Floats, Indices, Integers, Ints, Ints32
from srs_ooc.base.text import ceil_div
from srs_ooc.evidence.judges import AUTO, NONE
from srs_ooc.evidence.rank_tests import RankTarget
from srs_ooc.native import _native

MOST_PAIRS = 3 * 10**9
"""Pairs of halves that are looked at, at most: 77,000 features, about as long as the search takes.
As many of half of the rows as of all: stability over halves needs no larger cap."""
FEW_CLASSES = 4
"""With more, fewer pairs are looked at: each is, for each class, by all."""
MOST_CELLS = 4 * 10**9
"""Cells of the table, which are read once more for it, at most."""
MOST_ROWS = 4096
"""Rows that are looked at."""
PAIRS = 64
"""Pairs that are proposed."""
MOST_EACH = 4
"""Of these, pairs of one feature: a strong one would fill all places."""
MOST_STRATA = 8
"""Strata within which the target is compared with its mean; of more it is compared with that of
all."""
_KEPT = 1024
"""Best pairs that are kept, of which those are proposed."""
_AT_ONCE = 10**9
"""Words that are compared before progress is told."""
_TILE = 64
_LEVELS = 3


def most_halves(asked: str, n_stored_rows: int, n_features: int, n_classes: int) -> int:
    """Return how many halves of features are looked at, at most; 0 where pairs are not.

    Parameters
    ----------
    asked : {'auto', 'all', 'none'}
        The option.
    n_stored_rows, n_features : int
        Rows of the store, and features that are tested.
    n_classes : int
        1 of numbers.
    """
    if asked == NONE or (asked == AUTO and n_stored_rows * n_features > MOST_CELLS):
        return 0
    n_pairs = MOST_PAIRS * FEW_CLASSES**2 // max(FEW_CLASSES, n_classes) ** 2
    most = min(2 * n_features, isqrt(2 * n_pairs))
    return 0 if asked == AUTO and n_features > most else max(most, n_features)


def scan_nbytes(
    asked: str,
    n_rows: int,
    n_stored_rows: int,
    n_features: int,
    n_classes: int,
    *,
    has_strata: bool,
) -> int:
    """Return the bytes that looking at all pairs in some rows takes, besides a megabyte."""
    n_sections = max(n_classes, FEW_CLASSES) * (MOST_STRATA if has_strata else 1)
    n_words = ceil_div(min(n_rows, MOST_ROWS), 64) + n_sections
    n_halves = most_halves(asked, n_stored_rows, n_features, n_classes)
    return n_halves * 8 * (n_words + 3 + n_classes)


class Halves:
    """Halves of features, a bit a row, rows of one class after another.

    Parameters
    ----------
    target : RankTarget
        Of some of the rows of a table.
    rows : int (n_rows,)
        Which they are.
    missing_code : int
        Number of codes that are not of a missing value.
    most : int
        Halves there may be, at most.

    Attributes
    ----------
    bounds : int64 (n_sections + 1,)
        Where rows of one stratum and class begin.
    coefficients : float64 (n_targets, n_sections)
        Of the rows of each: the targets that pairs are looked at for, less their means.
    features : list of int
        Of which feature each half is, by place in the order they were added.
    """

    def __init__(self, target: RankTarget, rows: Indices, missing_code: int, most: int) -> None:
        label, stratum, wanted = _labels(target)
        key = stratum * wanted.shape[1] + label
        self._rows = rows[target.rows[np.argsort(key, kind="stable")]].astype(np.int32)
        self._missing_code = missing_code
        known, sizes = np.unique(key, return_counts=True)
        self.bounds = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        strata, labels = np.divmod(known, wanted.shape[1])
        n_each = np.bincount(strata, sizes)
        means = np.array([np.bincount(strata, sizes * one) / n_each for one in wanted[:, labels]])
        kept: list[Floats] = []  # one of those targets that distinguish the same rows
        for one in wanted[:, labels] - means[:, strata]:
            same = (np.allclose(one, sign * of) for of in kept for sign in (1, -1))
            if one.any() and not any(same):
                kept.append(one)
        self.coefficients = np.array(kept).reshape(-1, len(known))
        n_words = sum(ceil_div(size, 64) for size in sizes.tolist())
        # taken as it is filled, where there is room for more than there are
        self._tiles = np.zeros((ceil_div(max(most, 1), _TILE), n_words, _TILE), np.uint64)
        self.features: list[int] = []

    def add(self, codes: Integers, features: Iterable[int], *, other: bool) -> None:
        """Add halves of features; ``other``: those at the other cut of three levels.

        Parameters
        ----------
        codes : uint8 or uint16 (n, n_rows of the table)
            C-contiguous.
        features : iterable of int
            Places of the n features.
        other : bool
            Of features with :func:`three_levels`.
        """
        at = len(self.features)
        _native.halve_columns(
            codes, self._rows, self.bounds, self._missing_code, other, self._tiles, at
        )
        self.features.extend(features)

    def three_levels(self, codes: Integers) -> Bools:
        """Return which columns have three levels, as dosages of genotypes do; bool (n,)."""
        every = [(codes == level).any(axis=1) for level in range(_LEVELS)]
        has_more = ((codes >= _LEVELS) & (codes < self._missing_code)).any(axis=1)
        return np.asarray(np.all([*every, ~has_more], axis=0), np.bool_)

    def scan(self, n_threads: int, begun: "Scanned | None" = None) -> Iterator["Scanned"]:
        """Look at all pairs, in pieces; yield what is found after each, nothing of none first.

        ``begun``: go on from there.
        """
        n, n_tiles = len(self.features), ceil_div(len(self.features), _TILE)
        tiles, first = self._tiles[:n_tiles], n_tiles if len(self.coefficients) else 0
        nothing = np.zeros(_KEPT), np.full((_KEPT, 2), -1, np.int32)
        found = begun or Scanned(first, first, *nothing)
        each = tiles.shape[1] * _TILE * _TILE
        while True:
            yield found
            if not found.left:
                return
            left = max(0, found.left - max(n_threads, _AT_ONCE // (each * found.left)))
            how, kept = (self.bounds, self.coefficients), (found.scores, found.pairs)
            _native.scan_pairs(tiles, n, *how, left, found.left, *kept, n_threads)
            found = found._replace(left=left)

    def best(self, found: "Scanned") -> tuple[Ints, Floats]:
        """Return the best pairs of features, best first, and their scores.

        int64 (n, 2), the later feature first, and float64 (n,): at most :data:`PAIRS`, each once,
        and :data:`MOST_EACH` of one feature.
        """
        counts, out = dict[int, int](), dict[tuple[int, int], float]()
        for (left, right), score in zip(found.pairs.tolist(), found.scores.tolist(), strict=True):
            if score == 0.0 or len(out) == PAIRS:
                break
            one, other = sorted((self.features[left], self.features[right]))
            often = max(counts.get(one, 0), counts.get(other, 0))
            if one == other or (other, one) in out or often == MOST_EACH:
                continue
            out[other, one] = score
            counts[one], counts[other] = counts.get(one, 0) + 1, counts.get(other, 0) + 1
        return np.array([*out], np.int64).reshape(-1, 2), np.array([*out.values()])


class Scanned(NamedTuple):
    """The best of the pairs that were looked at.

    Attributes
    ----------
    left, n_tiles : int
        The first of all tiles, of 64 halves, are not looked at yet: so many of so many.
    scores : float64 (n,)
        Descending; 0 where there are not so many pairs.
    pairs : int32 (n, 2)
        Places of halves.
    """

    left: int
    n_tiles: int
    scores: Floats
    pairs: Ints32


def _labels(target: RankTarget) -> tuple[Ints, Ints, Floats]:
    """Return the class or quarter of each row, its stratum, and which of these each target has.

    int64 (n_used,) twice and float64 (n_targets, n_labels), 1 for those it has: of numbers the
    upper half, and both tails.
    """
    sizes = np.diff(target.starts)
    stratum = np.repeat(np.arange(len(sizes)), sizes)
    if len(sizes) > MOST_STRATA:
        stratum = np.zeros_like(stratum)
    if target.nominal:
        every = np.eye(target.n_targets)
        return target.targets.astype(np.int64), stratum, every[1:] if len(every) == 2 else every
    label = np.zeros(len(stratum), np.int64)
    for one in np.unique(stratum):
        levels = target.targets[stratum == one]
        counts = np.bincount(levels)
        middle = 2 * np.cumsum(counts) - counts  # twice the rows below, and half of those at it
        label[stratum == one] = (2 * middle // len(levels))[levels]
    return label, stratum, np.array([[0.0, 0, 1, 1], [1, 0, 0, 1]])
