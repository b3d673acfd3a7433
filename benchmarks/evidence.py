"""The level and the power of the default command, judged on many kinds of small tables.

    OPENBLAS_NUM_THREADS=1 nice python benchmarks/evidence.py --results FILE
        [--designs NAME ...] [--seeds FROM TO] [--options '{"q": 50}'] [--label TEXT]
        [--peers boruta ipss] [--scan] [--peer-minutes N] [--minutes N] [--report] [--ours tests]
        [--against LABEL]

Designs, seeds and comparisons are fixed before the run; tables and runs are of their seed. Each
run adds a line to FILE, and what is there is not done again: the command can be stopped and given
again, also with peers. Beside each table, Benjamini and Hochberg on the simple test that is told
the design, where one can see it. ``--peers`` adds functions of ``selection_peers.py``, each in a
process of its own with a limit, and ``--scan`` a scan of all pairs on designs named XOR.
``--ours tests`` judges the tests of single features alone, in a hundredth of the time of runs; what
is found is kept apart from that of runs. With ``--against`` what we found under another label, on
the same seeds, stands in place of the told test.

``--designs simple`` stands for small tables, each with the one simple test that fits it (of
categories, classes, covariates, strata, genotypes), ``correlated`` for correlated noise of 40 to
1,000 rows, ``pairs-table`` for one XOR pair by features and rows, ``wide`` for what a search may
add to tests, ``real`` for each TABLE.csv.gz in the folder SRS_OOC_DATA, its target permuted
(without the simple test).
"""

import argparse
import json
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import isnan
from pathlib import Path
from statistics import mean, stdev
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from evidence_designs import (
    CORRELATED,
    DESIGNS,
    FOLLOWING,
    PAIRS,
    SIMPLE,
    SYNTH,
    WIDE,
    Table,
    real_designs,
    selected_by_test,
    synthetic,
)
from marginal import LEVEL, adjusted, codes_of, passing, strengths, unadjusted
from measured import Results, measure
from scipy import stats

import srs_ooc

MOST_FALSE, MOST_LOSS = 0.125, 0.03
"""Criteria: what the 95% bounds of the mean false share and of the mean loss of power may be."""
SURE = 0.95
REAL = real_designs()
MADE = DESIGNS | SIMPLE | CORRELATED | PAIRS | REAL | FOLLOWING | WIDE
SETS = {
    "simple": [*SIMPLE],
    "correlated": [*CORRELATED],
    "pairs-table": [*PAIRS],
    "wide": [*WIDE],
    "real": [*REAL],
}
OURS, TEST, SCAN = "ours", "told test", "pair scan"
PEERS = Path(__file__).parent / "selection_peers.py"

Found = dict[str, Any]
Line = dict[str, Any]
"""One of the results: design, seed, label, and what each method found."""
Runs = dict[int, Found]
"""What one method found, by seed."""


def table_of(design: str, seed: int) -> Table:
    """Return the table of a design."""
    if design in SYNTH:
        return synthetic(design, seed)
    return MADE[design](np.random.default_rng([seed, *design.encode()]))


def make_store(table: Table, store: Path) -> None:
    """Write the store of a table; its features are f0, f1, ..."""
    classes, names = classes_of(table), [f"f{j}" for j in range(table.values.shape[1])]
    srs_ooc.ingest(
        table.values,
        store,
        target=[classes[i] for i in table.target] if classes else table.target,
        task="classification" if classes else "regression",
        strata=None if table.strata is None else [f"s{i}" for i in table.strata],
        kinds=dict.fromkeys(names, "categorical") if table.categories else None,
        covariates={one.name: one.values for one in table.covariates},
    )


def classes_of(table: Table) -> list[str]:
    """Return the names of the classes; none where the target is numbers."""
    if table.target.dtype.kind == "f":
        return []
    name = "" if table.numbered or table.test == "trend" else "c"
    return [f"{name}{i}" for i in range(int(table.target.max()) + 1)]


def ours(table: Table, options: dict[str, Any]) -> Found:
    """Return what a run of the package finds."""
    with TemporaryDirectory() as folder:
        store = Path(folder) / "t.zarr"
        make_store(table, store)
        options = options | ({"adjust": "all"} if table.covariates else {})
        start = time.process_time()
        names = srs_ooc.run(store, out=Path(folder) / "t.run", **options).selected
        cpu = time.process_time() - start
    return scored((int(name[1:]) for name in names), table.relevant) | {"cpu": cpu}


