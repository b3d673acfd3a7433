"""Folds: every row once, groups whole, classes and strata even."""

import numpy as np
import pytest
from examples import examples
from hypothesis import assume, given
from hypothesis import strategies as st

from srs_ooc.base.errors import UsageError
from srs_ooc.evidence.decoys import deal_folds


def labels(seed, n_rows, n_classes):
    return np.random.default_rng(seed).integers(0, n_classes, n_rows).astype(np.int32)


@examples(50)
@given(st.integers(0, 99), st.integers(10, 90), st.integers(1, 5), st.integers(2, 6))
def test_every_fold_has_its_part_of_every_class_and_stratum(seed, n_rows, n_classes, n_folds):
    target, strata = labels(seed, n_rows, n_classes), labels(seed + 1, n_rows, 2)
    assume(np.bincount(strata, minlength=2).min() >= n_folds)
    folds = deal_folds(seed, n_folds, target, strata)
    assert np.ptp(np.bincount(folds, minlength=n_folds)) <= 1
    for label in range(n_classes):
        for stratum in range(2):
            there = (target == label) & (strata == stratum)
            assert np.ptp(np.bincount(folds[there], minlength=n_folds)) <= 1


@examples(50)
@given(st.integers(0, 99), st.integers(8, 30), st.integers(2, 5))
def test_groups_are_held_out_whole(seed, n_groups, n_folds):
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(n_groups), rng.integers(1, 5, n_groups))
    rng.shuffle(groups)
    target = (groups % 3).astype(np.int32)
    folds = deal_folds(seed, n_folds, target, groups=groups)
    for group in range(n_groups):
        assert len(set(folds[groups == group].tolist())) == 1
    of_group = np.array([folds[groups == group][0] for group in range(n_groups)])
    for label in range(3):
        counts = np.bincount(of_group[label::3], minlength=n_folds)
        assert np.ptp(counts) <= 1


def test_a_stratum_of_fewer_rows_than_folds_is_held_out_whole():
    strata = np.repeat(np.arange(20), 2)
    target = np.tile([0, 1], 20).astype(np.int32)
    folds = deal_folds(3, 5, target, strata)
    np.testing.assert_array_equal(folds[::2], folds[1::2])
    assert np.bincount(folds).tolist() == [8] * 5


def test_numbers_are_kept_even():
    target = np.random.default_rng(1).standard_normal(200)
    folds = deal_folds(3, 5, target)
    for low in np.quantile(target, np.arange(10) / 10):
        there = (target >= low) & (target < np.sort(target)[np.sum(target < low) + 19])
        assert np.ptp(np.bincount(folds[there], minlength=5)) <= 1


def test_another_key_deals_otherwise():
    target = labels(1, 60, 2)
    assert (deal_folds(1, 5, target) != deal_folds(2, 5, target)).any()
    np.testing.assert_array_equal(deal_folds(1, 5, target), deal_folds(1, 5, target))


def test_more_folds_than_units_are_refused():
    with pytest.raises(UsageError, match="found 5 folds of 3"):
        deal_folds(1, 5, labels(1, 9, 2), groups=np.repeat([0, 1, 2], 3))
