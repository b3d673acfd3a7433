"""Permutations of rows that keep what is not exchangeable in place: strata, and whole groups.

Rows are exchangeable within a stratum only; where rows come in groups (repeated samples of a
patient, say), whole groups are, and only with groups of as many rows in the same strata.
"""

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import UsageError
from srs_ooc.base.seeds import derive_array

LEAST_MOVED = 0.9
"""Share of the rows that a decoy's permutation must move, or it is too like its feature."""

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
    def nbytes(n_rows: int) -> int:
        """Return the bytes that making permutations takes, one of them included."""
        return 96 * n_rows

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

    def permutation(self, key: int) -> Rows:
        """Return a uniformly random permutation: where row i takes its value from; int32."""
        by_class = np.argsort(self._class, kind="stable")
        sources = np.arange(self.n_rows, dtype=np.int32)
        sources[self._rows_of(by_class)] = self._rows_of(self._shuffled(key))
        return sources

    def check(self) -> None:
        """Check that decoys can be made.

        Raises
        ------
        UsageError
            If fewer than nine rows in ten would move.
        """
        _, first, counts = np.unique(self._class, return_index=True, return_counts=True)
        n_fixed = int(self._size[first[counts % 2 == 1]].sum())
        if n_fixed > max(1, (1 - LEAST_MOVED) * self.n_rows):
            raise UsageError(
                f"expected strata and groups that let at least {LEAST_MOVED:.0%} of the rows trade "
                f"places, found {self.n_rows - n_fixed} of {self.n_rows}: a row needs a partner in "
                "its stratum, a group one of its size and strata. Use coarser strata or groups, or "
                "--judge probe."
            )


def involution(key: int, n_rows: int) -> Rows:
    """Return a random pairing of rows that are all exchangeable; int32 (n_rows,)."""
    return Exchangeability(n_rows).involution(key)
