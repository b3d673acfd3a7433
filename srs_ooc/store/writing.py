"""Writing the chunk files of a store, synced and with checksums.

The metadata beside them, with which any Zarr client reads them, follow from the manifest
(:mod:`srs_ooc.store.manifest`).
"""

import os
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.arrays import Bytes, Uints, Uints32
from srs_ooc.base.files import sync_path
from srs_ooc.base.text import MB, ceil_div
from srs_ooc.store.manifest import (
    COORDINATE_CHUNK,
    SMALL_ARRAYS,
    Shape,
    chunk_file,
    dtype_of,
    small_file,
    values_chunk,
    values_file,
)
from srs_ooc.store.values import encode

# Writing the chunk files of a store: every one of them, synced to disk, with its checksum.

TextBlocks = Iterable[tuple[bytes, Uints]]
"""Blocks of texts: UTF-8 bytes one after another, and where each text ends in its block."""


class NewStore(ExitStack):
    """A store being written: its folder, and what is known of each file once it is written.

    As a context manager it closes what is still open when the work has failed.

    Parameters
    ----------
    folder : Path
        Empty; to be published by the caller.

    Attributes
    ----------
    checksums : dict
        CRC-32 of each file that is closed, by relative path.
    lengths : dict
        Items of each small array that is, by name.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder
        self.checksums: dict[str, int] = {}
        self.lengths: dict[str, int] = {}

    def small(self, name: str, blocks: Iterable[NDArray[Any]]) -> None:
        """Write a small array from blocks."""
        file = SyncedFile(self, f"{name}/c/0")
        for block in blocks:
            file.write(np.ascontiguousarray(block, dtype_of(name)))
        file.close()


class SyncedFile:
    """A file of a store written from start to end: synced, and noted, when closed.

    Parameters
    ----------
    store : NewStore
        Which notes its CRC-32, and of a small array the items.
    name : str
        Its path in the store.

    Attributes
    ----------
    nbytes, crc32 : int
        Bytes written so far, and their CRC-32.
    """

    def __init__(self, store: NewStore, name: str) -> None:
        path = store.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        self._store, self._name = store, name
        self._file = store.enter_context(path.open("xb"))
        self.nbytes = self.crc32 = 0

    def write(self, data: Any) -> None:
        """Append bytes or a C-contiguous array."""
        view = memoryview(data).cast("B")
        self._file.write(view)
        self.nbytes += len(view)
        self.crc32 = zlib.crc32(view, self.crc32)

    def close(self) -> None:
        """Flush to disk, close and note."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        self._store.checksums[self._name] = self.crc32
        if (array := self._name.split("/", maxsplit=1)[0]) in SMALL_ARRAYS:
            self._store.lengths[array] = self.nbytes // dtype_of(array).itemsize


class TextsWriter:
    """Writes ``<name>_bytes`` (at least one byte) and ``<name>_offsets``."""

    def __init__(self, store: NewStore, name: str) -> None:
        self._bytes = SyncedFile(store, f"{name}_bytes/c/0")
        self._offsets = SyncedFile(store, f"{name}_offsets/c/0")
        self._offsets.write(np.zeros(1, "<u8"))

    def write(self, blob: bytes, ends: Uints) -> None:
        """Append texts that lie one after another in ``blob``, and where each ends there."""
        self._offsets.write((ends + np.uint64(self._bytes.nbytes)).astype("<u8"))
        self._bytes.write(blob)

    def close(self) -> None:
        """End both arrays."""
        if self._bytes.nbytes == 0:
            self._bytes.write(b"\0")
        self._bytes.close()
        self._offsets.close()


class CodesWriter:
    """Writes ``codes`` in stored order, whatever the size of the batches.

    Parameters
    ----------
    store : NewStore
        The store being written.
    shape : Shape
        Of the table.
    chunk_features : int
        Features of a chunk file; the last file is padded to the full size with the missing
        code.
    dtype : {'uint8', 'uint16'}
        Of the codes.
    """

    def __init__(self, store: NewStore, shape: Shape, chunk_features: int, dtype: str) -> None:
        self._store, self._chunk_features, self._n_written = store, chunk_features, 0
        self._nbytes = chunk_features * shape.n_rows * np.dtype(dtype).itemsize

    def write(self, codes: NDArray[Any]) -> None:
        """Append the codes (m, n_rows) of the next features."""
        while len(codes):
            index, place = divmod(self._n_written, self._chunk_features)
            if place == 0:
                self._file = SyncedFile(self._store, chunk_file(index))
            part, codes = np.split(codes, [self._chunk_features - place])
            self._file.write(np.ascontiguousarray(part))
            self._n_written += len(part)
            if self._n_written % self._chunk_features == 0:
                self._file.close()

    def close(self) -> None:
        """Pad and end the last chunk."""
        if self._n_written % self._chunk_features:
            padding = b"\xff" * (1 << 20)  # the missing code
            while self._file.nbytes < self._nbytes:
                self._file.write(padding[: self._nbytes - self._file.nbytes])
            self._file.close()