def by_our_tests(table: Table) -> Found:
    """Return what our tests of single features find."""
    start, classes = time.process_time(), classes_of(table)
    if table.covariates:
        target = adjusted(table.target, table.covariates, classes)
    else:
        target = unadjusted(table.target, table.strata, classes)
    found = strengths(codes_of(table.values), target, categorical=table.categories)[0]
    cpu = time.process_time() - start
    return scored(passing(found), table.relevant) | {"cpu": cpu}


def by_test(table: Table) -> Found:
    """Return what the simple test finds."""
    start = time.process_time()
    chosen = selected_by_test(table, LEVEL).tolist()
    return scored(chosen, table.relevant) | {"cpu": time.process_time() - start}


def by_scan(table: Table) -> Found:
    """Return the features of all pairs that pass Bonferroni's bound."""
    start = time.process_time()
    return scored(pair_scan(table), table.relevant) | {"cpu": time.process_time() - start}


def pair_scan(table: Table) -> list[int]:
    """Return the features of the pairs whose halves, by XOR, go with two classes.

    Halves are cut at medians; chi-squared of each pair at level / number of pairs.
    """
    halves = np.where(table.values > np.median(table.values, axis=0), 1.0, -1.0)
    classes = 2.0 * table.target - 1.0
    n, p = halves.shape
    both, agree = halves.T @ halves / n, (halves * classes[:, None]).T @ halves / n
    spread = np.maximum((1 - both**2) * (1 - classes.mean() ** 2), 1 / n**2)
    chi2 = n * (agree - both * classes.mean()) ** 2 / spread
    passing = np.triu(chi2 >= stats.chi2.isf(LEVEL / (p * (p - 1) / 2), 1), 1)
    return sorted({int(j) for j in np.concatenate(np.nonzero(passing))})


def by_peer(table: Table, name: str, seed: int, minutes: float) -> Found:
    """Return what a peer finds in a process of its own; missing cells are its column's median."""
    filled = np.where(np.isnan(table.values), np.nanmedian(table.values, axis=0), table.values)
    with TemporaryDirectory() as folder:
        np.save(Path(folder) / "values.npy", filled.astype(np.float32))
        np.save(Path(folder) / "target.npy", table.target)
        command = [sys.executable, str(PEERS), name, folder, str(seed)]
        errors = str(Path(folder) / "errors")
        done = measure(command, limit_seconds=60 * minutes, out=errors, errors=errors)
        if done.status != 0:
            said = Path(errors).read_text().splitlines()[-1:]
            return {"failed": "out of time" if done.status is None else " ".join(said)}
        chosen = json.loads((Path(folder) / "selected.json").read_text())
    return scored(chosen, table.relevant) | {"cpu": done.cpu_seconds}


def scored(chosen: Iterable[int], relevant: Iterable[int]) -> Found:
    """Return how well the chosen features are the relevant ones."""
    chosen, relevant = set(chosen), set(relevant)
    n_true = len(chosen & relevant)
    return {
        "selected": len(chosen),
        "power": n_true / len(relevant) if relevant else None,
        "false": (len(chosen) - n_true) / max(len(chosen), 1),
    }


def wanted(design: str, asked: argparse.Namespace) -> set[str]:
    """Return the methods asked for; the told test goes with ours."""
    scan = {SCAN} if asked.scan and design.startswith("XOR") else set[str]()
    return {OURS, *asked.peers} | scan


def done_by(methods: set[str], design: str, seed: int, asked: argparse.Namespace) -> dict[str, Any]:
    """Return what methods find on a table, and the CPU seconds of all, peers left out."""
    start = time.process_time()
    table, found = table_of(design, seed), dict[str, Any]()
    if OURS in methods:
        alone = asked.ours == "tests"
        found[OURS] = by_our_tests(table) if alone else ours(table, json.loads(asked.options))
        if table.test and design not in REAL:
            found[TEST] = by_test(table)
        for name in table.also:
            found[name] = by_test(replace(table, test=name))
    if SCAN in methods:
        found[SCAN] = by_scan(table)
    for name in methods & set(asked.peers):
        found[name] = by_peer(table, name, seed, asked.peer_minutes)
    return {"found": found, "cpu": time.process_time() - start}


def by_design(lines: Iterable[dict[str, Any]]) -> dict[str, dict[str, Runs]]:
    """Return what was found by design, method and seed, in the order of the designs."""
    found: dict[str, dict[str, Runs]] = {name: defaultdict(dict) for name in [*MADE, *SYNTH]}
    for line in lines:
        for who, what in line["found"].items():
            found[line["design"]][who][line["seed"]] = what
    return {design: methods for design, methods in found.items() if methods}


