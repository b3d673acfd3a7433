"""Information criteria of subspaces: which goes with which model, and how all are judged."""

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import UsageError
from srs_ooc.base.records import Criterion
from srs_ooc.learners.fitted import Target
from srs_ooc.learners.gaussian_criteria import LeastSquares, LinearRatio, QuadraticRatio
from srs_ooc.learners.import_paths import path_of
from srs_ooc.learners.logistic_criterion import Logistic
from srs_ooc.learners.model_params import TREE
from srs_ooc.learners.moments import LEAST_CELLS, Places, Sets
from srs_ooc.learners.neighbour_divergence import NeighbourRatio
from srs_ooc.native.numerics import log
from srs_ooc.samplers.base import EBIC, RIC

Table = NDArray[np.float64]


class SetJudge(Protocol):
    """A criterion on some rows.

    Attributes
    ----------
    largest : int
        The most columns of a set for which it can be computed.
    """

    largest: int

    def n_cells(self, size: int) -> int:
        """Return the numbers of the largest table that a set of so many columns takes."""

    def __call__(self, places: Places) -> NDArray[np.float64]:
        """Return the criterion of k sets of d columns; float64 (k,)."""


_RATIOS: dict[str, Callable[[Table, NDArray[np.integer], Sets], SetJudge]] = {
    "sklearn.discriminant_analysis.LinearDiscriminantAnalysis": LinearRatio,
    "sklearn.discriminant_analysis.QuadraticDiscriminantAnalysis": QuadraticRatio,
    "sklearn.neighbors.KNeighborsClassifier": NeighbourRatio,
}
_LIKELIHOODS = {
    False: ("sklearn.linear_model.LogisticRegression",),
    True: ("sklearn.linear_model.Ridge", "sklearn.linear_model.LinearRegression"),
}
"""Of classes, and of a regression."""


def check_criterion(criterion: str, model: str, n_classes: int) -> None:
    """Check that a criterion can be computed for a model and such a target.

    Parameters
    ----------
    criterion : str
        ``ric``, ``ebic``, or another, which every model has.
    model : str
        As given to ``--model``.
    n_classes : int
        1 for a regression.

    Raises
    ------
    UsageError
        If it cannot.
    """
    path = model if model == TREE else path_of(model, is_regression=n_classes == 1)
    if criterion == RIC:
        if n_classes != 2:
            found = "a regression" if n_classes == 1 else f"{n_classes} classes"
            raise UsageError(
                f"--criterion {RIC}: expected two classes, whose densities it compares, found "
                f"{found}. Take {EBIC} with --model linear, or cv."
            )
        if path not in _RATIOS:
            raise _wrong_model(RIC, "lda, qda or knn, which have densities to compare", model)
    elif criterion == EBIC and path not in _LIKELIHOODS[n_classes == 1]:
        raise _wrong_model(
            EBIC,
            f"linear (or {' or '.join(_LIKELIHOODS[n_classes == 1])}), which has a likelihood and "
            "a number of parameters",
            model,
        )


def _wrong_model(criterion: str, expected: str, model: str) -> UsageError:
    return UsageError(
        f"--criterion {criterion}: expected --model {expected}, found --model {model}. Choose one, "
        "or --criterion cv."
    )


def judged(
    criterion: Criterion,
    model: str,
    target: Target,
    columns: Table,
    fitted: NDArray[np.integer],
    sets: Sets,
) -> NDArray[np.float64]:
    """Return a criterion of many sets of columns; float64 (n_sets,).

    Infinite where it cannot be computed: too many columns for the rows, columns that are constant,
    that determine one another, or that have no variance within a class.

    Parameters
    ----------
    criterion : Criterion
        Which.
    model : str
        Short name or import path, one that :func:`check_criterion` accepts.
    target : Target
        Of all rows.
    columns : float64 (n_fitted, n_columns)
        The rows to judge by, standardised; 0 where missing.
    fitted : int (n_fitted,)
        Which they are.
    sets : Sets
        Sets of the columns.
    """
    table, known = np.ascontiguousarray(columns.T), target.values[fitted]
    losses = np.full(len(sets.bounds) - 1, np.inf)
    if bool((known == known[0]).all()):
        return losses
    judge = _judge(criterion, model, target, table, known, sets)
    n_columns, n_rows = table.shape
    most_cells = max(n_columns * n_rows, LEAST_CELLS)
    for numbers, places in sets.batches(judge.largest, judge.n_cells, most_cells):
        losses[numbers] = judge(places)
    losses[np.isnan(losses)] = np.inf
    return losses


def _judge(
    criterion: Criterion,
    model: str,
    target: Target,
    table: Table,
    known: NDArray[np.float64] | NDArray[np.int32],
    sets: Sets,
) -> SetJudge:
    if criterion.name == RIC:
        make = _RATIOS[path_of(model, is_regression=False)]
        return make(table, known.astype(np.intp), sets)
    each = log(float(len(known))) + 2 * criterion.gamma * log(float(criterion.n_features))
    if target.is_regression:
        return LeastSquares(table, known.astype(np.float64), sets, each)
    return Logistic(table, known.astype(np.intp), sets, each)
