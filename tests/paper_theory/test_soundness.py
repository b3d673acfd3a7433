"""Proposition 3, Theorem 2, Propositions 4 and 5 on distributions of every kind."""

from fractions import Fraction
from itertools import combinations

import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from theory_examples import (
    chain,
    check_proposition_3,
    check_proposition_4,
    check_proposition_5,
    check_theorem_2,
    clique,
    final_sets,
    marginal,
    masked_by_each_other,
)
from theory_trees import (
    Distribution,
    decrease,
    degree,
    possible_splits,
    relevant_features,
    strongly_relevant_features,
    tree_outcomes,
)

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
