"""What a report shows of a run: its course, its effects, features against the target.

A run and its store are read at one commit, in bounded memory.
"""

from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass
from functools import cached_property
from math import log10
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.arrays import Bytes, Floats, Integers, Ints, Ints32, Uints32
from srs_ooc.base.seeds import Purpose, key_of
from srs_ooc.base.text import MB
from srs_ooc.ensemble.compaction import Curve, curve_of
from srs_ooc.evidence.correlation import sampled_rows
from srs_ooc.evidence.effects import effect_of
from srs_ooc.evidence.null_model import Censored, censored_scores
from srs_ooc.evidence.rank_tests import expected_beside, strongest_contrasts
from srs_ooc.evidence.tally import LEADING, RankingHistory, best_features
from srs_ooc.results.pair_record import Pair, pairs_of
from srs_ooc.results.ranking import Ranking
from srs_ooc.results.standing import status_of
from srs_ooc.runs.feature_tests import columns_of, effect_target, target_of
from srs_ooc.runs.plan import Plan
from srs_ooc.runs.run import Run
from srs_ooc.runs.task import Task, stated_target
from srs_ooc.runs.verdict import FeatureRecord
from srs_ooc.store.store import Store

LISTED = 10_000
"""Features that a report lists at most."""
LISTED_ANYWAY = 200
"""Features that it lists, best first, where none is selected."""
DRAWN_PAIRS = 4
"""Pairs that are drawn at most."""
LOOKED_AT = 20_000
"""Rows that plots of features count at most, evenly spaced."""


