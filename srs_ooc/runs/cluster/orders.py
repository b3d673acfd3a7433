"""What travels: the job that a worker prepares for once, its orders, and what comes back."""

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.records import Iteration, Outcome
from srs_ooc.runs.cluster.line import AnyDesk, AnyJob, Line, Standing, digest_of
from srs_ooc.runs.cluster.prepared import WorkerStore, new_token
from srs_ooc.runs.executors import Executor
from srs_ooc.runs.spec import RunSpec
from srs_ooc.runs.task import Task
from srs_ooc.samplers.elimination import TREES
from srs_ooc.store.store import Store

DEFAULT_WORKER_MEMORY_MB = 512


@dataclass(frozen=True)
class Closing:
    """Limits of the trees of a closing stage: rows of a leaf at least, items of a tree at most."""

    min_samples_leaf: int
    most: int


@dataclass(frozen=True)
class Job:
    """What a worker needs to grow any iteration of a stage of a run, besides the store.

    Nothing in it grows with the number of features.

    Attributes
    ----------
    token : str
        Unlike that of any other job.
    store : WorkerStore
        Where it is, and what a worker may take.
    spec : dict
        The run's identity as JSON.
    rows : int32 (n_rows,) or None
        Rows of the store trained on; None for all.
    target : int32 or float64 (n_rows,)
        Of these rows: a permutation run's is permuted.
    records : bool
        Trees are returned.
    closing : Closing or None
        Limits of a closing stage; None for the main loop.
    """

    token: str
    store: WorkerStore
    spec: dict[str, Any]
    rows: NDArray[np.int32] | None
    target: NDArray[np.int32] | NDArray[np.float64]
    records: bool
    closing: Closing | None

    @property
    def round_size(self) -> int:
        """Iterations that are proposed from one state."""
        return int(self.spec["round_size"]) if self.closing is None else TREES

    @property
    def nbytes(self) -> int:
        """Bytes of its arrays, which grow with the rows."""
        return self.target.nbytes + (0 if self.rows is None else self.rows.nbytes)

    @property
    def run(self) -> str:
        """A digest of the run's identity: jobs of a run take each other's place in a worker."""
        return digest_of(self.spec)

    @property
    def label(self) -> str:
        """What its tasks are called."""
        return "grow" if self.closing is None else "close"

    @property
    def tells(self) -> bool:
        """No: batches are short."""
        return False

    def desk(self, n_threads: int) -> AnyDesk:
        """Prepare for it in a worker; errors as of :class:`srs_ooc.runs.cluster.desk.Desk`."""
        from srs_ooc.runs.cluster.desk import Desk  # which has need of this module

        return Desk(self, n_threads)


class Cluster(Protocol):
    """Workers elsewhere."""

    orders_nbytes: int
    """What orders and outcomes on their way take where the run is."""
    worker_memory_mb: int
    """What each worker may grow by."""

    def executor(self, job: Job, n_columns: int) -> Executor:
        """Return what has iterations of ``job``, of at most ``n_columns``, grown."""

    def line(self, job: AnyJob) -> Line:
        """Return the way to workers who do parts of a job."""

    def standing(self) -> Standing:
        """Return how many workers there are, and what was ordered of them."""


@dataclass(frozen=True)
class Remote:
    """A cluster, and the job of a run's main loop on it."""

    cluster: Cluster
    job: Job

    @classmethod
    def of(
        cls, cluster: Cluster, spec: RunSpec, store: Store, task: Task, *, records: bool
    ) -> "Remote":
        """Return the work of a run on a cluster."""
        there = WorkerStore.of(store, cluster.worker_memory_mb)
        return cls(cluster, Job("", there, spec.to_json(), task.rows, task.target, records, None))

    def executor(self, n_columns: int, closing: Closing | None = None) -> Executor:
        """Return an executor for the main loop, or for trees of a closing stage."""
        records = self.job.records and closing is None
        job = replace(self.job, token=new_token(), closing=closing, records=records)
        return self.cluster.executor(job, n_columns)


@dataclass(frozen=True)
class Packed:
    """An outcome without what the one who ordered it knows: its features, and zeros.

    A tree splits on few of its columns, so most importances are 0.

    Attributes
    ----------
    places : uint32 (n,)
        Where in the subspace importances are not 0.
    importance : int64 (n,)
        Those.
    rest : Outcome
        Everything else.
    """

    places: NDArray[np.uint32]
    importance: NDArray[np.int64]
    rest: Outcome


_NO_FEATURES = np.zeros(0, np.uint32)
_NO_IMPORTANCE = np.zeros(0, np.int64)


def pack(outcome: Outcome) -> Packed:
    """Return an outcome as it travels."""
    places = np.flatnonzero(outcome.importance).astype(np.uint32)
    rest = Outcome(
        _NO_FEATURES,
        _NO_IMPORTANCE,
        outcome.probe_importance,
        outcome.trees,
        outcome.losses,
        outcome.predictions,
    )
    return Packed(places, outcome.importance[places], rest)


def unpack(packed: Packed, iteration: Iteration) -> Outcome:
    """Return the outcome of ``iteration``, as it was packed."""
    importance = np.zeros(len(iteration.features), np.int64)
    importance[packed.places] = packed.importance
    rest = packed.rest
    return Outcome(
        iteration.features,
        importance,
        rest.probe_importance,
        rest.trees,
        rest.losses,
        rest.predictions,
    )
