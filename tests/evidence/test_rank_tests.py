"""Rank tests given margins and ties: exact where that is cheap, near enough elsewhere."""

import itertools
from fractions import Fraction
from math import comb, log10
from statistics import NormalDist

import numpy as np
import pytest
import rank_tests_reference as reference
from examples import examples, given, st
from joint_reference import joint_p
from rank_tests_reference import (
    MISSING,
    crossed,
    joined_p_values,
    levels_p,
    location_p,
    location_scores,
    neg_log10_p,
    null_tables,
    p_values,
    small_tables,
    strata_of,
    weights_of_sums,
)
from scipy import stats

from srs_ooc.evidence.rank_tests import (
    NO_CONTRAST,
    SCORE_STEPS,
    Contrast,
    Covariates,
    RankTarget,
    adjusted,
    contrasts_log_p,
    least_passing,
    log_of_two,
    p_values_of,
    shares_beside,
    strongest_contrasts,
    strongest_of,
)


def of_classes(column, labels, strata):
    return column, RankTarget.of_classes(labels, 2, strata), True


def of_values(column, values, strata):
    return column, RankTarget.of_values(values.astype(float), strata), False


def of_two_values(column, values, strata):
    return of_values(np.where(column < MISSING, np.minimum(column, 1), MISSING), values, strata)


def of_few(column, values, _):
    return of_values(column[:13], values[:13], None)


def exactly(design, n_targets, n_examples):
    """The property that small tables of a design are tested exactly."""

    @examples(n_examples)
    @given(small_tables(n_targets))
    def test(given_table):
        column, target, two_classes = design(*given_table)
        expected = location_p(column, target, two_classes=two_classes)
        assert p_values(column, target)[0] == pytest.approx(expected, rel=1e-9)

    return test


test_two_classes_are_tested_exactly = exactly(of_classes, 2, 150)
test_a_regression_on_two_values_is_tested_exactly = exactly(of_values, 2, 100)
test_a_feature_of_two_values_in_a_regression_is_tested_exactly = exactly(of_two_values, 4, 60)
test_few_levels_of_a_small_regression_are_tested_exactly = exactly(of_few, 3, 60)


def p_of_later_classes(tables, scores, *, in_strata):
    """Without the levels whose rows earlier classes have all taken."""
    kept = [[any(row) for row in table] for table in tables]
    if scores is not None:
        scores = [list(itertools.compress(s, keep)) for s, keep in zip(scores, kept, strict=True)]
    return reference.linear_p_value(tables, two_classes=True, in_strata=in_strata, scores=scores)


@examples(60)
@given(small_tables(4))
def test_classes_are_tested_together_and_one_against_the_rest(given_table):
    """Each against those still to come, exactly; of two levels by the joint test. And one alone."""
    column, labels, strata = given_table
    target = RankTarget.of_classes(labels, 4, strata)
    tables, scores = crossed(column, target)[0], location_scores(column, target)
    several = len(target.starts) > 2
    order = [k for k in target.order if any(row[k] for table in tables for row in table)]
    if len(order) < 2:
        assert p_values(column, target)[0] == 1.0
        return

    def against(one, rest):
        pairs = [[[sum(row[k] for k in rest), row[one]] for row in table] for table in tables]
        return float(p_of_later_classes(pairs, scores, in_strata=several))

    each = [against(one, order[j + 1 :]) for j, one in enumerate(order[:-1])]
    together = stats.chi2.sf((stats.norm.isf(np.array(each) / 2) ** 2).sum(), len(each))
    if not several and len(tables[0]) == 2:
        together = joint_p(np.array(tables).swapaxes(1, 2)[:, order])
    expected = [together]
    if len(order) > 2:
        rests = [(one, [k for k in order if k != one]) for one in order]
        alone = [min(len(order) * against(*rest), 1.0) for rest in rests]
        seen = [table for table in tables if sum(map(sum, table)) > 1]
        if sum(any(row[k] for table in seen for row in table) for k in order) > 2:
            expected = [reference.of_two(together, p, 0.5) for p in alone]
    assert any(p_values(column, target)[0] == pytest.approx(p, rel=1e-6) for p in expected)


def test_two_tests_have_the_p_value_of_independent_ones():
    rng = np.random.default_rng(1)
    p, q = rng.random((2, 400_000))
    found = np.exp(log_of_two(np.log(p), np.log(q)))
    expected = [reference.of_two(p[i], q[i], 0.5) for i in range(100)]
    assert found[:100] == pytest.approx(expected)
    for t in (0.3, 0.05, 0.01):
        assert np.mean(found <= t) == pytest.approx(t, abs=4 * (t / 400_000) ** 0.5)
    far = log_of_two(np.array([-3000.0, 0.0]), np.zeros(2))
    assert far == pytest.approx([-3000 + np.log(2), 0], abs=1e-12)


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


