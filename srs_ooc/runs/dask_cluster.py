"""Clusters by Dask: clients, batches as tasks, and what goes wrong with them in our words.

Dask is loaded only where a cluster is asked for, and in a worker.
"""

import logging
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from copy import deepcopy
from functools import cached_property
from pathlib import Path
from threading import Thread
from typing import Any
from uuid import uuid4

import numpy as np

from srs_ooc import __version__
from srs_ooc.base.errors import RunError, SrsOocError, UsageError
from srs_ooc.base.frames import library
from srs_ooc.runs.jobs import Batch, Job, PartWatch, check_version, forget, work

# Batches as tasks of a Dask worker: whether they are still wanted, and how far they are.

TELL_SECONDS = 1.0
"""Between two words of a worker on how far a part is."""
ASK_SECONDS = 0.2
"""Between two looks at whether a part is still wanted."""
CANCELLED = "cancelled"
"""State of a task that nobody waits for any more: its client is gone, or has said so."""


def topic_of(token: str) -> str:
    """Return the topic of Dask's events under which parts of a job say how far they are."""
    return f"srs_ooc-{token}"


def work_on_dask(version: str, job: Job, batch: Batch) -> Batch:
    """Do a batch in a Dask worker, which does as many at once as it has threads."""
    from distributed import get_worker

    check_version(version)
    worker, batch = get_worker(), deepcopy(batch)  # arrays in a message need not be aligned
    return work(job, batch, worker.state.nthreads, teller(worker, job))


def teller(worker: Any, job: Job) -> PartWatch:
    """Return what says how far a part is, now and then, and whether it is still wanted.

    A part is wanted until the task of the calling thread is cancelled.
    """
    key = worker.get_current_task()
    looked, told, answer = 0.0, 0.0, True

    def tell(number: int, done: int) -> bool:
        nonlocal looked, told, answer
        now = time.monotonic()
        if job.tells and now - told >= TELL_SECONDS:
            told = now
            worker.log_event(topic_of(job.token), [number, done])
        if now - looked >= ASK_SECONDS:
            task = worker.state.tasks.get(key)
            looked, answer = now, task is not None and task.state != CANCELLED
        return answer

    return tell


# The way to the workers by Dask: batches as tasks, and what goes wrong with them in our words.

LARGE_JOB_NBYTES = 1 << 16
"""A larger job is sent once to each worker, not with each batch."""
WAIT_SECONDS = 600.0
"""How long to wait where there is no worker, or the scheduler does not answer."""
WARN_SECONDS = 10.0
"""How long before that is said."""
LOOK_SECONDS = 1.0
"""Between two looks at a cluster that is waited for."""
OVER_SECONDS = 3.0
"""How long to wait until all workers know that a stage is over."""
COUNTED_SECONDS = 2.0
"""How old a count of the workers' threads may be."""
RESUME = "Nothing that was committed is lost: `srs-ooc resume RUN`, or the same command, goes on."
_log = logging.getLogger("srs_ooc")


def same(job: Job) -> Job:
    """Return what was given: a task whose result Dask hands to each worker once."""
    return job


