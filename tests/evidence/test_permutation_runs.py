"""Who exceeds what runs on permuted targets reach."""

from fractions import Fraction

import numpy as np
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from srs_ooc.evidence.verdict import Comparison, certify

REACHED = st.just(0.0) | st.floats(1e-9, 99)
"""Scores are whole numbers, and strengths logarithms of a p-value of single precision."""


def test_the_larger_of_both_counts_on_the_scale_of_the_medians():
    permuted = np.array([[2.0, 5.0], [4.0, 5.0], [2.0, 10.0], [2.0, 5.0]])
    comparison = Comparison.of((9.0, 5.0), permuted)
    assert comparison.scale.tolist() == [2.0, 5.0]
    assert comparison.bests.tolist() == [1.0, 2.0, 2.0, 1.0]
    found = comparison.statistics(np.array([9.0, 1.0, 0.0]), np.array([0.0, 20.0, 1.0]))
    np.testing.assert_allclose(found, [4.5, 4.0, 0.2])
    np.testing.assert_allclose(comparison.levels(found), [0.2, 0.2, 1.0])


def test_as_many_permutation_runs_may_reach_it_as_the_level_allows():
    permuted = np.stack([np.arange(1.0, 20.0), np.zeros(19)], axis=1)
    comparison = Comparison.of((0.5, 0.0), permuted)
    scores = np.array([30.0, 19.0, 18.5, 18.0, 17.5])
    for level, n in ((Fraction(1, 20), 1), (Fraction(1, 10), 3), (Fraction(3, 20), 5)):
        verdict = certify(comparison, scores, np.zeros(5), level)
        assert verdict.is_selected.tolist() == [True] * n + [False] * (5 - n)
        np.testing.assert_array_equal(verdict.is_selected, verdict.levels <= float(level))
        assert verdict.n_above == n


@examples(100)
@given(
    st.lists(st.tuples(REACHED, REACHED), min_size=9, max_size=19),
    st.lists(st.tuples(REACHED, REACHED), min_size=1, max_size=5),
    st.integers(1, 4),
)
def test_a_place_is_certified_if_and_only_if_its_level_holds(permuted, places, tenths):
    level = Fraction(tenths, 10)
    own = tuple(np.array(places).max(axis=0))
    comparison = Comparison.of(own, np.array(permuted))
    scores, strengths = np.array(places).T
    verdict = certify(comparison, scores, strengths, level)
    np.testing.assert_array_equal(verdict.is_selected, verdict.levels <= float(level))


def test_under_the_global_null_no_more_than_the_level_certify_anything():
    rng = np.random.default_rng(4)
    n_wrong, n = 0, 2000
    for _ in range(n):
        # Bests of scores and of strengths that go together, as they do.
        both = rng.gumbel(5, 1, (10, 2)) + rng.gumbel(0, 1, (10, 1))
        both = np.maximum(both, 0.0)
        verdict = certify(Comparison.of(tuple(both[0]), both[1:]), both[:1, 0], both[:1, 1],
                          Fraction(1, 10))  # fmt: skip
        n_wrong += verdict.n_above
    assert n_wrong / n <= 0.1 + 3 * np.sqrt(0.09 / n)


def test_where_nothing_shows_nothing_is_certified():
    comparison = Comparison.of((0.0, 0.0), np.zeros((9, 2)))
    assert certify(comparison, np.zeros(3), np.zeros(3), Fraction(1, 10)).n_above == 0
