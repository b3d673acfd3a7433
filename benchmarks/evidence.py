"""Power, false share and time of the default command on many kinds of small tables.

    python benchmarks/evidence.py --results FILE [--designs NAME ...] [--seeds FROM TO]
        [--options '{"decoys": 1}'] [--minutes N] [--report]

Each run adds a line to FILE, and what is there is not done again: the command can be stopped and
given again. Beside each, Benjamini and Hochberg on the simple test that is told the design.
``--designs correlated`` stands for correlated noise of 40 to 1,000 rows, ``--designs real`` for
each TABLE.csv.gz in the folder SRS_OOC_DATA, its target permuted (without the simple test).
"""

import argparse
import json
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from statistics import mean, stdev
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from evidence_designs import CORRELATED, DESIGNS, SYNTH, Table, real_designs, selected_by_test

import srs_ooc

LEVEL = 0.1
REAL = real_designs()
MADE = DESIGNS | CORRELATED | REAL
SETS = {"correlated": [*CORRELATED], "real": [*REAL]}
TEST = "told test"


def table_of(design: str, seed: int) -> Table:
    """Return the table of a design that is made here."""
    return MADE[design](np.random.default_rng([seed, *design.encode()]))


def make_store(design: str, seed: int, store: Path) -> set[str]:
    """Write the store of a table; return the names of its relevant features."""
    if design in SYNTH:
        command = [sys.executable, "-P", "-m", "srs_ooc", "synth", SYNTH[design][0], str(store)]
        command += [*SYNTH[design][1:], "--seed", str(seed)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        truth = json.loads(Path(f"{store}.truth.json").read_text())
        return set(truth["relevant"])
    table = table_of(design, seed)
    strata = None if table.strata is None else [f"s{i}" for i in table.strata]
    target = [f"c{i}" for i in table.target]
    srs_ooc.ingest(table.values, store, target=target, strata=strata)
    return {f"f{i}" for i in table.relevant}


def one_run(design: str, seed: int, options: dict[str, Any]) -> dict[str, Any]:
    """Return power, false share and seconds of a run, and of the simple test."""
    with TemporaryDirectory() as folder:
        store = Path(folder) / "t.zarr"
        relevant = make_store(design, seed, store)
        start = time.process_time()
        chosen = set(srs_ooc.run(store, out=Path(folder) / "t.run", **options).selected)
        ours = scored(chosen, relevant) | {"cpu": time.process_time() - start}
    return {"ours": ours} | (
        {}
        if design in SYNTH or design in REAL
        else {TEST: by_test(table_of(design, seed), relevant)}
    )


def by_test(table: Table, relevant: set[str]) -> dict[str, Any]:
    """Return what the simple test selects."""
    start = time.process_time()
    chosen = {f"f{i}" for i in selected_by_test(table, LEVEL)}
    return scored(chosen, relevant) | {"cpu": time.process_time() - start}


def scored(chosen: set[str], relevant: set[str]) -> dict[str, Any]:
    """Return how well the chosen features are the relevant ones."""
    n_true = len(chosen & relevant)
    return {
        "selected": len(chosen),
        "power": n_true / len(relevant) if relevant else None,
        "false": (len(chosen) - n_true) / max(len(chosen), 1),
    }


def report(lines: Iterable[dict[str, Any]]) -> str:
    """Return the table of means, false shares with their standard errors."""
    found: dict[tuple[str, str, str], list[dict[str, Any]]] = defaultdict(list)
    for line in lines:
        for who in ("ours", TEST):
            if who in line["found"]:
                found[line["design"], who, line["label"]].append(line["found"][who])
    rows = [
        "| design | method | seeds | selected | power | false share | CPU s |",
        "|---" * 7 + "|",
    ]
    return "\n".join(rows + [_row(key, runs) for key, runs in found.items()])


def _row(key: tuple[str, str, str], runs: list[dict[str, Any]]) -> str:
    design, who, label = key
    false = [run["false"] for run in runs]
    error = stdev(false) / len(false) ** 0.5 if len(false) > 1 else float("nan")
    powers = [run["power"] for run in runs if run["power"] is not None]
    power = f"{mean(powers):.2f}" if powers else ""
    selected, cpu = mean(run["selected"] for run in runs), mean(run["cpu"] for run in runs)
    name = who if who == TEST else f"srs-ooc {label}".strip()
    return (
        f"| {design} | {name} | {len(runs)} | {selected:.1f} | {power} | "
        f"{mean(false):.3f} ± {error:.3f} | {cpu:.1f} |"
    )


def main() -> None:
    """Do what is left, then print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--designs", nargs="+", default=[*DESIGNS, *SYNTH])
    parser.add_argument("--seeds", nargs=2, type=int, default=(200, 220))
    parser.add_argument("--options", default="{}")
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--label", default="")
    parser.add_argument("--report", action="store_true")
    asked = parser.parse_args()
    text = asked.results.read_text() if asked.results.exists() else ""
    lines = [json.loads(line) for line in text.splitlines()]
    done = {(line["label"], line["design"], line["seed"]) for line in lines}
    end = time.monotonic() + 60 * asked.minutes
    designs = [one for name in asked.designs for one in SETS.get(name, [name])]
    todo = [(d, s) for s in range(*asked.seeds) for d in designs]
    for design, seed in [] if asked.report else todo:
        if (asked.label, design, seed) in done or time.monotonic() > end:
            continue
        found = one_run(design, seed, json.loads(asked.options))
        line = {"label": asked.label, "design": design, "seed": seed, "found": found}
        lines.append(line)
        with asked.results.open("a") as file:
            file.write(json.dumps(line) + "\n")
    print(report(lines))


if __name__ == "__main__":
    main()
