"""A network that is asked for, settled: rows, regulators, targets, memory, and desks."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from queue import SimpleQueue
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.budget import PROCESS_NBYTES, Budget, Lease
from srs_ooc.base.errors import BudgetError
from srs_ooc.base.text import MB
from srs_ooc.networks.edges import (
    DUPLICATE_NBYTES,
    EDGE_NBYTES,
    FEWEST_EDGES,
    GENE_NBYTES,
    HASH_COLUMNS,
    MOST_DUPLICATES,
    Genes,
    find_genes,
    shard_nbytes,
)
from srs_ooc.networks.network_options import NetworkRequest
from srs_ooc.networks.weighing import (
    TOGETHER,
    Bench,
    EdgeParams,
    EdgeTable,
    row_weights,
    training_rows,
)
from srs_ooc.runs.engine import ItemSource
from srs_ooc.runs.inputs import InputFiles, SideFile, digest
from srs_ooc.runs.jobs import Part, Prepared, Reply, Tell, WorkerStore, digest_of
from srs_ooc.runs.resources import categorical_features
from srs_ooc.runs.run_memory import (
    LEDGER_NBYTES,
    check_stages,
    grant_workers,
    n_cores,
    smallest_cap,
)
from srs_ooc.store.manifest import Manifest
from srs_ooc.store.store import Store
from srs_ooc.store.values import MAKING_NBYTES, n_values_of
from srs_ooc.store.values import ROW_NBYTES as VALUE_ROW_NBYTES
from srs_ooc.trees.block import Block, block_nbytes, values_nbytes
from srs_ooc.trees.response import TrainingRows

# What memory a network takes, and how it is shared out under the cap.

READING_NBYTES = 12 * MB
"""Allowance for chunks of values: as packed, as decoded, and the tables of codes."""
ROW_NBYTES = 64
"""Bytes of a row: draws with replacement, and what of a target is missing."""
COLUMN_NBYTES = 48
"""Bytes of a regulator of one target: its number, flag, importance, weight."""
MOST_AHEAD = 1 << 16
"""Targets under way on a cluster at once, at most."""
FEWEST_AHEAD = 4


@dataclass(frozen=True)
class Grant:
    """How a network works under its cap.

    Attributes
    ----------
    n_workers : int
        Threads at work here; 0 where workers elsewhere do it.
    n_ahead : int
        Targets begun at most after the first one that is not done.
    mapped : bool
        Whether the store is mapped into memory.
    n_edges : int
        Edges that may be put in order together.
    leases : tuple of Lease
        All that was granted, the process first.
    free_nbytes : int
        What is left of the cap.
    """

    n_workers: int
    n_ahead: int
    mapped: bool
    n_edges: int
    leases: tuple[Lease, ...]
    free_nbytes: int


def grant(
    table: EdgeTable,
    params: EdgeParams,
    cap_nbytes: int,
    threads: int,
    reading_nbytes: int = 0,
    orders_nbytes: int | None = None,
) -> Grant:
    """Share the cap out: one worker first, then more, then the store mapped; then edges.

    Parameters
    ----------
    table : EdgeTable
        What the network is made of.
    params : EdgeParams
        How regulators are weighed.
    cap_nbytes : int
        Cap on the memory of the whole process.
    threads : int
        Workers wanted.
    reading_nbytes : int
        Memory of requests under way, of a store at a URL.
    orders_nbytes : int, optional
        Where workers elsewhere do the work: what their client takes here.

    Raises
    ------
    BudgetError
        If the cap cannot hold one worker; it names the smallest that would do.
    """
    budget = Budget(cap_nbytes)
    if reading_nbytes:
        budget.grant("requests under way", reading_nbytes)
    budget.leases += work_leases(table, params, orders_nbytes)
    budget.check()
    work = budget.leases[-1].n_bytes
    if orders_nbytes is not None:
        n_ahead = min(FEWEST_AHEAD + budget.free_nbytes // target_nbytes(table), MOST_AHEAD)
        n_edges = FEWEST_EDGES + budget.free_nbytes // EDGE_NBYTES
        return Grant(0, n_ahead, False, n_edges, tuple(budget.leases), budget.free_nbytes)
    n_workers = 1
    while n_workers < min(threads, table.n_targets) and budget.fits(work):
        budget.grant("another worker", work)
        n_workers += 1
    mapped = not reading_nbytes and budget.fits(table.manifest.codes_nbytes)
    if mapped:
        budget.grant("the store, mapped", table.manifest.codes_nbytes)
    # Edges are put in order once the workers have gone.
    room = budget.free_nbytes + (n_workers - 1) * work
    n_edges = FEWEST_EDGES + max(0, room) // EDGE_NBYTES
    leases = tuple(budget.leases)
    return Grant(n_workers, n_workers + 1, mapped, n_edges, leases, budget.free_nbytes)


def work_leases(
    table: EdgeTable, params: EdgeParams, orders_nbytes: int | None = None
) -> list[Lease]:
    """Return what a network needs besides the process, with one worker, whose lease is the last.

    Parameters are those of :func:`grant`. Where workers elsewhere do the work, the last lease is of
    what is under way.
    """
    manifest, n_regulators, n_targets = table.manifest, table.n_regulators, table.n_targets
    comparing = block_nbytes(HASH_COLUMNS, table.n_rows, table.code_nbytes)
    genes = GENE_NBYTES * (manifest.n_features + 4 * (n_regulators + n_targets))
    leases = [
        Lease("names and regulators", genes + DUPLICATE_NBYTES * MOST_DUPLICATES),
        Lease("columns that are compared", 2 * comparing),
        Lease("targets", READING_NBYTES + 3 * TOGETHER * 8 * manifest.n_rows),
        Lease("weights on their way to disk", shard_nbytes(n_targets, n_regulators)),
        Lease("ledger", LEDGER_NBYTES),
        Lease("edges in order", FEWEST_EDGES * EDGE_NBYTES),
    ]
    if orders_nbytes is not None:
        under_way = orders_nbytes + FEWEST_AHEAD * target_nbytes(table)
        return [*leases, Lease("targets under way on the workers", under_way)]
    if n_kept_values(params, manifest):
        leases.append(_values_lease(manifest))
    if shared := params.shared_nbytes(table):
        what = f"probabilities of {n_regulators} regulators for {n_targets} targets together"
        leases.append(Lease(what, shared))
    return [*leases, _worker_lease(params, table)]


def target_nbytes(table: EdgeTable) -> int:
    """Return the bytes here of a target that is worked on elsewhere: its values, its weights."""
    return 8 * (2 * table.n_rows + 2 * table.n_regulators)


def n_kept_values(params: EdgeParams, manifest: Manifest) -> int:
    """Return the values kept of each code's column, where the method has use for them; else 0."""
    return n_values_of(manifest) if params.uses_values else 0


