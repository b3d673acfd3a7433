"""What a learner must pass."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace

import numpy as np

from srs_ooc.base.records import Candidates, Criterion, Iteration, Outcome, RowSplit, Subspace
from srs_ooc.base.seeds import derive_array, key_of, scale_below
from srs_ooc.learners.tree_learner import Columns, Learner
from srs_ooc.samplers.base import IMPORTANCE, LOSS, PREDICTIONS, SENSITIVITY
from srs_ooc.trees.block import Block

_FIELDS = {
    IMPORTANCE: "importance",
    SENSITIVITY: "importance",
    LOSS: "losses",
    PREDICTIONS: "predictions",
}


def check_learner(
    learner: Learner,
    n_rows: int,
    *,
    n_columns: int = 12,
    n_codes: int = 16,
    tiled: bool = False,
    n_features: int = 1000,
    criteria: tuple[Criterion, ...] = (),
) -> None:
    """Check that a learner keeps to the contract of :class:`srs_ooc.learners.tree_learner.Learner`.

    Parameters
    ----------
    learner : Learner
        Made for ``n_rows`` training rows.
    n_rows : int
        Rows of a block.
    n_columns : int
        Columns of a block.
    n_codes : int
        Different codes of a column; at most 255.
    tiled : bool
        The layout of a block that it takes.
    n_features : int
        Features of the store that the columns are drawn from.
    criteria : tuple of Criterion
        Those by which it judges candidates in place of held-out losses.

    Raises
    ------
    AssertionError
        Saying which rule is broken.
    """
    assert learner.provides <= set(_FIELDS), f"provides: expected some of {sorted(_FIELDS)}"
    step = n_features // n_columns
    features = np.arange(0, step * n_columns, step, dtype=np.uint32)
    subspaces = [Subspace(features)]
    if PREDICTIONS in learner.provides:
        subspaces.append(Subspace(features, split=_split(n_rows)))
    if LOSS in learner.provides:
        subspaces.append(Subspace(features, _candidates(n_rows, n_columns)))
    subspaces += [Subspace(features, _by(criterion, n_rows, n_columns)) for criterion in criteria]
    iterations = [
        Iteration(number, subspaces[number % len(subspaces)], key_of(3, number))
        for number in range(2 * len(subspaces))
    ]

    def fitted(iteration: Iteration) -> Outcome:
        block = _block(n_rows, n_columns, n_codes, tiled=tiled)
        return learner.fit(block, Columns(features, features), iteration)

    first = [fitted(iteration) for iteration in iterations]
    for iteration, outcome in zip(iterations, first, strict=True):
        _check_fields(learner, outcome, iteration.subspace)
    again = [fitted(iteration) for iteration in reversed(iterations)][::-1]
    _check_same(first, again, "fit: it depends on what was fitted before")
    with ThreadPoolExecutor(3) as pool:
        _check_same(first, list(pool.map(fitted, iterations)), "fit: it depends on the thread")


def _block(n_rows: int, n_columns: int, n_codes: int, *, tiled: bool) -> Block:
    """Return a block of hashes; each column has its own."""
    block = Block(n_columns, n_rows, 1, tiled=tiled)
    hashes = derive_array(11, np.arange(len(block.codes), dtype=np.uint32))
    block.codes[:] = scale_below(hashes, n_codes)
    return block


def _split(n_rows: int) -> RowSplit:
    """Return every third row to be predicted by the others."""
    rows = np.arange(n_rows, dtype=np.int32)
    return RowSplit(rows[rows % 3 != 0], rows[rows % 3 == 0])


def _candidates(n_rows: int, n_columns: int) -> Candidates:
    """Return the first column, the first two, and so on, each judged by two splits."""
    sizes = np.arange(1, n_columns + 1)
    places = np.concatenate([np.arange(size, dtype=np.int32) for size in sizes])
    split = _split(n_rows)
    other = RowSplit(split.predicted, split.fitted)
    return Candidates(places, np.concatenate([[0], np.cumsum(sizes)]), (split, other))


def _by(criterion: Criterion, n_rows: int, n_columns: int) -> Candidates:
    """Return the same columns, judged by a criterion of two thirds of the rows."""
    judged, fitted = _candidates(n_rows, n_columns), _split(n_rows).fitted
    return replace(judged, splits=(RowSplit(fitted, fitted[:0]),), criterion=criterion)


def _check_fields(learner: Learner, outcome: Outcome, subspace: Subspace) -> None:
    features, split = subspace.features, subspace.split
    assert np.array_equal(outcome.features, features), "features: others than were asked for"
    absent = {PREDICTIONS} if split is None else set()
    absent |= {LOSS} if subspace.candidates is None else set()
    is_by_criterion = subspace.candidates is not None and subspace.candidates.criterion is not None
    promised = (learner.provides - absent) | ({LOSS} if is_by_criterion else set())
    for what in promised:
        found = getattr(outcome, _FIELDS[what])
        assert found is not None, f"{_FIELDS[what]}: promised by provides, and absent"
    if {IMPORTANCE, SENSITIVITY} & learner.provides:
        assert outcome.importance.dtype == np.int64, "importance: expected int64"
        assert len(outcome.importance) == len(features), "importance: expected one a feature"
    if split is not None and outcome.predictions is not None:
        n_predicted = outcome.predictions.shape[1]
        assert n_predicted == len(split.predicted), "predictions: expected one a row to predict"
    if subspace.candidates is not None and outcome.losses is not None:
        n_candidates = len(subspace.candidates.bounds) - 1
        assert len(outcome.losses) == n_candidates, "losses: expected one a candidate"
        assert np.isfinite(outcome.losses.min()), "losses: expected the least to be known"


def _check_same(one: list[Outcome], other: list[Outcome], rule: str) -> None:
    for a, b in zip(one, other, strict=True):
        for field in fields(Outcome):
            assert np.array_equal(getattr(a, field.name), getattr(b, field.name)), rule
