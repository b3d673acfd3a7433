"""Mean times with real trees: every branch goes its own way, unlike the simplified trees of D.1.

For small distributions with K = q the law of what one tree finds is enumerated exactly, and the
run is a Markov chain on the *set* of features found. Where a tree finds all that its subspace
shows (chain, marginal-only, a clique of two) this is :mod:`srs_ooc.planning.paper_theory`; on
larger cliques different branches end in different members and less time is needed.
"""

from fractions import Fraction
from itertools import combinations, product
from math import comb

from srs_ooc.base.options import floor_share
from srs_ooc.planning.paper_theory import Alpha
from theory_parts.distributions import Distribution, Features
from theory_parts.relevance import subsets
from theory_parts.trees import Cells, children, decrease

Law = dict[Features, Fraction]
"""Probabilities of the sets of features that may be found."""

_NOTHING: Law = {frozenset(): Fraction(1)}


class TreeLaws:
    """What trees with K = q find on subspaces of a distribution, with what probability.

    A node that is not pure is split on the feature, not constant there, of the best Gini decrease;
    equal bests, zeros included, are equally likely.

    Parameters
    ----------
    distribution : Distribution
        Of the relevant features.
    n_repetitions : {1, 2}
        Of an exact table (:mod:`srs_ooc.synthetic.problems`). With 1 irrelevant features are
        constant. With 2 each is the same fair bit, independent of the rest, or its negation.
    """

    def __init__(self, distribution: Distribution, n_repetitions: int = 1) -> None:
        if n_repetitions not in (1, 2):
            raise ValueError(f"expected 1 or 2 repetitions, found {n_repetitions}")
        self.n_relevant, self._noisy = distribution.n_features, n_repetitions == 2
        self._cells = distribution.extended(1 if self._noisy else 0).cells
        self._known: dict[tuple[Cells, Features, int], Law] = {}

    def law(self, relevant: Features, n_irrelevant: int) -> Law:
        """Return what is found on a subspace of some relevant and so many irrelevant features."""
        if not self._noisy or n_irrelevant == 0:
            return self._grow(self._cells, relevant, 0)
        return self._grow(self._cells, relevant | {self.n_relevant}, n_irrelevant)

    def _grow(self, cells: Cells, unused: Features, n_copies: int) -> Law:
        key = cells, unused, n_copies
        if key not in self._known:
            self._known[key] = self._node(cells, unused, n_copies)
        return self._known[key]

    def _node(self, cells: Cells, unused: Features, n_copies: int) -> Law:
        if len({y for _, y, _ in cells}) == 1:
            return _NOTHING
        scores = {x: decrease(cells, x) for x in unused if len(children(cells, x)) > 1}
        best = [x for x, score in scores.items() if score == max(scores.values())]
        weights = {x: n_copies if x == self.n_relevant else 1 for x in best}
        law: Law = {}
        for chosen, weight in weights.items():
            gained = frozenset({chosen}) if scores[chosen] > 0 else frozenset()
            below: Law = {gained: Fraction(weight, sum(weights.values()))}
            for part in children(cells, chosen):
                below = _union(below, self._grow(part, unused - {chosen}, n_copies))
            for found, chance in below.items():
                law[found] = law.get(found, Fraction(0)) + chance
        return law or _NOTHING


def _union(one: Law, other: Law) -> Law:
    """Return the law of the union of two independent random sets."""
    law: Law = {}
    for (a, x), (b, y) in product(one.items(), other.items()):
        law[a | b] = law.get(a | b, Fraction(0)) + x * y
    return law


def real_tree_time(
    distribution: Distribution,
    n_features: int,
    subspace_size: int,
    alpha: Alpha,
    n_repetitions: int = 1,
) -> Fraction | None:
    """Return the mean number of iterations until all relevant features are found, exactly.

    Algorithm 1 with K = q and infinite samples, F grown by any positive importance.

    Parameters
    ----------
    distribution : Distribution
        Of the r relevant features (work grows as 8**r).
    n_features, subspace_size : int
        p and q; the p - r others are irrelevant.
    alpha : Alpha
        Share of the subspace held for features found.
    n_repetitions : {1, 2}
        See :class:`TreeLaws`.

    Returns
    -------
    Fraction or None
        None where they are not all found with probability 1.
    """
    laws, every = TreeLaws(distribution, n_repetitions), distribution.features
    most_held, r = floor_share(alpha, subspace_size), len(every)

    def moves(found: Features) -> Law:
        """Return the law of F after one iteration from F = found."""
        law: Law = {}
        held = min(most_held, len(found))
        n_fresh, n_others = subspace_size - held, n_features - r
        total = comb(n_features - held, n_fresh) * comb(len(found), held)
        for retained in map(frozenset, combinations(sorted(found), held)):
            for fresh in subsets(every - retained):
                ways = comb(n_others, n_fresh - len(fresh)) if len(fresh) <= n_fresh else 0
                if ways == 0:
                    continue
                for seen, chance in laws.law(retained | fresh, n_fresh - len(fresh)).items():
                    after = found | seen
                    law[after] = law.get(after, Fraction(0)) + Fraction(ways, total) * chance
        return law

    times: dict[Features, Fraction] = {every: Fraction(0)}
    for found in sorted(subsets(every), key=len, reverse=True):
        if found == every:
            continue
        law = moves(found)
        stay = law.pop(found, Fraction(0))
        if stay == 1 or any(after not in times for after in law):
            continue
        times[found] = (1 + sum(w * times[after] for after, w in law.items())) / (1 - stay)
    return times.get(frozenset())
