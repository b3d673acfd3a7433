"""Effects against SciPy, direct formulas and simulated coverage."""

from itertools import product
from math import sqrt

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit, logit, ndtr, ndtri

from srs_ooc.evidence.effects import (
    EffectTarget,
    Interval,
    Levels,
    Measure,
    auc,
    effect_of,
    interaction,
    share_difference,
    spearman,
    spread_ratio,
    wide_enough,
)
from srs_ooc.evidence.rank_tests import NO_CONTRAST, Contrast

MISSING = 255
Z = 1.959963984540054


def two_classes(seed, n=60, n_levels=5, share=0.4):
    """Codes with ties, and which rows are in."""
    rng = np.random.default_rng(seed)
    is_in = np.arange(n) < share * n
    codes = np.clip(rng.normal(n_levels / 2 + is_in, 1.5, n), 0, n_levels - 1).astype(np.uint8)
    return codes, is_in


def direct_auc(codes, is_in):
    """The AUC and DeLong's plug-in variance with one row more in each class, pair by pair."""
    kernel = np.array(
        [[(x > y) + 0.5 * (x == y) for y in codes[~is_in]] for x in codes[is_in].tolist()], float
    )
    found, (n_a, n_b) = kernel.mean(), kernel.shape
    centre = np.mean([(n * found + 0.5) / (n + 1) for n in (n_a, n_b)])
    variance = sum(
        (((kernel.mean(1 - side) - centre) ** 2).sum() + centre * (1 - centre)) / (n + 1) ** 2
        for side, n in ((0, n_a), (1, n_b))
    )
    reach = Z * sqrt(variance) / (centre * (1 - centre))
    middles = logit([found, centre])
    return found, min(expit(middles - reach)), max(expit(middles + reach))


@pytest.mark.parametrize(("seed", "n_levels"), list(product(range(4), (2, 5, 200))))
def test_an_auc_is_that_of_mann_and_whitney_and_its_interval_delongs(seed, n_levels):
    codes, is_in = two_classes(seed, n_levels=n_levels)
    found = auc(Levels.of(codes, None), is_in)
    u = stats.mannwhitneyu(codes[is_in], codes[~is_in]).statistic
    assert found.effect == pytest.approx(u / (is_in.sum() * (~is_in).sum()), abs=1e-12)
    assert found == pytest.approx(direct_auc(codes, is_in), rel=1e-9)
    other = auc(Levels.of(codes, None), ~is_in)
    assert other == pytest.approx((1 - found.effect, 1 - found.high, 1 - found.low))


def test_with_many_rows_the_interval_is_delongs():
    codes, is_in = two_classes(3, n=2000, n_levels=200)
    found = auc(Levels.of(codes, None), is_in)
    ranks = [stats.rankdata(codes), *(stats.rankdata(codes[side]) for side in (is_in, ~is_in))]
    v10 = (ranks[0][is_in] - ranks[1]) / (~is_in).sum()
    v01 = 1 - (ranks[0][~is_in] - ranks[2]) / is_in.sum()
    error = sqrt(v10.var(ddof=1) / len(v10) + v01.var(ddof=1) / len(v01))
    a = found.effect
    reach = Z * error / (a * (1 - a))
    middle = logit(a)
    assert found == pytest.approx((a, expit(middle - reach), expit(middle + reach)), abs=1e-3)


def test_classes_apart_have_an_auc_of_one_and_an_interval():
    is_in = np.arange(30) < 15
    found = auc(Levels.of(is_in.astype(np.uint8), None), is_in)
    assert found.effect == found.high == 1
    assert 0.85 < found.low < 0.99
    few = auc(Levels.of(is_in[10:20].astype(np.uint8), None), is_in[10:20])
    assert few.low < found.low


@pytest.mark.parametrize("seed", range(4))
def test_spearmans_is_scipys(seed):
    rng = np.random.default_rng(seed)
    y = rng.normal(size=50).round(1)
    x = np.clip((y + rng.normal(size=50)) * 3 + 9, 0, 20).astype(np.uint8)
    found = spearman(Levels.of(x, None), Levels.of(np.unique(y, return_inverse=True)[1], None))
    expected = stats.spearmanr(x, y).statistic
    reach = Z * sqrt((1 + expected**2 / 2) / 47)
    middle = np.arctanh(expected)
    assert found == pytest.approx((expected, np.tanh(middle - reach), np.tanh(middle + reach)))


