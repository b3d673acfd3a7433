"""The learner of base models: any estimator of scikit-learn, scored by held-out loss."""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache, cached_property, partial
from pathlib import Path
from typing import ClassVar

import numpy as np

from srs_ooc.base.arrays import Floats, Indices, Integers, Ints32, Uints32
from srs_ooc.base.budget import peak_resident_nbytes, resident_nbytes
from srs_ooc.base.errors import SrsOocError, UsageError
from srs_ooc.base.options import part_at
from srs_ooc.base.records import Candidates, Criterion, Iteration, Outcome, RowSplit, Subspace
from srs_ooc.base.seeds import derive, derive_array, scale_below
from srs_ooc.learners import models
from srs_ooc.learners.models import DEFAULT_FOLDS, BaseModel, DecodedBlock, ModelParams, Target
from srs_ooc.learners.tree_learner import Columns
from srs_ooc.samplers.base import IMPORTANCE, LOSS, PREDICTIONS
from srs_ooc.trees.block import Block
from srs_ooc.trees.kernel import judge_in_turn
from srs_ooc.trees.response import IMPORTANCE_BITS

_PERMUTED = 1 << 32
"""Word of the keys by which held-out values are permuted; no fold has it."""


class EstimatorLearner:
    """Fits estimators on the rows outside each fold and scores them on the fold's.

    The importance of a feature is how much less the model of its subspace loses than no model, the
    same for all features of the subspace; or how much more it loses where the feature's held-out
    values are permuted. Where a subspace splits the rows itself, a model is fitted on some of them
    and predicts others, and there is no importance. Where it holds candidates, parts of its
    columns, each is judged by what models of it lose on the rows that they were not fitted on, or
    by an information criterion of the rows that there are to fit on.

    Parameters
    ----------
    params : ModelParams
        The model, and how features are scored by it.
    target : Target
        Of all rows.
    folds : int (n_rows,) or None
        The fold of each row, from 0; None where subspaces split the rows.
    center : float
        What is taken off predicted numbers for a sampler.
    """

    provides: ClassVar[frozenset[str]] = frozenset({IMPORTANCE, LOSS, PREDICTIONS})
    tiled: ClassVar[bool] = False

    def __init__(
        self,
        params: ModelParams,
        target: Target,
        folds: Integers | None = None,
        center: float = 0.0,
    ) -> None:
        self.params, self.target, self._center = params, target, center
        self._by_permutation = params.model_importance == models.PERMUTATION
        self._folds: list[tuple[Indices, Indices]] = []
        if folds is not None:
            self._folds = [
                (np.flatnonzero(folds != k), np.flatnonzero(folds == k))
                for k in range(int(folds.max()) + 1)
            ]
        self._baseline = 0.0  # the loss of no model
        for fitted, held in self._folds:
            self._baseline += float(target.losses(target.constant(fitted, len(held)), held).sum())
        self._baseline /= len(target.values)

    @cached_property
    def _model(self) -> BaseModel:
        return BaseModel(self.params.model, self.params.parameters, self.target)

    def drawn(self, key: int) -> tuple["EstimatorLearner", None]:
        """Return itself, and that the block has all rows."""
        return self, None

    def fit(self, block: Block, columns: Columns, iteration: Iteration) -> Outcome:
        """Fit the models of an iteration on ``columns`` of ``block``.

        Raises
        ------
        UsageError
            If the estimator cannot be fitted on them.
        """
        models.pin_worker()
        features, split = iteration.features, iteration.subspace.split
        table = DecodedBlock.of(block, len(features))
        if iteration.subspace.candidates is not None:
            return self._judge(table, features, iteration.subspace.candidates, iteration.tree_key)
        if split is not None:
            return self._split(table, features, split, iteration.tree_key)
        loss, rises = self._cross_validated(table, features, iteration.tree_key)
        gains = rises if self._by_permutation else np.full(len(features), self._baseline - loss)
        whole = np.rint(gains * float(1 << IMPORTANCE_BITS)).astype(np.int64)
        return Outcome(features, whole, losses=np.array([loss]))

    def _fitted(
        self, table: DecodedBlock, fitted: Integers, held: Integers, key: int
    ) -> tuple[Callable[[Floats], Floats], Floats]:
        """Return what a model fitted on some rows predicts, and the others as it wants them."""
        train, rest = table.standardised(fitted, held)
        return self._model.fit(train, fitted, key), rest

    def _split(self, table: DecodedBlock, features: Uints32, split: RowSplit, key: int) -> Outcome:
        predict, rest = self._fitted(table, split.fitted, split.predicted, key)
        said = predict(rest)
        losses = self.target.losses(said, split.predicted)
        return Outcome(
            features,
            np.zeros(len(features), np.int64),
            losses=np.array([float(losses.mean()) if len(losses) > 0 else 0.0]),
            predictions=(said - self._center)[None].astype(np.float32),
        )

    def _judge(
        self, table: DecodedBlock, features: Uints32, candidates: Candidates, key: int
    ) -> Outcome:
        """Return the mean held-out loss of each candidate, or its criterion.

        All have the same keys.
        """
        if (criterion := candidates.criterion) is not None:
            fitted, held = candidates.splits[0].fitted, candidates.splits[0].predicted
            rows, _ = table.standardised(fitted, held)
            path = models.path_of(self.params.model, is_regression=self.target.is_regression)
            losses = criterion.losses(candidates, rows, self.target.values[fitted], path)
            return Outcome(features, np.zeros(len(features), np.int64), losses=losses)

        def summed(places: Ints32, split: RowSplit, number: int) -> float:
            own = derive(key, number)
            predict, rest = self._fitted(table.only(places), split.fitted, split.predicted, own)
            return float(self.target.errors(predict(rest), split.predicted).sum())

        losses, _ = judge_in_turn(candidates, summed)
        losses /= sum(len(split.predicted) for split in candidates.splits)
        return Outcome(features, np.zeros(len(features), np.int64), losses=losses)

    def _cross_validated(
        self, table: DecodedBlock, features: Uints32, key: int
    ) -> tuple[float, Floats]:
        """Return the mean loss of all rows, and how much it rises where each column is permuted."""
        total, rises = 0.0, np.zeros(len(features))
        for k, (fitted, held) in enumerate(self._folds):
            predict, rest = self._fitted(table, fitted, held, derive(key, k))
            loss = float(self.target.losses(predict(rest), held).sum())
            total += loss
            if self._by_permutation:
                key_of_fold = derive(derive(key, _PERMUTED), k)
                for j, feature in enumerate(features.tolist()):
                    numbers = np.arange(len(held), dtype=np.uint64)
                    hashes = derive_array(derive(key_of_fold, feature), numbers)
                    kept = rest[:, j].copy()
                    rest[:, j] = kept[np.argsort(hashes, kind="stable")]
                    rises[j] += float(self.target.losses(predict(rest), held).sum()) - loss
                    rest[:, j] = kept
        n_rows = len(self.target.values)
        return total / n_rows, rises / n_rows


