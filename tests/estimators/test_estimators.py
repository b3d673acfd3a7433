"""Estimators are runs of the same options to the bit, and keep to what scikit-learn asks."""

import csv
import inspect
import pickle
import re
import shutil
import tempfile

import joblib
import numpy as np
import pytest
from command import json_of
from command import srs_ooc as command
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    StratifiedKFold,
    cross_val_score,
    cross_validate,
    train_test_split,
)
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

import srs_ooc
from srs_ooc.base.errors import BudgetError, InputError, RunError, StoreError
from srs_ooc.estimators import SRSClassifier, SRSRegressor, SRSSelector
from srs_ooc.learners.tree_learner import TreeParams, Trial
from srs_ooc.methods.models import model_learner
from srs_ooc.methods.models.model_learner import ModelParams
from srs_ooc.runs.spec import declared
from srs_ooc.samplers.base import method_of, methods

FAST = {"iterations": 100, "subspace_size": 15}
NOTHING = pytest.mark.filterwarnings("ignore:No features were selected:UserWarning")


def table(n_rows=120, n_features=40, seed=0):
    rng = np.random.default_rng(seed)
    values = rng.standard_normal((n_rows, n_features))
    return values, (values[:, :3].sum(axis=1) > 0).astype(int)


def same(a, b):
    np.testing.assert_array_equal(a.ranking_, b.ranking_)
    np.testing.assert_array_equal(a.support_, b.support_)
    np.testing.assert_array_equal(a.feature_importances_, b.feature_importances_)
    assert hasattr(a, "q_values_") == hasattr(b, "q_values_")
    if hasattr(a, "q_values_"):
        np.testing.assert_array_equal(a.q_values_, b.q_values_)


def write_csv(path, values, labels, names):
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*names, "target"])
        writer.writerows(
            [*map(repr, row), label] for row, label in zip(values.tolist(), labels, strict=False)
        )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_rows", "options"),
    [
        (120, {"fdr": 0.2, "random_state": 5}),
        (600, {"judge": "probe", "probe_min_draws": 3, "alpha": 0.25}),
        (120, {"method": "rs", "max_features": "sqrt", "thresholds": "value"}),
    ],
)
@pytest.mark.usefixtures("all_closing_trees")
def test_a_fit_is_the_run_of_the_command_line_to_the_bit(tmp_path, n_rows, options):
    values, labels = table(n_rows)
    write_csv(tmp_path / "t.csv", values, labels, [f"f{i}" for i in range(40)])
    command("ingest", tmp_path / "t.csv", tmp_path / "t.zarr")
    flags = [
        text
        for name, value in (FAST | options).items()
        for text in (f"--{'seed' if name == 'random_state' else name.replace('_', '-')}", value)
        if name != "thresholds"
    ]
    flags += ["--with", f"thresholds={options['thresholds']}"] if "thresholds" in options else []
    command("run", tmp_path / "t.zarr", *flags)
    said = {record["name"]: record for record in json_of("features", tmp_path / "t.run", "--json")}
    fitted = SRSSelector(**FAST, **options).fit(values, labels)
    for i in range(40):
        record = said[f"f{i}"]
        assert fitted.ranking_[i] == record["rank"]
        assert fitted.support_[i] == record["selected"]
        assert fitted.feature_importances_[i] == (record["importance"] or 0.0)
        if "judge" not in options:
            q_value = record["q_value"]
            assert np.isnan(fitted.q_values_[i]) if q_value is None else (
                fitted.q_values_[i] == q_value
            )  # fmt: skip
            found = dict(zip(fitted.effects_.dtype.names, fitted.effects_[i].tolist(), strict=True))
            expected = {name: record[name] for name in found}
            assert {n: None if v != v else v for n, v in found.items()} == expected


