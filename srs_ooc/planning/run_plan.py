"""The plan of a run: everything that can be said before it starts."""

import math
from dataclasses import dataclass, replace
from typing import Any

from srs_ooc.base.errors import BudgetError
from srs_ooc.base.options import exact_share
from srs_ooc.base.text import MB
from srs_ooc.evidence.judges import FAMILIES
from srs_ooc.evidence.verdict import fewest_features
from srs_ooc.native.numerics import log
from srs_ooc.planning.iterations import (
    DrawTimes,
    Power,
    Subject,
    power_of,
    recommended_iterations,
    times_to_draw,
)
from srs_ooc.planning.paper_theory import Setting, expected_time
from srs_ooc.planning.speed import (
    MemoryPlan,
    Speed,
    cold_seconds,
    fetching_seconds,
    memory_plan,
    n_reads,
    speed_of,
)
from srs_ooc.runs.settling import settle
from srs_ooc.runs.spec import Options, RunSpec, block_for
from srs_ooc.runs.task import Task
from srs_ooc.samplers.srs import SrsParams

# What to run with, one reason each.

LEVEL = 0.1
"""What is said of counting is said at the default level."""
DEFAULT_ALPHA = str(SrsParams.options()["alpha"].default)


@dataclass(frozen=True)
class Advice:
    """One recommendation: the option, its value, what the plan was made with, and why."""

    name: str
    value: str
    planned: str
    reason: str


def advice_for(subject: Subject, memory: MemoryPlan, read_mb: float) -> list[Advice]:
    """Return the recommendations; what was asked for stands beside each."""
    spec = subject.spec
    n_iterations, why = recommended_iterations(subject)
    iterations = Advice("iterations", str(n_iterations), str(n_iterations), why)
    if not spec.model.is_tree or spec.method.splits_rows:
        return [iterations]  # the rest was measured with trees, of methods that are told q
    return [
        iterations,
        _alpha(subject),
        Advice(
            "max_features",
            str(spec.subspace_size),
            str(spec.learner.max_features),
            "K = q: the best of all candidates is what lifts a feature out of noise, and among "
            "many irrelevant features it masks nothing for good (docs/research/errata.md, 1)",
        ),
        Advice(
            "trees_per_subspace",
            "1",
            str(spec.learner.trees_per_subspace),
            f"another tree grows on the same features again; another subspace, {read_mb:.3g} MB to "
            "page in, shows each feature beside others",
        ),
        _draw_block(subject, memory),
        Advice(
            "judge",
            "decoy",
            spec.judge,
            "its verdict bounds the share of false features among the selected; where none is "
            f"marginally significant it selects at least {_fewest(spec)} or none, so where fewer "
            "are expected certify them with --permutations 9 (takes about 5 times as long)",
        ),
    ]


def _fewest(spec: RunSpec) -> int:
    return fewest_features(spec.decoys or FAMILIES, 1, LEVEL)


def _draw_block(subject: Subject, memory: MemoryPlan) -> Advice:
    spec = subject.spec
    planned = str(spec.draw_block)
    if memory.mapped:
        return Advice("draw_block", "1", planned, "the store stays in memory: reading costs little")
    if subject.is_remote and subject.codes_nbytes <= subject.cap_nbytes:
        return Advice("draw_block", "1", planned, "the store is soon kept on this disk whole")
    size = block_for(spec.subspace_size, subject.column_nbytes)
    if size == 1:
        reason = "single features are long reads already, or the subspace is too small for blocks"
        return Advice("draw_block", "1", planned, reason)
    seconds = fetching_seconds if subject.is_remote else cold_seconds
    where = "a server, at assumed rates," if subject.is_remote else "a cold disk"
    single, blocks = (
        1000 * seconds(spec.subspace_size, g, subject.column_nbytes) for g in (1, size)
    )
    return Advice(
        "draw_block",
        str(size),
        planned,
        f"the store does not fit the cap: from {where} single features take about "
        f"{single:,.0f} ms an iteration, blocks of {size} about {blocks:,.0f} ms, and each feature "
        "is drawn as often (docs/research/theory.md, Blocks)",
    )


def _alpha(subject: Subject) -> Advice:
    spec, p = subject.spec, subject.n_items
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


# What counting decoys can select at a level, known before a run but for clusters of noise.

CLUSTERS = (1, 5, 20)
"""Sizes of clusters of correlated noise that are shown; the first is what is assumed."""


@dataclass(frozen=True)
class Counting:
    """What a verdict by counting lets through.

    Attributes
    ----------
    families : int
        M.
    level : float
        Bound of the expected share of false features.
    fewest : dict of int to int
        By the size of the largest cluster of correlated decoys (c), the fewest features that are
        not marginally significant that can be selected.
    log_arrangements : float or None
        Natural logarithm of the ways in which exchanges of rows arrange the target; None without a
        store.
    """

    families: int
    level: float
    fewest: dict[int, int]
    log_arrangements: float | None

    def are_few(self, n_features: int) -> bool:
        """Return whether no p-value of exchanges passes among so many features at the level."""
        if self.log_arrangements is None:
            return False
        return self.log_arrangements < log(n_features / self.level)


def counting_of(subject: Subject) -> Counting | None:
    """Return what counting lets through; None for a run that does not count decoys."""
    spec = subject.spec
    if not spec.decoys:
        return None
    level = float(exact_share(spec.fdr))
    found = None
    if subject.store is not None:
        task = Task.of_run(spec, subject.store, subject.inputs)
        found = task.exchangeability().log_arrangements(task.target)
    fewest = {size: fewest_features(spec.decoys, size, level) for size in CLUSTERS}
    return Counting(spec.decoys, level, fewest, found)


# Expected iterations to find features informative only beside others (Section 4.2, chaining).

MAX_DEGREE = 3


@dataclass(frozen=True)
class DegreeTime:
    """Mean iterations until the features of degree 0 up to ``degree`` of a chain are found.

    ``rs`` is for alpha = 0 and ``srs`` for the run's alpha; None where they are never found, or
    beyond 1.7e308. The times are those of infinite samples; ``rows_there`` is what there is of
    rows, on average, in a node below ``degree`` even splits, where the feature has to show.
    """

    degree: int
    rows_there: float
    rs: float | None
    srs: float | None


def degree_times(subject: Subject) -> list[DegreeTime]:
    """Return the times of degrees 0 to 3, with infinite samples and K = q."""
    p = subject.n_items
    return [
        DegreeTime(
            degree,
            subject.shape.n_rows / 2**degree,
            _time(subject, degree, "0"),
            _time(subject, degree, subject.spec.alpha),
        )
        for degree in range(min(MAX_DEGREE + 1, p))
    ]


def _time(subject: Subject, degree: int, alpha: str) -> float | None:
    p, q = subject.n_items, subject.spec.subspace_size
    time = expected_time(Setting.of("chain", p, q, degree + 1, alpha))
    return time.value if time is not None and math.isfinite(time.value) else None


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
