"""The tree learner: randomized trees on a subspace (Algorithm 1, step 2b)."""

from dataclasses import replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.files import Recent
from srs_ooc.base.records import Candidates, Iteration, Outcome, RowSplit
from srs_ooc.base.seeds import derive
from srs_ooc.learners.base import Columns
from srs_ooc.samplers.base import IMPORTANCE, LOSS, PREDICTIONS
from srs_ooc.trees.block import Block
from srs_ooc.trees.kernel import (
    Predict,
    Said,
    grow_and_ask,
    grow_tree,
    judge_all_at_once,
    judge_one_by_one,
    scratch_nbytes,
    takes_all_at_once,
)
from srs_ooc.trees.response import GrownTree, TrainingRows, TreeLimits

MORE_TREES = 1 << 32
"""Part of the words under which further trees on a subspace have their keys."""
MOST_SPLITS = 8
"""Splits of the rows whose training rows are kept: samplers ask for many models of one in turn."""
PROBE_FEATURE = 0xFFFFFFFF
"""The number that names an added column's random draws; no feature has it."""


class TreeLearner:
    """Grows randomized trees on each subspace and sums what they teach.

    Where a subspace splits the rows, its trees are grown on some and predict others. Where it holds
    candidates, each is judged by its held-out loss; their trees' importances are not summed.

    Parameters
    ----------
    rows : TrainingRows
        Rows to grow on, with their classes.
    limits : TreeLimits
        K and the stopping rules.
    subspace_size : int
        q. With K = q every column of the block is a candidate, an added probe included.
    n_trees : int
        Trees on each subspace.
    records : bool
        Return the trees themselves too.
    bootstrap : bool
        Grow each tree on as many rows drawn with replacement.
    n_threads : int
        Threads that share the columns of a large node; they change nothing but speed.
    categorical : bool (n_features,), optional
        Features of the store whose codes are categories; default none.
    candidates : bool
        Subspaces hold small candidates, whose columns are best read one by one.
    """

    provides: ClassVar[frozenset[str]] = frozenset({IMPORTANCE, LOSS, PREDICTIONS})

    def __init__(
        self,
        rows: TrainingRows,
        limits: TreeLimits,
        subspace_size: int,
        n_trees: int = 1,
        *,
        records: bool = False,
        bootstrap: bool = False,
        n_threads: int = 1,
        categorical: NDArray[np.bool_] | None = None,
        candidates: bool = False,
    ) -> None:
        self.rows, self.limits, self.records = rows, limits, records
        self.bootstrap, self.categorical = bootstrap, categorical
        self.n_threads, self.n_trees = n_threads, n_trees
        self._splits = Recent[int, tuple[RowSplit, TrainingRows]](MOST_SPLITS)
        self.tiled = not candidates and wants_tiles(limits.max_features, subspace_size)
        if limits.max_features == subspace_size:
            self.limits = replace(limits, max_features=int(np.iinfo(np.int64).max))

    def with_limits(self, limits: TreeLimits, subspace_size: int) -> "TreeLearner":
        """Return the same learner for one tree of other limits on other subspaces, not recorded."""
        return TreeLearner(
            self.rows,
            limits,
            subspace_size,
            bootstrap=self.bootstrap,
            n_threads=self.n_threads,
            categorical=self.categorical,
        )

    def fit(self, block: Block, columns: Columns, iteration: Iteration) -> Outcome:
        """Grow the trees of an iteration on ``columns`` of ``block``; sum their importances.

        That of the probe, the column after those of the subspace, is summed apart.
        """
        features, split = iteration.features, iteration.subspace.split
        if iteration.subspace.candidates is not None:
            return self._judge(block, columns, iteration.subspace.candidates, iteration.tree_key)
        if split is not None:
            return self._fit_and_predict(block, columns, iteration, split)
        importance = np.zeros(len(columns.features), dtype=np.int64)
        records = []
        for number in range(self.n_trees):
            key = tree_key(iteration.tree_key, number)
            grown = self._grow(block, columns, self.rows, key, record=self.records)
            importance += grown.importance
            if grown.record is not None:
                records.append(grown.record)
        probe = None if iteration.probe is None else int(importance[-1])
        return Outcome(features, importance[: len(features)], probe, tuple(records))

    def _fit_and_predict(
        self, block: Block, columns: Columns, iteration: Iteration, split: RowSplit
    ) -> Outcome:
        """Grow the trees of an iteration on some rows; return their mean prediction of others.

        In the units of the target less its center.
        """
        rows, keeps = self._fitted(split), self.records and iteration.subspace.in_ensemble
        response, records = rows.response, []
        importance = np.zeros(len(columns.features), dtype=np.int64)
        shares = np.zeros((len(split.predicted), response.n_classes))
        for number in range(self.n_trees):
            key = tree_key(iteration.tree_key, number)
            said, record = self._ask(block, columns, rows, split, key, records=keeps)
            importance += said.importance
            shares += said.shares
            if record is not None:
                records.append(record)
        shares /= self.n_trees * (1.0 if response.scale is None else response.scale)
        probe = None if iteration.probe is None else int(importance[-1])
        return Outcome(
            iteration.features,
            importance[: len(iteration.features)],
            probe,
            tuple(records),
            predictions=shares[None].astype(np.float32),
        )

    def _ask(
        self,
        block: Block,
        columns: Columns,
        rows: TrainingRows,
        split: RowSplit,
        key: int,
        *,
        records: bool = False,
    ) -> tuple[Said, bytes | None]:
        """Return what a tree says of the rows that a split predicts, and itself where wanted."""
        return grow_and_ask(
            block,
            columns.features,
            rows.resampled(key) if self.bootstrap else rows,
            split.predicted,
            key,
            self.limits,
            categorical=self._categories(columns),
            n_threads=self.n_threads,
            records=records,
        )

    def _judge(self, block: Block, columns: Columns, candidates: Candidates, key: int) -> Outcome:
        """Return the held-out loss of each candidate; all are grown under the same keys."""
        found, response = None, self.rows.response
        widest = int(np.diff(candidates.bounds).max())
        if (
            self.n_trees == 1
            and not self.bootstrap
            and self._categories(columns) is None
            and takes_all_at_once(block, response, self.limits, widest)
        ):
            keys = [tree_key(key, number) for number in range(len(candidates.splits))]
            keys_array = np.array(keys, np.uint64)
            found = judge_all_at_once(
                block, columns.features, candidates, response, keys_array, self.limits
            )
        if found is None:
            found = judge_one_by_one(candidates, response, self._alone(block, columns, key))
        none = np.zeros(len(columns.features), np.int64)
        return Outcome(columns.features, none, losses=found[0])

    def _alone(self, block: Block, columns: Columns, key: int) -> Predict:
        """Return what grows the trees of a candidate on a split, and has them predict."""

        def predict(places: NDArray[np.int32], split: RowSplit, number: int) -> NDArray[np.float64]:
            own, rows = block.only(places), self.rows.only(split.fitted)
            some = Columns(columns.features[places], columns.sources[places])
            shares = np.zeros((len(split.predicted), rows.response.n_classes))
            for t in range(number * self.n_trees, (number + 1) * self.n_trees):
                shares += self._ask(own, some, rows, split, tree_key(key, t))[0].shares
            return shares / self.n_trees

        return predict

    def _fitted(self, split: RowSplit) -> TrainingRows:
        """Return the rows that a split is fitted on; a sampler has few splits at a time."""

        def made() -> tuple[RowSplit, TrainingRows]:
            return split, self.rows.only(split.fitted)  # held, so that no other has its id

        return self._splits.get(id(split), made)[1]

    def grow(self, block: Block, features: NDArray[np.uint32], tree_key: int) -> GrownTree:
        """Grow a tree on the first columns of ``block``.

        Parameters
        ----------
        block : Block
            The codes.
        features : uint32 (n_columns,)
            The feature of each column.
        tree_key : int
            64-bit key of the tree.
        """
        columns = Columns(features, features)
        return self._grow(block, columns, self.rows, tree_key, record=self.records)

    def grow_on(
        self, block: Block, columns: Columns, rows: TrainingRows, tree_key: int
    ) -> GrownTree:
        """Grow a tree on ``rows`` of the first columns of ``block``, and record it."""
        return self._grow(block, columns, rows, tree_key, record=True, resample=False)

    def _grow(
        self,
        block: Block,
        columns: Columns,
        rows: TrainingRows,
        tree_key: int,
        *,
        record: bool,
        resample: bool = True,
    ) -> GrownTree:
        rows = rows.resampled(tree_key) if self.bootstrap and resample else rows
        return grow_tree(
            block,
            columns.features,
            rows,
            tree_key,
            self.limits,
            record=record,
            categorical=self._categories(columns),
            n_threads=self.n_threads,
        )

    def _categories(self, columns: Columns) -> NDArray[np.bool_] | None:
        """Return which columns hold categories; None if none does."""
        if self.categorical is None:
            return None
        flags = self.categorical[columns.sources]
        return flags if flags.any() else None