@pytest.mark.slow
def test_every_kind_of_table_gives_the_same_fit(tmp_path):
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    arrow = pytest.importorskip("pyarrow")
    values, labels = table()
    names = [f"f{i}" for i in range(40)]
    store = tmp_path / "t.zarr"
    srs_ooc.ingest(values, store, target=labels)
    frame = pandas.DataFrame(values, columns=names)
    expected = SRSSelector(**FAST).fit(values, labels)
    assert expected.support_.any()
    assert not hasattr(expected, "feature_names_in_")
    wanted = values[:, expected.support_]
    for made in (
        frame, polars.DataFrame(frame.to_dict("list")), arrow.table(frame.to_dict("list")),
        sparse.csr_matrix(values), sparse.coo_array(values),
    ):  # fmt: skip
        fitted = SRSSelector(**FAST).fit(made, labels)
        same(fitted, expected)
        found = fitted.transform(made)
        np.testing.assert_array_equal(found.toarray() if sparse.issparse(found) else found, wanted)
        if not sparse.issparse(made):
            assert list(fitted.feature_names_in_) == names
    for made in (store, str(store), srs_ooc.open_store(store)):
        fitted = SRSSelector(**FAST).fit(made)
        same(fitted, expected)
        assert fitted.n_features_in_ == 40
        np.testing.assert_array_equal(fitted.transform(made), wanted)
    np.testing.assert_array_equal(expected.transform(store), wanted)


def test_frames_of_every_library_must_have_the_columns_of_the_fit():
    polars, arrow = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    values, labels = table()
    columns = {f"f{i}": values[:, i].tolist() for i in range(40)}
    others = {f"g{i}": values[:, i].tolist() for i in range(40)}
    for made in (polars.DataFrame, arrow.table):
        fitted = SRSSelector(**FAST).fit(made(columns), labels)
        with pytest.raises(ValueError, match="feature names should match"):
            fitted.transform(made(others))
        with pytest.raises(ValueError, match="X has 1 features"):
            fitted.transform(made({"f0": columns["f0"]}))
        with pytest.raises(ValueError, match="a minimum of 2"):
            SRSSelector(**FAST).fit(made({"a": [1.0]}), [1])


@pytest.mark.parametrize("library", ["pandas", "pyarrow"])
def test_a_frame_with_two_columns_of_one_name_is_one_message(tmp_path, library):
    made, values = pytest.importorskip(library), np.arange(12.0).reshape(4, 3)
    labels, names = [0, 1, 0, 1], ["a", "b", "a"]
    if library == "pandas":
        fitted = made.DataFrame(values, columns=["a", "b", "c"])
        frames = [made.DataFrame(values, columns=names), made.DataFrame(values, columns=[7, 8, 7])]
    else:
        fitted = made.table({"a": values[:, 0], "b": values[:, 1], "c": values[:, 2]})
        frames = [made.table(list(values.T), names=names)]
    message = (
        r"expected distinct column names, found '[a7]' at 1 and 3\. "
        r"Rename them(, as rename_repeated of ingest does)?\.$"
    )
    classifier = SRSClassifier(iterations=20).fit(fitted, labels)
    for frame in frames:
        for call in (
            lambda frame=frame: SRSSelector(iterations=20).fit(frame, labels),
            lambda frame=frame: SRSClassifier(iterations=20).fit(frame, labels),
            lambda frame=frame: classifier.transform(frame),
            lambda frame=frame: classifier.predict(frame),
        ):
            with pytest.raises(ValueError, match=message) as raised:
                call()
            assert raised.value.__cause__ is raised.value.__context__ is None
        with pytest.raises(InputError, match=message):
            srs_ooc.ingest(frame, tmp_path / "t.zarr", target=labels)


@pytest.mark.parametrize("kind", ["array", "sparse", "pandas", "polars", "pyarrow", "store"])
@pytest.mark.parametrize("estimator", [SRSSelector, SRSClassifier, SRSRegressor])
def test_nothing_is_done_before_a_fit(estimator, kind):
    values = np.arange(12.0).reshape(4, 3)
    columns = {"a": values[:, 0], "b": values[:, 1]}
    if kind in ("pandas", "polars", "pyarrow"):
        library = pytest.importorskip(kind)
        given = getattr(library, "DataFrame", None) or library.table
        given = given(columns)
    else:
        given = {"array": values, "sparse": sparse.csr_matrix(values), "store": "t.zarr"}[kind]
    for name in ("transform", "predict", "predict_proba"):
        if hasattr(estimator, name):
            with pytest.raises(NotFittedError, match="not fitted yet"):
                getattr(estimator(), name)(given)


def test_texts_are_categories_in_frames_and_from_stores(tmp_path):
    pandas = pytest.importorskip("pandas")
    values, labels = table()
    frame = pandas.DataFrame(values[:, 3:20]).add_prefix("f")
    frame.insert(4, "colour", np.where(labels == 1, "red", "blue").astype(object))
    frame.loc[0, "colour"] = None
    fitted = SRSSelector(**FAST, n_features_to_select=1).fit(frame, labels)
    assert list(fitted.get_feature_names_out()) == ["colour"]
    srs_ooc.ingest(frame, tmp_path / "t.zarr", target=labels.tolist())
    found = fitted.transform(tmp_path / "t.zarr")
    assert found.shape == (120, 1)
    assert found[0, 0] is None
    assert found[1:, 0].tolist() == frame["colour"].tolist()[1:]