def test_a_perfect_correlation_has_an_interval():
    levels = Levels.of(np.arange(30), None)
    found = spearman(levels, levels)
    assert found.effect == found.high == 1
    assert 0.99 < found.low < 1
    assert np.isnan(spearman(*[Levels.of(np.arange(3), None)] * 2).low)


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        # Newcombe (1998), Table II: by method 10.
        ((56, 70, 48, 80), (0.2, 0.0524, 0.3339)),
        ((6, 7, 2, 7), (0.5714, 0.0582, 0.8062)),
        ((0, 10, 0, 20), (0.0, -0.1611, 0.2775)),
        ((10, 10, 0, 10), (1.0, 0.6075, 1.0)),
    ],
)
def test_a_difference_of_shares_is_newcombes(counts, expected):
    x, m, y, n = counts
    is_in = np.arange(m + n) < m
    is_it = np.concatenate([np.arange(m) < x, np.arange(n) < y])
    assert share_difference(is_it, is_in, None) == pytest.approx(expected, abs=1e-4)


def test_a_ratio_of_spreads_is_that_of_mean_distances():
    codes = np.array([0, 4, 1, 3, 2, 2, 2, 1, 3, 2, 2], np.uint8)
    is_in = np.arange(11) < 4
    found = spread_ratio(Levels.of(codes, None), is_in)
    distances = 2 * np.abs(stats.rankdata(codes) - 6) + 1
    a, b = distances[is_in], distances[~is_in]
    error = sqrt(sum(of.var(ddof=1) / len(of) / of.mean() ** 2 for of in (a, b)))
    ratio = a.mean() / b.mean()
    # Means of squares are about the same means that are divided.
    assert found == pytest.approx((ratio, ratio * np.exp(-Z * error), ratio * np.exp(Z * error)))
    middle = spread_ratio(Levels.of(np.array([0, 1, 1, 2]), None), np.array([1, 0, 0, 1], bool))
    assert 1 < middle.effect < np.inf


def stratum_by_stratum(codes, is_in, strata):
    """The weighted mean over strata of what SciPy says of each."""
    total = weights = 0.0
    for h in np.unique(strata):
        a, b = codes[(strata == h) & is_in], codes[(strata == h) & ~is_in]
        if len(a) and len(b):
            w = len(a) * len(b) / (len(a) + len(b))
            total += w * stats.mannwhitneyu(a, b).statistic / (len(a) * len(b))
            weights += w
    return total / weights


@pytest.mark.parametrize(("seed", "n_strata"), list(product(range(3), (1, 2, 7, 25))))
def test_within_strata_an_auc_is_the_weighted_mean(seed, n_strata):
    codes, is_in = two_classes(seed)
    strata = np.random.default_rng(seed).integers(0, n_strata, len(codes))
    shifted = codes + 3 * strata  # what strata differ by is not of the feature
    found = auc(Levels.of(shifted, strata), is_in)
    assert found.effect == pytest.approx(stratum_by_stratum(codes, is_in, strata))
    assert found.low < found.effect < found.high
    if n_strata == 1:
        assert found == pytest.approx(auc(Levels.of(codes, None), is_in))


@pytest.mark.parametrize(("n", "of"), list(product((10, 20, 40, 100), (0.5, 0.8, 0.9, 0.95))))
def test_in_pairs_the_interval_of_an_auc_covers(n, of):
    """Counted over all numbers of pairs in which the class lies above; near 1 it may be all."""
    strata, is_in, held = np.arange(2 * n) // 2, np.arange(2 * n) % 2 == 0, 0.0
    for wins in range(n + 1):
        codes = is_in == (strata < wins)
        found = auc(Levels.of(codes.astype(np.uint8), strata), is_in)
        assert found.effect == pytest.approx(wins / n)
        held += stats.binom.pmf(wins, n, of) * (found.low <= of <= found.high)
    assert held > 0.9


