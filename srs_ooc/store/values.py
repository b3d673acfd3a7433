"""The values of a store behind its codes: coded, read by chunks, tabled, what separates two codes.

The Zarr library is not needed.
"""

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.arrays import Bools, Bytes, Floats, Ints, Reals, Uints32
from srs_ooc.base.errors import StoreError
from srs_ooc.base.files import Closing
from srs_ooc.base.text import MB, ceil_div
from srs_ooc.native import _native
from srs_ooc.store.arrays import read_array
from srs_ooc.store.manifest import (
    VALUES_CODEC,
    Borrow,
    Manifest,
    cannot_read,
    damaged,
    max_codes,
    values_file,
)
from srs_ooc.trees.block import Block

# Values to ordinal codes: the face of the native coder.

LONG_ROWS = 1 << 19
"""Features of at least so many rows are coded to uint8 without sorting them."""

LONG_NBYTES = 8_000_000
"""Memory that this takes: at most 253 groups of 2,048 counters, and tables digit by digit."""


class CodeFacts(NamedTuple):
    """What coding found of each of ``m`` features; its fields are in the native coder's order.

    Attributes
    ----------
    n_missing : uint32 (m,)
        Missing cells.
    n_codes : uint16 (m,)
        Codes in use: ``0 .. n_codes - 1``, the missing code not counted.
    exact : bool (m,)
        Equal codes mean equal values.
    kinds : uint8 (m,)
        What the values show: constant (or all missing), boolean (0 and 1), integer, or numeric.
    lows, highs : float64 (m, width)
        Lowest and highest value of each code, NaN past ``n_codes``; width 0 where not wanted.
    """

    n_missing: Uints32
    n_codes: NDArray[np.uint16]
    exact: Bools
    kinds: Bytes
    lows: Floats
    highs: Floats


def code_columns(
    values: Reals,
    codes: NDArray[np.unsignedinteger[Any]],
    *,
    ranges: int = 0,
    long_rows: int = LONG_ROWS,
) -> CodeFacts:
    """Code features; with B = 254 (65,534) codes for uint8 (uint16).

    At most B distinct values: a value's code is its rank among them. Otherwise, with s the sorted
    values, the edges are the distinct ones of ``s[floor(k n / B)]``, k = 1 .. B - 1, above
    ``s[0]``, and a value's code is the number of edges not above it. Missing values (NaN) get the
    largest code of the dtype; -0.0 equals 0.0.

    Parameters
    ----------
    values : float64 or float32 (m, n_rows)
        C-contiguous.
    codes : uint8 or uint16 (m, n_rows)
        C-contiguous; filled here.
    ranges : int
        Width of ``lows`` and ``highs``, at least the codes in use; 0 for none.
    long_rows : int
        From how many rows on uint8 codes are found by counting rather than sorting, which takes no
        memory that grows with the rows, unless fewer than an eighth as many values are neither zero
        nor missing; the codes are the same.
    """
    m = values.shape[0]
    lows, highs = np.full((2, m, ranges), np.nan)
    n_missing, n_codes = np.empty(m, np.uint32), np.empty(m, np.uint16)
    exact, kinds = np.empty(m, np.bool_), np.empty(m, np.uint8)
    facts = CodeFacts(n_missing, n_codes, exact, kinds, lows, highs)
    _native.code_columns(values, codes, *facts, long_rows)
    return facts


# How chunks of values are compressed: bits shuffled, LZ4, and a CRC-32C at the end.
#
# Five to ten times as fast as zstd on values, at about the same size; of cells nearly all zero zstd
# makes .4 of the bytes. The codecs are of the Zarr standard, so that any client reads them: a
# chunk says itself which of them it is.

_WHOLE = 0x48674BC7
"""CRC-32C of any bytes and their own CRC-32C."""


@cache
def _codec(name: str = "lz4") -> Any:
    """Return a codec; imported where values are read or written, which a run does not do."""
    from numcodecs import blosc

    blosc.use_threads = False  # our threads compress side by side; Blosc's own would be memory
    level = VALUES_CODEC["clevel"] if name == "lz4" else 1
    return blosc.Blosc(name, level, blosc.Blosc.BITSHUFFLE)


def crc32c(data: bytes) -> int:
    """Return the CRC-32C of bytes."""
    import google_crc32c

    return int(google_crc32c.value(data))


