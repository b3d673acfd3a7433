"""The learner of base models, its options: any estimator of scikit-learn, by held-out loss."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from math import ceil
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

import srs_ooc.extend as core
from srs_ooc.methods.models import models
from srs_ooc.methods.models.models import BaseModel, DecodedBlock, Target

SUBSPACES, PERMUTATION = "subspaces", "permutation"
MEAN, REFUSE = "mean", "refuse"
DEFAULT_FOLDS = 5
_LONGEST = 10_000
# Options of the model that is fitted on each subspace, and what follows from them.


def json_object(name: str, value: Any) -> str:
    """Return the one text that says a JSON object, or a dict: keys sorted, no spaces.

    Raises
    ------
    UsageError
        If it is none; ``name`` is the option's.
    """
    flag = core.flag_of(name)
    try:
        found = json.loads(value[:_LONGEST]) if isinstance(value, str) else value
        if not isinstance(found, Mapping):
            raise TypeError(f"it is a {type(found).__name__}")  # noqa: TRY301 (said as below)
        return json.dumps(dict(found), sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (ValueError, TypeError, RecursionError) as error:
        raise core.UsageError(
            f'{flag}: expected a JSON object such as {{"n_neighbors": 7}}, found '
            f"{str(value)[:80]!r}: {str(error)[:200]}. Names are the estimator's parameters."
        ) from error


class ModelParams(core.TreeParams):
    """What is fitted on each subspace, and how features are scored by it.

    The options of trees are there too, as they are where none is given: they are part of the
    identity, and of what is published of memory.

    Attributes
    ----------
    model : str
        What is fitted on each subspace: tree, knn, svm, linear, lda, qda, or the import path of a
        scikit-learn estimator such as sklearn.naive_bayes.GaussianNB (docs/methods/models.md).
    model_params : str
        Parameters of the estimator.
    model_importance : str | None
        Score features by how the held-out loss differs between subspaces with and without them, or
        by how it rises where their values are permuted.
    model_folds : int | None
        Folds of the rows; each is predicted by a model fitted on the others.
    model_missing : str
        Missing values: the mean of the rows fitted on, or refuse features that have some.
    """

    part, title, grown = "model", "Models other than trees", "model"
    called = "knn, svm, linear, lda, qda or an import path"
    judges = ("none",)
    library_nbytes, most_threads = 200_000_000, 1
    """scikit-learn and what it loads: 171 to 190 MB as measured, where pandas and pyarrow are
    installed beside it. Sums are not to depend on threads."""
    model: str = core.option(core.Text(), default=core.TREE, metavar="MODEL")
    model_params: str = core.option(
        core.Text(json_object), default="{}", default_text="scikit-learn's", metavar="JSON"
    )
    model_importance: str | None = core.option(
        core.Choice((SUBSPACES, PERMUTATION)),
        default_text="subspaces; permutation with --method srs",
    )
    model_folds: int | None = core.option(
        core.Whole(2, 100),
        default_text=f"{DEFAULT_FOLDS}; with --method prs or rase its own",
        metavar="K",
    )
    model_missing: str = core.option(core.Choice((MEAN, REFUSE)), default=MEAN)

    @classmethod
    def check_given(cls, given: Mapping[str, Any], *, saves_trees: bool) -> None:
        """Refuse what does not go with the model: method, judge, options of trees."""
        model, name = str(given["model"]), given["method"]
        models.check_model_name(model)
        method = core.method_of(name)
        if not method.any_model:
            able = [other for other, one in core.methods() if one.any_model]
            raise core.UsageError(
                f"--model: expected {core.TREE} with --method {name}, found {model}. Leave it out, "
                f"or choose one of the methods {', '.join(able)}."
            )
        for flag in core.TreeParams.options():
            if flag in given:
                raise core.UsageError(
                    f"{core.flag_of(flag)}: expected with --model {core.TREE} only, found "
                    f"--model {model}. Leave it out, or give what is the estimator's by "
                    "model_params."
                )
        if saves_trees:
            raise core.UsageError(
                f"--save-trees: expected with --model {core.TREE} only, found --model {model}, "
                "whose fitted models are not kept: they could be read back only by running what a "
                "file says. Leave it out."
            )
        for flag in ("model_importance", "model_folds"):
            if flag in given and core.PREDICTIONS in method.needs:
                raise core.UsageError(
                    f"{core.flag_of(flag)}: expected with a method that scores features by "
                    f"their models, found --method {name}, which has scores and folds of its own. "
                    "Leave it out."
                )
        if (judge := given.get("judge") or "none") != "none":
            raise core.UsageError(
                f"--judge: expected none with --model {model}, found {judge}: last stages "
                "and probes are of trees. Leave it out: features are ranked, with standard errors."
            )

    @classmethod
    def settle(cls, given: Mapping[str, Any], table: Any) -> Self:
        """Settle the options; features are scored unless the method does it."""
        params, name = super().settle(given, table), given["method"]
        method = core.method_of(name)
        if core.PREDICTIONS in method.needs:
            return params
        alpha = given.get("alpha", "0.5") if "alpha" in method.options() else 0
        holds = core.exact_share(str(alpha)) > 0
        importance = params.model_importance or (PERMUTATION if holds else SUBSPACES)
        if holds and importance == SUBSPACES:
            raise core.UsageError(
                f"model_importance: expected {PERMUTATION} with --method {name}, found "
                f"{SUBSPACES}: features held in every other subspace would share one score. Leave "
                "it out, or take --method rs."
            )
        folds = params.model_folds or DEFAULT_FOLDS
        return replace(params, model_importance=importance, model_folds=folds)

    @classmethod
    def reads_values(cls, options: Mapping[str, Any]) -> bool:
        """Return that estimators are fitted on values."""
        return True

    def shown(self) -> dict[str, Any]:
        """Return all but what trees have."""
        of_trees = core.TreeParams.options()
        return {name: value for name, value in self.values().items() if name not in of_trees}

    def fitting_size(self, size: int, n_candidates: int, *, is_given: bool) -> int:
        """Return q, or half of the features where none is given and it would be all.

        Some subspaces must lack a feature, to be compared with.
        """
        if self.model_importance != SUBSPACES or size < n_candidates:
            return size
        if not is_given:
            return ceil(n_candidates / 2)
        raise core.UsageError(
            f"--subspace-size: expected fewer than the {n_candidates} features there are with "
            f"model_importance={SUBSPACES}, found {size}: no subspace would lack one. "
            f"Take fewer, or model_importance={PERMUTATION}."
        )

    def check_elsewhere(self) -> None:
        """Refuse a cluster."""
        raise core.UsageError(
            f"--dask: expected --model {core.TREE}, found {self.model}: what other models give "
            "depends on the libraries and the processor of each machine, and so on which worker "
            "did what. Leave --dask out; --threads fits several subspaces at once."
        )

    def check_table(self, store: Any, count: Callable[[core.Bools], int]) -> None:
        """Refuse weights, categories, and missing values unless they are imputed."""
        manifest, named = store.manifest, f"--model {self.model}: expected"
        if "weights" in manifest.row_columns:
            raise core.UsageError(
                f"{named} rows without weights, found {store.place} with them; many estimators "
                "take none. Ingest the table without --weights, or leave --model out."
            )
        has_some = manifest.kind_counts.get("categorical")
        if has_some and (n_bad := count(store.kinds() == core.CATEGORICAL)):
            raise core.UsageError(
                f"{named} features that are numbers, found {n_bad} categorical ones. Name them "
                "with --exclude, or leave --model out."
            )
        if self.model_missing == REFUSE and manifest.n_missing_features:
            pieces = (piece.astype(np.uint32) for _, piece in store.pieces("n_missing"))
            if n_bad := count(np.concatenate([piece > 0 for piece in pieces])):
                raise core.UsageError(
                    f"model_missing={REFUSE}: expected features without missing values, found "
                    f"{n_bad} with some. Leave them out with --exclude-missing, or take "
                    "model_missing=mean."
                )

    def folds(self, task: Any, seed: int) -> core.Indices | None:
        """Return the fold of each row; None where the method splits rows.

        Groups are held out whole; classes and strata are shared out evenly.

        Raises
        ------
        UsageError
            If there are more folds than rows, or than groups of rows.
        """
        if self.model_folds is None:
            return None
        key, units = core.key_of(seed, core.Purpose.FOLDS), (task.strata, task.groups)
        return core.deal_folds(key, self.model_folds, task.target, *units, "model_folds")

    def make(
        self, task: Any, response: core.Response, spec: Any, stack: ExitStack, **how: Any
    ) -> core.Learner:
        """Return the learner; libraries have one thread until ``stack`` ends."""
        target = Target(task.target, max(1, len(task.classes)))
        folds = self.folds(task, spec.run.seed)
        learner = EstimatorLearner(self, target, folds, response.center or 0.0)
        stack.enter_context(models.one_thread())
        return learner

    def model_scores(self, n_features: int) -> core.ModelScores | None:
        """Return the sums of what features cost; None where the method scores them."""
        if self.model_importance is None:
            return None
        by_subspace = self.model_importance == SUBSPACES
        return core.ModelScores(n_features, by_subspace=by_subspace)

    def decoded_nbytes(self, n_rows: int, n_columns: int, code_nbytes: int) -> int:
        """Return the bytes of a decoded block, of its parts, and of a model on it, as published.

        Six tables of float64 may be held at once: the decoded one, the rows fitted on and those
        held out, and what a model keeps of them and works in; a model takes 8 MB beyond those.
        """
        return n_rows * n_columns * (8 * 6 + code_nbytes + 2) + 8 * core.MB

    def tried(self, shape: Any, n_columns: int, criterion: core.Criterion | None) -> core.Trial:
        """Return what a subspace takes, tried once by this process."""
        size = shape.n_rows, n_columns, shape.n_classes, shape.code_nbytes, shape.n_values
        return tried(self, size, criterion)

    def seconds(self, sampler: core.Method, shape: Any, size: int) -> tuple[float, str] | None:
        """Return the seconds of an iteration, from the one subspace that was tried."""
        criterion, n_columns = sampler.judged_by(shape.n_candidates), sampler.most_columns(size)
        trial, how = self.tried(shape, n_columns, criterion), "made-up subspace"
        seconds = trial.seconds
        if self.model_folds is None:
            seconds /= DEFAULT_FOLDS  # one model for a subspace
        n_models, n_criteria = sampler.work_each(shape.n_candidates, size)
        if n_criteria:
            seconds *= n_models
            seconds += n_criteria * trial.criterion_seconds
            how += f", and {n_criteria:,.0f} subspaces an iteration by its criterion"
        elif core.LOSS in sampler.needs:
            seconds *= n_models
            how += f", times {n_models:,.0f} models an iteration, the most there can be"
        return seconds, f"{self.model} on one {how}"

    def notes(self, sampler: core.Method, n_candidates: int, size: int) -> tuple[str, ...]:
        """Say how many models are fitted where candidates are judged by them."""
        if core.LOSS not in sampler.needs:
            return ()
        ends = sampler.most_iterations(n_candidates, size) or (1, "")
        n_iterations, (n_models, n_criteria) = ends[0], sampler.work_each(n_candidates, size)
        fitted = f"{n_iterations * n_models:,.0f} models are fitted, each by a library"
        if (criterion := sampler.judged_by(n_candidates)) is not None:
            return (
                f"--model {self.model}: {criterion.name} is computed for "
                f"{n_iterations * n_criteria:,.0f} subspaces, and {fitted}; `srs-ooc plan` says "
                "how long that takes.",
            )
        return (
            f"--model {self.model}: up to {fitted}; `srs-ooc plan` tries one and says how long "
            "that takes. Fewer rounds, candidates or models take less.",
        )

    @property
    def parameters(self) -> dict[str, Any]:
        """What the estimator is made with."""
        return dict(json.loads(self.model_params))


# What is fitted on a subspace.

_PERMUTED = 1 << 32
"""Word of the keys by which held-out values are permuted; no fold has it."""


@dataclass(eq=False)
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

    provides: ClassVar[frozenset[str]] = frozenset({core.IMPORTANCE, core.LOSS, core.PREDICTIONS})
    tiled: ClassVar[bool] = False

    params: ModelParams
    target: Target
    folds: core.Integers | None = None
    center: float = 0.0

    def __post_init__(self) -> None:
        self._model = BaseModel(self.params.model, self.params.parameters, self.target)
        self._by_permutation = self.params.model_importance == PERMUTATION
        self._parts: list[tuple[core.Indices, core.Indices]] = []
        if (folds := self.folds) is not None:
            self._parts = [
                (np.flatnonzero(folds != k), np.flatnonzero(folds == k))
                for k in range(int(folds.max()) + 1)
            ]
        target, self._baseline = self.target, 0.0  # the loss of no model
        for fitted, held in self._parts:
            self._baseline += float(target.losses(target.constant(fitted, len(held)), held).sum())
        self._baseline /= len(target.values)

    def drawn(self, key: int) -> tuple["EstimatorLearner", None]:
        """Return itself, and that the block has all rows."""
        return self, None

    def fit(
        self, block: core.Block, columns: core.Columns, iteration: core.Iteration
    ) -> core.Outcome:
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
            predict, rest = self._fitted(table, split.fitted, split.predicted, iteration.tree_key)
            said = predict(rest)
            losses = self.target.losses(said, split.predicted)
            return core.Outcome(
                features,
                np.zeros(len(features), np.int64),
                losses=np.array([float(losses.mean()) if len(losses) > 0 else 0.0]),
                predictions=(said - self.center)[None].astype(np.float32),
            )
        loss, rises = self._cross_validated(table, features, iteration.tree_key)
        gains = rises if self._by_permutation else np.full(len(features), self._baseline - loss)
        whole = np.rint(gains * float(1 << core.IMPORTANCE_BITS)).astype(np.int64)
        return core.Outcome(features, whole, losses=np.array([loss]))

    def _fitted(
        self, table: DecodedBlock, fitted: core.Integers, held: core.Integers, key: int
    ) -> tuple[Callable[[core.Floats], core.Floats], core.Floats]:
        """Return what a model fitted on some rows predicts, and the others as it wants them."""
        train, rest = table.standardised(fitted, held)
        return self._model.fit(train, fitted, key), rest

    def _judge(
        self, table: DecodedBlock, features: core.Uints32, candidates: core.Candidates, key: int
    ) -> core.Outcome:
        """Return the mean held-out loss of each candidate, or its criterion.

        All have the same keys.
        """
        first = candidates.splits[0]

        def summed(places: core.Ints32, split: core.RowSplit, number: int) -> float:
            own = core.derive(key, number)
            predict, rest = self._fitted(table.only(places), split.fitted, split.predicted, own)
            return float(self.target.errors(predict(rest), split.predicted).sum())

        if (criterion := candidates.criterion) is not None:
            rows, _ = table.standardised(first.fitted, first.predicted)
            path = core.path_of(self.params.model, is_regression=self.target.is_regression)
            losses = criterion.losses(candidates, rows, self.target.values[first.fitted], path)
        else:
            losses, _ = core.judge_in_turn(candidates, summed)
            losses /= sum(len(split.predicted) for split in candidates.splits)
        return core.Outcome(features, np.zeros(len(features), np.int64), losses=losses)

    def _cross_validated(
        self, table: DecodedBlock, features: core.Uints32, key: int
    ) -> tuple[float, core.Floats]:
        """Return the mean loss of all rows, and how much it rises where each column is permuted."""
        total, rises = 0.0, np.zeros(len(features))
        for k, (fitted, held) in enumerate(self._parts):
            predict, rest = self._fitted(table, fitted, held, core.derive(key, k))
            loss = float(self.target.losses(predict(rest), held).sum())
            total += loss
            if self._by_permutation:
                key_of_fold = core.derive(core.derive(key, _PERMUTED), k)
                for j, feature in enumerate(features.tolist()):
                    numbers = np.arange(len(held), dtype=np.uint64)
                    hashes = core.derive_array(core.derive(key_of_fold, feature), numbers)
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


@cache
def tried(
    params: ModelParams, shape: tuple[int, ...], criterion: core.Criterion | None = None
) -> core.Trial:
    """Try a model on one subspace, in another process; once for each model and shape.

    That is its rows, columns and classes (1 for numbers), the bytes of a code, and the values of
    each column. A criterion is computed for some parts of the columns too.

    Raises
    ------
    UsageError
        If there is no such estimator, it cannot be made, fitted or asked, or it ended the process.
    """
    kind = type(criterion)
    judge = criterion and (f"{kind.__module__}:{kind.__qualname__}", vars(criterion))
    made_of = {"path": models.safe_path(), "params": asdict(params), "criterion": judge}
    done = subprocess.run(
        [sys.executable, "-P", "-m", "srs_ooc.methods.models.model_learner"],
        input=json.dumps(made_of | {"shape": shape}),
        capture_output=True,
        text=True,
        check=False,
        env=None,
    )
    said = done.stdout.strip().rpartition("\n")[2]
    if done.returncode or not said:
        last = done.stderr.strip().rpartition("\n")[2]
        raise core.UsageError(
            f"--model {params.model}: expected an estimator that can be fitted, found that it "
            f"ended its process with status {done.returncode}: {last[:300]}. Take a smaller "
            "--subspace-size, or choose another model."
        )
    found = json.loads(said)
    if "error" in found:
        raise core.UsageError(found["error"])
    return core.Trial(**found)


def _criterion_seconds(
    learner: EstimatorLearner, block: core.Block, criterion: core.Criterion
) -> float:
    """Return the seconds of one criterion among as many as take a while, each size as likely."""
    rows, count = np.arange(block.n_rows, dtype=np.int32), 1
    while True:
        sizes = 1 + np.arange(count) % block.n_columns
        places = np.concatenate([np.arange(size, dtype=np.int32) for size in sizes])
        parts = core.Candidates(
            places, np.cumsum([0, *sizes]), (core.RowSplit(rows, rows[:0]),), criterion
        )
        started = time.monotonic()
        _fit(learner, block, parts)
        seconds = time.monotonic() - started
        if seconds >= _LONG_ENOUGH or count >= _MOST_SETS:
            return seconds / count
        count *= 2


def _fit(
    learner: EstimatorLearner, block: core.Block, candidates: core.Candidates | None = None
) -> None:
    features = np.arange(block.n_columns, dtype=np.uint32)
    learner.fit(
        block,
        core.Columns(features, features),
        core.Iteration(0, core.Subspace(features, candidates), 1),
    )


def _made_up_block(n_rows: int, code_nbytes: int, n_values: int, n_columns: int) -> core.Block:
    block = core.Block(n_columns, n_rows, code_nbytes, tiled=False, n_values=n_values)
    for j, column in enumerate(block.codes.view(f"u{code_nbytes}").reshape(-1, n_rows)):
        hashes = core.derive_array(2 + j, np.arange(n_rows, dtype=np.uint64))
        column[:] = core.scale_below(hashes, max(2, n_values))
    if block.values is not None:
        block.values[:] = np.linspace(-1.0, 1.0, n_values)
    return block


def main() -> None:
    """Try what standard input asks for, and print what it took as JSON."""
    asked = json.loads(sys.stdin.read())
    sys.path[:], judge = asked["path"], asked["criterion"]
    criterion = judge and core.part_at(judge[0], "criterion")(**judge[1])
    params, before = ModelParams(**asked["params"]), core.resident_nbytes()
    n_rows, n_columns, n_classes, code_nbytes, n_values = asked["shape"]
    try:
        # Classes or numbers at random: noise takes a model as much as anything.
        hashes = core.derive_array(1, np.arange(n_rows, dtype=np.uint64))
        values = core.scale_below(hashes, n_classes).astype(np.int32)
        target = Target(hashes / float(1 << 64) if n_classes == 1 else values, n_classes)
        folds = np.arange(n_rows) % (params.model_folds or DEFAULT_FOLDS)
        learner = EstimatorLearner(params, target, folds)
        with models.one_thread():
            block_of = partial(_made_up_block, n_rows, code_nbytes, n_values)
            # What loads with the first fit counts as library, whatever size that has.
            _fit(learner, block_of(min(2, n_columns)))
            libraries = max(0, core.resident_nbytes() - before)
            block = block_of(n_columns)
            started, size = time.monotonic(), core.resident_nbytes()
            with suppress(OSError):  # the largest size counts from now on, where the system can
                Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
            _fit(learner, block)
            seconds = time.monotonic() - started
            of_criterion = _criterion_seconds(learner, block, criterion) if criterion else 0.0
            taken = max(0, core.peak_resident_nbytes() - size)
            found = asdict(core.Trial(libraries, taken, seconds, of_criterion))
    except core.SrsOocError as error:
        found = {"error": str(error)}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
