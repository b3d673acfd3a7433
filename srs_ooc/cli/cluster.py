"""Options of commands whose work may be done on a Dask cluster."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any

import click

from srs_ooc.base.errors import UsageError
from srs_ooc.cli.options import FILE, with_options
from srs_ooc.runs.resources import DEFAULT_WORKER_MEMORY_MB, Cluster

_OPTIONS = [
    click.option("--dask", metavar="ADDRESS",
                 help="Have the work done by the workers of a Dask scheduler, as tcp://HOST:PORT, "
                 "or local:N for N processes of this machine; results do not depend on it."),
    click.option("--dask-scheduler-file", type=FILE, metavar="FILE",
                 help="The same, of the scheduler that wrote FILE."),
    click.option("--worker-memory-mb", type=click.IntRange(1), metavar="MB",
                 help="With --dask: what each worker process may grow by, in MB of 10^6 bytes.  "
                 f"[default: {DEFAULT_WORKER_MEMORY_MB}]"),
]  # fmt: skip


def with_cluster(command: Any) -> Any:
    """Add the options to a command, which gets ``cluster``: workers, or None."""

    @wraps(command)
    def wrapped(
        *arguments: Any,
        dask: str | None,
        dask_scheduler_file: Path | None,
        worker_memory_mb: int | None,
        **others: Any,
    ) -> Any:
        with _cluster(dask, dask_scheduler_file, worker_memory_mb) as cluster:
            return command(*arguments, cluster=cluster, **others)

    return with_options(_OPTIONS)(wrapped)


@contextmanager
def _cluster(
    address: str | None, scheduler_file: Path | None, worker_memory_mb: int | None
) -> Iterator[Cluster | None]:
    if address is None and scheduler_file is None:
        if worker_memory_mb is not None:
            raise UsageError("--worker-memory-mb: expected with --dask, found alone.")
        yield None
        return
    from srs_ooc.runs.dask_cluster import dask_cluster  # Dask is loaded only here

    memory_mb = worker_memory_mb or DEFAULT_WORKER_MEMORY_MB
    with dask_cluster(address, scheduler_file, memory_mb) as cluster:
        yield cluster
