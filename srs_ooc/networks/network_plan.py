"""The plan of a network: what it needs and takes, before it is begun.

A few of its own targets are worked on and timed, and the rest is multiplied.
"""

from itertools import chain, cycle
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import UsageError
from srs_ooc.base.seeds import Purpose, derive_array, key_of
from srs_ooc.base.text import LONG_SECONDS, MB, ceil_div, counted, describe_seconds
from srs_ooc.networks.edges import PARQUET
from srs_ooc.networks.network_task import NetworkRequest, NetworkTask
from srs_ooc.networks.weighing import (
    WEIGHT_NBYTES,
    EdgeScorer,
    Targets,
    targets_text,
    training_rows,
)
from srs_ooc.store.manifest import CONSTANT
from srs_ooc.store.store import Store

TRIAL_SECONDS = 1.0
"""About how long a plan measures."""
QUICK_SECONDS = 0.3
"""About how long a network measures before it begins."""
MOST_TRIED = 256
"""Targets that are tried at most, over again if there is time left."""


def estimate_said(task: NetworkTask, scorer: EdgeScorer, n_left: int, seconds: float) -> str:
    """Return a sentence of what the work on so many targets will take, for those who begin it."""
    all_seconds, n_left, measured, extrapolated = estimate(task, scorer, n_left, seconds)
    n_workers = min(task.n_workers, n_left) or task.n_workers
    text = (
        f"about {describe_seconds(all_seconds)} for {targets_text(n_left)} on "
        f"{counted(n_workers, 'core')}, an ESTIMATE ({measured}; {extrapolated})"
    )
    shorter = task.request.params.shorter
    return f"{text}. Shorter: {shorter}." if all_seconds >= LONG_SECONDS else f"{text}."


def estimate(
    task: NetworkTask, scorer: EdgeScorer, n_left: int, seconds: float
) -> tuple[float, int, str, str]:
    """Measure about what the work on targets will take.

    Parameters
    ----------
    task : NetworkTask
        What is worked on; it must not be for workers elsewhere.
    scorer : EdgeScorer
        What weighs its regulators.
    n_left : int
        Targets that are not done.
    seconds : float
        About how long to measure; longer where a tree takes longer.

    Returns
    -------
    seconds, n_left, measured, extrapolated : float, int, str, str
        Wall-clock seconds of all that are left, with all workers at work; how many of them have
        values that differ; what was done, and what the rest of the number is.
    """
    varying = task.targets[task.store.kinds()[task.targets] != CONSTANT]
    share = len(varying) / len(task.targets)
    n_left = min(len(varying), max(round(share * n_left), 1))
    targets = _tried(task, varying)
    first = next(targets, None)
    if first is None:
        return 0.0, 0, "no values differ", "nothing to do"
    found = task.request.params.estimate(scorer, chain([first], targets), n_left, seconds)
    return found[0], n_left, *found[1:]


def _tried(task: NetworkTask, varying: NDArray[np.uint32]) -> Targets:
    """Yield targets with their values, in an order fixed by the seed, over and over again.

    Those without regulators, or whose values do not differ in the rows trained on, are left out.
    """
    key = key_of(task.request.params.seed, Purpose.EDGES)
    order = np.argsort(derive_array(key, varying), kind="stable")[:MOST_TRIED]
    again = []
    for place in order.tolist():
        ((target, values),) = task.values_of(varying[[place]])
        if training_rows(values, None) is not None and (task.regulators != target).any():
            again.append(place)
            yield target, values
    for place in cycle(again):
        yield from task.values_of(varying[[place]])


PLANNED_OUT = Path("edges.csv")
"""The file of edges of a plan that names none."""
NAMES_READ = 256
"""Names whose lengths stand for those of all."""
EDGE_SECONDS, PAIR_SECONDS = 3e-6, 1e-8
"""Published allowances: writing an edge, and looking at a pair each time edges are put in order."""


def plan_of_network(store: Store, request: NetworkRequest) -> dict[str, Any]:
    """Return the plan of a network; a second or so, longer where trees are slow. Writes nothing.

    Returns
    -------
    dict
        JSON-ready: sizes in MB of 10^6 bytes, times in seconds.

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
    params = request.params
    with store.unchanged():
        task = NetworkTask(store, request)
        n_regulators, n_targets = len(task.regulators), len(task.targets)
        with task.source() as source:
            found = estimate(task, task.scorer(source), n_targets, TRIAL_SECONDS)
        n_constant = int(np.count_nonzero(store.kinds()[task.targets] == CONSTANT))
        n_pairs = n_regulators * n_targets
        n_itself = len(np.intersect1d(task.regulators, task.targets))
        most = n_pairs - n_itself - n_constant * (n_regulators - 1)
        n_edges = min(max(0, most), request.top or n_pairs)
        names = store.names
        read = range(0, len(names), ceil_div(len(names), NAMES_READ))
        each = WEIGHT_NBYTES + 2 * sum(len(names.encoded(i)) for i in read) / len(read)
    n_passes = ceil_div(max(1, n_edges), task.n_edges)
    edges_seconds = EDGE_SECONDS * n_edges + PAIR_SECONDS * n_pairs * n_passes
    return {
        "notes": list(params.remarks(task.shape, n_targets)),
        "store": str(store.place),
        **params.values(),
        "n_rows": task.shape.n_rows,
        "n_regulators": n_regulators,
        "n_targets": n_targets,
        "n_constant": n_constant,
        "memory_mb": request.memory_mb,
        "smallest_memory_mb": task.smallest_cap_mb,
        "leases": [{"purpose": x.purpose, "mb": x.n_bytes / MB} for x in task.leases],
        "free_mb": task.free_nbytes / MB,
        "n_workers": task.n_workers,
        "mapped": task.mapped,
        "disk_mb": (8 * n_pairs + params.shared_nbytes(task.shape, n_targets)) / MB,
        "n_edges_at_most": n_edges,
        "edges_mb": None if request.out.suffix == PARQUET else round(n_edges * each) / MB,
        "total_seconds": found[0] + edges_seconds,
        "targets_seconds": found[0],
        "edges_seconds": edges_seconds,
        "measured": found[2],
        "extrapolated": found[3],
        "shorter": params.shorter,
    }
