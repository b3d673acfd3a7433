"""PRS and RaSE on one small file: samplers and models without a store."""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score
from sklearn.model_selection import cross_val_score
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from srs_ooc.base.records import Iteration, RowSplit, Subspace
from srs_ooc.base.seeds import key_of
from srs_ooc.evidence.tally import Tally
from srs_ooc.learners.model_learner import EstimatorLearner
from srs_ooc.learners.models import TREE, TREE_MODEL, ModelParams, Target, one_thread
from srs_ooc.learners.tree_learner import Columns, Learner, TreeLearner
from srs_ooc.samplers.base import SamplerContext, method_of
from srs_ooc.samplers.prs import FINAL
from srs_ooc.trees.block import Block
from srs_ooc.trees.kernel import judge_all_at_once
from srs_ooc.trees.response import Response, TrainingRows, TreeLimits

PARTS = ("train", "valid", "test")
MOST_CODE = 60_000


def spaced(values: NDArray[np.float64]) -> NDArray[np.uint16]:
    """Return 16-bit codes in proportion to values.

    So thresholds midway between codes are midway between values, as in scikit-learn's trees.
    """
    low, high = values.min(), values.max()
    codes: NDArray[np.float64] = np.round((values - low) * (MOST_CODE / (high - low)))
    return codes.astype(np.uint16)


class Problem:
    """A file's rows: first those to train on, then those held out, then those of the test."""

    def __init__(self, path: Path) -> None:
        data = np.load(path)
        x = np.concatenate([data[f"X_{part}"] for part in PARTS]).T
        self.y = np.concatenate([data[f"y_{part}"] for part in PARTS])
        self.n_train = len(data["y_train"])
        self.n_seen = self.n_train + len(data["y_valid"])
        self.codes = np.stack([spaced(row) for row in x])
        self.is_regression = len(np.unique(self.y)) > 2
        self.impurity = "variance" if self.is_regression else "gini"

    def seen(self) -> Response:
        """Return what the rows before the test say."""
        y = self.y[: self.n_seen]
        return Response.targets(y) if self.is_regression else Response.classes(y.astype(int), 2)

    def padded(self, seen: Response) -> Response:
        """Return the same with test rows that say nothing: they are never fitted on."""
        n_more = len(self.y) - self.n_seen
        labels = np.pad(seen.labels, (0, n_more))
        channels = np.pad(seen.channels, ((0, 0), (0, n_more)))
        return Response(labels, seen.n_classes, channels, seen.center, seen.scale)

    def score(self, said: NDArray[np.floating[Any]], center: float | None) -> float:
        """Return R2 of the mean, or the accuracy of the majority, of what each model said."""
        truth = self.y[self.n_seen :]
        if center is not None:
            errors = truth - said.mean(0)[:, 0] - center
            return float(1 - (errors**2).mean() / truth.var())
        majority = (said.argmax(2) == 1).mean(0) > 0.5
        return float((majority == (truth == 1)).mean())


def prs_learner_of(problem: Problem, seen: Response, model: str) -> Learner:
    """Return what fits trees, or scikit-learn's models with its defaults, to a problem's rows."""
    if model == "tree":
        p = len(problem.codes)
        limits = TreeLimits(p, impurity=problem.impurity, splitter="best")
        rows = TrainingRows.of(problem.padded(seen), problem.impurity)
        return TreeLearner(rows, limits, p)
    params = ModelParams.settle({"model": model}, None)
    if problem.is_regression:
        return EstimatorLearner(params, Target(problem.y, 1), center=float(seen.center or 0))
    return EstimatorLearner(params, Target(problem.y.astype(np.int32), 2))


