"""Sensitivity of all features in one pass, beside scikit-learn's permutation_importance.

One ensemble of saved trees, asked about the same held-out rows in the same process by three means:

- `srs_ooc.sensitivity`, features permuted;
- a loop that alters one feature at a time, by the same permutations, and predicts: the scores must
  be equal;
- `sklearn.inspection.permutation_importance` of an estimator that predicts by the same trees, whose
  permutations are others: scores agree but for chance.

Seconds are of the clock, one thread each.

    python benchmarks/rfest_speed.py [--features 300] [--trees 300] [--repeats 2]
"""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.inspection import permutation_importance

import srs_ooc
from srs_ooc.ensemble.feature_sensitivity import permutation
from srs_ooc.ensemble.model import Model

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
        found: NDArray[np.int64] = self.model.shares(values).argmax(axis=1)
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


def main() -> None:
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
    main()
