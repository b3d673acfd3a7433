"""Drawing distinct features natively equals the reference, and is uniform."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from srs_ooc.kernel import _native
from srs_ooc.kernel.native import draw_distinct
from srs_ooc.kernel.reference import draw_distinct as reference_draw
from srs_ooc.seeds import derive, mix32_array


@settings(deadline=None)
@given(st.data(), st.integers(1, 5000), st.integers(0, 2**64 - 1))
def test_native_draw_equals_reference(data, bound, key):
    n_excluded = data.draw(st.integers(0, min(bound, 300)))
    count = data.draw(st.integers(0, min(bound - n_excluded, 400)))
    excluded = np.random.default_rng(key % 1000).choice(bound, n_excluded, replace=False)
    excluded = excluded.astype(np.uint32)
    drawn = draw_distinct(key, bound, excluded, count)
    np.testing.assert_array_equal(drawn, reference_draw(key, bound, excluded, count))
    assert len(set(drawn.tolist()) | set(excluded.tolist())) == count + n_excluded


def test_every_feature_is_drawn_equally_often():
    counts = np.zeros(50)
    for key in range(4000):
        counts[draw_distinct(key, 50, None, 10)] += 1
    expected = 4000 * 10 / 50
    assert ((counts - expected) ** 2 / expected).sum() < 49 + 5 * np.sqrt(2 * 49)


def test_exclusion_leaves_the_order_of_the_rest():
    """C is the first members of one sequence not in R, whatever R is (law 9)."""
    whole = draw_distinct(7, 1000, None, 300)
    excluded = whole[[0, 5, 250]]
    rest = draw_distinct(7, 1000, excluded, 200)
    np.testing.assert_array_equal(rest, [x for x in whole if x not in excluded][:200])


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1), st.integers(0, 2**32 - 1))
def test_native_hashes_equal_the_python_ones(key, word, x):
    assert _native.derive(key, word) == derive(key, word)
    assert _native.mix32(x) == int(mix32_array(np.array([x], dtype=np.uint32))[0])


def test_drawing_more_than_there_are_is_refused():
    with pytest.raises(ValueError, match="distinct"):
        draw_distinct(1, 5, np.array([0], dtype=np.uint32), 5)