def _values_lease(manifest: Manifest) -> Lease:
    making = MAKING_NBYTES + VALUE_ROW_NBYTES * manifest.n_rows
    return Lease("reading the values of codes", making)


def _worker_lease(params: EdgeParams, table: EdgeTable, more_nbytes: int = 0) -> Lease:
    """Return what a worker takes: its block, its trees, and the results that wait for it."""
    n_rows, n_regulators, code_nbytes = table.n_rows, table.n_regulators, table.code_nbytes
    n_values = n_kept_values(params, table.manifest)
    n_bytes = (
        block_nbytes(n_regulators, n_rows, code_nbytes)
        + values_nbytes(n_regulators + params.n_copied(n_regulators), n_values)
        + 2 * block_nbytes(1, n_rows, code_nbytes)
        + params.work_nbytes(table)
        + 2 * TrainingRows.nbytes(n_rows, "variance", 1 + table.weighted)
        + ROW_NBYTES * n_rows
        + 3 * COLUMN_NBYTES * n_regulators
    )
    return Lease(f"a block of {n_regulators} regulators and its trees", n_bytes + more_nbytes)


def desk_grant(
    store: Store, table: EdgeTable, params: EdgeParams, memory_mb: int, n_threads: int
) -> tuple[int, bool]:
    """Return how many blocks a worker elsewhere may have, and whether it keeps the store mapped.

    Raises
    ------
    BudgetError
        If ``memory_mb`` do not hold even one.
    """
    budget = Budget(memory_mb * MB, PROCESS_NBYTES)
    if store.reading_nbytes:
        budget.grant("requests under way", store.reading_nbytes)
    if n_kept_values(params, store.manifest):
        budget.leases.append(_values_lease(store.manifest))
    work = _worker_lease(params, table, target_nbytes(table))
    budget.leases.append(work)
    try:
        budget.check()
    except BudgetError as error:
        raise BudgetError(str(error).replace("--memory-mb", "--worker-memory-mb")) from error
    n_blocks = grant_workers(budget, work.n_bytes, n_threads)
    mapped = not store.reading_nbytes and budget.fits(store.manifest.codes_nbytes)
    return n_blocks, mapped


