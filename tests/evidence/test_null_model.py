"""What covariates say of a target, fitted once: against other fits, and by its laws."""

import numpy as np
import pytest
from examples import examples, given, st
from refusals import refused
from sklearn.linear_model import LogisticRegression

from srs_ooc.base.errors import UsageError
from srs_ooc.base.records import Covariate
from srs_ooc.evidence.null_model import (
    BASIS_UNIT,
    FEWEST_ROWS,
    RIDGE,
    Censored,
    NullModel,
    basis_of,
    censored_scores,
    cox,
    expected,
    form_of,
    hazards,
    logistic,
    robust,
    strata_of,
)
from srs_ooc.evidence.rank_tests import SCORE_STEPS

RNG = np.random.default_rng(5)


def number(n_rows, name="age", seed=1):
    return Covariate(name, np.random.default_rng(seed).normal(size=n_rows))


def category(n_rows, n_levels, name="batch", seed=2):
    levels = np.random.default_rng(seed).integers(0, n_levels, n_rows).astype(float)
    return Covariate(name, levels, tuple(map(str, range(n_levels))))


def explained(basis, column):
    """Share of a column's variation about its mean that a basis leaves."""
    left = column - basis @ (basis.T @ column)
    return float((left**2).sum() / ((column - column.mean()) ** 2).sum())


@examples(60)
@given(st.integers(40, 400), st.integers(0, 2), st.integers(0, 2), st.integers(0, 99))
def test_the_basis_is_orthonormal_with_a_tenth_of_the_rows_at_most(n_rows, n, m, seed):
    covariates = [number(n_rows, f"n{i}", seed + i) for i in range(n)]
    covariates += [category(n_rows, 3, f"c{i}", seed + i) for i in range(m)]
    if not covariates:
        return
    try:
        n_columns = form_of(covariates)[2]
    except UsageError:
        assert 1 + n + 2 * m > n_rows // FEWEST_ROWS
        return
    basis = basis_of(covariates)
    k = basis.shape[1]
    assert k <= n_columns <= n_rows // FEWEST_ROWS
    assert np.allclose(basis.T @ basis, np.eye(k), atol=1e-9)
    for one in covariates:
        assert explained(basis, one.values if not one.levels else (one.values == 1) * 1.0) < 1e-9


def test_curves_products_and_levels_are_in_the_basis():
    age, batch = number(600), category(600, 4)
    basis = basis_of([age, batch])
    assert explained(basis, age.values**3) < 1e-9
    assert explained(basis, age.values * (batch.values == 2)) < 1e-9
    assert explained(basis, np.sin(2 * age.values)) < 0.02
    assert explained(basis, age.values**2 * (batch.values == 2)) > 0.1


def test_degrees_go_first_and_then_products():
    many = [number(400, f"n{i}", i) for i in range(6)]
    assert form_of(many[:2])[:2] == (5, True)
    assert form_of(many)[:2] == (4, True)
    assert form_of([number(100, f"n{i}", i) for i in range(4)])[:2] == (2, False)


