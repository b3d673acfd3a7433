"""Parquet and Feather files, in row groups and batches, become the store of their table."""

import math

import numpy as np
import pytest
import zarr

import srs_ooc
from srs_ooc.errors import BudgetError, InputError
from srs_ooc.store.names import Names

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
VALUES = [
    [1.5, math.nan, 3, math.nan] * 5,
    list(range(20)),
    [1, math.nan, 0, 1] * 5,
]
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
    values = np.empty(group["values"].shape)
    values[group["positions"][:].astype(int)] = group["values"][:]
    np.testing.assert_array_equal(values, VALUES)
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
    with pytest.raises(
        InputError, match=r"t\.bin, row 1: column 'id': .* found 'r0', and 20 different texts"
    ):
        srs_ooc.ingest(path, tmp_path / "t.zarr")
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(InputError, match="could not read it"):
        srs_ooc.ingest(path, tmp_path / "t.zarr", row_ids="id")
    assert [p.name for p in tmp_path.iterdir()] == ["t.bin"]


@pytest.mark.parametrize("kind", WRITE)
def test_a_cap_that_cannot_hold_pyarrow_is_refused(tmp_path, kind):
    WRITE[kind](tmp_path / "t.bin")
    with pytest.raises(
        BudgetError, match=r"--memory-mb 60 cannot hold .* PyArrow.*--memory-mb \d+"
    ):
        srs_ooc.ingest(tmp_path / "t.bin", tmp_path / "t.zarr", row_ids="id", memory_mb=60)
    assert [p.name for p in tmp_path.iterdir()] == ["t.bin"]