def beside(lines: Iterable[Line], others: Iterable[Line], label: str) -> list[Line]:
    """Return lines with what we found under another label as the told test; others are left out."""
    found = {(o["design"], o["seed"]): o["found"] for o in others if o["label"] == label}
    both = [(line, found.get((line["design"], line["seed"]), {})) for line in lines]
    return [
        line | {"found": {OURS: line["found"][OURS], TEST: other[OURS]}}
        for line, other in both
        if OURS in line["found"] and OURS in other
    ]


def is_null(design: str) -> bool:
    """Tell whether nothing is relevant."""
    return design.startswith("noise") or design in CORRELATED or design in REAL


def losses(methods: dict[str, Runs]) -> list[float]:
    """Return power of the told test less ours, seed by seed."""
    pairs = [(methods[TEST][seed], run) for seed, run in methods[OURS].items() if TEST in methods]
    return [told["power"] - run["power"] for told, run in pairs]


def false_shares(methods: dict[str, Runs]) -> list[float]:
    """Return our false shares, seed by seed."""
    return [run["false"] for run in methods[OURS].values()]


def error(values: Sequence[float]) -> float:
    """Return the standard error of a mean, NaN of one value."""
    return stdev(values) / len(values) ** 0.5 if len(values) > 1 else float("nan")


def bound(values: Sequence[float]) -> float:
    """Return the one-sided bound of a mean by Student's t."""
    return mean(values) + float(stats.t.ppf(SURE, max(len(values) - 1, 1))) * error(values)


def bound_over(families: Sequence[Sequence[float]]) -> tuple[float, float, float]:
    """Return the mean over families, each of one weight, its standard error and its bound.

    The families are fixed and their seeds drawn: errors are those within families.
    """
    middle = mean(mean(values) for values in families)
    spread = sum(error(values) ** 2 for values in families) ** 0.5 / len(families)
    return middle, spread, middle + float(stats.norm.ppf(SURE)) * spread


def report(lines: Iterable[dict[str, Any]]) -> str:
    """Return the tables of signals, nulls and peers, and the judged figures."""
    found = by_design(lines)
    judged = {design: methods for design, methods in found.items() if OURS in methods}
    signals = {d: m for d, m in judged.items() if not is_null(d)}
    nulls = {d: m for d, m in judged.items() if is_null(d)}
    parts = [_signals(signals)] if signals else []
    parts += [_nulls(nulls)] if nulls else []
    others = {d: m for d, m in found.items() if set(m) - {OURS, TEST}}
    return "\n\n".join(parts + ([_others(others)] if others else []))


def _signals(found: dict[str, dict[str, Runs]]) -> str:
    rows = _head(
        "family, seeds, selected, power, told, loss, false share, bound, told false, CPU s"
    )
    for design, methods in found.items():
        runs, false, loss = [*methods[OURS].values()], false_shares(methods), losses(methods)
        told = [*methods.get(TEST, {}).values()]
        highest = bound(false)
        cells = [
            design,
            len(runs),
            f"{mean(run['selected'] for run in runs):.1f}",
            f"{mean(run['power'] for run in runs):.3f}",
            f"{mean(run['power'] for run in told):.3f}" if told else "",
            f"{mean(loss):.3f} ± {error(loss):.3f}" if loss else "",
            f"{mean(false):.3f} ± {error(false):.3f}",
            f"**{highest:.3f}**" if highest > MOST_FALSE else f"{highest:.3f}",
            f"{mean(run['false'] for run in told):.3f}" if told else "",
            f"{mean(run['cpu'] for run in runs):.1f}",
        ]
        rows.append(_row(cells))
    rows += ["", _judged("false share", [false_shares(m) for m in found.values()], MOST_FALSE)]
    compared = [losses(methods) for methods in found.values() if losses(methods)]
    if compared:
        rows.append(_judged("loss of power against the told test", compared, MOST_LOSS))
    return "\n".join(rows)


def _judged(what: str, families: Sequence[Sequence[float]], most: float) -> str:
    middle, spread, highest = bound_over(families)
    verdict = "not enough seeds" if isnan(highest) else "held" if highest <= most else "exceeded"
    over = sum(bound(values) > most for values in families)
    return (
        f"Mean {what} over {len(families)} families: {middle:.4f} ± {spread:.4f}, 95% bound "
        f"{highest:.4f} (criterion {most}: {verdict}); {over} families have a bound above it."
    )


