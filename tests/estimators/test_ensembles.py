import csv
import pickle

import joblib
import numpy as np
import pytest
from command import srs_ooc as command
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import train_test_split

import srs_ooc
from srs_ooc.base.errors import InputError, RunError
from srs_ooc.estimators import SRSClassifier, SRSRegressor

FAST = {"iterations": 100}


def table(n_rows=150, n_features=30, seed=0):
    rng = np.random.default_rng(seed)
    values = rng.standard_normal((n_rows, n_features))
    return values, values[:, 0] + values[:, 1] + values[:, 2]


def write_csv(path, values, target):
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*(f"f{i}" for i in range(values.shape[1])), "target"])
        writer.writerows(
            [*map(repr, row), y] for row, y in zip(values.tolist(), target, strict=False)
        )


def predicted_by_the_command_line(folder, train, target, test):
    write_csv(folder / "train.csv", train, target)
    write_csv(folder / "test.csv", test, target[: len(test)])
    command("ingest", folder / "train.csv", folder / "t.zarr")
    command("run", folder / "t.zarr", "--iterations", 100, "--save-trees")
    command("predict", folder / "t.run", folder / "test.csv", folder / "out.csv")
    with (folder / "out.csv").open() as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
def test_a_classifier_predicts_as_the_command_line_to_the_bit(tmp_path):
    values, score = table()
    labels = np.array(["low", "high", "mid"])[np.digitize(score, [-1, 1])]
    train, test, y, _ = train_test_split(values, labels, random_state=0)
    said = predicted_by_the_command_line(tmp_path, train, y.tolist(), test)
    fitted = SRSClassifier(**FAST).fit(train, y)
    assert fitted.predict(test).tolist() == [row["prediction"] for row in said]
    expected = [[float(row[f"probability_{c}"]) for c in fitted.classes_] for row in said]
    np.testing.assert_array_equal(fitted.predict_proba(test), expected)
    frame = srs_ooc.open_run(tmp_path / "t.run").predict(tmp_path / "test.csv", "records")
    numbers = [n for n in said[0] if n.startswith("probability")]
    assert frame == [row | {n: float(row[n]) for n in numbers} for row in said]


@pytest.mark.slow
def test_a_regressor_predicts_as_the_command_line_to_the_bit(tmp_path):
    values, score = table()
    train, test, y, truth = train_test_split(values, score, random_state=0)
    said = predicted_by_the_command_line(tmp_path, train, list(map(repr, y.tolist())), test)
    fitted = SRSRegressor(**FAST).fit(train, y)
    found = fitted.predict(test)
    np.testing.assert_array_equal(found, [float(row["prediction"]) for row in said])
    assert fitted.score(test, truth) == r2_score(truth, found) > 0.5


def test_labels_of_any_kind_come_back():
    values, score = table()
    for labels in (score > 0, np.where(score > 0, 7, -3), np.where(score > 0, "yes", "no")):
        fitted = SRSClassifier(**FAST).fit(values, labels)
        predicted = fitted.predict(values)
        assert predicted.dtype == fitted.classes_.dtype == labels.dtype
        assert accuracy_score(labels, predicted) == fitted.score(values, labels) == 1.0


def test_an_ensemble_is_fitted_on_a_store_and_predicts_stores_and_arrays(tmp_path):
    values, score = table()
    labels = np.where(score > 0, "b", "a")
    srs_ooc.ingest(values[:100], tmp_path / "t.zarr", target=labels[:100].tolist())
    srs_ooc.ingest(values[100:], tmp_path / "u.zarr", target=labels[100:].tolist())
    of_store = SRSClassifier(**FAST).fit(tmp_path / "t.zarr")
    of_array = SRSClassifier(**FAST).fit(values[:100], labels[:100])
    assert of_store.classes_.tolist() == ["a", "b"]
    expected = of_array.predict_proba(values[100:])
    np.testing.assert_array_equal(of_store.predict_proba(tmp_path / "u.zarr"), expected)
    np.testing.assert_array_equal(of_array.predict_proba(tmp_path / "u.zarr"), expected)
    training = of_store.predict_proba(srs_ooc.open_store(tmp_path / "t.zarr"))
    np.testing.assert_array_equal(training, of_array.predict_proba(values[:100]))
    with pytest.raises(ValueError, match="expected a target of numbers"):
        SRSRegressor(**FAST).fit(tmp_path / "t.zarr")


