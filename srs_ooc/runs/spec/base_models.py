"""Which options go with models other than trees."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from srs_ooc.base.errors import UsageError
from srs_ooc.base.options import exact_share
from srs_ooc.learners.models import (
    DEFAULT_FOLDS,
    PERMUTATION,
    SUBSPACES,
    TREE,
    ModelParams,
    check_model_name,
)
from srs_ooc.learners.tree_learner import TreeParams
from srs_ooc.runs.spec.identity import RunParams, RunSpec
from srs_ooc.runs.spec.needs import TrainingShape
from srs_ooc.samplers.base import Fits, Method, method_names, method_of


def settle_model(
    given: Mapping[str, Any], shape: TrainingShape, *, saves_trees: bool
) -> ModelParams:
    """Return the model of a new run as settled from the options given, method included.

    Raises
    ------
    UsageError
        If the options do not go together.
    """
    model = ModelParams.settle(given, shape)
    name = given["method"]
    if model.is_tree or name not in method_names():
        return model
    check_model_name(model.model)
    method = method_of(name)
    _check_method(model, name, method)
    _check_no_trees(model, given, saves_trees=saves_trees)
    if method.splits_rows:
        for option in ("model_importance", "model_folds"):
            if option in given:
                raise UsageError(
                    f"--{option.replace('_', '-')}: expected with a method that scores features by "
                    f"their models, found --method {name}, which has scores and folds of its own. "
                    "Leave it out."
                )
        return model
    holds = "alpha" in method.params.options() and exact_share(str(given.get("alpha", "0.5"))) > 0
    importance = model.model_importance or (PERMUTATION if holds else SUBSPACES)
    if holds and importance == SUBSPACES:
        raise UsageError(
            f"--model-importance: expected {PERMUTATION} with --method {name}, found {SUBSPACES}: "
            "features held in every other subspace would share one score. Leave it out, or take "
            "--method rs."
        )
    folds = model.model_folds or DEFAULT_FOLDS
    return replace(model, model_importance=importance, model_folds=folds)


def check_judge(run: RunParams, model: ModelParams) -> None:
    """Refuse a relevance test for models that are no trees.

    Raises
    ------
    UsageError
        If one was asked for.
    """
    if not model.is_tree and run.judge != "none":
        raise UsageError(
            f"--judge: expected none with --model {model.model}, found {run.judge}: closing stages "
            "and probes are of trees. Leave it out: features are ranked, with standard errors."
        )


def check_subspaces(model: ModelParams, n_candidates: int, subspace_size: int) -> None:
    """Refuse subspaces that cannot differ where their losses are compared.

    Raises
    ------
    UsageError
        If every subspace would hold all features.
    """
    if model.model_importance == SUBSPACES and subspace_size >= n_candidates:
        raise UsageError(
            f"--subspace-size: expected fewer than the {n_candidates} features there are with "
            f"--model-importance {SUBSPACES}, found {subspace_size}: no subspace would lack one. "
            f"Take fewer, or --model-importance {PERMUTATION}."
        )


def fits_of(spec: RunSpec, n_candidates: int) -> Fits:
    """Return what an iteration fits, of ``n_candidates`` features that may be drawn."""
    return spec.method.fits(spec.sampler, n_candidates, spec.subspace_size)


def notes_of(spec: RunSpec, n_rows: int, n_candidates: int) -> tuple[str, ...]:
    """Return what is worth saying before a run starts."""
    notes = spec.method.notes(spec.sampler, n_rows, n_candidates, 1 + spec.decoys)
    if spec.model.is_tree or not spec.method.judges_candidates:
        return notes
    ends = spec.method.most_iterations(spec.sampler, n_candidates, spec.subspace_size)
    n_iterations, fits = ends[0] if ends else 1, fits_of(spec, n_candidates)
    fitted = f"{n_iterations * fits.n_models:,.0f} models are fitted, each by a library"
    if fits.n_criteria:
        n_criteria = n_iterations * fits.n_criteria
        return (
            *notes,
            f"--model {spec.model.model}: {spec.method.criterion(spec.sampler)} is computed for "
            f"{n_criteria:,.0f} subspaces, and {fitted}; `srs-ooc plan` says how long that takes.",
        )
    return (
        *notes,
        f"--model {spec.model.model}: up to {fitted}; `srs-ooc plan` tries one and says how long "
        "that takes. Fewer --rounds, --candidates or --models take less.",
    )


def _check_method(model: ModelParams, name: str, method: Method) -> None:
    if not method.any_model:
        able = [other for other in method_names() if method_of(other).any_model]
        raise UsageError(
            f"--model: expected {TREE} with --method {name}, found {model.model}. Leave it out, or "
            f"choose one of the methods {', '.join(able)}."
        )


def _check_no_trees(model: ModelParams, given: Mapping[str, Any], *, saves_trees: bool) -> None:
    """Refuse options of trees."""
    for option in TreeParams.options():
        if option in given:
            raise UsageError(
                f"--{option.replace('_', '-')}: expected with --model {TREE} only, found --model "
                f"{model.model}. Leave it out, or give what is the estimator's by --model-params."
            )
    if saves_trees:
        raise UsageError(
            f"--save-trees: expected with --model {TREE} only, found --model {model.model}, whose "
            "fitted models are not kept: they could be read back only by running what a file "
            "says. Leave it out."
        )
