"""How many iterations to run: T, from the run's identity and its table alone."""

from dataclasses import replace
from math import ceil

from srs_ooc.base.options import floor_share
from srs_ooc.native.numerics import exp
from srs_ooc.planning.draws import DrawTimes, draw_chance, draw_times, log_chance_below
from srs_ooc.planning.subject import Subject

MIN_ITERATIONS = 1000
"""Fewer trees leave importances, means over draws, to chance: which others were drawn."""
MAX_ITERATIONS = 10_000
"""The default that a run has had from the start is the ceiling: a longer one is the user's wish."""
MOST_DRAWS, LEAST_DRAWS = 100, 30
"""Draws in each lane after which a screen keeps nearly all relevant features in its best 1,000."""
ITEM_DRAWS = 240
"""Draws of a feature and its decoys together, within these bounds: many families share them."""


def times_to_draw(subject: Subject) -> DrawTimes:
    """Return the iterations until every feature can have passed the probe, with R always full.

    The probe judge asks for more than L draws.
    """
    spec = subject.spec
    held = floor_share(spec.alpha, spec.subspace_size)
    p = subject.n_items
    times = draw_times(p, spec.subspace_size, held, spec.min_draws + 1)
    # Neighbours drawn together are not negatively associated: no upper bound.
    return times if spec.draw_block == 1 else replace(times, every_least=None)


def recommended_iterations(subject: Subject) -> tuple[int, str]:
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


def _iterations_to_verdict(subject: Subject) -> tuple[int, str]:
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


def share_short(subject: Subject, n_iterations: int) -> float:
    """Return the chance that a feature, R always full, has too few draws after so many."""
    spec = subject.spec
    held = floor_share(spec.alpha, spec.subspace_size)
    chance = draw_chance(subject.n_items, spec.subspace_size, held)
    return exp(log_chance_below(n_iterations, chance, spec.min_draws + 1))