def tree_key(first: int, number: int) -> int:
    """Return the key of tree ``number`` (from 0) on a subspace whose first tree has key ``first``.

    The word is one that neither a feature nor a purpose has.
    """
    return first if number == 0 else derive(first, MORE_TREES | number)


def wants_tiles(max_features: int, subspace_size: int) -> bool:
    """Return whether a block is best laid out in tiles: where most columns are candidates.

    Up to about q / 20 candidates a node, reading single columns is faster (measured at n = 1,000,
    q = 2,500: ``benchmarks/bench_tree.py`` shows both ends).
    """
    return 20 * max_features > subspace_size


def learner_nbytes(
    n_rows: int, n_columns: int, n_classes: int, code_nbytes: int, n_channels: int = 0
) -> int:
    """Return the scratch bytes of growing one tree with random splits."""
    return scratch_nbytes(n_rows, n_columns, n_classes, code_nbytes, n_channels)


def searching_nbytes(n_rows: int, n_classes: int, n_channels: int, splitter: str) -> int:
    """Return the scratch bytes that best splits take besides."""
    shape = n_rows, 1, n_classes, 1, n_channels
    return scratch_nbytes(*shape, best=splitter == "best") - scratch_nbytes(*shape)


def thread_nbytes(
    n_rows: int, n_columns: int, n_classes: int, code_nbytes: int, n_channels: int, splitter: str
) -> int:
    """Return the most scratch bytes of one more thread that works on a tree."""
    shape = n_rows, n_columns, n_classes, code_nbytes, n_channels
    best = splitter == "best"
    return scratch_nbytes(*shape, best=best, n_threads=2) - scratch_nbytes(*shape, best=best)