def _spaced(n: int, most: int) -> list[int]:
    """Return at most so many of ``n`` places, evenly spaced, the last one among them."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).astype(int)).tolist() if n else []


class Report:
    """What a report shows of a run; each part is read when it is first asked for.

    Parameters
    ----------
    ledger : Run
        Open for reading.
    store : Store
        The run's store.
    cap_nbytes : int, optional
        Cap on the memory of the whole process.
    draws : bool
        Whether figures are drawn.

    Raises
    ------
    RunError
        If the run was not made on this store, or is damaged.
    BudgetError
        If the cap cannot hold the ranking, and what the report takes besides.

    Attributes
    ----------
    reading : Ranking
        The ranking.
    status : Status
        Where the run stands.
    spec : RunSpec
        What identifies it.
    """

    def __init__(
        self, ledger: Run, store: Store, cap_nbytes: int | None = None, *, draws: bool = True
    ) -> None:
        self.ledger, self.store, self.manifest = ledger, store, store.manifest
        self.spec, self.status = ledger.spec, status_of(ledger)
        n_listed = min(max(self.status.n_selected, LISTED_ANYWAY), LISTED)
        # Of the store; each feature's line, plot and text; libraries that draw and make pages.
        beside = 10 * MB + 4000 * n_listed + 60 * MB * draws
        self.reading = Ranking(ledger, store, cap_nbytes, beside)
        self.inputs = ledger.inputs

    @property
    def name(self) -> str:
        """Name of the run."""
        return self.ledger.run.absolute().name

    @cached_property
    def plan(self) -> Plan:
        """The run as it is."""
        return Plan.of_run(self.ledger, self.store)

    @property
    def task(self) -> Task:
        """The rows trained on and what each says."""
        return self.plan.task

    @cached_property
    def selected(self) -> Integers:
        """Stored positions of the selected features, best first."""
        return self.reading.selected()

    @cached_property
    def listed(self) -> Integers:
        """Stored positions of the features to list: the selected ones, or else the first."""
        if len(self.selected):
            return self.selected[:LISTED]
        return self.reading.top(min(LISTED_ANYWAY, len(self.reading.positions)))

    @cached_property
    def records(self) -> list[FeatureRecord]:
        """The lines of the listed features, best first."""
        return list(self.reading.records(self.listed))

    @property
    def n_selected(self) -> int:
        """Features selected, listed or not; 0 before a verdict."""
        return 0 if self.reading.is_provisional else self.reading.n_selected

    @cached_property
    def points(self) -> "list[Point]":
        """What was found, or led the ranking, after how many iterations."""
        return history_of(self.ledger, self.reading)

    @cached_property
    def pairs(self) -> list[Pair]:
        """The first pairs of selected features, those that are drawn; each once."""
        found: dict[frozenset[str | None], Pair] = {}
        for pair in pairs_of(self.reading, self.task, self.store, only_selected=True):
            record = pair.record
            found.setdefault(frozenset([record.name, record.beside, record.within]), pair)
            if len(found) == DRAWN_PAIRS:
                break
        return list(found.values())

    @cached_property
    def effects(self) -> list[tuple[int, float, float, bool]]:
        """Features whose values are higher or lower by the target, as :mod:`figures` draws them.

        Of each the stored position, its effect (:func:`signed`), minus the decimal logarithm of the
        p-value of its test, and whether it is selected.
        """
        verdict, found = self.reading.verdict, []
        if verdict is None:
            return []
        for stored in verdict.table["stored"][:LISTED].tolist():
            line = self.reading.record(0, stored)
            p, effect = line.p_value, line.effect
            if p is not None and effect is not None and str(line.direction).startswith(_BY_PLACE):
                found.append((stored, signed(str(line.measure), effect), -log10(p), line.selected))
        shown = [found[i] for i in _spaced(len(found), SHOWN)]
        if self.task.n_rows <= LOOKED_AT:
            known = {stored for stored, *_ in found}.union(verdict.selected().tolist())
            shown += _beside(self, known)
        return shown

    @cached_property
    def qq(self) -> tuple[Floats, Floats] | None:
        """Expected and observed -log10 p of all marginal tests of location; None if none is kept.

        Ascending; one point for all p-values of a narrow range.
        """
        verdict = self.reading.verdict
        return expected_beside(verdict.location) if verdict and len(verdict.location) else None

    @cached_property
    def draws(self) -> tuple[int, int]:
        """How often half of the features that could be drawn were at most; how many never."""
        n_features, drawn = self.manifest.n_features, self.reading.tally.n_drawn
        times = np.zeros(int(drawn[:n_features].max(initial=0)) + 1, np.int64)
        for start in range(0, n_features, _PIECE):
            piece = drawn[start : min(start + _PIECE, n_features)]
            times += np.bincount(piece, minlength=len(times))
        excluded = self.inputs.excluded
        times[0] -= 0 if excluded is None else len(excluded)
        half = int(np.searchsorted(np.cumsum(times), self.reading.n_candidates / 2))
        return half, int(times[0])

    @cached_property
    def held_out(self) -> Curve | None:
        """Accuracy on rows held out, where ``srs-ooc compact`` measured it of this run."""
        return curve_of(self.ledger)

    @cached_property
    def censored(self) -> Censored | None:
        """Times and events of the rows looked at; None of another target."""
        stated = stated_target(self.store, self.rows_looked_at())
        return stated if isinstance(stated, Censored) else None

    def rows_looked_at(self) -> Ints32:
        """Return evenly spaced training rows, as rows of the store; all where there are few."""
        places, rows = sampled_rows(self.task.n_rows, LOOKED_AT), self.task.rows
        return places.astype(np.int32) if rows is None else rows[places]


# Each listed feature against the target, in a few bytes: what its small plot is drawn from.
#
# Of a classification: rows of each class by value, in bins of the feature's codes, missing ones
# last. Of a regression: the places of some rows, the same of every feature, and the mean target in
# each bin. Codes are ranks (of values, or of 254 quantiles), so bins follow the order of values,
# not their distances.

CELLS = 160
"""Bytes of a profile, about: 10,000 features of ten classes stay below 3 MB of text."""
MOST_BINS, LEAST_BINS = 24, 6
MOST_CLASSES = 12
"""Classes told apart, the largest; the others are counted together."""
SCATTERED = 160
"""Rows of a regression that are drawn one by one."""
TRENDS = 10
_PIECE = 1 << 16
"""Features whose draws are counted together."""
NONE = 255
"""Stands for a missing value, or for a bin without rows."""


@dataclass(frozen=True)
class Profiles:
    """The profiles of some features, and how they are read.

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
    n_used : int64 (n,)
        Bins in use of each feature.
    cells : uint8 (n, width)
        Of a classification: classes x (bins and missing), row by row: rows of the class, or, where
        ``scale`` is not 1, so many of that. Of a regression: the place of each row drawn, 0 .. 254
        by code, then the trend.
    scale : float64 (n,)
        Rows that a unit of ``cells`` stands for.
    """

    n_bins: int
    classes: list[str]
    class_rows: list[int]
    targets: list[float]
    low: float
    high: float
    n_used: Ints
    cells: Bytes
    scale: Floats

    def counts(self, i: int) -> Floats:
        """Return of a classification about how many rows there are, (classes, bins and missing)."""
        shape = len(self.classes), self.n_bins + 1
        return np.asarray(self.cells[i].reshape(shape) * self.scale[i], np.float64)

    def scatter(self, i: int) -> Floats:
        """Return of a regression where each row drawn is, from 0 to 1; NaN where missing."""
        places = self.cells[i, : len(self.targets)].astype(np.float64)
        return np.where(places == NONE, np.nan, places / (NONE - 1))

    def trend(self, i: int) -> Floats:
        """Return of a regression the mean target of each bin, the missing rows' last; NaN: none."""
        found = self.cells[i, len(self.targets) :].astype(np.float64)
        return np.where(
            found == NONE, np.nan, self.low + (self.high - self.low) * found / (NONE - 1)
        )


