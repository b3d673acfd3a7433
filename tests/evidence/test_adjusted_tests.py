"""Tests of features beside covariates, and of targets that are scores: against their reference.

The reference is the definition in docs/methods/adjusting.md, with NumPy's least squares and every
arrangement of the target within strata.
"""

import itertools
from statistics import NormalDist

import numpy as np
import pytest
from examples import examples, given, st
from scipy import stats

from srs_ooc.evidence.rank_tests import Contrast, Covariates, RankTarget, contrasts_log_p
from srs_ooc.native import _native
from srs_ooc.native.numerics import orthonormal

MISSING, STEPS = 7, 64


def covariates_of(n_rows, k, seed):
    rows = np.random.default_rng(seed).normal(size=(k, n_rows))
    rows[0] = 1
    return Covariates.of(np.ascontiguousarray(orthonormal(rows).T))


def scores_of(column, contrast):
    """Scores of the rows that have one, and which these are."""
    known = column < MISSING
    if contrast == Contrast.ABSENCE:
        return (~known).astype(float), np.ones(len(column), bool)
    x = np.zeros(len(column))
    ranks = [(column[known] < c).sum() * 2 + (column[known] == c).sum() for c in column[known]]
    x[known] = np.array(ranks) - known.sum()
    if contrast == Contrast.SPREAD:
        return np.abs(x), known
    return np.where(known, normal_scores(x, known.sum()), 0.0), known


def normal_scores(twice, n):
    """Normal scores of centred midranks, twice, by Tukey's lambda of 1/4."""
    share = (1 + twice / n) / 2
    return share**0.25 - (1 - share) ** 0.25


def steps_of(column, contrast, covariates):
    """What the basis leaves of the scores of known rows, in even steps; None if nothing."""
    x, known = scores_of(column, contrast)
    basis = covariates.basis[known]
    left = x[known] - basis @ np.linalg.lstsq(basis, x[known], rcond=None)[0]
    spread = ((x[known] - x[known].mean()) ** 2).sum()
    if len(left) < 2 or np.ptp(left) < 1e-9 or (left**2).sum() <= 1e-8 * spread:
        return None
    out = np.full(len(column), -1)
    unit = (left - left.min()) * (STEPS / (left.max() - left.min()))
    out[known] = np.floor(unit + 0.5)
    if np.abs(unit + 0.5 - np.rint(unit + 0.5)).min() < 1e-6:
        return None  # rounding decides
    return out


def exact_p(steps, scores, strata, shrink):
    """P(|S - E S| >= shrink |s - E S|) over all arrangements of scores within strata."""
    laws, mean, found = [], 0.0, 0.0
    for stratum in np.unique(strata):
        rows = (strata == stratum) & (steps >= 0)
        x, y = steps[rows], scores[rows]
        mean += x.sum() * y.sum() / max(len(x), 1)
        found += x @ y
        laws.append([x @ np.array(order) for order in itertools.permutations(y.tolist())])
    sums = np.zeros(1)
    for law in laws:
        sums = (sums[:, None] + np.array(law)[None]).ravel()
    return float(np.mean(np.abs(sums - mean) >= shrink * abs(found - mean) - 1e-6))


@st.composite
def tables(draw, values):
    n_rows, seed = draw(st.integers(6, 9)), draw(st.integers(0, 10**6))
    rng = np.random.default_rng(seed)
    column = rng.integers(0, draw(st.sampled_from([2, 3, 6])), n_rows)
    column[rng.random(n_rows) < draw(st.sampled_from([0.0, 0.25]))] = MISSING
    strata = rng.integers(0, draw(st.integers(1, 2)), n_rows)
    target = rng.integers(0, values, n_rows)
    covariates = covariates_of(n_rows, draw(st.integers(1, 2)), seed)
    return column.astype(np.uint8), target, strata, covariates


def log_ps(column, target, contrast=None):
    return contrasts_log_p(column[None], MISSING, target, exactly=True, only=contrast)[0]


