"""The value of each code of each feature, where thresholds are drawn between values.

A code of one value stands for it, a code of several for the middle of their range. The values of a
feature are as many as a feature of the store can have codes.
"""

import os
import tempfile
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import StoreError
from srs_ooc.base.files import Closing
from srs_ooc.base.text import MB
from srs_ooc.native import _native
from srs_ooc.store.boundaries import code_ranges
from srs_ooc.store.coding import max_codes
from srs_ooc.store.files import LOCAL, Files
from srs_ooc.store.kinds import CATEGORICAL
from srs_ooc.store.manifest import Manifest
from srs_ooc.store.reading import read_kinds
from srs_ooc.trees.block import Block

MAKING_NBYTES = 20 * MB
"""Allowance for making the tables, besides :data:`ROW_NBYTES` for each row of the store."""
ROW_NBYTES = 48
_LARGEST = float(np.finfo(np.float64).max) / 4
"""Larger values count as this: the difference of two must be finite."""
_NOTHING = np.zeros(0, dtype=np.int32)


def n_values_of(manifest: Manifest) -> int:
    """Return how many codes a feature of a store can have, and so how many values of codes."""
    return min(max_codes(manifest.code_dtype), manifest.n_rows)


class ValueTables(Closing):
    """The values of codes in a file without a name, read by column into blocks.

    Made by reading the store's values once, feature by feature; the file lies beside the store, or,
    where nothing can be written there, among the system's temporary files, and goes when closed.

    Parameters
    ----------
    path : Path
        The store.
    manifest : Manifest
        Its manifest.
    files : Files
        Has the chunks of values be there.

    Raises
    ------
    StoreError
        If the store is damaged, or there is no room for the file.
    """

    def __init__(self, path: Path, manifest: Manifest, files: Files = LOCAL) -> None:
        self._column_nbytes = 8 * n_values_of(manifest)
        self._n_features = manifest.n_features
        self._file = _unnamed_file(path.parent)
        try:
            self._fill(path, manifest, files)
        except OSError as error:
            self.close()
            n_bytes = self._n_features * self._column_nbytes
            raise StoreError(
                f"{path}: expected {n_bytes / MB:.0f} MB of disk for the values of codes, found "
                f"{error.strerror}. Make room beside the store, or draw thresholds by rank."
            ) from error
        except BaseException:
            self.close()
            raise

    def _fill(self, path: Path, manifest: Manifest, files: Files) -> None:
        handle, size = self._file.fileno(), self._column_nbytes
        os.truncate(handle, self._n_features * size)
        features = np.flatnonzero(read_kinds(path, manifest) != CATEGORICAL)
        for i, lows, highs in code_ranges(path, manifest, features, files):
            middles = np.where(lows == highs, lows, lows / 2 + highs / 2)
            values = np.clip(np.nan_to_num(middles, nan=0.0), -_LARGEST, _LARGEST)
            os.pwrite(handle, values.tobytes(), int(features[i]) * size)

    def gather(self, features: NDArray[np.uint32], block: Block) -> None:
        """Read the values of ``features`` into the first columns of ``block``, without the GIL."""
        assert block.values is not None
        p, size = self._n_features, self._column_nbytes
        handles = np.array([self._file.fileno()], dtype=np.int32)
        wanted, out = np.ascontiguousarray(features), block.values.reshape(-1).view(np.uint8)
        _native.gather_files(handles, wanted, p, _NOTHING, p, size, _NOTHING, 1, False, out)

    def close(self) -> None:
        """Give the file up."""
        self._file.close()


def _unnamed_file(folder: Path) -> IO[bytes]:
    try:
        return tempfile.TemporaryFile(dir=folder)
    except OSError:
        return tempfile.TemporaryFile()
