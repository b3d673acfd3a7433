"""What is read of the table once a closing stage is over: tests, pooled ranking, clusters."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.options import exact_share
from srs_ooc.evidence.correlation import (
    cluster_items,
    dependent_items,
    largest_cluster,
    sampled_rows,
)
from srs_ooc.evidence.rank_tests import NO_CONTRAST, least_passing, p_values_of
from srs_ooc.evidence.tally import best_of_each, largest
from srs_ooc.evidence.verdict import Comparison, Pooled, exceeds_chance, passing_level, pool
from srs_ooc.runs.item_tests import MarginalTests, item_columns
from srs_ooc.runs.resources import Resources
from srs_ooc.samplers.elimination import Elimination

CLUSTERED = 250
"""Places of the ranking that are clustered."""
OUTSTANDING = 30_000
"""Marginally significant items at most: what is known of a place takes some 200 bytes."""
_SLACK = 1e-6


@dataclass(frozen=True)
class Survey:
    """The pooled ranking, and what is known of its places besides.

    Attributes
    ----------
    ranking : Pooled
        Items with p-values as small as those of features that pass first, then the closing stage's.
    is_decoy : bool (n,)
        By place.
    cluster_numbers : int32 (n,)
        Cluster of correlated items, from 0 in the order of their best places; -1 beyond the
        places that are clustered.
    is_best : bool (n,)
        Whether no place above is of the same feature or one of its decoys.
    largest_cluster : int
        The most decoys of one cluster, among the first places below the marginally significant.
    largest_outstanding_cluster : int
        The most decoys of one cluster among the marginally significant, where these are more than
        chance.
    strengths : float32 (n,)
        Of the marginal test of the place's feature: minus the decimal logarithm of its p-value.
    contrasts : uint8 (n,)
        What that test saw (:class:`srs_ooc.evidence.rank_tests.Contrast`); none of decoys.
    marginal_cutoff : float
        The p-value up to which features pass Benjamini and Hochberg at the run's level.
    n_marginal : int
        Features that do.
    n_tested : int
        Features there are.
    comparison : Comparison or None
        With the permutation runs, where they judge.
    """

    ranking: Pooled
    is_decoy: NDArray[np.bool_]
    cluster_numbers: NDArray[np.int32]
    is_best: NDArray[np.bool_]
    largest_cluster: int
    largest_outstanding_cluster: int
    strengths: NDArray[np.float32]
    contrasts: NDArray[np.uint8]
    marginal_cutoff: float
    n_marginal: int
    n_tested: int
    comparison: Comparison | None


def survey(
    resources: Resources,
    state: Elimination,
    key: int,
    permuted: NDArray[np.float64] | None = None,
) -> Survey:
    """Make the marginal test of every item, and look at the items of the ranking.

    Parameters
    ----------
    resources : Resources
        Of the run.
    state : Elimination
        Its closing stage.
    key : int
        Breaks ties.
    permuted : float64 (n_permutations, 2), optional
        Best score and best strength of each permutation run, where they judge.
    """
    manifest = resources.manifest
    tests = MarginalTests(resources)
    n_features, level = manifest.n_features, exact_share(resources.spec.fdr)
    strengths = tests.of_all()
    tested = strengths[:n_features]
    weakest = least_passing(tested, float(level))
    comparison = None
    if permuted is not None:
        comparison = Comparison.of((best_score(state), best_strength(strengths)), permuted)
        outstanding = _above(strengths, comparison, level, key)
    elif "groups" in manifest.row_columns:
        # The tests take rows one by one; where these come in groups, chance makes many significant.
        outstanding = np.zeros(0, np.uint32)
    else:
        outstanding = _strongest(strengths, least_passing(tested, float(passing_level(level))), key)
    ranking = pool(state.items, outstanding, tests.of(outstanding), key)
    items = ranking.items
    is_decoy = items >= n_features
    contrasts = np.full(len(items), NO_CONTRAST, np.uint8)
    contrasts[~is_decoy] = tests.contrasts_of(items[~is_decoy])
    clusters = clusters_of(resources, items[:CLUSTERED])
    numbers = np.full(len(items), -1, np.int32)
    numbers[: len(clusters)] = np.unique(clusters, return_inverse=True)[1]
    return Survey(
        ranking,
        is_decoy,
        numbers,
        best_of_each(items % n_features),
        largest_decoy_cluster(resources, items, ranking.n_outstanding),
        largest_outstanding_cluster(resources, ranking),
        strengths[items % n_features],
        contrasts,
        float(p_values_of(np.array([weakest], np.float32))[0]) if weakest < np.inf else 0.0,
        int(np.count_nonzero(tested >= weakest)),
        resources.n_candidates // (1 + resources.spec.decoys),
        comparison,
    )


def best_score(state: Elimination) -> float:
    """Return the best score of the last closing round."""
    in_last = state.rounds == state.rounds.max()
    return float(state.scores.max(where=in_last, initial=0.0))


def best_strength(strengths: NDArray[np.float32]) -> float:
    """Return the best strength of any item that is tested."""
    return float(np.nanmax(strengths))


def _above(
    strengths: NDArray[np.float32], comparison: Comparison, level: Fraction, key: int
) -> NDArray[np.uint32]:
    """Return the items whose marginal strength is above what permutation runs reach."""
    # Few are looked at: eight bytes for each of all would break the memory plan.
    bound = max(0.0, float(comparison.scale[1]) * comparison.bar(level))
    items = _strongest(strengths, bound * (1 - _SLACK), key)
    found = strengths[items].astype(np.float64)
    reached = comparison.statistics(np.zeros(len(items)), found)
    return items[reached > comparison.bar(level)]


def _strongest(strengths: NDArray[np.float32], bound: float, key: int) -> NDArray[np.uint32]:
    """Return the items with strengths from ``bound`` on, strongest first; at most OUTSTANDING."""
    if bound == np.inf:
        return np.zeros(0, np.uint32)

    def scores(piece: slice) -> NDArray[np.float64]:
        found = strengths[piece].astype(np.float64)
        return np.where(np.isnan(found), -np.inf, found)

    items = largest(scores, len(strengths), OUTSTANDING, key)
    return items[strengths[items] >= bound]


def largest_decoy_cluster(
    resources: Resources, items: NDArray[np.uint32], n_outstanding: int
) -> int:
    """Return the c of a ranking: the most correlated decoys among those that count.

    Looked for in the first ``CLUSTERED`` places below the ``n_outstanding`` first.
    """
    place = slice(n_outstanding, n_outstanding + CLUSTERED)
    members = ((items >= resources.n_features) & best_of_each(items % resources.n_features))[place]
    if not members.any():
        return 1
    return largest_cluster(dependent_items(*_codes_of(resources, items[place])), members)


def largest_outstanding_cluster(resources: Resources, ranking: Pooled) -> int:
    """Return the most correlated decoys among the first that are marginally significant.

    Of these ``CLUSTERED`` are looked at. 1 where these are no more than chance allows: no columns
    are read then.
    """
    items, n_families = ranking.items[: ranking.n_outstanding], resources.spec.decoys
    is_decoy = items >= resources.n_features
    n_tested = resources.n_candidates // (1 + n_families)
    allowed = n_tested * ranking.p_values
    if not exceeds_chance(is_decoy, n_families, 1, allowed).any():
        return 1
    decoys = items[is_decoy][:CLUSTERED]
    clusters = dependent_items(*_codes_of(resources, decoys))
    return largest_cluster(clusters, np.ones(len(decoys), np.bool_))


def clusters_of(resources: Resources, items: NDArray[np.uint32]) -> NDArray[np.intp]:
    """Return the cluster of rank-correlated items that each is in, by its first place."""
    return cluster_items(*_codes_of(resources, items))


def _codes_of(resources: Resources, items: NDArray[np.uint32]) -> tuple[NDArray[Any], int]:
    """Return the codes of items in the rows that are enough to tell, and that of missing values."""
    rows = sampled_rows(resources.n_rows)
    codes = np.concatenate([columns[:, rows] for columns in item_columns(resources, items)])
    return codes, resources.manifest.missing_code
