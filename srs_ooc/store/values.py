"""Reading the values of a store, or its codes' ranges, by chunks; the Zarr library is not needed.

A chunk that is missing is damage here, where a Zarr client would read it as missing values.
"""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.errors import StoreError
from srs_ooc.kernel.code import max_codes
from srs_ooc.store.codec import decode
from srs_ooc.store.layout import Shape, values_chunk, values_file
from srs_ooc.store.manifest import Manifest


class ValuesReader:
    """A compressed array of a store.

    Parameters
    ----------
    path : Path
        The store.
    manifest : Manifest
        Its manifest.
    array : {'values', 'code_lows', 'code_highs'}
        Which one; the ranges of codes are there where the values are not.

    Attributes
    ----------
    n_items : int
        Values of a feature: rows, or codes.

    Raises
    ------
    StoreError
        If the store keeps no values.
    """

    def __init__(self, path: Path, manifest: Manifest, array: str = "values") -> None:
        if array == "values" and manifest.values_dtype is None:
            raise StoreError(
                f"{path}: expected a store that keeps the values, found one that keeps only codes. "
                "Ingest the table again without --no-values."
            )
        self._path = path
        self._array = array
        self._dtype = np.dtype(manifest.values_dtype or "float64")
        n_codes = min(max_codes(manifest.code_dtype), manifest.n_rows)
        self.n_items = manifest.n_rows if array == "values" else n_codes
        self._shape = Shape(self.n_items, manifest.n_features)
        self._chunk = values_chunk(self._shape, self._dtype.itemsize)

    @property
    def chunk_nbytes(self) -> int:
        """Bytes of a chunk as decoded."""
        return self._chunk[0] * self._chunk[1] * self._dtype.itemsize

    def columns(self, stored: NDArray[np.int64]) -> Iterator[tuple[int, int, NDArray[Any]]]:
        """Yield values of stored features, decoding each chunk once.

        Parameters
        ----------
        stored : int64 (k,)
            Stored features, ascending.

        Yields
        ------
        i, first_row, values : int, int, float array
            Part of the values of ``stored[i]``: those of the rows from ``first_row`` on.

        Raises
        ------
        StoreError
            If a chunk is missing or damaged.
        """
        features, rows = self._chunk
        cuts = np.flatnonzero(np.diff(stored // features, prepend=-1, append=-1))
        for start, stop in pairwise(cuts.tolist()):
            feature_chunk = int(stored[start]) // features
            for row_chunk, first_row in enumerate(range(0, self._shape.n_rows, rows)):
                chunk = self._read(feature_chunk, row_chunk)
                n_rows = min(rows, self._shape.n_rows - first_row)
                for i in range(start, stop):
                    yield i, first_row, chunk[int(stored[i]) % features, :n_rows]

    def _read(self, feature_chunk: int, row_chunk: int) -> NDArray[Any]:
        file = values_file(self._path, self._array, feature_chunk, row_chunk)
        try:
            return decode(file.read_bytes(), self._dtype).reshape(self._chunk)
        except FileNotFoundError:
            found = "no file"
        except (OSError, RuntimeError, ValueError) as error:
            found = str(error)
        raise StoreError(
            f"{file}: expected a chunk of {self._chunk[0]} x {self._chunk[1]} values, found "
            f"{found}. The store is damaged; ingest the table again."
        )
