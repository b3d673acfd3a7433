"""Files that are no text tables become the store of their CSV; damage and changes are found."""

import gzip
import math
import re
import shutil
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pandas
import pytest
import zarr
from refusals import refused
from stores import values_of
from tables import here, opened, said_here, write_columns

import srs_ooc
from srs_ooc.base.errors import BudgetError, InputError
from srs_ooc.ingestion import scratch
from srs_ooc.ingestion.formats import in_memory
from srs_ooc.store.arrays import Names
from srs_ooc.store.manifest import read_manifest
from srs_ooc.store.store import Store
from srs_ooc.testing import check_table

RNG = np.random.default_rng(3)
VALUES = RNG.normal(size=(31, 12)) * (RNG.random((31, 12)) < 0.5)
VALUES += 0.0  # a sparse matrix keeps no sign of a zero, and a store does
VALUES[3, 4] = VALUES[30, 0] = math.nan
LABELS = ["no" if i % 3 else "yes" for i in range(31)]
NAMES = [f"é{j}" for j in range(12)]


def holds(store: Path, values=VALUES, names=NAMES, labels=LABELS, dtype="float64") -> None:
    manifest = read_manifest(store)
    group = zarr.open_group(store, mode="r")
    np.testing.assert_array_equal(values_of(store), values.T)
    assert list(Names(store, manifest, "names")) == names
    assert [manifest.classes[c] for c in group["target"][:]] == labels
    assert manifest.values_dtype == dtype
    assert manifest.n_missing_cells == np.isnan(values).sum()
    Store.open(store).verify()


def csv_checksums(folder: Path) -> dict:
    columns = dict(zip(NAMES, VALUES.T.tolist(), strict=True)) | {"target": LABELS}
    write_columns(folder / "twin.csv", columns)
    return srs_ooc.ingest(folder / "twin.csv", folder / "twin.zarr").checksums


def as_pandas():
    return pandas.DataFrame(VALUES, columns=NAMES)


def as_polars():
    frame = pytest.importorskip("polars").DataFrame(VALUES, schema=NAMES)
    return frame.with_columns(frame[NAMES[4]].fill_nan(None))


def as_arrow():
    arrow = pytest.importorskip("pyarrow")
    return arrow.table(
        {name: arrow.array(c, from_pandas=True) for name, c in zip(NAMES, VALUES.T, strict=False)}
    )


def as_sparse(kind):
    return pytest.importorskip("scipy.sparse").csr_array(VALUES).asformat(kind)


OBJECTS = {
    "C array": lambda: VALUES,
    "Fortran array": lambda: np.asfortranarray(VALUES),
    "big-endian array": lambda: VALUES.astype(">f8"),
    "pandas": as_pandas,
    "polars": as_polars,
    "arrow": as_arrow,
    "csr": lambda: as_sparse("csr"),
    "csc": lambda: as_sparse("csc"),
    "coo": lambda: as_sparse("coo"),
}


@pytest.mark.few(4)
@pytest.mark.parametrize("kind", OBJECTS)
def test_objects(tmp_path, kind):
    table = OBJECTS[kind]()
    has_names = kind in ("pandas", "polars", "arrow")
    names = None if has_names else NAMES
    manifest = srs_ooc.ingest(table, tmp_path / "t.zarr", target=LABELS, names=names)
    assert manifest.inferred == {"task": "classification: its values are texts"}
    assert manifest.checksums == csv_checksums(tmp_path)
    holds(tmp_path / "t.zarr")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["t.zarr", "twin.csv", "twin.zarr"]


@pytest.mark.parametrize("order", "CF")
def test_npy_on_the_command_line(tmp_path, order):
    np.save(tmp_path / "t.npy", np.array(VALUES, order=order))
    (tmp_path / "names.txt").write_text("\n".join(NAMES) + "\n")
    (tmp_path / "y.txt").write_text("\n".join(LABELS))
    command = ["ingest", tmp_path / "t.npy", tmp_path / "t.zarr", "--names", tmp_path / "names.txt"]
    here(*command, "--target-file", tmp_path / "y.txt")
    holds(tmp_path / "t.zarr")
    manifest = read_manifest(tmp_path / "t.zarr")
    assert manifest.checksums == csv_checksums(tmp_path)
    assert manifest.source["nbytes"] == (tmp_path / "t.npy").stat().st_size


