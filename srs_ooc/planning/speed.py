"""Seconds per iteration: measured on the store, or estimated from trees on made-up codes."""

import gc
import time
from dataclasses import dataclass
from math import log

from srs_ooc.base.text import ceil_div
from srs_ooc.learners.models import DEFAULT_FOLDS
from srs_ooc.planning.made_up import fits, seconds_of_a_tree, seconds_of_candidates
from srs_ooc.planning.memory import MemoryPlan
from srs_ooc.planning.subject import Subject
from srs_ooc.runs.ledger import TransientLedger
from srs_ooc.runs.resources import Resources
from srs_ooc.runs.run_memory import trial_of
from srs_ooc.runs.spec import LONG_READ_NBYTES, RunSpec

PROBE_SECONDS = 0.3
LONGEST_SECONDS = 1.0
"""Iterations that take longer, as tried, are not measured where a criterion judges candidates."""
PROBE_CELLS = 4_000_000
"""Cells of the made-up block; larger subspaces are scaled up from it, linearly in columns."""
PAGING_NBYTES_PER_SECOND = 1.5e9
"""Published allowance for reading subspaces through a warm page cache."""
READ_SECONDS = 5e-7
"""Published allowance for one read of a store that is not mapped, from a warm page cache."""
BOOKKEEPING_SECONDS = 7e-8
"""Published allowance for drawing, tallying and judging one feature, in one thread."""
ITERATION_SECONDS = 5e-4
"""Published allowance for an iteration of the fewest features, in one thread."""
COLD_READS_PER_SECOND = 30_000
"""Published allowance for random reads from a cold solid-state disk."""
COLD_NBYTES_PER_SECOND = 5e8
"""Published allowance for the bytes they bring."""
REQUESTS_PER_SECOND = 500
"""Published allowance for range requests to a server: 16 at a time, of 32 ms each."""
REQUEST_NBYTES_PER_SECOND = 6e7
"""Published allowance for the bytes they bring."""


@dataclass(frozen=True)
class Speed:
    """Seconds of one iteration, and where the number comes from.

    Attributes
    ----------
    seconds : float
        Wall-clock seconds per iteration with all workers at work.
    measured : bool
        Measured on the store itself; otherwise an estimate.
    how : str
        What was done.
    """

    seconds: float
    measured: bool
    how: str


def n_reads(spec: RunSpec) -> int:
    """Return about how many reads page a subspace in where the store is not mapped."""
    return ceil_div(spec.subspace_size, spec.draw_block)


def cold_seconds(subspace_size: int, draw_block: int, column_nbytes: int) -> float:
    """Return the seconds of an iteration's reads from a cold disk, at published rates."""
    n_reads = ceil_div(subspace_size, draw_block)
    return n_reads / COLD_READS_PER_SECOND + subspace_size * column_nbytes / COLD_NBYTES_PER_SECOND


def fetching_seconds(subspace_size: int, draw_block: int, column_nbytes: int) -> float:
    """Return the seconds of an iteration's requests to a server, at published rates.

    A request brings a block of neighbouring columns (:mod:`srs_ooc.store.remote_cache`), whether
    all of them are wanted or not.
    """
    n_requests = ceil_div(subspace_size, draw_block)
    nbytes = n_requests * max(draw_block * column_nbytes, LONG_READ_NBYTES)
    return max(n_requests / REQUESTS_PER_SECOND, nbytes / REQUEST_NBYTES_PER_SECOND)


def measured_speed(subject: Subject) -> Speed:
    """Return the seconds of real iterations of this very run, in memory, with no ledger.

    Uses the memory that the run would, for about a third of a second, or one round of slow workers.
    """
    with subject.resources() as resources:
        seconds, n_timed = _time(resources)
        n_workers = max(1, resources.executor.max_ahead - 1)
    del resources
    gc.collect()  # an engine and its speculation refer to each other; their arrays must go now
    how, each = f"{n_timed} real iterations of this run on the store", seconds / n_timed
    asked = fits(subject)
    if asked.n_criteria:  # the first iterations judge; others fit what was chosen
        fitting = trial_of(subject.spec, subject.shape).seconds / DEFAULT_FOLDS / n_workers
        each += asked.n_models * (fitting - each)
        how += ", and its model on one made-up subspace"
    return Speed(each, True, how)


def is_measurable(subject: Subject) -> bool:
    """Return whether some real iterations take no longer than a plan may.

    Iterations of models that judge candidates are long, unless a criterion does that in no time.
    """
    spec = subject.spec
    if spec.model.is_tree or not spec.method.judges_candidates:
        return True
    n_criteria = fits(subject).n_criteria
    if not n_criteria:
        return False
    return n_criteria * trial_of(spec, subject.shape).criterion_seconds < LONGEST_SECONDS


