"""Rank tests within strata, against the plain ones, their formulas, and permutations."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from srs_ooc.evidence import marginal, stratified

MISSING = 30


def table(seed, n_rows=90, n_columns=12):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 12, (n_columns, n_rows))
    codes[3, ::5] = MISSING
    codes[4] = 2
    return codes, rng


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_one_stratum_of_classes_is_the_plain_test(n_classes):
    codes, rng = table(n_classes)
    labels = rng.integers(0, n_classes, 90)
    found = stratified.class_p_values(codes, labels, n_classes, MISSING, [np.arange(90)])
    expected = marginal.class_p_values(codes, labels, n_classes, MISSING)
    np.testing.assert_allclose(found, expected, rtol=1e-8)


def test_one_stratum_of_targets_is_the_plain_test():
    codes, rng = table(0)
    target = rng.standard_normal(90)
    found = stratified.rank_correlation_p_values(codes, target, MISSING, [np.arange(90)])
    ranks = marginal.target_ranks(target)
    expected = marginal.rank_correlation_p_values(codes, ranks, MISSING)
    np.testing.assert_allclose(found, expected, rtol=1e-8)


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.integers(2, 9))
def test_two_classes_are_van_elterens_test(seed, n_strata):
    codes, rng = table(seed)
    labels, strata = rng.integers(0, 2, 90), rng.integers(0, n_strata, 90)
    found = stratified.class_p_values(codes, labels, 2, MISSING, stratified.rows_by_stratum(strata))
    for column, p_value in zip(codes, found, strict=True):
        top = bottom = 0.0
        for stratum in range(n_strata):
            there = (strata == stratum) & (column < MISSING)
            n, n_second = np.count_nonzero(there), np.count_nonzero(labels[there])
            if n < 2:
                continue
            ranks = stats.rankdata(column[there])
            top += (ranks[labels[there] == 1].sum() - n_second * (n + 1) / 2) / (n + 1)
            bottom += n_second * (n - n_second) / n * ranks.var(ddof=1) / (n + 1) ** 2
        expected = 2 * stats.norm.sf(abs(top) / np.sqrt(bottom)) if bottom > 1e-12 else 1.0
        assert p_value == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("n_classes", [0, 2, 3])
def test_p_values_are_uniform_where_rows_trade_places_in_strata_only(n_classes):
    """Plain tests are not: here strata shift both features and the target."""
    rng = np.random.default_rng(n_classes)
    strata = np.repeat(np.arange(6), 30)
    values = rng.standard_normal((3000, 180)) + strata
    codes = values.argsort(axis=1).argsort(axis=1) * 250 // 180
    parts = stratified.rows_by_stratum(strata)
    if n_classes:
        labels = (rng.random(180) * 3 + strata / 3).astype(int) % n_classes
        labels[strata > 3] = n_classes - 1
        found = stratified.class_p_values(codes, labels, n_classes, 255, parts)
        plain = marginal.class_p_values(codes, labels, n_classes, 255)
    else:
        target = rng.standard_normal(180) + strata
        found = stratified.rank_correlation_p_values(codes, target, 255, parts)
        plain = marginal.rank_correlation_p_values(codes, marginal.target_ranks(target), 255)
    assert stats.kstest(found, "uniform").pvalue > 1e-3
    assert stats.kstest(plain, "uniform").pvalue < 1e-9


def test_strata_of_one_row_and_constant_classes_tell_nothing():
    codes, rng = table(1)
    assert stratified.rows_by_stratum(np.array([4, 1, 4, 2]))[0].tolist() == [0, 2]
    nothing = stratified.class_p_values(codes, rng.integers(0, 2, 90), 2, MISSING, [])
    assert nothing.tolist() == [1.0] * 12
    strata = np.arange(90) % 3
    same = stratified.class_p_values(codes, strata, 3, MISSING, stratified.rows_by_stratum(strata))
    assert same.tolist() == [1.0] * 12
    parts = stratified.rows_by_stratum(strata)
    flat = stratified.rank_correlation_p_values(codes, strata.astype(float), MISSING, parts)
    assert flat.tolist() == [1.0] * 12
