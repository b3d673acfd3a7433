"""What a run would take: iterations, memory, and seconds per iteration.

How many iterations follows from draws: until features are drawn often enough, and T as advised.

Speed is measured on the store, or estimated by published rates.
"""

import gc
import math
import time
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from math import ceil
from statistics import NormalDist
from typing import Any

import numpy as np

from srs_ooc.base.arrays import Floats32
from srs_ooc.base.budget import PROCESS_NBYTES
from srs_ooc.base.options import floor_share
from srs_ooc.base.text import ceil_div, describe_seconds
from srs_ooc.native.numerics import exp, log, log1p
from srs_ooc.runs.feature_tests import MarginalTests, add_tests_beside
from srs_ooc.runs.plan import Plan
from srs_ooc.runs.resources import Resources
from srs_ooc.runs.run_memory import LONG_READ_NBYTES, RunBudget, trial_of
from srs_ooc.runs.screening import closed, survivors_of
from srs_ooc.samplers.base import LOSS, Method, method_of
from srs_ooc.samplers.elimination import SURVIVORS, TREES, round_sizes

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
LEVEL = 0.99
"""Probability wanted of having been drawn often enough."""


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
    return bisect_left(
        range(high), True, count, key=lambda n: log_chance_below(n, chance, count) <= log_risk
    )


def draw_times(
    n_features: int, subspace_size: int, n_held: int, n_draws: int
) -> dict[str, float | None]:
    """Return the iterations until features not held have been drawn ``n_draws`` times.

    Parameters
    ----------
    n_features, subspace_size : int
        p and q.
    n_held : int
        Places of the subspace taken by R; floor(alpha q) is the worst.
    n_draws : int
        Draws wanted of each feature.

    Returns
    -------
    dict
        ``n_draws`` and ``level``, the probability wanted; then iterations, None where they are
        never enough: ``one``, for one feature; ``every``, for all at once, enough by the lower
        bound.
    """
    chance, risk = draw_chance(n_features, subspace_size, n_held), 1.0 - LEVEL
    return {
        "n_draws": n_draws,
        "level": LEVEL,
        "one": trials_for(chance, n_draws, log(risk)),
        "every": trials_for(chance, n_draws, log(risk / n_features)),
    }


# How many iterations to run: T, from the run's identity and its table alone.

MIN_ITERATIONS = 1000
"""Fewer trees leave importances, means over draws, to chance: which others were drawn."""
MAX_ITERATIONS = 10_000
"""The default that a run has had from the start is the ceiling: a longer one is the user's wish."""
DRAWS = 30
"""Draws in each lane after which a screen keeps nearly all relevant features in its best 1,000."""


def times_to_draw(plan: Plan) -> dict[str, float | None]:
    """Return the iterations until every feature can have passed the probe, with R always full.

    The probe judge asks for more than L draws.
    """
    spec = plan.spec
    held = floor_share(spec.alpha, spec.subspace_size)
    return draw_times(plan.shape.n_candidates, spec.subspace_size, held, spec.min_draws + 1)


def recommended_iterations(plan: Plan) -> tuple[int, str]:
    """Return T and the reason: from the spec and the table alone, never from measured speed."""
    spec = plan.spec
    own_end = spec.sampler.most_iterations(plan.shape.n_candidates, spec.subspace_size)
    if own_end is not None:
        return own_end
    if spec.concludes:
        with_leaders = spec.judging.n_leaders and floor_share(spec.alpha, spec.subspace_size)
        n_lanes, beside = (2, ", with and without the leading ones") if with_leaders else (1, "")
        count = n_lanes * ceil(DRAWS * plan.shape.n_candidates / spec.subspace_size)
        drawn = f"every feature is drawn about {DRAWS} times{beside}"
        if spec.method.draws_by_scores:
            drawn = f"a feature of mean weight is drawn about {DRAWS} times"
        return max(count, MIN_ITERATIONS), f"{drawn}; the last stage follows"
    times = times_to_draw(plan)
    n_draws, every = times["n_draws"], times["every"]
    wanted = f"every feature is drawn {n_draws} times with probability {times['level']:g}"
    held = floor_share(spec.alpha, spec.subspace_size)
    if every is not None and every <= MAX_ITERATIONS:
        if every >= MIN_ITERATIONS:
            while_held = ", even while as many features are held as alpha allows" if held else ""
            return int(every), f"{wanted} by then{while_held}"
        return MIN_ITERATIONS, (
            f"{wanted} after {every:,}; below {MIN_ITERATIONS:,} the means that "
            "rank features are over too few draws"
        )
    chance = draw_chance(plan.shape.n_candidates, spec.subspace_size, held)
    short = exp(log_chance_below(MAX_ITERATIONS, chance, spec.min_draws + 1))
    return MAX_ITERATIONS, (
        f"the most that is advised; {short:.2g} of the features not kept are then still drawn "
        f"fewer than {n_draws} times"
        + (f" ({wanted} takes {every:,})" if every else " (held features leave them no place)")
    )


