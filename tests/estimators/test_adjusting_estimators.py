"""Selectors that are told which columns are covariates, by name or place, in any table."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from srs_ooc import SRSClassifier, SRSSelector

N_ROWS, N_FEATURES, TRUE = 300, 60, [57, 58, 59]


@pytest.fixture(scope="module")
def study():
    rng = np.random.default_rng(1)
    age, sex = rng.normal(size=N_ROWS), rng.choice(["m", "f"], N_ROWS)
    curve = age**2 - 1
    X = rng.normal(size=(N_ROWS, N_FEATURES))
    X[:, :30] += 0.8 * curve[:, None]
    y = (1.5 * curve + X[:, TRUE].sum(axis=1) + rng.logistic(size=N_ROWS) > 0).astype(int)
    return X, y, age, sex


def fitted(X, y, **how):
    return SRSSelector(iterations=40, **how).fit(X, y)


def test_columns_by_place_are_no_features(study):
    X, y, age, _ = study
    table = np.insert(X, 10, age, axis=1)
    assert fitted(table, y).support_.sum() > 20
    found = fitted(table, y, adjust=[10])
    assert set(found.get_support(indices=True)) >= {place + 1 for place in TRUE}
    assert found.support_.sum() <= 5
    assert not found.support_[10]
    assert found.ranking_[10] == found.n_features_in_ == N_FEATURES + 1
    assert found.feature_importances_[10] == 0
    assert np.isnan(found.q_values_[10])
    assert sorted(np.delete(found.ranking_, 10)) == list(range(1, N_FEATURES + 1))
    assert found.transform(table).shape == (N_ROWS, found.support_.sum())


@pytest.mark.few(1)
@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_columns_by_name_may_be_categories(study, library):
    X, y, age, sex = study
    package = pytest.importorskip(library)
    columns = {f"g{i}": X[:, i] for i in range(N_FEATURES)} | {"age": age, "sex": sex}
    make = package.table if library == "pyarrow" else package.DataFrame
    expected = None
    for adjust in (["age", "sex"], "age,sex", ("sex", "age")):
        found = fitted(make(columns), y, adjust=adjust)
        expected = found.support_ if expected is None else expected
        assert (found.support_ == expected).all()
    assert set(np.flatnonzero(expected)) >= set(TRUE)
    assert expected.sum() <= 5


def test_a_pipeline_selects_beside_covariates(study):
    X, y, age, _ = study
    selector = SRSSelector(iterations=20, adjust=[0], min_features_to_select=1)
    model = make_pipeline(selector, LogisticRegression())
    assert model.fit(np.column_stack([age, X]), y).score(np.column_stack([age, X]), y) > 0.6


@pytest.mark.parametrize(
    ("adjust", "said"), [(["no"], "found 'no'"), ([99], "found 99"), (range(60), "found none")]
)
def test_what_is_no_column_is_refused(study, adjust, said):
    X, y, _, _ = study
    with pytest.raises(ValueError, match=f"adjust: expected .*{said}"):
        fitted(X, y, adjust=adjust)


def test_an_ensemble_that_predicts_has_no_covariates(study):
    X, y, _, _ = study
    with pytest.raises(ValueError, match="judge tests only"):
        SRSClassifier(iterations=10, adjust=[0]).fit(X, y)
