"""Where one coordinator saturates: Dask's scheduler, and workers that wait instead of growing.

Each of W light workers, all in one process, waits as long as growing would take (``--cases
W:MILLISECONDS``: 4 ms an iteration is about a tree of 2,000 rows and 2,500 columns, 40 ms one of
20,000 rows), and returns outcomes as large as those of real trees. The scheduler is a process of
its own; so is the coordinator, which draws, sends, fetches and tallies. For each case, once without
rounds and once for each ``--rounds`` (iterations of a round for each worker):

* iterations a second, and the share that workers spend at work;
* own processor time of the coordinator and of the scheduler, in ms an iteration;
* the barrier: how long no worker is at work between two rounds, the median of all rounds. All
  rounds count as having changed F; where one has not, workers go on with the next without a wait.

All processes share this machine's cores: what the processor times allow holds elsewhere, too; the
rates do not. ``research/dask_picture.py`` draws the table of docs/research/cluster-measured.md.

    python benchmarks/saturate_dask.py [--folder FOLDER] [--cases 16:40 64:40]
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import numpy as np
import psutil
from dask_waiting import WAIT, Timed, wait
from scale_dask import make, work

from srs_ooc.base.records import Outcome
from srs_ooc.runs.batches import BatchExecutor, GrowJob
from srs_ooc.runs.dask_cluster import DaskCluster, DaskLine, dask_cluster
from srs_ooc.runs.jobs import Batch
from srs_ooc.samplers.srs import SequentialRandomSubspace

WITHOUT_ROUNDS = 10**6
"""A round that no run here ends."""
WARMING = 0.4
"""Share of a run that is not counted: batches grow to their size meanwhile."""


@dataclass(frozen=True)
class Sample:
    """What was so as a reply was taken: the reply, the time, and processor seconds used by then."""

    reply: Timed
    now: float
    coordinator: float
    scheduler: float


class Watched(BatchExecutor):
    """Notes when each batch was done and taken."""

    def watch(self, samples: list[Sample], scheduler: psutil.Process) -> "Watched":
        """Note into ``samples``."""
        self._samples, self._scheduler = samples, scheduler
        return self

    def _learn(self, done: Batch) -> None:
        super()._learn(done)
        assert isinstance(done, Timed)
        used = sum(self._scheduler.cpu_times()[:2])
        self._samples.append(Sample(done, time.monotonic(), time.process_time(), used))


class WaitingCluster(DaskCluster):
    """Workers that wait instead of growing."""

    def __init__(self, base: DaskCluster, scheduler: psutil.Process) -> None:
        super().__init__(base.client, base.worker_memory_mb)
        self._scheduler = scheduler
        self.samples: list[Sample] = []

    def executor(self, job: GrowJob, n_columns: int) -> BatchExecutor:
        """Return what has iterations waited for."""
        executor = Watched(DaskLine(self.client, job, wait), n_columns, job.round_size)
        return executor.watch(self.samples, self._scheduler)


LIGHT = """
import asyncio, sys, distributed
async def work(address, count):
    options = {"nthreads": 1, "host": "127.0.0.1", "dashboard": False, "memory_limit": 0}
    for first in range(0, count, 16):
        some = range(min(16, count - first))
        await asyncio.gather(*[distributed.Worker(address, **options) for _ in some])
    await asyncio.Event().wait()
