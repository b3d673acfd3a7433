"""The Python reference of the native kernel: what it computes, stated plainly (law 7).

Growth of one randomized tree on a block of ordinal codes (SRS, Algorithm 1, step 2b):

* At a node, ``max_features`` candidate columns are drawn among those not constant there (all of
  them if they are no more): the first ones in a random order of the columns, drawn by Fisher-Yates
  over the columns by ascending feature.
* A candidate's split is drawn, or all of its splits are tried, as
  the part on drawn splits below tells.
* Candidates that leave fewer than ``min_samples_leaf`` rows on a side are dropped.
* The best candidate has the largest float32 score (what a split is worth, below); equal
  scores are settled by the larger tie hash, then by the smaller feature number. No rule looks at a
  column's place in the block (law 8).
* A node is split while impure, within its limits, and with a candidate, even if nothing decreases,
  unless the best candidate's importance is below ``min_decrease``.
"""

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from forest_reference import Leaf, Split, TargetLeaf, encode_tree, map_categories, mix32_array
from numpy.typing import NDArray

from srs_ooc.base.seeds import UINT32_MASK, Purpose, derive, derive_array, scale_below
from srs_ooc.trees.response import (
    ENTROPY_BITS,
    IMPORTANCE_BITS,
    GrownTree,
    Response,
    TrainingRows,
    root_of,
)
from srs_ooc.trees.saved import ALL_CODES, How

# The Python reference of what a split is worth.
#
# A node holds rows of classes k, of weight ``all_k`` in total ``all``; ``left_k`` of it, ``left``
# in total, would go left. (Without weights every row weighs 1.)
#
# * Gini: with ``D_k = left_k all - all_k left`` the weighted decrease is exactly
#   ``sum_k D_k**2 / (all**2 left right)``: zero if and only if every integer ``D_k`` is zero.
# * Variance: with sums of targets S and ``D = S_left all - S left``, the sum of squares decreases
#   by
#   exactly ``D**2 / (all left right)``: zero if and only if the integer D is zero.
# * Entropy comes from a table of ``x log2 x`` (`srs_ooc.trees.response`).


def stats_of(response, rows):
    """Return rows of each class and the sums of their channels; int64 (n_classes, 1 + channels)."""
    stats = np.zeros((response.n_classes, 1 + response.n_channels), dtype=np.int64)
    labels = response.labels[rows]
    stats[:, 0] = np.bincount(labels, minlength=response.n_classes)
    for c, channel in enumerate(response.channels):
        np.add.at(stats[:, 1 + c], labels, channel[rows])
    return stats


class Criterion:
    """Scores and importances of splits, from the numbers of a node and of its left side."""

    def __init__(self, training, impurity):
        self.impurity, self.root_scale = impurity, training.root_scale
        self.xlogx = training.xlogx

    def _weight(self, stats):
        return int(stats[:, -2 if self.impurity == "variance" else -1].sum())

    def _differences(self, left, total):
        """Return D, or each ``D_k`` of the classes with rows at the node."""
        weight, whole = self._weight(left), self._weight(total)
        present = total[:, 0] > 0
        pairs = zip(left[present, -1].tolist(), total[present, -1].tolist(), strict=True)
        return [a * whole - b * weight for a, b in pairs]

    def score(self, left, total):
        """Return the float32 that candidates are compared by, each operation rounded once."""
        if self.impurity == "entropy":
            return float(np.float32(self._entropy_gain(left, total)))
        weight, whole = self._weight(left), self._weight(total)
        score = np.float32(0.0)
        for difference in self._differences(left, total):
            d = np.int64(difference).astype(np.float32)
            score = score + d * d
        return float(score / (np.float32(weight) * np.float32(whole - weight)))

    def _entropy_gain(self, left, total):
        n, n_left = self._weight(total), self._weight(left)

        def x_log_x(x):
            return int(self.xlogx[x])

        gain = x_log_x(n) - x_log_x(n_left) - x_log_x(n - n_left)
        for left_k, count_k in zip(left[:, 0].tolist(), total[:, 0].tolist(), strict=True):
            gain += x_log_x(left_k) + x_log_x(count_k - left_k) - x_log_x(count_k)
        return max(gain, 1) if any(self._differences(left, total)) else 0

    def importance(self, left, total):
        """Return the split's term of Eq. 1, ``p(t) Delta i``, in units of ``2**-36``."""
        if self.impurity == "entropy":
            decrease = self._entropy_gain(left, total)
            share = float(decrease) / float(1 << ENTROPY_BITS) / self.root_scale
        else:
            weight, whole = self._weight(left), self._weight(total)
            decrease = sum(d * d for d in self._differences(left, total))
            sides = float(weight) * float(whole - weight)
            share = float(decrease) / sides / float(whole) / self.root_scale
        return max(round(share * float(1 << IMPORTANCE_BITS)), 1) if decrease else 0


