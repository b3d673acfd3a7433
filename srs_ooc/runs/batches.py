"""Work handed out in batches, to threads here or to workers elsewhere.

Iterations are ordered ahead of the loop; parts that do not depend on each other in any order.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain, islice
from math import ceil
from threading import Event
from typing import Any

import numpy as np

from srs_ooc.base.records import Iteration, Outcome
from srs_ooc.base.text import MB
from srs_ooc.runs.engine import Executor
from srs_ooc.runs.jobs import Batch, Line, Work

TASK_SECONDS = 0.2
"""What a batch shall take: Dask's own cost is about a millisecond."""
BATCHES_A_THREAD = 2
"""Batches under way for each thread of the workers: one at work, one waiting."""


def next_size(size: int, done: Batch, most: int) -> int:
    """Return how many parts a batch shall have after one of ``size``, by what these took.

    A first batch, which opens the store, says little: sizes grow at most fourfold each time.
    """
    each = done.seconds / max(1, len(done.parts))
    return max(1, min(ceil(TASK_SECONDS / each) if each > 0 else most, 4 * size, most))


# What travels back.


def pack(outcome: Outcome) -> Outcome:
    """Return an outcome as it travels: without what the one who ordered it knows.

    A tree splits on few of its columns, so most importances are 0: the others are there, and, in
    place of the features, where in the subspace they are.
    """
    places = np.flatnonzero(outcome.importance).astype(np.uint32)
    return replace(outcome, features=places, importance=outcome.importance[places])


def unpack(packed: Outcome, iteration: Iteration) -> Outcome:
    """Return the outcome of ``iteration``, as it was packed."""
    importance = np.zeros(len(iteration.features), np.int64)
    importance[packed.features] = packed.importance
    return replace(packed, features=iteration.features, importance=importance)


# An executor that orders iterations from elsewhere in batches, and fetches what came of them.

SMALLEST_SHARE = 16
"""How much smaller batches get towards the end of a round, where all workers wait for the last."""
LEAST_SECONDS = 0.01
"""What a batch shall take even there: each costs this process and the scheduler a millisecond."""
MOST_ITERATIONS = 1000
"""Of a batch."""


class _Growing(Future[Outcome]):
    """The outcome of an iteration that waits to be sent, or was."""

    def __init__(self, executor: "BatchExecutor", iteration: Iteration) -> None:
        super().__init__()
        self._executor, self.iteration = executor, iteration
        self.sent: Future[Batch] | None = None
        """The batch it was sent with."""

    def result(self, timeout: float | None = None) -> Outcome:
        """Return the outcome; what waits is sent, and its batch waited for."""
        if not self.done():
            self._executor.fetch(self)
        return super().result(timeout)


