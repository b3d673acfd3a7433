"""A network that is asked for, and settled: options, rows, regulators, targets and memory."""

from collections.abc import Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.budget import PROCESS_NBYTES, Budget, Lease, check_stages, smallest_cap
from srs_ooc.base.errors import UsageError
from srs_ooc.base.options import Option
from srs_ooc.base.text import MB
from srs_ooc.networks.edges import EDGE_NBYTES, FEWEST_EDGES, find_variables
from srs_ooc.networks.genie3 import ForestParams
from srs_ooc.networks.prs_edges import ProbabilityParams
from srs_ooc.networks.srs_edges import SubspaceParams
from srs_ooc.networks.weighing import (
    FEWEST_AHEAD,
    GENIE3,
    MOST_AHEAD,
    PRS,
    SRS,
    EdgeParams,
    EdgeScorer,
    Targets,
    edge_shape,
    edge_source,
    network_leases,
    target_nbytes,
    target_values,
    worker_lease,
)
from srs_ooc.runs.engine import ColumnSource
from srs_ooc.runs.inputs import InputFiles, SideFile, digest
from srs_ooc.runs.jobs import Batch, Job, Tell, Work, WorkerStore
from srs_ooc.runs.run_memory import (
    LEDGER_NBYTES,
    ORDERS_NBYTES,
    TrainingShape,
    n_cores,
)
from srs_ooc.store.store import Store

if TYPE_CHECKING:
    from srs_ooc.runs.dask_cluster import DaskCluster

METHODS: dict[str, type[EdgeParams]] = {
    GENIE3: ForestParams,
    SRS: SubspaceParams,
    PRS: ProbabilityParams,
}


def network_options() -> dict[str, Option]:
    """Return the declarations of all methods, by name."""
    found: dict[str, Option] = {}
    for params in METHODS.values():
        found |= {name: o for name, o in params.options().items() if name not in found}
    return found | {"seed": found.pop("seed")}


def owner_of(name: str) -> str:
    """Return the methods that an option goes with, for its help; empty for all."""
    owners = [method for method, params in METHODS.items() if name in params.options()]
    return "" if len(owners) == len(METHODS) else f"--method {' or '.join(owners)}"


def settle_network(given: Mapping[str, Any]) -> EdgeParams:
    """Return the options as settled from those given.

    Raises
    ------
    UsageError
        If a value is outside its range, or an option is of another method.
    """
    method = EdgeParams.settle(given, None).method
    known = METHODS[method].options()
    for name in network_options():
        if name not in known and given.get(name) is not None:
            raise UsageError(
                f"--{name.replace('_', '-')}: an option of {owner_of(name)}, found "
                f"--method {method}. Leave it out, or choose that method."
            )
    return METHODS[method].settle(given, None)


FOLDER_SUFFIX = ".network"


@dataclass(frozen=True)
class NetworkRequest:
    """What is asked of a network.

    Attributes
    ----------
    out : Path
        File of the edges, CSV or Parquet.
    params : EdgeParams
        Its identity, besides store, features and rows.
    regulators, targets, rows : Path or None
        Files of names; None for all.
    run : Path or None
        Folder of what is done; None for ``out`` with :data:`FOLDER_SUFFIX`.
    top : int or None
        Only so many edges.
    memory_mb : int
        Cap on the whole process.
    threads : int or None
        Workers; None for the cores there are.
    safe : bool
        No name in the CSV file is a formula to a spreadsheet.
    cluster : DaskCluster or None
        Workers elsewhere that targets are spread over; None for threads of this process.
    """

    out: Path
    params: EdgeParams
    regulators: Path | None = None
    targets: Path | None = None
    rows: Path | None = None
    run: Path | None = None
    top: int | None = None
    memory_mb: int = 512
    threads: int | None = None
    safe: bool = False
    cluster: "DaskCluster | None" = None

    @property
    def folder(self) -> Path:
        """Where what is done is kept."""
        return self.out.with_name(self.out.name + FOLDER_SUFFIX) if self.run is None else self.run