asyncio.run(work(sys.argv[1], int(sys.argv[2])))
"""
QUIET = {  # what Dask's workers measure of themselves, 256 times in one process
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
    "DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__INTERVAL": "60s",
    "DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__GIL__ENABLED": "False",
}


@contextmanager
def light_workers(count: int, milliseconds: float) -> Iterator[tuple[str, psutil.Process]]:
    """Yield the address of a scheduler with so many waiting workers, and its process."""
    environment = os.environ | QUIET
    environment |= {"PYTHONPATH": os.pathsep.join(sys.path), WAIT: str(milliseconds / 1e3)}
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        file = Path(folder) / "scheduler.json"

        def start(*words: object) -> "subprocess.Popen[bytes]":
            line = [sys.executable, *map(str, words)]
            process = subprocess.Popen(line, env=environment, stderr=subprocess.DEVNULL)
            stack.callback(process.wait)
            stack.callback(process.kill)
            return process

        quiet = ("--host", "127.0.0.1", "--port", 0, "--dashboard-address", "127.0.0.1:0")
        words = ("-m", "distributed.cli.dask_scheduler", *quiet, "--no-dashboard")
        scheduler = start(*words, "--scheduler-file", file)
        while not file.exists():
            time.sleep(0.05)
        address = str(json.loads(file.read_text())["address"])
        start("-c", LIGHT, address, count)
        yield address, psutil.Process(scheduler.pid)


@dataclass(frozen=True)
class Row:
    """What was measured of a case; times in ms, rates a second."""

    workers: int
    milliseconds: float
    round_size: int | None
    rate: float
    share: float
    coordinator: float
    scheduler: float
    barrier: float | None

    def line(self) -> str:
        """Return it as a row of a Markdown table."""
        of_round = "none" if self.round_size is None else f"{self.round_size:,}"
        barrier = "" if self.barrier is None else f"{self.barrier:.0f}"
        return (
            f"| {self.workers} | {self.milliseconds:g} | {of_round} | {self.rate:,.0f} | "
            f"{self.share:.2f} | {self.coordinator:.2f} | {self.scheduler:.2f} | {barrier} |"
        )


@contextmanager
def changing(round_size: int | None) -> Iterator[None]:
    """Have what SRS proposes count as changed by each round."""
    absorb, n_absorbed = SequentialRandomSubspace.absorb, 0

    def counted(self: SequentialRandomSubspace, iteration: int, outcome: Outcome) -> None:
        nonlocal n_absorbed
        n_absorbed = iteration + 1
        absorb(self, iteration, outcome)

    def version(self: SequentialRandomSubspace, iteration: int) -> int:
        return n_absorbed // (round_size or WITHOUT_ROUNDS)

    with (
        patch.object(SequentialRandomSubspace, "absorb", counted),
        patch.object(SequentialRandomSubspace, "version", version),
    ):
        yield


HEAD = (
    "| workers | ms an iteration | round | iterations a second | share at work | own ms: "
    "coordinator | scheduler | barrier, ms |\n|---|---|---|---|---|---|---|---|"
)


def measure(
    store: Path,
    base: DaskCluster,
    scheduler: psutil.Process,
    case: tuple[int, float],
    round_size: int | None,
    seconds: float,
) -> Row:
    """Return what a run on waiting workers shows."""
    workers, milliseconds = case
    n = int(min(workers * 1e3 / milliseconds, 1500) * seconds)
    n = max(n, 4 * (round_size or 0))
    cluster = WaitingCluster(base, scheduler)
    with tempfile.TemporaryDirectory() as scratch, changing(round_size):
        work(store, Path(scratch) / "a.run", n, round_size or WITHOUT_ROUNDS, cluster, 1)
    first_number = int(WARMING * n)
    if round_size is not None:  # whole rounds
        first_number = -(-first_number // round_size) * round_size
    counted = [s for s in cluster.samples if min(s.reply.parts) >= first_number]
    first, last = counted[0], counted[-1]
    done = sum(len(s.reply.parts) for s in counted[1:])
    took = last.now - first.now
    return Row(
        workers,
        milliseconds,
        round_size,
        done / took,
        done * milliseconds / 1e3 / took / workers,
        1e3 * (last.coordinator - first.coordinator) / done,
        1e3 * (last.scheduler - first.scheduler) / done,
        None if round_size is None else _barrier(counted, round_size),
    )


def _barrier(samples: list[Sample], round_size: int) -> float:
    """Return how long no worker is at work between two rounds, in ms: the median."""
    begun: dict[int, float] = {}
    ended: dict[int, float] = {}
    for reply in (sample.reply for sample in samples):
        number = min(reply.parts) // round_size
        begun[number] = min(begun.get(number, np.inf), reply.begun)
        ended[number] = max(ended.get(number, 0.0), reply.begun + reply.seconds)
    gaps = [begun[n + 1] - ended[n] for n in ended if n + 1 in begun]
    return 1e3 * statistics.median(gaps)


def main() -> None:
    """Read the options and measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    cases = ["16:4", "16:40", "64:40", "256:40", "256:400"]
    parser.add_argument("--folder", type=Path, help="keep the store here and use it again")
    parser.add_argument("--features", type=int, default=100_000)
    parser.add_argument("--cases", nargs="+", default=cases, help="WORKERS:MILLISECONDS")
    parser.add_argument("--rounds", type=int, nargs="*", default=[4, 16, 64])
    parser.add_argument("--seconds", type=float, default=10.0, help="of each run, about")
    asked = parser.parse_args()
    print(f"load of this machine before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print(HEAD)
    with tempfile.TemporaryDirectory() as scratch:
        store = make(asked.folder or Path(scratch), 1000, asked.features)
        for workers, milliseconds in (case.split(":") for case in asked.cases):
            case = (int(workers), float(milliseconds))
            with (
                light_workers(*case) as (address, scheduler),
                dask_cluster(address, None, 1000) as base,
            ):
                base.client.wait_for_workers(case[0])
                for each in [None, *asked.rounds]:
                    size = None if each is None else each * case[0]
                    row = measure(store, base, scheduler, case, size, asked.seconds)
                    print(row.line(), flush=True)


if __name__ == "__main__":
    main()
