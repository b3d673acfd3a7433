"""What `srs-ooc network --plan` says a network will take, beside what it takes.

    python benchmarks/plan_networks.py [--data FOLDER] [--repeats 3]

Each network is planned and then made, in turns (``srs_ooc.plan_network``, ``srs_ooc.network``);
the ratio is that of the seconds of the work on targets, median of the repeats, least and most in
brackets. Networks are of noise, 100 rows x 300 genes, and with ``--data`` of DREAM4's first one,
``net1_expression.csv.gz`` (columns ``part``, G1 .. G100), with PRS cut short. Work of others on the
machine is in both.
"""

import argparse
import os
import statistics
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from paper_networks import store_of

import srs_ooc

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


def compared(store: Path, out: Path, options: dict[str, Any]) -> tuple[float, float, float]:
    """Return the seconds on targets as planned and as they were, and those of the plan itself."""
    begun = time.monotonic()
    plan = srs_ooc.plan_network(store, **options)
    planning = time.monotonic() - begun
    done = srs_ooc.network(store, out, **options)
    return plan["targets_seconds"], done.seconds, planning


def row(store: Path, folder: Path, options: dict[str, Any], repeats: int) -> None:
    """Print a line of the table."""
    found = [compared(store, folder / f"{time.monotonic_ns()}.csv", options)
             for _ in range(repeats)]  # fmt: skip
    planned, took, planning = (statistics.median(column) for column in zip(*found, strict=True))
    ratios = [a / b for a, b, _ in found]
    said = " ".join(f"{name}={value}" for name, value in options.items())
    print(
        f"| {store.stem} | {said} | {planned:.1f} | {took:.1f} | {statistics.median(ratios):.2f} "
        f"({min(ratios):.2f} to {max(ratios):.2f}) | {planning:.1f} |",
        flush=True,
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--repeats", type=int, default=3)
    asked = parser.parse_args()
    print(f"load of this machine before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print("| network | options | planned s | took s | planned / took | the plan itself s |")
    print("|---|---|---|---|---|---|")
    with TemporaryDirectory() as scratch:
        folder = Path(scratch)
        srs_ooc.synth("noise", folder / "noise.zarr", rows=100, features=300)
        ways = [(folder / "noise.zarr", options) for options in TREES]
        if asked.data is not None:
            store = store_of(asked.data, 1, folder)
            ways += [(store, options) for options in [*TREES, *MODELS]]
        for store, options in ways:
            row(store, folder, options, asked.repeats)


if __name__ == "__main__":
    main()