class DaskLine:
    """Sends the batches of one job as tasks of a Dask client.

    Parameters
    ----------
    client : distributed.Client
        Not asynchronous.
    job : Job
        What the batches are parts of.
    work : callable
        ``work(version, job, batch) -> Batch``, run in a worker.

    Attributes
    ----------
    told : dict
        How far parts said they are, by their numbers.
    """

    def __init__(self, client: Any, job: Job, work: Any = work_on_dask) -> None:
        self._client, self._work = client, work
        self._token, self._n_sent = job.token, 0
        self._unique = uuid4().hex[:8]  # Dask takes two tasks of one name for the same
        self._name = f"srs_ooc_{job.label}"
        self._silent_since: float | None = None
        self._warned = False
        self._n_threads, self._counted = 0, -COUNTED_SECONDS
        self.told: dict[int, int] = {}
        self._job: Any = job
        parts = vars(job) | (job.inputs.arrays if hasattr(job, "inputs") else {})
        arrays = [part for part in parts.values() if isinstance(part, np.ndarray)]
        if sum(array.nbytes for array in arrays) > LARGE_JOB_NBYTES:
            self._job = client.submit(same, job, key=f"srs_ooc_job-{self._unique}", pure=False)
        if job.tells:  # how far parts are, by number
            client.subscribe_topic(topic_of(job.token), lambda event: self.told.update([event[1]]))

    def send(self, batch: Batch) -> "SentByDask":
        """Submit a batch as a task named by its first and last part.

        Raises
        ------
        RunError
            If the scheduler is gone.
        """
        self._n_sent += 1
        numbers = list(batch.parts)
        key = f"{self._name}-{numbers[0]}-{numbers[-1]}-{self._unique}-{self._n_sent}"
        try:
            future = self._client.submit(
                self._work, __version__, self._job, batch, key=key, pure=False
            )
        except Exception as error:
            raise gone() from error
        return SentByDask(self, future)

    @property
    def is_open(self) -> bool:
        """Whether the scheduler can be reached, as far as is known."""
        return bool(self._client.status == "running")

    def n_threads(self, oldest: float = COUNTED_SECONDS) -> int:
        """Return how many threads the workers have, by a count that is so many seconds old at most.

        There are none where no scheduler answers.
        """
        if time.monotonic() - self._counted >= oldest:
            counts: dict[str, int] = {}
            if self.is_open:
                with suppress(OSError, TimeoutError, CancelledError):
                    counts = self._client.sync(self._client.scheduler.ncores, callback_timeout=10)
            self._n_threads, self._counted = sum(counts.values()), time.monotonic()
        return self._n_threads

    def look(self) -> None:
        """See whether there is still somebody to wait for, if that was not seen a moment ago.

        Raises
        ------
        RunError
            If the scheduler is gone, or there was no worker for WAIT_SECONDS.
        """
        if self._client.status not in ("running", "connecting"):
            raise gone()
        if self.n_threads(LOOK_SECONDS):
            self._silent_since, self._warned = None, False
            return
        now = time.monotonic()
        self._silent_since = now if self._silent_since is None else self._silent_since
        silent = now - self._silent_since
        if silent >= WAIT_SECONDS:
            raise RunError(
                f"--dask: expected workers, found none for {silent:.0f} s. Start some. {RESUME}"
            )
        if silent >= WARN_SECONDS and not self._warned:
            _log.warning("no Dask worker for %.0f s; waiting for one", silent)
            self._warned = True

    def close(self) -> None:
        """Have the workers let go of the job; nothing is said where they cannot be reached."""
        if self._job is not None and self.is_open:
            self._job = None
            with suppress(Exception):  # where its parts tell nothing, there is no such topic
                self._client.unsubscribe_topic(topic_of(self._token))
            saying = Thread(target=self._say_over, daemon=True)
            saying.start()
            saying.join(OVER_SECONDS)  # a frozen worker never answers

    def _say_over(self) -> None:
        with suppress(Exception):
            self._client.run(forget, self._token, on_error="ignore")


class SentByDask(Future[Batch]):
    """A batch as a Dask future."""

    def __init__(self, line: DaskLine, future: Any) -> None:
        super().__init__()
        self._line, self._future = line, future

    def add_done_callback(self, fn: Callable[[Future[Batch]], object]) -> None:
        """Have ``fn`` called, in any thread, once there is a result or an error."""
        self._future.add_done_callback(lambda _: fn(self))

    def done(self) -> bool:
        """Return whether there is a result, or an error; errors as of :meth:`DaskLine.look`."""
        is_done = bool(self._future.done())
        if not is_done:
            self._line.look()
        return is_done

    def result(self, timeout: float | None = None) -> Batch:
        """Wait for what came of it.

        Raises
        ------
        SrsOocError
            Whatever a worker found wrong.
        RunError
            If the workers that tried died, or the scheduler is gone.
        """
        try:
            while not self.done():
                # Not for the result itself: where that time is over just as the result is about to
                # be fetched, Dask keeps the cancelled fetch, and later ones end as cancelled, too.
                with suppress(TimeoutError):
                    self._future.exception(timeout=LOOK_SECONDS)
            reply: Batch = self._future.result(timeout=WAIT_SECONDS)
            self._future.release()  # a worker keeps it until then
        except SrsOocError:
            raise
        except Exception as error:
            raise (failed(error) if self._future.status == "error" else gone()) from error
        return reply

    def cancel(self) -> bool:
        """Have the task dropped, without a wait: there may be hundreds of them at once."""
        if self._line.is_open:
            self._future.release()
        return True


def gone() -> RunError:
    """Return the error of a scheduler that is gone; what Dask says of it names its own tasks."""
    return RunError(
        "--dask: expected a scheduler that answers, found that it is gone, or that the connection "
        f"to it is lost. Start it again, name another, or go on without. {RESUME}"
    )


def failed(error: Exception) -> RunError:
    """Return the error of a task that failed for a reason that is none of ours."""
    what = " ".join(str(error).split())[:500]
    if type(error).__name__ == "KilledWorker":
        return RunError(
            "--dask: expected workers that stay, found that all that tried an order died "
            f"({what}). Mostly their memory is short: see their logs, give them more, or "
            f"say less with --worker-memory-mb. {RESUME}"
        )
    return RunError(
        f"--dask: expected workers with srs-ooc {__version__} installed, found a task that failed "
        f"({type(error).__name__}: {what}). See the logs of the workers. {RESUME}"
    )


