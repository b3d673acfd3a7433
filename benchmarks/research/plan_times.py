"""``srs-ooc plan`` says what the default command takes: within a factor of 1.5, median 1.2.

    python benchmarks/research/plan_times.py [FOLDER] [--repeats 3] [--only NAME ...]

Twelve shapes of tables, each planned and run (``srs-ooc plan STORE --json``, ``srs-ooc run STORE``,
no other option) in turns, in processes of their own. Planned is ``total_seconds``; taken is the
command from start to end; the ratio is that of a pair, median of the repeats, least and most in
brackets. Stores are made in FOLDER, and taken as they are where they are there already. What else
works on the machine is in both, unevenly: its load is printed.
"""

import argparse
import json
import os
import shutil
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import srs_ooc as package

sys.path.append(str(Path(__file__).parents[1]))  # the modules that all benchmarks share

from measured import said, srs_ooc

N_CAUSES = 5
"""Of each table so many columns go with the target, by half a standard deviation."""


def numbers(rows: int, columns: int, classes: int = 2, **more: Any) -> dict[str, Any]:
    """Return a table of normal columns of which the first go with the classes."""
    rng = np.random.default_rng(rows * columns + classes)
    target = rng.permutation(np.arange(rows) % classes)
    values = rng.standard_normal((rows, columns), np.float32)
    values[:, :N_CAUSES] += (target / max(1, classes - 1))[:, None] * (0.5 if classes == 2 else 1.5)
    return {"table": values, "target": target, **more}


def codes(rows: int, columns: int, levels: int, share: float, classes: int = 2) -> dict[str, Any]:
    """Return a table of binomial counts below ``levels``, a part of which goes with the classes."""
    rng = np.random.default_rng(rows * columns + levels)
    target = rng.permutation(np.arange(rows) % classes)
    values = rng.binomial(levels - 1, share, (rows, columns)).astype(np.uint8)
    moved = rng.random((rows, N_CAUSES)) < 0.2
    values[:, :N_CAUSES][moved] = (target % levels)[:, None].repeat(N_CAUSES, 1)[moved]
    return {"table": values, "target": target}


def regression(rows: int, columns: int) -> dict[str, Any]:
    """Return normal columns, and a target to which the first add."""
    found = numbers(rows, columns)
    noise = np.random.default_rng(1).standard_normal(rows)
    return found | {"target": found["table"][:, :N_CAUSES].sum(1) / 4 + noise, "task": "regression"}


def missing(rows: int, columns: int) -> dict[str, Any]:
    """Return normal columns of which a tenth of the cells is missing."""
    found = numbers(rows, columns)
    found["table"][np.random.default_rng(1).random((rows, columns)) < 0.1] = np.nan
    return found


def categories(rows: int, columns: int, levels: int, classes: int) -> dict[str, Any]:
    """Return columns of names."""
    rng = np.random.default_rng(rows * columns + levels)
    target = rng.permutation(np.arange(rows) % classes)
    values = rng.integers(0, levels, (rows, columns), dtype=np.uint8)
    moved = rng.random((rows, N_CAUSES)) < 0.2
    values[:, :N_CAUSES][moved] = target[:, None].repeat(N_CAUSES, 1)[moved]
    kinds = {f"f{i}": "categorical" for i in range(columns)}
    return {"table": values, "target": target, "kinds": kinds}


SHAPES: dict[str, Callable[[], dict[str, Any]]] = {
    "genotypes": lambda: codes(600, 20_000, 3, 0.3),
    "ten classes": lambda: numbers(3000, 3000, 10),
    "strata": lambda: numbers(1200, 1000, strata=[i % 40 for i in range(1200)]),
    "groups": lambda: numbers(2400, 1000, groups=[i // 3 for i in range(2400)]),
    "categories": lambda: categories(1000, 20_000, 30, 10),
    "numbers": lambda: numbers(1000, 50_000),
    "wide": lambda: numbers(200, 100_000),
    "tall": lambda: numbers(60_000, 500),
    "regression": lambda: regression(1000, 10_000),
    "many classes": lambda: numbers(2000, 2000, 50),
    "missing": lambda: missing(1000, 10_000),
    "sparse binary": lambda: codes(2000, 20_000, 2, 0.01),
}

Times = tuple[float, float, float]
"""Seconds: as planned, as taken, and of the plan itself."""


def of_run(store: Path) -> Times:
    """Plan the default command, then run it."""
    begun = time.perf_counter()
    plan = json.loads(said("plan", store, "--json"))
    planning = time.perf_counter() - begun
    run = store.with_suffix(".run")
    taken = srs_ooc("run", store, "--out", run).seconds
    shutil.rmtree(run)
    return plan["total_seconds"], taken, planning


def row(folder: Path, name: str, repeats: int) -> float:
    """Print a line of the table; return the ratio."""
    store = folder / f"{name.replace(' ', '-')}.zarr"
    if not store.exists():
        package.ingest(store=store, memory_mb=2000, **SHAPES[name]())
    found = [of_run(store) for _ in range(repeats)]
    planned, taken, planning = map(statistics.median, zip(*found, strict=True))
    ratios = [a / b for a, b, _ in found]
    middle = statistics.median(ratios)
    print(f"| {name} | {planned:.1f} | {taken:.1f} | {middle:.2f} ({min(ratios):.2f} to "
          f"{max(ratios):.2f}) | {planning:.1f} |", flush=True)  # fmt: skip
    return middle


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", nargs="+", default=list(SHAPES), choices=list(SHAPES))
    asked = parser.parse_args()
    print(f"load of this machine before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print("| table | planned s | taken s | planned / taken | the plan itself s |")
    print("|---|---|---|---|---|")
    with TemporaryDirectory() as scratch:
        folder = asked.folder or Path(scratch)
        ratios = [row(folder, name, asked.repeats) for name in asked.only]
    errors = [max(ratio, 1 / ratio) for ratio in ratios]
    print(f"largest error: a factor of {max(errors):.2f}; median: {statistics.median(errors):.2f}")


if __name__ == "__main__":
    main()
