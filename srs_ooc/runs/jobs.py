"""Work done elsewhere: what a job is, and what a worker process keeps for it.

A job is anything with many parts that do not depend on each other: the iterations of a round, the
targets of a network, whole runs on some of the rows. A worker prepares for one once, and then does
batches of its parts.
"""

import hashlib
import json
import socket
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Condition
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol
from uuid import uuid4

from srs_ooc import __version__
from srs_ooc.base.errors import RunError, SrsOocError
from srs_ooc.store.arrays import OWN
from srs_ooc.store.opening import open_store
from srs_ooc.store.store import Store

if TYPE_CHECKING:
    from srs_ooc.store.remote_cache import CacheOptions

PartWatch = Callable[[int, int], bool]
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
        started = perf_counter()
        outcomes = {number: one(number, what) for number, what in self.parts.items()}
        return Batch(outcomes, perf_counter() - started)


Work = Callable[[Batch, PartWatch], Batch]
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
    target : str
        Which target it is seen with.
    """

    place: str
    fingerprint: str
    memory_mb: int
    cache: "CacheOptions | None" = None
    target: str = OWN

    @classmethod
    def of(cls, store: Store, memory_mb: int) -> "WorkerStore":
        """Return how workers find a store that was opened here."""
        place = store.place.absolute() if isinstance(store.place, Path) else store.place
        cache = getattr(store, "cache", None)  # of a store at a URL
        return cls(str(place), store.fingerprint, memory_mb, cache, store.target_identity)

    def open(self) -> Store:
        """Open it in a worker; errors as of :func:`srs_ooc.store.opening.open_store`."""
        return open_store(self.place, self.fingerprint, self.cache).seen_as(self.target)


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
        return hashlib.sha256(json.dumps(self.identity, sort_keys=True).encode()).hexdigest()[:16]


class Line(Protocol):
    """The way to workers who do parts of one job.

    Attributes
    ----------
    told : dict
        How far parts said they are, by their numbers.
    """

    told: dict[int, int]

    def send(self, batch: Batch) -> Future[Batch]:
        """Have a batch done."""

    def n_threads(self) -> int:
        """Return how many threads the workers had when they were last counted."""

    def close(self) -> None:
        """Have the workers let go of the job."""


class Cluster(Protocol):
    """Workers elsewhere, as :class:`srs_ooc.runs.dask_cluster.DaskCluster`."""

    worker_memory_mb: int

    def line(self, job: Job) -> Line:
        """Return the way to workers who do parts of a job."""


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


def work(job: Job, batch: Batch, n_threads: int = 1, tell: PartWatch = lambda *_: True) -> Batch:
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
