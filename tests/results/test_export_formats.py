"""Every format holds the columns, the ids and the target that CSV holds."""

import csv

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import srs_ooc
from srs_ooc.base.errors import UsageError
from srs_ooc.results import exporting
from srs_ooc.results.exporting import export_columns, number_text
from srs_ooc.store.store import Store

N = 25


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Three columns of numbers, one with zeros and missing values, and two classes."""
    folder = tmp_path_factory.mktemp("formats")
    values = np.random.default_rng(0).standard_normal((N, 3))
    values[:5, 1], values[5:9, 1] = 0, np.nan
    target = np.where(np.arange(N) % 2, "ill", "well")
    srs_ooc.ingest(values, folder / "t.zarr", target=target, names=["a", "b,\u00e9", "c"])
    return Store.open(folder / "t.zarr"), values


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mixed")
    rows = [f"r{i},{i},{'' if i == 3 else 'xy'[i % 2]},{i / 4}" for i in range(N)]
    (folder / "t.csv").write_text("\n".join(["id,n,colour,y", *rows]) + "\n")
    srs_ooc.ingest(folder / "t.csv", folder / "t.zarr", row_ids="id", target="y")
    return Store.open(folder / "t.zarr")


def written(store, out, positions=(2, 0, 1)):
    export_columns(store, np.array(positions), out)
    return out


def test_npy_holds_the_values_alone(store, tmp_path, monkeypatch):
    monkeypatch.setattr(exporting, "BLOCK_NBYTES", 100)
    found = np.load(written(store[0], tmp_path / "x.npy"))
    np.testing.assert_array_equal(found, store[1][:, [2, 0, 1]])


def test_svmlight_reads_back(store, tmp_path):
    from sklearn.datasets import load_svmlight_file

    out = written(store[0], tmp_path / "x.svmlight")
    assert out.read_text().splitlines()[0] == "# classes: 0 'ill', 1 'well'"
    found, labels = load_svmlight_file(str(out), n_features=3, zero_based=False)
    np.testing.assert_array_equal(found.toarray(), store[1][:, [2, 0, 1]])
    assert labels.tolist() == [0.0 if i % 2 else 1.0 for i in range(N)]


@pytest.mark.parametrize("ending", [".parquet", ".feather"])
def test_arrow_files_hold_texts_numbers_and_missing_values(mixed, tmp_path, monkeypatch, ending):
    feather, pq = pytest.importorskip("pyarrow.feather"), pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr(exporting, "BLOCK_NBYTES", 100)
    out = written(mixed, tmp_path / f"x{ending}", (1, 0))
    table = pq.read_table(out) if ending == ".parquet" else feather.read_table(out)
    found = table.to_pydict()
    assert list(found) == ["id", "colour", "n", "y"]
    assert found["id"] == [f"r{i}" for i in range(N)]
    assert found["colour"] == [None if i == 3 else "xy"[i % 2] for i in range(N)]
    assert found["n"] == list(range(N))
    assert found["y"] == [i / 4 for i in range(N)]


@pytest.mark.parametrize("ending", ["npy", "svm"])
def test_categories_are_refused_where_only_numbers_fit(mixed, tmp_path, ending):
    with pytest.raises(UsageError, match=r"expected columns of numbers.* found categories"):
        written(mixed, tmp_path / f"x.{ending}", (0, 1))
    assert list(tmp_path.iterdir()) == []


def test_names_are_listed_as_exclude_reads_them(store, tmp_path):
    out = written(store[0], tmp_path / "x.txt")
    assert out.read_text() == "c\na\nb,\u00e9\n"
    file = written(store[0], tmp_path / "some.txt", (2, 0))
    run = srs_ooc.run(store[0], exclude=file, iterations=2, judge="probe", out=tmp_path / "r")
    assert run.status.excluded.startswith("2 features")


def test_a_name_that_promises_another_format_is_refused(store, tmp_path):
    for name in ("x.xlsx", "x.json", "x.npz", "x.json.gz", "x.npy.gz"):
        with pytest.raises(UsageError, match=r"expected the name of a file that ends in \.csv"):
            written(store[0], tmp_path / name)
    with written(store[0], tmp_path / "x.tab").open(newline="") as file:
        assert next(csv.reader(file)) == ["row_id", "c", "a", "b,\u00e9", "target"]


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_the_text_of_a_number_reads_back_as_the_same(value):
    assert float(number_text(value)) == value
