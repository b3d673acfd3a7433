"""Small sets on real tables: accuracy of the first 5, 10, 20, 50 features and of each own choice.

Every method sees the training half only; the halves are stratified by class, the same for every
method. Two models of scikit-learn then predict the other half: a random forest of 200 trees, and a
support vector machine with a radial kernel on scaled columns. Ours is ``srs-ooc run`` with its
defaults: its order by worth, what it selects, and its nested sets (``srs-ooc compact``), whose own
choice is that of five folds inside the training half. Own choices of the others: features that pass
Benjamini and Hochberg at level 0.1 (F-test), what is not 0 (lasso), what is confirmed in 20 rounds
of 500 trees (Boruta). Seconds are of the processor, of the ranking and the own choice together. A
CACHE is of one number of ``--trees``.

    python benchmarks/compact.py --data FOLDER --cache FOLDER [--halves 10] [--trees 200]
        [--methods "ours, order" F-test ...]
    python benchmarks/compact.py --cache FOLDER --report
"""

import argparse
import gzip
import json
import os
import warnings
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import selection_peers as peers
from measured import srs_ooc
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_selection import f_classif
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from srs_ooc.ensemble.compaction import compact, nest_run
from srs_ooc.results.ranking import Ranking
from srs_ooc.runs.plan import Plan
from srs_ooc.runs.request import Request
from srs_ooc.runs.run import Run
from srs_ooc.store.store import Store


def report(cache: Path, tables: list[str], methods: list[str]) -> str:
    """Return the tables in Markdown: the mean of all, then each."""
    found = {
        (file.stem.split("--")[0], int(file.stem.split("--")[1]), file.stem.split("--")[2]):
        json.loads(file.read_text()) for file in sorted(cache.glob("*.json"))
    }  # fmt: skip
    parts = [_table("mean of the tables", tables, methods, found)]
    parts += [_table(name, [name], methods, found) for name in tables]
    return "\n\n".join(part for part in parts if part)


def _table(title: str, tables: list[str], methods: list[str], found: dict[Any, Any]) -> str:
    lines = [
        f"### {title}\n",
        "| method | halves | 5 | 10 | 20 | 50 | own choice | features of it | CPU s |",
        "|---" * 9 + "|",
    ]
    for method in methods:
        halves = {t: [s for (n, s, m) in found if n == t and m == method] for t in tables}
        n_halves = min(len(seeds) for seeds in halves.values())
        if not n_halves:
            continue
        cells = [
            _cell([[found[t, s, method]["accuracy"].get(size) for s in halves[t]] for t in tables])
            for size in (*map(str, SIZES), "own")
        ]
        own = [found[t, s, method]["n_own"] for t in tables for s in halves[t]]
        seconds = [found[t, s, method]["seconds"] for t in tables for s in halves[t]]
        n_own = "-" if own[0] is None else f"{mean(own):.0f}"
        lines.append(
            f"| {method} | {n_halves} | {' | '.join(cells)} | {n_own} | {mean(seconds):.1f} |"
        )
    return "\n".join(lines)


def _cell(by_table: list[list[tuple[float, float] | None]]) -> str:
    """Return the mean over tables of the mean over halves, forest / machine, and its error."""
    pairs = [np.array([pair for pair in halves if pair is not None]) for halves in by_table]
    if any(len(values) == 0 for values in pairs):
        return "-"
    means = np.mean([values.mean(axis=0) for values in pairs], axis=0)
    both = [values.mean(axis=1) for values in pairs]
    n = min(len(values) for values in both)
    error = np.sqrt(sum(values.var(ddof=1) / len(values) for values in both)) / len(both)
    spread = f" ± {error:.3f}" if n > 1 else ""
    return f"{means[0]:.3f} / {means[1]:.3f}{spread}"


TABLES = ["arcene", "prostate_ge", "tox_171", "isolet", "orl", "madelon"]
SIZES = (5, 10, 20, 50)
MOST = max(SIZES)
MEMORY_MB = 512

Choice = tuple[list[int], list[int] | None]
"""The first columns, best first, and the columns of the method's own choice, if it makes one."""