def encode(values: NDArray[Any], codec: str = "lz4") -> tuple[bytes, bytes]:
    """Return a C-contiguous array compressed, in the two parts of a chunk."""
    packed: bytes = _codec(codec).encode(values)
    return packed, crc32c(packed).to_bytes(4, "little")


def decode(data: bytes, crc: int, dtype: np.dtype[Any], n_items: int) -> NDArray[Any]:
    """Return the items of a chunk.

    Raises
    ------
    ValueError
        If its CRC-32C is not ``crc``, or they are not ``n_items``; found before any memory is taken
        for them.
    """
    if crc32c(data) != _WHOLE:
        raise ValueError("other bytes than were written (CRC-32C)")
    if int.from_bytes(data[-4:], "little") != crc:
        raise ValueError("a chunk that was written elsewhere")
    packed = memoryview(data)[:-4]
    nbytes, packed_nbytes = (int.from_bytes(packed[i : i + 4], "little") for i in (4, 12))
    if packed_nbytes != len(packed) or nbytes != n_items * dtype.itemsize:
        raise ValueError(f"{nbytes} bytes of values, packed in {packed_nbytes}")
    return np.frombuffer(_codec().decode(packed), dtype)


# Reading the values of a store, or its codes' ranges, by chunks; the Zarr library is not needed.
#
# A chunk that is missing is damage here, where a Zarr client would read it as missing values.


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
    borrow : callable
        Has the chunks be there.

    Attributes
    ----------
    n_items : int
        Values of a feature: rows, or codes.
    n_chunks : int
        Chunk files of the array.
    chunk_nbytes : int
        Bytes of a chunk as decoded.

    Raises
    ------
    StoreError
        If the store keeps no values.
    """

    def __init__(
        self, path: Path, manifest: Manifest, array: str = "values", borrow: Borrow = nullcontext
    ) -> None:
        if array == "values" and manifest.values_dtype is None:
            raise StoreError(
                f"{path}: expected a store that keeps the values, found one that keeps only codes. "
                "Ingest the table again without --no-values."
            )
        self._path, self._borrow = path, borrow
        self._array = array
        self._dtype = np.dtype(manifest.float_dtype)
        self.n_items = manifest.float_arrays[array]
        self._chunk = manifest.values_chunk
        self._n_across = ceil_div(self.n_items, self._chunk[1])
        self.n_chunks = ceil_div(manifest.n_features, self._chunk[0]) * self._n_across
        self.chunk_nbytes = self._chunk[0] * self._chunk[1] * self._dtype.itemsize
        self._crcs = read_array(path, manifest, f"{array}_crc32c")

    def columns(self, stored: Ints) -> Iterator[tuple[int, int, NDArray[Any]]]:
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
        for start, places, first_row, chunk in self.chunks(stored):
            for i, place in enumerate(places.tolist(), start):
                yield i, first_row, chunk[place]

    def chunks(self, stored: Ints) -> Iterator[tuple[int, Ints, int, NDArray[Any]]]:
        """Yield each chunk that holds some of ``stored``, with what :meth:`columns` does of it.

        That is the first ``i`` of these, the place of each in the chunk, first row, and values.
        """
        features, rows = self._chunk
        cuts = np.flatnonzero(np.diff(stored // features, prepend=-1, append=-1))
        for start, stop in pairwise(cuts.tolist()):
            feature_chunk = int(stored[start]) // features
            for row_chunk, first_row in enumerate(range(0, self.n_items, rows)):
                chunk = self.read_chunk(feature_chunk * self._n_across + row_chunk)[0]
                n_rows = min(rows, self.n_items - first_row)
                yield start, stored[start:stop] % features, first_row, chunk[:, :n_rows]

    def read_chunk(self, index: int) -> tuple[NDArray[Any], int]:
        """Read a chunk and check its bytes and that this is its place.

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
        most = self.chunk_nbytes + 16 + 4  # Blosc's header, and the CRC-32C
        features, items = self._chunk
        with self._borrow(file):
            try:
                with file.open("rb") as opened:
                    data = opened.read(most + 1)
                if len(data) > most:
                    raise ValueError(f"more than {most} bytes")  # noqa: TRY301 (one way out)
                values = decode(data, int(self._crcs[index]), self._dtype, features * items)
                return values.reshape(self._chunk), len(data)
            except FileNotFoundError:
                found = "no file"
            except OSError as error:
                raise cannot_read(file, error) from error
            except (RuntimeError, ValueError) as error:
                found = str(error)
            raise damaged(file, f"expected a chunk of {features} x {items} values, found {found}")


