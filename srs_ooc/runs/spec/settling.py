"""How options become the identity of a run, and how they are compared with one that is."""

from dataclasses import asdict
from math import ceil
from typing import Any

from srs_ooc.base.errors import RunError, UsageError
from srs_ooc.base.options import Option, Params, Whole
from srs_ooc.evidence.judges import DecoyParams, closes_by_sensitivity
from srs_ooc.learners.criteria import check_criterion
from srs_ooc.learners.models import SUBSPACES, ModelParams
from srs_ooc.learners.tree_learner import TreeParams, settle_max_features
from srs_ooc.runs.spec.base_models import check_judge, check_subspaces, settle_model
from srs_ooc.runs.spec.identity import INPUTS, JUDGES, NOT_GIVEN, RunParams, RunSpec
from srs_ooc.runs.spec.needs import TrainingShape, extra_nbytes, largest_subspace
from srs_ooc.runs.spec.options import Options
from srs_ooc.runs.spec.reading import with_draw_block
from srs_ooc.samplers.base import Method, method_of, methods


def declared() -> dict[str, Option]:
    """Return every option of a run's identity, of whatever part, by name."""
    found: dict[str, Option] = {}
    for part in _parts():
        found |= part.options()
    return found


def _parts() -> list[type[Params]]:
    return [RunParams, *(m.params for _, m in methods()), *JUDGES.values(), ModelParams, TreeParams]


