"""The Python reference of the native kernel: what it computes, stated plainly (law 7).

Growth of one randomized tree on a block of ordinal codes (SRS, Algorithm 1, step 2b):

* At a node, ``max_features`` candidate columns are drawn among those not constant there (all of
  them if they are no more): the first ones in a random order of the columns, drawn by Fisher-Yates
  over the columns by ascending feature.
* A candidate's threshold is uniform over ``low .. high - 1``, its codes' range at the node; codes
  at or below it go left. Uniform in code space, that is in the space of ranks.
* Candidates that leave fewer than ``min_samples_leaf`` rows on a side are dropped.
* The best candidate has the largest float32 score; equal scores are settled by the larger tie
  hash, then by the smaller feature number. No rule looks at a column's place in the block (law 8).
* A node is split while impure, within its limits, and with a candidate, even if nothing decreases.

With ``n`` rows at the node, ``left_k`` of class k's ``count_k`` rows going left and
``D_k = left_k n - count_k n_left``, the weighted Gini decrease is exactly
``sum_k D_k**2 / (n**2 n_left n_right)``: zero if and only if every integer ``D_k`` is zero.
"""

import numpy as np
from numpy.typing import NDArray

from srs_ooc.kernel.entropy import ENTROPY_BITS
from srs_ooc.kernel.forest_reference import Leaf, Split, encode_tree
from srs_ooc.kernel.tree import IMPORTANCE_BITS, GrownTree, TreeLimits
from srs_ooc.seeds import Purpose, derive, derive_array, lane_hashes, scale_below


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
    """Grow one tree; the native kernel returns exactly the same numbers.

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
        The table of :mod:`srs_ooc.kernel.entropy`; needed for entropy.
    rows : integers, optional
        Rows to train on; default all.
    """
    grower = _Grower(codes.astype(np.int64), labels, n_classes, features, tree_key, limits, xlogx)
    root = grower.grow(np.arange(len(labels)) if rows is None else rows, tree_key, 0)
    record = encode_tree(root)
    return GrownTree(grower.importance, grower.n_nodes, grower.n_leaves, grower.depth, record)


class _Grower:
    def __init__(
        self,
        codes: NDArray[np.int64],
        labels: NDArray[np.integer],
        n_classes: int,
        features: NDArray[np.uint32],
        tree_key: int,
        limits: TreeLimits,
        xlogx: NDArray[np.int64] | None,
    ) -> None:
        self.codes, self.labels, self.n_classes = codes, labels, n_classes
        self.features, self.limits, self.xlogx = features, limits, xlogx
        high_halves = derive_array(tree_key, features) >> np.uint64(32)
        self.feature_hashes = high_halves.astype(np.uint32)
        self.by_feature = np.argsort(features, kind="stable")
        self.importance = np.zeros(len(features), dtype=np.int64)
        self.n_root_rows = 0
        self.n_nodes = self.n_leaves = self.depth = 0

    def grow(self, rows: NDArray[np.integer], key: int, depth: int) -> Split | Leaf:
        self.n_root_rows = self.n_root_rows or len(rows)
        self.n_nodes += 1
        self.depth = max(self.depth, depth)
        counts = np.bincount(self.labels[rows], minlength=self.n_classes)
        split = None if self._stops(counts, depth) else self._best_split(rows, counts, key)
        if split is None:
            self.n_leaves += 1
            return Leaf(tuple((k, n) for k, n in enumerate(counts.tolist()) if n))
        column, threshold = split
        goes_left = self.codes[column, rows] <= threshold
        left = np.bincount(self.labels[rows[goes_left]], minlength=self.n_classes)
        self.importance[column] += self._importance(left.tolist(), counts.tolist())
        return Split(
            int(self.features[column]),
            threshold,
            self.grow(rows[goes_left], derive(key, Purpose.LEFT), depth + 1),
            self.grow(rows[~goes_left], derive(key, Purpose.RIGHT), depth + 1),
        )

    def _stops(self, counts: NDArray[np.integer], depth: int) -> bool:
        limits = self.limits
        at_depth = limits.max_depth is not None and depth >= limits.max_depth
        too_few = int(counts.sum()) < 2 * limits.min_samples_leaf
        return bool(np.count_nonzero(counts) < 2 or at_depth or too_few)

    def _best_split(
        self, rows: NDArray[np.integer], counts: NDArray[np.integer], key: int
    ) -> tuple[int, int] | None:
        at_node = self.codes[:, rows]
        low, high = at_node.min(axis=1), at_node.max(axis=1)
        hashes = lane_hashes(self.feature_hashes, key, Purpose.THRESHOLD).astype(np.uint64)
        spread = (high - low).astype(np.uint64)
        thresholds = low + (((hashes >> np.uint64(8)) * spread) >> np.uint64(24)).astype(np.int64)
        ties = lane_hashes(self.feature_hashes, key, Purpose.TIE)
        order = self.by_feature[random_order(derive(key, Purpose.CANDIDATE), len(self.features))]
        candidates = order[low[order] < high[order]][: self.limits.max_features]
        scored = []
        for column in candidates.tolist():
            goes_left = at_node[column] <= thresholds[column]
            left = np.bincount(self.labels[rows[goes_left]], minlength=self.n_classes)
            n_left = int(left.sum())
            if min(n_left, len(rows) - n_left) >= self.limits.min_samples_leaf:
                score = self._score(left.tolist(), counts.tolist())
                scored.append((score, int(ties[column]), -int(self.features[column]), column))
        if not scored:
            return None
        column = max(scored)[3]
        return column, int(thresholds[column])

    def _score(self, left: list[int], counts: list[int]) -> float:
        if self.limits.impurity == "entropy":
            return float(np.float32(self._entropy_gain(left, counts)))
        n, n_left = sum(counts), sum(left)
        total = np.float32(0.0)
        for left_k, count_k in zip(left, counts, strict=True):
            d = np.float32(left_k * n - count_k * n_left)
            total = total + d * d
        return float(total / (np.float32(n_left) * np.float32(n - n_left)))

    def _entropy_gain(self, left: list[int], counts: list[int]) -> int:
        assert self.xlogx is not None
        n, n_left = sum(counts), sum(left)
        table = [int(x) for x in self.xlogx]
        gain = table[n] - table[n_left] - table[n - n_left]
        for left_k, count_k in zip(left, counts, strict=True):
            gain += table[left_k] + table[count_k - left_k] - table[count_k]
        changed = any(a * n != c * n_left for a, c in zip(left, counts, strict=True))
        return max(gain, 1) if changed else 0

    def _importance(self, left: list[int], counts: list[int]) -> int:
        """Return the split's term of Eq. 1, ``p(t) Delta i``, in units of ``2**-36``."""
        n, n_left = sum(counts), sum(left)
        if self.limits.impurity == "entropy":
            decrease = self._entropy_gain(left, counts)
            share = float(decrease) / float(1 << ENTROPY_BITS) / float(self.n_root_rows)
        else:
            decrease = sum((a * n - c * n_left) ** 2 for a, c in zip(left, counts, strict=True))
            sides = float(n_left) * float(n - n_left)
            share = float(decrease) / sides / float(n) / float(self.n_root_rows)
        return max(round(share * float(1 << IMPORTANCE_BITS)), 1) if decrease else 0
