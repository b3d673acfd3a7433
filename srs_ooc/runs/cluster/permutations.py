"""Permutation runs done by workers, each whole at one of them."""

import logging
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.budget import PROCESS_NBYTES
from srs_ooc.base.text import MB
from srs_ooc.runs.base_models import check_cluster
from srs_ooc.runs.cluster.line import Part, Reply, Tell, digest_of
from srs_ooc.runs.cluster.prepared import Prepared, WorkerStore, new_token
from srs_ooc.runs.cluster.whole_runs import Slots, done_in_turn, from_workers, watch_of
from srs_ooc.runs.inputs import Inputs
from srs_ooc.runs.memory import run_leases, shape_of
from srs_ooc.runs.permutation_runs import Best, best_of
from srs_ooc.runs.screening import Books, RunContext, Watch
from srs_ooc.runs.spec import RunSpec
from srs_ooc.runs.task import Task
from srs_ooc.store.store import Store

_log = logging.getLogger("srs_ooc")


@dataclass(frozen=True)
class PermutationJob:
    """What a worker needs to do any permutation run, besides the store.

    Attributes
    ----------
    token : str
        Unlike that of any other job.
    store, spec
        As of :class:`srs_ooc.runs.cluster.orders.Job`.
    inputs : Inputs
        Features left out, rows, and how often features are drawn where columns were scored.
    n_iterations : int
        Of each run's screen.
    """

    token: str
    store: WorkerStore
    spec: dict[str, Any]
    inputs: Inputs
    n_iterations: int
    label = "permutation_run"
    tells = True

    @property
    def run(self) -> str:
        """As of the run's other jobs, whose place it takes."""
        return digest_of(self.spec)

    @property
    def nbytes(self) -> int:
        """Bytes of its arrays."""
        given = self.inputs
        arrays: list[NDArray[np.generic] | None] = [
            given.excluded, given.rows, given.weights, given.validation,
        ]  # fmt: skip
        return sum(array.nbytes for array in arrays if array is not None)

    def desk(self, n_threads: int) -> "PermutationDesk":
        """Prepare for it in a worker."""
        return PermutationDesk(self, n_threads)


class PermutationDesk(Prepared[PermutationJob]):
    """Does any permutation run of a job; parameters and errors as of the base class."""

    def _prepare(self, n_threads: int) -> None:
        job = self.job
        self._spec = spec = RunSpec.from_json(job.spec)
        store = job.store.open()
        self._slots = Slots(job.store.memory_mb, needed_nbytes(spec, store, job.inputs), n_threads)
        with store.unchanged():
            task = Task.of_run(spec, store, job.inputs)
        self._context = RunContext(store, task, self._slots.each_nbytes, 1)

    def work(self, parts: list[Part], tell: Tell) -> Reply:
        """Return what the permutation runs of these numbers reach."""
        n_iterations = self.job.n_iterations

        def one(part: Part, cap_nbytes: int) -> Best | None:
            watch = watch_of(part.number, tell, n_iterations)
            context = replace(self._context, cap_nbytes=cap_nbytes)
            what = (self._spec, context, part.number, n_iterations, watch)
            return best_of(*what, Books.nowhere(), "")

        return done_in_turn(self._slots, parts, one)


def needed_nbytes(spec: RunSpec, store: Store, inputs: Inputs) -> int:
    """Return what a whole run on a worker needs, the process included."""
    shape = shape_of(store.manifest, inputs, spec.learner.class_weight, spec.learner.thresholds)
    leases = run_leases(spec, shape, beside_nbytes=store.reading_nbytes)
    given = 0 if inputs.weights is None else inputs.weights.nbytes
    given += 0 if inputs.excluded is None else inputs.excluded.nbytes
    return PROCESS_NBYTES + given + sum(lease.n_bytes for lease in leases)


def fits_workers(spec: RunSpec, context: RunContext) -> bool:
    """Return whether a worker's memory holds a whole run; where it does not, that is logged."""
    assert context.cluster is not None
    needed = needed_nbytes(spec, context.store, context.task.inputs)
    fits = needed <= context.cluster.worker_memory_mb * MB
    if not fits:
        _log.warning(
            "permutation runs come one after another, each with its trees grown by all workers: "
            "to have whole runs done side by side, give --worker-memory-mb %d",
            -(-needed // MB),
        )
    return fits


def bests_from_workers(
    spec: RunSpec, context: RunContext, numbers: list[int], n_iterations: int, watch: Watch
) -> Iterator[tuple[int, Best]]:
    """Yield what permutation runs reach, in any order; end if ``watch`` says no.

    Raises
    ------
    UsageError
        If the model is no tree.
    """
    check_cluster(spec)
    assert context.cluster is not None
    store = WorkerStore.of(context.store, context.cluster.worker_memory_mb)
    job = PermutationJob(new_token(), store, spec.to_json(), context.task.inputs, n_iterations)
    parts = [Part(number, None) for number in numbers]
    yield from from_workers(context.cluster, job, parts, "permutation runs", n_iterations, watch)
