from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from theory_examples import chain, clique, marginal
from theory_trees import (
    Distribution,
    degree,
    markov_boundaries,
    minimal_conditionings,
    relevant_features,
    strongly_relevant_features,
)


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
