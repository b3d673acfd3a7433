"""A network that is asked for, settled: rows, regulators, targets, memory, and desks."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from queue import SimpleQueue
from time import perf_counter
from typing import Any

import numpy as np
from numpy import int32
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
    GeneFiles,
    Genes,
    find_genes,
    shard_nbytes,
)
from srs_ooc.networks.network_options import NetworkParams, NetworkRequest, weigher_of
from srs_ooc.networks.weighing import TOGETHER, Bench, EdgeParams, EdgeTable, training_rows
from srs_ooc.runs.engine import ItemSource
from srs_ooc.runs.inputs import InputFiles, digest, resolve
from srs_ooc.runs.jobs import Part, Prepared, Reply, Tell, WorkerStore, digest_of
from srs_ooc.runs.resources import categorical_features
from srs_ooc.runs.run_memory import check_stages, grant_workers, n_cores, smallest_cap
from srs_ooc.runs.spec import LEDGER_NBYTES
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
    manifest: Manifest,
    genes: Genes,
    params: EdgeParams,
    n_rows: int,
    n_values: int,
    cap_nbytes: int,
    threads: int,
    reading_nbytes: int = 0,
    orders_nbytes: int | None = None,
) -> Grant:
    """Share the cap out: one worker first, then more, then the store mapped; then edges.

    Parameters
    ----------
    manifest : Manifest
        Of the store.
    genes : Genes
        Regulators and targets.
    params : EdgeParams
        How regulators are weighed.
    n_rows, n_values : int
        Rows trained on; values kept of each code's column, 0 for none.
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
    n_regulators, n_targets = len(genes.regulators), len(genes.targets)
    sizes = n_regulators, n_targets
    budget.leases += work_leases(manifest, *sizes, params, n_rows, n_values, orders_nbytes)
    budget.check()
    work = budget.leases[-1].n_bytes
    if orders_nbytes is not None:
        room = budget.free_nbytes // target_nbytes(n_regulators, n_rows)
        n_ahead = min(FEWEST_AHEAD + room, MOST_AHEAD)
        n_edges = FEWEST_EDGES + budget.free_nbytes // EDGE_NBYTES
        return Grant(0, n_ahead, False, n_edges, tuple(budget.leases), budget.free_nbytes)
    n_workers = 1
    while n_workers < min(threads, len(genes.targets)) and budget.fits(work):
        budget.grant("another worker", work)
        n_workers += 1
    mapped = not reading_nbytes and budget.fits(manifest.codes_nbytes)
    if mapped:
        budget.grant("the store, mapped", manifest.codes_nbytes)
    # Edges are put in order once the workers have gone.
    room = budget.free_nbytes + (n_workers - 1) * work
    n_edges = FEWEST_EDGES + max(0, room) // EDGE_NBYTES
    leases = tuple(budget.leases)
    return Grant(n_workers, n_workers + 1, mapped, n_edges, leases, budget.free_nbytes)


def work_leases(
    manifest: Manifest,
    n_regulators: int,
    n_targets: int,
    params: EdgeParams,
    n_rows: int,
    n_values: int,
    orders_nbytes: int | None = None,
) -> list[Lease]:
    """Return what a network needs besides the process, with one worker, whose lease is the last.

    Parameters are those of :func:`grant`, with numbers of regulators and targets. Where workers
    elsewhere do the work, the last lease is of what is under way.
    """
    leases = _fixed(manifest, n_regulators, n_targets, n_rows)
    if orders_nbytes is not None:
        under_way = FEWEST_AHEAD * target_nbytes(n_regulators, n_rows)
        leases.append(("targets under way on the workers", orders_nbytes + under_way))
        return [Lease(*lease) for lease in leases]
    if n_values:
        making = MAKING_NBYTES + VALUE_ROW_NBYTES * manifest.n_rows
        leases.append(("reading the values of codes", making))
    table = table_of(manifest, n_regulators, n_targets, n_rows)
    if shared := params.shared_nbytes(table):
        what = f"probabilities of {n_regulators} regulators for {n_targets} targets together"
        leases.append((what, shared))
    work = worker_nbytes(params, table, n_values)
    leases.append((f"a block of {n_regulators} regulators and its trees", work))
    return [Lease(*lease) for lease in leases]


def target_nbytes(n_regulators: int, n_rows: int) -> int:
    """Return the bytes here of a target that is worked on elsewhere: its values, its weights."""
    return 8 * (2 * n_rows + 2 * n_regulators)