@pytest.mark.parametrize("keys", [("only",), ("other", "X")])
def test_npz(tmp_path, keys):
    np.savez_compressed(tmp_path / "t.npz", **dict.fromkeys(keys, VALUES))
    srs_ooc.ingest(tmp_path / "t.npz", tmp_path / "t.zarr", target=LABELS, names=NAMES)
    holds(tmp_path / "t.zarr")


def test_arrays_of_an_npz_stand_beside_its_matrix(tmp_path):
    cells, path = np.arange(6.0).reshape(3, 2), tmp_path / "t.npz"
    beside = {"y": ["u", "v", "u"], "ids": ["p", "qq", "r"], "age": [30, 40, 20]}
    parts = {"names": ["a", "bb"], "other": [1, 2], "one": 5, "wrong": np.array([{}] * 3)}
    np.savez(path, X=cells, **{one: np.array(part) for one, part in (beside | parts).items()})
    table = opened(path)
    known = dict(table.annotations)
    objects = known.pop("wrong")
    table.annotations = known
    refused(InputError, r"t\.npz, 'wrong': expected .* found one of Python objects", list, objects)
    check_table(table, cells.T.tolist(), ["a", "bb"], beside)
    assert (table.default_ids, table.default_target) == ("ids", "y")
    here("ingest", path, tmp_path / "t.zarr", "--target", "age", "--covariates", "y")
    assert read_manifest(tmp_path / "t.zarr").target_name == "age"


def test_a_matrix_of_an_npz_is_named_where_there_are_several(tmp_path):
    path = tmp_path / "t.npz"
    np.savez(path, train=VALUES, test=VALUES[:2], label=np.arange(len(VALUES)))
    refused(InputError, r"found train, test, label\. Name one, FILE::NAME", opened, path)
    refused(InputError, "or one named no, found train, test", opened, f"{path}::no")
    table = opened(f"{path}::train")
    assert table.shape == np.shape(VALUES)
    assert list(table.annotations["label"]) == list(range(len(VALUES)))


def test_sparse_npz_and_its_cap(tmp_path):
    sparse = pytest.importorskip("scipy.sparse")
    sparse.save_npz(tmp_path / "t.npz", as_sparse("csr"))
    srs_ooc.ingest(tmp_path / "t.npz", tmp_path / "t.zarr", target=LABELS, names=NAMES)
    holds(tmp_path / "t.zarr")
    with pytest.raises(BudgetError, match=r"t\.npz.*SciPy"):
        srs_ooc.ingest(tmp_path / "t.npz", tmp_path / "u.zarr", target=LABELS, memory_mb=80)


@pytest.mark.parametrize("wide", [0, 1 << 22])
def test_several_panels_and_pieces(tmp_path, monkeypatch, wide):
    """Rows come in pieces that end inside a panel and at its end."""
    monkeypatch.setattr("srs_ooc.ingestion.scratch.WIDE", wide)
    monkeypatch.setattr("srs_ooc.ingestion.ingest_memory.PIECE_NBYTES", 8 * 12 * 4)
    np.save(tmp_path / "t.npy", VALUES)

    def panels(path, n_features, n_rows_held, dtype):
        return scratch.Panels(path, n_features, min(10, n_rows_held), dtype)

    monkeypatch.setattr("srs_ooc.ingestion.reading.Panels", panels)
    srs_ooc.ingest(tmp_path / "t.npy", tmp_path / "t.zarr", target=LABELS, names=NAMES)
    holds(tmp_path / "t.zarr")


