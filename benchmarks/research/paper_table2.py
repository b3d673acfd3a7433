"""The accuracy table of the paper (Table 2, Appendix G.2) and its pairwise tests (Table 3).

Claim: SRS with memory beats Random Subspace, random forests and extra-trees where few of many
features matter (madelon), and does not lose by much elsewhere, as published.

The protocol is that of Appendix G.2: each table is parted at random into a training and a test
half, the same halves for every method; nothing is tuned; one extra-tree an iteration with K = q.
SRS runs at alpha 0, 0.5 and 1 and q 1%, 5% and 10% of the features, through `srs-ooc run
--save-trees --rows` and `srs-ooc predict`; random forests and extra-trees (scikit-learn) at K 1%,
10% and 100%. The paper has 10,000 iterations or trees and 50 repeats; the defaults here are
smaller. `--thresholds value` draws thresholds as scikit-learn does, `rank` as SRS does by default.
Published figures stand beside ours for arcene, isolet and madelon, whose row counts were other
ones: compare the order of methods and the size of differences.

Repeat by repeat, over all tables; every result is appended to a file, and what is there already is
not computed again. After `--minutes` no more are begun, and the repeats that are whole are told.

    python benchmarks/research/paper_table2.py --data FOLDER [--repeats 5] [--iterations 2000]
        [--trees 100] [--thresholds rank] [--minutes 18]
"""

import argparse
import gzip
import itertools
import json
import math
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev

import numpy as np
from scipy.stats import ttest_rel
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier

from srs_ooc.trees.response import THRESHOLDS

sys.path.append(str(Path(__file__).parents[1]))  # the modules that all benchmarks share

from measured import Results, said

TABLES = ["arcene", "madelon", "isolet", "orl", "prostate_ge", "tox_171"]
SRS = [(q, alpha) for q in ("0.01", "0.05", "0.1") for alpha in ("0", "0.5", "1")]
FORESTS = [(name, k) for name in ("RF", "ET") for k in ("0.01", "0.1", "1")]
METHODS = [f"SRS q={q} a={a}" for q, a in SRS] + [f"{name} K={k}" for name, k in FORESTS]
PUBLISHED = {  # Table 2, in the order of METHODS
    "arcene": [743, 717, 717, 743, 743, 743, 732, 732, 732, 717, 706, 678, 739, 729, 701],
    "isolet": [906, 899, 336, 944, 945, 766, 949, 950, 817, 936, 940, 912, 943, 951, 943],
    "madelon": [558, 689, 745, 639, 858, 861, 673, 845, 845, 620, 700, 754, 608, 690, 815],
}


class Halves:
    """A table and its random halves, on disk and in memory."""

    def __init__(self, source: Path, folder: Path) -> None:
        self.folder, self.store = folder, folder / "table.zarr"
        self.header, *self.lines = gzip.decompress(source.read_bytes()).decode().splitlines()
        self.n_features = self.header.count(",")
        said("ingest", source, self.store)
        self.values = np.array([line.split(",")[:-1] for line in self.lines], np.float32)
        self.labels = np.array([line.rsplit(",", 1)[1] for line in self.lines])

    def part(self, repeat: int) -> None:
        """Draw the halves of a repeat."""
        order = np.random.default_rng(repeat).permutation(len(self.lines))
        half = len(order) // 2
        self.train, self.test = np.sort(order[:half]), np.sort(order[half:])
        ids = "\n".join(str(row + 1) for row in self.train)
        (self.folder / "rows").write_text(ids)
        held_out = [self.header, *(self.lines[row] for row in self.test)]
        (self.folder / "test.csv").write_text("\n".join(held_out) + "\n")

    def share(self, text: str) -> int:
        """Return a share of the features, at least one."""
        return max(1, math.ceil(float(text) * self.n_features))

    def srs(self, method: str, iterations: int, thresholds: str, seed: int) -> float:
        """Return the accuracy of SRS on the test half."""
        q, alpha = SRS[METHODS.index(method)]
        with tempfile.TemporaryDirectory(dir=self.folder) as name:
            run, out = Path(name) / "a.run", Path(name) / "out.csv"
            options = ("--q", self.share(q), "--alpha", alpha, "--iterations", iterations)
            rows = ("--rows", self.folder / "rows", "--seed", seed, "--save-trees")
            said(
                "run",
                self.store,
                "--out",
                run,
                *options,
                *rows,
                "--with",
                f"thresholds={thresholds}",
            )
            told = said("predict", run, self.folder / "test.csv", out, "--json")
        return float(json.loads(told)["accuracy"])

    def forest(self, method: str, trees: int, seed: int) -> float:
        """Return the accuracy of a forest of scikit-learn on the test half."""
        name, k = FORESTS[METHODS.index(method) - len(SRS)]
        kind = RandomForestClassifier if name == "RF" else ExtraTreesClassifier
        model = kind(trees, max_features=self.share(k), random_state=seed, n_jobs=-1)
        model.fit(self.values[self.train], self.labels[self.train])
        return float(model.score(self.values[self.test], self.labels[self.test]))


@dataclass(frozen=True)
class Protocol:
    """What is computed: tables, repeats, sizes of ensembles, and how SRS draws thresholds."""

    tables: list[str]
    repeats: int
    iterations: int
    trees: int
    thresholds: str

    def key(self, table: str, repeat: int, method: str) -> str:
        """Return the name of a result."""
        if not method.startswith("SRS"):
            return f"{table}/{repeat}/{method}/{self.trees}"
        by_value = "/value" if self.thresholds == "value" else ""
        return f"{table}/{repeat}/{method}/{self.iterations}{by_value}"

    def wanted(self) -> Iterator[tuple[int, str, str]]:
        """Yield repeat, table and method of each result, repeat by repeat."""
        return itertools.product(range(self.repeats), self.tables, METHODS)

    def accuracy(self, halves: Halves, repeat: int, method: str) -> float:
        """Compute a result."""
        if method.startswith("SRS"):
            return halves.srs(method, self.iterations, self.thresholds, repeat)
        return halves.forest(method, self.trees, repeat)