def desk_grant(
    store: Store,
    n_regulators: int,
    params: EdgeParams,
    n_rows: int,
    memory_mb: int,
    n_threads: int,
) -> tuple[int, bool]:
    """Return how many blocks a worker elsewhere may have, and whether it keeps the store mapped.

    Raises
    ------
    BudgetError
        If ``memory_mb`` do not hold even one.
    """
    manifest, budget = store.manifest, Budget(memory_mb * MB, PROCESS_NBYTES)
    if store.reading_nbytes:
        budget.grant("requests under way", store.reading_nbytes)
    n_values = n_values_of(manifest) if params.uses_values else 0
    if n_values:
        making = MAKING_NBYTES + VALUE_ROW_NBYTES * manifest.n_rows
        budget.grant("reading the values of codes", making)
    work = worker_nbytes(params, table_of(manifest, n_regulators, 1, n_rows), n_values)
    work += target_nbytes(n_regulators, n_rows)
    budget.grant(f"a block of {n_regulators} regulators and its trees", work)
    try:
        budget.check()
    except BudgetError as error:
        raise BudgetError(str(error).replace("--memory-mb", "--worker-memory-mb")) from error
    n_blocks = grant_workers(budget, work, n_threads)
    mapped = not store.reading_nbytes and budget.fits(manifest.codes_nbytes)
    return n_blocks, mapped


def _fixed(
    manifest: Manifest, n_regulators: int, n_targets: int, n_rows: int
) -> list[tuple[str, int]]:
    comparing = block_nbytes(HASH_COLUMNS, n_rows, manifest.code_nbytes)
    return [
        (
            "names and regulators",
            GENE_NBYTES * (manifest.n_features + 4 * (n_regulators + n_targets))
            + DUPLICATE_NBYTES * MOST_DUPLICATES,
        ),
        ("columns that are compared", 2 * comparing),
        ("targets", READING_NBYTES + 3 * TOGETHER * 8 * manifest.n_rows),
        ("weights on their way to disk", shard_nbytes(n_targets, n_regulators)),
        ("ledger", LEDGER_NBYTES),
        ("edges in order", FEWEST_EDGES * EDGE_NBYTES),
    ]


def table_of(manifest: Manifest, n_regulators: int, n_targets: int, n_rows: int) -> EdgeTable:
    """Return what a network is made of."""
    weighted = "weights" in manifest.row_columns
    return EdgeTable(n_rows, n_regulators, n_targets, manifest.code_nbytes, weighted)


def worker_nbytes(params: EdgeParams, table: EdgeTable, n_values: int) -> int:
    """Return the bytes of a worker: its block, its trees, and the results that wait for it."""
    n_rows, n_regulators = table.n_rows, table.n_regulators
    response = TrainingRows.nbytes(n_rows, "variance", 1 + table.weighted)
    return (
        block_nbytes(n_regulators, n_rows, table.code_nbytes)
        + values_nbytes(n_regulators + params.n_copied(n_regulators), n_values)
        + 2 * block_nbytes(1, n_rows, table.code_nbytes)
        + params.work_nbytes(table)
        + 2 * response
        + ROW_NBYTES * n_rows
        + 3 * COLUMN_NBYTES * n_regulators
    )


# Where targets are worked on: blocks, the weigher, and what is the same for all targets.
#
# A worker elsewhere is told of a network once, by its job, and then of targets with their values.


class TargetDesk:
    """Weighs the regulators of any target.

    Parameters
    ----------
    params : NetworkParams
        How they are weighed.
    source : ItemSource
        Where columns come from.
    store : Store
        Of the columns.
    regulators : uint32 (n_regulators,)
        Stored positions, ascending.
    blocks : list of Block
        One for each thread that works here.
    """

    def __init__(
        self,
        params: NetworkParams,
        source: ItemSource,
        store: Store,
        regulators: NDArray[np.uint32],
        blocks: list[Block],
    ) -> None:
        self._params, self._regulators, self._source = params, regulators, source
        self._categorical = categorical_features(store)
        weights, rows = store.weights(), source.rows
        self._weights = weights if weights is None or rows is None else weights[rows]
        self._blocks: SimpleQueue[Block] = SimpleQueue()
        for block in blocks:
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
        if rows is None or not others.any():
            return out
        bench = Bench(self._source, self._categorical, self._params.seed, wanted)
        weigher = weigher_of(self._params.own, bench)
        out[others] = weigher.weights(block, target, regulators[others], rows)
        return out


