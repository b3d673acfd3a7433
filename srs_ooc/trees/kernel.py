"""The native kernel behind typed functions: trees on blocks, on few sorted columns, on subsets.

``tests/helpers/tree_reference.py`` is the readable twin of growing one tree.
"""

from collections.abc import Callable

import numpy as np

from srs_ooc.base.arrays import Bools, Floats, Ints, Ints32, Uints, Uints32
from srs_ooc.base.records import Candidates, RowSplit
from srs_ooc.native import _native
from srs_ooc.trees.block import Block, granted_nbytes
from srs_ooc.trees.response import GrownTree, Response, TrainingRows, TreeLimits

_ALL_NUMERIC = np.zeros(0, dtype=np.uint8)


def instruction_sets() -> list[str]:
    """Return the names of the clones this machine can run, the fastest first."""
    return _native.isas()


def grow_tree(
    block: Block,
    features: Uints32,
    rows: TrainingRows,
    key: int,
    limits: TreeLimits,
    isa: str = "",
    *,
    record: bool = False,
    categorical: Bools | None = None,
    n_threads: int = 1,
    trees: range = range(1),
    bootstrap: bool = False,
) -> GrownTree:
    """Grow trees on the same columns, one by default, without the GIL, and sum what they say.

    Same result as ``grow_on`` and ``grow_forest`` of the twin, to the bit, on every instruction
    set. Where the block has the values of its codes, thresholds are uniform between them.

    Parameters
    ----------
    block : Block
        The codes, in its first columns.
    features : uint32 (n_columns,)
        The feature of each column.
    rows : TrainingRows
        Rows to grow on. Importances are shares of *their* weight, or sum of squares, whatever each
        tree's own sample has, so that trees count by what they decrease.
    key : int
        64-bit key of the first tree; those of the others follow from it.
    limits : TreeLimits
        How trees are randomized and where they stop.
    isa : str
        Instruction set; the fastest if empty.
    record : bool
        Whether the tree itself is returned; of one tree only.
    categorical : bool (n_columns,), optional
        Columns whose codes are categories.
    n_threads : int
        Threads that share the columns of a large node of a tiled block; they change nothing but
        speed.
    trees : range
        Numbers of the trees to grow, with step 1. Sums over parts are the sum over all.
    bootstrap : bool
        Grow each tree on as many rows drawn with replacement; of a regression only.
    """
    kinds = _ALL_NUMERIC if categorical is None else categorical.view(np.uint8)
    importance = np.zeros(len(features), dtype=np.int64)
    grown_on = block.native, features, kinds, rows.native, limits.native, key
    how = record, n_threads, trees.start, len(trees), bootstrap
    return GrownTree(importance, *_native.grow(*grown_on, importance, isa, *how))


# A tree on few columns that are sorted once, and what it says of other rows, in one native call.
#
# Where the native function does not work, a learner has the tree grown by the general kernel and
# recorded, and rows walked down the record: the same numbers, with missing values, categories,
# weights, entropy, drawn splits or drawn candidates too.

MOST_BYTE_COLUMNS = {False: 64, True: 16}
"""Columns of bytes up to which sorting is faster, of classes and of a regression (measured at 270
rows): the kernel looks at 64 bytes at once. Of 16-bit codes it always is."""


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
        or not _takes_presorted(response, limits, n_columns)
        or max(block.n_rows, n_fitted) > _native.MAX_PRESORTED_ROWS
        or (block.code_nbytes == 1 and n_columns > MOST_BYTE_COLUMNS[response.is_regression])
    ):
        return False
    shape = n_fitted, n_columns, response.n_classes, block.code_nbytes, response.n_channels
    own = _native.sorted_scratch_nbytes(block.n_rows, n_columns, n_fitted, n_predicted, block.tiled)
    return own <= granted_nbytes(shape, limits)


def _takes_presorted(response: Response, limits: TreeLimits, n_columns: int) -> bool:
    """Return whether native functions that sort columns first know such rows and such trees."""
    return (
        response.n_channels == int(response.is_regression)
        and response.n_classes <= _native.MAX_PRESORTED_CLASSES
        and limits.splitter == "best"
        and limits.impurity != "entropy"
        and limits.min_decrease == 0
        and limits.max_features >= n_columns
    )


