"""Where the arrays of a store lie on disk: their dtypes, shapes and chunk files.

All arrays but ``values`` and the code ranges are uncompressed. The small ones are a single chunk
each, so that any of them can be mapped without the Zarr library.
"""

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from srs_ooc.base.errors import StoreError
from srs_ooc.base.text import MB, ceil_div
from srs_ooc.store.coding import max_codes

CODES_CHUNK_NBYTES = 32 * MB
_PIECE_NBYTES = 1 << 20
VALUES_CHUNK_NBYTES = 2 * MB
FLOAT_CHUNK_NBYTES = 4 * MB
"""The largest chunk of values that is read, uncompressed; ours are smaller."""
COORDINATE_CHUNK = 1 << 16
"""Texts of a chunk of a coordinate."""

SMALL_ARRAYS = {
    "target": "<i4",
    "target_values": "<f8",
    "weights": "<f8",
    "strata": "<i4",
    "groups": "<i4",
    "kinds": "|u1",
    "categories_first": "<u4",
    "categories_bytes": "|u1",
    "categories_offsets": "<u8",
    "positions": "<u4",
    "n_missing": "<u4",
    "n_codes": "<u2",
    "exact": "|b1",
    "names_bytes": "|u1",
    "names_offsets": "<u8",
    "row_ids_bytes": "|u1",
    "row_ids_offsets": "<u8",
    "values_crc32c": "<u4",
    "code_lows_crc32c": "<u4",
    "code_highs_crc32c": "<u4",
}
"""Dtypes of the arrays that are one chunk file each; a store holds those that it needs."""

ROW_COLUMNS = ("weights", "strata", "groups")
"""What a store may know of its rows besides target and row ids."""

ROW_ARRAYS = ("target", "target_values", *ROW_COLUMNS)
FEATURE_ARRAYS = ("kinds", "positions", "n_missing", "n_codes", "exact")
TEXTS = ("names", "row_ids")
CATEGORIES = ("categories_first", "categories_bytes", "categories_offsets")
COORDINATES = {"feature": "n_features", "row": "n_rows"}
"""Texts for Zarr and xarray, and the field of the manifest that says how many there are."""

Record = Mapping[str, Any]
"""The fields of a manifest by name."""


@dataclass(frozen=True)
class Shape:
    """Size of a table: ``n_rows`` rows by ``n_features`` features."""

    n_rows: int
    n_features: int

    def length_of(self, name: str) -> int:
        """Return the length of a small array of fixed length."""
        if name in (*ROW_ARRAYS, "row_ids_offsets"):
            return self.n_rows + (name == "row_ids_offsets")
        return self.n_features + (name in ("names_offsets", "categories_first"))


def small_file(path: Path, name: str) -> Path:
    """Return the file that holds the small array ``name`` of the store at ``path``."""
    return path / name / "c" / "0"


def codes_chunk_features(shape: Shape, code_nbytes: int) -> int:
    """Return how many features a chunk file of ``codes`` holds."""
    fitting = CODES_CHUNK_NBYTES // (shape.n_rows * code_nbytes)
    return max(1, min(shape.n_features, fitting))


