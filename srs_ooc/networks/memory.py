"""What memory a network takes, and how it is shared out under the cap."""

from dataclasses import dataclass

from srs_ooc.base.budget import PROCESS_NBYTES, Budget, Lease
from srs_ooc.base.errors import BudgetError
from srs_ooc.base.text import MB
from srs_ooc.networks.book import shard_nbytes
from srs_ooc.networks.edge_params import EdgeParams, EdgeTable
from srs_ooc.networks.genes import (
    DUPLICATE_NBYTES,
    GENE_NBYTES,
    HASH_COLUMNS,
    MOST_DUPLICATES,
    Genes,
)
from srs_ooc.networks.ranking import EDGE_NBYTES, FEWEST_EDGES
from srs_ooc.networks.responses import TOGETHER
from srs_ooc.runs.run_memory import grant_workers
from srs_ooc.runs.spec import LEDGER_NBYTES
from srs_ooc.store.manifest import Manifest
from srs_ooc.store.store import Store
from srs_ooc.store.values import MAKING_NBYTES, n_values_of
from srs_ooc.store.values import ROW_NBYTES as VALUE_ROW_NBYTES
from srs_ooc.trees.block import block_nbytes, values_nbytes
from srs_ooc.trees.response import TrainingRows

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