# One subspace of a model, tried in a process of its own: what it takes of memory and time.
#
# What an estimator takes is known to nobody before it runs. So it is run once, on made-up columns
# of the run's shape, before a run is made or gone on with; and what it refuses is heard of then.

_LONG_ENOUGH, _MOST_SETS = 0.1, 1024
"""Seconds, and parts of the columns, after which a criterion is timed."""


@dataclass(frozen=True)
class Trial:
    """What one subspace took.

    Attributes
    ----------
    library_nbytes : int
        Of the libraries that were loaded for it.
    work_nbytes : int
        At most, beyond those and the block.
    seconds : float
        Of all folds, once everything is loaded.
    criterion_seconds : float
        Of the criterion of one part of the columns, of any size, as one of many.
    """

    library_nbytes: int
    work_nbytes: int
    seconds: float
    criterion_seconds: float = 0.0


@cache
def tried(
    params: ModelParams,
    n_rows: int,
    n_columns: int,
    n_classes: int,
    code_nbytes: int,
    n_values: int,
    criterion: Criterion | None = None,
) -> Trial:
    """Try a model on one subspace, in another process; once for each model and shape.

    ``n_classes`` is 1 for numbers. A criterion is computed for some parts of the columns too.

    Raises
    ------
    UsageError
        If there is no such estimator, it cannot be made, fitted or asked, or it ended the process.
    """
    kind, shape = type(criterion), (n_rows, n_columns, n_classes, code_nbytes, n_values)
    judge = criterion and (f"{kind.__module__}:{kind.__qualname__}", vars(criterion))
    made_of = {"path": models.safe_path(), "params": asdict(params), "criterion": judge}
    done = subprocess.run(
        [sys.executable, "-P", "-m", "srs_ooc.learners.model_learner"],
        input=json.dumps(made_of | {"shape": shape}),
        capture_output=True,
        text=True,
        check=False,
        env=None,
    )
    said = done.stdout.strip().rpartition("\n")[2]
    if done.returncode or not said:
        last = done.stderr.strip().rpartition("\n")[2]
        raise UsageError(
            f"--model {params.model}: expected an estimator that can be fitted, found that it "
            f"ended its process with status {done.returncode}: {last[:300]}. Take a smaller "
            "--subspace-size, or choose another model."
        )
    found = json.loads(said)
    if "error" in found:
        raise UsageError(found["error"])
    return Trial(**found)


