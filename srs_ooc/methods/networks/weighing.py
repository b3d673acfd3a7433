"""What weighs the regulators of a target: what each method answers, its memory, and who works.

A method is the options of :class:`EdgeParams`, in a file of its own: they weigh, say what memory
that takes, and measure what it will last.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from time import perf_counter
from typing import Any, TypeVar

import numpy as np

import srs_ooc.extend as core

T = TypeVar("T")
Targets = Iterator[tuple[int, core.Floats]]
"""Targets, by their stored positions, each with its values, float64 (n_rows,)."""

# What each target says of the rows: the response of its regression.


def training_rows(values: core.Floats, weights: core.Floats | None) -> core.TrainingRows | None:
    """Return the rows of a target's regression; None where its values do not differ.

    Rows whose value is missing or infinite are left out of it.

    Parameters
    ----------
    values : float64 (n_rows,)
        Of the target.
    weights : float64 (n_rows,) or None
        Of the rows.
    """
    known = np.isfinite(values)
    if not known.any() or values[known].min() == values[known].max():
        return None
    filled = np.where(known, values, values[known][0])
    rows = core.TrainingRows.of(core.Response.targets(filled, weights), "variance")
    return rows if known.all() else rows.only(np.flatnonzero(known).astype(np.int32))


# What the options of every method of weighing regulators answer.

METHOD_NAMES = ("genie3", "srs", "prs")
TREES_AT_ONCE = 50
"""Trees between two looks at whether the work is to stop."""


@dataclass(frozen=True)
class EdgeContext:
    """What a target is worked on with.

    Attributes
    ----------
    block : Block
        Memory for the regulators' codes.
    target : int
        Its stored position; names its random numbers.
    rows : TrainingRows
        The rows, and what the target says of them.
    places : int32 (n_regulators,)
        Of its regulators among those of the network; the target itself is none.
    regulators : uint32 (n_regulators,)
        Their stored positions, ascending.
    categorical : bool (n_features,) or None
        Features of the store that are categories.
    source : ColumnSource
        Where their columns come from.
    is_wanted : callable
        Says whether to go on.
    """

    block: core.Block
    target: int
    rows: core.TrainingRows
    places: core.Ints32
    regulators: core.Uints32
    categorical: core.Bools | None
    source: core.ColumnSource
    is_wanted: Callable[[], bool]

    def fill(self, *, tiled: bool = False) -> None:
        """Page the regulators into the block."""
        self.block.tiled = tiled
        self.source.gather(self.regulators, self.block)

    def check_going(self) -> None:
        """Raise :class:`StoppedError` if the work was asked to stop."""
        if not self.is_wanted():
            raise core.StoppedError


class EdgeParams(core.Params):
    """How the regulators of a target are weighed; each method extends this.

    Attributes
    ----------
    method : str
        How a target's regulators are weighed: by a forest, by trees on random subspaces, or by
        learnt probabilities.
    seed : int
        Everything random follows from it.
    """

    method: str = core.option(core.Choice(METHOD_NAMES), default=METHOD_NAMES[0])
    seed: int = core.option(core.Whole(0, 2**64 - 1), default=0, metavar="SEED")

    grown = "trees"
    """What a target has :attr:`trees` of, where it is measured by fewer of them."""

    def weights(self, context: EdgeContext) -> core.Floats:
        """Return the weight of the edge from each regulator to the target, from 0 on.

        float64 (n_regulators,). Several threads call it, each with its own context.

        Raises
        ------
        StoppedError
            If the work was asked to stop.
        """
        raise NotImplementedError

    def estimate(
        self, scorer: "EdgeScorer", targets: Targets, n_left: int, seconds: float
    ) -> tuple[float, str, str]:
        """Measure for about so long what ``n_left`` targets will take, by the first of ``targets``.

        More and more trees are grown until the time is up, or a target is done whole.

        Returns
        -------
        seconds, measured, extrapolated : float, str, str
            Of all that are left, all workers at work; what was done, and what the rest of it is.
        """
        own: Any = self  # with trees, what its targets have most of
        most, n_workers, n_tried = own.trees, min(scorer.n_workers, n_left), 0

        def seconds_of(n_trees: int) -> float:
            """Return the mean seconds of a target with so many trees, one target on each worker."""
            nonlocal n_tried
            tried = replace(own, trees=n_trees)

            def timed(context: EdgeContext) -> float:
                started = perf_counter()
                tried.weights(context)
                return perf_counter() - started

            n_tried += n_workers
            return float(np.mean(scorer.tried(timed, targets, n_workers)))

        started = perf_counter()
        first = seconds_of(1)  # reads the columns for the first time
        if first < seconds / _GROWTH:
            first = seconds_of(1)
        n_trees, found = 1, [first]
        while True:
            left = seconds - (perf_counter() - started)
            whole = found[-1] * most / n_trees * n_left / n_workers
            is_short = whole < min(seconds, _ENOUGH * (seconds - left))
            if n_trees > min(1, most - 1) and (left <= found[-1] or is_short):
                break
            if n_trees < most and (n_trees == 1 or found[-1] * _GROWTH < left):
                n_trees, found = min(most, n_trees * (_GROWTH if left > 0 else 2)), []
            found.append(seconds_of(n_trees))
        return (
            of_all(first, float(np.mean(found)), n_trees, most) * max(1.0, n_left / n_workers),
            f"measured: up to {n_trees:,} {own.grown} for each of {targets_text(n_tried)}",
            f"extrapolated to {most:,} for each of {n_left:,}",
        )

    @property
    def splits_best(self) -> bool:
        """Whether trees look for the best split of each node."""
        return False

    @property
    def bootstraps(self) -> bool:
        """Whether trees are grown on rows drawn with replacement."""
        return False

    @property
    def is_joint(self) -> bool:
        """Whether all targets are worked on together, not one after the other."""
        return False

    def n_copied(self, n_regulators: int) -> int:
        """Return how many columns a tree is grown on copies of; 0 where it has the block's own."""
        return 0

    def check_shape(self, shape: core.TrainingShape) -> None:
        """Refuse options that do not go together, or with the table.

        Raises
        ------
        UsageError
            Saying which.
        """

    def work_nbytes(self, shape: core.TrainingShape) -> int:
        """Return the bytes of work on one target, besides its block and its response."""
        n_rows, n_regulators, code_nbytes = shape.n_rows, shape.n_candidates, shape.code_nbytes
        n_copied = self.n_copied(n_regulators)
        n_channels = 1 + (shape.n_channels or self.bootstraps)
        size = n_rows, n_copied or n_regulators, 1, code_nbytes, n_channels
        scratch = core.scratch_nbytes(*size, best=self.splits_best)
        if not n_copied:
            return scratch
        copies = 2 * core.block_nbytes(n_copied, n_rows, code_nbytes)
        return copies + scratch + 64 * n_regulators  # what was learnt, and whether it is kept

    def shared_nbytes(self, shape: core.TrainingShape, n_targets: int) -> int:
        """Return the bytes that all targets together keep, where there are any."""
        return 0

    @property
    def shorter(self) -> str:
        """Say which options make it shorter, for where it takes long."""
        return "fewer trees, fewer --targets"

    def remarks(self, shape: core.TrainingShape, n_targets: int) -> tuple[str, ...]:
        """Return sentences worth saying before the work begins."""
        return ()