class BatchExecutor(Executor):
    """Sends iterations in batches that take about TASK_SECONDS each.

    How long an iteration takes is measured where it is grown; it decides the size of batches and
    how many are under way, never a result.

    Parameters
    ----------
    line : Line
        The way to the workers.
    n_columns : int
        Columns of an iteration at most.
    round_size : int
        Iterations that are sure to be wanted at once: where these are few, batches are smaller, so
        that all threads have some. 1 where it is not known.
    """

    def __init__(self, line: Line, n_columns: int, round_size: int = 1) -> None:
        self._line, self._round_size, self._size = line, round_size, 1
        # iterations and outcomes under way may take 32 MB: a column its number and importance
        self._most = max(2, 32 * MB // (16 * max(n_columns, 64)))
        self._waiting: list[_Growing] = []
        self._under_way: dict[Future[Batch], dict[int, _Growing]] = {}

    @property
    def _n_under_way(self) -> int:
        """Batches that may be under way at once."""
        return BATCHES_A_THREAD * max(1, self._line.n_threads())

    @property
    def max_ahead(self) -> int:
        """Iterations that may be under way at once."""
        return min(self._n_under_way * self._size, self._most)

    def announce(self, iteration: Iteration) -> None:
        """Do nothing: workers ask for the columns of a batch as it comes."""

    def submit(self, iteration: Iteration) -> Future[Outcome]:
        """Take an iteration into the next batch, which is sent once it is full."""
        growing = _Growing(self, iteration)
        growing.add_done_callback(self._give_up)
        self._waiting.append(growing)
        if len(self._waiting) >= self._fair_share():
            self._send()
        return growing

    def _fair_share(self) -> int:
        """Return what a batch may hold for all threads to have work, and to end a round together.

        What may be under way at once is shared, and so is what is left of the round.
        """
        size, parts = self._size, self._n_under_way
        share = min(size, self._most / parts)
        if self._round_size > 1:
            left = self._round_size - self._waiting[0].iteration.number % self._round_size
            even = self._round_size / parts
            least = max(min(size, even) / SMALLEST_SHARE, size * LEAST_SECONDS / TASK_SECONDS)
            share = min(share, max(min(least, even), left / parts))
        return ceil(share)

    def fetch(self, growing: _Growing) -> None:
        """Wait for the batch of an iteration; before, send what waits if a thread may be idle."""
        if growing.sent is None or len(self._under_way) < max(1, self._line.n_threads()):
            self._send()
        sent = growing.sent
        assert sent is not None
        done = sent.result()
        for number, member in self._under_way.pop(sent).items():
            member.set_result(unpack(done.parts[number], member.iteration))
        self._size = next_size(self._size, done, min(MOST_ITERATIONS, self._most // 2))

    def _send(self) -> None:
        members = {m.iteration.number: m for m in self._waiting if not m.cancelled()}
        self._waiting = []
        if members:
            sent = self._line.send(Batch({n: member.iteration for n, member in members.items()}))
            self._under_way[sent] = members
            for member in members.values():
                member.sent = sent

    def _give_up(self, growing: Future[Outcome]) -> None:
        """Forget an iteration if it was cancelled; its batch too, if none of it is wanted."""
        assert isinstance(growing, _Growing), "of submit"
        if (sent := growing.sent) is None or not growing.cancelled():
            return  # it still waits, and will not be sent, or it has its outcome
        members = self._under_way[sent]
        del members[growing.iteration.number]
        if not members:
            sent.cancel()
            del self._under_way[sent]

    def close(self) -> None:
        """Give up what is under way; nothing more is sent."""
        under_way = [m for members in self._under_way.values() for m in members.values()]
        for growing in [*self._waiting, *under_way]:
            growing.cancel()
        self._waiting.clear()
        self._line.close()


# Parts that do not depend on each other, done by threads here or by workers elsewhere.
#
# Targets of a network, permutation runs and folds all go this way. What comes of a part depends on
# the part alone.

LOOK_SECONDS = 0.2
"""Time between two questions whether the work is to go on, while parts are under way."""


def parallel_map(
    send: Callable[[Batch], Future[Batch]],
    n_threads: Callable[[], int],
    parts: Iterator[tuple[int, Any]],
    goes_on: Callable[[], bool],
    most_ahead: int,
    most_together: int = 1,
) -> Iterator[tuple[int, Any]]:
    """Have parts done, some at once; yield (number, outcome) of each in any order.

    Parameters
    ----------
    send : callable
        Has a batch done, as :func:`threads` or :meth:`srs_ooc.runs.jobs.Line.send`.
    n_threads : callable
        Returns how many threads there are to do them.
    parts : iterator of (number, what)
        Their numbers ascend; taken as there is somebody to do them.
    goes_on : callable
        Asked between outcomes, and while there is none; it ends early where this says no.
    most_ahead : int
        Parts begun at most after the first one that is not done.
    most_together : int
        Parts of a batch at most; how many it has follows from how long others took.

    Raises
    ------
    SrsOocError
        Whatever was found wrong where a part was done, or if nobody is left to do them.
    """
    most_ahead = max(1, most_ahead)
    size, most, changed = 1, max(1, min(most_together, most_ahead)), Event()
    under_way: dict[Future[Batch], list[int]] = {}
    following = 0
    try:
        while True:
            while len(under_way) < BATCHES_A_THREAD * max(1, n_threads()):
                first = min(chain(*under_way.values()), default=following)
                some = dict(islice(parts, min(most_ahead - (following - first), size)))
                if not some:
                    break
                following = max(some) + 1
                sent = send(Batch(some))
                under_way[sent] = list(some)
                sent.add_done_callback(lambda _: changed.set())
            if not under_way:
                return
            for sent in _done(list(under_way), changed, goes_on):
                done = sent.result()
                del under_way[sent]
                size = next_size(size, done, most)
                yield from done.parts.items()
            if not goes_on():
                return
    finally:
        for sent in under_way:
            sent.cancel()


def _done(
    under_way: list[Future[Batch]], changed: Event, goes_on: Callable[[], bool]
) -> list[Future[Batch]]:
    """Wait until batches are done and return them; none where told to stop."""
    while True:
        changed.clear()
        done = [sent for sent in under_way if sent.done()]
        if done or not goes_on():
            return done
        changed.wait(LOOK_SECONDS)


@contextmanager
def threads(work: Work, n_threads: int) -> Iterator[Callable[[Batch], Future[Batch]]]:
    """Yield what has a batch done by the next free one of some threads; they end with the block."""
    stopping = Event()
    with ThreadPoolExecutor(n_threads, "part") as pool:
        try:
            yield lambda batch: pool.submit(work, batch, lambda *_: not stopping.is_set())
        finally:
            stopping.set()
            pool.shutdown(wait=True, cancel_futures=True)
