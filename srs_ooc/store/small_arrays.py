"""The small arrays of a store, read and checked, without the Zarr library."""

import os
import weakref
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.files import Closing
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
from srs_ooc.store.validation import ImpossibleError, damaged

PIECE_ITEMS = 1 << 17
"""Items of an array that are read at a time."""


def read_array(path: Path, manifest: Manifest, name: str) -> NDArray[np.generic]:
    """Read a small array of a store into memory, checking its bytes and what they say.

    It is read and not mapped: a map of a file that is cut short ends the process.

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
        If its file is missing or not of the size expected, its bytes are not those that were
        written, or its items cannot be.
    """
    check_size(path, manifest, name)
    out = np.empty(length_of(path, manifest, name), dtype_of(name))
    _verify(path, manifest, name, _Filling(out, ArrayCheck(name, vars(manifest))))
    return out


def verify_array(path: Path, manifest: Manifest, name: str) -> int:
    """Read a small array; check its checksum and its items; return the bytes read.

    Raises
    ------
    StoreError
        If its bytes are not those that were written, its items cannot be, or it cannot be read.
    """
    return _verify(path, manifest, name, ArrayCheck(name, vars(manifest)))


class _Filling:
    """Keeps what is read of an array, and has it checked."""

    def __init__(self, out: NDArray[np.generic], check: ArrayCheck) -> None:
        self._out, self._check, self._filled = out.view(np.uint8), check, 0

    def feed(self, data: bytes) -> None:
        """Keep the next bytes; those that the file has grown by since are left to its checksum."""
        part = self._out[self._filled : self._filled + len(data)]
        part[:] = np.frombuffer(data, np.uint8, len(part))
        self._filled += len(data)
        self._check.feed(data)

    def end(self) -> None:
        """Check what holds of all items together."""
        self._check.end()


def _verify(path: Path, manifest: Manifest, name: str, check: ArrayCheck | _Filling) -> int:
    file = small_file(path, name).relative_to(path).as_posix()
    try:
        n_read = verify_file(path, file, manifest.checksums[file], check)
        check.end()
    except ValueError as error:
        raise damaged(path / file, error) from error
    return n_read


def check_size(path: Path, manifest: Manifest, name: str) -> None:
    """Check that the file of a small array is there, of the size expected; its bytes are not read.

    Parameters as of :func:`read_array`.

    Raises
    ------
    StoreError
        If it is missing or of another size.
    """
    n_bytes = length_of(path, manifest, name) * dtype_of(name).itemsize
    require_file(small_file(path, name), n_bytes)


def length_of(path: Path, manifest: Manifest, name: str) -> int:
    """Return the items of a small array: as its manifest says, or, in format 2, another array.

    Raises
    ------
    StoreError
        As :func:`check_size`.
    """
    if name in manifest.lengths:
        return manifest.lengths[name]
    if name.endswith("_bytes"):
        return max(1, _last_item(path, manifest, name.removesuffix("bytes") + "offsets"))
    if name == "categories_offsets":
        return _last_item(path, manifest, "categories_first") + 1
    return Shape(manifest.n_rows, manifest.n_features).length_of(name)


def _last_item(path: Path, manifest: Manifest, name: str) -> int:
    check_size(path, manifest, name)
    with SmallFile(path, name) as file:
        return int(file.items(length_of(path, manifest, name) - 1, 1)[0])


def array_pieces(
    path: Path, manifest: Manifest, name: str
) -> Iterator[tuple[int, NDArray[np.generic]]]:
    """Yield (first item, items) of a small array, some at a time, in bounded memory.

    Parameters and errors as :func:`read_array`.
    """
    check_size(path, manifest, name)
    verify_array(path, manifest, name)
    length = length_of(path, manifest, name)
    with SmallFile(path, name) as file:
        for start in range(0, length, PIECE_ITEMS):
            yield start, file.items(start, min(PIECE_ITEMS, length - start))


class SmallFile(Closing):
    """The file of a small array, open: its items or bytes are read where they are asked for.

    Parameters
    ----------
    path : Path
        The store.
    name : str
        A key of :data:`srs_ooc.store.layout.SMALL_ARRAYS`.

    Raises
    ------
    StoreError
        If it cannot be opened.
    """

    def __init__(self, path: Path, name: str) -> None:
        self.file, self._dtype = small_file(path, name), dtype_of(name)
        try:
            self._handle = os.open(self.file, os.O_RDONLY)
        except OSError as error:
            raise cannot_read(self.file, error) from error
        self._close = weakref.finalize(self, os.close, self._handle)

    def bytes(self, start: int, stop: int) -> bytes:
        """Return bytes ``start .. stop - 1``.

        Raises
        ------
        StoreError
            If they cannot be read, or the file has been cut short.
        """
        parts: list[bytes] = []
        while start < stop:
            try:
                part = os.pread(self._handle, stop - start, start)
            except OSError as error:
                raise cannot_read(self.file, error) from error
            if not part:
                expected = ImpossibleError(f"expected {stop} bytes at least, found {start}")
                raise damaged(self.file, expected)
            parts.append(part)
            start += len(part)
        return b"".join(parts)

    def items(self, first: int, count: int) -> NDArray[np.generic]:
        """Return ``count`` items from the ``first`` on; errors as of :meth:`bytes`."""
        size = self._dtype.itemsize
        return np.frombuffer(self.bytes(first * size, (first + count) * size), self._dtype)

    def close(self) -> None:
        """Close the file."""
        self._close()
