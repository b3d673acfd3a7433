"""What jobs have in common: the store as workers have it, and how one is prepared for."""

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar
from uuid import uuid4

from srs_ooc.runs.cluster.line import AnyJob
from srs_ooc.store.opening import RemoteStore, open_store
from srs_ooc.store.remote_cache import CacheOptions
from srs_ooc.store.store import Store

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

    def close(self) -> None:
        """Close what was opened."""
        self._stack.close()
