"""How options become the identity of a run, and how they are compared with one that is."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from math import ceil
from typing import Any

from srs_ooc.base.errors import RunError, UsageError
from srs_ooc.base.options import (
    Option,
    Params,
    Whole,
    exact_share,
    flag_of,
)
from srs_ooc.learners import models
from srs_ooc.learners.models import PERMUTATION, SUBSPACES, TREE, ModelParams
from srs_ooc.learners.tree_learner import MANY_ROWS, ROW_SAMPLE, TreeParams, settle_max_features
from srs_ooc.runs.run_memory import TrainingShape, largest_subspace
from srs_ooc.runs.spec import INPUTS, JUDGES, NOT_GIVEN, RunParams, RunSpec
from srs_ooc.samplers.base import Method, method_names, method_of, methods
from srs_ooc.samplers.srs import RandomSubspace


def declared() -> dict[str, Option]:
    """Return every option of a run's identity, of whatever part, by name."""
    parts: list[type[Params]] = [RunParams, *(method for _, method in methods())]
    parts += [*JUDGES.values(), ModelParams, TreeParams]
    return {name: option for part in parts for name, option in part.options().items()}


def settle(
    options: Mapping[str, Any],
    shape: TrainingShape,
    store: str,
    cap_nbytes: int,
    *,
    saves_trees: bool = False,
) -> RunSpec:
    """Turn options into the identity of a new run, with defaults where nothing was given.

    Parameters
    ----------
    options : dict
        As given, by name.
    shape : TrainingShape
        What the run is trained on.
    store : str
        Fingerprint of the store.
    cap_nbytes : int
        The cap, which bounds q.
    saves_trees : bool
        Whether the trees are kept.

    Raises
    ------
    UsageError
        If an option is outside its range, or of another part than those chosen.
    """
    given = dict(options)
    given["method"] = given.get("method") or RunParams.options()["method"].default
    model = settle_model(given, shape, saves_trees=saves_trees)
    usual = _default_judge(options, given["method"], saves_trees) if model.is_tree else "none"
    given["judge"] = given.get("judge") or usual
    size, max_features = (given.pop(name, None) for name in ("subspace_size", "max_features"))
    run = RunParams.settle(given, shape)
    method = method_of(run.method)
    _check_belong(options, run, method, model)
    learner = TreeParams.settle({**method.learner, **given}, shape)
    learner = _with_row_sample(learner, run, shape, method.splits_rows, saves=saves_trees)
    judging = JUDGES[run.judge].settle(given, shape)
    sampler = method.settle(given, shape)
    sampler.check_model(model.model, shape.n_classes)
    if saves_trees and method.splits_rows and method.ensemble is Method.ensemble:
        raise UsageError(
            f"--save-trees: expected a method that says which of its trees predict, found "
            f"--method {run.method}, whose models are fitted on some rows. Leave it out."
        )
    excluded, rows, validation, target = (options.get(name, NOT_GIVEN[name]) for name in INPUTS)
    parts, held = (run, sampler, learner, judging), {"validation": validation, "target": target}
    draft = RunSpec(store, excluded, rows, *parts, **held, model=model)
    largest = largest_subspace(draft, shape, cap_nbytes, saves=saves_trees)
    for_two = largest_subspace(draft, shape, cap_nbytes, saves=saves_trees, n_workers=2)
    default = _default_size(draft, shape.n_candidates, largest, for_two)
    if size is None and largest < (least := sampler.least_subspace()):
        largest, default = 0, least  # the budget refuses, with the numbers of the least
    size = _settle_subspace(size, shape.n_candidates, largest, default)
    if largest:
        sampler = _with_draw_block(sampler, given, shape, size, cap_nbytes)
        sampler.check(shape.n_rows, shape.n_candidates, size)
        check_subspaces(model, shape.n_candidates, size)
    learner = replace(learner, max_features=settle_max_features(max_features, size))
    return replace(draft, run=replace(run, subspace_size=size), sampler=sampler, learner=learner)