def grow_sorted(
    block: Block,
    features: Uints32,
    rows: TrainingRows,
    predicted: Ints32,
    tree_key: int,
    limits: TreeLimits,
    isa: str = "",
) -> tuple[Ints, Floats] | None:
    """Return the importances of a tree, and the class shares, or means, of rows predicted.

    Without the GIL; the same on every instruction set. None where a value of the block is missing.

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
    importance = np.zeros(len(features), np.int64)
    shares = np.zeros((len(predicted), rows.response.n_classes))
    grown_on = block.native, features, rows.native, predicted, limits.native, tree_key
    is_complete = _native.grow_sorted(*grown_on, isa, importance, shares)
    return (importance, shares) if is_complete else None


# Held-out losses of trees on many small subsets of a block's columns, in one native call.
#
# The twin of the native function is in the learner: it grows whole trees, one after the other. It
# also judges where the native function does not: with missing values, categories,
# weights, entropy, drawn splits, or more than 32,768 rows.

GIVEN_UP = np.inf
"""Loss of a subset that is not the best."""

LossOf = Callable[[Ints32, RowSplit, int], float]
"""``summed(places, split, number)``: the summed loss of a model on the rows predicted."""


def judge_all_at_once(
    block: Block,
    features: Uints32,
    candidates: Candidates,
    response: Response,
    tree_keys: Uints,
    limits: TreeLimits,
    isa: str = "",
) -> tuple[Floats, int] | None:
    """Return the loss of each candidate and how many trees were grown, without the GIL.

    The losses are those of whole trees, to the bit, on every instruction set: infinite
    but for the least. The numbers of trees may differ.

    Parameters
    ----------
    block : Block
        The codes, in plain columns.
    features : uint32 (n_columns,)
        The feature of each column.
    candidates : Candidates
        Subsets of the columns, and the splits of the rows.
    response : Response
        What the rows say.
    tree_keys : uint64 (n_splits,)
        Key of the trees of each split, the same for all candidates.
    limits : TreeLimits
        Where trees stop.
    isa : str
        Instruction set; default the best.

    Returns
    -------
    tuple of float64 (n_candidates,) and int, or None
        None where the native function does not judge such subsets, or a value of theirs is missing.
    """
    splits, widest = candidates.splits, int(np.diff(candidates.bounds).max())
    is_plain = not block.tiled and block.values is None
    is_small = block.n_rows <= _native.MAX_PRESORTED_ROWS
    if not (is_plain and is_small and _takes_presorted(response, limits, widest)):
        return None
    times = np.stack([np.bincount(s.fitted, minlength=block.n_rows) for s in splits])
    losses = np.empty(len(candidates.bounds) - 1)
    n_trees = _native.judge_subsets(
        block.native,
        features,
        candidates.places,
        candidates.bounds,
        times.astype(np.uint16),
        np.concatenate([s.predicted for s in splits]).astype(np.uint16),
        np.cumsum([0, *(len(s.predicted) for s in splits)], dtype=np.int64),
        tree_keys,
        response.native,
        limits.native,
        isa,
        losses,
    )
    return None if n_trees < 0 else (mean_losses(losses, response, splits), n_trees)


def judge_in_turn(candidates: Candidates, summed: LossOf) -> tuple[Floats, int]:
    """Return the summed loss of each candidate and how many models were fitted.

    The first split says in which order the others are looked at. A candidate whose loss exceeds
    another's before all splits are fitted is given up. All but the least losses are infinite.
    """
    n_candidates, splits = len(candidates.bounds) - 1, candidates.splits

    def loss(number: int, at: int) -> float:
        places = candidates.places[candidates.bounds[number] : candidates.bounds[number + 1]]
        return summed(places, splits[at], at)

    losses = np.array([loss(number, 0) for number in range(n_candidates)])
    n_models, least = n_candidates, GIVEN_UP
    for number in np.argsort(losses, kind="stable").tolist():
        total = float(losses[number])
        for at in range(1, len(splits)):
            if total > least:
                break
            total += loss(number, at)
            n_models += 1
        losses[number] = total
        least = min(least, total)
    losses[losses > least] = GIVEN_UP
    return losses, n_models


def mean_losses(sums: Floats, response: Response, splits: tuple[RowSplit, ...]) -> Floats:
    """Return mean losses of the rows predicted, in the units of the target."""
    weights = response.weights
    weight = float(sum(weights[s.predicted].sum() for s in splits))
    scale = 1.0 if response.scale is None else response.scale
    return sums / (scale * scale) / weight