@pytest.mark.slow
@examples(150)
@given(tables(2), st.sampled_from(list(Contrast)))
def test_two_classes_are_tested_exactly_beside_covariates(table, contrast):
    column, labels, strata, covariates = table
    steps = steps_of(column, contrast, covariates)
    target = RankTarget.of_classes(labels, 2, strata)._replace(covariates=covariates)
    found = log_ps(column, target, contrast)[contrast]
    if steps is None or np.isnan(found):
        return
    sizes = {s: (strata[steps >= 0] == s).sum() for s in np.unique(strata)}
    if min(sizes.values()) < 2:
        return  # rows alone in their stratum are not looked at
    expected = exact_p(steps, labels, strata, covariates.shrink)
    assert np.exp(found) == pytest.approx(expected, rel=1e-6)


@pytest.mark.slow
@examples(100)
@given(tables(4))
def test_scores_of_a_target_are_taken_as_they_are(table):
    column, levels, _, _ = table
    column %= 2  # two levels: enumerated
    scores = np.array([0, 1, 7, 64])[levels]
    target = RankTarget.of_scores(scores)
    assert target.scores[target.targets].tolist() == scores[target.rows].tolist()
    covariates = Covariates.of(np.full((len(column), 1), 1 / np.sqrt(len(column))))
    steps = steps_of(column, Contrast.LOCATION, covariates)
    found = log_ps(column, target._replace(covariates=covariates))[Contrast.LOCATION]
    if steps is None or np.isnan(found) or len(np.unique(scores[steps >= 0])) < 2:
        return
    shrink = covariates.shrink
    expected = exact_p(steps, scores, np.zeros(len(column), int), shrink)
    assert np.exp(found) == pytest.approx(expected, rel=1e-6)


def test_scores_of_a_column_are_near_normal_ones():
    share = (np.arange(1000) + 0.5) / 1000
    exact = [NormalDist().inv_cdf(float(one)) for one in share]
    assert np.corrcoef(normal_scores(2 * share * 1000 - 1000, 1000), exact)[0, 1] > 0.998


