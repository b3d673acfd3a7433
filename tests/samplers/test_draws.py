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

from srs_ooc.base.errors import UsageError
from srs_ooc.base.seeds import derive
from srs_ooc.native import _native
from srs_ooc.samplers.draws import WeightedDrawing, draw_blocks, draw_distinct, uniform_below


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


# Drawing by whole-number weights: each law exact, each draw the same everywhere.

LARGEST = 2**32 - 1
NONE = np.zeros(0, np.uint32)
weight_lists = st.lists(
    st.one_of(st.just(0), st.integers(1, 9), st.sampled_from([2**16, LARGEST])),
    min_size=1,
    max_size=200,
)


def drawing(weights, count, *, replacement=False):
    return WeightedDrawing(np.array(weights, np.uint32), count, replacement=replacement)


@given(weight_lists, st.data())
def test_the_item_at_each_place_is_the_one_that_lies_there(weights, data):
    line, ends = drawing(weights, 0), np.cumsum(weights)
    assert line.total == sum(weights)
    if not line.total:
        return
    some = data.draw(st.lists(st.integers(0, line.total - 1), max_size=50))
    places = [*some, 0, line.total - 1]
    items, starts = line.find(np.array(places, np.uint64))
    for place, item, start in zip(places, items.tolist(), starts.tolist(), strict=True):
        assert item == np.searchsorted(ends, place, side="right")
        assert start == ends[item] - weights[item]


@given(weight_lists, st.integers(0, 2**64 - 1), st.data())
def test_draws_without_replacement_are_distinct_and_have_a_weight(weights, key, data):
    count = data.draw(st.integers(0, np.count_nonzero(weights)))
    drawn = drawing(weights, count).drawn(key)
    assert len(drawn) == count == len(set(drawn.tolist()))
    assert all(weights[item] for item in drawn)
    np.testing.assert_array_equal(drawn, drawing(weights, count).drawn(key))


def one_after_another(weights, count):
    """P(items in this order), drawn by their weights from those left."""
    chances = {}
    for order in permutations(range(len(weights)), count):
        left, chance = sum(weights), 1.0
        for item in order:
            chance *= weights[item] / left
            left -= weights[item]
        chances[order] = chance
    return chances


@pytest.mark.slow
@pytest.mark.parametrize(
    ("weights", "count"), [([1, 2, 3, 4], 2), ([1, 50, 7, 400], 3), ([1, 1, 1, 1000], 3)]
)
def test_the_order_drawn_has_the_law_of_one_draw_after_another(weights, count):
    line, n = drawing(weights, count), 20_000
    seen = dict.fromkeys(one_after_another(weights, count), 0)
    for key in range(n):
        seen[tuple(line.drawn(derive(5, key)).tolist())] += 1
    for order, chance in one_after_another(weights, count).items():
        assert abs(seen[order] - n * chance) < 5 * np.sqrt(n * chance * (1 - chance)) + 1, order


def test_draws_with_replacement_follow_the_weights():
    weights, n = [0, 1, 2, 0, 3, 10], 40_000
    drawn = drawing(weights, n, replacement=True).drawn(3)
    for item, weight in enumerate(weights):
        chance = weight / 16
        spread = np.sqrt(n * chance * (1 - chance))
        assert abs((drawn == item).sum() - n * chance) <= 5 * spread


@pytest.mark.parametrize("bound", [1, 7, 2**32 + 1, 3 << 61, 2**63 + 1])
def test_numbers_below_a_bound_are_exactly_uniform(bound):
    """With a bound of 3/8 of the range of hashes, taking the remainder of all would show."""
    n = 30_000
    found = uniform_below(11, n, bound)
    assert len(found) == n
    assert int(found.max()) < bound
    if bound > 1 << 40:
        thirds = np.minimum((found // np.uint64(bound // 3)).astype(int), 2)
        counts = np.bincount(thirds, minlength=3)
        assert np.abs(counts - n / 3).max() < 5 * np.sqrt(n * 2 / 9)
    np.testing.assert_array_equal(found[:100], uniform_below(11, 100, bound))


def test_fixed_vectors():
    """These numbers are part of every result."""
    weights = [1, 20, 300, 4000, 50_000, 600_000, 7_000_000, 0, 9]
    assert drawing(weights, 8).drawn(1).tolist() == [6, 5, 4, 3, 2, 1, 8, 0]
    assert drawing(weights, 8, replacement=True).drawn(1).tolist() == [6, 6, 6, 5, 6, 6, 6, 6]


def test_a_subspace_is_distinct_and_ascending_and_smaller_with_replacement():
    weights = [1, 1, 1000, 0, 1, 1]
    once = drawing(weights, 4).draw(NONE, 9)
    assert once.dtype == np.uint32
    assert len(once) == 4
    found = drawing(weights, 4, replacement=True).draw(NONE, 9)
    assert 1 <= len(found) <= 4
    assert (np.diff(found.astype(int)) > 0).all()
    with pytest.raises(UsageError, match="at most 5"):
        drawing(weights, 6)
