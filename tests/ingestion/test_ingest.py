"""A CSV file becomes a store that holds exactly the table."""

import csv
import gzip
import io
import math
import os
import random
from pathlib import Path

import numpy as np
import pytest
import zarr
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from srs_ooc.base.seeds import Purpose, derive_array, key_of
from srs_ooc.ingestion.csv import TextForm
from srs_ooc.ingestion.ingest import ingest_table
from srs_ooc.ingestion.ingest_options import IngestOptions
from srs_ooc.store.arrays import Names, read_array
from srs_ooc.store.manifest import chunk_file, code_columns, read_manifest
from srs_ooc.store.store import Store

DATA = Path(os.environ.get("SRS_OOC_DATA", Path(__file__).parents[2].parent / "shared" / "data"))


def make(folder: Path, text: str, name: str = "t.csv") -> Path:
    path = folder / name
    path.write_bytes(text.encode())
    return path


def twin(path: Path, target: str, skip: tuple[str, ...] = ()) -> tuple:
    """Feature names, values (n_features, n_rows) and labels, read with csv and float()."""
    raw = path.read_bytes()
    text = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode()
    header, *rows = [row for row in csv.reader(io.StringIO(text, newline="")) if row]
    columns = [i for i, name in enumerate(header) if name != target and name not in skip]
    number = {"": math.nan, "NA": math.nan}
    values = [
        [number[row[i]] if row[i] in number else float(row[i]) for row in rows] for i in columns
    ]
    labels = [row[header.index(target)] for row in rows]
    return [header[i] for i in columns], np.array(values), labels


def assert_holds(store: Path, names: list[str], values: np.ndarray, labels: list[str]) -> None:
    manifest = read_manifest(store)
    group = zarr.open_group(store, mode="r")
    positions = group["positions"][:].astype(int)
    p = len(names)
    keys = derive_array(key_of(Purpose.STORE_ORDER), np.arange(p))
    np.testing.assert_array_equal(positions, np.argsort(keys, kind="stable"))
    stored = values[positions]
    np.testing.assert_array_equal(group["values"][:], stored)
    codes = np.empty(stored.shape, manifest.code_dtype)
    facts = code_columns(np.ascontiguousarray(stored), codes)
    np.testing.assert_array_equal(group["codes"][:], codes)
    np.testing.assert_array_equal(group["n_missing"][:], facts.n_missing)
    np.testing.assert_array_equal(group["n_codes"][:], facts.n_codes)
    np.testing.assert_array_equal(group["exact"][:], facts.exact)
    assert manifest.n_missing_cells == np.isnan(values).sum()
    assert manifest.n_missing_features == np.isnan(values).any(axis=1).sum()
    assert [manifest.classes[c] for c in group["target"][:]] == labels
    assert manifest.class_counts == tuple(labels.count(c) for c in manifest.classes)
    assert list(Names(store, manifest, "names")) == names
    for name in manifest.small_arrays:
        np.testing.assert_array_equal(group[name][:], read_array(store, manifest, name))
    raw = b"".join((store / chunk_file(i)).read_bytes() for i in range(manifest.n_chunks))
    assert raw[: codes.nbytes] == codes.tobytes()
    assert set(raw[codes.nbytes :]) <= {255}
    Store.open(store).verify()


@given(
    st.integers(1, 9),
    st.integers(2, 40),
    st.sampled_from([b"\n", b"\r\n"]),
    st.sampled_from(["float32", "float64"]),
    st.integers(0, 2**32),
)
@examples(12)
def test_a_store_holds_the_table(tmp_path_factory, p, n, end, dtype, seed):
    rng = random.Random(seed)
    folder = tmp_path_factory.mktemp("t")
    digits = 1 if dtype == "float64" else 0
    cells = [
        [rng.choice(["", "NA", f"{rng.gauss(0, 9):.{digits}f}"]) for _ in range(p)]
        for _ in range(n)
    ]
    cells[0][0] = "0.1" if dtype == "float64" else "2"
    lines = [",".join([*(f"é{j}" for j in range(p)), "y"])]
    lines += [",".join([*row, "ba"[i % 2]]) for i, row in enumerate(cells)]
    path = folder / "t.csv"
    path.write_bytes(end.join(line.encode() for line in lines))
    manifest = ingest_table(path, folder / "t.zarr")
    assert manifest.values_dtype == dtype
    assert manifest == read_manifest(folder / "t.zarr")
    assert_holds(folder / "t.zarr", *twin(path, "y"))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["arcene", "madelon", "tox_171", "isolet"])
def test_real_tables(tmp_path, name):
    path = DATA / f"{name}.csv.gz"
    if not path.exists():
        pytest.skip(f"{path} is not here")
    ingest_table(path, tmp_path / "t.zarr", IngestOptions(memory_mb=512))
    with gzip.open(path, "rt") as file:
        target = file.readline().rstrip("\r\n").split(",")[-1].strip('"')
    assert_holds(tmp_path / "t.zarr", *twin(path, target))


