"""The small arrays and the texts of a store, mapped; the Zarr library is not needed."""

import os
import weakref
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from srs_ooc.store.array_checks import ArrayCheck
from srs_ooc.store.layout import (
    Shape,
    cannot_read,
    dtype_of,
    require_file,
    small_file,
    verify_file,
)
from srs_ooc.store.manifest import Manifest
from srs_ooc.store.validation import damaged

_BLOCK, _BLOCK_NBYTES = 1 << 14, 1 << 20
PIECE_ITEMS = 1 << 17
"""Items of an array that are read at a time."""


def read_array(path: Path, manifest: Manifest, name: str) -> NDArray[np.generic]:
    """Map a small array of a store, read-only, after checking its bytes and what they say.

    Parameters and errors as :func:`map_array`; also a StoreError if its bytes are not those that
    were written, or its items cannot be.
    """
    mapped = map_array(path, manifest, name)
    verify_array(path, manifest, name)
    return mapped


def verify_array(path: Path, manifest: Manifest, name: str) -> int:
    """Read a small array; check its checksum and its items; return the bytes read.

    Raises
    ------
    StoreError
        If its bytes are not those that were written, its items cannot be, or it cannot be read.
    """
    file = small_file(path, name).relative_to(path).as_posix()
    check = ArrayCheck(name, vars(manifest))
    try:
        n_read = verify_file(path, file, manifest.checksums[file], check)
        check.end()
    except ValueError as error:
        raise damaged(path / file, error) from error
    return n_read


def map_array(path: Path, manifest: Manifest, name: str) -> NDArray[np.generic]:
    """Map a small array of a store, read-only; its size is checked, its bytes are not.

    Parameters
    ----------
    path : Path
        The store.
    manifest : Manifest
        Its manifest.
    name : str
        A key of :data:`srs_ooc.store.layout.SMALL_ARRAYS`.

    Raises
    ------
    StoreError
        If its file is missing or not of the size expected.
    """
    length = length_of(path, manifest, name)
    dtype, file = dtype_of(name), small_file(path, name)
    require_file(file, length * dtype.itemsize)
    try:
        return np.memmap(file, dtype, "r", shape=(length,))
    except OSError as error:
        raise cannot_read(file, error) from error


def length_of(path: Path, manifest: Manifest, name: str) -> int:
    """Return the items of a small array: as its manifest says, or, in format 2, another array.

    Raises
    ------
    StoreError
        As :func:`map_array`.
    """
    if name in manifest.lengths:
        return manifest.lengths[name]
    if name.endswith("_bytes"):
        offsets = map_array(path, manifest, name.removesuffix("bytes") + "offsets")
        return max(1, int(offsets[-1]))
    if name == "categories_offsets":
        return int(map_array(path, manifest, "categories_first")[-1]) + 1
    return Shape(manifest.n_rows, manifest.n_features).length_of(name)


def text_of(data: bytes, file: Path) -> str:
    """Return UTF-8 as text.

    Raises
    ------
    StoreError
        If it is none; ``file`` is where it was read.
    """
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise damaged(file, error) from error


def array_pieces(
    path: Path, manifest: Manifest, name: str
) -> Iterator[tuple[int, NDArray[np.generic]]]:
    """Yield (first item, items) of a small array, some at a time, read and not mapped.

    Pages of a map count as resident memory until the system takes them back. Parameters and errors
    as :func:`read_array`.
    """
    length = len(read_array(path, manifest, name))
    dtype, file = dtype_of(name), small_file(path, name)
    for start in range(0, length, PIECE_ITEMS):
        yield start, np.fromfile(file, dtype, PIECE_ITEMS, offset=start * dtype.itemsize)


class Names:
    """The feature names (in source order) or row ids of a store, decoded one at a time.

    Parameters
    ----------
    path : Path
        The store.
    manifest : Manifest
        Its manifest.
    which : {'names', 'row_ids'}
        Which texts.

    Raises
    ------
    StoreError
        If a file is missing or not of the size expected.
    """

    def __init__(self, path: Path, manifest: Manifest, which: str = "names") -> None:
        self._file = small_file(path, f"{which}_bytes")
        self._n = len(read_array(path, manifest, f"{which}_offsets")) - 1
        read_array(path, manifest, f"{which}_bytes")
        files = [small_file(path, f"{which}_{part}") for part in ("offsets", "bytes")]
        self._offsets, self._bytes = (os.open(file, os.O_RDONLY) for file in files)
        for handle in (self._offsets, self._bytes):
            weakref.finalize(self, os.close, handle)

    def __len__(self) -> int:
        return self._n

    def _ends(self, start: int, count: int) -> NDArray[np.uint64]:
        """Return offsets from ``start`` on: read, not mapped, so that no pages stay."""
        return np.frombuffer(os.pread(self._offsets, 8 * count, 8 * start), "<u8")

    def __getitem__(self, index: int) -> str:
        return text_of(self.encoded(index), self._file)

    def encoded(self, index: int) -> bytes:
        """Return text ``index`` in UTF-8."""
        if not 0 <= index < len(self):
            raise IndexError(f"expected an index in 0 .. {len(self) - 1}, found {index}")
        start, stop = self._ends(index, 2).tolist()
        return os.pread(self._bytes, stop - start, start)

    def __iter__(self) -> Iterator[str]:
        for text in self.texts():
            yield text_of(text, self._file)

    def texts(self) -> Iterator[bytes]:
        """Yield every text in UTF-8, in bounded memory."""
        for first, ends, blob in self._blocks():
            start = first
            for end in ends:
                yield blob[start - first : end - first]
                start = end

    def _blocks(self) -> Iterator[tuple[int, list[int], bytes]]:
        start = 0
        while start < len(self):
            offsets = self._ends(start, min(_BLOCK, len(self) - start) + 1)
            limit = int(offsets[0]) + _BLOCK_NBYTES
            n_texts = max(1, int(np.searchsorted(offsets, limit, side="right")) - 1)
            ends: list[int] = offsets[: n_texts + 1].tolist()
            yield ends[0], ends[1:], os.pread(self._bytes, ends[-1] - ends[0], ends[0])
            start += n_texts

    def find(self, texts: list[str]) -> NDArray[np.int64]:
        """Return the position of each of ``texts``, -1 where there is none."""
        wanted = {text.encode(): i for i, text in enumerate(dict.fromkeys(texts))}
        found = np.full(len(wanted), -1, np.int64)
        position = 0
        for first, ends, blob in self._blocks():
            start = first
            for end in ends:
                i = wanted.get(blob[start - first : end - first])
                if i is not None:
                    found[i] = position
                position += 1
                start = end
        return found[[wanted[text.encode()] for text in texts]]
