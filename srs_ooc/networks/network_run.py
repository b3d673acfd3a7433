"""A network from a store: made or gone on with, worked on, and its edges written.

Targets are done one by one, by threads here or by workers elsewhere, or all together under one
penalty (Huynh-Thu and Geurts 2023, Eq. 21).
"""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing

import numpy as np

from srs_ooc.base.errors import UsageError
from srs_ooc.base.records import Step
from srs_ooc.base.text import MB
from srs_ooc.networks.edges import (
    STAGE,
    Edge,
    EdgeStore,
    check_edge_file,
    equal_columns,
    name_cache,
    names_of,
    open_edge_ledger,
    ranked,
    write_edges,
)
from srs_ooc.networks.network_plan import estimate_said
from srs_ooc.networks.network_task import Network, NetworkJob, NetworkRequest, NetworkTask
from srs_ooc.networks.weighing import EdgeScorer, Watch
from srs_ooc.runs.batches import parallel_map, threads
from srs_ooc.store.manifest import CONSTANT
from srs_ooc.store.store import Store

TOGETHER_ELSEWHERE = 32
"""Targets at most that a worker elsewhere does before it replies."""
WRITTEN_TOGETHER = 1 << 13
"""Edges whose names are looked up together."""


def work_on_network(
    store: Store,
    request: NetworkRequest,
    watch: Watch = lambda _: True,
    note: Callable[[str], None] = lambda _: None,
    trial_seconds: float = 0.0,
) -> Network:
    """Weigh the regulators of all targets and write the edges; go on where it was stopped.

    Parameters
    ----------
    store : Store
        The store; its own target plays no part, its weights of rows do.
    request : NetworkRequest
        What is asked.
    watch : callable
        Shown each step; the work stops where it says no, with all that is done kept.
    note : callable
        Given sentences worth saying before the work begins.
    trial_seconds : float
        About how long to measure first what the work will take, for a note; 0 for not at all.

    Raises
    ------
    UsageError, StoreError, RunError, BudgetError
        If it cannot be done as asked, or the store is replaced meanwhile.
    """
    check_edge_file(request.out)
    _check_request(request)
    with store.unchanged():
        task = NetworkTask(store, request)
        n_targets, n_regulators = len(task.targets), len(task.regulators)
        with closing(open_edge_ledger(request.folder, task.identity(), n_targets)) as ledger:
            ledger.check = store.check_unchanged
            edges = EdgeStore(ledger, n_targets, n_regulators)
            n_duplicates, duplicates = _work(task, edges, watch, note, trial_seconds)
            n_edges = 0
            if edges.n_done == n_targets:
                store.check_unchanged()
                replaces = request.out.exists()
                found = _ranked(task, edges)
                n_edges = write_edges(request.out, found, replaces=replaces, safe=request.safe)
            is_constant = store.kinds()[task.targets] == CONSTANT
            return Network(
                os.fspath(request.out),
                os.fspath(request.folder),
                n_regulators,
                n_targets,
                edges.n_done,
                n_edges,
                int(np.count_nonzero(is_constant)),
                n_duplicates,
                round(edges.committed.seconds, 3),
                round(edges.committed.peak_nbytes / MB, 1),
                duplicates,
                edges.n_epochs,
            )


def _check_request(request: NetworkRequest) -> None:
    """Refuse to overwrite a file that is not this network's own, and joint work elsewhere."""
    if request.out.exists() and not request.folder.exists():
        raise UsageError(
            f"{request.out}: expected no file there, found one, and no {request.folder} of a "
            "network that it may be of. Move it away, or choose another name."
        )
    if not request.out.absolute().parent.is_dir():
        raise UsageError(
            f"--out: expected a file in a folder that is there, found {request.out}. Make the "
            "folder first."
        )
    if request.cluster is not None and request.params.is_joint:
        raise UsageError(
            "--dask: expected targets that are worked on one by one, found --joint, which takes a "
            "step of all targets together in one process. Leave one of them out; --threads grows "
            "models of several targets at once."
        )