def _with_row_sample(
    learner: TreeParams, run: RunParams, shape: TrainingShape, splits_rows: bool, *, saves: bool
) -> TreeParams:
    """Return how trees are grown, with the rows of a subspace as given, checked, or by default."""
    if learner.row_sample is not None:
        if splits_rows:
            raise UsageError(
                f"--row-sample: expected a method whose trees have all rows, found --method "
                f"{run.method}, which splits them. Leave it out."
            )
        return learner
    whole = learner.bootstrap or splits_rows or saves
    if run.judge != "tests" or whole or shape.n_rows < MANY_ROWS:
        return learner
    return replace(learner, row_sample=ROW_SAMPLE)


def _default_size(draft: RunSpec, n_candidates: int, largest: int, for_two: int) -> int:
    """Return q where none is given, on any number of cores: what a cap holds ``for_two``, or less.

    That is less than half of the ``largest``, that of one; where it is much less, one has to do.
    """
    default = draft.sampler.default_subspace(n_candidates)
    if default is None:
        default = max(ceil(n_candidates / 20), min(100, n_candidates))
    if draft.model.model_importance == SUBSPACES and default >= n_candidates:
        default = ceil(n_candidates / 2)  # some subspaces must lack a feature, to be compared with
    usual = min(default, largest)
    few = for_two < max(min(100, n_candidates), draft.sampler.least_subspace(), 0.4 * usual)
    return default if few else min(default, for_two)


def _default_judge(options: Mapping[str, Any], method: str, saves_trees: bool) -> str:
    """Return ``tests``, unless what else was asked is of another judge, or keeps the ensemble.

    A method that cannot run under it has a judge of its own.
    """
    if "tests" not in (judges := method_of(method).judges):
        return judges[0]
    is_of_probe = any(name in options for name in JUDGES["probe"].options())
    return "probe" if is_of_probe or saves_trees else "tests"


def _check_belong(
    options: Mapping[str, Any], run: RunParams, method: type[Method], model: ModelParams
) -> None:
    """Refuse a judge that does not go with the rest, and options of what was not chosen."""
    if not model.is_tree and run.judge != "none":
        raise UsageError(
            f"--judge: expected none with --model {model.model}, found {run.judge}: last stages "
            "and probes are of trees. Leave it out: features are ranked, with standard errors."
        )
    if model.is_tree and run.judge not in method.judges:
        raise UsageError(
            f"--judge: expected {' or '.join(method.judges)} with --method {run.method}, found "
            f"{run.judge}. Leave it out, or choose another method."
        )
    own = method.options()
    chosen = {*RunParams.options(), *ModelParams.options(), *TreeParams.options(), *INPUTS}
    chosen |= {*own, *JUDGES[run.judge].options()}
    for name in options:
        if name not in chosen:
            whose, found = owner_of(name), run.method if is_of_a_method(name) else run.judge
            raise UsageError(
                f"{flag_of(name)}: expected with {whose} only, found {whose.split()[0]} {found}. "
                "Leave it out, or choose that."
            )
    if "validation" in options and "validation_share" not in own:
        raise UsageError(
            f"validation_rows: expected a method that holds rows out, found --method "
            f"{run.method}. Leave it out, or choose another method."
        )
    if "validation" in options and "validation_share" in options:
        raise UsageError("expected validation_rows or validation_share, found both. Leave one out.")


def owner_of(name: str) -> str:
    """Return the choices that an option goes with, such as ``--judge probe``; empty if all."""
    judges = [judge for judge, params in JUDGES.items() if name in params.options()]
    if judges:
        return f"--judge {' or '.join(judges)}"
    of_methods = [called for called, method in methods() if name in method.options()]
    return f"--method {' or '.join(of_methods)}" if of_methods else ""


def is_of_a_method(name: str) -> bool:
    """Return whether an option belongs to some methods only."""
    return owner_of(name).startswith("--method")


