"""Which way a feature differs, by how much, and how sure that is: effects with intervals.

Of one feature alone, from its codes, which are ranks. Where rows have strata, rows are compared
within them, and an effect is the weighted mean over strata. Effects decide nothing.

Intervals are of 95% for a feature that was named before. Of features that are shown because of
what they are, so many intervals miss; :func:`wide_enough` makes them as wide as it takes.
"""

from collections.abc import Callable, Iterator
from enum import IntEnum
from functools import partial
from math import sqrt
from statistics import NormalDist
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.arrays import Bools, Floats, Indices, Integers, Ints
from srs_ooc.evidence.null_model import Censored
from srs_ooc.evidence.rank_tests import Contrast
from srs_ooc.native.numerics import exp, log

_Number = TypeVar("_Number", bound=np.number[Any])
Z = 1.959963984540054
"""Of a 95% interval."""


def wide_enough(n_shown: int, n_looked_at: int) -> float:
    """Return how many standard errors an interval of a feature that is shown must reach.

    Of all that are shown, 5% miss on average: the false coverage rate of Benjamini and Yekutieli
    (2005), J. Am. Stat. Assoc. 100, Definition 1, for independent effects and features chosen by
    their own.
    """
    share = 0.05 * min(1.0, max(1, n_shown) / max(1, n_looked_at))
    return -NormalDist().inv_cdf(share / 2)


_SHARES, _CONCORDANCE, _TIMES = "difference of shares", "concordance", "shorter/longer"


class Measure(IntEnum):
    """What an effect is of; a verdict keeps the number.

    Attributes
    ----------
    title : str
        What it is called: AUC, Spearman, ratio of spreads, difference of shares, concordance.
    neutral : float
        The effect of a feature that makes no difference.
    """

    title: str
    neutral: float
    _said: tuple[str, ...]

    def __new__(cls, number: int, title: str = "", neutral: float = 0.0, *said: str) -> "Measure":
        """Return a measure by its number; ``said``: which way in words, and the two ways."""
        one = int.__new__(cls, number)
        one._value_, one.title, one.neutral, one._said = number, title, neutral, said
        return one

    NONE = 0, "", 0.0, "", ""
    AUC = 1, "AUC", 0.5, "{} in {k}", "higher/lower"
    SPEARMAN = 2, "Spearman", 0.0, "{} with the target", "rises/falls"
    SPREAD_RATIO = 3, "ratio of spreads", 1.0, "{} spread in {k}", "more/less"
    SPREAD_SPEARMAN = 4, "Spearman", 0.0, "spread {} with the target", "rises/falls"
    ABSENCE_SHARES = 5, _SHARES, 0.0, "{} often missing in {k}", "more/less"
    ABSENCE_AUC = 6, "AUC", 0.5, "target {} where missing", "higher/lower"
    LEVEL_SHARES = 7, _SHARES, 0.0, "level {level} is {} frequent in {k}", "more/less"
    LEVEL_AUC = 8, "AUC", 0.5, "target {} at level {level}", "higher/lower"
    CONCORDANCE = 9, _CONCORDANCE, 0.5, "{} when higher", _TIMES
    SPREAD_CONCORDANCE = 10, _CONCORDANCE, 0.5, "{} when far from the middle", _TIMES
    ABSENCE_CONCORDANCE = 11, _CONCORDANCE, 0.5, "{} where missing", _TIMES
    LEVEL_CONCORDANCE = 12, _CONCORDANCE, 0.5, "{} at level {level}", _TIMES

    @property
    def is_of_level(self) -> bool:
        """Whether it is of a level of a categorical feature."""
        return self in (Measure.LEVEL_SHARES, Measure.LEVEL_AUC, Measure.LEVEL_CONCORDANCE)

    def direction(self, effect: float, of_class: str, level: str) -> str | None:
        """Say which way an effect goes; None where it goes neither way."""
        if effect == self.neutral:
            return None
        words, ways = self._said
        return words.format(ways.split("/")[effect < self.neutral], k=of_class, level=level)


class Interval(NamedTuple):
    """An effect, and the ends of its interval; NaN where they are not defined."""

    effect: float
    low: float
    high: float


UNKNOWN = Interval(np.nan, np.nan, np.nan)