# The Python reference of a split drawn at a node, missing values and categories included.
#
# With h a hash of (node, feature), and codes from ``low`` to ``high`` at the node:
#
# * Numbers: ``threshold = low + ((h >> 8) * (high - low) >> 24)``, uniform over ``low .. high -
#   1``;
#   codes at or below it go left. Uniform in code space, that is in the space of ranks.
# * Given the value of each code, the threshold is ``v[low] + (h >> 8) 2**-24 (v[high] - v[low])``
#   in
#   double precision, and the last code below ``high`` whose value is not above it takes its place.
# * With missing values at the node, they take part as one more code: by the lowest bit of h, a fair
#   coin, below or above all others there. Every place of the threshold is equally likely, and one
#   of
#   them parts missing values from all others. So missing values are drawn, and win, like any code.
#   Given values, that one is as likely as before; of the others the threshold is drawn by value,
#   from
#   ``mix32(h)``.
# * Categories are put in a random order by a keyed bijection of codes, the key a hash of (node,
#   feature), a missing value being one more category; then they are split like numbers.
#
# The best splits of a column are all of them: a threshold at each code of the node but the highest,
# with missing values above, and again with them below (where they are not alone: that was tried).
# Categories are put in the same random order. A chosen threshold moves midway to the next code, or
# to its value where values are given.

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
    def rank(self):
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

    def __init__(self, features, tree_key, categorical, missing, values=None):
        self.values = values
        self.features, self.missing = features, missing
        none = np.zeros(len(features), dtype=np.bool_)
        self.categorical = none if categorical is None else categorical
        self.hashes = (derive_array(tree_key, features) >> np.uint64(32)).astype(np.uint32)

    def at_node(self, key):
        """Return what draws the split of a column, given its codes at the node of ``key``."""
        thresholds, ties, categories = (
            lane_hashes(self.hashes, key, purpose)
            for purpose in (Purpose.THRESHOLD, Purpose.TIE, Purpose.CATEGORIES)
        )

        def draw(column, at_node):
            tie = (int(ties[column]), -int(self.features[column]))
            codes, hash_ = at_node.astype(np.int64), int(thresholds[column])
            if self.categorical[column]:
                map_hash = int(categories[column])
                seen = map_categories(codes, map_hash, self.missing)
                threshold = _drawn(hash_, int(seen.min()), int(seen.max()))
                return Candidate(column, seen <= threshold, How.MAPPED, threshold, map_hash, tie)
            return self._number(column, codes, hash_, tie)

        return draw

    def all_at_node(self, key):
        """Return what yields every split of a column, given its codes at the node of ``key``."""
        ties, categories = (
            lane_hashes(self.hashes, key, purpose) for purpose in (Purpose.TIE, Purpose.CATEGORIES)
        )

        def every(column, at_node):
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

    def _every(self, column, seen, how, tie, hash_=0):
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

    def _middle(self, column, code, above, shift):
        if self.values is None or code < shift:
            return (code + above) // 2
        return self._cut(column, _HALFWAY, code - shift, above - shift) + shift

    def _number(self, column, codes, hash_, tie):
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

    def _cut(self, column, hash_, low, high):
        if self.values is None or low == high:
            return _drawn(hash_, low, high)
        values = self.values[column, low : high + 1].astype(np.float64)
        threshold = values[0] + float(hash_ >> 8) * 2.0**-24 * (values[-1] - values[0])
        return low + int(np.searchsorted(values[:-1], threshold, side="right")) - 1


