"""What led a ranking is kept at few points, and is the same wherever a run was stopped."""

import numpy as np
from examples import examples, given, st

from srs_ooc.base.records import Outcome
from srs_ooc.evidence.tally import HISTORY_FIRST, LEADING, RankingHistory, Tally, best_features

N_FEATURES, KEY = 150, 7


class Saved:
    facts = None

    def __init__(self, state):
        self.arrays = dict(state.arrays)


def absorbed(history, tally, iteration):
    rng = np.random.default_rng(iteration)
    features = np.sort(rng.choice(N_FEATURES, 20, replace=False)).astype(np.uint32)
    outcome = Outcome(features, rng.integers(0, 1 << 20, 20))
    tally.absorb(iteration, outcome)
    history.absorb(iteration, outcome)


def kept_of(stops, until=400):
    tally = Tally(N_FEATURES, wins=False)
    history = RankingHistory(tally, KEY)
    for iteration in range(until):
        if iteration in stops:
            saved = Saved(history.state())
            history = RankingHistory(tally, KEY)
            history.restore(saved)
        absorbed(history, tally, iteration)
    return history.state().arrays


WHOLE = kept_of(())


@given(st.sets(st.integers(0, 399), max_size=4))
def test_it_is_the_same_wherever_a_run_was_stopped(stops):
    found = kept_of(stops)
    assert found["iterations"].tolist() == WHOLE["iterations"].tolist()
    assert np.array_equal(found["features"], WHOLE["features"])


def test_it_holds_the_first_of_the_ranking_at_points_ever_further_apart():
    tally = Tally(N_FEATURES, wins=False)
    history = RankingHistory(tally, KEY)
    for iteration in range(HISTORY_FIRST):
        absorbed(history, tally, iteration)
    kept = history.state().arrays
    assert kept["iterations"].tolist() == [HISTORY_FIRST]
    assert np.array_equal(kept["features"][0], best_features(tally, LEADING, KEY))
    assert WHOLE["iterations"].tolist() == [100, 134, 179, 239, 319]


def test_its_size_is_bounded_whatever_the_length_of_the_run():
    history = RankingHistory(Tally(3, wins=False), KEY)
    nothing = Outcome(np.zeros(0, np.uint32), np.zeros(0, np.int64))
    n_done = 0
    while n_done < 10**8:
        n_done = max(n_done + 1, history._next)
        history.absorb(n_done - 1, nothing)
    features = history.state().arrays["features"]
    assert len(features) < 50
    assert features.shape[1] == 3


def test_a_run_that_was_begun_without_one_goes_on_with_one():
    history = RankingHistory(Tally(3, wins=False), KEY)
    history.restore(Saved(history.state()))
    assert not history.state().arrays


@examples(25)
@given(st.integers(0, 2**32), st.integers(1, 40), st.integers(1, 150_000))
def test_the_best_features_are_those_of_a_full_sort(seed, count, n_features):
    rng = np.random.default_rng(seed)
    tally = Tally(n_features, wins=False)
    tally.importance[:] = rng.integers(0, 4, n_features) << 36
    tally.n_drawn[:] = rng.integers(0, 3, n_features)
    found = best_features(tally, count, 5)
    drawn = tally.n_drawn > 0
    scores = np.where(drawn, tally.importance / np.maximum(tally.n_drawn, 1), -1)
    assert len(found) == len(set(found.tolist())) == min(count, n_features)
    np.testing.assert_array_equal(scores[found], np.sort(scores)[::-1][:count])


def test_ties_of_a_ranking_are_broken_at_random():
    tally = Tally(200_000, wins=False)
    found = best_features(tally, 2000, 9)
    assert 90_000 < found.mean() < 110_000
