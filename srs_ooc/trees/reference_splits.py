"""The Python reference of a split drawn at a node, missing values and categories included.

With h a hash of (node, feature), and codes from ``low`` to ``high`` at the node:

* Numbers: ``threshold = low + ((h >> 8) * (high - low) >> 24)``, uniform over ``low .. high - 1``;
  codes at or below it go left. Uniform in code space, that is in the space of ranks.
* Given the value of each code, the threshold is ``v[low] + (h >> 8) 2**-24 (v[high] - v[low])`` in
  double precision, and the last code below ``high`` whose value is not above it takes its place.
* With missing values at the node, they take part as one more code: by the lowest bit of h, a fair
  coin, below or above all others there. Every place of the threshold is equally likely, and one of
  them parts missing values from all others. So missing values are drawn, and win, like any code.
  Given values, that one is as likely as before; of the others the threshold is drawn by value, from
  ``mix32(h)``.
* Categories are put in a random order by a keyed bijection of codes, the key a hash of (node,
  feature), a missing value being one more category; then they are split like numbers.

The best splits of a column are all of them: a threshold at each code of the node but the highest,
with missing values above, and again with them below (where they are not alone: that was tried).
Categories are put in the same random order. A chosen threshold moves midway to the next code, or to
its value where values are given.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.seeds import UINT32_MASK, Purpose, derive_array, lane_hashes, mix32_array
from srs_ooc.trees.forest_reference import ALL_CODES, How, map_categories

_TIE_FACTOR = 0x9E3779B1
_HALFWAY = 0x80000000
"""A hash that lies in the middle."""


@dataclass(frozen=True)
class Candidate:
    """A split of a node's rows.

    Attributes
    ----------
    column : int
        Column of the block.
    goes_left : bool (n,)
        For each row of the node.
    how : How
        How it sends rows.
    recorded_code : int
        The threshold as saved trees have it.
    hash : int
        Of the bijection of categories; 0 for numbers.
    score : float
        What it is worth.
    tie : tuple of int
        Larger ones win among equal scores.
    """

    column: int
    goes_left: NDArray[np.bool_]
    how: How
    recorded_code: int
    hash: int
    tie: tuple[int, ...]
    score: float = 0.0

    @property
    def rank(self) -> tuple[float, tuple[int, ...]]:
        """What the best candidate has the largest of."""
        return self.score, self.tie


class Drawer:
    """Draws splits of columns.

    Parameters
    ----------
    features : uint32 (n_columns,)
        The feature of each column.
    tree_key : int
        64-bit key of the tree.
    categorical : bool (n_columns,) or None
        Columns whose codes are categories.
    missing : int
        The code of a missing value.
    values : floats (n_columns, n_values) or None
        The value of each code, ascending; None for thresholds uniform in code space.
    """

    def __init__(
        self,
        features: NDArray[np.uint32],
        tree_key: int,
        categorical: NDArray[np.bool_] | None,
        missing: int,
        values: NDArray[np.floating] | None = None,
    ) -> None:
        self.values = values
        self.features, self.missing = features, missing
        none = np.zeros(len(features), dtype=np.bool_)
        self.categorical = none if categorical is None else categorical
        self.hashes = (derive_array(tree_key, features) >> np.uint64(32)).astype(np.uint32)

    def at_node(self, key: int) -> Callable[[int, NDArray[np.integer]], Candidate]:
        """Return what draws the split of a column, given its codes at the node of ``key``."""
        thresholds, ties, categories = (
            lane_hashes(self.hashes, key, purpose)
            for purpose in (Purpose.THRESHOLD, Purpose.TIE, Purpose.CATEGORIES)
        )

        def draw(column: int, at_node: NDArray[np.integer]) -> Candidate:
            tie = (int(ties[column]), -int(self.features[column]))
            codes, hash_ = at_node.astype(np.int64), int(thresholds[column])
            if self.categorical[column]:
                map_hash = int(categories[column])
                seen = map_categories(codes, map_hash, self.missing)
                threshold = _drawn(hash_, int(seen.min()), int(seen.max()))
                return Candidate(column, seen <= threshold, How.MAPPED, threshold, map_hash, tie)
            return self._number(column, codes, hash_, tie)

        return draw

    def all_at_node(self, key: int) -> Callable[[int, NDArray[np.integer]], Iterator[Candidate]]:
        """Return what yields every split of a column, given its codes at the node of ``key``."""
        ties, categories = (
            lane_hashes(self.hashes, key, purpose) for purpose in (Purpose.TIE, Purpose.CATEGORIES)
        )

        def every(column: int, at_node: NDArray[np.integer]) -> Iterator[Candidate]:
            tie, hash_ = int(ties[column]), int(categories[column])
            codes = at_node.astype(np.int64)
            missing = codes == self.missing
            if self.categorical[column]:
                seen = map_categories(codes, hash_, self.missing)
                yield from self._every(column, seen, How.MAPPED, tie, hash_)
            elif missing.any() and not missing.all():
                yield from self._every(column, codes, How.MISSING_RIGHT, tie)
                below = np.where(missing, 0, codes + 1)
                yield from self._every(column, below, How.MISSING_LEFT, tie)
            else:
                yield from self._every(column, codes, How.PLAIN, tie)

        return every

    def _every(
        self, column: int, seen: NDArray[np.int64], how: How, tie: int, hash_: int = 0
    ) -> Iterator[Candidate]:
        shift = int(how == How.MISSING_LEFT)
        values = np.unique(seen).tolist()
        for code, above in pairwise(values):
            if code < shift:
                continue
            recorded = code if how == How.MAPPED else self._middle(column, code, above, shift)
            if how == How.MISSING_RIGHT and above == self.missing:
                recorded = ALL_CODES
            own = tie ^ ((code + (shift << 16)) * _TIE_FACTOR & UINT32_MASK)
            rank = (own, -int(self.features[column]))
            yield Candidate(column, seen <= code, how, recorded, hash_, rank)

    def _middle(self, column: int, code: int, above: int, shift: int) -> int:
        if self.values is None or code < shift:
            return (code + above) // 2
        return self._cut(column, _HALFWAY, code - shift, above - shift) + shift

    def _number(
        self, column: int, codes: NDArray[np.int64], hash_: int, tie: tuple[int, ...]
    ) -> Candidate:
        known = codes[codes != self.missing]
        if len(known) == len(codes) or len(known) == 0:
            threshold = self._cut(column, hash_, int(codes.min()), int(codes.max()))
            return Candidate(column, codes <= threshold, How.PLAIN, threshold, 0, tie)
        low, high = int(known.min()), int(known.max())
        threshold = _drawn(hash_, low, high + 1)
        missing = codes == self.missing
        if self.values is not None and threshold != (low if hash_ & 1 else high):
            again = int(mix32_array(np.array([hash_], dtype=np.uint32))[0])
            threshold = self._cut(column, again, low, high) + (hash_ & 1)
        if hash_ & 1:
            goes_left = missing | (codes < threshold)
            recorded = 0 if (goes_left == missing).all() else threshold
            return Candidate(column, goes_left, How.MISSING_LEFT, recorded, 0, tie)
        goes_left = ~missing & (codes <= threshold)
        recorded = ALL_CODES if (goes_left == ~missing).all() else threshold
        return Candidate(column, goes_left, How.MISSING_RIGHT, recorded, 0, tie)

    def _cut(self, column: int, hash_: int, low: int, high: int) -> int:
        if self.values is None or low == high:
            return _drawn(hash_, low, high)
        values = self.values[column, low : high + 1].astype(np.float64)
        threshold = values[0] + float(hash_ >> 8) * 2.0**-24 * (values[-1] - values[0])
        return low + int(np.searchsorted(values[:-1], threshold, side="right")) - 1


def _drawn(hash_: int, low: int, high: int) -> int:
    return low + (((hash_ >> 8) * (high - low)) >> 24)
