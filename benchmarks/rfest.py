"""Sensitivity of features, by two subcommands.

``ranking``: Does sensitivity rank better than impurity? Average precision of the relevant features.

The tables are those of `srs-ooc synth`, of rows drawn at random, and two of fair bits: AND and XOR
of two, a tenth of the labels wrong. On each table, one run whose trees are saved and grown on rows
drawn with replacement is ranked by the mean decrease of impurity (what `features` shows) and, out
of bag, by sensitivity: probability (or R2) lost with features permuted, mirrored, and accuracy lost
with features permuted. "impurity, all rows" is the same run without drawing rows.

Seeds 0 and on are shown; choices were made on seeds from 100 on.

    python benchmarks/rfest.py ranking [--seeds 5] [--problems madelon ...]

``speed``: Sensitivity of all features in one pass, beside scikit-learn's permutation_importance.

One ensemble of saved trees, asked about the same held-out rows in the same process by three means:

- `srs_ooc.sensitivity`, features permuted;
- a loop that alters one feature at a time, by the same permutations, and predicts: the scores must
  be equal;
- `sklearn.inspection.permutation_importance` of an estimator that predicts by the same trees, whose
  permutations are others: scores agree but for chance.

Seconds are of the clock, one thread each.

    python benchmarks/rfest.py speed [--features 300] [--trees 300] [--repeats 2]
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from measured import subcommand
from more_problems import Clique, Friedman, Linear, Marginal, write
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.inspection import permutation_importance
from sklearn.metrics import average_precision_score

import srs_ooc
from srs_ooc.ensemble.prediction import Model
from srs_ooc.methods.rfest.feature_sensitivity import permutation
from srs_ooc.synthetic.blocks import Blocks
from srs_ooc.synthetic.chain import Chain
from srs_ooc.synthetic.madelon import Madelon

N_ROWS, N_FEATURES, ITERATIONS = 500, 1000, 3000


def synthetic(make: Callable[[int], Any]) -> Callable[[Path, int], set[str]]:
    """Return what writes a problem of a seed to a store, and names its relevant features."""

    def made(store: Path, seed: int) -> set[str]:
        problem = make(seed)
        write(problem, store)
        names = list(srs_ooc.open_store(store).names.texts())
        return {_text(names[place]) for place in problem.relevant}

    return made


def _text(name: Any) -> str:
    return name.decode() if isinstance(name, bytes) else str(name)


def bits(label: Callable[[Any], Any]) -> Callable[[Path, int], set[str]]:
    """Return what writes a table of fair bits labelled by the first two, a tenth wrongly."""

    def made(store: Path, seed: int) -> set[str]:
        rng = np.random.default_rng(seed)
        values = rng.integers(0, 2, (N_ROWS, N_FEATURES))
        labels = label(values) ^ (rng.random(N_ROWS) < 0.1)
        srs_ooc.ingest(values.astype(np.float32), store, target=labels.astype(int))
        return {"f0", "f1"}

    return made


PROBLEMS = {
    "madelon": synthetic(lambda seed: Madelon(N_ROWS, N_FEATURES, 20, seed)),
    "blocks": synthetic(lambda seed: Blocks(N_ROWS, N_FEATURES, 10, seed)),
    "linear": synthetic(lambda seed: Linear(N_ROWS, N_FEATURES, 15, seed)),
    "friedman": synthetic(lambda seed: Friedman(N_ROWS, N_FEATURES, seed)),
    "marginal of 5": synthetic(lambda seed: Marginal(N_ROWS, N_FEATURES, 5, seed)),
    "chain of 3": synthetic(lambda seed: Chain(N_ROWS, N_FEATURES, 3, seed)),
    "clique of 2": synthetic(lambda seed: Clique(N_ROWS, 200, 2, seed)),
    "AND": bits(lambda x: (x[:, 0] & x[:, 1]).astype(bool)),
    "XOR": bits(lambda x: (x[:, 0] ^ x[:, 1]).astype(bool)),
}
ENSEMBLE = {"iterations": ITERATIONS, "judge": "probe", "alpha": 0.5, "memory_mb": 300}


def precision(scores: dict[str, float], relevant: set[str], names: list[str]) -> float:
    """Return the average precision; features without a score come last."""
    lowest = min(scores.values(), default=0.0) - 1
    is_relevant = [name in relevant for name in names]
    return float(average_precision_score(is_relevant, [scores.get(n, lowest) for n in names]))


def ensembles(store: Path, folder: Path, seed: int) -> Iterator[tuple[str, dict[str, float]]]:
    """Yield the scores of features by each way to rank a saved ensemble."""
    for name, bootstrap in (("impurity, all rows", False), ("impurity", True)):
        run = folder / f"{bootstrap}.run"
        result = srs_ooc.run(
            store, out=run, seed=seed, save_trees=True, bootstrap=bootstrap, **ENSEMBLE
        )
        yield name, {one["name"]: one["importance"] for one in result.features("records")}
    for flip in ("permute", "mirror"):
        found = result.sensitivity(flip=flip).features("records")
        yield f"sensitivity, {flip}", {one["name"]: one["score"] for one in found}
        if flip == "permute" and found[0]["accuracy_lost"] is not None:
            lost = {one["name"]: one["accuracy_lost"] for one in found}
            yield "accuracy lost, permute", lost


def measured(name: str, seed: int) -> dict[str, float]:
    """Return the average precision on one table by each ranking."""
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        store = folder / "t.zarr"
        relevant = PROBLEMS[name](store, seed)
        names = [_text(one) for one in srs_ooc.open_store(store).names.texts()]
        found = ensembles(store, folder, seed)
        return {what: precision(scores, relevant, names) for what, scores in found}


def ranking_main() -> None:
    """Print a line a problem: means over seeds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--problems", nargs="+", default=list(PROBLEMS), choices=list(PROBLEMS))
    given = parser.parse_args()
    columns: list[str] = []
    for name in given.problems:
        seeds = range(given.first_seed, given.first_seed + given.seeds)
        found = [measured(name, seed) for seed in seeds]
        if not columns:
            columns = list(found[0])
            if "accuracy lost, permute" not in columns:
                columns.append("accuracy lost, permute")
            print("| problem | " + " | ".join(columns) + " |\n|" + "---|" * (1 + len(columns)))
        cells = [_mean([one.get(column) for one in found]) for column in columns]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