def _work(
    task: NetworkTask,
    edges: EdgeStore,
    watch: Watch,
    note: Callable[[str], None],
    trial_seconds: float,
) -> tuple[int, list[tuple[str, str]]]:
    """Compare columns, and weigh the regulators of the targets that are left."""
    store, params, is_here = task.store, task.request.params, task.request.cluster is None
    n_left = edges.n_targets - edges.n_done
    with task.source(valued=is_here and n_left > 0) as source:
        varying = store.kinds() != CONSTANT
        compared = (some[varying[some]] for some in (task.regulators, task.targets))
        n_equal, equal = equal_columns(source, *compared)
        flat = names_of(store, np.array(equal, np.int64).reshape(-1))
        names = [store.names[i] for i in flat.tolist()]
        named = list(zip(names[::2], names[1::2], strict=True))
        if n_equal:
            note(_said(n_equal, *named[0]))
        if not n_left:
            return n_equal, named
        for sentence in params.remarks(task.shape, edges.n_targets):
            note(sentence)
        scorer = task.scorer(source)
        if is_here and trial_seconds:
            note(estimate_said(task, scorer, n_left, trial_seconds))
        if params.is_joint:
            params.work_together(scorer, task.values_of(task.targets), edges, watch)
        else:
            work_one_by_one(task, scorer, edges, watch)
    return n_equal, named


def work_one_by_one(task: NetworkTask, scorer: EdgeScorer, edges: EdgeStore, watch: Watch) -> None:
    """Have all targets weighed whose edges are not there yet, until ``watch`` says no.

    What is done is committed at least every second or so, and at the end.
    """

    def goes_on() -> bool:
        return watch(Step(STAGE, edges.n_done, edges.n_targets, unit="targets"))

    cluster, n_threads, n_together = task.request.cluster, lambda: task.n_workers, 1
    first, early = edges.n_done, {}
    targets = enumerate(task.values_of(task.targets[first:]), first)
    edges.begin()
    with ExitStack() as stack:
        if cluster is None:
            send = stack.enter_context(threads(scorer.work, task.n_workers))
        else:
            job = NetworkJob.of(task, cluster.worker_memory_mb)
            line = stack.enter_context(closing(cluster.line(job)))
            send, n_threads, n_together = line.send, line.n_threads, TOGETHER_ELSEWHERE
        done = parallel_map(send, n_threads, targets, goes_on, task.n_ahead, n_together)
        for number, weights in done:
            early[number] = weights
            while edges.n_done in early:  # they are kept in their order
                edges.add(early.pop(edges.n_done))
                if edges.is_due:
                    edges.commit()
    if edges.n_done > edges.committed.iteration:
        edges.commit()
    goes_on()


def _said(n_equal: int, target: str, regulator: str) -> str:
    more = f", and {n_equal - 1} more such pairs" if n_equal > 1 else ""
    return (
        f"target {target}: the regulator {regulator} orders the rows exactly as it does{more}. "
        "Such a regulator takes nearly all of the weight. Leave it out of the regulators if it "
        "is the same gene measured twice."
    )


def _ranked(task: NetworkTask, edges: EdgeStore) -> Iterator[list[Edge]]:
    look_up = name_cache(task.store.names)
    regulators = names_of(task.store, task.regulators)
    targets = names_of(task.store, task.targets)
    for weights, places in ranked(edges.shards, task.n_edges, task.request.top):
        for start in range(0, len(weights), WRITTEN_TOGETHER):
            some = slice(start, start + WRITTEN_TOGETHER)
            pairs = np.divmod(places[some], len(regulators))
            to, by = targets[pairs[0]].tolist(), regulators[pairs[1]].tolist()
            text = look_up({*to, *by})
            yield [
                (text[r], text[t], weight)
                for r, t, weight in zip(by, to, weights[some].tolist(), strict=True)
            ]
