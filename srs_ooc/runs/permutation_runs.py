"""Permutation runs: the same search on permuted targets, and the best that each reaches.

They are done here one after another, or by workers, each whole at one of them.
"""

import logging
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Semaphore
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.budget import PROCESS_NBYTES, growth_counted
from srs_ooc.base.errors import BudgetError, RunError, StoppedError
from srs_ooc.base.records import Step
from srs_ooc.base.seeds import Purpose, key_of
from srs_ooc.base.text import MB
from srs_ooc.evidence.judges import DecoyJudge
from srs_ooc.runs.inputs import Inputs
from srs_ooc.runs.jobs import Batch, Job, Tell, Work, WorkerStore
from srs_ooc.runs.ledger import PERMUTATIONS_FOLDER, Ledger
from srs_ooc.runs.resources import MarginalTests, Resources, RunContext
from srs_ooc.runs.run_memory import whole_run_nbytes
from srs_ooc.runs.run_verdict import best_score, best_strength
from srs_ooc.runs.screening import Watch, screen_and_close
from srs_ooc.runs.spec import RunSpec
from srs_ooc.runs.task import Task
from srs_ooc.store.store import Store

if TYPE_CHECKING:
    from srs_ooc.runs.dask_cluster import DaskCluster

BESTS = "replays"
"""Arrays of the ledger with what permutation runs reached; by the word of its first format."""


def bests_of_permutation_runs(
    ledger: Ledger, context: RunContext, n_iterations: int
) -> NDArray[np.float64] | None:
    """Return best score and best strength of each permutation run, float64 (n_permutations, 2).

    Those done already are taken up; None if stopped.
    """
    spec = context.spec
    reached, held = np.full((spec.permutations, 2), np.nan), ledger.read_arrays(BESTS)
    if held is not None and int(held["n_iterations"]) == n_iterations:
        reached[: len(held["bests"])] = held["bests"]
    folder, cluster = ledger.run / PERMUTATIONS_FOLDER, context.cluster
    missing = [i + 1 for i in range(spec.permutations) if np.isnan(reached[i, 0])]
    # Where a worker's memory does not hold a whole run, they come one after another, each with its
    # trees grown by all workers.
    if cluster is not None and fits_workers(
        cluster, context.spec, context.store, context.task.inputs, "permutation runs"
    ):
        store = WorkerStore.of(context.store, cluster.worker_memory_mb)
        job = PermutationJob(store, spec.to_json(), context.task.inputs, n_iterations)
        parts, stage = dict.fromkeys(missing), "permutation runs"
        found = from_workers(cluster, job, parts, stage, n_iterations, context.watch)
    else:
        found = _one_after_another(ledger, context, missing, n_iterations)
    for number, best in found:
        reached[number - 1] = best
        _keep(ledger, reached, n_iterations)
        remove_part(folder / str(number))
    if np.isnan(reached).any():
        return None
    shutil.rmtree(folder, ignore_errors=True)
    return reached


def _one_after_another(
    ledger: Ledger, context: RunContext, numbers: list[int], n_iterations: int
) -> Iterator[tuple[int, tuple[float, float]]]:
    """Yield the bests of permutation runs, each committed and gone on with; end if stopped."""
    for number in numbers:
        run = ledger.run / PERMUTATIONS_FOLDER / str(number)
        run.parent.mkdir(exist_ok=True)
        if not run.exists():
            Ledger.create(run, {"spec": context.spec.to_json()}, {})
        stage = f"permutation run {number} of {context.spec.permutations}"
        with closing(
            Ledger(run, writable=True, accept_loss=ledger.accepts_loss, part_of=ledger.run)
        ) as permuted:
            permuted.check = ledger.check
            best = best_of(context, number, n_iterations, permuted, stage)
        if best is None:
            return
        yield number, best


def best_of(
    context: RunContext, number: int, n_iterations: int, ledger: Ledger | None, stage: str
) -> tuple[float, float] | None:
    """Return the best score and the best strength that a permutation run reaches.

    Parameters
    ----------
    context : RunContext
        What the run is worked on with that it is compared with; None is returned if that says no.
    number : int
        Of the permutation run, from 1.
    n_iterations : int
        Of its screen.
    ledger : Ledger or None
        Where the screen and the closing stage are committed to; None to keep nothing.
    stage : str
        What its steps are called.
    """
    with _resources(context, number) as resources:
        seed = key_of(context.spec.seed, Purpose.PERMUTATION, number, Purpose.TREE)
        closed = screen_and_close(resources, ledger, n_iterations, context.watch, stage, seed=seed)
        if closed is None:
            return None
    with (
        suppress(StoppedError),
        _resources(replace(context, cluster=None), number, grows=False) as resources,
    ):
        return best_score(closed[0]), best_strength(MarginalTests(resources, ledger).of_all())
    return None