def _time(resources: Resources) -> tuple[float, int]:
    """Return the seconds and number of iterations timed.

    Timing starts afresh once the workers are warm, unless iterations are so slow that the first
    ones have taken long enough already.
    """
    engine, ahead = resources.search(TransientLedger()).engine, resources.executor.max_ahead
    begun, n_before = time.monotonic(), 0

    def keep_going() -> bool:
        nonlocal begun, n_before
        n_done, seconds = engine.iteration, time.monotonic() - begun
        if n_before == 0 and n_done == ahead and seconds < PROBE_SECONDS:
            begun, n_before = time.monotonic(), n_done
            return True
        return n_done - n_before < max(2, ahead) or seconds < PROBE_SECONDS

    engine.advance(1 << 31, keep_going)
    return time.monotonic() - begun, engine.iteration - n_before


def estimated_speed(
    subject: Subject,
    memory: MemoryPlan,
    seconds: float = PROBE_SECONDS,
    n_cells: int = PROBE_CELLS,
) -> Speed:
    """Return an estimate from trees on a block of random codes and labels.

    Their time is scaled to all candidates and shared among the workers; paging and bookkeeping are
    added at published rates.

    Parameters
    ----------
    subject : Subject
        The run; its store is not touched.
    memory : MemoryPlan
        Its workers, and whether its store is mapped.
    seconds : float
        About how long to grow trees.
    n_cells : int
        Cells of the block, and about the bytes it takes.
    """
    shape, spec = subject.shape, subject.spec
    if not spec.model.is_tree:
        return _tried_speed(subject, memory)
    n_columns = spec.n_columns
    if spec.method.mean_columns is not None:
        n_columns = min(n_columns, spec.method.mean_columns(spec.sampler, shape.n_candidates))
    n_rows = min(shape.n_rows, max(64, n_cells // 64))
    n_probed = min(n_columns, max(64, n_cells // n_rows))
    judges = spec.method.judges_candidates
    timed = seconds_of_candidates if judges else seconds_of_a_tree
    growing = timed(subject, n_rows, n_probed, seconds)
    # Where K < q a node looks at K candidates, however many columns there are.
    n_looked_at = spec.learner.max_features
    if n_looked_at == spec.subspace_size:
        n_looked_at = n_columns
    growing *= 1.0 if judges else max(1.0, n_looked_at / n_probed)
    growing *= shape.n_rows / n_rows * (log(shape.n_rows) / log(n_rows))  # rows times levels
    growing *= spec.learner.trees_per_subspace
    paging = n_columns * shape.n_rows * shape.code_nbytes / PAGING_NBYTES_PER_SECOND
    if not memory.mapped:
        paging += READ_SECONDS * n_reads(spec)
    bookkeeping = ITERATION_SECONDS + BOOKKEEPING_SECONDS * n_columns
    return Speed(
        max(bookkeeping, (growing + paging + bookkeeping) / memory.n_workers),
        False,
        _trees_on(subject, n_rows, n_probed, n_looked_at)
        + f"; published rates for paging and bookkeeping; workers: {memory.n_workers}",
    )


def _tried_speed(subject: Subject, memory: MemoryPlan) -> Speed:
    """Return an estimate from the one subspace that the model was tried on."""
    spec = subject.spec
    seconds, how = trial_of(spec, subject.shape).seconds, "made-up subspace"
    if spec.model.model_folds is None:
        seconds /= DEFAULT_FOLDS  # one model for a subspace
    asked = fits(subject)
    if asked.n_criteria:
        seconds *= asked.n_models
        seconds += asked.n_criteria * trial_of(spec, subject.shape).criterion_seconds
        how += f", and {asked.n_criteria:,.0f} subspaces an iteration by its criterion"
    elif spec.method.judges_candidates:
        seconds *= asked.n_models
        how += f", times {asked.n_models:,.0f} models an iteration, the most there can be"
    return Speed(
        seconds / memory.n_workers,
        False,
        f"{spec.model.model} on one {how}; workers: {memory.n_workers}",
    )


def _trees_on(subject: Subject, n_rows: int, n_probed: int, n_looked_at: int) -> str:
    """Say what was grown on what."""
    all_rows = subject.shape.n_rows
    if subject.spec.method.judges_candidates:
        n_models, most = fits(subject).n_models, fits(subject).n_columns
        scaled = "" if n_rows == all_rows else f", scaled to {all_rows:,} rows"
        return (
            f"trees on {n_rows:,} rows of up to {most:,} made-up columns, times {n_models:,.0f} an "
            f"iteration, the most there can be{scaled}"
        )
    scaled = f", scaled to {all_rows:,} of {n_looked_at:,}"
    is_scaled = n_looked_at > n_probed or n_rows < all_rows
    return f"trees on {n_rows:,} rows of {n_probed:,} made-up columns{scaled if is_scaled else ''}"