def test_a_store_takes_nothing_beside_it_and_must_have_the_features_of_the_fit(tmp_path):
    values, labels = table()
    srs_ooc.ingest(values, tmp_path / "t.zarr", target=labels)
    others = [f"g{i}" for i in range(40)]
    srs_ooc.ingest(values, tmp_path / "u.zarr", target=labels, names=others)
    with pytest.raises(ValueError, match="to be None with a store"):
        SRSSelector(**FAST).fit(tmp_path / "t.zarr", labels)
    fitted = SRSSelector(**FAST).fit(tmp_path / "t.zarr")
    with pytest.raises(ValueError, match="with the 40 features of the fit"):
        fitted.transform(tmp_path / "u.zarr")


def test_output_is_as_set_and_names_go_along(tmp_path):
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    values, labels = table()
    frame = pandas.DataFrame(values, index=range(1000, 1120)).add_prefix("g")
    fitted = SRSSelector(**FAST).fit(frame, labels)
    names = list(fitted.get_feature_names_out())
    assert names == [f"g{i}" for i in fitted.get_support(indices=True)]
    found = fitted.set_output(transform="pandas").transform(frame)
    assert (list(found.columns), list(found.index)) == (names, list(frame.index))
    assert isinstance(fitted.set_output(transform="polars").transform(frame), polars.DataFrame)
    srs_ooc.ingest(frame, tmp_path / "t.zarr", target=labels.tolist())
    found = fitted.set_output(transform="pandas").transform(tmp_path / "t.zarr")
    assert isinstance(found, pandas.DataFrame)
    assert list(found.columns) == names


def test_where_nothing_is_selected_no_column_is_left_and_a_warning_says_so(tmp_path):
    values, _ = table()
    labels = np.random.default_rng(8).integers(0, 2, 120)
    fitted = SRSSelector(**FAST, fdr=0.01).fit(values, labels)
    assert not fitted.get_support().any()
    srs_ooc.ingest(values, tmp_path / "t.zarr", target=labels)
    for made in (values, tmp_path / "t.zarr"):
        with pytest.warns(UserWarning, match="min_features_to_select=1") as said:
            assert fitted.transform(made).shape == (120, 0)
        assert len(said) == 1


def test_a_fold_in_which_nothing_is_selected_gets_the_best_by_rank_where_asked():
    values, labels = table()[0], np.random.default_rng(8).integers(0, 2, 120)
    model = make_pipeline(SRSSelector(**FAST, fdr=0.01), LogisticRegression())
    with (
        pytest.warns(UserWarning, match="min_features_to_select"),
        pytest.raises(ValueError, match="0 feature"),
    ):
        model.fit(values, labels)  # as scikit-learn: no column to fit on
    model.set_params(srsselector__min_features_to_select=2).fit(values, labels)
    selector = model[0]
    assert sorted(selector.ranking_[selector.support_]) == [1, 2]
    assert selector.n_selected_ == 0
    assert np.all(cross_val_score(model, values, labels, cv=2, error_score="raise") > 0)


def test_what_is_selected_stays_where_it_is_enough():
    values, labels = table()
    plain = SRSSelector(**FAST).fit(values, labels)
    assert plain.n_selected_ > 1
    same(SRSSelector(**FAST, min_features_to_select=1).fit(values, labels), plain)
    for wrong in (-1, 41, 0.5, None):
        with pytest.raises(ValueError, match="min_features_to_select: expected a whole number"):
            SRSSelector(**FAST, min_features_to_select=wrong).fit(values, labels)


@pytest.mark.parametrize("kind", [SRSSelector, SRSClassifier, SRSRegressor])
@pytest.mark.parametrize("missing", [None, float("nan")])
def test_a_missing_target_is_refused_as_scikit_learn_does(kind, missing):
    values, labels = table()
    for target in ([missing, *labels[1:].tolist()], [missing, *values[1:, 0].tolist()]):
        with pytest.raises(ValueError, match=r"Input.* contains NaN"):
            kind(**FAST).fit(values, target)
    texts = np.array([missing, *np.where(labels[1:], "a", "b")], dtype=object)
    with pytest.raises(ValueError, match=r"Input.* contains NaN"):
        kind(**FAST).fit(values, texts)