def check_same(options: Mapping[str, Any], spec: RunSpec, run: str) -> None:
    """Check that the options given agree with an existing run's identity.

    Raises
    ------
    RunError
        Naming every field that differs.
    """
    held, known = spec.model.values() | asdict(spec.judging) | spec.to_json(), declared()
    differences = []
    for name, value in options.items():
        given = value if name in INPUTS else _canonical(name, value, known[name], spec)
        found = held.get(name, NOT_GIVEN.get(name, "none"))
        if given is not None and str(given) != str(found):
            differences.append(f"{name.replace('_', '-')} {found} (asked for: {given})")
    if differences:
        raise RunError(
            f"{run} is a run with {', '.join(differences)}. A run's identity cannot change: "
            "leave the option out to go on with it, begin another run with --fresh, or name its "
            "folder with --out."
        )


def _canonical(name: str, value: Any, option: Option, spec: RunSpec) -> Any:
    """Return what was given as an identity has it; None where it asks for nothing definite."""
    if name == "max_features":
        return settle_max_features(value, spec.subspace_size)
    if name == "subspace_size" and value == "max":
        return None
    return option.settle(name, value)


def _settle_subspace(asked: str | int | None, p: int, largest: int, default: int) -> int:
    if asked is None:
        return min(default, p, largest or p)
    text = str(asked)
    if text == "max":
        return max(1, largest)
    if not (text.isascii() and text.isdigit() and len(text) <= 10):
        raise UsageError(f"--subspace-size: expected a whole number or 'max', found {asked!r}.")
    return int(Whole(1, p, " (the features there are)").canonical("subspace_size", int(text)))


def _with_draw_block(
    sampler: Method, given: dict[str, Any], shape: TrainingShape, size: int, cap_nbytes: int
) -> Method:
    """Return the sampler's options with the block that was given, checked, or a store's own.

    That depends on the sizes and the cap alone, so that a store has the same wherever it is; it is
    1 where the cap holds its codes.
    """
    if given.get("draw_block") is not None:
        block = getattr(sampler, "draw_block", 1)
        Whole(1, size, " (the features of a subspace)").canonical("draw_block", block)
        return sampler
    if isinstance(sampler, RandomSubspace) and shape.codes_nbytes > cap_nbytes:
        return replace(sampler, draw_block=shape.draw_block(size))
    return sampler


# Which options go with models other than trees.


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
    models.check_model_name(model.model)
    method = method_of(name)
    if not method.any_model:
        able = [other for other in method_names() if method_of(other).any_model]
        raise UsageError(
            f"--model: expected {TREE} with --method {name}, found {model.model}. Leave it out, or "
            f"choose one of the methods {', '.join(able)}."
        )
    for flag in TreeParams.options():
        if flag in given:
            raise UsageError(
                f"{flag_of(flag)}: expected with --model {TREE} only, found --model "
                f"{model.model}. Leave it out, or give what is the estimator's by model_params."
            )
    if saves_trees:
        raise UsageError(
            f"--save-trees: expected with --model {TREE} only, found --model {model.model}, whose "
            "fitted models are not kept: they could be read back only by running what a file "
            "says. Leave it out."
        )
    if method.splits_rows:
        for flag in ("model_importance", "model_folds"):
            if flag in given:
                raise UsageError(
                    f"{flag_of(flag)}: expected with a method that scores features by "
                    f"their models, found --method {name}, which has scores and folds of its own. "
                    "Leave it out."
                )
        return model
    holds = "alpha" in method.options() and exact_share(str(given.get("alpha", "0.5"))) > 0
    importance = model.model_importance or (PERMUTATION if holds else SUBSPACES)
    if holds and importance == SUBSPACES:
        raise UsageError(
            f"model_importance: expected {PERMUTATION} with --method {name}, found {SUBSPACES}: "
            "features held in every other subspace would share one score. Leave it out, or take "
            "--method rs."
        )
    folds = model.model_folds or models.DEFAULT_FOLDS
    return replace(model, model_importance=importance, model_folds=folds)


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
            f"model_importance={SUBSPACES}, found {subspace_size}: no subspace would lack one. "
            f"Take fewer, or model_importance={PERMUTATION}."
        )
