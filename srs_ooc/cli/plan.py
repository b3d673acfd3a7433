"""``srs-ooc plan``: what a run would need, cost and find, before it is started."""

from typing import Any

import click

from srs_ooc.base.text import MB, counted, describe_nbytes, describe_seconds
from srs_ooc.base.urls import Place
from srs_ooc.cli import output
from srs_ooc.cli.output import echo_json, say, with_options
from srs_ooc.cli.run_options import ByPart, only_store, request_of, settled_options
from srs_ooc.planning.run_plan import plan_asked, plan_values
from srs_ooc.planning.speed import REQUEST_NBYTES_PER_SECOND, REQUESTS_PER_SECOND, cold_seconds
from srs_ooc.runs.plan import Plan
from srs_ooc.store.manifest import hopeless
from srs_ooc.store.opening import open_store


@click.command("plan", cls=ByPart, first=(
    "--memory-mb", "--n-rows", "--n-features", "--n-classes", "--adjust", "--halves", "--json",
))  # fmt: skip
@click.argument("store", required=False, type=output.STORE)
@click.option("--n-rows", type=output.whole(2), metavar="N", help="Without a store: rows.")
@click.option("--n-features", type=output.COUNT, metavar="P", help="... features.")
@click.option("--n-classes", type=output.whole(2), metavar="C",
              help="... classes, of equal size.  [default: 2]")  # fmt: skip
@output.memory_option("512")
@output.THREADS_OPTION
@with_options(settled_options())
@click.option("--halves", type=output.whole(0), metavar="N",
              help="Plan a run with so many halves of the rows.")  # fmt: skip
