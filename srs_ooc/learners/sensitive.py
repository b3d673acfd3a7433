"""A learner that scores items by what altering them does to a tree, on rows it was not grown on."""

from math import frexp
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.records import Iteration, Outcome
from srs_ooc.base.seeds import Purpose, derive, derive_array
from srs_ooc.base.text import MB
from srs_ooc.learners.base import Columns
from srs_ooc.learners.trees import TreeLearner
from srs_ooc.samplers.base import SENSITIVITY
from srs_ooc.trees.block import Block
from srs_ooc.trees.saved import (
    CHANGE_BITS,
    Effects,
    Trees,
    add_effects,
    decode_trees,
    row_nbytes,
    tally_classes,
    tally_targets,
)

WORK_NBYTES = 4 * MB
"""Memory for rows that a tree is asked about together."""


class SensitiveLearner:
    """Grows a tree on as many rows drawn with replacement, and asks it about the others.

    An item's score in a tree is the mean, over the rows that the tree was not grown on, of the loss
    that altering the item brings: of the probability of the true class, or of R2. A column of codes
    0 and 1 alone is flipped; of any other, rows trade codes, by one permutation for all columns. A
    decoy has the codes of its feature in another order, so that both are altered in the same way.
    Weights of rows count in growing alone.

    Parameters
    ----------
    trees : TreeLearner
        Grows the trees.
    """

    provides: ClassVar[frozenset[str]] = frozenset({SENSITIVITY})

    def __init__(self, trees: TreeLearner) -> None:
        self._trees = trees
        self.tiled = trees.tiled
        response = trees.rows.response
        self._exponent, self._spread = 0, 0.0
        self._labels = response.labels.astype(np.int64)
        self._targets = np.zeros(0)
        if response.is_regression:
            sums = response.channels[-1].astype(np.float64)
            whole = sums if response.n_channels == 1 else sums / response.channels[0]
            self._exponent = frexp(float(np.abs(whole).max()))[1]
            self._targets = np.ldexp(whole, -self._exponent)
            self._spread = float(((self._targets - self._targets.mean()) ** 2).mean())

    def fit(self, block: Block, columns: Columns, iteration: Iteration) -> Outcome:
        """Grow the tree of an iteration on ``columns`` of ``block``; score what it splits on."""
        key, rows = iteration.tree_key, self._trees.rows.resampled(iteration.tree_key)
        grown = self._trees.grow_on(block, columns, rows, key)
        assert grown.record is not None
        importance = np.zeros(len(columns.features), np.int64)
        unseen = np.ones(block.n_rows, np.bool_)
        unseen[rows.order] = False
        asked = np.flatnonzero(unseen)
        stops = np.array([len(grown.record)], np.int64)
        is_regression = rows.response.is_regression
        tree = decode_trees(grown.record, np.zeros(1, np.int64), stops, regression=is_regression)
        used = np.unique(tree.feature[tree.feature >= 0])
        if len(asked) and len(used):
            places = np.searchsorted(columns.features, used)
            importance[places] = self._scores(block, places, tree, used, asked, key)
        return Outcome(iteration.features, importance[: len(iteration.features)])

    def _scores(
        self,
        block: Block,
        places: NDArray[np.intp],
        tree: Trees,
        used: NDArray[np.int64],
        asked: NDArray[np.intp],
        key: int,
    ) -> NDArray[np.int64]:
        """Return the score of each column that a tree uses, in units of ``2**-36``."""
        slot = np.where(tree.feature >= 0, np.searchsorted(used, tree.feature), tree.feature)
        hashes = derive_array(derive(key, Purpose.ALTERED), asked)
        other = asked[np.argsort(hashes, kind="stable")]
        n_outputs, code_nbytes = self._trees.rows.response.n_classes, block.code_nbytes
        together = max(1, WORK_NBYTES // (2 * row_nbytes(len(used), n_outputs, code_nbytes)))
        flips = block.largest_codes(places) <= 1
        tally = np.zeros((len(used), 3), np.int64)
        for first in range(0, len(asked), together):
            some = slice(first, first + together)
            rows = asked[some]
            codes, altered = block.codes_at(places, rows), block.codes_at(places, other[some])
            missing = np.iinfo(codes.dtype).max
            altered[flips] = np.where(codes[flips] == missing, missing, 1 - codes[flips])
            found = Effects.none(len(rows), len(used), n_outputs)
            is_regression = self._trees.rows.response.is_regression
            add_effects(tree, slot, codes, altered, found, regression=is_regression)
            if is_regression:
                tally_targets(found, self._targets[rows], self._exponent, tally)
            else:
                tally_classes(found, self._labels[rows], tally)
        return self._means(tally[:, 2], len(asked))

    def _means(self, sums: NDArray[np.int64], n_rows: int) -> NDArray[np.int64]:
        if not self._spread:
            return sums // n_rows
        means = np.floor(sums / n_rows / self._spread + 0.5)
        limit = 2.0 ** (CHANGE_BITS + 12)
        found: NDArray[np.int64] = np.clip(means, -limit, limit).astype(np.int64)
        return found