@pytest.mark.parametrize("adjusts", [False, True])
def test_a_part_without_rows_shows_nothing(adjusts):
    rng = np.random.default_rng(1)
    target = RankTarget.of_scores(rng.integers(0, 64, 40), np.arange(40) // 8)
    if adjusts:
        target = target._replace(covariates=covariates_of(40, 2, 1))
    codes = rng.integers(0, 5, (3, 40)).astype(np.uint8)
    for is_in in (np.zeros(40, np.bool_), np.arange(40) % 8 == 0):  # none, or one of a stratum
        assert np.isnan(contrasts_log_p(codes, MISSING, target.within(is_in))).all()


def test_scores_are_not_ranked():
    """One far score decides by itself; as a rank it would not."""
    rng = np.random.default_rng(0)
    scores = np.sort(rng.integers(0, 5, 60))
    scores[-4:] = 64
    column = ((np.arange(60) >= 56) | (np.arange(60) < 6)).astype(np.uint8)
    by_score = log_ps(column, RankTarget.of_scores(scores))[0]
    by_rank = log_ps(column, RankTarget.of_values(scores.astype(float)))[0]
    assert by_score < by_rank - 1


@examples(60)
@given(st.integers(0, 10**6))
def test_rows_without_a_value_are_as_if_they_were_not_there(seed):
    n_classes, rng = 2, np.random.default_rng(seed)
    column = rng.integers(0, 5, 80).astype(np.uint8)
    column[rng.random(80) < 0.2] = MISSING
    labels, strata = rng.integers(0, n_classes, 80), rng.integers(0, 3, 80)
    covariates = covariates_of(80, 3, seed)
    target = RankTarget.of_classes(labels, n_classes, strata)._replace(covariates=covariates)
    known = column < MISSING
    part = RankTarget.of_classes(labels[known], n_classes, strata[known])
    part = part._replace(covariates=covariates.of_rows(known))
    for contrast in (Contrast.LOCATION, Contrast.SPREAD):
        found = log_ps(column, target, contrast)[contrast]
        expected = log_ps(column[known], part, contrast)[contrast]
        assert found == pytest.approx(expected, rel=0.02, abs=1e-3, nan_ok=True)


def test_what_covariates_explain_shows_nothing():
    covariates = covariates_of(60, 3, 1)
    column = np.argsort(np.argsort(covariates.basis[:, 1])).astype(np.uint8)
    rows = np.array([np.ones(60), normal_scores(2.0 * column - 59, 60)])
    alone = Covariates.of(np.ascontiguousarray(orthonormal(rows).T))
    target = RankTarget.of_classes(np.arange(60) % 2, 2)._replace(covariates=alone)
    assert np.isnan(contrasts_log_p(column[None], 255, target)[0, 0])
    constant = np.zeros((1, 60), np.uint8)
    assert np.isnan(contrasts_log_p(constant, 255, target)).all()


def test_levels_are_compared_one_by_one_with_those_still_to_come():
    rng = np.random.default_rng(4)
    column = np.repeat([0, 1, 2], [10, 20, 50]).astype(np.uint8)[rng.permutation(80)]
    target = RankTarget.of_classes(rng.integers(0, 2, 80), 2)
    target = target._replace(covariates=covariates_of(80, 3, 2))
    how = {"exactly": True, "categorical": np.ones(1, np.bool_)}
    found = contrasts_log_p(column[None], MISSING, target, **how)[0]
    first = (column == 0).astype(np.uint8)
    second = np.where(column == 0, MISSING, column == 1).astype(np.uint8)
    each = np.exp([log_ps(one, target)[0] for one in (first, second)])
    squares = stats.norm.isf(each / 2) ** 2
    assert found[0] == pytest.approx(stats.chi2.logsf(squares.sum(), 2), rel=1e-6)
    assert np.isnan(found[1])


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_every_instruction_set_and_any_batch_gives_the_same_bits(dtype):
    rng = np.random.default_rng(6)
    columns = rng.integers(0, 7, (40, 300)).astype(dtype)
    columns[rng.random(columns.shape) < 0.02] = 255
    target = RankTarget.of_classes(rng.integers(0, 2, 300), 2, rng.integers(0, 5, 300))
    covariates = covariates_of(300, 8, 3)
    target = target._replace(covariates=covariates)
    expected = contrasts_log_p(columns, 7, target)
    for isa in _native.isas():
        found = np.empty((40, 3))
        _native.rank_tests(columns, 7, target.native, target.fitted, False, 3, found, isa)
        assert found.tobytes() == expected.tobytes()
    one_by_one = [contrasts_log_p(column[None], 7, target)[0] for column in columns]
    assert np.array(one_by_one).tobytes() == expected.tobytes()


@pytest.mark.parametrize("kind", ["classes", "three", "scores"])
@pytest.mark.parametrize("form", ["number", "binary", "spread", "missing"])
def test_features_that_follow_the_covariates_only_keep_the_level(kind, form):
    """At .01, of 1,500 features each; without the covariates nearly all would be rejected."""
    rng = np.random.default_rng([len(kind), len(form)])
    n, p = 300, 1500
    age = rng.normal(size=n)
    strata = np.argsort(np.argsort(age)) * 8 // n
    powers = np.array([age**i for i in range(4)])
    covariates = Covariates.of(np.ascontiguousarray(orthonormal(powers).T))
    x = rng.normal(size=(p, n)) + (0 if form in ("spread", "missing") else age)
    if form == "spread":
        x *= np.exp(0.5 * age)
    codes = (np.argsort(np.argsort(x, axis=1), axis=1) * 200 // n).astype(np.uint8)
    if form == "binary":
        codes = (codes > 180).astype(np.uint8)
    if form == "missing":
        codes[rng.random((p, n)) < 1 / (1 + np.exp(1.5 - age))] = 255
    score = 1.5 * age + rng.logistic(size=n)
    if kind == "scores":
        left = score - covariates.basis @ (covariates.basis.T @ score)
        steps = np.rint((left - left.min()) * 64 / np.ptp(left)).astype(int)
        target = RankTarget.of_scores(steps, strata)
    else:
        cuts = [0.0] if kind == "classes" else [-1.0, 1.0]
        target = RankTarget.of_classes(np.searchsorted(cuts, score), len(cuts) + 1, strata)
    plain = contrasts_log_p(codes, 255, target._replace(starts=target.starts[[0, -1]]))
    log_p = contrasts_log_p(codes, 255, target._replace(covariates=covariates))
    for contrast in Contrast:
        own = log_p[:, contrast]
        own = own[~np.isnan(own)]
        if len(own):
            assert np.mean(own < np.log(0.01)) < 0.01 + 4 * np.sqrt(0.01 / len(own))
    if form == "number" and kind != "scores":  # within one stratum, and with nothing taken off
        assert np.mean(plain[:, 0] < np.log(0.01)) > 0.9