def extreme_p(law, mean, observed, off=1e-9):
    """The p-value of a sum, by its law: of all that are as far from the mean."""
    return law[np.abs(np.arange(len(law)) - mean) >= abs(observed - mean) - off].sum()


def far_tail(counts, scores, n_drawn, observed):
    """The p-value of a sum by convolution."""
    mean = np.dot(counts, scores) * n_drawn / sum(counts)
    return extreme_p(weights_of_sums(counts, scores, n_drawn), mean, observed)


def assert_near(pairs, least=3):
    """Errors of p-values found are at most 5% of those expected, from 0.3 to 1e-13."""
    errors = np.array([found / p - 1 for found, p in pairs if 1e-13 < p < 0.3])
    assert len(errors) >= least
    assert np.abs(errors).max() < 0.05


def assert_valid(found, bars, spread=3.5, more=1):
    """No more p-values are below a bar than may be."""
    for bar in bars:
        allowed = len(found) * bar
        assert np.count_nonzero(found <= bar) <= allowed + spread * np.sqrt(allowed) + more


def target_of(design, labels, numbers, strata):
    """A target of two or five classes, in strata, or of numbers."""
    if design == "regression":
        return RankTarget.of_values(numbers)
    strata = strata if design == "strata" else None
    return RankTarget.of_classes(labels, 5 if design == "five" else 2, strata)


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
    rng, pairs = np.random.default_rng(n + n_first), []
    labels = (np.arange(n) < n_first).astype(int)
    for shift in np.linspace(0.3, 2.7, 7):
        column = np.unique(make_column(rng, n, labels, shift), return_inverse=True)[1]
        counts = np.bincount(column).tolist()
        scores = reference.rank_scores(counts, in_strata=False)
        target = RankTarget.of_classes(labels, 2)
        if len(counts) == 3:
            expected = location_p(column, target, two_classes=True)
        else:
            observed = sum(scores[c] for c in column[labels == 1])
            expected = far_tail(counts, scores, n_first, observed)
        pairs.append((p_values(column, target)[0], expected))
    assert_near(pairs)


@pytest.mark.parametrize(("n_strata", "n_each"), [(20, 16), (10, 50)])
def test_errors_are_at_most_five_percent_in_strata(n_strata, n_each):
    rng, pairs = np.random.default_rng(n_strata), []
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
        found = p_values(column, RankTarget.of_classes(labels, 2, strata))[0]
        pairs.append((found, extreme_p(law, mean, observed, 1e-6)))
    assert_near(pairs, 5)


@pytest.mark.few(1)
@pytest.mark.parametrize("design", ["two", "five", "regression", "strata"])
def test_p_values_are_those_of_permutations(design):
    """Of a dense table: within four standard errors; less where two tests of classes are one."""
    rng = np.random.default_rng(7)
    n, m = 120, 8_000
    column = rng.integers(0, 30, n)
    strata = np.arange(n) % 4
    permuted = np.stack([rng.permutation(column) for _ in range(m)])
    if design == "strata":
        for stratum in range(4):
            there = np.flatnonzero(strata == stratum)
            permuted[:, there] = rng.permuted(np.tile(column[there], (m, 1)), axis=1)
    numbers, labels = rng.standard_normal(n), rng.integers(0, 5 if design == "five" else 2, n)
    target = target_of(design, labels, numbers, strata)
    found = p_values(permuted, target, exactly=False)
    for bar in (0.3, 0.1, 0.01, 0.001):
        near = 4 * np.sqrt(bar / m) + 0.02 * bar
        least = 0.7 * bar if design == "five" else bar
        assert least - near < np.mean(found <= bar) < bar + near


@pytest.mark.few(3)
@pytest.mark.parametrize("name", ["rare", "counts", "zero-inflated", "genotypes", "strata"])
def test_sparse_nulls_are_no_more_often_significant_than_they_may(name):
    columns, target = null_tables(name, np.random.default_rng(3))
    assert_valid(p_values(columns, target, exactly=False), (0.1, 0.01, 1e-3, 1e-4))


