"""Importances of totally randomized trees on random subspaces (Eq. 2), exact, with Gini impurity.

Once by growing the trees, once by the sum of Eq. (2), with the factor 1/(p - k) that its print
lacks. Louppe et al. (2013) state the sum with mutual informations; the argument uses only that
decreases add up along a branch, so it holds for Gini decreases, which are rational.
"""

from fractions import Fraction
from itertools import combinations
from math import comb

from theory_parts.distributions import Distribution, Features
from theory_parts.trees import Cells, children, decrease


def importance_by_trees(distribution: Distribution, feature: int, subspace_size: int) -> Fraction:
    """Return the mean importance of a feature over all subspaces of q and all trees with K = 1.

    Each node is split on one of the features of Q not yet used, uniformly, until none is left; a
    feature constant at a node counts as any other (it leaves the node as it was).
    """

    def grow(cells: Cells, unused: Features) -> Fraction:
        total = Fraction(0)
        for chosen in unused:
            if chosen == feature:
                total += decrease(cells, feature)
            else:
                parts = children(cells, chosen)
                total += sum(grow(part, unused - {chosen}) for part in parts)
        return total / len(unused) if unused else total

    subspaces = list(combinations(range(distribution.n_features), subspace_size))
    grown = sum(
        (grow(distribution.cells, frozenset(q)) for q in subspaces if feature in q),
        start=Fraction(0),
    )
    return grown / (len(subspaces) * distribution.total)


def importance_by_sum(distribution: Distribution, feature: int, subspace_size: int) -> Fraction:
    """Return the sum over k < q of 1/C(p, k) 1/(p - k) times the decreases given each B of size k.

    Eq. (2) with its missing factor: k!(p - k - 1)!/p! is the probability that a random order of
    the p features starts with B, in any order, then X; its first q features are the subspace.
    """
    p = distribution.n_features
    others = sorted(distribution.features - {feature})
    total = Fraction(0)
    for size in range(subspace_size):
        level = sum(
            (conditional_decrease(distribution, feature, b) for b in combinations(others, size)),
            start=Fraction(0),
        )
        total += level / (comb(p, size) * (p - size))
    return total


def conditional_decrease(
    distribution: Distribution, feature: int, given: tuple[int, ...]
) -> Fraction:
    """Return the decrease from a split on the feature, averaged over the values of ``given``."""
    nodes = [distribution.cells]
    for chosen in given:
        nodes = [part for node in nodes for part in children(node, chosen)]
    return sum((decrease(node, feature) for node in nodes), start=Fraction(0)) / distribution.total
