"""The learner of base models: its contract, its tables of numbers, its estimators."""

import sys
from dataclasses import replace

import numpy as np
import pytest
from sklearn import get_config

from srs_ooc.base.errors import UsageError
from srs_ooc.base.records import Candidates, Iteration, Outcome, RowSplit, Subspace
from srs_ooc.evidence.tally import ModelScores
from srs_ooc.learners.tree_learner import Columns
from srs_ooc.methods.models.model_learner import EstimatorLearner, ModelParams, json_object
from srs_ooc.methods.models.models import (
    BaseModel,
    DecodedBlock,
    Target,
    make_estimator,
)
from srs_ooc.methods.rase.criteria import InformationCriterion
from srs_ooc.samplers.base import LOSS
from srs_ooc.testing import check_learner
from srs_ooc.trees.block import Block

N_ROWS = 30
ROWS = np.arange(N_ROWS)


def model(**given):
    return ModelParams.restored({"model_importance": "subspaces", "model_folds": 3} | given)


@pytest.mark.few(4)
@pytest.mark.parametrize("importance", ["subspaces", "permutation"])
@pytest.mark.parametrize(
    ("name", "n_classes"),
    [("knn", 3), ("svm", 2), ("linear", 1), ("sklearn.ensemble.ExtraTreesRegressor", 1)],
)
def test_it_keeps_to_the_contract_of_learners(name, n_classes, importance):
    params = '{"n_estimators":3}' if "Trees" in name else "{}"
    chosen = replace(model(model=name, model_params=params), model_importance=importance)
    values = ROWS % n_classes if n_classes > 1 else np.sin(ROWS)
    learner = EstimatorLearner(chosen, Target(values, n_classes), ROWS % 3)
    check_learner(learner, N_ROWS, n_columns=5)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("name", "criterion", "n_classes"),
    [
        ("lda", InformationCriterion("ric"), 2),
        ("knn", InformationCriterion("ric"), 2),
        ("linear", InformationCriterion("ebic", 0.5, 1000), 3),
        ("linear", InformationCriterion("ebic", 0.5, 1000), 1),
    ],
)
def test_it_keeps_to_the_contract_where_a_criterion_judges(name, criterion, n_classes):
    values = ROWS % n_classes if n_classes > 1 else np.sin(ROWS)
    learner = EstimatorLearner(model(model=name), Target(values, n_classes), ROWS % 3)
    check_learner(learner, N_ROWS, n_columns=5, criteria=(criterion,))


def test_a_learner_that_knows_no_criterion_breaks_the_contract_of_one():
    learner = EstimatorLearner(model(model="knn"), Target(ROWS % 2, 2), ROWS % 3)

    class Deaf:
        provides = learner.provides - {LOSS}

        def fit(self, block, columns, iteration):
            return replace(learner.fit(block, columns, iteration), losses=None)

    with pytest.raises(AssertionError, match="losses"):
        check_learner(Deaf(), N_ROWS, n_columns=5, criteria=(InformationCriterion("ric"),))


