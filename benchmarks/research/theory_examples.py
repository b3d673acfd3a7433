"""Examples of the paper's theory: distributions, meetings of pairs, soundness, and real trees."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from itertools import combinations, product
from math import comb, prod

from theory_trees import (
    Cells,
    Distribution,
    Features,
    Outcomes,
    Values,
    children,
    decrease,
    degree,
    relevant_features,
    strongly_relevant_features,
    subsets,
    tree_outcomes,
)

from srs_ooc.base.options import floor_share
from srs_ooc.methods.theory.paper_theory import Alpha, exact_alpha


def chain(n_relevant: int) -> Distribution:
    """Return Y = parity of the first i of r fair bits, i uniform in 1..r.

    The smallest conditioning that makes bit i dependent is all the bits before it: degree i - 1.
    """
    cells = [
        (bits, sum(bits[:length]) % 2, 1)
        for bits in product((0, 1), repeat=n_relevant)
        for length in range(1, n_relevant + 1)
    ]
    return Distribution.of(cells)


def clique(n_relevant: int) -> Distribution:
    """Return Y = parity of r fair bits: every bit has degree r - 1."""
    return Distribution.of_bits(n_relevant, lambda bits: (bits, sum(bits) % 2))


def marginal(n_relevant: int) -> Distribution:
    """Return Y = one of r fair bits, which one uniform: all of degree 0, strongly relevant."""
    cells = [
        (bits, bits[place], 1)
        for bits in product((0, 1), repeat=n_relevant)
        for place in range(n_relevant)
    ]
    return Distribution.of(cells)


def masked_by_each_other() -> Distribution:
    """Return three binary features for which Proposition 5 fails with q = 2, K = 2, alpha = 0.

    Features X, Z1, Z2 and Y take values +1 and -1 (coded 1 and 0), with weights
    4 + 2 (x + y)(z1 + z2) + x y + 2 z1 z2 + 2 x y z1 z2, out of 64, all positive. Each Z is
    closer to Y than X is, and given either Z alone Y is independent of X; given both it is not.
    X (feature 0) is strongly relevant of degree 0, but in no tree on two features does it get
    any importance: in {X, Z} the split on Z is strictly better and leaves nothing to X.
    """

    def weight(x: int, z1: int, z2: int, y: int) -> int:
        return 4 + 2 * (x + y) * (z1 + z2) + x * y + 2 * z1 * z2 + 2 * x * y * z1 * z2

    def coded(*signs: int) -> Values:
        return tuple((sign + 1) // 2 for sign in signs)

    return Distribution.of(
        (coded(x, z1, z2), (y + 1) // 2, weight(x, z1, z2, y))
        for x, z1, z2, y in product((-1, 1), repeat=4)
    )


def pair_chance(n_features: int, n_drawn: int, block_size: int, i: int, j: int) -> Fraction:
    """Return the probability that stored features ``i`` and ``j`` are drawn together.

    Parameters
    ----------
    n_features, n_drawn : int
        n and m.
    block_size : int
        g; 1 gives m (m - 1) / (n (n - 1)).
    i, j : int
        Two different positions.
    """
    i, j = min(i, j), max(i, j)
    total = sum(
        (_given_shift(n_features, n_drawn, block_size, i, j, shift) for shift in range(block_size)),
        Fraction(0),
    )
    return total / block_size


def neighbour_chance(block_size: int, distance: int) -> Fraction:
    """Return the probability that two features so far apart on disk are in one block."""
    return max(Fraction(0), 1 - Fraction(distance, block_size))


def mean_across_chance(n_features: int, n_drawn: int, block_size: int) -> Fraction:
    """Return the mean probability that features of different blocks are drawn together.

    For blocks all of one size g <= m <= n - g: what is left of a feature's m (m - 1) / n pairs
    once the (m (g - 1) - (g^2 - 1)/3) / n inside its block are taken away, shared by n - g others.
    """
    n, m, g = n_features, n_drawn, block_size
    return (m * (m - g) + Fraction(g * g - 1, 3)) / (n * (n - g))


def _windows(n: int, m: int, distance: int) -> int:
    """Return in how many of n places a window of m holds two items so far apart on the circle."""
    return max(0, m - distance) + max(0, m - n + distance)


def _given_shift(n: int, m: int, g: int, i: int, j: int, shift: int) -> Fraction:
    first, second = (i + shift) // g, (j + shift) // g
    if first == second:
        return Fraction(_windows(n, m, j - i), n)
    n_blocks = (n - 1 + shift) // g + 1
    begins = [max(0, block * g - shift) for block in range(n_blocks)] + [n]
    # From i to the end of its block, the blocks between, and on to j.
    own = begins[first + 1] - i + j - begins[second]
    odd = [
        begins[block + 1] - begins[block]
        for block in {0, n_blocks - 1} - {first, second}
        if begins[block + 1] - begins[block] != g
    ]
    n_others = n_blocks - 2
    total = Fraction(0)
    for n_between in range(n_others + 1):
        for chosen in product((0, 1), repeat=len(odd)):
            n_odd = sum(chosen)
            ways = _falling(n_between, n_odd) * _falling(n_others - n_between, len(odd) - n_odd)
            distance = own + (n_between - n_odd) * g
            distance += sum(size for size, is_in in zip(odd, chosen, strict=True) if is_in)
            if ways:
                total += Fraction(ways * _windows(n, m, distance), _falling(n_others, len(odd)) * n)
    return total / (n_others + 1)


def _falling(value: int, count: int) -> int:
    return prod(range(value, value - count, -1))


@dataclass(frozen=True)
class Check:
    """A statement of Section 4.1 held against a distribution.

    Parameters
    ----------
    promised : frozenset of int
        Features the statement says are in F after infinitely many iterations.
    final_sets : frozenset of frozenset of int
        Every F that a run can end with.
    exact : bool
        Whether the statement says that nothing else is in F.
    """

    promised: Features
    final_sets: Outcomes
    exact: bool = False

    @property
    def certain(self) -> Features:
        """Features in F however the run goes."""
        return reduce(frozenset.intersection, self.final_sets)

    @property
    def possible(self) -> Features:
        """Features in F in at least one run."""
        return reduce(frozenset.union, self.final_sets)

    @property
    def missing(self) -> Features:
        """Promised features that some run never finds."""
        return self.promised - self.certain

    @property
    def holds(self) -> bool:
        """Whether the statement is true of this distribution."""
        return not self.missing and (not self.exact or self.possible == self.promised)


def final_sets(
    distribution: Distribution, subspace_size: int, max_features: int, alpha: Alpha
) -> Outcomes:
    """Return every set F that SRS can end with (q, K and alpha of Algorithm 1).

    Costs grow exponentially with the number of features; meant for six or so.
    """
    most_held = floor_share(exact_alpha(alpha), subspace_size)
    outcomes: dict[Features, Outcomes] = {}
    start: Features = frozenset()
    waiting, seen, final = [start], {start}, set()
    while waiting:
        found = waiting.pop()
        grown: set[Features] = set()
        for subspace in subspaces(distribution, subspace_size, found, most_held):
            if subspace not in outcomes:
                outcomes[subspace] = tree_outcomes(distribution, subspace, max_features)
            grown |= {found | seen_here for seen_here in outcomes[subspace]}
        if grown == {found}:
            final.add(found)
        waiting.extend(grown - seen)
        seen |= grown
    return frozenset(final)


def subspaces(
    distribution: Distribution, subspace_size: int, found: Features, most_held: int
) -> Iterator[Features]:
    """Yield every Q that step 2(a) can draw: R is any min(floor(alpha q), |F|) features of F."""
    n_held = min(most_held, len(found))
    for chosen in combinations(sorted(distribution.features), subspace_size):
        if len(found.intersection(chosen)) >= n_held:
            yield frozenset(chosen)


def check_proposition_3(distribution: Distribution, subspace_size: int, alpha: Alpha) -> Check:
    """Hold Proposition 3 (K = 1, r <= q: F is the set of relevant features) against it.

    Raises
    ------
    ValueError
        If r > q.
    """
    relevant = _relevant_that_fit(distribution, subspace_size)
    return Check(relevant, final_sets(distribution, subspace_size, 1, alpha), exact=True)


def check_theorem_2(
    distribution: Distribution, subspace_size: int, max_features: int, alpha: Alpha
) -> Check:
    """Hold Theorem 2 (any K, r <= q: strongly relevant features are in F) against it.

    Raises
    ------
    ValueError
        If r > q.
    """
    _relevant_that_fit(distribution, subspace_size)
    promised = strongly_relevant_features(distribution)
    return Check(promised, final_sets(distribution, subspace_size, max_features, alpha))


def check_proposition_4(distribution: Distribution, subspace_size: int, alpha: Alpha) -> Check:
    """Hold Proposition 4 (K = 1: relevant of degree < (1 - alpha) q are in F) against it."""
    promised = _of_low_degree(distribution, relevant_features(distribution), subspace_size, alpha)
    return Check(promised, final_sets(distribution, subspace_size, 1, alpha))


def check_proposition_5(
    distribution: Distribution, subspace_size: int, max_features: int, alpha: Alpha
) -> Check:
    """Hold Proposition 5 (any K: strongly relevant of degree < (1 - alpha) q) against it.

    It does not hold for K > 1 and r > q: see docs/research/errata.md and
    :func:`masked_by_each_other`.
    """
    promised = _of_low_degree(
        distribution, strongly_relevant_features(distribution), subspace_size, alpha
    )
    return Check(promised, final_sets(distribution, subspace_size, max_features, alpha))


def _relevant_that_fit(distribution: Distribution, subspace_size: int) -> Features:
    relevant = relevant_features(distribution)
    if len(relevant) > subspace_size:
        raise ValueError(f"stated for r <= q; here r = {len(relevant)}, q = {subspace_size}")
    return relevant


def _of_low_degree(
    distribution: Distribution, features: Features, subspace_size: int, alpha: Alpha
) -> Features:
    """Return the features of degree below (1 - alpha) q."""
    room = (1 - exact_alpha(alpha)) * subspace_size
    degrees = {feature: degree(distribution, feature) for feature in features}
    return frozenset(f for f, needed in degrees.items() if needed is not None and needed < room)


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
