"""Weights of classes and of rows: what is refused, and how."""

import math

import pytest
from command import error_of, json_of, srs_ooc


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Two classes, and weights of rows that leave little room for others."""
    folder = tmp_path_factory.mktemp("responses")
    rows = [f"{i % 7},{i % 3},{'1e300' if i % 2 else '1e-300'},{'ab'[i % 2]}" for i in range(40)]
    (folder / "t.csv").write_text("x,y,w,group\n" + "\n".join(rows) + "\n")
    srs_ooc("ingest", "t.csv", "t.zarr", "--weights", "w", cwd=folder)
    return folder / "t.zarr"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("weights", "parts"),
    [
        ("b=1e300", ["finite", "1e+300 times 1e+300", "nearer to 1"]),
        ("a=1e-300", ["1e-300 times 1e-300"]),
        ("a=2,a=3", ["each class once", "'a'"]),
        ("a=0", ["above 0", "'a=0'", "--rows"]),
        ("z=2", ["'z=2'", "a, b"]),
    ],
)
def test_class_weights_that_make_no_weight_are_refused(store, tmp_path, weights, parts):
    message = error_of("run", store, "--out", tmp_path / "r", "--class-weight", weights)
    assert all(part in message for part in parts), message


@pytest.mark.slow
def test_weights_of_any_size_are_taken(store, tmp_path):
    """Those of class b are 10^600 times those of class a: importances are numbers all the same."""
    run = tmp_path / "r"
    srs_ooc("run", store, "--out", run, "--iterations", 3, "--judge", "positive")
    assert json_of("status", run, "--json")["iterations"] == 3
    importance = {row["name"]: row["importance"] for row in json_of("features", run, "--json")}
    assert set(importance) == {"x", "y"}
    assert all(0 < value < math.inf for value in importance.values()), importance
