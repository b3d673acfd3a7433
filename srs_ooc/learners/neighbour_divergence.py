"""RIC without a model of the densities: divergences from distances to nearest neighbours."""

from math import isqrt

import numpy as np
from numpy.typing import NDArray

from srs_ooc.learners.gaussian_criteria import ratio_penalty
from srs_ooc.learners.moments import LEAST_CELLS, SINGULAR, Places, Products, Sets, eliminated
from srs_ooc.native.numerics import log, logs


class NeighbourRatio:
    """RIC of two densities about which nothing is assumed.

    ``RIC(S) = -2 (w0 KL(f0, f1) + w1 KL(f1, f0)) + c_n d`` with class shares w, where

        KL(f0, f1) = d / n0 sum over i of log(v_i / r_i) + log(n1 / (n0 - 1))

    and r_i is the distance of row i of class 0 to its k-th neighbour in class 0, v_i that to its
    k-th neighbour in class 1 (Wang, Kulkarni and Verdu 2009, equation 5), k the root of n0, rounded
    down. Parameters are those of :class:`srs_ooc.learners.gaussian_criteria.LinearRatio`.
    """

    def __init__(self, table: NDArray[np.float64], labels: NDArray[np.integer], sets: Sets) -> None:
        self._own: list[NDArray[np.float64]] = [table[:, labels == k] for k in (0, 1)]
        self._shares = [rows.shape[1] / table.shape[1] for rows in self._own]
        self._n_rows: int = table.shape[1]
        self._penalty = ratio_penalty(self._n_rows)
        self._products = Products(table, sets)
        self.largest = self._n_rows - 2 if min(rows.shape[1] for rows in self._own) > 1 else 0

    def n_cells(self, size: int) -> int:
        """Return the numbers of the largest table that a set of so many columns takes."""
        return self._n_rows * (size + 1)

    def __call__(self, places: Places) -> NDArray[np.float64]:
        """Return the criterion of k sets; float64 (k,)."""
        # The estimate counts columns: one that adds no distance of its own would add divergence.
        pivots, _ = eliminated(self._products.of(places), np.zeros(places.shape), 0.0)
        found = np.full(len(places), np.inf)
        for i in np.flatnonzero((pivots > SINGULAR).all(axis=1)).tolist():
            found[i] = self._of(places[i])
        return found

    def _of(self, columns: NDArray[np.integer]) -> float:
        rows = [np.ascontiguousarray(own[columns].T) for own in self._own]
        total = self._penalty * len(columns)
        for own in (0, 1):
            total -= 2.0 * self._shares[own] * divergence(rows[own], rows[1 - own])
        return total if np.isfinite(total) else np.inf


def divergence(own: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """Return the divergence of the density of ``other`` rows from that of ``own``.

    Not a number where rows coincide so that a distance is 0.

    Parameters
    ----------
    own, other : float64 (n0, d), (n1, d)
        At least two rows, and one.
    """
    n_own, d = own.shape
    k = min(isqrt(n_own), n_own - 1, len(other))
    within, across = _kth(own, own, k), _kth(own, other, k - 1)
    if not (within.all() and across.all()):
        return np.nan
    return float(d * (logs(across) - logs(within)).mean() / 2 + log(len(other) / (n_own - 1)))


def _kth(rows: NDArray[np.float64], others: NDArray[np.float64], k: int) -> NDArray[np.float64]:
    """Return the squared distance of each row to the one of ``others`` with k nearer ones."""
    found = np.empty(len(rows))
    step = max(1, LEAST_CELLS // len(others))
    for first in range(0, len(rows), step):
        some = rows[first : first + step]
        squared = np.zeros((len(some), len(others)))
        for column in range(rows.shape[1]):
            squared += np.square(some[:, column, None] - others[:, column])
        found[first : first + step] = np.partition(squared, k, axis=1)[:, k]
    return found
