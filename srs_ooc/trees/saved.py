"""Saved trees: from bytes to arrays, rows walked down them, and what altering a feature would do.

Walking is native, for the rows as they are and with one feature at another value.
"""

from collections.abc import Iterator
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.arrays import Bytes, Floats, Integers, Ints
from srs_ooc.native import _native

LEAF, PROBE_SPLIT = -1, -2
ALL_CODES = 65_534
"""As a threshold: every value that is not missing goes left."""


class How(IntEnum):
    """How a split sends rows, given its threshold."""

    PLAIN = 0
    """Codes up to it go left. No training row had a missing value: one goes to the heavier side."""
    MISSING_LEFT = 1
    """Missing values and codes below it go left."""
    MISSING_RIGHT = 2
    """Codes up to it go left, missing values right."""
    MAPPED = 3
    """Categories whose place is up to it go left; a missing value is a category."""


class Trees:
    """Some trees, their nodes in preorder, one tree after another.

    Parameters
    ----------
    native : native Trees
        These trees, and maybe others, as native code takes them, with their leaves.
    numbers : range, optional
        Which of them, with step 1; all by default.

    Attributes
    ----------
    root : int32 (n_trees,)
        Each tree's first node.
    feature : int64 (n_nodes,)
        Stored position of a split's feature, :data:`LEAF`, or :data:`PROBE_SPLIT` for a split on an
        added column.
    code : int32 (n_nodes,)
        Codes up to it go left, to the next node (-1: none, 65534: all that are not missing); of
        categories their places; of a leaf, its number of pairs of a class and its weight.
    n_rows : int64 (n_nodes,)
        Training weight at the node: rows, unless they are weighted.
    how : int32 (n_nodes,)
        How a split sends rows (:class:`How`).
    """

    def __init__(self, native: _native.Trees, numbers: range | None = None) -> None:
        self.numbers = range(len(native.root)) if numbers is None else numbers
        self.native, self.root = native, native.root[self.numbers.start : self.numbers.stop]
        self.feature, self.code = native.feature, native.code
        self.n_rows, self.how = native.n_rows, native.how

    @property
    def asked(self) -> tuple[_native.Trees, int, int]:
        """What native code is told of them: trees, and which is the first and which the last."""
        return self.native, self.numbers.start, self.numbers.stop

    def parts(self, n_trees: int) -> Iterator["Trees"]:
        """Yield so many trees at a time; their nodes are still those of all."""
        for first in self.numbers[::n_trees]:
            yield Trees(self.native, range(first, min(first + n_trees, self.numbers.stop)))

    def slots(self, features: Integers) -> Ints:
        """Return the place of each split's feature among ``features``, (n,), ascending.

        int64 (n_nodes,); negative values as in :attr:`feature`.
        """
        return np.where(self.feature >= 0, np.searchsorted(features, self.feature), self.feature)


def decode_trees(data: bytes, starts: Ints, stops: Ints, *, regression: bool = False) -> Trees:
    """Return the trees that lie in ``data`` at ``starts[i]:stops[i]``, without the GIL.

    ``regression``: their leaves hold targets.

    Raises
    ------
    ValueError
        If bytes are not those of a tree.
    """
    return Trees(_native.decode_trees(np.frombuffer(data, np.uint8), starts, stops, regression))


def add_shares(
    trees: Trees, slot: Ints, threshold: Floats, panel: Floats, shares: Floats, code_nbytes: int = 1
) -> None:
    """Add each tree's class shares of each row to ``shares``, in the order of trees, GIL released.

    Of regression trees the mean whole-number target, as the only class.

    Parameters
    ----------
    trees : Trees
        The trees.
    slot : int64 (n_nodes,)
        Row of ``panel`` a split looks at; negative values as in ``Trees.feature``.
    threshold : float64 (n_nodes,)
        Values up to it go left.
    panel : float64 (n_slots, m)
        Values, at least as many columns as ``shares`` has rows; NaN for missing ones. Of
        categories their codes in the training store, -1 for one that is not there.
    shares : float64 (n_rows, n_classes)
        Added to. A split on an added column sends a row both ways, weighted by training weight.
        What is missing and was not in training, or an unknown category, goes the heavier way.
    code_nbytes : int
        Of the training store's codes.

    Raises
    ------
    ValueError
        If a tree needs a slot or class that is not there.
    """
    _native.add_shares(*trees.asked, slot, threshold, code_nbytes, panel, shares)


