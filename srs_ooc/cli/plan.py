"""``srs-ooc plan``: what a run would need, cost and find, before it is started."""

from math import exp
from typing import Any

import click

from srs_ooc.base.text import MB, counted, describe_nbytes, describe_seconds
from srs_ooc.base.urls import Place
from srs_ooc.cli.output import STORE, echo_json, say, with_options
from srs_ooc.cli.run_options import INPUT_OPTIONS, identity_options, only_store, request_of
from srs_ooc.planning.iterations import DrawTimes, subject_asked
from srs_ooc.planning.run_plan import Plan, make_plan, plan_values
from srs_ooc.planning.speed import REQUEST_NBYTES_PER_SECOND, REQUESTS_PER_SECOND
from srs_ooc.store.opening import open_store


@click.command("plan")
@click.argument("store", required=False, type=STORE)
@click.option("--n-rows", type=click.IntRange(2), metavar="N", help="Without a store: rows.")
@click.option("--n-features", type=click.IntRange(1), metavar="P", help="... features.")
@click.option("--n-classes", type=click.IntRange(2), metavar="C",
              help="... classes, of equal size.  [default: 2]")  # fmt: skip
@click.option("--memory-mb", type=click.IntRange(1), metavar="MB",
              help="Cap on the peak resident memory of the run, in MB of 10^6 bytes.  "
              "[default: 512]")  # fmt: skip
@click.option("--threads", type=click.IntRange(1), metavar="N",
              help="Workers.  [default: the cores there are]")  # fmt: skip
