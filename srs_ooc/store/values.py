"""Reading the values of a store, or its codes' ranges, by chunks; the Zarr library is not needed.

A chunk that is missing is damage here, where a Zarr client would read it as missing values.
"""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import StoreError
from srs_ooc.base.text import ceil_div
from srs_ooc.store.codec import crc_of, decode, packed_bound
from srs_ooc.store.files import LOCAL, Files
from srs_ooc.store.layout import cannot_read, values_file
from srs_ooc.store.manifest import Manifest
from srs_ooc.store.small_arrays import read_array


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
    files : Files
        Has the chunks be there.

    Attributes
    ----------
    n_items : int
        Values of a feature: rows, or codes.

    Raises
    ------
    StoreError
        If the store keeps no values.
    """

    def __init__(
        self, path: Path, manifest: Manifest, array: str = "values", files: Files = LOCAL
    ) -> None:
        if array == "values" and manifest.values_dtype is None:
            raise StoreError(
                f"{path}: expected a store that keeps the values, found one that keeps only codes. "
                "Ingest the table again without --no-values."
            )
        self._path, self._files = path, files
        self._array = array
        self._dtype = np.dtype(manifest.float_dtype)
        self.n_items = manifest.float_arrays[array]
        self._n_features = manifest.n_features
        self._chunk = manifest.float_chunk
        self._n_across = ceil_div(self.n_items, self._chunk[1])
        self._crcs: NDArray[Any] | None = None
        if manifest.format >= 3:
            self._crcs = read_array(path, manifest, f"{array}_crc32c")

    @property
    def n_chunks(self) -> int:
        """Chunk files of the array."""
        return ceil_div(self._n_features, self._chunk[0]) * self._n_across

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
            for row_chunk, first_row in enumerate(range(0, self.n_items, rows)):
                chunk = self.read_chunk(feature_chunk * self._n_across + row_chunk)[0]
                n_rows = min(rows, self.n_items - first_row)
                for i in range(start, stop):
                    yield i, first_row, chunk[int(stored[i]) % features, :n_rows]

    def read_chunk(self, index: int) -> tuple[NDArray[Any], int]:
        """Read a chunk and check its bytes and, since format 3, that this is its place.

        Parameters
        ----------
        index : int
            Its number, by rows of the grid of chunks.

        Returns
        -------
        values : float array (features, items)
            The chunk; what lies beyond the array is padding.
        nbytes : int
            The size of its file.

        Raises
        ------
        StoreError
            If it is missing or damaged, is another chunk, or cannot be read.
        """
        file = values_file(self._path, self._array, *divmod(index, self._n_across))
        with self._files.borrowed(file):
            return self._read(file, index)

    def _read(self, file: Path, index: int) -> tuple[NDArray[Any], int]:
        n_items = self._chunk[0] * self._chunk[1]
        most = packed_bound(n_items * self._dtype.itemsize)
        try:
            with file.open("rb") as opened:
                data = opened.read(most + 1)
            if len(data) > most:
                raise ValueError(f"more than {most} bytes")  # noqa: TRY301 (one way out)
            crc = crc_of(data)
            if self._crcs is not None and crc != self._crcs[index]:
                raise ValueError("a chunk that was written elsewhere")  # noqa: TRY301
            return decode(data, self._dtype, n_items).reshape(self._chunk), len(data)
        except FileNotFoundError:
            found = "no file"
        except OSError as error:
            raise cannot_read(file, error) from error
        except (RuntimeError, ValueError) as error:
            found = str(error)
        raise StoreError(
            f"{file}: expected a chunk of {self._chunk[0]} x {self._chunk[1]} values, found "
            f"{found}. The store is damaged; ingest the table again."
        )
