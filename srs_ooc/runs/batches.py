"""Work handed out in batches, here to threads or elsewhere to workers.

Iterations are ordered ahead of the loop; parts that do not depend on each other in any order.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from math import ceil
from threading import Event
from typing import Any

from srs_ooc.base.records import Iteration, Outcome
from srs_ooc.base.text import MB
from srs_ooc.runs.jobs import AnyJob, Line, Order, Part, Reply, Tell
from srs_ooc.runs.resources import Cluster, unpack

# An executor that orders iterations from elsewhere in batches, and fetches what came of them.

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


class Pace:
    """How many parts go into an order, and how many threads there are to do them.

    An order shall take about TASK_SECONDS, by what others took; threads are counted every few
    seconds, as 1 where there are none.

    Parameters
    ----------
    line : Line
        The way to the workers.
    most : int
        Parts of an order at most.
    """

    def __init__(self, line: Line, most: int) -> None:
        self._line, self._most = line, most
        self.size = 1
        self._n_threads, self._counted = 1, -COUNTED_SECONDS

    def learn(self, reply: Reply) -> None:
        """Choose the size of the next orders."""
        each = reply.seconds / max(1, len(reply.outcomes))
        wanted = ceil(TASK_SECONDS / each) if each > 0 else self._most
        # A first order, which opens the store, says little: sizes grow at most fourfold each time.
        self.size = max(1, min(wanted, 4 * self.size, self._most))

    def n_threads(self) -> int:
        """Return how many there were when they were last counted."""
        now = time.monotonic()
        if now - self._counted >= COUNTED_SECONDS:
            self._n_threads, self._counted = max(1, self._line.n_threads()), now
        return self._n_threads


class _Batch:
    """Iterations sent together."""

    def __init__(self, members: "list[_Growing]", sent: Future[Reply]) -> None:
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

    def take(self, packed: Outcome) -> None:
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
        self._pace = Pace(line, min(MOST_ITERATIONS, self._most // 2))

    @property
    def max_ahead(self) -> int:
        """Iterations that may be under way at once."""
        return min(BATCHES_A_THREAD * self._pace.n_threads() * self._pace.size, self._most)

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
        size, parts = self._pace.size, BATCHES_A_THREAD * self._pace.n_threads()
        share = min(size, self._most / parts)
        if self._round_size > 1:
            left = self._round_size - self._waiting[0].iteration.number % self._round_size
            even = self._round_size / parts
            least = max(min(size, even) / SMALLEST_SHARE, size * LEAST_SECONDS / TASK_SECONDS)
            share = min(share, max(min(least, even), left / parts))
        return ceil(share)

    def fetch(self, growing: _Growing) -> None:
        """Wait for the batch of an iteration; before, send what waits if a thread may be idle."""
        if growing.batch is None or len(self._under_way) < self._pace.n_threads():
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
        self._pace.learn(reply)

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


# Parts that do not depend on each other, done by threads here or by workers elsewhere.
#
# Targets of a network, permutation runs and folds all go this way. Whatever does them, a part is
# done at a desk of its job; what comes of it depends on the part alone.

LOOK_SECONDS = 0.2
"""Time between two questions whether the work is to go on, while parts are under way."""
LOOKS = 5
"""Questions between two looks at whether there is still somebody to wait for."""


def parallel_map(
    line: Line,
    parts: Iterator[Part],
    goes_on: Callable[[], bool],
    most_ahead: int,
    most_together: int = 1,
) -> Iterator[tuple[int, Any]]:
    """Have parts done, some at once; yield (number, outcome) of each in any order.

    Parameters
    ----------
    line : Line
        The way to who does them.
    parts : iterator of Part
        Their numbers ascend; taken as there is somebody to do them.
    goes_on : callable
        Asked between outcomes, and while there is none; it ends early where this says no.
    most_ahead : int
        Parts begun at most after the first one that is not done.
    most_together : int
        Parts of an order at most; how many it has follows from how long others took.

    Raises
    ------
    SrsOocError
        Whatever was found wrong where a part was done, or if nobody is left to do them.
    """
    most_ahead = max(1, most_ahead)
    pace, changed = Pace(line, max(1, min(most_together, most_ahead))), Event()
    under_way: dict[Future[Reply], list[int]] = {}
    begun: list[int] = []  # not done
    following = 0
    try:
        while True:
            while len(under_way) < BATCHES_A_THREAD * pace.n_threads():
                room = most_ahead - (following - min(begun, default=following))
                some = list(islice(parts, min(room, pace.size)))
                if not some:
                    break
                numbers, following = [part.number for part in some], some[-1].number + 1
                begun += numbers
                sent = line.send(Order(some))
                under_way[sent] = numbers
                sent.add_done_callback(lambda _: changed.set())
            if not under_way:
                return
            for sent in _done(line, list(under_way), changed, goes_on):
                numbers, reply = under_way.pop(sent), sent.result()
                pace.learn(reply)
                for number, outcome in zip(numbers, reply.outcomes, strict=True):
                    begun.remove(number)
                    yield number, outcome
            if not goes_on():
                return
    finally:
        for sent in under_way:
            sent.cancel()


def _done(
    line: Line, under_way: list[Future[Reply]], changed: Event, goes_on: Callable[[], bool]
) -> list[Future[Reply]]:
    """Wait until orders are done and return them; none where told to stop."""
    looks = 0
    while True:
        changed.clear()
        done = [sent for sent in under_way if sent.done()]
        if done or not goes_on():
            return done
        if not changed.wait(LOOK_SECONDS):
            looks += 1
            if looks % LOOKS == 0:
                line.look()


class ThreadLine:
    """The way to threads of this process.

    Parameters
    ----------
    work : callable
        ``work(parts, tell) -> Reply``, called by as many threads as there are.
    n_threads : int
        How many there are.
    """

    def __init__(self, work: Callable[[list[Part], Tell], Reply], n_threads: int) -> None:
        self._work, self._count = work, n_threads
        self._stopping = Event()
        self._pool = ThreadPoolExecutor(n_threads, "part")

    def send(self, order: Order) -> Future[Reply]:
        """Have an order done by the next thread that is free."""
        return self._pool.submit(self._work, order.parts, lambda *_: not self._stopping.is_set())

    def n_threads(self) -> int:
        """Return how many threads there are."""
        return self._count

    def look(self) -> None:
        """Do nothing: threads stay."""

    def told(self) -> Mapping[int, int]:
        """Return nothing: threads say nothing of parts under way."""
        return {}

    def close(self) -> None:
        """Have the threads stop, and wait for them."""
        self._stopping.set()
        self._pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def line_to(cluster: Cluster, job: AnyJob) -> Iterator[Line]:
    """Yield the way to the workers of a cluster who do parts of ``job``; close it after."""
    line = cluster.line(job)
    try:
        yield line
    finally:
        line.close()
