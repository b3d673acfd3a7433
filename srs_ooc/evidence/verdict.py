"""The final verdict: where the ranking is cut. Only here are decoys distinguished from features.

The pooled ranking has marginally significant items first, then those of the closing stage. It is
cut by counting decoys, or by comparing the run with its permutation runs.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import floor

import numpy as np
from numpy.typing import NDArray

from srs_ooc.evidence.rank_tests import p_values_of
from srs_ooc.evidence.tally import by_score
from srs_ooc.native.numerics import log, logs

# The final verdict: where the ranking is cut. Only here are decoys distinguished from features.
#
# Counting. Of a feature and its decoys the best ranked counts. Of the k features at or above a
# place, as many are false as there are decoys, on average and per family. With D decoys of M
# families there, the share of false features is estimated by ``(c + D) / (M k)``, where c is the
# size of the largest cluster of correlated decoys: decoys and false features come in such clusters,
# and the first one alone may be either. With c = 1 this is the estimate of knockoffs+ (Barber and
# Candes 2015, Ann. Statist. 43, Section 1.3).
#
# Marginally significant items, at the top of the ranking, are not counted: of m features tested, m
# p are expected to have p-values of at most p if none is informative, and so many are taken to be
# false there (Benjamini and Hochberg 1995). Below them that number and the count are added. Decoys
# have the margins of their features and are tested alike: where more of them are significant than
# chance allows, they are counted there too.

CHANCE = 1e-3
"""Of more decoys standing out at a place, if the tests hold, than are allowed there."""
_NONE_EXPECTED = np.zeros(0)


@dataclass(frozen=True)
class Verdict:
    """What is said of each place of the ranking.

    Attributes
    ----------
    is_selected : bool (n,)
        Never of decoys, nor of features that one of theirs is above.
    levels : float64 (n,)
        The smallest level at which this ranking would be cut below the place; at most 1.
    n_above : int
        Places at or above the cut.
    """

    is_selected: NDArray[np.bool_]
    levels: NDArray[np.float64]
    n_above: int


def exceeds_chance(
    is_decoy: NDArray[np.bool_],
    n_families: int,
    largest_cluster: int,
    expected: NDArray[np.float64],
) -> NDArray[np.bool_]:
    """Return where more decoys are marginally significant than tests and chance allow.

    With lambda expected and clusters of at most c that come together, D or more have a chance of at
    most ``exp(-(D log(D / lambda) - D + lambda) / c)`` (Chernoff; Bennett 1962, J. Am. Statist.
    Ass. 57, for sums of independent numbers from 0 to c).

    Parameters
    ----------
    is_decoy : bool (m,)
        By place.
    n_families : int
        M.
    largest_cluster : int
        c.
    expected : float64 (m,)
        False features expected at or above each place, so many decoys of each family as well.

    Returns
    -------
    bool (m,)
        Whether that bound is below ``CHANCE``.
    """
    n_decoys, allowed = np.cumsum(is_decoy), n_families * expected
    least = np.finfo(np.float64).tiny
    log_ratio = logs(np.maximum(n_decoys, 1)) - logs(np.maximum(allowed, least))
    exponent = n_decoys * log_ratio - n_decoys + allowed
    exceeds: NDArray[np.bool_] = (n_decoys > allowed) & (exponent > -largest_cluster * log(CHANCE))
    return exceeds


def count_decoys(
    is_decoy: NDArray[np.bool_],
    n_families: int,
    largest_cluster: int,
    level: float,
    is_best: NDArray[np.bool_],
    expected: NDArray[np.float64] = _NONE_EXPECTED,
    largest_outstanding: int = 1,
    passing_level: float = 0.0,
) -> Verdict:
    """Cut a pooled ranking by counting its decoys, below the places that tests speak for.

    Parameters
    ----------
    is_decoy : bool (n,)
        By place.
    n_families : int
        M.
    largest_cluster : int
        c.
    level : float
        Bound of the expected share of false features.
    is_best : bool (n,)
        Whether no place above is of the same feature or one of its decoys. Of those below the first
        m, others neither count nor are selected.
    expected : float64 (m,)
        False features at or above each of the first m places as their tests expect, ascending.
    largest_outstanding : int
        The largest cluster of correlated decoys among the first m places.
    passing_level : float
        Of the features among the first m places, so large a share is taken to be false below them,
        if their tests expect no more: the bar that they passed was set for it.
    """
    n_tested = len(expected)
    first = is_decoy[:n_tested]
    exceeds = exceeds_chance(first, n_families, largest_outstanding, expected)
    beside = (largest_outstanding + np.cumsum(first)) / n_families
    tested = np.where(exceeds, np.maximum(expected, beside), expected)
    # Decoys below the last such feature say nothing of how many features are false.
    is_last = exceeds | ~first
    above = max(float(tested[is_last][-1:].sum()), passing_level * np.count_nonzero(~first))
    counts = is_best | (np.arange(len(is_decoy)) < n_tested)
    n_decoys = np.cumsum((is_decoy & counts)[n_tested:])
    counted = (largest_cluster + n_decoys) / n_families + above
    # Where nothing is relevant all features together are ahead of all families with a chance of
    # 1 / (1 + M), however features are correlated: so the first place that counts is a feature's.
    if is_decoy[n_tested:][counts[n_tested:]][:1].any():
        counted[:] = np.inf
    n_false = np.concatenate([tested, counted])
    n_features = np.cumsum(~is_decoy & counts)
    estimate = np.where(n_features > 0, n_false / np.maximum(n_features, 1), np.inf)
    levels = np.minimum(np.minimum.accumulate(estimate[::-1])[::-1], 1.0)
    levels[~counts] = 1.0
    passing = np.flatnonzero(estimate <= level)
    n_above = int(passing[-1]) + 1 if len(passing) else 0
    is_selected = (np.arange(len(is_decoy)) < n_above) & ~is_decoy & counts
    return Verdict(is_selected, levels, n_above)


def fewest_features(n_families: int, largest_cluster: int, level: float) -> int:
    """Return the fewest features that counting can select at ``level``, if no decoy is above."""
    k = 1
    while largest_cluster / (n_families * k) > level:
        k += 1
    return k


# The pooled ranking: marginally significant items first, then those of the closing stage.
#
# Trees spend their splits on the other features of a subspace; a rank test of one item at a time
# does not, and has more power for plain additive signal. The largest p-value at which features pass
# among features is a bar: items with p-values up to it go first, features and decoys alike.

SHARE_ALONE = Fraction(3, 4)
"""x, as a part of the level: see :func:`passing_level`."""


def passing_level(level: Fraction) -> Fraction:
    """Return the level at which features must pass Benjamini and Hochberg to be outstanding.

    x / (1 - x): what is left of the level is for those that trees see.
    """
    x = level * SHARE_ALONE
    return x / (1 - x)


@dataclass(frozen=True)
class PooledRanking:
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
) -> PooledRanking:
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
    return PooledRanking(
        np.concatenate([first, closing[others]]),
        np.concatenate([_places(closing, first), others]),
        strengths[order],
    )


def _places(items: NDArray[np.uint32], wanted: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Return the place of each of ``wanted`` in ``items``, -1 where it is none."""
    order = np.argsort(items)
    at = np.minimum(np.searchsorted(items[order], wanted), len(items) - 1)
    return np.where(items[order][at] == wanted, order[at], -1)


# Comparing a run with its permutation runs, by the best that each reaches.
#
# Each is looked at in two ways: the best score of its last closing round, which shows features that
# are informative beside others, and the strongest marginal test. What is best is divided by its
# median over the run and its permutation runs, so that the two are on one scale; the larger one
# counts. The scale treats all of these runs alike: under the global null they are exchangeable, and
# the chance that the run's best is above that of all but j of B permutation runs is at most (j + 1)
# / (B + 1).


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
