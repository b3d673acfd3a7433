"""How well a few features predict rows held out: a forest of the run's own kind of trees."""

import math
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.records import Iteration, Outcome, Subspace
from srs_ooc.base.seeds import Purpose, derive
from srs_ooc.learners.tree_learner import TreeLearner
from srs_ooc.runs.engine import Executor, ThreadExecutor, fit_iteration
from srs_ooc.runs.resources import Resources
from srs_ooc.store.store import ReadAhead
from srs_ooc.trees.block import Block
from srs_ooc.trees.saved import Trees, add_shares, decode_trees

N_TREES = 300
MOST_HELD_OUT = 1 << 14
"""Rows predicted, at most; evenly spaced ones of more. Accuracy is then known to within 0.004."""


class HeldOut:
    """Rows held out, predicted by forests on a few features each.

    Parameters
    ----------
    parts : Resources
        Of the training rows; made with ``saves``, so that there is room for a tree's record.
    rows : int32 (n,)
        Rows of the store that are held out.
    target : (n,)
        Their class codes, or numbers.
    """

    def __init__(
        self,
        parts: Resources,
        rows: NDArray[np.int32],
        target: NDArray[np.integer] | NDArray[np.floating],
    ) -> None:
        chosen = np.linspace(0, len(rows) - 1, min(len(rows), MOST_HELD_OUT)).astype(np.intp)
        self._parts, self._manifest = parts, parts.manifest
        self._rows, self._target = rows[chosen], target[chosen]

    @staticmethod
    def nbytes(n_rows: int, n_columns: int, n_classes: int, code_nbytes: int) -> int:
        """Return the bytes that predicting takes, besides the forest's block and a tree."""
        n_rows = min(n_rows, MOST_HELD_OUT)
        return n_rows * (n_columns * (2 * code_nbytes + 8) + 16 * n_classes)

    def score(self, features: NDArray[np.uint32], key: int) -> float:
        """Return the share of rows predicted right, or of the variance of numbers.

        Parameters
        ----------
        features : uint32 (k,)
            Stored positions, in any order.
        key : int
            64-bit key of the forest.
        """
        response = self._parts.response
        features = np.sort(features)
        shares = np.zeros((len(self._rows), response.n_classes))
        panel = self._panel(features)
        for trees in self._forest(features, key):
            slot = trees.feature.copy()
            at_split = slot >= 0
            slot[at_split] = np.searchsorted(features, slot[at_split])
            codes = trees.code.astype(np.float64)
            add_shares(trees, slot, codes, panel, shares, self._manifest.code_nbytes)
        if response.center is None or response.scale is None:
            return float(np.mean(np.argmax(shares, axis=1) == self._target))
        predicted = response.center + shares[:, 0] / N_TREES / response.scale
        return share_explained(self._target.astype(np.float64), predicted)

    def _panel(self, features: NDArray[np.uint32]) -> NDArray[np.float64]:
        block = Block(len(features), len(self._rows), self._manifest.code_nbytes, tiled=False)
        self._parts.source.columns.gather(features, block, self._rows)
        codes = block.as_columns(len(features))
        panel = codes.astype(np.float64)
        panel[codes == self._manifest.missing_code] = np.nan
        return panel

    def _forest(self, features: NDArray[np.uint32], key: int) -> Iterator[Trees]:
        """Yield the trees one by one, in order."""
        parts = self._parts
        limits = replace(parts.spec.limits, max_features=math.isqrt(len(features) - 1) + 1)
        learner = TreeLearner(
            parts.trees.rows,
            limits,
            limits.max_features + 1,  # so that max_features is taken as it is
            records=True,
            categorical=parts.trees.categorical,
        )
        for block in parts.blocks:
            block.use_tiles()
        with ReadAhead(parts.source.columns) as ahead:
            fit = partial(fit_iteration, parts.source, learner)
            executor = ThreadExecutor(fit, parts.blocks, ahead)
            try:
                for outcome in _in_order(executor, features, key):
                    yield _decoded(outcome, regression=parts.response.is_regression)
            finally:
                executor.close()


def share_explained(target: NDArray[np.float64], predicted: NDArray[np.float64]) -> float:
    """Return the coefficient of determination; 0 where the target is constant."""
    spread = float(((target - target.mean()) ** 2).sum())
    return 1.0 - float(((target - predicted) ** 2).sum()) / spread if spread > 0 else 0.0


def _in_order(executor: Executor, features: NDArray[np.uint32], key: int) -> Iterator[Outcome]:
    pending: deque[Future[Outcome]] = deque()
    for number in range(N_TREES):
        tree_key = derive(derive(key, number), Purpose.TREE)
        pending.append(executor.submit(Iteration(number, Subspace(features), tree_key)))
        if len(pending) >= executor.max_ahead:
            yield pending.popleft().result()
    while pending:
        yield pending.popleft().result()


def _decoded(outcome: Outcome, *, regression: bool) -> Trees:
    data = outcome.trees[0]
    ends = np.array([0]), np.array([len(data)])
    return decode_trees(data, *ends, regression=regression)
