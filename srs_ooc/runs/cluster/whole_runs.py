"""Whole runs done by workers: the store and memory of each, and how far all of them are."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from time import perf_counter
from typing import Any

from srs_ooc.base.budget import PROCESS_NBYTES, growth_counted
from srs_ooc.base.errors import BudgetError, RunError
from srs_ooc.base.records import Step
from srs_ooc.base.text import MB
from srs_ooc.runs.cluster.independent import Spread, line_to
from srs_ooc.runs.cluster.line import AnyJob, Part, Reply, Tell
from srs_ooc.runs.cluster.orders import Cluster
from srs_ooc.runs.screening import Watch

ALL_AHEAD = 1 << 30
"""Runs are begun however long one of them takes: little is kept of those that are done."""


class Slots:
    """The memory of a worker, shared by as many whole runs as it holds.

    Parameters
    ----------
    memory_mb : int
        What the worker may grow by, in MB of 10**6 bytes.
    needed_nbytes : int
        What a run needs, the process included.
    n_threads : int
        Runs that may be done at once.

    Raises
    ------
    BudgetError
        If not even one fits.
    """

    def __init__(self, memory_mb: int, needed_nbytes: int, n_threads: int) -> None:
        if needed_nbytes > memory_mb * MB:
            raise BudgetError(
                f"a memory cap of {memory_mb} MB cannot hold a whole run. The smallest cap that "
                f"works is --worker-memory-mb {-(-needed_nbytes // MB)}."
            )
        n_slots = max(1, min(n_threads, memory_mb * MB // max(needed_nbytes, PROCESS_NBYTES)))
        self.each_nbytes = memory_mb * MB // n_slots
        self._free: SimpleQueue[int] = SimpleQueue()
        for slot in range(n_slots):
            self._free.put(slot)

    @contextmanager
    def one(self) -> Iterator[int]:
        """Yield the cap of a run in bytes, which is on growth; wait for a slot before."""
        slot = self._free.get()
        try:
            with growth_counted():
                yield self.each_nbytes
        finally:
            self._free.put(slot)


def watch_of(number: int, tell: Tell, n_iterations: int) -> Watch:
    """Return what tells how far a run is: the iterations of its screen, which comes first."""
    reached = 0

    def watch(step: Step) -> bool:
        nonlocal reached
        if step.unit == "iterations" and step.total == n_iterations:
            reached = max(reached, step.done)
        return tell(number, reached)

    return watch


def done_in_turn(slots: Slots, parts: list[Part], one: Callable[[Part, int], Any]) -> Reply:
    """Return what ``one(part, cap_nbytes)`` makes of each part.

    Raises
    ------
    RunError
        If it makes nothing of one: it is not wanted any more.
    """
    with slots.one() as cap_nbytes:
        begun, outcomes = perf_counter(), []
        for part in parts:
            outcomes.append(one(part, cap_nbytes))
            if outcomes[-1] is None:
                raise RunError("expected a run that is wanted, found one that was given up.")
        return Reply(outcomes, perf_counter() - begun)


def from_workers(
    cluster: Cluster, job: AnyJob, parts: list[Part], stage: str, n_each: int, watch: Watch
) -> Iterator[tuple[int, Any]]:
    """Yield (number, outcome) of each part as workers are done with it; end if told to stop.

    Parameters
    ----------
    cluster : Cluster
        The workers.
    job : AnyJob
        What the parts are of.
    parts : list of Part
        Whole runs.
    stage : str
        What they are called together.
    n_each : int
        Iterations of each, by which all are counted together.
    watch : callable
        Told how far all of them are.
    """
    done: set[int] = set()
    with line_to(cluster, job) as line:

        def goes_on() -> bool:
            told = dict(line.told())
            under_way = sum(n for number, n in told.items() if number not in done)
            reached = min(n_each * len(done) + under_way, n_each * len(parts))
            return watch(Step(stage, reached, n_each * len(parts)))

        spread = Spread(line, ALL_AHEAD, 1)
        for number, outcome in spread.results(iter(parts), goes_on):
            done.add(number)
            yield number, outcome
