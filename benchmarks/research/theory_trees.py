"""Exact relevance, trees and importances of small distributions, for the paper's theory."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product
from math import comb

Values = tuple[int, ...]
Features = frozenset[int]


@dataclass(frozen=True)
class Distribution:
    """A joint distribution over p discrete features and a discrete output.

    Parameters
    ----------
    n_features : int
        p; features are numbered from 0.
    cells : tuple of ((x_1, ..., x_p), y, weight)
        Every cell of positive weight, once; probabilities are weights over their sum.
    """

    n_features: int
    cells: tuple[tuple[Values, int, int], ...]

    @classmethod
    def of(cls, weights: Iterable[tuple[Values, int, int]]) -> "Distribution":
        """Return the distribution of weighted cells; equal cells add up, zeros are dropped.

        Raises
        ------
        ValueError
            If a weight is negative, no weight is positive, or the features differ in number.
        """
        totals: Counter[tuple[Values, int]] = Counter()
        for features, y, weight in weights:
            if weight < 0:
                raise ValueError(f"negative weight {weight} at {features}, {y}")
            totals[features, y] += weight
        cells = tuple(sorted((x, y, w) for (x, y), w in totals.items() if w))
        widths = {len(x) for x, _, _ in cells}
        if len(widths) != 1:
            raise ValueError("expected at least one cell, all with the same number of features")
        return cls(widths.pop(), cells)

    @classmethod
    def of_bits(
        cls, n_bits: int, observe: Callable[[Values], tuple[Values, int]]
    ) -> "Distribution":
        """Return the distribution of ``observe(bits)`` for ``n_bits`` fair independent bits."""
        return cls.of((*observe(bits), 1) for bits in product((0, 1), repeat=n_bits))

    @property
    def features(self) -> Features:
        """V, the set of all features."""
        return frozenset(range(self.n_features))

    @property
    def total(self) -> int:
        """The sum of the weights."""
        return sum(weight for _, _, weight in self.cells)

    def independent(self, tested: Iterable[int], given: Iterable[int] = ()) -> bool:
        """Return whether Y is independent of the features ``tested`` given those in ``given``.

        P(b) P(s, y, b) = P(s, b) P(y, b) for every value of each, zeros included.
        """
        chosen, condition = sorted(tested), sorted(given)
        joint: Counter[tuple[Values, Values, int]] = Counter()
        for x, y, weight in self.cells:
            joint[_take(x, condition), _take(x, chosen), y] += weight
        by_b: Counter[Values] = Counter()
        by_sb: Counter[tuple[Values, Values]] = Counter()
        by_yb: Counter[tuple[Values, int]] = Counter()
        for (b, s, y), weight in joint.items():
            by_b[b] += weight
            by_sb[b, s] += weight
            by_yb[b, y] += weight
        return all(
            by_b[b] * joint[b, s, y] == weight * by_yb[b, y]
            for (b, s), weight in by_sb.items()
            for (b2, y) in list(by_yb)
            if b2 == b
        )

    def extended(self, n_irrelevant: int) -> "Distribution":
        """Return it with fair bits, independent of everything, added as last features."""
        return Distribution.of(
            (x + noise, y, weight)
            for x, y, weight in self.cells
            for noise in product((0, 1), repeat=n_irrelevant)
        )

    def probability(self, features: Values, y: int) -> Fraction:
        """Return the probability of one cell."""
        weight = sum(w for x, y2, w in self.cells if x == features and y2 == y)
        return Fraction(weight, self.total)


def _take(values: Values, places: list[int]) -> Values:
    return tuple(values[place] for place in places)


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
