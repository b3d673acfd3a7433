"""Closing stages: how the survivors of a screen are ranked among themselves."""

from dataclasses import dataclass, replace
from math import floor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from designs_parts.measures import Measure, rows_by_node
from srs_ooc.evidence.elimination import COUNTING, SURVIVORS, TREES, Elimination, Manner
from srs_ooc.evidence.groups import group_items, largest_groups
from srs_ooc.fitting import EngineParts
from srs_ooc.kernel.block import Block
from srs_ooc.kernel.forest import Trees, decode_trees
from srs_ooc.kernel.native import grow_tree
from srs_ooc.kernel.training import TrainingRows, root_of
from srs_ooc.kernel.tree import IMPORTANCE_BITS
from srs_ooc.records import Outcome, Subspace
from srs_ooc.seeds import derive, derive_array
from srs_ooc.survey import GROUPED

ALL = int(np.iinfo(np.int64).max)
"""K where every column is a candidate."""
LATE_ROUNDS = 2
HALF = 1 << 33
"""Word under which a tree's half of the rows is drawn; no feature, purpose or tree has it."""


@dataclass(frozen=True)
class Closing:
    """One way to close.

    Attributes
    ----------
    name, label : str
        In files, and in tables.
    manner : Manner
        Part of the items that a tree sees, and least rows of a leaf.
    n_survivors : int
        Items that enter.
    is_halved : bool
        Whether the lower half leaves, round after round; else there is one round.
    late_share : float
        K in the last two rounds, as a part of the columns a tree sees.
    half : bool
        Whether each tree is grown on a random half of the rows, without replacement.
    measure : Measure or None
        What is tallied; None for the kernel's own importances.
    """

    name: str
    label: str
    manner: Manner = COUNTING
    n_survivors: int = SURVIVORS
    is_halved: bool = True
    late_share: float = 1.0
    half: bool = False
    measure: Measure | None = None

    def run(
        self, parts: EngineParts, survivors: NDArray[np.uint32], key: int
    ) -> dict[str, NDArray[Any]]:
        """Close, and return what is kept of it.

        Parameters
        ----------
        parts : EngineParts
            Of the screen.
        survivors : uint32 (n,)
            Its best items, best first.
        key : int
            64-bit key of the stage.

        Returns
        -------
        dict
            ``items``, uint32 (n,), by rank, and ``largest``, int64 (n,): the c of each place.
        """
        most = min(parts.spec.subspace_size, SURVIVORS)
        stage = Elimination(survivors[: self.n_survivors], key, self.manner, most)
        if not self.is_halved:
            stage.sizes = stage.sizes[:1]
        grower = Grower(self, parts)
        while not stage.is_over:
            is_late = stage.round >= len(stage.sizes) - LATE_ROUNDS
            for tree in range(TREES):
                stage.add(grower.grow(stage.subspace(tree), is_late=is_late))
        return {"items": stage.items, "largest": largest_by_place(parts, stage.items)}


class Grower:
    """Grows the trees of a closing stage in the block of its engine, which must be at rest.

    Parameters
    ----------
    closing : Closing
        How.
    parts : EngineParts
        Where columns and rows come from.
    """

    def __init__(self, closing: Closing, parts: EngineParts) -> None:
        self._closing, self._source, self._rows = closing, parts.source, parts.learner.rows
        self._block = parts.blocks[0]
        self._block.use_tiles()
        self._columns = Block(parts.spec.subspace_size, parts.n_rows, 1, tiled=False)
        leaf = max(parts.spec.min_samples_leaf, floor(closing.manner.leaf_share * parts.n_rows))
        self._limits = replace(parts.spec.limits, max_features=ALL, min_samples_leaf=leaf)

    def grow(self, subspace: Subspace, *, is_late: bool) -> Outcome:
        """Grow a tree and return what it taught."""
        closing, features = self._closing, subspace.features
        self._source.gather(features, self._block)
        rows = half_of(self._rows, subspace.tree_key) if closing.half else self._rows
        limits = self._limits
        if is_late and closing.late_share < 1:
            limits = replace(limits, max_features=max(1, floor(closing.late_share * len(features))))
        records = closing.measure is not None
        grown = grow_tree(self._block, features, rows, subspace.tree_key, limits, record=records)
        importance = grown.importance
        if closing.measure is not None:
            record = grown.record or b""
            sizes = np.array([0], np.int64), np.array([len(record)], np.int64)
            importance = self._measured(
                closing.measure, decode_trees(record, *sizes), features, rows
            )
        return Outcome(features, importance, None)

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


def largest_by_place(parts: EngineParts, items: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Return for each place k the most correlated decoys in the first 2 k, as a verdict counts."""
    first, n_rows = items[:GROUPED], parts.n_rows
    manifest = parts.source.store.manifest
    block = Block(len(first), n_rows, manifest.code_nbytes, tiled=False)
    parts.source.gather(np.ascontiguousarray(first), block)
    groups = group_items(block.as_columns(len(first)), manifest.missing_code)
    return largest_groups(groups, first >= parts.n_features, len(items))
