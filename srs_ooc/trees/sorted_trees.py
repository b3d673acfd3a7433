"""A tree on few columns that are sorted once, and what it says of other rows, in one native call.

:func:`grow_and_walk` is the twin of the native function: it grows the tree by the general kernel,
has it recorded, and walks rows down the record. It is also what works where the native function
does not: with missing values, categories, weights, entropy, drawn splits or drawn candidates.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from srs_ooc.native import _native
from srs_ooc.trees.block import Block
from srs_ooc.trees.forest import predict_block
from srs_ooc.trees.grow import grow_tree, record_nbytes, scratch_nbytes
from srs_ooc.trees.training import TrainingRows
from srs_ooc.trees.tree import TreeLimits

MOST_BYTE_COLUMNS = {False: 64, True: 16}
"""Columns of bytes up to which sorting is faster, of classes and of a regression (measured at 270
rows): the kernel looks at 64 bytes at once. Of 16-bit codes it always is."""
_NO_TARGETS = np.zeros(0, np.int32)
_NO_VALUES = np.zeros(0, np.float64)


@dataclass(frozen=True)
class Said:
    """What a tree says of rows that it was not grown on.

    Attributes
    ----------
    importance : int64 (n_columns,)
        What its splits on each column are worth.
    shares : float64 (n, n_classes)
        Class shares of each row, or the mean whole-number target.
    """

    importance: NDArray[np.int64]
    shares: NDArray[np.float64]


def takes_sorted(
    block: Block, n_columns: int, rows: TrainingRows, n_predicted: int, limits: TreeLimits
) -> bool:
    """Return whether the native function grows such a tree, if no value is missing.

    Not where its scratch would be larger than that of growing and recording, which workers are
    granted.
    """
    response, n_fitted = rows.response, len(rows.order)
    if (
        n_columns == 0
        or limits.splitter != "best"
        or limits.impurity == "entropy"
        or limits.min_decrease > 0
        or limits.max_features < n_columns
        or response.n_channels != int(response.is_regression)
        or response.n_classes > _native.MOST_SORTED_CLASSES
        or max(block.n_rows, n_fitted) > _native.MOST_SORTED_ROWS
        or (block.code_nbytes == 1 and n_columns > MOST_BYTE_COLUMNS[response.is_regression])
    ):
        return False
    shape = n_fitted, n_columns, response.n_classes, block.code_nbytes, response.n_channels
    own = _native.sorted_scratch_nbytes(block.n_rows, n_columns, n_fitted, n_predicted, block.tiled)
    return own <= _granted_nbytes(shape, limits)


@lru_cache(maxsize=4096)
def _granted_nbytes(shape: tuple[int, int, int, int, int], limits: TreeLimits) -> int:
    """Return the bytes of growing a tree of a shape, and of recording it."""
    n_fitted, _, n_classes = shape[:3]
    return scratch_nbytes(*shape, best=True) + record_nbytes(n_fitted, n_classes, limits)


def grow_sorted(
    block: Block,
    features: NDArray[np.uint32],
    rows: TrainingRows,
    predicted: NDArray[np.int32],
    tree_key: int,
    limits: TreeLimits,
    isa: str = "",
) -> Said | None:
    """Return what :func:`grow_and_walk` does, to the bit, on every instruction set.

    Without the GIL. None where a value of the block is missing.

    Parameters
    ----------
    block : Block
        The codes.
    features : uint32 (n_columns,)
        The feature of each column.
    rows : TrainingRows
        Rows to grow on.
    predicted : int32 (n,)
        Rows to predict.
    tree_key : int
        64-bit key of the tree.
    limits : TreeLimits
        Where it stops.
    isa : str
        Instruction set; default the best.
    """
    response = rows.response
    importance = np.zeros(len(features), np.int64)
    shares = np.zeros((len(predicted), response.n_classes))
    values = block.values
    is_complete = _native.grow_sorted(
        block.codes,
        block.code_nbytes,
        block.tiled,
        block.n_rows,
        _NO_VALUES if values is None else values.reshape(-1),
        0 if values is None else values.shape[1],
        features,
        rows.order,
        predicted,
        response.labels,
        response.channels[0] if response.is_regression else _NO_TARGETS,
        response.n_classes,
        rows.root_scale,
        tree_key,
        -1 if limits.max_depth is None else limits.max_depth,
        limits.min_samples_leaf,
        isa,
        importance,
        shares,
    )
    return Said(importance, shares) if is_complete else None


def grow_and_walk(
    block: Block,
    features: NDArray[np.uint32],
    rows: TrainingRows,
    predicted: NDArray[np.int32],
    tree_key: int,
    limits: TreeLimits,
    categorical: NDArray[np.bool_] | None = None,
    n_threads: int = 1,
) -> tuple[Said, bytes]:
    """Grow a tree, walk rows down it; return what it says and the tree itself.

    Parameters
    ----------
    block, features, rows, predicted, tree_key, limits
        As for :func:`grow_sorted`.
    categorical : bool (n_columns,), optional
        Columns whose codes are categories.
    n_threads : int
        Threads that share the columns of a large node.
    """
    grown = grow_tree(
        block,
        features,
        rows,
        tree_key,
        limits,
        record=True,
        categorical=categorical,
        n_threads=n_threads,
    )
    assert grown.record is not None
    response = rows.response
    shares = predict_block(
        grown.record,
        block,
        features,
        predicted,
        response.n_classes,
        regression=response.is_regression,
    )
    return Said(grown.importance, shares), grown.record


def grow_and_ask(
    block: Block,
    features: NDArray[np.uint32],
    rows: TrainingRows,
    predicted: NDArray[np.int32],
    tree_key: int,
    limits: TreeLimits,
    *,
    categorical: NDArray[np.bool_] | None = None,
    n_threads: int = 1,
    records: bool = False,
) -> tuple[Said, bytes | None]:
    """Return what a tree says, by whichever way is faster, and the tree itself where wanted.

    Parameters
    ----------
    block, features, rows, predicted, tree_key, limits, categorical, n_threads
        As for :func:`grow_and_walk`.
    records : bool
        Whether the tree itself is wanted.
    """
    if (
        not records
        and categorical is None
        and takes_sorted(block, len(features), rows, len(predicted), limits)
    ):
        said = grow_sorted(block, features, rows, predicted, tree_key, limits)
        if said is not None:
            return said, None
    said, record = grow_and_walk(
        block, features, rows, predicted, tree_key, limits, categorical, n_threads
    )
    return said, record if records else None
