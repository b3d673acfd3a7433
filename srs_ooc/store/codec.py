"""How chunks of values are compressed: bits shuffled, LZ4, and a CRC-32C at the end.

Five to ten times as fast as zstd on values, at about the same size. The codecs are of the Zarr
standard, so that any client reads them.
"""

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

_CRC_NBYTES = 4
_BLOSC_HEADER_NBYTES = 16
_LEVEL = 5
ZARR_NAMES = {"cname": "lz4", "clevel": _LEVEL, "shuffle": "bitshuffle"}
"""The same in the words of the Zarr standard."""


@cache
def _codec() -> Any:
    """Return the codec; imported where values are read or written, which a run does not do."""
    from numcodecs import blosc

    blosc.use_threads = False  # our threads compress side by side; Blosc's own would be memory
    return blosc.Blosc("lz4", _LEVEL, blosc.Blosc.BITSHUFFLE)


def _crc32c(data: bytes) -> int:
    import google_crc32c

    return int(google_crc32c.value(data))


def encode(values: NDArray[Any]) -> tuple[bytes, bytes]:
    """Return a C-contiguous array compressed, in the two parts of a chunk."""
    packed: bytes = _codec().encode(values)
    return packed, _crc32c(packed).to_bytes(_CRC_NBYTES, "little")


def packed_bound(nbytes: int) -> int:
    """Return the most bytes that a chunk of ``nbytes`` takes on disk."""
    return nbytes + _BLOSC_HEADER_NBYTES + _CRC_NBYTES


def crc_of(data: bytes) -> int:
    """Return the CRC-32C of a chunk, as it stands at its end.

    Raises
    ------
    ValueError
        If the chunk is damaged.
    """
    packed, end = memoryview(data)[:-_CRC_NBYTES], data[-_CRC_NBYTES:]
    crc = _crc32c(bytes(packed))
    if crc != int.from_bytes(end, "little"):
        raise ValueError("other bytes than were written (CRC-32C)")
    return crc


def decode(data: bytes, dtype: np.dtype[Any], n_items: int) -> NDArray[Any]:
    """Return the items of a chunk whose CRC-32C is right.

    Raises
    ------
    ValueError
        If they are not ``n_items``; found before any memory is taken for them.
    """
    packed = data[:-_CRC_NBYTES]
    nbytes, packed_nbytes = (int.from_bytes(packed[i : i + 4], "little") for i in (4, 12))
    if packed_nbytes != len(packed) or nbytes != n_items * dtype.itemsize:
        raise ValueError(f"{nbytes} bytes of values, packed in {packed_nbytes}")
    return np.frombuffer(_codec().decode(packed), dtype)
