"""What the papers prove and print, held against small cases worked out in full."""

import math
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
import rfest_theory as simulation
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from more_problems import Clique
from rfest_theory import margin, sample_size
from theory_examples import (
    TreeLaws,
    chain,
    check_proposition_3,
    check_proposition_4,
    check_proposition_5,
    check_theorem_2,
    clique,
    final_sets,
    marginal,
    masked_by_each_other,
    real_tree_time,
)
from theory_over_time import gains
from theory_trees import (
    Distribution,
    children,
    conditional_decrease,
    decrease,
    degree,
    importance_by_sum,
    importance_by_trees,
    markov_boundaries,
    minimal_conditionings,
    possible_splits,
    relevant_features,
    strongly_relevant_features,
    subsets,
    tree_outcomes,
)
from tree_reference import grow_tree

from srs_ooc.methods.theory.paper_theory import Setting, expected_time
from srs_ooc.synthetic.problems import rows
from srs_ooc.trees.response import TreeLimits

pytestmark = pytest.mark.theory


# Printed equations that cannot be right.


P, Q, R = 8, 4, 4


def c(n, k):
    return math.comb(n, k) if 0 <= k <= n else 0


def longest_prefix_law(held):
    """Return the law of the longest prefix when the first ``held`` are given, by enumeration."""
    law = [Fraction(0)] * (R + 1)
    draws = list(combinations(range(held, P), Q - held))
    for drawn in draws:
        subspace = {*range(held), *drawn}
        length = next(n for n in range(R + 1) if n == R or n not in subspace)
        law[length] += Fraction(1, len(draws))
    return law


def printed_chain_moves(found, held):
    """Eq. (8) (held = 0) and (9) (held = found) as printed, OCR denominators put right."""
    return [Fraction(c(P - R, Q - n), c(P - held, Q - held)) for n in range(found + 1, R + 1)]


@pytest.mark.parametrize("held", [0, 1, 2])
def test_eq_8_and_9_print_too_small_a_chance_of_stopping_before_the_last(held):
    law = longest_prefix_law(held)
    printed = printed_chain_moves(held, held)
    assert printed[-2:] == law[-2:]
    assert all(a < b for a, b in zip(printed[:-2], law[held + 1 : -2], strict=True))
    ours = gains(Setting("chain", P, Q, R), held, held)
    assert ours.tolist() == pytest.approx([float(x) for x in law[held:]], rel=1e-14)


def mean_by_moves(moves_from, n_states):
    times = [Fraction(0)] * n_states
    for state in range(n_states - 2, -1, -1):
        moves = moves_from(state)
        ahead = sum(w * times[state + 1 + d] for d, w in enumerate(moves))
        times[state] = (1 + ahead) / sum(moves)
    return times[0]


def test_eq_9_as_printed_contradicts_theorem_5():
    theorem_5 = sum(Fraction(P - n, Q - n) for n in range(R)) - (R - 1)
    corrected = mean_by_moves(lambda found: longest_prefix_law(found)[found + 1 :], R + 1)
    printed = mean_by_moves(lambda found: printed_chain_moves(found, found), R + 1)
    assert corrected == theorem_5 == Fraction(28, 3)
    assert printed == Fraction(368, 33)


def test_eq_9_sums_an_index_it_does_not_use():
    """With q - l2 for q - i in the last case the column does not sum to one."""
    found = 1
    moves = printed_chain_moves(found, found)
    stay = 1 - (R - found) * Fraction(c(P - R, Q - found), c(P - found, Q - found))
    assert stay + sum(moves) != 1


def test_eq_10_as_printed_does_not_sum_to_one():
    for found in range(R):
        share = Fraction(R - found, R)
        stay = 1 - Fraction(c(P - R, Q - R), c(P, Q)) * share
        printed = Fraction(c(P - R, Q), c(P, Q)) * share
        corrected = Fraction(c(P - R, Q - R), c(P, Q)) * share
        assert stay + corrected == 1
        if found == 0:  # here p - r = q: C(4, 4) = C(4, 0), the misprint does not show
            assert printed == corrected
    p, q, r = 9, 4, 4
    stay = 1 - Fraction(c(p - r, q - r), c(p, q))
    assert stay + Fraction(c(p - r, q), c(p, q)) == Fraction(65, 63)