class Half:
    """A real table, one half of its rows to train on."""

    def __init__(self, data: Path, name: str, seed: int) -> None:
        header, *lines = gzip.decompress((data / f"{name}.csv.gz").read_bytes()).decode().split()
        self.names = header.split(",")[:-1]
        self.values = np.array([line.split(",")[:-1] for line in lines], np.float32)
        self.target = np.array([line.rsplit(",", 1)[1] for line in lines])
        self.source, self.seed = data / f"{name}.csv.gz", seed
        rows = np.arange(len(self.target))
        train, test = train_test_split(rows, test_size=0.5, stratify=self.target, random_state=seed)
        self.train, self.test = np.sort(train), np.sort(test)

    @property
    def x(self) -> NDArray[np.float32]:
        """The training rows."""
        rows: NDArray[np.float32] = self.values[self.train]
        return rows

    @property
    def y(self) -> NDArray[np.str_]:
        """Their classes."""
        labels: NDArray[np.str_] = self.target[self.train]
        return labels

    def accuracy(self, columns: list[int], n_trees: int) -> tuple[float, float]:
        """Return the accuracy of the forest and of the machine on some columns."""
        forest = RandomForestClassifier(n_trees, random_state=self.seed, n_jobs=1)
        machine = make_pipeline(StandardScaler(), SVC())
        x, test = self.x[:, columns], self.values[self.test][:, columns]
        scores = [model.fit(x, self.y).score(test, self.target[self.test])
                  for model in (forest, machine)]  # fmt: skip
        return float(scores[0]), float(scores[1])


def _ranked(scores: NDArray[np.float64]) -> list[int]:
    return [int(column) for column in np.argsort(-np.nan_to_num(scores), kind="stable")[:MOST]]


def ftest(half: Half) -> Choice:
    """Rank by the F-test."""
    mask, _ = peers.ftest(half.x, half.y, half.seed)
    assert mask is not None
    scores = np.nan_to_num(f_classif(half.x, half.y)[0])
    return _ranked(scores), [int(column) for column in np.flatnonzero(mask)]


def forest(half: Half) -> Choice:
    """Rank by the importance of 500 trees."""
    model = RandomForestClassifier(500, random_state=half.seed, n_jobs=1).fit(half.x, half.y)
    return _ranked(model.feature_importances_), None


def mrmr(half: Half) -> Choice:
    """Take the largest F over mean absolute correlation with those taken, one after another."""
    scores = np.nan_to_num(f_classif(half.x, half.y)[0])
    columns = half.x.T.astype(np.float64)
    columns -= columns.mean(axis=1, keepdims=True)
    columns /= np.maximum(np.linalg.norm(columns, axis=1, keepdims=True), 1e-12)
    taken = [int(np.argmax(scores))]
    total = np.zeros(len(columns))
    while len(taken) < MOST:
        total += np.abs(columns @ columns[taken[-1]])
        worth = scores / np.maximum(total / len(taken), 1e-3)
        worth[taken] = -1.0
        taken.append(int(np.argmax(worth)))
    return taken, None


def rfe(half: Half) -> Choice:
    """Drop the last fifth by the importance of 300 trees, again and again."""
    left = np.arange(half.x.shape[1])
    order: list[int] = []
    while len(left):
        model = RandomForestClassifier(300, random_state=half.seed, n_jobs=1)
        by_importance = np.argsort(-model.fit(half.x[:, left], half.y).feature_importances_)
        n_kept = len(left) * 4 // 5
        order = left[by_importance[n_kept:]].tolist() + order
        left = left[by_importance[:n_kept]]
    return order[:MOST], None


def lasso(half: Half) -> Choice:
    """Rank by the largest weight in any class, the penalty chosen by 3-fold cross-validation."""
    mask, sizes = peers.lasso(half.x, half.y, half.seed)
    assert mask is not None
    kept = np.count_nonzero(mask)
    return _ranked(sizes)[:kept], [int(column) for column in np.flatnonzero(mask)]


def boruta(half: Half) -> Choice:
    """Rank by Boruta, ties by forest importance."""
    codes = np.unique(half.y, return_inverse=True)[1]
    mask, scores = peers.boruta(half.x, codes, half.seed)
    assert mask is not None
    model = RandomForestClassifier(500, random_state=half.seed, n_jobs=1).fit(half.x, half.y)
    order = np.lexsort((-model.feature_importances_, -scores))
    return [int(column) for column in order[:MOST]], [int(c) for c in np.flatnonzero(mask)]