class Levels(NamedTuple):
    """Rows by stratum and, within it, by level in ascending order: one cell for each.

    Attributes
    ----------
    cells : int (n_rows,)
        Cell of each row.
    counts : int64 (n_cells,)
        Rows of each cell.
    strata : int (n_cells,)
        Number of its stratum, of those that have rows.
    starts : intp (n_strata,)
        First cell of each stratum.
    """

    cells: Integers
    counts: Ints
    strata: Integers
    starts: Indices

    @classmethod
    def of(cls, codes: NDArray[Any], strata: Integers | None) -> "Levels":
        """Return the levels of codes from 0, int (n_rows,), within ``strata``; one row at least."""
        cells: Integers
        if strata is None:
            counts = np.bincount(codes)
            is_used = counts > 0
            cells = (np.cumsum(is_used, dtype=np.int32) - np.int32(1))[codes]
            counts, of = counts[is_used], np.zeros(np.count_nonzero(is_used), np.intp)
        else:
            width = int(codes.max()) + 1
            keys = strata.astype(np.int64) * width + codes
            used, cells, counts = np.unique(keys, return_inverse=True, return_counts=True)
            of = np.unique(used // width, return_inverse=True)[1]
        return cls(cells, counts, of, np.flatnonzero(np.diff(of, prepend=-1)))

    def sums(self, of_cells: NDArray[_Number]) -> NDArray[_Number]:
        """Return the sums over each stratum's cells."""
        return np.add.reduceat(of_cells, self.starts)

    def below(self, counts: Ints) -> Ints:
        """Return how many of some rows are in the same stratum, at a lower level."""
        before = np.cumsum(counts) - counts
        return before - before[self.starts][self.strata]

    def centred(self) -> Ints:
        """Return twice each cell's midrank within its stratum, less its mean."""
        sizes: Ints = self.sums(self.counts)[self.strata]
        return 2 * self.below(self.counts) + self.counts - sizes

    def divided(self, is_in: Bools) -> tuple[NDArray[Any], ...]:
        """Return rows in and out by cell, both by stratum, and the weights of strata, if any."""
        a = np.bincount(self.cells[is_in], minlength=len(self.counts))
        b = self.counts - a
        n_a, n_b = self.sums(a), self.sums(b)
        return a, b, np.maximum(n_a, 1), np.maximum(n_b, 1), _weights(n_a, n_b)


def _weights(n_a: Ints, n_b: Ints) -> Floats:
    """Return the weights of strata, ``n_a n_b / (n_a + n_b)`` over their sum; 0 if all are 0."""
    weights: Floats = n_a * n_b / np.maximum(n_a + n_b, 1)
    weights /= max(float(weights.sum()), 1e-300)
    return weights


def auc(levels: Levels, is_in: Bools, z: float = Z) -> Interval:
    """Return the chance that a row that is in lies above one that is not; ties count a half.

    The variance is that of DeLong, DeLong and Clarke-Pearson (1988), Biometrics 44, from the
    placements of rows: ``sum_i (V10_i - A)^2 / n_a^2 + sum_j (V01_j - A)^2 / n_b^2``. Strata:
    squared weights; as a pair of rows is in both sums, what pairs vary by is taken off once (half
    of all at most), and the variance is at least that of the pairs of rows if these were
    independent, by A (in small strata that are all alike, placements do not vary). The interval is
    that of the logit, with one row more in each class that is above the other class with chance A
    (Agresti and Caffo 2000, Am. Stat. 54, add rows to shares likewise); its ends reach as far from
    A as from A with those rows. So it is defined where A is 1, and holds with few rows.
    """
    a, b, n_a, n_b, weights = levels.divided(is_in)
    if not weights.any():
        return UNKNOWN
    below_a, below_b, of = levels.below(a), levels.below(b), levels.strata
    wins, ties = levels.sums(a * below_b), levels.sums(a * b)
    found = min(float((weights * ((2 * wins + ties) / (2 * n_a * n_b))).sum()), 1.0)
    totals = [float(n[weights > 0].sum()) for n in (n_a, n_b)]
    centre = sum((n * found + 0.5) / (n + 1) for n in totals) / 2
    ahead = (2 * below_b + b) / (2 * n_b[of]) - centre
    behind = 1 - (2 * below_a + a) / (2 * n_a[of]) - centre
    parts = [levels.sums(a * ahead**2) / n_a**2, levels.sums(b * behind**2) / n_b**2]
    variance, least = 0.0, 0.0
    if len(weights) > 1:
        losses = n_a * n_b - wins - ties
        pairs = wins * (1 - centre) ** 2 + ties * (0.5 - centre) ** 2 + losses * centre**2
        both = parts[0] + parts[1]
        kept = np.maximum(1 - pairs / (n_a * n_b) ** 2 / np.where(both > 0, both, 1), 0.5)
        parts = [part * kept for part in parts]
        of_pairs = np.maximum(centre * (1 - centre) - ties / (4 * n_a * n_b), 0) / (n_a * n_b)
        least = float((weights**2 * of_pairs).sum())
    for n, part in zip(totals, parts, strict=True):
        sums = float((weights**2 * part).sum()) * n * n
        variance += (sums + centre * (1 - centre)) / (n + 1) ** 2
    return _by_logit(found, centre, max(variance, least), z)


def _by_logit(found: float, centre: float, variance: float, z: float) -> Interval:
    """Return an effect between 0 and 1 with the interval of its logit, as far from a centre."""
    reach = exp(z * sqrt(variance) / (centre * (1 - centre)))
    ends = [a * to / (a * to + (1 - a)) for to in (1 / reach, reach) for a in (found, centre)]
    return Interval(found, min(ends), max(ends))


def spearman(x: Levels, y: Levels, z: float = Z) -> Interval:
    """Return Spearman's rank correlation; within strata that of ranks less their means.

    Ranks are divided by the rows of their stratum. The interval is Fisher's, with the variance
    ``(1 + r^2 / 2) / (n - 3)`` of Bonett and Wright (2000), Psychometrika 65, n being one less for
    each further stratum. A correlation of 1 is taken for one of half a swap of neighbours less.
    """
    sizes = x.sums(x.counts)
    n = int(sizes.sum() - np.count_nonzero(sizes) + 1)
    u, v = (of.centred() / sizes[of.strata] for of in (x, y))
    scale = float((x.counts * u * u).sum()) * float((y.counts * v * v).sum())
    if not scale:
        return UNKNOWN
    products = np.bincount(x.cells, weights=v[y.cells], minlength=len(u)) * u
    found = min(max(float(products.sum()) / sqrt(scale), -1.0), 1.0)
    if n <= 3:
        return Interval(found, np.nan, np.nan)
    most = 1 - 6 / (n * (n * n - 1))
    r = min(max(found, -most), most)
    middle, reach = log((1 + r) / (1 - r)) / 2, z * sqrt((1 + r * r / 2) / (n - 3))
    low, high = (1 - 2 / (exp(2 * (middle + to)) + 1) for to in (-reach, reach))
    return Interval(found, min(low, found), max(high, found))


def spread_ratio(levels: Levels, is_in: Bools, z: float = Z) -> Interval:
    """Return the mean distance of ranks from the middle of all rows: of those in over the others.

    One is added to distances of doubled ranks, so that a class all in the middle has some. The
    interval is that of the logarithm, as of mean absolute deviations (Bonett and Seier 2003,
    Am. Stat. 57): its variance is the sum of the squared standard errors over the means.
    """
    a, b, n_a, n_b, weights = levels.divided(is_in)
    if not weights.any():
        return UNKNOWN
    distances = (np.abs(levels.centred()) + 1) / levels.sums(levels.counts)[levels.strata]
    means, variance = [], 0.0
    for counts, n in ((a, n_a), (b, n_b)):
        means.append(mean := float((weights * levels.sums(counts * distances) / n).sum()))
        squares = levels.sums(counts * (distances - mean) ** 2) / n**2
        total = float(n[weights > 0].sum())
        freedom = total / (total - 1) if total > 1 else np.nan
        variance += freedom * float((weights**2 * squares).sum()) / mean**2
    found, reach = means[0] / means[1], z * sqrt(variance)
    if np.isnan(reach):
        return Interval(found, np.nan, np.nan)
    return Interval(found, found * exp(-reach), found * exp(reach))


def share_difference(is_it: Bools, is_in: Bools, strata: Integers | None, z: float = Z) -> Interval:
    """Return the share of rows that are it among those in, less that among the others.

    The interval is Newcombe's from Wilson's of both shares (1998, Statist. Med. 17, method 10).
    Within strata the shares are weighted means, of as many rows as have their variance if all
    strata had one share: that is wide rather than narrow.
    """
    where = np.zeros(len(is_it), np.intp) if strata is None else strata
    sizes = [np.bincount(where[side], minlength=where.max() + 1) for side in (is_in, ~is_in)]
    weights, shares, ends = _weights(*sizes), [], []
    if not weights.any():
        return UNKNOWN
    for side, n in zip((is_in, ~is_in), sizes, strict=True):
        counts = np.bincount(where[side & is_it], minlength=len(n)) / np.maximum(n, 1)
        shares.append(share := min(float((weights * counts).sum()), 1.0))
        ends.append(wilson(share, 1 / float((weights**2 / np.maximum(n, 1)).sum()), z))
    (p, q), ((p_low, p_high), (q_low, q_high)) = shares, ends
    below, above = (p - p_low) ** 2 + (q_high - q) ** 2, (p_high - p) ** 2 + (q - q_low) ** 2
    return Interval(p - q, p - q - sqrt(below), p - q + sqrt(above))


def wilson(share: float, n: float, z: float) -> tuple[float, float]:
    """Return Wilson's (1927) interval of a share of ``n`` rows."""
    middle, square = share + z * z / (2 * n), z * z / n
    reach = z * sqrt(share * (1 - share) / n + square / (4 * n))
    return (middle - reach) / (1 + square), (middle + reach) / (1 + square)


_SIGNS = np.array([1, -1, -1, 1])


def interaction(
    values: NDArray[Any], cells: Integers, strata: Integers | None, z: float = Z
) -> Interval:
    """Return the difference of differences of means over the cells that halves of two make.

    Of cells 0 to 3, ``(m3 - m2) - (m1 - m0)``: by how much the difference between the halves of one
    feature is larger in the upper half of the other. Within strata the means are weighted, of those
    strata that have rows of all four. The interval is that of a normal distribution: for numbers
    with the variance of each cell, within strata; for shares that of Price and Bonett (2004),
    Comput. Stat. Data Anal. 45, half a row more of either kind in each cell.

    Parameters
    ----------
    values : bool or float64 (n_rows,)
        Which rows are it, for shares; or numbers.
    cells : int (n_rows,)
        From 0 to 3.
    strata : int (n_rows,), optional
        From 0.
    z : float
        Standard errors that the interval reaches.
    """
    are_shares, keys = values.dtype == np.bool_, cells.astype(np.int64)
    if strata is not None:
        keys = 4 * strata.astype(np.int64) + keys
    size = 4 * (int(keys.max(initial=0)) // 4 + 1)
    known = values.astype(np.float64) - (0.0 if are_shares or not len(values) else values.mean())
    counts, sums, squares = (
        np.bincount(keys, of, size).reshape(-1, 4) for of in (np.ones(len(known)), known, known**2)
    )
    has_all = counts.all(axis=1)
    if not has_all.any():
        return UNKNOWN
    counts, sums, squares = counts[has_all], sums[has_all], squares[has_all]
    weights = 1 / (1 / counts).sum(axis=1)
    weights /= weights.sum()
    means = weights @ (sums / counts)
    n = 1 / (weights**2 @ (1 / counts))
    middle, freedom = means, (counts - 1).sum(axis=0)
    if are_shares:
        middle = (n * means + 0.5) / (n + 1)
        variances = middle * (1 - middle) / (n + 1)
    else:
        left = np.maximum(squares - sums**2 / counts, 0).sum(axis=0)
        variances = np.where(freedom > 0, left / np.maximum(freedom, 1), np.nan) / n
    found, reach = float(_SIGNS @ means), z * sqrt(variances.sum())
    low, high = (float(_SIGNS @ middle) + to for to in (-reach, reach))
    return Interval(found, min(low, found), max(high, found))


def concordance(
    values: Integers, times: Censored, strata: Integers | None = None, z: float = Z
) -> Interval:
    """Return how often the row that has the event first has the higher value, of two of a stratum.

    Harrell's C (Harrell et al. 1982, JAMA 247): of pairs in which the earlier time is that of an
    event, which comes before what is censored at the same time; ties of values count a half, events
    at one time are no pair. With pairs N_i, of which C_i agree, of row i, the variance is
    ``sum_i (C_i - C N_i)^2 / (sum_i N_i / 2)^2``, that of a ratio of U-statistics (Hoeffding 1948;
    the infinitesimal jackknife). The interval is that of the logit, with one event more that agrees
    with chance C, as of :func:`auc`.

    Parameters
    ----------
    values : int (n_rows,)
        From 0; higher is sooner where C is above a half.
    times : Censored
        Of the rows.
    strata : int (n_rows,), optional
        From 0.
    """
    groups = np.zeros(len(values), np.int64) if strata is None else strata.astype(np.int64)
    ahead, seen = np.zeros(len(values), np.int64), times.events
    every, places = np.ones_like(seen), 2 * np.unique(times.times, return_inverse=True)[1] + ~seen
    before, after = _over(groups, places, seen, every)
    pairs = before[0] + seen * after[1]
    for bit in reversed(range(int(values.max(initial=0)).bit_length())):
        high = (values >> bit & 1).astype(np.bool_)  # of rows of a group, it says which is higher
        before, after = _over(groups, places, seen, every, seen & high, high)
        ahead += before[2] - high * before[0] + seen * (high * after[1] - after[3])
        groups = 2 * groups + high
    if not (total := float(pairs.sum())):
        return UNKNOWN
    difference = float(ahead.sum()) / total
    found, n = (1 + difference) / 2, float(np.count_nonzero(seen))
    squares = float(((ahead - difference * pairs) ** 2).sum()) / total**2
    centre = (n * found + 0.5) / (n + 1)
    variance = (squares * n * n + centre * (1 - centre)) / (n + 1) ** 2
    return _by_logit(found, centre, variance, z)


def _over(groups: Integers, places: Integers, *which: Bools) -> tuple[list[Ints], list[Ints]]:
    """Return, for each row, how many of some rows of its group are before it, and after it."""
    order = np.lexsort((places, groups))
    is_first = np.diff(groups[order], prepend=-1) != 0
    is_later = is_first | (np.diff(places[order], prepend=-1) != 0)
    spans = []
    for is_start in (is_first, is_later):
        starts, of = np.flatnonzero(is_start), np.cumsum(is_start) - 1
        spans.append((starts[of], np.append(starts[1:], len(order))[of]))
    (first, end), (start, stop) = spans
    back, before, after = np.argsort(order), [], []
    for rows in which:
        sums = np.concatenate([[0], np.cumsum(rows[order])])
        before.append((sums[start] - sums[first])[back])
        after.append((sums[end] - sums[stop])[back])
    return before, after


class EffectTarget(NamedTuple):
    """The target's side of effects.

    Attributes
    ----------
    codes : int (n_rows,)
        Class of each row, or the place of its number among the distinct ones.
    n_classes : int
        0 of numbers.
    strata : int (n_rows,) or None
        From 0, where rows have them.
    times : Censored or None
        Of a censored target; ``codes`` are then of its scores.
    """

    codes: Integers
    n_classes: int
    strata: Integers | None
    times: Censored | None = None

    def of_rows(self, rows: Bools) -> "EffectTarget":
        """Return the target of some rows, bool (n_rows,)."""
        strata = None if self.strata is None else self.strata[rows]
        times = self.times and self.times.of_rows(rows)
        return self._replace(codes=self.codes[rows], strata=strata, times=times)

    def sides(self) -> Iterator[tuple[int, Bools]]:
        """Yield each class that has some rows, not all, and which; of two only the second."""
        for k in range(1 if self.n_classes == 2 else 0, self.n_classes):
            is_in = self.codes == k
            if is_in.any() and not is_in.all():
                yield k, is_in


def effect_of(
    column: NDArray[Any],
    missing_code: int,
    target: EffectTarget,
    contrast: int = Contrast.LOCATION,
    *,
    is_categorical: bool = False,
    z: float = Z,
) -> tuple[Measure, int, Interval]:
    """Return what a feature's effect is of, toward which class or level it goes, and how large.

    Parameters
    ----------
    column : uint8 or uint16 (n_rows,)
        Codes; from ``missing_code`` on they are missing.
    missing_code : int
        Number of codes that are not.
    target : EffectTarget
        What the rows say.
    contrast : int
        What its test saw, as numbered by :class:`Contrast`; any other counts as location.
    is_categorical : bool
        Whether codes are names: then the level that differs most is looked for.
    z : float
        Standard errors that the interval reaches, as of a normal distribution.

    Returns
    -------
    measure : Measure
    toward : int
        Class; level of a target of numbers; both as ``level * n_classes + class``; -1 for neither.
        Of more than two classes that with the largest effect, against all others together.
    interval : Interval
    """
    is_known = column < missing_code
    if contrast == Contrast.ABSENCE:
        return _of_indicator(_OF_ABSENCE, ~is_known, target, z)
    if not is_known.all():
        column, target = column[is_known], target.of_rows(is_known)
    if not len(column) or column.min() == column.max():
        return Measure.NONE, -1, UNKNOWN
    if is_categorical:
        return _of_level(column, target, z)
    levels, by_spread = Levels.of(column, target.strata), contrast == Contrast.SPREAD
    if not target.n_classes:
        values = np.abs(levels.centred())[levels.cells] if by_spread else column
        if target.times is not None:
            measure = Measure.SPREAD_CONCORDANCE if by_spread else Measure.CONCORDANCE
            return measure, -1, concordance(values, target.times, target.strata, z)
        measure = Measure.SPREAD_SPEARMAN if by_spread else Measure.SPEARMAN
        other = Levels.of(target.codes, target.strata)
        return measure, -1, spearman(Levels.of(values, target.strata), other, z)
    measure, of = (Measure.SPREAD_RATIO, spread_ratio) if by_spread else (Measure.AUC, auc)
    return measure, *_largest(target, measure, lambda is_in: of(levels, is_in, z))


def _largest(
    target: EffectTarget, measure: Measure, of: Callable[[Bools], Interval]
) -> tuple[int, Interval]:
    """Return the class with the largest effect, the first of equal ones."""
    best = -1, UNKNOWN, -1.0
    for k, is_in in target.sides():
        found = of(is_in)
        if np.isnan(found.effect):
            continue
        is_ratio = measure == Measure.SPREAD_RATIO
        size = abs(log(found.effect) if is_ratio else found.effect - measure.neutral)
        if size > best[2]:
            best = k, found, size
    return best[:2]


_OF_ABSENCE = Measure.ABSENCE_CONCORDANCE, Measure.ABSENCE_AUC, Measure.ABSENCE_SHARES
_OF_LEVEL = Measure.LEVEL_CONCORDANCE, Measure.LEVEL_AUC, Measure.LEVEL_SHARES
"""Measures of what rows have or not: of times to an event, of numbers, of classes."""


def _of_indicator(
    measures: tuple[Measure, Measure, Measure], is_it: Bools, target: EffectTarget, z: float
) -> tuple[Measure, int, Interval]:
    """Return the effect of what is there or not, by the measure that suits the target."""
    of_times, of_numbers, of_classes = measures
    if target.times is not None:
        found = concordance(is_it.astype(np.int64), target.times, target.strata, z)
        return of_times, -1, found
    if not target.n_classes:
        return of_numbers, -1, auc(Levels.of(target.codes, target.strata), is_it, z)
    shares = partial(share_difference, is_it, strata=target.strata, z=z)
    return of_classes, *_largest(target, of_classes, shares)


def _of_level(
    column: NDArray[Any], target: EffectTarget, z: float
) -> tuple[Measure, int, Interval]:
    """Return the effect of the level that differs most, over all strata."""
    counts, best, level = np.bincount(column), 0.0, 0
    if not target.n_classes:
        ranks = Levels.of(target.codes, target.strata)
        sums = np.bincount(column, weights=ranks.centred()[ranks.cells])
        size = np.abs(sums) / np.sqrt(np.maximum(counts * (len(column) - counts), 1))
        level = int(np.argmax(size))
    for _, is_in in target.sides():
        inside, n_in = np.bincount(column[is_in], minlength=len(counts)), np.count_nonzero(is_in)
        apart = np.abs(inside / n_in - (counts - inside) / (len(column) - n_in))
        if apart.max() > best:
            best, level = float(apart.max()), int(np.argmax(apart))
    measure, k, found = _of_indicator(_OF_LEVEL, column == level, target, z)
    return measure, level * target.n_classes + k if target.n_classes else level, found
