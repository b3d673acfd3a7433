"""Cuts: which features are selected, given one closed ranking or several."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from srs_ooc.evidence.tally import best_of_each
from srs_ooc.evidence.verdict import Verdict, count_decoys

LEVEL = 0.1


@dataclass(frozen=True)
class Ranking:
    """A closed ranking.

    Attributes
    ----------
    items : uint32 (n,)
        By rank; numbers from ``n_features`` on are decoys.
    largest : int64 ()
        c.
    expected : float64 (m,)
        False features that the tests of those that stand out by themselves expect.
    n_families, n_features : int
        M and p.
    """

    items: NDArray[np.uint32]
    largest: NDArray[np.int64]
    expected: NDArray[np.float64]
    n_families: int
    n_features: int

    @property
    def is_decoy(self) -> NDArray[np.bool_]:
        """Which places are of decoys."""
        return self.items >= self.n_features

    def verdict(self, level: float) -> Verdict:
        """Count decoys."""
        is_best = best_of_each(self.items % self.n_features)
        return count_decoys(
            self.is_decoy,
            self.n_families,
            int(self.largest),
            level,
            is_best,
            expected=self.expected,
        )


Cut = Callable[[Sequence[Ranking]], NDArray[np.uint32]]
"""``cut(rankings)``: the features selected at LEVEL, by stored position."""


def by_counting(rankings: Sequence[Ranking]) -> NDArray[np.uint32]:
    """Select by counting the decoys of one ranking."""
    (ranking,) = rankings
    return ranking.items[ranking.verdict(LEVEL).is_selected]


def e_values(ranking: Ranking, level: float) -> NDArray[np.float64]:
    """Return the e-value of each feature; float64 (n_features,).

    Above the cut at ``level`` it is p by the false features estimated there, elsewhere 0: the sum
    over false features is p at most in expectation where they are estimated by counting (Ren and
    Barber 2023, derandomised knockoffs, Section 3).
    """
    values = np.zeros(ranking.n_features)
    verdict = ranking.verdict(level)
    if verdict.n_above:
        chosen = ranking.items[verdict.is_selected]
        n_false = verdict.levels[verdict.n_above - 1] * len(chosen)
        values[chosen] = ranking.n_features / n_false
    return values


def e_bh(values: NDArray[np.float64], level: float) -> NDArray[np.intp]:
    """Return the places that pass the e-BH procedure of Wang and Ramdas (2022)."""
    order = np.argsort(-values, kind="stable")
    wanted = len(values) / (level * np.arange(1, len(values) + 1))
    passing = np.flatnonzero(values[order] >= wanted)
    return order[: passing[-1] + 1] if len(passing) else order[:0]


def by_e_values(run_level: float) -> Cut:
    """Return the cut by the mean e-value of runs that are each cut at ``run_level``."""

    def cut(rankings: Sequence[Ranking]) -> NDArray[np.uint32]:
        mean = np.mean([e_values(ranking, run_level) for ranking in rankings], axis=0)
        return e_bh(mean, LEVEL).astype(np.uint32)

    return cut