def test_within_strata_a_share_is_the_weighted_mean_and_a_correlation_is_of_what_is_left():
    strata = np.repeat([0, 1], 20)
    is_in = np.arange(40) % 2 == 0
    is_it = (np.arange(40) % 4 == 0) | (strata == 1)
    found = share_difference(is_it, is_in, strata)
    assert found.effect == pytest.approx(0.25)  # 0.5 in one stratum, 0 in the other
    assert share_difference(is_it, is_in, strata * 0).effect == pytest.approx(0.25)
    x = np.tile(np.arange(20), 2) + 20 * strata
    y = np.tile(np.arange(20)[::-1], 2) + 20 * strata
    assert spearman(Levels.of(x, strata), Levels.of(y, strata)).effect == -1
    assert spearman(Levels.of(x, None), Levels.of(y, None)).effect > 0.4


def test_what_strata_cannot_tell_is_unknown():
    strata, is_in = np.arange(10), np.arange(10) < 5
    levels = Levels.of(strata, strata)
    intervals = auc(levels, is_in), spread_ratio(levels, is_in), spearman(levels, levels)
    assert np.isnan([*intervals, share_difference(is_in, is_in, strata)]).all()


def test_intervals_of_what_is_shown_miss_as_often_as_they_may():
    """Features chosen by their own effects, most of which make no difference."""
    rng, is_in = np.random.default_rng(0), np.arange(80) < 40
    true = np.concatenate([ndtr(np.repeat([0.4, 0.8], 10) / sqrt(2)), np.full(280, 0.5)])
    missed = {"as before selection": [], "wide enough": []}
    for _ in range(60):
        values = rng.normal(size=(300, 80))
        values[:20, is_in] += np.repeat([0.4, 0.8], 10)[:, None]
        ranks = values.argsort(axis=1).argsort(axis=1)
        aucs = (ranks[:, is_in].sum(axis=1) - 780) / 1600
        shown = np.flatnonzero(np.abs(aucs - 0.5) > 0.16)
        zs = {"as before selection": Z, "wide enough": wide_enough(len(shown), 300)}
        for name, z in zs.items():
            found = [auc(Levels.of(ranks[i], None), is_in, z) for i in shown]
            out = [not one.low <= true[i] <= one.high for i, one in zip(shown, found, strict=True)]
            missed[name].append(np.mean(out) if out else 0.0)
    assert np.mean(missed["as before selection"]) > 0.1
    assert np.mean(missed["wide enough"]) < 0.05


def test_intervals_of_all_are_as_before_selection():
    assert wide_enough(300, 300) == pytest.approx(Z, rel=1e-12)
    assert wide_enough(20, 10**6) == pytest.approx(-ndtri(0.5e-6), rel=1e-9)
    assert wide_enough(0, 0) == pytest.approx(Z, rel=1e-12)


# Which effect a feature has, and toward what.


def said(column, target, contrast=Contrast.LOCATION, **given):
    return effect_of(np.asarray(column, np.uint8), MISSING, target, contrast, **given)


def classes(labels, strata=None):
    labels = np.asarray(labels)
    return EffectTarget(labels, int(labels.max()) + 1, strata)


def numbers(values):
    return EffectTarget(np.unique(values, return_inverse=True)[1], 0, None)


def test_two_classes_are_told_of_the_second():
    labels = np.repeat([0, 1], 10)
    measure, toward, found = said(np.arange(20), classes(labels))
    assert (measure, toward, found.effect) == (Measure.AUC, 1, 1)
    assert measure.direction(found.effect, "k2", "") == "higher in k2"
    measure, _, found = said(np.arange(20)[::-1], classes(labels), NO_CONTRAST)
    assert measure.direction(found.effect, "k2", "") == "lower in k2"
    assert measure.direction(0.5, "k2", "") is None


