"""Rank tests given margins and ties: exact where that is cheap, near enough elsewhere."""

import itertools
from fractions import Fraction
from math import comb, log10

import numpy as np
import pytest
import rank_tests_reference as reference
from examples import examples
from hypothesis import given
from rank_tests_reference import (
    MISSING,
    crossed,
    location_p,
    location_scores,
    null_tables,
    p_values,
    small_tables,
    strengths,
    weights_of_sums,
)
from scipy import stats

from srs_ooc.evidence.rank_tests import Contrast, RankTarget


@examples(150)
@given(small_tables(2))
def test_two_classes_are_tested_exactly(given_table):
    column, labels, strata = given_table
    target = RankTarget.of_classes(labels, 2, strata)
    expected = location_p(column, target, two_classes=True)
    assert p_values(column, target)[0] == pytest.approx(expected, rel=1e-9)


@examples(100)
@given(small_tables(2))
def test_a_regression_on_two_values_is_tested_exactly(given_table):
    column, values, strata = given_table
    target = RankTarget.of_values(values.astype(float), strata)
    expected = location_p(column, target, two_classes=False)
    assert p_values(column, target)[0] == pytest.approx(expected, rel=1e-9)


@examples(60)
@given(small_tables(4))
def test_a_feature_of_two_values_is_tested_exactly_in_a_regression(given_table):
    column, values, strata = given_table
    column = np.where(column < MISSING, np.minimum(column, 1), MISSING)
    target = RankTarget.of_values(values.astype(float), strata)
    expected = location_p(column, target, two_classes=False)
    assert p_values(column, target)[0] == pytest.approx(expected, rel=1e-9)


@examples(60)
@given(small_tables(3))
def test_few_levels_on_both_sides_of_a_small_regression_are_tested_exactly(given_table):
    column, values, _ = given_table
    column, values = column[:13], values[:13].astype(float)
    target = RankTarget.of_values(values)
    expected = location_p(column, target, two_classes=False)
    assert p_values(column, target)[0] == pytest.approx(expected, rel=1e-9)


def p_of_later_classes(tables, scores, *, in_strata):
    """Without the levels whose rows earlier classes have all taken."""
    kept = [[any(row) for row in table] for table in tables]
    if scores is not None:
        scores = [list(itertools.compress(s, keep)) for s, keep in zip(scores, kept, strict=True)]
    return reference.linear_p_value(tables, two_classes=True, in_strata=in_strata, scores=scores)


@examples(60)
@given(small_tables(4))
def test_classes_are_tested_one_after_the_other(given_table):
    """Each against those still to come, exactly; normal scores squared are added."""
    column, labels, strata = given_table
    target = RankTarget.of_classes(labels, 4, strata)
    tables, scores, total = crossed(column, target)[0], location_scores(column, target), 0.0
    several = len(target.starts) > 2
    for j in range(3):
        rest = list(target.order[j + 1 :])
        pairs = [
            [[sum(row[k] for k in rest), row[target.order[j]]] for row in table] for table in tables
        ]
        p = p_of_later_classes(pairs, scores, in_strata=several)
        total += float(stats.norm.isf(float(p) / 2)) ** 2 if p < 1 else 0.0
    expected = float(stats.chi2.sf(total, 3))
    assert p_values(column, target)[0] == pytest.approx(expected, rel=1e-7)


def test_the_reference_counts_permutations():
    """Every assignment of the target, one by one."""
    column, labels = np.array([0, 0, 0, 1, 1, 2, 2]), np.array([0, 0, 1, 0, 1, 1, 1])
    target = RankTarget.of_classes(labels, 2)
    scores = np.array(reference.rank_scores(np.bincount(column).tolist(), in_strata=False))[column]
    sums = [sum(scores[list(chosen)]) for chosen in itertools.combinations(range(7), 4)]
    centre = Fraction(int(scores.sum()) * 4, 7)
    observed = abs(int(scores[labels == 1].sum()) - centre)
    expected = Fraction(sum(abs(int(s) - centre) >= observed for s in sums), len(sums))
    tables = crossed(column, target)[0]
    assert reference.linear_p_value(tables, two_classes=True) == expected


@pytest.mark.parametrize(("n", "n_first"), [(20, 10), (40, 7), (60, 30)])
@pytest.mark.parametrize("shift", [0.0, 1.0, 3.0])
def test_without_ties_it_is_mann_and_whitneys_test(n, n_first, shift):
    rng = np.random.default_rng(n)
    labels = (np.arange(n) < n_first).astype(int)
    column = (rng.standard_normal(n) + shift * labels).argsort().argsort()
    expected = stats.mannwhitneyu(column[labels == 1], column[labels == 0], method="exact").pvalue
    found = p_values(column, RankTarget.of_classes(labels, 2))[0]
    assert found == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("n_ones", [1, 2, 3, 8, 60, 400])
