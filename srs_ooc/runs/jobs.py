"""Work done elsewhere: the way to workers, what jobs share, and the work of a worker.

Orders of the parts of a job go one way, replies come back. A worker has one desk for each run.
"""

import hashlib
import json
import socket
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Condition
from typing import Any, Generic, Protocol, TypeVar
from uuid import uuid4

from srs_ooc import __version__
from srs_ooc.base.errors import RunError, SrsOocError
from srs_ooc.store.opening import RemoteStore, open_store
from srs_ooc.store.remote_cache import CacheOptions
from srs_ooc.store.store import Store

# The way to workers: orders of the parts of a job go one way, replies come back.
#
# A job is anything with many parts that do not depend on each other: the iterations of a round, the
# targets of a network, permutation runs, folds. What a part is, only the job's own desk knows.

Tell = Callable[[int, int], bool]
"""Says how far a part is, by its number; returns whether the part is still wanted."""


@dataclass(frozen=True)
class Part:
    """A part of a job: its number, and what its desk needs to know of it."""

    number: int
    what: Any


@dataclass(frozen=True)
class Order:
    """Parts that are done together; Dask looks into lists for its own things, but not into this."""

    parts: list[Part]


@dataclass(frozen=True)
class Reply:
    """What came of an order: an outcome for each part, and the seconds of the work."""

    outcomes: list[Any]
    seconds: float


class AnyJob(Protocol):
    """What a worker prepares for once."""

    @property
    def token(self) -> str:
        """Unlike that of any other job."""

    @property
    def run(self) -> str:
        """Jobs with the same take each other's place in a worker."""

    @property
    def label(self) -> str:
        """What its tasks are called."""

    @property
    def nbytes(self) -> int:
        """Bytes of its arrays."""

    @property
    def tells(self) -> bool:
        """Whether its parts take so long that they say how far they are."""

    def desk(self, n_threads: int) -> "Prepared[Any]":
        """Prepare for it, in a worker that does ``n_threads`` orders at once."""


class Line(Protocol):
    """The way to the workers of one job."""

    def send(self, order: Order) -> "Future[Reply]":
        """Have an order done; its result raises an error of this package where nothing can come."""

    def n_threads(self) -> int:
        """Return how many threads the workers have now; 0 if there are none."""

    def look(self) -> None:
        """See whether there is still somebody to wait for; raises a RunError where there is not."""

    def told(self) -> Mapping[int, int]:
        """Return how far parts said they are, by their numbers."""

    def close(self) -> None:
        """Nothing more will be sent."""