def test_missing_cells_are_left_out_of_what_is_no_absence():
    codes, is_in = two_classes(1)
    column = np.where(np.arange(60) % 7 == 0, MISSING, codes)
    kept = column != MISSING
    expected = auc(Levels.of(codes[kept], None), is_in[kept])
    assert said(column, classes(is_in.astype(int)))[2] == expected
    y = np.random.default_rng(0).normal(size=60)
    expected = stats.spearmanr(codes[kept], y[kept]).statistic
    assert said(column, numbers(y))[2].effect == pytest.approx(expected)


def test_of_many_classes_the_one_farthest_from_the_others():
    labels = np.repeat(np.arange(10), 8)
    column = np.where(labels == 6, 0, 5 + np.arange(80) % 4)
    measure, toward, found = said(column, classes(labels))
    assert (measure, toward, found.effect) == (Measure.AUC, 6, 0)
    assert measure.direction(found.effect, "k7", "") == "lower in k7"


def test_what_differs_in_spread_or_in_what_is_missing():
    labels = np.repeat([0, 1], 20)
    spread = np.where(labels == 1, np.where(np.arange(40) % 2, 30, 0), 10 + np.arange(40) % 9)
    measure, toward, found = said(spread, classes(labels), Contrast.SPREAD)
    assert (measure, toward) == (Measure.SPREAD_RATIO, 1)
    assert found.low > 1
    assert measure.direction(found.effect, "b", "") == "more spread in b"
    absent = np.where((labels == 0) & (np.arange(40) % 2 == 0), MISSING, 1)
    measure, toward, found = said(absent, classes(labels), Contrast.ABSENCE)
    assert (measure, toward, found.effect) == (Measure.ABSENCE_SHARES, 1, -0.5)
    assert measure.direction(found.effect, "b", "") == "less often missing in b"


def test_a_class_that_no_stratum_has_beside_another_is_passed_over():
    strata = np.repeat([0, 1, 2], 8)
    labels = np.concatenate([np.tile([0, 1], 8), np.full(8, 2)])
    for contrast in (Contrast.SPREAD, Contrast.LOCATION):
        _, toward, found = said(np.arange(24) % 7, classes(labels, strata), contrast)
        assert toward in (0, 1)
        assert found.low < found.effect < found.high


