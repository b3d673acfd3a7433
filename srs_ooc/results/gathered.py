"""Some columns of a store, one after another in a scratch file, as float64."""

import errno
import os

import numpy as np
from numpy.typing import NDArray

from srs_ooc.store.store import Store


def gather_columns(handle: int, store: Store, positions: NDArray[np.int64]) -> None:
    """Write the columns one after another, as float64, to a scratch file."""
    wanted = np.sort(positions)
    stored, source = stored_of(store, wanted)
    order = np.argsort(positions, kind="stable")
    first = np.searchsorted(wanted, source)
    last = np.searchsorted(wanted, source, side="right")
    for i, row, part in store.column_parts(stored):
        data = part.astype(np.float64).tobytes()
        for column in order[first[i] : last[i]].tolist():
            offset = (column * store.n_rows + row) * 8
            written = 0
            while written < len(data):
                written += os.pwrite(handle, data[written:], offset + written)


def stored_of(
    store: Store, wanted: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the stored positions of sources, ascending, and the source of each."""
    is_wanted = np.zeros(store.n_features, np.bool_)
    is_wanted[wanted] = True
    parts = []
    for start, piece in store.pieces("positions"):
        sources = piece.astype(np.int64)
        here = np.flatnonzero(is_wanted[sources])
        parts.append(np.stack([start + here, sources[here]]))
    stored, source = np.concatenate(parts, axis=1)
    return stored, source


def read_bytes(handle: int, n_bytes: int, offset: int) -> bytes:
    """Read all the bytes asked for, however many a single call gives."""
    parts: list[bytes] = []
    while n_bytes:
        part = os.pread(handle, n_bytes, offset)
        if not part:
            raise OSError(errno.EIO, "the scratch file ended early")
        parts.append(part)
        n_bytes, offset = n_bytes - len(part), offset + len(part)
    return b"".join(parts)


def places_of(store: Store, positions: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the stored position of each source, in the order of the sources."""
    stored, source = stored_of(store, positions)
    order = np.argsort(source)
    places: NDArray[np.int64] = stored[order[np.searchsorted(source, positions, sorter=order)]]
    return places
