"""What a plan is for, and how many iterations its run takes."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil
from statistics import NormalDist

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


def subject_asked(
    store: Callable[[], Store] | None,
    request: Request,
    n_rows: int | None = None,
    n_features: int | None = None,
    n_classes: int | None = None,
) -> RunDraft:
    """Return the subject that was asked for: a store's, or one of numbers alone.

    Parameters
    ----------
    store : callable or None
        Opens the store; None where none was named, and none can be found.
    request : Request
        The run as it would be asked for.
    n_rows, n_features, n_classes : int, optional
        Of a table known only by its numbers.

    Raises
    ------
    UsageError
        If there is neither, both, or one number without the other.
    StoreError, BudgetError
        If the run could not be created.
    """
    if n_rows is None and n_features is None:
        if n_classes is not None:
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
    if n_rows is None or n_features is None:
        missing = "--n-rows" if n_rows is None else "--n-features"
        raise UsageError(f"expected --n-rows and --n-features together, found no {missing}.")
    n_classes = n_classes or 2
    if n_rows < n_classes:
        raise UsageError(f"--n-classes: expected at most {n_rows} (--n-rows), found {n_classes}.")
    shape = n_rows, n_features, n_classes
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
    own_end = spec.sampler.most_iterations(subject.shape.n_candidates, spec.subspace_size)
    if own_end is not None:
        return own_end
    if spec.concludes:
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
    held = floor_share(spec.alpha, spec.subspace_size)
    chance = draw_chance(subject.n_items, spec.subspace_size, held)
    short = exp(log_chance_below(MAX_ITERATIONS, chance, spec.min_draws + 1))
    return MAX_ITERATIONS, (
        f"the most that is advised; {short:.2g} of the features not kept are then still drawn "
        f"fewer than {times.n_draws} times"
        + (f" ({wanted} takes {times.every:,})" if times.every else " (R leaves them no place)")
    )


def _iterations_to_verdict(subject: RunDraft) -> tuple[int, str]:
    spec = subject.spec
    n_lanes = 2 if spec.judging.n_leaders and floor_share(spec.alpha, spec.subspace_size) else 1
    n_draws = min(MOST_DRAWS, max(LEAST_DRAWS, ITEM_DRAWS // (1 + spec.decoys)))
    count = n_lanes * ceil(n_draws * subject.n_items / spec.subspace_size)
    beside = ", with and without the leading ones" if n_lanes == 2 else ""
    what = "feature and decoy" if spec.decoys else "feature"
    drawn = f"every {what} is drawn about {n_draws} times{beside}"
    if spec.draws_by_weight:
        drawn = f"a {what} of mean weight is drawn about {n_draws} times"
    return max(count, MIN_ITERATIONS), f"{drawn}; the closing stage follows"
