"""Parquet and Feather files, in row groups and batches, become the store of their table."""

import math

import numpy as np
import pandas as pd
import pytest
import zarr
from stores import values_of

import srs_ooc
from srs_ooc.base.errors import BudgetError, InputError
from srs_ooc.ingestion.formats.files import ArrowFile
from srs_ooc.store.arrays import Names
from srs_ooc.store.store import Store

pyarrow = pytest.importorskip("pyarrow")
from pyarrow import feather, parquet  # noqa: E402

TABLE = pyarrow.table(
    {
        "a": pyarrow.array([1.5, None, 3.0, math.nan] * 5),
        "a.b": pyarrow.array(range(20), "int16"),
        "flag": pyarrow.array([True, None, False, True] * 5),
        "id": [f"r{i}" for i in range(20)],
        "y": ["u", "v"] * 10,
    }
)
VALUES = [[1.5, math.nan, 3, math.nan] * 5, list(range(20)), [1, math.nan, 0, 1] * 5]
TEXTS = "classification: its values are texts"
WRITE = {
    "parquet": lambda path: parquet.write_table(TABLE, path, row_group_size=7),
    "feather": lambda path: feather.write_feather(TABLE, path, chunksize=7),
    "plain feather": lambda path: feather.write_feather(TABLE, path, compression="uncompressed"),
}


@pytest.mark.parametrize("kind", WRITE)
def test_files(tmp_path, kind):
    path, store = tmp_path / "t.bin", tmp_path / "t.zarr"
    WRITE[kind](path)
    manifest = srs_ooc.ingest(path, store, row_ids="id")
    group = zarr.open_group(store, mode="r")
    np.testing.assert_array_equal(values_of(store), VALUES)
    assert list(Names(store, manifest, "names")) == ["a", "a.b", "flag"]
    assert list(Names(store, manifest, "row_ids"))[-1] == "r19"
    assert [manifest.classes[c] for c in group["target"][:]] == ["u", "v"] * 10
    assert manifest.inferred == {"target": "last column", "task": TEXTS}
    assert manifest.source["format"] == kind.split()[-1]
    assert manifest.source["nbytes"] == path.stat().st_size
    in_memory = srs_ooc.ingest(TABLE, tmp_path / "u.zarr", row_ids="id")
    assert in_memory.checksums == manifest.checksums


@pytest.mark.parametrize("kind", WRITE)
def test_what_is_no_number_or_damaged_is_refused(tmp_path, kind):
    path = tmp_path / "t.bin"
    WRITE[kind](path)
    with pytest.raises(InputError, match=r"t\.bin, row 1: column 'id': .* found 'r0', and 20 dif"):
        srs_ooc.ingest(path, tmp_path / "t.zarr")
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(InputError, match="could not read it"):
        srs_ooc.ingest(path, tmp_path / "t.zarr", row_ids="id")
    assert [p.name for p in tmp_path.iterdir()] == ["t.bin"]


@pytest.mark.parametrize("kind", WRITE)
def test_a_cap_that_cannot_hold_pyarrow_is_refused(tmp_path, kind):
    WRITE[kind](tmp_path / "t.bin")
    with pytest.raises(BudgetError, match=r"memory_mb=1 cannot hold .* PyArrow.*memory_mb=\d+"):
        srs_ooc.ingest(tmp_path / "t.bin", tmp_path / "t.zarr", row_ids="id", memory_mb=1)
    assert [p.name for p in tmp_path.iterdir()] == ["t.bin"]


@pytest.mark.parametrize("index", [["p", "q", "r", "s"], [7, 5, 3, 1]])
def test_the_index_that_pandas_saved_holds_the_row_ids(tmp_path, index):
    frame = pd.DataFrame({"a": [1.0, 2, 3, 4], "y": ["u", "v"] * 2}, index=index)
    frame.to_parquet(tmp_path / "t.parquet")
    manifest = srs_ooc.ingest(tmp_path / "t.parquet", tmp_path / "t.zarr")
    assert (manifest.target_name, manifest.n_features) == ("y", 1)
    assert list(Names(tmp_path / "t.zarr", manifest, "row_ids")) == list(map(str, index))
    assert manifest.inferred["row_ids"] == "the index that pandas saved"
    two = frame.assign(b=1).set_index(["a", "b"])
    two.assign(c=[1.0, 0, 1, 1], y=two.pop("y")).to_parquet(tmp_path / "two.parquet")
    manifest = srs_ooc.ingest(tmp_path / "two.parquet", tmp_path / "two.zarr")
    assert (manifest.target_name, manifest.n_features) == ("y", 1)
    assert manifest.inferred["index"] == "'a', 'b', saved by pandas, left out"
    named = srs_ooc.ingest(tmp_path / "two.parquet", tmp_path / "n.zarr", target="a", ignore=["b"])
    assert (named.target_name, named.n_features) == ("a", 2)


def test_offsets_that_lead_out_of_memory_are_found(tmp_path):
    path = tmp_path / "t.bin"
    table = pyarrow.table({"t": ["p", "q"] * 10, "y": ["u", "v"] * 10})
    feather.write_feather(table, path, compression="uncompressed")
    offsets = np.arange(21, dtype="<i4").tobytes()
    wrong = np.append(np.arange(20), 2**30).astype("<i4").tobytes()
    assert path.read_bytes().count(offsets) == 2
    path.write_bytes(path.read_bytes().replace(offsets, wrong))
    with pytest.raises(InputError, match=r"t\.bin: expected column .* could not read .* Get the f"):
        srs_ooc.ingest(path, tmp_path / "t.zarr")
    assert [p.name for p in tmp_path.iterdir()] == ["t.bin"]


def test_messages_of_pyarrow_on_one_line(tmp_path):
    path = tmp_path / "t.bin"
    WRITE["parquet"](path)
    data = bytearray(path.read_bytes())
    data[-500:-400] = b"\xff" * 100
    path.write_bytes(data)
    with pytest.raises(InputError, match="expected a parquet file, could not read it") as error:
        srs_ooc.ingest(path, tmp_path / "t.zarr")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("kind", ["float32", "float64", "int64", "text"])
def test_columns_whose_dtype_says_that_float32_holds_them_are_read_once(
    tmp_path, monkeypatch, kind
):
    """A target of int64 beside them, or another feature, has only itself read twice."""
    values = np.random.default_rng(0).standard_normal((60, 8)).astype(np.float32)
    other = {"text": np.array([*"abc"] * 20), "int64": np.arange(60) % 7}.get(kind, values[:, 0])
    columns = {f"f{j}": values[:, j] for j in range(8)}
    columns |= {"other": other if kind in ("text", "int64") else other.astype(kind)}
    frame = pd.DataFrame(columns | {"y": np.arange(60) % 2})
    frame.to_parquet(tmp_path / "t.parquet", index=False)
    read = ArrowFile.read
    counts = np.zeros(10, int)

    def counted(self, positions, pool):
        counts[positions] += 1
        return read(self, positions, pool)

    monkeypatch.setattr(ArrowFile, "read", counted)
    srs_ooc.ingest(tmp_path / "t.parquet", tmp_path / "t.zarr", target="y")
    again = 1 if kind == "float32" else 2
    assert counts.tolist() == [*[1] * 8, again, 0]
    monkeypatch.undo()
    srs_ooc.ingest(frame, tmp_path / "frame.zarr", target="y")
    stores = [Store.open(tmp_path / name) for name in ("t.zarr", "frame.zarr")]
    assert stores[0].manifest.values_dtype == stores[1].manifest.values_dtype == "float32"
    assert stores[0].manifest.checksums == stores[1].manifest.checksums