def values_chunk(shape: Shape, itemsize: int) -> tuple[int, int]:
    """Return the chunk shape (features, rows) of ``values``: at most 2 MB, all rows if they fit."""
    n_rows = min(shape.n_rows, VALUES_CHUNK_NBYTES // itemsize)
    fitting = VALUES_CHUNK_NBYTES // (n_rows * itemsize)
    return max(1, min(shape.n_features, fitting)), n_rows


def values_file(path: Path, array: str, feature_chunk: int, row_chunk: int) -> Path:
    """Return the chunk file of a compressed (n_features, ...) array."""
    return path / array / "c" / str(feature_chunk) / str(row_chunk)


def chunk_file(index: int) -> str:
    """Return the path, relative to the store, of chunk ``index`` of ``codes``."""
    return f"codes/c/{index}/0"


def float_arrays(record: Record) -> dict[str, int]:
    """Return the compressed arrays of a store, and the items that each has of a feature."""
    if record["values_dtype"] is not None:
        return {"values": record["n_rows"]}
    n_codes = min(max_codes(record["code_dtype"]), record["n_rows"])
    return {"code_lows": n_codes, "code_highs": n_codes}


def n_float_chunks(record: Record) -> int:
    """Return the chunk files of each of the compressed arrays; a manifest of format 3."""
    features, items = record["values_chunk"]
    n_items = next(iter(float_arrays(record).values()))
    return ceil_div(record["n_features"], features) * ceil_div(n_items, items)


def small_arrays_of(record: Record) -> set[str]:
    """Return the names of the small arrays of a store."""
    names = {"target_values" if record["task"] == "regression" else "target"}
    names |= {*record["row_columns"], *FEATURE_ARRAYS}
    names |= {f"{name}_{part}" for name in TEXTS for part in ("bytes", "offsets")}
    names |= set(CATEGORIES if record["kind_counts"]["categorical"] else ())
    if record["format"] >= 3:
        names |= {f"{name}_crc32c" for name in float_arrays(record)}
    return names


def checksummed_files(record: Record) -> set[str]:
    """Return the files whose checksums stand in the manifest, relative to the store."""
    files = {chunk_file(i) for i in range(ceil_div(record["n_features"], record["chunk_features"]))}
    files |= {f"{name}/c/0" for name in small_arrays_of(record)}
    if record["format"] >= 3:
        for name, field in COORDINATES.items():
            files |= {f"{name}/c/{i}" for i in range(ceil_div(record[field], COORDINATE_CHUNK))}
    return files


def cannot_read(file: Path, error: OSError) -> StoreError:
    """Return the error of a file that the system refuses to read, which says nothing of it."""
    return StoreError(
        f"{file}: could not be read: {error.strerror or error}. This is the disk's or the "
        "network's error, and need not be damage: check the permissions and the disk, and try "
        "again."
    )


def require_file(file: Path, expected_nbytes: int) -> None:
    """Check that ``file`` is there and of the size expected, before it is mapped.

    Raises
    ------
    StoreError
        If it is missing or of another size.
    """
    try:
        found = file.stat().st_size
    except FileNotFoundError:
        raise StoreError(
            f"{file}: expected {expected_nbytes} bytes, found no file. "
            "The store is damaged; ingest the table again."
        ) from None
    except OSError as error:
        raise cannot_read(file, error) from error
    if found != expected_nbytes:
        raise StoreError(
            f"{file}: expected {expected_nbytes} bytes, found {found}. "
            "The store is damaged; ingest the table again."
        )


def dtype_of(name: str) -> np.dtype[np.generic]:
    """Return the dtype of a small array."""
    return np.dtype(SMALL_ARRAYS[name])


class Check(Protocol):
    """Looks at the bytes of a file as they are read."""

    def feed(self, data: bytes) -> None:
        """Look at the next bytes."""
        ...


def verify_file(path: Path, name: str, expected: int, check: Check | None = None) -> int:
    """Compare the CRC-32 of file ``name`` of the store at ``path``; return the bytes read.

    Parameters
    ----------
    path : Path
        The store.
    name : str
        The file, relative to it.
    expected : int
        Its CRC-32.
    check : Check, optional
        Is given what is read, in whole items.

    Raises
    ------
    StoreError
        If the checksum differs, or the file cannot be read.
    """
    found = n_read = 0
    try:
        with (path / name).open("rb") as file:
            while piece := file.read(_PIECE_NBYTES):
                found = zlib.crc32(piece, found)
                n_read += len(piece)
                if check is not None:
                    check.feed(piece)
    except FileNotFoundError:
        raise StoreError(
            f"{path / name}: expected a file, found none. "
            "The store is damaged; ingest the table again."
        ) from None
    except OSError as error:
        raise cannot_read(path / name, error) from error
    if found != expected:
        raise StoreError(
            f"{path / name}: expected CRC-32 {expected:08x}, found {found:08x}. "
            "The store is damaged; ingest the table again."
        )
    return n_read
