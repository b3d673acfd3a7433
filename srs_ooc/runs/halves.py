"""Runs on some of the rows, and stability: the same search on random halves of the rows.

Halves come in pairs that share no row (Shah and Samworth 2013, complementary pairs); strata,
classes and whole groups are shared out evenly. Each half has a seed of its own, so that chance in
the search counts too. No answer of the run depends on them.
"""

import logging
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from threading import Semaphore
from typing import Any

import numpy as np

from srs_ooc.base.arrays import Ints, Uints32
from srs_ooc.base.budget import PROCESS_NBYTES, growth_counted
from srs_ooc.base.errors import BudgetError, RunError
from srs_ooc.base.records import Step, Watch
from srs_ooc.base.text import MB
from srs_ooc.runs.inputs import Inputs
from srs_ooc.runs.jobs import Batch, Cluster, Job, PartWatch, Work, WorkerStore
from srs_ooc.runs.ledger import HALVES_FOLDER, VALID
from srs_ooc.runs.plan import Plan
from srs_ooc.runs.request import Request
from srs_ooc.runs.run import Run
from srs_ooc.runs.screening import is_done, search
from srs_ooc.runs.spec import RunSpec
from srs_ooc.runs.verdict import Verdict, candidates_of

FIRST = 20
"""Features at the head of the ranking of each half that are compared."""

Half = dict[str, Any]
"""What a half selects, as the ledger keeps it: ``n_iterations`` of the run, ``n_selected``, which
features (``selected``, at most 30,000), and the first of its ranking (``first``); uint32; of how
many (``n_ranked``)."""


@dataclass(frozen=True)
class HalvesRecord:
    """What the halves of the rows that are done select.

    Attributes
    ----------
    n_selected : list of int
        Features that each half selects, of those that are done.
    agreement : float or None
        Share of the first 20 features of a half that are among the first 20 of the half with the
        other rows, mean over pairs; None before a pair is done, and of 20 features or fewer.
    by_chance : float
        The same, expected of rankings in an order made by chance.
    features : uint32 (n,)
        Stored positions of the features that any half selects, ascending.
    counts : int64 (n,)
        In how many halves each is selected.
    """

    n_selected: list[int]
    agreement: float | None
    by_chance: float
    features: Uints32
    counts: Ints

    @property
    def n_halves(self) -> int:
        """Halves that are done."""
        return len(self.n_selected)

    def share(self, stored: int) -> float:
        """Return the share of halves that select a stored feature."""
        ends = (np.searchsorted(self.features, stored, side=side) for side in ("left", "right"))
        return int(self.counts[slice(*ends)].sum()) / self.n_halves

    def __str__(self) -> str:
        """Return it as one sentence, without a full stop."""
        n, heads, why = self.n_selected, "", ""
        if self.agreement is not None:
            by_chance = f"{self.by_chance:.2f} by chance"
            heads = f"; their first {FIRST} agree by {self.agreement:.2f} ({by_chance})"
        if not median(n):
            why = "; half of the rows shows only what is some 1.4 times as strong as all rows show"
        return (
            f"{len(n)} halves of the rows select {min(n):,} to {max(n):,} features (median "
            f"{median(n):,.10g}){heads}{why}"
        )


def halves_of(ledger: Run) -> HalvesRecord | None:
    """Return what halves of the rows select, of as many iterations as the run has.

    None if no half is done. ``ledger`` is open for reading; the store is not needed.
    """
    n_asked = ledger.n_halves
    halves = halves_done(ledger, n_asked)
    if not halves:
        return None
    firsts = [
        (halves[i]["first"], halves[i + 1]["first"])
        for i in range(0, n_asked, 2)
        if i in halves and i + 1 in halves
    ]
    by_chance = min(FIRST / max(int(next(iter(halves.values()))["n_ranked"]), 1), 1.0)
    shares = [len(np.intersect1d(a, b)) / max(len(a), len(b), 1) for a, b in firsts]
    selected = np.concatenate([half["selected"] for half in halves.values()])
    return HalvesRecord(
        [int(half["n_selected"]) for half in halves.values()],
        float(np.mean(shares)) if shares and by_chance < 1 else None,
        by_chance,
        *np.unique(selected, return_counts=True),
    )