def test_equal_bytes_give_an_equal_store_and_other_bytes_another(tmp_path):
    path = make(tmp_path, "a,b,y\n1,2,u\n3,4,v\n")
    first = ingest_table(path, tmp_path / "1.zarr").fingerprint
    assert ingest_table(path, tmp_path / "2.zarr").fingerprint == first
    make(tmp_path, "a,b,y\n1,2,u\n3,5,v\n")
    assert ingest_table(path, tmp_path / "3.zarr").fingerprint != first


def test_roles_row_ids_and_class_order(tmp_path):
    path = make(tmp_path, "\ufeffid , y,a,junk,b\nr1,10,1,x,2\n r2 ,9,3,,4\nr3,-1.5,5,z,6\n")
    options = IngestOptions(
        target="y",
        row_ids="id",
        ignore=["junk"],
        task="classification",
        text=TextForm(separator=","),
    )
    manifest = ingest_table(path, tmp_path / "t.zarr", options)
    assert manifest.classes == ("-1.5", "9", "10")
    assert (manifest.target_name, manifest.row_id_name) == ("y", "id")
    assert list(Names(tmp_path / "t.zarr", manifest, "row_ids")) == ["r1", "r2", "r3"]
    assert list(Names(tmp_path / "t.zarr", manifest, "names")) == ["a", "b"]
    assert manifest.inferred == {}


def test_defaults_last_column_numbered_rows_text_order(tmp_path):
    path = make(tmp_path, "a,y\n1,10\n2,9\n3,x\n")
    manifest = ingest_table(path, tmp_path / "t.zarr")
    assert manifest.inferred == {
        "target": "last column",
        "separator": "comma",
        "task": "classification: its values are texts",
    }
    assert manifest.classes == ("10", "9", "x")
    assert list(Names(tmp_path / "t.zarr", manifest, "row_ids")) == ["1", "2", "3"]


def test_gzip_of_several_members_gives_the_same_table(tmp_path):
    text = "a,b,y\n" + "".join(f"{i},{i * 7 % 5},{'uv'[i % 2]}\n" for i in range(50_000))
    plain = make(tmp_path, text)
    packed = tmp_path / "t.csv.gz"
    half = len(text) // 2 + 3
    packed.write_bytes(gzip.compress(text[:half].encode()) + gzip.compress(text[half:].encode()))
    one = ingest_table(plain, tmp_path / "1.zarr")
    two = ingest_table(packed, tmp_path / "2.zarr")
    assert one.checksums == two.checksums
    assert two.source["format"] == "csv.gz"


def test_without_values_each_code_keeps_its_range(tmp_path):
    rows = "".join(f"{i % 300},{'uv'[i % 2]}\n" for i in range(600))
    path = make(tmp_path, "a,y\n" + rows)
    manifest = ingest_table(path, tmp_path / "t.zarr", IngestOptions(keep_values=False))
    group = zarr.open_group(tmp_path / "t.zarr", mode="r")
    assert manifest.values_dtype is None
    assert "values" not in group
    codes, column = group["codes"][0], np.arange(600) % 300
    lows, highs = group["code_lows"][0], group["code_highs"][0]
    for code in range(int(group["n_codes"][0])):
        mine = column[codes == code]
        assert (lows[code], highs[code]) == (mine.min(), mine.max())
    assert not group["exact"][0]


def test_wide_codes_tell_more_values_apart(tmp_path):
    rows = "".join(f"{i},{'uv'[i % 2]}\n" for i in range(1000))
    path = make(tmp_path, "a,y\n" + rows)
    manifest = ingest_table(path, tmp_path / "t.zarr", IngestOptions(code_dtype="uint16"))
    group = zarr.open_group(tmp_path / "t.zarr", mode="r")
    np.testing.assert_array_equal(group["codes"][0], np.arange(1000))
    assert manifest.missing_code == group["codes"].fill_value == 65535


def test_texts_are_found_by_name(tmp_path):
    path = make(tmp_path, ",".join([f"n{i}" for i in range(70_000)] + ["y"]) + "\n")
    with path.open("a") as file:
        for label in "uv":
            file.write("1," * 70_000 + label + "\n")
    manifest = ingest_table(path, tmp_path / "t.zarr")
    names = Names(tmp_path / "t.zarr", manifest)
    found = names.find(["n69999", "absent", "n0", "n65536", "n0"])
    assert found.tolist() == [69999, -1, 0, 65536, 0]
    assert (len(names), names[65536]) == (70_000, "n65536")
    with pytest.raises(IndexError):
        names[70_000]
