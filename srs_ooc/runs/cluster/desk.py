"""What a worker process keeps for a job: the store, opened once, its blocks and its learner."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from queue import SimpleQueue
from time import perf_counter

from srs_ooc.base.budget import PROCESS_NBYTES, Budget
from srs_ooc.base.errors import BudgetError
from srs_ooc.base.files import Recent
from srs_ooc.base.records import Iteration, Outcome, RowSplit
from srs_ooc.base.text import MB
from srs_ooc.evidence.decoys import Exchangeability
from srs_ooc.learners.tree_learner import MOST_SPLITS, Learner, TreeLearner
from srs_ooc.runs.cluster.line import Part, Reply, Tell
from srs_ooc.runs.cluster.orders import Job, pack
from srs_ooc.runs.cluster.prepared import Prepared
from srs_ooc.runs.executors import ItemSource, fit_iteration
from srs_ooc.runs.inputs import Inputs
from srs_ooc.runs.memory import grant_workers, shape_of, worker_nbytes
from srs_ooc.runs.resources import blocks_of, closing_learner, decoy_families, learner_of
from srs_ooc.runs.responses import training_response
from srs_ooc.runs.spec import RunSpec, TrainingShape
from srs_ooc.runs.task import Task
from srs_ooc.store.store import ReadAhead, Store
from srs_ooc.store.values import MAKING_NBYTES, ROW_NBYTES
from srs_ooc.trees.block import Block
from srs_ooc.trees.response import TrainingRows

BATCH_NBYTES = 8 * MB
"""What an order and its outcomes take in a worker, at most, besides its block."""
_log = logging.getLogger("distributed.worker.srs_ooc")


@dataclass(frozen=True)
class _Room:
    """How many blocks a worker may have, and whether it may keep the store mapped."""

    n_blocks: int
    mapped: bool


def _room_of(job: Job, spec: RunSpec, store: Store, shape: TrainingShape, n_threads: int) -> _Room:
    """Return what fits a worker's memory.

    Raises
    ------
    BudgetError
        If not even one block does.
    """
    budget = Budget(job.store.memory_mb * MB, PROCESS_NBYTES)
    rows_nbytes = TrainingRows.nbytes(shape.n_rows, spec.learner.impurity, shape.n_channels)
    budget.grant(f"labels of {shape.n_rows} rows", rows_nbytes)
    if spec.decoys:
        decoys_nbytes = Exchangeability.nbytes(shape.n_rows) + 4 * spec.decoys * shape.n_rows
        budget.grant("decoys", decoys_nbytes)
    if shape.n_values:
        budget.grant("reading the values of codes", MAKING_NBYTES + ROW_NBYTES * store.n_rows)
    if store.reading_nbytes:
        budget.grant("requests under way", store.reading_nbytes)
    each = worker_nbytes(spec, shape, saves=job.records) + BATCH_NBYTES
    budget.grant(f"a block of {spec.n_columns} columns and its tree", each)
    try:
        budget.check()
    except BudgetError as error:
        raise BudgetError(str(error).replace("--memory-mb", "--worker-memory-mb")) from error
    n_blocks = grant_workers(budget, each, n_threads)
    return _Room(n_blocks, budget.fits(store.manifest.codes_nbytes))


class Desk(Prepared[Job]):
    """Grows any iteration of a job; parameters and errors as of the base class."""

    def _prepare(self, n_threads: int) -> None:
        job, spec = self.job, RunSpec.from_json(self.job.spec)
        self._store = store = job.store.open()
        with store.unchanged():
            inputs = Inputs(rows=job.rows)
            task = replace(Task.of_run(spec, store, inputs), target=job.target)
            shape = shape_of(store.manifest, inputs, task.class_weight, spec.learner.thresholds)
            room = _room_of(job, spec, store, shape, n_threads)
            response = training_response(task)
            learner = learner_of(spec, store, task, response, 1, records=job.records)
            values = self._stack.enter_context(store.value_tables()) if shape.n_values else None
            columns = self._stack.enter_context(store.columns(mapped=room.mapped))
        self._ahead = self._stack.enter_context(ReadAhead(columns))
        self._source = ItemSource(columns, task.rows, decoy_families(spec, task), values)
        self._learner: Learner = learner
        if job.closing is not None:
            assert isinstance(learner, TreeLearner), "other models are refused on clusters"
            self._learner = closing_learner(learner, spec, job.closing)
        self._splits = Recent[bytes, RowSplit](MOST_SPLITS)
        self._free: SimpleQueue[Block] = SimpleQueue()
        tiled = job.closing is not None or learner.tiled
        for block in blocks_of(room.n_blocks, spec, shape, tiled=tiled):
            self._free.put(block)
        how = "mapped" if room.mapped else "read as needed"
        _log.info("%s: store opened, %s; %d blocks", job.store.place, how, room.n_blocks)

    def work(self, parts: list[Part], _: Tell) -> Reply:
        """Grow a batch of iterations.

        Raises
        ------
        StoreError
            If the store cannot be read, or was replaced: nothing of the batch is returned then.
        """
        iterations: list[Iteration] = [part.what for part in parts]
        with self._block() as block:
            begun = perf_counter()
            outcomes = []
            for iteration in iterations:
                self._ahead.ask(iteration.features)
            for iteration in iterations:
                outcomes.append(pack(self._fit(block, iteration)))
            seconds = perf_counter() - begun
        self._store.check_unchanged()
        return Reply(outcomes, seconds)

    def _fit(self, block: Block, iteration: Iteration) -> Outcome:
        split = iteration.subspace.split
        if split is not None:
            subspace = replace(iteration.subspace, split=self._same(split))
            iteration = replace(iteration, subspace=subspace)
        return fit_iteration(self._source, self._learner, block, iteration)

    def _same(self, split: RowSplit) -> RowSplit:
        """Return the split with the same rows that came first: the learner knows it again."""
        return self._splits.get(split.fitted.tobytes() + split.predicted.tobytes(), lambda: split)

    @contextmanager
    def _block(self) -> Iterator[Block]:
        block = self._free.get()
        try:
            yield block
        finally:
            self._free.put(block)
