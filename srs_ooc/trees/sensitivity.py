"""What saved trees would say of rows if one feature had another value, natively.

A tree's say of a row changes only for features on the row's path, so one walk of each tree by each
row finds the effects of all features: about depth squared steps, whatever the number of features.
All sums are of whole numbers, so that they do not depend on the order of rows, trees or threads.
:mod:`srs_ooc.trees.sensitivity_reference` is the twin of this module.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from srs_ooc.native import _native
from srs_ooc.trees.forest import Trees

CLASS_BITS, TARGET_BITS = 36, 16
"""What a leaf says is counted in units of ``2**-bits``: class shares, or whole-number targets."""
CHANGE_BITS = 36
"""Changes of probability and of squared error are counted in units of ``2**-36``."""
NO_VOTES = np.zeros((0, 0), np.uint8)
"""Every tree votes on every row."""


@dataclass(frozen=True)
class Effects:
    """What trees say of some rows, and what they would say more with a feature altered.

    Attributes
    ----------
    base : int64 (n_rows, n_outputs)
        Sums over trees of class shares, or of the mean whole-number target, in their units.
    effects : int64 (n_rows, n_slots * n_outputs)
        What altering the feature of a slot adds to them.
    n_votes : int64 (n_rows,)
        Trees that vote on each row.
    """

    base: NDArray[np.int64]
    effects: NDArray[np.int64]
    n_votes: NDArray[np.int64]

    @classmethod
    def none(cls, n_rows: int, n_slots: int, n_outputs: int) -> "Effects":
        """Return those of no trees."""
        return cls(
            np.zeros((n_rows, n_outputs), np.int64),
            np.zeros((n_rows, n_slots * n_outputs), np.int64),
            np.zeros(n_rows, np.int64),
        )

    @property
    def n_outputs(self) -> int:
        """Classes; 1 of a regression."""
        return int(self.base.shape[1])

    def clear(self) -> None:
        """Forget all trees."""
        for array in (self.base, self.effects, self.n_votes):
            array[:] = 0


def row_nbytes(n_slots: int, n_outputs: int, code_nbytes: int) -> int:
    """Return the bytes of a row: its codes, as they are and altered, and its :class:`Effects`."""
    return n_slots * (2 * code_nbytes + 8 * n_outputs) + 8 * n_outputs + 64


def add_effects(
    trees: Trees,
    slot: NDArray[np.int64],
    codes: NDArray[np.unsignedinteger],
    altered: NDArray[np.unsignedinteger],
    out: Effects,
    votes: NDArray[np.uint8] = NO_VOTES,
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
        trees.root,
        slot,
        trees.code,
        trees.right,
        trees.n_rows,
        trees.how,
        trees.hash,
        trees.pair_class,
        trees.pair_count,
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


def _as_bytes(codes: NDArray[np.unsignedinteger]) -> NDArray[np.uint8]:
    n_slots, n_rows = codes.shape
    raw: NDArray[np.uint8] = np.ascontiguousarray(codes).view(np.uint8)
    return raw.reshape(n_slots, n_rows * codes.itemsize)


def tally_classes(
    found: Effects, truth: NDArray[np.int64], tally: NDArray[np.int64], n_threads: int = 1
) -> None:
    """Add to ``tally`` what altering each slot does to the vote for the true class.

    Parameters
    ----------
    found : Effects
        Of class shares.
    truth : int64 (n_rows,)
        The class of each row.
    tally : int64 (n_slots, 3)
        Rows that were voted right and are wrong when it is altered; rows that were wrong and are
        right; the probability of the true class that is lost, summed over rows, in units of
        ``2**-36``. The vote is for the class of the largest share, the first of equal ones. Rows
        on which no tree votes are left out.
    n_threads : int
        Threads that share the slots.
    """
    _native.tally_classes(found.base, found.effects, found.n_votes, truth, tally, n_threads)


def tally_targets(
    found: Effects,
    truth: NDArray[np.float64],
    exponent: int,
    tally: NDArray[np.int64],
    n_threads: int = 1,
) -> None:
    """Add to the last column of ``tally`` what altering each slot adds to the squared error.

    ``truth`` is in units of ``2**exponent`` whole-number targets, and so is the error.
    """
    unit = 2.0 ** -(TARGET_BITS + exponent)
    _native.tally_targets(found.base, found.effects, found.n_votes, truth, unit, tally, n_threads)
