"""Information criteria of subspaces: which goes with which model, and how all are judged."""

from collections.abc import Callable
from dataclasses import dataclass
from math import isqrt, sqrt

import numpy as np
from numpy.typing import NDArray

import srs_ooc.extend as core

# Second moments of many small sets of columns, and what follows from them by elimination.

LEAST_CELLS = 1 << 18
"""Cells of the tables of a batch of sets, where a table of all columns has fewer."""
SINGULAR = 1e-10
"""Share of a column's variance that its set must leave of it, or its moments count as singular."""
_WHOLE_IS_CHEAPER = 8
"""How many products of the whole table take as long as one of a small set's."""

Places = core.Integers
Table = core.Floats


def mean_products(table: Table, sets: core.Candidates) -> Callable[[Places], Table]:
    """Return what gives the mean products of k sets of d columns, float64 (k, d, d).

    Parameters
    ----------
    table : float64 (n_columns, n_rows)
        A column each, centered as the moments are to be.
    sets : Candidates
        Those that will be asked for. Where they have about as many pairs as all columns have, the
        products of all columns are computed once.
    """
    n_columns, n_rows = table.shape
    n_pairs = int((np.diff(sets.bounds).astype(np.int64) ** 2).sum())
    scale = 1.0 / n_rows
    whole: Table | None = None
    if n_columns <= n_rows and n_columns**2 <= _WHOLE_IS_CHEAPER * n_pairs:
        rows = np.ascontiguousarray(table.T)
        whole = core.numerics.products(rows, rows) * scale

    def of(places: Places) -> Table:
        if whole is not None:
            return whole[places[:, :, None], places[:, None, :]]
        own = table[places]
        products_of_sets = row_products(own, own)
        products_of_sets *= scale
        return products_of_sets

    return of


def of_all(
    sets: core.Candidates,
    of: Callable[[Places], Table],
    table: Table,
    largest: int,
    n_cells: Callable[[int], int] | None = None,
) -> Table:
    """Return the criterion of many sets of columns; infinite where it cannot be computed.

    Parameters
    ----------
    sets : Candidates
        Those to be judged.
    of : callable
        Returns the criterion of k sets of d columns, int (k, d); float64 (k,).
    table : float64 (n_columns, n_rows)
        The columns.
    largest : int
        The most columns of a set for which it can be computed.
    n_cells : callable, optional
        Returns the numbers of the largest table that a set of so many columns takes; default the
        rows by one column more.
    """
    sizes, most_cells = np.diff(sets.bounds), max(table.size, LEAST_CELLS)
    losses = np.full(len(sizes), np.inf)
    for size in np.unique(sizes[sizes <= largest]).tolist():
        numbers = np.flatnonzero(sizes == size)
        step = max(1, most_cells // (n_cells(size) if n_cells else len(table[0]) * (size + 1)))
        for first in range(0, len(numbers), step):
            some = numbers[first : first + step]
            losses[some] = of(sets.places[sets.bounds[some, None] + np.arange(size)])
    return losses


def row_products(a: core.Floats, b: core.Floats) -> core.Floats:
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
    moments: core.Floats, side: core.Floats, corner: float
) -> tuple[core.Floats, core.Floats]:
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


def solved(matrices: core.Floats, sides: core.Floats) -> core.Floats:
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


def logistic(table: Table, labels: Places, sets: core.Candidates, each: float) -> Table:
    """Return the extended BIC of a logistic fit with an intercept, of two classes or more.

    ``eBIC(S) = -2 log L + (K - 1) d (log n + 2 gamma log p)`` (Chen and Chen 2012), K the classes
    among the rows. L is of the unpenalised fit, or its bound where classes are separated.

    Parameters
    ----------
    table : float64 (n_columns, n_rows)
        Standardised columns.
    labels : int (n_rows,)
        Class codes.
    sets : Candidates
        Those to be judged.
    each : float
        What a parameter costs: ``log n + 2 gamma log p``.
    """
    found, codes = np.unique(labels, return_inverse=True)
    truth: Table = np.eye(len(found))[:, codes]
    n_classes, n_rows = truth.shape
    products_of = mean_products(table, sets)

    def n_cells(size: int) -> int:
        """Return the numbers of a table of rows by columns, or of the curvature."""
        n_free = (size + 1) * (n_classes - 1)
        return int(max(n_rows * max(size + 1, n_classes), n_free * n_free))

    def of(places: Places) -> Table:
        regular = _regular(products_of, places)
        found = np.full(len(places), np.inf)
        if len(regular) > 0:
            design = np.ones((len(regular), places.shape[1] + 1, n_rows))
            design[:, 1:] = table[places[regular]]
            found[regular] = deviances(design, truth) + each * (n_classes - 1) * places.shape[1]
        return found

    return of_all(sets, of, table, n_rows - 2, n_cells)


