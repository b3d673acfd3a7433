"""Runs on Dask workers against threads of this machine.

Real trees: milliseconds an iteration with 1 and 2 threads, and with 1 and 2 worker processes of one
machine, the fastest of some turns taken one after another. What it takes to start is left out: each
figure is the difference of a long and a short run. All four runs must end with the same ranking.

    python benchmarks/scale_dask.py [--folder FOLDER] [--features 100000]
"""

import argparse
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from scale import make

import srs_ooc as python
from srs_ooc.runs.dask_cluster import dask_cluster
from srs_ooc.runs.request import Request
from srs_ooc.runs.session import open_or_create, work_on
from srs_ooc.store.store import Store

Q = 2500


def work(
    store: Path, run: Path, iterations: int, round_size: int, cluster: Any, threads: int
) -> float:
    """Return the seconds of a run with the judge ``probe``, on a cluster or on threads."""
    options = {
        "judge": "probe",
        "alpha": "0.5",
        "subspace_size": Q,
        "round_size": round_size,
        "probe_min_draws": 3,
    }
    request = Request(
        options=options, iterations=iterations, memory_mb=4000, threads=threads, cluster=cluster
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
            work(store, Path(scratch) / f"{n}.run", n, 1000, cluster, threads) for n in (many, few)
        )
        run = python.open_run(Path(scratch) / f"{many}.run", store)
        names = [str(record["name"]) for record in run.features("records")[:50]]
    return 1e3 * (long - short) / (many - few), names


def real_trees(store: Path, turns: int, few: int, many: int) -> None:
    """Print what an iteration costs on threads and on workers."""
    best: dict[str, float] = {}
    rankings = []
    with dask_cluster("local:1", 2000) as one, dask_cluster("local:2", 2000) as two:
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


def main() -> None:
    """Read the options and measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--folder", type=Path, help="keep the stores here and use them again")
    parser.add_argument("--features", type=int, default=100_000)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--iterations", type=int, nargs=2, default=(200, 2200))
    arguments = parser.parse_args()
    print(f"load of this machine before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as scratch:
        store = make(arguments.folder or Path(scratch), 1000, arguments.features)
        real_trees(store, arguments.turns, *arguments.iterations)


if __name__ == "__main__":
    main()
