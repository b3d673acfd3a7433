"""Files that change, shrink or vanish while they are read, and archives that are damaged."""

import shutil
import zipfile

import numpy as np
import pytest

import srs_ooc
from srs_ooc.base.errors import InputError

N_ROWS, N_COLUMNS = 600, 60
VALUES = np.random.default_rng(0).integers(0, 9, (N_ROWS, N_COLUMNS)).astype(float)
VALUES[:, -1] = np.arange(N_ROWS) % 2


def write_csv(path):
    np.savetxt(path, VALUES, "%.1f", ",", header=",".join(map(str, range(N_COLUMNS))), comments="")


WRITE = {
    "rows.npy": lambda path: np.save(path, VALUES),
    "columns.npy": lambda path: np.save(path, np.asfortranarray(VALUES)),
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
    np.save(tmp_path / "X.npy", VALUES)
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.write(tmp_path / "X.npy", "X.npy")
    data = bytearray(path.read_bytes())
    data[200:400] = bytes(200)
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"t\.npz: expected a \.npz file, found damage"):
        srs_ooc.ingest(path, tmp_path / "t.zarr")
    assert not (tmp_path / "t.zarr.partial").exists()


def test_a_header_cut_in_two(tmp_path):
    np.save(tmp_path / "t.npy", VALUES)
    data = (tmp_path / "t.npy").read_bytes()
    (tmp_path / "t.npy").write_bytes(data.replace(b"}", b"(", 1))
    with pytest.raises(InputError, match=r"t\.npy: expected a \.npy file .*Get the file again"):
        srs_ooc.ingest(tmp_path / "t.npy", tmp_path / "t.zarr")


def test_damaged_sparse_archives(tmp_path):
    sparse = pytest.importorskip("scipy.sparse")
    matrix = sparse.csr_matrix(VALUES)
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
