"""Which rows may trade places under the null, and which are held out together.

Rows trade places within strata, whole groups with their like. Folds keep groups whole, and strata
and classes even.
"""

from collections.abc import Mapping, Sequence
from math import fsum
from shlex import quote
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.arrays import Floats, Indices, Integers, Ints, Ints32, Reals
from srs_ooc.base.errors import UsageError
from srs_ooc.base.seeds import derive_array
from srs_ooc.native.numerics import exp, log, log_factorial

# What is not exchangeable stays in place: strata, and whole groups.

EXCHANGE_NBYTES = 96
"""Memory of a row where it is found out which rows trade places."""
_ROUNDING = 1e-6
Alike = Literal["any", "octave", "size"]
"""Groups that trade places: of any size, of sizes in one octave (1, 2-3, 4-7, ...), of one size."""
_STEPS = 64
"""Steps of the reliability of a row, so that rounding does not part what is equal."""


class Exchangeability:
    """Which rows may trade places.

    A unit is a row, or a whole group; units of one class trade places. Groups of rows of several
    strata do so only with groups that have as many rows in the same strata.

    Parameters
    ----------
    n_rows : int
        Rows trained on.
    strata : int32 (n_rows,), optional
        Only rows with equal numbers trade places.
    groups : int32 (n_rows,), optional
        Rows with equal numbers move together.
    alike : {'any', 'octave', 'size'}
        Which groups within one stratum trade places.

    Attributes
    ----------
    n_rows : int
        Rows trained on.
    sizes : intp (n_units,)
        Rows of each unit, in the order of the numbers of groups.
    octaves : int32 (n_units,)
        Octave of its size, from 1.
    classes : intp (n_units,)
        Class of each unit.
    missing_code : int
        The code of a unit of which :meth:`mean_ranks` knows nothing; all others are below.
    """

    def __init__(
        self,
        n_rows: int,
        strata: Ints32 | None = None,
        groups: Ints32 | None = None,
        alike: Alike = "size",
    ) -> None:
        self.n_rows = n_rows
        if groups is None:
            self._rows = np.arange(n_rows, dtype=np.int32)
            self._first = np.arange(n_rows)
        else:
            self._rows = np.argsort(groups, kind="stable").astype(np.int32)
            self._first = np.concatenate([[0], 1 + np.flatnonzero(np.diff(groups[self._rows]))])
        self.sizes = np.diff(np.append(self._first, n_rows))
        self.octaves = np.frexp(self.sizes)[1]
        self.missing_code = min(len(self._first), 2**16 - 1)
        strata = np.zeros(n_rows, np.int32) if strata is None else strata
        signs = derive_array(0, strata[self._rows])
        signature = np.add.reduceat(signs, self._first)
        if alike != "size":
            low, high = self.spans(strata)
            size = self.octaves if alike == "octave" else np.zeros_like(self.octaves)
            of_one_stratum = signs[self._first] + derive_array(1, size)
            signature = np.where(low == high, of_one_stratum, signature)
        self.classes = np.unique(signature, return_inverse=True)[1]

    @property
    def are_even(self) -> bool:
        """Whether all units of a class have as many rows."""
        kinds = np.unique(np.stack([self.classes, self.sizes]), axis=1)
        return len(kinds[0]) == 1 + int(self.classes.max())

    def log_arrangements(self, target: NDArray[Any]) -> float:
        """Return the natural logarithm of how many ways exchanges arrange a target in.

        Parameters
        ----------
        target : (n_units,)
            Class codes or numbers.
        """
        values = np.unique(target, return_inverse=True)[1]
        alike = np.unique(np.stack([self.classes, values]), axis=1, return_counts=True)[1]
        return _log_factorials(np.bincount(self.classes)) - _log_factorials(alike)

    def spans(self, values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the least and the largest of (n_rows,) values in each unit; (n_units,) each."""
        values = values[self._rows]
        return np.minimum.reduceat(values, self._first), np.maximum.reduceat(values, self._first)

    def sums(self, values: NDArray[Any]) -> Floats:
        """Return the sum of (n_rows,) numbers in each unit, whatever the order of its rows."""
        parts = np.split(values[self._rows], self._first[1:])
        return np.array([fsum(part.tolist()) for part in parts])

    def mean_ranks(self, columns: NDArray[Any], missing_code: int) -> NDArray[np.uint16]:
        """Return the order of units by the mean midrank of the values that are known of them.

        Midranks are among all known values of the column, and so stay what they are where units
        trade places. Means of unlike many values are shrunk first (:meth:`_shrunk`). Equal means of
        as many values have equal codes, and codes are the same on every machine: sums are of whole
        numbers, and what is made of them is rounded one by one.

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
            means = sums[some] / known[some]
            if len(means) and np.ptp(known[some]):
                ranks = ranks[:missing_code]
                squares = float((counts[:missing_code] * ranks.astype(np.float64) ** 2).sum())
                means = self._shrunk(means, known[some], self.classes[some], squares)
            means, places = np.unique(means, return_inverse=True)
            codes[some] = places * min(len(means), most) // max(len(means), 1)
        return out

    @staticmethod
    def _shrunk(means: Floats, known: Ints, classes: Indices, squares: float) -> Floats:
        """Return means of units, those of few values drawn toward the median of their class.

        By its reliability, ``m r / (1 + (m - 1) r)`` of a mean of m values, a difference counts as
        the best test of means of unlike variance weighs it; r is the share of the variance that
        lies between units of a class (one-way analysis of variance: Donner 1986, Int. Stat. Rev.
        54, Section 2). Neither looks at a target. About the median, means that most units have,
        such as those of zeros alone, stay equal.

        Parameters
        ----------
        means, known, classes : (n,)
            Mean of each unit, values it is of, and class.
        squares : float
            Sum of the squares of all values.
        """
        n, n_values = len(means), int(known.sum())
        rows = np.bincount(classes, known)
        has = rows > 0
        n_between, n_within = n - int(np.count_nonzero(has)), n_values - n
        if not n_between or not n_within:
            return means
        centres = np.bincount(classes, known * means) / np.where(has, rows, 1.0)
        between = float((known * (means - centres[classes]) ** 2).sum()) / n_between
        within = max(squares - float((known * means**2).sum()), 0.0) / n_within
        larger = np.bincount(classes, known.astype(np.float64) ** 2)[has] / rows[has]
        size = (n_values - float(larger.sum())) / n_between
        if not between + (size - 1) * within > 0:
            return means
        share = (between - within) / (between + (size - 1) * within)
        share = max(np.rint(_STEPS * share), 1.0) / _STEPS
        order = np.lexsort((means, classes))
        starts = np.flatnonzero(np.diff(classes[order], prepend=-1))
        middle = np.zeros(len(rows))
        middle[has] = means[order][starts + (np.diff(np.append(starts, n)) - 1) // 2]
        centre = middle[classes]
        shrunk: Floats = centre + (means - centre) * (known * share / (1.0 + (known - 1.0) * share))
        return shrunk

    def check(self, target: NDArray[Any], least: float, note: str = "") -> None:
        """Check that a target, (n_units,), can be arranged in at least so many ways.

        ``note`` says which groups trade places, and what to do where there should be more.

        Raises
        ------
        UsageError
            If not: no test could be strong enough.
        """
        log_number = self.log_arrangements(target)
        note = note[:1].upper() + note[1:]
        if log_number == 0:
            raise UsageError(
                "expected strata and groups within which targets differ, found that rows which may "
                "be permuted all have the same one: nothing could be distinguished from chance. "
                f"{note or 'Leave the target out of the strata'}; or use --judge probe."
            )
        if log_number < log(least) - _ROUNDING:
            raise UsageError(
                f"expected strata and groups in which the target can be arranged in at least "
                f"{least:,.0f} ways, 1 / level, found {exp(log_number):,.0f}: rows are permuted "
                "within their stratum, groups among those of their strata. "
                f"{note or 'Use coarser strata or groups'}; or use --judge probe."
            )


def strata_instead(columns: Mapping[str, Sequence[str]]) -> str:
    """Return how to compare the rows within groups, by the names of the columns of rows."""
    groups, strata = ([f'"{one}"' if "," in one else one for one in columns.get(what, ())]
                      for what in ("groups", "strata"))  # fmt: skip
    instead, given = quote(",".join([*strata, *groups])), quote(",".join(groups))
    return (
        "To compare rows within groups, ingest the table again with "
        f"`--strata {instead}` in place of `--groups {given}`"
    )


def _log_factorials(counts: NDArray[Any]) -> float:
    return fsum(log_factorial(count) for count in counts.tolist())


# Which rows are held out together: folds that keep groups whole and strata and classes even.

_BINS = 10
"""Parts of equal size that a target of numbers is cut into, to be kept even."""


def deal_folds(
    key: int,
    n_folds: int,
    target: Integers | Reals,
    strata: Integers | None = None,
    groups: Integers | None = None,
    option: str = "--folds",
) -> Indices:
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
    if strata is not None and groups is None:  # strata of too few rows are units
        stratum, sizes = np.unique(strata, return_inverse=True, return_counts=True)[1:]
        unit_of = np.where(sizes[stratum] < n_folds, n_rows + stratum, unit_of)
        unit_of = np.unique(unit_of, return_inverse=True)[1]
    n_units = int(unit_of.max()) + 1
    if n_units < n_folds:
        what = "row" if groups is None and strata is None else "group, or row of a stratum,"
        raise UsageError(
            f"{option}: expected no more than there are units to hold out (a {what} each), found "
            f"{n_folds} folds of {n_units}. Ask for fewer folds."
        )
    # The kind of a row is its class and stratum; that of a unit is what most of its rows have, the
    # least of equal.
    kind_of: Indices = np.unique(target, return_inverse=True)[1]
    if np.issubdtype(target.dtype, np.floating):
        kind_of = np.searchsorted(np.sort(target), target) * _BINS // n_rows
    if strata is not None:
        kind_of = kind_of + (int(kind_of.max()) + 1) * np.unique(strata, return_inverse=True)[1]
    pairs, counts = np.unique(np.stack([unit_of, kind_of]), axis=1, return_counts=True)
    pairs = pairs[:, np.lexsort((pairs[1], -counts, pairs[0]))]
    kinds = pairs[1, np.flatnonzero(np.diff(pairs[0], prepend=-1))]
    order = np.lexsort((derive_array(key, np.arange(n_units)), -np.bincount(unit_of), kinds))
    fold_of_unit = np.empty(n_units, np.intp)
    fold_of_unit[order] = np.arange(n_units) % n_folds
    return fold_of_unit[unit_of]
