"""HDF5 and AnnData become the store of their CSV, whatever their layout; the rest is refused."""

import contextlib
import re
import sys

import numpy as np
import pytest
import scipy.sparse
import zarr
from command import check_least_cap, error_of, least_cap, srs_ooc
from examples import examples, given, st
from stores import values_of
from tables import data_file, opened, write_columns

from srs_ooc import ingest, open_store
from srs_ooc.base.errors import InputError, UsageError
from srs_ooc.ingestion.formats import hdf5
from srs_ooc.ingestion.formats.in_memory import open_object
from srs_ooc.store.arrays import Names
from srs_ooc.store.manifest import read_manifest
from srs_ooc.testing import check_table

h5py = pytest.importorskip("h5py")

RNG = np.random.default_rng(3)
N_ROWS, N_FEATURES = 30, 12
VALUES = RNG.normal(size=(N_ROWS, N_FEATURES)) * (RNG.random((N_ROWS, N_FEATURES)) < 0.5) + 0.0
VALUES[3, 4] = VALUES[29, 0] = np.nan
NAMES = [f"é{j}" for j in range(N_FEATURES)]
ROWS = {
    "id": [f"cell{i}" for i in range(N_ROWS)],
    "state": ["yes" if i // 2 % 3 else "no" for i in range(N_ROWS)],
    "sex": ["mf"[i // 2 % 2] for i in range(N_ROWS)],
    "patient": [f"p{i // 2}" for i in range(N_ROWS)],
    "age": [20.5 + i // 2 for i in range(N_ROWS)],
}
ASKED = ("--target", "state", "--covariates", "age,sex", "--groups", "patient")
TEXT = h5py.string_dtype()


def csv(folder):
    columns = ROWS | dict(zip(NAMES, VALUES.T.tolist(), strict=True))
    return write_columns(folder / "twin.csv", columns)


def filled(path, fill=None, **datasets):
    """Write a file: its datasets by name, and what a function adds."""
    with h5py.File(path, "w") as file:
        for name, values in datasets.items():
            file[name] = values
        if fill is not None:
            fill(file)
    return path


def names_in(file, name, items):
    """Make a frame of AnnData that has its index alone."""
    frame = file.create_group(name)
    frame.attrs["_index"] = "_index"
    frame.create_dataset("_index", data=items, dtype=TEXT)
    return frame


def plain(path, values=VALUES, name="study/counts", **layout):
    """Write a matrix with its names and what is known of rows beside it."""
    with h5py.File(path, "w", userblock_size=layout.pop("userblock", 0)) as file:
        matrix = file.create_dataset(name, data=values, **layout)
        group = matrix.parent
        group.create_dataset("genes", data=NAMES, dtype=TEXT)
        for key, cells in ROWS.items():
            group.create_dataset(key, data=cells, dtype=None if key == "age" else TEXT)
    return path


def sparse(file, name, kind, values, **more):
    """Write a sparse matrix as AnnData does."""
    group = file.create_group(name)
    lines = values if kind == "csr" else values.T
    there = lines != 0
    group["data"] = lines[there]
    group["indices"] = np.nonzero(there)[1].astype(np.int32)
    group["indptr"] = np.concatenate([[0], np.cumsum(there.sum(axis=1))]).astype(np.int32)
    group.attrs["encoding-type"], group.attrs["shape"] = f"{kind}_matrix", values.shape
    return group


def categorical(group, key, cells):
    levels = sorted({cell for cell in cells if cell is not None})
    one = group.create_group(key)
    one.attrs["encoding-type"] = "categorical"
    one["codes"] = np.array([-1 if cell is None else levels.index(cell) for cell in cells], "int8")
    one.create_dataset("categories", data=levels, dtype=TEXT)


def cells(path, kind="csr", values=VALUES, name="X", names=NAMES, rows=ROWS):
    """Write a file of AnnData: its matrix dense, or sparse by rows or columns."""
    with h5py.File(path, "w") as file:
        if kind == "dense":
            file.create_dataset(name, data=values, chunks=(7, 5))
        else:
            sparse(file, name, kind, values)
        obs, var = file.create_group("obs"), file.create_group("var")
        obs.attrs["_index"], var.attrs["_index"] = "id", "symbol"
        var.create_dataset("symbol", data=names, dtype=TEXT)
        for key, known in rows.items():
            if key in ("state", "sex"):
                categorical(obs, key, known)
            else:
                obs.create_dataset(key, data=known, dtype=TEXT if key != "age" else None)
    return path


PLAIN = {
    "contiguous": {},
    "chunks of rows": {"chunks": (4, N_FEATURES)},
    "tiles": {"chunks": (7, 5), "compression": "gzip"},
    "chunks of columns": {"chunks": (N_ROWS, 1), "shuffle": True, "compression": "lzf"},
    "big-endian": {"dtype": ">f8"},
    "a user block": {"userblock": 512},
}


@pytest.fixture(scope="module")
def twin(tmp_path_factory):
    folder = tmp_path_factory.mktemp("twin")
    srs_ooc("ingest", csv(folder), folder / "t.zarr", *ASKED, "--row-ids", "id")
    return read_manifest(folder / "t.zarr")


def ingested(*sources_and_store, more=()):
    srs_ooc("ingest", *sources_and_store, *ASKED, *more)
    return read_manifest(sources_and_store[-1])


@pytest.mark.few(1)
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("layout", PLAIN)
def test_a_dataset_becomes_the_store_of_its_csv(tmp_path, twin, layout, turned):
    more = dict(PLAIN[layout])
    if turned and "chunks" in more:
        more["chunks"] = more["chunks"][::-1]
    path = plain(tmp_path / "t.h5", VALUES.T if turned else VALUES, **more)
    source = f"{path}::/study/counts.T" if turned else path
    manifest = ingested(source, tmp_path / "t.zarr")
    assert manifest.checksums == twin.checksums
    assert manifest.source["name"] == f"t.h5{'::/study/counts.T' * turned}"
    assert manifest.source["nbytes"] == path.stat().st_size
    assert manifest.source["format"] == f"hdf5 /study/counts{', turned' * turned}"
    assert manifest.inferred["row_ids"] == "'id' of the file"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["dense", "csr", "csc"])
def test_cells_become_the_store_of_their_csv(tmp_path, twin, kind):
    path = cells(tmp_path / "t.h5ad", kind)
    assert ingested(path, tmp_path / "t.zarr").checksums == twin.checksums
    text = srs_ooc("ingest", path, tmp_path / "d.zarr", *ASKED, "--dry-run").stdout
    assert f"columns: {N_FEATURES}\nrows: {N_ROWS}\n" in text
    mean = ("--aggregate", "mean")
    of_cells = ingested(path, tmp_path / "m.zarr", more=mean)
    of_csv = ingested(csv(tmp_path), tmp_path / "n.zarr", more=("--ignore", "id", *mean))
    assert (of_cells.n_rows, of_cells.checksums) == (15, of_csv.checksums)


def test_a_feature_of_a_matrix_by_rows_may_be_the_target(tmp_path):
    path = cells(tmp_path / "t.h5ad", "csr", np.nan_to_num(VALUES))
    made = ingest(path, tmp_path / "t.zarr", target=NAMES[1], task="regression")
    assert (made.target_name, made.n_features) == (NAMES[1], N_FEATURES - 1)
    assert (open_store(tmp_path / "t.zarr").target() == np.nan_to_num(VALUES)[:, 1]).all()


def test_groups_may_be_the_combinations_of_columns(tmp_path):
    path, store = cells(tmp_path / "t.h5ad"), tmp_path / "t.zarr"
    mean = ("--target", "state", "--aggregate", "mean", "--groups")
    srs_ooc("ingest", path, store, *mean, "patient,sex")  # a patient has one sex
    both = [f"{one}:{other}" for one, other in zip(ROWS["patient"], ROWS["sex"], strict=True)]
    assert list(Names(store, read_manifest(store), "row_ids")) == list(dict.fromkeys(both))
    said = error_of("ingest", path, tmp_path / "u.zarr", *mean, "patient,age,site")
    assert "no such column 'patient,age,site' (--groups); expected a feature, or one of" in said
    assert not (tmp_path / "u.zarr").exists()


@pytest.mark.parametrize("kind", [*PLAIN, "dense", "csr", "csc"])
def test_tables_keep_to_their_contract(tmp_path, kind):
    path = tmp_path / "t"
    plain(path, **PLAIN[kind]) if kind in PLAIN else cells(path, kind)
    table = opened(path)
    check_table(table, VALUES.T.tolist(), NAMES)
    assert table.by_rows == (kind not in ("csr", "csc", "chunks of columns"))
    place = "study/counts" if kind in PLAIN else "X"
    check_table(opened(f"{path}::{place}.T"), VALUES.tolist(), ROWS["id"])


@examples(25)
@given(st.integers(1, 9), st.integers(2, 12), st.floats(0, 1), st.integers(0, 2**16), st.data())
def test_a_sparse_matrix_by_rows_is_turned_cell_by_cell(
    tmp_path_factory, n_rows, n_columns, share, seed, data
):
    """In bands of few cells; cells that are there twice are summed, as everywhere."""
    rng, path = np.random.default_rng(seed), tmp_path_factory.mktemp("h5") / "t.h5"
    values = np.where(rng.random((n_rows, n_columns)) < share, rng.normal(size=n_columns), 0)
    with h5py.File(path, "w") as file:
        group = sparse(file, "m", "csr", values)
        has_room = values.any(axis=1) & ~values.all(axis=1)
        if has_room.any() and data.draw(st.booleans()):
            row = int(has_room.argmax())
            at = int(group["indptr"][row])
            column = int(group["indices"][at])
            for name, more in (("data", 2.5), ("indices", column)):
                found = np.insert(group[name][:], at, more)
                del group[name]
                group[name] = found
            group["indptr"][row + 1 :] += 1
            values[row, column] += 2.5
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(hdf5, "TOGETHER", data.draw(st.integers(1, 20)))
        table = opened(path)
        columns = rng.permutation(n_columns)
        np.testing.assert_array_equal(table.read(columns, None), values.T[columns])
    table.close()


@pytest.mark.parametrize(
    ("chunk", "by_rows"),
    [((3000, 4), False), ((300, 200), True), ((3000, 500), True), ((1, 2000), True)],
)
def test_a_matrix_is_read_whichever_way_unpacks_less(tmp_path, chunk, by_rows):
    """It has 48 MB; a band of chunks as wide as it is kept up to 32 MB."""
    for turn, place in ((1, "t.h5"), (-1, "u.h5::x.T")):
        with h5py.File(tmp_path / place.partition("::")[0], "w") as file:
            file.create_dataset("x", (3000, 2000)[::turn], "f8", chunks=chunk[::turn])
        assert opened(tmp_path / place).by_rows == by_rows


# Cells of netCDF that attributes say how to take.

F4, I1, I2 = np.float32, np.int8, np.int16
NETCDF = {
    "a fill value": ("i2", {"_FillValue": I2(-9)}),
    "one of floats": ("f4", {"_FillValue": F4(-9)}),
    "one of bytes": ("u1", {"_FillValue": np.uint8(247)}),
    "one that no byte is": ("u1", {"_FillValue": I2(-9)}),
    "several values": ("i4", {"missing_value": np.array([-9, 2], "i4")}),
    "both": ("i2", {"_FillValue": I2(-9), "missing_value": I2(2)}),
    "in an array of one item": ("f8", {"missing_value": np.array([-9.0])}),
    "packed by float64": ("i2", {"scale_factor": 0.1}),
    "packed by float32": ("i2", {"_FillValue": I2(-9), "scale_factor": F4(0.1)}),
    "packed and shifted": ("i2", {"scale_factor": F4(0.1), "add_offset": F4(20)}),
    "shifted by another dtype": ("i2", {"scale_factor": F4(0.1), "add_offset": 20.0}),
    "shifted alone": ("i2", {"add_offset": F4(20)}),
    "packed in 32 bits": ("i4", {"scale_factor": F4(0.1), "add_offset": F4(20)}),
    "packed in 32 bits by float32": ("i4", {"scale_factor": F4(0.1), "_FillValue": np.int32(2)}),
    "packed floats": ("f8", {"scale_factor": F4(0.1)}),
    "packed in 32 bits, unsigned": ("u4", {"scale_factor": F4(0.1), "add_offset": F4(1)}),
    "unsigned": ("i1", {"_Unsigned": "true"}),
    "unsigned, with a fill value": ("i1", {"_Unsigned": "true", "_FillValue": I1(-9)}),
    "unsigned, with one of its own": ("i1", {"_Unsigned": "true", "missing_value": I2(247)}),
    "unsigned in two bytes": ("i2", {"_Unsigned": "true", "_FillValue": I2(-9)}),
    "unsigned and packed": ("i1", {"_Unsigned": "true", "scale_factor": 0.5, "add_offset": 10.0}),
    "signed": ("u1", {"_Unsigned": "false", "_FillValue": np.uint8(247)}),
    "a valid range, which xarray leaves": ("i2", {"valid_range": np.array([0, 100], "i2")}),
    "another kind of value": ("i2", {"missing_value": "-9"}),
    "none that is unsigned": ("i1", {"_Unsigned": "true", "_FillValue": np.nan}),
    "no number at all": ("f8", {"_FillValue": np.nan}),
}


@pytest.mark.filterwarnings("ignore:variable 'x' has")
@pytest.mark.parametrize("kind", NETCDF)
def test_cells_are_taken_as_xarray_takes_them(tmp_path, kind):
    xarray = pytest.importorskip("xarray")
    dtype, attrs = NETCDF[kind]
    stored = np.array([[1, 2, 3], [-9, 100, 5], [7, 101, -9], [2, 2, 40]]).astype(dtype)
    variable = xarray.Variable(("row", "gene"), stored, dict(attrs))
    wanted = xarray.conventions.decode_cf_variable("x", variable).values
    with h5py.File(tmp_path / "t.nc", "w") as file:
        for name, values in {"x": stored, "beside": stored[:, 0]}.items():
            file.create_dataset(name, data=values, chunks=True).attrs.update(attrs)
        if "_Unsigned" in attrs:  # as netCDF writes texts
            file["x"].attrs["_Unsigned"] = np.bytes_(attrs["_Unsigned"])
    for turned, matrix in {"": wanted, ".T": wanted.T}.items():
        table = opened(f"{tmp_path / 't.nc'}::x{turned}")
        check_table(table, matrix.T.tolist())
        assert table.narrow == np.can_cast(wanted.dtype, "f4", "safe") or dtype in ("i4", "u4")
        table.close()
    beside = [*opened(tmp_path / "t.nc").annotations["beside"]]
    found = np.array([np.nan if one is None else one for one in beside])
    np.testing.assert_array_equal(found, wanted[:, 0])


def test_what_a_file_declares_missing_is_missing_where_xarray_leaves_it(tmp_path):
    """By another dtype or sign than that of the cells; and integers pack floats as numbers do."""
    with h5py.File(tmp_path / "t.nc", "w") as file:
        file["x"] = np.array([[1.5, -9999.9], [2.5, 3]], "f4")
        file["x"].attrs["missing_value"] = -9999.9
        file["a/x"] = np.array([[1, -1], [-2, 3]], "i1")
        file["a/x"].attrs.update({"_Unsigned": np.bytes_("True"), "missing_value": I1(-1)})
        file["b/x"] = np.array([[1.5, 4], [-2, 3]])
        file["b/x"].attrs["scale_factor"] = np.int32(2)
    found = {
        "x": [[1.5, 2.5], [np.nan, 3]],
        "a/x": [[1, 254], [np.nan, 3]],
        "b/x": [[3, -4], [8, 6]],
    }
    for name, wanted in found.items():
        check_table(opened(f"{tmp_path / 't.nc'}::{name}"), wanted)


def test_roles_are_decoded_as_the_matrix_is(tmp_path):
    with h5py.File(tmp_path / "t.nc", "w") as file:
        file["x"] = VALUES[:, :3]
        file["y"] = np.arange(N_ROWS, dtype="i2")
        file["y"].attrs.update({"_FillValue": I2(3), "scale_factor": 0.5})
        file["age"] = np.arange(N_ROWS, dtype="f4")
        file["age"].attrs["missing_value"] = F4(5)
        file["number"] = np.arange(N_ROWS) + 2**60
        file["number"].attrs["_FillValue"] = np.int64(-1)
        file.create_dataset("sex", data=["m", "f", "gone"] * 10, dtype=TEXT)
        file["sex"].attrs["missing_value"] = "gone"
    options = ("--target", "y", "--task", "regression", "--covariates", "age,sex")
    options += ("--row-ids", "number")
    said = srs_ooc("ingest", tmp_path / "t.nc", tmp_path / "t.zarr", *options)
    store = open_store(tmp_path / "t.zarr")
    rows = [row for row in range(N_ROWS) if row != 3]
    assert store.manifest.n_rows == len(rows), said
    assert store.target().tolist() == [row / 2 for row in rows]
    age, sex = (one.values for one in store.covariates())
    np.testing.assert_array_equal(age, [np.nan if row == 5 else row for row in rows])
    assert [*np.isnan(sex)] == [row % 3 == 2 for row in rows]
    ids = Names(store.path, store.manifest, "row_ids")
    assert [*ids] == [str(row + 2**60) for row in rows]


def test_texts_of_netcdf_may_be_lines_of_characters(tmp_path):
    """As netCDF 1.7.5 for Python writes them: joined without the zeros at their ends."""
    texts = {"station": ["s1", "s22", "s3", "s4"], "note": ["a", "", "caf\u00e9", "d"]}
    with h5py.File(tmp_path / "t.nc", "w") as file:
        file["x"] = VALUES[:4, :1]
        for name, items in {**texts, "gene": ["g1"]}.items():
            cells = np.array([item.encode() for item in items], "S6")
            file[name] = cells.view("S1").reshape(-1, 6)
            file[name].attrs["_Netcdf4Coordinates"] = [0, 1]
        file["letters"] = np.array([list("ab")] * 4, "S1")  # of no netCDF
        file["empty"] = np.zeros((4, 0), "S1")
        file["empty"].attrs["DIMENSION_LIST"] = [0, 1]
    table = opened(tmp_path / "t.nc::x")
    assert {name: [*one] for name, one in table.annotations.items()} == texts
    assert [*table.names] == ["g1"]


def test_a_scale_that_is_no_number_is_refused_where_it_is_needed(tmp_path):
    with h5py.File(tmp_path / "t.nc", "w") as file:
        file["x"], file["y"] = VALUES[:, :3], np.arange(N_ROWS)
        file["y"].attrs["scale_factor"] = [1.0, 2.0]
    table = opened(tmp_path / "t.nc")
    message = r"t\.nc, /y: expected one number as scale_factor, found a"
    with pytest.raises(InputError, match=message):
        list(table.annotations["y"])


# Files of AnnData: older ones, other matrices, and what they say of cells.


def test_what_a_file_says_of_cells_is_read_as_any_version_wrote_it(tmp_path):
    path = cells(tmp_path / "t.h5ad", rows={"id": ROWS["id"]})
    some = [None if i == 2 else "ab"[i % 2] for i in range(N_ROWS)]
    with h5py.File(path, "r+") as file:
        obs = file["obs"]
        categorical(obs, "new", some)
        numbers = obs.create_group("numbers")
        numbers["values"], numbers["mask"] = np.arange(N_ROWS), np.arange(N_ROWS) == 2
        obs["flag"] = np.arange(N_ROWS) % 2 == 0
        obs["image"] = np.zeros((N_ROWS, 2, 2))
        codes = np.array([-1 if one is None else "ab".index(one) for one in some], "int8")
        levels = obs.create_dataset("__categories/old", data=["a", "b"], dtype=TEXT)
        obs.create_dataset("old", data=codes)
        obs.create_dataset("referring", data=codes).attrs["categories"] = levels.ref
    known = opened(path).annotations
    assert list(known) == ["flag", "id", "new", "numbers", "old", "referring"]
    assert list(known["flag"])[:3] == [True, False, True]
    assert list(known["numbers"])[:4] == [0, 1, None, 3]
    for name in ("new", "old", "referring"):
        assert (list(known[name]), known[name][5]) == (some, some[5])


def nullable(group, name, values):
    """Write a column that may miss items: their values, and a mask."""
    one = group.create_group(name)
    is_text = any(isinstance(value, str) for value in values)
    one.attrs["encoding-type"] = f"nullable-{'string-array' if is_text else 'integer'}"
    some = next(value for value in values if value is not None)
    filled = [type(some)() if value is None else value for value in values]
    one.create_dataset("values", data=filled, dtype=TEXT if is_text else None)
    one["mask"] = [value is None for value in values]


def pandas_3(path, levels, codes, **columns):
    """Write cells as AnnData 0.12.6 does of what pandas 3.1.1 holds."""
    with h5py.File(path, "w") as file:
        file["X"] = VALUES[: len(codes)]
        for name, stem, n in (("obs", "c", len(codes)), ("var", "g", N_FEATURES)):
            frame = file.create_group(name)
            frame.attrs["_index"] = "_index"
            nullable(frame, "_index", [f"{stem}{i}" for i in range(n)])
        known = file.create_group("obs/kind")
        known.attrs["encoding-type"] = "categorical"
        known["codes"] = np.array(codes, "i1")
        if isinstance(levels[0], str):
            nullable(known, "categories", levels)
        else:
            known["categories"] = levels
        for name, values in columns.items():
            nullable(file["obs"], name, values)
    return path


@pytest.mark.parametrize("levels", [["no", "yes"], [3, 10], [False, True], [0.5, 1.5]])
@pytest.mark.parametrize("on_zarr", [False, True])
@pytest.mark.filterwarnings("ignore::zarr.errors.UnstableSpecificationWarning")
def test_cells_that_pandas_3_held_are_read(tmp_path, levels, on_zarr):
    more = {"n": [1, None, 3, 4], "flag": [True, False, None, True], "note": ["a", None, "b", ""]}
    path = pandas_3(tmp_path / "t.h5ad", levels, [1, 0, -1, 1], **more)
    if on_zarr:
        with h5py.File(path) as file:
            copied(file, zarr.open_group(tmp_path / "t.zarr", mode="w"))
        path = tmp_path / "t.zarr"
    table = opened(path)
    low, high = levels
    assert [*table.annotations.pop("kind")] == [high, low, None, high]
    assert [*table.annotations.pop("_index")] == ["c0", "c1", "c2", "c3"]
    assert {name: [*one] for name, one in table.annotations.items()} == more
    assert [*table.names] == [f"g{i}" for i in range(N_FEATURES)]


def test_columns_of_an_encoding_that_is_not_known_are_passed_over(tmp_path):
    path = pandas_3(tmp_path / "t.h5ad", ["no", "yes"], [1, 0] * 9)
    with h5py.File(path, "r+") as file:
        obs = file["obs"]
        ragged = obs.create_group("ragged")
        ragged.attrs["encoding-type"] = "awkward-array"
        ragged["node0-offsets"] = np.arange(19)
        del file["obs/kind/categories"]
        sparse(obs, "kind/categories", "csr", np.eye(2))
        nullable(obs, "values", list(range(18)))
        obs["codes"] = np.arange(18)
        obs["categories"] = np.arange(18)
    assert {*opened(path).annotations} == {"_index", "values", "codes", "categories"}
    said = error_of("ingest", path, tmp_path / "t.zarr", "--target", "ragged")
    assert "no such column 'ragged' (--target); expected a feature, or one of" in said
    srs_ooc("ingest", path, tmp_path / "t.zarr", "--target", "values")


def test_files_before_anndata_07_are_read(tmp_path):
    """Rows and columns are records there, and sparse matrices say so in other words."""
    path = tmp_path / "t.h5ad"
    with h5py.File(path, "w") as file:
        group = sparse(file, "X", "csc", VALUES)
        del group.attrs["encoding-type"], group.attrs["shape"]
        group.attrs["h5sparse_format"], group.attrs["h5sparse_shape"] = "csc", VALUES.shape
        rows = [(one.encode(), i % 2, i / 4) for i, one in enumerate(ROWS["id"])]
        file["obs"] = np.array(rows, [("index", "S8"), ("state", "i1"), ("n_counts", "f4")])
        file["var"] = np.array([(one.encode(),) for one in NAMES], [("index", "S8")])
        file["uns/state_categories"] = np.array([b"no", b"yes"])
    table = opened(path)
    check_table(table, VALUES.T.tolist(), NAMES)
    assert list(table.annotations["index"]) == ROWS["id"]
    assert list(table.annotations["state"])[:3] == ["no", "yes", "no"]
    srs_ooc("ingest", path, tmp_path / "t.zarr", "--target", "n_counts")
    manifest = read_manifest(tmp_path / "t.zarr")
    assert (manifest.task, manifest.inferred["row_ids"]) == ("regression", "'index' of the file")


def test_layers_and_raw_counts_are_named(tmp_path):
    path = cells(tmp_path / "t.h5ad")
    with h5py.File(path, "r+") as file:
        file["layers/counts"] = VALUES + 1
        sparse(file, "raw/X", "csc", np.hstack([VALUES, VALUES]))
        names_in(file, "raw/var", [*NAMES, *NAMES])
        file["obsm/pca"] = VALUES[:, :3]
    check_table(opened(f"{path}::layers/counts"), (VALUES + 1).T.tolist(), NAMES)
    check_table(opened(f"{path}::/obsm/pca"), VALUES[:, :3].T.tolist(), None)
    raw = opened(f"{path}::raw/X")
    repeated = [*NAMES, *(f"{name}-1" for name in NAMES)]
    check_table(raw, np.hstack([VALUES, VALUES]).T.tolist(), repeated)
    assert list(raw.annotations["id"]) == ROWS["id"]


def test_repeated_names_are_made_distinct_as_anndata_does(tmp_path):
    names = ["a", "b", "a", "a-1", "a", "b", *"cdefgh"]
    path = cells(tmp_path / "t.h5ad", names=names)
    wanted = ["a", "b", "a-2", "a-1", "a-3", "b-1", *"cdefgh"]
    assert list(opened(path).names) == wanted
    srs_ooc("ingest", path, tmp_path / "t.zarr", "--target", "state")
    manifest = read_manifest(tmp_path / "t.zarr")
    assert list(Names(tmp_path / "t.zarr", manifest, "names")) == wanted


def test_cells_that_are_written_twice_are_added_up(tmp_path):
    path = cells(tmp_path / "t.h5ad", "csr", np.eye(N_ROWS, N_FEATURES))
    with h5py.File(path, "r+") as file:
        file["X/indices"][:2] = 0
        file["X/indptr"][:3] = [0, 2, 2]
    assert opened(path).read(np.arange(2), None)[:, 0].tolist() == [2, 0]


@pytest.mark.parametrize("dtype", ["bool", "i1", "u2", "i4", "i8", "f4", "f8"])
@pytest.mark.parametrize("kind", ["csr", "csc"])
def test_a_line_may_have_more_cells_written_than_it_has(tmp_path, monkeypatch, kind, dtype):
    """In any order, zeros among them; SciPy sums in the dtype of the cells, and so is it here."""
    monkeypatch.setattr(hdf5, "TOGETHER", 7)
    rng, shape = np.random.default_rng(5), (6, 4)
    n_lines, n_items = shape[:: 1 if kind == "csr" else -1]
    ends = np.cumsum([0, *rng.integers(0, 5 * n_items, n_lines)])
    parts = rng.integers(-90, 90, ends[-1]).astype(dtype), rng.integers(0, n_items, ends[-1]), ends
    matrix = getattr(scipy.sparse, f"{kind}_matrix")(parts, shape=shape)
    wanted = matrix.toarray().astype(float)
    with h5py.File(tmp_path / "t.h5", "w") as file:
        group = sparse(file, "m", kind, np.zeros(shape))
        for name, values in zip(("data", "indices", "indptr"), parts, strict=True):
            del group[name]
            group[name] = values
    scipy.sparse.save_npz(tmp_path / "t.npz", matrix)
    columns = np.arange(shape[1])
    for place in ("t.h5", "t.npz"):
        np.testing.assert_array_equal(opened(tmp_path / place).read(columns, None), wanted.T)
    turned = opened(f"{tmp_path / 't.h5'}::m.T").read(np.arange(shape[0]), None)
    np.testing.assert_array_equal(turned, wanted)
    for one in (matrix, matrix.tocoo(), matrix.tocsr(), matrix.tocsc()):
        np.testing.assert_array_equal(open_object(one).read(columns, None), wanted.T)
    assert matrix.nnz == ends[-1]  # what was given stays as it was


@pytest.mark.parametrize(
    ("name", "options", "shape"),
    [
        ("v0.7.0-adata.h5ad", ["--target", "obs_cat", "--task", "classification"], (30, 20)),
        ("v0.7.0-adata.h5ad::layers/array", ["--target", "float64"], (30, 20)),
        ("v0.7.0-adata.h5ad::layers/sparse", ["--target", "uint8"], (30, 20)),
        ("v0.7.0-adata.h5ad::raw/X", ["--no-target"], (30, 40)),
    ],
)
def test_files_that_anndata_wrote_are_read(tmp_path, name, options, shape):
    path = data_file("anndata-archives") / name
    srs_ooc("ingest", path, tmp_path / "t.zarr", *options, "--min-class-rows", 1)
    manifest = read_manifest(tmp_path / "t.zarr")
    assert (manifest.n_rows, manifest.n_features) == shape


# Files of MATLAB.


def test_matrices_of_matlab_are_turned_round(tmp_path):
    path = tmp_path / "t.mat"
    with h5py.File(path, "w", userblock_size=512) as file:
        file["x"], file["y"] = VALUES.T, np.arange(N_ROWS)[None] % 3 + 0.0
        file["title"] = np.array([[72], [105]], np.uint16)
        for name, kind in (("x", "double"), ("y", "double"), ("title", "char")):
            file[name].attrs["MATLAB_class"] = np.bytes_(kind)
    with path.open("r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64")
    check_table(opened(path), VALUES.T.tolist(), None)
    srs_ooc("ingest", path, tmp_path / "t.zarr", "--target", "y")
    assert read_manifest(tmp_path / "t.zarr").classes == ("0", "1", "2")
    check_table(opened(f"{path}::x.T"), VALUES.tolist(), None)


# Options: --orient features, --samples, --names.


def test_orient_features_turns_a_dataset_round(tmp_path, twin):
    path = plain(tmp_path / "t.h5", VALUES.T)
    beside = ("--samples", write_columns(tmp_path / "cells.csv", ROWS), "--id", "id")
    for place, turn in ((path, ("--orient", "features")), (f"{path}::study/counts.T", ())):
        found = ingested(place, tmp_path / f"{len(turn)}.zarr", more=(*turn, *beside))
        assert found.checksums == twin.checksums


def test_datasets_are_pieces_of_a_table(tmp_path, twin):
    first, second = (plain(tmp_path / f"{name}.h5", VALUES) for name in "ab")
    for path, names in ((first, NAMES), (second, [f"b{j}" for j in range(N_FEATURES)])):
        with h5py.File(path, "r+") as file:
            file["study/genes"][:] = names
    pieces = (f"{first}::/study/counts", f"{second}::/study/counts")
    found = ingested(pieces[0], pieces[1], tmp_path / "t.zarr")
    assert (found.n_rows, found.n_features) == (N_ROWS, 2 * N_FEATURES)
    assert found.source["name"] == "a.h5 and 1 more"
    assert found.checksums["target/c/0"] == twin.checksums["target/c/0"]


@pytest.mark.slow
@pytest.mark.parametrize("lacks", [False, True])
def test_files_of_cells_are_pieces_whose_target_stands_beside(tmp_path, lacks):
    rows = ROWS | {"state": [None, *ROWS["state"][1:]]} if lacks else ROWS
    whole = ingested(cells(tmp_path / "t.h5ad", rows=rows), tmp_path / "t.zarr")
    pieces = []
    for first, last in ((0, 3), (3, 4), (4, N_FEATURES)):
        some = {"values": VALUES[:, first:last], "names": NAMES[first:last], "rows": rows}
        pieces.append(cells(tmp_path / f"{first}.h5ad", "csc", **some))
    found = ingested(*pieces, tmp_path / "p.zarr")
    assert found.checksums == whole.checksums
    assert found.n_dropped_rows == lacks
    others = ROWS | {"state": ROWS["state"][::-1]}
    other = cells(tmp_path / "o.h5ad", names=[f"o{j}" for j in range(N_FEATURES)], rows=others)
    said = error_of("ingest", pieces[0], other, tmp_path / "q.zarr", *ASKED)
    assert lacks or "expected the target of" in said


def test_names_in_a_file_and_none_at_all(tmp_path):
    path = filled(tmp_path / "t.h5", x=VALUES[:, 1:4])
    (tmp_path / "names.txt").write_text("a\nb\nc\n")
    srs_ooc("ingest", path, tmp_path / "t.zarr", "--names", tmp_path / "names.txt", "--target", "c")
    manifest = read_manifest(tmp_path / "t.zarr")
    assert list(Names(tmp_path / "t.zarr", manifest, "names")) == ["a", "b"]
    np.testing.assert_array_equal(values_of(tmp_path / "t.zarr"), VALUES[:, 1:3].T)
    srs_ooc("ingest", path, tmp_path / "u.zarr")
    assert read_manifest(tmp_path / "u.zarr").target_name == "f2"


# What is refused.


def virtual(file):
    layout = h5py.VirtualLayout((N_ROWS, 3), "f8")
    layout[:] = h5py.VirtualSource("other.h5", "x", (N_ROWS, 3))
    file.create_virtual_dataset("x", layout)


def both(file):
    file["a/x"], file["b"] = VALUES, VALUES


def elsewhere(file):
    file.create_dataset("x", (4, 4), "f8", external=[("other.bin", 0, 128)])


def linked(link):
    return lambda file: file.update({"real": VALUES, "x": link})


def holding(name, *shape_and_dtype, **data):
    return lambda file: file.create_dataset(name, *shape_and_dtype, **data)


REFUSED = {
    "::/none": (both, r"expected none in the file, found no none, but a, b\. Name one"),
    "::/a/none": (both, r"found no none, but x\."),
    "": (both, r"expected one matrix of numbers, found /a/x, /b\. Name one: .*t\.h5::/a/x\."),
    "::/x": (elsewhere, "found a link or another file for x, but nothing"),
    "::x": (virtual, "found a link or another file for x"),
    "::x/": (linked(h5py.ExternalLink("o.h5", "/x")), "found a link or another"),
    "::/x/": (linked(h5py.SoftLink("/real")), "found a link .* but real"),
    "::x.T": (holding("x", data=np.zeros(3)), "expected a matrix of at"),
    "::texts": (
        holding("texts", data=[["a", "b"]], dtype=TEXT),
        r"expected numbers \(bool, integers",
    ),
    "::records": (
        holding("records", data=np.zeros((2, 2), "i4,f8")),
        r"expected numbers .* found \[\('f0'",
    ),
    "::references": (
        holding("references", (2, 2), h5py.ref_dtype),
        "expected numbers .* found object",
    ),
    "::promised": (
        holding("promised", (10**6, 10**6), "f8"),
        r"expected 8,000,000,000,000 bytes for \(1000000, 1000000\), found 0\.",
    ),
    "::group": (lambda file: file.create_group("group"), "one matrix of numbers, found nothing"),
    "::null": (holding("null", data=h5py.Empty("f8")), "found the shape"),
}


@pytest.mark.few(1)
@pytest.mark.parametrize("place", REFUSED)
def test_what_is_no_matrix_of_the_file_is_refused(tmp_path, place):
    fill, said = REFUSED[place]
    path = filled(tmp_path / "t.h5", fill)
    assert re.search(said, error_of("ingest", f"{path}{place}", tmp_path / "t.zarr"))


@pytest.mark.slow
def test_other_files_and_cells_without_a_matrix_are_refused(tmp_path):
    twin, path = csv(tmp_path), cells(tmp_path / "t.h5ad", name="other")
    said = error_of("ingest", f"{twin}::x", tmp_path / "t.zarr")
    assert said.endswith(
        "expected :: and a name after a file of HDF5, MATLAB, NumPy, VCF, BGEN, MatrixMarket, "
        "Zarr, found a text table. Leave both out."
    )
    said = error_of("ingest", path, tmp_path / "t.zarr")
    assert "expected X in the file, found no X, but obs, other, var. Name one" in said
    said = error_of("ingest", f"{path}::other", tmp_path / "t.zarr")
    assert "expected --target, as no column of this format is the last" in said
    assert "Name one of age, id, patient, sex, state, a feature, or a column of --samples" in said
    assert "no such file" in error_of("ingest", tmp_path / "no.h5::x", tmp_path / "t.zarr")


def test_a_missing_library_is_named(tmp_path, monkeypatch):
    path = cells(tmp_path / "t.h5ad")
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(UsageError, match=r"expected h5py to be installed.*'srs-ooc\[cells\]'"):
        opened(path)


WRONG = {
    "a place beyond the columns": ("X/indices", 3, N_FEATURES),
    "a place before them": ("X/indices", 3, -1),
    "lines that go back": ("X/indptr", 4, 1),
    "more cells than there are": ("X/indptr", N_ROWS, 10**6),
    "a first line that begins later": ("X/indptr", 0, 1),
    "a category that is none": ("obs/state/codes", 5, 9),
}


@pytest.mark.few(1)
@pytest.mark.parametrize("what", WRONG)
def test_parts_that_do_not_agree_are_damage(tmp_path, what):
    name, place, value = WRONG[what]
    path = cells(tmp_path / "t.h5ad", "csr")
    with h5py.File(path, "r+") as file:
        file[name][place] = value
    assert "found" in error_of("ingest", path, tmp_path / "t.zarr", *ASKED)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["dense", "csr", "csc", "tiles"])
def test_damage_is_told_wherever_a_file_ends(tmp_path, kind):
    path = tmp_path / "t.h5"
    plain(path, **PLAIN[kind]) if kind == "tiles" else cells(path, kind)
    whole, n_found = path.read_bytes(), 0
    for n_bytes in [*range(1, 9), 60, 96, 600, *range(1000, len(whole), len(whole) // 17)]:
        path.write_bytes(whole[:n_bytes])
        with pytest.raises(InputError):
            ingest(path, tmp_path / "t.zarr", target="state")
        n_found += 1
    assert n_found > 20
    path.write_bytes(whole)
    with pytest.raises(InputError) as refused:
        ingest(path, tmp_path / "t.zarr", target="none")
    assert h5py.File(path, "r+").close() is None, refused  # which holds what was open
    rng = np.random.default_rng(0)
    for _ in range(15):  # bytes changed: an error of ours, or a store
        found = bytearray(whole)
        for at in rng.integers(8, len(whole), 8).tolist():
            found[at] ^= 255
        path.write_bytes(found)
        with contextlib.suppress(InputError):
            ingest(path, tmp_path / "t.zarr", target="state", overwrite=True)


# AnnData on Zarr.


def copied(group, to):
    """Copy a group of HDF5 to one of Zarr."""
    to.attrs.update({
        key: value.tolist() if hasattr(value, "tolist") else value
        for key, value in group.attrs.items()
    })  # fmt: skip
    for name, node in list(group.items()):  # an open iteration holds the lock of h5py
        if isinstance(node, h5py.Group):
            copied(node, to.create_group(name))
            continue
        cells = node.asstr()[:].tolist() if h5py.check_string_dtype(node.dtype) else node[:]
        cells = np.array(cells, "T") if isinstance(cells, list) else cells
        to.create_array(name, data=cells, chunks=tuple(min(7, n) for n in cells.shape))


@pytest.mark.filterwarnings("ignore::zarr.errors.UnstableSpecificationWarning")
@pytest.mark.filterwarnings("ignore::zarr.errors.ZarrUserWarning")
@pytest.mark.parametrize("kind", ["dense", "csr", "csc"])
@pytest.mark.parametrize("form", [2, 3])
def test_anndata_on_zarr_becomes_the_store_of_h5ad(tmp_path, kind, form):
    path = cells(tmp_path / "t.h5ad", kind)
    with h5py.File(path) as file:
        copied(file, zarr.open_group(tmp_path / "t.zarr", mode="w", zarr_format=form))
    roles = {"target": "state", "covariates": ["sex", "age"], "groups": "patient"}
    expected = ingest(path, tmp_path / "h.zarr", **roles)
    manifest = ingest(tmp_path / "t.zarr", tmp_path / "z.zarr", **roles)
    assert manifest.checksums == expected.checksums
    assert manifest.source["format"] == "anndata zarr /X"
    with pytest.raises(InputError, match="found no nothing, but"):
        ingest(f"{tmp_path / 't.zarr'}::nothing", tmp_path / "n.zarr", target="state")


# Memory.


@pytest.mark.parametrize("kind", ["csr", pytest.param("csc", marks=pytest.mark.slow)])
def test_the_peak_stays_under_the_smallest_cap(tmp_path, kind):
    """5,000 cells by 4,000 genes, one in ten known: dense they are 160 MB."""
    rng = np.random.default_rng(0)
    n_rows, n_features = 5000, 4000
    path = tmp_path / "t.h5ad"
    with h5py.File(path, "w") as file:
        n_lines, n_items = (n_rows, n_features)[:: 1 if kind == "csr" else -1]
        ends = np.arange(n_lines + 1) * (n_items // 10)
        group = file.create_group("X")
        places = np.arange(0, n_items, 10) + rng.integers(0, 10, (n_lines, n_items // 10))
        more = {"compression": "gzip", "compression_opts": 1}
        group.create_dataset("data", data=rng.integers(1, 9, ends[-1]).astype("f4"), **more)
        group.create_dataset("indices", data=places.ravel().astype("i4"), **more)
        group["indptr"] = ends
        group.attrs["encoding-type"], group.attrs["shape"] = f"{kind}_matrix", (n_rows, n_features)
        names_in(file, "obs", [f"c{i}" for i in range(n_rows)])
        names_in(file, "var", [f"g{i}" for i in range(n_features)])
        file["obs/state"] = np.arange(n_rows) % 2 == 0
    arguments = ("ingest", path, tmp_path / "t.zarr", "--target", "state")
    foretold = srs_ooc(*arguments, "--memory-mb", 300, "--dry-run").stdout
    least = int(re.search(r"--memory-mb (\d+) or more", foretold)[1])
    assert least_cap(*arguments, too_small=least - 1) == least
    assert check_least_cap(*arguments) == least


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csr", "csc"])
def test_a_line_of_many_repeats_takes_no_more_memory(tmp_path, kind):
    """Twelve million cells of a line are 144 MB, and the same one."""
    n_repeats, n_lines = 12_000_000, 100
    with h5py.File(tmp_path / "t.h5ad", "w") as file:
        group, more = file.create_group("X"), {"compression": "gzip", "compression_opts": 1}
        group.create_dataset("data", data=np.ones(n_repeats, "i4"), **more)
        group.create_dataset("indices", data=np.full(n_repeats, 7, "i4"), **more)
        group["indptr"] = np.where(np.arange(n_lines + 1) > 3, n_repeats, 0)
        group.attrs["encoding-type"], group.attrs["shape"] = f"{kind}_matrix", (100, 100)
        for name in ("obs", "var"):
            names_in(file, name, [f"{name}{i}" for i in range(100)])
        file["obs/state"] = np.arange(100) % 2
    arguments = ("ingest", tmp_path / "t.h5ad", tmp_path / "t.zarr", "--target", "state")
    check_least_cap(*arguments, too_small=80)
    place = (7, 3) if kind == "csr" else (3, 7)
    assert values_of(tmp_path / "t.zarr")[place] == n_repeats