def _drawn(hash_, low, high):
    return low + (((hash_ >> 8) * (high - low)) >> 24)


def lane_hashes(feature_hashes, node_key, purpose):
    """Return one 32-bit hash per feature for one purpose at one node.

    Parameters
    ----------
    feature_hashes : uint32 (n_columns,)
        High halves of ``derive(tree key, feature)``, fixed for a tree.
    node_key : int
        64-bit key of the node.
    purpose : Purpose
        What the numbers are for.
    """
    key = derive(node_key, purpose)
    low, high = np.uint32(key & UINT32_MASK), np.uint32(key >> 32)
    return mix32_array((feature_hashes ^ low) + high)


def draw_distinct(key, bound, excluded, count):
    """Return the first ``count`` distinct members of a random sequence over ``0 .. bound - 1``.

    Element i of the sequence is ``scale_below(derive(key, i), bound)``; members of ``excluded``
    are passed over. The result is in the order of the sequence.
    """
    seen = {int(item) for item in excluded}
    drawn: list[int] = []
    counter = 0
    while len(drawn) < count:
        words = np.arange(counter, counter + 1024, dtype=np.uint64)
        for item in scale_below(derive_array(key, words), bound).tolist():
            if item not in seen and len(drawn) < count:
                seen.add(item)
                drawn.append(item)
        counter += 1024
    return np.array(drawn, dtype=np.uint32)


def shuffled(column, key):
    """Return ``column`` under the random permutation of ``key`` (Fisher-Yates from the end)."""
    out = column.copy()
    counters = np.arange(len(out), dtype=np.uint64)
    hashes = derive_array(key, counters)
    for i in range(len(out) - 1, 0, -1):
        j = int(scale_below(hashes[i : i + 1], i + 1)[0])
        out[i], out[j] = out[j], out[i]
    return out


def random_order(key, size):
    """Return ``0 .. size - 1`` in the random order of ``key`` (Fisher-Yates from the front)."""
    order = np.arange(size)
    hashes = derive_array(key, np.arange(size, dtype=np.uint64))
    for i in range(size):
        j = i + int(scale_below(hashes[i : i + 1], size - i)[0])
        order[i], order[j] = order[j], order[i]
    return order


def grow_tree(codes, labels, n_classes, features, tree_key, limits, xlogx=None, rows=None):
    """Grow one tree on numeric columns without weights, to tell classes.

    Parameters
    ----------
    codes : integers (n_columns, n_rows)
        Ordinal codes.
    labels : integers (n_rows,)
        Class codes below ``n_classes``.
    features : uint32 (n_columns,)
        The feature of each column; names its random numbers.
    tree_key : int
        64-bit key of the tree.
    limits : TreeLimits
        Randomization and stopping.
    xlogx : int64 (n_rows + 1,), optional
        The table of :mod:`srs_ooc.trees.response`; needed for entropy.
    rows : integers, optional
        Rows to train on; default all.
    """
    response = Response.classes(labels, n_classes)
    order = np.arange(len(labels), dtype=np.int32) if rows is None else rows.astype(np.int32)
    table = np.zeros(1, dtype=np.int64) if xlogx is None else xlogx
    training = TrainingRows(response, order, *root_of(response, order), table)
    return grow_on(codes, training, features, tree_key, limits)


def grow_on(codes, training, features, tree_key, limits, *, categorical=None, values=None):
    """Grow one tree; :func:`srs_ooc.trees.kernel.grow_tree` returns exactly the same numbers.

    Parameters
    ----------
    codes : unsigned integers (n_columns, n_rows)
        Ordinal codes, or codes of categories; the largest of their type is a missing value.
    training : TrainingRows
        Rows to grow on, and what they say.
    features : uint32 (n_columns,)
        The feature of each column; names its random numbers.
    tree_key : int
        64-bit key of the tree.
    limits : TreeLimits
        Randomization and stopping.
    categorical : bool (n_columns,), optional
        Columns whose codes are categories; default none.
    values : floats (n_columns, n_values), optional
        The value of each code: thresholds are uniform between them. Default between codes.
    """
    missing = int(np.iinfo(codes.dtype).max)
    drawer = Drawer(features, tree_key, categorical, missing, values)
    grower = _Grower(codes, training, drawer, limits)
    root = grower.grow(training.order, tree_key, 0)
    record = encode_tree(root)
    return GrownTree(grower.importance, grower.n_nodes, grower.n_leaves, grower.depth, record)