def blocks_of(
    count: int, params: NetworkParams, store: Store, n_regulators: int, n_rows: int
) -> list[Block]:
    """Return blocks of all regulators, with their values where the method has use for them."""
    n_values = n_values_of(store.manifest) if params.own.uses_values else 0
    tiled, code_nbytes = params.own.tiled(n_regulators), store.manifest.code_nbytes
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
    params : NetworkParams
        How regulators are weighed.
    regulators : uint32 (n_regulators,)
        Stored positions, ascending.
    rows : int32 (n_rows,) or None
        Rows trained on; None for all.
    """

    token: str
    store: WorkerStore
    identity: dict[str, Any]
    params: NetworkParams
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
        n_blocks, mapped = desk_grant(
            store, len(job.regulators), params.own, n_rows, job.store.memory_mb, n_threads
        )
        with store.unchanged():
            values = None
            if params.own.uses_values and n_values_of(store.manifest):
                values = self._stack.enter_context(store.value_tables())
            columns = self._stack.enter_context(store.columns(mapped=mapped))
        source = ItemSource(columns, job.rows, values=values)
        blocks = blocks_of(n_blocks, params, store, len(job.regulators), n_rows)
        self._desk = TargetDesk(params, source, store, job.regulators, blocks)

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
    n_values : int
        Values kept of each code's column, where the method has use for them; else 0.
    grant : Grant
        How the cap is shared out.
    smallest_cap_mb : int
        The smallest cap that works.
    """

    store: Store
    request: NetworkRequest
    rows: NDArray[int32] | None
    genes: Genes
    n_values: int
    grant: Grant
    smallest_cap_mb: int

    @property
    def n_rows(self) -> int:
        """Rows trained on."""
        return self.store.n_rows if self.rows is None else len(self.rows)

    @property
    def table(self) -> EdgeTable:
        """What the network is made of."""
        sizes = len(self.genes.regulators), len(self.genes.targets)
        return table_of(self.store.manifest, *sizes, self.n_rows)

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
        sizes = len(self.genes.regulators), self.n_rows
        return blocks_of(count, self.request.params, self.store, *sizes)

    @contextmanager
    def valued(self, source: ItemSource) -> Iterator[ItemSource]:
        """Yield the source with the values of codes, where the method has use for them."""
        if not self.n_values:
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
    named = GeneFiles.of(store, request.regulators, request.targets)
    files = InputFiles.of(store, None, request.rows)
    n_values = n_values_of(store.manifest) if request.params.own.uses_values else 0
    reading = _reading_leases(store, named, files)
    n_rows = store.n_rows if files.rows is None else files.rows.n_found
    sizes = named.n_regulators(store), named.n_targets(store)
    orders = None if request.cluster is None else request.cluster.orders_nbytes
    own, cap_nbytes = request.params.own, request.memory_mb * MB
    requests = Lease("requests under way", store.reading_nbytes)
    working = work_leases(store.manifest, *sizes, own, n_rows, n_values, orders)
    stages = [reading, [requests, *working] if store.reading_nbytes else working]
    check_stages(cap_nbytes, stages)
    spare = Budget.of(cap_nbytes, reading).free_nbytes
    rows = resolve(store, files, spare).rows
    genes = find_genes(store, named, spare)
    n_rows = store.n_rows if rows is None else len(rows)
    _check_options(store, request, genes, n_rows)
    granted = grant(
        store.manifest,
        genes,
        own,
        n_rows,
        n_values,
        cap_nbytes,
        request.threads or n_cores(),
        store.reading_nbytes,
        orders,
    )
    smallest = smallest_cap(stages)
    return NetworkTask(store, request, rows, genes, n_values, granted, smallest)


def _reading_leases(store: Store, named: GeneFiles, files: InputFiles) -> list[Lease]:
    """Return what reading the files of names needs besides the process."""
    reading = [*named.leases(), *files.leases(store.n_features), ("ledger", LEDGER_NBYTES)]
    return [Lease(*lease) for lease in reading]


def _check_options(store: Store, request: NetworkRequest, genes: Genes, n_rows: int) -> None:
    """Refuse options that do not suit a target's regulators, of which it is none itself."""
    n_targets, n_regulators = len(genes.targets), len(genes.regulators)
    n_others = max(1, n_regulators - (n_targets == 1))
    request.params.own.check_table(table_of(store.manifest, n_others, n_targets, n_rows))