def test_a_target_in_long_rows(tmp_path, monkeypatch):
    """Cells of one column are read one by one where rows are long, and in blocks."""
    monkeypatch.setattr("srs_ooc.ingestion.formats.files._LONG", 16)
    monkeypatch.setattr("srs_ooc.ingestion.formats.files._N_CELLS", 3)
    table = np.column_stack([VALUES, np.arange(len(VALUES)) % 2])
    np.save(tmp_path / "t.npy", table)
    srs_ooc.ingest(tmp_path / "t.npy", tmp_path / "t.zarr", names=[*NAMES, "y"])
    holds(tmp_path / "t.zarr", labels=[str(i % 2) for i in range(len(VALUES))])


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64", "float16", "float32"])
def test_narrow_dtypes(tmp_path, dtype):
    values = RNG.integers(0, 2, (9, 4)).astype(dtype)
    manifest = srs_ooc.ingest(values, tmp_path / "t.zarr", target=list("ab" * 4 + "a"))
    assert manifest.inferred["names"] == "f0, f1, ..."
    names = ["f0", "f1", "f2", "f3"]
    holds(tmp_path / "t.zarr", values.astype(float), names, list("ab" * 4 + "a"), "float32")


def test_target_and_ids_are_columns_of_a_frame(tmp_path):
    frame = as_pandas().assign(y=LABELS, id=[f"r{i}" for i in range(31)], text="x")
    manifest = srs_ooc.ingest(frame, tmp_path / "t.zarr", target="y", row_ids="id", ignore=["text"])
    holds(tmp_path / "t.zarr")
    assert (manifest.target_name, manifest.row_id_name) == ("y", "id")
    assert list(Names(tmp_path / "t.zarr", manifest, "row_ids"))[-1] == "r30"
    array = np.column_stack([VALUES, np.arange(31) % 2])
    manifest = srs_ooc.ingest(array, tmp_path / "u.zarr")
    assert (manifest.target_name, manifest.classes) == ("f12", ("0", "1"))
    assert manifest.inferred["target"] == "last column"


def test_nullable_pandas_and_arrow_columns(tmp_path):
    frame = pandas.DataFrame(
        {
            "a": pandas.array([1, None, 3], "Int64"),
            "b": pandas.array([True, False, None], "boolean"),
            "c": pandas.array([0.5, None, 2.0], "Float32"),
        }
    )
    srs_ooc.ingest(frame, tmp_path / "t.zarr", target=[1, 2, 2])
    values = np.array([[1, 1, 0.5], [math.nan, 0, math.nan], [3, math.nan, 2]])
    holds(tmp_path / "t.zarr", values, ["a", "b", "c"], ["1", "2", "2"], "float32")


def infinite():
    return np.where(VALUES[2, 5] == VALUES, np.inf, VALUES)


BAD = {
    "infinity": (infinite, r"row \d+, column 'f\d+'"),
    "big integers": (lambda: np.full((31, 2), 2**53 + 1), r"found 9007199254740993"),
    "complex": (lambda: VALUES * 1j, "expected numbers.*complex128"),
    "objects": (lambda: VALUES.astype(object), "expected numbers.*object"),
    "one dimension": (lambda: VALUES[0], r"rows x columns"),
    "empty": (lambda: VALUES[:0], r"at least one row"),
    "a list": (VALUES.tolist, "expected a path, a NumPy array.*builtins.list"),
    "list column": (lambda: as_pandas().assign(t=[[1]] * 31), "'t', row 1: expected numbers or t"),
    "same names": (lambda: as_pandas().set_axis([*NAMES[:-1], "é0"], axis=1), "distinct column"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_objects_are_refused_and_leave_nothing(tmp_path, case):
    make, match = BAD[case]
    refused(InputError, match, srs_ooc.ingest, make(), tmp_path / "t.zarr", target=LABELS)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"target": LABELS[1:]}, "target: expected 31 items.*found 30"),
        (
            {"target": [None, *LABELS[1:]], "missing_target": "refuse"},
            "row 1: column 'target': expected a target, found an empty cell",
        ),
        ({"target": ["u"] * 31}, "at least two classes"),
        ({"target": "z"}, "no such column 'z'"),
        (
            {"target": LABELS, "names": NAMES[1:]},
            "expected 12 names, one for each column, found 11",
        ),
        ({"target": LABELS, "row_ids": [1] * 31}, "distinct row ids"),
        ({"target": Path("nowhere.txt")}, "nowhere.txt: expected a text file"),
    ],
)
def test_bad_company(tmp_path, options, match):
    refused(InputError, match, srs_ooc.ingest, VALUES, tmp_path / "t.zarr", **options)
    assert list(tmp_path.iterdir()) == []


