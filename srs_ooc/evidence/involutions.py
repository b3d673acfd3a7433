"""Permutations of rows that keep what is not exchangeable in place: strata, and whole groups.

Rows are exchangeable within a stratum only; where rows come in groups (repeated samples of a
patient, say), whole groups are, and only with groups of as many rows in the same strata.
"""

from math import fsum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import UsageError
from srs_ooc.base.seeds import derive_array
from srs_ooc.evidence.families import partners
from srs_ooc.native.numerics import exp, log, log_factorial

_ROUNDING = 1e-6
Rows = NDArray[np.int32]


class Exchangeability:
    """Which rows may trade places.

    A unit is a row, or a whole group; units of one class have as many rows in the same strata.

    Parameters
    ----------
    n_rows : int
        Rows trained on.
    strata : int32 (n_rows,), optional
        Only rows with equal numbers trade places.
    groups : int32 (n_rows,), optional
        Rows with equal numbers move together, in their order.
    """

    def __init__(self, n_rows: int, strata: Rows | None = None, groups: Rows | None = None) -> None:
        self.n_rows = n_rows
        if groups is None:
            self._rows = np.arange(n_rows, dtype=np.int32)
            self._first = np.arange(n_rows)
        else:
            self._rows = np.argsort(groups, kind="stable").astype(np.int32)
            changes = np.flatnonzero(np.diff(groups[self._rows])) + 1
            self._first = np.concatenate([[0], changes])
        self._size = np.diff(np.append(self._first, n_rows))
        offset = np.arange(n_rows) - np.repeat(self._first, self._size)
        signs = derive_array(0, offset if strata is None else offset << 32 | strata[self._rows])
        signature = np.add.reduceat(signs, self._first)
        self._class = np.unique(signature, return_inverse=True)[1]

    @staticmethod
    def nbytes(n_rows: int, n_families: int = 0) -> int:
        """Return the bytes that making permutations takes, one of them or all families included."""
        return (96 + (24 + 4 * n_families if n_families else 0)) * n_rows

    def _shuffled(self, key: int) -> NDArray[np.intp]:
        """Return the units by class, in random order inside each."""
        hashes = derive_array(key, self._rows[self._first])
        return np.lexsort((hashes, self._class))

    def _rows_of(self, units: NDArray[np.intp]) -> Rows:
        sizes = self._size[units]
        offset = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        rows: Rows = self._rows[np.repeat(self._first[units], sizes) + offset]
        return rows

    def involution(self, key: int) -> Rows:
        """Return a random pairing of rows: where row i takes its value from; int32 (n_rows,).

        No row is paired with itself, save one unit of each class with an odd number of them.
        """
        order = self._shuffled(key)
        classes = self._class[order]
        starts = np.searchsorted(classes, classes)
        is_left = (np.arange(len(order)) - starts) % 2 == 0
        has_partner = np.append(classes[1:] == classes[:-1], False)
        places = np.flatnonzero(is_left & has_partner)
        left, right = self._rows_of(order[places]), self._rows_of(order[places + 1])
        partners = np.arange(self.n_rows, dtype=np.int32)
        partners[left], partners[right] = right, left
        return partners

    def families(self, key: int, count: int) -> Rows:
        """Return ``count`` pairings of a random group: where row i takes its value from.

        int32 (count, n_rows). Of one family and four units of a class or more the same as
        :meth:`involution`.
        """
        order = self._shuffled(key)
        sources = np.empty((count, self.n_rows), np.int32)
        into = None
        for family, places in enumerate(partners(self._class[order], key, count)):
            into = self._rows_of(order) if into is None else into
            sources[family, into] = self._rows_of(order[places])
        return sources

    def permutation(self, key: int) -> Rows:
        """Return a uniformly random permutation: where row i takes its value from; int32."""
        by_class = np.argsort(self._class, kind="stable")
        sources = np.arange(self.n_rows, dtype=np.int32)
        sources[self._rows_of(by_class)] = self._rows_of(self._shuffled(key))
        return sources

    def log_arrangements(self, target: NDArray[Any]) -> float:
        """Return the natural logarithm of how many ways exchanges arrange a target in.

        Parameters
        ----------
        target : (n_rows,)
            Class codes or numbers.
        """
        values = np.unique(target, return_inverse=True)[1].astype(np.int64)
        offset = np.arange(self.n_rows) - np.repeat(self._first, self._size)
        signs = derive_array(1, offset << 32 | values[self._rows])
        unit_target = np.add.reduceat(signs, self._first)
        kinds = np.stack([self._class.astype(np.uint64), unit_target], axis=1)
        alike = np.unique(kinds, axis=0, return_counts=True)[1]
        return _log_factorials(np.bincount(self._class)) - _log_factorials(alike)

    def check(self, target: NDArray[Any], least: float) -> None:
        """Check that a target can be arranged in at least so many ways.

        Raises
        ------
        UsageError
            If not: decoys, or permuted targets, would too often be what they are compared with.
        """
        log_number = self.log_arrangements(target)
        if log_number == 0:
            raise UsageError(
                "expected strata and groups within which targets differ, found that rows which may "
                "trade places all have the same one: nothing could be distinguished from chance. "
                "Where classes differ within each group, as before and after in one person, give "
                "that column as --strata, not --groups; leave the target out of the strata; or use "
                "--judge probe."
            )
        if log_number < log(least) - _ROUNDING:
            raise UsageError(
                f"expected strata and groups in which the target can be arranged in at least "
                f"{least:,.0f} ways, (1 + families of decoys, or 1) / level, found "
                f"{exp(log_number):,.0f}: a row trades places with rows of its stratum, a group "
                "with groups of its size and strata. Use coarser strata or groups, or --judge "
                "probe."
            )


def _log_factorials(counts: NDArray[Any]) -> float:
    return fsum(log_factorial(count) for count in counts.tolist())


def involution(key: int, n_rows: int) -> Rows:
    """Return a random pairing of rows that are all exchangeable; int32 (n_rows,)."""
    return Exchangeability(n_rows).involution(key)
