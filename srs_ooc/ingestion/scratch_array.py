"""Arrays of a number per row on scratch disk, written and read in blocks."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

BLOCK = 1 << 18


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
    """Yield an array in slices of at most :data:`BLOCK` items."""
    return (array[start : start + BLOCK] for start in range(0, len(array), BLOCK))
