"""Importance sampling of PRS as a screen, beside rs and srs: trees until the relevant lead.

Question: where p is large, do probabilities learnt by PRS's gradient find the relevant features in
fewer trees than uniform subspaces (rs) or than a held set of those that beat a probe (srs)? All
grow the same trees, one to a subspace of about q = p / 20 features, all candidates. Rankings: mean
importance over the subspaces that held a feature; of PRS also the probability.

A run is looked at each time it has grown ``--step`` trees. Printed are the average precision of the
ranking then, mean of seeds, and the first look at which half of the relevant features are among the
first R of the ranking, R being their number (median of seeds; none: not by the end).

    python benchmarks/research/prs_search.py --folder FOLDER [--problems madelon chain blocks]
        [--p 50000] [--draws 4000] [--seeds 3] [--rates 0.001 0.01]
"""

import argparse
import json
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))  # the modules that all benchmarks share

import numpy as np
from more_problems import PROBLEMS, write
from numpy.typing import NDArray

import srs_ooc
from srs_ooc.base.records import Iteration, Outcome
from srs_ooc.base.seeds import derive
from srs_ooc.learners.tree_learner import TreeLearner
from srs_ooc.runs.engine import ColumnSource, fit_iteration
from srs_ooc.samplers.held_out import make_folds
from srs_ooc.samplers.prs import SPREADS, DescentParams, ParametricRandomSubspace
from srs_ooc.samplers.prs_math import Truth
from srs_ooc.trees.block import Block
from srs_ooc.trees.response import Response, TrainingRows, TreeLimits

N_ROWS = 1000
RELEVANT = {"madelon": 20, "chain": 3, "blocks": 20, "linear": 20}
SHARE = 0.05
N_FOLDS, N_MODELS = 5, 100
Rankings = dict[str, NDArray[np.float64]]
"""Scores of all features by the name of what they are ranked by."""


def looks_of_engine(
    store: Path, method: str, draws: range, seed: int
) -> Iterator[tuple[int, Rankings]]:
    """Yield the scores of a run of the engine after each of so many trees."""
    with TemporaryDirectory() as scratch:
        for n in draws:
            result = srs_ooc.run(
                store, out=f"{scratch}/a.run", method=method, judge="probe", iterations=n,
                seed=seed, threads=1,
            )  # fmt: skip
            n_features = result.store.n_features
            scores = np.zeros(n_features)
            for place, record in enumerate(result.features("records")):
                scores[int(record["name"].removeprefix("f"))] = n_features - place
            yield n, {method: scores}


