"""What a feature shows besides location: spread, what is missing; one p-value of all."""

from fractions import Fraction

import numpy as np
import pytest
import rank_tests_reference as reference
from examples import examples
from hypothesis import given
from rank_tests_reference import (
    MISSING,
    crossed,
    joined_p_values,
    location_p,
    location_scores,
    null_tables,
    p_values,
    small_tables,
    strata_of,
    strengths,
    weights_of_sums,
)
from scipy import stats

from srs_ooc.evidence.rank_tests import (
    NO_CONTRAST,
    Contrast,
    RankTarget,
    strongest_contrasts,
)


def spread_p(column, target, *, two_classes):
    """As the reference has it; None where the margins leave nothing to show."""
    several = len(target.starts) > 2
    if several and np.diff(target.starts).max() <= reference.TINY_STRATUM:
        return None
    found = [reference.fold(table, in_strata=several) for table in crossed(column, target)[0]]
    tables = [fold[0] for fold in found if fold]
    if not tables:
        return None
    scores = [fold[1] for fold in found if fold]
    return reference.linear_p_value(
        tables, two_classes=two_classes, in_strata=several, scores=scores
    )


def absence_p(column, target, *, two_classes):
    """Of the indicator of what is missing, as a column of two levels."""
    tables = []
    for own, to in strata_of(column, target):
        table = np.zeros((2, target.n_targets), int)
        np.add.at(table, ((own == MISSING).astype(int), to), 1)
        tables.append(table.tolist())
    if not any(map(varies, tables)):
        return None
    several = len(target.starts) > 2
    return reference.linear_p_value(tables, two_classes=two_classes, in_strata=several)


def varies(table):
    return sum(map(any, table)) > 1


@examples(150)
@given(small_tables(2, most_rows=24))
def test_contrasts_of_two_classes_and_what_they_are_joined_to_are_exact(given_table):
    column, labels, strata = given_table
    target = RankTarget.of_classes(labels, 2, strata)
    spread = spread_p(column, target, two_classes=True)
    absence = absence_p(column, target, two_classes=True)
    found = p_values(column, target, only=Contrast.SPREAD)[0]
    assert found == pytest.approx(1.0 if spread is None else float(spread), rel=1e-9)
    found = p_values(column, target, only=Contrast.ABSENCE)[0]
    assert found == pytest.approx(1.0 if absence is None else float(absence), rel=1e-9)
    location = Fraction(location_p(column, target, two_classes=True))
    has_location = any(map(varies, crossed(column, target)[0]))
    joined = reference.joined([location if has_location else None, spread, absence])
    assert joined_p_values(column, target)[0] == pytest.approx(float(joined), rel=1e-9)


@examples(60)
@given(small_tables(2, most_rows=24))
def test_spread_is_tested_exactly_in_a_regression_on_two_values(given_table):
    column, values, strata = given_table
    target = RankTarget.of_values(values.astype(float), strata)
    expected = spread_p(column, target, two_classes=False)
    found = p_values(column, target, only=Contrast.SPREAD)[0]
    assert found == pytest.approx(1.0 if expected is None else float(expected), rel=1e-9)


def far_tail(counts, scores, n_drawn, observed):
    """The p-value of a sum by convolution."""
    law = weights_of_sums(counts, scores, n_drawn)
    mean = np.dot(counts, scores) * n_drawn / sum(counts)
    extreme = np.abs(np.arange(len(law)) - mean) >= abs(observed - mean) - 1e-9
    return law[extreme].sum()


@pytest.mark.few(4)
@pytest.mark.parametrize(("n", "n_first"), [(100, 50), (240, 24)])
@pytest.mark.parametrize("n_levels", [0, 4, 7, 20])
def test_errors_of_spread_are_at_most_five_percent_in_the_far_tail(n, n_first, n_levels):
    rng, errors = np.random.default_rng(n + n_levels), []
    labels = (np.arange(n) < n_first).astype(int)
    target = RankTarget.of_classes(labels, 2)
    for scale in np.linspace(1.3, 9, 12):
        values = rng.standard_normal(n) * np.where(labels == 1, scale, 1)
        if n_levels:
            values = np.searchsorted(np.quantile(values, np.sort(rng.random(n_levels - 1))), values)
        column = np.unique(values, return_inverse=True)[1]
        fold = reference.fold(crossed(column, target)[0][0], in_strata=False)
        if fold is None:
            continue
        table, scores = fold
        observed = sum(score * row[1] for score, row in zip(scores, table, strict=True))
        expected = far_tail([sum(row) for row in table], scores, n_first, observed)
        if 1e-13 < expected < 0.3:
            found = p_values(column, target, only=Contrast.SPREAD)[0]
            errors.append(found / expected - 1)
    assert len(errors) >= 3
    assert np.abs(errors).max() < 0.05