class FloatsWriter:
    """Writes a compressed float array (n_features, n_columns) from batches of whole chunks.

    Parameters
    ----------
    folder : Path
        The store being written.
    name : str
        Name of the array.
    shape : Shape
        Its features and, as rows, its columns.
    dtype : numpy dtype
        float32 or float64.
    codec : {'lz4', 'zstd'}
        How chunks are compressed.

    Attributes
    ----------
    chunk : tuple of int
        Features and columns of a chunk.
    crcs : uint32 (n_down, n_across)
        CRC-32C of each chunk written, in the grid of chunks.
    """

    def __init__(
        self, folder: Path, name: str, shape: Shape, dtype: np.dtype[Any], codec: str
    ) -> None:
        features, rows = self.chunk = values_chunk(shape, dtype.itemsize)
        grid = ceil_div(shape.n_features, features), ceil_div(shape.n_rows, rows)
        self.crcs = np.zeros(grid, np.uint32)
        self._folder, self._name, self._dtype, self._codec = folder, name, dtype, codec

    def write(self, first: int, values: NDArray[Any]) -> None:
        """Write the features from ``first``, a multiple of the chunk's, on."""
        features, rows = self.chunk
        assert first % features == 0
        for i, j in np.ndindex(ceil_div(len(values), features), self.crcs.shape[1]):
            part = values[i * features : (i + 1) * features, j * rows : (j + 1) * rows]
            if part.shape != self.chunk or part.dtype != self._dtype or not part.flags.c_contiguous:
                padded = np.full(self.chunk, np.nan, self._dtype)
                padded[: part.shape[0], : part.shape[1]] = part
                part = padded
            place = first // features + i, j
            path = values_file(self._folder, self._name, *place)
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("xb") as file:
                packed, crc = encode(part, self._codec)
                self.crcs[place] = int.from_bytes(crc, "little")
                file.writelines((packed, crc))
                file.flush()
                if hasattr(os, "posix_fadvise"):  # begin to write it out
                    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

    def sync(self) -> None:
        """Wait until every chunk is on disk; writing them began the way there."""
        for place in np.ndindex(self.crcs.shape):
            sync_path(values_file(self._folder, self._name, *place))


# The texts that Zarr and xarray show beside codes and values: feature names and row ids.
#
# Features lie on disk in a random order, and so their names must in the same. Written as chunks of
# Zarr strings (``vlen-utf8``: a count, then each text after its length), all numbers uint32.

_BLOCK = 1 << 12
TEXTS_HELD_NBYTES, TEXT_HELD_NBYTES = 8 * MB, 12
"""Texts to be written in another order are read at once if no more bytes of them are there; or if
they are so short on average, which their order took while it was found."""


def write_coordinate(store: NewStore, name: str, texts: str, order: Uints32 | None = None) -> None:
    """Write texts of a store, in an order, as an array of Zarr strings.

    Parameters
    ----------
    store : NewStore
        The store being written, with ``<texts>_bytes`` and ``<texts>_offsets``.
    name : str
        The array to write.
    texts : {'names', 'row_ids'}
        Which texts.
    order : uint32 (n,), optional
        The text to write at each place; all as they are if not given.
    """
    offsets = small_file(store.folder, f"{texts}_offsets")
    n = offsets.stat().st_size // 8 - 1
    chunk = min(n, COORDINATE_CHUNK)
    with small_file(store.folder, f"{texts}_bytes").open("rb") as source:
        held_nbytes = max(TEXTS_HELD_NBYTES, TEXT_HELD_NBYTES * n)
        read = _reader(source, None if order is None else held_nbytes)
        all_ends = None if order is None else np.fromfile(offsets, "<u8")
        for index, first in enumerate(range(0, n, chunk)):
            out = SyncedFile(store, f"{name}/c/{index}")
            out.write(np.array([chunk], "<u4"))
            for start in range(first, min(first + chunk, n), _BLOCK):
                stop = min(start + _BLOCK, first + chunk, n)
                if order is None or all_ends is None:
                    ends = np.fromfile(offsets, "<u8", stop - start + 1, offset=8 * start)
                    spans = ends[:-1], ends[1:]
                else:
                    places = order[start:stop].astype(np.int64)
                    spans = all_ends[places], all_ends[places + 1]
                for data in _encoded(read, *spans):
                    out.write(data)
            out.write(np.zeros(max(0, first + chunk - n), "<u4"))
            out.close()


_Read = Callable[[Uints, Uints], bytes]


def _reader(source: BinaryIO, held_nbytes: int | None) -> _Read:
    """Return what reads texts, one after another, given where each begins and ends.

    In order, or, given how many bytes may be held, in any.
    """
    if held_nbytes is None:
        return lambda begins, ends: source.read(int(ends[-1] - begins[0]))  # they follow each other
    fits = os.fstat(source.fileno()).st_size <= held_nbytes
    held = source.read() if fits else b""

    def one(begin: int, end: int) -> bytes:
        return held[begin:end] if fits else os.pread(source.fileno(), end - begin, begin)

    return lambda begins, ends: b"".join(map(one, begins.tolist(), ends.tolist()))


def _encoded(read: _Read, starts: Uints, stops: Uints) -> Iterator[Bytes]:
    """Yield texts, each after its length, about a megabyte at a time."""
    cuts = np.flatnonzero(np.diff(np.cumsum(stops - starts) // np.uint64(MB))) + 1
    for begins, ends in zip(np.split(starts, cuts), np.split(stops, cuts), strict=True):
        lengths = (ends - begins).astype("<u4")
        at = np.repeat(np.cumsum(lengths, dtype=np.int64) - lengths, 4)
        yield np.insert(np.frombuffer(read(begins, ends), np.uint8), at, lengths.view(np.uint8))