# Where the memory under a cap goes, and the seconds of an iteration.


def sizes_of(plan: Plan) -> tuple[int, int]:
    """Return the features that may be drawn, and q."""
    return plan.shape.n_candidates, plan.spec.subspace_size


def memory_plan(plan: Plan) -> RunBudget:
    """Return the budget of a run, as the run itself makes it; a mapped store has a lease.

    Raises
    ------
    BudgetError
        If the cap cannot hold the work.
    """
    # As published: the process that plans is not the one that runs.
    budget = RunBudget(plan.request.cap_nbytes, plan.leases(), PROCESS_NBYTES)
    budget.check()
    budget.spend(plan.spec, plan.shape, plan.request.threads)
    budget.mapped = budget.mapped and not plan.is_remote
    if budget.mapped:
        budget.grant("the store, mapped", plan.shape.codes_nbytes)
    return budget


PROBE_SECONDS = 0.3
STAGE_SECONDS = 0.4
"""About how long the closing stage, and each kind of tests, is tried."""
MOST_TREES, MOST_TRIED, FEWEST_TRIED = 40, 4096, 16
"""Trees of each closing round, and features tested alone, at most; features tested at first."""
GROWTH = 1.0, 1.25
"""Least and largest power of the number of features that the seconds of tests grow with."""
RANDOM_SECONDS, CLASS_SECONDS, NUMBERS_SECONDS = 3e-11, 1.4e-11, 5e-10
COLUMN_SECONDS, BEST_SECONDS = 1.5e-9, 3e-9
"""Published allowances for growing a tree, for each cell and level: of random splits, more for each
class, of numbers, of few candidates, and of best splits. Rough: fitted on one x86-64 machine with
AVX-512 that had other work, and not measured on others."""
FEW_CANDIDATES = 20
"""Where they are less than this part of the columns, these are searched one by one."""
PAGING_NBYTES_PER_SECOND = 1.5e9
"""Published allowance for reading subspaces through a warm page cache."""
READ_SECONDS = 5e-7
"""Published allowance for one read of a store that is not mapped, from a warm page cache."""
BOOKKEEPING_SECONDS = 7e-8
"""Published allowance for drawing, tallying and judging one feature, in one thread."""
ITERATION_SECONDS = 5e-4
"""Published allowance for an iteration of the fewest features, in one thread."""
COLD_READS_PER_SECOND = 30_000
"""Published allowance for random reads from a cold solid-state disk."""
COLD_NBYTES_PER_SECOND = 5e8
"""Published allowance for the bytes they bring."""
REQUESTS_PER_SECOND = 500
"""Published allowance for range requests to a server: 16 at a time, of 32 ms each."""
REQUEST_NBYTES_PER_SECOND = 6e7
"""Published allowance for the bytes they bring."""


@dataclass(frozen=True)
class Speed:
    """Seconds of one iteration, and where the number comes from.

    Attributes
    ----------
    seconds : float
        Wall-clock seconds per iteration with all workers at work.
    measured : bool
        Measured on the store itself; otherwise an estimate.
    how : str
        What was done.
    later : dict of float
        Seconds of each stage that follows the iterations, by name, as far as they were measured.
    """

    seconds: float
    measured: bool
    how: str
    later: dict[str, float] = field(default_factory=dict)


def cold_seconds(plan: Plan, draw_block: int) -> float:
    """Return the seconds of an iteration's reads from a cold disk, or a server, as published.

    A request to a server brings a block of neighbouring columns
    (:mod:`srs_ooc.store.remote_cache`), whether all of them are wanted or not.
    """
    q, column_nbytes = plan.spec.subspace_size, plan.shape.column_nbytes
    n_reads = ceil_div(q, draw_block)
    if not plan.is_remote:
        return n_reads / COLD_READS_PER_SECOND + q * column_nbytes / COLD_NBYTES_PER_SECOND
    nbytes = n_reads * max(draw_block * column_nbytes, LONG_READ_NBYTES)
    return max(n_reads / REQUESTS_PER_SECOND, nbytes / REQUEST_NBYTES_PER_SECOND)


def measured_speed(plan: Plan) -> Speed:
    """Return the seconds of real iterations of this very run, in memory, with no ledger.

    Uses the memory that the run would, for about a third of a second, or one round of slow workers.
    What follows to a verdict is timed on few trees and features, in a second or two.
    """
    with Resources.of(plan) as resources:
        seconds, n_timed, later = _time(resources)
    del resources
    gc.collect()  # an engine and its speculation refer to each other; their arrays must go now
    if later:
        with Resources.of(plan, grows=False) as resources:
            later["tests"] = _tests_seconds(resources)
    how = f"{n_timed} real iterations of this run on the store"
    return Speed(seconds / n_timed, True, how, later)


