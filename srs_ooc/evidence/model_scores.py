"""What base models say of each feature, with standard errors: 16 bytes a feature."""

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.records import Outcome
from srs_ooc.base.state import Pages, Saved, State, n_pages, touch

_UNIT = float(2**-36)


class ModelScores:
    """Sums from which the score of a feature and its standard error follow.

    They are of float64 and added in the order of iterations, so they are the same on any number of
    threads. With n of T subspaces holding a feature, which lost x on average and the others y, its
    score is y - x and its standard error that of two means with one variance
    (:meth:`scores`). Where importances are by permutation, the score is their mean.

    Parameters
    ----------
    n_features : int
        Features of the store.
    by_subspace : bool
        Whether losses of subspaces are compared; otherwise importances are averaged.

    Attributes
    ----------
    total, squares : float64 (n_features,)
        Sum of what was seen in the subspaces that held the feature, and of its squares.
    """

    name: ClassVar[str] = "model_scores"

    def __init__(self, n_features: int, *, by_subspace: bool) -> None:
        self.by_subspace = by_subspace
        self.total, self.squares = np.zeros(n_features), np.zeros(n_features)
        self._changed = np.zeros(n_pages(n_features), np.bool_)
        self._n, self._sum, self._sum_of_squares = 0, 0.0, 0.0

    def absorb(self, iteration: int, outcome: Outcome) -> None:
        """Add one iteration; its features are distinct."""
        features = outcome.features
        if self.by_subspace:
            assert outcome.losses is not None, "a learner of base models gives losses"
            loss = float(outcome.losses[0])
            seen = np.full(len(features), loss)
            self._sum += loss
            self._sum_of_squares += loss * loss
        else:
            seen = outcome.importance * _UNIT
        self._n += 1
        self.total[features] += seen
        self.squares[features] += seen * seen
        touch(self._changed, features)

    def scores(
        self, n_drawn: NDArray[np.integer], piece: slice | NDArray[np.integer]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return scores and standard errors; NaN where there are too few subspaces for either.

        Parameters
        ----------
        n_drawn : int (n,)
            Subspaces that held each feature.
        piece : slice or int (n,)
            Which features.
        """
        n = n_drawn.astype(np.float64)
        total, squares = self.total[piece], self.squares[piece]
        with np.errstate(divide="ignore", invalid="ignore"):
            if not self.by_subspace:
                error = np.sqrt(_spread(n, total, squares) / (n * (n - 1)))
                return total / n, np.where(n > 1, error, np.nan)
            others, rest = self._n - n, self._sum - total
            without = _spread(others, rest, self._sum_of_squares - squares)
            variance = (_spread(n, total, squares) + without) / (self._n - 2)
            error = np.sqrt(variance * (1 / n + 1 / others))
            score = rest / others - total / n
        is_there = (n > 0) & (others > 0)
        found = np.where(is_there, score, np.nan)
        return found, np.where(is_there & (self._n > 2), error, np.nan)

    def state(self) -> State:
        """Return the sums."""
        pages = {name: Pages(getattr(self, name), self._changed) for name in ("total", "squares")}
        facts = {"n": self._n, "sum": self._sum, "sum_of_squares": self._sum_of_squares}
        return State(pages, facts=facts)

    def restore(self, saved: Saved) -> None:
        """Take them back."""
        if saved.facts is None:
            return
        for name in ("total", "squares"):
            saved.fill(name, getattr(self, name))
        self._n, self._sum = int(saved.facts["n"]), float(saved.facts["sum"])
        self._sum_of_squares = float(saved.facts["sum_of_squares"])


def _spread(
    n: NDArray[np.float64], total: NDArray[np.float64], squares: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the sum of squares about the mean, which rounding must not make negative."""
    return np.maximum(squares - np.where(n > 0, total * total / n, 0.0), 0.0)