@pytest.mark.parametrize("held", [0, 1, 3])
def test_eq_12_and_13_sum_to_one_with_the_denominator_put_right(held):
    moves = [
        Fraction(c(R - held, n - held) * c(P - R, Q - n), c(P - held, Q - held))
        for n in range(held, R + 1)
    ]
    assert sum(moves) == 1
    as_read = [Fraction(c(P - R, Q - held), c(Q - held, Q - held)), *moves[1:]]
    assert sum(as_read) > 1
    ours = gains(Setting("marginal", P, Q, R), held, held)
    assert ours.tolist() == pytest.approx([float(x) for x in moves], rel=1e-14)


def test_eq_2_needs_the_factor_1_over_p_minus_k():
    for distribution in (chain(3).extended(1), clique(2).extended(2), masked_by_each_other()):
        p = distribution.n_features
        for feature, q in product(range(p), range(1, p + 1)):
            by_trees = importance_by_trees(distribution, feature, q)
            assert by_trees == importance_by_sum(distribution, feature, q)
            others = [x for x in range(p) if x != feature]
            printed = sum(
                conditional_decrease(distribution, feature, b) / c(p, k)
                for k in range(q)
                for b in combinations(others, k)
            )
            assert by_trees <= printed
            if by_trees and q < p:
                assert by_trees < printed


def test_a_clique_gains_up_to_r_times_the_harmonic_number_not_r():
    for r in (2, 3, 5):
        rs, srs = (float(expected_time(Setting("clique", 10**7, 1000, r, a))) for a in (0, 1))
        harmonic = sum(1 / n for n in range(1, r + 1))
        assert rs / srs == pytest.approx(r * harmonic, rel=0.01)
        assert rs / srs > r


def tree_law(cells, unused):
    """Return the law of the set given importance by a tree with K = q on a parity."""
    if len({y for _, y, _ in cells}) == 1:
        return {frozenset(): Fraction(1)}
    law = {}
    for feature in unused:
        gained = frozenset({feature}) if decrease(cells, feature) > 0 else frozenset()
        partial = {gained: Fraction(1, len(unused))}
        for part in children(cells, feature):
            below = tree_law(part, unused - {feature})
            merged = {}
            for (a, x), (b, y) in product(partial.items(), below.items()):
                merged[a | b] = merged.get(a | b, 0) + x * y
            partial = merged
        for found, chance in partial.items():
            law[found] = law.get(found, 0) + chance
    return law


def test_unconstrained_trees_change_the_ratio_of_rs_to_srs_on_a_clique():
    """D.1 says the simplified tree does not: of 5.5 draws of a clique of 3, 3.4 remain."""
    law = tree_law(clique(3).cells, frozenset({0, 1, 2}))
    assert law == {
        **{frozenset({x}): Fraction(1, 6) for x in range(3)},
        **{frozenset(pair): Fraction(1, 6) for pair in combinations(range(3), 2)},
    }
    every = frozenset({0, 1, 2})

    def remaining(found):
        if found == every:
            return Fraction(0)
        stay = sum(w for seen, w in law.items() if seen <= found)
        ahead = sum(w * remaining(found | seen) for seen, w in law.items() if not seen <= found)
        return (1 + ahead) / (1 - stay)

    assert remaining(frozenset()) == Fraction(17, 5)
    assert sum(Fraction(3, n) for n in (1, 2, 3)) == Fraction(11, 2)


def entropy_decrease(cells, feature):
    def entropy(part):
        total = sum(w for _, _, w in part)
        classes = [sum(w for _, y, w in part if y == value) / total for value in (0, 1)]
        return -total * sum(share * math.log2(share) for share in classes if share)

    return entropy(cells) - sum(entropy(part) for part in children(cells, feature))


def test_the_counterexample_to_proposition_5_does_not_hang_on_gini():
    distribution = masked_by_each_other()
    assert all(weight > 0 for _, _, weight in distribution.cells)
    assert len(distribution.cells) == 16
    assert distribution.total == 64
    gained = [entropy_decrease(distribution.cells, x) for x in range(3)]
    assert 0.1 < gained[0] < gained[1] - 1
    assert gained[1] == pytest.approx(gained[2])
    for z in (1, 2):
        assert distribution.independent({0}, {z})
    assert not distribution.independent({0}, {1, 2})


