"""The judges admit by the paper's rules, exactly."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from examples import given, st

from srs_ooc.base.records import PAGE_ITEMS, Outcome
from srs_ooc.evidence.judges import PositiveJudge, ProbeJudge
from srs_ooc.evidence.tally import Tally


def outcome(features, importance, probe=None):
    return Outcome(np.array(features, np.uint32), np.array(importance, np.int64), probe)


def probe_judge(draws, wins):
    return ProbeJudge(probe_min_draws=draws, probe_min_wins=wins)


def test_positive_admits_any_importance_above_zero():
    result = outcome([4, 2, 9], [0, 1, 5])
    assert PositiveJudge().admit(Tally(10), result).tolist() == [False, True, True]
    assert PositiveJudge().probe(1, 3) is None


def test_a_feature_is_admitted_when_drawn_more_than_l_times_and_better_in_beta_of_them():
    judge, tally = probe_judge(10, "0.9"), Tally(3)
    admitted = []
    for draw in range(1, 31):
        # Feature 0 always wins, feature 1 loses draws 1 and 2, feature 2 only ever ties.
        result = outcome([0, 1, 2], [9, 9 if draw > 2 else 1, 5], 5)
        tally.absorb(draw, result)
        admitted.append(judge.admit(tally, result).tolist())
    firsts = [next((i + 1 for i, row in enumerate(admitted) if row[f]), None) for f in range(3)]
    assert firsts == [11, 20, None]
    assert tally.n_better.tolist() == [30, 28, 0]
    assert tally.n_drawn.tolist() == [30, 30, 30]


def test_beta_is_compared_exactly():
    """19 wins of 20 are a share of at least 0.95, which binary floating point would not say."""
    judge, tally = probe_judge(10, "0.95"), Tally(1)
    tally.n_drawn[0], tally.n_better[0] = 20, 19
    assert judge.admit(tally, outcome([0], [1], 0)).tolist() == [True]
    tally.n_better[0] = 18
    assert judge.admit(tally, outcome([0], [1], 0)).tolist() == [False]


@given(st.integers(0, 2**32), st.integers(0, 12), st.sampled_from(["0", "0.5", "0.95", "1"]))
def test_admission_is_what_fractions_say(seed, min_draws, share):
    rng, judge, tally = np.random.default_rng(seed), probe_judge(min_draws, share), Tally(30)
    tally.n_drawn[:] = rng.integers(1, 21, 30)
    tally.n_better[:] = rng.integers(0, tally.n_drawn + 1)
    features = rng.choice(30, 10, replace=False)
    expected = [
        int(tally.n_drawn[f]) > min_draws
        and Fraction(int(tally.n_better[f]), int(tally.n_drawn[f])) >= Fraction(share)
        for f in features
    ]
    assert judge.admit(tally, outcome(features, [0] * 10, 0)).tolist() == expected


def test_the_probe_copies_each_column_equally_often():
    sources = np.bincount([probe_judge(10, "0.95").probe(key, 8).source for key in range(8000)])
    assert len(sources) == 8
    assert ((sources - 1000) ** 2 / 1000).sum() < 7 + 5 * np.sqrt(14)


def test_tallies_do_not_depend_on_the_order_of_addition():
    rng = np.random.default_rng(0)
    outcomes = [
        outcome(rng.choice(50, 10, replace=False), rng.integers(0, 2**40, 10), 2**39)
        for _ in range(40)
    ]
    one, other = Tally(50), Tally(50)
    for result in outcomes:
        one.absorb(0, result)
    for i in rng.permutation(40):
        other.absorb(0, outcomes[i])
    for name, pages in one.state().pages.items():
        np.testing.assert_array_equal(pages.array, other.state().pages[name].array)


@given(st.integers(1, 40_000), st.integers(0, 2**32), st.booleans())
def test_a_tally_is_what_numpy_adds_up(n_features, seed, wins):
    rng, tally = np.random.default_rng(seed), Tally(n_features, wins=wins)
    sums, drawn, better = np.zeros(n_features, np.int64), np.zeros(n_features), tally.n_better * 0
    for _ in range(3):
        features = rng.choice(n_features, min(n_features, 20), replace=False)
        result = outcome(features, rng.integers(0, 5, len(features)) << 38, int(wins) << 38)
        if not wins:
            result = replace(result, probe_importance=None)
        tally.absorb(0, result)
        sums[features] += result.importance
        drawn[features] += 1
        if wins:
            better[features] += result.importance > result.probe_importance
    pages = tally.state().pages
    for name, expected in (("importance", sums), ("n_drawn", drawn), ("n_better", better)):
        np.testing.assert_array_equal(pages[name].array, expected)
    touched = np.unique(np.flatnonzero(drawn) // PAGE_ITEMS)
    np.testing.assert_array_equal(np.flatnonzero(pages["importance"].changed), touched)


def test_a_feature_that_no_tally_holds_is_an_error_and_nothing_is_added():
    tally = Tally(3)
    with pytest.raises(ValueError, match=r"features\[1\]: expected 0 to 2"):
        tally.absorb(0, outcome([0, 3], [1, 1], 0))
    assert not tally.n_drawn.any()


def test_a_tally_keeps_16_bytes_a_feature():
    assert sum(pages.array.nbytes for pages in Tally(1000).state().pages.values()) == 16 * 1000