def _nulls(found: dict[str, dict[str, Runs]]) -> str:
    rows, totals = _head("nothing relevant, runs, select something, bound, told test, CPU s"), []
    for design, methods in found.items():
        runs = [*methods[OURS].values()]
        told = [run["selected"] > 0 for run in methods.get(TEST, {}).values()]
        totals.append((sum(run["selected"] > 0 for run in runs), len(runs), sum(told), len(told)))
        cpu = f"{mean(run['cpu'] for run in runs):.1f}"
        rows.append(_row([design, *_counted(*totals[-1]), cpu]))
    return "\n".join([*rows, _row(["all", *_counted(*map(sum, zip(*totals, strict=True))), ""])])


def _counted(k: int, n: int, k_told: int, n_told: int) -> list[object]:
    """Return cells: runs, those that select, Clopper and Pearson's bound, those of the test."""
    highest = stats.binomtest(k, n, alternative="less").proportion_ci(SURE).high
    return [n, k, f"{highest:.3f}", f"{k_told} of {n_told}" if n_told else ""]


def _others(found: dict[str, dict[str, Runs]]) -> str:
    """Return power, false share and CPU seconds of every method, on the seeds that all have."""
    order = sorted({who for methods in found.values() for who in methods} - {OURS, TEST})
    order = [OURS, TEST, *order]
    rows = _head("power / false share / CPU s, seeds, " + ", ".join(order))
    for design, methods in found.items():
        seeds = set.intersection(*(set(runs) for runs in methods.values()))
        cells = [_compared([methods[w][s] for s in seeds]) if w in methods else "" for w in order]
        rows.append(_row([design, len(seeds), *cells]))
    return "\n".join(rows)


def _compared(runs: Sequence[Found]) -> str:
    done = [run for run in runs if "failed" not in run]
    if not done:
        return ", ".join(sorted({run["failed"] for run in runs}))
    powers = [run["power"] for run in done if run["power"] is not None]
    power = f"{mean(powers):.2f}" if powers else ""
    late = f" ({len(runs) - len(done)} failed)" if len(done) < len(runs) else ""
    false, cpu = mean(run["false"] for run in done), mean(run["cpu"] for run in done)
    return f"{power} / {false:.2f} / {cpu:.1f}{late}"


def _head(names: str) -> list[str]:
    return [_row(names.split(", ")), "|---" * (names.count(", ") + 1) + "|"]


def _row(cells: Sequence[object]) -> str:
    return "| " + " | ".join(map(str, cells)) + " |"


def main() -> None:
    """Do what is left, then print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=Path, required=True)
    every = [*MADE, *SYNTH, *SETS]
    parser.add_argument("--designs", nargs="+", choices=every, default=[*DESIGNS, *SYNTH],
                        metavar="NAME")  # fmt: skip
    parser.add_argument("--seeds", nargs=2, type=int, default=(1000, 1020))
    parser.add_argument("--options", default="{}")
    parser.add_argument("--label", default="")
    parser.add_argument("--peers", nargs="+", default=[])
    parser.add_argument("--scan", action="store_true")
    parser.add_argument("--peer-minutes", type=float, default=10.0)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--report", action="store_true")
    parser.add_argument("--ours", choices=("run", "tests"), default="run")
    parser.add_argument("--against")
    asked = parser.parse_args()
    kind = ", tests alone" if asked.ours == "tests" else ""
    asked.label += kind
    results = Results(asked.results)
    lines = [line for line in results.records if line["label"] == asked.label]
    done = defaultdict[tuple[str, int], set[str]](set)
    for line in lines:
        done[line["design"], line["seed"]] |= set(line["found"])
    end = time.monotonic() + 60 * asked.minutes
    designs = [one for name in asked.designs for one in SETS.get(name, [name])]
    todo = [(d, s) for s in range(*asked.seeds) for d in designs]
    for design, seed in [] if asked.report else todo:
        left = wanted(design, asked) - done[design, seed]
        if left and time.monotonic() < end:
            line = {"label": asked.label, "design": design, "seed": seed}
            lines.append(line | done_by(left, design, seed, asked))
            results.add(lines[-1])
    if asked.against is not None:
        lines = beside(lines, results.records, asked.against + kind)
    print(report(lines))


if __name__ == "__main__":
    main()
