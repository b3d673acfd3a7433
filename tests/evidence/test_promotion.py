"""The pooled ranking: who comes first, and in which order the others follow."""

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from srs_ooc.evidence.verdict import pool
from srs_ooc.samplers.elimination import Elimination

EVEN = ((0.3, 0.3),)
N = 120


def closed(seed):
    """Return a closing stage that is over, of items 0, 3, 6, ...: rounds of 120, 60 and 30."""
    rng = np.random.default_rng(seed)
    stage = Elimination(np.arange(0, 3 * N, 3, dtype=np.uint32), seed, EVEN, N)
    stage.items = rng.permutation(stage.items)
    stage.rounds = np.repeat(np.array([2, 1, 0], np.uint8), [30, 30, 60])
    for number in range(3):
        there = stage.rounds == number
        stage.scores[there] = np.sort(rng.integers(0, 50, np.count_nonzero(there)))[::-1]
    return stage


@examples(60)
@given(st.integers(0, 9), st.sets(st.integers(0, 3 * N - 1), max_size=60), st.data())
def test_outstanding_items_come_first_and_the_others_keep_their_order(seed, chosen, data):
    stage = closed(seed)
    outstanding = np.array(sorted(chosen), np.uint32)
    values = st.sampled_from([400.0, 320.0, 9.0, 4.0, 2.0])
    strengths = np.array([data.draw(values) for _ in chosen], np.float32)
    pooled = pool(stage.items, outstanding, strengths, 7)
    m = len(outstanding)
    assert pooled.n_outstanding == m
    assert sorted(pooled.items[:m]) == sorted(chosen)
    own = dict(zip(outstanding.tolist(), strengths.tolist(), strict=True))
    assert pooled.strengths.tolist() == [own[item] for item in pooled.items[:m].tolist()]
    assert np.all(np.diff(pooled.strengths) <= 0)
    np.testing.assert_allclose(
        pooled.p_values, np.maximum(10.0 ** -pooled.strengths.astype(float), 1e-300)
    )
    rest = [item for item in stage.items.tolist() if item not in chosen]
    assert pooled.items[m:].tolist() == rest
    there = pooled.closing_places >= 0
    assert set(pooled.items[~there].tolist()) == chosen - set(stage.items.tolist())
    np.testing.assert_array_equal(stage.items[pooled.closing_places[there]], pooled.items[there])


@pytest.mark.parametrize("key", range(4))
def test_ties_among_outstanding_items_are_broken_at_random(key):
    items = np.arange(1, 200, dtype=np.uint32)
    equal = np.zeros(len(items), np.float32)
    order = pool(closed(0).items, items, equal, key).items[: len(items)]
    assert not np.array_equal(order, items)
    again = pool(closed(0).items, items[::-1].copy(), equal, key).items[: len(items)]
    np.testing.assert_array_equal(order, again)


def test_with_nothing_outstanding_the_ranking_is_the_closing_stages():
    stage = closed(3)
    pooled = pool(stage.items, np.zeros(0, np.uint32), np.zeros(0, np.float32), 1)
    np.testing.assert_array_equal(pooled.items, stage.items)
    np.testing.assert_array_equal(pooled.closing_places, np.arange(N))
