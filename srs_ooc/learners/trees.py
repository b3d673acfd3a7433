"""The tree learner: one randomized tree per subspace (Algorithm 1, step 2b)."""

import numpy as np
from numpy.typing import NDArray

from srs_ooc.kernel.block import Block
from srs_ooc.kernel.native import grow_tree, scratch_nbytes
from srs_ooc.kernel.training import TrainingRows
from srs_ooc.kernel.tree import GrownTree, TreeLimits

PROBE_FEATURE = 0xFFFFFFFF
"""The number that names an added column's random draws; no feature has it."""


class TreeLearner:
    """Grows one extremely randomized tree per block.

    Parameters
    ----------
    rows : TrainingRows
        Rows to grow on, with their classes.
    limits : TreeLimits
        K and the stopping rules.
    subspace_size : int
        q. With K = q every column of the block is a candidate, an added probe included.
    records : bool
        Return the trees themselves too.
    """

    def __init__(
        self,
        rows: TrainingRows,
        limits: TreeLimits,
        subspace_size: int,
        *,
        records: bool = False,
    ) -> None:
        self.rows, self.limits, self.records = rows, limits, records
        self.tiled = wants_tiles(limits.max_features, subspace_size)
        if limits.max_features == subspace_size:
            everything = np.iinfo(np.int64).max
            self.limits = TreeLimits(
                int(everything), limits.max_depth, limits.min_samples_leaf, limits.impurity
            )

    def grow(self, block: Block, features: NDArray[np.uint32], tree_key: int) -> GrownTree:
        """Grow a tree on the first columns of ``block``, which hold ``features``."""
        return grow_tree(block, features, self.rows, tree_key, self.limits, record=self.records)


def wants_tiles(max_features: int, subspace_size: int) -> bool:
    """Return whether a block is best laid out in tiles: where most columns are candidates.

    Up to about q / 20 candidates a node, reading single columns is faster (measured at n = 1,000,
    q = 2,500: ``benchmarks/bench_tree.py`` shows both ends).
    """
    return 20 * max_features > subspace_size


def learner_nbytes(n_rows: int, n_columns: int, n_classes: int, code_nbytes: int) -> int:
    """Return the scratch bytes of growing one tree."""
    return scratch_nbytes(n_rows, n_columns, n_classes, code_nbytes)
