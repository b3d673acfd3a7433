"""Rank correlations of features, and what follows: clusters, and orders without repetition.

Correlations are computed from codes, in a bounded amount of memory.
"""

import math

import numpy as np

from srs_ooc.base.arrays import Bools, Floats, Indices, Integers
from srs_ooc.base.seeds import derive_array

# Rank correlations of features, from their codes, in a bounded amount of memory.
#
# Every sum is one of whole numbers that float64 holds, so it is exact in whatever order BLAS takes
# it; what follows is done one element at a time. So the correlations, and what is decided by them,
# do not depend on threads, on the processor or on the order of rows.

MOST_ROWS = 4096
"""Rows that are looked at, at most."""
CELLS = 1 << 16
"""Codes, and correlations, that are looked at together, at most."""


def sampled_rows(n_rows: int, most: int = MOST_ROWS) -> Indices:
    """Return evenly spaced rows, all of them where there are no more than ``most``."""
    return np.linspace(0, n_rows - 1, min(n_rows, most)).astype(np.intp)


class RankColumns:
    """Columns of ordinal codes, which are ranks, ready to be correlated.

    A missing code counts as the mean of what is known of its column.

    Parameters
    ----------
    codes : uint8 or uint16 (n, n_rows)
        Of at most ``MOST_ROWS`` rows: :func:`sampled_rows` says which. Kept, and not changed.
    missing_code : int
        The code of a missing value.

    Raises
    ------
    ValueError
        If there are more rows.
    """

    def __init__(self, codes: Integers, missing_code: int) -> None:
        if codes.shape[1] > MOST_ROWS:
            raise ValueError(f"expected at most {MOST_ROWS} rows, found {codes.shape[1]}")
        self._codes, self._missing_code = codes, missing_code
        self.n, self.n_rows = codes.shape
        self._counts, self._sums, self._spreads = np.empty((3, self.n))
        for place, column in enumerate(codes):
            known = column[column != missing_code].astype(np.float64)
            count, total = len(known), known.sum()
            self._counts[place], self._sums[place] = count, total
            self._spreads[place] = count * (count * np.square(known).sum() - total * total)

    def squared(self, some: Indices, others: Indices) -> Floats:
        """Return squared correlations; float64 (len(some), len(others)), 0 with a constant one.

        With sums over the rows in which both are known, ``N = n m sum(xy) - m X sum(y) -
        n Y sum(x) + X Y sum(1)`` for columns of n and m known codes that sum to X and Y; then
        ``r^2 = N^2 / (n (n sum(x^2) - X^2) m (m sum(y^2) - Y^2))``. Of 8-bit codes N and both
        factors are below 2^53, so exact: equal columns have exactly 1, a tie at a half exactly
        1/4. :meth:`pieces` of both keep it small.
        """
        left, right = (self._codes[of].astype(np.float64) for of in (some, others))
        n, sums = self._counts[some][:, None], self._sums[some][:, None]
        m, other_sums = self._counts[others], self._sums[others]
        shared_x, shared_y, both = sums, other_sums, np.float64(self.n_rows)
        if (n < self.n_rows).any() or (m < self.n_rows).any():
            is_known, others_known = (
                (self._codes[of] != self._missing_code).astype(np.float64) for of in (some, others)
            )
            left *= is_known
            right *= others_known
            shared_x, shared_y = left @ others_known.T, is_known @ right.T
            both = is_known @ others_known.T
        numerators = n * m * (left @ right.T) - m * sums * shared_y
        numerators -= n * other_sums * shared_x - sums * other_sums * both
        scale = self._spreads[some][:, None] * self._spreads[others]
        out = np.zeros_like(numerators)
        np.divide(numerators * numerators, scale, out=out, where=scale > 0)
        return np.minimum(out, 1.0)

    def squares(self) -> Floats:
        """Return the squared correlations of all columns with each other; float64 (n, n)."""
        out, places = np.empty((self.n, self.n)), np.arange(self.n)
        for rows in self.pieces(self.n):
            for others in self.pieces(self.n):
                if others.start >= rows.start:
                    out[rows, others] = self.squared(places[rows], places[others])
                    out[others, rows] = out[rows, others].T
        return out

    def pieces(self, count: int) -> list[slice]:
        """Return ``count`` columns in pieces small enough to be correlated with each other."""
        size = max(1, min(math.isqrt(CELLS), CELLS // self.n_rows))
        return [slice(start, start + size) for start in range(0, count, size)]


# Clusters of rank-correlated features.

LEAST_CORRELATION = 0.5
"""Features at least so correlated, directly or through others, are one cluster."""
CHANCE = 6.0
"""Standard errors that a correlation must exceed to count, ..."""
ENOUGH = 0.9
"""... but no more than this, however few the rows."""


def single_linkage(codes: Integers, missing_code: int) -> Indices:
    """Return the cluster of each feature: the first place of its members (single linkage).

    Parameters
    ----------
    codes : integers (n, n_rows)
        Ordinal codes, which are ranks; a missing code counts as the mean.
    missing_code : int
        The code of a missing value.

    Returns
    -------
    intp (n,)
        Place of the first member of each feature's cluster.
    """
    n, n_rows = codes.shape
    least = max(LEAST_CORRELATION, min(CHANCE / math.sqrt(n_rows), ENOUGH))
    linked = np.sqrt(RankColumns(codes, missing_code).squares()) >= least
    clusters, reached = np.arange(n), np.zeros(n, np.intp)
    while not np.array_equal(clusters, reached):  # the first place that each is linked to
        reached = clusters
        clusters = np.minimum(clusters, np.where(linked, clusters, n).min(axis=1, initial=n))
    return clusters


# Clusters of features that can stand in for one another, around the best of each.
#
# Features are taken in order. Each joins the representative that it is most correlated with, or
# becomes one where no correlation is large enough (the leader algorithm of Hartigan). So every
# member can stand in for its representative, which chains of single linkage do not say; and memory
# grows with the features, not with their pairs.

ALIKE = 0.8
"""Absolute rank correlation from which a feature stands in for another."""


def leader_clustering(columns: RankColumns, order: Indices, least: float = ALIKE) -> Indices:
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


def _nearest(columns: RankColumns, some: Indices, leaders: Indices) -> tuple[Floats, Indices]:
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


# An order of features by what they are worth together.
#
# Importance alone puts a feature and its copies side by side: each is worth as much as the first by
# itself, and nothing once that is known. Here the next feature is always the one with the largest
# importance times what of it is new: ``sqrt(1 - r**2)``, the standard deviation that the feature
# before it which is most like it leaves unexplained, r being their rank correlation. It is the idea
# of mRMR (Ding and Peng 2005) with the trees' importance as relevance.
#
# Noise is new too, and has some importance: what the evidence selects comes before all that it does
# not, however redundant.

HEAD = 400
"""Features, by importance, among which redundancy is looked at; all others keep their order."""


def mrmr_order(
    importance: Floats,
    columns: RankColumns,
    features: Integers,
    key: int,
    is_selected: Bools | None = None,
) -> Indices:
    """Return the places of some features, ordered by importance less redundancy.

    Parameters
    ----------
    importance : float64 (n,)
        Of each feature; 0 or less counts as nothing.
    columns : RankColumns
        Their codes, n of them.
    features : integers (n,)
        Which features they are; equal ones are ordered by a hash of them.
    key : int
        Of that hash.
    is_selected : bool (n,), optional
        Those that come before all others.

    Returns
    -------
    intp (n,)
        A permutation. Where nothing is left to tell features apart they come by importance.
    """
    by_importance = np.lexsort((derive_array(key, features), -importance))
    relevance = np.maximum(importance[by_importance], 0.0)
    first = np.zeros(len(relevance), np.bool_) if is_selected is None else is_selected
    is_first, n_first = first[by_importance], int(np.count_nonzero(first))
    explained = np.zeros(len(relevance))
    is_left = np.ones(len(relevance), np.bool_)
    order, squares = np.empty(len(relevance), np.intp), columns.squares()
    for rank in range(len(order)):
        # Of equal values the first: the more important one, then as the hash has it.
        may_come = is_left & is_first if rank < n_first else is_left
        place = int(np.argmax(np.where(may_come, relevance * np.sqrt(1.0 - explained), -1.0)))
        order[rank], is_left[place] = place, False
        np.maximum(explained, squares[by_importance[place], by_importance], out=explained)
    return by_importance[order]