class Screen:
    """PRS's probabilities as a screen: trees drawn by them, importances added up.

    Parameters
    ----------
    store : Path
        The store.
    rate : float
        Of Adam.
    seed : int
        Of everything random.
    """

    def __init__(self, store: Path, rate: float, seed: int) -> None:
        self.store = srs_ooc.open_store(store)
        labels = self.store.target().astype(np.int32)
        response = Response.classes(labels, int(labels.max()) + 1)
        folds = make_folds(labels, N_FOLDS, derive(seed, 1), share=0.2)
        mean = SHARE * self.store.n_features
        capacity = round(mean + SPREADS * mean**0.5)
        asked = {"models": N_MODELS, "inclusion": SHARE, "epochs": 10**6, "learning_rate": rate}
        params = DescentParams.settle(asked, None)
        truth = Truth.of(response, folds.training)
        self.sampler = ParametricRandomSubspace(
            params, folds, truth, self.store.n_features, capacity, derive(seed, 2)
        )
        rows = TrainingRows.of(response, "gini")
        self.learner = TreeLearner(rows, TreeLimits(capacity), capacity)
        self.block = Block(capacity, self.store.n_rows, 1, tiled=True)
        self.key = derive(seed, 3)
        self.sums, self.times = (np.zeros(self.store.n_features) for _ in range(2))

    def looks(self, draws: range) -> Iterator[tuple[int, Rankings]]:
        """Yield the scores after each of so many trees."""
        with self.store.columns(mapped=True) as columns:
            source = ColumnSource(columns)
            for number in range(draws[-1]):
                self._absorb(number, self._grown(source, number))
                if number + 1 in draws:
                    by_importance = self.sums / np.maximum(self.times, 1)
                    rankings = {
                        "prs, importance": self._by_source(by_importance),
                        "prs, probability": self._by_source(self.sampler.beta),
                    }
                    yield number + 1, rankings

    def _by_source(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return scores of stored positions by positions in the source."""
        out = np.empty(len(scores))
        out[np.asarray(self.store.array("positions"))] = scores
        return out

    def _grown(self, source: ColumnSource, number: int) -> Outcome:
        subspace = self.sampler.propose(number, 0)
        iteration = Iteration(number, subspace, derive(self.key, number))
        return fit_iteration(source, self.learner, self.block, iteration)

    def _absorb(self, number: int, outcome: Outcome) -> None:
        self.sums[outcome.features] += outcome.importance
        self.times[outcome.features] += 1
        self.sampler.absorb(number, outcome)
        while self.sampler.step():
            pass


def precision(scores: NDArray[np.float64], units: list[list[int]]) -> tuple[float, float]:
    """Return the average precision of a ranking, and the share found among the first R units.

    The best of a unit's features stands for it; ties are broken by place.
    """
    order = np.argsort(-scores, kind="stable")
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    others = np.sort(rank[np.setdiff1d(np.arange(len(order)), np.concatenate(units))])
    firsts = np.sort([rank[unit].min() for unit in units])
    before = np.searchsorted(others, firsts)  # irrelevant ones that rank above
    found = np.arange(1, len(firsts) + 1)
    return float((found / (found + before)).mean()), float((found + before <= len(firsts)).mean())


def compare(
    folder: Path, problem: str, p: int, draws: range, seeds: int, rates: list[float]
) -> None:
    """Print the table of one problem."""
    found: dict[str, list[list[tuple[float, float]]]] = {}
    for seed in range(seeds):
        store = folder / f"{problem}-{p}-{seed}.zarr"
        if not store.exists():
            kind: Any = PROBLEMS[problem]
            write(kind(N_ROWS, p, RELEVANT[problem], seed), store)
        truth = json.loads(Path(f"{store}.truth.json").read_text())
        names = truth.get("blocks") or [[name] for name in truth["relevant"]]
        units = [[int(name.removeprefix("f")) for name in unit] for unit in names]
        looks = [looks_of_engine(store, method, draws, seed) for method in ("rs", "srs")]
        ways = {"": looks} | {f", rate {r}": [Screen(store, r, seed).looks(draws)] for r in rates}
        for note, several in ways.items():
            for look in several:
                for n, rankings in look:
                    for name, scores in rankings.items():
                        at = found.setdefault(name + note, [[] for _ in draws])
                        at[draws.index(n)].append(precision(scores, units))
    print(f"{problem}, p = {p:,}: average precision by trees grown, {seeds} seeds; half lead at")
    print(f"{'':32}" + "".join(f"{n:>8,}" for n in draws))
    for name, at in found.items():
        means = "".join(f"{statistics.mean(ap for ap, _ in look):8.3f}" for look in at)
        firsts = [
            next((n for n, look in zip(draws, at, strict=True) if look[s][1] >= 0.5), 10**9)
            for s in range(seeds)
        ]
        middle = statistics.median_low(firsts)
        print(f"{name:32}{means}   {middle if middle < 10**9 else 'none'}", flush=True)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument(
        "--problems", nargs="+", choices=list(RELEVANT), default=["madelon", "chain", "blocks"]
    )
    parser.add_argument("--p", type=int, default=50_000)
    parser.add_argument("--draws", type=int, default=4000)
    parser.add_argument("--step", type=int, default=500)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rates", nargs="+", type=float, default=[0.001, 0.01])
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    draws = range(asked.step, asked.draws + 1, asked.step)
    for problem in asked.problems:
        compare(asked.folder, problem, asked.p, draws, asked.seeds, asked.rates)


if __name__ == "__main__":
    main()
