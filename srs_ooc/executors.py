"""Growing subspaces: in the calling thread, or by workers that run ahead of it."""

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from queue import SimpleQueue

import numpy as np
from numpy.typing import NDArray

from srs_ooc.kernel.block import Block
from srs_ooc.learners.trees import PROBE_FEATURE, TreeLearner
from srs_ooc.records import Outcome, Subspace
from srs_ooc.seeds import derive
from srs_ooc.store.columns import ColumnStore
from srs_ooc.store.read_ahead import ReadAhead
from srs_ooc.store.value_tables import ValueTables

MORE_TREES = 1 << 32
"""Part of the words under which further trees on a subspace have their keys."""


@dataclass(frozen=True)
class Source:
    """Where the columns of items come from.

    Attributes
    ----------
    store : ColumnStore
        The features.
    rows : int32 (n_kept,) or None
        Rows to train on; None for all.
    families : int32 (n_families, n_kept) or None
        The row that a decoy of each family takes at each row.
    values : ValueTables or None
        The values of codes, where thresholds are drawn between them.
    """

    store: ColumnStore
    rows: NDArray[np.int32] | None = None
    families: NDArray[np.int32] | None = None
    values: ValueTables | None = None

    def gather(self, items: NDArray[np.uint32], block: Block) -> None:
        """Page the codes of ``items`` into the first columns of ``block``.

        The values of codes too, where there are some and the block has room for them.
        """
        self.store.gather(items, block, self.rows, self.families)
        if self.values is not None and block.values is not None:
            self.values.gather(self.features_of(items), block)

    def features_of(self, items: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """Return the feature of each item: a decoy's is the one it was made of."""
        if self.families is None:
            return items
        return items % np.uint32(self.store.manifest.n_features)


def grow_subspace(
    source: Source,
    learner: TreeLearner,
    n_trees: int,
    block: Block,
    subspace: Subspace,
) -> Outcome:
    """Page a subspace into ``block``, add its probe, grow its trees, and return what they taught.

    Importances are summed over the ``n_trees`` trees, the probe's as well.
    """
    features = subspace.features
    source.gather(features, block)
    columns, sources = features, source.features_of(features)
    if subspace.probe is not None:
        block.shuffle_column(subspace.probe.source, len(features), subspace.probe.key)
        columns = np.append(features, np.uint32(PROBE_FEATURE))
        sources = np.append(sources, sources[subspace.probe.source])
    importance = np.zeros(len(columns), dtype=np.int64)
    records = []
    for number in range(n_trees):
        grown = learner.grow(block, columns, tree_key(subspace.tree_key, number), sources)
        importance += grown.importance
        if grown.record is not None:
            records.append(grown.record)
    probe = None if subspace.probe is None else int(importance[-1])
    return Outcome(features, importance[: len(features)], probe, tuple(records))


def tree_key(first: int, number: int) -> int:
    """Return the key of tree ``number`` (from 0) on a subspace whose first tree has key ``first``.

    The word is one that neither a feature nor a purpose has.
    """
    return first if number == 0 else derive(first, MORE_TREES | number)


Grow = Callable[[Block, Subspace], Outcome]


class Executor:
    """Grows subspaces with one block per worker; with a single block, in the calling thread.

    Parameters
    ----------
    grow : callable
        ``grow(block, subspace) -> Outcome``; releases the GIL where it works.
    blocks : list of Block
        One per worker.
    ahead : ReadAhead
        Told which subspaces will be grown soon.
    """

    def __init__(self, grow: Grow, blocks: list[Block], ahead: ReadAhead) -> None:
        self._grow, self._read_ahead = grow, ahead
        self._free: SimpleQueue[Block] = SimpleQueue()
        for block in blocks:
            self._free.put(block)
        self._pool = ThreadPoolExecutor(len(blocks), "grow") if len(blocks) > 1 else None
        self.max_ahead = len(blocks) + 1 if self._pool else 1
        self.n_read_ahead = ahead.depth

    def announce(self, subspace: Subspace) -> None:
        """Have the columns of ``subspace``, which will be grown soon, read ahead of need."""
        self._read_ahead.ask(subspace.features)

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
    changes wastes little. Columns are read further ahead than trees are grown, once for each
    iteration: most of what a wrong guess had read serves the right one too, since C is the same.

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
        self._proposed: deque[tuple[int, Subspace]] = deque()  # the next iterations in turn
        self._growing: deque[Future[Outcome]] = deque()  # the first of them
        self._n_growing = executor.max_ahead
        self._announced = 0

    def outcome(self, iteration: int, end: int) -> Outcome:
        """Return the outcome of ``iteration``, the next in turn; guess at none from ``end`` on."""
        if self._proposed and self._proposed[0][0] != self._token(iteration):
            self.drop()
            self._n_growing = 1
        n_left = end - iteration
        self._propose_ahead(iteration, min(self._n_growing + self._executor.n_read_ahead, n_left))
        while len(self._growing) < min(self._n_growing, n_left):
            subspace = self._proposed[len(self._growing)][1]
            self._growing.append(self._executor.submit(subspace))
        self._proposed.popleft()
        outcome = self._growing.popleft().result()
        self._n_growing = min(2 * self._n_growing, self._executor.max_ahead)
        return outcome

    def _propose_ahead(self, iteration: int, count: int) -> None:
        for guess in range(iteration + len(self._proposed), iteration + count):
            subspace = self._propose(guess)
            self._proposed.append((self._token(guess), subspace))
            if guess >= self._announced:
                self._executor.announce(subspace)
                self._announced = guess + 1

    def drop(self) -> None:
        """Throw away what was proposed and grown ahead."""
        for future in self._growing:
            future.cancel()
        self._growing.clear()
        self._proposed.clear()
