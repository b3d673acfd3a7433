"""Drawing by whole-number weights: each law exact, each draw the same everywhere."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from srs_ooc.base.errors import UsageError
from srs_ooc.base.seeds import derive
from srs_ooc.samplers.draws import WeightedDrawing, uniform_below

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
