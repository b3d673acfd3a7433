"""What a plan is for, how many iterations its run takes, and what can be found at all."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import UsageError
from srs_ooc.base.options import floor_share
from srs_ooc.learners.models import TREE
from srs_ooc.learners.tree_learner import RANK
from srs_ooc.native.numerics import exp, expm1, log, log1p
from srs_ooc.runs.session import RunDraft
from srs_ooc.runs.settling import Request, settle
from srs_ooc.runs.spec import Options, TrainingShape
from srs_ooc.store.manifest import max_codes
from srs_ooc.store.store import Store

# What a plan is for: a table, on disk or only in numbers, and how it would be run.


@dataclass(frozen=True)
class Numbers:
    """A table known only by its numbers; None where none was given."""

    n_rows: int | None = None
    n_features: int | None = None
    n_classes: int | None = None


def subject_asked(
    store: Callable[[], Store] | None, numbers: Numbers, request: Request
) -> RunDraft:
    """Return the subject that was asked for: a store's, or one of numbers alone.

    Parameters
    ----------
    store : callable or None
        Opens the store; None where none was named, and none can be found.
    numbers : Numbers
        What else is known.
    request : Request
        The run as it would be asked for.

    Raises
    ------
    UsageError
        If there is neither, both, or one number without the other.
    StoreError, BudgetError
        If the run could not be created.
    """
    if numbers.n_rows is None and numbers.n_features is None:
        if numbers.n_classes is not None:
            raise UsageError("--n-classes goes with --n-rows and --n-features; a store knows its.")
        if store is None:
            raise UsageError("expected a store, or --n-rows and --n-features; found neither.")
        return RunDraft.of(store(), request)
    named = request.exclude_file or request.rows_file or request.validation_file
    if store is not None or named or request.exclude_missing:
        raise UsageError(
            "expected a store (with --exclude, --rows), or --n-rows and --n-features alone; "
            "found both. Leave one out."
        )
    if numbers.n_rows is None or numbers.n_features is None:
        missing = "--n-rows" if numbers.n_rows is None else "--n-features"
        raise UsageError(f"expected --n-rows and --n-features together, found no {missing}.")
    n_classes = numbers.n_classes or 2
    if numbers.n_rows < n_classes:
        raise UsageError(
            f"--n-classes: expected at most {numbers.n_rows} (--n-rows), found {n_classes}."
        )
    shape = numbers.n_rows, numbers.n_features, n_classes
    return subject_of_numbers(*shape, request.options, request.cap_nbytes, request.threads)


def subject_of_numbers(
    n_rows: int,
    n_features: int,
    n_classes: int,
    options: Options,
    cap_nbytes: int,
    threads: int | None = None,
) -> RunDraft:
    """Return the subject of a table that is not there: uint8 codes, classes of equal size.

    Raises
    ------
    UsageError
        If an option is outside its range.
    """
    is_decoded = options.get("model", TREE) != TREE
    by_value = options.get("thresholds", RANK) != RANK or is_decoded
    n_values = min(max_codes("uint8"), n_rows) if by_value else 0
    shape = TrainingShape(
        n_rows, n_features, n_features, n_classes, 1, 0, n_values, n_rows, is_decoded=is_decoded
    )
    counts = tuple(n_rows // n_classes + (i < n_rows % n_classes) for i in range(n_classes))
    return RunDraft(settle(options, shape, "", cap_nbytes), shape, counts, cap_nbytes, threads)


# Power: the smallest shift of one feature that is found among p of noise.
#
# One feature is normal with means d standard deviations apart in two groups of n0 and n1 rows, the
# other p - 1 are independent of the groups and of one another. Each is scored by |U - n0 n1/2|, U
# its Mann-Whitney statistic: ranks are what trees see here. The feature is found when its score is
# strictly the largest:
#
#     P(found) = sum over u of P(U = u | d) (1 - t(u))**(p - 1),
#
# t(u) being the chance that noise scores as much as u. t is exact for n0 n1 up to 20,000 and normal
# above. Under a shift U has mean n0 n1 Phi(d/sqrt 2) and the variance known in closed form, and is
# taken as normal, rounded, its tails at 0 and n0 n1. No test by single features does much better
# (the t-test, on normal data and many rows, gains 2% in d); a tree's importance does worse.

FloatArray = NDArray[np.float64]

EXACT_PAIRS = 20_000
LARGEST_SHIFT = 64.0
GRID = 2001
_STANDARD = NormalDist()
_erfc = np.vectorize(math.erfc, otypes=[np.float64])


def normal_cdf(values: FloatArray) -> FloatArray:
    """Return the standard normal distribution function of each value."""
    below: FloatArray = 0.5 * _erfc(-values / math.sqrt(2.0))
    return below


def mann_whitney_law(n0: int, n1: int) -> FloatArray:
    """Return P(U = u) for u = 0 .. n0 n1 where both groups have one law: float64, exact.

    By the group of the largest value: P(n0, n1; u) = n1/(n0 + n1) P(n0, n1 - 1; u - n0)
    + n0/(n0 + n1) P(n0 - 1, n1; u). Only positive numbers are added.
    """
    laws: list[FloatArray] = [np.ones(1)] * (n1 + 1)
    for i in range(1, n0 + 1):
        row: list[FloatArray] = [np.ones(1)]
        for j in range(1, n1 + 1):
            law = np.zeros(i * j + 1)
            law[: (i - 1) * j + 1] += i / (i + j) * laws[j]
            law[i:] += j / (i + j) * row[j - 1]
            row.append(law)
        laws = row
    return laws[n1]


@dataclass(frozen=True)
class Power:
    """What one feature's shift must be to be found.

    Attributes
    ----------
    groups : (int, int)
        Rows of the two groups: one class against all others.
    half, most : float or None
        Shifts, in standard deviations, found in half and in 95% of cases; None where no shift is.
    reason : str or None
        Why not, where one of them is None.
    """

    groups: tuple[int, int]
    half: float | None
    most: float | None
    reason: str | None


class Contest:
    """One shifted feature among p - 1 of noise, with given group sizes."""

    def __init__(self, n0: int, n1: int, n_features: int) -> None:
        self.n0, self.n1, self.n_others = n0, n1, n_features - 1
        self._spread = math.sqrt(n0 * n1 * (n0 + n1 + 1) / 12.0)
        self._tail: FloatArray | None = None
        if n0 * n1 <= EXACT_PAIRS:
            self._tail = _two_sided_tail(mann_whitney_law(n0, n1))

    def found_chance(self, shift: float) -> float:
        """Return the probability that a feature shifted by ``shift`` deviations scores highest."""
        mean, spread = self._shifted(shift)
        if self._tail is not None:
            edges = np.arange(0.5, self.n0 * self.n1)
            if spread > 0.0:
                below = normal_cdf((edges - mean) / spread)
            else:
                below = np.asarray(edges > mean, dtype=np.float64)
            masses, tail = np.diff(below, prepend=0.0, append=1.0), self._tail
        else:
            z = np.linspace(-8.0, 8.0, GRID)
            masses = np.exp(-0.5 * z * z)
            masses /= masses.sum()
            score = np.abs(mean + spread * z - 0.5 * self.n0 * self.n1) / self._spread
            tail = _erfc(score / math.sqrt(2.0))
        with np.errstate(divide="ignore"):
            largest = np.exp(self.n_others * np.log1p(-tail)) if self.n_others else 1.0
        return float(np.sum(masses * largest))

    def shift_found(self, level: float) -> float | None:
        """Return the smallest shift found with probability ``level``; None if none is."""
        if self.found_chance(LARGEST_SHIFT) < level:
            return None
        low, high = 0.0, LARGEST_SHIFT
        while high - low > 1e-4:
            middle = 0.5 * (low + high)
            if self.found_chance(middle) >= level:
                high = middle
            else:
                low = middle
        return high

    def _shifted(self, shift: float) -> tuple[float, float]:
        """Return mean and standard deviation of U under a shift.

        With A = P(Y > X) and B = P(Y > X and Y' > X), the same with the groups exchanged, the
        variance is n0 n1 (A (1 - A) + (n0 + n1 - 2)(B - A**2)).
        """
        above = _STANDARD.cdf(shift / math.sqrt(2.0))
        x = np.linspace(-10.0, 10.0, 1001)
        weights = np.exp(-0.5 * x * x)
        both = float(np.sum(weights * normal_cdf(shift - x) ** 2) / weights.sum())
        pairs = self.n0 * self.n1
        variance = pairs * (
            above * (1.0 - above) + (self.n0 + self.n1 - 2) * max(0.0, both - above * above)
        )
        return pairs * above, math.sqrt(max(0.0, variance))


def _two_sided_tail(law: FloatArray) -> FloatArray:
    """Return P(|U - mean| >= |u - mean|) for every u, summed from the ends inwards."""
    below = np.cumsum(law)
    lower = np.minimum(np.arange(len(law)), np.arange(len(law))[::-1])
    tail: FloatArray = np.minimum(1.0, 2.0 * below[lower])
    return tail


def power_of(class_counts: tuple[int, ...], n_features: int) -> Power:
    """Return the power for the class most easily distinguished from all others.

    Parameters
    ----------
    class_counts : tuple of int
        Rows of each class, two classes at least.
    n_features : int
        p.
    """
    total = sum(class_counts)
    n0 = max(class_counts, key=lambda count: count * (total - count))
    n1 = total - n0
    contest = Contest(min(n0, n1), max(n0, n1), n_features)
    half, most = contest.shift_found(0.5), contest.shift_found(0.95)
    reason = None
    if half is None or most is None:
        n_perfect = 2.0 * n_features / math.comb(total, n0)
        reason = (
            f"with {n0} rows against {n1}, about {n_perfect:,.3g} of {n_features:,} features of "
            "noise separate them perfectly by chance, and nothing can score higher"
        )
    return Power((n0, n1), half, most, reason)


# How many iterations until features have been drawn often enough.
#
# A feature not yet kept is drawn in each iteration with probability c = (q - m)/(p - m), where m is
# the number held in R, independently of other iterations: after T of them it has been drawn
# Binomial(T, c) times. The features of one iteration are drawn without replacement, so their counts
# are negatively associated (Joag-Dev and Proschan 1983), and with e = P(Binomial(T, c) < n)
#
#     1 - p e  <=  P(every feature drawn at least n times)  <=  (1 - e)**p.
#
# At a level near 1 the two ends are met by the same T, or by neighbours: no simulation is needed.

LARGEST_EXACT = 5000


@dataclass(frozen=True)
class DrawTimes:
    """Iterations until features have been drawn often enough; None where they never are.

    Attributes
    ----------
    n_draws : int
        Draws wanted of each feature.
    level : float
        Probability wanted.
    one : int or None
        For one feature.
    every : int or None
        For all features at once: enough by the lower bound.
    every_least : int or None
        Fewer are not enough, by the upper bound; ``every`` or close below it. None as well where
        features are drawn by blocks.
    """

    n_draws: int
    level: float
    one: int | None
    every: int | None
    every_least: int | None


def draw_chance(n_features: int, subspace_size: int, n_held: int) -> float:
    """Return the probability that an iteration draws a given feature that is not held."""
    return (subspace_size - n_held) / (n_features - n_held) if n_held < n_features else 1.0


def log_chance_below(n_trials: int, chance: float, count: int) -> float:
    """Return log P(Binomial(n_trials, chance) < count); ``-inf`` where it cannot be.

    Terms are formed by ratios from (1 - chance)**n_trials, in logarithms, relative to the largest.
    """
    if n_trials < count:
        return 0.0
    if chance >= 1.0 or count <= 0:
        return -math.inf
    if chance <= 0.0:
        return 0.0
    odds, term = chance / (1.0 - chance), n_trials * log1p(-chance)
    terms = [term]
    for k in range(1, count):
        term += log((n_trials - k + 1) / k * odds)
        terms.append(term)
    largest = max(terms)
    return min(0.0, largest + log(math.fsum(exp(t - largest) for t in terms)))


def trials_for(chance: float, count: int, log_risk: float) -> int | None:
    """Return the fewest trials with P(Binomial < count) at most exp(log_risk); None if none.

    Exact up to 5,000 wanted; above, by the normal law, which is then off by about 0.1%.
    """
    if chance <= 0.0:
        return None
    if count > LARGEST_EXACT:
        z = -NormalDist().inv_cdf(exp(log_risk))
        spread = z * math.sqrt(chance * (1.0 - chance))
        root = (spread + math.sqrt(spread * spread + 4.0 * chance * count)) / (2.0 * chance)
        return math.ceil(root * root)
    high = max(count, 1)
    while log_chance_below(high, chance, count) > log_risk:
        high *= 2
    low = count
    while low < high:
        middle = (low + high) // 2
        if log_chance_below(middle, chance, count) <= log_risk:
            high = middle
        else:
            low = middle + 1
    return low


def draw_times(
    n_features: int, subspace_size: int, n_held: int, n_draws: int, level: float = 0.99
) -> DrawTimes:
    """Return the iterations until features not held have been drawn ``n_draws`` times.

    Parameters
    ----------
    n_features, subspace_size : int
        p and q.
    n_held : int
        Places of the subspace taken by R; floor(alpha q) is the worst.
    n_draws : int
        Draws wanted of each feature.
    level : float
        Probability wanted.
    """
    chance = draw_chance(n_features, subspace_size, n_held)
    each = -expm1(log(level) / n_features)  # (1 - e)**p = level
    return DrawTimes(
        n_draws,
        level,
        trials_for(chance, n_draws, log(1.0 - level)),
        trials_for(chance, n_draws, log((1.0 - level) / n_features)),
        trials_for(chance, n_draws, log(each)),
    )


# How many iterations to run: T, from the run's identity and its table alone.

MIN_ITERATIONS = 1000
"""Fewer trees leave importances, means over draws, to chance: which others were drawn."""
MAX_ITERATIONS = 10_000
"""The default that a run has had from the start is the ceiling: a longer one is the user's wish."""
MOST_DRAWS, LEAST_DRAWS = 100, 30
"""Draws in each lane after which a screen keeps nearly all relevant features in its best 1,000."""
ITEM_DRAWS = 240
"""Draws of a feature and its decoys together, within these bounds: many families share them."""


def times_to_draw(subject: RunDraft) -> DrawTimes:
    """Return the iterations until every feature can have passed the probe, with R always full.

    The probe judge asks for more than L draws.
    """
    spec = subject.spec
    held = floor_share(spec.alpha, spec.subspace_size)
    p = subject.n_items
    times = draw_times(p, spec.subspace_size, held, spec.min_draws + 1)
    # Neighbours drawn together are not negatively associated: no upper bound.
    return times if spec.draw_block == 1 else replace(times, every_least=None)


def recommended_iterations(subject: RunDraft) -> tuple[int, str]:
    """Return T and the reason: from the spec and the table alone, never from measured speed."""
    spec = subject.spec
    own_end = spec.method.most_iterations(
        spec.sampler, subject.shape.n_candidates, spec.subspace_size
    )
    if own_end is not None:
        return own_end
    if subject.spec.concludes:
        return _iterations_to_verdict(subject)
    times = times_to_draw(subject)
    wanted = f"every feature is drawn {times.n_draws} times with probability {times.level:g}"
    if times.every is not None and times.every <= MAX_ITERATIONS:
        if times.every >= MIN_ITERATIONS:
            return times.every, f"{wanted} by then, even when R is full"
        return MIN_ITERATIONS, (
            f"{wanted} after {times.every:,}; below {MIN_ITERATIONS:,} the means that "
            "rank features are over too few draws"
        )
    short = share_short(subject, MAX_ITERATIONS)
    return MAX_ITERATIONS, (
        f"the most that is advised; {short:.2g} of the features not kept are then still drawn "
        f"fewer than {times.n_draws} times"
        + (f" ({wanted} takes {times.every:,})" if times.every else " (R leaves them no place)")
    )


def draws_to_verdict(n_families: int) -> int:
    """Return how often a screen draws each item in each lane, by its families of decoys."""
    return min(MOST_DRAWS, max(LEAST_DRAWS, ITEM_DRAWS // (1 + n_families)))


def _iterations_to_verdict(subject: RunDraft) -> tuple[int, str]:
    spec = subject.spec
    n_lanes = 2 if spec.keep and floor_share(spec.alpha, spec.subspace_size) else 1
    n_draws = draws_to_verdict(spec.decoys)
    count = n_lanes * ceil(n_draws * subject.n_items / spec.subspace_size)
    beside = ", with and without the leading ones" if n_lanes == 2 else ""
    what = "feature and decoy" if spec.decoys else "feature"
    drawn = f"every {what} is drawn about {n_draws} times{beside}"
    if spec.draws_by_weight:
        drawn = f"a {what} of mean weight is drawn about {n_draws} times"
    return max(count, MIN_ITERATIONS), f"{drawn}; the closing stage follows"


def share_short(subject: RunDraft, n_iterations: int) -> float:
    """Return the chance that a feature, R always full, has too few draws after so many."""
    spec = subject.spec
    held = floor_share(spec.alpha, spec.subspace_size)
    chance = draw_chance(subject.n_items, spec.subspace_size, held)
    return exp(log_chance_below(n_iterations, chance, spec.min_draws + 1))
