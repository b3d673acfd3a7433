"""Random Subspace Ensemble: its draws, its rounds, its votes."""

from types import SimpleNamespace

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from srs_ooc.base.errors import UsageError
from srs_ooc.base.records import Outcome
from srs_ooc.base.seeds import below, derive
from srs_ooc.methods.held_out import Truth, resample
from srs_ooc.methods.rase.criteria import InformationCriterion
from srs_ooc.methods.rase.rase import (
    OVER,
    SEARCHING,
    TRAINING,
    RandomSubspaceEnsemble,
    Rase,
    Votes,
    eta,
)
from srs_ooc.samplers.draws import draw_subsets
from srs_ooc.testing import _Work, check_sampler
from srs_ooc.trees.response import Response

SMALL = {"models": 4, "candidates": 6, "rounds": 3, "folds": 3, "max_size": 4}
TABLE = SimpleNamespace(n_rows=60, n_candidates=400, n_classes=2)


def settled(table=TABLE, **given):
    options = SMALL | given
    if options.get("criterion") in ("validation", "ric", "ebic") and "folds" not in given:
        del options["folds"]
    return Rase.settle(options, table)


@pytest.mark.parametrize("criterion", ["cv", "oob", "validation", "ric", "ebic"])
@pytest.mark.parametrize("q", [24, 9])
def test_it_keeps_the_contract_of_samplers(criterion, q):
    params = settled(criterion=criterion, vote_cutoff="training" if q == 9 else "half")
    check_sampler(params.make, subspace_size=q, n_iterations=80)


def test_it_keeps_the_contract_on_some_of_the_features():
    some = np.arange(3, 400, 5, dtype=np.uint32)
    check_sampler(settled().make, subspace_size=24, n_iterations=40, candidates=some)


def weights_of(n_candidates, heavy, counts, unit, light):
    return SimpleNamespace(
        n_candidates=n_candidates,
        heavy=np.array(heavy, np.uint32),
        counts=np.array(counts, np.int32),
        unit=unit,
        light=light,
    )


def draw(weights, key, first, count, largest):
    return draw_subsets(key, first, count, largest, **vars(weights))


def draw_one(weights, key, number, largest):
    """Return one subset of the sequence of ``key``, ascending.

    One feature after another is drawn by the weights of those left: first whether a heavy one, then
    which. A light one is drawn uniformly from all of V until it is light and new.
    """
    own = derive(key, number)
    size, counter = 1 + below(own, 0, largest), 1
    left = dict(zip(weights.heavy.tolist(), weights.counts.tolist(), strict=True))
    n_light = weights.n_candidates - len(left)
    drawn = []
    while len(drawn) < size:
        total = sum(left.values())
        heavy, light = float(total) * weights.unit, float(n_light) * weights.light
        uniform = float(derive(own, counter) >> 11) * 2.0**-53
        counter += 1
        if total and (n_light == 0 or uniform * (heavy + light) < heavy):
            place = below(own, counter, total)
            counter += 1
            item = _at(left, place)
            del left[item]
        else:
            is_heavy = set(weights.heavy.tolist())
            item = below(own, counter, weights.n_candidates)
            counter += 1
            while item in is_heavy or item in drawn:
                item = below(own, counter, weights.n_candidates)
                counter += 1
            n_light -= 1
        drawn.append(item)
    return sorted(drawn)


def _at(counts, place):
    for item, count in counts.items():
        if place < count:
            return item
        place -= count
    raise AssertionError("a place beyond the end")


@examples(60)
@given(seed=st.integers(0, 2**64 - 1), p=st.integers(1, 40), data=st.data())
def test_native_draws_equal_their_twin(seed, p, data):
    heavy = sorted(data.draw(st.sets(st.integers(0, p - 1))))
    counts = data.draw(st.lists(st.integers(1, 9), min_size=len(heavy), max_size=len(heavy)))
    weights = weights_of(p, heavy, counts, 0.1, 0.1 / p)
    largest = data.draw(st.integers(1, p))
    members, bounds = draw(weights, seed, 3, 4, largest)
    for i in range(4):
        own = members[bounds[i] : bounds[i + 1]].tolist()
        assert own == draw_one(weights, seed, 3 + i, largest)
        assert 1 <= len(own) <= largest
        assert own == sorted(set(own))


