"""Growing subspaces: in the calling thread, or by workers that run ahead of it."""

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.records import Iteration, Outcome
from srs_ooc.learners.base import Columns, Learner
from srs_ooc.learners.trees import PROBE_FEATURE
from srs_ooc.store.columns import ColumnStore
from srs_ooc.store.read_ahead import ReadAhead
from srs_ooc.store.value_tables import ValueTables
from srs_ooc.trees.block import Block


@dataclass(frozen=True)
class Source:
    """Where the columns of items come from.

    Attributes
    ----------
    columns : ColumnStore
        The features.
    rows : int32 (n_kept,) or None
        Rows to train on; None for all.
    families : int32 (n_families, n_kept) or None
        The row that a decoy of each family takes at each row.
    values : ValueTables or None
        The values of codes, where thresholds are drawn between them.
    """

    columns: ColumnStore
    rows: NDArray[np.int32] | None = None
    families: NDArray[np.int32] | None = None
    values: ValueTables | None = None

    def gather(self, items: NDArray[np.uint32], block: Block) -> None:
        """Page the codes of ``items`` into the first columns of ``block``.

        The values of codes too, where there are some and the block has room for them.
        """
        self.columns.gather(items, block, self.rows, self.families)
        if self.values is not None and block.values is not None:
            self.values.gather(self.features_of(items), block)

    def features_of(self, items: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """Return the feature of each item: a decoy's is the one it was made of."""
        if self.families is None:
            return items
        return items % np.uint32(self.columns.manifest.n_features)


def fit_iteration(source: Source, learner: Learner, block: Block, iteration: Iteration) -> Outcome:
    """Page a subspace into ``block``, add its probe, and have ``learner`` fit it."""
    features = iteration.features
    source.gather(features, block)
    columns = Columns(features, source.features_of(features))
    if iteration.probe is not None:
        place = iteration.probe.source
        block.shuffle_column(place, len(features), iteration.probe.key)
        columns = Columns(
            np.append(features, np.uint32(PROBE_FEATURE)),
            np.append(columns.sources, columns.sources[place]),
        )
    return learner.fit(block, columns, iteration)


Fit = Callable[[Block, Iteration], Outcome]


class Executor(Protocol):
    """Has subspaces grown, here or elsewhere, in any order."""

    max_ahead: int
    """Iterations that may be under way at once."""
    n_read_ahead: int
    """Iterations beyond those whose columns may be asked for."""

    def announce(self, iteration: Iteration) -> None:
        """Say that ``iteration`` will be submitted soon."""

    def submit(self, iteration: Iteration) -> "Future[Outcome]":
        """Start growing ``iteration``."""

    def close(self) -> None:
        """Wait for what is under way and stop."""


class ThreadExecutor:
    """Grows subspaces with one block per worker; with a single block, in the calling thread.

    Parameters
    ----------
    fit : callable
        ``fit(block, iteration) -> Outcome``; releases the GIL where it works.
    blocks : list of Block
        One per worker.
    ahead : ReadAhead
        Told which subspaces will be grown soon.
    """

    def __init__(self, fit: Fit, blocks: list[Block], ahead: ReadAhead) -> None:
        self._fit, self._read_ahead = fit, ahead
        self._free: SimpleQueue[Block] = SimpleQueue()
        for block in blocks:
            self._free.put(block)
        self._pool = ThreadPoolExecutor(len(blocks), "grow") if len(blocks) > 1 else None
        self.max_ahead = len(blocks) + 1 if self._pool else 1
        self.n_read_ahead = ahead.depth

    def announce(self, iteration: Iteration) -> None:
        """Have the columns of ``iteration``, which will be grown soon, read ahead of need."""
        self._read_ahead.ask(iteration.features)

    def submit(self, iteration: Iteration) -> "Future[Outcome]":
        """Start growing ``iteration``, or grow it now where there are no workers."""
        if self._pool is not None:
            return self._pool.submit(self._work, iteration)
        future: Future[Outcome] = Future()
        future.set_result(self._work(iteration))
        return future

    def _work(self, iteration: Iteration) -> Outcome:
        block = self._free.get()
        try:
            return self._fit(block, iteration)
        finally:
            self._free.put(block)

    def close(self) -> None:
        """Wait for what is under way and stop the workers."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)


class Speculation:
    """Iterations grown ahead on the guess that what they depend on does not change.

    What an iteration depends on is a number, its version. A guess is right if its version, when its
    turn comes, is still what it was when the iteration was proposed; otherwise it and all later
    ones are thrown away and proposed again. Guessing only changes speed. After a wrong guess it
    starts again with one iteration ahead, doubling while guesses hold, so that a state that always
    changes wastes little. Columns are read further ahead than trees are grown, once for each
    iteration: most of what a wrong guess had read serves the right one too, since C is the same.

    Parameters
    ----------
    executor : Executor
        Grows the subspaces.
    propose : callable
        ``propose(number) -> Iteration`` from the state as it is now.
    version : callable
        ``version(number) -> int``, equal whenever ``propose(number)`` would be.
    """

    def __init__(
        self,
        executor: Executor,
        propose: Callable[[int], Iteration],
        version: Callable[[int], int],
    ) -> None:
        self._executor, self._propose, self._version = executor, propose, version
        self._proposed: deque[tuple[int, Iteration]] = deque()  # the next iterations in turn
        self._growing: deque[Future[Outcome]] = deque()  # the first of them
        self._n_growing = executor.max_ahead
        self._announced = 0

    def outcome(self, iteration: int, end: int) -> Outcome:
        """Return the outcome of ``iteration``, the next in turn; guess at none from ``end`` on."""
        if self._proposed and self._proposed[0][0] != self._version(iteration):
            self.drop()
            self._n_growing = 1
        n_left = end - iteration
        self._propose_ahead(iteration, min(self._n_growing + self._executor.n_read_ahead, n_left))
        while len(self._growing) < min(self._n_growing, n_left):
            proposed = self._proposed[len(self._growing)][1]
            self._growing.append(self._executor.submit(proposed))
        self._proposed.popleft()
        outcome = self._growing.popleft().result()
        self._n_growing = min(2 * self._n_growing, self._executor.max_ahead)
        return outcome

    def _propose_ahead(self, iteration: int, count: int) -> None:
        for guess in range(iteration + len(self._proposed), iteration + count):
            proposed = self._propose(guess)
            self._proposed.append((self._version(guess), proposed))
            if guess >= self._announced:
                self._executor.announce(proposed)
                self._announced = guess + 1

    def drop(self) -> None:
        """Throw away what was proposed and grown ahead."""
        for future in self._growing:
            future.cancel()
        self._growing.clear()
        self._proposed.clear()
