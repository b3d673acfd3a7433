"""Held-out losses of trees on many small subsets of a block's columns, in one native call.

:func:`judge_one_by_one` is the twin of the native function: it grows whole trees, one after the
other. It is also what judges where the native function does not: with missing values, categories,
weights, entropy, drawn splits, or more than 32,768 rows.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.records import Candidates, RowSplit
from srs_ooc.native import _native
from srs_ooc.trees.block import Block
from srs_ooc.trees.response import Response
from srs_ooc.trees.tree import TreeLimits

GIVEN_UP = np.inf
"""Loss of a subset that is not the best."""
_NO_TARGETS = np.zeros(0, np.int32)

LossOf = Callable[[NDArray[np.int32], RowSplit, int], float]
"""``loss_of(places, split, number)``: the summed loss of a model on the rows predicted."""
Predict = Callable[[NDArray[np.int32], RowSplit, int], NDArray[np.float64]]
"""``predict(places, split, number)``: shares or means of the rows that a split predicts."""


def takes_all_at_once(block: Block, response: Response, limits: TreeLimits, widest: int) -> bool:
    """Return whether the native function judges such subsets, if no value of theirs is missing."""
    n_plain = int(response.is_regression)
    return (
        not block.tiled
        and block.values is None
        and block.n_rows <= _native.MOST_SUBSET_ROWS
        and response.n_channels == n_plain
        and response.n_classes <= _native.MOST_SUBSET_CLASSES
        and limits.splitter == "best"
        and limits.impurity != "entropy"
        and limits.min_decrease == 0
        and limits.max_features >= widest
    )


def judge_all_at_once(
    block: Block,
    features: NDArray[np.uint32],
    candidates: Candidates,
    response: Response,
    tree_keys: NDArray[np.uint64],
    limits: TreeLimits,
    isa: str = "",
) -> tuple[NDArray[np.float64], int] | None:
    """Return the loss of each candidate and how many trees were grown, without the GIL.

    The losses are those of :func:`judge_one_by_one`, to the bit, on every instruction set: infinite
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
        None where a value is missing.
    """
    splits = candidates.splits
    times = np.stack([np.bincount(s.fitted, minlength=block.n_rows) for s in splits])
    losses = np.empty(len(candidates.bounds) - 1)
    n_trees = _native.judge_subsets(
        block.codes,
        block.code_nbytes,
        block.n_rows,
        features,
        candidates.places,
        candidates.bounds,
        times.astype(np.uint16),
        np.concatenate([s.predicted for s in splits]).astype(np.uint16),
        np.cumsum([0, *(len(s.predicted) for s in splits)], dtype=np.int64),
        tree_keys,
        response.labels,
        response.channels[0] if response.is_regression else _NO_TARGETS,
        response.n_classes,
        -1 if limits.max_depth is None else limits.max_depth,
        limits.min_samples_leaf,
        isa,
        losses,
    )
    return None if n_trees < 0 else (mean_losses(losses, response, splits), n_trees)


def judge_one_by_one(
    candidates: Candidates, response: Response, predict: Predict
) -> tuple[NDArray[np.float64], int]:
    """Return the mean loss of each candidate, and how many models ``predict`` fitted.

    Losses are infinite unless they are the least.
    """

    def summed(places: NDArray[np.int32], split: RowSplit, number: int) -> float:
        return loss_of(predict(places, split, number), response, split.predicted)

    losses, n_models = judge_in_turn(candidates, summed)
    return mean_losses(losses, response, candidates.splits), n_models


def judge_in_turn(candidates: Candidates, summed: LossOf) -> tuple[NDArray[np.float64], int]:
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


def loss_of(said: NDArray[np.float64], response: Response, rows: NDArray[np.int32]) -> float:
    """Return the sum over rows of squared errors, or of wrong classes, each times its weight.

    Squared errors are in whole-number targets; the first of equally likely classes is said.
    """
    weights = weights_of(response)[rows]
    if response.is_regression:
        targets = response.channels[-1][rows] / weights
        errors = said[:, 0] - targets
        each = weights * (errors * errors)
    else:
        each = weights * (said.argmax(1) != response.labels[rows])
    total = 0.0
    for loss in each.tolist():  # one after the other, as the native twin
        total += loss
    return total


def weights_of(response: Response) -> NDArray[np.float64]:
    """Return the weight of each row; float64 (n_rows,)."""
    if response.n_channels > int(response.is_regression):
        weights: NDArray[np.float64] = response.channels[0].astype(np.float64)
        return weights
    return np.ones(len(response.labels))


def mean_losses(
    sums: NDArray[np.float64], response: Response, splits: tuple[RowSplit, ...]
) -> NDArray[np.float64]:
    """Return mean losses of the rows predicted, in the units of the target."""
    weights = weights_of(response)
    weight = float(sum(weights[s.predicted].sum() for s in splits))
    scale = 1.0 if response.scale is None else response.scale
    means: NDArray[np.float64] = sums / (scale * scale) / weight
    return means


def sorted_nbytes(n_rows: int, n_columns: int) -> int:
    """Return the bytes of the rows in order of each column, and of what is made of them.

    In use are those of the columns of one subset, split by split, which are far fewer.
    """
    return 3 * n_rows * n_columns
