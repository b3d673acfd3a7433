"""Which rows may trade places under the null, and which are held out together.

Rows trade places within strata, whole groups with their like. Folds keep groups whole, and strata
and classes even.
"""

from math import fsum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import UsageError
from srs_ooc.base.seeds import derive_array
from srs_ooc.native.numerics import exp, log, log_factorial

# What is not exchangeable stays in place: strata, and whole groups.

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
    in_order : bool
        Groups whose rows are in the same strata in another order are not of one class; they are
        where only sums over a group's rows are looked at.

    Attributes
    ----------
    n_rows : int
        Rows trained on.
    classes : intp (n_units,)
        Class of each unit, in the order of the numbers of groups.
    missing_code : int
        The code of a unit of which :meth:`mean_ranks` knows nothing; all others are below.
    """

    def __init__(
        self,
        n_rows: int,
        strata: Rows | None = None,
        groups: Rows | None = None,
        *,
        in_order: bool = True,
    ) -> None:
        self.n_rows = n_rows
        if groups is None:
            self._rows = np.arange(n_rows, dtype=np.int32)
            self._first = np.arange(n_rows)
        else:
            self._rows = np.argsort(groups, kind="stable").astype(np.int32)
            changes = np.flatnonzero(np.diff(groups[self._rows])) + 1
            self._first = np.concatenate([[0], changes])
        self._size = np.diff(np.append(self._first, n_rows))
        self.missing_code = min(len(self._first), 2**16 - 1)
        offset = np.arange(n_rows) - np.repeat(self._first, self._size)
        offset *= in_order
        signs = derive_array(0, offset if strata is None else offset << 32 | strata[self._rows])
        signature = np.add.reduceat(signs, self._first)
        self.classes = np.unique(signature, return_inverse=True)[1]

    @staticmethod
    def nbytes(n_rows: int) -> int:
        """Return the bytes that finding out which rows trade places takes."""
        return 96 * n_rows

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
        kinds = np.stack([self.classes.astype(np.uint64), unit_target], axis=1)
        alike = np.unique(kinds, axis=0, return_counts=True)[1]
        return _log_factorials(np.bincount(self.classes)) - _log_factorials(alike)

    def spans(self, values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the least and the largest of (n_rows,) values in each unit; (n_units,) each."""
        values = values[self._rows]
        return np.minimum.reduceat(values, self._first), np.maximum.reduceat(values, self._first)

    def sums(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """Return the sum of (n_rows,) numbers in each unit, whatever the order of its rows."""
        parts = np.split(values[self._rows], self._first[1:])
        return np.array([fsum(part.tolist()) for part in parts])

    def mean_ranks(self, columns: NDArray[Any], missing_code: int) -> NDArray[np.uint16]:
        """Return the order of units by the mean midrank of the values that are known of them.

        Midranks are among all known values of the column, and so stay what they are where units
        trade places. Equal means have equal codes, on every machine: sums are of whole numbers, and
        their quotients are rounded once.

        Parameters
        ----------
        columns : uint8 or uint16 (n_columns, n_rows)
            Ordinal codes; from ``missing_code`` on missing.
        missing_code : int
            Number of codes that are not.

        Returns
        -------
        uint16 (n_columns, n_units)
            From 0 in each column; neighbours are put together where there are more than 65,535.
        """
        most = self.missing_code
        out = np.full((len(columns), len(self._first)), most, np.uint16)
        for column, codes in zip(columns, out, strict=True):
            counts = np.bincount(column)
            ranks = 2 * np.cumsum(counts) - counts  # twice the midranks, less one
            ranks[missing_code:] = 0
            of_rows = column[self._rows]
            sums = np.add.reduceat(ranks[of_rows], self._first)
            known = np.add.reduceat(of_rows < missing_code, self._first, dtype=np.int64)
            some = known > 0
            means, places = np.unique(sums[some] / known[some], return_inverse=True)
            codes[some] = places * min(len(means), most) // max(len(means), 1)
        return out

    def check(self, target: NDArray[Any], least: float) -> None:
        """Check that a target can be arranged in at least so many ways.

        Raises
        ------
        UsageError
            If not: no test could be strong enough.
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
                f"{least:,.0f} ways, 1 / level, found "
                f"{exp(log_number):,.0f}: a row trades places with rows of its stratum, a group "
                "with groups of its size and strata. Use coarser strata or groups, or --judge "
                "probe."
            )


def _log_factorials(counts: NDArray[Any]) -> float:
    return fsum(log_factorial(count) for count in counts.tolist())


# Which rows are held out together: folds that keep groups whole and strata and classes even.

_BINS = 10
"""Parts of equal size that a target of numbers is cut into, to be kept even."""


def deal_folds(
    key: int,
    n_folds: int,
    target: NDArray[np.integer] | NDArray[np.floating],
    strata: NDArray[np.integer] | None = None,
    groups: NDArray[np.integer] | None = None,
    option: str = "--folds",
) -> NDArray[np.intp]:
    """Return the fold of each row, from 0; intp (n_rows,).

    Units are dealt out in turn, those of one class and stratum after each other in random order,
    so that their numbers differ by one at most between folds. A unit is a row or a whole group;
    a stratum of fewer rows than folds is held out whole where there are no groups.

    Parameters
    ----------
    key : int
        64-bit key of the random order.
    n_folds : int
        Folds to deal, at least 2.
    target : (n_rows,)
        Class codes, or the numbers of a regression, kept even by tenths of their ranks.
    strata, groups : integers (n_rows,), optional
        Of each row.
    option : str
        What a message calls ``n_folds``.

    Raises
    ------
    UsageError
        If there are fewer units than folds.
    """
    n_rows = len(target)
    unit_of = np.arange(n_rows) if groups is None else np.unique(groups, return_inverse=True)[1]
    if strata is not None and groups is None:
        unit_of = _whole_small_strata(strata, n_folds)
    n_units = int(unit_of.max()) + 1
    if n_units < n_folds:
        what = "row" if groups is None and strata is None else "group, or row of a stratum,"
        raise UsageError(
            f"{option}: expected no more than there are units to hold out (a {what} each), found "
            f"{n_folds} folds of {n_units}. Ask for fewer folds."
        )
    kinds = _kinds(target, strata)[_first_of_most(unit_of, _kinds(target, strata))]
    sizes = np.bincount(unit_of)
    order = np.lexsort((derive_array(key, np.arange(n_units)), -sizes, kinds))
    fold_of_unit = np.empty(n_units, np.intp)
    fold_of_unit[order] = np.arange(n_units) % n_folds
    return fold_of_unit[unit_of]


def _whole_small_strata(strata: NDArray[np.integer], n_folds: int) -> NDArray[np.intp]:
    """Return the unit of each row: itself, or its stratum where that has too few rows."""
    inverse, counts = np.unique(strata, return_inverse=True, return_counts=True)[1:]
    is_small = counts[inverse] < n_folds
    label = np.where(is_small, len(strata) + inverse, np.arange(len(strata)))
    units: NDArray[np.intp] = np.unique(label, return_inverse=True)[1]
    return units


def _kinds(
    target: NDArray[np.integer] | NDArray[np.floating], strata: NDArray[np.integer] | None
) -> NDArray[np.intp]:
    """Return a number for the class and stratum of each row."""
    kinds: NDArray[np.intp] = np.unique(target, return_inverse=True)[1]
    if np.issubdtype(target.dtype, np.floating):
        ranks = np.searchsorted(np.sort(target), target)
        kinds = ranks * _BINS // len(target)
    if strata is not None:
        kinds = kinds + (int(kinds.max()) + 1) * np.unique(strata, return_inverse=True)[1]
    return kinds


def _first_of_most(unit_of: NDArray[np.intp], kinds: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return for each unit a row of the kind that most of its rows have, the least of equal."""
    pairs, first, counts = np.unique(
        np.stack([unit_of, kinds]), axis=1, return_index=True, return_counts=True
    )
    order = np.lexsort((pairs[1], -counts, pairs[0]))
    starts = np.flatnonzero(np.diff(pairs[0][order], prepend=-1))
    rows: NDArray[np.intp] = first[order][starts]
    return rows
