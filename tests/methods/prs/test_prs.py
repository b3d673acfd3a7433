"""Parametric Random Subspace as a sampler, with made-up models."""

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from srs_ooc.base.records import Outcome
from srs_ooc.base.seeds import derive_array
from srs_ooc.methods.held_out import Truth, make_folds
from srs_ooc.methods.prs.prs import (
    FINAL,
    DescentParams,
    ParametricRandomSubspace,
    Prs,
    largest_mean,
)
from srs_ooc.methods.prs.prs_math import BOUND, effective_number, feasible
from srs_ooc.testing import check_sampler
from srs_ooc.trees.response import Response

N_ROWS = 60
LABELS = np.arange(N_ROWS) % 2
RELEVANT = (3, 7)


def sampler_of(n_features=40, *, regression=False, candidates=None, capacity=None, **given):
    options = {"models": 30, "inclusion": 0.1, "epochs": 40, "learning_rate": 0.005, "folds": 4}
    params = DescentParams.settle(options | given, None)
    folds = make_folds(LABELS, 4, 1, share=0.2)
    response = Response.classes(LABELS, 2)
    if regression:
        response = Response.targets(LABELS + np.linspace(0, 0.1, N_ROWS))
    truth = Truth.of(response, folds.training)
    capacity = capacity or n_features
    return ParametricRandomSubspace(params, folds, truth, n_features, capacity, 5, candidates)


def outcome_of(iteration, subspace, *, regression=False):
    """A model that is right the more often the more relevant features it holds."""
    rows = subspace.split.predicted
    n_held = np.isin(RELEVANT, subspace.features).sum()
    hashes = derive_array(iteration, rows.astype(np.uint64)) >> np.uint64(11)
    right = hashes.astype(float) * 2.0**-53 < 0.5 + 0.2 * n_held
    said = np.where(right, LABELS[rows], 1 - LABELS[rows])
    predictions = np.eye(2)[said][None] if not regression else said[None, :, None] - 0.55
    zeros = np.zeros(len(subspace.features), np.int64)
    return Outcome(subspace.features, zeros, predictions=predictions.astype(np.float32))


def states(sampler, *, regression=False, iteration=0):
    """Yield the iteration before every step and every iteration, to the end."""
    while not sampler.done(iteration):
        yield iteration
        if not sampler.step():
            subspace = sampler.propose(iteration, 0)
            sampler.absorb(iteration, outcome_of(iteration, subspace, regression=regression))
            iteration += 1


class Copy:
    """A state as it would be committed and handed back."""

    def __init__(self, sampler):
        state = sampler.state()
        self.facts = state.facts
        self._arrays = {name: pages.array.copy() for name, pages in state.pages.items()}

    def fill(self, name, out, first_page=0):
        out[:] = self._arrays[name]

    def bits(self):
        return {name: array.tobytes() for name, array in self._arrays.items()}, self.facts


