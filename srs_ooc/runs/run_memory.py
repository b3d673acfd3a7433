"""Fitting a run under its memory cap: its budget, its workers, and the threads of each."""

import os
from dataclasses import dataclass
from typing import Self

from srs_ooc.base.budget import (
    PROCESS_NBYTES,
    Budget,
    Lease,
    cap_to_name,
    growth_counts,
    process_nbytes,
)
from srs_ooc.base.text import MB
from srs_ooc.learners.model_learner import LIBRARY_NBYTES, Trial, decoded_nbytes, tried
from srs_ooc.learners.models import TREE
from srs_ooc.learners.tree_learner import RANK, UNWEIGHTED
from srs_ooc.runs.inputs import Inputs
from srs_ooc.runs.ledger import Ledger
from srs_ooc.runs.spec import (
    RunSpec,
    TrainingShape,
    extra_nbytes,
    fixed_nbytes,
    work_nbytes,
)
from srs_ooc.runs.task import n_channels_of
from srs_ooc.store.manifest import Manifest
from srs_ooc.store.store import Store
from srs_ooc.store.values import n_values_of
from srs_ooc.trees.block import thread_nbytes

_HAS_AFFINITY = hasattr(os, "sched_getaffinity")


def shape_of(
    manifest: Manifest,
    inputs: Inputs,
    class_weight: str = UNWEIGHTED,
    thresholds: str = RANK,
    model: str = TREE,
) -> TrainingShape:
    """Return what of the store, as trained on, bounds a run."""
    n_excluded = 0 if inputs.excluded is None else len(inputs.excluded)
    by_value = thresholds != RANK or model != TREE
    return TrainingShape(
        n_rows=manifest.n_rows if inputs.rows is None else len(inputs.rows),
        n_candidates=manifest.n_features - n_excluded,
        n_features=manifest.n_features,
        n_classes=max(1, len(manifest.classes)),
        code_nbytes=manifest.code_nbytes,
        n_channels=n_channels_of(manifest, class_weight),
        n_values=n_values_of(manifest) if by_value else 0,
        n_stored_rows=manifest.n_rows,
        has_strata="strata" in manifest.row_columns,
        is_decoded=model != TREE,
    )


def run_leases(
    spec: RunSpec, shape: TrainingShape, *, saves: bool = False, beside_nbytes: int = 0
) -> list[Lease]:
    """Return what a run needs besides the process, with one worker; ``saves``: trees are kept.

    ``beside_nbytes`` are what a stage needs besides.

    Raises
    ------
    UsageError
        If the run's model is no tree, and cannot be fitted on a subspace of this shape.
    """
    fixed = fixed_nbytes(spec, shape)
    if beside_nbytes:
        fixed.append(("what the stage looks at besides", beside_nbytes))
    what = "tree"
    if not spec.model.is_tree:
        what = "model"
        more = trial_of(spec, shape).library_nbytes - LIBRARY_NBYTES
        fixed.append((f"what {spec.model.model} loads besides", max(0, more)))
    n_bytes = worker_nbytes(spec, shape, saves=saves)
    fixed.append((f"a block of {spec.n_columns} columns and its {what}", n_bytes))
    return [Lease(*lease) for lease in fixed]


@dataclass
class RunBudget(Budget):
    """The budget of a stage of a run, with what was done with the rest of its cap.

    What the cap leaves goes first to more workers, then to threads that share a worker's tree where
    there are more cores, then to keeping the store mapped.

    Attributes
    ----------
    n_workers, n_threads : int
        Blocks on which trees are grown at once, and the threads of each.
    mapped : bool
        Whether the whole store stays in memory.
    """

    n_workers: int = 1
    n_threads: int = 1
    mapped: bool = False

    def spend(
        self,
        spec: RunSpec,
        shape: TrainingShape,
        threads: int | None,
        store_nbytes: int,
        *,
        saves: bool = False,
    ) -> Self:
        """Grant what makes a run faster, up to ``threads``; ``saves``: trees are kept."""
        n_most, each = threads or n_cores(), worker_nbytes(spec, shape, saves=saves)
        self.n_workers = grant_workers(self, each, n_most)
        one = self.n_workers * _thread_nbytes(spec, shape)
        is_tree = spec.model.is_tree
        while is_tree and (self.n_threads + 1) * self.n_workers <= n_most and self.fits(one):
            self.grant("another thread for each tree", one)
            self.n_threads += 1
        self.mapped = self.fits(store_nbytes)
        return self


def plan_memory(
    spec: RunSpec,
    shape: TrainingShape,
    cap_nbytes: int,
    process_nbytes: int | None = None,
    *,
    saves: bool = False,
    beside_nbytes: int = 0,
) -> RunBudget:
    """Return the budget of a run with what :func:`run_leases` says granted.

    Raises
    ------
    BudgetError
        If the cap cannot hold it.
    """
    budget = RunBudget(cap_nbytes, process_nbytes)
    budget.leases += run_leases(spec, shape, saves=saves, beside_nbytes=beside_nbytes)
    budget.check()
    return budget


