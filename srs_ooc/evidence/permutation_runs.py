"""Comparing a run with its permutation runs, by the best that each reaches.

Each is looked at in two ways: the best score of its last closing round, which shows features that
are informative beside others, and the strongest marginal test. What is best is divided by its
median over the run and its permutation runs, so that the two are on one scale; the larger one
counts. The scale treats all of these runs alike: under the global null they are exchangeable, and
the chance that the run's best is above that of all but j of B permutation runs is at most
(j + 1) / (B + 1).
"""

from dataclasses import dataclass
from fractions import Fraction
from math import floor

import numpy as np
from numpy.typing import NDArray

from srs_ooc.evidence.verdict import Verdict


@dataclass(frozen=True)
class Comparison:
    """What is compared with what.

    Attributes
    ----------
    scale : float64 (2,)
        Of scores and of strengths: the medians of the bests of the run and its permutation runs.
    bests : float64 (n_permutations,)
        What each permutation run reaches, on the common scale.
    """

    scale: NDArray[np.float64]
    bests: NDArray[np.float64]

    @classmethod
    def of(cls, own: tuple[float, float], permuted: NDArray[np.float64]) -> "Comparison":
        """Return the comparison of a run's best (score, strength) with those of permutation runs.

        ``permuted`` is float64 (n_permutations, 2).
        """
        scale = np.median(np.vstack([own, permuted]), axis=0)
        return cls(scale, _on(scale, permuted).max(axis=1))

    def statistics(
        self, scores: NDArray[np.float64], strengths: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return what features with these scores and strengths reach; all float64 (n,)."""
        reached: NDArray[np.float64] = _on(self.scale, np.stack([scores, strengths], 1)).max(axis=1)
        return reached

    def levels(self, statistics: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return ``(1 + runs that reach as much) / (1 + runs)`` of each, of permutation runs."""
        ascending = np.sort(self.bests)
        n_better = len(ascending) - np.searchsorted(ascending, statistics, side="left")
        levels: NDArray[np.float64] = (1 + n_better) / (1 + len(ascending))
        return levels

    def bar(self, level: Fraction) -> float:
        """Return what must be exceeded for a level of at most ``level``."""
        n_allowed = floor(level * (1 + len(self.bests))) - 1
        return float(np.sort(self.bests)[::-1][n_allowed])


def _on(scale: NDArray[np.float64], values: NDArray[np.float64]) -> NDArray[np.float64]:
    # Where the median is 0 at most half of them show anything at all: nothing to be measured by.
    scaled = np.zeros_like(values)
    np.divide(values, scale, out=scaled, where=scale > 0)
    return scaled


def certify(
    comparison: Comparison,
    scores: NDArray[np.float64],
    strengths: NDArray[np.float64],
    level: Fraction,
) -> Verdict:
    """Certify the places of a ranking that reach more than permutation runs do at best.

    Parameters
    ----------
    comparison : Comparison
        With the permutation runs.
    scores : float64 (n,)
        By place; 0 where the place was not in the last closing round.
    strengths : float64 (n,)
        By place, of the marginal tests.
    level : Fraction
        Bound of the chance of any false feature.
    """
    reached = comparison.statistics(scores, strengths)
    is_selected = reached > comparison.bar(level)
    return Verdict(is_selected, comparison.levels(reached), int(np.count_nonzero(is_selected)))