@pytest.mark.few(1)
@pytest.mark.parametrize("regression", [False, True])
def test_taken_up_after_any_step_it_ends_with_the_same_bits(regression):
    whole = sampler_of(epochs=6, regression=regression)
    seen = [(iteration, Copy(whole)) for iteration in states(whole, regression=regression)]
    for iteration, copy in seen[:: max(1, len(seen) // 40)]:
        again = sampler_of(epochs=6, regression=regression)
        again.restore(copy)
        assert Copy(again).bits() == copy.bits()
        for _ in states(again, regression=regression, iteration=iteration):
            pass
        assert Copy(again).bits() == Copy(whole).bits()


@pytest.mark.parametrize("phase", ["learning", FINAL])
def test_the_objective_of_an_older_ledger_bounds_no_epoch_to_come(phase):
    """It was of the models of all folds together: lower than that of as many as are kept."""
    whole = sampler_of(epochs=6)
    copy = next(
        copy for copy in (Copy(whole) for _ in states(whole))
        if copy.facts["phase"] == phase and copy.facts["epoch"] > 1
    )  # fmt: skip
    del copy.facts["deal"]
    copy.facts["best_objective"] = -1.0
    again = sampler_of(epochs=6)
    again.restore(copy)
    assert again.at.best_epoch == (copy.facts["best_epoch"] if phase == FINAL else 0)
    for _ in states(again):
        pass
    assert (again.at.best_objective == -1.0) == (phase == FINAL)
    assert again.at.best_epoch > 0


def test_what_changed_since_a_commit_is_marked():
    """A ledger that writes only marked pages has the whole state."""
    sampler = sampler_of(epochs=3)
    kept = {name: np.zeros_like(pages.array) for name, pages in sampler.state().pages.items()}
    for _ in states(sampler):
        for name, pages in sampler.state().pages.items():
            if pages.changed.any():
                kept[name][:] = pages.array
            assert kept[name].tobytes() == pages.array.tobytes()
        for pages in sampler.state().pages.values():
            pages.changed[:] = False


@pytest.mark.parametrize("regression", [False, True])
def test_relevant_features_come_to_lead(regression):
    sampler = sampler_of(regression=regression)
    for _ in states(sampler, regression=regression):
        pass
    assert set(np.argsort(-sampler.best)[:2]) == set(RELEVANT)
    assert sampler.best[list(RELEVANT)].min() > 0.2


@pytest.mark.slow
@examples(15)
@given(
    st.sampled_from([0.001, 0.05, 0.9]),
    st.sampled_from([0.0, 0.01, 10.0]),
    st.sampled_from([17, 40]),
)
def test_probabilities_stay_in_their_set(rate, sparsity, capacity):
    candidates = np.arange(0, 40, 2, dtype=np.uint32)
    sampler = sampler_of(
        epochs=8, learning_rate=rate, sparsity=sparsity, capacity=capacity, candidates=candidates
    )
    largest = largest_mean(capacity, 20)
    for iteration in states(sampler):
        assert (sampler.beta >= 0).all()
        assert (sampler.beta <= 1).all()
        assert 0 < sampler.beta.sum() <= largest * (1 + 1e-12)
        assert not sampler.beta[1::2].any()
        if sampler.at.phase == FINAL:
            assert not (sampler.propose(iteration, 0).features % 2).any()


def test_a_step_leaves_its_models_worth_half_the_share_even_with_many_features():
    sampler = sampler_of(20_000, epochs=2, learning_rate=0.01, inclusion=0.02)
    n_steps = 0
    for _ in states(sampler):
        before, fold = sampler.beta.copy(), sampler.at.fold
        if sampler.at.phase == "learning" and sampler.at.epoch == 0 and fold == 0:
            sampler._descend(0)
            worth = effective_number(sampler._weights(0, sampler.beta))
            assert worth >= BOUND * 0.9 * 30
            assert not np.array_equal(before, sampler.beta)
            unbounded = np.clip(before + (sampler.beta - before) * 8, 0, 1)
            assert effective_number(sampler._weights(0, unbounded)) < BOUND * 0.9 * 30
            n_steps += 1
            break
    assert n_steps == 1


def test_models_are_grown_again_when_their_weights_are_worth_too_few():
    never, often = sampler_of(effective_share=0.0), sampler_of(effective_share=0.99)
    for sampler in (never, often):
        for _ in states(sampler):
            pass
    assert never.at.drawn == 1, "the final models alone"
    assert often.at.drawn > 3


def test_it_ends_after_the_epochs_of_its_patience():
    sampler = sampler_of(epochs=1000, patience=5, learning_rate=0.02)
    for _ in states(sampler):
        pass
    assert sampler.at.epoch == sampler.at.best_epoch + 5 < 1000


def test_the_penalty_makes_subsets_smaller():
    sums = []
    for sparsity in (0.0, 1.0):
        sampler = sampler_of(sparsity=sparsity)
        for _ in states(sampler):
            pass
        sums.append(sampler.beta.sum())
    assert sums[1] < sums[0] / 2


def test_a_version_says_when_a_proposal_would_differ():
    sampler, seen = sampler_of(epochs=6), {}
    for iteration in states(sampler):
        for guess in (iteration, iteration + 1):
            proposed = sampler.propose(guess, 0).features.tolist()
            assert seen.setdefault((guess, sampler.version(guess)), proposed) == proposed


@given(st.lists(st.floats(-0.5, 1.5), min_size=3, max_size=30), st.floats(0.1, 5.0))
def test_the_set_is_reached_by_the_nearest_point(numbers, largest):
    beta = np.array(numbers)
    found = feasible(beta.copy(), None, largest, 0.01)
    if np.clip(beta, 0, 1).sum() == 0:
        assert (found == 0.01).all()
        return
    assert found.sum() <= largest * (1 + 1e-12)
    clipped = np.clip(beta, 0, 1)
    if clipped.sum() <= largest:
        assert found.tolist() == clipped.tolist()
    else:  # all that is left lost the same
        lost = (clipped - found)[found > 0]
        np.testing.assert_allclose(lost, lost[0], atol=1e-12)


@given(st.integers(2, 5), st.integers(0, 2**32), st.sampled_from([0.1, 0.2, 0.5]))
def test_folds_share_out_every_row_evenly_by_class(n_folds, seed, share):
    strata = np.random.default_rng(seed).integers(0, 3, 80)
    folds = make_folds(strata, n_folds, seed, share=share)
    assert sorted([*folds.training, *folds.validation]) == list(range(80))
    own = [
        split.predicted[~places] for split, places in zip(folds.splits, folds.held_out, strict=True)
    ]
    assert sorted(np.concatenate(own)) == folds.training.tolist()
    for split, rows, places in zip(folds.splits, own, folds.held_out, strict=True):
        assert split.predicted[places].tolist() == folds.validation.tolist()
        assert sorted([*split.fitted, *rows]) == folds.training.tolist()
    for k in range(3):
        counts = [np.count_nonzero(strata[rows] == k) for rows in own]
        assert max(counts) - min(counts) <= 1 + 1
        n = np.count_nonzero(strata == k)
        assert np.count_nonzero(strata[folds.validation] == k) == np.rint(share * n)


@given(st.integers(2, 5), st.integers(0, 2**32), st.integers(1, 9))
def test_another_deal_of_the_same_rows_is_as_even_and_another_one(n_folds, seed, number):
    strata = np.random.default_rng(seed).integers(0, 2, 60)
    rows = np.arange(100, 220, 2, dtype=np.int32)
    folds = make_folds(strata, n_folds, seed, share=0.2, rows=rows)
    again = folds.dealt(number)
    for deal in (folds, again):
        own = [
            split.predicted[~held] for split, held in zip(deal.splits, deal.held_out, strict=True)
        ]
        assert sorted(np.concatenate(own)) == folds.training.tolist()
        assert np.ptp([len(part) for part in own]) <= 1
        for split, part, held_out in zip(deal.splits, own, deal.held_out, strict=True):
            assert split.predicted[held_out].tolist() == folds.validation.tolist()
            assert not np.isin(part, split.fitted).any()
    assert sorted([*folds.training, *folds.validation]) == rows.tolist()
    same = folds.dealt(0)
    for first, zeroth in zip(folds.splits, same.splits, strict=True):
        assert first.fitted.tolist() == zeroth.fitted.tolist()
    differs = [
        a.fitted.tolist() != b.fitted.tolist()
        for a, b in zip(folds.splits, again.splits, strict=True)
    ]
    assert any(differs)


def test_models_that_are_grown_again_are_grown_on_another_deal_of_the_rows():
    sampler, deals = sampler_of(learning_rate=0.02), {}
    for iteration in states(sampler):
        if sampler.at.phase == "growing":
            split = sampler.propose(iteration, 0).split
            deals.setdefault(sampler.at.drawn, []).append(split.fitted.tobytes())
    assert len(deals) > 2
    assert all(len(set(of_one)) == sampler.n_folds for of_one in deals.values())
    assert len({tuple(sorted(set(of_one))) for of_one in deals.values()}) == len(deals)


def test_it_keeps_to_the_contract_of_samplers_while_it_grows_learns_and_ends():
    asked = {"models": 4, "folds": 2, "epochs": 6, "learning_rate": "0.05"}
    params, made = Prs.settle(asked, None), []

    def make(ground):
        sampler = params.make(ground)
        made.append(sampler)
        return sampler

    check_sampler(make, n_iterations=200)
    assert any(sampler.done(200) for sampler in made)


def test_a_models_vote_for_a_row_is_whole_whether_its_shares_are_or_not():
    """As the models at the end vote; of equally likely classes the first is said."""
    truth = Truth.of(Response.classes(np.array([0, 1, 1, 0]), 2), np.arange(4, dtype=np.int32))
    shares = np.array([[0.6, 0.4], [0.2, 0.8], [0.5, 0.5], [0.5, 0.5]], np.float32)
    assert truth.votes(shares, np.arange(4, dtype=np.int32)).tolist() == [1, 1, 0, 1]
