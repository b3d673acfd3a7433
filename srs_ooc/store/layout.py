"""Where the arrays of a store lie on disk: their dtypes, shapes and chunk files.

All arrays but ``values`` and the code ranges are uncompressed. The small ones are a single chunk
each, so that any of them can be mapped without the Zarr library.
"""

import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from srs_ooc.errors import StoreError
from srs_ooc.sizes import MB

CODES_CHUNK_NBYTES = 32 * MB
_PIECE_NBYTES = 1 << 20
VALUES_CHUNK_NBYTES = 2 * MB

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
}
"""Dtypes of the arrays that are one chunk file each; a store holds those that it needs."""

ROW_ARRAYS = ("target", "target_values", "weights", "strata", "groups")


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
        raise StoreError(
            f"{file}: expected {expected_nbytes} bytes, could not read it ({error.strerror}). "
            "Check the permissions and the disk."
        ) from error
    if found != expected_nbytes:
        raise StoreError(
            f"{file}: expected {expected_nbytes} bytes, found {found}. "
            "The store is damaged; ingest the table again."
        )


def dtype_of(name: str) -> np.dtype[np.generic]:
    """Return the dtype of a small array."""
    return np.dtype(SMALL_ARRAYS[name])


def verify_file(path: Path, name: str, expected: int) -> int:
    """Compare the CRC-32 of file ``name`` of the store at ``path``; return the bytes read.

    Raises
    ------
    StoreError
        If it differs, or the file cannot be read.
    """
    found = n_read = 0
    try:
        with (path / name).open("rb") as file:
            while piece := file.read(_PIECE_NBYTES):
                found = zlib.crc32(piece, found)
                n_read += len(piece)
    except OSError as error:
        raise StoreError(
            f"{path / name}: cannot be read: {error.strerror}. Check the disk."
        ) from error
    if found != expected:
        raise StoreError(
            f"{path / name}: expected CRC-32 {expected:08x}, found {found:08x}. "
            "The store is damaged; ingest the table again."
        )
    return n_read
