"""The two parts of a run whose method learns behind a screen, and their speed together."""

from dataclasses import dataclass, replace

from srs_ooc.base.options import Params
from srs_ooc.base.text import describe_seconds
from srs_ooc.planning.memory import MemoryPlan
from srs_ooc.planning.speed import (
    PROBE_CELLS,
    PROBE_SECONDS,
    Speed,
    estimated_speed,
    is_measurable,
    measured_speed,
)
from srs_ooc.planning.subject import Subject
from srs_ooc.samplers.base import method_of
from srs_ooc.samplers.held_out import ScreenParams


@dataclass(frozen=True)
class Parts:
    """A run in two parts.

    Attributes
    ----------
    n_trees : int
        Iterations of the screen.
    screen : Subject
        A run like it: Random Subspace.
    rest : Subject
        The method on as many features as it learns on, without a screen.
    """

    n_trees: int
    screen: Subject
    rest: Subject


def parts_of(subject: Subject) -> Parts | None:
    """Return the parts of a run; None where there is no screen."""
    spec, shape = subject.spec, subject.shape
    params, p = spec.sampler, shape.n_candidates
    if not isinstance(params, ScreenParams) or not params.screens(p):
        return None
    count, size = params.n_learnt(p), min(spec.subspace_size, params.screen_size(p))
    looks_at_all = spec.learner.max_features == spec.subspace_size

    def part(n_features: int, subspace_size: int, method: str, sampler: Params) -> Subject:
        most = subspace_size if looks_at_all else min(spec.learner.max_features, subspace_size)
        learner = replace(spec.learner, max_features=most)
        run = replace(spec.run, subspace_size=subspace_size, method=method)
        own = replace(spec, run=run, learner=learner, sampler=sampler)
        sizes = replace(shape, n_candidates=n_features, n_features=n_features)
        return replace(subject, spec=own, shape=sizes, store=None)

    return Parts(
        params.n_screen_trees(p, spec.subspace_size),
        part(p, size, "rs", method_of("rs").params.settle({}, shape)),
        part(count, min(spec.subspace_size, count), spec.run.method, replace(params, screen=None)),
    )


def speed_of(
    subject: Subject,
    memory: MemoryPlan,
    seconds: float = PROBE_SECONDS,
    n_cells: int = PROBE_CELLS,
    *,
    may_measure: bool = True,
) -> Speed:
    """Return the seconds of an iteration, as a mean of all where a run has two parts.

    Measured on the store where there is one, ``may_measure`` says so, and the run has one part; the
    other parameters are those of :func:`srs_ooc.planning.speed.estimated_speed`.
    """
    parts, tried = parts_of(subject), (memory, seconds, n_cells)
    measures = may_measure and subject.store is not None and is_measurable(subject)
    if parts is None:
        return measured_speed(subject) if measures else estimated_speed(subject, *tried)
    first = measured_speed(subject) if measures else estimated_speed(parts.screen, *tried)
    rest = estimated_speed(parts.rest, *tried)
    spec, n_candidates = subject.spec, subject.shape.n_candidates
    ends = spec.method.most_iterations(spec.sampler, n_candidates, spec.subspace_size)
    assert ends is not None, "a method behind a screen ends by itself"
    share = parts.n_trees / ends[0]
    return Speed(
        share * first.seconds + (1 - share) * rest.seconds,
        False,
        f"{parts.n_trees:,} trees of the screen of {describe_seconds(first.seconds)} each, by "
        f"{first.how}; then {rest.how}",
    )
