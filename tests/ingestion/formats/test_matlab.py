"""Files of MATLAB 5 are read with names, row ids and target beside the matrix."""

import math

import numpy as np
import pytest
from command import check_least_cap, srs_ooc
from refusals import refused
from tables import opened

from srs_ooc.base.errors import BudgetError, InputError
from srs_ooc.store.opening import open_store
from srs_ooc.testing import check_table

io = pytest.importorskip("scipy.io")
sparse = pytest.importorskip("scipy.sparse")
COLUMNS = [[1.5, math.nan, -3.0], [0.0, 2.0, 1e30]]
X = np.array(COLUMNS).T
BESIDE = {"ids": ["p", "qq", "r"], "y": ["u", "v", "u"], "age": [30.0, 40.5, 20.0]}
# octave-cli 7.3.0: S = sparse(logical(ones(2, 2))); save -v6 FILE S; which reads it as [0 0; 1 1]
OCTAVE = (
    "0e0000008000000006000000080000000902000004000000050000000800000002000000020000000100"
    "010054000000050000001000000000000000010000000000000001000000050000000c00000000000000"
    "0200000004000000000000000900000020000000000000000000f03f000000000000f03f000000000000"
    "f03f000000000000f03f"
)


def written(folder, compress=True, **arrays):
    io.savemat(folder / "t.mat", arrays, do_compression=compress)
    return folder / "t.mat"


def texts(*items):
    return np.array(items, object)


@pytest.mark.parametrize("compress", [False, True])
@pytest.mark.parametrize("turned", [False, True])
def test_it_keeps_the_contract(tmp_path, compress, turned):
    beside = {name: texts(*one) if name == "ids" else one for name, one in BESIDE.items()}
    if turned:  # columns of MATLAB
        beside["ids"], beside["age"] = beside["ids"][:, None], np.array(beside["age"])[:, None]
    path = written(tmp_path, compress, X=X, names=texts("a", "bb"), other=[1.0, 2.0], **beside)
    table = opened(path)
    check_table(table, COLUMNS, ["a", "bb"], BESIDE)
    assert (table.default_ids, table.default_target) == ("ids", "y")


@pytest.mark.parametrize("kind", ["i1", "u2", "i4", "u8", "f4", "?"])
def test_numbers_of_any_kind_sparse_or_not(tmp_path, kind):
    cells = np.array([[1, 0, 1], [0, 0, 1]], kind)
    check_table(opened(written(tmp_path, a=cells)), (cells * 1).T.tolist(), None, {})
    if kind in ("u8", "?"):
        cells = sparse.csc_matrix(cells.astype(float if kind == "u8" else bool))
        check_table(opened(written(tmp_path, a=cells)), (cells * 1).toarray().T.tolist(), None, {})


def test_an_empty_cell_is_none_and_one_of_several_is_named(tmp_path):
    path = written(tmp_path, a=X, b=X + 1, ids=texts("p", "", "r"), row=[1.0, 2.0])
    refused(InputError, r"found a \(double \(3, 2\)\), b .* name it: FILE::NAME", opened, path)
    check_table(opened(f"{path}::b"), (X + 1).T.tolist(), None, {"ids": ["p", None, "r"]})
    assert opened(f"{path}::row").read(np.arange(2), None).tolist() == [[1], [2]]


def test_the_command_line_takes_its_ids_and_its_target(tmp_path):
    path = written(tmp_path, X=X, names=texts("a", "bb"), **BESIDE)
    said = srs_ooc("ingest", path, tmp_path / "t.zarr", "--covariates", "age").stdout
    assert "3 rows x 2 features" in said
    store = open_store(tmp_path / "t.zarr")
    assert (store.manifest.target_name, store.manifest.classes) == ("y", ("u", "v"))
    assert (list(store.row_ids), list(store.names)) == (BESIDE["ids"], ["a", "bb"])


def test_what_cannot_be_read_is_refused(tmp_path):
    for arrays, cap, error, message in (
        ({"y": [1.0, 2.0]}, 4000, InputError, r"t\.mat: expected one matrix of .* found y \(dou"),
        ({"s": {"X": X}}, 4000, InputError, r"found s \(struct \(1, 1\)\)"),
        ({"X": X * 1j}, 4000, InputError, "expected numbers"),
        ({"X": X}, 50, BudgetError, "SciPy"),
    ):
        refused(error, message, opened, written(tmp_path, **arrays), memory_mb=cap)
    path = written(tmp_path, X=X)
    path.write_bytes(path.read_bytes()[:128] + bytes.fromhex(OCTAVE))
    refused(InputError, r"expected logical cells of a byte .* Save double\(T\)", opened, path)
    path = written(tmp_path, X=np.random.default_rng(1).random((40, 30)))
    data = path.read_bytes()
    for size in (128, 140, len(data) // 2):
        path.write_bytes(data[:size])
        refused(InputError, r"t\.mat: expected", opened, path)


@pytest.mark.slow
def test_the_smallest_cap_is_kept(tmp_path):
    rng = np.random.default_rng(1)
    for cells in (rng.random((3000, 2000)), rng.integers(0, 9, (3000, 4000)) * 1.0):
        path = written(tmp_path, X=cells)
        given = ["ingest", path, tmp_path / "t.zarr", "--no-target", "--overwrite"]
        check_least_cap(*given, too_small=30)
