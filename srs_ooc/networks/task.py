"""A network that is asked for, settled: which rows, regulators and targets, under which grant."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from numpy import int32
from numpy.typing import NDArray

from srs_ooc.base.budget import Budget, Lease
from srs_ooc.base.text import MB
from srs_ooc.networks.desks import blocks_of
from srs_ooc.networks.edge_params import EdgeTable
from srs_ooc.networks.genes import GeneFiles, Genes, find_genes
from srs_ooc.networks.memory import Grant, grant, table_of, work_leases
from srs_ooc.networks.request import NetworkRequest
from srs_ooc.runs.engine import ItemSource
from srs_ooc.runs.inputs import InputFiles, digest, resolve
from srs_ooc.runs.run_memory import check_stages, n_cores, smallest_cap
from srs_ooc.runs.spec import LEDGER_NBYTES
from srs_ooc.store.store import Store
from srs_ooc.store.values import n_values_of
from srs_ooc.trees.block import Block


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
