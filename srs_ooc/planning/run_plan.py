"""The plan of a run: everything that can be said before it starts, as JSON-ready values."""

import math
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from statistics import NormalDist
from typing import Any

from srs_ooc.base.errors import BudgetError, UsageError
from srs_ooc.base.options import part_at
from srs_ooc.base.text import MB, ceil_div
from srs_ooc.evidence.rank_tests import FIRST_SHARES, RARE_LEVEL, Contrast
from srs_ooc.planning import speed
from srs_ooc.runs.plan import Plan
from srs_ooc.runs.request import Request
from srs_ooc.runs.run_memory import largest_subspace, trial_of
from srs_ooc.runs.settling import settle
from srs_ooc.samplers.srs import Srs
from srs_ooc.store.store import Store

# What is planned: a run on a table, on disk or only in numbers.


def plan_asked(
    store: Callable[[], Store] | None,
    request: Request,
    n_rows: int | None = None,
    n_features: int | None = None,
    n_classes: int | None = None,
) -> Plan:
    """Return the run that was asked for: on a store, or on a table of numbers alone.

    Parameters
    ----------
    store : callable or None
        Opens the store; None where none was named, and none can be found.
    request : Request
        The run as it would be asked for.
    n_rows, n_features, n_classes : int, optional
        Of a table known only by its numbers.

    Raises
    ------
    UsageError
        If there is neither, both, or one number without the other.
    StoreError, BudgetError
        If the run could not be created.
    """
    if n_rows is None and n_features is None:
        if n_classes is not None:
            raise UsageError("--n-classes goes with --n-rows and --n-features; a store knows its.")
        if store is None:
            raise UsageError("expected a store, or --n-rows and --n-features; found neither.")
        return Plan.of(store(), request)
    named = request.exclude_file or request.rows_file or request.validation_file
    if store is not None or named or request.exclude_missing or request.target:
        raise UsageError(
            "expected a store (with --exclude, --rows), or --n-rows and --n-features alone; "
            "found both. Leave one out."
        )
    if n_rows is None or n_features is None:
        missing = "--n-rows" if n_rows is None else "--n-features"
        raise UsageError(f"expected --n-rows and --n-features together, found no {missing}.")
    n_classes = n_classes or 2
    if n_rows < n_classes:
        raise UsageError(f"--n-classes: expected at most {n_rows} (--n-rows), found {n_classes}.")
    return Plan.of_numbers(request, n_rows, n_features, n_classes)


def plan_values(plan: Plan) -> dict[str, Any]:
    """Return what is expected of a run, after about a second; nothing is written.

    Returns
    -------
    dict
        Sizes in MB of 10**6 bytes. ``iterations`` is T as advised, the first of ``advice``;
        ``draws`` are None and ``degrees`` empty for a method that has no theory of them (PRS,
        RaSE), ``largest_subspace_size`` for a model that is no tree.

    Raises
    ------
    BudgetError
        If the cap cannot hold the work.
    """
    request, spec, shape = plan.request, plan.spec, plan.shape
    memory, notes = speed.memory_plan(plan), plan.notes
    expected = speed.speed_of(plan, memory)
    read_mb = spec.subspace_size * shape.n_rows * shape.code_nbytes / MB
    half = shape.n_rows // 2  # of a regression the lower and the upper targets
    groups = plan.class_counts or (half, shape.n_rows - half)
    level = float(spec.fdr) if spec.concludes else USUAL_LEVEL
    advice = advice_for(plan, is_mapped=memory.mapped, read_mb=read_mb)
    iterations = int(advice[0]["value"])
    stages = {"iterations": iterations * expected.seconds} | expected.later
    if request.halves:
        stages["halves"] = request.halves * plan_values(_half_of(plan))["total_seconds"]
    return ({"notes": list(notes)} if notes else {}) | {
        "n_rows": shape.n_rows,
        "n_features": shape.n_candidates,
        "class_counts": list(plan.class_counts),
        "store": None if plan.table is None else str(plan.store.place),
        "memory_mb": request.cap_mb,
        "leases": [{"purpose": it.purpose, "mb": it.n_bytes / MB} for it in memory.leases],
        "free_mb": memory.free_nbytes / MB,
        "subspace_size": spec.subspace_size,
        "largest_subspace_size": largest_held(plan),
        "n_workers": memory.n_workers,
        "mapped": memory.mapped,
        "disk_mb": shape.codes_nbytes / MB,
        "read_mb_per_iteration": read_mb,
        "reads_per_iteration": ceil_div(spec.subspace_size, spec.draw_block),
        "seconds_per_iteration": expected.seconds,
        "seconds_measured": expected.measured,
        "seconds_how": expected.how,
        "draws": speed.times_to_draw(plan) if spec.method.theory else None,
        "alpha": spec.alpha,
        "degrees": degree_times(plan),
        "power": power_of(groups, shape.n_candidates, level, has_classes=bool(plan.class_counts)),
        "advice": advice,
        "iterations": iterations,
        "stage_seconds": stages,
        "total_seconds": sum(stages.values()),
        "alternatives": alternatives(plan),
    }


