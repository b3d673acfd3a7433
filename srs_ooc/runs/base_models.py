"""Base models on a run's table: what it must not hold, its folds, and the learner."""

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import UsageError
from srs_ooc.base.seeds import Purpose, key_of
from srs_ooc.evidence.decoys import deal_folds
from srs_ooc.learners.model_learner import EstimatorLearner
from srs_ooc.learners.models import REFUSE, TREE, Target
from srs_ooc.runs.inputs import Inputs
from srs_ooc.runs.spec import RunSpec
from srs_ooc.runs.task import Task
from srs_ooc.store.manifest import CATEGORICAL
from srs_ooc.store.store import Store
from srs_ooc.trees.response import Response


def check_table(spec: RunSpec, store: Store, inputs: Inputs) -> None:
    """Refuse what a model of numbers cannot be fitted on.

    Raises
    ------
    UsageError
        If rows are weighted, a feature is categorical, or one has missing values that were not to
        be imputed.
    """
    if spec.model.is_tree:
        return
    named = f"--model {spec.model.model}: expected"
    if "weights" in store.manifest.row_columns:
        raise UsageError(
            f"{named} rows without weights, found {store.place} with them; many estimators take "
            "none. Ingest the table without --weights, or leave --model out."
        )
    if store.manifest.kind_counts.get("categorical"):
        n_bad = _count(store.kinds() == CATEGORICAL, inputs)
        if n_bad:
            raise UsageError(
                f"{named} features that are numbers, found {n_bad} categorical ones. Name them "
                "with --exclude, or leave --model out."
            )
    if spec.model.model_missing == REFUSE and store.manifest.n_missing_features:
        pieces = (piece.astype(np.uint32) for _, piece in store.pieces("n_missing"))
        is_bad = np.concatenate([piece > 0 for piece in pieces])
        n_bad = _count(is_bad, inputs)
        if n_bad:
            raise UsageError(
                f"--model-missing {REFUSE}: expected features without missing values, found "
                f"{n_bad} with some. Leave them out with --exclude-missing, or take "
                "--model-missing mean."
            )


def check_cluster(spec: RunSpec) -> None:
    """Refuse workers elsewhere for a model that may give other last digits there.

    Raises
    ------
    UsageError
        If the model is no tree.
    """
    if not spec.model.is_tree:
        raise UsageError(
            f"--dask: expected --model {TREE}, found {spec.model.model}: what other models give "
            "depends on the libraries and the processor of each machine, and so on which worker "
            "did what. Leave --dask out; --threads fits several subspaces at once."
        )


def _count(is_bad: NDArray[np.bool_], inputs: Inputs) -> int:
    is_bad = is_bad.copy()
    if inputs.excluded is not None:
        is_bad[inputs.excluded] = False
    return int(np.count_nonzero(is_bad))


def folds_of(spec: RunSpec, task: Task) -> NDArray[np.intp] | None:
    """Return the fold of each row; None where the method splits rows, and for trees.

    Groups are held out whole; classes and strata are shared out evenly.

    Raises
    ------
    UsageError
        If there are more folds than rows, or than groups of rows.
    """
    if spec.model.model_folds is None:
        return None
    key = key_of(spec.seed, Purpose.FOLDS)
    n_folds = spec.model.model_folds
    return deal_folds(key, n_folds, task.target, task.strata, task.groups, "--model-folds")


def model_learner(spec: RunSpec, task: Task, response: Response) -> EstimatorLearner:
    """Return the learner of a run whose model is no tree."""
    return EstimatorLearner(
        spec.model,
        Target(task.target, max(1, len(task.classes))),
        folds_of(spec, task),
        response.center or 0.0,
    )
