"""What a method ranks features by, where it is not their importance."""

import numpy as np

from srs_ooc.base.state import Saved, State


class MethodScores:
    """Scores that a method learnt, read from its part of a ledger.

    Parameters
    ----------
    n_features : int
        Features of the store.

    Attributes
    ----------
    array : float64 (n_features,)
        The scores by stored position; 0 until they are read.
    """

    def __init__(self, n_features: int) -> None:
        self.array = np.zeros(n_features)

    def state(self) -> State:
        """Return nothing: they are only read."""
        return State()

    def restore(self, saved: Saved) -> None:
        """Take the scores from what was committed."""
        saved.fill("score", self.array)