@pytest.mark.parametrize("kind", [SRSSelector, SRSClassifier])
def test_a_class_of_one_row_is_refused_as_by_ingest(kind):
    values, labels = table()
    texts = np.array(["unknown", *np.where(labels[1:], "a", "b")])
    with pytest.raises(ValueError, match=r"'unknown'.*min_class_rows=1 takes"):
        kind(**FAST).fit(values, texts)
    kind(**FAST, min_class_rows=1).fit(values, texts)


def test_the_best_by_rank_are_taken_where_a_number_is_asked():
    values, labels = table()
    fitted = SRSSelector(**FAST, n_features_to_select=7).fit(values, labels)
    assert sorted(fitted.ranking_[fitted.support_]) == list(range(1, 8))
    assert fitted.n_selected_ == SRSSelector(**FAST).fit(values, labels).support_.sum()
    for wrong in (0, 41, 2.5):
        with pytest.raises(ValueError, match="n_features_to_select: expected"):
            SRSSelector(**FAST, n_features_to_select=wrong).fit(values, labels)


def test_rows_of_weight_zero_are_left_out_and_equal_weights_are_none():
    values, labels = table()
    weights = np.ones(120)
    weights[::5] = 0
    used = weights > 0
    expected = SRSSelector(**FAST).fit(values[used], labels[used])
    same(SRSSelector(**FAST).fit(values, labels, sample_weight=weights), expected)
    same(SRSSelector(**FAST).fit(values[used], labels[used], sample_weight=[3.0] * 96), expected)
    with pytest.raises(ValueError, match=r"non-zero|not all zero"):
        SRSSelector(**FAST).fit(values, labels, sample_weight=np.zeros(120))
    with pytest.raises(ValueError, match="not negative"):
        SRSSelector(**FAST).fit(values, labels, sample_weight=-weights)


def test_weights_and_groups_are_those_of_a_store(tmp_path):
    values, labels = table()
    weights, groups = np.arange(1.0, 121), np.repeat(np.arange(40), 3)
    values, labels = np.repeat(values[::3], 3, axis=0), np.repeat(labels[::3], 3)
    srs_ooc.ingest(values, tmp_path / "t.zarr", target=labels, weights=weights, groups=groups)
    fitted = SRSSelector(**FAST).fit(values, labels, sample_weight=weights, groups=groups)
    same(fitted, SRSSelector(**FAST).fit(tmp_path / "t.zarr"))
    plain = SRSSelector(**FAST).fit(values, labels, sample_weight=weights)
    assert not np.array_equal(plain.q_values_, fitted.q_values_, equal_nan=True)


@pytest.mark.slow
@NOTHING
def test_weights_and_groups_are_routed_through_a_pipeline():
    values, labels = table()
    seen = []

    class Seen(SRSSelector):
        def fit(self, X, y=None, *, sample_weight=None, groups=None):
            seen.append((len(sample_weight), len(groups)))
            return super().fit(X, y, sample_weight=sample_weight, groups=groups)

    with config_context(enable_metadata_routing=True):
        selector = Seen(**FAST, n_features_to_select=3)
        selector.set_fit_request(sample_weight=True, groups=True)
        final = LogisticRegression().set_fit_request(sample_weight=False)
        final.set_score_request(sample_weight=True)
        model = make_pipeline(selector, final)
        params = {"sample_weight": np.ones(120), "groups": np.arange(120)}
        cross_val_score(model, values, labels, cv=3, params=params)
    assert seen == [(80, 80)] * 3


@NOTHING
def test_groups_that_folds_are_made_by_reach_the_selector_of_a_pipeline():
    """With no request of one's own, as they reach GroupKFold."""
    values, labels = table()
    groups = np.repeat(np.arange(40), 3)
    values, labels = np.repeat(values[::3], 3, axis=0), np.repeat(labels[::3], 3)
    with config_context(enable_metadata_routing=True):
        model = make_pipeline(SRSSelector(**FAST, n_features_to_select=3), LogisticRegression())
        found = cross_validate(
            model, values, labels, cv=GroupKFold(2), params={"groups": groups},
            return_estimator=True, return_indices=True,
        )  # fmt: skip
        for fitted, train in zip(found["estimator"], found["indices"]["train"], strict=True):
            given = {"X": values[train], "y": labels[train]}
            expected = SRSSelector(**FAST, n_features_to_select=3)
            same(fitted[0], expected.fit(**given, groups=groups[train]))
        declined = SRSSelector().set_fit_request(groups=False)
    assert SRSClassifier().get_metadata_routing().consumes("fit", ["groups"]) == {"groups"}
    assert not declined.get_metadata_routing().consumes("fit", ["groups"])


