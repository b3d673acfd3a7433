"""Random Subspace Ensemble on one small file: sampler and trees without a store."""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from prs_in_memory import Grower, Problem
from sklearn.metrics import average_precision_score
from sklearn.model_selection import cross_val_score
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from srs_ooc.base.records import Iteration, Subspace
from srs_ooc.base.seeds import key_of
from srs_ooc.evidence.tally import Tally
from srs_ooc.learners.model_learner import EstimatorLearner
from srs_ooc.learners.models import TREE, TREE_MODEL, Target, one_thread
from srs_ooc.learners.tree_learner import Columns, TreeLearner
from srs_ooc.samplers.base import SamplerContext, method_of
from srs_ooc.trees.block import Block
from srs_ooc.trees.kernel import judge_all_at_once
from srs_ooc.trees.response import Response, TrainingRows, TreeLimits

N_COMPARED = 30
"""Subspaces that scikit-learn judges too."""


def run_file(
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
    grower = Grower(problem, learner_of(problem, seen, model, problem.padded(seen)))
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


def learner_of(problem: Problem, seen: Response, model: str, response: Response) -> Any:
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
        n_items=p,
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
        self._learner = learner_of(problem, seen, model, seen)

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