# Between two codes: the value that separates them, in a feature's own units.
#
# The value that separates code c from c + 1 is the midpoint between the highest value of the store
# with code c and the lowest with code c + 1; where no double lies between them, the lower of the
# two. So ``value <= boundary`` says of every value of the store what ``code <= c`` says of its
# code.


def midpoints(lower: Floats, upper: Floats) -> Floats:
    """Return for each ``lower < upper`` a value ``m`` with ``lower <= m < upper``."""
    with np.errstate(over="ignore"):
        middle = (lower + upper) / 2
    middle = np.where(np.isfinite(middle), middle, lower / 2 + upper / 2)
    return np.where(middle >= upper, lower, middle)


def whole_columns(reader: ValuesReader, stored: Ints) -> Iterator[tuple[int, NDArray[Any]]]:
    """Yield (i, whole column of ``stored[i]``); the next one may overwrite it."""
    column: NDArray[Any] | None = None
    for i, first_row, part in reader.columns(stored):
        if len(part) == reader.n_items:
            yield i, np.ascontiguousarray(part)
            continue
        if column is None:
            column = np.empty(reader.n_items, part.dtype)
        column[first_row : first_row + len(part)] = part
        if first_row + len(part) == reader.n_items:
            yield i, column


# The value of each code of each feature, where thresholds are drawn between values.
#
# A code of one value stands for it, a code of several for the middle of their range. The values of
# a feature are as many as a feature of the store can have codes.

_LARGEST = float(np.finfo(np.float64).max) / 4
"""Larger values count as this: the difference of two must be finite."""
_NOTHING = np.zeros(0, dtype=np.int32)


def n_values_of(manifest: Manifest) -> int:
    """Return how many codes a feature of a store can have, and so how many values of codes."""
    return min(max_codes(manifest.code_dtype), manifest.n_rows)


Ranges = Iterable[tuple[int, Floats, Floats]]


def making_tables_nbytes(n_rows: int) -> int:
    """Return the memory of making the tables of the values of codes, of a store of ``n_rows``."""
    return 20 * MB + 48 * n_rows


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
    ranges : iterable
        Of each feature that is no category: where it is stored, its codes' lowest and highest
        values.

    Raises
    ------
    StoreError
        If the store is damaged, or there is no room for the file.
    """

    def __init__(self, path: Path, manifest: Manifest, ranges: Ranges) -> None:
        self._column_nbytes = 8 * n_values_of(manifest)
        self._n_features = manifest.n_features
        self._file = _unnamed_file(path.parent)
        handle, size = self._file.fileno(), self._column_nbytes
        try:
            os.truncate(handle, self._n_features * size)
            for feature, lows, highs in ranges:
                middles = np.where(lows == highs, lows, lows / 2 + highs / 2)
                values = np.clip(np.nan_to_num(middles, nan=0.0), -_LARGEST, _LARGEST)
                os.pwrite(handle, values.tobytes(), feature * size)
        except OSError as error:
            self.close()
            n_bytes = self._n_features * size
            raise StoreError(
                f"{path}: expected {n_bytes / MB:.0f} MB of disk for the values of codes, found "
                f"{error.strerror}. Make room beside the store, or draw thresholds by rank."
            ) from error
        except BaseException:
            self.close()
            raise

    def gather(self, features: Uints32, block: Block) -> None:
        """Read the values of ``features`` into the first columns of ``block``, without the GIL."""
        assert block.values is not None
        p, size = self._n_features, self._column_nbytes
        handles = np.array([self._file.fileno()], dtype=np.int32)
        wanted, out = np.ascontiguousarray(features), block.values.reshape(-1).view(np.uint8)
        _native.gather_files(handles, wanted, p, p, size, _NOTHING, 1, False, out)

    def close(self) -> None:
        """Give the file up."""
        self._file.close()


def _unnamed_file(folder: Path) -> IO[bytes]:
    try:
        return tempfile.TemporaryFile(dir=folder)
    except OSError:
        return tempfile.TemporaryFile()