def compute(
    protocol: Protocol, data: Path, results: Results, done: dict[str, float], seconds: float
) -> None:
    """Compute what is not done yet, as far as ``seconds`` reach, and add it to ``done``."""
    missing = [one for one in protocol.wanted() if protocol.key(one[1], one[0], one[2]) not in done]
    tables: dict[str, Halves] = {}
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        for number, (repeat, table, method) in enumerate(missing, 1):
            start = time.monotonic()
            if start - begun > seconds:
                say(f"{len(missing) - number + 1} results left out; the same command goes on")
                return
            if table not in tables:
                (Path(folder) / table).mkdir()
                tables[table] = Halves(data / f"{table}.csv.gz", Path(folder) / table)
            tables[table].part(repeat)
            key = protocol.key(table, repeat, method)
            done[key] = protocol.accuracy(tables[table], repeat, method)
            results.add({"key": key, "accuracy": done[key]})
            now = time.monotonic()
            rest = (now - begun) * (len(missing) - number) / number
            took = f"{now - start:.1f} s, {number} of {len(missing)}, {rest / 60:.0f} min left"
            say(f"{key}: {done[key]:.3f} ({took})")


def say(text: str) -> None:
    """Print a line of progress."""
    print(text, file=sys.stderr, flush=True)


def scores(protocol: Protocol, done: dict[str, float]) -> dict[str, list[list[float]]]:
    """Return for each table and method the accuracies of the repeats that are whole."""
    keys = {
        repeat: [protocol.key(t, repeat, m) for t in protocol.tables for m in METHODS]
        for repeat in range(protocol.repeats)
    }
    whole = [repeat for repeat, wanted in keys.items() if all(key in done for key in wanted)]
    return {
        table: [[done[protocol.key(table, r, method)] for r in whole] for method in METHODS]
        for table in protocol.tables
        if whole
    }


def better(first: list[float], second: list[float]) -> int:
    """Return 1, 0 or -1: significantly better, no difference, worse (paired t-test, 0.05)."""
    differences = np.subtract(first, second)
    if len(differences) < 2 or not differences.any():
        return 0
    if np.ptp(differences) == 0:
        return int(np.sign(differences[0]))
    significant = ttest_rel(first, second).pvalue < 0.05
    return int(np.sign(differences.mean())) if significant else 0


def report(found: dict[str, list[list[float]]]) -> None:
    """Print the table of accuracies (Table 2), with published ones, and that of tests (Table 3)."""
    heads = [[table, f"*{table}, published*"][: 1 + (table in PUBLISHED)] for table in found]
    print("| | " + " | ".join(head for pair in heads for head in pair) + " |")
    print("|---" * (1 + sum(map(len, heads))) + "|")
    for i, method in enumerate(METHODS):
        cells = []
        for table, columns in found.items():
            spread = f" ± {stdev(columns[i]):.3f}" if len(columns[i]) > 1 else ""
            cells.append(f"{mean(columns[i]):.3f}{spread}")
            cells += [f"*{PUBLISHED[table][i] / 1000:.3f}*"] if table in PUBLISHED else []
        print(f"| {method} | {' | '.join(cells)} |")
    for q in ("0.1", "0.01"):
        report_tests(found, q)


def report_tests(found: dict[str, list[list[float]]], q: str) -> None:
    """Print on how many tables a method of a row beats, equals and loses to that of a column."""
    rows = [METHODS.index(f"SRS q={q} a={a}") for a in ("0", "0.5", "1")]
    others = [*rows, METHODS.index("ET K=0.1"), METHODS.index("ET K=1")]
    print(f"\n| q = {q}: win/draw/loss | " + " | ".join(METHODS[j] for j in others) + " |")
    print("|---" * (1 + len(others)) + "|")
    for i in rows:
        cells = []
        for j in others:
            tests = [better(columns[i], columns[j]) for columns in found.values()]
            cells.append("/".join(str(tests.count(x)) for x in (1, 0, -1)) if i != j else "-")
        print(f"| {METHODS[i]} | " + " | ".join(cells) + " |")


def main() -> None:
    """Compute what is missing and print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of TABLE.csv.gz")
    parser.add_argument("--tables", nargs="+", default=TABLES, choices=TABLES)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--iterations", type=int, default=2000, help="of SRS")
    parser.add_argument("--trees", type=int, default=100, help="of the forests")
    parser.add_argument("--thresholds", choices=THRESHOLDS, default="rank", help="of SRS")
    parser.add_argument("--minutes", type=float, default=18, help="begin nothing more after these")
    parser.add_argument("--results", type=Path, default=Path("paper_table2.jsonl"))
    arguments = parser.parse_args()
    protocol = Protocol(
        arguments.tables,
        arguments.repeats,
        arguments.iterations,
        arguments.trees,
        arguments.thresholds,
    )
    results = Results(arguments.results)
    done = {record["key"]: record["accuracy"] for record in results.records}
    compute(protocol, arguments.data, results, done, 60 * arguments.minutes)
    found = scores(protocol, done)
    if not found:
        sys.exit("No repeat is whole yet: run the same command again, or with fewer --tables.")
    n_repeats = len(found[arguments.tables[0]][0])
    print(f"{n_repeats} repeats, thresholds by {protocol.thresholds}: mean ± standard deviation.\n")
    report(found)


if __name__ == "__main__":
    main()