def profiles_of(report: Report, features: Integers) -> Profiles:
    """Look at features of a run against its target; memory does not grow with the rows.

    Parameters
    ----------
    report : Report
        Of the run.
    features : int (n,)
        Stored positions.

    Raises
    ------
    StoreError
        If the store cannot be read.
    """
    rows = report.rows_looked_at()
    target: NDArray[Any] = report.store.target()[rows]
    if report.censored is not None:
        target = censored_scores(report.censored)
    all_codes = report.store.array("n_codes")
    n_codes = np.array([int(all_codes[f]) for f in features], np.int64)
    read, width, look = (
        _following(target.astype(np.float64))
        if report.task.is_regression
        else _counting(target, report.manifest.classes)
    )
    n, n_used = len(n_codes), np.minimum(n_codes, read[0])
    profiles = Profiles(*read, n_used, np.zeros((n, width), np.uint8), np.ones(n))
    missing = report.manifest.missing_code
    for places, codes in columns_of(report.store, features, rows):
        bins = bins_of(codes, n_codes[places], profiles.n_bins, missing)
        found = look(codes, bins, n_codes[places], missing)
        profiles.cells[places], profiles.scale[places] = found
    return profiles


def bins_of(codes: NDArray[Any], n_codes: Ints, n_bins: int, missing: int) -> Ints:
    """Return the bin of each cell (m, n_rows): its code, or a range of codes; the last: missing."""
    wide = codes.astype(np.int64)
    many = n_codes[:, None]
    bins = np.where(many > n_bins, wide * n_bins // np.maximum(many, 1), wide)
    return np.where(codes == missing, n_bins, np.minimum(bins, n_bins - 1))


Read = tuple[int, list[str], list[int], list[float], float, float]
"""The first fields of :class:`Profiles`."""
Look = Callable[[NDArray[Any], Ints, Ints, int], tuple[Bytes, Floats]]
"""Makes cells and scale of some features from their codes, bins, numbers of codes, and the code
that is missing."""


def _counting(target: Integers, classes: tuple[str, ...]) -> tuple[Read, int, Look]:
    """Return how profiles that count rows by class and bin are read, and the maker of cells."""
    counts = np.bincount(target, minlength=len(classes))
    shown = np.sort(np.argsort(-counts, kind="stable")[:MOST_CLASSES])
    line_of = np.full(len(classes), len(shown), np.int64)
    line_of[shown] = np.arange(len(shown))
    names = [classes[i] for i in shown.tolist()]
    if len(classes) > len(shown):
        names.append(f"{len(classes) - len(shown)} other classes")
    lines = line_of[target]
    n_bins = min(max(CELLS // max(len(names), 1) - 1, LEAST_BINS), MOST_BINS)
    width = len(names) * (n_bins + 1)

    def look(_: NDArray[Any], bins: Ints, __: Ints, ___: int) -> tuple[Bytes, Floats]:
        m = len(bins)
        flat = bins + (n_bins + 1) * lines + width * np.arange(m)[:, None]
        counts = np.bincount(flat.ravel(), minlength=m * width).reshape(m, width)
        scale = np.maximum(counts.max(axis=1) / NONE, 1.0)
        return np.rint(counts / scale[:, None]).astype(np.uint8), scale

    rows = np.bincount(lines, minlength=len(names))
    return (n_bins, names, rows.tolist(), [], 0.0, 0.0), width, look


def _following(target: Floats) -> tuple[Read, int, Look]:
    """Return the same of profiles that place some rows, and follow the mean of the target."""
    n = len(target)
    rows = np.linspace(0, n - 1, min(n, SCATTERED)).astype(np.int64)
    low, high = float(target.min()), float(target.max())
    drawn = [float(f"{value:.5g}") for value in target[rows].tolist()]

    def look(codes: NDArray[Any], bins: Ints, n_codes: Ints, missing: int) -> tuple[Bytes, Floats]:
        m, n_bins = len(bins), TRENDS + 1
        top = np.maximum(n_codes[:, None] - 1, 1)
        places = np.rint(codes[:, rows].astype(np.float64) * (NONE - 1) / top)
        places = np.where(codes[:, rows] == missing, NONE, places)
        flat = (bins + n_bins * np.arange(m)[:, None]).ravel()
        counts = np.bincount(flat, minlength=m * n_bins)
        sums = np.bincount(flat, np.tile(target, m), minlength=m * n_bins)
        means = (sums / np.maximum(counts, 1) - low) / ((high - low) or 1.0)
        trend = np.where(counts > 0, np.rint(np.clip(means, 0, 1) * (NONE - 1)), NONE)
        return np.hstack([places, trend.reshape(m, n_bins)]).astype(np.uint8), np.ones(m)

    return (TRENDS, [], [], drawn, low, high), len(drawn) + TRENDS + 1, look


# The course of a run: what was found, or led, after how many iterations, seconds and trees.

POINTS = 500
"""Points of a line at most."""


@dataclass(frozen=True)
class Point:
    """Where a run stood after some iterations.

    Attributes
    ----------
    iterations : int
        Iterations done.
    seconds : float
        Seconds of work until then, between those noted with the commits before and after.
    memory_mb : float
        Memory resident at the next commit, in MB of 10**6 bytes.
    trees : int
        Trees grown.
    found : int or None
        Features in F. With a final verdict: of the ``leading`` ones, the features that it selected
        later; None before it.
    leading : int or None
        Features that led the ranking and are counted; with a final verdict.
    unchanged : int or None
        Those among them that led at the point before, too; None at the first point.
    """

    iterations: int
    seconds: float
    memory_mb: float
    trees: int
    found: int | None
    leading: int | None
    unchanged: int | None


def history_of(ledger: Run, reading: Ranking) -> list[Point]:
    """Return the course of a run up to the iterations that ``reading`` knows.

    Parameters
    ----------
    ledger : Run
        Open for reading.
    reading : Ranking
        Of the same run.

    Returns
    -------
    list of Point
        By iterations, at most ``POINTS``.
    """
    spec, verdict = ledger.spec, reading.verdict
    commits = np.array([(0, 0, 0, 0), *ledger.history()], np.float64)

    def point(iterations: int, *counts: int | None) -> Point:
        after = min(int(np.searchsorted(commits[:, 0], iterations)), len(commits) - 1)
        return Point(
            iterations,
            round(float(np.interp(iterations, commits[:, 0], commits[:, 2])), 3),
            round(float(commits[after, 3]) / MB, 1),
            iterations * spec.learner.trees_per_subspace,
            *counts,
        )

    if not spec.concludes:
        at, entered = np.unique(reading.kept.entered.astype(np.int64), return_counts=True)
        places = _spaced(len(at), POINTS - 2)
        grew = zip(at[places].tolist(), np.cumsum(entered)[places].tolist(), strict=True)
        sizes = {0: 0} | dict(grew) | {reading.n_iterations: reading.kept.n}
        return [point(i, size, None, None) for i, size in sizes.items()]
    points: list[Point] = []
    before = None
    led_at: dict[int, Uints32] = {}
    if (kept := ledger.read_arrays(RankingHistory.name)) is not None:
        led_at = dict(zip(kept["iterations"].tolist(), kept["features"], strict=True))
    if n := reading.n_iterations:
        led_at[n] = best_features(reading.tally, LEADING, key_of(spec.run.seed, Purpose.RANK_TIE))
    for iterations, led in led_at.items():
        if iterations > n:  # of a run that goes on
            continue
        n_selected = None if verdict is None else int(np.isin(led, verdict.selected()).sum())
        stayed = None if before is None else int(np.isin(led, before).sum())
        points.append(point(iterations, n_selected, len(led), stayed))
        before = led
    return points


# Effects, on one scale, beside p-values.

SHOWN = 1000
"""Features drawn at most."""
_BY_PLACE = ("higher in", "lower in", "rises", "falls", "shorter when higher", "longer when higher")
"""Directions of what has moved, up or down; not of spread, of what is missing, of one level."""


def signed(measure: str, effect: float) -> float:
    """Return an effect from -1 to 1, 0 for none: of two classes, more in the second is positive.

    An AUC becomes 2 AUC - 1 (the rank-biserial correlation), as a concordance does, a ratio of
    spreads r (r - 1) / (r + 1); correlations and differences of shares stay.
    """
    if measure in ("AUC", "concordance"):
        return 2 * effect - 1
    return (effect - 1) / (effect + 1) if measure == "ratio of spreads" else effect


def _beside(report: Report, known: Container[int]) -> Iterator[tuple[int, float, float, bool]]:
    """Yield effects of features that are not known yet, tested about as the run tests."""
    task = report.task.by_group()
    units = task.units  # where rows come in groups, tests take one row a group
    missing = (units or report.manifest).missing_code
    of_tests, of_effects = target_of(task), effect_target(task)
    categories = report.store.categories()
    spaced = np.array(_spaced(report.manifest.n_features, SHOWN))
    if (excluded := report.inputs.excluded) is not None:
        spaced = np.setdiff1d(spaced, excluded)
    left = [i for i in spaced.tolist() if i not in known and categories.of(i) is None]
    at = np.array(left, np.int64), report.rows_looked_at()
    for places, columns in columns_of(report.store, *at, units):
        for place, column in zip(places.tolist(), columns, strict=True):
            used, codes = np.unique(column, return_inverse=True)
            tested, n_codes = codes.astype(np.uint16)[None], int(np.count_nonzero(used < missing))
            neg_log10_p = float(strongest_contrasts(tested, n_codes, of_tests)[0][0])
            measure, _, interval = effect_of(column, missing, of_effects)
            if not np.isnan(interval.effect):
                yield left[place], signed(measure.title, interval.effect), neg_log10_p, False


def rounded(values: Floats) -> list[float]:
    """Return numbers as a report shows them, to four decimals."""
    return [round(value, 4) for value in values.tolist()]


# What the ends of a small plot's axis are: lowest and highest value, or categories.

NAMED = 200
"""Features whose values are looked up: each may take a chunk of the store to be unpacked."""
_LONGEST = 40
Ends = list[float] | list[str] | None


def ends_of(report: Report, features: Integers) -> list[Ends]:
    """Return lowest and highest value of the first features, or the categories of their codes.

    Parameters
    ----------
    report : Report
        Of the run.
    features : int (n,)
        Stored positions.

    Returns
    -------
    list
        For each of the first ``NAMED``; None where there is no value.

    Raises
    ------
    StoreError
        If the store is damaged.
    """
    first = features[:NAMED]
    found: list[Ends] = [None] * len(first)
    categories = report.store.categories()
    for place, feature in enumerate(first.tolist()):
        texts = categories.of(feature)
        if texts is not None:
            found[place] = [text[:_LONGEST] for text in texts[:MOST_BINS]]
    numbers = np.array([i for i, ends in enumerate(found) if ends is None], np.int64)
    places = numbers[np.argsort(first[numbers], kind="stable")]
    with report.store.unchanged():
        for i, lows, highs in report.store.code_ranges(first[places].astype(np.int64)):
            if np.isfinite(lows).any():
                low, high = float(np.nanmin(lows)), float(np.nanmax(highs))
                found[int(places[i])] = [float(f"{low:.4g}"), float(f"{high:.4g}")]
    return found
