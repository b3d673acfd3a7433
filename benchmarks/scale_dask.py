"""Runs on Dask workers: against threads of this machine, and where the coordinator saturates.

The first part grows real trees: milliseconds an iteration with 1 and 2 threads, and with 1 and 2
worker processes of this machine, the fastest of some turns taken one after another. What it takes
to start is left out: each figure is the difference of a long and a short run. All four runs must
end with the same ranking.

The second part has the real scheduler and W light workers, all in one process, whose growth is
replaced by waiting (``--milliseconds`` an iteration, as measured in the first part) and whose
outcomes are as large as those of real trees. It shows how many iterations a second the coordinator
can draw, send, fetch and tally. Workers, scheduler and coordinator share this machine's cores, so a
cluster does better: at most so many workers are kept busy as the coordinator's own processor time
an iteration goes into what a worker takes.

    python benchmarks/scale_dask.py [--folder FOLDER] [--features 100000] [--milliseconds 4]
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import srs_ooc as python
from srs_ooc.base.records import Outcome
from srs_ooc.runs.cluster.batches import BatchExecutor
from srs_ooc.runs.cluster.dask_clients import dask_cluster
from srs_ooc.runs.cluster.dask_line import DaskCluster, DaskLine
from srs_ooc.runs.cluster.line import Order, Reply
from srs_ooc.runs.cluster.orders import Job, pack
from srs_ooc.runs.request import Request
from srs_ooc.runs.session import open_or_create, work_on
from srs_ooc.runs.spec import Options
from srs_ooc.store.store import Store

Q = 2500
SPLITS = 120
"""Columns of a subspace that a tree of 1,000 rows of madelon splits on, about."""
WAIT = "SRS_OOC_WAIT_SECONDS"
"""What a light worker waits for each iteration."""


def make(folder: Path, n: int, p: int) -> Path:
    """Return a madelon-like store of n rows and p features, made if it is not there."""
    store = folder / f"{n}x{p}.zarr"
    if not store.exists():
        options = f"--rows {n} --features {p} --relevant 20 --seed 0".split()
        command = [sys.executable, "-m", "srs_ooc", "synth", "madelon", str(store), *options]
        subprocess.run(command, check=True)
    return store


def seconds_of(
    store: Path, run: Path, iterations: int, round_size: int, cluster: Any, threads: int
) -> float:
    """Return the seconds of a run with the judge ``probe``, on a cluster or on threads."""
    options = Options(
        judge="probe", alpha="0.5", subspace_size=Q, round_size=round_size, probe_min_draws=3
    )
    request = Request(
        options, iterations=iterations, memory_mb=4000, threads=threads, cluster=cluster
    )
    opened = Store.open(store)
    begun = time.perf_counter()
    ledger = open_or_create(opened, run, request)
    work_on(ledger, opened, request)
    ledger.close()
    return time.perf_counter() - begun


def cost(store: Path, cluster: Any, threads: int, few: int, many: int) -> tuple[float, list[str]]:
    """Return milliseconds an iteration, and the best features by rank."""
    with tempfile.TemporaryDirectory() as scratch:
        long, short = (
            seconds_of(store, Path(scratch) / f"{n}.run", n, 1000, cluster, threads)
            for n in (many, few)
        )
        run = python.open_run(Path(scratch) / f"{many}.run", store)
        names = [str(record["name"]) for record in run.features("records")[:50]]
    return 1e3 * (long - short) / (many - few), names


def real_trees(store: Path, turns: int, few: int, many: int) -> None:
    """Print what an iteration costs on threads and on workers."""
    best: dict[str, float] = {}
    rankings = []
    with dask_cluster("local:1", None, 2000) as one, dask_cluster("local:2", None, 2000) as two:
        ways = {
            "1 thread": (None, 1),
            "1 worker": (one, 1),
            "2 threads": (None, 2),
            "2 workers": (two, 1),
        }
        for _ in range(turns):
            for name, (cluster, threads) in ways.items():
                milliseconds, names = cost(store, cluster, threads, few, many)
                best[name] = min(best.get(name, np.inf), milliseconds)
                rankings.append(names)
    assert all(names == rankings[0] for names in rankings), "expected the same ranking"
    for name, milliseconds in best.items():
        print(f"{name}: {milliseconds:.2f} ms an iteration")
    print(f"2 workers against 2 threads: {best['2 threads'] / best['2 workers']:.2f}")


def wait(version: str, job: Job, order: Order) -> Reply:
    """Wait as long as growing would take; return outcomes as large as real ones."""
    seconds = float(os.environ[WAIT]) * len(order.parts)
    time.sleep(seconds)
    outcomes = []
    for iteration in (part.what for part in order.parts):
        importance = np.zeros(len(iteration.features), np.int64)
        importance[:: len(importance) // SPLITS] = 1 << 30
        outcomes.append(pack(Outcome(iteration.features, importance, 1 << 40)))
    return Reply(outcomes, seconds)


class WaitingCluster(DaskCluster):
    """Workers that wait instead of growing."""

    def executor(self, job: Job, n_columns: int) -> BatchExecutor:
        """Return what has iterations waited for."""
        return BatchExecutor(DaskLine(self.client, job, wait), n_columns, job.round_size)


LIGHT = """
import sys, time, distributed
with distributed.LocalCluster(n_workers=int(sys.argv[1]), threads_per_worker=1, processes=False,
    protocol="tcp://", host="127.0.0.1", dashboard_address="127.0.0.1:0", memory_limit=0,
    worker_dashboard_address="127.0.0.1:0", scheduler_kwargs={"dashboard": False}) as cluster:
    print(cluster.scheduler_address, flush=True)
    sys.stdin.read()