def everything(half: Half) -> Choice:
    """Take all columns."""
    return [], list(range(half.x.shape[1]))


def run_on(half: Half, folder: Path) -> tuple[Run, Plan]:
    """Return a run on the training half that is done, and where it was made."""
    store, run, ids = folder / "table.zarr", folder / "a.run", folder / "rows"
    ids.write_text("\n".join(str(row + 1) for row in half.train.tolist()) + "\n")
    srs_ooc("ingest", half.source, store)
    options = ("--seed", half.seed, "--threads", 1, "--memory-mb", MEMORY_MB)
    srs_ooc("run", store, "--out", run, "--rows", ids, *options)
    ledger, here = Run(run, writable=True), Request(memory_mb=MEMORY_MB, threads=1)
    return ledger, Plan.of_run(ledger, Store.open(store), here)


def columns_of(plan: Plan, stored: Iterable[int]) -> list[int]:
    """Return the columns of the source that features of the store are."""
    positions = plan.store.array("positions").view(np.uint32)
    return [int(positions[feature]) for feature in stored]


def order(ledger: Run, plan: Plan) -> Choice:
    """Return the first columns by rank."""
    return columns_of(plan, Ranking(ledger, plan.store).top(MOST)), None


def selected(ledger: Run, plan: Plan) -> Choice:
    """Return the columns selected."""
    return [], columns_of(plan, Ranking(ledger, plan.store).selected())


def nested(ledger: Run, plan: Plan) -> Choice:
    """Return the first columns of the nested sets."""
    found = nest_run(ledger, plan)
    assert found is not None
    return columns_of(plan, found.order[:MOST]), None


def compacted(ledger: Run, plan: Plan) -> Choice:
    """Return the same, and the set chosen by five folds."""
    found = compact(ledger, plan, folds=5, repeats=1)
    assert found is not None
    first = columns_of(plan, found.order)
    return first[:MOST], first[: found.held_out.smallest()]


def _ours(method: Callable[[Run, Plan], Choice]) -> Callable[[Half], Choice]:
    def choose(half: Half) -> Choice:
        with TemporaryDirectory() as scratch:
            ledger, plan = run_on(half, Path(scratch))
            with closing(ledger):
                return method(ledger, plan)

    return choose


METHODS: dict[str, Callable[[Half], Choice]] = {
    "all features": everything,
    "ours, order": _ours(order),
    "ours, selected": _ours(selected),
    "ours, nested": _ours(nested),
    "ours, compact": _ours(compacted),
    "F-test": ftest,
    "forest": forest,
    "mRMR": mrmr,
    "lasso": lasso,
    "forest-RFE": rfe,
    "Boruta": boruta,
}


def measure(half: Half, method: str, n_trees: int) -> dict[str, object]:
    """Return what a method chose, how well it predicts, and how long it took."""
    start = sum(os.times()[:4])
    ranking, own = METHODS[method](half)
    seconds = sum(os.times()[:4]) - start
    sets = {str(size): ranking[:size] for size in SIZES if len(ranking) > 0}
    if own:
        sets["own"] = own
    accuracy = {name: half.accuracy(columns, n_trees) for name, columns in sets.items()}
    n_own = None if own is None else len(own)
    return {"ranking": ranking, "n_own": n_own, "seconds": seconds, "accuracy": accuracy}


def main() -> None:
    """Measure what is not in the cache, or print the table of what is."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--tables", nargs="+", default=TABLES)
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--halves", type=int, default=10)
    parser.add_argument("--trees", type=int, default=200, help="of the forest that predicts")
    parser.add_argument("--report", action="store_true")
    options = parser.parse_args()
    if options.report:
        print(report(options.cache, options.tables, list(METHODS)))
        return
    if options.data is None:
        parser.error("--data: expected the folder of the tables")
    warnings.simplefilter("ignore")
    options.cache.mkdir(parents=True, exist_ok=True)
    for seed in range(options.halves):
        for name in options.tables:
            half = None
            for method in options.methods:
                file = options.cache / f"{name}--{seed}--{method}.json"
                if file.exists():
                    continue
                half = Half(options.data, name, seed) if half is None else half
                found = measure(half, method, options.trees)
                file.write_text(json.dumps(found))
                print(name, seed, method, found["n_own"], f"{found['seconds']:.1f} s", flush=True)


if __name__ == "__main__":
    main()
