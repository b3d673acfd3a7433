"""Each listed feature against the target, in a few bytes: what its small plot is drawn from.

Of a classification: rows of each class by value, in bins of the feature's codes, missing ones last.
Of a regression: the places of some rows, the same of every feature, and the mean target in each
bin. Codes are ranks (of values, or of 254 quantiles), so bins follow the order of values, not their
distances.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.report.source import Source

CELLS = 160
"""Bytes of a profile, about: 10,000 features of ten classes stay below 3 MB of text."""
MOST_BINS, LEAST_BINS = 24, 6
MOST_CLASSES = 12
"""Classes told apart, the largest; the others are counted together."""
SCATTERED = 160
"""Rows of a regression that are drawn one by one."""
TRENDS = 10
NONE = 255
"""Stands for a missing value, or for a bin without rows."""


@dataclass(frozen=True)
class Legend:
    """How the profiles of a run are read.

    Attributes
    ----------
    n_bins : int
        Bins of a feature with that many codes or more; others have one a code.
    classes : list of str
        Classes of the lines of a profile; empty for a regression.
    class_rows : list of int
        Rows of each that were looked at.
    targets : list of float
        Of a regression: targets of the rows drawn one by one.
    low, high : float
        Of a regression: the target's range, from which trends are 0 .. 254.
    """

    n_bins: int
    classes: list[str]
    class_rows: list[int]
    targets: list[float]
    low: float
    high: float


@dataclass(frozen=True)
class Profiles:
    """The profiles of some features.

    Attributes
    ----------
    legend : Legend
        How they are read.
    n_used : int64 (n,)
        Bins in use of each.
    cells : uint8 (n, width)
        Of a classification: classes x (bins and missing), row by row: rows of the class, or, where
        ``scale`` is not 1, so many of that. Of a regression: the place of each row drawn, 0 .. 254
        by code, then the trend.
    scale : float64 (n,)
        Rows that a unit of ``cells`` stands for.
    """

    legend: Legend
    n_used: NDArray[np.int64]
    cells: NDArray[np.uint8]
    scale: NDArray[np.float64]

    def counts(self, i: int) -> NDArray[np.float64]:
        """Return of a classification about how many rows there are, (classes, bins and missing)."""
        shape = len(self.legend.classes), self.legend.n_bins + 1
        return np.asarray(self.cells[i].reshape(shape) * self.scale[i], np.float64)

    def scatter(self, i: int) -> NDArray[np.float64]:
        """Return of a regression where each row drawn is, from 0 to 1; NaN where missing."""
        places = self.cells[i, : len(self.legend.targets)].astype(np.float64)
        return np.where(places == NONE, np.nan, places / (NONE - 1))

    def trend(self, i: int) -> NDArray[np.float64]:
        """Return of a regression the mean target of each bin, the missing rows' last; NaN: none."""
        found = self.cells[i, len(self.legend.targets) :].astype(np.float64)
        span = self.legend.high - self.legend.low
        return np.where(found == NONE, np.nan, self.legend.low + span * found / (NONE - 1))


def profiles_of(source: Source, features: NDArray[np.integer[Any]]) -> Profiles:
    """Look at features of a run against its target; memory does not grow with the rows.

    Parameters
    ----------
    source : Source
        The run.
    features : int (n,)
        Stored positions.

    Raises
    ------
    StoreError
        If the store cannot be read.
    """
    rows = source.rows_looked_at()
    target = source.targets_of(rows)
    is_regression = source.task.is_regression
    make = _Numbers(target) if is_regression else _Classes(target, source.manifest.classes)
    all_codes = source.store.array("n_codes")
    n_codes = np.array([int(all_codes[f]) for f in features], np.int64)
    n_used = np.minimum(n_codes, make.legend.n_bins)
    cells = np.zeros((len(features), make.width), np.uint8)
    scale = np.ones(len(features))
    missing = source.manifest.missing_code
    for places, codes in source.columns(features, rows):
        bins = bins_of(codes, n_codes[places], make.legend.n_bins, missing)
        cells[places], scale[places] = make.look(codes, bins, n_codes[places], missing)
    return Profiles(make.legend, n_used, cells, scale)