def independent_sets(cells, left, right, given_):
    """Return whether two sets of the variables (Y last) are independent given a third."""
    weights = {}
    for variables, weight in cells:
        key = tuple(tuple(variables[i] for i in sorted(part)) for part in (left, right, given_))
        weights[key] = weights.get(key, 0) + weight

    def total(**fixed):
        return sum(
            w
            for (a, b, z), w in weights.items()
            if all({"a": a, "b": b, "z": z}[name] == value for name, value in fixed.items())
        )

    return all(
        total(z=z) * w == total(a=a, z=z) * total(b=b, z=z) for (a, b, z), w in weights.items()
    )


def test_the_counterexample_has_the_composition_property():
    """Strictly positive and PC: even for the distributions of Theorem 3, Proposition 5 fails."""
    cells = [((*x, y), weight) for x, y, weight in masked_by_each_other().cells]
    n_checked = 0
    for places in product(range(5), repeat=4):
        r, s, t, u, _ = ({i for i in range(4) if places[i] == part} for part in range(5))
        if s and t and u and independent_sets(cells, s, t, r) and independent_sets(cells, s, u, r):
            assert independent_sets(cells, s, t | u, r)
            n_checked += 1
    assert n_checked == 0  # no two such independences meet, so the property holds emptily


# Propositions 3 to 5 and Theorem 2, on every distribution of a few features.


ALPHAS = [Fraction(0), Fraction(1, 3), Fraction(1, 2), Fraction(1)]


@st.composite
def distributions(draw):
    """Draw features and Y as random functions of three hidden bits: copies, parities, noise."""
    n_features = draw(st.integers(1, 4))
    tables = draw(st.lists(st.integers(0, 255), min_size=n_features + 1, max_size=n_features + 1))
    weights = draw(st.lists(st.integers(1, 3), min_size=8, max_size=8))
    even = draw(st.booleans())
    return Distribution.of(
        (
            tuple(table >> place & 1 for table in tables[:-1]),
            tables[-1] >> place & 1,
            1 if even else weights[place],
        )
        for place in range(8)
    )


@st.composite
def cases(draw):
    distribution = draw(distributions())
    q = draw(st.integers(1, distribution.n_features))
    return distribution, q, draw(st.integers(1, q)), draw(st.sampled_from(ALPHAS))


@examples(150)
@given(cases())
def test_with_room_for_all_proposition_3_and_theorem_2_hold(case):
    distribution, q, max_features, alpha = case
    if len(relevant_features(distribution)) > q:
        with pytest.raises(ValueError, match="r <= q"):
            check_proposition_3(distribution, q, alpha)
        return
    assert check_proposition_3(distribution, q, alpha).holds
    assert check_theorem_2(distribution, q, max_features, alpha).holds
    assert check_theorem_2(distribution, q, q, alpha).holds


@examples(150)
@given(cases())
def test_proposition_4_holds_whatever_the_room(case):
    distribution, q, _, alpha = case
    assert check_proposition_4(distribution, q, alpha).holds


@examples(100)
@given(cases())
def test_proposition_4_holds_for_the_room_that_truly_remains(case):
    distribution, q, _, alpha = case
    certain = check_proposition_4(distribution, q, alpha).certain
    room = q - int(alpha * q)
    assert all(degree(distribution, x) >= room for x in relevant_features(distribution) - certain)


@examples(150)
@given(cases())
def test_nothing_irrelevant_is_ever_found_and_proposition_5_holds_for_k_1(case):
    distribution, q, max_features, alpha = case
    check = check_proposition_5(distribution, q, max_features, alpha)
    assert check.possible <= relevant_features(distribution)
    assert check_proposition_5(distribution, q, 1, alpha).holds


@examples(100)
@given(cases())
def test_enough_irrelevant_features_beside_it_make_random_subspace_find_degrees_below_q(case):
    """The condition of docs/research/errata.md: alpha = 0, p - r >= q - 1 - deg(X), any K."""
    distribution, q, max_features, _ = case
    padded = distribution.extended(q - 1)
    certain = check_proposition_5(padded, q, max_features, 0).certain
    expected = {x for x in relevant_features(distribution) if degree(distribution, x) <= q - 1}
    assert expected == certain


@examples(100)
@given(cases())
def test_larger_k_grows_no_tree_that_smaller_k_cannot(case):
    distribution, q, max_features, _ = case
    for subspace in combinations(range(distribution.n_features), q):
        larger = tree_outcomes(distribution, frozenset(subspace), max_features)
        smaller = tree_outcomes(distribution, frozenset(subspace), max(1, max_features - 1))
        assert larger <= smaller


