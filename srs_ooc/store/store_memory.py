"""The memory that work on a store takes, stage by stage, and the pieces in which it is read.

What lies on disk follows from the layout (:mod:`srs_ooc.store.manifest`).
"""

import os

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import UsageError
from srs_ooc.base.text import MB, ceil_div
from srs_ooc.store.manifest import Manifest, dtype_of

# Pieces in which files are read and written.

TEXTS_NBYTES = 1 << 20
"""Bytes of texts that are read together."""
TEXTS_HELD_NBYTES = 8 * MB
"""Texts to be written in another order are read at once if no more bytes of them are there."""
PAD_NBYTES = 1 << 20
"""Padding of the last chunk of codes that is written at a time."""
OBJECT_PIECE_NBYTES = 4 * MB
"""Bytes of an object that are asked for at a time where all of it is read."""
OBJECT_PART_NBYTES = 5 * 1024 * 1024
"""Bytes of a part of an object as it is written: the least that S3 takes."""

BLOCK_NBYTES = 1 << 16
"""A request takes 10 to 100 ms wherever it goes, in which a connection carries MBs: less than this
is not worth one."""
REQUEST_NBYTES = 1 << 20
"""Neighbouring blocks are asked for together up to this."""
MOST_REQUESTS = 16
"""Requests under way at once; fewer where columns are longer than a request shall be."""

# Stages.

READING_NBYTES = 8 * MB
"""Pieces of files, a chunk of values and its code, and what is read of them."""
_NBYTES_PER_FEATURE, _NBYTES_PER_CATEGORICAL = 4, 24
"""Which positions were seen, kinds and counts of codes; and places of categorical features."""
_MAKING_NBYTES, _NBYTES_PER_ROW = 20 * MB, 48
"""Of a table of the values of codes; and for each row of the store."""
_CONNECTIONS_NBYTES = 24 * MB
"""Allowance for the library that reads URLs, and its connections."""
_NBYTES_PER_SLOT = 48
"""What a slot of the cache holds, since when, and looking for one to give up."""


def verifying_nbytes(manifest: Manifest) -> int:
    """Return the memory that verifying a store takes, in bytes; zarr is part of the program."""
    n_categorical = manifest.kind_counts["categorical"]
    per_feature = _NBYTES_PER_FEATURE * manifest.n_features
    return READING_NBYTES + per_feature + _NBYTES_PER_CATEGORICAL * n_categorical


def scanning_nbytes(manifest: Manifest, block_columns: int, chunk_nbytes: int) -> int:
    """Return the memory of a pass: a block as read and as numbers, and what making them takes.

    ``chunk_nbytes`` are those of a chunk of values; 0 where codes are read.
    """
    making = 2 * chunk_nbytes or 128 * manifest.n_rows
    return 24 * block_columns * manifest.n_rows + making


def making_tables_nbytes(n_rows: int) -> int:
    """Return the memory of making the tables of the values of codes, of a store of ``n_rows``."""
    return _MAKING_NBYTES + _NBYTES_PER_ROW * n_rows


def requests_nbytes(geometry: "Geometry", n_slots: int) -> int:
    """Return the memory of requests under way, received and being written, of slots, and more."""
    request = geometry.per_request * geometry.slot_nbytes
    places = _NBYTES_PER_SLOT * n_slots + 4 * geometry.n_blocks
    return _CONNECTIONS_NBYTES + 2 * geometry.n_requests * request + places


def small_arrays_nbytes(manifest: Manifest) -> int:
    """Return the bytes of the small arrays, which are kept whole of a store at a URL."""
    return sum(n * dtype_of(name).itemsize for name, n in manifest.lengths.items())


# What is kept of a store at a URL on a local disk: how much, and in which blocks.

DEFAULT_CACHE_MB = 2048
MB_VARIABLE = "SRS_OOC_CACHE_MB"


def cache_nbytes(megabytes: int | None) -> int:
    """Return the bound in bytes: as given, or ``SRS_OOC_CACHE_MB``, or 2048 MB.

    Raises
    ------
    UsageError
        If the environment holds no number.
    """
    if megabytes is not None:
        return megabytes * MB
    text = os.environ.get(MB_VARIABLE, str(DEFAULT_CACHE_MB))
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 10**9):
        raise UsageError(f"{MB_VARIABLE}: expected MB as a whole number, found {text!r}.")
    return int(text) * MB


class Geometry:
    """How the columns of a store make blocks of neighbours, none of which crosses a chunk file.

    Attributes
    ----------
    columns : int
        Columns of a block; the last one of a chunk may have fewer.
    per_chunk, n_blocks : int
        Blocks of a chunk file, and of the store.
    slot_nbytes : int
        Bytes of a whole block.
    per_request, n_requests : int
        Blocks of a request at most, and requests under way at once.
    """

    def __init__(self, manifest: Manifest) -> None:
        self._column_nbytes = manifest.n_rows * manifest.code_nbytes
        self._chunk_features = manifest.chunk_features
        fitting = max(1, BLOCK_NBYTES // self._column_nbytes)
        self.columns = min(fitting, self._chunk_features)
        self.per_chunk = ceil_div(self._chunk_features, self.columns)
        self.n_blocks = manifest.n_chunks * self.per_chunk
        self.slot_nbytes = self.columns * self._column_nbytes
        self.per_request = max(1, REQUEST_NBYTES // self.slot_nbytes)
        largest = self.per_request * self.slot_nbytes
        self.n_requests = max(2, min(MOST_REQUESTS, MOST_REQUESTS * REQUEST_NBYTES // largest))

    def place(self, features: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the block of each feature and its place there."""
        chunk, inside = np.divmod(features, self._chunk_features)
        block, within = np.divmod(inside, self.columns)
        return chunk * self.per_chunk + block, within

    def nbytes(self, block: int) -> int:
        """Return the bytes of a block."""
        first = block % self.per_chunk * self.columns
        return min(self.columns, self._chunk_features - first) * self._column_nbytes

    def bytes_of(self, first: int, count: int) -> tuple[int, int, int]:
        """Return the chunk, the offset and the bytes of ``count`` blocks from ``first`` on."""
        chunk, block = divmod(first, self.per_chunk)
        nbytes = sum(self.nbytes(first + i) for i in range(count))
        return chunk, block * self.slot_nbytes, nbytes