@with_options(identity_options() + INPUT_OPTIONS)
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

    Writes nothing. With a store, the time of an iteration is measured by a few real ones. Of a
    network of genes: `srs-ooc network STORE --plan`.
    """
    request = request_of(given)
    found = store is not None or n_rows is n_features is n_classes is None
    place = (lambda: open_store(only_store() if store is None else store)) if found else None
    plan = make_plan(subject_asked(place, request, n_rows, n_features, n_classes), request.options)
    if as_json:
        echo_json(plan_values(plan))
    else:
        say("\n".join(plan_lines(plan)))


def plan_lines(plan: Plan) -> list[str]:
    """Return the plan for a reader."""
    return [
        *_table_lines(plan),
        *plan.subject.notes,
        *_memory_lines(plan),
        *_time_lines(plan),
        *_find_lines(plan),
        *_advice_lines(plan),
        *_alternative_lines(plan),
    ]


def _table_lines(plan: Plan) -> list[str]:
    subject = plan.subject
    shape, counts = subject.shape, ", ".join(f"{count:,}" for count in subject.class_counts)
    target = f"classes of {counts}" if counts else "a target of numbers"
    where = "numbers alone" if subject.store is None else str(subject.store.place)
    equal = ", taken as equal" if subject.store is None else ""
    return [f"{where}: {shape.n_rows:,} rows ({target}{equal}), {shape.n_candidates:,} features"]


def _memory_lines(plan: Plan) -> list[str]:
    subject, memory = plan.subject, plan.memory
    reads = (
        "all in memory after the first touch"
        if memory.mapped
        else f"about {plan.n_reads:,} reads each iteration"
    )
    lines = [f"memory: {subject.cap_nbytes / MB:g} MB"]
    lines += [f"  {lease.n_bytes / MB:>9.1f}  {lease.purpose}" for lease in memory.leases]
    return [
        *lines,
        f"  {memory.free_nbytes / MB:>9.1f}  free",
        f"  q = {subject.spec.subspace_size:,} features at a time; the cap holds up to "
        f"{subject.largest_subspace:,} (--q max)",
        f"disk: {describe_nbytes(subject.codes_nbytes)} of codes; "
        f"{describe_nbytes(plan.read_nbytes)} paged in each iteration, {reads}",
    ]


_WEIGHED = [
    "  (if all were drawn alike: this method draws features with low scores far less often, and "
    "some hardly ever; `srs-ooc scores` shows which)",
]


def _where(plan: Plan) -> str:
    if plan.subject.is_remote:
        rates = (
            f"{REQUESTS_PER_SECOND:,} requests and {REQUEST_NBYTES_PER_SECOND / MB:.0f} MB a second"
        )
        return f"the server (ASSUMED: {rates}), until what is asked for is kept here,"
    return "a cold disk"


def _time_lines(plan: Plan) -> list[str]:
    kind = "measured" if plan.speed.measured else "an ESTIMATE"
    cold = "" if plan.memory.mapped else (
        f"\n  from {_where(plan)} add about {describe_seconds(plan.cold_seconds)} each"
    )  # fmt: skip
    return [
        f"time: {describe_seconds(plan.speed.seconds)} an iteration, {kind} "
        f"({plan.speed.how}){cold}",
        f"  {plan.iterations:,} iterations: {describe_seconds(plan.total_seconds)}",
        *([] if plan.draws is None else _draw_lines(plan, plan.draws)),
    ]


def _draw_lines(plan: Plan, draws: DrawTimes) -> list[str]:
    alpha, never = plan.subject.spec.alpha, "never: R fills the subspace"
    one = f"{draws.one:,}" if draws.one is not None else never
    every = f"{draws.every:,}" if draws.every is not None else never
    return [
        f"iterations until drawn {draws.n_draws} times with probability {draws.level:g} "
        f"(alpha {alpha}, R full)",
        f"  a feature         {one}",
        f"  every feature     {every}",
        *(_WEIGHED if plan.subject.spec.draws_by_weight else []),
    ]


def _degree_lines(plan: Plan) -> list[str]:
    if not plan.degrees:
        return []
    alpha = plan.subject.spec.alpha
    return [
        "mean iterations to find a feature seen only beside so many others, one before the other",
        f"  (infinite samples)  {'RS':>12}  {f'SRS ({alpha})':>12}  rows of this table it shows in",
        *(
            f"  {counted(time.degree, 'other'):<20}{_count(time.rs):>12}  {_count(time.srs):>12}  "
            f"{time.rows_there:,.0f}"
            for time in plan.degrees
        ),
    ]


def _find_lines(plan: Plan) -> list[str]:
    power, lines = plan.power, _degree_lines(plan)
    one = "one class" if plan.subject.class_counts else "the lower half of the targets"
    lines.append(f"power and least effect, {one} ({power.groups[0]:,} rows) against the others")
    if power.half is not None:
        lines.append(
            f"  a single-feature shift below d = {power.half:.2f} standard deviations is found "
            "less than half the time"
        )
    if power.most is not None:
        lines.append(f"  d = {power.most:.2f} is found in 95% of cases")
    if power.reason is not None:
        which = "no shift" if power.half is None else "no shift in 95% of cases"
        lines.append(f"  {which} is found, however large: {power.reason}")
    return [
        *lines,
        "  (found: above all noise features by a rank test; a tree sees a lone shift no better)",
        *_counting_lines(plan),
    ]


def _counting_lines(plan: Plan) -> list[str]:
    counting = plan.counting
    if counting is None:
        return []
    (assumed, fewest), *others = counting.fewest.items()
    more = ", ".join(f"{count} with clusters of {size}" for size, count in others)
    lines = [
        f"fewest features that counting decoys ({counting.families} a feature) selects at level "
        f"{counting.level:g}, where none is marginally significant",
        f"  {fewest}, if decoys near the cut are not correlated (c = {assumed}, assumed here; the "
        f"run finds c); {more}",
    ]
    if counting.are_few(plan.subject.shape.n_candidates):
        number = exp(counting.log_arrangements or 0.0)
        lines.append(
            f"  rows trade places in {number:,.0f} ways that differ in the target: too few for any "
            f"of {plan.subject.shape.n_candidates:,} features to be marginally significant"
        )
    return lines


def _advice_lines(plan: Plan) -> list[str]:
    lines = ["advice"]
    for advice in plan.advice:
        other = "" if advice.planned == advice.value else f" (this plan is for {advice.planned})"
        lines.append(f"  {advice.name.replace('_', ' ')} {advice.value}{other}: {advice.reason}")
    return lines


def _alternative_lines(plan: Plan) -> list[str]:
    by_degree = " (mean iterations of SRS by degree, infinite samples)" if plan.degrees else ""
    lines = [
        f"what would change{by_degree}",
        f"  {'':26}{'MB':>8}{'q':>12}{'workers':>9}{'mapped':>8}{'T':>8}"
        + "".join(f"{time.degree:>12}" for time in plan.degrees),
    ]
    for other in plan.alternatives:
        mapped = "yes" if other.mapped else "no"
        times = "".join(f"{_count(time.srs):>12}" for time in other.degrees)
        lines.append(
            f"  {other.what:<26}{other.memory_mb:>8,}{other.subspace_size:>12,}"
            f"{other.n_workers:>9}{mapped:>8}{other.iterations:>8,}{times}"
        )
    return lines


def _count(value: float | None) -> str:
    if value is None:
        return "never"
    return f"{value:,.0f}" if value < 1e7 else f"{value:.2e}"
