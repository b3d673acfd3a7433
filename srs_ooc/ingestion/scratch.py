"""Texts and numbers on scratch disk: names or row columns of any length, in bounded memory."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.files import Closing
from srs_ooc.ingestion.texts import Texts, hash_text

ARRAY_BLOCK = 1 << 18
BLOCK = 1 << 14
BLOCK_NBYTES = 1 << 20
"""A block holds at most so many texts and bytes, or one longer text."""


def text_blocks(texts: Iterable[str]) -> Iterator[tuple[bytes, NDArray[np.uint64]]]:
    """Gather texts into :data:`TextBlocks` of bounded size."""
    pieces: list[bytes] = []
    nbytes = 0
    for text in texts:
        pieces.append(text.encode())
        nbytes += len(pieces[-1])
        if len(pieces) == BLOCK or nbytes >= BLOCK_NBYTES:
            yield joined(pieces)
            pieces, nbytes = [], 0
    if pieces:
        yield joined(pieces)


def texts_of(texts: Iterable[str]) -> Texts:
    """Return texts encoded and hashed, as a reader would hand them over."""
    pieces = [text.encode() for text in texts]
    blob, ends = joined(pieces)
    return Texts(blob, ends, np.array([hash_text(piece) for piece in pieces], np.uint64))


def joined(pieces: list[bytes]) -> tuple[bytes, NDArray[np.uint64]]:
    """Return texts one after another, and where each ends."""
    lengths = np.fromiter(map(len, pieces), np.uint64, len(pieces))
    return b"".join(pieces), np.cumsum(lengths, dtype=np.uint64)


class TextSpool(Closing):
    """Texts appended to files, found again by hash.

    Parameters
    ----------
    folder : Path
        Scratch folder, which exists.
    name : str
        Stem of the files.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._paths = {part: folder / f"{name}.{part}" for part in ("bytes", "ends", "hashes")}
        self._files = {part: path.open("w+b") for part, path in self._paths.items()}
        self._nbytes = 0
        self._n = 0

    def __len__(self) -> int:
        return self._n

    def append(self, texts: Texts) -> None:
        """Append some texts."""
        self._files["bytes"].write(texts.blob)
        self._files["ends"].write((texts.ends + np.uint64(self._nbytes)).tobytes())
        self._files["hashes"].write(texts.hashes.tobytes())
        self._nbytes += len(texts.blob)
        self._n += len(texts.ends)

    @property
    def nbytes(self) -> int:
        """Bytes of all texts."""
        return self._nbytes

    def _read(self, part: str, start: int, n_items: int, dtype: str) -> NDArray[np.generic]:
        file = self._files[part]
        file.flush()
        itemsize = np.dtype(dtype).itemsize
        file.seek(start * itemsize)
        data = np.frombuffer(file.read(n_items * itemsize), dtype)
        file.seek(0, 2)
        return data

    def get(self, index: int) -> bytes:
        """Return text ``index``."""
        first = max(index - 1, 0)
        ends = self._read("ends", first, index - first + 1, "u8").tolist()
        start = ends[0] if index else 0
        return self._read("bytes", start, ends[-1] - start, "u1").tobytes()

    def describe(self, index: int) -> str:
        """Return text ``index`` quoted for a message, at most 60 characters of it."""
        text = self.get(index).decode("utf-8", "replace")
        return repr(text if len(text) <= 60 else text[:57] + "...")

    def find(self, text: str) -> int | None:
        """Return the first position of ``text``, or None."""
        wanted, encoded = np.array([hash_text(text.encode())], np.uint64), text.encode()
        for position in self._positions_of(wanted):
            if self.get(position) == encoded:
                return position
        return None

    def _positions_of(self, hashes: NDArray[np.uint64]) -> Iterator[int]:
        for start, block in self.hash_blocks():
            yield from (start + np.flatnonzero(np.isin(block, hashes))).tolist()

    def hash_blocks(self) -> Iterator[tuple[int, NDArray[np.uint64]]]:
        """Yield (first position, hashes) of some texts at a time."""
        for start in range(0, self._n, BLOCK):
            block = self._read("hashes", start, min(BLOCK, self._n - start), "u8")
            yield start, block.astype(np.uint64)

    def duplicates(self, limit: int = 3) -> list[tuple[int, int]]:
        """Return up to ``limit`` pairs of positions that hold equal texts.

        Sorts one 64-bit hash per text in place, then compares the bytes of equal hashes.
        """
        self._files["hashes"].flush()
        hashes = np.fromfile(self._paths["hashes"], np.uint64)
        hashes.sort()
        repeated = [
            hashes[start + 1 : stop + 1][hashes[start + 1 : stop + 1] == hashes[start:stop]][:1000]
            for start in range(0, self._n - 1, BLOCK)
            for stop in [min(start + BLOCK, self._n - 1)]
        ]
        suspects = np.unique(np.concatenate(repeated))[:1000] if repeated else hashes[:0]
        del hashes
        pairs: list[tuple[int, int]] = []
        first: dict[bytes, int] = {}
        for position in self._positions_of(suspects) if len(suspects) else ():
            text = self.get(position)
            if text in first:
                pairs.append((first[text], position))
            first.setdefault(text, position)
            if len(pairs) == limit or len(first) > 10_000:
                break
        return pairs

    def blocks(
        self, skip: frozenset[int] = frozenset()
    ) -> Iterator[tuple[bytes, NDArray[np.uint64]]]:
        """Yield the texts as :data:`TextBlocks`, those at the positions ``skip`` left out."""
        start = previous = 0
        while start < self._n:
            ends = self._read("ends", start, min(BLOCK, self._n - start), "u8").astype(np.uint64)
            ends -= np.uint64(previous)
            fitting = int(np.searchsorted(ends, BLOCK_NBYTES, side="right"))
            ends = ends[: max(1, fitting)]
            blob = self._read("bytes", previous, int(ends[-1]), "u1").tobytes()
            here = [i - start for i in skip if start <= i < start + len(ends)]
            yield _without(blob, ends, here) if here else (blob, ends)
            start, previous = start + len(ends), previous + len(blob)

    def close(self) -> None:
        """Close and delete the files."""
        for part, file in self._files.items():
            file.close()
            self._paths[part].unlink(missing_ok=True)