@pytest.mark.slow
@NOTHING
def test_a_grid_goes_over_the_parameters_of_a_run():
    values, labels = table()
    grid = {
        "srsselector__alpha": np.array([0.0, 0.5]),
        "srsselector__subspace_size": [np.int64(20)],
    }
    model = make_pipeline(SRSSelector(iterations=50), LogisticRegression())
    found = GridSearchCV(model, grid, cv=2, n_jobs=2).fit(values, labels)
    assert len(found.cv_results_["params"]) == 2
    assert found.score(values, labels) > 0.9
    model = make_pipeline(SRSSelector(**FAST), KNeighborsClassifier())
    for name, tried in {
        "fdr": [0.05, 0.2],
        "max_features": [5, "sqrt"],
        "method": ["srs", "rs"],
    }.items():
        grid = {f"srsselector__{name}": tried}
        found = GridSearchCV(model, grid, cv=2, error_score="raise", refit=False)
        assert np.all(found.fit(values, labels).cv_results_["mean_test_score"] > 0.5)


@pytest.mark.slow
@NOTHING
def test_selection_inside_the_folds_avoids_the_leak_of_selection_before_them():
    rng = np.random.default_rng(2)
    values, labels = rng.standard_normal((60, 500)), np.repeat([0, 1], 30)  # nothing to be found
    selector = SRSSelector(iterations=200, n_features_to_select=20)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    before = selector.fit_transform(values, labels)
    leaked = cross_val_score(LogisticRegression(), before, labels, cv=folds).mean()
    honest = cross_val_score(
        make_pipeline(clone(selector), LogisticRegression()), values, labels, cv=folds
    ).mean()
    assert leaked > 0.75
    assert honest < 0.65


def test_a_fitted_selector_is_small_and_survives_pickling():
    values, labels = table(n_features=2000)
    fitted = SRSSelector(**FAST).fit(values, labels)
    data = pickle.dumps(fitted)
    again = pickle.loads(data)
    same(again, fitted)
    np.testing.assert_array_equal(again.transform(values), fitted.transform(values))
    assert len(data) < 100 * 2000  # a value a feature; the table has 8 * 120 of them


def test_a_clone_has_the_parameters_and_nothing_learnt():
    fitted = SRSSelector(**FAST, alpha=0.25, options={"seed": 3}).fit(*table())
    cloned = clone(fitted)
    assert cloned.get_params() == fitted.get_params()
    assert not hasattr(cloned, "support_")


@pytest.mark.slow
def test_threads_do_not_change_the_result():
    values, labels = table()
    same(SRSSelector(**FAST, n_jobs=2).fit(values, labels), SRSSelector(**FAST).fit(values, labels))


@pytest.mark.slow
def test_random_state_is_the_seed_and_a_generator_gives_one():
    values, labels = table()
    by_seed = SRSSelector(**FAST, random_state=np.int64(4)).fit(values, labels)
    same(by_seed, SRSSelector(**FAST, random_state=4).fit(values, labels))
    first, second = (
        SRSSelector(**FAST, random_state=np.random.RandomState(1)).fit(values, labels)
        for _ in range(2)
    )
    same(first, second)
    differs = SRSSelector(**FAST, random_state=5).fit(values, labels)
    assert not np.array_equal(differs.feature_importances_, by_seed.feature_importances_)


def test_a_fit_leaves_nothing_in_its_folder(tmp_path, monkeypatch):
    values, labels = table()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    SRSClassifier(**FAST).fit(values, labels)
    (tmp_path / "own").mkdir()
    SRSSelector(**FAST, cache_dir=tmp_path / "own").fit(values, labels)
    with pytest.raises(ValueError, match="fdr: expected"):
        SRSSelector(**FAST, fdr=3).fit(values, labels)
    assert [path.name for path in tmp_path.rglob("*")] == ["own"]


