"""A screen before a method: what it lets through, and that the method knows nothing of it."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from srs_ooc.base.errors import UsageError
from srs_ooc.base.records import Outcome
from srs_ooc.base.seeds import derive_array, key_of
from srs_ooc.evidence.tally import Tally
from srs_ooc.methods.held_out import SCREEN_NBYTES, HeldOutMethod, Screened, best_of
from srs_ooc.methods.prs.prs import Prs
from srs_ooc.methods.rase.rase import Rase
from srs_ooc.samplers.base import SamplerContext
from srs_ooc.testing import check_sampler
from srs_ooc.trees.response import Response

P, Q, N_ROWS, N_FIRST = 400, 30, 60, 25
TABLE = SimpleNamespace(n_rows=N_ROWS, n_candidates=P, n_classes=2)
SCREEN = {"screen": N_FIRST, "screen_draws": 2}
METHODS: dict[str, Any] = {
    "prs": (Prs, {"models": 4, "folds": 3, "epochs": 4, "inclusion": "0.2"}),
    "rase": (Rase, {"models": 3, "candidates": 6, "rounds": 2, "folds": 3}),
}
N_TREES = 2 * P // 20  # a subspace of the screen is 5% of the features


def made(name, ground, **more):
    method, given = METHODS[name]
    return method.settle(given | SCREEN | more, TABLE).make(ground)


def ground_of(candidates=None, tally=None):
    return SamplerContext(
        n_features=P,
        subspace_size=Q,
        key=5,
        tally=tally or Tally(P),
        candidates=candidates,
        response=Response.classes(np.arange(N_ROWS) % 2, 2),
    )


def screened(sampler, tally, relevant=(), first=0):
    """Take a sampler through its screen, in which the relevant features are worth more."""
    rows = []
    for iteration in range(first, N_TREES):
        subspace = sampler.propose(iteration, key_of(1, iteration))
        rows.append(subspace.split.fitted)
        worth = derive_array(iteration, subspace.features) >> np.uint64(40)
        worth[np.isin(subspace.features, relevant)] += np.uint64(1 << 30)
        outcome = Outcome(subspace.features, worth.astype(np.int64))
        tally.absorb(iteration, outcome)
        sampler.absorb(iteration, outcome)
    return np.unique(np.concatenate(rows))


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("some", [None, np.arange(0, P, 3, dtype=np.uint32)])
def test_it_keeps_the_contract_of_samplers(name, some):
    # What the tally of made-up outcomes says is its seed's, so that courses differ after a screen.
    check_sampler(
        lambda ground: made(name, ground),
        n_features=P, subspace_size=Q, n_iterations=70, candidates=some,
    )  # fmt: skip


@pytest.mark.parametrize("name", METHODS)
def test_what_is_worth_most_is_learnt_on_and_nothing_else_is_drawn(name):
    relevant = np.arange(7, P, 17)
    tally = Tally(P)
    sampler = made(name, ground_of(tally=tally))
    assert sampler.progress().unit == "trees"
    screened(sampler, tally, relevant)
    drawn = np.unique(
        np.concatenate([sampler.propose(N_TREES + i, key_of(2, i)).features for i in range(12)])
    )
    best = best_of(ground_of(tally=tally), N_FIRST)
    assert set(drawn) <= set(best)
    assert len(best) == N_FIRST
    assert set(relevant[tally.n_drawn[relevant] > 0]) <= set(best)


@pytest.mark.parametrize("name", METHODS)
def test_the_screen_sees_no_row_that_is_held_out(name):
    tally = Tally(P)
    sampler = made(name, ground_of(tally=tally), validation_share="0.2")
    fitted = screened(sampler, tally)
    after = sampler.propose(N_TREES, 1)
    splits = [after.split] if after.candidates is None else after.candidates.splits
    seen = np.unique(np.concatenate([np.append(s.fitted, s.predicted) for s in splits]))
    assert len(fitted) == 48
    if name == "prs":  # a fold predicts the rows held out, which no tree of the screen was grown on
        assert len(np.setdiff1d(seen, fitted)) == 12
    else:
        assert np.array_equal(seen, fitted)


@given(st.integers(0, 2**32), st.integers(1, 60))
def test_the_best_are_those_of_the_largest_mean_importance(seed, count):
    offered = np.flatnonzero(derive_array(seed, np.arange(P, dtype=np.uint64)) & np.uint64(1))
    offered = offered.astype(np.uint32)
    tally = Tally(P)
    tally.importance[:] = derive_array(seed + 1, np.arange(P, dtype=np.uint64)) >> np.uint64(60)
    tally.n_drawn[:] = derive_array(seed + 2, np.arange(P, dtype=np.uint64)) % np.uint64(4)
    count = min(count, len(offered))
    best = best_of(ground_of(offered, tally), count)
    means = np.where(tally.n_drawn > 0, tally.importance / np.maximum(tally.n_drawn, 1), -1.0)
    assert np.array_equal(best, np.unique(best))
    assert set(best) <= set(offered)
    others = np.setdiff1d(offered, best)
    assert len(best) == count
    assert len(others) == 0 or means[best].min() >= means[others].max()


@pytest.mark.parametrize("name", METHODS)
def test_a_screen_that_leaves_nothing_out_is_none(name):
    assert not isinstance(made(name, ground_of(), screen=P), Screened)
    plain = METHODS[name][0].settle(METHODS[name][1], TABLE)
    assert (plain.n_learnt(P), plain.n_screen_trees(P, Q)) == (P, 0)
    all_of_them = METHODS[name][0].settle(METHODS[name][1] | {"screen": P}, TABLE)
    screening = all_of_them.state_nbytes(N_ROWS, P) - plain.state_nbytes(N_ROWS, P)
    assert screening == SCREEN_NBYTES * P
    assert "so all are learnt on" in all_of_them.notes(N_ROWS, P)[0]
    assert not any("screen" in note for note in plain.notes(N_ROWS, N_FIRST))


def test_each_feature_is_drawn_as_often_as_was_asked_for():
    params = HeldOutMethod.settle({"screen": 10, "screen_draws": 7}, TABLE)
    assert params.n_screen_trees(P, Q) * params.screen_size(P) == 7 * P
    assert params.n_screen_trees(P, 3) == -(-7 * P // 3)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"screen": 0}, "screen: expected a whole number from 1"),
        ({"screen": None, "screen_draws": 5}, "screen_draws: expected with screen"),
        ({"screen": 20, "model": "knn"}, "screen: expected with --model tree, found knn"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(name, given, says):
    with pytest.raises(UsageError, match=says):
        METHODS[name][0].settle(METHODS[name][1] | given, TABLE)


@pytest.mark.parametrize(("screen", "room"), [(12, 20), (50, 50), (400, 400), (None, 400)])
def test_room_is_for_what_is_learnt_on_or_for_a_subspace_of_the_screen(screen, room):
    assert Prs.settle({"screen": screen}, TABLE).default_subspace(P) == room


def test_a_search_behind_a_screen_has_no_larger_subspaces_than_that():
    given = METHODS["rase"][1] | {"screen": 5}
    assert Rase.settle(given, TABLE).max_size == 5
    with pytest.raises(UsageError, match="max_size: expected at most 5 "):
        Rase.settle(given | {"max_size": 6}, TABLE).check(N_ROWS, P, Q)


def test_a_grid_has_no_screen():
    with pytest.raises(UsageError, match="screen: expected without grid"):
        Prs.settle({"screen": 20, "grid": "20x20"}, TABLE)
