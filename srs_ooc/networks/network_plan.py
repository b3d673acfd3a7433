"""The plan of a network: what it needs and takes, before it is begun.

A few of its own targets are worked on and timed, and the rest is multiplied.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, cycle
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import UsageError
from srs_ooc.base.seeds import Purpose, derive_array, key_of
from srs_ooc.base.text import MB, ceil_div
from srs_ooc.networks.edges import PARQUET
from srs_ooc.networks.network_options import NetworkRequest
from srs_ooc.networks.network_task import NetworkTask, task_of
from srs_ooc.networks.weighing import (
    Pace,
    Trial,
    row_weights,
    target_values,
    training_rows,
)
from srs_ooc.runs.engine import ItemSource
from srs_ooc.runs.resources import categorical_features
from srs_ooc.store.manifest import CONSTANT
from srs_ooc.store.store import Store

TRIAL_SECONDS = 1.0
"""About how long a plan measures."""
QUICK_SECONDS = 0.3
"""About how long a network measures before it begins."""
MOST_TRIED = 256
"""Targets that are tried at most, over again if there is time left."""


def pace_of(task: NetworkTask, source: ItemSource, n_left: int, seconds: float) -> Pace:
    """Measure about what the work on targets will take.

    Parameters
    ----------
    task : NetworkTask
        What is worked on; it must not be for workers elsewhere.
    source : ItemSource
        Where columns come from.
    n_left : int
        Targets that are not done.
    seconds : float
        About how long to measure; longer where a tree takes longer.
    """
    genes, own, n_workers = task.genes, task.request.params, task.grant.n_workers
    varying = genes.targets[task.store.kinds()[genes.targets] != CONSTANT]
    share = len(varying) / len(genes.targets)
    n_left = min(len(varying), max(round(share * n_left), 1))
    targets = _tried(task, varying)
    has_regulators = len(genes.regulators) > 1 or len(genes.targets) > 1
    first = next(targets, None) if has_regulators else None
    if first is None:
        return Pace(0.0, n_workers, 0, "no values differ", "nothing to do", own.shorter)
    trial = Trial(
        source,
        categorical_features(task.store),
        task.blocks(n_workers),
        genes.regulators,
        row_weights(task.store, task.rows),
        chain([first], targets),
    )
    return own.pace(trial, n_left, seconds)


def _tried(
    task: NetworkTask, varying: NDArray[np.uint32]
) -> Iterator[tuple[int, NDArray[np.float64]]]:
    """Yield targets with their values, in an order fixed by the seed, over and over again.

    Those whose values do not differ in the rows trained on are left out.
    """
    key = key_of(task.request.params.seed, Purpose.EDGES)
    order = np.argsort(derive_array(key, varying), kind="stable")[:MOST_TRIED]
    again = []
    for target in varying[order].tolist():
        values = _values(task, target)
        if training_rows(values, None) is not None:
            again.append(target)
            yield target, values
    for target in cycle(again):
        yield target, _values(task, target)


def _values(task: NetworkTask, target: int) -> NDArray[np.float64]:
    return next(target_values(task.store, np.array([target], np.uint32), task.rows))


PLANNED_OUT = Path("edges.csv")
"""The file of edges of a plan that names none."""
WEIGHT_NBYTES = 24
"""Bytes of a weight in a CSV file, with commas and the end of the line."""
NAMES_READ = 256
"""Names whose lengths stand for those of all."""
EDGE_SECONDS, PAIR_SECONDS = 3e-6, 1e-8
"""Published allowances: writing an edge, and looking at a pair each time edges are put in order."""


@dataclass(frozen=True)
class NetworkPlan:
    """What is expected of a network.

    Attributes
    ----------
    task : NetworkTask
        The network.
    n_constant : int
        Targets without edges, as their values do not differ.
    pace : Pace
        Time of the work on targets.
    n_edges : int
        Edges that are written at most.
    weights_nbytes, edges_nbytes : int
        On disk: the folder of what is done, and at most about the file of edges, as CSV.
    """

    task: NetworkTask
    n_constant: int
    pace: Pace
    n_edges: int
    weights_nbytes: int
    edges_nbytes: int

    @property
    def writing_seconds(self) -> float:
        """Seconds of putting edges in order and writing them, at published rates."""
        n_passes = ceil_div(max(1, self.n_edges), self.task.grant.n_edges)
        n_pairs = len(self.task.genes.regulators) * len(self.task.genes.targets)
        return EDGE_SECONDS * self.n_edges + PAIR_SECONDS * n_pairs * n_passes

    @property
    def seconds(self) -> float:
        """Seconds of all of it."""
        return self.pace.seconds + self.writing_seconds

    @property
    def notes(self) -> tuple[str, ...]:
        """What the method has to say of such a network."""
        return self.task.request.params.remarks(self.task.table)


def make_network_plan(store: Store, request: NetworkRequest) -> NetworkPlan:
    """Return the plan of a network; a second or so, longer where trees are slow. Writes nothing.

    Raises
    ------
    UsageError, StoreError, BudgetError
        If the network could not be begun as asked, or is for workers elsewhere.
    """
    if request.cluster is not None:
        raise UsageError(
            "--dask: expected a plan for this machine, found workers elsewhere, whose speed is not "
            "measured. Leave it out: divide the seconds of one core by the threads of the workers."
        )
    with store.unchanged():
        task = task_of(store, request)
        n_targets = len(task.genes.targets)
        with (
            store.columns(mapped=task.grant.mapped) as columns,
            task.valued(ItemSource(columns, task.rows)) as source,
        ):
            pace = pace_of(task, source, n_targets, TRIAL_SECONDS)
        kinds = store.kinds()[task.genes.targets]
        n_constant = int(np.count_nonzero(kinds == CONSTANT))
        n_pairs = len(task.genes.regulators) * n_targets
        n_itself = len(np.intersect1d(task.genes.regulators, task.genes.targets))
        most = n_pairs - n_itself - n_constant * (len(task.genes.regulators) - 1)
        n_edges = min(max(0, most), request.top or n_pairs)
        weights = 8 * n_pairs + task.request.params.shared_nbytes(task.table)
        edge_nbytes = WEIGHT_NBYTES + 2 * _name_nbytes(store)
        return NetworkPlan(task, n_constant, pace, n_edges, weights, round(n_edges * edge_nbytes))


def _name_nbytes(store: Store) -> float:
    """Return the mean bytes of some names, evenly spaced."""
    step = ceil_div(len(store.names), NAMES_READ)
    places = range(0, len(store.names), step)
    return sum(len(store.names.encoded(i)) for i in places) / len(places)


def network_plan_values(plan: NetworkPlan) -> dict[str, Any]:
    """Return the plan as JSON-ready values: sizes in MB of 10^6 bytes, times in seconds."""
    task, request, pace = plan.task, plan.task.request, plan.pace
    return {
        "notes": list(plan.notes),
        "store": str(task.store.place),
        **request.params.values(),
        "n_rows": task.n_rows,
        "n_regulators": len(task.genes.regulators),
        "n_targets": len(task.genes.targets),
        "n_constant": plan.n_constant,
        "memory_mb": request.memory_mb,
        "smallest_memory_mb": task.smallest_cap_mb,
        "leases": [{"purpose": x.purpose, "mb": x.n_bytes / MB} for x in task.grant.leases],
        "free_mb": task.grant.free_nbytes / MB,
        "n_workers": task.grant.n_workers,
        "mapped": task.grant.mapped,
        "disk_mb": plan.weights_nbytes / MB,
        "n_edges_at_most": plan.n_edges,
        "edges_mb": None if request.out.suffix == PARQUET else plan.edges_nbytes / MB,
        "total_seconds": plan.seconds,
        "targets_seconds": pace.seconds,
        "edges_seconds": plan.writing_seconds,
        "measured": pace.measured,
        "extrapolated": pace.extrapolated,
        "shorter": pace.shorter,
    }
