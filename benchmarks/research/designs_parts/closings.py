"""Closing stages: how the survivors of a screen are ranked among themselves."""

from dataclasses import dataclass, replace
from functools import partial
from math import floor
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from designs_parts.measures import Measure, rows_by_node
from srs_ooc.base.records import Iteration, Outcome
from srs_ooc.base.seeds import derive, derive_array
from srs_ooc.learners.tree_learner import Columns, tree_key
from srs_ooc.runs.engine import Engine, ThreadExecutor, fit_iteration
from srs_ooc.runs.ledger import TransientLedger
from srs_ooc.runs.resources import Resources
from srs_ooc.runs.survey import largest_decoy_cluster
from srs_ooc.samplers.base import IMPORTANCE
from srs_ooc.samplers.elimination import SURVIVORS, TREES, Elimination
from srs_ooc.store.store import ReadAhead
from srs_ooc.trees.block import Block
from srs_ooc.trees.kernel import grow_tree
from srs_ooc.trees.response import IMPORTANCE_BITS, TrainingRows, TreeLimits, root_of
from srs_ooc.trees.saved import Trees, decode_trees

ALL = int(np.iinfo(np.int64).max)
"""K where every column is a candidate."""
HALF = 1 << 33
"""Word under which a tree's half of the rows is drawn; no feature, purpose or tree has it."""


@dataclass(frozen=True)
class Closing:
    """One way to close.

    Attributes
    ----------
    name, label : str
        In files, and in tables.
    shares : tuple of (float, float)
        Part of the items that a tree sees, of each kind, in the first round and in the last.
    leaf_share : float
        Least rows of a leaf, as a part of the training rows.
    n_survivors : int
        Items that enter.
    sizes : tuple of int
        Items that rounds begin with; none for halving.
    k_share : float
        K as a part of the columns a tree sees, ...
    k_rounds : int
        ... in so many last rounds; everything is a candidate in the others.
    max_depth : int or None
        Depth at which nodes are leaves.
    trees : int
        Grown on each subspace.
    half : bool
        Whether each tree is grown on a random half of the rows, without replacement.
    measure : Measure or None
        What is tallied; None for the kernel's own importances.
    """

    name: str
    label: str
    shares: tuple[tuple[float, float], ...] = ((0.3, 0.3),)
    leaf_share: float = 0.0
    n_survivors: int = SURVIVORS
    sizes: tuple[int, ...] = ()
    k_share: float = 1.0
    k_rounds: int = ALL
    max_depth: int | None = None
    trees: int = 1
    half: bool = False
    measure: Measure | None = None

    def run(
        self, resources: Resources, survivors: NDArray[np.uint32], key: int
    ) -> dict[str, NDArray[Any]]:
        """Close, and return what is kept of it.

        Parameters
        ----------
        resources : Resources
            Of the screen.
        survivors : uint32 (n,)
            Its best items, best first.
        key : int
            64-bit key of the stage.

        Returns
        -------
        dict
            ``items``, uint32 (n,), by rank, and ``largest``, the c.
        """
        most = min(resources.spec.subspace_size, SURVIVORS)
        stage = Elimination(survivors[: self.n_survivors], key, self.shares, most)
        if self.sizes:
            stage.sizes = [min(size, len(stage.items)) for size in self.sizes]
        block, grower = resources.blocks[0], Grower(self, resources, len(stage.sizes))
        block.use_tiles()
        with ReadAhead(resources.source.columns) as ahead:
            executor = ThreadExecutor(
                partial(fit_iteration, resources.source, grower), [block], ahead
            )
            engine = Engine(stage, executor, TransientLedger(), seed=key, round_size=TREES)
            engine.advance(stage.n_trees)
            executor.close()
        largest = largest_decoy_cluster(resources, stage.items, 0)
        return {"items": stage.items, "largest": np.array(largest)}


class Grower:
    """The learner of a closing stage; for one thread.

    Parameters
    ----------
    closing : Closing
        How.
    resources : Resources
        Where columns and rows come from.
    n_rounds : int
        Rounds of the stage.
    """

    provides: ClassVar[frozenset[str]] = frozenset({IMPORTANCE})

    def __init__(self, closing: Closing, resources: Resources, n_rounds: int) -> None:
        self._closing, self._source, self._rows = closing, resources.source, resources.trees.rows
        self._first_late = n_rounds - closing.k_rounds
        self._columns = Block(resources.spec.subspace_size, resources.n_rows, 1, tiled=False)
        spec, leaf = resources.spec, floor(closing.leaf_share * resources.n_rows)
        leaf = max(spec.learner.min_samples_leaf, leaf)
        limits = replace(spec.limits, max_features=ALL, min_samples_leaf=leaf)
        self._limits = limits
        if closing.max_depth is not None:
            self._limits = replace(limits, max_depth=closing.max_depth)

    def fit(self, block: Block, columns: Columns, iteration: Iteration) -> Outcome:
        """Grow the trees of an iteration and return what they taught."""
        features, limits = columns.features, self._limits
        k_share, is_late = self._closing.k_share, iteration.number // TREES >= self._first_late
        if is_late and k_share < 1:
            limits = replace(limits, max_features=max(1, floor(k_share * len(features))))
        importance = np.zeros(len(features), np.int64)
        for number in range(self._closing.trees):
            key = tree_key(iteration.tree_key, number)
            importance += self._one(block, features, key, limits)
        return Outcome(features, importance)

    def _one(
        self, block: Block, features: NDArray[np.uint32], key: int, limits: TreeLimits
    ) -> NDArray[np.int64]:
        closing = self._closing
        rows = half_of(self._rows, key) if closing.half else self._rows
        records = closing.measure is not None
        grown = grow_tree(block, features, rows, key, limits, record=records)
        if closing.measure is None:
            return grown.importance
        record = grown.record or b""
        tree = decode_trees(record, np.array([0], np.int64), np.array([len(record)], np.int64))
        return self._measured(closing.measure, tree, features, rows)

    def _measured(
        self, measure: Measure, tree: Trees, features: NDArray[np.uint32], rows: TrainingRows
    ) -> NDArray[np.int64]:
        response = rows.response
        others = np.setdiff1d(self._rows.order, rows.order)
        self._source.gather(features, self._columns)
        codes = self._columns.as_columns(len(features))
        place = np.searchsorted(features, tree.feature)
        labels, n_classes = response.labels, response.n_classes
        grown, left_out = (
            rows_by_node(tree, codes, place, some, labels, n_classes)
            for some in (rows.order, others)
        )
        decrease, is_split = measure(tree, grown, left_out), tree.feature >= 0
        sums = np.bincount(place[is_split], decrease[is_split], minlength=len(features))
        return np.rint(np.ldexp(sums, IMPORTANCE_BITS)).astype(np.int64)


def half_of(rows: TrainingRows, tree_key: int) -> TrainingRows:
    """Return a random half of the rows, in the order they had."""
    n = len(rows.order)
    hashes = derive_array(derive(tree_key, HALF), np.arange(n, dtype=np.uint64))
    order = rows.order[np.sort(np.argsort(hashes)[: n // 2])]
    stats, scale = root_of(rows.response, order)
    return TrainingRows(rows.response, order, stats, scale, rows.xlogx)
