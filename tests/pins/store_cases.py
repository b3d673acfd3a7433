"""Stores of one small table in every format that is taken, and with every role."""

import struct
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest
from access import digests_of_store, ingest_file, ingest_object
from pinned_tables import ROLES, counts, matrix, small_table

COMMITTED = Path(__file__).parents[1] / "fixtures" / "tables"
"""Files whose bytes depend on the version of the library that writes them."""
ROW_ROLES = ("--weights", "weight", "--strata", "batch,plate", "--groups", "family")
_AS_CLASSES = ("--target", "label", "--row-ids", "id", "--ignore", "amount")
_AS_NUMBERS = ("--target", "amount", "--row-ids", "id", "--ignore", "label")


def _csv(*options, separator=",", name="table.csv", edit=lambda text: text):
    def make(folder):
        file = folder / name
        file.write_text(edit(small_table().text(separator)), encoding="utf-8")
        return ingest_file(file, folder / "store", *options)

    return make


def gzip_member(data):
    """A gzip file of one stored block, whatever the compressor of this machine does."""
    n = len(data)
    assert n < 1 << 16
    block = b"\x01" + struct.pack("<HH", n, n ^ 0xFFFF) + data
    head = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
    return head + block + struct.pack("<II", zlib.crc32(data), n)


def _csv_gz(folder):
    file = folder / "table.csv.gz"
    file.write_bytes(gzip_member(small_table().text().encode()))
    return ingest_file(file, folder / "store", *_AS_CLASSES)


def _features_as_rows(folder):
    table = small_table()
    file, samples = folder / "table.csv", folder / "samples.csv"
    file.write_text(table.without(*ROLES[1:]).transposed("id"), encoding="utf-8")
    roles = {name: table.columns[name] for name in ROLES}
    samples.write_text(type(table)(roles).text(), encoding="utf-8")
    options = ("--orient", "features", "--samples", samples, "--id", "id", "--target", "label")
    return ingest_file(file, folder / "store", *options, "--sample-features", "region,weight")


def _side_files(folder):
    """Names and a target for an array without them."""
    array = matrix()
    names, target = folder / "names.txt", folder / "target.txt"
    names.write_text("".join(f"column {i}\n" for i in range(array.shape[1] - 1)))
    target.write_text("".join(f"{value:g}\n" for value in array[:, 1]))
    np.save(folder / "table.npy", array[:, :-1].astype(np.float32))
    sides = ("--names", names, "--target-file", target, "--task", "regression")
    return ingest_file(folder / "table.npy", folder / "store", *sides)


def _npy(folder):
    np.save(folder / "table.npy", matrix())
    return ingest_file(folder / "table.npy", folder / "store")


def _npy_columns(folder):
    np.save(folder / "table.npy", np.asfortranarray(matrix().astype(np.float32)))
    return ingest_file(folder / "table.npy", folder / "store", "--target", "f1")


def write_npz(file, arrays):
    """An uncompressed .npz with nothing of this machine or moment in it."""
    with zipfile.ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w") as member:
                np.lib.format.write_array(member, array, version=(1, 0))


def _npz(folder):
    write_npz(folder / "table.npz", {"table": matrix()})
    return ingest_file(folder / "table.npz", folder / "store")


def _sparse_parts(array):
    rows, columns = np.nonzero(array)
    starts = np.searchsorted(rows, np.arange(len(array) + 1)).astype(np.int32)
    return array[rows, columns], columns.astype(np.int32), starts


def _sparse_npz(folder):
    data, indices, indptr = _sparse_parts(counts())
    shape = np.array(counts().shape)
    arrays = {"indices": indices, "indptr": indptr, "format": np.array(b"csr"), "shape": shape}
    write_npz(folder / "sparse.npz", arrays | {"data": data})
    return ingest_file(folder / "sparse.npz", folder / "store")


def _svmlight(folder):
    lines = [
        " ".join([f"{row[-1]:g}", *(f"{i + 1}:{row[i]:g}" for i in np.flatnonzero(row[:-1]))])
        for row in counts()
    ]
    (folder / "table.svmlight").write_text("\n".join(lines) + "\n")
    return ingest_file(folder / "table.svmlight", folder / "store")


def _arrow(name):
    def make(folder):
        pytest.importorskip("pyarrow")
        return ingest_file(COMMITTED / name, folder / "store", *_AS_CLASSES, *ROW_ROLES)

    return make


def typed_columns():
    """The small table as Python lists with None where a cell is missing."""
    texts = {"id", "region", "batch", "plate", "family", "label"}
    return {
        name: [cell or None if name in texts else float(cell) if cell else None for cell in cells]
        for name, cells in small_table().columns.items()
    }


def _frame(library):
    def make(folder):
        module = pytest.importorskip(library)
        frame = module.DataFrame(typed_columns())
        roles = {"weights": "weight", "strata": ("batch", "plate"), "groups": "family"}
        more = {"row_ids": "id", "ignore": ("amount",)}
        return ingest_object(frame, folder / "store", target="label", **more, **roles)

    return make


def _array_object(folder):
    array = matrix()
    target = array[:, -1].astype(int)
    return ingest_object(array[:, :-1], folder / "store", target=target, weights=1 + target / 2)


def _sparse_object(folder):
    sparse = pytest.importorskip("scipy.sparse")
    table = counts()
    parts = _sparse_parts(table[:, :-1])
    return ingest_object(
        sparse.csr_array(parts, shape=table[:, :-1].shape), folder / "store", target=table[:, -1]
    )


MAKERS = {
    "csv, classes": _csv(*_AS_CLASSES),
    "csv, regression": _csv(*_AS_NUMBERS, "--task", "regression"),
    "csv, weights, strata and groups": _csv(*_AS_CLASSES, *ROW_ROLES),
    "csv, regression with all roles": _csv(*_AS_NUMBERS, *ROW_ROLES),
    "csv, uint16 codes": _csv(*_AS_CLASSES, "--code-dtype", "uint16"),
    "csv, no values": _csv(*_AS_CLASSES, "--no-values"),
    "csv, no values, uint16 codes": _csv(*_AS_NUMBERS, "--no-values", "--code-dtype", "uint16"),
    "csv, forced kinds": _csv(*_AS_CLASSES, "--kind", "count=categorical", "--kind", "x1=numeric"),
    "csv, missing targets dropped": _csv("--target", "region", "--row-ids", "id"),
    "csv, semicolons and decimal commas": _csv(
        *_AS_CLASSES,
        "--decimal",
        "comma",
        separator=";",
        edit=lambda text: text.replace(".", ","),
    ),
    "csv, no header": _csv(
        "--no-header", "--ignore", "f0", edit=lambda text: text.partition("\n")[2]
    ),
    "csv.gz": _csv_gz,
    "tsv": _csv(*_AS_CLASSES, separator="\t", name="table.tsv"),
    "features as rows": _features_as_rows,
    "npy by rows": _npy,
    "npy by columns": _npy_columns,
    "npy, names and target apart": _side_files,
    "npz": _npz,
    "sparse npz": _sparse_npz,
    "svmlight": _svmlight,
    "parquet": _arrow("table.parquet"),
    "feather": _arrow("table.feather"),
    "numpy object": _array_object,
    "scipy object": _sparse_object,
    "pandas object": _frame("pandas"),
    "polars object": _frame("polars"),
}


def pin_of_store(name, folder):
    return digests_of_store(MAKERS[name](folder))
