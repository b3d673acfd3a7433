"""Which rows are held out together: folds that keep groups whole and strata and classes even."""

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import UsageError
from srs_ooc.base.seeds import derive_array

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
