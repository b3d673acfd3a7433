"""``srs-ooc network --plan``: what a network would need and take, for a reader."""

from srs_ooc.base.text import MB, counted, describe_nbytes, describe_seconds
from srs_ooc.networks.edges import PARQUET
from srs_ooc.networks.network_plan import NetworkPlan


def network_plan_lines(plan: NetworkPlan) -> list[str]:
    """Return the plan, line by line."""
    return [
        _table_line(plan),
        *plan.notes,
        *_memory_lines(plan),
        _disk_line(plan),
        *_time_lines(plan),
    ]


def _table_line(plan: NetworkPlan) -> str:
    task = plan.task
    constant = f" ({plan.n_constant:,} constant, without edges)" if plan.n_constant else ""
    return (
        f"{task.store.place}: {task.n_rows:,} rows, {len(task.genes.regulators):,} regulators x "
        f"{len(task.genes.targets):,} targets{constant}; --method {task.request.params.method}"
    )


def _memory_lines(plan: NetworkPlan) -> list[str]:
    grant, cap_mb = plan.task.grant, plan.task.request.memory_mb
    return [
        f"memory: {cap_mb:g} MB; the smallest cap that works: {plan.smallest_mb} MB",
        *(f"  {lease.n_bytes / MB:>9.1f}  {lease.purpose}" for lease in plan.leases),
        f"  {grant.free_nbytes / MB:>9.1f}  free",
    ]


def _disk_line(plan: NetworkPlan) -> str:
    out = plan.task.request.out
    size = f", about {describe_nbytes(plan.edges_nbytes)} as CSV"
    return (
        f"disk: {describe_nbytes(plan.weights_nbytes)} in {plan.task.request.folder.name}; "
        f"{out.name} with up to {plan.n_edges:,} edges"
        f"{'' if out.suffix == PARQUET else size}"
    )


def _time_lines(plan: NetworkPlan) -> list[str]:
    pace = plan.pace
    return [
        f"time: {describe_seconds(plan.seconds)} on {counted(pace.n_workers, 'core')}, an ESTIMATE",
        f"  {describe_seconds(pace.seconds)} for the targets ({pace.measured}; "
        f"{pace.extrapolated})",
        f"  up to {describe_seconds(plan.writing_seconds)} for the edges (published rates)",
        f"  shorter: {pace.shorter}",
    ]
