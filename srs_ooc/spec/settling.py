"""How options become the identity of a run, and how they are compared with one that is."""

import dataclasses
from math import ceil, isqrt
from typing import Any

from srs_ooc.errors import RunError, UsageError
from srs_ooc.kernel.tree import IMPURITIES, SPLITTERS, THRESHOLDS, TreeLimits
from srs_ooc.shares import exact_share, floor_share, share_text
from srs_ooc.spec.checks import in_range, one_of, share
from srs_ooc.spec.identity import DEFAULT_FDR, NO_DECREASE, RANK, UNWEIGHTED, Options, RunSpec
from srs_ooc.spec.needs import Shape, extra_nbytes, largest_subspace

METHOD = "srs"
DEFAULT_ALPHA = "0.5"
LARGEST = 2**31 - 1
"""Bound of whole-number options, so that no sum of them overflows in the kernel."""
MOST_TREES = 10_000
"""Bound of trees on one subspace."""
JUDGES = ("probe", "positive", "decoy")
DEFAULT_KEEP = 10
MOST_DECOYS = 16
MOST_KEPT = 1000
MOST_REPLAYS = 9999


def settle(
    options: Options, shape: Shape, store: str, cap_nbytes: int, *, saves_trees: bool = False
) -> RunSpec:
    """Turn options into the identity of a new run, with defaults where nothing was given.

    Raises
    ------
    UsageError
        If an option is outside its range.
    """
    impurity = _settle_impurity(options.impurity, shape)
    class_weight = options.class_weight or UNWEIGHTED
    max_depth = (
        None
        if options.max_depth is None
        else in_range("max-depth", options.max_depth, 1, 1, LARGEST)
    )
    min_leaf = in_range("min-samples-leaf", options.min_samples_leaf, 1, 1, LARGEST)
    splitter = one_of("splitter", options.splitter or "random", SPLITTERS)
    thresholds = _settle_thresholds(options.thresholds, splitter)
    decrease = share("min-impurity-decrease", options.min_impurity_decrease or NO_DECREASE)
    limits = TreeLimits(1, max_depth, min_leaf, impurity, splitter=splitter)
    n_trees = in_range("trees-per-subspace", options.trees_per_subspace, 1, 1, MOST_TREES)
    bootstrap = bool(options.bootstrap)
    extra = extra_nbytes(shape, limits, n_trees, bootstrap=bootstrap, saves_trees=saves_trees)
    judging = _settle_judging(options, saves_trees=saves_trees)
    largest = largest_subspace(
        shape,
        cap_nbytes,
        impurity,
        extra,
        judging["decoys"],
        concludes=judging["judge"] == "decoy",
    )
    subspace_size = _settle_subspace(options.subspace_size, shape, largest)
    return RunSpec(
        store=store,
        method=METHOD,
        alpha=share("alpha", DEFAULT_ALPHA if options.alpha is None else options.alpha),
        subspace_size=subspace_size,
        max_features=_settle_max_features(options.max_features, subspace_size),
        probe_min_draws=in_range("probe-min-draws", options.probe_min_draws, 10, 0, LARGEST),
        probe_min_wins=share("probe-min-wins", options.probe_min_wins or "0.95"),
        impurity=impurity,
        max_depth=max_depth,
        min_samples_leaf=min_leaf,
        seed=in_range("seed", options.seed, 0, 0, 2**64 - 1),
        round_size=in_range("round-size", options.round_size, 1, 1, LARGEST),
        excluded=options.excluded or "none",
        rows=options.rows or "all",
        draw_block=in_range(
            "draw-block",
            options.draw_block,
            1,
            1,
            subspace_size if largest else LARGEST,
            " (the features of a subspace)",
        ),
        trees_per_subspace=n_trees,
        splitter=splitter,
        min_impurity_decrease=decrease,
        bootstrap=bootstrap,
        class_weight=class_weight,
        thresholds=thresholds,
        **judging,
    )


def _default_judge(options: Options, saves_trees: bool) -> str:
    """Return ``decoy``, unless what else was asked is of the probe, or keeps the ensemble."""
    is_of_probe = options.probe_min_draws is not None or options.probe_min_wins is not None
    keeps = saves_trees and not options.replays
    return "probe" if is_of_probe or keeps else "decoy"