@pytest.mark.filterwarnings("ignore:X does not have valid feature names:UserWarning")
def test_a_regressor_is_fitted_on_a_store(tmp_path):
    values, score = table()
    srs_ooc.ingest(values, tmp_path / "t.zarr", target=score)
    found = SRSRegressor(**FAST).fit(tmp_path / "t.zarr").predict(values)
    np.testing.assert_array_equal(found, SRSRegressor(**FAST).fit(values, score).predict(values))
    with pytest.raises(ValueError, match="expected a target of classes"):
        SRSClassifier(**FAST).fit(tmp_path / "t.zarr")


@pytest.mark.slow
def test_frames_with_categories_are_predicted_by_their_texts():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    arrow = pytest.importorskip("pyarrow")
    values, score = table()
    frame = pandas.DataFrame(values[:, 3:10]).add_prefix("f")
    frame["colour"] = np.where(score > 0, "red", "blue")
    labels = (score > 0).astype(int)
    options = FAST | {"max_features": 1}  # so that every column is used
    fitted = SRSClassifier(**options).fit(frame, labels)
    expected = fitted.predict_proba(frame)
    assert fitted.score(frame, labels) == 1.0
    columns = frame.to_dict("list")
    for other in (polars.DataFrame(columns), arrow.table(columns)):
        np.testing.assert_array_equal(fitted.predict_proba(other), expected)
        np.testing.assert_array_equal(
            SRSClassifier(**options).fit(other, labels).predict_proba(other), expected
        )
    unseen = frame.assign(colour="green")
    assert np.isfinite(fitted.predict_proba(unseen)).all()
    with pytest.raises(ValueError, match="column 'colour': expected categories"):
        fitted.predict(frame.assign(colour=1.0))
    with pytest.raises(ValueError, match="expected numbers, as in training"):
        fitted.predict(frame.assign(f0="x"))


@pytest.mark.parametrize("dump", [pickle.dumps, None])
def test_a_pickled_ensemble_predicts_the_same(tmp_path, dump):
    values, score = table()
    fitted = SRSRegressor(**FAST).fit(values, score)
    if dump is None:
        joblib.dump(fitted, tmp_path / "m.joblib")
        again = joblib.load(tmp_path / "m.joblib")
    else:
        again = pickle.loads(dump(fitted))
    np.testing.assert_array_equal(again.predict(values), fitted.predict(values))
    assert len(pickle.dumps(fitted)) < 2_000_000


def test_a_class_that_weighs_more_is_predicted_more():
    rng = np.random.default_rng(0)
    values, labels = rng.standard_normal((200, 10)), np.array([0, 1] * 100)
    made = [
        SRSClassifier(**FAST, class_weight=weight, min_samples_leaf=20).fit(values, labels)
        for weight in ({0: 1.0, 1: 100.0}, {0: 100.0}, None, "balanced")
    ]
    shares = [fitted.predict(values).mean() for fitted in made]
    assert shares[0] > 0.9
    assert shares[1] < 0.1
    assert shares[2] == shares[3]


def test_a_result_predicts_frames_by_name_and_arrays_by_place(tmp_path):
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    values, score = table()
    labels = np.where(score > 0, "b", "a").tolist()
    srs_ooc.ingest(values, tmp_path / "t.zarr", target=labels)
    result = srs_ooc.run(tmp_path / "t.zarr", iterations=100, save_trees=True)
    found = result.predict(values)
    assert list(found.columns) == ["row_id", "prediction", "probability_a", "probability_b"]
    assert found["prediction"].tolist() == labels
    frame = pandas.DataFrame(values).add_prefix("f")
    pandas.testing.assert_frame_equal(result.predict(frame[frame.columns[::-1]]), found)
    pandas.testing.assert_frame_equal(result.predict(tmp_path / "t.zarr"), found)
    assert isinstance(result.predict(frame, "polars"), polars.DataFrame)
    with pytest.raises(InputError, match="missing, 'f0' first"):
        result.predict(frame.drop(columns="f0"))
    assert result.predict(values[:1], "records")[0]["row_id"] == "1"


def test_a_run_without_trees_predicts_nothing(tmp_path):
    values, score = table()
    srs_ooc.ingest(values, tmp_path / "t.zarr", target=score)
    result = srs_ooc.run(tmp_path / "t.zarr", iterations=5)
    with pytest.raises(RunError, match="saves its trees"):
        result.predict(values)