def trees_option() -> Any:
    """Return the field of how many trees there are."""
    return core.option(
        core.Whole(1, 1_000_000),
        "Trees grown for each target (genie3), or subspaces drawn, a tree on each (srs).",
        default=1000,
        metavar="N",
    )


# Where targets are worked on: blocks, and what is the same for all targets.


@dataclass(eq=False)
class EdgeScorer:
    """Weighs the regulators of any target, on as many threads as it has blocks.

    Parameters
    ----------
    params : EdgeParams
        How they are weighed.
    shape : TrainingShape
        What bounds the memory of a target.
    store : Store
        Of the columns.
    source : ColumnSource
        Where columns come from.
    regulators : uint32 (n_regulators,)
        Stored positions, ascending.
    n_workers : int
        Threads that work here.
    """

    params: EdgeParams
    shape: core.TrainingShape
    store: core.Store
    source: core.ColumnSource
    regulators: core.Uints32
    n_workers: int

    def __post_init__(self) -> None:
        self.categorical = core.categorical_features(self.store)
        weights, rows = self.store.weights(), self.source.rows
        self._weights = weights if weights is None or rows is None else weights[rows]
        size = len(self.regulators), self.shape.n_rows, self.shape.code_nbytes
        how: dict[str, Any] = {"tiled": False, "n_values": self.shape.n_values}
        self.blocks = core.pool_of([core.Block(*size, **how) for _ in range(self.n_workers)])

    def context(
        self,
        block: core.Block,
        target: int,
        values: core.Floats,
        is_wanted: Callable[[], bool] = lambda: True,
    ) -> EdgeContext | None:
        """Return what a target is worked on with; None if its values, or it alone, say nothing."""
        rows = training_rows(values, self._weights)
        places = np.flatnonzero(self.regulators != target).astype(np.int32)
        if rows is None or not len(places):
            return None
        known = places, self.regulators[places], self.categorical
        return EdgeContext(block, target, rows, *known, self.source, is_wanted)

    def work(self, batch: core.Batch, tell: core.PartWatch) -> core.Batch:
        """Return float64 (n_regulators,) of each target: its weights, 0 for itself."""
        with core.taken(self.blocks) as block:

            def one(number: int, target: tuple[int, core.Floats]) -> core.Floats:
                out = np.zeros(len(self.regulators))
                if (context := self.context(block, *target, partial(tell, number, 0))) is not None:
                    out[context.places] = self.params.weights(context)
                return out

            return batch.done(one)

    def tried(self, work: Callable[[EdgeContext], T], targets: Targets, n_workers: int) -> list[T]:
        """Return what ``work`` says of the next targets, each on its own worker."""

        def one(target: int, values: core.Floats) -> T:
            with core.taken(self.blocks) as block:
                context = self.context(block, target, values)
                assert context is not None, "targets that are tried vary"
                return work(context)

        with ThreadPoolExecutor(n_workers, "trial") as pool:
            return list(pool.map(one, *zip(*islice(targets, n_workers), strict=True)))


# What the work on targets will take: a few of them are worked on, and the rest is multiplied.

FEW_TREES = 16
_GROWTH = 4
_ENOUGH = 5
"""Networks that take no longer than the trial are measured for one in so many of their seconds."""


def targets_text(n: int) -> str:
    """Return a number of targets in words."""
    return f"{n:,} target{'' if n == 1 else 's'}"


def of_all(first: float, mean: float, n_trees: int, most: int) -> float:
    """Return the seconds of a target with all its trees, from those with one and with some.

    What a target takes besides its trees is taken off only where there were so many trees that
    chance in the time of the first plays no part.
    """
    if n_trees < FEW_TREES or n_trees == most:
        return mean * most / n_trees
    return first + max(mean - first, 0.0) * (most - 1) / (n_trees - 1)
