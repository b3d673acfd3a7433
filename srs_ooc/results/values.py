"""The values of some features of a store, in memory."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.store.arrays import Categories
from srs_ooc.store.store import Store


def values_of(store: Store, features: NDArray[np.integer[Any]]) -> NDArray[Any]:
    """Return the values of features, by their positions in the table, as ``export`` writes them.

    Only the chunks that hold them are read.

    Parameters
    ----------
    store : Store
        The store.
    features : int (k,)
        Positions in the table.

    Returns
    -------
    float64 (n_rows, k)
        NaN where missing. Of dtype object where a feature is categorical: its texts, None where
        missing.

    Raises
    ------
    StoreError
        If the store is damaged, or keeps no values.
    """
    sources = np.asarray(store.array("positions"), np.int64)
    places = np.argsort(sources)[features]
    order = np.argsort(places, kind="stable")
    out = np.empty((store.n_rows, len(places)))
    for i, row, part in store.column_parts(places[order]):
        out[row : row + len(part), order[i]] = part
    if not store.manifest.kind_counts.get("categorical"):
        return out
    return _with_texts(out, store.categories(), places.tolist())


def _with_texts(values: NDArray[Any], categories: Categories, places: list[int]) -> NDArray[Any]:
    found = [categories.of(place) for place in places]
    if all(texts is None for texts in found):
        return values
    out = values.astype(object)
    for column, texts in enumerate(found):
        if texts is not None:
            codes = values[:, column]
            out[:, column] = [None if np.isnan(c) else texts[int(c)] for c in codes]
    return out
