"""Clusters of rank-correlated items, found blindly."""

import math

import numpy as np
from numpy.typing import NDArray

from srs_ooc.evidence.correlation import RankColumns

LEAST_CORRELATION = 0.5
"""Items at least so correlated, directly or through others, are one cluster."""
CHANCE = 6.0
"""Standard errors that a correlation must exceed to count, ..."""
ENOUGH = 0.9
"""... but no more than this, however few the rows."""


def cluster_items(
    codes: NDArray[np.integer], missing_code: int, least: float = LEAST_CORRELATION
) -> NDArray[np.intp]:
    """Return the cluster of each item: the first place of its members (single linkage).

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
        Place of the first member of each item's cluster.
    """
    n = len(codes)
    linked = RankColumns(codes, missing_code).absolute() >= least_linked(codes.shape[1], least)
    clusters = np.arange(n)
    for first in range(n):
        if clusters[first] != first:
            continue
        front = [first]
        while front:
            near = np.flatnonzero(linked[front.pop()] & (clusters != first))
            near = near[near > first]
            clusters[near] = first
            front += near.tolist()
    return clusters


def least_linked(n_rows: int, least: float = LEAST_CORRELATION) -> float:
    """Return the absolute correlation from which two items are alike, given their rows."""
    return max(least, min(CHANCE / math.sqrt(n_rows), ENOUGH))


def dependent_items(codes: NDArray[np.integer], missing_code: int) -> NDArray[np.intp]:
    """Return the cluster of each item by average linkage: the first place of its members.

    Two clusters are joined while the mean correlation between their members is that of single
    items that are linked: unlike single linkage this does not chain clusters that touch.
    """
    means = RankColumns(codes, missing_code).absolute()
    least, n = least_linked(codes.shape[1]), len(codes)
    np.fill_diagonal(means, -1.0)
    sizes, clusters = np.ones(n), np.arange(n)
    while n and means.max() >= least:
        one, other = sorted(divmod(int(means.argmax()), n))
        joined = (sizes[one] * means[one] + sizes[other] * means[other]) / (
            sizes[one] + sizes[other]
        )
        sizes[one] += sizes[other]
        means[one], means[:, one] = joined, joined
        means[other], means[:, other], means[one, one] = -1.0, -1.0, -1.0
        clusters[clusters == other] = one
    return clusters


def largest_cluster(clusters: NDArray[np.intp], members: NDArray[np.bool_]) -> int:
    """Return the most ``members`` of one cluster, at least 1.

    Parameters
    ----------
    clusters : intp (m,)
        As :func:`cluster_items` returns them.
    members : bool (m,)
        Which count.
    """
    return max(1, int(np.bincount(clusters[members], minlength=1).max()))
