"""What weighs the regulators of a target: options, shared parts, and what targets say of rows."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import SrsOocError
from srs_ooc.base.options import Params, Whole, option
from srs_ooc.runs.engine import ItemSource
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


@dataclass(frozen=True)
class EdgeTable:
    """What a network is made of.

    Attributes
    ----------
    n_rows, n_regulators, n_targets : int
        Rows trained on; features that may regulate; features to explain.
    code_nbytes : int
        Of the store.
    weighted : bool
        Whether rows have weights.
    """

    n_rows: int
    n_regulators: int
    n_targets: int
    code_nbytes: int
    weighted: bool


@dataclass(frozen=True, kw_only=True)
class EdgeParams(Params):
    """How one method weighs the regulators of a target; methods extend this."""

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


class StoppedError(SrsOocError):
    """The work was asked to stop before a target was done."""


@dataclass(frozen=True)
class Bench:
    """What targets are worked on with.

    Attributes
    ----------
    source : ItemSource
        Where columns come from.
    categorical : bool (n_features,) or None
        Features of the store that are categories.
    seed : int
        Of the network.
    is_wanted : callable
        Says whether the work is to go on.
    """

    source: ItemSource
    categorical: NDArray[np.bool_] | None
    seed: int
    is_wanted: Callable[[], bool]

    def check_going(self) -> None:
        """Raise :class:`StoppedError` if the work was asked to stop."""
        if not self.is_wanted():
            raise StoppedError


class Weigher(Protocol):
    """Weighs the regulators of one target; several threads call it, each with its own block."""

    def weights(
        self, block: Block, target: int, regulators: NDArray[np.uint32], rows: TrainingRows
    ) -> NDArray[np.float64]:
        """Return the weight of each regulator, float64 (n_regulators,), from 0 on."""