def run_prs(
    path: Path,
    relevant: list[int],
    epochs: int,
    patience: int | None,
    model: str = "tree",
    seed: int = 0,
) -> dict[str, float]:
    """Run one file with the paper's options; return what it came to."""
    problem, begun = Problem(path), time.process_time()
    seen, p = problem.seen(), len(problem.codes)
    method = method_of("prs")
    given = {"epochs": epochs, "validation": "by place"}
    given |= {} if patience is None else {"patience": patience}
    held_out = np.arange(problem.n_train, problem.n_seen, dtype=np.int32)
    context = SamplerContext(
        n_features=p,
        subspace_size=p,
        key=key_of(seed, 1),
        tally=Tally(p),
        response=seen,
        validation=held_out,
    )
    sampler: Any = method.settle(given, None).make(context)
    grower = Grower(problem, prs_learner_of(problem, seen, model))
    iteration, said = 0, []
    while not sampler.done(iteration):
        if sampler.step():
            continue
        subspace = sampler.propose(iteration, 0)
        if sampler.phase == FINAL:
            said.append(grower.on_test_rows(subspace, iteration))
        sampler.absorb(iteration, grower.fit(subspace, iteration))
        iteration += 1
    is_relevant = np.isin(np.arange(p), relevant)
    return {
        "score": problem.score(np.stack(said), seen.center),
        "ap": float(average_precision_score(is_relevant, sampler.best)),
        "sum": float(sampler.best.sum()),
        "models": iteration,
        "best_epoch": sampler.best_epoch,
        "epochs": sampler.epoch,
        "seconds": time.process_time() - begun,
    }


class Grower:
    """Has models fitted on subspaces of a problem."""

    def __init__(self, problem: Problem, learner: Learner) -> None:
        n_rows = len(problem.y)
        self._problem, self._learner = problem, learner
        self._block = Block(len(problem.codes), n_rows, 2, tiled=False)
        codes = self._block.codes.view(np.uint16)
        self._columns = codes[: problem.codes.size].reshape(problem.codes.shape)
        self._test = RowSplit(
            np.arange(problem.n_train, dtype=np.int32),
            np.arange(problem.n_seen, n_rows, dtype=np.int32),
        )

    def fit(self, subspace: Subspace, number: int) -> Any:
        """Return the outcome of a subspace."""
        features = subspace.features
        np.take(self._problem.codes, features, axis=0, out=self._columns[: len(features)])
        work = Iteration(number, subspace, key_of(0, 2, number))
        return self._learner.fit(self._block, Columns(features, features), work)

    def on_test_rows(self, subspace: Subspace, number: int) -> NDArray[np.float32]:
        """Return what the same model says of the test rows."""
        outcome = self.fit(Subspace(subspace.features, split=self._test), number)
        said: NDArray[np.float32] = outcome.predictions[0]
        return said


N_COMPARED = 30
"""Subspaces that scikit-learn judges too."""


def run_rase(
    path: Path, relevant: list[int], options: dict[str, Any], model: str
) -> dict[str, float]:
    """Run one file with the paper's options but for some; return what it came to."""
    if model != TREE:
        with one_thread():
            return _run(Problem(path), relevant, options, model)
    return _run(Problem(path), relevant, options, model)


def _run(
    problem: Problem, relevant: list[int], options: dict[str, Any], model: str
) -> dict[str, float]:
    seen, p = problem.seen(), len(problem.codes)
    judge = Judge(problem, seen, model)
    begun, sampler = time.process_time(), make_sampler(problem, seen, options)
    iteration = 0
    while not sampler.done(iteration):
        sampler.absorb(iteration, judge.fit(sampler.propose(iteration, 0), iteration))
        iteration += 1
    seconds = time.process_time() - begun
    grower = Grower(problem, rase_learner_of(problem, seen, model, problem.padded(seen)))
    said = [grower.on_test_rows(Subspace(own), t) for t, own in enumerate(sampler.best)]
    is_relevant = np.isin(np.arange(p), relevant)
    found = {
        "score": problem.score(np.stack(said), seen.center),
        "ap": float(average_precision_score(is_relevant, sampler.score)),
        "size": float(np.mean([len(own) for own in sampler.best])),
        "best_round": sampler.best_round + 1,
        "seconds": seconds,
    }
    if model == TREE:
        found |= speeds(problem, judge, make_sampler(problem, seen, options).propose(0, 0))
    return found


def rase_learner_of(problem: Problem, seen: Response, model: str, response: Response) -> Any:
    """Return what fits models on the rows of ``response``, which are the first of the problem's."""
    p, n_rows = len(problem.codes), len(response.labels)
    if model == TREE:
        limits = TreeLimits(p, impurity=problem.impurity, splitter="best")
        return TreeLearner(TrainingRows.of(response, problem.impurity), limits, p, candidates=True)
    y = problem.y[:n_rows]
    target = Target(y, 1) if problem.is_regression else Target(y.astype(np.int32), 2)
    return EstimatorLearner(replace(TREE_MODEL, model=model), target, center=seen.center or 0.0)