def _half_of(plan: Plan) -> Plan:
    """Return the run on the first half of the rows; of numbers alone on half as many."""
    if plan.table is not None:
        return plan.half(0)
    shape = replace(plan.shape, n_rows=plan.shape.n_rows // 2)
    return replace(plan.asked(halves=None), shape=shape)


def largest_held(plan: Plan) -> int | None:
    """Return the largest q with which the run is accepted; None where each would be tried."""
    if trial_of(plan.spec, plan.shape).seconds:
        return None
    room = plan.request.cap_nbytes - plan.beside_nbytes
    return largest_subspace(plan.spec, plan.shape, room, saves=plan.saves)


def alternatives(plan: Plan) -> list[dict[str, Any]]:
    """Return what the largest q, and twice the memory, would change in the run as planned."""
    if largest_held(plan) is None:
        return []
    cap_mb, found = plan.request.cap_mb, []
    largest = plan.request.also(subspace_size="max", max_features=None)
    for what, memory_mb, asked in (
        ("as planned", cap_mb, plan.request),
        ("with --q max", cap_mb, largest),
        ("twice the memory", 2 * cap_mb, plan.request),
        ("twice the memory, --q max", 2 * cap_mb, largest),
    ):
        request = replace(asked, memory_mb=memory_mb)
        spec = settle(request, plan.shape, {"store": plan.spec.store})
        other = replace(plan, request=request, spec=spec)
        try:
            memory = speed.memory_plan(other)
        except BudgetError:
            continue
        found.append(
            {
                "what": what,
                "memory_mb": memory_mb,
                "subspace_size": other.spec.subspace_size,
                "n_workers": memory.n_workers,
                "mapped": memory.mapped,
                "iterations": speed.recommended_iterations(other)[0],
                "degrees": degree_times(other),
            }
        )
    return found


# What to run with, one reason each.

DEFAULT_ALPHA = str(Srs.options()["alpha"].default)


def advice_for(plan: Plan, *, is_mapped: bool, read_mb: float) -> list[dict[str, str]]:
    """Return the recommendations: ``name`` of the option, ``value``, ``planned`` and ``reason``."""

    def advise(name: str, value: object, planned: object, reason: str) -> None:
        said = {"name": name, "value": str(value), "planned": str(planned), "reason": reason}
        advice.append(said)

    advice: list[dict[str, str]] = []
    spec = plan.spec
    n_iterations, why = speed.recommended_iterations(plan)
    advise("iterations", n_iterations, n_iterations, why)
    if spec.run.judge == "none":
        return advice  # the rest was measured with trees, of methods that are told q
    own = spec.method.options()
    if "alpha" in own:
        advise("alpha", *_alpha(plan))
    advise(
        "max_features",
        spec.subspace_size,
        spec.learner.max_features,
        "K = q: the best of all candidates is what lifts a feature out of noise, and among "
        "many irrelevant features it masks nothing for good (docs/research/errata.md, 1)",
    )
    advise(
        "trees_per_subspace",
        1,
        spec.learner.trees_per_subspace,
        f"another tree grows on the same features again; another subspace, {read_mb:.3g} MB to "
        "page in, shows each feature beside others",
    )
    if "draw_block" in own:
        advise("draw_block", *_draw_block(plan, is_mapped=is_mapped))
    if "tests" in spec.method.judges:
        reason = "its verdict bounds the share of false features among the selected"
        advise("judge", "tests", spec.run.judge, reason)
    return advice


def _draw_block(plan: Plan, *, is_mapped: bool) -> tuple[int, int, str]:
    spec, shape = plan.spec, plan.shape
    if is_mapped:
        return 1, spec.draw_block, "the store stays in memory: reading costs little"
    if plan.is_remote and shape.codes_nbytes <= plan.request.cap_nbytes:
        return 1, spec.draw_block, "the store is soon kept on this disk whole"
    size = shape.draw_block(spec.subspace_size)
    if size == 1:
        reason = "single features are long reads already, or the subspace is too small for blocks"
        return 1, spec.draw_block, reason
    where = "a server, at assumed rates," if plan.is_remote else "a cold disk"
    single, blocks = (1000 * speed.cold_seconds(plan, g) for g in (1, size))
    return (
        size,
        spec.draw_block,
        f"the store does not fit the cap: from {where} single features take about "
        f"{single:,.0f} ms an iteration, blocks of {size} about {blocks:,.0f} ms, and each feature "
        "is drawn as often (docs/research/theory.md, Blocks)",
    )


def _alpha(plan: Plan) -> tuple[str, str, str]:
    spec, p = plan.spec, plan.shape.n_candidates
    if spec.subspace_size == p:
        return "0", spec.alpha, "every feature is in every subspace; there is nothing to hold"
    rs, srs = (_time_of(plan, min(2, p), alpha) for alpha in ("0", DEFAULT_ALPHA))
    gain = "" if rs is None or srs is None else f" {float(rs / srs):,.3g} times faster"
    return (
        DEFAULT_ALPHA,
        spec.alpha,
        f"a feature that shows only together with another is found{gain} than by RS, and at most "
        "half of the room for new features is given up",
    )


# Power: the smallest effect of one feature that is found among p, tested alone.
#
# A shift: values are normal with means d standard deviations apart in two groups of n0 and n1 rows.
# It is found where a t-test has a p-value of at most the run's level over p (Bonferroni), with
# probability about 1/2 at d = t sqrt(1/n0 + 1/n1). On normal values a rank test finds shifts 2%
# larger, and none at all where perfect separation is too likely by chance.
#
# A category, and what is missing: found with probability about 1/2 where the noncentral chi-squared
# distribution of the test has its median at the quantile of that p-value. The other classes are
# alike; of k > 2 each is tested against the rest, at half of the level over k.

USUAL_LEVEL = 0.1
"""Level of runs whose judge has none."""
N_VALUES, MISSING = 12, 0.1
"""Values of the category, and share of missing cells, whose power is said."""


def power_of(
    class_counts: tuple[int, ...], n_features: int, level: float, *, has_classes: bool = True
) -> dict[str, Any]:
    """Return the power for the class most easily distinguished from all others.

    Parameters
    ----------
    class_counts : tuple of int
        Rows of each class, two classes at least.
    n_features : int
        p.
    level : float
        Of the run.
    has_classes : bool
        Whether the groups are classes, not the lower and the upper half of targets.

    Returns
    -------
    dict
        ``groups``, the rows of the class and of all others; ``half`` and ``most``, the shifts in
        standard deviations that are found in half and in 95% of cases, None where no shift is;
        ``reason``, why not. ``category``: how much of the target's variance one of ``values``
        equally common values explains that is found in half of cases. ``missing``: found so, where
        the ``share`` of cells is missing in the smaller group, is the larger group's that is
        ``difference`` more; or, with the share missing in all, a ``shift`` of the target where
        they are. None where nothing is found.
    """
    from scipy.special import chdtri, chndtrinc, stdtrit

    total = sum(class_counts)
    n0 = max(class_counts, key=lambda count: count * (total - count))
    n1 = total - n0
    found: dict[str, Any] = {"groups": (n0, n1), "half": None, "most": None, "reason": None}
    found |= {
        "category": {"values": N_VALUES, "explained": None},
        "missing": {"share": MISSING, "difference": None, "shift": None},
    }
    log_ways = math.lgamma(total + 1) - math.lgamma(n0 + 1) - math.lgamma(n1 + 1)
    n_perfect = 2.0 * n_features * math.exp(-log_ways)
    if n_perfect > level:
        found["reason"] = (
            f"with {n0} rows against {n1}, about {n_perfect:,.3g} of {n_features:,} features of "
            "noise separate them perfectly by chance, and nothing can be distinguished more"
        )
        return found
    bar, unit = level / n_features, math.sqrt(1 / n0 + 1 / n1)
    n_classes = len(class_counts)

    def explained(free: int) -> float:
        return float(chndtrinc(chdtri(free, bar), free, 0.5)) / total

    free = (n_classes - 1) * (N_VALUES - 1)
    if total >= N_VALUES * RARE_LEVEL and (part := explained(free)) < 1:
        found["category"]["explained"] = part
    bar /= 1 if n_classes == 2 else 2 * n_classes
    t = -float(stdtrit(total - 2, bar / 2))
    bar *= float(FIRST_SHARES[Contrast.ABSENCE] / FIRST_SHARES.sum())
    if has_classes:  # d^2 = v m (1 - m), m the share that is missing in all
        g, v = max(n0, n1) / total, explained(1) * total * unit**2
        a, half_b = 1 + v * g * g, v * g * (0.5 - MISSING)
        d = (half_b + math.sqrt(half_b**2 + a * v * MISSING * (1 - MISSING))) / a
        found["missing"]["difference"] = d if d <= 1 - MISSING else None
    else:
        rest = math.sqrt(total * MISSING * (1 - MISSING))
        found["missing"]["shift"] = -float(stdtrit(total - 2, bar / 2)) / rest
    return found | {"half": t * unit, "most": (t + NormalDist().inv_cdf(0.95)) * unit}


# Expected iterations to find features informative only beside others (Section 4.2, chaining).

MAX_DEGREE = 3


def degree_times(plan: Plan) -> list[dict[str, Any]]:
    """Return mean iterations until the features of degree 0 up to ``degree`` of a chain are found.

    Returns
    -------
    list of dict
        ``rs`` is for alpha = 0 and ``srs`` for the run's alpha, with infinite samples and K = q;
        None where they are never found, or beyond 1.7e308. ``rows_there`` is what there is of rows,
        on average, in a node below ``degree`` even splits, where the feature has to show. Empty for
        a method that has no theory of it.
    """
    most = min(MAX_DEGREE + 1, plan.shape.n_candidates) if plan.spec.method.theory else 0
    found = []
    for degree in range(most):
        times = [_time_of(plan, degree + 1, alpha) for alpha in ("0", plan.spec.alpha)]
        rs, srs = (None if not time or math.isinf(float(time)) else float(time) for time in times)
        rows_there = plan.shape.n_rows / 2**degree
        found.append({"degree": degree, "rows_there": rows_there, "rs": rs, "srs": srs})
    return found


def _time_of(plan: Plan, n_found: int, alpha: str) -> Decimal | None:
    """Return the mean iterations until so many features of a chain are found; None if never."""
    sizes = plan.shape.n_candidates, plan.spec.subspace_size, n_found
    found: Decimal | None = part_at(plan.spec.method.theory, "plan")("chain", *sizes, alpha)
    return found
