"""Zarr and xarray pair feature names and row ids with the values and codes of a store."""

import numpy as np
import pytest
import zarr
from stores import make_store

from srs_ooc.ingestion.ingest import ingest_table
from srs_ooc.ingestion.ingest_options import IngestOptions
from srs_ooc.store import writing
from srs_ooc.store.manifest import read_manifest
from srs_ooc.store.store import Store

N_FEATURES, N_ROWS = 23, 7


@pytest.fixture
def store(tmp_path):
    values = np.arange(N_FEATURES)[:, None] * 100.0 + np.arange(N_ROWS)
    return make_store(tmp_path / "t.zarr", values, np.arange(N_ROWS) % 2)


def assert_pairs(names, ids, values):
    """Each value is that of its feature and row: 100 f + r."""
    features = np.array([int(name.removeprefix("f")) for name in names])
    rows = np.array([int(text) for text in ids]) - 1
    np.testing.assert_array_equal(values, features[:, None] * 100.0 + rows)
    assert features.tolist() != sorted(features)  # in stored order, which is none of the source


def test_zarr_reads_names_in_the_order_of_values(store):
    group = zarr.open_group(store, mode="r")
    assert_pairs(group["feature"][:], group["row"][:], group["values"][:])
    assert group["codes"].metadata.dimension_names == ("feature", "row")
    assert sorted(group.array_keys()) == sorted(
        ["codes", "values", "feature", "row", *read_manifest(store).small_arrays]
    )


@pytest.mark.slow
def test_xarray_selects_values_and_codes_by_name(store):
    xarray = pytest.importorskip("xarray")
    table = xarray.open_zarr(store, consolidated=False, chunks=None)
    assert_pairs(table.feature.values, table.row.values, table["values"].values)
    assert float(table["values"].sel(feature="f17", row="3")) == 1702
    assert int(table.codes.sel(feature="f17", row="3")) == 2
    assert table.exact.sel(feature=["f3", "f1"]).values.all()
    assert table.target.sel(row="2") == 1


def test_texts_of_several_chunks_and_of_any_size_are_written_alike(tmp_path, monkeypatch):
    monkeypatch.setattr(writing, "COORDINATE_CHUNK", 5)
    monkeypatch.setattr(writing, "MB", 40)
    path = tmp_path / "t.csv"
    names = [f"n{'é' * (i % 7)}{i}" for i in range(13)]
    path.write_text(",".join(["id", *names, "y"]) + "\n" + "".join(
        ",".join([f"r{i}", *map(str, range(13)), "ab"[i % 2]]) + "\n" for i in range(6)
    ))  # fmt: skip
    found = []
    for limit in (8_000_000, 0):
        monkeypatch.setattr(writing, "_IN_MEMORY_NBYTES", limit)
        out = tmp_path / f"{limit}.zarr"
        for module in ("manifest", "writing"):
            monkeypatch.setattr(f"srs_ooc.store.{module}.COORDINATE_CHUNK", 5)
        ingest_table(path, out, IngestOptions(row_ids="id"))
        Store.open(out).verify()
        group = zarr.open_group(out, mode="r")
        found.append(group["feature"][:].tolist())
        assert group["row"][:].tolist() == [f"r{i}" for i in range(6)]
        assert [names[i] for i in group["positions"][:]] == found[-1]
    assert found[0] == found[1]


def test_a_store_of_codes_alone_opens_too(tmp_path):
    xarray = pytest.importorskip("xarray")
    path = tmp_path / "t.csv"
    path.write_text("a,b,c,y\n1,5,x,u\n2,6,y,v\n2,7,x,u\n")
    ingest_table(path, tmp_path / "t.zarr", IngestOptions(keep_values=False))
    Store.open(tmp_path / "t.zarr").verify()
    table = xarray.open_zarr(tmp_path / "t.zarr", consolidated=False, chunks=None)
    assert table.code_lows.sel(feature="b").values.tolist() == [5, 6, 7]
    assert table.codes.sel(feature="a").values.tolist() == [0, 1, 1]