def make_sampler(problem: Problem, seen: Response, options: dict[str, Any]) -> Any:
    """Return the sampler with the paper's options; D follows from the training rows alone."""
    method, p = method_of("rase"), len(problem.codes)
    table = SimpleNamespace(
        n_rows=problem.n_train, n_candidates=p, n_classes=1 if problem.is_regression else 2
    )
    params = method.settle(options | {"validation": "by place"}, table)
    held_out = np.arange(problem.n_train, problem.n_seen, dtype=np.int32)
    context = SamplerContext(
        n_features=p,
        subspace_size=p,
        key=key_of(0, 1),
        tally=Tally(p),
        response=seen,
        validation=held_out,
    )
    return params.make(context)


class Judge:
    """Judges subspaces on the rows before the test, as a run does."""

    def __init__(self, problem: Problem, seen: Response, model: str = TREE) -> None:
        p = len(problem.codes)
        self._codes = problem.codes[:, : problem.n_seen]
        self._block = Block(p, problem.n_seen, 2, tiled=False)
        self._columns = self._block.codes.view(np.uint16)[: self._codes.size]
        self._seen = seen
        self._limits = TreeLimits(p, impurity=problem.impurity, splitter="best")
        self._learner = rase_learner_of(problem, seen, model, seen)

    def n_trees(self, subspace: Subspace) -> int:
        """Judge the candidates of a subspace; return how many trees that took."""
        features, candidates = subspace.features, subspace.candidates
        assert candidates is not None
        self._page_in(features)
        keys = np.arange(len(candidates.splits), dtype=np.uint64)
        judged = judge_all_at_once(
            self._block, features, candidates, self._seen, keys, self._limits
        )
        assert judged is not None
        return judged[1]

    def fit(self, subspace: Subspace, number: int) -> Any:
        """Return the outcome of a subspace."""
        features = subspace.features
        self._page_in(features)
        work = Iteration(number, subspace, key_of(0, 2, number))
        return self._learner.fit(self._block, Columns(features, features), work)

    def _page_in(self, features: NDArray[np.uint32]) -> None:
        columns = self._columns[: len(features) * self._codes.shape[1]]
        columns.reshape(len(features), -1)[:] = self._codes[features]


def speeds(problem: Problem, judge: Judge, subspace: Subspace) -> dict[str, float]:
    """Return models a second of the first iteration, here and by loops over scikit-learn.

    A subspace counts as ten models, judged to the end or given up; trees are those grown.
    """
    c = subspace.candidates
    assert c is not None
    n_models = (len(c.bounds) - 1) * len(c.splits)
    begun = time.process_time()
    n_trees = judge.n_trees(subspace)
    seconds = time.process_time() - begun
    own = n_models / seconds
    x = problem.codes[:, : problem.n_seen].T.astype(np.float32)
    y = problem.y[: problem.n_seen]
    bounds = zip(c.bounds[:N_COMPARED], c.bounds[1:], strict=False)
    members = [subspace.features[c.places[first:end]] for first, end in bounds]
    kind = DecisionTreeRegressor if problem.is_regression else DecisionTreeClassifier

    def loop() -> None:
        for own_features in members:
            some = np.ascontiguousarray(x[:, own_features])
            for split in c.splits:
                tree = kind(random_state=0).fit(some[split.fitted], y[split.fitted])
                tree.predict(some[split.predicted])

    def whole_loop() -> None:
        rows = slice(problem.n_train)
        for own_features in members:
            cross_val_score(kind(random_state=0), x[rows, own_features], y[rows], cv=10)

    n_compared = N_COMPARED * len(c.splits)
    loops = n_compared / _seconds(loop), n_compared / _seconds(whole_loop)
    return {
        "models_a_second": own,
        "trees_a_second": n_trees / seconds,
        "times_fit_predict": own / loops[0],
        "times_cross_val_score": own / loops[1],
    }


def _seconds(work: Callable[[], object]) -> float:
    begun = time.process_time()
    work()
    return time.process_time() - begun
