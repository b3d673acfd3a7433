"""The pooled ranking: items that stand out by themselves first, then those of the closing stage.

Trees spend their splits on company; a rank test of one item at a time does not, and on plain
additive signal it sees more. Items that pass it go first, whatever they are: which of them are
decoys is not known here either.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from srs_ooc.evidence.elimination import Elimination
from srs_ooc.evidence.marginal import strength
from srs_ooc.evidence.ranking import by_score

SHARE_ALONE = Fraction(3, 4)
"""Part of the level at which features that stand out by themselves have to pass."""


@dataclass(frozen=True)
class Pooled:
    """A ranking of items.

    Attributes
    ----------
    items : uint32 (n,)
        Best first, each once.
    closing_places : int64 (n,)
        Place of each in the closing stage; -1 for items that did not reach it.
    gaps : float64 (n,)
        By how much an item's score exceeds the next one's, in the stretch it was ranked in.
    stretches : uint8 (n,)
        Number of that stretch: the round of the closing stage, or one past the last for items that
        stand out by themselves, which are scored by minus the logarithm of their p-value.
    p_values : float64 (n_outstanding,)
        Of those that stand out by themselves, which come first.
    """

    items: NDArray[np.uint32]
    closing_places: NDArray[np.int64]
    gaps: NDArray[np.float64]
    stretches: NDArray[np.uint8]
    p_values: NDArray[np.float64]

    @property
    def n_outstanding(self) -> int:
        """How many items stand out by themselves."""
        return len(self.p_values)


def pool(
    closing: Elimination,
    outstanding: NDArray[np.uint32],
    p_values: NDArray[np.float64],
    key: int,
) -> Pooled:
    """Put outstanding items before those of a closing stage that is over.

    Parameters
    ----------
    closing : Elimination
        Not changed.
    outstanding : uint32 (m,)
        Distinct items, in any order.
    p_values : float64 (m,)
        Of their marginal tests.
    key : int
        Breaks ties, by a hash of the item.
    """
    scores = strength(p_values)
    order = by_score(scores, outstanding, key)
    first = outstanding[order]
    others = np.flatnonzero(~np.isin(closing.items, first))
    number = int(closing.rounds.max(initial=0)) + 1
    return Pooled(
        np.concatenate([first, closing.items[others]]),
        np.concatenate([_places(closing.items, first), others]),
        np.concatenate([-np.diff(scores[order], append=0.0), _gaps(closing, others)]),
        np.concatenate([np.full(len(first), number, np.uint8), closing.rounds[others]]),
        p_values[order],
    )


def _places(items: NDArray[np.uint32], wanted: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Return the place of each of ``wanted`` in ``items``, -1 where it is none."""
    order = np.argsort(items)
    at = np.minimum(np.searchsorted(items[order], wanted), len(items) - 1)
    return np.where(items[order][at] == wanted, order[at], -1)


def _gaps(closing: Elimination, places: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return the drops of score from each of ``places`` to the next of them.

    The drops between neighbours, summed: what was between them has gone ahead.
    """
    return np.add.reduceat(closing.gaps, places) if len(places) else np.zeros(0)