def digest_of(identity: Mapping[str, Any]) -> str:
    """Return a short digest of an identity in JSON."""
    text = json.dumps(identity, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


# The work of a worker process: one desk for each run, and the orders done at it.

MOST_RUNS = 4
"""Runs whose desks a process keeps; the one that was not used for longest makes room."""


MOST_OVER = 100
"""Stages that are over, of which late orders are known as such."""


class Desks:
    """The desks of this process, each for the last job of a run."""

    def __init__(self) -> None:
        self._desks: dict[str, Prepared[Any]] = {}
        self._users: dict[Prepared[Any], int] = {}
        self._over: deque[str] = deque(maxlen=MOST_OVER)
        self._changed = Condition()

    @contextmanager
    def at(self, job: AnyJob, n_threads: int) -> Iterator["Prepared[Any]"]:
        """Yield the desk of ``job``, made if it is not there; errors as of its ``desk``."""
        with self._changed:
            if job.token in self._over:
                raise RunError("expected work on a stage under way, found an order of one before.")
            desk = self._desks.pop(job.run, None)
            while desk is not None and desk.job.token != job.token:
                if self._users[desk] == 0:
                    self._close(desk)
                    desk = None
                    break
                self._desks[job.run] = desk
                self._changed.wait()  # an earlier stage's last batches
                desk = self._desks.pop(job.run, None)
            if desk is None:
                self._make_room()
                desk = job.desk(n_threads)
                self._users[desk] = 0
            self._desks[job.run] = desk  # last in order: used last
            self._users[desk] += 1
        try:
            yield desk
        finally:
            with self._changed:
                self._users[desk] -= 1
                self._close_if_over(desk)
                self._changed.notify_all()

    def _make_room(self) -> None:
        for run in list(self._desks):
            if len(self._desks) < MOST_RUNS:
                return
            if self._users[self._desks[run]] == 0:
                self._close(self._desks.pop(run))

    def _close(self, desk: "Prepared[Any]") -> None:
        del self._users[desk]
        desk.close()

    def _close_if_over(self, desk: "Prepared[Any]") -> None:
        if desk.job.token in self._over and self._users[desk] == 0:
            self._desks.pop(desk.job.run)
            self._close(desk)

    def forget(self, token: str) -> None:
        """Close the desk of the job with ``token`` once nothing is at work; make none again."""
        with self._changed:
            self._over.append(token)
            for desk in list(self._desks.values()):
                self._close_if_over(desk)

    def is_over(self, token: str) -> bool:
        """Return whether the job with ``token`` is over."""
        return token in self._over


DESKS = Desks()


def wanted(_: int, __: int) -> bool:
    """Say that a part is wanted, however far it is."""
    return True


def work(job: AnyJob, parts: list[Part], n_threads: int = 1, tell: Tell = wanted) -> Reply:
    """Do parts of ``job`` in this process, in which up to ``n_threads`` orders are done at once.

    Raises
    ------
    StoreError
        If the store is not here, or is another, or cannot be read.
    BudgetError
        If a worker's memory cannot hold the work.
    """

    def goes_on(number: int, done: int) -> bool:
        return tell(number, done) and not DESKS.is_over(job.token)

    try:
        with DESKS.at(job, n_threads) as desk:
            return desk.work(parts, goes_on)
    except SrsOocError as error:
        raise type(error)(f"worker on {socket.gethostname()}: {error}") from error


def forget(token: str) -> None:
    """Close the desk of the job with ``token`` in this process; later orders are in vain."""
    DESKS.forget(token)


def work_order(
    version: str, job: AnyJob, order: Order, n_threads: int, tell: Tell = wanted
) -> Reply:
    """Do what was ordered by a process with ``version`` of the package.

    Raises
    ------
    RunError
        If that is not the version of this one. Other errors as of :func:`work`.
    """
    if version != __version__:
        raise RunError(
            f"worker on {socket.gethostname()}: expected srs-ooc {version}, as where the run is, "
            f"found {__version__}. Install the same version on all machines and resume the run."
        )
    return work(job, order.parts, n_threads, tell)


# What jobs have in common: the store as workers have it, and how one is prepared for.

JobT = TypeVar("JobT", bound=AnyJob)


def new_token() -> str:
    """Return a token that no other job has."""
    return uuid4().hex[:8]


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
    cache: CacheOptions | None = None

    @classmethod
    def of(cls, store: Store, memory_mb: int) -> "WorkerStore":
        """Return how workers find a store that was opened here."""
        place = store.place.absolute() if isinstance(store.place, Path) else store.place
        cache = store.cache if isinstance(store, RemoteStore) else None
        return cls(str(place), store.fingerprint, memory_mb, cache)

    def open(self) -> Store:
        """Open it in a worker; errors as of :func:`srs_ooc.store.opening.open_store`."""
        return open_store(self.place, self.fingerprint, self.cache)


class Prepared(Generic[JobT]):
    """A job, prepared for in a worker; what was opened for it is closed with it.

    Parameters
    ----------
    job : AnyJob
        What to prepare for.
    n_threads : int
        Threads that may call ``work`` at once.

    Raises
    ------
    StoreError
        If the store is not there, or is another.
    BudgetError
        If the worker's memory cannot hold the work.
    """

    def __init__(self, job: JobT, n_threads: int) -> None:
        self.job = job
        self._stack = ExitStack()
        try:
            self._prepare(n_threads)
        except BaseException:
            self._stack.close()
            raise

    def _prepare(self, n_threads: int) -> None:
        """Open and make what the work needs."""
        raise NotImplementedError

    def work(self, parts: list[Part], tell: Tell) -> Reply:
        """Do parts; as many threads call it at once as it was prepared for."""
        raise NotImplementedError

    def close(self) -> None:
        """Close what was opened."""
        self._stack.close()