def _regular(products_of: Callable[[Places], Table], places: Places) -> core.Indices:
    """Return which sets have columns that do not determine one another."""
    pivots, _ = eliminated(products_of(places), np.zeros(places.shape), 0.0)
    return np.flatnonzero((pivots > SINGULAR).all(axis=1))


def deviances(design: core.Floats, truth: core.Floats) -> core.Floats:
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
    coefficients[:, :, 0] = core.numerics.logs(shares[1:] / shares[0])
    deviance = np.empty(len(design))
    going = np.arange(len(design))
    fits = (design, coefficients, *_said(design, coefficients, truth))
    deviance[:] = fits[3]
    for _ in range(MOST_STEPS):
        fits, going = _ahead(fits, going, fits[3] > SEPARATED)
        if len(going) == 0:
            break
        before = fits[3]
        fits = _stepped(*fits, truth)
        deviance[going] = fits[3]
        fits, going = _ahead(fits, going, before - fits[3] > CONVERGED * (fits[3] + 0.1))
    return np.where(deviance > SEPARATED, deviance, 0.0)


def _ahead(
    fits: tuple[Table, Table, Table, Table], going: core.Indices, some: core.Bools
) -> tuple[tuple[Table, Table, Table, Table], core.Indices]:
    """Return some of the fits that go on, and which they are of all.

    Designs, coefficients (k, n_classes - 1, c), log shares and deviances.
    """
    if some.all():
        return fits, going
    design, coefficients, log_shares, deviance = (part[some] for part in fits)
    return (design, coefficients, log_shares, deviance), going[some]


def _said(
    design: core.Floats, coefficients: core.Floats, truth: core.Floats
) -> tuple[core.Floats, core.Floats]:
    """Return logs of class shares, (k, n_classes, n_rows), and deviances, (k,)."""
    scores = np.zeros((len(design), *truth.shape))
    for column in range(design.shape[1]):
        scores[:, 1:] += coefficients[:, :, column, None] * design[:, None, column]
    scores -= scores.max(axis=1, keepdims=True)
    scores -= core.numerics.logs(core.numerics.powers(scores).sum(axis=1, keepdims=True))
    return scores, -2.0 * (scores * truth).reshape(len(scores), -1).sum(axis=1)


def _stepped(
    design: Table, coefficients: Table, log_shares: Table, deviance: Table, truth: Table
) -> tuple[Table, Table, Table, Table]:
    """Return the fits after a step that does not raise a deviance."""
    step = _newton_step(design, log_shares, truth)
    after = coefficients + step
    said, reached = _said(design, after, truth)
    for _ in range(_HALVINGS):
        rose = np.flatnonzero(~(reached <= deviance))
        if len(rose) == 0:
            break
        step[rose] /= 2
        after[rose] = coefficients[rose] + step[rose]
        said[rose], reached[rose] = _said(design[rose], after[rose], truth)
    rose = np.flatnonzero(~(reached <= deviance))
    after[rose], reached[rose] = coefficients[rose], deviance[rose]
    said[rose] = log_shares[rose]
    return design, after, said, reached


def _newton_step(design: Table, log_shares: Table, truth: Table) -> Table:
    """Return the Newton step of each; float64 (k, n_classes - 1, c)."""
    shares = core.numerics.powers(log_shares[:, 1:])
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
    return core.numerics.log(core.numerics.log(float(max(n_rows, 3)))) / sqrt(n_rows)


