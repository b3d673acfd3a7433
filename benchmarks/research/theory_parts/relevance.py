"""Relevance, strong relevance, degree and Markov boundaries (Section 2.1), by enumeration."""

from collections.abc import Iterator
from itertools import combinations

from theory_parts.distributions import Distribution, Features


def subsets(features: Features) -> Iterator[Features]:
    """Yield every subset, smallest first."""
    ordered = sorted(features)
    for size in range(len(ordered) + 1):
        for chosen in combinations(ordered, size):
            yield frozenset(chosen)


def degree(distribution: Distribution, feature: int) -> int | None:
    """Return the size of the smallest B with Y dependent on X given B; None if irrelevant.

    Definitions 1 and 3.
    """
    for conditioning in subsets(distribution.features - {feature}):
        if not distribution.independent({feature}, conditioning):
            return len(conditioning)
    return None


def relevant_features(distribution: Distribution) -> Features:
    """Return the features that are relevant (Definition 1)."""
    return frozenset(
        feature for feature in distribution.features if degree(distribution, feature) is not None
    )


def strongly_relevant_features(distribution: Distribution) -> Features:
    """Return the features on which Y depends given all the others (Definition 2)."""
    every = distribution.features
    return frozenset(x for x in every if not distribution.independent({x}, every - {x}))


def minimal_conditionings(distribution: Distribution, feature: int) -> list[Features]:
    """Return every B with Y dependent on the feature given B and given no proper subset of B."""
    minimal: list[Features] = []
    for conditioning in subsets(distribution.features - {feature}):
        covered = any(smaller <= conditioning for smaller in minimal)
        if not covered and not distribution.independent({feature}, conditioning):
            minimal.append(conditioning)
    return minimal


def markov_boundaries(distribution: Distribution) -> list[Features]:
    """Return every M with Y independent of the rest given M, and no proper subset of M such."""
    every = distribution.features
    boundaries: list[Features] = []
    for chosen in subsets(every):
        covered = any(smaller <= chosen for smaller in boundaries)
        if not covered and distribution.independent(every - chosen, chosen):
            boundaries.append(chosen)
    return boundaries
