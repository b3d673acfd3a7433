"""Extended BIC of logistic models: unpenalised maximum likelihood, of many sets of columns."""

import numpy as np
from numpy.typing import NDArray

from srs_ooc.learners.moments import SINGULAR, Places, Products, Sets, eliminated

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
        self._truth: NDArray[np.float64] = np.eye(len(found))[codes]
        self._table, self._each = table, each * (len(found) - 1)
        self._products = Products(table, sets)
        self.largest = table.shape[1] - 2

    def n_cells(self, size: int) -> int:
        """Return the numbers of the largest table of a set: rows by columns, or the curvature."""
        n_rows, n_classes = self._truth.shape
        n_free = (size + 1) * (n_classes - 1)
        return int(max(n_rows * max(size + 1, n_classes), n_free * n_free))

    def __call__(self, places: Places) -> NDArray[np.float64]:
        """Return the criterion of k sets; float64 (k,)."""
        none = np.zeros(places.shape)
        pivots, _ = eliminated(self._products.of(places), none, 0.0)
        regular = np.flatnonzero((pivots > SINGULAR).all(axis=1))
        found = np.full(len(places), np.inf)
        if len(regular) > 0:
            design = np.ones((len(regular), self._table.shape[1], places.shape[1] + 1))
            design[:, :, 1:] = self._table[places[regular]].transpose(0, 2, 1)
            found[regular] = deviances(design, self._truth) + self._each * places.shape[1]
        return found


def deviances(design: NDArray[np.float64], truth: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return minus twice the largest log likelihood of k designs; float64 (k,).

    Newton's method from the fit of the first column alone, a step halved until the deviance does
    not rise; a fit ends by itself, whatever the others do.

    Parameters
    ----------
    design : float64 (k, n_rows, c)
        Columns of full rank, the first of ones.
    truth : float64 (n_rows, n_classes)
        1 for the class of each row.
    """
    shares = truth.mean(axis=0)
    coefficients = np.zeros((len(design), design.shape[2], truth.shape[1] - 1))
    coefficients[:, 0] = np.log(shares[1:] / shares[0])
    deviance = _deviance(_log_shares(design, coefficients), truth)
    going = np.arange(len(design))
    for _ in range(MOST_STEPS):
        going = going[deviance[going] > SEPARATED]
        if len(going) == 0:
            break
        own = design if len(going) == len(design) else design[going]
        before = deviance[going]
        coefficients[going], deviance[going] = _stepped(own, coefficients[going], before, truth)
        fell = before - deviance[going]
        going = going[fell > CONVERGED * (deviance[going] + 0.1)]
    return np.where(deviance > SEPARATED, deviance, 0.0)


def _log_shares(
    design: NDArray[np.float64], coefficients: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the log of the class shares of each row; float64 (k, n_rows, n_classes)."""
    scores = np.zeros((*design.shape[:2], coefficients.shape[2] + 1))
    scores[:, :, 1:] = design @ coefficients
    scores -= scores.max(axis=2, keepdims=True)
    scores -= np.log(np.exp(scores).sum(axis=2, keepdims=True))
    return scores


def _deviance(log_shares: NDArray[np.float64], truth: NDArray[np.float64]) -> NDArray[np.float64]:
    summed: NDArray[np.float64] = (log_shares * truth).sum(axis=(1, 2))
    return -2.0 * summed


def _stepped(
    design: NDArray[np.float64],
    coefficients: NDArray[np.float64],
    before: NDArray[np.float64],
    truth: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return coefficients after a step that does not raise the deviance, and the deviance."""
    step = _newton_step(design, coefficients, truth)
    after, deviance = coefficients + step, before.copy()
    trying = np.arange(len(design))
    for _ in range(_HALVINGS):
        own = design if len(trying) == len(design) else design[trying]
        found = _deviance(_log_shares(own, after[trying]), truth)
        is_good = found <= before[trying]
        deviance[trying[is_good]] = found[is_good]
        trying = trying[~is_good]
        if len(trying) == 0:
            return after, deviance
        step[trying] /= 2
        after[trying] = coefficients[trying] + step[trying]
    after[trying] = coefficients[trying]
    return after, deviance


def _newton_step(
    design: NDArray[np.float64], coefficients: NDArray[np.float64], truth: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the Newton step of each; float64 (k, c, n_classes - 1)."""
    shares = np.exp(_log_shares(design, coefficients))[:, :, 1:]
    k, _, c = design.shape
    n_free = shares.shape[2]
    across = design.transpose(0, 2, 1)
    gradient = across @ (truth[:, 1:] - shares)
    curvature = np.empty((k, n_free, c, n_free, c))
    for a in range(n_free):
        for b in range(a + 1):
            weights = shares[:, :, a] * (float(a == b) - shares[:, :, b])
            curvature[:, a, :, b] = across @ (design * weights[:, :, None])
            curvature[:, b, :, a] = curvature[:, a, :, b]
    square = curvature.reshape(k, n_free * c, n_free * c)
    # Weights vanish as classes separate: a trace of the curvature itself keeps it regular.
    diagonal = np.einsum("kii->ki", square)
    diagonal += _RIDGE * diagonal.max(axis=1, keepdims=True) + np.finfo(float).tiny
    right = gradient.transpose(0, 2, 1).reshape(k, n_free * c, 1)
    step = np.linalg.solve(square, right).astype(np.float64, copy=False)
    return step.reshape(k, n_free, c).transpose(0, 2, 1)
