"""Work done elsewhere: what a job is, and what a worker process keeps for it.

A job is anything with many parts that do not depend on each other: the iterations of a round, the
targets of a network, whole runs on some of the rows. A worker prepares for one once, and then does
batches of its parts.
"""

import hashlib
import json
import logging
import shutil
import socket
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Condition, Semaphore
from time import perf_counter
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from srs_ooc import __version__
from srs_ooc.base.budget import PROCESS_NBYTES, growth_counted
from srs_ooc.base.errors import BudgetError, RunError, SrsOocError
from srs_ooc.base.records import Step, Watch
from srs_ooc.base.text import MB
from srs_ooc.runs.inputs import Inputs
from srs_ooc.runs.run_memory import whole_run_nbytes
from srs_ooc.runs.spec import RunSpec
from srs_ooc.store.opening import open_store
from srs_ooc.store.store import Store

if TYPE_CHECKING:
    from srs_ooc.runs.dask_cluster import DaskCluster
    from srs_ooc.store.remote_cache import CacheOptions

Tell = Callable[[int, int], bool]
"""Says how far a part is, by its number; returns whether the part is still wanted."""


@dataclass(frozen=True)
class Batch:
    """Parts of a job that are done together.

    Dask looks into lists and dicts for its own things, but not into this.

    Attributes
    ----------
    parts : dict
        By number, what each part needs; on the way back, what came of it.
    seconds : float
        Of the work on them.
    """

    parts: dict[int, Any]
    seconds: float = 0.0

    def done(self, one: Callable[[int, Any], Any]) -> "Batch":
        """Return what ``one(number, what)`` makes of each part, and the seconds it took."""
        begun = perf_counter()
        outcomes = {number: one(number, what) for number, what in self.parts.items()}
        return Batch(outcomes, perf_counter() - begun)


Work = Callable[[Batch, Tell], Batch]
"""Does a batch; called by as many threads at once as it was prepared for."""


@dataclass(frozen=True)
class WorkerStore:
    """A store as workers have it.

    Attributes
    ----------
    place : str
        A URL, or the same path on all machines.
    fingerprint : str
        Which store it is.
    memory_mb : int
        What a worker may grow by, in MB of 10**6 bytes.
    cache : CacheOptions or None
        Of a store at a URL, what each worker keeps of it.
    """

    place: str
    fingerprint: str
    memory_mb: int
    cache: "CacheOptions | None" = None

    @classmethod
    def of(cls, store: Store, memory_mb: int) -> "WorkerStore":
        """Return how workers find a store that was opened here."""
        place = store.place.absolute() if isinstance(store.place, Path) else store.place
        cache = getattr(store, "cache", None)  # of a store at a URL
        return cls(str(place), store.fingerprint, memory_mb, cache)

    def open(self) -> Store:
        """Open it in a worker; errors as of :func:`srs_ooc.store.opening.open_store`."""
        return open_store(self.place, self.fingerprint, self.cache)


@dataclass(frozen=True)
class Job(ABC):
    """What a worker prepares for once; it travels there.

    Attributes
    ----------
    store : WorkerStore
        Where the store is, and what a worker may take.
    identity : dict
        JSON: jobs with the same one take each other's place in a worker.
    token : str
        Unlike that of any other job.
    tells : bool
        Whether its parts take so long that they say how far they are.
    """

    store: WorkerStore
    identity: dict[str, Any]
    token: str = field(default_factory=lambda: uuid4().hex[:8], kw_only=True)
    tells = False

    @property
    @abstractmethod
    def label(self) -> str:
        """What its tasks are called."""

    @abstractmethod
    def prepare(self, n_threads: int, stack: ExitStack) -> Work:
        """Prepare for it, in a worker that does ``n_threads`` batches at once.

        What is opened for it is closed by ``stack``.

        Raises
        ------
        StoreError
            If the store is not there, or is another.
        BudgetError
            If the worker's memory cannot hold the work.
        """

    @property
    def run(self) -> str:
        """A short digest of its identity."""
        text = json.dumps(self.identity, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


# The work of a worker process: what it has prepared for, and the batches done with that.

MOST_RUNS = 4
"""Runs that a process is prepared for; the one that was not used for longest makes room."""
MOST_OVER = 100
"""Stages that are over, of which late batches are known as such."""


class PreparedJob:
    """A job that this process is prepared for; what was opened is closed with it."""

    def __init__(self, job: Job, n_threads: int) -> None:
        self.job, self.n_users = job, 0
        with ExitStack() as stack:
            self.work = job.prepare(n_threads, stack)
            self.close = stack.pop_all().close


PREPARED: dict[str, PreparedJob] = {}
"""The last job of each run, by the run; what was used last comes last."""
_over: deque[str] = deque(maxlen=MOST_OVER)
_changed = Condition()


@contextmanager
def prepared(job: Job, n_threads: int) -> Iterator[Work]:
    """Yield what does batches of ``job`` in this process, prepared for if it was not."""
    with _changed:
        if job.token in _over:
            raise RunError("expected work on a stage under way, found an order of one before.")
        found = PREPARED.get(job.run)
        while found is not None and found.job.token != job.token:
            if found.n_users == 0:
                PREPARED.pop(job.run).close()
            else:
                _changed.wait()  # an earlier stage's last batches
            found = PREPARED.get(job.run)
        if found is None:
            idle = [run for run, other in PREPARED.items() if other.n_users == 0]
            for run in idle[: max(0, len(PREPARED) + 1 - MOST_RUNS)]:
                PREPARED.pop(run).close()
            found = PreparedJob(job, n_threads)
        PREPARED.pop(job.run, None)
        PREPARED[job.run] = found
        found.n_users += 1
    try:
        yield found.work
    finally:
        with _changed:
            found.n_users -= 1
            _close_if_over(found)
            _changed.notify_all()


def _close_if_over(found: PreparedJob) -> None:
    if found.job.token in _over and found.n_users == 0:
        PREPARED.pop(found.job.run).close()


def forget(token: str) -> None:
    """Close the job with ``token`` here once nothing is at work on it; prepare for it no more."""
    with _changed:
        _over.append(token)
        for found in list(PREPARED.values()):
            _close_if_over(found)


def work(job: Job, batch: Batch, n_threads: int = 1, tell: Tell = lambda *_: True) -> Batch:
    """Do a batch of ``job`` in this process, in which up to ``n_threads`` are done at once.

    Raises
    ------
    StoreError
        If the store is not here, or is another, or cannot be read.
    BudgetError
        If a worker's memory cannot hold the work.
    """

    def goes_on(number: int, done: int) -> bool:
        return tell(number, done) and job.token not in _over

    try:
        with prepared(job, n_threads) as do:
            return do(batch, goes_on)
    except SrsOocError as error:
        raise type(error)(f"worker on {socket.gethostname()}: {error}") from error


def check_version(version: str) -> None:
    """Check that a batch comes from a process with the version of this one.

    Raises
    ------
    RunError
        If it does not.
    """
    if version != __version__:
        raise RunError(
            f"worker on {socket.gethostname()}: expected srs-ooc {version}, as where the run is, "
            f"found {__version__}. Install the same version on all machines and resume the run."
        )


# Whole runs done by workers, each at one of them: their memory, and how far all of them are.

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
