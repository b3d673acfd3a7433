"""The Python reference of what a split is worth.

A node holds rows of classes k, of weight ``all_k`` in total ``all``; ``left_k`` of it, ``left`` in
total, would go left. (Without weights every row weighs 1.)

* Gini: with ``D_k = left_k all - all_k left`` the weighted decrease is exactly
  ``sum_k D_k**2 / (all**2 left right)``: zero if and only if every integer ``D_k`` is zero.
* Variance: with sums of targets S and ``D = S_left all - S left``, the sum of squares decreases by
  exactly ``D**2 / (all left right)``: zero if and only if the integer D is zero.
* Entropy comes from a table of ``x log2 x`` (:mod:`srs_ooc.trees.entropy`).
"""

import numpy as np
from numpy.typing import NDArray

from srs_ooc.trees.entropy import ENTROPY_BITS
from srs_ooc.trees.response import Response
from srs_ooc.trees.training import TrainingRows
from srs_ooc.trees.tree import IMPORTANCE_BITS


def stats_of(response: Response, rows: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return rows of each class and the sums of their channels; int64 (n_classes, 1 + channels)."""
    stats = np.zeros((response.n_classes, 1 + response.n_channels), dtype=np.int64)
    labels = response.labels[rows]
    stats[:, 0] = np.bincount(labels, minlength=response.n_classes)
    for c, channel in enumerate(response.channels):
        np.add.at(stats[:, 1 + c], labels, channel[rows])
    return stats


class Criterion:
    """Scores and importances of splits, from the numbers of a node and of its left side."""

    def __init__(self, training: TrainingRows, impurity: str) -> None:
        self.impurity, self.root_scale = impurity, training.root_scale
        self.xlogx = training.xlogx

    def _weight(self, stats: NDArray[np.int64]) -> int:
        return int(stats[:, -2 if self.impurity == "variance" else -1].sum())

    def _differences(self, left: NDArray[np.int64], total: NDArray[np.int64]) -> list[int]:
        """Return D, or each ``D_k`` of the classes with rows at the node."""
        weight, whole = self._weight(left), self._weight(total)
        present = total[:, 0] > 0
        pairs = zip(left[present, -1].tolist(), total[present, -1].tolist(), strict=True)
        return [a * whole - b * weight for a, b in pairs]

    def score(self, left: NDArray[np.int64], total: NDArray[np.int64]) -> float:
        """Return the float32 that candidates are compared by, each operation rounded once."""
        if self.impurity == "entropy":
            return float(np.float32(self._entropy_gain(left, total)))
        weight, whole = self._weight(left), self._weight(total)
        score = np.float32(0.0)
        for difference in self._differences(left, total):
            d = np.int64(difference).astype(np.float32)
            score = score + d * d
        return float(score / (np.float32(weight) * np.float32(whole - weight)))

    def _entropy_gain(self, left: NDArray[np.int64], total: NDArray[np.int64]) -> int:
        n, n_left = self._weight(total), self._weight(left)

        def x_log_x(x: int) -> int:
            return int(self.xlogx[x])

        gain = x_log_x(n) - x_log_x(n_left) - x_log_x(n - n_left)
        for left_k, count_k in zip(left[:, 0].tolist(), total[:, 0].tolist(), strict=True):
            gain += x_log_x(left_k) + x_log_x(count_k - left_k) - x_log_x(count_k)
        return max(gain, 1) if any(self._differences(left, total)) else 0

    def importance(self, left: NDArray[np.int64], total: NDArray[np.int64]) -> int:
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