def remove_part(run: Path) -> None:
    """Remove a run that another needed, under another name first: a kill leaves no part of one."""
    gone = run.with_name(f"{run.name}.removed")
    shutil.rmtree(gone, ignore_errors=True)
    with suppress(OSError):
        run.rename(gone)
    shutil.rmtree(gone, ignore_errors=True)


def _keep(ledger: Ledger, reached: NDArray[np.float64], n_iterations: int) -> None:
    n_begun = int(np.flatnonzero(~np.isnan(reached[:, 0])).max(initial=-1)) + 1
    done = {
        "bests": reached[:n_begun],
        "n_iterations": np.array(n_iterations),
        "evidence": np.array(DecoyJudge.versions["evidence"]),
    }
    ledger.write_arrays(BESTS, done)


def _resources(
    context: RunContext, number: int, *, grows: bool = True
) -> AbstractContextManager[Resources]:
    """Return the resources of a permutation run, with its target, as a context."""
    key = key_of(context.spec.seed, Purpose.PERMUTATION, number)
    task = context.task.permuted(context.task.exchangeability().permutation(key))
    return replace(context, task=task).resources(grows=grows)


# Whole runs done by workers: the store and memory of each, and how far all of them are.

ALL_AHEAD = 1 << 30
"""Runs are begun however long one of them takes: little is kept of those that are done."""


Doer = Callable[[int, Any, int, Watch], Any]
"""``one(number, what, cap_nbytes, watch)`` does a run; it returns None if ``watch`` says no."""


def whole_runs(memory_mb: int, needed: int, n_threads: int, n_iterations: int, one: Doer) -> Work:
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
        Does a run under a cap on growth, in bytes.

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

    def work(batch: Batch, tell: Tell) -> Batch:
        def wanted(number: int, what: Any) -> Any:
            found = one(number, what, each, _watch_of(number, tell, n_iterations))
            if found is None:
                raise RunError("expected a run that is wanted, found one that was given up.")
            return found

        with room, growth_counted():
            return batch.done(wanted)

    return work


def _watch_of(number: int, tell: Tell, n_iterations: int) -> Watch:
    """Return what tells how far a run is: the iterations of its screen, which comes first."""
    reached = 0

    def watch(step: Step) -> bool:
        nonlocal reached
        if step.unit == "iterations" and step.total == n_iterations:
            reached = max(reached, step.done)
        return tell(number, reached)

    return watch


def from_workers(
    cluster: "DaskCluster", job: Job, parts: dict[int, Any], stage: str, n_each: int, watch: Watch
) -> Iterator[tuple[int, Any]]:
    """Yield (number, outcome) of each part as workers are done with it; end if told to stop.

    Parameters
    ----------
    cluster : DaskCluster
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


# Permutation runs done by workers, each whole at one of them.

_log = logging.getLogger("srs_ooc")


@dataclass(frozen=True)
class PermutationJob(Job):
    """What a worker needs to do any permutation run; its identity is the run's.

    Attributes
    ----------
    inputs : Inputs
        Features left out, rows, and how often features are drawn where columns were scored.
    n_iterations : int
        Of each run's screen.
    """

    inputs: Inputs
    n_iterations: int
    label, tells = "permutation_run", True

    def prepare(self, n_threads: int, stack: ExitStack) -> Work:
        """Prepare for it in a worker."""
        spec, store = RunSpec.from_json(self.identity), self.store.open()
        needed = whole_run_nbytes(spec, store, self.inputs)
        one = self.doer(spec, store)
        return whole_runs(self.store.memory_mb, needed, n_threads, self.n_iterations, one)

    def doer(self, spec: RunSpec, store: Store) -> Doer:
        """Return what does a run in a worker."""
        with store.unchanged():
            task = Task.of_run(spec, store, self.inputs)

        def one(number: int, _: Any, cap_nbytes: int, watch: Watch) -> tuple[float, float] | None:
            context = RunContext(spec, store, task, cap_nbytes, 1, watch=watch)
            return best_of(context, number, self.n_iterations, None, "")

        return one


def fits_workers(
    cluster: "DaskCluster", spec: RunSpec, store: Store, inputs: Inputs, what: str
) -> bool:
    """Return whether a worker's memory holds a whole run; where not, log how ``what`` is done."""
    needed = whole_run_nbytes(spec, store, inputs)
    fits = needed <= cluster.worker_memory_mb * MB
    if not fits:
        _log.warning(
            "%s come one after another, each with its trees grown by all workers: to have whole "
            "runs done side by side, give --worker-memory-mb %d",
            what,
            -(-needed // MB),
        )
    return fits
