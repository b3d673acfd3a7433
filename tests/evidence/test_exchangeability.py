"""Which rows trade places, the order of groups by their means, and folds."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from examples import assume, examples, given, st
from scipy import stats

from srs_ooc.base.errors import UsageError
from srs_ooc.evidence.exchangeability import Exchangeability, deal_folds


@examples(30)
@given(st.lists(st.integers(0, 2), min_size=7, max_size=7), st.data(), st.booleans())
def test_arrangements_of_a_target_are_counted(target, data, grouped):
    """By going through all permutations of units of one class."""
    n, number = data.draw(st.integers(1, 7)), st.integers(0, 3)
    strata = np.array(data.draw(st.lists(number, min_size=n, max_size=n)), np.int32)
    groups = np.array(data.draw(st.lists(number, min_size=n, max_size=n)), np.int32)
    alike = data.draw(st.sampled_from(["any", "octave", "size"]))
    rows = Exchangeability(n, strata // 2, groups if grouped else None, alike)
    of_units = np.array(target)[: len(rows.classes)]
    assert len(of_units) == (len(set(groups.tolist())) if grouped else n)
    found = set()
    for order in itertools.permutations(range(len(of_units))):
        if (rows.classes[list(order)] == rows.classes).all():
            found.add(tuple(of_units[list(order)]))
    assert len(found) == round(np.exp(rows.log_arrangements(of_units)))


PAIRS = np.repeat(np.arange(40, dtype=np.int32), 2)


def test_pairs_are_enough_to_tell_and_too_few_are_refused_with_how_many_they_are():
    target = np.tile([0, 1], 40)
    Exchangeability(80, PAIRS).check(target, 80)
    with pytest.raises(UsageError, match=r"at least 80 ways.* found 64"):
        Exchangeability(12, PAIRS[:12]).check(target[:12], 80)


SIZES = np.array([1, 2, 3, 3, 4, 7, 8])
OF_SIZES = np.repeat(np.arange(7, dtype=np.int32), SIZES)


@pytest.mark.parametrize(
    ("alike", "expected"), [("any", [7]), ("octave", [1, 1, 2, 3]), ("size", [1, 1, 1, 1, 1, 2])]
)
def test_groups_are_alike_by_their_size_or_not(alike, expected):
    units = Exchangeability(len(OF_SIZES), None, OF_SIZES, alike)
    np.testing.assert_array_equal(units.sizes, SIZES)
    assert sorted(np.bincount(units.classes).tolist()) == expected
    assert units.are_even == (alike == "size")


def test_groups_of_several_strata_are_alike_only_with_as_many_rows_in_the_same():
    """Groups within one stratum are, whatever their size."""
    strata = np.array([0, 0, 0, 1, 0, 1, 0, 1, 1, 0, 1, 0, 1, 1], np.int32)
    groups = np.array([0, 0, 1, 2, 3, 3, 4, 4, 4, 5, 5, 6, 6, 6], np.int32)
    classes = Exchangeability(14, strata, groups, "any").classes.tolist()
    assert classes[0] == classes[1]
    assert classes[3] == classes[5]
    assert classes[4] == classes[6]
    assert len(set(classes)) == 4


def test_groups_without_partners_are_refused():
    groups = np.repeat(np.arange(3, dtype=np.int32), (10, 20, 30))
    with pytest.raises(UsageError, match="all have the same one"):
        Exchangeability(60, None, groups).check(np.arange(3), 10)
    Exchangeability(60, None, groups, "any").check(np.arange(3), 6)


# Means of groups, which trade places whole.

MISSING = 5


@st.composite
def grouped_columns(draw, n_columns=2):
    """Columns of codes, a stratum and a group of each row."""
    n = draw(st.integers(1, 12))

    def of_each(most):
        return np.array(draw(st.lists(st.integers(0, most), min_size=n, max_size=n)))

    columns = np.array([of_each(MISSING) for _ in range(n_columns)], np.uint8)
    return columns, of_each(1).astype(np.int32), of_each(5).astype(np.int32)


def mean_midranks(column, groups):
    """The mean midrank of each group, by its number; None where nothing is known of it."""
    known = column[column < MISSING].tolist()
    below = {code: sum(c < code for c in known) for code in known}
    midrank = {c: Fraction(2 * n + known.count(c) + 1, 2) for c, n in below.items()}
    found = []
    for group in np.unique(groups):
        ranks = [midrank[code] for code in column[groups == group].tolist() if code < MISSING]
        found.append(sum(ranks) / len(ranks) if ranks else None)
    return found


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@given(grouped_columns(), st.sampled_from(["any", "size"]))
def test_groups_are_in_the_order_of_their_mean_midranks(dtype, given_columns, alike):
    """Those of one class, of which as many values are known; all, where they are of all."""
    columns, strata, groups = given_columns
    units = Exchangeability(len(groups), strata, groups, alike)
    ranked = units.mean_ranks(columns.astype(dtype), MISSING)
    for column, codes in zip(columns, ranked, strict=True):
        means = mean_midranks(column, groups)
        n_known = [np.sum(column[groups == group] < MISSING) for group in np.unique(groups)]
        has = [mean is not None for mean in means]
        assert ((codes == units.missing_code) != has).all()
        kinds = [(units.classes[i], n_known[i]) for i in range(len(means)) if has[i]]
        among = [(i, codes[i], means[i]) for i in range(len(means)) if has[i]]
        even = len({n for _, n in kinds}) == 1
        of_kinds = zip(kinds, among, strict=True)
        for (kind, one), (other, two) in itertools.product(of_kinds, repeat=2):
            if even or kind == other:
                assert (one[1] < two[1]) == (one[2] < two[2])


@examples(50)
@given(st.lists(st.integers(1, 19), min_size=4, max_size=30), st.integers(0, 99))
def test_means_of_unlike_many_values_are_drawn_toward_their_median_by_their_reliability(
    sizes, seed
):
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
    column = (rng.normal(0, 3, len(sizes))[groups] + rng.normal(0, 3, len(groups)) + 40).astype(int)
    column = np.clip(column, 0, 99).astype(np.uint8)[None]
    found = Exchangeability(len(groups), None, groups, "any").mean_ranks(column, 255)[0]
    ranks = stats.rankdata(column[0])
    values = [ranks[groups == group] for group in range(len(sizes))]
    means, m, n = np.array([v.mean() for v in values]), np.array(sizes), len(sizes)
    between = np.sum(m * (means - ranks.mean()) ** 2) / (n - 1)
    within = sum(np.sum((v - v.mean()) ** 2) for v in values) / max(1, len(ranks) - n)
    usual = (len(ranks) - np.sum(m**2) / len(ranks)) / (n - 1)
    assume(between + (usual - 1) * within > 0)
    r = (between - within) / (between + (usual - 1) * within)
    assume(abs(64 * r % 1 - 0.5) > 1e-6)
    r = max(np.rint(64 * r), 1) / 64
    centre = np.sort(means)[(n - 1) // 2]
    expected = centre + (means - centre) * m * r / (1 + (m - 1) * r)
    if len(set(sizes)) == 1:
        expected = means
    for i, j in itertools.combinations(range(n), 2):
        if abs(expected[i] - expected[j]) > 1e-6:
            assert (found[i] < found[j]) == (expected[i] < expected[j])


def test_values_that_do_not_differ_within_groups_tie_where_they_are_equal():
    """Rounding does not part them, nor those of zeros alone of a column of few others."""
    rng = np.random.default_rng(3)
    sizes = rng.integers(1, 20, 60)
    groups = np.repeat(np.arange(60, dtype=np.int32), sizes)
    units = Exchangeability(len(groups), None, groups, "any")
    of_groups = rng.integers(0, 3, 60)
    rare = (rng.random(len(groups)) < 0.02).astype(np.uint8)
    columns = np.array([of_groups[groups], rare], np.uint8)
    whole, counts = units.mean_ranks(columns, 255)
    np.testing.assert_array_equal(whole, of_groups)
    assert (np.bincount(groups, rare)[counts == counts.min()] == 0).all()
    n_without = np.count_nonzero(np.bincount(groups, rare) == 0)
    assert np.count_nonzero(counts == counts.min()) == n_without


def test_groups_of_one_row_have_the_codes_of_their_rows():
    codes = np.random.default_rng(0).integers(0, 200, (3, 300)).astype(np.uint8)
    units = Exchangeability(300, None, np.arange(300, dtype=np.int32))
    for column, found in zip(codes, units.mean_ranks(codes, 255), strict=True):
        np.testing.assert_array_equal(found, np.unique(column, return_inverse=True)[1])


def test_of_more_groups_than_there_are_codes_neighbours_are_put_together():
    n_groups = 100_000
    pairs = np.random.default_rng(0).integers(0, 65_000, (n_groups, 2)).astype(np.uint16)
    units = Exchangeability(2 * n_groups, None, np.arange(2 * n_groups, dtype=np.int32) // 2)
    found = units.mean_ranks(pairs.reshape(1, -1), 65_535)[0].astype(int)
    means = stats.rankdata(pairs).reshape(pairs.shape).sum(axis=1)
    assert len(np.unique(means)) > 65_535 == units.missing_code > found.max()
    assert np.all(np.diff(found[np.argsort(means, kind="stable")]) >= 0)
    assert len(np.unique(found)) > 50_000


def test_groups_with_the_same_strata_in_another_order_are_alike():
    groups = np.repeat(np.arange(4, dtype=np.int32), 2)
    strata = np.array([0, 1, 1, 0, 0, 1, 0, 0], np.int32)
    classes = Exchangeability(8, strata, groups).classes
    assert classes[0] == classes[1] == classes[2] != classes[3]


# Folds: every row once, groups whole, classes and strata even.


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