def grow_forest(codes, training, features, first_key, limits, *, trees, bootstrap=False):
    """Sum the importances of trees; :func:`srs_ooc.trees.kernel.grow_tree` returns the same.

    Tree 0 has ``first_key``, tree t the key ``derive(first_key, 2**32 | t)``. With ``bootstrap`` a
    tree has the rows of :meth:`TrainingRows.resampled`, but its importances are shares of the sum
    of squares in all rows. Other parameters as of :func:`grow_on`.
    """
    total = np.zeros(len(features), np.int64)
    for tree in trees:
        key = first_key if tree == 0 else derive(first_key, 1 << 32 | tree)
        rows = training.resampled(key) if bootstrap else training
        rows = replace(rows, root_scale=training.root_scale)
        total += grow_on(codes, rows, features, key, limits).importance
    return total


class _Grower:
    def __init__(self, codes, training, drawer, limits):
        self.codes, self.response, self.limits = codes, training.response, limits
        self.drawer = drawer
        self.features = features = drawer.features
        self.criterion = Criterion(training, limits.impurity)
        self.by_feature = np.argsort(features, kind="stable")
        self.importance = np.zeros(len(features), dtype=np.int64)
        self.n_nodes = self.n_leaves = self.depth = 0

    def grow(self, rows, key, depth):
        self.n_nodes += 1
        self.depth = max(self.depth, depth)
        total = stats_of(self.response, rows)
        split = None if self._stops(rows, depth) else self._best_split(rows, total, key)
        worth = -1
        if split is not None:
            left = stats_of(self.response, rows[split.goes_left])
            worth = self.criterion.importance(left, total)
        if split is None or worth < self.limits.min_decrease:
            self.n_leaves += 1
            return self._leaf(total)
        self.importance[split.column] += worth
        return Split(
            int(self.features[split.column]),
            split.recorded_code,
            self.grow(rows[split.goes_left], derive(key, Purpose.LEFT), depth + 1),
            self.grow(rows[~split.goes_left], derive(key, Purpose.RIGHT), depth + 1),
            split.how,
            split.hash,
        )

    def _leaf(self, total):
        if self.response.is_regression:
            return TargetLeaf(int(total[0, -2]), int(total[0, -1]))
        return Leaf(tuple((k, int(w)) for k, w in enumerate(total[:, -1].tolist()) if w))

    def _stops(self, rows, depth):
        limits = self.limits
        at_depth = limits.max_depth is not None and depth >= limits.max_depth
        too_few = len(rows) < 2 * limits.min_samples_leaf
        return self._is_pure(rows) or at_depth or too_few

    def _is_pure(self, rows):
        if not self.response.is_regression:
            return len(np.unique(self.response.labels[rows])) < 2
        targets = self.response.channels[-1][rows].astype(np.int64)
        if self.response.n_channels == 2:
            targets = targets // self.response.channels[0][rows]
        return bool((targets == targets[0]).all())

    def _best_split(self, rows, total, key):
        at_node = self.codes[:, rows]
        low, high = at_node.min(axis=1), at_node.max(axis=1)
        order = self.by_feature[random_order(derive(key, Purpose.CANDIDATE), len(self.features))]
        columns = order[low[order] < high[order]][: self.limits.max_features]
        best: Candidate | None = None
        for candidate in self._candidates(columns.tolist(), at_node, key):
            left = stats_of(self.response, rows[candidate.goes_left])
            n_left = int(candidate.goes_left.sum())
            if min(n_left, len(rows) - n_left) >= self.limits.min_samples_leaf:
                scored = replace(candidate, score=self.criterion.score(left, total))
                if best is None or scored.rank > best.rank:
                    best = scored
        return best

    def _candidates(self, columns, at_node, key):
        if self.limits.splitter == "best":
            every = self.drawer.all_at_node(key)
            for column in columns:
                yield from every(column, at_node[column])
            return
        draw = self.drawer.at_node(key)
        for column in columns:
            yield draw(column, at_node[column])