def test_too_few_rows_are_refused_with_the_numbers():
    refused(UsageError, r"found 13 columns .* for 100 rows", form_of, [category(100, 13)])
    refused(UsageError, r"found 50 strata of 100 rows", form_of, [number(100)], np.arange(100) // 2)


def test_missing_cells_have_the_mean_and_an_indicator_or_a_level():
    age, batch = number(300), category(300, 3)
    gone = np.random.default_rng(8).random(300) < 0.2
    for one in (age, batch):
        some = one._replace(values=np.where(gone, np.nan, one.values))
        basis = basis_of([some])
        assert explained(basis, gone * 1.0) < 1e-9
        filled = np.where(gone, 0.0, one.values if one is age else one.values == 1)
        assert explained(basis, filled) < 1e-9


@pytest.mark.parametrize("far", [999.0, 1e9, 1.7e308, -1.7e308])
def test_one_far_number_flattens_no_curve(far):
    age = number(400)
    values = age.values.copy()
    values[7] = far
    one = age._replace(values=values)
    basis = basis_of([one])
    others = np.arange(400) != 7
    left = age.values**2 - age.values[others].mean()
    assert explained(basis, np.where(others, left, 0.0)) < 1e-6
    assert explained(basis, 1.0 - others) < 1e-9


def test_numbers_most_of_which_are_equal_are_kept():
    values = np.where(np.arange(400) % 20, 0.0, np.arange(400) / 40)
    basis = basis_of([Covariate("dose", values)])
    assert explained(basis, values) < 1e-9


def test_strata_that_were_given_are_in_the_basis():
    strata = np.arange(200) % 5
    basis = basis_of([number(200)], strata)
    assert explained(basis, (strata == 3) * 1.0) < 1e-9


def test_probabilities_are_those_of_scikit_learn():
    columns = np.column_stack([np.ones(300), RNG.normal(size=(300, 4))])
    is_in = RNG.random(300) < 1 / (1 + np.exp(-columns[:, 1] - 0.5))
    peer = LogisticRegression(C=1 / RIDGE, tol=1e-10, max_iter=1000).fit(columns[:, 1:], is_in)
    found = logistic(columns, is_in, np.ones(300, np.bool_))
    assert np.allclose(found, peer.predict_proba(columns[:, 1:])[:, 1], atol=1e-5)


def test_classes_that_are_separated_are_fitted_too():
    columns = np.column_stack([np.ones(100), np.linspace(-2, 2, 100)])
    found = logistic(columns, columns[:, 1] > 0.1, np.ones(100, np.bool_))
    assert found.min() < 1e-3
    assert found.max() > 1 - 1e-3


def test_far_numbers_count_no_more_than_others():
    x = np.column_stack([np.ones(400), RNG.normal(size=400)])
    y = x @ [1.0, 2.0] + RNG.normal(size=400) * 0.1
    y[:20] += 1000 * x[:20, 1]
    assert np.allclose(robust(x, y), [1, 2], atol=0.05)
    exact = x @ [1.0, 2.0]
    assert np.allclose(robust(x, exact), [1, 2])


def times_of(n_rows, seed, n_times):
    rng = np.random.default_rng(seed)
    return Censored(rng.integers(1, n_times, n_rows).astype(float), rng.random(n_rows) < 0.6)


@examples(60)
@given(st.integers(2, 40), st.integers(0, 99), st.sampled_from([3, 1000]))
def test_hazards_are_nelson_s_and_aalen_s(n_rows, seed, n_times):
    censored = times_of(n_rows, seed, n_times)
    risks = np.random.default_rng(seed).uniform(0.5, 2, n_rows)
    for i, t in enumerate(censored.times):
        before = censored.events & (censored.times <= t)
        each = [1 / risks[censored.times >= u].sum() for u in censored.times[before]]
        assert hazards(censored, risks)[i] == pytest.approx(sum(each))


def test_cox_s_slope_is_zero_where_it_ends():
    censored, columns = times_of(120, 3, 30), RNG.normal(size=(120, 2))
    beta = cox(columns, censored)
    slope = RIDGE * beta
    for i in np.flatnonzero(censored.events):
        at_risk = censored.times >= censored.times[i]
        weights = np.exp(columns[at_risk] @ beta)
        slope += weights @ columns[at_risk] / weights.sum() - columns[i]
    assert np.abs(slope).max() < 1e-3


def test_scores_of_times_are_even_steps_of_event_less_hazard():
    censored = times_of(200, 4, 10**6)
    left = censored.events - hazards(censored, np.ones(200))
    unit = (left - left.min()) / (left.max() - left.min()) * SCORE_STEPS
    assert np.abs(censored_scores(censored) - unit).max() <= 0.5 + 1e-9
    strata = np.arange(200) % 2
    apart = censored_scores(censored, strata)
    half = Censored(censored.times[::2], censored.events[::2])
    own = half.events - hazards(half, np.ones(100))
    assert np.corrcoef(apart[::2], own)[0, 1] > 0.999


@examples(60)
@given(st.integers(60, 500), st.integers(1, 400), st.integers(0, 99))
def test_strata_are_of_equal_size_and_part_no_equal_values(n_rows, n_values, seed):
    values = np.random.default_rng(seed).integers(0, n_values, n_rows).astype(float)
    strata = strata_of([values])
    for value in np.unique(values):
        assert len(np.unique(strata[values == value])) == 1
    n_strata = strata.max() + 1
    most = max(2 * n_rows**0.25, n_rows / 50)
    assert n_strata <= max(3, min(round(most), n_rows // 20))
    if n_values > n_rows:
        sizes = np.bincount(strata)
        most = np.unique(values, return_counts=True)[1].max()  # rows of one value stay together
        assert sizes.max() - sizes.min() <= 2 * most + 1
    given_ones = np.arange(n_rows) % 2
    both = strata_of([values], given_ones)
    for stratum in range(both.max() + 1):
        assert len(np.unique(given_ones[both == stratum])) == 1


def test_several_fitted_values_are_cut_within_one_another():
    first, second = RNG.normal(size=(2, 1000))
    strata = strata_of([first, second])
    counts = np.bincount(strata)
    assert len(counts) == 16
    assert counts.max() - counts.min() <= 2


def test_what_a_null_model_keeps_is_whole_numbers():
    age = number(300)
    labels = (RNG.random(300) < 1 / (1 + np.exp(-2 * age.values))).astype(np.int64)
    for target in (labels, labels + (age.values > 1), age.values * 2, times_of(300, 1, 50)):
        null = NullModel.of(target, [age])
        assert {array.dtype for array in (null.basis, null.strata, null.scores)} == {np.dtype("i4")}
        if not isinstance(target, np.ndarray) or target.dtype.kind == "f":
            assert (null.scores.min(), null.scores.max()) == (0, SCORE_STEPS)
        part = null.of_rows(labels == 1)
        assert len(part.basis) == len(part.scores) == labels.sum()
        covariates = null.covariates()
        assert np.allclose(covariates.products, np.eye(null.basis.shape[1]), atol=1e-6)
        columns = null.basis.astype(float) * BASIS_UNIT
        indicators = np.equal.outer(null.strata, np.arange(null.strata.max() + 1))
        held = np.linalg.norm(columns.T @ (indicators / np.sqrt(indicators.sum(axis=0)))) ** 2
        free = (columns.shape[1] - held) / (300 - indicators.shape[1])
        assert covariates.shrink == pytest.approx(np.sqrt(1 - free))


def test_numbers_with_light_tails_have_normal_scores():
    age, rng = number(500), np.random.default_rng(2)
    for own, light in ((rng.normal(size=500), True), (rng.standard_t(1.5, 500), False)):
        scores = NullModel.of(age.values + own, [age]).scores
        middle = np.mean(np.abs(scores - SCORE_STEPS / 2) < SCORE_STEPS / 4)
        assert (middle > 0.75) == light  # of ranks half of the rows are in the middle half


def test_rows_of_all_classes_weigh_as_if_they_had_the_same_covariates():
    sex = category(2000, 2, "sex")
    labels = (RNG.random(2000) < np.where(sex.values == 1, 0.8, 0.3)).astype(np.int64)
    weights = NullModel.of(labels, [sex]).scores.astype(float)
    shares = [np.average(sex.values, weights=weights * (labels == c)) for c in (0, 1)]
    assert shares[0] == pytest.approx(shares[1], abs=0.02)


def test_covariates_that_say_the_class_are_refused():
    labels = np.arange(200) % 2
    same = Covariate("same", labels.astype(float), ("a", "b"))
    refused(UsageError, "they say the class by themselves", NullModel.of, labels, [same])


@pytest.mark.parametrize("n_classes", [1, 2, 3])
def test_what_is_expected_of_other_rows_is_fitted_without_them(n_classes):
    age = number(400)
    basis = basis_of([age])
    target = 2 * age.values + RNG.normal(size=400) * 0.3
    if n_classes > 1:
        target = np.searchsorted([0.0, 1.5][: n_classes - 1], target)
    left, known = expected(basis[:300], target[:300], basis[300:], n_classes)
    assert left.shape == (1 if n_classes < 3 else 3, 300)
    if n_classes == 1:
        assert np.corrcoef(known[0], target[300:])[0, 1] > 0.95
    elif n_classes == 2:
        assert np.mean((known[0] > 0.5) == target[300:]) > 0.85
    else:
        assert np.mean(known.argmax(axis=0) == target[300:]) > 0.8
    other = expected(basis[:300], target[:300], basis[300:] * 0, n_classes)[0]
    assert np.allclose(other, left)


def test_what_is_expected_of_times_is_a_risk():
    age = number(400)
    times = RNG.exponential(size=400) * np.exp(-age.values)
    basis = basis_of([age])
    part = Censored(times[:300], np.ones(300, np.bool_))
    left, known = expected(basis[:300], part, basis[300:], 1)
    assert left.shape == (1, 300)
    assert np.corrcoef(known[0], age.values[300:])[0, 1] > 0.9
