"""Runs on every kind of target and feature, as a user has them: from CSV to predictions."""

import csv

import numpy as np
import pytest
from command import error_of, json_of, srs_ooc

N_ROWS, N_NUMBERS = 150, 30


def write_table(path, target_of):
    """Numbers, some missing, and a colour; the target is a function of f0 and the colour."""
    rng = np.random.default_rng(0)
    numbers = rng.standard_normal((N_ROWS, N_NUMBERS))
    colours = rng.choice(["red", "green", "blue", "black"], N_ROWS)
    gone = rng.random(numbers.shape) < 0.06
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*(f"f{i}" for i in range(N_NUMBERS)), "colour", "weight", "target"])
        for row, colour, missing in zip(numbers, colours, gone, strict=True):
            cells = ["" if m else f"{x:.4f}" for x, m in zip(row, missing, strict=True)]
            score = row[0] + 2 * (colour in ("red", "blue"))
            writer.writerow([*cells, colour, 1 + int(abs(row[1]) > 1), target_of(score)])
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("kinds")
    write_table(path / "numbers.csv", lambda score: f"{score:.4f}")
    write_table(path / "classes.csv", lambda score: "high" if score > 1 else "low")
    for name in ("numbers", "classes"):
        srs_ooc("ingest", f"{name}.csv", f"{name}.zarr", "--target", "target", cwd=path)
        more = ("--target", "target", "--weights", "weight")
        srs_ooc("ingest", f"{name}.csv", f"{name}-weighted.zarr", *more, cwd=path)
    return path


@pytest.mark.slow
@pytest.mark.parametrize("name", ["numbers", "classes", "numbers-weighted", "classes-weighted"])
@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--splitter", "best", "--bootstrap", "--k", "0.5"),
        ("--thresholds", "value", "--k", "0.5"),
    ],
)
def test_what_matters_is_found_and_predicted(folder, tmp_path, name, options):
    run = tmp_path / "x.run"
    common = ("--iterations", 300, "--q", 12, "--save-trees", "--out", run)
    srs_ooc("run", f"{name}.zarr", *common, *options, cwd=folder)
    ranked = [record["name"] for record in json_of("features", run, "--json")]
    assert {"f0", "colour"} == set(ranked[:2])
    outs = [tmp_path / "codes.csv", tmp_path / "values.csv"]
    table = f"{name.partition('-')[0]}.csv"
    for data, out in zip((f"{name}.zarr", table), outs, strict=True):
        report = json_of("predict", run, data, out, "--json", cwd=folder)
    assert outs[0].read_bytes() == outs[1].read_bytes()
    if name.startswith("numbers"):
        assert report["r2"] > 0.8
        assert report["accuracy"] is None
    else:
        assert report["accuracy"] > 0.9


@pytest.mark.slow
def test_new_rows_may_miss_values_and_have_new_categories(folder, tmp_path):
    run, out = tmp_path / "x.run", tmp_path / "out.csv"
    common = ("--iterations", 60, "--q", 12, "--save-trees", "--out", run)
    srs_ooc("run", "classes.zarr", *common, cwd=folder)
    with (folder / "classes.csv").open() as file:
        header, *rows = csv.reader(file)
    rows[0][:5], rows[1][header.index("colour")] = [""] * 5, "purple"
    rows[2][header.index("colour")] = ""
    edited = tmp_path / "edited.csv"
    with edited.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    assert json_of("predict", run, edited, out, "--json", cwd=folder)["n_rows"] == N_ROWS


@pytest.mark.slow
def test_class_weights_are_part_of_a_run(folder, tmp_path):
    def importances(*options):
        run = tmp_path / f"{len(list(tmp_path.iterdir()))}.run"
        common = ("--iterations", 30, "--q", 12, "--out", run, *options)
        srs_ooc("run", "classes.zarr", *common, cwd=folder)
        return [record["importance"] for record in json_of("features", run, "--json")]

    plain = importances()
    assert importances("--class-weight", "low=2,high=2") == pytest.approx(plain)
    assert importances("--class-weight", "low=5") != pytest.approx(plain)
    assert importances("--class-weight", "balanced") != pytest.approx(plain)


@pytest.mark.slow
@pytest.mark.parametrize("store", ["numbers", "numbers-weighted", "classes-weighted"])
def test_every_store_can_be_planned_for(folder, tmp_path, store):
    planned = srs_ooc("plan", f"{store}.zarr", "--splitter", "best", cwd=folder).stdout
    assert ("lower half of the targets (75 rows)" in planned) == store.startswith("numbers")
    run = tmp_path / "x.run"
    srs_ooc("run", f"{store}.zarr", "--out", run, "--q", 3, "--max-depth", 2, cwd=folder)
    assert json_of("status", run, "--json")["iterations"] >= 1000


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("store", "options", "words"),
    [
        ("numbers", ("--impurity", "gini"), ["impurity", "variance", "gini"]),
        ("classes", ("--impurity", "variance"), ["impurity", "gini or entropy"]),
        ("classes-weighted", ("--impurity", "entropy"), ["impurity", "gini", "entropy"]),
        ("numbers", ("--class-weight", "balanced"), ["class-weight", "numbers"]),
        ("classes", ("--class-weight", "middle=2"), ["class-weight", "middle", "high"]),
        ("classes", ("--class-weight", "low=-1"), ["class-weight", "above 0"]),
        ("classes", ("--k", "2.5"), ["max-features", "2.5"]),
        ("classes", ("--min-impurity-decrease", "2"), ["min-impurity-decrease", "2"]),
    ],
)
def test_what_cannot_be_learnt_is_refused(folder, tmp_path, store, options, words):
    message = error_of("run", f"{store}.zarr", "--out", tmp_path / "x.run", *options, cwd=folder)
    assert all(word in message for word in words), message
