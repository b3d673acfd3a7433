"""Criteria of models with normal densities: closed forms of means and second moments."""

from math import sqrt

import numpy as np
from numpy.typing import NDArray

from srs_ooc.learners.moments import SINGULAR, Places, Products, Sets, eliminated, solved
from srs_ooc.native.numerics import log, logs

LEAST_RESIDUAL = 1e-12
"""Least share of the target's variance that counts as left by a fit: below is rounding."""


def ratio_penalty(n_rows: int) -> float:
    """Return c_n = log log n / sqrt n, Tian and Feng's weight of a degree of freedom."""
    return log(log(float(max(n_rows, 3)))) / sqrt(n_rows)


class _OfMoments:
    """What these have in common: how many columns they take, and their memory."""

    largest: int
    _n_rows: int

    def n_cells(self, size: int) -> int:
        """Return the numbers of the largest table that a set of so many columns takes."""
        return self._n_rows * (size + 1)


class LinearRatio(_OfMoments):
    """RIC of two normal densities with a common covariance matrix (linear discriminant analysis).

    ``RIC(S) = -(m1 - m0)' C^-1 (m1 - m0) + c_n d``: both divergences are half the squared
    Mahalanobis distance of the means. C is the maximum-likelihood estimate, divided by n (Tian and
    Feng 2021; c_n and degrees of freedom as in their package RaSEn).

    Parameters
    ----------
    table : float64 (n_columns, n_rows)
        Standardised columns.
    labels : int (n_rows,)
        0 or 1.
    sets : Sets
        Those to be judged.
    """

    def __init__(self, table: NDArray[np.float64], labels: NDArray[np.integer], sets: Sets) -> None:
        means = np.stack([table[:, labels == k].mean(axis=1) for k in (0, 1)])
        self._apart = means[1] - means[0]
        self._products = Products(table - means[labels].T, sets)
        self._penalty = ratio_penalty(table.shape[1])
        self._n_rows = table.shape[1]
        self.largest = self._n_rows - 2

    def __call__(self, places: Places) -> NDArray[np.float64]:
        """Return the criterion of k sets; float64 (k,)."""
        pivots, corner = eliminated(self._products.of(places), self._apart[places], 0.0)
        return _unless_singular(pivots, corner + self._penalty * places.shape[1])


class QuadraticRatio(_OfMoments):
    """RIC of two normal densities with covariance matrices of their own.

    ``RIC(S) = -2 (w0 KL(f0, f1) + w1 KL(f1, f0)) + c_n d (d + 3) / 2`` with class shares w and

        KL(f0, f1) = (tr(C1^-1 C0) + (m1 - m0)' C1^-1 (m1 - m0) - d + log det C1 - log det C0) / 2

    Parameters are those of :class:`LinearRatio`.
    """

    def __init__(self, table: NDArray[np.float64], labels: NDArray[np.integer], sets: Sets) -> None:
        own = [table[:, labels == k] for k in (0, 1)]
        means = [rows.mean(axis=1) for rows in own]
        self._apart = means[1] - means[0]
        self._products = [
            Products(rows - mean[:, None], sets) for rows, mean in zip(own, means, strict=True)
        ]
        self._shares = [rows.shape[1] / table.shape[1] for rows in own]
        self._penalty = ratio_penalty(table.shape[1])
        self._n_rows = table.shape[1]
        self.largest = min(rows.shape[1] for rows in own) - 1

    def __call__(self, places: Places) -> NDArray[np.float64]:
        """Return the criterion of k sets; float64 (k,)."""
        d, apart = places.shape[1], self._apart[places]
        moments = [products.of(places) for products in self._products]
        pivots, distances = zip(*(eliminated(own, apart, 0.0) for own in moments), strict=True)
        found = np.full(len(places), np.inf)
        regular = np.flatnonzero((np.concatenate(pivots, axis=1) > SINGULAR).all(axis=1))
        log_pivots = [logs(own[regular]).sum(axis=1) for own in pivots]
        total = np.full(len(regular), self._penalty * d * (d + 3) / 2)
        for own, other in ((0, 1), (1, 0)):
            a, b = moments[own][regular], moments[other][regular]
            trace = np.trace(solved(b, a), axis1=1, axis2=2)
            twice = trace - distances[other][regular] - d + log_pivots[other] - log_pivots[own]
            total -= self._shares[own] * twice
        found[regular] = total
        return found


class LeastSquares(_OfMoments):
    """Extended BIC of a least-squares fit with an intercept and normal errors.

    ``eBIC(S) = n log(RSS / n) + d (log n + 2 gamma log p)`` (Chen and Chen 2008, 2012).

    Parameters
    ----------
    table : float64 (n_columns, n_rows)
        Standardised columns.
    numbers : float64 (n_rows,)
        The target.
    sets : Sets
        Those to be judged.
    each : float
        What a column costs: ``log n + 2 gamma log p``.
    """

    def __init__(
        self,
        table: NDArray[np.float64],
        numbers: NDArray[np.float64],
        sets: Sets,
        each: float,
    ) -> None:
        centered = numbers - numbers.mean()
        spread = float(np.sqrt((centered * centered).mean())) or 1.0
        table = table - table.mean(axis=1, keepdims=True)
        self._products, self._each = Products(table, sets), each
        self._with_target = (table * (centered / spread)).sum(axis=1) / len(numbers)
        self._n_rows, self._scale = len(numbers), 2 * log(spread)
        self.largest = len(numbers) - 2

    def __call__(self, places: Places) -> NDArray[np.float64]:
        """Return the criterion of k sets; float64 (k,)."""
        side = self._with_target[places]
        pivots, left = eliminated(self._products.of(places), side, 1.0)
        left = logs(np.maximum(left, LEAST_RESIDUAL)) + self._scale
        return _unless_singular(pivots, self._n_rows * left + self._each * places.shape[1])


def _unless_singular(
    pivots: NDArray[np.float64], found: NDArray[np.float64]
) -> NDArray[np.float64]:
    regular = (pivots > SINGULAR).all(axis=1)
    return np.where(regular, found, np.inf)
