"""The plan of a run: everything that can be said before it starts."""

import math
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import BudgetError
from srs_ooc.base.options import exact_share
from srs_ooc.base.text import MB
from srs_ooc.evidence.judges import FAMILIES
from srs_ooc.evidence.verdict import fewest_features
from srs_ooc.native.numerics import log
from srs_ooc.planning.iterations import (
    DrawTimes,
    recommended_iterations,
    times_to_draw,
)
from srs_ooc.planning.paper_theory import Setting, expected_time, finite
from srs_ooc.planning.speed import (
    Speed,
    cold_seconds,
    memory_plan,
    n_reads,
    speed_of,
)
from srs_ooc.runs.run_memory import RunBudget
from srs_ooc.runs.session import RunDraft
from srs_ooc.runs.settling import settle
from srs_ooc.runs.spec import Options, block_for
from srs_ooc.runs.task import Task
from srs_ooc.samplers.srs import Srs

# What to run with, one reason each.

LEVEL = 0.1
"""What is said of counting is said at the default level."""
DEFAULT_ALPHA = str(Srs.options()["alpha"].default)


@dataclass(frozen=True)
class Advice:
    """One recommendation: the option, its value, what the plan was made with, and why."""

    name: str
    value: str
    planned: str
    reason: str


def advice_for(subject: RunDraft, memory: RunBudget, read_mb: float) -> list[Advice]:
    """Return the recommendations; what was asked for stands beside each."""
    spec = subject.spec
    n_iterations, why = recommended_iterations(subject)
    fewest = fewest_features(spec.decoys or FAMILIES, 1, LEVEL)
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
            f"marginally significant it selects at least {fewest} or none, so where fewer "
            "are expected certify them with --permutations 9 (takes about 5 times as long)",
        ),
    ]


def _draw_block(subject: RunDraft, memory: RunBudget) -> Advice:
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
    where = "a server, at assumed rates," if subject.is_remote else "a cold disk"
    single, blocks = (1000 * cold_seconds(subject, g) for g in (1, size))
    return Advice(
        "draw_block",
        str(size),
        planned,
        f"the store does not fit the cap: from {where} single features take about "
        f"{single:,.0f} ms an iteration, blocks of {size} about {blocks:,.0f} ms, and each feature "
        "is drawn as often (docs/research/theory.md, Blocks)",
    )


def _alpha(subject: RunDraft) -> Advice:
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


def counting_of(subject: RunDraft) -> Counting | None:
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


def degree_times(subject: RunDraft) -> list[DegreeTime]:
    """Return the times of degrees 0 to 3, with infinite samples and K = q.

    None of them for a method that has no theory of it.
    """
    if subject.spec.method.splits_rows:
        return []
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


def _time(subject: RunDraft, degree: int, alpha: str) -> float | None:
    p, q = subject.n_items, subject.spec.subspace_size
    return finite(expected_time(Setting.of("chain", p, q, degree + 1, alpha)))


@dataclass(frozen=True)
class Plan:
    """What is expected of a run.

    Attributes
    ----------
    subject : RunDraft
        The run.
    memory : RunBudget
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

    subject: RunDraft
    memory: RunBudget
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
        return cold_seconds(self.subject, self.subject.spec.draw_block)

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


def make_plan(subject: RunDraft, options: Options) -> Plan:
    """Return the plan of a run; about a second, and nothing is written.

    Raises
    ------
    BudgetError
        If the cap cannot hold the work.
    """
    memory = memory_plan(subject)
    spec, shape = subject.spec, subject.shape
    read_mb = spec.subspace_size * shape.n_rows * shape.code_nbytes / MB
    half = shape.n_rows // 2  # of a regression the lower and the upper targets
    groups = subject.class_counts or (half, shape.n_rows - half)
    return Plan(
        subject,
        memory,
        speed_of(subject, memory),
        None if spec.method.splits_rows else times_to_draw(subject),
        degree_times(subject),
        power_of(groups, shape.n_candidates),
        counting_of(subject),
        advice_for(subject, memory, read_mb),
        _alternatives(subject, options),
    )


def _alternatives(subject: RunDraft, options: Options) -> list[Alternative]:
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
                degree_times(other),
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
        "leases": [{"purpose": lease.purpose, "mb": lease.n_bytes / MB} for lease in memory.leases],
        "free_mb": memory.free_nbytes / MB,
        "subspace_size": spec.subspace_size,
        "largest_subspace_size": subject.largest_subspace,
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
