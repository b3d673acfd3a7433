"""svmlight files are the store of their dense table; scikit-learn's own file agrees."""

import gzip

import numpy as np
import pytest
import zarr

import srs_ooc
from srs_ooc.base.errors import BudgetError, InputError
from srs_ooc.store.arrays import Names

TEXT = "# made by hand\n+1 1:0.5 3:-2e3\n-1 qid:7 2:1 # note\n\n-1\n+1 3:.25\n"
VALUES = [[0.5, 0, -2000], [0, 1, 0], [0, 0, 0], [0, 0, 0.25]]


def values_of(store):
    group = zarr.open_group(store, mode="r")
    values = np.empty(group["values"].shape)
    values[group["positions"][:].astype(int)] = group["values"][:]
    return values.T


@pytest.mark.parametrize("name", ["t.txt", "t.svm", "t.txt.gz"])
def test_a_file_found_by_its_first_line_or_its_name(tmp_path, name):
    raw = TEXT.encode()
    (tmp_path / name).write_bytes(gzip.compress(raw) if name.endswith("gz") else raw)
    manifest = srs_ooc.ingest(tmp_path / name, tmp_path / "t.zarr")
    np.testing.assert_array_equal(values_of(tmp_path / "t.zarr"), VALUES)
    assert list(Names(tmp_path / "t.zarr", manifest)) == ["f1", "f2", "f3"]
    assert (manifest.classes, manifest.class_counts) == (("-1", "+1"), (2, 2))
    assert (manifest.target_name, manifest.source["format"]) == ("label", "svmlight")


@pytest.mark.parametrize("zero_based", [True, False])
def test_what_scikit_learn_writes(tmp_path, zero_based):
    from sklearn.datasets import dump_svmlight_file

    rng = np.random.default_rng(1)
    table = np.round(rng.normal(size=(40, 9)) * (rng.random((40, 9)) < 0.4), 3)
    table[0] = 1
    path = str(tmp_path / "t")
    dump_svmlight_file(table, rng.normal(size=40), path, zero_based=zero_based, comment="c")
    manifest = srs_ooc.ingest(tmp_path / "t", tmp_path / "t.zarr")
    np.testing.assert_allclose(values_of(tmp_path / "t.zarr"), table, rtol=1e-15)
    assert manifest.task == "regression"
    assert Names(tmp_path / "t.zarr", manifest)[0] == ("f0" if zero_based else "f1")


@pytest.mark.parametrize("cell", ["2:x", "2", "x:1", "2:inf", "2:nan", "0:1", "1:1", "2:1:1"])
def test_bad_cells_are_located(tmp_path, cell):
    (tmp_path / "t.svm").write_text(f"1 1:1\n2 1:2 {cell}\n")
    with pytest.raises(InputError, match=f"t.svm, line 2: expected index:value.*found '{cell}'"):
        srs_ooc.ingest(tmp_path / "t.svm", tmp_path / "t.zarr")
    assert [p.name for p in tmp_path.iterdir()] == ["t.svm"]


def test_nothing_and_too_small_a_cap(tmp_path):
    (tmp_path / "t.svm").write_text("# nothing\n")
    with pytest.raises(InputError, match="found none"):
        srs_ooc.ingest(tmp_path / "t.svm", tmp_path / "t.zarr")
    (tmp_path / "t.svm").write_text(TEXT)
    with pytest.raises(BudgetError, match=r"memory_mb=30 cannot hold .*t\.svm.*SciPy"):
        srs_ooc.ingest(tmp_path / "t.svm", tmp_path / "t.zarr", memory_mb=30)
