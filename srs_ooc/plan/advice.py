"""What to run with, one reason each."""

from dataclasses import dataclass
from math import exp

from srs_ooc.plan.draws import DrawTimes, draw_chance, draw_times, log_chance_below
from srs_ooc.plan.subject import Subject
from srs_ooc.shares import floor_share
from srs_ooc.spec import DEFAULT_ALPHA
from srs_ooc.theory.settings import Setting
from srs_ooc.theory.times import expected_time

MIN_ITERATIONS = 1000
"""Fewer trees leave importances, which are means over draws, to the luck of the company."""
MAX_ITERATIONS = 10_000
"""The default that a run has had from the start is the ceiling: a longer one is the user's wish."""


@dataclass(frozen=True)
class Advice:
    """One recommendation: the option, its value, what the plan was made with, and why."""

    name: str
    value: str
    planned: str
    reason: str


def times_to_draw(subject: Subject) -> DrawTimes:
    """Return the iterations until every feature can have passed the probe, with R always full.

    The probe judge asks for more than L draws.
    """
    spec = subject.spec
    held = floor_share(spec.alpha, spec.subspace_size)
    p = subject.shape.n_candidates
    return draw_times(p, spec.subspace_size, held, spec.probe_min_draws + 1)


def recommended_iterations(subject: Subject) -> tuple[int, str]:
    """Return T and the reason: from the spec and the table alone, never from measured speed."""
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


def share_short(subject: Subject, n_iterations: int) -> float:
    """Return the chance that a feature, R always full, has too few draws after so many."""
    spec = subject.spec
    held = floor_share(spec.alpha, spec.subspace_size)
    chance = draw_chance(subject.shape.n_candidates, spec.subspace_size, held)
    return exp(log_chance_below(n_iterations, chance, spec.probe_min_draws + 1))


def advice_for(subject: Subject, read_mb: float) -> list[Advice]:
    """Return the recommendations; what was asked for stands beside each."""
    spec = subject.spec
    n_iterations, why = recommended_iterations(subject)
    return [
        Advice("iterations", str(n_iterations), str(n_iterations), why),
        _alpha(subject),
        Advice(
            "max_features",
            str(spec.subspace_size),
            str(spec.max_features),
            "K = q: the best of all candidates is what lifts a feature out of noise, and among "
            "many irrelevant features it masks nothing for good (docs/errata.md, 1)",
        ),
        Advice(
            "trees_per_subspace",
            "1",
            "1",
            f"another tree sees the same company again; another subspace, {read_mb:.3g} MB to "
            "page in, shows each feature in a new one",
        ),
        Advice(
            "judge",
            "probe",
            spec.judge,
            f"on {subject.shape.n_rows:,} rows irrelevant features get importance by chance, and "
            "`positive` keeps them all; the probe asks them to beat an irrelevant one again and "
            "again (it is cautious: read the ranking too)",
        ),
    ]


def _alpha(subject: Subject) -> Advice:
    spec, p = subject.spec, subject.shape.n_candidates
    if spec.subspace_size == p:
        reason = "every feature is in every subspace; there is nothing to hold"
        return Advice("alpha", "0", spec.alpha, reason)
    rs, srs = (
        expected_time(Setting.of("chain", p, spec.subspace_size, min(2, p), alpha))
        for alpha in ("0", DEFAULT_ALPHA)
    )
    gain = "" if rs is None or srs is None else f" {rs.value / srs.value:,.3g} times faster"
    return Advice(
        "alpha",
        DEFAULT_ALPHA,
        spec.alpha,
        f"a feature seen only beside another is found{gain} than by RS, and at most half of the "
        "room for new features is given up",
    )
