"""RFEST: a learner that scores features by what altering them does to a tree.

On rows that the tree was not grown on. A closing stage that scores so is chosen by ``--closing``.
"""

from math import frexp
from typing import ClassVar

import numpy as np

import srs_ooc.extend as core
from srs_ooc.extend import saved

ROW_NBYTES = 112
"""A row that is drawn, asked about, and sorted by a hash."""


class SensitiveLearner:
    """Grows a tree on as many rows drawn with replacement, and asks it about the others.

    A feature's score in a tree is the mean, over the rows that the tree was not grown on, of the
    loss that altering the feature brings: of the probability of the true class, or of R2. A column
    of codes 0 and 1 alone is flipped; of any other, rows trade codes, by one permutation for all
    columns. Weights of rows count in growing alone.

    Parameters
    ----------
    trees : TreeLearner
        Grows the trees.
    """

    provides: ClassVar[frozenset[str]] = frozenset({core.SENSITIVITY})
    shares: ClassVar[tuple[tuple[float, float], ...]] = ((0.3, 0.7),)
    """One kind of tree, which sees more and more of what is left: losses of several kinds, which
    may be below zero, have no common measure."""

    def __init__(self, trees: core.TreeLearner) -> None:
        self._trees, self._response, self.tiled = trees, trees.rows.response, trees.tiled
        self._exponent, self._spread = 0, 0.0
        self._truth: core.Ints | core.Floats = self._response.labels.astype(np.int64)
        if self._response.is_regression:
            whole = self._response.numbers
            self._exponent = frexp(float(np.abs(whole).max()))[1]
            self._truth = np.ldexp(whole, -self._exponent)
            self._spread = float(((self._truth - self._truth.mean()) ** 2).mean())

    @staticmethod
    def nbytes(n_rows: int) -> int:
        """Return the bytes of rows that a tree is asked about, altered, besides the tree."""
        return 2 * core.WORK_NBYTES + ROW_NBYTES * n_rows

    def drawn(self, key: int) -> tuple["SensitiveLearner", core.Ints32 | None]:
        """Return the same learner for the rows drawn by a key, and these."""
        trees, rows = self._trees.drawn(key)
        return (self if rows is None else SensitiveLearner(trees)), rows

    def fit(
        self, block: core.Block, columns: core.Columns, iteration: core.Iteration
    ) -> core.Outcome:
        """Grow the tree of an iteration on ``columns`` of ``block``; score what it splits on.

        In units of ``2**-36``.
        """
        key, rows = iteration.tree_key, self._trees.rows.resampled(iteration.tree_key)
        grown = self._trees.grow(block, columns, key, rows, record=True)
        assert grown.record is not None
        importance = np.zeros(len(columns.features), np.int64)
        unseen = np.ones(block.n_rows, np.bool_)
        unseen[rows.order] = False
        asked = np.flatnonzero(unseen)
        regression, n_outputs = self._response.is_regression, self._response.n_classes
        ends = np.array([0]), np.array([len(grown.record)])
        tree = saved.decode_trees(grown.record, *ends, regression=regression)
        used = np.unique(tree.feature[tree.feature >= 0])
        places = np.searchsorted(columns.features, used)
        if len(asked) and len(used):
            slot, flips = tree.slots(used), block.largest_codes(places) <= 1
            hashes = core.derive_array(core.derive(key, core.Purpose.ALTERED), asked)
            other = asked[np.argsort(hashes, kind="stable")]
            each_nbytes = core.effects_nbytes(len(used), n_outputs, block.code_nbytes)
            together = max(1, core.WORK_NBYTES // (2 * each_nbytes))
            tally = np.zeros((len(used), 3), np.int64)
            for first in range(0, len(asked), together):
                some = slice(first, first + together)
                codes, altered = (block.codes_at(places, at[some]) for at in (asked, other))
                missing = np.iinfo(codes.dtype).max
                altered[flips] = np.where(codes[flips] == missing, missing, 1 - codes[flips])
                found = saved.Effects(codes.shape[1], len(used), n_outputs)
                saved.add_effects(tree, slot, codes, altered, found, regression=regression)
                saved.tally_changes(found, self._truth[asked[some]], tally, self._exponent)
            importance[places] = tally[:, 2] // len(asked)
            if self._spread:
                limit = 2.0 ** (saved.CHANGE_BITS + 12)
                means = np.floor(tally[:, 2] / len(asked) / self._spread + 0.5)
                importance[places] = np.clip(means, -limit, limit).astype(np.int64)
        return core.Outcome(iteration.features, importance[: len(iteration.features)])