def linear_ratio(table: Table, labels: Places, sets: core.Candidates) -> Table:
    """Return RIC of two normal densities with a common covariance matrix (linear discriminant).

    ``RIC(S) = -(m1 - m0)' C^-1 (m1 - m0) + c_n d``: both divergences are half the squared
    Mahalanobis distance of the means. C is the maximum-likelihood estimate, divided by n (Tian and
    Feng 2021; c_n and degrees of freedom as in their package RaSEn).

    Parameters
    ----------
    table : float64 (n_columns, n_rows)
        Standardised columns.
    labels : int (n_rows,)
        0 or 1.
    sets : Candidates
        Those to be judged.
    """
    n_rows = table.shape[1]
    means = np.stack([table[:, labels == k].mean(axis=1) for k in (0, 1)])
    products_of = mean_products(table - means[labels].T, sets)
    penalty = ratio_penalty(n_rows)

    def of(places: Places) -> Table:
        pivots, corner = eliminated(products_of(places), (means[1] - means[0])[places], 0.0)
        return _unless_singular(pivots, corner + penalty * places.shape[1])

    return of_all(sets, of, table, n_rows - 2)


def quadratic_ratio(table: Table, labels: Places, sets: core.Candidates) -> Table:
    """Return RIC of two normal densities with covariance matrices of their own.

    ``RIC(S) = -2 (w0 KL(f0, f1) + w1 KL(f1, f0)) + c_n d (d + 3) / 2`` with class shares w and

        KL(f0, f1) = (tr(C1^-1 C0) + (m1 - m0)' C1^-1 (m1 - m0) - d + log det C1 - log det C0) / 2

    Parameters are those of :func:`linear_ratio`.
    """
    n_rows = table.shape[1]
    rows_of = [table[:, labels == k] for k in (0, 1)]
    means = [rows.mean(axis=1) for rows in rows_of]
    products_of = [
        mean_products(rows - mean[:, None], sets) for rows, mean in zip(rows_of, means, strict=True)
    ]
    shares, penalty = [rows.shape[1] / n_rows for rows in rows_of], ratio_penalty(n_rows)

    def of(places: Places) -> Table:
        d, apart = places.shape[1], (means[1] - means[0])[places]
        moments = [products(places) for products in products_of]
        pivots, distances = zip(*(eliminated(own, apart, 0.0) for own in moments), strict=True)
        found = np.full(len(places), np.inf)
        regular = np.flatnonzero((np.concatenate(pivots, axis=1) > SINGULAR).all(axis=1))
        log_pivots = [core.numerics.logs(own[regular]).sum(axis=1) for own in pivots]
        total = np.full(len(regular), penalty * d * (d + 3) / 2)
        for own, other in ((0, 1), (1, 0)):
            a, b = moments[own][regular], moments[other][regular]
            trace = np.trace(solved(b, a), axis1=1, axis2=2)
            twice = trace - distances[other][regular] - d + log_pivots[other] - log_pivots[own]
            total -= shares[own] * twice
        found[regular] = total
        return found

    return of_all(sets, of, table, min(rows.shape[1] for rows in rows_of) - 1)


def least_squares(table: Table, numbers: Table, sets: core.Candidates, each: float) -> Table:
    """Return the extended BIC of a least-squares fit with an intercept and normal errors.

    ``eBIC(S) = n log(RSS / n) + d (log n + 2 gamma log p)`` (Chen and Chen 2008, 2012).

    Parameters
    ----------
    table : float64 (n_columns, n_rows)
        Standardised columns.
    numbers : float64 (n_rows,)
        The target.
    sets : Candidates
        Those to be judged.
    each : float
        What a column costs: ``log n + 2 gamma log p``.
    """
    n_rows, centered = len(numbers), numbers - numbers.mean()
    spread = float(np.sqrt((centered * centered).mean())) or 1.0
    table = table - table.mean(axis=1, keepdims=True)
    products_of = mean_products(table, sets)
    with_target = (table * (centered / spread)).sum(axis=1) / n_rows

    def of(places: Places) -> Table:
        pivots, left = eliminated(products_of(places), with_target[places], 1.0)
        left = core.numerics.logs(np.maximum(left, LEAST_RESIDUAL)) + 2 * core.numerics.log(spread)
        return _unless_singular(pivots, n_rows * left + each * places.shape[1])

    return of_all(sets, of, table, n_rows - 2)


def _unless_singular(pivots: core.Floats, found: core.Floats) -> core.Floats:
    return np.where((pivots > SINGULAR).all(axis=1), found, np.inf)


# RIC without a model of the densities: divergences from distances to nearest neighbours.


