"""The native kernel behind typed functions; :mod:`srs_ooc.trees.reference` is its twin."""

import numpy as np
from numpy.typing import NDArray

from srs_ooc.native import _native
from srs_ooc.trees.block import Block
from srs_ooc.trees.training import TrainingRows
from srs_ooc.trees.tree import IMPURITIES, GrownTree, TreeLimits

_ALL_NUMERIC = np.zeros(0, dtype=np.uint8)
_NO_VALUES = np.zeros((0, 0), dtype=np.float64)


def instruction_sets() -> list[str]:
    """Return the names of the clones this machine can run, the fastest first."""
    return _native.isas()


def grow_tree(
    block: Block,
    features: NDArray[np.uint32],
    rows: TrainingRows,
    tree_key: int,
    limits: TreeLimits,
    isa: str = "",
    *,
    record: bool = False,
    categorical: NDArray[np.bool_] | None = None,
    n_threads: int = 1,
) -> GrownTree:
    """Grow one tree on the first ``len(features)`` columns of ``block``, without the GIL.

    Same result as :func:`srs_ooc.trees.reference.grow_tree`, to the bit, on every instruction set;
    the tree itself is returned only where ``record`` asks for it. Of a tiled block the columns of a
    large node are shared by ``n_threads`` threads, which changes nothing but speed. Where the block
    has the values of its codes, thresholds are uniform between them.
    """
    kinds = _ALL_NUMERIC if categorical is None else categorical.view(np.uint8)
    leaves = limits.most_leaves(len(rows.order)) if record else 0
    return _grow(block, features, rows, tree_key, limits, isa, kinds, leaves, n_threads)


def grow_forest(
    block: Block,
    features: NDArray[np.uint32],
    rows: TrainingRows,
    first_key: int,
    limits: TreeLimits,
    isa: str = "",
    *,
    trees: range,
    bootstrap: bool = False,
    categorical: NDArray[np.bool_] | None = None,
) -> GrownTree:
    """Grow trees on the same columns, without the GIL, and sum what they say.

    Same result as :func:`srs_ooc.trees.reference.grow_forest`, to the bit.

    Parameters
    ----------
    block : Block
        The codes.
    features : uint32 (n_columns,)
        The feature of each column.
    rows : TrainingRows
        Rows to grow on. Importances are shares of *their* weight, or sum of squares, whatever each
        tree's own sample has, so that trees count by what they decrease.
    first_key : int
        64-bit key of the first tree of the forest; those of the others follow from it.
    limits : TreeLimits
        How trees are randomized and where they stop.
    isa : str
        Instruction set; the fastest if empty.
    trees : range
        Numbers of the trees to grow, with step 1. Sums over parts are the sum over all.
    bootstrap : bool
        Grow each tree on as many rows drawn with replacement; of a regression only.
    categorical : bool (n_columns,), optional
        Columns whose codes are categories.
    """
    kinds = _ALL_NUMERIC if categorical is None else categorical.view(np.uint8)
    return _grow(block, features, rows, first_key, limits, isa, kinds, 0, 1, trees, bootstrap)


def _grow(
    block: Block,
    features: NDArray[np.uint32],
    rows: TrainingRows,
    key: int,
    limits: TreeLimits,
    isa: str,
    kinds: NDArray[np.uint8],
    record_leaves: int,
    n_threads: int,
    trees: range = range(1),
    bootstrap: bool = False,
) -> GrownTree:
    values = _NO_VALUES if block.values is None else block.values
    importance = np.zeros(len(features), dtype=np.int64)
    sizes = _native.grow(
        block.codes,
        block.code_nbytes,
        block.tiled,
        block.n_rows,
        values.reshape(-1),
        values.shape[1],
        features,
        kinds,
        rows.order,
        rows.root_stats.reshape(-1),
        rows.response.n_classes,
        rows.response.channels.reshape(-1),
        rows.response.flush,
        rows.root_scale,
        key,
        limits.max_features,
        -1 if limits.max_depth is None else limits.max_depth,
        limits.min_samples_leaf,
        limits.min_decrease,
        limits.splitter == "best",
        IMPURITIES.index(limits.impurity),
        rows.xlogx,
        importance,
        isa,
        record_leaves,
        n_threads,
        trees.start,
        len(trees),
        bootstrap,
    )
    return GrownTree(importance, *sizes)


def scratch_nbytes(
    n_rows: int,
    n_columns: int,
    n_classes: int,
    code_nbytes: int,
    n_channels: int = 0,
    *,
    best: bool = False,
    n_threads: int = 1,
) -> int:
    """Return the bytes :func:`grow_tree` allocates while it works."""
    shape = n_rows, n_columns, n_classes, n_channels, code_nbytes
    return _native.scratch_nbytes(*shape, best, n_threads)


def record_nbytes(n_rows: int, n_classes: int, limits: TreeLimits) -> int:
    """Return the bytes needed to record a tree, the copies of its record on their way included.

    Seven numbers of 4 bytes a node while it grows; as bytes at most 16 a split, 4 a leaf, and 9 for
    a class in a leaf, held up to five times while they are put together, copied and written.
    """
    n_leaves = limits.most_leaves(n_rows)
    n_pairs = max(n_leaves, min(n_rows, n_leaves * n_classes))
    return n_leaves * (56 + 5 * 20) + n_pairs * (8 + 5 * 9)


def recorded_nbytes(n_rows: int, n_classes: int, limits: TreeLimits) -> int:
    """Return the most bytes the record of one tree takes."""
    n_leaves = limits.most_leaves(n_rows)
    return 12 * n_leaves + 6 * min(n_rows, n_leaves * n_classes)
