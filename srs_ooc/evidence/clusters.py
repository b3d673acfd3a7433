"""Clusters of features that can stand in for one another, around the best of each.

Features are taken in order. Each joins the representative that it is most correlated with, or
becomes one where no correlation is large enough (the leader algorithm of Hartigan). So every member
can stand in for its representative, which chains of single linkage do not say; and memory grows
with the features, not with their pairs.
"""

import numpy as np
from numpy.typing import NDArray

from srs_ooc.evidence.correlation import RankColumns

ALIKE = 0.8
"""Absolute rank correlation from which a feature stands in for another."""


def lead(columns: RankColumns, order: NDArray[np.intp], least: float = ALIKE) -> NDArray[np.intp]:
    """Return the representative of each column.

    Parameters
    ----------
    columns : RankColumns
        n of them.
    order : intp (m,)
        Places of the columns that are clustered, best first.
    least : float
        Absolute correlation from which a column joins a representative. Of several the one most
        correlated with it leads, of equal ones the first.

    Returns
    -------
    intp (n,)
        Place of the representative, its own for one that leads; -1 where not clustered.
    """
    leader = np.full(columns.n, -1, np.intp)
    leaders = np.zeros(0, np.intp)
    for piece in columns.pieces(len(order)):
        some = order[piece]
        best, nearest = _nearest(columns, some, leaders)
        among = columns.squared(some, some)
        new: list[int] = []
        for i, place in enumerate(some.tolist()):
            own = among[i, new]
            at = int(np.argmax(own)) if new else -1
            if new and own[at] > best[i]:
                best[i], nearest[i] = own[at], some[new[at]]
            if best[i] < least * least:
                new.append(i)
                nearest[i] = place
            leader[place] = nearest[i]
        leaders = np.concatenate([leaders, some[new]])
    return leader


def _nearest(
    columns: RankColumns, some: NDArray[np.intp], leaders: NDArray[np.intp]
) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Return the largest squared correlation of each with a leader, and the first that has it."""
    best, nearest = np.full(len(some), -1.0), np.full(len(some), -1, np.intp)
    for piece in columns.pieces(len(leaders)):
        squared = columns.squared(some, leaders[piece])
        at = np.argmax(squared, axis=1)
        found = squared[np.arange(len(some)), at]
        is_better = found > best
        best[is_better] = found[is_better]
        nearest[is_better] = leaders[piece][at[is_better]]
    return best, nearest