@pytest.mark.parametrize(("n_strata", "n_each"), [(40, 2), (300, 2), (30, 6)])
def test_errors_of_aligned_ranks_are_at_most_five_percent_in_the_far_tail(n_strata, n_each):
    rng, errors = np.random.default_rng(n_strata), []
    strata = np.repeat(np.arange(n_strata), n_each)
    labels = (np.arange(len(strata)) % n_each < n_each // 2).astype(int)
    target = RankTarget.of_classes(labels, 2, strata)
    for shift in np.linspace(0.2, 8, 10) / n_strata**0.5:
        values = rng.standard_normal(n_strata)[strata] + rng.standard_normal(len(strata))
        column = (values + shift * labels).argsort().argsort() * 254 // len(strata)
        tables, law, observed, mean = crossed(column, target)[0], np.ones(1), 0, 0.0
        for table, scores in zip(tables, location_scores(column, target), strict=True):
            counts, n_first = [sum(row) for row in table], sum(row[1] for row in table)
            law = np.convolve(law, weights_of_sums(counts, scores, n_first))
            observed += sum(score * row[1] for score, row in zip(scores, table, strict=True))
            mean += np.dot(counts, scores) * n_first / sum(counts)
        extreme = np.abs(np.arange(len(law)) - mean) >= abs(observed - mean) - 1e-6
        expected = law[extreme].sum()
        if 1e-13 < expected < 0.3:
            errors.append(p_values(column, target)[0] / expected - 1)
    assert len(errors) >= 3
    assert np.abs(errors).max() < 0.05


def test_without_ties_spread_is_ansari_and_bradleys_test():
    rng = np.random.default_rng(2)
    labels = (np.arange(20) < 8).astype(int)
    for scale in (1, 4):
        values = rng.standard_normal(20) * np.where(labels == 1, scale, 1)
        column = values.argsort().argsort()
        found = p_values(column, RankTarget.of_classes(labels, 2), only=Contrast.SPREAD)[0]
        with np.errstate(all="ignore"):
            exact = stats.ansari(values[labels == 1], values[labels == 0])
        # scipy doubles the smaller tail, here sums as far from the mean on either side count
        assert found == pytest.approx(exact.pvalue, rel=0.15)


def test_what_a_feature_shows_is_named():
    rng = np.random.default_rng(0)
    labels = np.arange(200) % 2
    columns = np.tile(np.arange(200), (4, 1))
    values = rng.standard_normal((4, 200))
    values[0] += 2 * labels
    values[1] *= 1 + 4 * labels
    columns = values.argsort(axis=1).argsort(axis=1).astype(np.uint8)
    columns[2, (labels == 1) & (rng.random(200) < 0.5)] = MISSING
    columns[3] = 7
    strength, shown = strongest_contrasts(columns, MISSING, RankTarget.of_classes(labels, 2))
    assert shown.tolist() == [*Contrast, NO_CONTRAST]
    assert strength[:3].min() > 5
    assert strength[3] == 0


@pytest.mark.parametrize("name", ["two", "five", "regression", "strata"])
def test_signals_of_spread_and_absence_are_seen_whatever_the_target(name):
    """A trend of spread with the target; none of location."""
    rng = np.random.default_rng(4)
    n = 500
    labels = rng.permutation(np.arange(n) % (5 if name == "five" else 2))
    strata = np.arange(n) % 5 if name == "strata" else None
    if name == "regression":
        target = RankTarget.of_values(labels + rng.random(n))
    else:
        target = RankTarget.of_classes(labels, labels.max() + 1, strata)
    scale = 1 + 2 * labels[None] / labels.max()
    spread = (rng.standard_normal((20, n)) * scale).argsort(axis=1).argsort(axis=1) * 254 // n
    absent = rng.integers(0, 254, (20, n))
    absent[rng.random((20, n)) < 0.1 + 0.3 * labels / labels.max()] = MISSING
    for columns, contrast in ((spread, Contrast.SPREAD), (absent, Contrast.ABSENCE)):
        codes = np.ascontiguousarray(columns.astype(np.uint8))
        strength, shown = strongest_contrasts(codes, MISSING, target)
        assert np.median(strength) > 3
        assert np.mean(shown == contrast) > 0.8
        assert np.median(strengths(codes, MISSING, target, only=Contrast.LOCATION)) < 2


@pytest.mark.parametrize("n_ones", [3, 30, 60])
def test_a_binary_feature_without_missing_values_pays_nothing(n_ones):
    labels = np.arange(120) % 3 % 2
    column = (np.arange(120) < n_ones).astype(int)
    for target in (
        RankTarget.of_classes(labels, 2),
        RankTarget.of_classes(labels, 2, np.arange(120) % 4),
        RankTarget.of_values(np.arange(120) * 7 % 31.0),
    ):
        assert joined_p_values(column, target) == p_values(column, target)


def test_counts_with_many_zeros_pay_nothing():
    """All other values are on one side of the most central: spread is location there."""
    rng = np.random.default_rng(1)
    labels = np.arange(100) % 2
    columns = rng.poisson(0.4, (50, 100))
    target = RankTarget.of_classes(labels, 2)
    np.testing.assert_array_equal(joined_p_values(columns, target), p_values(columns, target))


@pytest.mark.few(3)
@pytest.mark.parametrize(
    "name", ["rare", "counts", "zero-inflated", "genotypes", "strata", "missing", "tied", "pairs"]
)
def test_joined_nulls_are_no_more_often_significant_than_they_may(name):
    rng = np.random.default_rng(5)
    if name in ("missing", "tied"):
        labels = (np.arange(200) < 60).astype(int)
        columns = rng.integers(0, 5 if name == "tied" else 100, (20_000, 200))
        if name == "missing":
            columns[rng.random(columns.shape) < 0.05] = MISSING
        target = RankTarget.of_classes(labels, 2)
    elif name == "pairs":
        columns = rng.integers(0, 40, (20_000, 80))
        target = RankTarget.of_classes(np.tile([0, 1], 40), 2, np.repeat(np.arange(40), 2))
    else:
        columns, target = null_tables(name, rng)
    found = joined_p_values(columns, target, exactly=False)
    for bar in (0.01, 1e-3, 1e-4):
        allowed = len(found) * bar
        assert np.count_nonzero(found <= bar) <= allowed + 3.5 * np.sqrt(allowed) + 1


def test_in_pairs_it_is_nearly_wilcoxons_signed_rank_test():
    """Of differences of ranks, on 64 steps."""
    rng = np.random.default_rng(3)
    target = RankTarget.of_classes(np.tile([0, 1], 60), 2, np.repeat(np.arange(60), 2))
    for shift in (0.0, 0.1, 0.2):
        values = np.repeat(rng.standard_normal(60), 2) + 0.5 * rng.standard_normal(120)
        values[1::2] += shift
        column = values.argsort().argsort()
        expected = stats.wilcoxon(column[1::2] - column[::2]).pvalue
        found = joined_p_values(column, target)[0]
        assert np.log10(found) == pytest.approx(np.log10(expected), abs=0.4)


def test_the_shares_do_not_depend_on_whose_values_are_missing():
    """Where one class has no value location is charged all the same: it is part of the chance."""
    labels = np.arange(60) % 2
    column = np.where(labels == 1, MISSING, np.arange(60) % 3)
    target = RankTarget.of_classes(labels, 2)
    alone = p_values(column, target, only=Contrast.ABSENCE)[0]
    share = reference.SHARES[Contrast.ABSENCE] / sum(reference.SHARES)
    has_spread = reference.fold(crossed(column, target)[0][0], in_strata=False) is not None
    assert has_spread
    assert joined_p_values(column, target)[0] == pytest.approx(alone / float(share), rel=1e-9)
