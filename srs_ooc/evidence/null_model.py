"""What a study's covariates say of its target: the null model that features are tested beside.

It is fitted once, in sample, before a feature is looked at (docs/methods/adjusting.md), and kept as
whole numbers: what features are adjusted for, in which strata rows are compared, and which scores
stand for the target. Written with NumPy alone: the libraries that fit such models take more memory
than many runs.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log2
from typing import NamedTuple

import numpy as np

from srs_ooc.base.arrays import Bools, Floats, Indices, Integers, Ints, Ints32, Reals
from srs_ooc.base.errors import UsageError
from srs_ooc.base.records import Covariate
from srs_ooc.evidence.rank_tests import (
    LIGHT_TAILS,
    Covariates,
    RiskSets,
    even_steps,
    normal_quantiles,
    rows_by,
    tail_weight,
)
from srs_ooc.native.numerics import orthonormal

BASIS_UNIT = 2.0**-30
"""Of the whole numbers that a basis is kept as."""
RIDGE = 1e-3
"""Of coefficients of columns of unit variance, in units of the log-likelihood."""
FEWEST_ROWS = 10
"""Rows for each column of a basis, at least."""
DEGREES = ((5000, 12), (1000, 8), (200, 5), (100, 3), (0, 2))
"""Degrees of freedom of a number, from so many rows on: the more rows, the less of a curve that is
not in the basis passes unseen."""
MOST_WEIGHT = 20.0
"""Of a row as trees are grown, beside the smallest."""
FAR = 10.0
"""Widths of the middle nine tenths beyond which a number is taken for missing."""
_TURNS, _DONE, _REWEIGHTED, _DEPENDENT = 100, 1e-9, 20, 1e-6


class Censored(NamedTuple):
    """Times, and whether the event was seen then; (n_rows,) each."""

    times: Floats
    events: Bools

    def of_rows(self, rows: Integers | Bools | slice) -> "Censored":
        """Return those of some rows."""
        return Censored(self.times[rows], self.events[rows])

    def risk_sets(self, strata: Integers | None = None) -> RiskSets:
        """Return who is at risk at each event, and scores of censoring within strata."""
        places = np.unique(self.times, return_inverse=True)[1].astype(np.int32)
        exchanged = Censored(self.times, ~self.events)
        return RiskSets(places, self.events, censored_scores(exchanged, strata))


# Columns of what is fitted: splines, indicators, products.


def spline(values: Floats, degrees: int) -> list[Floats]:
    """Return columns that span splines of so many degrees of freedom beside the intercept.

    Powers up to the third, and truncated cubes from knots at quantiles; (n_rows,) each, centred.
    """
    low, high = float(values.min()), float(values.max())
    if not low < high:
        return []
    unit = (values - low) / (high - low)
    degrees = min(degrees, len(np.unique(unit[: 1 << 16])) - 1)
    columns = [unit**power for power in range(1, 1 + min(degrees, 3))]
    n_knots = max(0, degrees - 3)
    for knot in np.quantile(unit, np.arange(1, n_knots + 1) / (n_knots + 1)):
        columns.append(np.maximum(unit - knot, 0.0) ** 3)
    return [column - column.mean() for column in columns]


def _known(covariate: Covariate) -> Floats:
    """Return a covariate's values, NaN where missing; of numbers also where far from all others.

    A code for what is missing, or a slip of the pen, would flatten the curve of all others. Far is
    more than ten times the 5th to the 95th percentile from the median.
    """
    if covariate.levels or np.isnan(covariate.values).all():
        return covariate.values
    values = covariate.values / (np.nanmax(np.abs(covariate.values)) or 1.0)  # no sum overflows
    low, middle, high = np.nanquantile(values, (0.05, 0.5, 0.95))
    is_far = np.abs(values - middle) > FAR * (high - low)
    return np.where(is_far & (high > low), np.nan, values)


def _parts(covariate: Covariate) -> tuple[list[Floats], Ints, list[int]]:
    """Return a covariate as a number, where it is one; levels of rows, and which have indicators.

    None of what is common. Of missing cells a number has the mean and an indicator, categories a
    level.
    """
    values = _known(covariate)
    gone = np.isnan(values)
    if not covariate.levels:
        mean = float(values[~gone].mean()) if not gone.all() else 0.0
        numbers, told = np.where(gone, mean, values), gone.any() and not gone.all()
        return [numbers], gone.astype(np.int64), [1] * int(told)
    levels = np.where(gone, len(covariate.levels), covariate.values).astype(np.int64)
    counts = np.bincount(levels)
    counts[np.argmax(counts)] = 0
    return [], levels, np.flatnonzero(counts).tolist()


def _columns(covariates: Sequence[Covariate], degrees: int, *, products: bool) -> list[Floats]:
    numbers, indicators = [], []
    for covariate in covariates:
        own, levels, told = _parts(covariate)
        numbers += own
        indicators += [flag - flag.mean() for flag in ((levels == level) * 1.0 for level in told)]
    columns = [column for number in numbers for column in spline(number, degrees)] + indicators
    if products:
        scaled = [column for number in numbers for column in spline(number, 1)]
        columns += [a * b for i, a in enumerate(scaled) for b in scaled[:i]]
        columns += [a * b for a in scaled for b in indicators]
    return columns


def form_of(
    covariates: Sequence[Covariate], strata: Integers | None = None
) -> tuple[int, bool, int]:
    """Return what is fitted of covariates, and given strata.

    An intercept; each number a cubic spline (:data:`DEGREES`); categories as indicators; products
    of numbers, and of numbers with indicators. Where that is more than a tenth of the rows, degrees
    go first, then products.

    Returns
    -------
    degrees : int
        Degrees of freedom of a number.
    products : bool
        Of numbers, and of numbers with indicators.
    n_columns : int
        Columns of the basis, at most.

    Raises
    ------
    UsageError
        If there are too few rows for the covariates.
    """
    n_rows = len(covariates[0].values)
    most, n_strata = n_rows // FEWEST_ROWS, 1 if strata is None else len(np.unique(strata))
    if n_strata > max(most, 1):
        raise UsageError(
            f"--adjust: expected at most a tenth as many strata as rows, found {n_strata} strata "
            f"of {n_rows} rows. Use coarser strata, or leave --adjust out."
        )
    n = sum(not one.levels for one in covariates)
    m = sum(len(_parts(one)[2]) for one in covariates)
    degrees = next(degrees for least, degrees in DEGREES if n_rows >= least)
    forms = [(d, True) for d in range(degrees, 1, -1)] + [(d, False) for d in range(degrees, 0, -1)]
    for d, products in forms:
        needed = n_strata + n * d + m + products * (n * (n - 1) // 2 + n * m)
        if needed <= most:
            return d, products, needed
    raise UsageError(
        f"--adjust: expected at most one column of covariates for {FEWEST_ROWS} rows, found "
        f"{needed} columns (levels of categories count one by one) for {n_rows} rows. Adjust for "
        "fewer covariates, or for coarser ones."
    )


def fit_nbytes(n_rows: int, n_columns: int) -> int:
    """Return the bytes that fitting so many columns takes."""
    return n_rows * (6 * 8 * n_columns + 200)


def basis_of(covariates: Sequence[Covariate], strata: Integers | None = None) -> Floats:
    """Return an orthonormal basis of what covariates, and given strata, may do to a target.

    float64 (n_rows, k); columns that add nothing are left out. Errors as of :func:`form_of`.
    """
    n_rows, (degrees, products, _) = len(covariates[0].values), form_of(covariates, strata)
    rows = [np.ones(n_rows), *_columns(covariates, degrees, products=products)]
    if strata is not None:
        numbers = np.unique(strata, return_inverse=True)[1].astype(np.float64)
        _, levels, told = _parts(Covariate("", numbers, ("",) * (int(numbers.max()) + 1)))
        rows += [(levels == level).astype(np.float64) for level in told]
    scaled = [row / scale for row in rows if (scale := float(np.sqrt((row * row).mean()))) > 0]
    basis = orthonormal(np.array(scaled), _DEPENDENT)
    return np.ascontiguousarray(basis[np.abs(basis).max(axis=1) > 0].T)


# Fits by Newton's method, with a ridge; columns have unit variance. A loss is minus the
# log-likelihood; it is returned with its slope and its curvature.

_Loss = Callable[[Floats], tuple[float, Floats, Floats]]


def _minimum(loss: _Loss, n: int, what: str) -> Floats:
    beta = np.zeros(n)
    value, slope, curve = loss(beta)
    for _ in range(_TURNS):
        step = np.linalg.solve(curve, slope)
        if float(step @ slope) < _DONE:
            return beta
        for halvings in range(40):
            ahead = beta - step / 2.0**halvings
            found = loss(ahead)
            if found[0] <= value:
                break
        beta, (value, slope, curve) = ahead, found
    raise UsageError(
        f"--adjust: expected covariates by which {what} can be fitted, found that the fit does not "
        "converge. Adjust for fewer covariates, or join rare levels."
    )


def logistic(columns: Floats, is_in: Bools, rows: Bools) -> Floats:
    """Return the probability of each row to be in, as fitted to some rows; float64 (n_rows,).

    ``columns``: (n_rows, k) of unit variance, the intercept first.
    """
    every, columns, is_in = columns, columns[rows], is_in[rows]
    ridge = np.full(columns.shape[1], RIDGE)
    ridge[0] = 1e-9

    def loss(beta: Floats) -> tuple[float, Floats, Floats]:
        eta = columns @ beta
        p = 1 / (1 + np.exp(-np.clip(eta, -500, 500)))
        value = np.logaddexp(0, eta).sum() - eta[is_in].sum() + 0.5 * (ridge * beta * beta).sum()
        curve = (columns * (p * (1 - p))[:, None]).T @ columns + np.diag(ridge)
        return float(value), columns.T @ (p - is_in) + ridge * beta, curve

    eta = every @ _minimum(loss, columns.shape[1], "classes")
    return 1 / (1 + np.exp(-np.clip(eta, -500, 500)))


def robust(columns: Floats, target: Floats) -> Floats:
    """Return coefficients of numbers, far ones of which are weighed down; float64 (k,).

    Huber's proposal by reweighted least squares (Huber 1964, Ann. Math. Statist. 35): residuals
    beyond 1.345 times their median size over .6745 count as if they were no larger.
    """
    weights = np.ones(len(target))
    for _ in range(_REWEIGHTED):
        weighed = columns * weights[:, None]
        curve = columns.T @ weighed
        curve += 1e-9 * np.trace(curve) / len(curve) * np.eye(len(curve))
        beta: Floats = np.asarray(np.linalg.solve(curve, weighed.T @ target), np.float64)
        left = np.abs(target - columns @ beta)
        most = 1.345 / 0.6745 * float(np.median(left))
        if not most:
            break
        np.divide(most, np.maximum(left, most), out=weights)
    return beta


def kaplan_meier(censored: Censored) -> tuple[Floats, Floats]:
    """Return the times of rows, ascending, and the share without the event after each.

    Kaplan and Meier (1958), J. Am. Statist. Assoc. 53; (n_times,) each.
    """
    times, places = np.unique(censored.times, return_inverse=True)
    at_risk = np.cumsum(np.bincount(places)[::-1])[::-1]
    shares: Floats = np.cumprod(
        1 - np.bincount(places, censored.events) / at_risk, dtype=np.float64
    )
    return times, shares


def hazards(censored: Censored, risks: Floats) -> Floats:
    """Return the cumulative hazard at the time of each row, times 1; float64 (n_rows,).

    Nelson's and Aalen's, of rows whose risk is ``risks`` times a common one (Breslow's).
    """
    return _at_risk(censored, risks)[0]


def _at_risk(censored: Censored, risks: Floats) -> tuple[Floats, Indices, Indices, Floats]:
    """Return cumulative hazards; rows by falling time; the last of each time; sums at risk."""
    order = np.argsort(-censored.times, kind="stable")
    times, sums = censored.times[order], np.cumsum(risks[order])
    last = np.searchsorted(-times, -times, side="right") - 1  # of equal times
    sums = sums[last]
    by_time = np.cumsum((censored.events[order] / sums)[::-1])[::-1]
    first = np.searchsorted(-times, -times, side="left")
    out = np.empty(len(times))
    out[order] = by_time[first]
    return out, order, last, sums


def cox(columns: Floats, censored: Censored) -> Floats:
    """Return coefficients of Cox's model, float64 (k,); ties as Breslow has them.

    Cox (1972), J. R. Statist. Soc. B 34. ``columns``: (n_rows, k) of unit variance, no intercept.
    """
    n = columns.shape[1]

    def loss(beta: Floats) -> tuple[float, Floats, Floats]:
        eta = columns @ beta
        risks = np.exp(np.clip(eta, -500, 500))
        hazard, order, last, sums = _at_risk(censored, risks)
        seen = censored.events[order]
        means = (np.cumsum(columns[order] * risks[order, None], axis=0)[last] / sums[:, None])[seen]
        value = np.log(sums[seen]).sum() - eta[censored.events].sum() + 0.5 * RIDGE * beta @ beta
        slope = columns.T @ (risks * hazard - censored.events) + RIDGE * beta
        curve = (columns * (risks * hazard)[:, None]).T @ columns - means.T @ means
        return float(value), slope, curve + RIDGE * np.eye(n)

    return _minimum(loss, n, "times")


def expected(
    basis: Reals, target: Integers | Floats | Censored, others: Reals, n_classes: int
) -> tuple[Floats, Floats]:
    """Return what a basis leaves of a target, and what it says of other rows.

    Parameters
    ----------
    basis, others : float64 (n_rows, k), (n_others, k)
        Columns orthonormal over the rows of both, the intercept first.
    target : (n_rows,)
        Class codes, numbers, or censored times.
    n_classes : int
        1 of numbers and times.

    Returns
    -------
    left : float64 (m, n_rows)
        Target less what is expected; of m classes whether a row is in each, of two the second
        alone.
    known : float64 (m, n_others)
        What is expected of the others: numbers, logarithms of hazards, or probabilities.
    """
    columns = np.concatenate([basis, others]) * np.sqrt(len(basis) + len(others))
    is_in = np.arange(len(columns)) < len(basis)
    if isinstance(target, Censored):
        log_risks = columns[:, 1:] @ cox(columns[is_in, 1:], target)
        risks = np.exp(log_risks[is_in])
        return (target.events - risks * hazards(target, risks))[None], log_risks[None, ~is_in]
    if n_classes == 1:
        numbers = target.astype(np.float64)
        fitted = columns @ robust(columns[is_in], numbers)
        return (numbers - fitted[is_in])[None], fitted[None, ~is_in]
    labels = np.zeros(len(columns), target.dtype)
    labels[is_in] = target
    of = [1] if n_classes == 2 else range(n_classes)
    fitted = np.array([logistic(columns, labels == c, is_in) for c in of])
    return np.array([target == c for c in of]) - fitted[:, is_in], fitted[:, ~is_in]


# What a null model says of rows: scores of the target, strata.


def censored_scores(censored: Censored, strata: Integers | None = None) -> Ints32:
    """Return event less cumulative hazard within strata, in even steps: the log-rank test's score.

    They permute exactly where censoring does not depend on the feature. As ranks they would lose
    power where most rows are censored.
    """
    out = np.zeros(len(censored.times))
    for rows in rows_by(np.zeros(len(out), np.intp) if strata is None else strata):
        part = censored.of_rows(rows)
        out[rows] = part.events - hazards(part, np.ones(len(rows)))
    return even_steps(out)


def midranks(values: Floats) -> Floats:
    """Return midranks from 0 to 1, float64 (n_rows,)."""
    _, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
    return ((2 * np.cumsum(counts) - counts) / (2 * len(values)))[codes]


def strata_of(fitted: Sequence[Floats], given: Integers | None = None) -> Ints32:
    """Return strata of rows that are alike by all fitted values; int32 (n_rows,) from 0.

    Bins of equal size within given strata; of several fitted values each is cut within bins of
    those before. In all ``2 n^(1/4)`` or, if that is more, ``n / 50``, up to ``sqrt(n)``; 3 at
    least, and if more of 20 rows each: so many hold part of what the basis lacks, a step say.
    """
    n_rows = len(fitted[0])
    numbers = np.zeros(n_rows, np.int64) if given is None else given.astype(np.int64)
    wanted = min(max(2 * n_rows**0.25, n_rows / 50), n_rows**0.5)
    total = max(3, min(round(wanted), n_rows // 20))
    n_cut = min(len(fitted), max(1, int(log2(total))))
    each = max(2, round(total ** (1 / n_cut)))
    for values in fitted[:n_cut]:
        bins = np.zeros(n_rows, np.int64)
        for rows in rows_by(numbers):
            n_bins = each if len(rows) == n_rows else max(1, min(each, len(rows) // 10))
            bins[rows] = np.minimum(midranks(values[rows]) * n_bins, n_bins - 1).astype(np.int64)
        numbers = numbers * each + bins
    return np.unique(numbers, return_inverse=True)[1].astype(np.int32)


@dataclass(frozen=True)
class NullModel:
    """What covariates say of a target, in whole numbers.

    Attributes
    ----------
    basis : int32 (n_rows, k)
        Orthonormal columns, in units of :data:`BASIS_UNIT`.
    strata : int32 (n_rows,)
        From 0: given ones, and bins of what is fitted.
    scores : int32 (n_rows,)
        In place of a target of numbers or times, in even steps; of classes the weight of a row as
        trees are grown: rows of all classes then have the same covariates.
    """

    basis: Ints32
    strata: Ints32
    scores: Ints32

    @classmethod
    def of(
        cls,
        target: Integers | Floats | Censored,
        covariates: Sequence[Covariate],
        strata: Integers | None = None,
    ) -> "NullModel":
        """Fit it to a target: class codes (integers), numbers, or censored times.

        Raises
        ------
        UsageError
            If rows are too few for the covariates, a fit does not converge, or no stratum has rows
            of two classes, so that covariates say the class.
        """
        basis = basis_of(covariates, strata)
        columns = basis * np.sqrt(len(basis))
        if isinstance(target, Censored):
            risk = columns[:, 1:] @ cox(columns[:, 1:], target)
            left = target.events - np.exp(risk) * hazards(target, np.exp(risk))
            bins, scores = strata_of([risk], strata), even_steps(left)
        elif target.dtype.kind == "f":
            fitted = basis @ robust(basis, target.astype(np.float64))
            ranks = midranks(target - fitted)
            if tail_weight(target - fitted) <= LIGHT_TAILS:
                ranks = normal_quantiles(ranks)
            left = ranks - basis @ (basis.T @ ranks)
            bins, scores = strata_of([fitted], strata), even_steps(left)
        else:
            bins, scores = _of_classes(target.astype(np.int64), columns, strata)
        return cls(np.rint(basis / BASIS_UNIT).astype(np.int32), bins, scores)

    def of_rows(self, is_in: Bools) -> "NullModel":
        """Return what it says of some of the rows, as fitted to all."""
        return NullModel(self.basis[is_in], self.strata[is_in], self.scores[is_in])

    def covariates(self) -> Covariates:
        """Return what features are adjusted for."""
        return Covariates.of(self.basis.astype(np.float64) * BASIS_UNIT, self.strata)


def _of_classes(target: Ints, columns: Floats, strata: Integers | None) -> tuple[Ints32, Ints32]:
    """Return strata and weights: each class is fitted against those with more rows."""
    sizes = np.bincount(target)
    order = [c for c in np.argsort(sizes, kind="stable").tolist() if sizes[c]]
    shares, rest, fitted = np.zeros((len(order), len(target))), np.ones(len(target)), []
    for place, c in enumerate(order[:-1]):
        fitted.append(logistic(columns, target == c, np.isin(target, order[place:])))
        shares[place] = rest * fitted[-1]
        rest = rest - shares[place]
    shares[-1] = rest
    bins = strata_of(fitted, strata)
    n_bins = int(bins.max()) + 1
    least = np.full(n_bins, len(sizes), target.dtype)
    most = np.zeros(n_bins, target.dtype)
    np.minimum.at(least, bins, target)
    np.maximum.at(most, bins, target)
    if (least >= most).all():
        raise UsageError(
            "--adjust: expected covariates that leave rows of several classes alike, found that "
            f"in none of {n_bins} strata of what they predict are rows of two classes: they say "
            "the class by themselves. Adjust for fewer covariates."
        )
    places = np.empty(len(sizes), np.intp)
    places[order] = np.arange(len(order))
    own = shares[places[target], np.arange(len(target))]
    weights = sizes[target] / len(target) / np.maximum(own, 1e-6)
    weights = np.minimum(weights / weights.min(), MOST_WEIGHT)
    return bins, np.rint(100 * weights).astype(np.int32)
