"""The Python reference of the native kernel: what it computes, stated plainly (law 7).

Growth of one randomized tree on a block of ordinal codes (SRS, Algorithm 1, step 2b):

* At a node, ``max_features`` candidate columns are drawn among those not constant there (all of
  them if they are no more): the first ones in a random order of the columns, drawn by Fisher-Yates
  over the columns by ascending feature.
* A candidate's split is drawn, or all of its splits are tried, as
  :mod:`srs_ooc.trees.reference_splits` tells.
* Candidates that leave fewer than ``min_samples_leaf`` rows on a side are dropped.
* The best candidate has the largest float32 score (:mod:`srs_ooc.trees.reference_scores`); equal
  scores are settled by the larger tie hash, then by the smaller feature number. No rule looks at a
  column's place in the block (law 8).
* A node is split while impure, within its limits, and with a candidate, even if nothing decreases,
  unless the best candidate's importance is below ``min_decrease``.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.seeds import Purpose, derive, derive_array, scale_below
from srs_ooc.trees.forest_reference import Leaf, Split, TargetLeaf, encode_tree
from srs_ooc.trees.reference_scores import Criterion, stats_of
from srs_ooc.trees.reference_splits import Candidate, Drawer
from srs_ooc.trees.response import Response
from srs_ooc.trees.training import TrainingRows, root_of
from srs_ooc.trees.tree import GrownTree, TreeLimits


def draw_distinct(
    key: int, bound: int, excluded: NDArray[np.uint32], count: int
) -> NDArray[np.uint32]:
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


def shuffled(column: NDArray[np.generic], key: int) -> NDArray[np.generic]:
    """Return ``column`` under the random permutation of ``key`` (Fisher-Yates from the end)."""
    out = column.copy()
    counters = np.arange(len(out), dtype=np.uint64)
    hashes = derive_array(key, counters)
    for i in range(len(out) - 1, 0, -1):
        j = int(scale_below(hashes[i : i + 1], i + 1)[0])
        out[i], out[j] = out[j], out[i]
    return out


def random_order(key: int, size: int) -> NDArray[np.int64]:
    """Return ``0 .. size - 1`` in the random order of ``key`` (Fisher-Yates from the front)."""
    order = np.arange(size)
    hashes = derive_array(key, np.arange(size, dtype=np.uint64))
    for i in range(size):
        j = i + int(scale_below(hashes[i : i + 1], size - i)[0])
        order[i], order[j] = order[j], order[i]
    return order


def grow_tree(
    codes: NDArray[np.integer],
    labels: NDArray[np.integer],
    n_classes: int,
    features: NDArray[np.uint32],
    tree_key: int,
    limits: TreeLimits,
    xlogx: NDArray[np.int64] | None = None,
    rows: NDArray[np.integer] | None = None,
) -> GrownTree:
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
        The table of :mod:`srs_ooc.trees.entropy`; needed for entropy.
    rows : integers, optional
        Rows to train on; default all.
    """
    response = Response.classes(labels, n_classes)
    order = np.arange(len(labels), dtype=np.int32) if rows is None else rows.astype(np.int32)
    table = np.zeros(1, dtype=np.int64) if xlogx is None else xlogx
    training = TrainingRows(response, order, *root_of(response, order), table)
    return grow_on(codes, training, features, tree_key, limits)


def grow_on(
    codes: NDArray[np.integer],
    training: TrainingRows,
    features: NDArray[np.uint32],
    tree_key: int,
    limits: TreeLimits,
    *,
    categorical: NDArray[np.bool_] | None = None,
    values: NDArray[np.floating] | None = None,
) -> GrownTree:
    """Grow one tree; :func:`srs_ooc.trees.grow.grow_tree` returns exactly the same numbers.

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


def grow_forest(
    codes: NDArray[np.integer],
    training: TrainingRows,
    features: NDArray[np.uint32],
    first_key: int,
    limits: TreeLimits,
    *,
    trees: range,
    bootstrap: bool = False,
) -> NDArray[np.int64]:
    """Sum the importances of trees; :func:`srs_ooc.trees.grow.grow_forest` returns the same.

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
    def __init__(
        self,
        codes: NDArray[np.integer],
        training: TrainingRows,
        drawer: Drawer,
        limits: TreeLimits,
    ) -> None:
        self.codes, self.response, self.limits = codes, training.response, limits
        self.drawer = drawer
        self.features = features = drawer.features
        self.criterion = Criterion(training, limits.impurity)
        self.by_feature = np.argsort(features, kind="stable")
        self.importance = np.zeros(len(features), dtype=np.int64)
        self.n_nodes = self.n_leaves = self.depth = 0

    def grow(self, rows: NDArray[np.integer], key: int, depth: int) -> Split | Leaf | TargetLeaf:
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

    def _leaf(self, total: NDArray[np.int64]) -> Leaf | TargetLeaf:
        if self.response.is_regression:
            return TargetLeaf(int(total[0, -2]), int(total[0, -1]))
        return Leaf(tuple((k, int(w)) for k, w in enumerate(total[:, -1].tolist()) if w))

    def _stops(self, rows: NDArray[np.integer], depth: int) -> bool:
        limits = self.limits
        at_depth = limits.max_depth is not None and depth >= limits.max_depth
        too_few = len(rows) < 2 * limits.min_samples_leaf
        return self._is_pure(rows) or at_depth or too_few

    def _is_pure(self, rows: NDArray[np.integer]) -> bool:
        if not self.response.is_regression:
            return len(np.unique(self.response.labels[rows])) < 2
        targets = self.response.channels[-1][rows].astype(np.int64)
        if self.response.n_channels == 2:
            targets = targets // self.response.channels[0][rows]
        return bool((targets == targets[0]).all())

    def _best_split(
        self, rows: NDArray[np.integer], total: NDArray[np.int64], key: int
    ) -> Candidate | None:
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

    def _candidates(
        self, columns: list[int], at_node: NDArray[np.integer], key: int
    ) -> Iterator[Candidate]:
        if self.limits.splitter == "best":
            every = self.drawer.all_at_node(key)
            for column in columns:
                yield from every(column, at_node[column])
            return
        draw = self.drawer.at_node(key)
        for column in columns:
            yield draw(column, at_node[column])