def test_sizes_are_uniform_and_first_members_follow_the_weights():
    weights = weights_of(20, [4, 9], [30, 10], 0.01, 0.01)
    n = 40_000
    sizes = np.diff(draw(weights, 5, 0, n, 4)[1])
    assert np.abs(np.bincount(sizes, minlength=5)[1:] / n - 0.25).max() < 0.01
    members = draw(weights, 6, 0, n, 1)[0]
    shares = np.bincount(members, minlength=20) / n
    total = 0.4 + 18 * 0.01
    assert shares[4] == pytest.approx(0.3 / total, abs=0.01)
    assert shares[9] == pytest.approx(0.1 / total, abs=0.01)
    assert np.delete(shares, [4, 9]) == pytest.approx(0.01 / total, abs=0.004)


def test_second_members_follow_the_weights_of_those_left():
    weights = weights_of(3, [0], [8], 1.0, 1.0)
    members, bounds = draw(weights, 8, 0, 60_000, 2)
    pairs = members[np.repeat(np.diff(bounds) == 2, np.diff(bounds))].reshape(-1, 2)
    # {1, 2}: 1 then 2 or 2 then 1, each 1/10 times 1/9.
    assert (pairs == [1, 2]).all(1).mean() == pytest.approx(2 / 90, abs=0.005)


def test_a_resample_predicts_the_rows_it_left_out():
    rows = np.array([3, 5, 8, 9, 11], np.int32)
    split = resample(rows, 4)
    assert len(split.fitted) == 5
    assert sorted({*split.fitted.tolist(), *split.predicted.tolist()}) == rows.tolist()
    assert not set(split.fitted.tolist()) & set(split.predicted.tolist())


def works(params, judge, q=24):
    """Take a sampler through all its rounds; ``judge(features)`` is a candidate's loss."""
    work = _Work(params.make, 400, 1, subspace_size=q)
    sampler, weights = work.sampler, []
    assert isinstance(sampler, RandomSubspaceEnsemble)
    while not sampler.done(work.iteration):
        if sampler.at.phase == SEARCHING:
            weights.append(sampler._heavy)
        subspace = work.propose(work.iteration)
        features, c = subspace.features, subspace.candidates
        losses = predictions = None
        if c is not None:
            parts = [features[c.places[a:b]] for a, b in zip(c.bounds, c.bounds[1:], strict=False)]
            losses = np.array([judge(part) for part in parts])
        else:
            predictions = np.zeros((1, len(subspace.split.predicted), 2), np.float32)
            predictions[0, :, int(sampler.round == 1)] = 1
        none = np.zeros(len(features), np.int64)
        sampler.absorb(work.iteration, Outcome(features, none, None, (), losses, predictions))
        work.iteration += 1
    return sampler, weights


def test_each_model_is_the_best_of_its_subspaces_in_whatever_batches_they_come():
    found = []
    for q in (24, 9, 4):
        sampler, _ = works(settled(), lambda part: float(part.min()), q)
        found.append([sampler.at.best_round, *(best.tolist() for best in sampler.best)])
        assert sampler.at.phase == OVER
    assert found[0] == found[1] == found[2]


def test_weights_of_a_round_are_shares_of_the_last_ones_kept_subspaces_or_the_floor():
    params = settled(floor="0.5", rounds=2, validation_share="0")
    sampler, weights = works(params, lambda part: float(part.min()))
    assert len(weights[0]) == 0
    members, counts = eta(sampler._drawn_by)
    least = 0.5 / np.log(400)
    assert sampler._heavy.tolist() == members[counts / 4 > least].tolist()
    assert sampler._counts.tolist() == counts[counts / 4 > least].tolist()
    assert sampler.score[members].tolist() == (counts / 4).tolist()
    assert sampler.score.sum() == counts.sum() / 4


def test_the_best_round_has_the_least_loss_on_rows_held_out_and_without_any_is_the_last():
    held_out, _ = works(settled(), lambda part: float(part.min()))
    assert held_out.at.losses[1] <= held_out.at.losses[0]
    assert held_out.at.best_round == int(np.argmin(held_out.at.losses))
    none, _ = works(settled(validation_share="0"), lambda part: float(part.min()))
    assert none.at.losses == [None] * 3
    assert none.at.best_round == 2


