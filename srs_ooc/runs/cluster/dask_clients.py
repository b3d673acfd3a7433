"""Clients of Dask: of a scheduler that is there, or of one that is started for a run."""

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any

from srs_ooc.base.errors import UsageError
from srs_ooc.runs.cluster.batches import BatchExecutor
from srs_ooc.runs.cluster.dask_line import ORDERS_NBYTES, DaskCluster, DaskLine
from srs_ooc.runs.cluster.line import AnyJob, Standing
from srs_ooc.runs.cluster.orders import Job

LOCAL = "local"
CONNECT_SECONDS = 5
"""How long to wait for a scheduler, at first and where the connection to it is lost."""
_FORMS = "tcp://HOST:PORT, tls://HOST:PORT, or local:N for N processes of this machine"


@contextmanager
def dask_cluster(
    address: str | None, scheduler_file: Path | None, worker_memory_mb: int
) -> Iterator["DaskCluster | LateCluster"]:
    """Yield the workers that ``--dask`` or ``--dask-scheduler-file`` name.

    Those of this machine are started only once there is work for them.

    Raises
    ------
    UsageError
        If Dask is not installed, or no scheduler is there.
    """
    if address is not None and scheduler_file is not None:
        raise UsageError("expected --dask or --dask-scheduler-file, found both. Give one.")
    with ExitStack() as stack:
        if address is not None and address.split(":")[0] == LOCAL:
            _distributed()  # its libraries count as the program's own
            local = _local_client(_n_workers(address))
            yield LateCluster(lambda: stack.enter_context(local), worker_memory_mb)
        else:
            client = stack.enter_context(_client(address, scheduler_file))
            yield DaskCluster(client, worker_memory_mb)


class LateCluster:
    """Workers that are started when the first of them is needed, after all else was compared.

    Parameters
    ----------
    start : callable
        Starts them, and returns a client of theirs.
    worker_memory_mb : int
        What each worker process may grow by, in MB of 10**6 bytes.
    """

    orders_nbytes = ORDERS_NBYTES

    def __init__(self, start: Callable[[], Any], worker_memory_mb: int) -> None:
        self._start, self.worker_memory_mb = start, worker_memory_mb
        self._started: DaskCluster | None = None

    def _cluster(self) -> DaskCluster:
        if self._started is None:
            self._started = DaskCluster(self._start(), self.worker_memory_mb)
        return self._started

    @property
    def client(self) -> Any:
        """Their client."""
        return self._cluster().client

    def executor(self, job: Job, n_columns: int) -> BatchExecutor:
        """Return what has iterations of ``job`` grown on the workers."""
        return self._cluster().executor(job, n_columns)

    def line(self, job: AnyJob) -> DaskLine:
        """Return the way to workers who do parts of a job."""
        return self._cluster().line(job)

    def standing(self) -> Standing:
        """Return how many workers there are; none before they were started."""
        return Standing(0, 0, 0, 0) if self._started is None else self._started.standing()


def cluster_of(client: Any, worker_memory_mb: int) -> DaskCluster:
    """Return the workers of a client that the caller made, and closes.

    Raises
    ------
    UsageError
        If it is none, or an asynchronous one.
    """
    found = _distributed()
    if not isinstance(client, found.Client) or client.asynchronous:
        raise UsageError(
            "client: expected a distributed.Client that is not asynchronous, found "
            f"{type(client).__name__}."
        )
    return DaskCluster(client, worker_memory_mb)


def _distributed() -> Any:
    try:
        import distributed
    except ImportError as error:
        raise UsageError(
            "--dask: expected Dask, found that it is not installed. Install it here and on the "
            "workers: pip install 'srs-ooc[dask]'"
        ) from error
    return distributed


def _n_workers(address: str) -> int:
    number = address.removeprefix(LOCAL).removeprefix(":") or str(os.cpu_count() or 1)
    if not (number.isascii() and number.isdigit() and 1 <= int(number) <= 1024):
        raise UsageError(f"--dask: expected {_FORMS}, found {address[:80]!r}.")
    return int(number)


@contextmanager
def _client(address: str | None, scheduler_file: Path | None) -> Iterator[Any]:
    distributed = _distributed()
    if address is not None and "://" not in address:
        raise UsageError(f"--dask: expected {_FORMS}, found {address[:80]!r}.")
    if scheduler_file is not None and not scheduler_file.is_file():
        raise UsageError(
            f"--dask-scheduler-file: expected the file that `dask scheduler --scheduler-file` "
            f"writes, found none at {scheduler_file}. Start the scheduler first."
        )
    where = {"address": address} if scheduler_file is None else {
        "scheduler_file": str(scheduler_file)
    }  # fmt: skip
    try:
        client = distributed.Client(**where, set_as_default=False, timeout=CONNECT_SECONDS)
    except (OSError, TimeoutError, ValueError) as error:
        raise UsageError(
            f"--dask: expected a Dask scheduler at {address or scheduler_file}, found none that "
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
