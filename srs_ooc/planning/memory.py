"""Where the memory under a cap goes: the run's own leases, and what is done with the rest."""

from dataclasses import dataclass

from srs_ooc.base.budget import PROCESS_NBYTES
from srs_ooc.planning.subject import Subject
from srs_ooc.runs.run_memory import grant_workers, plan_memory, worker_nbytes
from srs_ooc.runs.spec import largest_subspace, work_nbytes


@dataclass(frozen=True)
class MemoryPlan:
    """What a run would lease.

    Attributes
    ----------
    leases : tuple of (str, int)
        Purpose and bytes, as the run grants them; a mapped store's bytes count as they are touched.
    free_nbytes : int
        What is left of the cap.
    n_workers : int
        Trees grown at once.
    mapped : bool
        Whether the whole store stays in memory.
    largest_subspace : int
        The largest q the cap holds (with one worker).
    """

    leases: tuple[tuple[str, int], ...]
    free_nbytes: int
    n_workers: int
    mapped: bool
    largest_subspace: int


def memory_plan(subject: Subject) -> MemoryPlan:
    """Return the memory plan of a run, from the formulas that the run itself uses.

    Raises
    ------
    BudgetError
        If the cap cannot hold the work.
    """
    spec, shape = subject.spec, subject.shape
    # As published: the process that plans is not the one that runs.
    budget = plan_memory(
        spec, shape, subject.cap_nbytes, PROCESS_NBYTES, beside_nbytes=subject.reading_nbytes
    )
    n_columns = spec.n_columns
    one = work_nbytes(shape, n_columns)
    if not spec.model.is_tree:
        one = worker_nbytes(spec, shape, saves=False)
    n_workers = grant_workers(budget, one, subject.threads)
    mapped = not subject.is_remote and budget.fits(subject.codes_nbytes)
    if mapped:
        budget.grant("the store, mapped", subject.codes_nbytes)
    return MemoryPlan(
        tuple((lease.purpose, lease.n_bytes) for lease in budget.leases),
        budget.free_nbytes,
        n_workers,
        mapped,
        largest_subspace(
            shape,
            subject.cap_nbytes,
            spec.learner.impurity,
            n_families=spec.decoys,
            concludes=spec.concludes,
            state=spec.state_nbytes(shape.n_rows, shape.n_features),
        ),
    )
