"""Seconds per iteration: measured on the store, or estimated from trees on made-up codes."""

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass
from math import log

import numpy as np

from srs_ooc.base.records import Candidates, Iteration, RowSplit, Subspace
from srs_ooc.base.seeds import derive_array, scale_below
from srs_ooc.base.sizes import ceil_div
from srs_ooc.learners.base import Columns
from srs_ooc.learners.model_params import DEFAULT_FOLDS
from srs_ooc.learners.trees import TreeLearner
from srs_ooc.planning.memory import MemoryPlan
from srs_ooc.planning.subject import Subject
from srs_ooc.runs.ledger import TransientLedger
from srs_ooc.runs.memory import trial_of
from srs_ooc.runs.resources import Resources
from srs_ooc.runs.spec import RunSpec
from srs_ooc.runs.spec.base_models import fits_of
from srs_ooc.runs.spec.reading import LONG_READ_NBYTES
from srs_ooc.samplers.method import Fits
from srs_ooc.trees.block import Block
from srs_ooc.trees.response import Response
from srs_ooc.trees.training import TrainingRows

PROBE_SECONDS = 0.3
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
JUDGED_CANDIDATES, JUDGED_SPLITS = 32, 5
"""Made-up candidates that are judged together, and the folds of each."""
COLD_READS_PER_SECOND = 30_000
"""Published allowance for random reads from a cold solid-state disk."""
COLD_NBYTES_PER_SECOND = 5e8
"""Published allowance for the bytes they bring."""
REQUESTS_PER_SECOND = 500
"""Published allowance for range requests to a server: 16 at a time, of 32 ms each."""
REQUEST_NBYTES_PER_SECOND = 6e7
"""Published allowance for the bytes they bring."""
_PIECE = 1 << 13


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

    A request brings a block of neighbouring columns (:mod:`srs_ooc.store.remote.blocks`), whether
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
    del resources
    gc.collect()  # an engine and its speculation refer to each other; their arrays must go now
    return Speed(seconds / n_timed, True, f"{n_timed} real iterations of this run on the store")


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
    n_rows = min(shape.n_rows, max(64, n_cells // 64))
    n_probed = min(n_columns, max(64, n_cells // n_rows))
    judges = spec.method.judges_candidates
    timed = _seconds_of_candidates if judges else _seconds_of_a_tree
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
    if spec.method.judges_candidates:
        n_models = _fits(subject).n_models
        seconds *= n_models
        how += f", times {n_models:,.0f} models an iteration, the most there can be"
    return Speed(
        seconds / memory.n_workers,
        False,
        f"{spec.model.model} on one {how}; workers: {memory.n_workers}",
    )


def _made_up_response(subject: Subject, n_rows: int) -> Response:
    """Return classes in the proportions of the subject's, or targets all different."""
    shape = subject.shape
    places = np.arange(n_rows) * (shape.n_rows / n_rows)
    weights = np.ones(n_rows)
    if shape.is_regression:
        return Response.targets(places, weights if shape.n_channels > 1 else None)
    labels = np.searchsorted(np.cumsum(subject.class_counts), places, side="right")
    return Response.classes(labels, shape.n_classes, weights if shape.n_channels else None)


def _seconds_of_a_tree(subject: Subject, n_rows: int, n_columns: int, seconds: float) -> float:
    """Return the mean seconds of a tree on random codes and labels."""
    spec = subject.spec
    learner = TreeLearner(_made_up_rows(subject, n_rows), spec.limits, spec.subspace_size)
    block = _made_up_block(subject, n_rows, n_columns, tiled=learner.tiled)
    features = np.arange(n_columns, dtype=np.uint32)
    return _mean_seconds(lambda number: learner.grow(block, features, number), seconds)


def _trees_on(subject: Subject, n_rows: int, n_probed: int, n_looked_at: int) -> str:
    """Say what was grown on what."""
    all_rows = subject.shape.n_rows
    if subject.spec.method.judges_candidates:
        n_models, most = _fits(subject).n_models, _fits(subject).n_columns
        scaled = "" if n_rows == all_rows else f", scaled to {all_rows:,} rows"
        return (
            f"trees on {n_rows:,} rows of up to {most:,} made-up columns, times {n_models:,.0f} an "
            f"iteration, the most there can be{scaled}"
        )
    scaled = f", scaled to {all_rows:,} of {n_looked_at:,}"
    is_scaled = n_looked_at > n_probed or n_rows < all_rows
    return f"trees on {n_rows:,} rows of {n_probed:,} made-up columns{scaled if is_scaled else ''}"


def _fits(subject: Subject) -> Fits:
    return fits_of(subject.spec, subject.shape.n_candidates)


def _seconds_of_candidates(subject: Subject, n_rows: int, n_columns: int, seconds: float) -> float:
    """Return the seconds of the models of an iteration that judges candidates.

    They are of all sizes up to the largest. How many are given up early depends on the table:
    hardly any of these few are.
    """
    spec, fits = subject.spec, _fits(subject)
    rows = _made_up_rows(subject, n_rows)
    learner = TreeLearner(rows, spec.limits, spec.subspace_size, candidates=True)
    most = min(fits.n_columns, n_columns)
    n_columns = min(n_columns, JUDGED_CANDIDATES * most)  # about as many for each as there are
    block = _made_up_block(subject, n_rows, n_columns, tiled=learner.tiled)
    sizes = 1 + np.arange(JUDGED_CANDIDATES) * most // JUDGED_CANDIDATES
    places = [i * (n_columns - size) // JUDGED_CANDIDATES + np.arange(size)
              for i, size in enumerate(sizes.tolist())]  # fmt: skip
    every = np.arange(n_rows, dtype=np.int32)
    splits = tuple(
        RowSplit(every[every % JUDGED_SPLITS != fold], every[every % JUDGED_SPLITS == fold])
        for fold in range(JUDGED_SPLITS)
    )
    bounds = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    candidates = Candidates(np.concatenate(places).astype(np.int32), bounds, splits)
    features = np.arange(n_columns, dtype=np.uint32)
    subspace, columns = Subspace(features, candidates), Columns(features, features)
    each = _mean_seconds(
        lambda number: learner.fit(block, columns, Iteration(number, subspace, number)), seconds
    )
    return each * fits.n_models / (JUDGED_CANDIDATES * JUDGED_SPLITS)


def _made_up_rows(subject: Subject, n_rows: int) -> TrainingRows:
    response = _made_up_response(subject, n_rows)
    return TrainingRows.of(response, subject.spec.learner.impurity)


def _made_up_block(subject: Subject, n_rows: int, n_columns: int, *, tiled: bool) -> Block:
    """Return a block of random codes."""
    block = Block(n_columns, n_rows, subject.shape.code_nbytes, tiled=tiled)
    for start in range(0, len(block.codes), _PIECE):
        codes = block.codes[start : start + _PIECE]
        hashes = derive_array(start, np.arange(len(codes), dtype=np.uint32))
        codes[:] = scale_below(hashes, min(n_rows, 254))
    return block


def _mean_seconds(work: Callable[[int], object], seconds: float) -> float:
    """Return the mean seconds of pieces of work, numbered from 0, done for about so long."""
    started, n_done = time.monotonic(), 0
    while n_done == 0 or time.monotonic() - started < seconds:
        work(n_done)
        n_done += 1
    return (time.monotonic() - started) / n_done
