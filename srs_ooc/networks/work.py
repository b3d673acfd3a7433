"""The targets of a network, one after the other: worked on by several threads, kept in order."""

import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from threading import Event
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.budget import peak_resident_nbytes, resident_nbytes
from srs_ooc.base.records import Step
from srs_ooc.networks.book import EdgeBook
from srs_ooc.networks.genes import Genes
from srs_ooc.networks.responses import target_values, training_rows
from srs_ooc.networks.weighing import Weigher
from srs_ooc.runs.engine import COMMIT_SECONDS, COMMIT_SHARE
from srs_ooc.store.store import Store
from srs_ooc.trees.block import Block

Watch = Callable[[Step], bool]
STAGE = "network"
LOOK_SECONDS = 0.2
"""Time between two questions whether the work is to go on, while targets are under way."""


class TargetWork:
    """Weighs the regulators of all targets that a book does not hold yet.

    Parameters
    ----------
    store : Store
        The store.
    genes : Genes
        Regulators and targets.
    rows : int32 (n_rows,) or None
        Rows trained on; None for all.
    weigher : Weigher
        What weighs the regulators of a target.
    blocks : list of Block
        One a worker.
    stopping : Event
        Is set for the weigher where the work is to stop.
    """

    def __init__(
        self,
        store: Store,
        genes: Genes,
        rows: NDArray[np.int32] | None,
        weigher: Weigher,
        blocks: list[Block],
        stopping: Event,
    ) -> None:
        self._store, self._genes, self._rows = store, genes, rows
        self._weigher, self._stopping = weigher, stopping
        self._max_ahead = len(blocks) + 1
        self._blocks: SimpleQueue[Block] = SimpleQueue()
        for block in blocks:
            self._blocks.put(block)
        self._pool = ThreadPoolExecutor(len(blocks), "target")
        weights = store.weights()
        self._weights = weights if weights is None or rows is None else weights[rows]

    def run(self, book: EdgeBook, watch: Watch) -> bool:
        """Work until all targets are done, or ``watch`` says no; return whether all are.

        What is done is committed at least every second or so, and at the end.
        """
        start, n_targets = time.monotonic(), len(self._genes.targets)
        before, next_commit = book.committed, start + COMMIT_SECONDS

        def commit() -> float:
            seconds = before.seconds + time.monotonic() - start
            peak = max(before.peak_nbytes, peak_resident_nbytes())
            return book.commit(seconds, resident_nbytes(), peak)

        try:
            for weights in self._in_order(book.n_done, lambda: watch(_step(book, n_targets))):
                book.add(weights)
                if book.is_full or time.monotonic() >= next_commit:
                    pause = max(COMMIT_SECONDS, COMMIT_SHARE * commit())
                    next_commit = time.monotonic() + pause
        finally:
            self._stopping.set()
            self._pool.shutdown(wait=True, cancel_futures=True)
        if book.n_done > book.committed.iteration:
            commit()
        watch(_step(book, n_targets))
        return book.n_done == n_targets

    def _in_order(self, first: int, goes_on: Callable[[], bool]) -> Iterator[NDArray[np.float64]]:
        """Yield the weights of each target from the ``first`` on; end early where told to."""
        under_way: deque[Future[NDArray[np.float64]]] = deque()
        targets = self._genes.targets[first:]
        values = target_values(self._store, targets, self._rows)
        pairs = zip(targets.tolist(), values, strict=True)
        while True:
            while len(under_way) < self._max_ahead and (pair := next(pairs, None)) is not None:
                under_way.append(self._pool.submit(self._weigh, *pair))
            if not under_way:
                return
            while not is_done(under_way[0]):
                if not goes_on():
                    return
            yield under_way.popleft().result()
            if not goes_on():
                return

    def _weigh(self, target: int, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the weights of all regulators, 0 for the target itself."""
        regulators = self._genes.regulators
        out = np.zeros(len(regulators))
        rows = training_rows(values, self._weights)
        others = regulators != target
        if rows is None or not others.any():
            return out
        block = self._blocks.get()
        try:
            out[others] = self._weigher.weights(block, target, regulators[others], rows)
        finally:
            self._blocks.put(block)
        return out


def _step(book: EdgeBook, n_targets: int) -> Step:
    return Step(STAGE, book.n_done, n_targets, unit="targets")


def is_done(future: "Future[Any]") -> bool:
    """Wait a little; return whether the work is done."""
    try:
        future.exception(LOOK_SECONDS)
    except TimeoutError:
        return future.done()
    return True