class DaskCluster:
    """The workers of a Dask client.

    Parameters
    ----------
    start : callable
        Returns the client, which is not asynchronous, when it is first needed: after all else was
        compared, as workers may only be started then.
    worker_memory_mb : int
        What each worker process may grow by, in MB of 10**6 bytes.
    """

    def __init__(self, start: Callable[[], Any], worker_memory_mb: int) -> None:
        self._start, self.worker_memory_mb = start, worker_memory_mb

    @cached_property
    def client(self) -> Any:
        """Their client."""
        return self._start()

    def line(self, job: Job) -> DaskLine:
        """Return the way to workers who do parts of a job."""
        return DaskLine(self.client, job)


# Clients of Dask: of a scheduler that is there, or of one that is started for a run.

LOCAL = "local"
CONNECT_SECONDS = 5
"""How long to wait for a scheduler, at first and where the connection to it is lost."""
_FORMS = "tcp://HOST:PORT, tls://HOST:PORT, or local:N for N processes of this machine"


@contextmanager
def dask_cluster(address: str, worker_memory_mb: int) -> Iterator[DaskCluster]:
    """Yield the workers that ``--dask`` names, by an address or by the file of a scheduler.

    Those of this machine are started only once there is work for them.

    Raises
    ------
    UsageError
        If Dask is not installed, or no scheduler is there.
    """
    with ExitStack() as stack:
        if address == LOCAL or address.startswith(f"{LOCAL}:"):
            _distributed()  # its libraries count as the program's own
            number = address.removeprefix(LOCAL).removeprefix(":") or str(os.cpu_count() or 1)
            if not (number.isascii() and number.isdigit() and 1 <= int(number) <= 1024):
                raise UsageError(f"--dask: expected {_FORMS}, found {address[:80]!r}.")
            local = _local_client(int(number))
            yield DaskCluster(lambda: stack.enter_context(local), worker_memory_mb)
        else:
            client = stack.enter_context(_client(address))
            yield DaskCluster(lambda: client, worker_memory_mb)


def cluster_of(client: Any, worker_memory_mb: int) -> DaskCluster:
    """Return the workers of a client that the caller made, and closes.

    Raises
    ------
    UsageError
        If it is none, or an asynchronous one.
    """
    if not isinstance(client, _distributed().Client) or client.asynchronous:
        raise UsageError(
            "client: expected a distributed.Client that is not asynchronous, found "
            f"{type(client).__name__}."
        )
    return DaskCluster(lambda: client, worker_memory_mb)


def _distributed() -> Any:
    remedy = "Run `pip install 'srs-ooc[dask]'` here and on the workers."
    return library("distributed", "--dask", remedy)


@contextmanager
def _client(address: str) -> Iterator[Any]:
    distributed, is_address = _distributed(), "://" in address
    if not is_address and not Path(address).is_file():
        raise UsageError(
            f"--dask: expected {_FORMS}, or the file that `dask scheduler --scheduler-file` "
            f"writes, found {address[:80]!r}. Start the scheduler first."
        )
    where = {"address" if is_address else "scheduler_file": address}
    try:
        client = distributed.Client(**where, set_as_default=False, timeout=CONNECT_SECONDS)
    except (OSError, TimeoutError, ValueError) as error:
        raise UsageError(
            f"--dask: expected a Dask scheduler at {address}, found none that "
            f"answers within {CONNECT_SECONDS} s ({str(error)[:200]}). Start it, or name another."
        ) from error
    with _at_least("distributed.batched", logging.WARNING):  # INFO: tracebacks of what is sent late
        try:
            yield client
        finally:
            with quiet(client):
                client.close()


def quiet(client: Any) -> AbstractContextManager[None]:
    """Keep a client whose scheduler is gone from logging, as it is closed, that it is not there.

    Our own message says so; Dask's is a traceback of its attempt to connect again.
    """
    is_gone = client.status != "running"
    return _at_least("distributed.client", logging.CRITICAL if is_gone else logging.NOTSET)


@contextmanager
def _at_least(name: str, level: int) -> Iterator[None]:
    """Keep from a log what is of a lower level."""
    log = logging.getLogger(name)
    before = log.level
    log.setLevel(max(level, before))
    try:
        yield
    finally:
        log.setLevel(before)


@contextmanager
def _local_client(n_workers: int) -> Iterator[Any]:
    """Yield a client of processes of this machine, which listen on the loopback address alone."""
    distributed = _distributed()
    import dask

    no_pages: dict[str, Any] = {
        "distributed.scheduler.http.routes": [],
        "distributed.worker.http.routes": [],
    }
    with (
        # Of workers that take a while to end, once all is done; those of others keep their log.
        _at_least("distributed.nanny", logging.ERROR),
        dask.config.set(no_pages),
        distributed.LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            worker_dashboard_address="127.0.0.1:0",
            scheduler_kwargs={"dashboard": False},
            memory_limit=0,
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client