def test_damaged_files(tmp_path):
    np.save(tmp_path / "t.npy", VALUES)
    whole = (tmp_path / "t.npy").read_bytes()
    (tmp_path / "t.npy").write_bytes(whole[:-8])
    with pytest.raises(InputError, match=r"t\.npy: expected a \.npy file"):
        srs_ooc.ingest(tmp_path / "t.npy", tmp_path / "t.zarr", target=LABELS)
    np.savez(tmp_path / "t.npz", a=VALUES, b=VALUES)
    with pytest.raises(InputError, match="one named X, found a, b"):
        srs_ooc.ingest(tmp_path / "t.npz", tmp_path / "t.zarr", target=LABELS)
    (tmp_path / "t.npz").write_bytes((tmp_path / "t.npz").read_bytes()[:-30])
    with pytest.raises(InputError, match="damage"):
        srs_ooc.ingest(tmp_path / "t.npz", tmp_path / "t.zarr", target=LABELS)


def test_the_package_loads_no_part_until_it_is_asked():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        srs_ooc.nothing  # noqa: B018
    assert srs_ooc.ingest is sys.modules["srs_ooc.ingestion.ingest"].ingest


# svmlight files are the store of their dense table; scikit-learn's own file agrees.


SVMLIGHT = "# made by hand\n+1 1:0.5 3:-2e3\n-1 qid:7 2:1 # note\n\n-1\n+1 3:.25\n"
CELLS = [[0.5, 0, -2000], [0, 1, 0], [0, 0, 0], [0, 0, 0.25]]


@pytest.mark.parametrize("name", ["t.txt", "t.svm", "t.txt.gz"])
def test_a_file_found_by_its_first_line_or_its_name(tmp_path, name):
    raw = SVMLIGHT.encode()
    (tmp_path / name).write_bytes(gzip.compress(raw) if name.endswith("gz") else raw)
    manifest = srs_ooc.ingest(tmp_path / name, tmp_path / "t.zarr")
    np.testing.assert_array_equal(values_of(tmp_path / "t.zarr").T, CELLS)
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
    np.testing.assert_allclose(values_of(tmp_path / "t.zarr").T, table, rtol=1e-15)
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
    refused(InputError, "found none", srs_ooc.ingest, tmp_path / "t.svm", tmp_path / "t.zarr")
    (tmp_path / "t.svm").write_text(SVMLIGHT)
    with pytest.raises(BudgetError, match=r"memory_mb=30 cannot hold .*t\.svm.*SciPy"):
        srs_ooc.ingest(tmp_path / "t.svm", tmp_path / "t.zarr", memory_mb=30)


# Files that change, shrink or vanish while they are read, and archives that are damaged.


N_ROWS, N_COLUMNS = 600, 60
TABLE = np.random.default_rng(0).integers(0, 9, (N_ROWS, N_COLUMNS)).astype(float)
TABLE[:, -1] = np.arange(N_ROWS) % 2


def write_csv(path):
    np.savetxt(path, TABLE, "%.1f", ",", header=",".join(map(str, range(N_COLUMNS))), comments="")


WRITE = {
    "rows.npy": lambda path: np.save(path, TABLE),
    "columns.npy": lambda path: np.save(path, np.asfortranarray(TABLE)),
    "t.csv": write_csv,
}


