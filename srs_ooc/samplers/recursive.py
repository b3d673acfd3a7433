"""Recursive elimination by sensitivity (RFEST): train, score, drop the lowest, and again.

The rounds are those of :mod:`srs_ooc.samplers.elimination`: all items still in are grown together,
each tree on a random part of them, and the lower half then leaves. What differs is what an item is
scored by: not how much its splits decrease impurity in the rows of a tree, but how much worse the
tree does, on the rows that it was not grown on, when the item is altered. An item that only fits
noise gains nothing there, however often it is split on; a score may be below zero.

How many features leave in a round, and when to stop, is not in the supplement: a half, and as in
the other stage. Nothing here knows which items are decoys.
"""

from typing import ClassVar

from srs_ooc.samplers.base import SENSITIVITY
from srs_ooc.samplers.elimination import Elimination, Manner

BY_SENSITIVITY = Manner(((0.3, 0.7),), 0.01)
"""One kind of tree, which sees more and more of what is left: losses of several kinds, which may be
below zero, have no common measure."""


class SensitivityElimination(Elimination):
    """A sampler of shrinking rounds, by sensitivity; parameters as of :class:`Elimination`.

    Attributes
    ----------
    scores : float64 (n,)
        Mean loss that altering an item brings, in the last round each was in, in units of
        ``2**-36``: of the probability of the true class, or of R2.
    """

    needs: ClassVar[frozenset[str]] = frozenset({SENSITIVITY})