def _criterion_seconds(learner: EstimatorLearner, block: Block, criterion: Criterion) -> float:
    """Return the seconds of one criterion among as many as take a while, each size as likely."""
    rows, count = np.arange(block.n_rows, dtype=np.int32), 1
    while True:
        sizes = 1 + np.arange(count) % block.n_columns
        places = np.concatenate([np.arange(size, dtype=np.int32) for size in sizes])
        parts = Candidates(places, np.cumsum([0, *sizes]), (RowSplit(rows, rows[:0]),), criterion)
        started = time.monotonic()
        _fit(learner, block, parts)
        seconds = time.monotonic() - started
        if seconds >= _LONG_ENOUGH or count >= _MOST_SETS:
            return seconds / count
        count *= 2


def _fit(learner: EstimatorLearner, block: Block, candidates: Candidates | None = None) -> None:
    features = np.arange(block.n_columns, dtype=np.uint32)
    learner.fit(block, Columns(features, features), Iteration(0, Subspace(features, candidates), 1))


def _made_up_target(n_rows: int, n_classes: int) -> Target:
    """Return classes or numbers at random: noise takes a model as much as anything."""
    hashes = derive_array(1, np.arange(n_rows, dtype=np.uint64))
    if n_classes == 1:
        return Target(hashes / float(1 << 64), n_classes)
    return Target(scale_below(hashes, n_classes).astype(np.int32), n_classes)


def _made_up_block(n_rows: int, code_nbytes: int, n_values: int, n_columns: int) -> Block:
    block = Block(n_columns, n_rows, code_nbytes, tiled=False, n_values=n_values)
    for j, column in enumerate(block.codes.view(f"u{code_nbytes}").reshape(-1, n_rows)):
        hashes = derive_array(2 + j, np.arange(n_rows, dtype=np.uint64))
        column[:] = scale_below(hashes, max(2, n_values))
    if block.values is not None:
        block.values[:] = np.linspace(-1.0, 1.0, n_values)
    return block


def main() -> None:
    """Try what standard input asks for, and print what it took as JSON."""
    asked = json.loads(sys.stdin.read())
    sys.path[:], judge = asked["path"], asked["criterion"]
    criterion = judge and part_at(judge[0], "criterion")(**judge[1])
    params, before = ModelParams(**asked["params"]), resident_nbytes()
    n_rows, n_columns, n_classes, code_nbytes, n_values = asked["shape"]
    try:
        models.load(params, is_regression=n_classes == 1)
        with models.one_thread():
            folds = np.arange(n_rows) % (params.model_folds or DEFAULT_FOLDS)
            learner = EstimatorLearner(params, _made_up_target(n_rows, n_classes), folds)
            block_of = partial(_made_up_block, n_rows, code_nbytes, n_values)
            # What loads with the first fit counts as library, whatever size that has.
            _fit(learner, block_of(min(2, n_columns)))
            libraries = max(0, resident_nbytes() - before)
            block = block_of(n_columns)
            started, size = time.monotonic(), resident_nbytes()
            with suppress(OSError):  # the largest size counts from now on, where the system can
                Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
            _fit(learner, block)
            seconds = time.monotonic() - started
            of_criterion = _criterion_seconds(learner, block, criterion) if criterion else 0.0
            taken = max(0, peak_resident_nbytes() - size)
            found = asdict(Trial(libraries, taken, seconds, of_criterion))
    except SrsOocError as error:
        found = {"error": str(error)}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