def settle(
    options: Options,
    shape: TrainingShape,
    store: str,
    cap_nbytes: int,
    *,
    saves_trees: bool = False,
) -> RunSpec:
    """Turn options into the identity of a new run, with defaults where nothing was given.

    Parameters
    ----------
    options : Options
        As given.
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
    given = dict(_known(options))
    given["method"] = given.get("method") or RunParams.options()["method"].default
    model = settle_model(given, shape, saves_trees=saves_trees)
    usual = _default_judge(options, given["method"], saves_trees) if model.is_tree else "none"
    given["judge"] = given.get("judge") or usual
    sizes = {name: given.pop(name, None) for name in ("subspace_size", "max_features")}
    run = RunParams.settle(given, shape)
    method = method_of(run.method)
    check_judge(run, model)
    if model.is_tree and run.judge not in method.judges:
        raise UsageError(
            f"--judge: expected {' or '.join(method.judges)} with --method {run.method}, found "
            f"{run.judge}. Leave it out, or choose another method."
        )
    _check_belong(options, run, method.params)
    _check_validation(options, run, method.params)
    learner = TreeParams.settle({**method.learner, **given}, shape)
    judging = JUDGES[run.judge].settle(given, shape)
    sampler = method.params.settle(given, shape)
    check_criterion(method.criterion(sampler), model.model, shape.n_classes)
    if saves_trees and method.splits_rows and method.ensemble is None:
        raise UsageError(
            f"--save-trees: expected a method that says which of its trees predict, found "
            f"--method {run.method}, whose models are fitted on some rows. Leave it out."
        )
    largest = _largest(
        shape, cap_nbytes, learner, judging, method, sampler, saves_trees=saves_trees
    )
    default = _default_size(method, sampler, judging, model, shape.n_candidates)
    if sizes["subspace_size"] is None and largest < (least := method.least_subspace(sampler)):
        largest, default = 0, least  # the budget refuses, with the numbers of the least
    size = _settle_subspace(sizes["subspace_size"], shape.n_candidates, largest, default)
    sampler = _with_draw_block(sampler, given, shape, size if largest else None, cap_nbytes)
    if largest:
        method.check(sampler, shape.n_rows, shape.n_candidates, size)
        check_subspaces(model, shape.n_candidates, size)
    return RunSpec(
        store,
        options.get("excluded", NOT_GIVEN["excluded"]),
        options.get("rows", NOT_GIVEN["rows"]),
        RunParams(**run.values() | {"subspace_size": size}),
        sampler,
        learner.for_subspace(sizes["max_features"], size),
        judging,
        validation=options.get("validation", NOT_GIVEN["validation"]),
        model=model,
    )


def _known(options: Options) -> Options:
    """Return options, all of which some part declares; refuse a name that none does."""
    known = {*declared(), *INPUTS}
    for name in options:
        if name not in known:
            raise UsageError(
                f"{name}: expected an option of a run, found another name. "
                "srs_ooc.options() lists them."
            )
    method = options.get("method", "")
    if not isinstance(method, str):
        raise UsageError(f"--method: expected a name, found {ascii(method)[:60]}.")
    return options


def _default_size(
    method: Method, sampler: Params, judging: Params, model: ModelParams, n_candidates: int
) -> int:
    """Return q where none is given, whatever the cap."""
    default = (method.default_subspace or _default_subspace)(sampler, n_candidates)
    if method.default_subspace is None and isinstance(judging, DecoyParams):
        # As large a part of the items as of one family: features must meet one another as often.
        default = max(default, ceil(default * (1 + judging.decoys) / 2))
    if model.model_importance == SUBSPACES and default >= n_candidates:
        return ceil(n_candidates / 2)  # some subspaces must lack a feature, to be compared with
    return default


def _largest(
    shape: TrainingShape,
    cap_nbytes: int,
    learner: TreeParams,
    judging: Params,
    method: Method,
    sampler: Params,
    *,
    saves_trees: bool,
) -> int:
    """Return the largest q that the cap holds."""
    extra = extra_nbytes(
        shape,
        learner.limits,
        learner.trees_per_subspace,
        bootstrap=learner.bootstrap,
        saves_trees=saves_trees,
        splits_rows=method.splits_rows,
        by_sensitivity=closes_by_sensitivity(judging),
    )
    n_families = judging.decoys if isinstance(judging, DecoyParams) else 0
    n_items = (1 + n_families) * shape.n_features
    state = method.state_nbytes(sampler, shape.n_rows, n_items)
    concludes = isinstance(judging, DecoyParams)
    return largest_subspace(
        shape,
        cap_nbytes,
        learner.impurity,
        extra,
        n_families,
        concludes=concludes,
        state=state,
        judges_candidates=method.judges_candidates,
    )


def _default_judge(options: Options, method: str, saves_trees: bool) -> str:
    """Return ``decoy``, unless what else was asked is of the probe, or keeps the ensemble.

    A method that cannot run under decoys has a judge of its own.
    """
    if "decoy" not in (judges := method_of(method).judges):
        return judges[0]
    is_of_probe = any(name in options for name in JUDGES["probe"].options())
    keeps = saves_trees and not options.get("permutations")
    return "probe" if is_of_probe or keeps else "decoy"


def _check_belong(options: Options, run: RunParams, method: type[Params]) -> None:
    """Refuse options of a judge or a method that was not chosen."""
    chosen = {*RunParams.options(), *ModelParams.options(), *TreeParams.options(), *INPUTS}
    chosen |= {*method.options(), *JUDGES[run.judge].options()}
    for name in options:
        if name not in chosen:
            whose, found = owner_of(name), run.judge
            if is_of_a_method(name):
                found = run.method
            raise UsageError(
                f"--{_flag(name)}: expected with {whose} only, found {whose.split()[0]} {found}. "
                "Leave it out, or choose that."
            )


def _check_validation(options: Options, run: RunParams, method: type[Params]) -> None:
    """Refuse rows held out for a method that holds none out, or held out twice."""
    if "validation" not in options:
        return
    if "validation_share" not in method.options():
        raise UsageError(
            f"--validation-rows: expected a method that holds rows out, found --method "
            f"{run.method}. Leave it out, or choose another method."
        )
    if "validation_share" in options:
        raise UsageError(
            "expected --validation-rows or --validation-share, found both. Leave one out."
        )


def owner_of(name: str) -> str:
    """Return the choices that an option goes with, such as ``--judge decoy``; empty if all."""
    judges = [judge for judge, params in JUDGES.items() if name in params.options()]
    if judges:
        return f"--judge {' or '.join(judges)}"
    of_methods = [called for called, method in methods() if name in method.params.options()]
    return f"--method {' or '.join(of_methods)}" if of_methods else ""


def is_of_a_method(name: str) -> bool:
    """Return whether an option belongs to some methods only."""
    return owner_of(name).startswith("--method")


def check_same(options: Options, spec: RunSpec, run: str) -> None:
    """Check that the options given agree with an existing run's identity.

    Raises
    ------
    RunError
        Naming every field that differs.
    """
    _known(options)
    held, known = spec.model.values() | asdict(spec.judging) | spec.facts(), declared()
    differences = []
    for name, value in options.items():
        given = value if name in INPUTS else _canonical(name, value, known[name], spec)
        if given is None:
            continue
        found = held.get(name, "none")
        if str(given) != str(found):
            differences.append(f"{_flag(name)} {found} (asked for: {given})")
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


def _default_subspace(_: Params, n_candidates: int) -> int:
    return max(ceil(n_candidates / 20), min(100, n_candidates))


def _settle_subspace(asked: str | int | None, p: int, largest: int, default: int) -> int:
    if asked is None:
        return min(default, p, largest or p)
    text = str(asked)
    if text == "max":
        return max(1, largest)
    if not (text.isascii() and text.isdigit() and len(text) <= 10):
        raise UsageError(f"--subspace-size: expected a whole number or 'max', found {asked!r}.")
    return Whole(1, p, " (the features there are)").canonical("subspace_size", int(text))


def _with_draw_block(
    sampler: Params,
    given: dict[str, Any],
    shape: TrainingShape,
    subspace_size: int | None,
    cap_nbytes: int,
) -> Params:
    """Return the sampler's options with the block that was given, checked, or a store's own."""
    if subspace_size is None:  # the budget refuses
        return sampler
    if given.get("draw_block") is None:
        return with_draw_block(sampler, shape, subspace_size, cap_nbytes)
    block = getattr(sampler, "draw_block", 1)
    Whole(1, subspace_size, " (the features of a subspace)").canonical("draw_block", block)
    return sampler


def _flag(name: str) -> str:
    return name.replace("_", "-")
