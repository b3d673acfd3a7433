"""How chunks of values are compressed: bits shuffled, LZ4, and a CRC-32C at the end.

Five to ten times as fast as zstd on values, at about the same size. The codecs are of the Zarr
standard, so that any client reads them.
"""

from typing import Any

import google_crc32c
import numpy as np
from numcodecs import blosc
from numpy.typing import NDArray

_CRC_NBYTES = 4
_LEVEL = 5
_CODEC = blosc.Blosc("lz4", _LEVEL, blosc.Blosc.BITSHUFFLE)
blosc.use_threads = False  # our threads compress side by side; Blosc's own would be memory


def encode(values: NDArray[Any]) -> tuple[bytes, bytes]:
    """Return a C-contiguous array compressed, in the two parts of a chunk."""
    packed: bytes = _CODEC.encode(values)
    crc = int(google_crc32c.value(packed))
    return packed, crc.to_bytes(_CRC_NBYTES, "little")


def decode(data: bytes, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return the items of a chunk.

    Raises
    ------
    ValueError
        If the chunk is damaged.
    """
    packed, end = data[:-_CRC_NBYTES], data[-_CRC_NBYTES:]
    if google_crc32c.value(packed) != int.from_bytes(end, "little"):
        raise ValueError("other bytes than were written (CRC-32C)")
    return np.frombuffer(_CODEC.decode(packed), dtype)


def zarr_compressors(dtype: np.dtype[Any]) -> list[Any]:
    """Return the same as codecs of the Zarr library."""
    from zarr.codecs import BloscCodec, Crc32cCodec

    size = int(dtype.itemsize)
    return [
        BloscCodec(typesize=size, cname="lz4", clevel=_LEVEL, shuffle="bitshuffle"),
        Crc32cCodec(),
    ]
