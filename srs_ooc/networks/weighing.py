"""What weighs the regulators of a target: options, shared parts, and what targets say of rows.

A method is the options of :class:`EdgeParams`, in a file of its own: they weigh, say what memory
that takes, and measure what it will last.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import islice
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import SrsOocError
from srs_ooc.base.options import Choice, Params, Whole, option
from srs_ooc.base.text import LONG_SECONDS, counted, describe_seconds
from srs_ooc.runs.engine import ItemSource
from srs_ooc.store.manifest import Manifest
from srs_ooc.store.store import Store
from srs_ooc.trees.block import Block
from srs_ooc.trees.response import Response, TrainingRows

# What each target says of the rows: the response of its regression.

TOGETHER = 32
"""Targets whose values are read together: neighbours often lie in one chunk."""


def target_values(
    store: Store, targets: NDArray[np.uint32], rows: NDArray[np.int32] | None
) -> Iterator[NDArray[np.float64]]:
    """Yield the values of each target, ascending, on the rows trained on; NaN where missing.

    Of a store that keeps no values, a code stands for the middle of its range.

    Raises
    ------
    StoreError
        If the store is damaged.
    """
    read = _by_code if store.manifest.values_dtype is None else _as_kept
    for start in range(0, len(targets), TOGETHER):
        some = targets[start : start + TOGETHER].astype(np.int64)
        for values in read(store, some):
            yield values if rows is None else values[rows]


def _as_kept(store: Store, targets: NDArray[np.int64]) -> NDArray[np.float64]:
    out = np.empty((len(targets), store.n_rows))
    for i, first, values in store.values().columns(targets):
        out[i, first : first + len(values)] = values
    return out


def _by_code(store: Store, targets: NDArray[np.int64]) -> NDArray[np.float64]:
    manifest, out = store.manifest, np.empty((len(targets), store.n_rows))
    block = Block(len(targets), store.n_rows, manifest.code_nbytes, tiled=False)
    with store.columns(mapped=False) as columns:
        columns.gather(targets.astype(np.uint32), block)
    codes = block.as_columns()
    missing = np.iinfo(codes.dtype).max
    for i, lows, highs in store.code_ranges(targets):
        known = codes[i] != missing
        out[i] = np.nan
        out[i, known] = (lows / 2 + highs / 2)[codes[i, known]]
    return out


def row_weights(store: Store, rows: NDArray[np.int32] | None) -> NDArray[np.float64] | None:
    """Return the weights of the rows trained on; None where they have none."""
    weights = store.weights()
    return weights if weights is None or rows is None else weights[rows]


def training_rows(
    values: NDArray[np.float64], weights: NDArray[np.float64] | None
) -> TrainingRows | None:
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
    rows = TrainingRows.of(Response.targets(filled, weights), "variance")
    if known.all():
        return rows
    return rows.only(np.flatnonzero(known).astype(np.int32))


# What the options of every method of weighing regulators answer.

GENIE3, SRS, PRS = "genie3", "srs", "prs"
TREES_AT_ONCE = 50
"""Trees between two looks at whether the work is to stop."""


@dataclass(frozen=True)
class EdgeTable:
    """What a network is made of.

    Attributes
    ----------
    manifest : Manifest
        Of the store.
    n_rows, n_regulators, n_targets : int
        Rows trained on; features that may regulate; features to explain.
    """

    manifest: Manifest
    n_rows: int
    n_regulators: int
    n_targets: int

    @property
    def code_nbytes(self) -> int:
        """Bytes of a code of the store."""
        return self.manifest.code_nbytes

    @property
    def weighted(self) -> bool:
        """Whether rows have weights."""
        return "weights" in self.manifest.row_columns


class StoppedError(SrsOocError):
    """The work was asked to stop before a target was done."""


@dataclass(frozen=True)
class Bench:
    """What a target is worked on with.

    Attributes
    ----------
    source : ItemSource
        Where columns come from.
    categorical : bool (n_features,) or None
        Features of the store that are categories.
    block : Block
        Memory for the regulators' codes.
    target : int
        Its stored position; names its random numbers.
    regulators : uint32 (n_regulators,)
        Stored positions, ascending; the target is not among them.
    rows : TrainingRows
        The rows, and what the target says of them.
    is_wanted : callable
        Says whether the work is to go on.
    """

    source: ItemSource
    categorical: NDArray[np.bool_] | None
    block: Block
    target: int
    regulators: NDArray[np.uint32]
    rows: TrainingRows
    is_wanted: Callable[[], bool] = lambda: True

    def fill(self, *, tiled: bool = False) -> None:
        """Page the regulators into the block."""
        self.block.tiled = tiled
        self.source.gather(self.regulators, self.block)

    def check_going(self) -> None:
        """Raise :class:`StoppedError` if the work was asked to stop."""
        if not self.is_wanted():
            raise StoppedError


class EdgeParams(Params):
    """How the regulators of a target are weighed; each method extends this."""

    method: str = option(
        Choice((GENIE3, SRS, PRS)),
        "How a target's regulators are weighed: by a forest, by trees on random subspaces, or by "
        "learnt probabilities.",
        default=GENIE3,
    )
    seed: int = option(
        Whole(0, 2**64 - 1), "Everything random follows from it.", default=0, metavar="SEED"
    )

    def weights(self, bench: Bench) -> NDArray[np.float64]:
        """Return the weight of the edge from each regulator of the bench to its target, from 0 on.

        float64 (n_regulators,). Several threads call it, each with its own bench.

        Raises
        ------
        StoppedError
            If the work was asked to stop.
        """
        raise NotImplementedError

    def pace(self, trial: "Trial", n_left: int, seconds: float) -> "Pace":
        """Measure for about so long what ``n_left`` targets will take."""
        raise NotImplementedError

    @property
    def uses_values(self) -> bool:
        """Whether it reads the values of codes."""
        return False

    def n_copied(self, n_regulators: int) -> int:
        """Return how many of a block's columns a tree has a copy of."""
        return 0

    @property
    def is_joint(self) -> bool:
        """Whether all targets are worked on together, not one after the other."""
        return False

    def tiled(self, n_regulators: int) -> bool:
        """Return whether a block of so many regulators is laid out in tiles."""
        return False

    def check_table(self, table: EdgeTable) -> None:
        """Refuse options that do not go together, or with the table.

        Raises
        ------
        UsageError
            Saying which.
        """

    def work_nbytes(self, table: EdgeTable) -> int:
        """Return the bytes of work on one target, besides its block and its response."""
        return 0

    def shared_nbytes(self, table: EdgeTable) -> int:
        """Return the bytes that all targets together keep, where there are any."""
        return 0

    @property
    def shorter(self) -> str:
        """Say which options make it shorter, for where it takes long."""
        return "fewer --trees, fewer --targets"

    def remarks(self, table: EdgeTable) -> tuple[str, ...]:
        """Return sentences worth saying before the work begins."""
        return ()