def test_proposition_5_fails_for_features_that_mask_each_other_in_turn():
    distribution = masked_by_each_other()
    assert strongly_relevant_features(distribution) == {0, 1, 2}
    assert [degree(distribution, x) for x in range(3)] == [0, 0, 0]
    check = check_proposition_5(distribution, 2, 2, 0)
    assert check.promised == {0, 1, 2}
    assert check.final_sets == {frozenset({1, 2})}
    assert check.missing == {0}
    assert not check.holds


def test_proposition_5_fails_on_some_paths_when_found_features_are_held():
    """With irrelevant features X can be found at first, but not once both others are held."""
    check = check_proposition_5(masked_by_each_other().extended(2), 2, 2, "0.5")
    assert check.promised == {0, 1, 2}
    assert check.final_sets == {frozenset({1, 2}), frozenset({0, 1, 2})}
    assert check.missing == {0}
    assert check.possible == {0, 1, 2}


def test_the_same_distribution_meets_what_does_hold():
    distribution = masked_by_each_other()
    assert check_proposition_5(distribution, 2, 1, 0).holds
    assert check_proposition_4(distribution, 2, 0).holds
    assert check_theorem_2(distribution, 3, 3, 1).holds
    assert check_proposition_3(distribution, 3, "0.5").holds
    assert check_proposition_5(distribution.extended(1), 2, 2, 0).holds


@pytest.mark.parametrize("alpha", [0, "0.5", 1])
def test_more_relevant_features_than_places(alpha):
    """Chain: the first q; clique: none; marginal: all, unless all places are held."""
    found_on_chain = final_sets(chain(3).extended(1), 2, 2, alpha)
    assert found_on_chain == {frozenset({0, 1})}
    assert final_sets(clique(3).extended(1), 2, 2, alpha) == {frozenset()}
    on_marginal = final_sets(marginal(3).extended(1), 2, 2, alpha)
    if alpha == 1:
        assert on_marginal == {frozenset(pair) for pair in combinations(range(3), 2)}
    else:
        assert on_marginal == {frozenset({0, 1, 2})}


def test_masking_hides_a_copy_with_noise_from_k_q_and_not_from_k_1():
    """Y a fair bit, one copy of it and one that is wrong once in four: weakly relevant."""
    noisy = Distribution.of(
        ((y, y ^ wrong), y, 1 + 2 * (1 - wrong)) for y in (0, 1) for wrong in (0, 1)
    )
    assert final_sets(noisy, 2, 2, 0) == {frozenset({0})}
    assert final_sets(noisy, 2, 1, 0) == {frozenset({0, 1})}


def test_trees_on_a_parity_give_importance_to_the_last_of_each_branch():
    outcomes = tree_outcomes(clique(3), frozenset({0, 1, 2}), 3)
    singles = {frozenset({x}) for x in range(3)}
    assert outcomes == singles | {frozenset(pair) for pair in combinations(range(3), 2)}


def test_gini_decreases_are_exact():
    cells = marginal(2).cells
    assert decrease(cells, 0) == Fraction(1)  # of weight 8: 1/8, half of the correlation squared
    assert decrease(clique(2).cells, 0) == 0


@pytest.mark.parametrize(
    ("max_features", "possible"), [(1, [0, 1, 2, 3]), (2, [1, 2, 3]), (3, [2, 3]), (9, [2, 3])]
)
def test_the_best_of_k_is_any_feature_with_enough_below_it(max_features, possible):
    scores = {0: Fraction(0), 1: Fraction(1), 2: Fraction(2), 3: Fraction(2)}
    assert possible_splits(scores, max_features) == possible


# Degrees of relevance.


@pytest.mark.parametrize("r", [1, 2, 3, 4])
def test_a_chain_is_seen_only_beside_all_before(r):
    distribution = chain(r).extended(1)
    for feature in range(r):
        assert minimal_conditionings(distribution, feature) == [frozenset(range(feature))]
    assert relevant_features(distribution) == frozenset(range(r))


@pytest.mark.parametrize("r", [1, 2, 3, 4])
def test_a_clique_is_seen_only_beside_all_others(r):
    distribution = clique(r).extended(1)
    for feature in range(r):
        others = frozenset(range(r)) - {feature}
        assert minimal_conditionings(distribution, feature) == [others]
    assert degree(distribution, r) is None