@pytest.mark.parametrize(("name", "n_classes"), [("knn", 3), ("knn", 1), ("linear", 2)])
def test_candidates_are_judged_by_the_errors_of_models_on_rows_held_out(name, n_classes):
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 250, (6, 60)).astype(np.uint8)
    values = codes[1] / 50.0 if n_classes == 1 else (codes[1] // 90) % n_classes
    target = Target(values.astype(np.int32) if n_classes > 1 else values, n_classes)
    learner = EstimatorLearner(model(model=name), target)
    rows = np.arange(60, dtype=np.int32)
    splits = tuple(RowSplit(rows[rows % 3 != k], rows[rows % 3 == k]) for k in range(3))
    subsets = [[0, 2], [1, 4], [3], [1, 2, 5]]
    candidates = Candidates(
        np.concatenate(subsets).astype(np.int32), np.array([0, 2, 4, 5, 8]), splits
    )
    features = np.arange(6, dtype=np.uint32)
    outcome = learner.fit(
        block_of(codes),
        Columns(features, features),
        Iteration(0, Subspace(features, candidates=candidates), 3),
    )

    def loss(members):
        total = 0.0
        for split in splits:
            x = codes[members].T.astype(float)
            x = (x - x[split.fitted].mean(0)) / x[split.fitted].std(0)
            estimator = make_estimator(name, {}, is_regression=n_classes == 1)
            said = estimator.fit(x[split.fitted], values[split.fitted]).predict(x[split.predicted])
            off = said - values[split.predicted]
            total += float((off * off if n_classes == 1 else off != 0).sum())
        return total / 60

    expected = [loss(members) for members in subsets]
    best = int(np.argmin(expected))
    assert outcome.losses[best] == pytest.approx(expected[best])
    assert np.flatnonzero(np.isfinite(outcome.losses)).tolist() == [best]
    assert best in (1, 3)


def block_of(columns, n_values=0):
    block = Block(len(columns), len(columns[0]), 1, tiled=False, n_values=n_values)
    codes = block.codes.view(np.uint8).reshape(-1, len(columns[0]))
    codes[: len(columns)] = columns
    return block


def test_columns_are_standardised_by_the_rows_fitted_on_and_missing_ones_are_their_mean():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 50, (4, N_ROWS)).astype(np.uint8)
    codes[1, ::4] = 255
    codes[2] = 7
    values = np.sort(rng.normal(1e6, 1e3, (4, 50)), axis=1) * np.array(
        [[1], [1e300], [1], [1e-300]]
    )
    block = block_of(codes, n_values=50)
    block.values[:4] = values
    fitted, held = ROWS[5:], ROWS[:5]
    train, rest = DecodedBlock.of(block, 4).standardised(fitted, held)
    for j in (0, 1, 3):
        known = codes[j] != 255
        exact = np.where(
            known, values[j] / values[j].max() @ np.eye(50)[:, np.where(known, codes[j], 0)], 0
        )
        among = exact[fitted][known[fitted]]
        wanted = np.where(known, (exact - among.mean()) / among.std(), 0.0)
        np.testing.assert_allclose(train[:, j], wanted[fitted], atol=1e-6)
        np.testing.assert_allclose(rest[:, j], wanted[held], atol=1e-6)
    assert not train[:, 2].any()
    assert not rest[:, 2].any()


def test_the_loss_of_whole_votes_is_the_error_rate_and_that_of_shares_half_the_brier_score():
    target = Target(np.array([0, 1, 2, 1]), 3)
    votes = np.eye(3)[[0, 2, 2, 1]]
    assert target.losses(votes, np.arange(4)).tolist() == [0, 1, 0, 0]
    shares = np.array([[0.5, 0.5, 0.0]])
    assert target.losses(shares, np.array([0]))[0] == pytest.approx(0.25)
    numbers = Target(np.array([1.0, 3.0]), 1)
    assert numbers.losses(np.array([[1.0], [5.0]]), np.arange(2)).tolist() == [0, 4]
    assert np.isfinite(numbers.losses(np.array([[np.nan], [np.inf]]), np.arange(2))).all()


def test_classes_absent_from_the_rows_fitted_on_get_no_share():
    target = Target(np.array([0, 0, 2, 2, 1]), 3)
    columns = np.array([[0.0], [0.1], [1.0], [1.1]])
    linear = BaseModel("linear", {}, target)
    shares = linear.fit(columns, np.arange(4), 1)(columns)
    assert not shares[:, 1].any()
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    of_one = linear.fit(columns[:2], np.arange(2), 1)
    assert of_one(columns).tolist() == [[1, 0, 0]] * 4


@pytest.mark.parametrize("regression", [False, True])
def test_a_model_asked_of_no_rows_predicts_none(regression):
    target = Target(ROWS / 30.0, 1) if regression else Target(ROWS % 2, 2)
    predict = BaseModel("knn", {}, target).fit(np.arange(30.0)[:, None], ROWS, 0)
    assert predict(np.zeros((0, 1))).shape == (0, target.n_classes)


@pytest.mark.parametrize(
    ("name", "params", "regression", "says"),
    [
        ("forest", {}, False, "found 'forest'"),
        ("no.such.Module", {}, False, "could not import it: ModuleNotFoundError"),
        ("sklearn.svm.NoSuch", {}, False, "AttributeError"),
        ("os.path.join", {}, False, "found function"),
        ("sklearn.svm.SVR", {}, False, "expected a classifier"),
        ("linear", {"k": 3}, False, "found k. Leave out"),
        ("linear", {"n_jobs": 2}, False, "n_jobs 1"),
    ],
)
def test_what_is_no_estimator_for_the_target_is_refused_by_name(name, params, regression, says):
    with pytest.raises(UsageError, match=r"^(--model|model_params): ") as caught:
        make_estimator(name, params, is_regression=regression)
    assert says in str(caught.value)


