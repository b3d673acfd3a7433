"""Targets of times to an event: tests by who is at risk, the test of censoring, concordance."""

from itertools import product
from math import exp

import numpy as np
import pytest
import risk_sets_reference as reference
from examples import examples, given, st

from srs_ooc.evidence.effects import EffectTarget, Measure, concordance, effect_of
from srs_ooc.evidence.null_model import Censored, censored_scores, kaplan_meier
from srs_ooc.evidence.rank_tests import Contrast, RankTarget, contrasts_log_p
from srs_ooc.native import _native

MISSING = 254


@st.composite
def censored_tables(draw, most=40):
    """Columns, times with ties, events, strata."""
    n, rng = draw(st.integers(6, most)), np.random.default_rng(draw(st.integers(0, 2**32)))
    n_levels = draw(st.sampled_from([2, 3, 40]))
    columns = rng.integers(0, n_levels, (4, n)).astype(np.uint8)
    columns[1:][rng.random((3, n)) < draw(st.sampled_from([0.0, 0.2]))] = MISSING
    times = rng.integers(0, draw(st.sampled_from([4, 1000])), n).astype(float)
    events = rng.random(n) < draw(st.sampled_from([0.3, 0.8]))
    strata = rng.integers(0, draw(st.sampled_from([1, 3, 8])), n)
    return columns, Censored(times, events), strata


def target_of(censored, strata=None):
    """The target, with what it takes to test by risk sets."""
    out = RankTarget.of_scores(censored_scores(censored, strata), strata)
    return out._replace(risk=censored.risk_sets(strata))


def by_risk_sets(columns, target):
    """Logarithms of p-values of all contrasts, by risk sets whether censoring differs or not."""
    log_p = contrasts_log_p(columns, MISSING, target._replace(risk=None))
    risk, other = target.risk, target.of_censoring(target.risk)
    targets = target.native, other.native
    _native.risk_set_tests(columns, MISSING, *targets, risk.times, risk.events, 1.0, log_p)
    return log_p


@examples(60)
@given(censored_tables())
def test_risk_sets_are_as_in_plain_python(table):
    columns, censored, strata = table
    target = target_of(censored, strata)
    found, (times, events) = by_risk_sets(columns, target), censored
    used = np.isin(np.arange(len(times)), target.rows)
    for column, row in zip(columns, found, strict=True):
        for contrast in np.flatnonzero(~np.isnan(row)).tolist():
            of_rows = column[used], MISSING, times[used], events[used], strata[used]
            expected = reference.log_p(*of_rows, contrast)
            assert row[contrast] == pytest.approx(expected, rel=1e-6, abs=1e-7)


@examples(30)
@given(censored_tables(), st.randoms(use_true_random=False))
def test_the_order_of_rows_is_nothing(table, random):
    columns, censored, strata = table
    order = np.array(random.sample(range(len(strata)), len(strata)))
    there = by_risk_sets(columns, target_of(censored, strata))
    moved = target_of(censored.of_rows(order), strata[order])
    shuffled = by_risk_sets(np.ascontiguousarray(columns[:, order]), moved)
    np.testing.assert_allclose(shuffled, there, rtol=1e-9, atol=1e-12)


def test_of_few_events_the_tail_is_near_that_of_all_outcomes():
    """One of two levels: the sum is one of independent draws, whose outcomes can be listed."""
    rng = np.random.default_rng(2)
    for _ in range(20):
        n = 24
        column = (np.arange(n) % 4 == 0).astype(np.uint8)
        times, events = rng.permutation(n).astype(float), rng.random(n) < 0.45
        target = target_of(Censored(times, events))
        at_risk = [column[times >= times[i]].mean() for i in np.flatnonzero(events)]
        observed = abs(column[events].sum() - sum(at_risk))
        p = 0.0
        for outcome in product((0, 1), repeat=len(at_risk)):
            if abs(sum(outcome) - sum(at_risk)) >= observed - 1e-9:
                shares = [q if y else 1 - q for y, q in zip(outcome, at_risk, strict=True)]
                p += float(np.prod(shares))
        found = exp(by_risk_sets(column[None], target)[0, Contrast.LOCATION])
        if p < 0.25:
            assert found == pytest.approx(p, rel=0.25)


def differing(rng, n, column, lost):
    """Times that know nothing of a column, rows of which are lost earlier where ``lost``."""
    times = rng.exponential(1.0, n)
    ends = rng.exponential(1.0, n) * np.where(lost, 0.25, 1.0)
    return Censored(np.minimum(times, ends), times <= ends)


@pytest.mark.parametrize("who", [0, 1])
def test_where_censoring_follows_a_feature_the_level_holds(who):
    """Rows trading places would reject at 0.01 three times too often, or never."""
    rng, n, n_tables, found, traded = np.random.default_rng(who), 200, 400, [], []
    for _ in range(n_tables):
        column = (rng.random(n) < 0.15).astype(np.uint8)
        target = target_of(differing(rng, n, column, column == who))
        found.append(contrasts_log_p(column[None], MISSING, target)[0, 0])
        plain = target._replace(risk=None)
        traded.append(contrasts_log_p(column[None], MISSING, plain)[0, 0])
    share, shares_traded = (np.mean(np.exp(p) <= 0.05) for p in (found, traded))
    assert share <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / n_tables)
    assert abs(shares_traded - 0.05) > abs(share - 0.05)


