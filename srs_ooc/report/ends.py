"""What the ends of a small plot's axis are: lowest and highest value, or categories."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.report.profiles import MOST_BINS
from srs_ooc.report.source import Source

NAMED = 200
"""Features whose values are looked up: each may take a chunk of the store to be unpacked."""
_LONGEST = 40
Ends = list[float] | list[str] | None


def ends_of(source: Source, features: NDArray[np.integer[Any]]) -> list[Ends]:
    """Return lowest and highest value of the first features, or the categories of their codes.

    Parameters
    ----------
    source : Source
        The run.
    features : int (n,)
        Stored positions.

    Returns
    -------
    list
        For each of the first ``NAMED``; None where there is no value.

    Raises
    ------
    StoreError
        If the store is damaged.
    """
    first = features[:NAMED]
    found: list[Ends] = [None] * len(first)
    categories = source.store.categories()
    for place, feature in enumerate(first.tolist()):
        texts = categories.of(feature)
        if texts is not None:
            found[place] = [text[:_LONGEST] for text in texts[:MOST_BINS]]
    numbers = np.array([i for i, ends in enumerate(found) if ends is None], np.int64)
    places = numbers[np.argsort(first[numbers], kind="stable")]
    stored = first[places].astype(np.int64)
    with source.store.unchanged():
        for i, lows, highs in source.store.code_ranges(stored):
            if np.isfinite(lows).any():
                low, high = float(np.nanmin(lows)), float(np.nanmax(highs))
                found[int(places[i])] = [float(f"{low:.4g}"), float(f"{high:.4g}")]
    return found