def test_a_cutoff_learnt_on_training_rows_errs_least_there():
    labels = np.array([0, 0, 0, 1, 1, 1, 0, 1], np.int32)
    rows = np.arange(8, dtype=np.int32)
    truth = Truth.of(Response.classes(labels, 2), rows[:6])
    votes = Votes(truth, 2, rows[:6], rows[6:], TRAINING)
    shares = np.array([0.0, 0.1, 0.2, 0.3, 0.4, 0.9, 0.2, 0.3])
    for model in range(10):
        said = (shares * 10 > model + 0.5).astype(int)
        votes.add(np.eye(2, dtype=np.float32)[said])
    loss, cutoff = votes.loss()
    assert cutoff == 0.25
    assert loss == 0.0


def test_votes_of_a_regression_are_means():
    y = np.array([1.0, 2.0, 3.0, 6.0])
    response, rows = Response.targets(y), np.arange(4, dtype=np.int32)
    votes = Votes(Truth.of(response, rows[:3]), 1, rows[:3], rows[3:])
    for said in (4.0, 6.0):
        votes.add(np.array([[said - response.center]], np.float32))
    assert votes.loss()[0] == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"criterion": "aic"}, "criterion"),
        ({"criterion": "ric", "folds": 10}, "folds: expected with criterion=cv or oob"),
        ({"criterion": "validation", "folds": 5}, "folds: expected with .* of one split"),
        ({"criterion": "ric", "ebic_gamma": "0.5"}, "ebic_gamma: expected with"),
        ({"criterion": "ebic", "ebic_gamma": "1.5"}, "ebic_gamma"),
        ({"floor": "0"}, "floor"),
        ({"validation_share": "0.7"}, "validation_share"),
        ({"criterion": "validation", "validation_share": "0"}, "held out"),
    ],
)
def test_options_out_of_range_are_refused_by_name(given, says):
    with pytest.raises(UsageError, match=says):
        settled(**given)


def test_an_information_criterion_is_of_all_training_rows_and_counts_no_models():
    params = settled(criterion="ebic", ebic_gamma="0.5")
    assert params.folds == 0
    work = _Work(params.make, 400, 1, subspace_size=24)
    candidates = work.propose(0).candidates
    (split,) = candidates.splits
    assert isinstance(work.sampler, RandomSubspaceEnsemble)
    assert len(split.fitted) == round(0.8 * len(work.sampler._strata))
    assert len(split.predicted) == 0
    assert candidates.criterion == InformationCriterion("ebic", 0.5, 400)
    # Three batches of two, then a model.
    assert params.work_each(400, 9) == (1 / 4, 6 / 4)
    assert settled().work_each(400, 9) == ((6 * 3 + 1) / 4, 0)
    assert params.most_columns(9) == 4


def test_a_cutoff_is_for_two_classes():
    for n_classes, found in ((1, "a regression"), (3, "3")):
        with pytest.raises(UsageError, match=found):
            settled(SimpleNamespace(n_rows=60, n_candidates=9, n_classes=n_classes),
                    vote_cutoff="training")  # fmt: skip


def test_sizes_and_folds_that_do_not_fit_are_refused():
    with pytest.raises(UsageError, match="max_size"):
        settled().check(60, 400, 3)
    with pytest.raises(UsageError, match="folds"):
        settled(folds=30).check(60, 400, 24)


def test_by_default_d_is_the_root_of_the_rows_that_are_not_held_out():
    table = SimpleNamespace(n_rows=400, n_candidates=300, n_classes=2)
    assert Rase.settle({"validation_share": "0.25"}, table).max_size == 17
    few = SimpleNamespace(n_rows=400, n_candidates=5, n_classes=2)
    assert Rase.settle({}, few).max_size == 5


def test_above_its_coverage_it_says_how_many_features_are_never_seen():
    params = Rase.settle({"max_size": 17}, TABLE)
    assert params.notes(100, 450_000) == ()
    assert "37%" in params.notes(100, 450_001)[0]
    assert "450,000" in params.notes(100, 650_000)[0]
    assert "50%" in params.notes(100, 650_000)[0]


def test_iterations_are_counted_before_and_come_out_so():
    for q in (24, 9):
        params, seen = settled(), []

        def judge(part, seen=seen):
            seen.append(part)
            return float(part.min())

        works(params, judge, q)
        n_batches = 1 if q == 24 else 3
        assert params.most_iterations(400, q)[0] == 3 * 4 * (n_batches + 1)
        assert len(seen) == 3 * 4 * 6
