"""Soundness (Section 4.1) as checks on a given distribution: what SRS can end with, exactly.

With infinite samples a feature enters F when some tree gives it a positive importance. F depends
on the trees drawn before, so SRS is followed through every set F can be: from a set, every
subspace of Algorithm 1 and every tree on it. A set that no tree enlarges is final; from any other
set there is a positive probability of growing, so the run ends in a final set.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import combinations

from srs_ooc.base.options import floor_share
from srs_ooc.planning.paper_theory import Alpha, exact_alpha
from theory_parts.distributions import Distribution, Features
from theory_parts.relevance import degree, relevant_features, strongly_relevant_features
from theory_parts.trees import Outcomes, tree_outcomes


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
    :func:`theory_parts.examples.masked_by_each_other`.
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
