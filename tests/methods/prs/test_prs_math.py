"""The gradient in O(members + p) is the direct one over models, rows and features."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from srs_ooc.base.errors import UsageError
from srs_ooc.methods.prs import prs_math
from srs_ooc.methods.prs.prs import Prs
from srs_ooc.methods.prs.prs_math import (
    LARGEST_WEIGHT,
    BernoulliSubsets,
    effective_number,
    gradient,
    grid_of,
    log_ratios,
    roughness,
    roughness_slopes,
    weights_by,
)


def members_of(z):
    owners, features = np.nonzero(z)
    return [(features.astype(np.uint32), owners)]


def importance_weights(subsets, n_subsets, beta, alpha):
    return weights_by(subsets, n_subsets, log_ratios(beta, alpha))


def direct(z, beta, alpha, predictions, slopes):
    """Eqs. 9, 12 and 15 as printed, with weights in the baseline: rows x models x features."""
    weights = np.where(z, beta / alpha, (1 - beta) / (1 - alpha)).prod(1)
    scores = np.where(z, 1 / beta, -1 / (1 - beta))
    squares = weights[:, None] * scores**2
    out = np.zeros(len(beta))
    for i, slope in enumerate(slopes):
        baseline = (squares * predictions[:, i, None]).sum(0) / squares.sum(0)
        terms = weights[:, None] * (predictions[:, i, None] - baseline) * scores
        out += slope * terms.mean(0)
    return weights, out


@given(st.integers(0, 2**32), st.integers(2, 40), st.integers(1, 30), st.integers(1, 12))
def test_weights_and_gradient_are_the_direct_ones(seed, n_models, n_features, n_rows):
    rng = np.random.default_rng(seed)
    alpha = rng.uniform(0.02, 0.6, n_features)
    beta = np.clip(alpha + rng.normal(0, 0.02, n_features), 0.005, 0.995)
    z = rng.random((n_models, n_features)) < alpha
    predictions, slopes = rng.normal(0, 3, (n_models, n_rows)), rng.normal(0, 1, n_rows)
    weights, wanted = direct(z, beta, alpha, predictions, slopes)
    found = importance_weights(members_of(z), n_models, beta, alpha)
    np.testing.assert_allclose(found, weights, rtol=1e-11)
    by_beta = gradient(members_of(z), beta, found, (predictions * slopes).sum(1))
    some = (z.sum(0) > 0) & (z.sum(0) < n_models)
    scale = 1 + np.abs(wanted[some]).max(initial=0)
    np.testing.assert_allclose(by_beta[some], wanted[some], rtol=1e-10, atol=1e-10 * scale)
    assert not by_beta[~some].any(), "what no model drew, or all did, has nothing to be learnt from"


def test_a_constant_added_to_all_predictions_changes_nothing():
    rng = np.random.default_rng(3)
    alpha = np.full(20, 0.2)
    z, slopes = rng.random((50, 20)) < alpha, rng.normal(size=50)
    plain = gradient(members_of(z), alpha, np.ones(50), slopes)
    moved = gradient(members_of(z), alpha, np.ones(50), slopes + 7.0)
    np.testing.assert_allclose(moved, plain, atol=1e-11)
    assert np.abs(plain).max() > 1e-3


def test_the_gradient_tends_to_that_of_the_expectation():
    """E[f] = sum of c_j alpha_j where a model's prediction is the sum of c_j over its features."""
    rng = np.random.default_rng(5)
    c, alpha = rng.normal(size=6), np.full(6, 0.3)
    z = rng.random((200_000, 6)) < alpha
    found = gradient(members_of(z), alpha, np.ones(len(z)), z @ c)
    np.testing.assert_allclose(found, c, atol=0.03)


@pytest.mark.parametrize(
    ("alpha", "beta"), [(1e-9, 1.0), (0.5, 1.0), (0.5, 0.0), (1.0, 0.5), (0.05, 0.9)]
)
def test_weights_are_finite_and_bounded_at_the_ends_of_the_range(alpha, beta):
    z = np.array([[True, False, True], [False, False, False]])
    found = importance_weights(members_of(z), 2, np.full(3, beta), np.full(3, alpha))
    assert np.isfinite(found).all()
    assert (found >= 0).all()
    assert (found <= LARGEST_WEIGHT).all()


def test_unchanged_probabilities_weigh_all_models_alike():
    alpha = np.array([0.0, 0.05, 0.5, 1.0])
    z = np.random.default_rng(1).random((10, 4)) < alpha
    weights = importance_weights(members_of(z), 10, alpha, alpha)
    np.testing.assert_allclose(weights, 1.0, rtol=1e-13)
    assert effective_number(weights) == pytest.approx(10)
    assert effective_number(np.array([3.0, 0, 0])) == 1.0
    assert effective_number(np.zeros(3)) == 0.0