def test_a_cache_folder_that_is_missing_or_full_is_a_clear_error(tmp_path, monkeypatch):
    values, labels = table()
    with pytest.raises(FileNotFoundError, match=r"cache_dir '.*no': expected a folder that exists"):
        SRSSelector(**FAST, cache_dir=tmp_path / "no").fit(values, labels)
    usage = shutil.disk_usage(tmp_path)._replace(free=1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    with pytest.raises(StoreError, match="of free disk"):
        SRSSelector(**FAST, cache_dir=tmp_path).fit(values, labels)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_cap_too_small_is_refused_and_a_large_table_in_memory_does_not_count():
    values, labels = table()
    held = np.ones((120, 200_000))  # 192 MB
    held[:, :40] = values
    with pytest.raises(BudgetError, match=r"memory_mb=\d+"):
        SRSSelector(**FAST, memory_mb=10).fit(values, labels)
    fitted = SRSSelector(iterations=5, subspace_size=20, memory_mb=150).fit(held, labels)
    assert fitted.n_iterations_ == 5


@pytest.mark.parametrize("wrong", [{"alpha": 2}, {"method": "no"}, {"options": {"alpa": 1}}])
def test_what_a_run_refuses_is_a_value_error_in_pythons_spelling(wrong):
    with pytest.raises(ValueError, match="expected") as caught:
        SRSSelector(**FAST, **wrong).fit(*table())
    assert "--" not in str(caught.value)


def test_every_option_of_a_run_is_a_parameter():
    """Those of other methods than SRS, and of other models than trees, are given in ``options``."""
    parameters = set(inspect.signature(SRSSelector).parameters) | {"seed"}  # random_state
    srs = set(method_of("srs").options())
    of_others = {name for _, method in methods() for name in method.options()} - srs
    of_others |= set(ModelParams.options()) - set(TreeParams.options())
    assert set(declared()) - of_others <= parameters
    defaults = {p.default for p in inspect.signature(SRSSelector).parameters.values()}
    assert defaults == {None, False, "auto"}


@pytest.mark.slow
def test_a_target_of_numbers_or_texts_is_found_out_as_by_ingest(tmp_path):
    values, labels = table()
    by_text = SRSSelector(**FAST).fit(values, np.where(labels, "b", "a"))
    same(by_text, SRSSelector(**FAST).fit(values, labels))
    numbers = values[:, 0] + values[:, 1]
    found = SRSSelector(**FAST).fit(values, numbers)
    same(found, SRSSelector(**FAST, task="regression").fit(values, numbers))
    assert found.ranking_[[0, 1]].max() == 2


def _of_columns():
    pandas = pytest.importorskip("pandas")
    texts, rng = [f"p{i}" for i in range(300)], np.random.default_rng(0)
    days = pandas.date_range("2024-01-01", periods=300)
    mixed = pandas.Series([1, "a"] * 150, dtype=object)
    columns = {"different texts": texts, "dates": days, "both": mixed, "lists": [[1]] * 300}
    columns |= {"texts as dates": days.astype(str), "many": [*texts[:299], "p0"]}
    return rng.standard_normal((300, 3)), columns


@pytest.mark.parametrize(
    "what", ["different texts", "dates", "both", "lists", "texts as dates", "many"]
)
def test_a_column_that_can_be_no_feature_is_refused_with_what_can_be_done_to_x(what):
    values, columns = _of_columns()
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(values).add_prefix("f").assign(bad=columns[what])
    with pytest.raises(ValueError, match="column 'bad'") as why:
        SRSSelector(**FAST).fit(frame, values[:, 0] > 0)
    said = str(why.value)
    assert "Drop such columns from X" in said
    assert not re.search(r"ignore|row_ids|code_dtype|kinds|orient", said)
    assert ("df['bad'] = (df['bad'] - df['bad'].min()).dt.days" in said) == (what == "dates")


def test_whole_numbers_taken_for_classes_are_told_without_a_path(caplog):
    values, _ = table()
    SRSSelector(**FAST).fit(values, np.arange(120) % 41)
    (said,) = [record.getMessage() for record in caplog.records]
    assert said.startswith("X: the 41 whole numbers of the target were taken for classes.")
    assert said.endswith('say task="regression".')
    caplog.clear()
    SRSSelector(**FAST, task="regression").fit(values, np.arange(120) % 41)
    assert not caplog.records


def test_every_parameter_is_documented():
    page = inspect.getdoc(SRSSelector).partition("Attributes\n")[0]
    documented = set(re.findall(r"\w+", " ".join(re.findall(r"^(\S.*) : ", page, re.MULTILINE))))
    assert set(SRSSelector().get_params()) <= documented


ENSEMBLE = {"iterations": 100}


def scored(n_rows=150, n_features=30, seed=0):
    rng = np.random.default_rng(seed)
    values = rng.standard_normal((n_rows, n_features))
    return values, values[:, 0] + values[:, 1] + values[:, 2]


def predicted_by_the_command_line(folder, train, target, test):
    names = [f"f{i}" for i in range(train.shape[1])]
    write_csv(folder / "train.csv", train, target, names)
    write_csv(folder / "test.csv", test, target[: len(test)], names)
    command("ingest", folder / "train.csv", folder / "t.zarr")
    command("run", folder / "t.zarr", "--iterations", 100, "--save-trees")
    command("predict", folder / "t.run", folder / "test.csv", folder / "out.csv")
    with (folder / "out.csv").open() as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
def test_a_classifier_predicts_as_the_command_line_to_the_bit(tmp_path):
    values, score = scored()
    labels = np.array(["low", "high", "mid"])[np.digitize(score, [-1, 1])]
    train, test, y, _ = train_test_split(values, labels, random_state=0)
    said = predicted_by_the_command_line(tmp_path, train, y.tolist(), test)
    fitted = SRSClassifier(**ENSEMBLE).fit(train, y)
    assert fitted.predict(test).tolist() == [row["prediction"] for row in said]
    expected = [[float(row[f"probability_{c}"]) for c in fitted.classes_] for row in said]
    np.testing.assert_array_equal(fitted.predict_proba(test), expected)
    frame = srs_ooc.open_run(tmp_path / "t.run").predict(tmp_path / "test.csv", "records")
    numbers = [n for n in said[0] if n.startswith("probability")]
    assert frame == [row | {n: float(row[n]) for n in numbers} for row in said]


@pytest.mark.slow
def test_a_regressor_predicts_as_the_command_line_to_the_bit(tmp_path):
    values, score = scored()
    train, test, y, truth = train_test_split(values, score, random_state=0)
    said = predicted_by_the_command_line(tmp_path, train, list(map(repr, y.tolist())), test)
    fitted = SRSRegressor(**ENSEMBLE).fit(train, y)
    found = fitted.predict(test)
    np.testing.assert_array_equal(found, [float(row["prediction"]) for row in said])
    assert fitted.score(test, truth) == r2_score(truth, found) > 0.5


def test_labels_of_any_kind_come_back():
    values, score = scored()
    for labels in (score > 0, np.where(score > 0, 7, -3), np.where(score > 0, "yes", "no")):
        fitted = SRSClassifier(**ENSEMBLE).fit(values, labels)
        predicted = fitted.predict(values)
        assert predicted.dtype == fitted.classes_.dtype == labels.dtype
        assert accuracy_score(labels, predicted) == fitted.score(values, labels) == 1.0


def test_an_ensemble_is_fitted_on_a_store_and_predicts_stores_and_arrays(tmp_path):
    values, score = scored()
    labels = np.where(score > 0, "b", "a")
    srs_ooc.ingest(values[:100], tmp_path / "t.zarr", target=labels[:100].tolist())
    srs_ooc.ingest(values[100:], tmp_path / "u.zarr", target=labels[100:].tolist())
    of_store = SRSClassifier(**ENSEMBLE).fit(tmp_path / "t.zarr")
    of_array = SRSClassifier(**ENSEMBLE).fit(values[:100], labels[:100])
    assert of_store.classes_.tolist() == ["a", "b"]
    expected = of_array.predict_proba(values[100:])
    np.testing.assert_array_equal(of_store.predict_proba(tmp_path / "u.zarr"), expected)
    np.testing.assert_array_equal(of_array.predict_proba(tmp_path / "u.zarr"), expected)
    training = of_store.predict_proba(srs_ooc.open_store(tmp_path / "t.zarr"))
    np.testing.assert_array_equal(training, of_array.predict_proba(values[:100]))
    with pytest.raises(ValueError, match="expected a target of numbers"):
        SRSRegressor(**ENSEMBLE).fit(tmp_path / "t.zarr")


@pytest.mark.filterwarnings("ignore:X does not have valid feature names:UserWarning")
def test_a_regressor_is_fitted_on_a_store(tmp_path):
    values, score = scored()
    srs_ooc.ingest(values, tmp_path / "t.zarr", target=score)
    found = SRSRegressor(**ENSEMBLE).fit(tmp_path / "t.zarr").predict(values)
    np.testing.assert_array_equal(
        found, SRSRegressor(**ENSEMBLE).fit(values, score).predict(values)
    )
    with pytest.raises(ValueError, match="expected a target of classes"):
        SRSClassifier(**ENSEMBLE).fit(tmp_path / "t.zarr")


@pytest.mark.slow
def test_frames_with_categories_are_predicted_by_their_texts():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    arrow = pytest.importorskip("pyarrow")
    values, score = scored()
    frame = pandas.DataFrame(values[:, 3:10]).add_prefix("f")
    frame["colour"] = np.where(score > 0, "red", "blue")
    labels = (score > 0).astype(int)
    options = ENSEMBLE | {"max_features": 1}  # so that every column is used
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
    values, score = scored()
    fitted = SRSRegressor(**ENSEMBLE).fit(values, score)
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
        SRSClassifier(**ENSEMBLE, class_weight=weight, min_samples_leaf=20).fit(values, labels)
        for weight in ({0: 1.0, 1: 100.0}, {0: 100.0}, None, "balanced")
    ]
    shares = [fitted.predict(values).mean() for fitted in made]
    assert shares[0] > 0.9
    assert shares[1] < 0.1
    assert shares[2] == shares[3]