# Where targets are worked on: blocks, the weigher, and what is the same for all targets.
#
# A worker elsewhere is told of a network once, by its job, and then of targets with their values.


class TargetDesk:
    """Weighs the regulators of any target.

    Parameters
    ----------
    params : EdgeParams
        How they are weighed.
    source : ItemSource
        Where columns come from.
    store : Store
        Of the columns.
    regulators : uint32 (n_regulators,)
        Stored positions, ascending.
    n_blocks : int
        Threads that work here: each has a block of its own.
    """

    def __init__(
        self,
        params: EdgeParams,
        source: ItemSource,
        store: Store,
        regulators: NDArray[np.uint32],
        n_blocks: int,
    ) -> None:
        self._params, self._regulators, self._source = params, regulators, source
        self._categorical = categorical_features(store)
        self._weights = row_weights(store, source.rows)
        self._blocks: SimpleQueue[Block] = SimpleQueue()
        for block in blocks_of(n_blocks, params, store, len(regulators), source.rows):
            self._blocks.put(block)

    def work(self, parts: list[Part], tell: Tell) -> Reply:
        """Return float64 (n_regulators,) of each target: its weights, 0 for itself."""
        block = self._blocks.get()
        try:
            begun = perf_counter()
            outcomes = []
            for part in parts:
                target, values = part.what
                outcomes.append(self._weigh(block, target, values, partial(tell, part.number, 0)))
            return Reply(outcomes, perf_counter() - begun)
        finally:
            self._blocks.put(block)

    def _weigh(
        self, block: Block, target: int, values: NDArray[np.float64], wanted: Callable[[], bool]
    ) -> NDArray[np.float64]:
        regulators = self._regulators
        out = np.zeros(len(regulators))
        rows = training_rows(values, self._weights)
        others = regulators != target
        if rows is not None and others.any():
            what = block, target, regulators[others], rows
            bench = Bench(self._source, self._categorical, *what, wanted)
            out[others] = self._params.weights(bench)
        return out


def blocks_of(
    count: int,
    params: EdgeParams,
    store: Store,
    n_regulators: int,
    rows: NDArray[np.int32] | None,
) -> list[Block]:
    """Return blocks of all regulators, with their values where the method has use for them."""
    n_rows = store.n_rows if rows is None else len(rows)
    n_values, tiled = n_kept_values(params, store.manifest), params.tiled(n_regulators)
    code_nbytes = store.manifest.code_nbytes
    return [
        Block(n_regulators, n_rows, code_nbytes, tiled=tiled, n_values=n_values)
        for _ in range(count)
    ]


@dataclass(frozen=True)
class NetworkJob:
    """What a worker needs to weigh the regulators of any target, besides the store.

    Attributes
    ----------
    token : str
        Unlike that of any other job.
    store : WorkerStore
        As of :class:`srs_ooc.runs.resources.Job`.
    identity : dict
        Of the network, as JSON.
    params : EdgeParams
        How regulators are weighed.
    regulators : uint32 (n_regulators,)
        Stored positions, ascending.
    rows : int32 (n_rows,) or None
        Rows trained on; None for all.
    """

    token: str
    store: WorkerStore
    identity: dict[str, Any]
    params: EdgeParams
    regulators: NDArray[np.uint32]
    rows: NDArray[np.int32] | None
    label = "network"
    tells = False

    @property
    def run(self) -> str:
        """Jobs of one network take each other's place in a worker."""
        return digest_of(self.identity)

    @property
    def nbytes(self) -> int:
        """Bytes of its arrays."""
        return self.regulators.nbytes + (0 if self.rows is None else self.rows.nbytes)

    def desk(self, n_threads: int) -> "NetworkDesk":
        """Prepare for it in a worker."""
        return NetworkDesk(self, n_threads)