def test_with_numbers_as_target_spread_and_absence_follow_it():
    y = np.arange(40.0)
    fan = 20 + (np.arange(40) // 2) * np.where(np.arange(40) % 2, 1, -1)
    measure, _, found = said(fan, numbers(y), Contrast.SPREAD)
    assert (measure, measure.title) == (Measure.SPREAD_SPEARMAN, "Spearman")
    assert found.effect > 0.95
    measure, _, found = said(np.where(y > 29, MISSING, 1), numbers(y), Contrast.ABSENCE)
    assert (measure, found.effect) == (Measure.ABSENCE_AUC, 1)


def test_of_a_categorical_feature_the_level_that_differs_most():
    labels = np.repeat([0, 1, 2], 12)
    column = np.where((labels == 2) & (np.arange(36) % 4 > 0), 2, np.arange(36) % 2)
    measure, toward, found = said(column, classes(labels), is_categorical=True)
    assert (measure, divmod(toward, 3)) == (Measure.LEVEL_SHARES, (2, 2))
    assert found.effect == pytest.approx(0.75)
    assert measure.direction(found.effect, "k3", "red") == "level red is more frequent in k3"
    y = np.where(column == 2, 0.0, 1.0) + np.arange(36) / 100
    measure, toward, found = said(column, numbers(y), is_categorical=True)
    assert (measure, toward, found.effect) == (Measure.LEVEL_AUC, 2, 0)


def test_a_constant_feature_has_none():
    assert said(np.zeros(20), classes(np.repeat([0, 1], 10)))[:2] == (Measure.NONE, -1)
    assert said(np.full(20, MISSING), numbers(np.arange(20.0)))[0] == Measure.NONE
    one_class = np.where(np.arange(20) < 10, MISSING, np.arange(20))
    assert np.isnan(said(one_class, classes(np.repeat([0, 1], 10)))[2].effect)


# Intervals hold the effect that there is in 95% of all tables.


def true_auc(shift, ends):
    """Of normal classes ``shift`` apart, cut at ``ends``."""
    if not len(ends):
        return float(ndtr(shift / sqrt(2)))
    high, low = (np.diff(ndtr(np.concatenate([[-np.inf], ends, [np.inf]]) - s)) for s in (shift, 0))
    return float((high * (np.cumsum(low) - low / 2)).sum())


SETTINGS = [
    (n, share, n_levels, of)
    for n, share, n_levels, of in product((30, 100, 1000), (0.5, 0.2), (2, 4, 0), (0.5, 0.7, 0.9))
]
SETTINGS = [one for first in range(5) for one in SETTINGS[first::5]]  # each fifth first


@pytest.mark.few(0, 11)
@pytest.mark.parametrize(("n", "share", "n_levels", "of"), SETTINGS)
def test_intervals_of_an_auc_cover(n, share, n_levels, of):
    """95 +- 1.5%; up to 98.5% where there are few AUCs: of 30 rows, of features of two levels."""
    rng = np.random.default_rng([n, round(10 * share), n_levels, round(10 * of)])
    shift, n_tables = float(ndtri(of)) * sqrt(2), 2000
    ends = np.linspace(-1, 1, n_levels - 1) + shift / 2 if n_levels else np.zeros(0)
    is_in, expected, held = np.arange(n) < share * n, true_auc(shift, ends), 0
    for _ in range(n_tables):
        values = rng.standard_normal(n) + shift * is_in
        codes = np.searchsorted(ends, values) if n_levels else np.argsort(np.argsort(values))
        found = auc(Levels.of(codes, None), is_in)
        held += found.low <= expected <= found.high
    error = 3 * sqrt(0.95 * 0.05 / n_tables)
    assert 0.935 - error < held / n_tables < (0.985 if n == 30 or n_levels == 2 else 0.965) + error


def check_covered(make, expected, n_tables=1500, off=0.015 + 0.017):
    found = [make() for _ in range(n_tables)]
    held = np.mean([one.low <= expected <= one.high for one in found])
    assert abs(held - 0.95) < off


def ranked(values, strata=None):
    return Levels.of(np.argsort(np.argsort(values)), strata)


@pytest.mark.slow
@pytest.mark.parametrize("n_strata", [1, 5, 50])
def test_intervals_within_strata_cover(n_strata):
    """Pairs among them: two rows a stratum, one of each class."""
    rng, n = np.random.default_rng(n_strata), 100
    strata, is_in = np.arange(n) // 2 % n_strata, np.arange(n) % 2 == 0

    def make() -> Interval:
        values = rng.standard_normal(n) + 0.9 * is_in + rng.standard_normal(n_strata)[strata]
        return auc(ranked(values, strata), is_in)

    check_covered(make, float(ndtr(0.9 / sqrt(2))))


@pytest.mark.slow
@pytest.mark.parametrize(("n", "rho"), list(product((30, 300), (0.0, 0.5, 0.8))))
def test_intervals_of_spearmans_cover(n, rho):
    rng = np.random.default_rng([n, round(10 * rho)])

    def make() -> Interval:
        x = rng.standard_normal(n)
        y = rho * x + sqrt(1 - rho**2) * rng.standard_normal(n)
        return spearman(ranked(x), ranked(y))

    check_covered(make, 6 / np.pi * np.arcsin(rho / 2))


@pytest.mark.slow
@pytest.mark.parametrize(("n", "scale"), list(product((30, 300), (1.0, 2.0, 4.0))))
def test_intervals_of_a_ratio_of_spreads_cover(n, scale):
    rng = np.random.default_rng([n, round(scale)])

    def make(size: int = n) -> Interval:
        inside = np.arange(size) % 2 == 0
        values = rng.standard_normal(size) * np.where(inside, scale, 1.0)
        return spread_ratio(ranked(values), inside)

    check_covered(make, make(400_000).effect)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "p", "q"), [(30, 0.5, 0.5), (30, 0.1, 0.3), (300, 0.05, 0.2)])
