"""The comparisons of the LESS paper (Kyrillidis and Zouzias 2014): Table 1 and Figure 2.

Claims: on madelon, trees on 50 features drawn by leverage scores reach an error that trees on
features drawn uniformly do not reach with ten times the nodes, and that a random forest needs
several times the nodes for; on orl all need about the same. Large tables: ``scale.py less``.

A curve is the error on held-out rows, and the nodes of all trees, for 1 to 200 trees grown whole by
best splits on k features; the random forest is scikit-learn's, without bagging, with sqrt(d)
candidates a node. A quarter of the rows is held out, stratified by class; the paper does not give
its split, and its orl has 4,096 features.

    python benchmarks/research/paper_less.py --data FOLDER [--tables madelon orl] [--repeats 3]
        [--k 10 50]
"""

import argparse
import gzip
import json
import sys
import tempfile
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

from srs_ooc.runs.run import Run
from srs_ooc.runs.run_trees import TreeReader

sys.path.append(str(Path(__file__).parents[1]))  # the modules that all benchmarks share

from measured import said, srs_ooc

COUNTS = (1, 2, 5, 10, 20, 50, 100, 200)
PUBLISHED = {"madelon": 0.26, "orl": 0.12}
"""The errors of Table 1."""
METHODS = {
    "uniform": ("--method", "rs"),
    "norm": ("--method", "less", "--with", "scores=norm", "--with", "center=no"),
    "norm, centred": ("--method", "less", "--with", "scores=norm"),
    "leverage, r = 50": ("--method", "less", "--with", "center=no"),
    "leverage, r = 50, centred": ("--method", "less"),
    "leverage, r = 5, centred": ("--method", "less", "--with", "rank=5"),
}
Curve = list[tuple[int, float]]
"""Nodes of all trees and error on held-out rows, for each number of trees."""


class Table:
    """A real table, as a file and as a store."""

    def __init__(self, source: Path, folder: Path) -> None:
        self.header, *self.lines = gzip.decompress(source.read_bytes()).decode().splitlines()
        self.values = np.array([line.split(",")[:-1] for line in self.lines], np.float64)
        self.target = np.array([line.rsplit(",", 1)[1] for line in self.lines])
        self.folder, self.store = folder, folder / "table.zarr"
        srs_ooc("ingest", source, self.store)

    def split(self, seed: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return the rows to train on and those held out, and write files of both."""
        rows = np.arange(len(self.target))
        train, test = train_test_split(
            rows, test_size=0.25, stratify=self.target, random_state=seed
        )
        ids = "".join(f"{row + 1}\n" for row in sorted(train))
        (self.folder / "rows").write_text(ids)
        held_out = [self.header, *(self.lines[row] for row in test)]
        (self.folder / "held-out.csv").write_text("\n".join(held_out) + "\n")
        return np.sort(train), test

    def ours(self, method: str, k: int, seed: int) -> Curve:
        """Return the curve of one of ours on the rows of the last split."""
        found: Curve = []
        with tempfile.TemporaryDirectory(dir=self.folder) as scratch:
            run = Path(scratch) / "a.run"
            for count in COUNTS:
                srs_ooc(
                    "run", self.store, "--out", run, *METHODS[method], "--q", k, "--seed", seed,
                    "--judge", "positive", "--splitter", "best", "--save-trees",
                    "--rows", self.folder / "rows", "--iterations", count,
                )  # fmt: skip
                out = Path(scratch) / f"{count}.csv"
                told = said("predict", run, self.folder / "held-out.csv", out, "--json")
                found.append((n_nodes(run), 1 - json.loads(told)["accuracy"]))
        return found

    def forest(self, seed: int, train: NDArray[np.intp], test: NDArray[np.intp]) -> Curve:
        """Return the curve of a random forest."""
        forest = RandomForestClassifier(COUNTS[-1], bootstrap=False, random_state=seed)
        forest.fit(self.values[train], self.target[train])
        shares = np.cumsum(
            [tree.predict_proba(self.values[test]) for tree in forest.estimators_], axis=0
        )
        nodes = np.cumsum([tree.tree_.node_count for tree in forest.estimators_])
        errors = [
            float((forest.classes_[shares[count - 1].argmax(axis=1)] != self.target[test]).mean())
            for count in COUNTS
        ]
        return [(int(nodes[count - 1]), error) for count, error in zip(COUNTS, errors, strict=True)]


def n_nodes(run: Path) -> int:
    """Return the nodes of all trees of a run, leaves included."""
    ledger = Run(run, writable=False)
    try:
        return sum(len(trees.feature) for trees in TreeReader(ledger).batches())
    finally:
        ledger.close()


def nodes_at(curve: Curve, error: float) -> str:
    """Return the nodes at which a curve first reaches an error, between its points by trees."""
    if curve[0][1] <= error:
        return f"{curve[0][0]:,}"
    for (before, above), (after, below) in pairwise(curve):
        if below <= error:
            share = (above - error) / (above - below)
            return f"{before + share * (after - before):,.0f}"
    return f"not by {curve[-1][0]:,}"


def mean_curve(curves: list[Curve]) -> Curve:
    """Return the mean of curves over repeats."""
    return [
        (round(float(np.mean([nodes for nodes, _ in at]))), float(np.mean([e for _, e in at])))
        for at in zip(*curves, strict=True)
    ]


def compare(source: Path, name: str, repeats: int, sizes: list[int]) -> None:
    """Print the curves of a table, and the nodes at the error of Table 1."""
    with tempfile.TemporaryDirectory() as folder:
        table = Table(source, Path(folder))
        curves: dict[str, list[Curve]] = {}
        for seed in range(repeats):
            train, test = table.split(seed)
            curves.setdefault("random forest", []).append(table.forest(seed, train, test))
            for k in sizes:
                for method in METHODS:
                    found = table.ours(method, k, seed)
                    curves.setdefault(f"{method}, k = {k}", []).append(found)
    level = PUBLISHED.get(name, 0.25)
    print(f"{name}: error by number of trees (mean of {repeats}), nodes at error {level}")
    print(f"{'':36}" + "".join(f"{count:>7}" for count in COUNTS) + f"{'nodes':>16}")
    for method, several in curves.items():
        curve = mean_curve(several)
        errors = "".join(f"{error:7.3f}" for _, error in curve)
        print(f"{method:36}{errors}{nodes_at(curve, level):>16}", flush=True)


def main() -> None:
    """Read the options and measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--tables", nargs="+", default=list(PUBLISHED))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--k", type=int, nargs="+", default=[50])
    asked = parser.parse_args()
    for name in asked.tables:
        compare(asked.data / f"{name}.csv.gz", name, asked.repeats, asked.k)


if __name__ == "__main__":
    main()