def check_stages(cap_nbytes: int, stages: list[list[Lease]]) -> None:
    """Check that a cap holds each of some stages, which follow each other.

    Raises
    ------
    BudgetError
        If it cannot, with all that the largest of them needs.
    """
    Budget.of(cap_nbytes, largest_stage(stages)).check()


def largest_stage(stages: list[list[Lease]]) -> list[Lease]:
    """Return the stage that needs the most, which a refusal is about."""
    return max(stages, key=lambda stage: sum(lease.n_bytes for lease in stage))


def smallest_cap(stages: list[list[Lease]]) -> int:
    """Return the smallest cap, in MB, that holds each of some stages, which follow each other."""
    leases = largest_stage(stages)
    return cap_to_name(process_nbytes() + sum(lease.n_bytes for lease in leases))


def worker_nbytes(spec: RunSpec, shape: TrainingShape, *, saves: bool) -> int:
    """Return the bytes of a worker: its block and its model; ``saves``: trees are kept."""
    n_columns = spec.n_columns
    extra = extra_nbytes(spec, shape, saves=saves)
    if not spec.model.is_tree:
        published = decoded_nbytes(shape.n_rows, n_columns, shape.code_nbytes)
        extra += max(0, trial_of(spec, shape).work_nbytes - published)
    judges = spec.method.judges_candidates
    return work_nbytes(shape, n_columns, extra, judges_candidates=judges)


def trial_of(spec: RunSpec, shape: TrainingShape) -> Trial:
    """Return what a subspace of the run's model takes, as tried once by this process.

    Raises
    ------
    UsageError
        If there is no such estimator, or it refuses its parameters.
    """
    method, sizes = spec.sampler, (shape.n_candidates, spec.subspace_size)
    judges = method.judges_candidates
    return tried(
        spec.model,
        shape.n_rows,
        method.most_columns(spec.subspace_size) if judges else spec.n_columns,
        shape.n_classes,
        shape.code_nbytes,
        shape.n_values,
        method.judged_by if method.criteria_each(*sizes) else "",
    )


def grant_workers(budget: Budget, worker_nbytes: int, threads: int | None) -> int:
    """Grant more workers while the cap holds them, up to ``threads``; return how many there are."""
    n_workers = 1
    while n_workers < (threads or n_cores()) and budget.fits(worker_nbytes):
        budget.grant("another worker", worker_nbytes)
        n_workers += 1
    return n_workers


def _thread_nbytes(spec: RunSpec, shape: TrainingShape) -> int:
    """Return the bytes of one more thread of a worker's tree."""
    sizes = shape.n_rows, spec.n_columns, shape.n_classes, shape.code_nbytes, shape.n_channels
    return thread_nbytes(*sizes, spec.learner.splitter)


def n_cores() -> int:
    """Return the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if _HAS_AFFINITY else os.cpu_count() or 1


NAMES_NBYTES = 2_000_000
"""Bytes of names that a verdict keeps at most, the first by rank before the others."""

# What is on its way between a run and workers elsewhere.

ORDERS_NBYTES = 64 * MB
"""What Dask and its messages take where the run is, besides its libraries."""
LARGE_JOB_NBYTES = 1 << 16
"""A larger job is sent once to each worker, not with each batch."""
AHEAD_NBYTES = 32 * MB
"""What iterations and outcomes under way may take."""
AHEAD_COLUMN_NBYTES = 16
"""A column of an iteration under way: its number, and its importance."""


def most_iterations_ahead(n_columns: int) -> int:
    """Return how many iterations of so many columns may be under way at once."""
    return max(2, AHEAD_NBYTES // (AHEAD_COLUMN_NBYTES * max(n_columns, 64)))


def whole_run_nbytes(spec: RunSpec, store: Store, inputs: Inputs) -> int:
    """Return what a whole run on a worker needs, the process included."""
    shape = shape_of(store.manifest, inputs, spec.learner.class_weight, spec.learner.thresholds)
    leases = run_leases(spec, shape, beside_nbytes=store.reading_nbytes)
    given = 0 if inputs.weights is None else inputs.weights.nbytes
    given += 0 if inputs.excluded is None else inputs.excluded.nbytes
    return PROCESS_NBYTES + given + sum(lease.n_bytes for lease in leases)


# Whether the sizes of memory in a ledger are of a process, or of its growth.

_GROWTH = "memory_is_growth"


def is_growth(ledger: Ledger) -> bool:
    """Return whether all sizes that were noted are of growth, as of a run made from Python."""
    return bool(ledger.has_meta(_GROWTH) and ledger.meta(_GROWTH))


def note_growth(ledger: Ledger) -> None:
    """Note what the sizes are that the work to come adds; one whole process makes them mixed."""
    counts = growth_counts() and (ledger.progress().iteration == 0 or is_growth(ledger))
    if counts != is_growth(ledger):
        ledger.set_meta(_GROWTH, counts)
