"""The texts that Zarr and xarray show beside codes and values: feature names and row ids.

Features lie on disk in a random order, and so their names must in the same. Written as chunks of
Zarr strings (``vlen-utf8``: a count, then each text after its length), all numbers uint32.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.files import Closing
from srs_ooc.base.text import MB
from srs_ooc.store.chunks import SyncedFile
from srs_ooc.store.layout import COORDINATE_CHUNK, small_file

_BLOCK = 1 << 12
_IN_MEMORY_NBYTES = 8 * MB
"""Texts of which no more bytes are there are read at once, others one by one."""


def write_coordinate(
    folder: Path, name: str, texts: str, order: NDArray[np.uint32] | None = None
) -> dict[str, int]:
    """Write texts of a store, in an order, as an array of Zarr strings.

    Parameters
    ----------
    folder : Path
        The store being written, with ``<texts>_bytes`` and ``<texts>_offsets``.
    name : str
        The array to write.
    texts : {'names', 'row_ids'}
        Which texts.
    order : uint32 (n,), optional
        The text to write at each place; all as they are if not given.

    Returns
    -------
    dict
        CRC-32 of each file by relative path.
    """
    offsets = small_file(folder, f"{texts}_offsets")
    n = offsets.stat().st_size // 8 - 1
    chunk, checksums = min(n, COORDINATE_CHUNK), {}
    with _Texts(small_file(folder, f"{texts}_bytes"), offsets, order) as source:
        for index, first in enumerate(range(0, n, chunk)):
            path = folder / name / "c" / str(index)
            with SyncedFile(path) as out:
                out.write(np.array([chunk], "<u4"))
                for data in source.encoded(first, min(first + chunk, n)):
                    out.write(data)
                out.write(np.zeros(max(0, first + chunk - n), "<u4"))
            checksums[path.relative_to(folder).as_posix()] = out.crc32
    return checksums


class _Texts(Closing):
    """Texts of a store, read in an order."""

    def __init__(self, texts: Path, offsets: Path, order: NDArray[np.uint32] | None) -> None:
        self._order = order
        self._offsets_file = offsets
        self._offsets = None if order is None else np.fromfile(offsets, "<u8")
        self._file = texts.open("rb")
        size = texts.stat().st_size
        small = order is not None and size <= _IN_MEMORY_NBYTES
        self._all = self._file.read() if small else None

    def close(self) -> None:
        """Close the file of texts."""
        self._file.close()

    def encoded(self, first: int, last: int) -> Iterator[bytes]:
        """Yield the texts at places ``first .. last - 1``, each after its length."""
        for start in range(first, last, _BLOCK):
            starts, stops = self._spans(start, min(start + _BLOCK, last))
            pieces: list[bytes] = []
            nbytes = 0
            for begin, end in zip(starts, stops, strict=True):
                pieces += [(end - begin).to_bytes(4, "little"), self._read(begin, end)]
                nbytes += end - begin
                if nbytes > MB:
                    yield b"".join(pieces)
                    pieces, nbytes = [], 0
            yield b"".join(pieces)

    def _spans(self, start: int, stop: int) -> tuple[list[int], list[int]]:
        if self._order is None:
            ends = np.fromfile(self._offsets_file, "<u8", stop - start + 1, offset=8 * start)
            return ends[:-1].tolist(), ends[1:].tolist()
        assert self._offsets is not None
        places = self._order[start:stop].astype(np.int64)
        return self._offsets[places].tolist(), self._offsets[places + 1].tolist()

    def _read(self, begin: int, end: int) -> bytes:
        if self._all is not None:
            return self._all[begin:end]
        if self._order is None:
            return self._file.read(end - begin)  # they follow each other
        return os.pread(self._file.fileno(), end - begin, begin)