def _mean(values: list[float | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{np.mean(known):.3f}" if known else "-"


N_TRAIN, N_ASKED = 600, 400
Values = NDArray[np.float64]


class Trees(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """The saved trees of a run as an estimator of scikit-learn."""

    def __init__(self, model: Model | None = None) -> None:
        self.model = model
        self.classes_ = np.array([0, 1])

    def fit(self, values: Values, target: NDArray[np.int64]) -> "Trees":
        """Return itself: the trees are grown."""
        return self

    def predict(self, values: Values) -> NDArray[np.int64]:
        """Return the class with the largest mean share."""
        assert self.model is not None
        found: NDArray[np.int64] = self.model.predict(values, by_name=False)[1].argmax(axis=1)
        return found


def altered_one_by_one(
    trees: Trees, values: Values, target: NDArray[np.int64], repeats: int
) -> Values:
    """Return the accuracy lost by altering each feature by itself, as `sensitivity` alters it."""
    right = np.mean(trees.predict(values) == target)
    lost = np.zeros(values.shape[1])
    for repeat in range(repeats):
        order = permutation(0, repeat, len(values))
        for j in range(values.shape[1]):
            other = values.copy()
            other[:, j] = values[order, j]
            lost[j] += right - np.mean(trees.predict(other) == target)
    return lost / repeats


def speed_main() -> None:
    """Print seconds, and how the scores agree."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--features", type=int, default=300)
    parser.add_argument("--trees", type=int, default=300)
    parser.add_argument("--repeats", type=int, default=2)
    given = parser.parse_args()
    rng = np.random.default_rng(0)
    values = rng.standard_normal((N_TRAIN + N_ASKED, given.features))
    target = (values[:, :5].sum(axis=1) > 0).astype(np.int64)
    asked, truth = values[N_TRAIN:], target[N_TRAIN:]
    own = np.zeros(given.features)
    with tempfile.TemporaryDirectory() as text:
        store, run = Path(text) / "t.zarr", Path(text) / "t.run"
        srs_ooc.ingest(values, store, target=target)
        ids = [str(i + 1) for i in range(len(values))]
        options = {"iterations": given.trees, "judge": "probe", "save_trees": True, "q": 100}
        result = srs_ooc.run(store, out=run, rows=ids[:N_TRAIN], **options)
        trees = Trees(Model.of(run))
        trees.predict(asked[:2])
        seconds = {}
        start = time.perf_counter()
        found = result.sensitivity(
            rows=ids[N_TRAIN:], flip="permute", repeats=given.repeats, threads=1
        )
        seconds["srs_ooc.sensitivity"] = time.perf_counter() - start
        start = time.perf_counter()
        one_by_one = altered_one_by_one(trees, asked, truth, given.repeats)
        seconds["one feature at a time"] = time.perf_counter() - start
        start = time.perf_counter()
        peer = permutation_importance(trees, asked, truth, n_repeats=given.repeats, random_state=0)
        seconds["permutation_importance"] = time.perf_counter() - start
        for record in found.features("records"):
            own[int(record["name"][1:])] = record["accuracy_lost"]
    facts = found.facts
    print(f"{facts['n_trees']} trees on {facts['n_features']} features, {facts['n_rows']} rows, "
          f"{given.repeats} repeats\n\n| by | seconds |\n|---|---|")  # fmt: skip
    for name, taken in seconds.items():
        print(f"| {name} | {taken:.2f} |")
    print(f"\nlargest difference from one feature at a time: {np.abs(own - one_by_one).max():.1e}")
    relation = np.corrcoef(own, peer.importances_mean)[0, 1]
    print(f"correlation with permutation_importance: {relation:.4f}")


if __name__ == "__main__":
    subcommand(ranking=ranking_main, speed=speed_main)
