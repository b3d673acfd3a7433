"""Groups of rank-correlated items, found blindly."""

import numpy as np
from numpy.typing import NDArray

LEAST_CORRELATION = 0.5
"""Items at least so correlated, directly or through others, are one group."""
CHANCE = 6.0
"""Standard errors that a correlation must exceed to count, however few the rows."""
MOST_ROWS = 4096
"""Rows that are enough to tell."""


def group_items(
    codes: NDArray[np.integer], missing_code: int, least: float = LEAST_CORRELATION
) -> NDArray[np.intp]:
    """Return the group of each item: the first place of its members (single linkage).

    Parameters
    ----------
    codes : integers (n, n_rows)
        Ordinal codes, which are ranks; a missing code counts as the mean.
    missing_code : int
        The code of a missing value.
    least : float
        Absolute correlation from which two items are linked; more where rows are few.

    Returns
    -------
    intp (n,)
        Place of the first member of each item's group.
    """
    n, n_rows = codes.shape
    ranks = codes.astype(np.float32)
    ranks[codes == missing_code] = np.nan
    with np.errstate(invalid="ignore", divide="ignore"):
        counts = np.maximum(np.count_nonzero(codes != missing_code, axis=1), 1)
        ranks -= (np.nansum(ranks, axis=1) / counts)[:, None]
        ranks = np.nan_to_num(ranks)
        ranks /= np.maximum(np.sqrt((ranks * ranks).sum(axis=1)), 1e-20)[:, None]
    linked = np.abs(ranks @ ranks.T) >= max(least, CHANCE / np.sqrt(n_rows))
    groups = np.arange(n)
    for first in range(n):
        if groups[first] != first:
            continue
        front = [first]
        while front:
            near = np.flatnonzero(linked[front.pop()] & (groups != first))
            near = near[near > first]
            groups[near] = first
            front += near.tolist()
    return groups


def largest_groups(
    groups: NDArray[np.intp], members: NDArray[np.bool_], n_places: int
) -> NDArray[np.int64]:
    """Return for each place k the most ``members`` of one group in the first 2 k places.

    Parameters
    ----------
    groups : intp (m,)
        Of the first places, as :func:`group_items` returns them.
    members : bool (m,)
        Which of them count.
    n_places : int
        Places to answer for; those beyond m / 2 have the answer of m / 2.

    Returns
    -------
    int64 (n_places,)
        At least 1.
    """
    sizes = np.zeros(len(groups), np.int64)
    largest = np.ones(len(groups), np.int64)
    for place, group in enumerate(groups.tolist()):
        sizes[group] += members[place]
        largest[place] = max(largest[place - 1] if place else 1, sizes[group])
    ends = np.minimum(2 * np.arange(1, n_places + 1), len(groups)) - 1
    found: NDArray[np.int64] = largest[ends]
    return found