def _settle_judging(options: Options, *, saves_trees: bool) -> dict[str, Any]:
    """Return the fields of the judge; those of ``decoy`` are at rest for the others."""
    judge = one_of("judge", options.judge or _default_judge(options, saves_trees), JUDGES)
    fdr = share("fdr", options.fdr or DEFAULT_FDR)
    if judge != "decoy":
        given = [name for name in ("decoys", "replays", "fdr", "keep") if getattr(options, name)]
        if given:
            raise UsageError(
                f"--{given[0]}: expected with --judge decoy only, found --judge {judge}. "
                "Leave it out, or choose that judge."
            )
        return {"judge": judge, "decoys": 0, "replays": 0, "fdr": fdr, "keep": 0}
    replays = in_range("replays", options.replays, 0, 0, MOST_REPLAYS)
    decoys = in_range("decoys", options.decoys, 0 if replays else 1, 0, MOST_DECOYS)
    level = exact_share(fdr)
    if not 0 < level < 1:
        raise UsageError(f"--fdr: expected a number between 0 and 1, found {fdr}.")
    if (decoys > 0) == (replays > 0):
        raise UsageError(
            f"expected decoys or replays, found --decoys {decoys} --replays {replays}. Decoys "
            "(at least 1) suit many expected features, replays (at least 1) few."
        )
    if replays and level * (replays + 1) < 1:
        raise UsageError(
            f"--replays: expected at least {ceil(1 / level) - 1} for --fdr {fdr}, found {replays}: "
            "the best of so few cannot certify anything at that level."
        )
    if decoys and saves_trees:
        raise UsageError(
            "--save-trees: expected trees of features only, found --judge decoy, whose trees split "
            "on decoys too. Use --replays, or another judge, or leave it out."
        )
    keep = in_range("keep", options.keep, DEFAULT_KEEP, 0, MOST_KEPT)
    return {"judge": judge, "decoys": decoys, "replays": replays, "fdr": fdr, "keep": keep}


def check_same(options: Options, spec: RunSpec, run: str) -> None:
    """Check that the options given agree with an existing run's identity.

    Raises
    ------
    RunError
        Naming every field that differs.
    """
    differences = []
    for field in dataclasses.fields(options):
        given, held = getattr(options, field.name), getattr(spec, field.name)
        if given is None or given == "max":
            continue
        if field.name in ("alpha", "probe_min_wins", "fdr", "min_impurity_decrease"):
            given = share(field.name.replace("_", "-"), given)
        if field.name == "max_features":
            given = _settle_max_features(given, spec.subspace_size)
        if str(given) != str(held):
            differences.append(f"{field.name.replace('_', '-')} {held} (asked for: {given})")
    if differences:
        raise RunError(
            f"{run} is a run with {', '.join(differences)}. A run's identity cannot change: "
            "leave the option out to go on with it, or choose another folder with --out."
        )


def _settle_subspace(asked: str | None, shape: Shape, largest: int) -> int:
    p = shape.n_candidates
    if asked is None:
        # With a cap too small for anything the budget refuses, with its numbers.
        return max(1, min(max(ceil(p / 20), min(100, p)), largest))
    if asked == "max":
        return max(1, largest)
    if not (asked.isascii() and asked.isdigit() and len(asked) <= 10):
        raise UsageError(f"--subspace-size: expected a whole number or 'max', found {asked!r}.")
    return in_range("subspace-size", int(asked), 1, 1, p, " (the features there are)")


def _settle_max_features(given: str | int | None, subspace_size: int) -> int:
    """Return K: a whole number, a share of q with a decimal point, ``sqrt`` or ``log2`` of q."""
    if given is None:
        return subspace_size
    asked = str(given)
    if asked in ("sqrt", "log2"):
        return isqrt(subspace_size) if asked == "sqrt" else max(1, subspace_size.bit_length() - 1)
    if asked.isascii() and asked.isdigit() and len(asked) <= 10:
        return in_range("max-features", int(asked), 1, 1, subspace_size, " (q)")
    try:
        return max(1, floor_share(share_text(asked), subspace_size))
    except ValueError as error:
        raise UsageError(
            "--max-features: expected a whole number, a share of q such as 0.1, sqrt or log2, "
            f"found {asked[:40]!r}."
        ) from error


def _settle_thresholds(asked: str | None, splitter: str) -> str:
    thresholds = one_of("thresholds", asked or RANK, THRESHOLDS)
    if thresholds != RANK and splitter != "random":
        raise UsageError(
            f"--thresholds: expected {RANK} with --splitter {splitter}, found {thresholds}: best "
            "splits are exact, and draw no thresholds. Leave it out, or take random splits."
        )
    return thresholds


def _settle_impurity(asked: str | None, shape: Shape) -> str:
    fitting = IMPURITIES[2:] if shape.is_regression else IMPURITIES[:2]
    impurity = one_of("impurity", asked or fitting[0], IMPURITIES)
    if impurity not in fitting:
        what = "numbers" if shape.is_regression else "classes"
        raise UsageError(
            f"--impurity: expected {' or '.join(fitting)} for a target of {what}, found {impurity}."
        )
    if impurity == "entropy" and shape.n_channels:
        raise UsageError(
            "--impurity: expected gini where rows or classes are weighted, found entropy. "
            "Leave the weights out, or take gini."
        )
    return impurity