def test_a_result_predicts_frames_by_name_and_arrays_by_place(tmp_path):
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    values, score = scored()
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
    values, score = scored()
    srs_ooc.ingest(values, tmp_path / "t.zarr", target=score)
    result = srs_ooc.run(tmp_path / "t.zarr", iterations=5)
    with pytest.raises(RunError, match="saves its trees"):
        result.predict(values)


@pytest.fixture(autouse=True)
def no_processes(monkeypatch):
    """No process tries the model; it takes seconds."""
    monkeypatch.setattr(model_learner, "tried", lambda *_: Trial(0, 0, 0.01))


@pytest.fixture
def plain():
    values = np.random.default_rng(0).standard_normal((120, 12))
    return values, (values[:, 0] + values[:, 1] > 0).astype(int)


@pytest.mark.few(1)
@pytest.mark.parametrize("n_rows", [120, 600])
def test_a_fit_is_the_run_of_the_same_options_to_the_bit(plain, tmp_path, n_rows):
    values, labels = (np.tile(part.T, -(-n_rows // 120)).T[:n_rows] for part in plain)
    model = {"method": "rs", "model": "knn", "model_params": {"n_neighbors": 3}, "iterations": 30}
    fitted = clone(SRSSelector(**model, n_features_to_select=2)).fit(values, labels)
    assert np.flatnonzero(fitted.support_).tolist() == [0, 1]
    assert fitted.transform(values).shape == (n_rows, 2)
    srs_ooc.ingest(values, tmp_path / "t.zarr", target=labels, keep_values=n_rows <= 512)
    found = srs_ooc.run(tmp_path / "t.zarr", **model).features("records")
    names = [record["name"] for record in found]
    assert [f"f{i}" for i in np.argsort(fitted.ranking_)] == names
    assert fitted.n_selected_ == 0


def test_what_takes_trees_refuses_other_models_by_name(plain):
    for kind in (SRSClassifier, SRSRegressor):
        with pytest.raises(ValueError, match=rf"^model: expected tree in {kind.__name__}.*'knn'"):
            kind(model="knn").fit(*plain)
    with pytest.raises(ValueError, match=r"^model_params: expected with model knn"):
        SRSSelector(model_params={"n_neighbors": 3}).fit(*plain)


def test_small_subspaces_are_judged_by_another_model(plain):
    few = {"models": 2, "candidates": 4, "rounds": 1, "folds": 2, "max_size": 2}
    selector = SRSSelector(model="linear", method="rase", options=few, n_features_to_select=1)
    assert selector.fit(*plain).support_.sum() == 1


def test_a_table_of_few_features_gets_subspaces_that_lack_some(plain, tmp_path):
    srs_ooc.ingest(plain[0], tmp_path / "t.zarr", target=plain[1])
    made = srs_ooc.run(tmp_path / "t.zarr", method="rs", model="linear", iterations=2)
    assert made.status.parts["run"]["subspace_size"] == 6


def test_halves_say_how_often_each_feature_is_selected():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(240, 20))
    labels = (values[:, 3] + 0.5 * rng.normal(size=240) > 0).astype(int)
    selector = SRSSelector(**FAST, halves=4).fit(values, labels)
    assert selector.stability_[3] == 1
    assert ((selector.stability_ >= 0) & (selector.stability_ <= 1)).all()
    assert (selector.stability_ < 1).sum() >= 10
    assert not hasattr(selector.set_params(halves=None).fit(values, labels), "stability_")