def test_p_values_below_what_doubles_hold_keep_their_order():
    labels = (np.arange(3000) < 1500).astype(int)
    worse = labels.copy()
    worse[:3] = 0
    columns = np.stack([labels, worse]).astype(np.uint8)
    found = neg_log10_p(columns, MISSING, RankTarget.of_classes(labels, 2))
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
    found = -neg_log10_p(
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
    narrow = neg_log10_p(columns.astype(np.uint8), MISSING, target, exactly=True)
    wide = neg_log10_p(columns.astype(np.uint16) * 7, 1000, target, exactly=True)
    np.testing.assert_array_equal(narrow, wide)


# What a feature shows besides location: spread, what is missing; one p-value of all.


def spread_p(column, target, *, two_classes):
    """As the reference has it; None where the margins leave nothing to show."""
    several = len(target.starts) > 2
    if several and np.diff(target.starts).max() <= reference.TINY_STRATUM:
        return None
    tables = crossed(column, target)[0]
    if tables and reference.is_of_three_levels(tables, target):
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
    for contrast, p in ((Contrast.SPREAD, spread), (Contrast.ABSENCE, absence)):
        found = p_values(column, target, only=contrast)[0]
        assert found == pytest.approx(1.0 if p is None else float(p), rel=1e-9)
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


@pytest.mark.few(4)
@pytest.mark.parametrize(("n", "n_first"), [(100, 50), (240, 24)])
@pytest.mark.parametrize("n_levels", [0, 4, 7, 20])
def test_errors_of_spread_are_at_most_five_percent_in_the_far_tail(n, n_first, n_levels):
    rng, pairs = np.random.default_rng(n + n_levels), []
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
        pairs.append((p_values(column, target, only=Contrast.SPREAD)[0], expected))
    assert_near(pairs)


@pytest.mark.parametrize(("n_strata", "n_each"), [(40, 2), (300, 2), (30, 6)])
def test_errors_of_aligned_ranks_are_at_most_five_percent_in_the_far_tail(n_strata, n_each):
    rng, pairs = np.random.default_rng(n_strata), []
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
        pairs.append((p_values(column, target)[0], extreme_p(law, mean, observed, 1e-6)))
    assert_near(pairs)


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
    neg_log10_p, shown = strongest_contrasts(columns, MISSING, RankTarget.of_classes(labels, 2))
    assert shown.tolist() == [*Contrast, NO_CONTRAST]
    assert neg_log10_p[:3].min() > 5
    assert neg_log10_p[3] == 0


@pytest.mark.parametrize("name", ["two", "five", "regression", "strata"])
def test_signals_of_spread_and_absence_are_seen_whatever_the_target(name):
    """A trend of spread with the target; none of location."""
    rng = np.random.default_rng(4)
    n = 500
    labels = rng.permutation(np.arange(n) % (5 if name == "five" else 2))
    numbers = labels + rng.random(n) if name == "regression" else None
    target = target_of(name, labels, numbers, np.arange(n) % 5)
    scale = 1 + 2 * labels[None] / labels.max()
    spread = (rng.standard_normal((20, n)) * scale).argsort(axis=1).argsort(axis=1) * 254 // n
    absent = rng.integers(0, 254, (20, n))
    absent[rng.random((20, n)) < 0.1 + 0.3 * labels / labels.max()] = MISSING
    for columns, contrast in ((spread, Contrast.SPREAD), (absent, Contrast.ABSENCE)):
        codes = np.ascontiguousarray(columns.astype(np.uint8))
        found, shown = strongest_contrasts(codes, MISSING, target)
        assert np.median(found) > 3
        assert np.mean(shown == contrast) > 0.8
        assert np.median(neg_log10_p(codes, MISSING, target, only=Contrast.LOCATION)) < 2


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
    assert_valid(joined_p_values(columns, target, exactly=False), (0.01, 1e-3, 1e-4))


def few_rows(name, n, rng):
    """A target of ``n`` rows and the strata that its rows trade places within."""
    strata = np.arange(n) // 6 if name == "strata" else np.zeros(n, np.int64)
    if name == "numbers":
        return RankTarget.of_values(rng.standard_normal(n)), strata
    if name == "tied numbers":
        return RankTarget.of_values(np.round(rng.exponential(size=n))), strata
    every = {"three": 3, "1:3": 4}.get(name, 2)
    labels = np.arange(n) % every if name != "1:3" else (np.arange(n) % 4 == 0).astype(int)
    n_classes = 3 if name == "three" else 2
    return RankTarget.of_classes(labels, n_classes, strata if name == "strata" else None), strata


@pytest.mark.slow
@pytest.mark.parametrize("n_orders", [20_000, pytest.param(100_000, marks=pytest.mark.campaign)])
@pytest.mark.parametrize(
    "n", [8, 20, *(pytest.param(n, marks=pytest.mark.campaign) for n in (6, 10, 12, 16, 25))]
)
@pytest.mark.parametrize("name", ["two", "1:3", "three", "numbers", "tied numbers", "strata"])
def test_parts_of_few_rows_are_no_more_often_significant_than_they_may(name, n, n_orders):
    """Of permutations of one column: each contrast, and all joined."""
    rng = np.random.default_rng(n)
    columns = {
        "no ties": np.arange(n),
        "three": rng.integers(0, 3, n),
        "five": rng.integers(0, 5, n),
        "zeros": np.where(rng.random(n) < 0.6, 0, rng.integers(1, 9, n)),
        "missing": np.where(rng.random(n) < 0.3, MISSING, rng.integers(0, 6, n)),
    }
    target, strata = few_rows(name, n, rng)
    order = np.lexsort((rng.random((n_orders, n)), np.broadcast_to(strata, (n_orders, n))), axis=1)
    for column in columns.values():
        log_p = contrasts_log_p(column.astype(np.uint8)[order], MISSING, target)
        joined = 10 ** -strongest_of(log_p, np.full((len(log_p), 3), 1 / 3))[0]
        for found in (joined, *np.exp(log_p[:, ~np.isnan(log_p[0])]).T):
            assert_valid(found, (0.1, 0.01, 1e-3), 4, 0)


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


@given(counts=st.tuples(*[st.integers(0, 50)] * 3), owns=st.lists(st.integers(0, 3), max_size=9))
def test_a_feature_has_no_part_in_the_shares_of_its_contrasts(counts, owns):
    """The first shares and the others, in exact fractions."""
    own = np.array([c if c == NO_CONTRAST or counts[c] else NO_CONTRAST for c in owns], np.uint8)
    found = shares_beside(np.array(counts), own)
    for shares, mine in zip(found, own.tolist(), strict=True):
        first = [Fraction(2), Fraction(1, 2), Fraction(1, 2)]
        others = [first[c] + n - (c == mine) for c, n in enumerate(counts)]
        expected = [Fraction(n, sum(others)) for n in others]
        np.testing.assert_allclose(shares, np.array(expected, float), rtol=1e-15)


@given(shares=st.lists(st.tuples(*[st.floats(0.01, 0.99)] * 3), min_size=6, max_size=6))
def test_contrasts_share_the_level_as_they_are_told(shares):
    """The least p-value by its part of what the column's contrasts have together."""
    rng = np.random.default_rng(3)
    columns = rng.integers(0, 200, (6, 90)).astype(np.uint8)
    columns[1::2][rng.random((3, 90)) < 0.2] = MISSING
    columns[5] %= 2  # two levels: no spread
    target = RankTarget.of_classes(np.arange(90) % 2, 2)
    told = np.array(shares)
    alone = [strongest_contrasts(columns, MISSING, target, only=c)[0] for c in Contrast]
    has = np.array(alone).T > 0
    own = np.where(has, told, 0)
    parts = np.where(has, own / own.sum(axis=1)[:, None], 1)
    expected = np.where(has, np.array(alone).T + np.log10(parts), 0)
    found, contrasts = strongest_contrasts(columns, MISSING, target, shares=told)
    np.testing.assert_allclose(found, np.maximum(expected.max(axis=1), 0), rtol=1e-12, atol=1e-12)
    is_shown = found > 0
    np.testing.assert_array_equal(contrasts[is_shown], expected.argmax(axis=1)[is_shown])
    assert (contrasts[~is_shown] == NO_CONTRAST).all()


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


# Columns without an order, and classes with one.


def levels_of(seed: int, n: int, *, signal: float = 0.0, n_columns: int = 1) -> np.ndarray:
    """Return columns of six uneven levels; of the second half of rows some are moved to one."""
    rng = np.random.default_rng(seed)
    columns = rng.choice(6, (n_columns, n), p=[0.3, 0.22, 0.18, 0.13, 0.1, 0.07])
    moved = (np.arange(n) >= n // 2) & (rng.random((n_columns, n)) < signal)
    return np.where(moved, 2, columns).astype(np.uint8)


def by_levels(columns: np.ndarray, target: RankTarget, **given: object) -> np.ndarray:
    """Return the -log10 p of columns whose codes have no order, of location alone."""
    kinds = np.ones(len(columns), np.bool_)
    given = {"only": Contrast.LOCATION, "exactly": True} | given
    return neg_log10_p(columns, MISSING, target, categorical=kinds, **given)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_levels_are_told_apart_about_as_by_chi_squared(n_classes: int) -> None:
    n = 600
    labels = np.arange(n) * n_classes // n
    columns = levels_of(1, n, signal=0.4, n_columns=30)
    found = by_levels(columns, RankTarget.of_classes(labels, n_classes))
    crossed = [
        np.array([np.bincount(c[labels == k], minlength=6) for k in range(n_classes)])
        for c in columns
    ]
    expected = -np.log10([stats.chi2_contingency(t, correction=False).pvalue for t in crossed])
    assert np.median(expected) > 3
    assert np.corrcoef(found, expected)[0, 1] > 0.9
    assert np.mean(found / expected) == pytest.approx(1, abs=0.15)


def test_levels_are_told_apart_by_numbers_about_as_kruskal_does() -> None:
    rng = np.random.default_rng(2)
    columns = levels_of(2, 300, n_columns=20)
    for column in columns:
        values = rng.normal(size=300) + 0.5 * (column == 3)
        found = by_levels(column[None], RankTarget.of_values(values))[0]
        parts = [values[column == level] for level in range(6)]
        assert found == pytest.approx(-np.log10(stats.kruskal(*parts).pvalue), abs=0.5)


@examples(100)
@given(st.data())
def test_levels_are_tested_as_by_hand(data):
    """By classes and numbers, in strata, in parts of the rows, of rare levels too."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    n, n_classes, n_levels = (data.draw(st.integers(*ends)) for ends in ((3, 200), (1, 5), (1, 12)))
    dtype, missing = data.draw(st.sampled_from([(np.uint8, MISSING), (np.uint16, 300)]))
    labels = rng.integers(0, n_classes, n)
    columns = (n_levels * rng.random((3, n)) ** data.draw(st.integers(1, 3))).astype(int)
    columns = (columns + labels * data.draw(st.integers(0, 1))) % n_levels
    columns[rng.random(columns.shape) < data.draw(st.sampled_from([0, 0.1, 0.7]))] = missing
    size = data.draw(st.sampled_from([0, 2, 9, 40]))
    strata = rng.integers(0, n // size + 1, n) if size else None
    target = RankTarget.of_classes(labels, n_classes, strata)
    is_nominal = data.draw(st.booleans())
    if not is_nominal:
        target = RankTarget.of_values(rng.integers(0, data.draw(st.integers(1, 50)), n))
    if data.draw(st.booleans()):
        target = target.within(rng.random(n) < data.draw(st.floats(0, 1)))
    columns = columns.astype(dtype)
    found = contrasts_log_p(columns, missing, target, exactly=True, categorical=np.arange(3) != 1)
    plain = contrasts_log_p(columns, missing, target, exactly=True)
    for j, column in enumerate(columns):
        expected = None if j == 1 else levels_p(column, missing, target)
        if expected is None:
            np.testing.assert_array_equal(found[j], plain[j])
            continue
        assert np.isnan(found[j, Contrast.SPREAD])
        within = 1e-4 if is_nominal else 0.03  # of numbers saddlepoints stand for convolutions
        log_p = np.log(np.clip(expected, 1e-200, 1))
        off = abs(found[j, Contrast.LOCATION] - log_p)
        assert (
            np.isnan(expected) or off < within * max(1, -log_p) or (expected > 0.3 and off < 0.01)
        )


@pytest.mark.parametrize("n_levels", [4, 12, 30])
def test_what_is_clear_is_tested_without_the_screen(n_levels: int) -> None:
    rng = np.random.default_rng(n_levels)
    labels = np.arange(600) % 3
    higher = n_levels * labels / 8
    columns = np.minimum(rng.random((20, 600)) * n_levels + higher, n_levels - 1).astype(np.uint8)
    target = RankTarget.of_classes(labels, 3)
    found = by_levels(columns, target)
    assert (found > 2).all()
    np.testing.assert_array_equal(by_levels(columns, target, exactly=False), found)


@pytest.mark.parametrize("levels", [(4, 6, 9), (5, 5, 5, 5)])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_joint_test_of_few_rows_is_exact(levels: tuple[int, ...], n_classes: int) -> None:
    """At most t with probability at most t, of all ways in which rows can trade places."""
    column = np.repeat(np.arange(len(levels)), levels)[None].astype(np.uint8)
    n = column.size
    rng = np.random.default_rng(n_classes)
    classes = np.arange(n) % n_classes
    p = np.array(
        [
            10 ** -by_levels(column, RankTarget.of_classes(rng.permutation(classes), n_classes))[0]
            for _ in range(2000)
        ]
    )
    for t in np.unique(p[p < 0.5]):
        assert np.count_nonzero(p <= t) <= stats.binom.ppf(0.99999, len(p), t)
    assert np.mean(p <= 0.3) > 0.15


@pytest.mark.parametrize("n", [38, 63, 110])
def test_equal_steps_of_normal_scores_are_one_level(n: int) -> None:
    """They were refused: of some numbers of rows two neighbours have the same step."""
    column = np.arange(n)[None].astype(np.uint8)
    target = RankTarget.of_numbers(np.random.default_rng(n).permutation(n) / n)
    assert (np.diff(target.scores) > 0).all()
    assert neg_log10_p(column, MISSING, target) >= 0


@pytest.mark.parametrize("n", [33, 60, 200])
@pytest.mark.parametrize("of", [RankTarget.of_numbers, RankTarget.of_values])
def test_a_copy_of_the_target_has_the_smallest_p_value(n: int, of: object) -> None:
    """Rising or falling: the p-value of the largest sum was 1, as its tilts overflow."""
    target = of(np.arange(n) / n)
    columns = np.stack([np.arange(n), np.arange(n)[::-1]]).astype(np.uint8)
    found = neg_log10_p(columns, MISSING, target, only=Contrast.LOCATION)
    assert (found > 0.9 * log10(2) * n).all()
    swapped = np.ascontiguousarray(columns[:, [1, 0, *range(2, n)]])
    assert (found >= neg_log10_p(swapped, MISSING, target, only=Contrast.LOCATION) - 0.1 * n).all()


@given(st.permutations(range(6)), st.integers(2, 4))
def test_names_of_levels_do_not_matter(order: list[int], n_classes: int) -> None:
    columns = np.repeat(np.arange(6), [50, 40, 31, 23, 16, 10])[None].astype(np.uint8)
    labels = np.arange(170) * 7 % 10 % n_classes
    target = RankTarget.of_classes(labels, n_classes)
    renamed = np.array(order, np.uint8)[columns]
    np.testing.assert_array_equal(by_levels(renamed, target), by_levels(columns, target))


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", ["two", "five", "numbers", "strata", "trend"])
def test_p_values_of_levels_and_trends_are_valid(kind: str) -> None:
    rng = np.random.default_rng(7)
    labels = rng.permutation(np.arange(240) % (2 if kind == "two" else 5))
    if kind == "numbers":
        target = RankTarget.of_values(rng.normal(size=240))
    else:
        names = "12345" if kind == "trend" else ()
        strata = np.arange(240) % 3 if kind == "strata" else None
        target = RankTarget.of_classes(labels, labels.max() + 1, strata, names)
    columns = levels_of(5, 240, n_columns=3000)
    columns[rng.random(columns.shape) < 0.05] = MISSING
    kinds = np.full(len(columns), kind != "trend")
    p_values = 10 ** -neg_log10_p(columns, MISSING, target, categorical=kinds)
    for t in (0.3, 0.05, 0.01):
        assert np.count_nonzero(p_values <= t) <= stats.binom.ppf(0.9999, 3000, t)


def test_two_levels_and_very_many_are_tested_in_their_order() -> None:
    labels = np.arange(200) % 2
    target = RankTarget.of_classes(labels, 2)
    columns = np.stack([np.arange(200) % 3 % 2, np.arange(200)]).astype(np.uint8)
    np.testing.assert_array_equal(
        by_levels(columns, target),
        neg_log10_p(columns, MISSING, target, only=Contrast.LOCATION, exactly=True),
    )


def test_a_trend_over_classes_that_are_numbers_is_seen() -> None:
    """By the order of their numbers, which is not that of their texts; other names have none."""
    rng = np.random.default_rng(3)
    labels = rng.permutation(np.arange(400) % 5)
    names = ["1", "10", "2", "3.5", "-4"]
    places = np.array([1, 4, 2, 3, 0])
    values = 0.35 * places[labels] + rng.normal(size=(40, 400))
    columns = (values.argsort(axis=1).argsort(axis=1) * 250 // 400).astype(np.uint8)
    trend, texts, none = (
        np.median(neg_log10_p(columns, MISSING, RankTarget.of_classes(labels, 5, None, given)))
        for given in (names, [*names[:4], "high"], ())
    )
    assert texts == none
    assert trend > none + 1


@pytest.mark.parametrize(
    ("names", "labels"),
    [
        (("1", "1.0", "01"), [0, 1, 2]),
        (("1", "2", "2.0"), [0, 1, 2]),
        (("1", "2", "nan"), [0, 1, 2]),
        (("1", "2", "3"), [0, 2, 2]),
        (("1", "2", "high"), [0, 1, 2]),
    ],
)
def test_no_trend_is_paid_for_where_there_are_not_three_numbers(names, labels) -> None:
    """Numbers that are equal, no number at all, and a class of which there is no row."""
    labels = np.repeat(labels, 20)
    columns = np.random.default_rng(0).integers(0, 9, (5, 60)).astype(np.uint8)
    with_names = RankTarget.of_classes(labels, 3, None, names)
    plain = RankTarget.of_classes(labels, 3)
    np.testing.assert_array_equal(
        neg_log10_p(columns, MISSING, with_names), neg_log10_p(columns, MISSING, plain)
    )


@pytest.mark.parametrize("kind", ["two", "five", "numbers"])
def test_rare_levels_do_not_hide_what_the_others_show(kind: str) -> None:
    """Four levels of which one differs, and sixty of one row or two."""
    rng = np.random.default_rng(4)
    rare = np.concatenate([np.arange(4, 64), np.arange(4, 34)])
    columns = np.array([[*rng.integers(0, 4, 300), *rare] for _ in range(12)], np.uint8)
    few, kinds = columns.copy(), np.ones(1, np.bool_)
    few[few > 3] = 4
    found = []
    for column, merged in zip(columns, few, strict=True):
        values = rng.normal(size=column.size) + 0.9 * (column == 2)
        target = RankTarget.of_values(values)
        if kind != "numbers":
            n_classes = 2 if kind == "two" else 5
            labels = (values.argsort().argsort() * n_classes // values.size).astype(np.int64)
            target = RankTarget.of_classes(labels, n_classes)
        both = [
            neg_log10_p(c[None], MISSING, target, categorical=kinds)[0] for c in (column, merged)
        ]
        assert both[0] == pytest.approx(both[1], rel=1e-9)
        found.append(both[0])
    assert np.median(found) > 3


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_strengths_that_pass_are_benjamini_and_hochbergs(dtype):
    p_values = np.random.default_rng(0).random(300) ** 3
    neg_log10_p = (-np.log10(p_values)).astype(dtype)
    passing = stats.false_discovery_control(p_values) <= 0.1
    np.testing.assert_array_equal(neg_log10_p >= least_passing(neg_log10_p, 0.1), passing)
    assert least_passing(np.zeros(5, dtype), 0.1) == np.inf
    with_gaps = np.concatenate([neg_log10_p, np.full(50, np.nan, dtype)])
    assert least_passing(with_gaps, 0.1) == least_passing(neg_log10_p, 0.1)


def test_p_values_beyond_double_precision_pass_and_keep_their_order():
    neg_log10_p = np.array([500.0, 400.0, 0.1, 0.2], np.float32)
    assert least_passing(neg_log10_p, 0.1) == 400
    assert p_values_of(neg_log10_p).tolist()[:2] == [1e-300, 1e-300]


@pytest.mark.parametrize("seed", range(3))
def test_rare_features_show_as_much_beside_a_covariate_that_has_no_part_in_them(seed):
    # In small strata no sum is as far below its mean as these are above.
    rng, n = np.random.default_rng(seed), 1000
    labels, strata = (rng.random(n) < 0.1).astype(np.int64), np.arange(n) * 32 // n
    columns = (rng.random((40, n)) < np.where(labels == 1, 0.3, 0.02)).astype(np.uint8)
    target = RankTarget.of_classes(labels, 2, strata)
    basis = np.linalg.qr(np.column_stack([np.ones(n), rng.normal(size=n)]))[0]
    beside = target._replace(covariates=Covariates.of(basis))
    alone, found = (contrasts_log_p(columns, MISSING, one)[:, 0] for one in (target, beside))
    np.testing.assert_allclose(found, alone, rtol=0.2)
    assert np.median(alone) < -20


DRAWS = {
    "normal": lambda rng, n: rng.normal(size=n),
    "uniform": lambda rng, n: rng.random(n),
    "cauchy": lambda rng, n: rng.standard_cauchy(n),
    "two values": lambda rng, n: rng.integers(0, 2, n).astype(float),
    "one far": lambda rng, n: np.where(np.arange(n) == 3, 1e300, rng.random(n)),
    "most alike": lambda rng, n: np.where(np.arange(n) < 4, rng.random(n), 0.5),
}


@pytest.mark.parametrize("name", DRAWS)
def test_numbers_are_tested_by_normal_scores_where_tails_are_light(name):
    target = DRAWS[name](np.random.default_rng(2), 320)
    found, ranked = RankTarget.of_numbers(target), RankTarget.of_values(target)
    assert (found.targets == ranked.targets).all()
    if name not in {"normal", "uniform"}:
        assert not len(found.scores)
        return
    quantiles = NormalDist().inv_cdf
    exact = np.array([quantiles((level + 0.5) / 32) for level in range(32)])
    steps = (exact - exact[0]) / (exact[-1] - exact[0]) * SCORE_STEPS
    assert np.abs(found.scores - steps).max() <= 0.51
    assert (found.scores + found.scores[::-1] == SCORE_STEPS).all()


def test_numbers_within_strata_and_of_few_levels_are_ranked():
    rng = np.random.default_rng(2)
    target = rng.normal(size=400)
    assert not len(RankTarget.of_numbers(target, np.arange(400) % 2).scores)
    alike = RankTarget.of_numbers(target, np.zeros(400, int))
    assert (alike.scores == RankTarget.of_numbers(target).scores).all()
    assert not len(RankTarget.of_numbers(np.round(2 * target)).scores)
    assert not len(RankTarget.of_numbers(np.zeros(0)).scores)


@pytest.mark.parametrize("n_levels", [2, 3, 30, 200])
def test_normal_scores_hold_the_level_and_find_more_of_normal_numbers(n_levels):
    rng = np.random.default_rng(4)
    n, m = 100, 4_000
    target = rng.normal(size=n)
    columns = rng.integers(0, n_levels, (m, n)).astype(np.uint8)
    tested = RankTarget.of_numbers(target)
    found = np.exp(contrasts_log_p(columns, MISSING, tested))
    for contrast, bar in itertools.product((Contrast.LOCATION, Contrast.SPREAD), (0.1, 0.01)):
        allowed = m * bar
        passing = np.count_nonzero(found[:, contrast] <= bar)
        assert passing <= allowed + 4 * np.sqrt(allowed)
        if n_levels > 2:
            assert passing >= allowed - 4 * np.sqrt(allowed)
    if n_levels < 200:
        return
    shown = 0.3 * target + rng.normal(size=(m, n))
    codes = np.argsort(np.argsort(shown, axis=1), axis=1).astype(np.uint8)
    by_score, by_rank = (
        contrasts_log_p(codes, MISSING, one, only=Contrast.LOCATION)[:, 0].mean()
        for one in (tested, RankTarget.of_values(target))
    )
    assert by_score < by_rank - 0.05  # natural logarithms of p-values


def test_rare_classes_are_taken_together_where_no_trend_is_tested():
    labels = np.concatenate([np.repeat([0, 1], 30), 2 + np.repeat(np.arange(10), 3)])
    found = RankTarget.of_classes(labels, 12)
    assert np.unique(found.targets).tolist() == [0, 1, 2]
    assert np.bincount(found.targets).tolist() == [30, 30, 30]
    assert (found.order[-3:] == [0, 1, 2]).all()
    names = [str(k) for k in range(12)]
    assert len(np.unique(RankTarget.of_classes(labels, 12, None, names).targets)) == 12
    for few in (np.arange(8), np.repeat([0, 1, 2], [9, 9, 2])):  # none is left, or one is rare
        assert len(np.unique(RankTarget.of_classes(few, 8).targets)) == len(np.unique(few))


def test_classes_of_which_no_row_is_here_change_nothing():
    rng = np.random.default_rng(3)
    labels, columns = rng.integers(0, 4, 120), rng.integers(0, 9, (50, 120)).astype(np.uint8)
    few = contrasts_log_p(columns, MISSING, RankTarget.of_classes(labels, 4))
    many = contrasts_log_p(columns, MISSING, RankTarget.of_classes(5 * labels + 2, 20))
    np.testing.assert_array_equal(few, many)
    alone = contrasts_log_p(columns, MISSING, RankTarget.of_classes(0 * labels, 4), exactly=True)
    assert (alone[:, Contrast.LOCATION] == 0).all()


@examples(50)
@given(st.integers(1, 40), st.integers(1, 50), st.integers(0, 2**16))
def test_places_beyond_a_few_count_as_that_one(n, few, seed):
    """By hand: the smallest level at which as many pass as their place says, or a few."""
    p = np.random.default_rng(seed).random(n) ** 4
    ascending = np.sort(p)
    levels = ascending * n / np.minimum(np.arange(1, n + 1), few)
    expected = [min(1.0, levels[ascending >= one].min()) for one in p]
    found = adjusted(-np.log10(p), -np.log10(p), None, few)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