def test_rare_ones_are_fishers_test_by_the_distance_from_the_mean(n_ones):
    n, n_rare = 800, 78
    labels = (np.arange(n) < n_rare).astype(int)
    law = stats.hypergeom(n, n_rare, n_ones)
    k = np.arange(min(n_rare, n_ones) + 1)
    for there in k[:: max(1, len(k) // 6)]:
        column = np.zeros(n, int)
        column[:there] = 1
        column[n_rare : n_rare + n_ones - there] = 1
        mean = n_rare * n_ones / n
        extreme = np.abs(k - mean) >= abs(there - mean) - 1e-9
        found = p_values(column, RankTarget.of_classes(labels, 2))[0]
        assert found == pytest.approx(law.pmf(k[extreme]).sum(), rel=1e-8)
    if n_ones == 1:
        assert p_values(column, RankTarget.of_classes(labels, 2))[0] > 0.09


def worst_errors(make_column, n, n_first, shifts):
    """Relative errors against the convolution, of p-values from 1e-1 to 1e-13."""
    rng = np.random.default_rng(n + n_first)
    labels = (np.arange(n) < n_first).astype(int)
    target, errors = RankTarget.of_classes(labels, 2), []
    for shift in shifts:
        column = np.unique(make_column(rng, n, labels, shift), return_inverse=True)[1]
        counts = np.bincount(column).tolist()
        scores = reference.rank_scores(counts, in_strata=False)
        law = weights_of_sums(counts, scores, n_first)
        observed = sum(scores[code] for code in column[labels == 1])
        mean = sum(np.multiply(counts, scores)) * n_first / n
        extreme = np.abs(np.arange(len(law)) - mean) >= abs(observed - mean) - 1e-9
        expected = law[extreme].sum()
        if 1e-13 < expected < 0.3:
            errors.append(p_values(column, target)[0] / expected - 1)
    return np.array(errors)


def continuous(rng, n, labels, shift):
    return rng.standard_normal(n) + shift * labels


def levels(n_levels):
    def column(rng, n, labels, shift):
        values = continuous(rng, n, labels, shift)
        return np.searchsorted(np.quantile(values, np.sort(rng.random(n_levels - 1))), values)

    return column


def counts_with_zeros(rng, n, labels, shift):
    return rng.poisson(0.15 + (0.15 + shift / 2) * labels)


@pytest.mark.few(2)
@pytest.mark.parametrize(("n", "n_first"), [(100, 50), (240, 24), (140, 50)])
@pytest.mark.parametrize(
    "make_column",
    [continuous, levels(4), levels(6), levels(12), levels(20), counts_with_zeros],
    ids=["continuous", "4", "6", "12", "20", "counts"],
)
def test_errors_are_at_most_five_percent_in_the_far_tail(make_column, n, n_first):
    errors = worst_errors(make_column, n, n_first, np.linspace(0.3, 2.7, 7))
    assert len(errors) >= 3
    assert np.abs(errors).max() < 0.05


@pytest.mark.parametrize(("n_strata", "n_each"), [(20, 16), (10, 50)])
def test_errors_are_at_most_five_percent_in_strata(n_strata, n_each):
    rng, errors = np.random.default_rng(n_strata), []
    strata = np.repeat(np.arange(n_strata), n_each)
    for shift in np.linspace(0.2, 1.5, 12):
        labels = (rng.random(len(strata)) < 0.3).astype(int)
        column = rng.binomial(3, 0.2 + 0.4 * shift * labels / 1.5)
        law, observed, mean = np.ones(1), 0, 0.0
        for stratum in range(n_strata):
            inside, own = column[strata == stratum], labels[strata == stratum]
            codes = np.unique(inside, return_inverse=True)[1]
            counts, n_first = np.bincount(codes).tolist(), int(own.sum())
            scores = reference.rank_scores(counts, in_strata=True)
            if n_first in (0, n_each) or len(counts) == 1:
                continue
            law = np.convolve(law, weights_of_sums(counts, scores, n_first))
            observed += sum(scores[code] for code in codes[own == 1])
            mean += sum(np.multiply(counts, scores)) * n_first / n_each
        extreme = np.abs(np.arange(len(law)) - mean) >= abs(observed - mean) - 1e-6
        expected = law[extreme].sum()
        if 1e-13 < expected < 0.3:
            found = p_values(column, RankTarget.of_classes(labels, 2, strata))[0]
            errors.append(found / expected - 1)
    assert len(errors) >= 5
    assert np.abs(errors).max() < 0.05


@pytest.mark.few(1)
@pytest.mark.parametrize("design", ["two", "five", "regression", "strata"])
def test_p_values_are_those_of_permutations(design):
    """Of a dense table: within four standard errors at every size."""
    rng = np.random.default_rng(7)
    n, m = 120, 8_000
    column = rng.integers(0, 30, n)
    strata = np.arange(n) % 4 if design == "strata" else None
    permuted = np.stack([rng.permutation(column) for _ in range(m)])
    if strata is not None:
        for stratum in range(4):
            there = np.flatnonzero(strata == stratum)
            permuted[:, there] = rng.permuted(np.tile(column[there], (m, 1)), axis=1)
    if design == "regression":
        target = RankTarget.of_values(rng.standard_normal(n))
    else:
        n_classes = 5 if design == "five" else 2
        target = RankTarget.of_classes(rng.integers(0, n_classes, n), n_classes, strata)
    found = p_values(permuted, target, exactly=False)
    for bar in (0.3, 0.1, 0.01, 0.001):
        spread = np.sqrt(bar / m)
        assert abs(np.mean(found <= bar) - bar) < 4 * spread + 0.02 * bar


@pytest.mark.few(3)
@pytest.mark.parametrize("name", ["rare", "counts", "zero-inflated", "genotypes", "strata"])
def test_sparse_nulls_are_no_more_often_significant_than_they_may(name):
    columns, target = null_tables(name, np.random.default_rng(3))
    found = p_values(columns, target, exactly=False)
    for bar in (0.1, 0.01, 1e-3, 1e-4):
        allowed = len(found) * bar
        assert np.count_nonzero(found <= bar) <= allowed + 3.5 * np.sqrt(allowed) + 1


def test_p_values_below_what_doubles_hold_keep_their_order():
    labels = (np.arange(3000) < 1500).astype(int)
    worse = labels.copy()
    worse[:3] = 0
    columns = np.stack([labels, worse]).astype(np.uint8)
    found = strengths(columns, MISSING, RankTarget.of_classes(labels, 2))
    assert found[0] == pytest.approx(log10(comb(3000, 1500)) - log10(2), rel=1e-9)
    assert 880 < found[1] < found[0]


def test_what_is_constant_or_missing_shows_nothing():
    labels = np.arange(40) % 2
    columns = np.full((3, 40), 7)
    columns[1] = MISSING
    columns[2, :39] = MISSING
    for target in (RankTarget.of_classes(labels, 2), RankTarget.of_values(labels.astype(float))):
        assert p_values(columns, target).tolist() == [1.0] * 3
    same = np.tile(np.arange(40), (2, 1))
    alone = RankTarget.of_classes(labels, 2, np.arange(40))
    assert p_values(same, alone).tolist() == [1.0] * 2
    told = RankTarget.of_classes(labels, 2, labels)
    assert p_values(same, told).tolist() == [1.0] * 2


@pytest.mark.slow
@pytest.mark.parametrize("n_each", [20, 20_000])
def test_of_many_rows_it_is_the_normal_test(n_each):
    """The saddlepoint is found in large tables too, not merely bounded."""
    rng = np.random.default_rng(5)
    n, target = 20_000, rng.standard_normal(20_000)
    strata = np.arange(n) // n_each
    columns = rng.integers(0, 5, (n, 3))
    columns[:, 1:] += (target[:, None] + 30 * rng.standard_normal((n, 2)) > 20).astype(int)
    found = -strengths(
        np.ascontiguousarray(columns.T.astype(np.uint8)),
        MISSING,
        RankTarget.of_values(target, strata if n_each < n else None),
        only=Contrast.LOCATION,
    )
    ranks = np.empty(n)
    z = np.zeros(3)
    variance = np.zeros(3)
    for start in range(0, n, n_each):
        rows = slice(start, start + n_each)
        ranks = stats.rankdata(target[rows])
        ranks -= ranks.mean()
        codes = columns[rows] - columns[rows].mean(axis=0)
        own = np.apply_along_axis(stats.rankdata, 0, codes)
        own -= own.mean(axis=0)
        z += ranks @ own
        variance += (ranks @ ranks) * (own**2).sum(axis=0) / (n_each - 1)
    expected = (np.log(2) + stats.norm.logsf(np.abs(z) / np.sqrt(variance))) / np.log(10)
    assert np.all(np.abs(found - expected) < 0.1)


def test_rows_trade_places_within_strata_only():
    """What strata shift, in feature and target, the plain test takes for a relation."""
    rng = np.random.default_rng(0)
    strata = np.repeat(np.arange(6), 30)
    values = rng.standard_normal((1500, 180)) + strata
    columns = values.argsort(axis=1).argsort(axis=1)
    labels = (rng.random(180) * 3 + strata / 3 > 2).astype(int)
    within = p_values(columns, RankTarget.of_classes(labels, 2, strata))
    assert stats.kstest(within, "uniform").pvalue > 1e-3
    plain = p_values(columns, RankTarget.of_classes(labels, 2))
    assert stats.kstest(plain, "uniform").pvalue < 1e-9


def test_wide_codes_are_tested_like_narrow_ones():
    rng = np.random.default_rng(1)
    columns = rng.integers(0, 90, (5, 200))
    target = RankTarget.of_classes(rng.integers(0, 3, 200), 3)
    narrow = strengths(columns.astype(np.uint8), MISSING, target, exactly=True)
    wide = strengths(columns.astype(np.uint16) * 7, 1000, target, exactly=True)
    np.testing.assert_array_equal(narrow, wide)
