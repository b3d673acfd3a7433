"""How rows are permuted into decoys, or held out: what is not exchangeable stays in place.

A decoy is a column with its rows permuted by a family's involution, which keeps strata and whole
groups in place. Folds keep groups whole, and strata and classes even.
"""

from collections.abc import Iterator
from math import fsum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import UsageError
from srs_ooc.base.seeds import derive, derive_array
from srs_ooc.native.numerics import exp, log, log_factorial

# A group of pairings under which a feature and its decoys are alike.
#
# Elements are the numbers of r bits; exclusive or brings two of them together, and each is its own
# inverse. The units of a class (rows, or groups of rows, that may trade places) are dealt into
# blocks of 2**r, in which an element takes each place to that place exclusive-or the element. What
# is left of a class makes smaller blocks, of 2**s, in which an element acts by its image under a
# random linear map of r bits onto s. The set of a feature and its decoys is then an orbit:
# whichever of them were the feature, the others would be its decoys.

_ELEMENTS, _IMAGES, _MIRRORS = 1, 2, 3
_TINY = 4
"""Units below which the one pairing of a single family would mirror a class, so chance decides."""

_PIECE = 1 << 12
"""Blocks whose maps are made together."""

Places = NDArray[np.intp]


def partners(classes: Places, key: int, count: int) -> Iterator[NDArray[np.int32]]:
    """Yield the place that each takes its value from, family by family.

    Parameters
    ----------
    classes : intp (n_units,)
        Ascending; units of one class are in random order.
    key : int
        64-bit key.
    count : int
        M, at least 1. Families are distinct elements but the identity, all of them where M is
        2**r - 1, else a random choice.

    Yields
    ------
    int32 (n_units,)
        Its own inverse.
    """
    n_bits = count.bit_length()  # of the smallest group with so many beside the identity
    among = np.arange((1 << n_bits) - 1)
    elements = 1 + np.argsort(derive_array(derive(key, _ELEMENTS), among), kind="stable")[:count]
    starts, logs = _blocks(classes, n_bits)
    shifts = np.where(logs == n_bits, elements.astype(np.uint8)[:, None], np.uint8(0))
    for power in range(1, n_bits):
        inside = np.flatnonzero(logs == power)
        blocks, number = np.unique(starts[inside], return_inverse=True)
        for first in range(0, len(blocks), _PIECE):
            images = _images(derive(key, _IMAGES), blocks[first : first + _PIECE], n_bits, power)
            here = (number >= first) & (number < first + _PIECE)
            shifts[:, inside[here]] = images[number[here] - first][:, elements].T
    if n_bits == 1:
        sizes = np.bincount(classes)[classes] if len(classes) else classes
        stays = derive_array(derive(key, _MIRRORS), starts) & np.uint64(1) == 0
        shifts[:, (sizes < _TINY) & stays] = 0
    del logs
    for shift in shifts:
        places = np.arange(len(starts), dtype=np.int32)
        places -= starts
        places ^= shift
        places += starts
        yield places


def _blocks(classes: Places, n_bits: int) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
    """Return where the block of each place starts, and the logarithm of its size."""
    first = np.searchsorted(classes, classes).astype(np.int32)
    sizes = np.searchsorted(classes, classes, side="right").astype(np.int32) - first
    offset = np.arange(len(classes), dtype=np.int32) - first
    start = offset >> n_bits << n_bits
    logs = np.full(len(classes), n_bits, np.uint8)
    at = sizes >> n_bits << n_bits
    is_left = offset >= at
    for power in reversed(range(n_bits)):
        has = sizes >> power & 1 == 1
        inside = is_left & has & (offset >= at) & (offset < at + (1 << power))
        start[inside], logs[inside] = at[inside], power
        at += has.astype(np.int32) << power
    return first + start, logs


def _images(key: int, blocks: NDArray[np.int32], n_bits: int, n_onto: int) -> NDArray[np.uint8]:
    """Return the image of each element under a random map onto ``n_onto`` bits, block by block.

    uint8 (n_blocks, 2**n_bits).
    """
    size = 1 << n_bits
    elements = np.arange(size)
    parities = np.array([number.bit_count() & 1 for number in range(size)], np.uint8)
    out = np.zeros((len(blocks), size), np.uint8)
    is_spanned = np.zeros((len(blocks), size), np.bool_)
    is_spanned[:, 0] = True
    for bit in range(n_onto):
        words = blocks[:, None] * size + elements
        hashes = derive_array(derive(key, bit), words.ravel()).reshape(words.shape)
        # Bits are parities of linearly independent masks, so that every image is taken.
        mask = np.where(is_spanned, np.uint64(0), hashes | np.uint64(1)).argmax(axis=1)
        out |= parities[elements & mask[:, None]] << bit
        is_spanned |= np.take_along_axis(is_spanned, elements ^ mask[:, None], axis=1)
    return out


# Permutations of rows that keep what is not exchangeable in place: strata, and whole groups.

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
    def nbytes(n_rows: int, n_families: int = 0) -> int:
        """Return the bytes that making permutations takes, one of them or all families included."""
        return (96 + (24 + 4 * n_families if n_families else 0)) * n_rows

    def _shuffled(self, key: int) -> NDArray[np.intp]:
        """Return the units by class, in random order inside each."""
        hashes = derive_array(key, self._rows[self._first])
        return np.lexsort((hashes, self.classes))

    def _rows_of(self, units: NDArray[np.intp]) -> Rows:
        sizes = self._size[units]
        offset = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        rows: Rows = self._rows[np.repeat(self._first[units], sizes) + offset]
        return rows

    def families(self, key: int, count: int) -> Rows:
        """Return ``count`` pairings of a random group: where row i takes its value from.

        int32 (count, n_rows). Of one family no row is paired with itself, save one unit of each
        class with an odd number of them, and those of some classes of fewer than four.
        """
        order = self._shuffled(key)
        sources = np.empty((count, self.n_rows), np.int32)
        into = None
        for family, places in enumerate(partners(self.classes[order], key, count)):
            into = self._rows_of(order) if into is None else into
            sources[family, into] = self._rows_of(order[places])
        return sources

    def permutation(self, key: int) -> Rows:
        """Return a uniformly random permutation: where row i takes its value from; int32."""
        by_class = np.argsort(self.classes, kind="stable")
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