def neighbour_ratio(table: Table, labels: Places, sets: core.Candidates) -> Table:
    """Return RIC of two densities about which nothing is assumed.

    ``RIC(S) = -2 (w0 KL(f0, f1) + w1 KL(f1, f0)) + c_n d`` with class shares w, where

        KL(f0, f1) = d / n0 sum over i of log(v_i / r_i) + log(n1 / (n0 - 1))

    and r_i is the distance of row i of class 0 to its k-th neighbour in class 0, v_i that to its
    k-th neighbour in class 1 (Wang, Kulkarni and Verdu 2009, equation 5), k the root of n0, rounded
    down. Parameters are those of :func:`linear_ratio`.
    """
    n_rows = table.shape[1]
    rows_of = [table[:, labels == k] for k in (0, 1)]
    penalty, products_of = ratio_penalty(n_rows), mean_products(table, sets)

    def of_one(columns: Places) -> float:
        rows = [np.ascontiguousarray(own[columns].T) for own in rows_of]
        total = penalty * len(columns)
        for own in (0, 1):
            total -= 2.0 * (len(rows[own]) / n_rows) * divergence(rows[own], rows[1 - own])
        return total if np.isfinite(total) else np.inf

    def of(places: Places) -> Table:
        # The estimate counts columns: one that adds no distance of its own would add divergence.
        found = np.full(len(places), np.inf)
        for i in _regular(products_of, places).tolist():
            found[i] = of_one(places[i])
        return found

    largest = n_rows - 2 if min(rows.shape[1] for rows in rows_of) > 1 else 0
    return of_all(sets, of, table, largest)


def divergence(own: core.Floats, other: core.Floats) -> float:
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
    apart = (core.numerics.logs(across) - core.numerics.logs(within)).mean() / 2
    return float(d * apart + core.numerics.log(len(other) / (n_own - 1)))


def _kth(rows: core.Floats, others: core.Floats, k: int) -> core.Floats:
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


_RATIOS: dict[str, Callable[[Table, Places, core.Candidates], Table]] = {
    "sklearn.discriminant_analysis.LinearDiscriminantAnalysis": linear_ratio,
    "sklearn.discriminant_analysis.QuadraticDiscriminantAnalysis": quadratic_ratio,
    "sklearn.neighbors.KNeighborsClassifier": neighbour_ratio,
}
RIC, EBIC = "ric", "ebic"
"""Ratio information criterion, and extended BIC: of the training rows, without folds."""
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
    path = core.path_of(model, is_regression=n_classes == 1)
    if criterion == RIC:
        if n_classes != 2:
            found = "a regression" if n_classes == 1 else f"{n_classes} classes"
            raise core.UsageError(
                f"criterion={RIC}: expected two classes, whose densities it compares, found "
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


def _wrong_model(criterion: str, expected: str, model: str) -> core.UsageError:
    return core.UsageError(
        f"criterion={criterion}: expected --model {expected}, found --model {model}. Choose one, "
        "or criterion=cv."
    )


@dataclass(frozen=True)
class InformationCriterion:
    """What judges sets of columns by the rows that there are to fit on.

    Attributes
    ----------
    name : {'ric', 'ebic'}
        Which.
    gamma : float
        Weight of the number of subspaces of a size, in ``ebic``.
    n_features : int
        p: features that may be drawn.
    """

    name: str
    gamma: float = 0.0
    n_features: int = 1

    def losses(
        self,
        sets: core.Candidates,
        columns: Table,
        known: NDArray[np.int32 | np.float64],
        model: str,
    ) -> Table:
        """Return the criterion of many sets of columns; float64 (n_sets,).

        Infinite where it cannot be computed: too many columns for the rows, columns that are
        constant, that determine one another, or that have no variance within a class. Parameters
        are those of :class:`srs_ooc.extend.Criterion`, of a model that :func:`check_criterion`
        accepts.
        """
        if bool((known == known[0]).all()):
            return np.full(len(sets.bounds) - 1, np.inf)
        table, n_rows = np.ascontiguousarray(columns.T), float(len(known))
        each = core.numerics.log(n_rows) + 2 * self.gamma * core.numerics.log(
            float(self.n_features)
        )
        if self.name == RIC:
            losses = _RATIOS[model](table, known.astype(np.intp), sets)
        elif model in _LIKELIHOODS[True]:
            losses = least_squares(table, known.astype(np.float64), sets, each)
        else:
            losses = logistic(table, known.astype(np.intp), sets, each)
        losses[np.isnan(losses)] = np.inf
        return losses
