"""Which of the trees that a run keeps predict, and how they are combined."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Ensemble:
    """The trees of a run that predict.

    Attributes
    ----------
    first : int
        The first of them, by its place among the trees kept.
    count : int or None
        How many; None for all that follow.
    votes : bool
        Of classes, whether each tree votes for the likeliest class of its leaf, the first of equal
        ones; else their class shares are averaged. Predictions of a regression are averaged.
    cutoff : float or None
        Of two classes, the mean vote above which the second one is said; None for the likeliest.
    """

    first: int = 0
    count: int | None = None
    votes: bool = False
    cutoff: float | None = None

    def places(self, first: int, n_trees: int) -> slice:
        """Return which of ``n_trees`` trees, of which one is at ``first``, are of the ensemble."""
        stop = n_trees if self.count is None else self.first + self.count - first
        return slice(max(0, self.first - first), max(0, min(n_trees, stop)))

    def chosen(self, shares: NDArray[np.float64]) -> NDArray[np.intp]:
        """Return the class of each row, from its mean shares or votes (n_rows, n_classes)."""
        if self.cutoff is not None and shares.shape[1] == 2:
            above: NDArray[np.bool_] = shares[:, 1] > self.cutoff
            return above.astype(np.intp)
        most: NDArray[np.intp] = shares.argmax(axis=1)
        return most
