"""A network from a store: made or gone on with, worked on, and its edges written."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing

import numpy as np

from srs_ooc.base.errors import UsageError
from srs_ooc.base.text import MB
from srs_ooc.networks.book import EdgeBook, open_book
from srs_ooc.networks.desks import NetworkJob, TargetDesk
from srs_ooc.networks.files import Edge, check_edge_file, write_edges
from srs_ooc.networks.genes import equal_columns, names_of
from srs_ooc.networks.joint_work import JointWork
from srs_ooc.networks.labels import KnownNames
from srs_ooc.networks.pace import pace_of
from srs_ooc.networks.probability_params import ProbabilityParams
from srs_ooc.networks.ranking import ranked
from srs_ooc.networks.request import Network, NetworkRequest
from srs_ooc.networks.task import NetworkTask, task_of
from srs_ooc.networks.weighing import Bench
from srs_ooc.networks.work import TargetWork, Watch
from srs_ooc.runs.batches import ThreadLine
from srs_ooc.runs.engine import ItemSource
from srs_ooc.runs.jobs import Line, WorkerStore, new_token
from srs_ooc.runs.resources import categorical_features, noting
from srs_ooc.store.manifest import CONSTANT
from srs_ooc.store.store import Store

WRITTEN_TOGETHER = 1 << 13
"""Edges whose names are looked up together."""
TOGETHER_ELSEWHERE = 32
"""Targets at most that a worker elsewhere does before it replies."""


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
    _check_free(request)
    _check_cluster(request)
    with store.unchanged():
        task = task_of(store, request)
        n_targets, n_regulators = len(task.genes.targets), len(task.genes.regulators)
        work = _Work(task, trial_seconds)
        with closing(open_book(request.folder, task.identity(), n_targets)) as ledger:
            book = EdgeBook(ledger, n_targets, n_regulators)
            n_duplicates, duplicates = work.work(book, noting(ledger, request.cluster, watch), note)
            n_edges = 0
            if book.n_done == n_targets:
                store.check_unchanged()
                n_edges = work.write(book)
            return work.network(book, n_edges, n_duplicates, duplicates)


def _check_cluster(request: NetworkRequest) -> None:
    own = request.params.own
    if request.cluster is not None and isinstance(own, ProbabilityParams) and own.is_joint:
        raise UsageError(
            "--dask: expected targets that are worked on one by one, found --joint, which takes a "
            "step of all targets together in one process. Leave one of them out; --threads grows "
            "models of several targets at once."
        )


def _check_free(request: NetworkRequest) -> None:
    """Refuse to overwrite a file that is not this network's own."""
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