def test_a_single_weight_is_worth_one_model_whatever_it_is():
    weights = np.random.default_rng(0).uniform(1, 100, 20_000)
    assert {effective_number(weights[i : i + 1]) for i in range(len(weights))} == {1.0}


def test_subsets_are_the_same_whether_kept_or_drawn_again(monkeypatch):
    alpha = np.random.default_rng(2).uniform(0, 0.2, 3000)
    kept = list(BernoulliSubsets(alpha, 9, 20, 3000, 3).of_fold(2))
    monkeypatch.setattr(prs_math, "STORED", 0)
    again = list(BernoulliSubsets(alpha, 9, 20, 3000, 3).of_fold(2))
    assert (len(kept), len(again)) == (1, 20)
    for i in (0, 1):
        assert kept[0][i].tolist() == np.concatenate([piece[i] for piece in again]).tolist()


@pytest.mark.parametrize(("n_features", "capacity"), [(40, 4), (3000, 30), (70_000, 700)])
def test_a_subset_is_the_same_drawn_alone_or_with_its_fold(monkeypatch, n_features, capacity):
    alpha = np.full(n_features, 0.9 * capacity / n_features)  # some are drawn again
    together = BernoulliSubsets(alpha, 9, 25, capacity, 2)
    monkeypatch.setattr(prs_math, "STORED", 0)
    alone = BernoulliSubsets(alpha, 9, 25, capacity, 2)
    for t in range(25):
        assert together.draw(1, t).tolist() == alone.draw(1, t).tolist()


def test_each_feature_is_drawn_as_often_as_its_probability_says():
    alpha = np.repeat([0.0, 0.01, 0.3, 1.0], 1000)
    subsets = BernoulliSubsets(alpha, 4, 200, 4000, 1)
    ((features, _),) = subsets.of_fold(0)
    counts = np.bincount(features, minlength=4000).reshape(4, 1000).mean(1)
    assert counts[0] == 0
    assert counts[3] == 200
    np.testing.assert_allclose(counts[1:3], [2, 60], atol=0.8)


def test_a_subset_larger_than_its_room_is_drawn_again():
    subsets = BernoulliSubsets(np.full(100, 0.1), 4, 50, 10, 1)
    sizes = [len(subsets.draw(0, t)) for t in range(50)]
    assert max(sizes) == 10
    assert min(sizes) < 10


# Neighbours on a grid: the fused penalty of Eq. 20, by its formula, and where it applies.


def neighbours(height, width):
    for j in range(height):
        for k in range(width):
            if j + 1 < height:
                yield (j, k), (j + 1, k)
            if k + 1 < width:
                yield (j, k), (j, k + 1)


@given(
    height=st.integers(1, 5),
    width=st.integers(1, 5),
    seed=st.integers(0, 1000),
    n_more=st.integers(0, 3),
)
def test_value_and_slopes_are_those_of_the_formula(height, width, seed, n_more):
    rng = np.random.default_rng(seed)
    n_features = height * width + n_more  # some are no pixels
    positions = rng.permutation(n_features)
    offered = np.sort(rng.choice(n_features, height * width, replace=False))
    grid = grid_of((height, width), offered, positions)
    in_table = positions[grid].ravel()
    assert in_table.tolist() == sorted(in_table)
    beta = rng.choice([0.0, 0.25, 0.5, 1.0], n_features)
    value, slopes = 0.0, np.zeros(n_features)
    for one, other in neighbours(height, width):
        a, b = grid[one], grid[other]
        value += abs(beta[a] - beta[b])
        slopes[a] += np.sign(beta[a] - beta[b])
        slopes[b] += np.sign(beta[b] - beta[a])
    assert roughness(beta, grid) == pytest.approx(value, abs=1e-12)
    assert roughness_slopes(beta, grid, 0.5).tolist() == (0.5 * slopes).tolist()


@pytest.mark.parametrize("text", ["28", "0x4", "ax4", "3x4x5", "-2x4", "9" * 12 + "x1"])
def test_a_grid_is_two_numbers(text):
    with pytest.raises(UsageError, match="grid: expected HEIGHTxWIDTH"):
        Prs.settle({"grid": text}, None)


def test_options_that_do_not_fit_are_refused_with_the_numbers():
    assert Prs.settle({"grid": "03X4"}, None).grid == "3x4"
    with pytest.raises(UsageError, match="smoothness: expected with grid"):
        Prs.settle({"smoothness": 0.1}, None)
    with pytest.raises(UsageError, match=r"3 x 4 = 12 and 11 features"):
        Prs.settle({"grid": "3x4"}, None).check(100, 11, 11)
