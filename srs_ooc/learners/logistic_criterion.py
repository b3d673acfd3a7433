"""Extended BIC of logistic models: unpenalised maximum likelihood, of many sets of columns."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from srs_ooc.learners.moments import (
    SINGULAR,
    Places,
    Products,
    Sets,
    eliminated,
    row_products,
    solved,
)
from srs_ooc.native.numerics import logs, powers

MOST_STEPS = 25
"""Newton steps at most: under separation the likelihood has no maximum, only a bound."""
CONVERGED = 1e-8
"""A step that takes less than this share of the deviance, and 0.1, is the last."""
SEPARATED = 1e-6
"""A deviance below this counts as 0: the classes are separated."""
_HALVINGS = 10
_RIDGE = 1e-9


class Logistic:
    """Extended BIC of a logistic fit with an intercept, of two classes or more.

    ``eBIC(S) = -2 log L + (K - 1) d (log n + 2 gamma log p)`` (Chen and Chen 2012), K the classes
    among the rows. L is of the unpenalised fit, or its bound where classes are separated.

    Parameters
    ----------
    table : float64 (n_columns, n_rows)
        Standardised columns.
    labels : int (n_rows,)
        Class codes.
    sets : Sets
        Those to be judged.
    each : float
        What a parameter costs: ``log n + 2 gamma log p``.
    """

    def __init__(
        self,
        table: NDArray[np.float64],
        labels: NDArray[np.integer],
        sets: Sets,
        each: float,
    ) -> None:
        found, codes = np.unique(labels, return_inverse=True)
        self._truth: NDArray[np.float64] = np.eye(len(found))[:, codes]
        self._table, self._each = table, each * (len(found) - 1)
        self._products = Products(table, sets)
        self.largest = table.shape[1] - 2

    def n_cells(self, size: int) -> int:
        """Return the numbers of the largest table of a set: rows by columns, or the curvature."""
        n_classes, n_rows = self._truth.shape
        n_free = (size + 1) * (n_classes - 1)
        return int(max(n_rows * max(size + 1, n_classes), n_free * n_free))

    def __call__(self, places: Places) -> NDArray[np.float64]:
        """Return the criterion of k sets; float64 (k,)."""
        none = np.zeros(places.shape)
        pivots, _ = eliminated(self._products.of(places), none, 0.0)
        regular = np.flatnonzero((pivots > SINGULAR).all(axis=1))
        found = np.full(len(places), np.inf)
        if len(regular) > 0:
            design = np.ones((len(regular), places.shape[1] + 1, self._table.shape[1]))
            design[:, 1:] = self._table[places[regular]]
            found[regular] = deviances(design, self._truth) + self._each * places.shape[1]
        return found


def deviances(design: NDArray[np.float64], truth: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return minus twice the largest log likelihood of k designs; float64 (k,).

    Newton's method from the fit of the first column alone, a step halved until the deviance does
    not rise; a fit ends by itself, whatever the others do.

    Parameters
    ----------
    design : float64 (k, c, n_rows)
        Columns that do not determine one another, the first of ones.
    truth : float64 (n_classes, n_rows)
        1 for the class of each row.
    """
    shares = truth.mean(axis=1)
    coefficients = np.zeros((len(design), len(truth) - 1, design.shape[1]))
    coefficients[:, :, 0] = logs(shares[1:] / shares[0])
    deviance = np.empty(len(design))
    state = _State(design, coefficients, *_said(design, coefficients, truth))
    deviance[:], going = state.deviance, np.arange(len(design))
    for _ in range(MOST_STEPS):
        ahead = state.deviance > SEPARATED
        if not ahead.any():
            break
        state, going = state.only(ahead), going[ahead]
        before = state.deviance
        state = _stepped(state, truth)
        deviance[going] = state.deviance
        ahead = before - state.deviance > CONVERGED * (state.deviance + 0.1)
        state, going = state.only(ahead), going[ahead]
    return np.where(deviance > SEPARATED, deviance, 0.0)


@dataclass(frozen=True)
class _State:
    """Where k fits stand: designs, coefficients (k, n_classes - 1, c), log shares, deviances."""

    design: NDArray[np.float64]
    coefficients: NDArray[np.float64]
    log_shares: NDArray[np.float64]
    deviance: NDArray[np.float64]

    def only(self, some: NDArray[np.bool_]) -> "_State":
        if some.all():
            return self
        parts = self.design, self.coefficients, self.log_shares, self.deviance
        return _State(*(part[some] for part in parts))


def _said(
    design: NDArray[np.float64], coefficients: NDArray[np.float64], truth: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return logs of class shares, (k, n_classes, n_rows), and deviances, (k,)."""
    scores = np.zeros((len(design), *truth.shape))
    for column in range(design.shape[1]):
        scores[:, 1:] += coefficients[:, :, column, None] * design[:, None, column]
    scores -= scores.max(axis=1, keepdims=True)
    scores -= logs(powers(scores).sum(axis=1, keepdims=True))
    return scores, -2.0 * (scores * truth).reshape(len(scores), -1).sum(axis=1)


def _stepped(state: _State, truth: NDArray[np.float64]) -> _State:
    """Return the fits after a step that does not raise a deviance."""
    step = _newton_step(state, truth)
    after = state.coefficients + step
    log_shares, deviance = _said(state.design, after, truth)
    for _ in range(_HALVINGS):
        rose = np.flatnonzero(~(deviance <= state.deviance))
        if len(rose) == 0:
            break
        step[rose] /= 2
        after[rose] = state.coefficients[rose] + step[rose]
        log_shares[rose], deviance[rose] = _said(state.design[rose], after[rose], truth)
    rose = np.flatnonzero(~(deviance <= state.deviance))
    after[rose], deviance[rose] = state.coefficients[rose], state.deviance[rose]
    log_shares[rose] = state.log_shares[rose]
    return _State(state.design, after, log_shares, deviance)


def _newton_step(state: _State, truth: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the Newton step of each; float64 (k, n_classes - 1, c)."""
    design, shares = state.design, powers(state.log_shares[:, 1:])
    k, c, _ = design.shape
    n_free = shares.shape[1]
    gradient = row_products(truth[1:] - shares, design)
    curvature = np.empty((k, n_free, c, n_free, c))
    for a in range(n_free):
        for b in range(a + 1):
            weights = shares[:, a] * (float(a == b) - shares[:, b])
            curvature[:, a, :, b] = row_products(design * weights[:, None], design)
            curvature[:, b, :, a] = curvature[:, a, :, b]
    square = curvature.reshape(k, n_free * c, n_free * c)
    # Weights vanish as classes separate: a share of the curvature itself keeps it regular.
    places = np.arange(n_free * c)
    diagonal = square[:, places, places]
    square[:, places, places] += _RIDGE * diagonal.max(axis=1, keepdims=True) + np.finfo(float).tiny
    return solved(square, gradient.reshape(k, n_free * c, 1)).reshape(k, n_free, c)
