"""Conditional tests: what is proposed, what it costs, and that a feature has no part in it."""

import numpy as np
import pytest
from examples import given, st
from scipy import stats

from srs_ooc.evidence.conditional_tests import (
    LEADING,
    Looked,
    beside_others,
    cost,
    halves,
    leading,
    n_looked_at,
)
from srs_ooc.evidence.rank_tests import (
    RankTarget,
    adjusted,
    combined,
    least_passing,
    strongest_contrasts,
)

MISSING = 255


def noise(seed, n, n_rows, n_codes=200):
    """Return codes of noise, uint8 (n, n_rows)."""
    return np.random.default_rng(seed).integers(0, n_codes, (n, n_rows)).astype(np.uint8)


def two_classes(n_rows):
    """Return a target of classes that take turns."""
    return RankTarget.of_classes(np.arange(n_rows) % 2, 2)


def beside_of(codes, target, alone, n):
    """Return what conditional tests show, contrasts sharing the level evenly."""
    order = np.argsort(-alone, kind="stable")[: len(codes) if n == len(codes) else len(codes) // 2]
    shares = np.full((len(codes), 3), 1 / 3)
    return beside_others(codes, MISSING, target, alone, (order, alone[order]), n, shares)


def alone_of(codes, target):
    """Return the -log10 p of features alone, their cost paid."""
    even = np.full(3, 1 / 3)
    return strongest_contrasts(codes, MISSING, target, shares=even)[0] - cost(0, len(codes))


@given(st.lists(st.floats(0, 70), min_size=1, max_size=4))
def test_strengths_are_combined_as_fisher_does(neg_log10_p):
    x = 2 * np.log(10) * sum(neg_log10_p)
    expected = -stats.chi2.logsf(x, 2 * len(neg_log10_p)) / np.log(10)
    found = combined(np.array(neg_log10_p)[:, None])
    assert found[0] == pytest.approx(expected, rel=1e-9, abs=1e-9)


@given(st.lists(st.floats(0, 70) | st.just(np.nan), min_size=1, max_size=5))
def test_tests_that_a_column_has_not_count_for_nothing(neg_log10_p):
    there = [neg_log10_p for neg_log10_p in neg_log10_p if not np.isnan(neg_log10_p)]
    expected = combined(np.array(there)[:, None])[0] if there else 0.0
    assert combined(np.array([[neg_log10_p, 1.0] for neg_log10_p in neg_log10_p]))[0] == expected


@pytest.mark.parametrize("n_tested", [3, 50, 10**6])
def test_the_shares_of_all_choices_are_at_most_the_whole(n_tested):
    shares = 10 ** -cost(0, n_tested)
    for n_others, n_ways in ((1, n_tested - 1), (2, (n_tested - 1) * (n_tested - 2) // 2)):
        of_any = n_ways * 10 ** -cost(n_others, n_tested)
        n_leading = min(LEADING, n_tested - 1)
        ways_leading = n_leading if n_others == 1 else n_leading * (n_leading - 1) // 2
        shares += of_any + ways_leading * 10 ** -cost(n_others, 1 + n_leading)
    assert shares <= 1.0


def test_without_so_many_others_nothing_can_be_chosen():
    assert cost(1, 1) == np.inf
    assert cost(2, 2) == np.inf


@given(st.lists(st.integers(0, 5) | st.just(MISSING), min_size=1, max_size=30))
def test_halves_are_cut_nearest_the_median_of_what_is_known(column):
    codes = np.array(column, np.uint8)
    found, known = halves(codes[None], MISSING)[0], codes[codes < MISSING]
    assert not found[codes == MISSING].any()
    cuts = sorted(set(known.tolist()))[:-1]
    if not cuts:
        assert not found.any()
        return
    best = min(abs(2 * int((known <= cut).sum()) - len(known)) for cut in cuts)
    assert abs(len(known) - 2 * int(found.sum())) == best
    assert codes[found].min() > codes[~found & (codes < MISSING)].max()


@given(st.integers(0, 2**32 - 1), st.sampled_from([[0], [2], [0, 1], [2, 1]]), st.booleans())
def test_parts_are_of_all_rows_and_those_of_unknown_ones_keep_like_with_like(seed, way, has_strata):
    rng = np.random.default_rng(seed)
    codes = np.where(rng.random((3, 40)) < 0.3, MISSING, noise(seed, 3, 40)).astype(np.uint8)
    strata = rng.integers(0, 2, 40) if has_strata else np.zeros(40, np.int64)
    target = RankTarget.of_classes(np.arange(40) % 2, 2, strata if has_strata else None)
    looked = Looked(codes, MISSING, target)
    state = [
        tuple((bool(looked.is_known[f, row]), bool(looked.is_high[f, row])) for f in way)
        for row in range(40)
    ]
    seen: list[int] = []
    for part in looked.parts(way, target):
        for start, stop in zip(part.starts[:-1], part.starts[1:], strict=True):
            rows = part.rows[start:stop].tolist()
            assert len({(state[row], strata[row]) for row in rows}) == 1
            alike = sum((state[row], strata[row]) == (state[rows[0]], strata[rows[0]])
                        for row in range(40))  # fmt: skip
            assert len(rows) == alike
            assert part.targets[start:stop].tolist() == [row % 2 for row in rows]
            seen += rows
    assert len(set(seen)) == len(seen)
    alone = [row for row in range(40) if row not in seen]  # with nobody to trade places with
    assert len({(state[row], strata[row]) for row in alone}) == len(alone)


def correlation_within(codes, score, part):
    """Return (rows - 1) r^2 in a part of the rows, or 0."""
    x, y = codes[part].astype(float), score[part].astype(float)
    if len(x) < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return 0.0
    return float((len(x) - 1) * np.corrcoef(x, y)[0, 1] ** 2)


@pytest.mark.parametrize("share_missing", [0.0, 0.2])
@pytest.mark.parametrize("n_classes", [1, 2, 3])
@pytest.mark.parametrize("way", [[1], [0, 3]])
def test_what_is_proposed_goes_by_correlations_within_parts(n_classes, way, share_missing):
    codes = noise(0, 5, 70)
    if share_missing:  # of the others; where the feature itself is missing it is its middle value
        others = np.isin(np.arange(5), way)[:, None]
        codes[others & (np.random.default_rng(2).random((5, 70)) < share_missing)] = MISSING
    labels = np.random.default_rng(1).integers(0, max(n_classes, 2), 70)
    target = RankTarget.of_classes(labels, n_classes)
    if n_classes == 1:
        target = RankTarget.of_values(labels.astype(float))
    looked = Looked(codes, MISSING, target)
    found = looked.neg_log10_p(np.array([way]))[:, 0]
    scores = [labels == c for c in range(n_classes)] if n_classes > 2 else [labels]
    numbers = sum(looked.is_high[place] * 2**i for i, place in enumerate(way))
    known = looked.is_known[way].all(axis=0)
    parts = [known & (numbers == part) for part in range(2 ** len(way))]
    for place in range(5):
        expected = max(
            sum(correlation_within(codes[place], score, part) for part in parts) for score in scores
        )
        assert found[place] == pytest.approx(0 if place in way else expected / 2 / np.log(10))


@given(st.integers(0, 2**32 - 1), st.integers(0, 39), st.integers(5, 40))
def test_a_feature_has_no_part_in_who_leads_for_it(seed, feature, n_strong):
    codes, target = noise(seed, 40, 30, 4), two_classes(30)
    codes[:5, ::2] //= 2  # some that stand out
    other = codes.copy()
    other[feature] = np.random.default_rng(seed).permutation(codes[feature])
    found = []
    for table in (codes, other):
        alone = alone_of(table, target)
        # Who is among the strongest is asked of all others; here they are all there are.
        order = np.argsort(-alone, kind="stable")[: n_strong + 1]
        found.append(leading(Looked(table, MISSING, target), order, alone[order], 4))
    for by_first, by_second in zip(*found, strict=True):
        assert np.array_equal(by_first[feature], by_second[feature])
        assert by_first[feature].sum() <= 4
        assert not by_first[feature, feature]


def test_noise_is_no_more_often_strong_than_it_may():
    n, n_rows, neg_log10_p = 25, 60, []
    for seed in range(120):
        codes, target = noise(seed, n, n_rows), two_classes(n_rows)
        alone = alone_of(codes, target)
        found = beside_of(codes, target, alone, n)
        neg_log10_p.append(np.maximum(alone, found.neg_log10_p))
    p_values = 10.0 ** -np.concatenate(neg_log10_p)
    for level in (0.2, 0.05, 0.01):
        n_expected = level * len(p_values)
        assert (p_values <= level).sum() <= n_expected + 4 * np.sqrt(n_expected)


@pytest.mark.few(2)
@pytest.mark.parametrize("share_together", [0.25, 0.6])
@pytest.mark.parametrize("n_codes", [2, 5, 200])
def test_nothing_shows_beside_a_cause_because_cells_are_missing_together(n_codes, share_together):
    """Rows of a questionnaire that was not filled in are of neither half of the cause."""
    n, n_rows, neg_log10_p = 16, 800, []
    for seed in range(5):
        rng = np.random.default_rng([seed, n_codes])
        codes, labels = noise(seed, n, n_rows, n_codes), np.arange(n_rows) % 2
        codes[0] = np.clip(rng.normal(100, 25, n_rows) + 50 * labels, 0, 250)
        codes[:, rng.random(n_rows) < share_together] = MISSING
        target = RankTarget.of_classes(labels, 2)
        alone = alone_of(codes, target)
        found = beside_of(codes, target, alone, n)
        neg_log10_p.append(np.maximum(alone, found.neg_log10_p)[1:])
    p_values = 10.0 ** -np.concatenate(neg_log10_p)
    for level in (0.2, 0.05, 0.01, 0.001):
        n_expected = level * len(p_values)
        assert (p_values <= level).sum() <= n_expected + 4 * np.sqrt(n_expected)


@pytest.mark.parametrize("share", [0.2, 0.4])
def test_a_pair_whose_cells_are_missing_together_is_found(share):
    codes = noise(6, 40, 500)
    target = RankTarget.of_classes(((codes[4] < 100) ^ (codes[9] < 100)).astype(int), 2)
    codes[:, np.random.default_rng(7).random(500) < share] = MISSING
    found = beside_of(codes, target, alone_of(codes, target), 40)
    assert sorted(np.argsort(-found.neg_log10_p)[:2].tolist()) == [4, 9]
    assert found.neg_log10_p[[4, 9]].min() > 10


@pytest.mark.parametrize("n_tested", [60, 10**6])
def test_a_pair_that_shows_only_together_is_found(n_tested):
    codes = noise(3, 60, 400)
    target = RankTarget.of_classes(((codes[7] < 100) ^ (codes[31] < 100)).astype(int), 2)
    alone = alone_of(codes, target)
    found = beside_of(codes, target, alone, n_tested)
    assert sorted(np.argsort(-found.neg_log10_p)[:2].tolist()) == [7, 31]
    assert found.neg_log10_p[[7, 31]].min() > 10
    assert found.others[7].tolist() == [31, -1]
    assert found.others[31].tolist() == [7, -1]


def test_three_that_show_only_together_are_found_among_few():
    codes = noise(4, 30, 800)
    first, second, third = (codes[place] < 100 for place in (5, 6, 7))
    target = RankTarget.of_classes((first ^ second ^ third).astype(int), 2)
    found = beside_of(codes, target, alone_of(codes, target), 30)
    assert found.neg_log10_p[[5, 6, 7]].min() > 10
    assert [found.others[place].tolist() for place in (5, 6, 7)] == [[6, 7], [5, 7], [5, 6]]


@pytest.mark.parametrize("way", ["rows", "missing", "strata", "numbers"])
def test_other_tables_of_the_same_pair(way):
    rng = np.random.default_rng(5)
    codes = noise(5, 30, 600)
    label = ((codes[2] < 100) ^ (codes[9] < 100)).astype(int)
    strata = rng.integers(0, 3, 600) if way == "strata" else None
    if way == "missing":
        codes[rng.random(codes.shape) < 0.1] = MISSING
    if way == "rows":  # an order of rows changes no bit
        order = rng.permutation(600)
        target, moved = (RankTarget.of_classes(label[o], 2) for o in (np.arange(600), order))
        alone = alone_of(codes, target)
        one = beside_of(codes, target, alone, 30)
        other = beside_of(np.ascontiguousarray(codes[:, order]), moved, alone, 30)
        assert np.array_equal(one.neg_log10_p, other.neg_log10_p)
        assert np.array_equal(one.others, other.others)
        return
    target = RankTarget.of_classes(label, 2, strata)
    if way == "numbers":
        target = RankTarget.of_values(label + rng.normal(size=600))
    found = beside_of(codes, target, alone_of(codes, target), 30)
    assert sorted(np.argsort(-found.neg_log10_p)[:2].tolist()) == [2, 9]
    assert found.neg_log10_p[[2, 9]].min() > 5


def test_constant_columns_and_single_features_show_nothing():
    target = two_classes(20)
    for n in (1, 2):
        codes = np.zeros((n, 20), np.uint8)
        found = beside_of(codes, target, alone_of(codes, target), n)
        assert not (found.neg_log10_p > 0).any()


def test_how_many_are_looked_at_is_bounded():
    assert n_looked_at(1000, 1) == 1000
    assert n_looked_at(16_384, 1) < 300
    assert n_looked_at(1000, 100) < 200
    assert n_looked_at(10**9, 100) == 2


@given(st.lists(st.floats(0, 30), min_size=1, max_size=60), st.integers(0, 3))
def test_levels_are_those_of_benjamini_and_hochberg(neg_log10_p, n_out):
    p_values = 10.0 ** -np.array(neg_log10_p)
    expected = stats.false_discovery_control(p_values)
    given_ = np.array([*neg_log10_p, *[np.nan] * n_out])
    assert adjusted(given_, np.array(neg_log10_p)) == pytest.approx(expected, rel=1e-9)


@given(st.lists(st.integers(0, 12), min_size=1, max_size=40), st.integers(0, 45))
def test_no_more_pass_than_may_and_each_place_by_its_own_level(thirds, most):
    """The first t from above at which p t / k is at most the level, k no more than that."""
    neg_log10_p, level = np.array(thirds) / 3, 0.07
    p_values, n = 10.0**-neg_log10_p, len(neg_log10_p)
    counts = (neg_log10_p[None] >= neg_log10_p[:, None]).sum(axis=1)
    passing = (n * p_values / counts <= level) & (counts <= most)
    expected = neg_log10_p[passing].min(initial=np.inf)
    assert least_passing(neg_log10_p, level, most) == expected
    levels = adjusted(neg_log10_p, neg_log10_p, most)
    assert np.array_equal(levels <= level, neg_log10_p >= expected)


def test_a_target_within_some_rows_has_their_strata():
    strata = np.repeat([0, 1, 2], [5, 4, 3])
    target = RankTarget.of_classes(np.arange(12) % 2, 2, strata)
    is_in = np.array([1, 1, 0, 1, 0, 1, 0, 0, 0, 1, 1, 1], bool)
    found = target.within(is_in)
    assert found.rows.tolist() == [0, 1, 3, 9, 10, 11]  # of the second stratum one row is left
    assert found.starts.tolist() == [0, 3, 6]
    assert found.targets.tolist() == (found.rows % 2).tolist()


@pytest.mark.parametrize("n_left", [0, 1, 2, 9, 29])
def test_a_target_of_numbers_within_few_rows_is_that_of_these_rows(n_left):
    """Of more levels than rows are left, too."""
    rng = np.random.default_rng(n_left)
    codes, values = rng.integers(0, 9, (20, 30), np.uint8), rng.standard_normal(30)
    is_in = rng.permutation(30) < n_left
    found, _ = strongest_contrasts(codes, 255, RankTarget.of_values(values).within(is_in))
    left = np.ascontiguousarray(codes[:, is_in])
    expected, _ = strongest_contrasts(left, 255, RankTarget.of_values(values[is_in]))
    np.testing.assert_array_equal(found, expected)
