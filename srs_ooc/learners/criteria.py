"""Information criteria of subspaces: which goes with which model, and how all are judged."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import isqrt, sqrt
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import UsageError
from srs_ooc.base.records import Criterion
from srs_ooc.learners.models import TREE, Target, path_of
from srs_ooc.native.numerics import log, logs, powers, products
from srs_ooc.samplers.base import EBIC, RIC

# Second moments of many small sets of columns, and what follows from them by elimination.

LEAST_CELLS = 1 << 18
"""Cells of the tables of a batch of sets, where a table of all columns has fewer."""
SINGULAR = 1e-10
"""Share of a column's variance that its set must leave of it, or its moments count as singular."""
_WHOLE_IS_CHEAPER = 8
"""How many products of the whole table take as long as one of a small set's."""

Places = NDArray[np.integer]


@dataclass(frozen=True)
class Sets:
    """Sets of columns, of the same size or not.

    Attributes
    ----------
    places : int (n_members,)
        Rows of a transposed table, one set after another.
    bounds : int (n_sets + 1,)
        Where each begins, and the end.
    """

    places: Places
    bounds: NDArray[np.integer]

    @property
    def sizes(self) -> NDArray[np.integer]:
        """Columns of each set; int (n_sets,)."""
        return np.diff(self.bounds)

    def batches(
        self, largest: int, n_cells: Callable[[int], int], most_cells: int
    ) -> Iterator[tuple[NDArray[np.intp], Places]]:
        """Yield numbers of sets of one size, (k,), and their columns, (k, size).

        Sets of more than ``largest`` columns are left out. A set of d columns takes ``n_cells(d)``
        cells, a batch of several at most ``most_cells``.
        """
        sizes = self.sizes
        for size in np.unique(sizes[sizes <= largest]).tolist():
            numbers = np.flatnonzero(sizes == size)
            step = max(1, most_cells // n_cells(size))
            for first in range(0, len(numbers), step):
                some = numbers[first : first + step]
                yield some, self.places[self.bounds[some, None] + np.arange(size)]


class Products:
    """Mean products of columns, one small set at a time.

    Parameters
    ----------
    table : float64 (n_columns, n_rows)
        A column each, centered as the moments are to be.
    sets : Sets
        Those that will be asked for. Where they have about as many pairs as all columns have, the
        products of all columns are computed once.
    """

    def __init__(self, table: NDArray[np.float64], sets: Sets) -> None:
        n_columns, n_rows = table.shape
        n_pairs = int((sets.sizes.astype(np.int64) ** 2).sum())
        shares = n_columns <= n_rows and n_columns**2 <= _WHOLE_IS_CHEAPER * n_pairs
        self._table, self._scale = table, 1.0 / n_rows
        self._whole: NDArray[np.float64] | None = None
        if shares:
            rows = np.ascontiguousarray(table.T)
            self._whole = products(rows, rows) * self._scale

    def of(self, places: Places) -> NDArray[np.float64]:
        """Return the mean products of k sets of d columns; float64 (k, d, d)."""
        if self._whole is not None:
            some: NDArray[np.float64] = self._whole[places[:, :, None], places[:, None, :]]
            return some
        own = self._table[places]
        products_of_sets = row_products(own, own)
        products_of_sets *= self._scale
        return products_of_sets


def row_products(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the sums over rows of (k, c, n_rows) and (k, d, n_rows); float64 (k, c, d).

    By NumPy's own sums, which no BLAS takes in another order.
    """
    out = np.empty((len(a), a.shape[1], b.shape[1]))
    for i in range(a.shape[1]):
        for j in range(b.shape[1]):
            is_mirror = a is b and j < i
            out[:, i, j] = out[:, j, i] if is_mirror else (a[:, i] * b[:, j]).sum(axis=1)
    return out


def eliminated(
    moments: NDArray[np.float64], side: NDArray[np.float64], corner: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the pivots of symmetric matrices M, and ``corner - side' M^-1 side``.

    Gaussian elimination without exchanges, of all matrices at once. A pivot is what is left of a
    column's second moment once the columns before it are accounted for.

    Parameters
    ----------
    moments : float64 (k, d, d)
        M: positive semidefinite.
    side : float64 (k, d)
        A vector for each.
    corner : float
        A number for all.

    Returns
    -------
    tuple of float64 (k, d) and float64 (k,)
        Where a pivot is not above :data:`SINGULAR`, the second says nothing.
    """
    k, d = side.shape
    work = np.empty((k, d + 1, d + 1))
    work[:, :d, :d] = moments
    work[:, d, :d] = work[:, :d, d] = side
    work[:, d, d] = corner
    pivots = np.empty((k, d))
    for j in range(d):
        pivots[:, j] = work[:, j, j]
        row = work[:, j, j + 1 :]
        scaled = row / np.where(pivots[:, j] > SINGULAR, pivots[:, j], 1.0)[:, None]
        work[:, j + 1 :, j + 1 :] -= scaled[:, :, None] * row[:, None, :]
    return pivots, work[:, d, d]


def solved(matrices: NDArray[np.float64], sides: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ``M^-1 S`` of positive definite matrices, by Gauss and Jordan without exchanges.

    Parameters
    ----------
    matrices : float64 (k, d, d)
        M.
    sides : float64 (k, d, m)
        S.
    """
    d = matrices.shape[1]
    work = np.concatenate([matrices, sides], axis=2)
    for j in range(d):
        row = work[:, j] / work[:, j, j, None]
        work -= work[:, :, j, None] * row[:, None, :]
        work[:, j] = row
    return work[:, :, d:]


# Extended BIC of logistic models: unpenalised maximum likelihood, of many sets of columns.

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


# Criteria of models with normal densities: closed forms of means and second moments.

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


# RIC without a model of the densities: divergences from distances to nearest neighbours.


class NeighbourRatio:
    """RIC of two densities about which nothing is assumed.

    ``RIC(S) = -2 (w0 KL(f0, f1) + w1 KL(f1, f0)) + c_n d`` with class shares w, where

        KL(f0, f1) = d / n0 sum over i of log(v_i / r_i) + log(n1 / (n0 - 1))

    and r_i is the distance of row i of class 0 to its k-th neighbour in class 0, v_i that to its
    k-th neighbour in class 1 (Wang, Kulkarni and Verdu 2009, equation 5), k the root of n0, rounded
    down. Parameters are those of :class:`srs_ooc.learners.criteria.LinearRatio`.
    """

    def __init__(self, table: NDArray[np.float64], labels: NDArray[np.integer], sets: Sets) -> None:
        self._own: list[NDArray[np.float64]] = [table[:, labels == k] for k in (0, 1)]
        self._shares = [rows.shape[1] / table.shape[1] for rows in self._own]
        self._n_rows: int = table.shape[1]
        self._penalty = ratio_penalty(self._n_rows)
        self._products = Products(table, sets)
        self.largest = self._n_rows - 2 if min(rows.shape[1] for rows in self._own) > 1 else 0

    def n_cells(self, size: int) -> int:
        """Return the numbers of the largest table that a set of so many columns takes."""
        return self._n_rows * (size + 1)

    def __call__(self, places: Places) -> NDArray[np.float64]:
        """Return the criterion of k sets; float64 (k,)."""
        # The estimate counts columns: one that adds no distance of its own would add divergence.
        pivots, _ = eliminated(self._products.of(places), np.zeros(places.shape), 0.0)
        found = np.full(len(places), np.inf)
        for i in np.flatnonzero((pivots > SINGULAR).all(axis=1)).tolist():
            found[i] = self._of(places[i])
        return found

    def _of(self, columns: NDArray[np.integer]) -> float:
        rows = [np.ascontiguousarray(own[columns].T) for own in self._own]
        total = self._penalty * len(columns)
        for own in (0, 1):
            total -= 2.0 * self._shares[own] * divergence(rows[own], rows[1 - own])
        return total if np.isfinite(total) else np.inf


def divergence(own: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """Return the divergence of the density of ``other`` rows from that of ``own``.

    Not a number where rows coincide so that a distance is 0.

    Parameters
    ----------
    own, other : float64 (n0, d), (n1, d)
        At least two rows, and one.
    """
    n_own, d = own.shape
    k = min(isqrt(n_own), n_own - 1, len(other))
    within, across = _kth(own, own, k), _kth(own, other, k - 1)
    if not (within.all() and across.all()):
        return np.nan
    return float(d * (logs(across) - logs(within)).mean() / 2 + log(len(other) / (n_own - 1)))


def _kth(rows: NDArray[np.float64], others: NDArray[np.float64], k: int) -> NDArray[np.float64]:
    """Return the squared distance of each row to the one of ``others`` with k nearer ones."""
    found = np.empty(len(rows))
    step = max(1, LEAST_CELLS // len(others))
    for first in range(0, len(rows), step):
        some = rows[first : first + step]
        squared = np.zeros((len(some), len(others)))
        for column in range(rows.shape[1]):
            squared += np.square(some[:, column, None] - others[:, column])
        found[first : first + step] = np.partition(squared, k, axis=1)[:, k]
    return found


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
