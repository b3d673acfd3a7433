"""Runs whose thresholds are drawn between values, as a user asks for them."""

import numpy as np
import pytest
from command import error_of, json_of, srs_ooc
from stores import make_store, noise_table

import srs_ooc as srs_ooc_python


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    values, labels = noise_table(60, 300, n_relevant=2)
    return make_store(tmp_path_factory.mktemp("by-value") / "t.zarr", np.exp(values), labels)


def run(store, out, *options):
    srs_ooc("run", store, "--out", out, "--q", 40, "--thresholds", "value", *options)
    return srs_ooc("features", out, "--csv").stdout


@pytest.mark.slow
def test_threads_and_stops_change_nothing(store, tmp_path):
    """Decoys and the closing stage draw by their feature's values; the tables are made again."""
    first = run(store, tmp_path / "a.run", "--iterations", 60, "--threads", 1)
    run(store, tmp_path / "b.run", "--iterations", 20, "--threads", 3)
    assert run(store, tmp_path / "b.run", "--iterations", 60, "--threads", 3) == first
    other = tmp_path / "rank.run"
    srs_ooc("run", store, "--out", other, "--q", 40, "--iterations", 60)
    assert srs_ooc("features", other, "--csv").stdout != first


@pytest.mark.slow
def test_predictions_are_as_good_as_those_of_extra_trees(tmp_path):
    """Held-out half of a table of integers: by rank, by value, and scikit-learn's."""
    ensemble = pytest.importorskip("sklearn.ensemble")
    rng = np.random.default_rng(0)
    values = rng.integers(0, 40, (12, 600)).astype(float)
    labels = ((values[0] > 20) ^ (values[1] > 25)).astype(int)
    rows = zip(values.T, labels, strict=True)
    lines = [",".join([*(f"{x:g}" for x in row), str(y)]) for row, y in rows]
    header = ",".join([*(f"f{i}" for i in range(12)), "y"])
    for name, part in (("train", lines[:300]), ("test", lines[300:])):
        (tmp_path / f"{name}.csv").write_text("\n".join([header, *part]) + "\n")
    srs_ooc("ingest", tmp_path / "train.csv", tmp_path / "train.zarr", "--target", "y")
    found = []
    for thresholds in ("rank", "value"):
        out = tmp_path / f"{thresholds}.run"
        options = ("--q", 12, "--alpha", 0, "--iterations", 200, "--save-trees")
        more = ("--thresholds", thresholds, "--out", out)
        srs_ooc("run", tmp_path / "train.zarr", *options, *more)
        csv = tmp_path / f"{thresholds}.csv"
        found.append(json_of("predict", out, tmp_path / "test.csv", csv, "--json")["accuracy"])
    peer = ensemble.ExtraTreesClassifier(200, max_features=None, random_state=0)
    accuracy = peer.fit(values.T[:300], labels[:300]).score(values.T[300:], labels[300:])
    assert accuracy > 0.9
    np.testing.assert_allclose(found, accuracy, atol=0.03)


@pytest.mark.slow
def test_nothing_is_left_beside_the_store(store, tmp_path):
    before = sorted(store.parent.iterdir())
    run(store, tmp_path / "a.run", "--iterations", 3, "--judge", "probe")
    assert sorted(store.parent.iterdir()) == before


@pytest.mark.slow
def test_they_are_part_of_the_identity(store, tmp_path):
    out = tmp_path / "a.run"
    run(store, out, "--iterations", 5, "--judge", "probe")
    srs_ooc("resume", out, "--iterations", 7)
    assert "thresholds value" in error_of("run", store, "--out", out, "--thresholds", "rank")


def test_best_splits_part_values_midway_as_those_of_scikit_learn(tmp_path):
    tree = pytest.importorskip("sklearn.tree")
    rng = np.random.default_rng(0)
    values = np.exp(2 * rng.normal(size=(250, 3)))
    numbers = np.log(values).sum(axis=1) ** 3
    store = tmp_path / "t.zarr"
    srs_ooc_python.ingest(values, store, target=numbers, task="regression")
    (tmp_path / "rows.txt").write_text("\n".join(map(str, range(1, 61))))
    told = tree.DecisionTreeRegressor(min_samples_leaf=4).fit(values[:60], numbers[:60])
    expected, found = told.predict(values[60:]), {}
    for thresholds in ("rank", "value"):
        result = srs_ooc_python.run(
            store,
            out=tmp_path / f"{thresholds}.run",
            iterations=1,
            judge="positive",
            q=3,
            alpha="0",
            rows=tmp_path / "rows.txt",
            splitter="best",
            min_samples_leaf=4,
            thresholds=thresholds,
            save_trees=True,
        )
        found[thresholds] = result.predict(values[60:]).to_numpy()[:, -1].astype(float)
    alike = {name: np.isclose(one, expected, atol=0.1).mean() for name, one in found.items()}
    assert alike["value"] == 1.0, alike
    assert alike["rank"] < 1.0, alike


@pytest.mark.slow
def test_plan_counts_their_memory():
    def largest(*options):
        table = ("--n-rows", 1000, "--n-features", 10**6)
        return json_of("plan", *table, "--json", *options)["largest_subspace_size"]

    assert largest("--thresholds", "value") < 0.5 * largest()