# What saved trees would say of rows if one feature had another value, natively.
#
# A tree's say of a row changes only for features on the row's path, so one walk of each tree by
# each row finds the effects of all features: about depth squared steps, whatever the number of
# features. All sums are of whole numbers, so that they do not depend on the order of rows, trees or
# threads. `tests/helpers/forest_reference.py` is the twin.

CLASS_BITS, TARGET_BITS = 36, 16
"""What a leaf says is counted in units of ``2**-bits``: class shares, or whole-number targets."""
CHANGE_BITS = 36
"""Changes of probability and of squared error are counted in units of ``2**-36``."""
NO_VOTES = np.zeros((0, 0), np.uint8)
"""Every tree votes on every row."""


class Effects:
    """What trees say of some rows, and what they would say more with a feature altered.

    Parameters
    ----------
    n_rows, n_slots, n_outputs : int
        Rows; features that may be altered; classes, or 1 for targets. As new it is of no trees.

    Attributes
    ----------
    base : int64 (n_rows, n_outputs)
        Sums over trees of class shares, or of the mean whole-number target, in their units.
    effects : int64 (n_rows, n_slots * n_outputs)
        What altering the feature of a slot adds to them.
    n_votes : int64 (n_rows,)
        Trees that vote on each row.
    """

    def __init__(self, n_rows: int, n_slots: int, n_outputs: int) -> None:
        self.base = np.zeros((n_rows, n_outputs), np.int64)
        self.effects = np.zeros((n_rows, n_slots * n_outputs), np.int64)
        self.n_votes = np.zeros(n_rows, np.int64)


def add_effects(
    trees: Trees,
    slot: Ints,
    codes: NDArray[np.unsignedinteger],
    altered: NDArray[np.unsignedinteger],
    out: Effects,
    votes: Bytes = NO_VOTES,
    *,
    regression: bool = False,
    n_threads: int = 1,
) -> None:
    """Add what each tree says of each row it votes on, without the GIL.

    Parameters
    ----------
    trees : Trees
        The trees.
    slot : int64 (n_nodes,)
        Row of ``codes`` that a split looks at; negative values as in ``Trees.feature``.
    codes, altered : uint8 or uint16 (n_slots, n_rows)
        Codes of the training store, and those that each slot takes when it is altered.
    out : Effects
        Added to.
    votes : uint8 (n_trees, n_rows)
        1 where a tree votes on a row; of shape (0, 0) where all do.
    regression : bool
        Leaves hold targets.
    n_threads : int
        Threads that share the rows; they change nothing but speed.

    Raises
    ------
    ValueError
        If a tree needs a slot or class that is not there, or shapes differ.
    """
    _native.add_effects(
        *trees.asked,
        slot,
        codes.itemsize,
        _as_bytes(codes),
        _as_bytes(altered),
        votes,
        TARGET_BITS if regression else CLASS_BITS,
        out.base,
        out.effects,
        n_threads,
    )
    out.n_votes[:] += votes.sum(0, dtype=np.int64) if len(votes) else len(trees.root)


def _as_bytes(codes: NDArray[np.unsignedinteger]) -> Bytes:
    n_slots, n_rows = codes.shape
    return np.ascontiguousarray(codes).view(np.uint8).reshape(n_slots, n_rows * codes.itemsize)


def tally_changes(
    found: Effects, truth: NDArray[Any], tally: Ints, exponent: int = 0, n_threads: int = 1
) -> None:
    """Add to ``tally`` what altering each slot does to what is said of rows.

    Parameters
    ----------
    found : Effects
        Of class shares, or of targets.
    truth : int64 or float64 (n_rows,)
        The class of each row, or its target in units of ``2**exponent`` whole-number targets.
    tally : int64 (n_slots, 3)
        Rows that were voted right and are wrong when it is altered; rows that were wrong and are
        right; the probability of the true class that is lost, summed over rows, in units of
        ``2**-36``. The vote is for the class of the largest share, the first of equal ones. Rows
        on which no tree votes are left out. Of targets the last alone: what is added to the squared
        error, in the units of ``truth``.
    exponent : int
        Of targets.
    n_threads : int
        Threads that share the slots.
    """
    given = found.base, found.effects, found.n_votes, truth
    if truth.dtype.kind == "f":
        _native.tally_targets(*given, 2.0 ** -(TARGET_BITS + exponent), tally, n_threads)
    else:
        _native.tally_classes(*given, tally, n_threads)
