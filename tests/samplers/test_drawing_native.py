"""Drawing distinct features natively equals the reference, and is uniform, by blocks as well."""

from collections import Counter
from itertools import combinations, permutations

import numpy as np
import pytest
from distinct_reference import draw_blocks as reference_blocks
from distinct_reference import items_from
from forest_reference import mix32_array
from hypothesis import given
from hypothesis import strategies as st
from tree_reference import draw_distinct as reference_draw

from srs_ooc.base.seeds import derive
from srs_ooc.native import _native
from srs_ooc.samplers.draws import draw_blocks, draw_distinct


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
    with pytest.raises(ValueError, match="distinct"):
        draw_blocks(1, 5, 2, np.array([0], dtype=np.uint32), 5)
    with pytest.raises(ValueError, match="blocks of 1 item"):
        draw_blocks(1, 5, 6, None, 2)


@given(st.data(), st.integers(1, 1500), st.integers(1, 1500), st.integers(0, 2**64 - 1))
def test_native_blocks_equal_the_reference(data, bound, block_size, key):
    block_size = min(block_size, bound)
    n_excluded = data.draw(st.integers(0, bound))
    count = data.draw(st.integers(0, bound - n_excluded))
    excluded = np.random.default_rng(key % 1000).choice(bound, n_excluded, replace=False)
    excluded = excluded.astype(np.uint32)
    drawn = draw_blocks(key, bound, block_size, excluded, count)
    np.testing.assert_array_equal(drawn, reference_blocks(key, bound, block_size, excluded, count))
    assert len(set(drawn.tolist()) | set(excluded.tolist())) == count + n_excluded


@given(st.integers(0, 2**64 - 1), st.integers(2, 40))
def test_what_is_drawn_are_whole_blocks_but_the_first_and_the_last(key, block_size):
    drawn = draw_blocks(key, 1000, block_size, None, 200).astype(np.int64)
    edges = np.flatnonzero(np.diff(drawn) != 1) + 1
    pieces = np.split(drawn, edges)
    assert len(pieces) <= 200 // block_size + 4
    # Adjacent blocks may follow one another; all cuts lie on one grid, but at the line's ends.
    begins = {int(piece[0]) % block_size for piece in pieces[1:] if piece[0] > 0}
    assert len(begins) <= 1


@pytest.mark.parametrize(("bound", "block_size"), [(5, 2), (6, 3), (7, 3), (6, 4), (5, 5)])
def test_every_item_not_excluded_is_drawn_with_exactly_the_same_probability(bound, block_size):
    """All shifts, starts and orders, for any exclusion and count: p no multiple of g as well."""
    for n_excluded in range(bound):
        for passed in combinations(range(bound), n_excluded):
            others = [item for item in range(bound) if item not in passed]
            for count, drawn in inclusions(bound, block_size, passed).items():
                assert set(drawn) == set(others)
                assert len(set(drawn.values())) == 1, (passed, count)


def inclusions(bound, block_size, passed):
    """How often each item is among the first `count`, for every count, each case weighing alike."""
    drawn = {count: Counter() for count in range(1, bound - len(passed) + 1)}
    for shift in range(block_size):
        n_blocks = (bound - 1 + shift) // block_size + 1
        # Orders of the other blocks weigh alike within a shift; shifts are made to weigh alike.
        weight = int(np.prod(range(1, 8))) // int(np.prod(range(1, n_blocks)))
        for start in set(range(bound)) - set(passed):
            first = (start + shift) // block_size
            for rest in permutations(set(range(n_blocks)) - {first}):
                circle = items_from(start, (first, *rest), bound, block_size, shift, passed)
                for place, item in enumerate(circle):
                    for count in range(place + 1, len(circle) + 1):
                        drawn[count][item] += weight
    return drawn


@pytest.mark.parametrize("excluded", [[], [0, 1, 2, 3, 30, 31, 49]])
def test_every_item_is_drawn_equally_often_by_blocks(excluded):
    """With the real keys: 50 items in blocks of 8, some excluded."""
    excluded, n = np.array(excluded, dtype=np.uint32), 6000
    counts = np.zeros(50)
    for key in range(n):
        counts[draw_blocks(derive(3, key), 50, 8, excluded, 10)] += 1
    assert (counts[excluded] == 0).all()
    others = np.delete(counts, excluded)
    p = 10 / len(others)
    assert np.abs(others - n * p).max() < 4.5 * np.sqrt(n * p * (1 - p))


def test_exclusion_leaves_the_order_of_the_rest_of_the_blocks():
    """Law 9: unless the start itself is excluded, C is the rest of one sequence of the key."""
    whole = draw_blocks(7, 1000, 16, None, 300)
    excluded = whole[[1, 5, 250]]
    rest = draw_blocks(7, 1000, 16, excluded, 200)
    np.testing.assert_array_equal(rest, [x for x in whole if x not in excluded][:200])
    # Without its start, all but the first block is the same.
    moved = draw_blocks(7, 1000, 16, whole[:1], 300)
    assert len(np.intersect1d(moved, whole)) >= 300 - 2 * 16