def shrink(path):
    with path.open("r+b") as file:
        file.truncate(300)


def rewrite(path):
    with path.open("r+b") as file:
        file.seek(-200, 2)
        file.write(b"1")


def grow(path):
    with path.open("ab") as file:
        file.write(b"1\n")


def replace(path):
    shutil.copy(path, path.with_name("copy"))
    rewrite(path.with_name("copy"))
    path.with_name("copy").rename(path)


@pytest.mark.few(4)
@pytest.mark.parametrize("change", [shrink, rewrite, grow, replace, lambda path: path.unlink()])
@pytest.mark.parametrize("name", WRITE)
def test_a_file_that_changes_makes_no_store(tmp_path, monkeypatch, name, change):
    monkeypatch.setattr("srs_ooc.ingestion.ingest_memory.PIECE_NBYTES", 20_000)
    path, done = tmp_path / name, []
    WRITE[name](path)

    def progress(what, *_):
        if not done:
            done.append(what)
            change(path)

    with pytest.raises(InputError, match=name.replace(".", r"\.")):
        srs_ooc.ingest(path, tmp_path / "t.zarr", progress=progress)
    assert done
    assert {p.name for p in tmp_path.iterdir()} <= {name}


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA])
def test_damage_within_an_archive(tmp_path, method):
    path = tmp_path / "t.npz"
    np.save(tmp_path / "X.npy", TABLE)
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.write(tmp_path / "X.npy", "X.npy")
    data = bytearray(path.read_bytes())
    data[200:400] = bytes(200)
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"t\.npz: expected a \.npz file, found damage"):
        srs_ooc.ingest(path, tmp_path / "t.zarr")
    assert not (tmp_path / "t.zarr.partial").exists()


def test_a_header_cut_in_two(tmp_path):
    np.save(tmp_path / "t.npy", TABLE)
    data = (tmp_path / "t.npy").read_bytes()
    (tmp_path / "t.npy").write_bytes(data.replace(b"}", b"(", 1))
    with pytest.raises(InputError, match=r"t\.npy: expected a \.npy file .*Get the file again"):
        srs_ooc.ingest(tmp_path / "t.npy", tmp_path / "t.zarr")


