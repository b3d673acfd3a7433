"""The final verdict: where the ranking is cut. Only here are decoys distinguished from features.

Counting. Of a feature and its decoys the best ranked counts. Of the k features at or above a
place, as many are false as there are decoys, on average and per family. With D decoys of M families
there, the share of false features is estimated by ``(c + D) / (M k)``, where c is the size of the
largest cluster of correlated decoys: decoys and false features come in such clusters, and the first
one alone may be either. With c = 1 this is the estimate of knockoffs+ (Barber and Candes 2015, Ann.
Statist. 43, Section 1.3).

Marginally significant items, at the top of the ranking, are not counted: of m features
tested, m p are expected to have p-values of at most p if none is informative, and so many are taken
to be false there (Benjamini and Hochberg 1995). Below them that number and the count are added.
Decoys have the margins of their features and are tested alike: where more of them are significant
than chance allows, they are counted there too.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from srs_ooc.native.numerics import log, logs

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
    if not _begins_with_feature(is_decoy, counts, n_tested):
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


def _begins_with_feature(
    is_decoy: NDArray[np.bool_], counts: NDArray[np.bool_], n_tested: int
) -> bool:
    """Return whether the first place that is counted is a feature's.

    Where nothing is relevant all features together are then ahead of all families, which has a
    chance of 1 / (1 + M) however features are correlated.
    """
    first = np.flatnonzero(counts[n_tested:])[:1]
    return not is_decoy[n_tested:][first].any()


def fewest_features(n_families: int, largest_cluster: int, level: float) -> int:
    """Return the fewest features that counting can select at ``level``, if no decoy is above."""
    k = 1
    while largest_cluster / (n_families * k) > level:
        k += 1
    return k
