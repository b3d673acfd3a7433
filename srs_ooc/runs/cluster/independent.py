"""Parts that do not depend on each other, done by threads here or by workers elsewhere.

Targets of a network, permutation runs and folds all go this way. Whatever does them, a part is done
at a desk of its job; what comes of it depends on the part alone.
"""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from threading import Event
from typing import Any

from srs_ooc.runs.cluster.batches import BATCHES_A_THREAD, BatchSize, CountedThreads
from srs_ooc.runs.cluster.line import AnyJob, Doer, Line, Order, Part, Reply, Sent
from srs_ooc.runs.cluster.orders import Cluster

LOOK_SECONDS = 0.2
"""Time between two questions whether the work is to go on, while parts are under way."""
LOOKS = 5
"""Questions between two looks at whether there is still somebody to wait for."""

GoesOn = Callable[[], bool]


class Spread:
    """Has parts done in orders, some at once, and yields what came of each as it is there.

    Parameters
    ----------
    line : Line
        The way to who does them.
    most_ahead : int
        Parts begun at most after the first one that is not done.
    most_together : int
        Parts of an order at most; how many it has follows from how long others took.
    """

    def __init__(self, line: Line, most_ahead: int, most_together: int) -> None:
        self._line, self._most_ahead = line, max(1, most_ahead)
        self._size = BatchSize(max(1, min(most_together, most_ahead)))
        self._n_threads = CountedThreads(line).now
        self._under_way: dict[Sent, list[int]] = {}
        self._next = 0
        self._changed = Event()

    def results(self, parts: Iterator[Part], goes_on: GoesOn) -> Iterator[tuple[int, Any]]:
        """Yield (number, outcome) of each part in any order; end early where told to.

        Parameters
        ----------
        parts : iterator of Part
            Their numbers ascend; taken as there is somebody to do them.
        goes_on : callable
            Asked between outcomes, and while there is none.

        Raises
        ------
        SrsOocError
            Whatever was found wrong where a part was done, or if nobody is left to do them.
        """
        begun: list[int] = []  # not done
        try:
            while True:
                self._send_more(parts, begun)
                if not self._under_way:
                    return
                for sent in self._done(goes_on):
                    numbers = self._under_way.pop(sent)
                    reply = sent.result()
                    self._size.learn(reply)
                    for number, outcome in zip(numbers, reply.outcomes, strict=True):
                        begun.remove(number)
                        yield number, outcome
                if not goes_on():
                    return
        finally:
            for sent in self._under_way:
                sent.cancel()
            self._under_way.clear()

    def _send_more(self, parts: Iterator[Part], begun: list[int]) -> None:
        while len(self._under_way) < BATCHES_A_THREAD * self._n_threads():
            room = self._most_ahead - (self._next - min(begun, default=self._next))
            some = list(islice(parts, min(room, self._size.now)))
            if not some:
                return
            self._next = some[-1].number + 1
            begun += [part.number for part in some]
            sent = self._line.send(Order(some))
            self._under_way[sent] = [part.number for part in some]
            sent.when_done(self._changed.set)

    def _done(self, goes_on: GoesOn) -> list[Sent]:
        """Wait until orders are done and return them; none where told to stop."""
        looks = 0
        while True:
            self._changed.clear()
            done = [sent for sent in self._under_way if sent.is_done()]
            if done or not goes_on():
                return done
            if not self._changed.wait(LOOK_SECONDS):
                looks += 1
                if looks % LOOKS == 0:
                    self._line.look()


class _SentToThread:
    """An order that a thread of this process does."""

    def __init__(self, future: "Future[Reply]") -> None:
        self._future = future

    def result(self) -> Reply:
        return self._future.result()

    def when_done(self, tell: Callable[[], Any]) -> None:
        self._future.add_done_callback(lambda _: tell())

    def is_done(self) -> bool:
        return self._future.done()

    def cancel(self) -> None:
        self._future.cancel()


class ThreadLine:
    """The way to threads of this process, which all work at one desk.

    Parameters
    ----------
    desk : Doer
        Where they work; closed with the line.
    n_threads : int
        How many there are.
    """

    def __init__(self, desk: Doer, n_threads: int) -> None:
        self._desk, self._count = desk, n_threads
        self._stopping = Event()
        self._pool = ThreadPoolExecutor(n_threads, "part")

    def send(self, order: Order) -> _SentToThread:
        """Have an order done by the next thread that is free."""
        return _SentToThread(self._pool.submit(self._desk.work, order.parts, self._is_wanted))

    def _is_wanted(self, _: int, __: int) -> bool:
        return not self._stopping.is_set()

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
        self._desk.close()


@contextmanager
def line_to(cluster: Cluster, job: AnyJob) -> Iterator[Line]:
    """Yield the way to the workers of a cluster who do parts of ``job``; close it after."""
    line = cluster.line(job)
    try:
        yield line
    finally:
        line.close()