def test_damaged_sparse_archives(tmp_path):
    sparse = pytest.importorskip("scipy.sparse")
    matrix = sparse.csr_matrix(TABLE)
    parts = {"data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr}
    parts |= {"shape": np.array(matrix.shape), "format": np.array(b"csr")}
    for name, wrong in (
        ("indices", matrix.indices + 9),
        ("indptr", matrix.indptr[::-1].copy()),
        ("shape", np.array([3])),
        ("format", np.array(b"what")),
    ):
        np.savez(tmp_path / "t.npz", **parts | {name: wrong})
        with pytest.raises(InputError, match=r"t\.npz: expected a sparse matrix"):
            srs_ooc.ingest(tmp_path / "t.npz", tmp_path / "t.zarr")
    assert [p.name for p in tmp_path.iterdir()] == ["t.npz"]


DEEP = b"\x93NUMPY\x01\x00" + struct.pack("<H", 60_000) + b"(" * 60_000
PICKLED = np.array([None, "a"], object)


@pytest.mark.parametrize("where", ["table", "archive", "target", "names", "shape", "data"])
@pytest.mark.parametrize("kind", ["deep", "objects"])
def test_what_numpy_advises_is_not_said(tmp_path, where, kind):
    bad, path = tmp_path / "bad.npy", tmp_path / "bad.npz"
    bad.write_bytes(DEEP) if kind == "deep" else np.save(bad, PICKLED)
    if where in ("shape", "data"):
        sparse = pytest.importorskip("scipy.sparse")
        sparse.save_npz(tmp_path / "good.npz", sparse.csr_matrix(TABLE))
        with zipfile.ZipFile(tmp_path / "good.npz") as good, zipfile.ZipFile(path, "w") as archive:
            for name in good.namelist():
                is_bad = name == f"{where}.npy"
                archive.writestr(name, bad.read_bytes() if is_bad else good.read(name))
    elif where == "archive":
        with zipfile.ZipFile(path, "w") as archive:
            archive.write(bad, "X.npy")
    table = {"table": bad, "target": TABLE, "names": TABLE}.get(where, path)
    side = {"target": bad if where == "target" else LABELS * 100}
    side |= {"names": str(bad)} if where == "names" else {}
    expected = r"bad\.np[yz]: expected .*, found .*"
    said = refused(InputError, expected, srs_ooc.ingest, table, tmp_path / "t.zarr", **side)
    assert "\n" not in said
    assert not re.search("pickle|securely|trust", said)


def test_lines_of_a_file_in_any_order(tmp_path):
    lines = np.arange(60, dtype=">i2").reshape(12, 5)
    (path := tmp_path / "lines").write_bytes(b"head" + lines.tobytes())
    for positions in ([3], [11, 0, 1, 2, 7, 7], [*range(12)], []):
        places = np.array(positions, np.intp)
        found = in_memory.read_lines(path, lines.dtype, 4, 5, places, "it")
        np.testing.assert_array_equal(found, lines[places])
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(InputError, match=r"it: expected as many bytes.*ingest it again"):
        in_memory.read_lines(path, lines.dtype, 4, 5, np.array([11]), "it")
    path.unlink()
    with pytest.raises(InputError, match="it: reading failed: No such file"):
        in_memory.read_lines(path, lines.dtype, 4, 5, np.array([0]), "it")


def test_a_stream_of_arrow_and_a_pickle_are_named_with_the_line_that_makes_a_table(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    from pyarrow import ipc

    table = arrow.table({"x": range(8), "y": ["a", "b"] * 4})
    with ipc.new_stream(tmp_path / "t.arrows", table.schema) as stream:
        stream.write_table(table)
    for protocol in range(2, 6):
        table.to_pandas().to_pickle(tmp_path / f"t{protocol}.pkl", protocol=protocol)
    for file in sorted(tmp_path.iterdir()):
        kind = "a stream of Arrow" if file.suffix == ".arrows" else "pickle"
        expected = f"{file}: expected a kind .* found {kind}"
        said = refused(InputError, expected, srs_ooc.ingest, file, tmp_path / "u.zarr")
        assert "iconv" not in said
        line, new = said.split("`")[-2], tmp_path / "new.parquet"
        assert line.startswith('python -c "')
        code = line.removeprefix('python -c "').removesuffix('"')
        code = code.replace("FILE", str(file)).replace("NEW.parquet", str(new))
        subprocess.run([sys.executable, "-c", code], check=True)
        assert srs_ooc.ingest(new, tmp_path / "t.zarr", overwrite=True).n_features == 1


def test_of_arrays_the_options_are_named_that_take_files_for_them(tmp_path, capsys):
    cells = {"x": VALUES, "turned": VALUES.T, "y": np.arange(31) % 2, "names": np.array(NAMES)}
    x, turned, y, names = (tmp_path / f"{name}.npy" for name in cells)
    for name, array in cells.items():
        np.save(tmp_path / name, array)
    wrong = ("ingest", x, tmp_path / "t.zarr", "--target", y)
    assert "--target-file" in said_here(capsys, *wrong, expect=2)
    with pytest.raises(InputError, match=r"A file: target=numpy\.load\(FILE\)"):
        srs_ooc.ingest(x, tmp_path / "t.zarr", target=str(y))
    turning = ("ingest", turned, tmp_path / "t.zarr", "--target-file", y)
    said = said_here(capsys, *turning, "--orient", "features", expect=2)
    assert "--target-file and --names" in said
    exec(said.split("`")[1], {"numpy": np, "FILE": turned, "NEW": turned})
    here(*turning, "--names", names)
    holds(tmp_path / "t.zarr", labels=[str(i % 2) for i in range(31)])
