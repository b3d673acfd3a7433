"""Lambda, the genomic inflation of the p-values of all features: about 1 by chance alone."""

import numpy as np
import pytest
from examples import examples, given, st
from scipy import stats

from srs_ooc.evidence.correlation import RankColumns
from srs_ooc.evidence.rank_tests import (
    MEDIAN,
    N_BINS,
    STEPS,
    Contrast,
    RankTarget,
    binned,
    contrasts_log_p,
    inflation_of,
    p_value_bins,
)

MISSING = 255


def log_p_of(codes, target):
    return contrasts_log_p(codes, MISSING, target, only=Contrast.LOCATION)[:, 0]


def lambda_of(codes, target):
    """As a run has it, of few features: all are in the sample."""
    n, n_rows = codes.shape
    null = [p_value_bins(log_p_of(codes, target.permuted(k))) for k in range(max(2, 2000 // n))]
    squares = RankColumns(codes, MISSING).squares()
    counts = binned(p_value_bins(log_p_of(codes, target)))
    return inflation_of(counts, np.array(null), squares, n_rows)


def ranks(values):
    return values.argsort(axis=1).argsort(axis=1).astype(np.uint8)


def two_classes(rng, n_rows, share=0.5):
    return RankTarget.of_classes(rng.permutation(n_rows) < share * n_rows, 2)


@examples(50)
@given(st.lists(st.floats(-3000, 0) | st.just(np.nan), max_size=40), st.integers(0, 40))
def test_bins_add_up_whatever_the_parts(log_p, cut):
    bins = p_value_bins(np.array(log_p, float))
    counts = binned(bins)
    np.testing.assert_array_equal(counts, binned(bins[:cut]) + binned(bins[cut:]))
    known = [p for p in log_p if not np.isnan(p)]
    assert counts.sum() == len(known)
    assert (np.diff(bins[np.argsort([-p for p in known])] if known == log_p else [0]) >= 0).all()


def test_lambda_is_the_median_of_squared_scores_over_that_of_chance():
    rng = np.random.default_rng(3)
    codes, target = ranks(rng.normal(size=(1000, 100))), two_classes(rng, 100)
    log_p = log_p_of(codes, target)
    expected = np.median(stats.chi2.isf(np.exp(log_p), 1)) / stats.chi2.median(1)
    found = lambda_of(codes, target)
    assert found["lambda"] == pytest.approx(expected, abs=0.02)
    assert found["lambda_by"] == "chi-squared"
    assert found["lambda_error"] == pytest.approx(2.33 / np.sqrt(found["n_effective"]), rel=0.01)
    assert 700 < found["n_effective"] <= 1000


@pytest.mark.parametrize("neg_log10_p", [2.0, 100.0, 299.0, 301.0, 900.0])
def test_lambda_is_right_far_out(neg_log10_p):
    counts = np.zeros(N_BINS, np.int64)
    counts[int(np.sqrt(neg_log10_p) * STEPS)] = 100
    null = p_value_bins(np.log(np.linspace(0.001, 1, 1000)))[None]
    low, high = (
        (np.sqrt(neg_log10_p) + step / STEPS) ** 2 * np.log(10) for step in (-1, 2)
    )  # of the bin
    found = inflation_of(counts, null, np.eye(1000), 10**6)["lambda"] * MEDIAN
    ends = [2 * p - np.log(np.pi / 2 * 2 * p) for p in (low, high)]
    if neg_log10_p > 50:
        assert ends[0] < found < 1.01 * ends[1]
    else:
        expected = stats.chi2.isf(np.exp([-low, -high]), 1)
        assert expected[0] < found < expected[1]


KINDS = {
    "many values": lambda rng, n: ranks(rng.normal(size=(500, n))),
    "ones of 3%": lambda rng, n: rng.random((500, n)) < 0.03,
    "as many ones": lambda rng, n: ranks(rng.random((500, n))) < 0.04 * n,
    "genotypes": lambda rng, n: rng.binomial(2, rng.uniform(0.01, 0.5, (500, 1)), (500, n)),
}
TARGETS = {
    "halves": two_classes,
    "a tenth": lambda rng, n: two_classes(rng, n, 0.1),
    "numbered classes": lambda rng, n: RankTarget.of_classes(rng.integers(0, 3, n), 3, None, "012"),
    "numbers": lambda rng, n: RankTarget.of_values(rng.normal(size=n)),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("target", TARGETS)
def test_without_signal_lambda_is_1_whatever_values_there_are(kind, target):
    rng = np.random.default_rng(11)
    off = []
    for n_rows in (50, 100, 200):
        codes = KINDS[kind](rng, n_rows).astype(np.uint8)
        found = lambda_of(codes, TARGETS[target](rng, n_rows))
        off.append(found["lambda_is"])
        assert found["lambda"] == pytest.approx(1, abs=4 * found["lambda_error"])
    assert off == [None] * 3


@pytest.mark.slow
def test_cautions_come_in_fewer_than_one_table_in_a_hundred():
    rng, off = np.random.default_rng(7), []
    for _ in range(25):
        for kind in KINDS.values():
            for target in TARGETS.values():
                n_rows = int(rng.integers(40, 240))
                codes = kind(rng, n_rows).astype(np.uint8)
                off.append(lambda_of(codes, target(rng, n_rows))["lambda_is"])
    assert len(off) == 400
    assert sum(one is not None for one in off) < 4


def test_lumps_are_compared_with_those_of_permuted_targets():
    """Of ones in 2 of 50 rows and equal classes z^2 has two values, and its median is either."""
    rng = np.random.default_rng(5)
    codes = (ranks(rng.random((500, 50))) < 2).astype(np.uint8)
    target = two_classes(rng, 50)
    p = np.exp(log_p_of(codes, target))
    assert abs(stats.chi2.isf(np.median(p), 1) / MEDIAN - 1) > 0.9
    found = lambda_of(codes, target)
    assert found["lambda_by"] == "permutations"
    assert found["lambda"] == pytest.approx(1, abs=0.3)
    assert found["lambda_is"] is None


@pytest.mark.slow
@pytest.mark.parametrize("size", [10, 50, 500])
def test_features_that_go_together_count_for_fewer(size):
    """In blocks: what is by chance in one is in all of it. Cautions are rare."""
    rng, off, n_effective = np.random.default_rng(size), [], []
    for _ in range(25):
        shared = np.repeat(rng.normal(size=(500 // size, 60)), size, axis=0)
        codes = ranks(2 * shared + rng.normal(size=(500, 60)))
        found = lambda_of(codes, two_classes(rng, 60))
        off.append(found["lambda_is"])
        n_effective.append(found["n_effective"])
    assert sum(one is not None for one in off) <= 1
    assert 500 / size < np.median(n_effective) < 4 * 500 / size


def test_a_batch_that_goes_with_the_target_is_seen():
    rng = np.random.default_rng(2)
    batch = np.arange(120) % 2
    labels = np.where(rng.random(120) < 0.8, batch, 1 - batch)
    codes = ranks(rng.normal(size=(300, 120)) + rng.normal(size=(300, 1)) * batch)
    found = lambda_of(codes, RankTarget.of_classes(labels, 2))
    assert found["lambda"] > 3
    assert found["lambda_is"] == "above"
    found = lambda_of(codes, RankTarget.of_classes(labels, 2, batch))
    assert found["lambda_is"] is None
    assert found["lambda"] == pytest.approx(1, abs=3 * found["lambda_error"])


def test_matched_rows_that_are_compared_as_if_they_were_not_are_seen():
    """Rows of a pair are alike, and have one of each class."""
    rng = np.random.default_rng(2)
    pairs, labels = np.arange(120) // 2, np.arange(120) % 2
    codes = ranks(2 * rng.normal(size=(300, 60))[:, pairs] + rng.normal(size=(300, 120)))
    found = lambda_of(codes, RankTarget.of_classes(labels, 2))
    assert found["lambda"] < 0.5
    assert found["lambda_is"] == "below"
    found = lambda_of(codes, RankTarget.of_classes(labels, 2, pairs))
    assert found["lambda_is"] is None


@pytest.mark.slow
def test_rows_that_come_in_pairs_raise_the_bar_too():
    """Rows of a pair are alike (correlation .5) and of one class; the tests do not know it."""
    found, select = [], 0
    for seed in range(3000, 3020):
        rng, pairs = np.random.default_rng(seed), np.arange(200) // 2
        target = RankTarget.of_classes((rng.permutation(100) < 50).astype(int)[pairs], 2)
        codes = ranks(rng.normal(size=(500, 100))[:, pairs] + rng.normal(size=(500, 200)))
        found.append(lambda_of(codes, target))
        steps = 0.09 * np.arange(1, 501) / 500
        select += bool((np.sort(np.exp(log_p_of(codes, target))) <= steps).any())
    n_silent = sum(one["lambda_is"] is None for one in found)
    shown = [np.mean([one[name] for one in found]) for name in ("lambda", "n_effective")]
    print(*shown, n_silent, select)
    assert shown == [pytest.approx(1.45, abs=0.05), pytest.approx(410, abs=20)]
    assert 0 < n_silent < select


def test_where_nothing_is_tested_there_is_no_lambda():
    none = np.zeros((2, 0), np.intp)
    assert inflation_of(np.zeros(N_BINS, np.int64), none, np.zeros((0, 0)), 50) == {}


@examples(30)
@given(st.lists(st.integers(0, 3), min_size=2, max_size=30), st.integers(0, 2**32))
def test_rows_trade_places_within_strata(strata, key):
    strata = np.array(strata)
    target = RankTarget.of_classes(np.arange(len(strata)) % 2, 2, strata)
    permuted = target.permuted(key)
    for start, stop in zip(target.starts[:-1], target.starts[1:], strict=True):
        assert sorted(target.targets[start:stop]) == sorted(permuted.targets[start:stop])
    np.testing.assert_array_equal(permuted.rows, target.rows)