def test_parameters_that_a_fit_refuses_are_refused_with_its_reason():
    target, columns = Target(ROWS % 2, 2), np.arange(30.0)[:, None]
    model = BaseModel("knn", {"n_neighbors": -1}, target)
    for _ in range(2):
        with pytest.raises(UsageError, match="n_neighbors"):
            model.fit(columns, ROWS, 0)


def test_estimators_made_again_and_again_are_those_of_the_constructor():
    """Random states that nobody gave are seeded by the key, in nested estimators too."""
    known, columns = ROWS % 2, np.random.default_rng(0).normal(size=(30, 3))
    params = {"n_estimators": 3, "random_state": 7}
    target = Target(known, 2)
    forest = BaseModel("sklearn.ensemble.RandomForestClassifier", params, target)
    assert [forest._fitted(columns, known, key).random_state for key in (1, 2)] == [7, 7]
    machine = BaseModel("sklearn.svm.SVC", {"C": 2.0}, target)
    first, again, other = (machine._fitted(columns, known, key) for key in (1, 1, 2))
    assert first is not again
    assert first.C == 2.0
    assert first.random_state == again.random_state != other.random_state
    assert get_config()["assume_finite"] is False


def test_nothing_is_imported_from_the_current_folder_unless_pythonpath_names_it(
    tmp_path, monkeypatch
):
    (tmp_path / "planted_module.py").write_text(
        "from sklearn.svm import SVC as Model\nopen('ran', 'w').close()\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", str(tmp_path), *sys.path])
    with pytest.raises(UsageError, match="could not import it"):
        make_estimator("planted_module.Model", {}, is_regression=False)
    assert not (tmp_path / "ran").exists()
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    try:
        assert make_estimator("planted_module.Model", {}, is_regression=False) is not None
    finally:
        sys.modules.pop("planted_module", None)


@pytest.mark.parametrize("text", ["[1]", "{", "3", '{"a": NaN}'])
def test_parameters_that_are_no_json_object_are_refused(text):
    with pytest.raises(UsageError, match="model_params: expected a JSON object"):
        json_object("model_params", text)


def test_one_object_has_one_text():
    texts = ['{"b": 1, "a": [2]}', '{"a":[2],"b":1}', {"b": 1, "a": [2]}]
    assert {json_object("model_params", text) for text in texts} == {'{"a":[2],"b":1}'}


def test_scores_and_standard_errors_are_those_of_two_samples_with_one_variance():
    rng = np.random.default_rng(5)
    scores, n_features, held, losses = ModelScores(9, by_subspace=True), 9, [], []
    for t in range(40):
        features = np.sort(rng.choice(n_features - 1, 3, replace=False)).astype(np.uint32)
        loss = float(rng.random())
        scores.absorb(t, Outcome(features, np.zeros(3, np.int64), losses=np.array([loss])))
        held.append(np.isin(np.arange(n_features), features))
        losses.append(loss)
    is_in, seen = np.array(held), np.array(losses)
    score, error = scores.scores(is_in.sum(axis=0), slice(0, n_features))
    for j in range(n_features - 1):
        x, y = seen[is_in[:, j]], seen[~is_in[:, j]]
        within = (len(x) * x.var() + len(y) * y.var()) / (len(seen) - 2)
        assert score[j] == pytest.approx(y.mean() - x.mean())
        assert error[j] == pytest.approx(np.sqrt(within * (1 / len(x) + 1 / len(y))))
    assert np.isnan(score[-1])  # never drawn
    assert np.isnan(error[-1])


def test_a_loss_is_squared_as_the_features_of_its_subspace_have_it():
    for loss in np.random.default_rng(0).uniform(0, 1, (4000, 1)):
        scores = ModelScores(1, by_subspace=True)
        scores.absorb(0, Outcome(np.zeros(1, np.uint32), np.zeros(1, np.int64), losses=loss))
        assert scores.squares[0] == scores._sum_of_squares


def test_scores_by_permutation_are_means_with_their_standard_errors():
    seen = np.array([0.5, -0.25, 0.125])
    scores = ModelScores(2, by_subspace=False)
    for t, rise in enumerate(seen):
        scores.absorb(t, Outcome(np.array([1], np.uint32), np.array([int(rise * 2**36)])))
    score, error = scores.scores(np.array([0, 3]), slice(0, 2))
    assert score[1] == seen.mean()
    assert error[1] == pytest.approx(seen.std(ddof=1) / np.sqrt(3))
    assert np.isnan(score[0])
