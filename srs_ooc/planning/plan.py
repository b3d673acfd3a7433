"""The plan of a run: everything that can be said before it starts."""

from dataclasses import dataclass, replace
from typing import Any

from srs_ooc.base.errors import BudgetError
from srs_ooc.base.text import MB
from srs_ooc.planning.advice import Advice, advice_for
from srs_ooc.planning.counting import Counting, counting_of
from srs_ooc.planning.degrees import DegreeTime, degree_times
from srs_ooc.planning.draws import DrawTimes
from srs_ooc.planning.iterations import recommended_iterations, times_to_draw
from srs_ooc.planning.memory import MemoryPlan, memory_plan
from srs_ooc.planning.parts import speed_of
from srs_ooc.planning.power import Power, power_of
from srs_ooc.planning.speed import (
    Speed,
    cold_seconds,
    fetching_seconds,
    n_reads,
)
from srs_ooc.planning.subject import Subject
from srs_ooc.runs.settling import settle
from srs_ooc.runs.spec import Options


@dataclass(frozen=True)
class Plan:
    """What is expected of a run.

    Attributes
    ----------
    subject : Subject
        The run.
    memory : MemoryPlan
        What it leases.
    speed : Speed
        Of one iteration.
    draws : DrawTimes or None
        Iterations until features have been drawn more than L times.
    degrees : list of DegreeTime
        Iterations to find features informative only beside others; empty for a method that has
        no theory of it (PRS, RaSE), as are draws, None then.
    power : Power
        The smallest shift that is found.
    counting : Counting or None
        What counting decoys lets through, where they are counted.
    advice : list of Advice
        What to run with; the first is T.
    alternatives : list of Alternative
        What the largest q, and twice the memory, would change.
    """

    subject: Subject
    memory: MemoryPlan
    speed: Speed
    draws: DrawTimes | None
    degrees: list[DegreeTime]
    power: Power
    counting: Counting | None
    advice: list[Advice]
    alternatives: list["Alternative"]

    @property
    def iterations(self) -> int:
        """T as advised."""
        return int(self.advice[0].value)

    @property
    def total_seconds(self) -> float:
        """Seconds of T iterations."""
        return self.iterations * self.speed.seconds

    @property
    def read_nbytes(self) -> int:
        """Bytes paged in by an iteration."""
        shape = self.subject.shape
        return self.subject.spec.subspace_size * shape.n_rows * shape.code_nbytes

    @property
    def cold_seconds(self) -> float:
        """Seconds of an iteration's reads from a cold disk, or a server, at published rates."""
        seconds = fetching_seconds if self.subject.is_remote else cold_seconds
        return seconds(
            self.subject.spec.subspace_size,
            self.subject.spec.draw_block,
            self.subject.column_nbytes,
        )

    @property
    def n_reads(self) -> int:
        """About how many reads an iteration makes where the store is not mapped."""
        return n_reads(self.subject.spec)


@dataclass(frozen=True)
class Alternative:
    """Another q or cap: what it would change."""

    what: str
    memory_mb: int
    subspace_size: int
    n_workers: int
    mapped: bool
    iterations: int
    degrees: list[DegreeTime]


def make_plan(subject: Subject, options: Options) -> Plan:
    """Return the plan of a run; about a second, and nothing is written.

    Raises
    ------
    BudgetError
        If the cap cannot hold the work.
    """
    memory = memory_plan(subject)
    spec, shape = subject.spec, subject.shape
    read_mb = spec.subspace_size * shape.n_rows * shape.code_nbytes / MB
    return Plan(
        subject,
        memory,
        speed_of(subject, memory),
        None if spec.method.splits_rows else times_to_draw(subject),
        _degrees(subject),
        power_of(_groups(subject), shape.n_candidates),
        counting_of(subject),
        advice_for(subject, memory, read_mb),
        _alternatives(subject, options),
    )


def _degrees(subject: Subject) -> list[DegreeTime]:
    return [] if subject.spec.method.splits_rows else degree_times(subject)


def _groups(subject: Subject) -> tuple[int, ...]:
    """Return the rows of each class; of a regression those of the lower and the upper targets."""
    n_rows = subject.shape.n_rows
    return subject.class_counts or (n_rows // 2, n_rows - n_rows // 2)


def _alternatives(subject: Subject, options: Options) -> list[Alternative]:
    """Return the run as planned, with the largest q, and both with twice the memory."""
    if not subject.spec.model.is_tree:
        return []  # each would have to be tried
    largest = options.also(subspace_size="max", max_features=None)
    found = []
    for what, factor, asked in (
        ("as planned", 1, options),
        ("with --q max", 1, largest),
        ("twice the memory", 2, options),
        ("twice the memory, --q max", 2, largest),
    ):
        cap = factor * subject.cap_nbytes
        spec = settle(asked, subject.shape, subject.spec.store, cap)
        other = replace(subject, spec=spec, cap_nbytes=cap)
        try:
            memory = memory_plan(other)
        except BudgetError:
            continue
        found.append(
            Alternative(
                what,
                cap // MB,
                spec.subspace_size,
                memory.n_workers,
                memory.mapped,
                recommended_iterations(other)[0],
                _degrees(other),
            )
        )
    return found


def plan_values(plan: Plan) -> dict[str, Any]:
    """Return the plan as JSON-ready values; sizes in MB of 10**6 bytes."""
    subject, memory = plan.subject, plan.memory
    shape, spec = subject.shape, subject.spec
    notes = subject.notes
    return ({"notes": list(notes)} if notes else {}) | {
        "n_rows": shape.n_rows,
        "n_features": shape.n_candidates,
        "class_counts": list(subject.class_counts),
        "store": None if subject.store is None else str(subject.store.place),
        "memory_mb": subject.cap_nbytes // MB,
        "leases": [{"purpose": what, "mb": n / MB} for what, n in memory.leases],
        "free_mb": memory.free_nbytes / MB,
        "subspace_size": spec.subspace_size,
        "largest_subspace_size": memory.largest_subspace,
        "n_workers": memory.n_workers,
        "mapped": memory.mapped,
        "disk_mb": subject.codes_nbytes / MB,
        "read_mb_per_iteration": plan.read_nbytes / MB,
        "reads_per_iteration": plan.n_reads,
        "seconds_per_iteration": plan.speed.seconds,
        "seconds_measured": plan.speed.measured,
        "seconds_how": plan.speed.how,
        "draws": None if plan.draws is None else vars(plan.draws),
        "alpha": spec.alpha,
        "degrees": [vars(time) for time in plan.degrees],
        "power": vars(plan.power),
        "counting": None if plan.counting is None else vars(plan.counting),
        "advice": [vars(advice) for advice in plan.advice],
        "iterations": plan.iterations,
        "total_seconds": plan.total_seconds,
        "alternatives": [
            vars(other) | {"degrees": [vars(time) for time in other.degrees]}
            for other in plan.alternatives
        ],
    }