"""


@contextmanager
def light_workers(count: int, milliseconds: float) -> Iterator[str]:
    """Yield the address of a scheduler with so many waiting workers, in a process of its own."""
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(sys.path),
        WAIT: str(milliseconds / 1e3),
    }
    process = subprocess.Popen(
        [sys.executable, "-c", LIGHT, str(count)],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.wait()


def saturation(store: Path, counts: list[int], milliseconds: float, seconds: float) -> None:
    """Print iterations a second with more and more waiting workers."""
    for count in counts:
        with (
            light_workers(count, milliseconds) as address,
            tempfile.TemporaryDirectory() as scratch,
        ):
            ideal = count * 1e3 / milliseconds
            few, many = 2000, 2000 + int(min(ideal, 2000) * seconds)
            with dask_cluster(address, None, 1000) as named:
                named.client.wait_for_workers(count)
                cluster = WaitingCluster(named.client, 1000)
                times, busy = [], []
                for n in (few, many):
                    run, before = Path(scratch) / f"{n}.run", time.process_time()
                    times.append(seconds_of(store, run, n, 10**6, cluster, 1))
                    busy.append(time.process_time() - before)
            rate = (many - few) / (times[1] - times[0])
            own = 1e3 * (busy[1] - busy[0]) / (many - few)
        print(
            f"{count} waiting workers: {rate:.0f} iterations a second, {rate / ideal:.2f} of "
            f"{ideal:.0f}; the coordinator's own time is {own:.2f} ms an iteration",
            flush=True,
        )


def main() -> None:
    """Read the options and measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--folder", type=Path, help="keep the stores here and use them again")
    parser.add_argument("--features", type=int, default=100_000)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--iterations", type=int, nargs=2, default=(200, 2200))
    parser.add_argument("--milliseconds", type=float, default=4.0)
    parser.add_argument("--workers", type=int, nargs="*", default=[4, 16, 64, 256])
    parser.add_argument("--seconds", type=float, default=10.0)
    arguments = parser.parse_args()
    print(f"load of this machine before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as scratch:
        store = make(arguments.folder or Path(scratch), 1000, arguments.features)
        if arguments.turns:
            real_trees(store, arguments.turns, *arguments.iterations)
        saturation(store, arguments.workers, arguments.milliseconds, arguments.seconds)


if __name__ == "__main__":
    main()
