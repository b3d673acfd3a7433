"""Accumulated evidence per feature, and the ranking that is read from it.

A tally takes 12 or 16 bytes a feature, and its sums do not depend on their order. Beside it stands
what watches it in the course of a run: what led it when, and what base models say of each feature.
"""

from collections.abc import Callable
from typing import ClassVar

import numpy as np

from srs_ooc.base.arrays import Floats, Indices, Integers, Uints32
from srs_ooc.base.records import PAGE_ITEMS, Outcome, Pages, Saved, State, n_pages, touch
from srs_ooc.base.seeds import derive_array
from srs_ooc.native import _native


class Tally:
    """What the iterations so far taught of each feature, by stored position.

    Parameters
    ----------
    n_features : int
        Number of features of the store.
    wins : bool
        Whether wins over a probe are counted.

    Attributes
    ----------
    importance : int64 (n_features,)
        Sum of MDI importances over the trees, in units of ``2**-36`` (Eq. 1 times their number).
    n_drawn : uint32 (n_features,)
        Subspaces the feature was in, whatever the number of trees on each.
    n_better : uint32 (n_features,)
        Subspaces in which it was strictly more important than the probe; empty without ``wins``.
    """

    def __init__(self, n_features: int, *, wins: bool = True) -> None:
        self.importance = np.zeros(n_features, dtype=np.int64)
        self.n_drawn = np.zeros(n_features, dtype=np.uint32)
        self.n_better = np.zeros(n_features if wins else 0, dtype=np.uint32)
        self._changed = np.zeros(n_pages(n_features), dtype=np.bool_)

    def absorb(self, iteration: int, outcome: Outcome) -> None:
        """Add one iteration; its features are distinct."""
        probe = outcome.probe_importance
        _native.add_outcome(
            outcome.features,
            outcome.importance,
            0 if probe is None else probe,
            self.importance,
            self.n_drawn,
            self.n_better[:0] if probe is None else self.n_better,
            self._changed,
            PAGE_ITEMS,
        )

    def state(self) -> State:
        """Return the arrays, of which the pages drawn from since the last commit changed."""
        names = ("importance", "n_drawn", "n_better")
        return State({name: Pages(getattr(self, name), self._changed) for name in names})

    def restore(self, saved: Saved) -> None:
        """Fill the arrays with what was committed."""
        for name, pages in self.state().pages.items():
            saved.fill(name, pages.array)


# Ranking features by what a tally says of them.

_PIECE = 1 << 16


def mean_importance(tally: Tally, features: Integers | slice) -> Floats:
    """Return total importance over times drawn, in units of ``2**-36``; -1 where never drawn."""
    n_drawn = tally.n_drawn[features]
    out = np.full(len(n_drawn), -1.0)
    np.divide(tally.importance[features], n_drawn, out=out, where=n_drawn > 0)
    return out


def by_score(scores: Floats, features: Integers, key: int) -> Indices:
    """Return the places of ``features`` by descending score, equal ones in random order."""
    return np.lexsort((derive_array(key, features), -scores))


def best_features(tally: Tally, count: int, key: int) -> Uints32:
    """Return the ``count`` features of the largest mean importance, best first.

    Features never drawn come last; ties are broken by a hash under ``key``.
    """
    return largest(lambda piece: mean_importance(tally, piece), len(tally.n_drawn), count, key)


def largest(scores_of: Callable[[slice], Floats], n_features: int, count: int, key: int) -> Uints32:
    """Return the ``count`` features with the largest scores, best first; ties as a hash has it.

    Piece by piece, as ``scores_of`` gives them: memory does not grow with the number of features.
    """
    features, scores = np.zeros(0, np.uint32), np.zeros(0)
    for start in range(0, n_features, _PIECE):
        found = scores_of(slice(start, start + _PIECE))
        places = np.arange(len(found))
        if len(features) == count:
            places = np.flatnonzero(found >= scores[-1])
        features = np.concatenate([features, (start + places).astype(np.uint32)])
        scores = np.concatenate([scores, found[places]])
        order = by_score(scores, features, key)[:count]
        features, scores = features[order], scores[order]
    return features


# What led the ranking at a few points of a run, so that its course can be shown later.

HISTORY_FIRST = 100
"""Iterations before the first point."""
HISTORY_GROWTH = 4, 3
"""Each point comes after so many thirds of the iterations of the last: 49 points by 10**8."""
LEADING = 100
"""Features that are kept of each."""


class RankingHistory:
    """Keeps the first features of a ranking, best first, at points ever further apart.

    Parameters
    ----------
    tally : Tally
        What the features are ranked by; it has absorbed an outcome before this does.
    key : int
        64-bit key that breaks ties of the ranking.
    """

    name: ClassVar[str] = "ranking_history"

    def __init__(self, tally: Tally, key: int) -> None:
        self._tally, self._key = tally, key
        self._iterations: list[int] = []
        self._features: list[Uints32] = []

    def absorb(self, iteration: int, outcome: Outcome) -> None:
        """Keep what leads after ``iteration`` (from 0), if it is time to."""
        n_done = iteration + 1
        if n_done >= self._next:
            self._iterations.append(n_done)
            self._features.append(best_features(self._tally, LEADING, self._key))

    @property
    def _next(self) -> int:
        last = self._iterations[-1] if self._iterations else 0
        return max(HISTORY_FIRST, -(-last * HISTORY_GROWTH[0] // HISTORY_GROWTH[1]))

    def state(self) -> State:
        """Return the points so far: iterations (n,), features (n, at most LEADING)."""
        if not self._iterations:
            return State()
        iterations = np.array(self._iterations, np.int64)
        return State(arrays={"iterations": iterations, "features": np.array(self._features)})

    def restore(self, saved: Saved) -> None:
        """Take them back; a run that was begun without starts where it is."""
        if arrays := saved.arrays:
            self._iterations = arrays["iterations"].tolist()
            self._features = list(arrays["features"])


# What base models say of each feature, with standard errors: 16 bytes a feature.

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

    def scores(self, n_drawn: Integers, piece: slice | Integers) -> tuple[Floats, Floats]:
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


def _spread(n: Floats, total: Floats, squares: Floats) -> Floats:
    """Return the sum of squares about the mean, which rounding must not make negative."""
    return np.maximum(squares - np.where(n > 0, total * total / n, 0.0), 0.0)