def halves_done(ledger: Run, n_halves: int) -> dict[int, Half]:
    """Return what is kept of those of the first so many halves that are done, by number."""
    kept = {number: ledger.read_arrays(f"half-{number}") for number in range(n_halves)}
    now = ledger.progress().iteration
    return {i: half for i, half in kept.items() if half is not None and half["n_iterations"] == now}


# Whole runs done by workers, each at one of them: their memory, and how far all of them are.

ALL_AHEAD = 1 << 30
"""Runs are begun however long one of them takes: little is kept of those that are done."""


def whole_runs(
    memory_mb: int,
    needed: int,
    n_threads: int,
    n_iterations: int,
    one: Callable[[int, Any, int, Watch], Any],
) -> Work:
    """Return what does whole runs in a worker, as many at once as its memory holds.

    Parameters
    ----------
    memory_mb : int
        What the worker may grow by, in MB of 10**6 bytes.
    needed : int
        Bytes that a run needs, the process included.
    n_threads : int
        Runs that may be done at once.
    n_iterations : int
        Of the screen of each.
    one : callable
        ``one(number, what, cap_nbytes, watch)`` does a run under a cap on growth, in bytes; it
        returns None if ``watch`` says no.

    Raises
    ------
    BudgetError
        If not even one fits.
    """
    if needed > memory_mb * MB:
        raise BudgetError(
            f"a memory cap of {memory_mb} MB cannot hold a whole run. The smallest cap that "
            f"works is --worker-memory-mb {-(-needed // MB)}."
        )
    n_at_once = max(1, min(n_threads, memory_mb * MB // max(needed, PROCESS_NBYTES)))
    room, each = Semaphore(n_at_once), memory_mb * MB // n_at_once

    def work(batch: Batch, tell: PartWatch) -> Batch:
        def wanted(number: int, what: Any) -> Any:
            found = one(number, what, each, _watch_of(number, tell, n_iterations))
            if found is None:
                raise RunError("expected a run that is wanted, found one that was given up.")
            return found

        with room, growth_counted():
            return batch.done(wanted)

    return work


def _watch_of(number: int, tell: PartWatch, n_iterations: int) -> Watch:
    """Return what tells how far a run is: the iterations of its screen, which comes first."""
    reached = 0

    def watch(step: Step) -> bool:
        nonlocal reached
        if step.unit == "iterations" and step.total == n_iterations:
            reached = max(reached, step.done)
        return tell(number, reached)

    return watch


def from_workers(
    cluster: Cluster, job: Job, parts: dict[int, Any], stage: str, n_each: int, watch: Watch
) -> Iterator[tuple[int, Any]]:
    """Yield (number, outcome) of each part as workers are done with it; end if told to stop.

    Parameters
    ----------
    cluster : Cluster
        The workers.
    job : Job
        What the parts are of.
    parts : dict
        What each run needs, by its number.
    stage : str
        What they are called together.
    n_each : int
        Iterations of each, by which all are counted together.
    watch : callable
        Told how far all of them are.
    """
    from srs_ooc.runs.batches import parallel_map  # loaded only where there is a cluster

    done: set[int] = set()
    with closing(cluster.line(job)) as line:

        def goes_on() -> bool:
            under_way = sum(n for number, n in dict(line.told).items() if number not in done)
            reached = min(n_each * len(done) + under_way, n_each * len(parts))
            return watch(Step(stage, reached, n_each * len(parts)))

        for number, outcome in parallel_map(
            line.send, line.n_threads, iter(parts.items()), goes_on, ALL_AHEAD
        ):
            done.add(number)
            yield number, outcome


_log = logging.getLogger("srs_ooc")


def fits_workers(cluster: Cluster, plan: Plan, what: str) -> bool:
    """Return whether a worker's memory holds a whole run; where not, log how ``what`` is done."""
    needed = plan.whole_nbytes()
    fits = needed <= cluster.worker_memory_mb * MB
    if not fits:
        _log.warning(
            "%s come one after another, each with its trees grown by all workers: to have whole "
            "runs done side by side, give --worker-memory-mb %d",
            what,
            -(-needed // MB),
        )
    return fits


def remove_part(run: Path) -> None:
    """Remove a run that another needed, under another name first: a kill leaves no part of one."""
    gone = run.with_name(f"{run.name}.removed")
    shutil.rmtree(gone, ignore_errors=True)
    with suppress(OSError):
        run.rename(gone)
    shutil.rmtree(gone, ignore_errors=True)


# The runs on halves, here or by workers.


def select_within(folder: Path, plan: Plan, whole: Run | None = None) -> bool:
    """Do a run on some of a store's rows in ``folder``; return whether its iterations are done.

    What is there of it already is gone on with. ``whole`` is the run that this one is a part of, if
    it lies in that one's folder.
    """
    if not folder.exists():
        facts = {"memory_mb": plan.request.cap_mb, "iterations": plan.n_iterations, VALID: None}
        folder.parent.mkdir(parents=True, exist_ok=True)
        Run.begin(folder, plan.store, plan.spec, plan.inputs, facts)
    accepts, part_of = (False, None) if whole is None else (whole.accepts_loss, whole.run)
    with Run(folder, writable=True, accept_loss=accepts, part_of=part_of) as within:
        search(within, Plan.of_run(within, plan.store, plan.request, plan.watch))
        return is_done(within, plan.n_iterations)


def _selected_in(folder: Path, n_features: int) -> Half:
    """Return what a half selects, of a run on it that is done."""
    with Run(folder, writable=False) as within:
        first, selected, n_selected = candidates_of(within, n_features)
        verdict, excluded = Verdict.of(within), within.inputs.excluded
        n_iterations = within.progress().iteration
    return {
        "n_iterations": n_iterations,
        "n_selected": n_selected,
        "selected": selected,
        "first": (first if verdict is None else verdict.order)[:FIRST],
        "n_ranked": n_features - (0 if excluded is None else len(excluded)),
    }


@dataclass(frozen=True)
class HalfJob(Job):
    """What a worker needs to do the run on any half; its identity is the run's.

    Attributes
    ----------
    inputs : Inputs
        Features left out, rows, and how often features are drawn where columns were scored.
    n_iterations : int
        Of each run's screen.
    """

    inputs: Inputs
    n_iterations: int
    label, tells = "half", True

    def prepare(self, n_threads: int, stack: ExitStack) -> Work:
        """Prepare for it in a worker."""
        request = Request(threads=1, iterations=self.n_iterations)
        spec, store = RunSpec.from_json(self.identity), self.store.open()
        plan = Plan.of_spec(spec, store, self.inputs, request)

        def one(number: int, _: Any, cap_nbytes: int, watch: Watch) -> Half | None:
            here = replace(plan.asked(memory_mb=cap_nbytes // MB), watch=watch)
            half = here.half(number)
            with TemporaryDirectory(prefix="srs-ooc-") as folder:
                run = Path(folder) / "half.run"
                return _selected_in(run, store.n_features) if select_within(run, half) else None

        memory_mb, needed = self.store.memory_mb, plan.whole_nbytes()
        return whole_runs(memory_mb, needed, n_threads, self.n_iterations, one)


def select_by_halves(ledger: Run, plan: Plan) -> None:
    """Do the runs on halves that are missing, each kept once done, until told to stop.

    ``ledger`` is that of a run that is done, open for writing.
    """
    n_halves, n_iterations = plan.request.halves or 0, ledger.progress().iteration
    plan, cluster = plan.asked(iterations=n_iterations), plan.request.cluster
    folder, done = ledger.run / HALVES_FOLDER, halves_done(ledger, n_halves)
    missing = [number for number in range(n_halves) if number not in done]

    def one_by_one() -> Iterator[tuple[int, Half]]:
        for number in missing:
            here = named(f"half {number + 1} of {n_halves}", plan.watch)
            half = replace(plan.half(number), watch=here)
            if not select_within(folder / str(number), half, ledger):
                return
            yield number, _selected_in(folder / str(number), plan.store.n_features)

    found = one_by_one()
    if cluster is not None and missing and fits_workers(cluster, plan, "halves"):
        place = WorkerStore.of(plan.store, cluster.worker_memory_mb)
        job = HalfJob(place, plan.spec.to_json(), plan.inputs, n_iterations)
        parts = dict.fromkeys(missing)
        found = from_workers(cluster, job, parts, "halves", n_iterations, plan.watch)
    for number, half in found:
        ledger.write_arrays(f"half-{number}", half)
        remove_part(folder / str(number))
    if len(halves_done(ledger, n_halves)) == n_halves:
        shutil.rmtree(folder, ignore_errors=True)


def named(what: str, watch: Watch) -> Watch:
    """Return what is told of steps that begin with ``what``."""
    return lambda step: watch(replace(step, stage=f"{what}, {step.stage}".rstrip(", ")))