@pytest.mark.parametrize("r", [1, 2, 3])
def test_marginal_features_are_strongly_relevant_of_degree_0(r):
    distribution = marginal(r).extended(1)
    assert [degree(distribution, feature) for feature in range(r + 1)] == [0] * r + [None]
    assert strongly_relevant_features(distribution) == frozenset(range(r))


def test_copies_are_weakly_relevant_and_give_two_boundaries():
    copies = Distribution.of_bits(1, lambda bits: (bits * 2, bits[0]))
    assert relevant_features(copies) == {0, 1}
    assert strongly_relevant_features(copies) == frozenset()
    assert markov_boundaries(copies) == [frozenset({0}), frozenset({1})]


def test_a_zero_cell_can_be_the_dependence():
    # Given x = 0 the class 1 never occurs, yet both values and both classes do.
    distribution = Distribution.of([((0,), 0, 1), ((1,), 0, 1), ((1,), 1, 1)])
    assert not distribution.independent({0})
    assert distribution.probability((1,), 1) == Fraction(1, 3)
    assert distribution.probability((0,), 1) == 0


def test_a_distribution_needs_weights_of_one_width():
    with pytest.raises(ValueError, match="negative"):
        Distribution.of([((0,), 0, -1)])
    with pytest.raises(ValueError, match="at least one cell"):
        Distribution.of([((0,), 0, 0)])
    with pytest.raises(ValueError, match="same number"):
        Distribution.of([((0,), 0, 1), ((0, 1), 0, 1)])


@given(st.lists(st.integers(0, 4), min_size=16, max_size=16).filter(any))
def test_propositions_1_and_2_hold(weights):
    """Minimal conditionings hold relevant features only, of degree at most their size."""
    cells = [
        (tuple(place >> bit & 1 for bit in range(3)), place >> 3, w)
        for place, w in enumerate(weights)
    ]
    distribution = Distribution.of(cells)
    for feature in range(3):
        for conditioning in minimal_conditionings(distribution, feature):
            degrees = [degree(distribution, other) for other in conditioning]
            assert all(d is not None and d <= len(conditioning) for d in degrees)


@given(st.lists(st.integers(1, 4), min_size=16, max_size=16))
def test_the_boundary_of_a_positive_distribution_is_the_strongly_relevant(weights):
    cells = [
        (tuple(place >> bit & 1 for bit in range(3)), place >> 3, w)
        for place, w in enumerate(weights)
    ]
    distribution = Distribution.of(cells)
    assert markov_boundaries(distribution) == [strongly_relevant_features(distribution)]


# Real trees beside the simplified ones.


@pytest.mark.parametrize("distribution", [chain(3), clique(3), marginal(3)])
def test_the_law_lives_on_the_possible_outcomes(distribution):
    laws = TreeLaws(distribution)
    for subspace in subsets(distribution.features):
        law = laws.law(subspace, 5)
        assert sum(law.values()) == 1
        assert set(law) == tree_outcomes(distribution, subspace, 99)


@pytest.mark.parametrize("alpha", ["0", "0.5", "1"])
@pytest.mark.parametrize(
    ("scenario", "distribution"),
    [("chain", chain(3)), ("clique", clique(2)), ("marginal", marginal(3))],
)
def test_simplified_trees_are_right_where_a_tree_finds_all_it_can(scenario, distribution, alpha):
    r = distribution.n_features
    theory = float(expected_time(Setting(scenario, 30, 8, r, alpha)))
    real = real_tree_time(distribution, 30, 8, alpha)
    assert float(real) == pytest.approx(theory, rel=1e-9)


def test_a_clique_of_three_needs_3_4_draws_of_the_whole_by_rs():
    whole_drawn = Fraction(30 * 29 * 28, 8 * 7 * 6)
    assert real_tree_time(clique(3), 30, 8, 0) == Fraction(17, 5) * whole_drawn
    simplified = float(expected_time(Setting("clique", 30, 8, 3, 0)))
    assert simplified == pytest.approx(float(Fraction(11, 2) * whole_drawn))


def test_what_cannot_be_found_has_no_time():
    assert real_tree_time(clique(3), 30, 2, 0) is None
    assert real_tree_time(chain(3), 30, 2, 1) is None


