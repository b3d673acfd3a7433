"""How options become the identity of a run, and how they are compared with one that is."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from math import ceil
from typing import Any

from srs_ooc.base.errors import RunError, UsageError
from srs_ooc.base.options import Option, Whole, flag_of
from srs_ooc.learners.tree_learner import (
    MANY_ROWS,
    ROW_SAMPLE,
    TREE,
    TreeParams,
    learner_named,
    learners,
    settle_max_features,
)
from srs_ooc.runs.request import Request
from srs_ooc.runs.run_memory import TrainingShape, largest_subspace
from srs_ooc.runs.spec import JUDGES, NOT_GIVEN, RunParams, RunSpec, declared
from srs_ooc.samplers.base import PREDICTIONS, Method, method_of, methods
from srs_ooc.samplers.srs import RandomSubspace


def settle(request: Request, shape: TrainingShape, digests: Mapping[str, str]) -> RunSpec:
    """Turn a request into the identity of a new run, with defaults where nothing was given.

    Parameters
    ----------
    request : Request
        With options by name; its cap bounds q.
    shape : TrainingShape
        What the run is trained on.
    digests : dict
        What identifies the store, files, an added target and a null model, by name in an identity.

    Raises
    ------
    UsageError
        If an option is outside its range, or of another part than those chosen.
    """
    options, saves = {**request.options, **digests}, bool(request.save_trees)
    given, cap_nbytes = dict(options), request.cap_nbytes
    given["method"] = given.get("method") or RunParams.options()["method"].default
    kind, method = learner_named(given.get("model", TREE)), method_of(given["method"])
    kind.check_given(given, saves_trees=saves)
    judges = kind.judges or method.judges  # what cannot run under tests has its own
    is_of_probe = saves or any(name in options for name in JUDGES["probe"].options())
    usual = "probe" if is_of_probe else "tests"  # a probe keeps the ensemble
    given["judge"] = given.get("judge") or (usual if "tests" in judges else judges[0])
    size, max_features = (given.pop(name, None) for name in ("subspace_size", "max_features"))
    run = RunParams.settle(given, shape)
    _check_belong(options, run, method, kind)
    splits = PREDICTIONS in method.needs
    learner = kind.settle({**method.learner, **given}, shape)
    learner = _with_row_sample(learner, run, shape, splits, saves=saves)
    judging = JUDGES[run.judge].settle(given, shape)
    sampler = method.settle(given, shape)
    sampler.check_model(learner.model, shape.n_classes)
    if saves and splits and method.ensemble is Method.ensemble:
        raise UsageError(
            f"--save-trees: expected a method that says which of its trees predict, found "
            f"--method {run.method}, whose models are fitted on some rows. Leave it out."
        )
    held = {name: options.get(name, default) for name, default in NOT_GIVEN.items()}
    draft = RunSpec(run=run, sampler=sampler, learner=learner, judging=judging, **held)
    largest = largest_subspace(draft, shape, cap_nbytes, saves=saves)
    for_two = largest_subspace(draft, shape, cap_nbytes, saves=saves, n_workers=2)
    default = _default_size(draft, shape.n_candidates, largest, for_two)
    if size is None and largest < (least := sampler.least_subspace()):
        largest, default = 0, least  # the budget refuses, with the numbers of the least
    size = _settle_subspace(size, shape.n_candidates, largest, default)
    if largest:
        sampler = _with_draw_block(sampler, given, shape, size, cap_nbytes)
        sampler.check(shape.n_rows, shape.n_candidates, size)
        learner.fitting_size(size, shape.n_candidates, is_given=True)
    learner = replace(learner, max_features=settle_max_features(max_features, size))
    return replace(draft, run=replace(run, subspace_size=size), sampler=sampler, learner=learner)


def _with_row_sample(
    learner: TreeParams, run: RunParams, shape: TrainingShape, splits: bool, *, saves: bool
) -> TreeParams:
    """Return how trees are grown, with the rows of a subspace as given, checked, or by default."""
    if learner.row_sample is not None:
        if splits:
            raise UsageError(
                f"--row-sample: expected a method whose trees have all rows, found --method "
                f"{run.method}, which splits them. Leave it out."
            )
        return learner
    whole = learner.bootstrap or splits or saves
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
    default = draft.learner.fitting_size(default, n_candidates, is_given=False)
    usual = min(default, largest)
    few = for_two < max(min(100, n_candidates), draft.sampler.least_subspace(), 0.4 * usual)
    return default if few else min(default, for_two)


def _check_belong(
    options: Mapping[str, Any], run: RunParams, method: type[Method], kind: type[TreeParams]
) -> None:
    """Refuse a judge that does not go with the rest, and options of what was not chosen."""
    if run.judge not in (kind.judges or method.judges):
        raise UsageError(
            f"--judge: expected {' or '.join(method.judges)} with --method {run.method}, found "
            f"{run.judge}. Leave it out, or choose another method."
        )
    own = method.options()
    chosen = {*NOT_GIVEN, *RunParams.options(), *own, *kind.options(), *JUDGES[run.judge].options()}
    chosen.add("model")  # of trees, too
    for name in options:
        if name not in chosen:
            whose = owner_of(name)
            found = run.method if whose.startswith("--method") else run.judge
            if not whose:
                called = next(one.called for one in learners() if name in one.options())
                whose, found = f"--model {called}", kind.model
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


def check_same(options: Mapping[str, Any], spec: RunSpec, run: str) -> None:
    """Check that the options given agree with an existing run's identity.

    Raises
    ------
    RunError
        Naming every field that differs.
    """
    known, held = declared(), asdict(spec.judging) | spec.to_json()
    held = {n: o.default for kind in learners() for n, o in kind.options().items()} | held
    differences = []
    for name, value in options.items():
        given = value if name in NOT_GIVEN else _canonical(name, value, known[name], spec)
        found = held.get(name, NOT_GIVEN.get(name, "none"))
        if given is not None and str(given) != str(found):
            differences.append(f"{flag_of(name).removeprefix('--')} {found} (asked for: {given})")
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