def test_intervals_of_differences_of_shares_cover(n, p, q):
    rng, is_in = np.random.default_rng([n, round(100 * p)]), np.arange(n) % 2 == 0

    def make() -> Interval:
        return share_difference(rng.random(n) < np.where(is_in, p, q), is_in, None)

    check_covered(make, p - q, 3000, 0.02 + 0.012)


def four_cells(seed, n=80):
    rng = np.random.default_rng(seed)
    cells = np.concatenate([np.arange(4), rng.integers(0, 4, n - 4)])
    return rng, cells, rng.normal(cells == 3, 1 + cells)


@pytest.mark.parametrize("seed", range(3))
def test_an_interaction_of_numbers_has_the_variances_of_its_four_cells(seed):
    _, cells, values = four_cells(seed)
    parts = [values[cells == cell] for cell in range(4)]
    means = [part.mean() for part in parts]
    reach = Z * sqrt(sum(part.var(ddof=1) / len(part) for part in parts))
    effect = (means[3] - means[2]) - (means[1] - means[0])
    direct = (effect, effect - reach, effect + reach)
    assert interaction(values, cells, None) == pytest.approx(direct, rel=1e-9)
    assert interaction(values + 1e6, cells, None) == pytest.approx(direct, rel=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_an_interaction_of_shares_has_half_a_row_more_of_either_kind_in_each_cell(seed):
    _, cells, values = four_cells(seed)
    is_it, signs = values > 0.5, np.array([1, -1, -1, 1])
    n, k = np.bincount(cells), np.bincount(cells, is_it)
    more = (k + 0.5) / (n + 1)
    reach = Z * sqrt((more * (1 - more) / (n + 1)).sum())
    found = interaction(is_it, cells, None)
    assert found.effect == pytest.approx(signs @ (k / n))
    assert found[1:] == pytest.approx((signs @ more - reach, signs @ more + reach))


def test_an_interaction_does_not_depend_on_which_feature_is_first_and_changes_sign_with_a_half():
    _, cells, values = four_cells(5)
    found, swapped = cells.copy(), np.array([0, 2, 1, 3])[cells]
    for of in (values, values > 0):
        found = interaction(of, cells, None)
        assert interaction(of, swapped, None) == pytest.approx(found)
        turned = interaction(of, cells ^ 1, None)
        assert turned == pytest.approx((-found.effect, -found.high, -found.low))


def test_an_interaction_within_strata_sees_nothing_of_what_strata_differ_in():
    rng, cells, values = four_cells(6, 400)
    strata = rng.integers(0, 3, 400)
    moved = values + 50 * strata
    whole = interaction(values, cells, strata)
    assert interaction(moved, cells, strata) == pytest.approx(whole, rel=1e-6)
    assert whole.high - whole.low < 0.2 * np.diff(interaction(moved, cells, None)[1:])[0]
    lacking = np.where(strata == 2, 3, cells)  # a stratum without rows of all four says nothing
    some = strata < 2
    expected = interaction(values[some], cells[some], strata[some])
    assert interaction(values, lacking, strata) == pytest.approx(expected)


def test_an_interaction_of_cells_without_rows_is_not_defined():
    values = np.arange(6.0)
    for cells in ([0, 0, 1, 1, 2, 2], []):
        found = interaction(values[: len(cells)], np.array(cells, np.int64), None)
        assert np.isnan(found).all()
    found = interaction(np.arange(4.0), np.arange(4), None)  # a row each: nothing of its error
    assert found.effect == 0
    assert np.isnan(found[1:]).all()


@pytest.mark.few(1)
@pytest.mark.parametrize("shares", [(0.5,) * 4, (0.9, 0.1, 0.1, 0.9), (1.0, 0.02, 0.5, 0.98)])
def test_intervals_of_an_interaction_of_shares_hold(shares):
    rng, truth = np.random.default_rng(1), np.array([1, -1, -1, 1]) @ shares
    hits, n = 0, 1000
    for _ in range(n):
        cells = np.repeat(np.arange(4), (12, 20, 9, 15))
        _, low, high = interaction(rng.random(56) < np.array(shares)[cells], cells, None)
        hits += low <= truth <= high
    assert hits > 0.92 * n
