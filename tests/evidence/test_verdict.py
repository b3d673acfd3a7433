"""The cut of a pooled ranking, the closing stage before it, and what stands beside it."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from srs_ooc.evidence.correlation import average_linkage, largest_cluster, single_linkage
from srs_ooc.evidence.rank_tests import least_passing, p_values_of
from srs_ooc.evidence.tally import Tally, best_items, best_of_each
from srs_ooc.evidence.verdict import (
    Comparison,
    certify,
    count_decoys,
    exceeds_chance,
    fewest_features,
    passing_level,
    pool,
)
from srs_ooc.samplers.elimination import Elimination


def cut(is_decoy, n_families, largest, level, **given):
    """The verdict on a ranking of items that are all of different features."""
    asked = {"is_best": np.ones(len(is_decoy), bool)}
    return count_decoys(np.asarray(is_decoy), n_families, largest, level, **(asked | given))


@given(
    st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=80),
    st.integers(1, 4),
    st.integers(1, 3),
    st.floats(0.01, 0.9),
)
def test_the_cut_is_the_lowest_place_whose_estimate_holds(items, n_families, largest, level):
    is_decoy, is_best = np.array(items).T
    verdict = cut(is_decoy, n_families, largest, level, is_best=is_best)
    cuts = [0]
    for k in range(1, len(items) + 1):
        n_decoys = sum(decoy and best for decoy, best in items[:k])
        n_features = sum(best and not decoy for decoy, best in items[:k])
        begins = not is_decoy[is_best.argmax()]
        if begins and n_features and (largest + n_decoys) / (n_families * n_features) <= level:
            cuts.append(k)
    assert verdict.n_above == cuts[-1]
    expected = (np.arange(len(items)) < cuts[-1]) & ~is_decoy & is_best
    np.testing.assert_array_equal(verdict.is_selected, expected)
    np.testing.assert_array_equal((verdict.levels <= level) & ~is_decoy, expected)


@given(
    st.lists(st.booleans(), min_size=1, max_size=60),
    st.lists(st.floats(0, 2), max_size=20),
    st.integers(1, 4),
    st.floats(0.01, 0.9),
    st.floats(0, 0.2),
)
def test_what_tests_expect_is_added_to_what_is_counted_below(
    decoys, expected, n_families, level, bar
):
    is_decoy, expected = np.array(decoys), np.sort(expected)[: len(decoys)]
    m = len(expected)
    # Among those that stand out a decoy's feature counts all the same.
    is_best = np.arange(len(decoys)) >= min(m, 2)
    given = {"is_best": is_best, "expected": expected, "passing_level": bar}
    verdict = cut(is_decoy, n_families, 2, level, **given)
    cuts = [0]
    exceeds = exceeds_chance(is_decoy[:m], n_families, 1, expected)

    def tested(place):
        beside = (1 + sum(decoys[: place + 1])) / n_families
        return max(expected[place], beside) if exceeds[place] else expected[place]

    telling = [place for place in range(m) if exceeds[place] or not decoys[place]]
    below = max(tested(telling[-1]) if telling else 0.0, bar * (m - sum(decoys[:m])))
    for k in range(1, len(decoys) + 1):
        n_false = tested(k - 1) if k <= m else below + (2 + sum(decoys[m:k])) / n_families
        if k > m and decoys[m]:
            continue
        if k > sum(decoys[:k]) and n_false / (k - sum(decoys[:k])) <= level:
            cuts.append(k)
    assert verdict.n_above == cuts[-1]
    is_above = np.arange(len(decoys)) < cuts[-1]
    np.testing.assert_array_equal(verdict.is_selected, is_above & ~is_decoy)


def test_features_that_stand_out_are_selected_as_benjamini_and_hochberg_do():
    """With nothing below them there is no grain, and the level holds."""
    rng = np.random.default_rng(1)
    shares = []
    for _ in range(400):
        p_values = np.concatenate([rng.random(4) * 1e-6, rng.random(400)])
        order = np.argsort(p_values)
        strengths = strengths_of(p_values)
        first = order[strengths[order] >= least_passing(strengths, 0.1)]
        verdict = cut(np.zeros(len(first), bool), 1, 1, 0.1, expected=404 * p_values[first])
        assert verdict.n_above == len(first) >= 4
        assert verdict.is_selected.all()
        shares.append(np.count_nonzero(first >= 4) / len(first))
    assert 0.05 < np.mean(shares) < 0.1 + 3 * np.std(shares) / 20


def test_features_that_stand_out_leave_a_part_of_the_level_to_others():
    assert passing_level(Fraction(1, 10)) == Fraction(3, 37)


@pytest.mark.parametrize(("families", "fewest"), [(1, 10), (2, 5), (4, 3)])
def test_counting_has_a_grain(families, fewest):
    assert fewest_features(families, 1, 0.1) == fewest
    assert cut(np.zeros(fewest, bool), families, 1, 0.1).n_above == fewest
    assert cut(np.zeros(fewest - 1, bool), families, 1, 0.1).n_above == 0


def test_counting_selects_nothing_where_a_decoy_leads():
    led_by_decoy = np.arange(60) == 0
    assert cut(led_by_decoy, 7, 1, 0.1).n_above == 0
    assert cut(np.roll(led_by_decoy, 1), 7, 1, 0.1).n_above == 60


def test_the_bar_that_features_passed_leaves_less_to_counting():
    alone, tiny = np.zeros(4, bool), np.full(3, 1e-6)
    assert cut(alone, 3, 1, 0.1, expected=tiny).n_above == 4
    assert cut(alone, 3, 1, 0.1, expected=tiny, passing_level=0.08).n_above == 3


def test_a_decoy_that_stands_out_by_chance_costs_the_features_below_nothing():
    expected = np.array([1e-9, 0.3])
    found = cut(np.array([False, True, False, False]), 7, 1, 0.1, expected=expected)
    assert found.is_selected.tolist() == [True, False, True, True]


def test_nothing_relevant_is_selected_once_in_eight_however_features_are_correlated():
    """All features one cluster, so that c says nothing of the other copies."""
    rng = np.random.default_rng(3)
    n_selected = 0
    for _ in range(2000):
        copies = np.repeat(rng.permutation(8), 30)
        n_selected += cut(copies > 0, 7, 1, 0.1).n_above > 0
    assert abs(n_selected / 2000 - 1 / 8) < 4 * (7 / 64 / 2000) ** 0.5


def test_average_linkage_does_not_chain_clusters_that_touch():
    """Neighbours are correlated at 0.7, second ones at 0.49: one chain of all."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(60, 4000))
    for j in range(1, 60):
        values[j] = 0.7 * values[j - 1] + 0.51**0.5 * values[j]
    codes = (values.argsort(1).argsort(1) // 16).astype(np.uint8)
    everyone = np.ones(60, bool)
    assert largest_cluster(single_linkage(codes, 255), everyone) == 60
    assert largest_cluster(average_linkage(codes, 255), everyone) <= 4


@pytest.mark.parametrize("r", [0.6, 0.95])
def test_blocks_of_correlated_items_are_found_whole(r):
    rng = np.random.default_rng(1)
    causes = np.repeat(rng.normal(size=(6, 2000)), 10, axis=0)
    values = r**0.5 * causes + (1 - r) ** 0.5 * rng.normal(size=(60, 2000))
    codes = (values.argsort(1).argsort(1) // 8).astype(np.uint8)
    np.testing.assert_array_equal(average_linkage(codes, 255), np.arange(60) // 10 * 10)


def test_decoys_alone_are_no_selection():
    assert cut(np.ones(3, bool), 1, 1, 0.5, expected=np.full(3, 1e-9)).n_above == 0


def test_counting_holds_the_level_where_irrelevant_items_are_exchangeable():
    rng = np.random.default_rng(0)
    shares = []
    for _ in range(400):
        scores = np.concatenate([rng.normal(3, 1, 25), rng.normal(0, 1, 400)])
        is_decoy = np.concatenate([np.zeros(25, bool), rng.random(400) < 0.5])
        order = np.argsort(-scores)
        chosen = order[cut(is_decoy[order], 1, 1, 0.1).is_selected]
        shares.append(np.count_nonzero(chosen >= 25) / max(len(chosen), 1))
    assert np.mean(shares) < 0.1 + 3 * np.std(shares) / 20


def expectations(order, level, *, counts_both=False):
    """Return E[V / k] and E[V / (1 + D)] over all ways to call one of each pair the decoy.

    ``order`` holds each number twice: first met the better of the pair, then the other. Relevant
    features, their numbers below 0, come without decoys.
    """
    numbers = np.array(order)
    is_first = best_of_each(numbers)
    is_best = np.ones(len(order), bool) if counts_both else is_first
    pairs = np.unique(numbers[numbers >= 0])
    found = []
    for flips in itertools.product([False, True], repeat=len(pairs)):
        better_is_decoy = dict(zip(pairs.tolist(), flips, strict=True))
        met = zip(order, is_first.tolist(), strict=True)
        is_decoy = np.array([i >= 0 and better_is_decoy[i] == first for i, first in met])
        verdict = cut(is_decoy, 1, 1, level, is_best=is_best)
        chosen = numbers[verdict.is_selected]
        n_false = np.count_nonzero(chosen >= 0)
        n_decoys = np.count_nonzero((is_decoy & is_best)[: verdict.n_above])
        found.append((n_false / max(len(chosen), 1), n_false / (1 + n_decoys)))
    return np.mean(found, axis=0)


def test_where_both_of_a_pair_are_ranked_the_better_counts():
    """Labels of a pair are not independent: counted both, the bound of the proof is passed."""
    order = [-1, -2, -3, 0, 0, 1, 1, 2, 3, 2, 4, 3, 4]
    assert expectations(order, 0.5, counts_both=True)[1] == pytest.approx(97 / 96)
    assert expectations(order, 0.5)[1] <= 1


@examples(30)
@given(st.permutations(sorted([*range(6), *range(6)])), st.integers(0, 4), st.floats(0.1, 0.9))
def test_counting_holds_the_level_exactly_in_any_blind_order(order, n_relevant, level):
    share, ratio = expectations([*range(-n_relevant, 0), *order], level)
    assert share <= level + 1e-12
    assert ratio <= 1 + 1e-12


@examples(25)
@given(st.integers(0, 2**32), st.integers(1, 40), st.integers(1, 150_000))
def test_the_best_items_are_those_of_a_full_sort(seed, count, n_items):
    rng = np.random.default_rng(seed)
    tally = Tally(n_items, wins=False)
    tally.importance[:] = rng.integers(0, 4, n_items) << 36
    tally.n_drawn[:] = rng.integers(0, 3, n_items)
    found = best_items(tally, count, 5)
    drawn = tally.n_drawn > 0
    scores = np.where(drawn, tally.importance / np.maximum(tally.n_drawn, 1), -1)
    assert len(found) == len(set(found.tolist())) == min(count, n_items)
    np.testing.assert_array_equal(scores[found], np.sort(scores)[::-1][:count])


def test_ties_of_a_ranking_are_broken_at_random():
    tally = Tally(200_000, wins=False)
    found = best_items(tally, 2000, 9)
    assert 90_000 < found.mean() < 110_000


def test_items_correlated_directly_or_through_others_are_one_group():
    rng = np.random.default_rng(0)
    walk = np.cumsum(rng.standard_normal((5, 400)) * [[1], [0.4], [0.4], [0.4], [0.4]], axis=0)
    values = np.concatenate([walk, rng.standard_normal((3, 400)), -walk[:1]])
    codes = values.argsort(axis=1).argsort(axis=1) * 250 // 400
    codes[1, :7] = 255
    codes[6] = 3
    assert single_linkage(codes, 255).tolist() == [0, 0, 0, 0, 0, 5, 6, 7, 0]
    members = np.array([1, 0, 1, 0, 0, 1, 0, 0, 1], bool)
    assert largest_cluster(single_linkage(codes, 255), members) == 3
    assert largest_cluster(np.arange(3), np.zeros(3, bool)) == 1
    assert largest_cluster(np.zeros(0, np.intp), np.zeros(0, bool)) == 1


@pytest.mark.parametrize("size", [5, 10, 20, 50])
def test_a_group_that_leads_is_not_taken_for_many_features(size):
    """Groups of one label, by coin, one after another; nothing is relevant."""
    rng = np.random.default_rng(size)
    groups = np.arange(1000) // size
    n_selected = 0
    for _ in range(300):
        is_decoy = (rng.random(1000) < 0.5)[groups]
        largest = largest_cluster(groups[:250], is_decoy[:250])
        n_selected += cut(is_decoy, 1, largest, 0.1).n_above > 0
    assert n_selected <= 0.1 * 300


@pytest.mark.parametrize("n_rows", [8, 30, 36, 40, 400])
def test_the_same_column_twice_is_a_group_however_few_the_rows(n_rows):
    codes = np.random.default_rng(1).permuted(np.tile(np.arange(n_rows), (3, 1)), axis=1)
    assert single_linkage(np.vstack([codes, codes[:1]]), 65535).tolist() == [0, 1, 2, 0]


def test_the_best_of_each_feature_is_met_first():
    assert best_of_each(np.array([4, 2, 4, 2, 0])).tolist() == [True, True, False, False, True]
    assert best_of_each(np.zeros(0, np.uint32)).tolist() == []


def strengths_of(p_values):
    return -np.log10(p_values)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_strengths_that_pass_are_benjamini_and_hochbergs(dtype):
    p_values = np.random.default_rng(0).random(300) ** 3
    strengths = strengths_of(p_values).astype(dtype)
    passing = stats.false_discovery_control(p_values) <= 0.1
    np.testing.assert_array_equal(strengths >= least_passing(strengths, 0.1), passing)
    assert least_passing(np.zeros(5, dtype), 0.1) == np.inf
    with_gaps = np.concatenate([strengths, np.full(50, np.nan, dtype)])
    assert least_passing(with_gaps, 0.1) == least_passing(strengths, 0.1)


def test_p_values_beyond_double_precision_pass_and_keep_their_order():
    strengths = np.array([500.0, 400.0, 0.1, 0.2], np.float32)
    assert least_passing(strengths, 0.1) == 400
    assert p_values_of(strengths).tolist()[:2] == [1e-300, 1e-300]


@given(
    st.lists(st.booleans(), min_size=1, max_size=60),
    st.lists(st.floats(1e-6, 30), min_size=1, max_size=60),
    st.integers(1, 4),
    st.integers(1, 9),
)
def test_decoys_exceed_chance_only_where_a_poisson_number_would_not(decoys, expected, m, c):
    expected = np.sort(expected)[: len(decoys)]
    is_decoy = np.array(decoys[: len(expected)])
    exceeds = exceeds_chance(is_decoy, m, c, expected)
    n_decoys = np.cumsum(is_decoy)
    if c == 1:
        chance = stats.poisson.sf(n_decoys - 1, m * expected)
        assert np.all(chance[exceeds] <= 1e-3)
        assert not np.any(exceeds & (n_decoys <= m * expected))
    else:
        assert not np.any(exceeds & ~exceeds_chance(is_decoy, m, c - 1, expected))


def test_many_more_decoys_than_chance_allows_are_counted_where_tests_speak():
    is_decoy = np.arange(600) % 3 == 0
    expected = np.linspace(0.01, 20, 600)
    verdict = cut(is_decoy, 1, 1, 0.1, expected=expected)
    assert verdict.n_above < 20
    exceeds = exceeds_chance(is_decoy, 1, 1, expected)
    assert exceeds[-1]
    assert verdict.levels[-2] == pytest.approx(201 / 400)
    few = is_decoy & (np.arange(600) % 30 == 0)
    assert not exceeds_chance(few, 1, 1, expected).any()
    assert cut(few, 1, 1, 0.1, expected=expected).n_above == 600


def test_valid_tests_are_hardly_ever_overruled_by_their_decoys():
    rng = np.random.default_rng(2)
    overruled = 0
    for _ in range(300):
        p_values = np.concatenate([rng.random(30) * 1e-5, rng.random(1970)])
        is_decoy = np.arange(2000) >= 1000
        order = np.argsort(p_values)[:60]
        exceeds = exceeds_chance(is_decoy[order], 1, 1, 1000 * p_values[order])
        overruled += exceeds[-1]
    assert overruled <= 2


# The pooled ranking: who comes first, and in which order the others follow.

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


# Who exceeds what runs on permuted targets reach.

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
