"""Targets and weights become whole numbers by the published rule, and nothing overflows."""

import numpy as np
import pytest
from examples import examples, given, st

from srs_ooc.trees.response import Response, TrainingRows, whole_weights


def test_whole_weights_are_taken_as_they_are():
    assert whole_weights(np.array([1.0, 4095.0, 7.0])).tolist() == [1, 4095, 7]


def test_other_weights_are_scaled_to_4095_or_to_the_total():
    assert whole_weights(np.array([0.5, 1.0, 1e-9])).tolist() == [2048, 4095, 1]
    many = whole_weights(np.full(100_000, 3000.0))
    assert many.sum() <= (1 << 24) + 50_000  # each is rounded
    assert len(np.unique(many)) == 1


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, np.inf])
def test_weights_that_are_none_are_refused(bad):
    with pytest.raises(ValueError, match="above 0"):
        whole_weights(np.array([1.0, bad]))


@pytest.mark.parametrize("values", [[2.0, 2.0], [1.0, np.nan], [1.0, np.inf]])
def test_targets_that_say_nothing_are_refused(values):
    with pytest.raises(ValueError, match="targets"):
        Response.targets(np.array(values))


@examples(60)
@given(
    st.lists(st.floats(-1e300, 1e300), min_size=2, max_size=30).filter(lambda v: min(v) < max(v)),
    st.booleans(),
    st.integers(0, 2**32),
)
def test_targets_keep_their_digits_and_their_bounds(values, weighted, seed):
    targets = np.array(values)
    rng = np.random.default_rng(seed)
    weights = rng.integers(1, 4096, len(values)).astype(float) if weighted else None
    response = Response.targets(targets, weights)
    whole = response.channels[-1].astype(np.int64)
    total = len(values)
    if weights is not None:
        whole = whole // response.channels[0]
        total = int(weights.sum())
        assert np.abs(response.channels[1]).max() <= 1 << 27
    assert total**2 * int(np.abs(whole).max()) <= 1 << 63
    spread = targets.max() / 2 - targets.min() / 2
    back = response.center + whole / response.scale
    np.testing.assert_allclose(back, targets, atol=spread / (1 << 14) + 1e-300)
    assert int(np.abs(response.channels).max()) * response.native.flush < 1 << 31


def test_a_bootstrap_draws_rows_with_replacement_by_key():
    response = Response.classes(np.arange(1000) % 3, 3)
    rows = TrainingRows.of(response, "gini")
    sample = rows.resampled(5)
    assert len(sample.order) == 1000
    np.testing.assert_array_equal(sample.order, rows.resampled(5).order)
    assert (sample.order != rows.resampled(6).order).any()
    labels = response.labels[sample.order]
    assert (np.diff(labels) >= 0).all()
    assert sample.root_stats[:, 0].tolist() == np.bincount(labels).tolist()
    assert 600 < len(np.unique(sample.order)) < 665  # 1 - 1/e of them: 632


def test_weights_as_large_and_as_small_as_doubles_can_be():
    """No sum or quotient leaves the range of doubles: 1.7e308 four times, the smallest double."""
    assert whole_weights(np.full(4, 1.7e308)).tolist() == [4095] * 4
    assert whole_weights(np.array([5e-324, 1e-323])).tolist() == [2048, 4095]
    assert whole_weights(np.array([5e-324, 1.7e308])).tolist() == [1, 4095]


@pytest.mark.parametrize("exponent", [-900, -1, 1, 900])
def test_weights_times_a_power_of_two_are_the_same(exponent):
    weights = np.random.default_rng(0).exponential(size=500) + 1e-3
    expected = whole_weights(weights)
    np.testing.assert_array_equal(whole_weights(np.ldexp(weights, exponent)), expected)


@examples(60)
@given(st.integers(2, 90), st.integers(1, 4), st.integers(0, 2**32), st.data())
def test_a_sample_has_each_row_once_and_as_many_of_each_class_as_there_are(n, n_classes, key, data):
    labels = np.random.default_rng(key).integers(0, n_classes, n) ** 2 // max(1, n_classes - 1)
    rows = TrainingRows.of(Response.classes(labels, n_classes), "gini")
    n_sampled = data.draw(st.integers(1, n))
    strata = rows.strata(n_sampled)
    drawn = rows.drawn(strata, key)
    assert len(drawn) == len(set(drawn.tolist())) == n_sampled
    np.testing.assert_array_equal(drawn, rows.drawn(strata, key))
    counts, there = np.bincount(labels[drawn], minlength=n_classes), rows.root_stats[:, 0]
    sample = rows.block_of(drawn)
    np.testing.assert_array_equal(sample.response.labels, labels[drawn])
    np.testing.assert_array_equal(sample.root_stats[:, 0], counts)
    assert (np.diff(labels[drawn][sample.order]) >= 0).all()
    lacking = counts < there  # classes that are not whole have equal shares, those that are less
    if lacking.any() and n_sampled >= n_classes:
        assert np.ptp(counts[lacking]) <= 1
        assert counts[~lacking].max(initial=0) <= counts[lacking].max()


def test_a_sample_of_numbers_has_one_of_each_quantile_and_all_rows_in_turn():
    values = np.random.default_rng(1).standard_normal(1000)
    rows = TrainingRows.of(Response.targets(values), "variance").by_target()
    strata, ranks = rows.strata(100), np.argsort(np.argsort(values))
    drawn = [rows.drawn(strata, key) for key in range(80)]
    for order in drawn:
        np.testing.assert_array_equal(np.sort(ranks[order]) // 10, np.arange(100))
    counts = np.bincount(np.concatenate(drawn), minlength=1000)
    assert 0.5 < counts.std() / np.sqrt(8 * 0.9) < 1.5  # binomial, not more of some rows
    assert counts.min() > 0 or (counts == 0).mean() < 0.005


def test_labels_that_lie_at_any_address_are_taken_as_they_come_to_workers():
    labels = np.frombuffer(b"\0" + np.arange(6, dtype=np.int32).tobytes(), np.uint8)[1:].view("<i4")
    assert not labels.flags.aligned
    assert Response.classes(labels, 6).native is not None