class NetworkDesk(Prepared[NetworkJob]):
    """Weighs regulators in a worker; parameters and errors as of the base class."""

    def _prepare(self, n_threads: int) -> None:
        job, params = self.job, self.job.params
        self._store = store = job.store.open()
        n_rows = store.n_rows if job.rows is None else len(job.rows)
        table = EdgeTable(store.manifest, n_rows, len(job.regulators), 1)
        n_blocks, mapped = desk_grant(store, table, params, job.store.memory_mb, n_threads)
        with store.unchanged():
            values = None
            if n_kept_values(params, store.manifest):
                values = self._stack.enter_context(store.value_tables())
            columns = self._stack.enter_context(store.columns(mapped=mapped))
        source = ItemSource(columns, job.rows, values=values)
        self._desk = TargetDesk(params, source, store, job.regulators, n_blocks)

    def work(self, parts: list[Part], tell: Tell) -> Reply:
        """Weigh the regulators of some targets.

        Raises
        ------
        StoreError
            If the store cannot be read, or was replaced: nothing is returned then.
        """
        reply = self._desk.work(parts, tell)
        self._store.check_unchanged()
        return reply


# A network that is asked for, settled: which rows, regulators and targets, under which grant.


@dataclass(frozen=True)
class NetworkTask:
    """What is worked on, and how.

    Attributes
    ----------
    store : Store
        The store.
    request : NetworkRequest
        What is asked.
    rows : int32 (n_rows,) or None
        Rows trained on; None for all.
    genes : Genes
        Regulators and targets.
    grant : Grant
        How the cap is shared out.
    smallest_cap_mb : int
        The smallest cap that works.
    """

    store: Store
    request: NetworkRequest
    rows: NDArray[np.int32] | None
    genes: Genes
    grant: Grant
    smallest_cap_mb: int

    @property
    def n_rows(self) -> int:
        """Rows trained on."""
        return self.store.n_rows if self.rows is None else len(self.rows)

    @property
    def table(self) -> EdgeTable:
        """What the network is made of."""
        sizes = self.n_rows, len(self.genes.regulators), len(self.genes.targets)
        return EdgeTable(self.store.manifest, *sizes)

    def identity(self) -> dict[str, Any]:
        """Return what identifies the network."""
        return self.request.params.values() | {
            "store": self.store.fingerprint,
            "regulators": digest(self.genes.regulators, "features"),
            "targets": digest(self.genes.targets, "features"),
            "rows": digest(self.rows, "rows"),
        }

    def blocks(self, count: int) -> list[Block]:
        """Return memory for the regulators of so many targets at once."""
        n_regulators = len(self.genes.regulators)
        return blocks_of(count, self.request.params, self.store, n_regulators, self.rows)

    @contextmanager
    def valued(self, source: ItemSource) -> Iterator[ItemSource]:
        """Yield the source with the values of codes, where the method has use for them."""
        if not n_kept_values(self.request.params, self.store.manifest):
            yield source
            return
        with self.store.value_tables() as values:
            yield ItemSource(source.columns, self.rows, values=values)


def task_of(store: Store, request: NetworkRequest) -> NetworkTask:
    """Settle a network; the store must be held unchanged meanwhile.

    Raises
    ------
    UsageError, StoreError, BudgetError
        If it cannot be done as asked.
    """
    store.check_files()
    regulators, targets = (
        None if file is None else SideFile(file, "feature", store.n_features)
        for file in (request.regulators, request.targets)
    )
    files, params = InputFiles(store, None, request.rows), request.params
    cap_nbytes = request.memory_mb * MB
    named = [side for side in (regulators, targets) if side is not None]
    reading = [side.lease for side in named] + files.leases()
    reading.append(Lease("ledger", LEDGER_NBYTES))
    table = EdgeTable(
        store.manifest,
        store.n_rows if files.rows is None else files.rows.n_found,
        store.n_features if regulators is None else regulators.n_found,
        store.n_features if targets is None else targets.n_found,
    )
    orders = None if request.cluster is None else request.cluster.orders_nbytes
    working = work_leases(table, params, orders)
    if store.reading_nbytes:
        working.insert(0, Lease("requests under way", store.reading_nbytes))
    check_stages(cap_nbytes, [reading, working])
    spare = Budget.of(cap_nbytes, reading).free_nbytes
    rows = files.resolve(spare).rows
    genes = find_genes(store, regulators, targets, spare)
    n_rows = store.n_rows if rows is None else len(rows)
    table = EdgeTable(store.manifest, n_rows, len(genes.regulators), len(genes.targets))
    # Options must suit a target's regulators, of which it is none itself.
    n_others = max(1, table.n_regulators - (table.n_targets == 1))
    params.check_table(replace(table, n_regulators=n_others))
    threads = request.threads or n_cores()
    granted = grant(table, params, cap_nbytes, threads, store.reading_nbytes, orders)
    return NetworkTask(store, request, rows, genes, granted, smallest_cap([reading, working]))