@pytest.mark.slow
@pytest.mark.parametrize("repetitions", [1, 2])
def test_the_law_is_that_of_the_kernel(repetitions):
    """A clique of three among varying or constant other features: counts over 1,000 trees."""
    problem = Clique(8 * repetitions, 7, 3, 2, True)
    values = rows(problem, 0, problem.n_rows)
    codes = np.array([np.unique(column, return_inverse=True)[1] for column in values.T])
    labels, features = problem.target(0, problem.n_rows), np.arange(7, dtype=np.uint32)
    place = {int(position): i for i, position in enumerate(problem.positions)}
    law = TreeLaws(clique(3), repetitions).law(frozenset(range(3)), 4)
    counts = dict.fromkeys(law, 0)
    for key in range(1000):
        grown = grow_tree(codes, labels, 2, features, key, TreeLimits(99)).importance
        counts[frozenset(place[x] for x in np.flatnonzero(grown).tolist())] += 1
    for found, chance in law.items():
        spread = (1000 * chance * (1 - chance)) ** 0.5
        assert abs(counts[found] - 1000 * chance) < 4.5 * spread


# The sample size of RFEST.


FLOOR = dict(zip([c.name for c in simulation.CONCEPTS], simulation.CONCEPTS, strict=True))


def test_the_sample_is_that_of_the_supplement():
    assert sample_size(10**6, 0.05, 0.2 + 2 * 0.1, 1, 0.1) == 841
    assert FLOOR["clique of 3"].min_influence() == 1
    assert FLOOR["consensus of 4"].min_influence() == 0.25  # 1 / 2^(k - 2), as the supplement says
    assert FLOOR["clique of 3, P(1) = 3/4"].rho == 3


def test_as_printed_it_is_refuted_by_the_supplement_s_own_last_example():
    """Consensus of 3 bits, and a classifier that always says no: 2 rho eps = I_min, and R = 0."""
    concept = FLOOR["consensus of 3"]
    bits, hidden, chances = concept.cells()
    error = float(chances[concept.label(bits, hidden) == 1].sum())
    assert 2 * concept.rho * error == concept.min_influence()  # what is printed allows it
    assert margin(concept.min_influence(), concept.rho, error) == 0
    with pytest.raises(ValueError, match=r"below I_min / \(2 rho\) = 0.25, found 0.25"):
        sample_size(10, 0.05, concept.min_influence(), concept.rho, error)
    # Altering anything changes nothing that it says: relevant features have R(j) = 0, as others.


def test_the_probabilities_of_the_proof_are_reached_by_a_clique():
    """By enumeration: of a parity of fair bits 1 - eps of relevant ones and eps of others."""
    rng = np.random.default_rng(0)
    cells = np.array([[(i >> j) & 1 for j in range(6)] for i in range(64)])
    truth = cells[:, :3].sum(axis=1) % 2
    said = truth ^ (rng.permutation(64) < 12)  # wrong at 12 of 64 assignments
    for j in range(6):
        other = np.arange(64) ^ (1 << j)
        assert np.mean(said[other] != truth) == ((64 - 12) / 64 if j < 3 else 12 / 64)


@pytest.mark.parametrize("name", ["clique of 2", "clique of 3, P(1) = 3/4", "consensus of 3"])
def test_samples_of_that_size_miss_in_no_more_than_delta(name):
    concept, rng = FLOOR[name], np.random.default_rng(0)
    influence, rho = concept.min_influence(), concept.rho
    error = 0.3 * influence / rho
    t = sample_size(simulation.N_FEATURES, simulation.DELTA, influence, rho, error)
    chances = influence - rho * error, rho * error, concept.n_relevant
    assert simulation.missed(rng, *chances, t, 2000) <= simulation.DELTA
    assert simulation.missed(rng, *chances, t // 30, 2000) > simulation.DELTA


def test_no_chain_meets_the_hypothesis():
    """The target of a chain is noisy: the best classifier errs as often as is allowed, or more."""
    for concept in simulation.GROWN:
        if concept.name.startswith("chain"):
            tau = margin(concept.min_influence(), concept.rho, concept.least_error())
            assert tau <= 0


def test_the_engine_s_trees_tell_a_clique_apart(tmp_path):
    found = simulation.grown(FLOOR["clique of 2"], tmp_path, 0, 8)
    assert found["holds"] == found["accuracy_lost"] == found["score"] == 1