def _time(resources: Resources) -> tuple[float, int, dict[str, float]]:
    """Return the seconds and number of iterations timed; then those of a closing stage, if any.

    Timing starts afresh once the workers are warm, unless iterations are so slow that the first
    ones have taken long enough already. Of each closing round a few trees are timed.
    """
    engine, ahead = resources.engine(None), resources.executor.max_ahead
    started, n_before = time.monotonic(), 0

    def keep_going() -> bool:
        nonlocal started, n_before
        n_done, seconds = engine.iteration, time.monotonic() - started
        if n_before == 0 and n_done == ahead and seconds < PROBE_SECONDS:
            started, n_before = time.monotonic(), n_done
            return True
        return n_done - n_before < max(2, ahead) or seconds < PROBE_SECONDS

    engine.advance(1 << 31, keep_going)
    seconds, until = time.monotonic() - started, engine.iteration
    n_timed = until - n_before
    if not resources.spec.concludes:
        return seconds, n_timed, {}
    n_rounds = len(round_sizes(min(SURVIVORS, resources.n_candidates)))
    n_each = min(max(int(STAGE_SECONDS * n_timed / seconds / n_rounds), 2 * ahead), MOST_TREES)
    started = time.monotonic()
    survivors = survivors_of(engine, resources, until)
    assert survivors is not None
    closed(resources, None, survivors, until, n_each=n_each)
    return seconds, n_timed, {"closing": (time.monotonic() - started) * TREES / n_each}


# The tests of a run, from real ones of some of its features.


def _tests_seconds(resources: Resources) -> float:
    """Return the seconds of the tests of all features alone, and of some beside others."""
    tests, n_features = MarginalTests(resources), resources.n_candidates
    n = min(n_features, MOST_TRIED)
    features = resources.among(np.arange(n, dtype=np.uint32))  # in as good as random order
    found: list[Floats32] = []
    alone = _scaled(lambda n: found.append(tests.strongest_of(features[:n])[0]), n, n)
    # Those of the closing stage are tested again.
    alone *= (n_features + min(n_features, SURVIVORS)) / n
    best = np.argsort(-found[-1], kind="stable")
    features, known = features[best], found[-1][best]

    def neg_log10_p(n: int) -> Floats32:
        """Return those of all features if only the ``n`` strongest were tested."""
        of_all = np.full(resources.n_features, np.nan, np.float32)
        of_all[features[:n]] = known[:n]
        return of_all

    def beside(n: int) -> None:
        add_tests_beside(tests, neg_log10_p(n), (features[:n], known[:n]), features[:n])

    seconds = alone + _scaled(beside, len(best), min(n_features, tests.n_leaders))
    if tests.n_leaders < n_features and (n_halves := tests.n_halves(n_features)):
        find = partial(tests.best_pairs, most=n_halves)
        seconds += _scaled(lambda n: find(neg_log10_p(n)), len(best), n_features)
    return seconds


def _scaled(work: Callable[[int], object], n_tried: int, most: int) -> float:
    """Return the seconds of work on ``most``, from that on few, on twice as many, and so on.

    They grow as the last ones did, within :data:`GROWTH`. ``n_tried`` can be tried, at most.
    """
    n, n_before, before, power = FEWEST_TRIED, 0, 0.0, GROWTH[0]
    while True:
        n, started = min(n, n_tried, most), time.monotonic()
        work(n)
        seconds = max(time.monotonic() - started, 1e-9)
        if before:
            power = min(max(log(seconds / before) / log(n / n_before), GROWTH[0]), GROWTH[1])
        if n in (n_tried, most) or seconds > STAGE_SECONDS:
            return float(seconds * (most / n) ** power)
        n, n_before, before = 2 * n, n, seconds


def seconds_of_trees(plan: Plan, n_columns: int) -> float:
    """Return the seconds of growing the trees of an iteration, as published."""
    spec, shape, method = plan.spec, plan.shape, plan.spec.sampler
    n_rows = spec.learner.n_grown(shape.n_rows)
    sizes, levels = sizes_of(plan), math.log2(max(2, n_rows))
    if LOSS in method.needs:
        n_cells = n_rows * method.most_columns(spec.subspace_size) / 2
        return BEST_SECONDS * n_cells * levels * method.work_each(*sizes)[0]
    k = spec.learner.max_features
    each = NUMBERS_SECONDS if shape.is_regression else RANDOM_SECONDS
    each += CLASS_SECONDS * shape.n_classes
    if spec.learner.splitter == "best":
        each = BEST_SECONDS
    elif FEW_CANDIDATES * k < spec.subspace_size:
        each = COLUMN_SECONDS
    # Where K < q a node looks at K candidates, however many columns there are.
    n_cells = n_rows * (n_columns if k == spec.subspace_size else k)
    return each * n_cells * levels * spec.learner.trees_per_subspace


