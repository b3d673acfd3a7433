"""Every tree that can be grown on a subspace with infinite samples (Sections 2.2 and 4.1).

Features are discrete and splits multi-way: one child per value. At a node that is not pure, K of
the features not constant there are drawn and the best decrease of Gini impurity splits it; equal
bests, zeros included, are chosen among at random. Gini decreases are exact rationals, and zero
exactly when Y is independent of the feature at the node, as with Shannon entropy.
"""

from collections import defaultdict
from fractions import Fraction

from theory_parts.distributions import Distribution, Features, Values

Cells = tuple[tuple[Values, int, int], ...]
Outcomes = frozenset[Features]
NOTHING: Outcomes = frozenset({frozenset()})


def children(cells: Cells, feature: int) -> list[Cells]:
    """Return the cells of each value of ``feature``, in the order of the values."""
    parts: dict[int, list[tuple[Values, int, int]]] = defaultdict(list)
    for cell in cells:
        parts[cell[0][feature]].append(cell)
    return [tuple(parts[value]) for value in sorted(parts)]


def purity(cells: Cells) -> Fraction:
    """Return the sum over classes of (class weight)**2 / (node weight): weight minus impurity."""
    classes: dict[int, int] = defaultdict(int)
    for _, y, weight in cells:
        classes[y] += weight
    return Fraction(sum(w * w for w in classes.values()), sum(classes.values()))


def decrease(cells: Cells, feature: int) -> Fraction:
    """Return the decrease of Gini impurity, times the node's weight, from splitting on it."""
    parts = children(cells, feature)
    return sum((purity(part) for part in parts), start=Fraction(0)) - purity(cells)


def tree_outcomes(distribution: Distribution, subspace: Features, max_features: int) -> Outcomes:
    """Return each set of features that gets positive importance in some tree grown on a subspace.

    Parameters
    ----------
    distribution : Distribution
        What the samples come from.
    subspace : frozenset of int
        Q, the features the tree is given.
    max_features : int
        K, features drawn at each node; with fewer left, all of them.

    Returns
    -------
    frozenset of frozenset of int
        One set per possible result of a tree (different trees may give the same).
    """
    known: dict[tuple[Cells, Features], Outcomes] = {}

    def grow(cells: Cells, unused: Features) -> Outcomes:
        if (cells, unused) not in known:
            known[cells, unused] = _node_outcomes(cells, unused)
        return known[cells, unused]

    def _node_outcomes(cells: Cells, unused: Features) -> Outcomes:
        if len({y for _, y, _ in cells}) == 1:
            return NOTHING
        scores = {
            feature: decrease(cells, feature)
            for feature in unused
            if len({x[feature] for x, _, _ in cells}) > 1
        }
        found: set[Features] = set()
        for feature in possible_splits(scores, max_features):
            gained = frozenset({feature}) if scores[feature] > 0 else frozenset()
            below: Outcomes = frozenset({gained})
            for part in children(cells, feature):
                branch = grow(part, unused - {feature})
                below = frozenset(a | b for a in below for b in branch)
            found |= below
        return frozenset(found) or NOTHING

    return grow(distribution.cells, subspace)


def possible_splits(scores: dict[int, Fraction], max_features: int) -> list[int]:
    """Return the features that can be the best of some draw of K among those scored.

    A feature can when at least K features, itself included, score no more than it does.
    """
    n_drawn = min(max_features, len(scores))
    ranked = sorted(scores.values())
    return [feature for feature, score in scores.items() if score >= ranked[n_drawn - 1]]
