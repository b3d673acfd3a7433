"""HDF5 and AnnData become the store of their CSV, whatever their layout; the rest is refused."""

import os
import re
from pathlib import Path

import numpy as np
import pytest
from command import error_of, fresh, peak_kb, srs_ooc
from stores import values_of

from srs_ooc.base.errors import InputError
from srs_ooc.ingestion.formats.files import opener_of
from srs_ooc.ingestion.ingest_options import IngestOptions
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
DATA = Path(os.environ.get("SRS_OOC_DATA", Path(__file__).parents[2] / ".." / "shared" / "data"))


def csv(folder):
    lines = [",".join([*ROWS, *NAMES])]
    for *cells, values in zip(*ROWS.values(), VALUES.tolist(), strict=True):
        lines.append(",".join(map(str, [*cells, *map(repr, values)])))
    path = folder / "twin.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


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


def ingested(source, store, *options):
    srs_ooc("ingest", source, store, *ASKED, *options)
    return read_manifest(store)


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
    assert manifest.source["name"] == "t.h5"
    assert manifest.source["nbytes"] == path.stat().st_size
    assert manifest.source["format"] == f"hdf5 /study/counts{', turned' * turned}"
    assert manifest.inferred["row_ids"] == "'id' of the file"


@pytest.mark.parametrize("kind", ["dense", "csr", "csc"])
def test_cells_become_the_store_of_their_csv(tmp_path, twin, kind):
    path = cells(tmp_path / "t.h5ad", kind)
    assert ingested(path, tmp_path / "t.zarr").checksums == twin.checksums
    text = srs_ooc("ingest", path, tmp_path / "d.zarr", *ASKED, "--dry-run").stdout
    assert f"columns: {N_FEATURES}\nrows: {N_ROWS}\n" in text
    mean = ("--aggregate", "mean")
    of_cells = ingested(path, tmp_path / "m.zarr", *mean)
    of_csv = ingested(csv(tmp_path), tmp_path / "n.zarr", "--row-ids", "id", *mean)
    assert (of_cells.n_rows, of_cells.checksums) == (15, of_csv.checksums)


def columns_of(path):
    table = opener_of(path)(path.parent, IngestOptions())
    return table


@pytest.mark.parametrize("kind", [*PLAIN, "dense", "csr", "csc"])
def test_tables_keep_to_their_contract(tmp_path, kind):
    path = tmp_path / "t"
    plain(path, **PLAIN[kind]) if kind in PLAIN else cells(path, kind)
    for place, values, names in (
        (path, VALUES, NAMES),
        (Path(f"{path}::{'X' if kind not in PLAIN else 'study/counts'}.T"), VALUES.T, None),
    ):
        table = opener_of(place)(tmp_path, IngestOptions())
        of = list(ROWS["id"]) if names is None else names
        check_table(table, values.T.tolist(), of)
    by_rows = opener_of(path)(tmp_path, IngestOptions()).by_rows
    assert by_rows == (kind not in ("csc", "chunks of columns"))