def estimated_speed(plan: Plan, memory: RunBudget) -> Speed:
    """Return an estimate by published rates of growing, paging and bookkeeping.

    Parameters
    ----------
    plan : Plan
        The run; its store is not touched.
    memory : RunBudget
        Its workers, which share the work, and whether its store is mapped.
    """
    shape, spec = plan.shape, plan.spec
    if (found := spec.learner.seconds(spec.sampler, shape, spec.subspace_size)) is not None:
        how = f"{found[1]}; workers: {memory.n_workers}"
        return Speed(found[0] / memory.n_workers, False, how)
    mean = spec.sampler.mean_columns(shape.n_candidates)
    n_columns = spec.n_columns if mean is None else min(spec.n_columns, mean)
    paging = n_columns * shape.n_rows * shape.code_nbytes / PAGING_NBYTES_PER_SECOND
    if not memory.mapped:
        paging += READ_SECONDS * ceil_div(spec.subspace_size, spec.draw_block)
    bookkeeping = ITERATION_SECONDS + BOOKKEEPING_SECONDS * n_columns
    work = seconds_of_trees(plan, n_columns) + paging + bookkeeping
    how = f"published rates of growing, paging and bookkeeping; workers: {memory.n_workers}"
    if LOSS in spec.method.needs:
        n_models = spec.sampler.work_each(*sizes_of(plan))[0]
        how = f"{n_models:,.0f} trees an iteration, the most there can be; {how}"
    return Speed(max(bookkeeping, work / memory.n_workers), False, how)


# The two parts of a run whose method learns behind a screen, and their speed together.


def parts_of(plan: Plan) -> tuple[int, Plan, Plan] | None:
    """Return the parts of a run; None where there is no screen.

    Returns
    -------
    n_trees : int
        Iterations of the screen.
    screen : Plan
        A run like it: Random Subspace.
    rest : Plan
        The method on as many features as it learns on, without a screen.
    """
    spec, shape = plan.spec, plan.shape
    screen = spec.sampler.behind_screen(*sizes_of(plan))
    if screen is None:
        return None
    n_trees, size, count, behind = screen
    looks_at_all = spec.learner.max_features == spec.subspace_size

    def part(n_features: int, subspace_size: int, method: str, sampler: Method) -> Plan:
        most = subspace_size if looks_at_all else min(spec.learner.max_features, subspace_size)
        learner = replace(spec.learner, max_features=most)
        run = replace(spec.run, subspace_size=subspace_size, method=method)
        own = replace(spec, run=run, learner=learner, sampler=sampler)
        sizes = replace(shape, n_candidates=n_features, n_features=n_features)
        return replace(plan, spec=own, shape=sizes)

    return (
        n_trees,
        part(shape.n_candidates, size, "rs", method_of("rs").settle({}, shape)),
        part(count, min(spec.subspace_size, count), spec.run.method, behind),
    )


def speed_of(plan: Plan, memory: RunBudget, *, measures: bool = True) -> Speed:
    """Return the seconds of an iteration, as a mean of all where a run has two parts.

    Measured on the store where there is one, ``measures`` says so and the run has one part.
    """
    parts, estimated = parts_of(plan), partial(estimated_speed, memory=memory)
    # Iterations of models that judge candidates take longer than a plan may.
    is_short = LOSS not in plan.spec.method.needs or not trial_of(plan.spec, plan.shape).seconds
    measures = measures and plan.table is not None and is_short
    if parts is None:
        return measured_speed(plan) if measures else estimated(plan)
    n_trees, screen, behind = parts
    first = measured_speed(plan) if measures else estimated(screen)
    rest = estimated(behind)
    spec, n_candidates = plan.spec, plan.shape.n_candidates
    ends = spec.sampler.most_iterations(n_candidates, spec.subspace_size)
    assert ends is not None, "a method behind a screen ends by itself"
    share = n_trees / ends[0]
    return Speed(
        share * first.seconds + (1 - share) * rest.seconds,
        False,
        f"{n_trees:,} trees of the screen of {describe_seconds(first.seconds)} each, by "
        f"{first.how}; then {rest.how}",
    )


# What is expected of a run as it is made: T, and an estimate of its speed.


def planned_run(plan: Plan) -> dict[str, Any]:
    """Return what is expected of a run about to be made: T as advised, why, and its speed.

    The speed is an estimate: measuring would fill the run's memory once before it starts.
    """
    iterations, reason = recommended_iterations(plan)
    speed = speed_of(plan, memory_plan(plan), measures=False)
    return {"iterations": iterations, "seconds_per_iteration": speed.seconds, "reason": reason}
