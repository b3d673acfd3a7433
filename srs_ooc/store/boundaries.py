"""Between two codes: the value that separates them, in a feature's own units.

The value that separates code c from c + 1 is the midpoint between the highest value of the store
with code c and the lowest with code c + 1; where no double lies between them, the lower of the two.
So ``value <= boundary`` says of every value of the store what ``code <= c`` says of its code.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import StoreError
from srs_ooc.store.coding import code_columns, max_codes
from srs_ooc.store.files import LOCAL, Files
from srs_ooc.store.manifest import Manifest
from srs_ooc.store.values import ValuesReader


def midpoints(lower: NDArray[np.float64], upper: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return for each ``lower < upper`` a value ``m`` with ``lower <= m < upper``."""
    with np.errstate(over="ignore"):
        middle = (lower + upper) / 2
    middle = np.where(np.isfinite(middle), middle, lower / 2 + upper / 2)
    return np.where(middle >= upper, lower, middle)


def boundaries(
    path: Path,
    manifest: Manifest,
    features: NDArray[np.int64],
    codes: NDArray[np.int64],
    files: Files = LOCAL,
) -> NDArray[np.float64]:
    """Return the value that separates ``codes[i]`` of ``features[i]`` from the next code.

    Parameters
    ----------
    path : Path
        The store.
    manifest : Manifest
        Its manifest.
    features : int64 (k,)
        Stored features, ascending; repeated for each of their codes.
    codes : int64 (k,)
        Codes, not the highest of their feature.
    files : Files
        Has the chunks of values be there.

    Raises
    ------
    StoreError
        If the store is damaged, or has no such codes.
    """
    used, first, counts = np.unique(features, return_index=True, return_counts=True)
    out = np.empty(len(features))
    with np.errstate(invalid="ignore"):
        for i, lows, highs in code_ranges(path, manifest, used, files):
            place = slice(first[i], first[i] + counts[i])
            wanted = codes[place]
            if wanted[-1] + 1 >= len(lows):
                out[place] = np.nan
                continue
            out[place] = midpoints(highs[wanted], lows[wanted + 1])
    if np.isnan(out).any():
        raise StoreError(
            f"{path}: expected the codes that the trees split on, found fewer in feature "
            f"{int(features[np.isnan(out).argmax()])} as stored. Store and run do not belong "
            "together, or one of them is damaged."
        )
    return out


def code_ranges(
    path: Path, manifest: Manifest, used: NDArray[np.int64], files: Files = LOCAL
) -> Iterator[tuple[int, NDArray[np.float64], NDArray[np.float64]]]:
    """Yield (i, lowest, highest value of each code) of each of ``used``."""
    if manifest.values_dtype is None:
        names = ("code_lows", "code_highs")
        lows, highs = (ValuesReader(path, manifest, name, files) for name in names)
        pairs = zip(_whole(lows, used), _whole(highs, used), strict=True)
        yield from ((i, low, high) for (i, low), (_, high) in pairs)
        return
    width = min(max_codes(manifest.code_dtype), manifest.n_rows)
    codes = np.empty((1, manifest.n_rows), manifest.code_dtype)
    for i, column in _whole(ValuesReader(path, manifest, files=files), used):
        facts = code_columns(column[None], codes, ranges=width)
        yield i, facts.lows[0], facts.highs[0]


def _whole(reader: ValuesReader, stored: NDArray[np.int64]) -> Iterator[tuple[int, NDArray[Any]]]:
    """Yield whole columns; those of a chunk of several features come in one piece."""
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
