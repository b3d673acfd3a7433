"""The way to the workers by Dask: batches as tasks, and what goes wrong with them in our words."""

import logging
import time
from concurrent.futures import CancelledError
from contextlib import suppress
from threading import Thread
from typing import Any
from uuid import uuid4

from srs_ooc import __version__
from srs_ooc.base.errors import RunError, SrsOocError
from srs_ooc.base.records import Iteration
from srs_ooc.base.sizes import MB
from srs_ooc.runs.cluster.batches import BatchExecutor, Line
from srs_ooc.runs.cluster.orders import Job, Order, Reply
from srs_ooc.runs.cluster.worker import forget, grow_order

WAIT_SECONDS = 600.0
"""How long to wait where there is no worker, or the scheduler does not answer."""
WARN_SECONDS = 10.0
"""How long before that is said."""
LOOK_SECONDS = 1.0
"""Between two looks at a cluster that is waited for."""
OVER_SECONDS = 3.0
"""How long to wait until all workers know that a stage is over."""
LARGE_NBYTES = 1 << 16
"""A larger job is sent once to each worker, not with each batch."""
ORDERS_NBYTES = 64 * MB
"""What Dask and its messages take where the run is, besides its libraries."""
RESUME = "Nothing that was committed is lost: `srs-ooc resume RUN` goes on."
_log = logging.getLogger("srs_ooc")


def grow_on_dask(version: str, job: Job, order: Order) -> Reply:
    """Grow an order in a Dask worker, which runs as many at once as it has threads."""
    from distributed import get_worker

    return grow_order(version, job, order, get_worker().state.nthreads)


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
        What the iterations are of.
    work : callable
        ``work(version, job, order) -> Reply``, run in a worker.
    """

    def __init__(self, client: Any, job: Job, work: Any = grow_on_dask) -> None:
        self._client, self._work = client, work
        self._token, self._n_sent = job.token, 0
        self._unique = uuid4().hex[:8]  # Dask takes two tasks of one name for the same
        self._name = "srs_ooc_grow" if job.closing is None else "srs_ooc_close"
        self._silent_since: float | None = None
        self._warned = False
        self._job: Any = job
        if job.nbytes > LARGE_NBYTES:
            key = f"srs_ooc_job-{self._unique}"
            self._job = client.submit(same, job, key=key, pure=False)

    def send(self, iterations: list[Iteration]) -> "SentByDask":
        """Submit a batch as a task named by its first and last iteration."""
        self._n_sent += 1
        first, last = iterations[0].number, iterations[-1].number
        key = f"{self._name}-{first}-{last}-{self._unique}-{self._n_sent}"
        try:
            future = self._client.submit(
                self._work, __version__, self._job, Order(iterations), key=key, pure=False
            )
        except Exception as error:
            raise gone(error) from error
        return SentByDask(self, future)

    @property
    def is_open(self) -> bool:
        """Whether the scheduler can be reached, as far as is known."""
        return bool(self._client.status == "running")

    def n_threads(self) -> int:
        """Return how many threads the workers have now; 0 where no scheduler answers."""
        if not self.is_open:
            return 0
        try:
            counts = self._client.sync(self._client.scheduler.ncores, callback_timeout=10)
        except (OSError, TimeoutError, CancelledError):
            return 0
        return int(sum(counts.values()))

    def look(self) -> None:
        """See whether there is still somebody to wait for.

        Raises
        ------
        RunError
            If the scheduler is gone, or there was no worker for WAIT_SECONDS.
        """
        if self._client.status not in ("running", "connecting"):
            raise gone(f"the client is {self._client.status}")
        if self.n_threads():
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
        if self._job is None or not self.is_open:
            return
        self._job = None
        saying = Thread(target=self._say_over, daemon=True)
        saying.start()
        saying.join(OVER_SECONDS)  # a frozen worker never answers

    def _say_over(self) -> None:
        with suppress(Exception):
            self._client.run(forget, self._token, on_error="ignore")


class SentByDask:
    """A batch as a Dask future."""

    def __init__(self, line: DaskLine, future: Any) -> None:
        self._line, self._future = line, future

    def result(self) -> Reply:
        """Wait for the reply.

        Raises
        ------
        SrsOocError
            Whatever a worker found wrong.
        RunError
            If the workers that tried died, or the scheduler is gone.
        """
        while True:
            try:
                reply: Reply = self._future.result(timeout=LOOK_SECONDS)
            except TimeoutError as error:
                if self._future.status == "error":
                    raise failed(error) from error
                self._line.look()
            except SrsOocError:
                raise
            except (CancelledError, OSError) as error:
                raise gone(error) from error
            except Exception as error:
                raise failed(error) from error
            else:
                return reply

    def cancel(self) -> None:
        """Have the task cancelled, if it has not begun; nothing is said where that fails."""
        if self._line.is_open:
            self._future.cancel()


def gone(error: object) -> RunError:
    """Return the error of a scheduler that is gone."""
    return RunError(
        f"--dask: expected a scheduler that answers, found that it is gone "
        f"({_line(error)}). {RESUME}"
    )


def failed(error: Exception) -> RunError:
    """Return the error of a task that failed for a reason that is none of ours."""
    if type(error).__name__ == "KilledWorker":
        return RunError(
            "--dask: expected workers that stay, found that all that tried a batch died "
            f"({_line(error)}). Mostly their memory is short: see their logs, give them more, or "
            f"say less with --worker-memory-mb. {RESUME}"
        )
    return RunError(
        f"--dask: expected workers with srs-ooc {__version__} installed, found a task that failed "
        f"({type(error).__name__}: {_line(error)}). See the logs of the workers. {RESUME}"
    )


def _line(error: object) -> str:
    return " ".join(str(error).split())[:500]


class DaskCluster:
    """The workers of a Dask client.

    Parameters
    ----------
    client : distributed.Client
        Not asynchronous.
    worker_memory_mb : int
        What each worker process may grow by, in MB of 10**6 bytes.
    """

    orders_nbytes = ORDERS_NBYTES

    def __init__(self, client: Any, worker_memory_mb: int) -> None:
        self.client, self.worker_memory_mb = client, worker_memory_mb

    def executor(self, job: Job, n_columns: int) -> BatchExecutor:
        """Return what has iterations of ``job`` grown on the workers."""
        line: Line = DaskLine(self.client, job)
        return BatchExecutor(line, n_columns, job.round_size)
