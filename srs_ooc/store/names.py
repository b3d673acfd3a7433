"""The texts of a store: feature names and row ids, decoded as they are asked for."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from srs_ooc.store.manifest import Manifest
from srs_ooc.store.small_arrays import SmallFile, check_size, length_of, verify_array
from srs_ooc.store.validation import damaged

_BLOCK, _BLOCK_NBYTES = 1 << 14, 1 << 20
_TOGETHER = 1 << 9


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
        arrays = [f"{which}_{part}" for part in ("offsets", "bytes")]
        for name in arrays:
            check_size(path, manifest, name)
            verify_array(path, manifest, name)
        self._n = length_of(path, manifest, arrays[0]) - 1
        self._offsets, self._bytes = (SmallFile(path, name) for name in arrays)

    def __len__(self) -> int:
        return self._n

    def _ends(self, start: int, count: int) -> NDArray[np.uint64]:
        return self._offsets.items(start, count).astype(np.uint64, copy=False)

    def __getitem__(self, index: int) -> str:
        return text_of(self.encoded(index), self._bytes.file)

    def encoded(self, index: int) -> bytes:
        """Return text ``index`` in UTF-8."""
        if not 0 <= index < len(self):
            raise IndexError(f"expected an index in 0 .. {len(self) - 1}, found {index}")
        start, stop = self._ends(index, 2).tolist()
        return self._bytes.bytes(start, stop)

    def several(self, indices: Iterable[int]) -> dict[int, str]:
        """Return texts by index; those that lie near each other are read together."""
        found: dict[int, str] = {}
        for _, some in groupby(sorted(set(indices)), lambda index: index // _TOGETHER):
            near = list(some)
            first = near[0]
            ends: list[int] = self._ends(first, near[-1] - first + 2).tolist()
            if ends[-1] - ends[0] > _BLOCK_NBYTES:
                found.update((index, self[index]) for index in near)
                continue
            blob = self._bytes.bytes(ends[0], ends[-1])
            for index in near:
                start, stop = (end - ends[0] for end in ends[index - first : index - first + 2])
                found[index] = text_of(blob[start:stop], self._bytes.file)
        return found

    def __iter__(self) -> Iterator[str]:
        for text in self.texts():
            yield text_of(text, self._bytes.file)

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
            yield ends[0], ends[1:], self._bytes.bytes(ends[0], ends[-1])
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
