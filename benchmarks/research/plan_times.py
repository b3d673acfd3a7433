"""``srs-ooc plan`` says what the default command takes: within a factor of 1.5, median 1.2.

    python benchmarks/research/plan_times.py [FOLDER] [--repeats 3] [--only NAME ...]
    python benchmarks/research/plan_times.py --networks [--data FOLDER] [--repeats 3]

Twelve shapes of tables, each planned and run (``srs-ooc plan STORE --json``, ``srs-ooc run STORE``,
no other option) in turns, in processes of their own. Planned is ``total_seconds``; taken is the
command from start to end; the ratio is that of a pair, median of the repeats, least and most in
brackets. Stores are made in FOLDER, and taken as they are where they are there already. What else
works on the machine is in both, unevenly: its load is printed.

With ``--networks`` the same of ``srs-ooc network --plan`` (``srs_ooc.plan_network``), beside the
seconds of the work on targets: of noise, 100 rows x 300 genes, and with ``--data`` of DREAM4's
first network, ``net1_expression.csv.gz`` (columns ``part``, G1 .. G100), with PRS cut short.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import srs_ooc as package

sys.path.append(str(Path(__file__).parents[1]))  # the modules that all benchmarks share

from measured import find_srs_ooc, srs_ooc

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

CUT_SHORT = {"models": 50, "folds": 5, "learning_rate": 0.005, "epochs": 20}
TREES: list[dict[str, Any]] = [
    {"trees": 300},
    {"trees": 300, "k": "all"},
    {"method": "srs", "trees": 300},
]
MODELS: list[dict[str, Any]] = [
    {"method": "prs", **CUT_SHORT},
    {"method": "prs", "joint": 0.001, **CUT_SHORT},
]

Times = tuple[float, float, float]
"""Seconds: as planned, as taken, and of the plan itself."""


def of_run(store: Path) -> Times:
    """Plan the default command, then run it."""
    begun = time.perf_counter()
    plan = subprocess.run([find_srs_ooc(), "plan", str(store), "--json"],
                          check=True, capture_output=True)  # fmt: skip
    planning = time.perf_counter() - begun
    run = store.with_suffix(".run")
    taken = srs_ooc("run", store, "--out", run).seconds
    shutil.rmtree(run)
    return json.loads(plan.stdout)["total_seconds"], taken, planning


def of_network(store: Path, options: dict[str, Any]) -> Times:
    """Plan a network, then make it."""
    begun = time.perf_counter()
    plan = package.plan_network(store, **options)
    planning = time.perf_counter() - begun
    with TemporaryDirectory() as folder:
        done = package.network(store, Path(folder) / "edges.csv", **options)
    return plan["targets_seconds"], done.seconds, planning


def row(name: str, times: Callable[[], Times], repeats: int) -> float:
    """Print a line of the table; return the ratio."""
    found = [times() for _ in range(repeats)]
    planned, taken, planning = map(statistics.median, zip(*found, strict=True))
    ratios = [a / b for a, b, _ in found]
    middle = statistics.median(ratios)
    print(f"| {name} | {planned:.1f} | {taken:.1f} | {middle:.2f} ({min(ratios):.2f} to "
          f"{max(ratios):.2f}) | {planning:.1f} |", flush=True)  # fmt: skip
    return middle


def runs(folder: Path, names: list[str], repeats: int) -> list[float]:
    """Print the lines of runs; return the ratios."""
    ratios = []
    for name in names:
        store = folder / f"{name.replace(' ', '-')}.zarr"
        if not store.exists():
            package.ingest(store=store, memory_mb=2000, **SHAPES[name]())
        ratios.append(row(name, partial(of_run, store), repeats))
    return ratios


def networks(folder: Path, data: Path | None, repeats: int) -> list[float]:
    """Print the lines of networks; return the ratios."""
    stores = [(folder / "noise.zarr", TREES)]
    package.synth("noise", stores[0][0], rows=100, features=300)
    if data is not None:
        stores.append((folder / "net1.zarr", [*TREES, *MODELS]))
        package.ingest(data / "net1_expression.csv.gz", stores[1][0], target="part", memory_mb=512)
    return [
        row(
            f"{store.stem}: " + " ".join(f"{name}={value}" for name, value in options.items()),
            partial(of_network, store, options),
            repeats,
        )
        for store, ways in stores
        for options in ways
    ]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", nargs="+", default=list(SHAPES), choices=list(SHAPES))
    parser.add_argument("--networks", action="store_true")
    parser.add_argument("--data", type=Path, help="of networks")
    asked = parser.parse_args()
    print(f"load of this machine before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print("| table | planned s | taken s | planned / taken | the plan itself s |")
    print("|---|---|---|---|---|")
    with TemporaryDirectory() as scratch:
        if asked.networks:
            ratios = networks(Path(scratch), asked.data, asked.repeats)
        else:
            ratios = runs(asked.folder or Path(scratch), asked.only, asked.repeats)
    errors = [max(ratio, 1 / ratio) for ratio in ratios]
    print(f"largest error: a factor of {max(errors):.2f}; median: {statistics.median(errors):.2f}")


if __name__ == "__main__":
    main()