def test_where_censoring_does_not_differ_rows_trade_places():
    rng, n = np.random.default_rng(5), 80
    columns = rng.integers(0, 30, (200, n)).astype(np.uint8)
    target = target_of(differing(rng, n, columns[0], np.zeros(n, bool)))
    plain = contrasts_log_p(columns, MISSING, target._replace(risk=None))
    censoring = contrasts_log_p(columns, MISSING, target.of_censoring(target.risk))
    found = contrasts_log_p(columns, MISSING, target)
    kept = ~(np.exp(censoring) < 0.2)
    assert 0.6 < kept[:, :2].mean() < 1
    np.testing.assert_array_equal(found[kept], plain[kept])
    assert (found[~kept] != plain[~kept]).any()


def test_parts_of_rows_keep_who_is_at_risk():
    rng, n = np.random.default_rng(6), 200
    column = rng.integers(0, 9, n).astype(np.uint8)
    censored = differing(rng, n, column, column > 4)
    is_in = rng.random(n) < 0.6
    part = target_of(censored).within(is_in)
    alone = target_of(censored.of_rows(np.flatnonzero(is_in)))
    found = by_risk_sets(column[None], part)
    expected = by_risk_sets(np.ascontiguousarray(column[is_in])[None], alone)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    cut = part.in_strata((column > 4).astype(int))
    assert cut.risk is part.risk


# Effects of times.


def pairs_of(values, times, events, strata):
    """Pairs of rows, and by how many more they agree than not, of each row."""
    pairs, ahead = np.zeros((2, len(values)))
    for i, j in product(range(len(values)), repeat=2):
        later = times[i] < times[j] or (times[i] == times[j] and not events[j])
        if events[i] and later and strata[i] == strata[j]:
            pairs[[i, j]] += 1
            ahead[[i, j]] += np.sign(int(values[i]) - int(values[j]))
    return pairs, ahead


@examples(40)
@given(censored_tables(25))
def test_concordance_counts_pairs_of_a_stratum(table):
    columns, (times, events), strata = table
    pairs, ahead = pairs_of(columns[0], times, events, strata)
    found = concordance(columns[0], Censored(times, events), strata)
    if not pairs.any():
        assert np.isnan(found.effect)
        return
    assert found.effect == pytest.approx((1 + ahead.sum() / pairs.sum()) / 2)
    assert 0 <= found.low <= found.effect <= found.high <= 1


@pytest.mark.parametrize("slope", [0.0, 3.0])
def test_the_interval_of_a_concordance_holds_it(slope):
    rng = np.random.default_rng(7)

    def drawn(n):
        values = rng.integers(0, 50, n)
        times = rng.exponential(np.exp(-slope * values / 49))
        ends = rng.exponential(1.0, n)
        return values, Censored(np.minimum(times, ends), times <= ends)

    true = concordance(*drawn(20_000)).effect
    found = [concordance(*drawn(60)) for _ in range(300)]
    held = np.mean([one.low <= true <= one.high for one in found])
    assert 0.91 <= held <= 0.99


def test_effects_of_times_say_which_is_shorter():
    times = np.arange(40.0)
    target = EffectTarget(np.arange(40), 0, None, Censored(times, np.ones(40, bool)))
    falling = np.arange(40)[::-1].astype(np.uint8)
    spread = (20 + (np.arange(40) // 2) * np.where(np.arange(40) % 2, 1, -1)).astype(np.uint8)
    missing = np.where(times > 29, MISSING, 1).astype(np.uint8)
    levels = np.where(times > 29, 2, np.arange(40) % 2).astype(np.uint8)
    said = {
        "shorter when higher": (falling, Contrast.LOCATION, False),
        "longer when far from the middle": (spread, Contrast.SPREAD, False),
        "longer where missing": (missing, Contrast.ABSENCE, False),
        "longer at level red": (levels, Contrast.LOCATION, True),
    }
    for words, (column, contrast, is_named) in said.items():
        how = {"is_categorical": is_named}
        measure, toward, found = effect_of(column, MISSING, target, contrast, **how)
        assert measure.title == "concordance"
        assert measure.direction(found.effect, "", "red") == words
        assert measure.is_of_level == is_named == (toward == 2)
    assert Measure.SPEARMAN not in [effect_of(falling, MISSING, target)[0]]


def test_kaplan_meier_of_four_rows():
    times, shares = kaplan_meier(Censored(np.array([1.0, 2, 2, 3]), np.array([1, 1, 0, 1]) > 0))
    assert times.tolist() == [1, 2, 3]
    assert shares.tolist() == pytest.approx([3 / 4, 1 / 2, 0])