def _without(
    blob: bytes, ends: NDArray[np.uint64], positions: list[int]
) -> tuple[bytes, NDArray[np.uint64]]:
    starts = [0, *ends.tolist()]
    pieces = [blob[starts[i] : starts[i + 1]] for i in range(len(ends)) if i not in positions]
    return joined(pieces)


class ScratchArray:
    """A one-dimensional array in a file: appended to, then sliced. Pages of a map would be memory.

    Parameters
    ----------
    path : Path
        The file, made anew.
    dtype : dtype
        Of its items.
    """

    def __init__(self, path: Path, dtype: Any) -> None:
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        self._path = path
        self._n = 0
        path.write_bytes(b"")

    def append(self, items: NDArray[Any]) -> None:
        """Append a block of items."""
        with self._path.open("ab") as file:
            file.write(np.ascontiguousarray(items, self.dtype).data)
        self._n += len(items)

    def __len__(self) -> int:
        return self._n

    def __getitem__(self, place: slice) -> NDArray[Any]:
        start, stop, _ = place.indices(self._n)
        size = self.dtype.itemsize
        return np.fromfile(self._path, self.dtype, max(0, stop - start), offset=start * size)


def blocks_of(array: "ScratchArray | NDArray[Any]") -> Iterator[NDArray[Any]]:
    """Yield an array in slices of at most :data:`ARRAY_BLOCK` items."""
    return (array[start : start + ARRAY_BLOCK] for start in range(0, len(array), ARRAY_BLOCK))
