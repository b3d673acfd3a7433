"""Whole runs done by workers, each at one of them: their memory, and how far all of them are."""

import logging
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from threading import Semaphore
from typing import TYPE_CHECKING, Any

from srs_ooc.base.budget import PROCESS_NBYTES, growth_counted, total_nbytes
from srs_ooc.base.errors import BudgetError, RunError
from srs_ooc.base.records import Step
from srs_ooc.base.text import MB
from srs_ooc.runs.inputs import Inputs
from srs_ooc.runs.jobs import Batch, Job, Tell, Work
from srs_ooc.runs.run_memory import run_leases, shape_of
from srs_ooc.runs.screening import Watch
from srs_ooc.runs.spec import RunSpec
from srs_ooc.store.store import Store

if TYPE_CHECKING:
    from srs_ooc.runs.dask_cluster import DaskCluster

ALL_AHEAD = 1 << 30
"""Runs are begun however long one of them takes: little is kept of those that are done."""


def whole_run_nbytes(spec: RunSpec, store: Store, inputs: Inputs) -> int:
    """Return what a whole run on a worker needs, the process included."""
    shape = shape_of(store.manifest, inputs, spec.values())
    leases = run_leases(spec, shape, beside_nbytes=store.reading_nbytes)
    given = sum(array.nbytes for array in (inputs.weights, inputs.excluded) if array is not None)
    return PROCESS_NBYTES + given + total_nbytes(leases)


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


_log = logging.getLogger("srs_ooc")


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


def remove_part(run: Path) -> None:
    """Remove a run that another needed, under another name first: a kill leaves no part of one."""
    gone = run.with_name(f"{run.name}.removed")
    shutil.rmtree(gone, ignore_errors=True)
    with suppress(OSError):
        run.rename(gone)
    shutil.rmtree(gone, ignore_errors=True)