def bins_of(
    codes: NDArray[Any], n_codes: NDArray[np.int64], n_bins: int, missing: int
) -> NDArray[np.int64]:
    """Return the bin of each cell (m, n_rows): its code, or a range of codes; the last: missing."""
    wide = codes.astype(np.int64)
    many = n_codes[:, None]
    bins = np.where(many > n_bins, wide * n_bins // np.maximum(many, 1), wide)
    return np.where(codes == missing, n_bins, np.minimum(bins, n_bins - 1))


class _Classes:
    """Counts rows by class and bin."""

    def __init__(self, target: NDArray[np.integer[Any]], classes: tuple[str, ...]) -> None:
        counts = np.bincount(target, minlength=len(classes))
        shown = np.sort(np.argsort(-counts, kind="stable")[:MOST_CLASSES])
        line_of = np.full(len(classes), len(shown), np.int64)
        line_of[shown] = np.arange(len(shown))
        names = [classes[i] for i in shown.tolist()]
        if len(classes) > len(shown):
            names.append(f"{len(classes) - len(shown)} other classes")
        self._lines = line_of[target]
        rows = np.bincount(self._lines, minlength=len(names))
        n_bins = min(max(CELLS // max(len(names), 1) - 1, LEAST_BINS), MOST_BINS)
        self.legend = Legend(n_bins, names, rows.tolist(), [], 0.0, 0.0)
        self.width = len(names) * (n_bins + 1)

    def look(
        self,
        codes: NDArray[Any],
        bins: NDArray[np.int64],
        n_codes: NDArray[np.int64],
        missing: int,
    ) -> tuple[NDArray[np.uint8], NDArray[np.float64]]:
        """Return cells and scale of some features."""
        m = len(bins)
        flat = bins + (self.legend.n_bins + 1) * self._lines + self.width * np.arange(m)[:, None]
        counts = np.bincount(flat.ravel(), minlength=m * self.width).reshape(m, self.width)
        scale = np.maximum(counts.max(axis=1) / NONE, 1.0)
        return np.rint(counts / scale[:, None]).astype(np.uint8), scale


class _Numbers:
    """Places some rows, and follows the mean of the target."""

    def __init__(self, target: NDArray[np.floating[Any]]) -> None:
        self._target = np.asarray(target, np.float64)
        n = len(target)
        self._drawn = np.linspace(0, n - 1, min(n, SCATTERED)).astype(np.int64)
        low, high = float(self._target.min()), float(self._target.max())
        drawn = [float(f"{value:.5g}") for value in self._target[self._drawn].tolist()]
        self.legend = Legend(TRENDS, [], [], drawn, low, high)
        self.width = len(drawn) + TRENDS + 1

    def look(
        self,
        codes: NDArray[Any],
        bins: NDArray[np.int64],
        n_codes: NDArray[np.int64],
        missing: int,
    ) -> tuple[NDArray[np.uint8], NDArray[np.float64]]:
        """Return cells of some features, and a scale of 1."""
        m, n_bins = len(bins), TRENDS + 1
        drawn = codes[:, self._drawn]
        top = np.maximum(n_codes[:, None] - 1, 1)
        places = np.rint(drawn.astype(np.float64) * (NONE - 1) / top)
        places = np.where(drawn == missing, NONE, places)
        flat = (bins + n_bins * np.arange(m)[:, None]).ravel()
        counts = np.bincount(flat, minlength=m * n_bins)
        sums = np.bincount(flat, np.tile(self._target, m), minlength=m * n_bins)
        span = (self.legend.high - self.legend.low) or 1.0
        means = (sums / np.maximum(counts, 1) - self.legend.low) / span
        trend = np.where(counts > 0, np.rint(np.clip(means, 0, 1) * (NONE - 1)), NONE)
        return np.hstack([places, trend.reshape(m, n_bins)]).astype(np.uint8), np.ones(m)
