"""Growing subspaces: in the calling thread, or by workers that run ahead of it."""

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue

import numpy as np
from numpy.typing import NDArray

from srs_ooc.kernel.block import Block
from srs_ooc.learners.trees import PROBE_FEATURE, TreeLearner
from srs_ooc.records import Outcome, Subspace
from srs_ooc.store.columns import ColumnStore


def grow_subspace(
    store: ColumnStore,
    rows: NDArray[np.int32] | None,
    learner: TreeLearner,
    block: Block,
    subspace: Subspace,
) -> Outcome:
    """Page a subspace into ``block``, add its probe, grow its tree, and return what it taught."""
    features = subspace.features
    store.gather(features, block, rows)
    if subspace.probe is None:
        grown = learner.grow(block, features, subspace.tree_key)
        return Outcome(features, grown.importance, None, grown.record)
    block.shuffle_column(subspace.probe.source, len(features), subspace.probe.key)
    columns = np.append(features, np.uint32(PROBE_FEATURE))
    grown = learner.grow(block, columns, subspace.tree_key)
    return Outcome(features, grown.importance[:-1], int(grown.importance[-1]), grown.record)


Grow = Callable[[Block, Subspace], Outcome]


class Executor:
    """Grows subspaces with one block per worker; with a single block, in the calling thread.

    Parameters
    ----------
    grow : callable
        ``grow(block, subspace) -> Outcome``; releases the GIL where it works.
    blocks : list of Block
        One per worker.
    """

    def __init__(self, grow: Grow, blocks: list[Block]) -> None:
        self._grow = grow
        self._free: SimpleQueue[Block] = SimpleQueue()
        for block in blocks:
            self._free.put(block)
        self._pool = ThreadPoolExecutor(len(blocks), "grow") if len(blocks) > 1 else None
        self.max_ahead = len(blocks) + 1 if self._pool else 1

    def submit(self, subspace: Subspace) -> "Future[Outcome]":
        """Start growing ``subspace``, or grow it now where there are no workers."""
        if self._pool is not None:
            return self._pool.submit(self._work, subspace)
        future: Future[Outcome] = Future()
        future.set_result(self._work(subspace))
        return future

    def _work(self, subspace: Subspace) -> Outcome:
        block = self._free.get()
        try:
            return self._grow(block, subspace)
        finally:
            self._free.put(block)

    def close(self) -> None:
        """Wait for what is under way and stop the workers."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)


class Speculation:
    """Iterations grown ahead on the guess that what they depend on does not change.

    What an iteration depends on is a number, its token. A guess is right if its token, when its
    turn comes, is still what it was when the iteration was proposed; otherwise it and all later
    ones are thrown away and proposed again. Guessing only changes speed. After a wrong guess it
    starts again with one iteration ahead, doubling while guesses hold, so that a state that always
    changes wastes little.

    Parameters
    ----------
    executor : Executor
        Grows the subspaces.
    propose : callable
        ``propose(iteration) -> Subspace`` from the state as it is now.
    token : callable
        ``token(iteration) -> int``, equal whenever ``propose(iteration)`` would be.
    """

    def __init__(
        self,
        executor: Executor,
        propose: Callable[[int], Subspace],
        token: Callable[[int], int],
    ) -> None:
        self._executor, self._propose, self._token = executor, propose, token
        self._pending: deque[tuple[int, Future[Outcome]]] = deque()
        self._ahead = executor.max_ahead

    def outcome(self, iteration: int, end: int) -> Outcome:
        """Return the outcome of ``iteration``, the next in turn; guess at none from ``end`` on."""
        if self._pending and self._pending[0][0] != self._token(iteration):
            self.drop()
            self._ahead = 1
        while len(self._pending) < min(self._ahead, end - iteration):
            guess = iteration + len(self._pending)
            future = self._executor.submit(self._propose(guess))
            self._pending.append((self._token(guess), future))
        outcome = self._pending.popleft()[1].result()
        self._ahead = min(2 * self._ahead, self._executor.max_ahead)
        return outcome

    def drop(self) -> None:
        """Throw away what was grown ahead."""
        for _, future in self._pending:
            future.cancel()
        self._pending.clear()
