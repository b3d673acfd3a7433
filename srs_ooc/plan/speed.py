"""Seconds per iteration: measured on the store, or estimated from trees on made-up codes."""

import gc
import time
from dataclasses import dataclass

import numpy as np

from srs_ooc.kernel.block import Block
from srs_ooc.kernel.native import TrainingRows
from srs_ooc.learners.trees import TreeLearner
from srs_ooc.ledger import TransientLedger
from srs_ooc.plan.memory import MemoryPlan
from srs_ooc.plan.subject import Subject
from srs_ooc.runs import EngineParts, engine_parts
from srs_ooc.seeds import derive_array, scale_below

PROBE_SECONDS = 0.3
PROBE_CELLS = 4_000_000
"""Cells of the made-up block; larger subspaces are scaled up from it, linearly in columns."""
PAGING_NBYTES_PER_SECOND = 1.5e9
"""Published allowance for reading subspaces through a warm page cache."""
READ_SECONDS = 5e-7
"""Published allowance for one read of a store that is not mapped, from a warm page cache."""
BOOKKEEPING_SECONDS = 1e-7
"""Published allowance for drawing, tallying and judging one feature, in one thread."""
COLD_READS_PER_SECOND = 30_000
"""Published allowance for random reads from a cold solid-state disk."""


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


def probe_speed(subject: Subject, memory: MemoryPlan) -> Speed:
    """Return the seconds per iteration, after about a third of a second of work.

    With a store: real iterations of this very run, in memory, with no ledger. Without: trees on a
    block of random codes and labels, shared among the workers, plus paging and bookkeeping at
    published rates.
    """
    return _estimated(subject, memory) if subject.store is None else _measured(subject)


def _measured(subject: Subject) -> Speed:
    assert subject.store is not None
    with engine_parts(
        subject.spec, subject.store, subject.inputs, subject.cap_nbytes, subject.threads
    ) as parts:
        seconds, n_timed = _time(parts)
    del parts
    gc.collect()  # an engine and its speculation refer to each other; their arrays must go now
    return Speed(seconds / n_timed, True, f"{n_timed} real iterations of this run on the store")


def _time(parts: EngineParts) -> tuple[float, int]:
    """Return the seconds and number of iterations timed.

    Timing starts afresh once the workers are warm, unless iterations are so slow that the first
    ones have taken long enough already.
    """
    engine, ahead = parts.engine(TransientLedger()), parts.executor.max_ahead
    begun, n_before = time.monotonic(), 0

    def keep_going() -> bool:
        nonlocal begun, n_before
        n_done, seconds = engine.state.iteration, time.monotonic() - begun
        if n_before == 0 and n_done == ahead and seconds < PROBE_SECONDS:
            begun, n_before = time.monotonic(), n_done
            return True
        return n_done - n_before < max(2, ahead) or seconds < PROBE_SECONDS

    engine.advance(1 << 31, keep_going)
    return time.monotonic() - begun, engine.state.iteration - n_before


def _estimated(subject: Subject, memory: MemoryPlan) -> Speed:
    shape, spec = subject.shape, subject.spec
    n_columns = spec.subspace_size + spec.make_judge().n_extra_columns
    n_probed = min(n_columns, max(64, PROBE_CELLS // shape.n_rows))
    labels = np.repeat(np.arange(shape.n_classes), subject.class_counts)
    rows = TrainingRows(labels, shape.n_classes, spec.impurity)
    learner = TreeLearner(rows, spec.limits, spec.subspace_size)
    block = Block(n_probed, shape.n_rows, shape.code_nbytes, tiled=learner.tiled)
    n_codes = min(shape.n_rows, 254)
    hashes = derive_array(0, np.arange(len(block.codes), dtype=np.uint32))
    block.codes[:] = scale_below(hashes, n_codes)
    features = np.arange(n_probed, dtype=np.uint32)
    started, n_trees = time.monotonic(), 0
    while n_trees == 0 or time.monotonic() - started < PROBE_SECONDS:
        learner.grow(block, features, n_trees)
        n_trees += 1
    growing = (time.monotonic() - started) / n_trees * (n_columns / n_probed)
    paging = n_columns * shape.n_rows * shape.code_nbytes / PAGING_NBYTES_PER_SECOND
    if not memory.mapped:
        paging += READ_SECONDS * spec.subspace_size
    bookkeeping = BOOKKEEPING_SECONDS * n_columns
    scaled = "" if n_probed == n_columns else f", scaled to {n_columns:,}"
    return Speed(
        max(bookkeeping, (growing + paging + bookkeeping) / memory.n_workers),
        False,
        f"{n_trees} trees on {n_probed:,} made-up columns{scaled}, published rates for paging and "
        f"bookkeeping, workers: {memory.n_workers}",
    )