def trees_option() -> int:
    """Return the field of how many trees there are."""
    field: int = option(
        Whole(1, 1_000_000),
        "Trees grown for each target (genie3), or subspaces drawn, a tree on each (srs).",
        default=1000,
        metavar="N",
    )
    return field


# What the work on targets will take: a few of them are worked on, and the rest is multiplied.

FEW_TREES = 16
_GROWTH = 4
_ENOUGH = 5
"""Networks that take no longer than the trial are measured for one in so many of their seconds."""


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
            f"about {describe_seconds(self.seconds)} for {targets_text(self.n_targets)} on "
            f"{counted(self.n_workers, 'core')}, an ESTIMATE ({self.measured}; {self.extrapolated})"
        )
        return f"{text}. Shorter: {self.shorter}." if self.seconds >= LONG_SECONDS else f"{text}."


@dataclass(frozen=True)
class Trial:
    """Targets of a network to measure on.

    Attributes
    ----------
    source : ItemSource
        Where columns come from.
    categorical : bool (n_features,) or None
        Features of the store that are categories.
    blocks : list of Block
        One for each worker.
    regulators : uint32 (n_regulators,)
        All of the network.
    row_weights : float64 (n_rows,) or None
        Of the rows trained on.
    targets : iterator of (int, float64 (n_rows,))
        Stored positions and values, which differ; without end.
    """

    source: ItemSource
    categorical: NDArray[np.bool_] | None
    blocks: list[Block]
    regulators: NDArray[np.uint32]
    row_weights: NDArray[np.float64] | None
    targets: Iterator[tuple[int, NDArray[np.float64]]]

    def each(self, work: Callable[[Bench], Any], n_workers: int) -> list[Any]:
        """Return what ``work`` says of the benches of the next targets, each on its own worker."""

        def one(block: Block, what: tuple[int, NDArray[np.float64]]) -> Any:
            target, values = what
            rows = training_rows(values, self.row_weights)
            assert rows is not None, "targets that are tried vary"
            others = self.regulators[self.regulators != target]
            return work(Bench(self.source, self.categorical, block, target, others, rows))

        some = list(islice(self.targets, n_workers))
        with ThreadPoolExecutor(n_workers, "trial") as pool:
            return list(pool.map(one, self.blocks, some))


def pace_of_trees(own: Any, trial: Trial, n_left: int, seconds: float, of: str = "trees") -> Pace:
    """Grow more and more trees until the time is up, or a target is done whole.

    ``own`` has ``trees``, what its targets have most of.
    """
    most, n_workers, n_tried = own.trees, min(len(trial.blocks), n_left), 0

    def seconds_of(n_trees: int) -> float:
        """Return the mean seconds of a target with so many trees, one target on each worker."""
        nonlocal n_tried
        tried = replace(own, trees=n_trees)

        def timed(bench: Bench) -> float:
            begun = perf_counter()
            if len(bench.regulators):
                tried.weights(bench)
            return perf_counter() - begun

        n_tried += n_workers
        return float(np.mean(trial.each(timed, n_workers)))

    begun = perf_counter()
    first = seconds_of(1)  # reads the columns for the first time
    if first < seconds / _GROWTH:
        first = seconds_of(1)
    n_trees, found = 1, [first]
    while True:
        left = seconds - (perf_counter() - begun)
        whole = found[-1] * most / n_trees * n_left / n_workers
        is_short = whole < min(seconds, _ENOUGH * (seconds - left))
        if n_trees > min(1, most - 1) and (left <= found[-1] or is_short):
            break
        if n_trees < most and (n_trees == 1 or found[-1] * _GROWTH < left):
            n_trees, found = min(most, n_trees * (_GROWTH if left > 0 else 2)), []
        found.append(seconds_of(n_trees))
    return Pace(
        of_all(first, float(np.mean(found)), n_trees, most) * max(1.0, n_left / n_workers),
        n_workers,
        n_left,
        f"measured: up to {n_trees:,} {of} for each of {targets_text(n_tried)}",
        f"extrapolated to {most:,} for each of {n_left:,}",
        own.shorter,
    )


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