class _Work:
    """One network at work."""

    def __init__(self, task: NetworkTask, trial_seconds: float) -> None:
        self._trial_seconds = trial_seconds
        self.task, self.store, self.request = task, task.store, task.request
        self.rows, self.genes, self.grant = task.rows, task.genes, task.grant
        self.cluster = task.request.cluster

    def work(
        self, book: EdgeBook, watch: Watch, note: Callable[[str], None]
    ) -> tuple[int, list[tuple[str, str]]]:
        """Compare columns, and weigh the regulators of the targets that are left."""
        genes = self.genes
        with ExitStack() as stack:
            columns = stack.enter_context(self.store.columns(mapped=self.grant.mapped))
            source = ItemSource(columns, self.rows)
            n_equal, equal = equal_columns(source, genes, self.store.kinds(), self.task.n_rows)
            named = self._named(equal)
            for sentence in _said(n_equal, named):
                note(sentence)
            if book.n_done < len(genes.targets):
                for sentence in self.request.params.own.remarks(self.task.table):
                    note(sentence)
                if self.cluster is None:
                    source = stack.enter_context(self.task.valued(source))
                    if self._trial_seconds:
                        n_left = len(genes.targets) - book.n_done
                        note(pace_of(self.task, source, n_left, self._trial_seconds).said())
                self._weigh(source, book, watch)
        return n_equal, named

    def _weigh(self, source: ItemSource, book: EdgeBook, watch: Watch) -> None:
        params, genes = self.request.params, self.genes
        if isinstance(params.own, ProbabilityParams) and params.own.is_joint:
            bench = Bench(source, categorical_features(self.store), params.seed, lambda: True)
            (block,) = self.task.blocks(1)
            workers = self.grant.n_workers
            JointWork(self.store, genes, self.rows, params.own, bench, block, workers).run(
                book, watch
            )
            return
        line, n_together = self._line(source)
        n_ahead = self.grant.n_ahead
        TargetWork(self.store, genes, self.rows, line, n_ahead, n_together).run(book, watch)

    def _line(self, source: ItemSource) -> tuple[Line, int]:
        """Return the way to who weighs, and how many targets go there together."""
        params, regulators, cluster = self.request.params, self.genes.regulators, self.cluster
        if cluster is None:
            blocks = self.task.blocks(self.grant.n_workers)
            desk = TargetDesk(params, source, self.store, regulators, blocks)
            return ThreadLine(desk, len(blocks)), 1
        store = WorkerStore.of(self.store, cluster.worker_memory_mb)
        job = NetworkJob(new_token(), store, self.task.identity(), params, regulators, self.rows)
        return cluster.line(job), TOGETHER_ELSEWHERE

    def _named(self, pairs: list[tuple[int, int]]) -> list[tuple[str, str]]:
        flat = np.array(pairs, np.int64).reshape(-1)
        names = [self.store.names[i] for i in names_of(self.store, flat).tolist()]
        return list(zip(names[::2], names[1::2], strict=True))

    def write(self, book: EdgeBook) -> int:
        """Write the edges; return how many."""
        request = self.request
        return write_edges(
            request.out, self._edges(book), replaces=request.out.exists(), safe=request.safe
        )

    def _edges(self, book: EdgeBook) -> Iterator[list[Edge]]:
        n_regulators, known = len(self.genes.regulators), KnownNames(self.store.names)
        regulators = names_of(self.store, self.genes.regulators)
        targets = names_of(self.store, self.genes.targets)
        for edges in ranked(book.shards, self.grant.n_edges, self.request.top):
            for start in range(0, len(edges.weights), WRITTEN_TOGETHER):
                some = slice(start, start + WRITTEN_TOGETHER)
                pairs = np.divmod(edges.places[some], n_regulators)
                to, by = targets[pairs[0]].tolist(), regulators[pairs[1]].tolist()
                text = known.of({*to, *by})
                yield [
                    (text[r], text[t], weight)
                    for r, t, weight in zip(by, to, edges.weights[some].tolist(), strict=True)
                ]

    def network(
        self, book: EdgeBook, n_edges: int, n_duplicates: int, duplicates: list[tuple[str, str]]
    ) -> Network:
        """Return what became of it."""
        genes, kinds = self.genes, self.store.kinds()
        return Network(
            os.fspath(self.request.out),
            os.fspath(self.request.folder),
            len(genes.regulators),
            len(genes.targets),
            book.n_done,
            n_edges,
            int(np.count_nonzero(kinds[genes.targets] == CONSTANT)),
            n_duplicates,
            round(book.committed.seconds, 3),
            round(book.committed.peak_nbytes / MB, 1),
            duplicates,
            book.n_epochs,
        )


def _said(n_equal: int, named: list[tuple[str, str]]) -> Iterator[str]:
    if n_equal:
        target, regulator = named[0]
        more = f", and {n_equal - 1} more such pairs" if n_equal > 1 else ""
        yield (
            f"target {target}: the regulator {regulator} orders the rows exactly as it does{more}. "
            "Such a regulator takes nearly all of the weight. Leave it out of the regulators if it "
            "is the same gene measured twice."
        )
