"""What each target says of the rows: the response of its regression."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from srs_ooc.store.store import Store
from srs_ooc.trees.block import Block
from srs_ooc.trees.response import Response, TrainingRows

TOGETHER = 32
"""Targets whose values are read together: neighbours often lie in one chunk."""


def target_values(
    store: Store, targets: NDArray[np.uint32], rows: NDArray[np.int32] | None
) -> Iterator[NDArray[np.float64]]:
    """Yield the values of each target, ascending, on the rows trained on; NaN where missing.

    Of a store that keeps no values, a code stands for the middle of its range.

    Raises
    ------
    StoreError
        If the store is damaged.
    """
    read = _by_code if store.manifest.values_dtype is None else _as_kept
    for start in range(0, len(targets), TOGETHER):
        some = targets[start : start + TOGETHER].astype(np.int64)
        for values in read(store, some):
            yield values if rows is None else values[rows]


def _as_kept(store: Store, targets: NDArray[np.int64]) -> NDArray[np.float64]:
    out = np.empty((len(targets), store.n_rows))
    for i, first, values in store.values().columns(targets):
        out[i, first : first + len(values)] = values
    return out


def _by_code(store: Store, targets: NDArray[np.int64]) -> NDArray[np.float64]:
    manifest, out = store.manifest, np.empty((len(targets), store.n_rows))
    block = Block(len(targets), store.n_rows, manifest.code_nbytes, tiled=False)
    with store.columns(mapped=False) as columns:
        columns.gather(targets.astype(np.uint32), block)
    codes = block.as_columns()
    missing = np.iinfo(codes.dtype).max
    for i, lows, highs in store.code_ranges(targets):
        known = codes[i] != missing
        out[i] = np.nan
        out[i, known] = (lows / 2 + highs / 2)[codes[i, known]]
    return out


def training_rows(
    values: NDArray[np.float64], weights: NDArray[np.float64] | None
) -> TrainingRows | None:
    """Return the rows of a target's regression; None where its values do not differ.

    Rows whose value is missing or infinite are left out of it.

    Parameters
    ----------
    values : float64 (n_rows,)
        Of the target.
    weights : float64 (n_rows,) or None
        Of the rows.
    """
    known = np.isfinite(values)
    if not known.any() or values[known].min() == values[known].max():
        return None
    filled = np.where(known, values, values[known][0])
    rows = TrainingRows.of(Response.targets(filled, weights), "variance")
    if known.all():
        return rows
    return rows.only(np.flatnonzero(known).astype(np.int32))
