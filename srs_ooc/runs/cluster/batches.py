"""An executor that orders iterations from elsewhere in batches, and fetches what came of them."""

import time
from concurrent.futures import Future
from math import ceil

from srs_ooc.base.records import Iteration, Outcome
from srs_ooc.base.text import MB
from srs_ooc.runs.cluster.line import Line, Order, Part, Reply, Sent
from srs_ooc.runs.cluster.orders import Packed, unpack

TASK_SECONDS = 0.2
"""What a batch shall take: Dask's own cost is about a millisecond."""
SMALLEST_SHARE = 16
"""How much smaller batches get towards the end of a round, where all workers wait for the last."""
LEAST_SECONDS = 0.01
"""What a batch shall take even there: each costs this process and the scheduler a millisecond."""
BATCHES_A_THREAD = 2
"""Batches under way for each thread of the workers: one at work, one waiting."""
AHEAD_NBYTES = 32 * MB
"""What iterations and outcomes under way may take."""
COLUMN_NBYTES = 16
"""A column of an iteration under way: its number, and its importance."""
MOST_ITERATIONS = 1000
"""Of a batch."""
COUNTED_SECONDS = 2.0
"""How old a count of the workers' threads may be."""


class BatchSize:
    """How many parts go into an order, so that it takes about TASK_SECONDS, by what others took.

    Parameters
    ----------
    most : int
        At most so many.
    """

    def __init__(self, most: int = MOST_ITERATIONS) -> None:
        self._most = most
        self.now = 1

    def learn(self, reply: Reply) -> None:
        """Choose the size of the next orders."""
        each = reply.seconds / max(1, len(reply.outcomes))
        wanted = ceil(TASK_SECONDS / each) if each > 0 else self._most
        # A first order, which opens the store, says little: sizes grow at most fourfold each time.
        self.now = max(1, min(wanted, 4 * self.now, self._most))


class CountedThreads:
    """The threads of a line's workers, counted every few seconds; 1 where there are none.

    Parameters
    ----------
    line : Line
        The way to the workers.
    """

    def __init__(self, line: Line) -> None:
        self._line = line
        self._n_threads, self._counted = 1, -COUNTED_SECONDS

    def now(self) -> int:
        """Return how many there were when they were last counted."""
        now = time.monotonic()
        if now - self._counted >= COUNTED_SECONDS:
            self._n_threads, self._counted = max(1, self._line.n_threads()), now
        return self._n_threads


class _Batch:
    """Iterations sent together."""

    def __init__(self, members: "list[_Growing]", sent: Sent) -> None:
        self.members, self.sent = members, sent
        self.n_wanted = len(members)

    def fetch(self) -> Reply:
        """Wait for the batch and hand each member its outcome."""
        reply = self.sent.result()
        members, self.members = self.members, []
        for member, packed in zip(members, reply.outcomes, strict=True):
            member.take(packed)
            member.batch = None  # no cycle: garbage is collected seldom, and this is megabytes
        return reply


class _Growing(Future[Outcome]):
    """The outcome of an iteration that waits to be sent, or was."""

    def __init__(self, executor: "BatchExecutor", iteration: Iteration) -> None:
        super().__init__()
        self._executor, self.iteration = executor, iteration
        self.batch: _Batch | None = None

    def take(self, packed: Packed) -> None:
        """Take the outcome, unless it is not wanted any more."""
        if not self.done():
            self.set_result(unpack(packed, self.iteration))

    def result(self, timeout: float | None = None) -> Outcome:
        """Return the outcome; what waits is sent, and its batch waited for."""
        if not self.done():
            self._executor.fetch(self)
        return super().result(timeout)

    def cancel(self) -> bool:
        """Say that the outcome is not wanted any more."""
        cancelled = super().cancel()
        if cancelled:
            self._executor.give_up(self)
        return cancelled


class BatchExecutor:
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
        self._line, self._round_size = line, round_size
        self._most = max(2, AHEAD_NBYTES // (COLUMN_NBYTES * max(n_columns, 64)))
        self._waiting: list[_Growing] = []
        self._under_way: set[_Batch] = set()
        self._size = BatchSize(min(MOST_ITERATIONS, self._most // 2))
        self._threads = CountedThreads(line).now

    @property
    def max_ahead(self) -> int:
        """Iterations that may be under way at once."""
        return min(BATCHES_A_THREAD * self._threads() * self._size.now, self._most)

    @property
    def n_read_ahead(self) -> int:
        """None: workers ask for the columns of a batch as it comes."""
        return 0

    def announce(self, iteration: Iteration) -> None:
        """Do nothing: workers ask for the columns of a batch as it comes."""

    def submit(self, iteration: Iteration) -> Future[Outcome]:
        """Take an iteration into the next batch, which is sent once it is full."""
        growing = _Growing(self, iteration)
        self._waiting.append(growing)
        if len(self._waiting) >= self._fair_share():
            self._send()
        return growing

    def _fair_share(self) -> int:
        """Return what a batch may hold for all threads to have work, and to end a round together.

        What may be under way at once is shared, and so is what is left of the round.
        """
        size, parts = self._size.now, BATCHES_A_THREAD * self._threads()
        share = min(size, self._most / parts)
        if self._round_size > 1:
            left = self._round_size - self._waiting[0].iteration.number % self._round_size
            even = self._round_size / parts
            least = max(min(size, even) / SMALLEST_SHARE, size * LEAST_SECONDS / TASK_SECONDS)
            share = min(share, max(min(least, even), left / parts))
        return ceil(share)

    def fetch(self, growing: _Growing) -> None:
        """Wait for the batch of an iteration; before, send what waits if a thread may be idle."""
        if growing.batch is None or len(self._under_way) < self._threads():
            self._send()
        batch = growing.batch
        assert batch is not None
        reply = batch.fetch()
        self._under_way.discard(batch)
        self._learn(reply)

    def _send(self) -> None:
        members = [growing for growing in self._waiting if not growing.cancelled()]
        self._waiting = []
        if not members:
            return
        parts = [Part(member.iteration.number, member.iteration) for member in members]
        batch = _Batch(members, self._line.send(Order(parts)))
        self._under_way.add(batch)
        for member in members:
            member.batch = batch

    def _learn(self, reply: Reply) -> None:
        """Choose the size of the next batches by how long this one took."""
        self._size.learn(reply)

    def give_up(self, growing: _Growing) -> None:
        """Forget an iteration that is not wanted; its batch too, if none of it is."""
        batch = growing.batch
        if batch is None:  # it still waits, and will not be sent
            return
        batch.n_wanted -= 1
        if batch.n_wanted == 0:
            batch.sent.cancel()
            self._under_way.discard(batch)

    def close(self) -> None:
        """Give up what is under way; nothing more is sent."""
        for growing in self._waiting:
            growing.cancel()
        self._waiting.clear()
        for batch in list(self._under_way):
            for member in batch.members:
                member.cancel()
        self._under_way.clear()
        self._line.close()
