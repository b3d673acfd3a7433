"""Names of the features that a verdict ranks, kept so that they can be read without the store."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.runs.ledger import Ledger
from srs_ooc.store.store import Store

RANKED_NAMES = "ranked_names"
"""Name of the ledger's arrays with them."""
MOST_NBYTES = 2_000_000
"""Bytes of names that are kept at most, the first by rank before the others."""


def keep_names(ledger: Ledger, store: Store, features: NDArray[np.uint32]) -> None:
    """Keep the names of stored features, as many of the first as there is room for."""
    positions = np.zeros(len(features), np.int64)
    for start, piece in store.pieces("positions"):
        there = np.flatnonzero((features >= start) & (features < start + len(piece)))
        positions[there] = piece[features[there] - start]
    names = list(_first(store, positions))
    ends = np.cumsum([len(name) for name in names], dtype=np.int64)
    arrays: dict[str, NDArray[Any]] = {
        "features": features[: len(names)],
        "names": np.frombuffer(b"".join(names), np.uint8),
        "ends": ends,
    }
    ledger.write_arrays(RANKED_NAMES, arrays)


def _first(store: Store, positions: NDArray[np.int64]) -> Iterator[bytes]:
    room = MOST_NBYTES
    for position in positions.tolist():
        name = store.names[position].encode()
        room -= len(name)
        if room < 0:
            return
        yield name


def kept_names(ledger: Ledger) -> dict[int, str] | None:
    """Return the names by stored position, best first; None of a run that kept none."""
    arrays = ledger.read_arrays(RANKED_NAMES)
    if arrays is None:
        return None
    text, ends = arrays["names"].tobytes(), arrays["ends"].tolist()
    names = [text[start:end].decode() for start, end in pairwise([0, *ends])]
    return dict(zip(arrays["features"].tolist(), names, strict=True))
