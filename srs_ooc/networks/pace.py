"""What a network will take: a few of its own targets are worked on, and the rest is multiplied."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import chain, cycle, islice
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.seeds import Purpose, derive_array, key_of
from srs_ooc.base.text import LONG_SECONDS, counted, describe_seconds
from srs_ooc.networks.desks import TargetDesk
from srs_ooc.networks.forest_params import ForestParams
from srs_ooc.networks.learning_pace import LearningPace, learning_pace
from srs_ooc.networks.probability_params import ProbabilityParams
from srs_ooc.networks.responses import target_values, training_rows
from srs_ooc.networks.subspace_params import SubspaceParams
from srs_ooc.networks.task import NetworkTask
from srs_ooc.runs.engine import ItemSource
from srs_ooc.runs.jobs import Part
from srs_ooc.store.manifest import CONSTANT

TRIAL_SECONDS = 1.0
"""About how long a plan measures."""
QUICK_SECONDS = 0.3
"""About how long a network measures before it begins."""
MOST_TRIED = 256
"""Targets that are tried at most, over again if there is time left."""
FEW_TREES = 16
_GROWTH = 4
_ENOUGH = 5
"""Networks that take no longer than the trial are measured for one in so many of their seconds."""
Target = tuple[int, NDArray[np.float64]]


@dataclass(frozen=True)
class Pace:
    """Seconds of the work on targets, and where the number comes from.

    Attributes
    ----------
    seconds : float
        Wall-clock seconds of all targets that are left, with all workers at work.
    n_workers : int
        Workers.
    n_targets : int
        Targets that are left and have values that differ.
    measured, extrapolated : str
        What was done, and what the rest of the number is.
    shorter : str
        Options that make it shorter.
    """

    seconds: float
    n_workers: int
    n_targets: int
    measured: str
    extrapolated: str
    shorter: str

    def said(self) -> str:
        """Return a sentence for those who begin it."""
        text = (
            f"about {describe_seconds(self.seconds)} for {_targets(self.n_targets)} on "
            f"{counted(self.n_workers, 'core')}, an ESTIMATE ({self.measured}; {self.extrapolated})"
        )
        return f"{text}. Shorter: {self.shorter}." if self.seconds >= LONG_SECONDS else f"{text}."


def pace_of(task: NetworkTask, source: ItemSource, n_left: int, seconds: float) -> Pace:
    """Measure about what the work on targets will take.

    Parameters
    ----------
    task : NetworkTask
        What is worked on; it must not be for workers elsewhere.
    source : ItemSource
        Where columns come from.
    n_left : int
        Targets that are not done.
    seconds : float
        About how long to measure; longer where a tree takes longer.
    """
    varying, own = _varying(task), task.request.params.own
    share = len(varying) / len(task.genes.targets)
    n_left = min(len(varying), max(round(share * n_left), 1))
    targets = _tried(task, varying)
    first = next(targets, None) if _has_regulators(task) else None
    if first is None:
        return Pace(0.0, task.grant.n_workers, 0, "no values differ", "nothing to do", own.shorter)
    targets = chain([first], targets)
    if isinstance(own, ProbabilityParams):
        return _learnt(learning_pace(task, own, source, targets, seconds), n_left, own)
    assert isinstance(own, ForestParams | SubspaceParams), "the methods there are"
    n_workers = min(task.grant.n_workers, n_left)
    with ThreadPoolExecutor(n_workers, "trial") as pool:
        return _Trees(task, own, source, pool, n_workers, targets).pace(n_left, seconds)


def _has_regulators(task: NetworkTask) -> bool:
    return len(task.genes.regulators) > 1 or len(task.genes.targets) > 1


def _varying(task: NetworkTask) -> NDArray[np.uint32]:
    targets = task.genes.targets
    varies: NDArray[np.bool_] = task.store.kinds()[targets] != CONSTANT
    return targets[varies]


def _tried(task: NetworkTask, varying: NDArray[np.uint32]) -> Iterator[Target]:
    """Yield targets with their values, in an order fixed by the seed, over and over again.

    Those whose values do not differ in the rows trained on are left out.
    """
    key = key_of(task.request.params.seed, Purpose.EDGES)
    order = np.argsort(derive_array(key, varying), kind="stable")[:MOST_TRIED]
    again = []
    for target in varying[order].tolist():
        values = _values(task, target)
        if training_rows(values, None) is not None:
            again.append(target)
            yield target, values
    for target in cycle(again):
        yield target, _values(task, target)


def _values(task: NetworkTask, target: int) -> NDArray[np.float64]:
    return next(target_values(task.store, np.array([target], np.uint32), task.rows))


class _Trees:
    """Targets with fewer trees than are asked for, on all workers at once."""

    def __init__(
        self,
        task: NetworkTask,
        own: ForestParams | SubspaceParams,
        source: ItemSource,
        pool: ThreadPoolExecutor,
        n_workers: int,
        targets: Iterator[Target],
    ) -> None:
        self._task, self._own, self._source, self._pool = task, own, source, pool
        self._n_workers, self._targets, self._n_tried = n_workers, targets, 0
        self._blocks = task.blocks(self._n_workers)

    def pace(self, n_left: int, seconds: float) -> Pace:
        """Grow more and more trees until the time is up, or a target is done whole."""
        most, n_batches = self._own.trees, n_left / self._n_workers
        begun = perf_counter()
        first = self._seconds_of(1)  # reads the columns for the first time
        if first < seconds / _GROWTH:
            first = self._seconds_of(1)
        n_trees, found = 1, [first]
        while True:
            left = seconds - (perf_counter() - begun)
            whole = found[-1] * most / n_trees * n_batches
            is_short = whole < min(seconds, _ENOUGH * (seconds - left))
            if n_trees > min(1, most - 1) and (left <= found[-1] or is_short):
                break
            if n_trees < most and (n_trees == 1 or found[-1] * _GROWTH < left):
                n_trees, found = min(most, n_trees * (_GROWTH if left > 0 else 2)), []
            found.append(self._seconds_of(n_trees))
        each = _of_all(first, float(np.mean(found)), n_trees, most)
        return self._pace(each, n_trees, n_left)

    def _pace(self, each: float, n_trees: int, n_left: int) -> Pace:
        most = self._own.trees
        of = "subspaces" if isinstance(self._own, SubspaceParams) else "trees"
        batches = max(1.0, n_left / self._n_workers)
        return Pace(
            each * batches,
            self._n_workers,
            n_left,
            f"measured: up to {n_trees:,} {of} for each of {_targets(self._n_tried)}",
            f"extrapolated to {most:,} for each of {n_left:,}",
            self._own.shorter,
        )

    def _seconds_of(self, n_trees: int) -> float:
        """Return the mean seconds of a target with so many trees, one target on each worker."""
        params = self._task.request.params
        tried = replace(params, own=replace(self._own, trees=n_trees))
        task = self._task
        desk = TargetDesk(tried, self._source, task.store, task.genes.regulators, self._blocks)
        some = list(islice(self._targets, self._n_workers))
        self._n_tried += len(some)
        parts = [Part(number, what) for number, what in enumerate(some)]
        replies = self._pool.map(lambda part: desk.work([part], lambda *_: True), parts)
        return float(np.mean([reply.seconds for reply in replies]))


def _targets(n: int) -> str:
    return f"{n:,} target{'' if n == 1 else 's'}"


def _of_all(first: float, mean: float, n_trees: int, most: int) -> float:
    """Return the seconds of a target with all its trees, from those with one and with some.

    What a target takes besides its trees is taken off only where there were so many trees that
    chance in the time of the first plays no part.
    """
    if n_trees < FEW_TREES or n_trees == most:
        return mean * most / n_trees
    return first + max(mean - first, 0.0) * (most - 1) / (n_trees - 1)


def _learnt(found: LearningPace, n_left: int, own: ProbabilityParams) -> Pace:
    return Pace(
        found.seconds(n_left, own),
        found.n_workers,
        n_left,
        f"measured: {found.n_models:,} models and {found.n_epochs:,} epochs of "
        f"{_targets(found.n_tried)}, models grown again every "
        f"{1 / found.sets_an_epoch:.2g} epochs",
        f"extrapolated to all {own.epochs:,} epochs of {n_left:,}",
        own.shorter,
    )
