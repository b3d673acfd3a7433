"""The pooled ranking: marginally significant items first, then those of the closing stage.

Trees spend their splits on the other features of a subspace; a rank test of one item at a time does
not, and has more power for plain additive signal. The largest p-value at which features pass among
features is a bar: items with p-values up to it go first, features and decoys alike.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from srs_ooc.evidence.marginal import p_values_of
from srs_ooc.evidence.ranking import by_score

SHARE_ALONE = Fraction(3, 4)
"""x, as a part of the level: see :func:`passing_level`."""


def passing_level(level: Fraction) -> Fraction:
    """Return the level at which features must pass Benjamini and Hochberg to be outstanding.

    x / (1 - x): what is left of the level is for those that trees see.
    """
    x = level * SHARE_ALONE
    return x / (1 - x)


@dataclass(frozen=True)
class Pooled:
    """A ranking of items.

    Attributes
    ----------
    items : uint32 (n,)
        Best first, each once.
    closing_places : int64 (n,)
        Place of each in the closing stage; -1 for items that did not reach it.
    strengths : float32 (n_outstanding,)
        Minus the decimal logarithms of the p-values of those that are marginally significant, which
        come first.
    """

    items: NDArray[np.uint32]
    closing_places: NDArray[np.int64]
    strengths: NDArray[np.float32]

    @property
    def p_values(self) -> NDArray[np.float64]:
        """The p-values of the marginally significant items."""
        return p_values_of(self.strengths)

    @property
    def n_outstanding(self) -> int:
        """How many items are marginally significant."""
        return len(self.strengths)


def pool(
    closing: NDArray[np.uint32],
    outstanding: NDArray[np.uint32],
    strengths: NDArray[np.float32],
    key: int,
) -> Pooled:
    """Put outstanding items before those of a closing stage.

    Parameters
    ----------
    closing : uint32 (c,)
        Items of the closing stage by rank.
    outstanding : uint32 (m,)
        Distinct items, in any order.
    strengths : float32 (m,)
        Of their marginal tests.
    key : int
        Breaks ties, by a hash of the item.
    """
    order = by_score(strengths.astype(np.float64), outstanding, key)
    first = outstanding[order]
    others = np.flatnonzero(~np.isin(closing, first))
    return Pooled(
        np.concatenate([first, closing[others]]),
        np.concatenate([_places(closing, first), others]),
        strengths[order],
    )


def _places(items: NDArray[np.uint32], wanted: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Return the place of each of ``wanted`` in ``items``, -1 where it is none."""
    order = np.argsort(items)
    at = np.minimum(np.searchsorted(items[order], wanted), len(items) - 1)
    return np.where(items[order][at] == wanted, order[at], -1)
