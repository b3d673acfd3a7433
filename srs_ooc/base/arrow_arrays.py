"""Arrow arrays of texts and numbers, made from their buffers.

``pyarrow.array`` looks whether it is given something of pandas, and loads pandas for that where it
is installed: 50 MB that no cap on memory knows of.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def arrow_texts(texts: Sequence[str | None]) -> Any:
    """Return texts as a ``pyarrow.StringArray``, null where None."""
    import pyarrow as pa

    encoded = [b"" if text is None else text.encode() for text in texts]
    offsets = np.zeros(len(encoded) + 1, np.int32)
    np.cumsum([len(text) for text in encoded], out=offsets[1:])
    missing = np.fromiter((text is None for text in texts), np.bool_, len(encoded))
    buffers = [_validity(missing), pa.py_buffer(offsets), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(pa.string(), len(encoded), buffers)


def arrow_numbers(values: NDArray[np.float64]) -> Any:
    """Return float64 (n,) as a ``pyarrow.DoubleArray``, null where NaN."""
    import pyarrow as pa

    values = np.ascontiguousarray(values, np.float64)
    buffers = [_validity(np.isnan(values)), pa.py_buffer(values)]
    return pa.Array.from_buffers(pa.float64(), len(values), buffers)


def _validity(missing: NDArray[np.bool_]) -> Any:
    """Return the bits of what is there, the lowest first; None if all is."""
    import pyarrow as pa

    if not missing.any():
        return None
    return pa.py_buffer(np.packbits(~missing, bitorder="little"))