@click.option("--save-trees", is_flag=True, help="Plan a run that keeps its trees.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def plan_command(
    store: Place | None,
    n_rows: int | None,
    n_features: int | None,
    n_classes: int | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Say what a run on STORE, or on a table known only by its numbers, would need and could find.

    Writes nothing. With a store, the time of an iteration is measured by a few real ones.

    \b
    Examples:
      srs-ooc plan data.zarr --memory-mb 512
      srs-ooc plan --n-rows 72 --n-features 850000 --memory-mb 512
    """
    request = request_of(given)
    found = store is not None or n_rows is n_features is n_classes is None
    opened = (lambda: open_store(store or only_store())) if found else None
    plan = plan_asked(opened, request, n_rows, n_features, n_classes)
    values = plan_values(plan)
    if as_json:
        echo_json(values)
    else:
        say("\n".join(plan_lines(plan, values)))


def plan_lines(plan: Plan, values: dict[str, Any]) -> list[str]:
    """Return the plan of a run for a reader: what :func:`plan_values` says of it."""
    counts = ", ".join(f"{count:,}" for count in values["class_counts"])
    target = f"classes of {counts}" if counts else "a target of numbers"
    where = "numbers alone" if plan.table is None else str(plan.store.place)
    equal = ", taken as equal" if plan.table is None else ""
    why = plan.table and hopeless(plan.store.manifest, plan.task.target)
    return [
        f"{where}: {values['n_rows']:,} rows ({target}{equal}), {values['n_features']:,} features",
        *([f"note: {why}"] if why else []),
        *plan.notes,
        *_memory_lines(plan, values),
        *_time_lines(plan, values),
        *_find_lines(plan, values),
        "advice",
        *(
            f"  {said['name'].replace('_', ' ')} {said['value']}"
            + f" (this plan is for {said['planned']})" * (said["planned"] != said["value"])
            + f": {said['reason']}"
            for said in values["advice"]
        ),
        *_alternative_lines(values),
    ]


def _memory_lines(plan: Plan, values: dict[str, Any]) -> list[str]:
    reads = f"about {values['reads_per_iteration']:,} reads each iteration"
    if values["mapped"]:
        reads = "all in memory after the first touch"
    held = f", with which {plan.spec.learner.model} was tried"
    if (largest := values["largest_subspace_size"]) is not None:
        # which is the same wherever the store is
        held = f"; the cap holds up to {largest:,}{'' if plan.is_remote else ' (--q max)'}"
    disk, read = (describe_nbytes(round(values[key] * MB))
                  for key in ("disk_mb", "read_mb_per_iteration"))  # fmt: skip
    return [
        f"memory: {values['memory_mb']:g} MB",
        *(f"  {lease['mb']:>9.1f}  {lease['purpose']}" for lease in values["leases"]),
        f"  {values['free_mb']:>9.1f}  free",
        f"  q = {values['subspace_size']:,} features at a time{held}",
        f"disk: {disk} of codes; {read} paged in each iteration, {reads}",
    ]


_WEIGHED = [
    "  (if all were drawn alike: this method draws features with low scores far less often, and "
    "some hardly ever; `srs-ooc scores` shows which)"
]


def _time_lines(plan: Plan, values: dict[str, Any]) -> list[str]:
    kind = "measured" if values["seconds_measured"] else "an ESTIMATE"
    where, cold, draws = "a cold disk", "", values["draws"]
    if plan.is_remote:
        rates = (
            f"{REQUESTS_PER_SECOND:,} requests and {REQUEST_NBYTES_PER_SECOND / MB:.0f} MB a second"
        )
        where = f"the server (ASSUMED: {rates}), until what is asked for is kept here,"
    if not values["mapped"]:
        seconds = describe_seconds(cold_seconds(plan, plan.spec.draw_block))
        cold = f"\n  from {where} add about {seconds} each"
    stages = [f"{what} {describe_seconds(each)}" for what, each in values["stage_seconds"].items()]
    is_whole = not plan.spec.concludes or "tests" in values["stage_seconds"]
    total = f"in all {describe_seconds(values['total_seconds'])}"
    stages.append(
        total if is_whole else "the last stage and tests are not in this: a store is needed"
    )
    lines = [
        f"time: {describe_seconds(values['seconds_per_iteration'])} an iteration, {kind} "
        f"({values['seconds_how']}){cold}",
        f"  {values['iterations']:,} {'; '.join(stages)}",
    ]
    if draws is None:
        return lines
    never = "never: held features fill the subspace"
    held = f", while as many features are held as alpha {values['alpha']} allows"
    held = held if float(values["alpha"]) else ""
    one, every = (never if draws[k] is None else f"{draws[k]:,}" for k in ("one", "every"))
    return [
        *lines,
        f"iterations until drawn {draws['n_draws']} times with probability {draws['level']:g}"
        f"{held}",
        f"  a feature         {one}",
        f"  every feature     {every}",
        *(_WEIGHED if plan.spec.method.draws_by_scores else []),
    ]


def _find_lines(plan: Plan, values: dict[str, Any]) -> list[str]:
    power, srs, lines = values["power"], f"SRS ({values['alpha']})", []
    if values["degrees"]:
        lines = [
            "mean iterations to find a feature that shows only in a subspace with certain others, "
            "which are found first",
            f"  (infinite samples)  {'RS':>12}  {srs:>12}  rows of this table it shows in",
        ]
    for time in values["degrees"]:
        lines.append(
            f"  {counted(time['degree'], 'other'):<20}{_count(time['rs']):>12}  "
            f"{_count(time['srs']):>12}  {time['rows_there']:,.0f}"
        )
    one = "one class" if plan.class_counts else "the lower half of the targets"
    lines.append(f"power and least effect, {one} ({power['groups'][0]:,} rows) against the others")
    if power["half"] is not None:
        lines.append(
            f"  a single-feature shift below d = {power['half']:.2f} standard deviations is found "
            "less than half the time"
        )
        lines.append(f"  d = {power['most']:.2f} is found in 95% of cases")
        lines += _other_effects(power["category"], power["missing"])
    else:
        lines.append(f"  no shift is found, however large: {power['reason']}")
    if plan.shape.has_groups:
        lines.append("  of rows as if independent; they come in groups, which takes larger shifts")
    found = "  (found: by a test of it alone at the level over the number of features"
    return [*lines, f"{found}; what is missing at its share)"]


def _other_effects(category: dict[str, Any], missing: dict[str, Any]) -> list[str]:
    share, lines = missing["share"], []
    if (explained := category["explained"]) is not None:
        lines.append(
            f"a category with {category['values']} values that explains {explained:.2g} of the "
            f"target's variance (w = {explained**0.5:.2f})"
        )
    if (more := missing["difference"]) is not None:
        smaller, larger = f"{share:.0%}", f"{share + more:.0%}"
        lines.append(f"what is missing in {smaller} of the smaller group, {larger} of the larger")
    if (shift := missing["shift"]) is not None:
        lines.append(
            f"what is missing in {share:.0%} of the rows, with targets d = {shift:.2f} off"
        )
    return [f"  half the time: {line}" for line in lines]


def _alternative_lines(values: dict[str, Any]) -> list[str]:
    degrees = values["degrees"]
    by_degree = " (mean iterations of SRS by number of others, infinite samples)" if degrees else ""
    lines = [
        f"what would change{by_degree}",
        f"  {'':26}{'MB':>8}{'q':>12}{'workers':>9}{'mapped':>8}{'T':>8}"
        + "".join(f"{time['degree']:>12}" for time in degrees),
    ]
    for other in values["alternatives"]:
        mapped = "yes" if other["mapped"] else "no"
        times = "".join(f"{_count(time['srs']):>12}" for time in other["degrees"])
        lines.append(
            f"  {other['what']:<26}{other['memory_mb']:>8,}{other['subspace_size']:>12,}"
            f"{other['n_workers']:>9}{mapped:>8}{other['iterations']:>8,}{times}"
        )
    return lines


def _count(value: float | None) -> str:
    if value is None:
        return "never"
    return f"{value:,.0f}" if value < 1e7 else f"{value:.2e}"