@dataclass(frozen=True)
class Network:
    """What became of a network.

    Attributes
    ----------
    out, run : str
        The file of its edges, and the folder of what is done.
    n_regulators, n_targets, n_done, n_edges : int
        Its size; targets done; edges written, 0 before all targets are.
    n_constant : int
        Targets without edges, as their values do not differ.
    n_duplicates : int
        Pairs of a target and a regulator with equal codes.
    duplicates : list of (str, str)
        The first of them: target, regulator.
    n_epochs : int
        Epochs of all targets together, where they are learnt jointly; else 0.
    seconds, peak_mb : float
        Time worked on targets, and the largest resident size so far.
    """

    out: str
    run: str
    n_regulators: int
    n_targets: int
    n_done: int
    n_edges: int
    n_constant: int
    n_duplicates: int
    seconds: float
    peak_mb: float
    duplicates: list[tuple[str, str]] = field(default_factory=list)
    n_epochs: int = 0

    @property
    def is_done(self) -> bool:
        """Whether all targets are done, and the edges written."""
        return self.n_done == self.n_targets


class NetworkTask:
    """A network that is asked for, settled; the store must be held unchanged meanwhile.

    Parameters
    ----------
    store : Store
        The store.
    request : NetworkRequest
        What is asked.

    Attributes
    ----------
    rows : int32 (n_rows,) or None
        Rows trained on; None for all.
    regulators, targets : uint32
        Stored positions, ascending.
    shape : TrainingShape
        Of the work on a target.
    n_workers : int
        Threads at work here; 0 where workers elsewhere do it.
    n_ahead : int
        Targets begun at most after the first one that is not done.
    mapped : bool
        Whether the store is mapped into memory.
    n_edges : int
        Edges that may be put in order together.
    leases : list of Lease
        All that was granted, the process first.
    free_nbytes : int
        What is left of the cap.
    smallest_cap_mb : int
        The smallest cap that works.

    Raises
    ------
    UsageError, StoreError, BudgetError
        If it cannot be done as asked; the smallest cap that holds one worker is named.
    """

    def __init__(self, store: Store, request: NetworkRequest) -> None:
        self.store, self.request = store, request
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
        working = self._leases(
            store.n_rows if files.rows is None else files.rows.n_found,
            store.n_features if regulators is None else regulators.n_found,
            store.n_features if targets is None else targets.n_found,
        )
        check_stages(cap_nbytes, [reading, working])
        spare = Budget(cap_nbytes, reading).free_nbytes
        self.rows = files.resolve(spare).rows
        self.regulators, self.targets = find_variables(store, regulators, targets, spare)
        n_rows = store.n_rows if self.rows is None else len(self.rows)
        granted = self._leases(n_rows, len(self.regulators), len(self.targets))
        # Options must suit a target's regulators, of which it is none itself.
        n_others = max(1, len(self.regulators) - (len(self.targets) == 1))
        params.check_shape(replace(self.shape, n_candidates=n_others))
        self._grant(Budget(cap_nbytes, granted))
        self.smallest_cap_mb = smallest_cap([reading, working])

    def _leases(self, n_rows: int, n_regulators: int, n_targets: int) -> list[Lease]:
        """Return what so large a network needs with one worker, whose lease is the last."""
        store, cluster, params = self.store, self.request.cluster, self.request.params
        self.shape = edge_shape(params, store.manifest, n_rows, n_regulators)
        orders = None if cluster is None else ORDERS_NBYTES
        requests = Lease("requests under way", store.reading_nbytes)
        return [requests, *network_leases(params, self.shape, n_targets, orders)]

    def _grant(self, budget: Budget) -> None:
        """Share the cap out: one worker first, then more, then the store mapped; then edges."""
        budget.check()
        self.n_workers, self.mapped, room = 0, False, budget.free_nbytes
        if self.request.cluster is not None:
            self.n_ahead = min(FEWEST_AHEAD + room // target_nbytes(self.shape), MOST_AHEAD)
        else:
            threads = min(self.request.threads or n_cores(), len(self.targets))
            work = budget.leases[-1].n_bytes
            self.n_workers = 1 + budget.grant_more("another worker", work, threads - 1)
            self.n_ahead = self.n_workers + 1
            self.mapped = maps(budget, self.store)
            # Edges are put in order once the workers have gone.
            room = max(0, budget.free_nbytes + (self.n_workers - 1) * work)
        self.n_edges = FEWEST_EDGES + room // EDGE_NBYTES
        self.leases, self.free_nbytes = budget.leases, budget.free_nbytes

    def identity(self) -> dict[str, Any]:
        """Return what identifies the network."""
        return self.request.params.values() | {
            "store": self.store.fingerprint,
            "regulators": digest(self.regulators, "features"),
            "targets": digest(self.targets, "features"),
            "rows": digest(self.rows, "rows"),
        }

    def source(self, *, valued: bool = True) -> AbstractContextManager[ColumnSource]:
        """Yield where columns come from; with the values of codes where the method uses them."""
        n_values = self.shape.n_values if valued else 0
        return edge_source(self.store, self.rows, mapped=self.mapped, valued=n_values > 0)

    def scorer(self, source: ColumnSource) -> EdgeScorer:
        """Return what weighs the regulators of targets here."""
        params = self.request.params
        return EdgeScorer(params, self.store, source, self.regulators, self.n_workers)

    def values_of(self, targets: NDArray[np.uint32]) -> Targets:
        """Yield targets, ascending, with their values on the rows trained on."""
        return zip(targets.tolist(), target_values(self.store, targets, self.rows), strict=True)


def maps(budget: Budget, store: Store) -> bool:
    """Grant that a store is mapped into memory, where it is no URL and the cap holds all of it."""
    mapped = not store.reading_nbytes and store.manifest.codes_nbytes <= budget.free_nbytes
    if mapped:
        budget.grant("the store, mapped", store.manifest.codes_nbytes)
    return mapped


# Targets at workers elsewhere: they are told of a network once, then of targets with their values.


@dataclass(frozen=True)
class NetworkJob(Job):
    """What a worker needs to weigh the regulators of any target; its identity is the network's.

    Attributes
    ----------
    params : EdgeParams
        How regulators are weighed.
    shape : TrainingShape
        What bounds the memory of a target.
    regulators : uint32 (n_regulators,)
        Stored positions, ascending.
    rows : int32 (n_rows,) or None
        Rows trained on; None for all.
    """

    params: EdgeParams
    shape: TrainingShape
    regulators: NDArray[np.uint32]
    rows: NDArray[np.int32] | None
    label = "network"

    @classmethod
    def of(cls, task: NetworkTask, memory_mb: int) -> "NetworkJob":
        """Return the job of a network for workers that may grow by so much."""
        store = WorkerStore.of(task.store, memory_mb)
        params = task.request.params
        return cls(store, task.identity(), params, task.shape, task.regulators, task.rows)

    def prepare(self, n_threads: int, stack: ExitStack) -> Work:
        """Prepare for it in a worker; as the base class says."""
        store, shape = self.store.open(), self.shape
        lease = worker_lease(self.params, shape, target_nbytes(shape))
        requests = Lease("requests under way", store.reading_nbytes)
        leases = [requests, shape.values_lease, lease]
        budget = Budget(self.store.memory_mb * MB, leases, PROCESS_NBYTES)
        budget.check("--worker-memory-mb")
        n_blocks = 1 + budget.grant_more("another worker", lease.n_bytes, n_threads - 1)
        mapped = maps(budget, store)
        with store.unchanged():
            source = edge_source(store, self.rows, mapped=mapped, valued=shape.n_values > 0)
            opened = stack.enter_context(source)
        scorer = EdgeScorer(self.params, store, opened, self.regulators, n_blocks)

        def work(batch: Batch, tell: Tell) -> Batch:
            done = scorer.work(batch, tell)
            store.check_unchanged()  # else nothing is returned
            return done

        return work
