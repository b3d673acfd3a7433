"""Curves: means, errors, and the size that is enough."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from srs_ooc.ensemble.compaction import SIZES, Curve, sizes_up_to

tables = st.integers(1, 6).flatmap(
    lambda n: st.lists(st.lists(st.floats(0, 1), min_size=n, max_size=n), min_size=1, max_size=6)
)


@given(tables)
def test_the_choice_is_the_smallest_within_one_standard_error_of_the_best(scores):
    scores = np.array(scores)
    sizes = [2 * i + 1 for i in range(scores.shape[1])]
    curve = Curve(sizes, scores)
    chosen = sizes.index(curve.smallest())
    best = curve.best
    bar = curve.means[best] - curve.errors[best]
    assert curve.means[chosen] >= bar
    assert np.all(curve.means[:chosen] < bar)
    assert chosen <= best


def test_errors_are_those_of_the_mean_over_folds():
    curve = Curve([1, 2], np.array([[0.5, 1.0], [0.7, 1.0], [0.9, 1.0]]))
    np.testing.assert_allclose(curve.errors, [0.2 / np.sqrt(3), 0.0])
    np.testing.assert_array_equal(Curve([1], np.array([[0.5]])).errors, [0.0])


def test_larger_sizes_are_not_looked_at_where_a_most_is_given():
    curve = Curve([1, 5, 9], np.array([[0.5, 0.8, 1.0]] * 2))
    assert curve.smallest() == 9
    assert curve.smallest(8) == 5
    with pytest.raises(ValueError, match="at most 0, found 1"):
        curve.smallest(0)


@given(st.integers(1, 400), st.integers(1, 400))
def test_sizes_tried_reach_what_there_is_and_what_is_asked(most, asked):
    sizes = sizes_up_to(most, asked)
    assert sizes == sorted(set(sizes))
    assert min(asked, most) in sizes
    assert sizes[-1] == max(min(most, SIZES[-1]), min(asked, most))
