"""The tests of a run's features, alone and beside one another; once a closing stage is over."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from srs_ooc.base.arrays import Bools, Bytes, Floats, Floats32, Indices, Integers, Ints32, Uints32
from srs_ooc.base.errors import StoppedError
from srs_ooc.base.records import PAGE_ITEMS, Step
from srs_ooc.base.seeds import derive_array
from srs_ooc.base.text import ceil_div
from srs_ooc.evidence import rank_tests
from srs_ooc.evidence.conditional_tests import MOST_ROWS, beside_others, cost, n_looked_at
from srs_ooc.evidence.correlation import RankColumns
from srs_ooc.evidence.effects import EffectTarget
from srs_ooc.evidence.exchangeability import Exchangeability
from srs_ooc.evidence.judges import pairs_of
from srs_ooc.evidence.pairs import MOST_ROWS as PAIRS_ROWS
from srs_ooc.evidence.pairs import Halves, Scanned, most_halves
from srs_ooc.evidence.rank_tests import N_BINS, NO_CONTRAST, Contrast, RankTarget, contrasts_log_p
from srs_ooc.evidence.tally import largest
from srs_ooc.native.numerics import log, powers
from srs_ooc.runs.engine import commit_due
from srs_ooc.runs.ledger import Ledger
from srs_ooc.runs.resources import Resources
from srs_ooc.runs.run_memory import TESTED_CELLS
from srs_ooc.runs.task import Task
from srs_ooc.store.store import Store
from srs_ooc.trees.block import Block

# Features one at a time: their columns and their tests.

TESTS = "tests"
"""Name of the stage."""
STRENGTHS = "strengths-"
"""Begins the names of the ledger's arrays with what tests found, by page, before a verdict."""
_PAIRS = f"{STRENGTHS}pairs"
_COLUMNS = 64
_TESTED = 256
"""Columns that a thread tests together."""
_READ_CELLS = 1 << 20
"""Cells that are read together, where features are shown."""
_PIECE = 1 << 15
"""Features whose p-values are held together, while their logarithms are taken; at most."""
_SECONDS = 0.25
"""What testing a piece is to take: after each, progress is told and work may stop."""
_KEPT, _LEAST_KEPT = 8, 1 << 14
"""Of a promising feature the p-values are kept, if these are no more than one in so many, or
few."""
_SAMPLED = 500
"""Features, and rows, from which it is told how alike features are; at most."""
_FEWEST_NULL, _MOST_NULL = 1000, 10_000
"""Tests with the target permuted: twice as many as features, within these."""
_PERMUTED = 1 << 21
"""Rows of permuted targets that are held together."""
_PROMISING = 1.0
"""Strength from which a feature is tested again once the shares of its contrasts are known."""
Columns = Iterator[tuple[slice, NDArray[Any]]]
"""Places among some features, and the codes of these in all rows, one feature a line."""


def target_of(task: Task, rows: Indices | None = None) -> RankTarget:
    """Return the target that single features are tested against, of some rows where given."""
    kept = slice(None) if rows is None else rows
    strata = None if task.strata is None else task.strata[kept]
    target, covariates = task.target[kept], task.covariates
    if task.is_scored:
        out = RankTarget.of_scores(target.astype(np.int64), strata)
    elif task.is_regression:
        out = RankTarget.of_numbers(target.astype(np.float64), strata)
    else:
        classes = len(task.classes), strata, task.classes
        out = RankTarget.of_classes(target.astype(np.int64), *classes)
    out = out._replace(untested=task.untested)
    if covariates is not None:
        return out._replace(covariates=covariates if rows is None else covariates.of_rows(rows))
    if task.censored is not None:
        out = out._replace(risk=task.censored.of_rows(kept).risk_sets(strata))
    return out


def effect_target(task: Task) -> EffectTarget:
    """Return what the effects of features are measured against."""
    codes = np.unique(task.target, return_inverse=True)[1] if task.is_regression else task.target
    return EffectTarget(codes.astype(np.int32), len(task.classes), task.strata, task.censored)


class TestedFeatures:
    """Strengths of the first of all features, kept by page in a ledger while they are computed.

    They do not depend on iterations, so that they hold for each verdict; they go with it.

    Attributes
    ----------
    neg_log10_p : float32 (n_features,)
        NaN where not tested yet, or left out.
    done : int
        How many features are tested.
    counts : int64 (N_BINS,)
        Of the p-values of their location, by bins (:func:`srs_ooc.evidence.rank_tests.binned`).
    """

    def __init__(self, resources: Resources, ledger: Ledger | None, most: int) -> None:
        self.neg_log10_p = np.full(resources.n_features, np.nan, np.float32)
        self._among, self._ledger = resources.among, ledger
        self._kept, self._log_p = np.empty(most, np.uint32), np.empty((most, NO_CONTRAST))
        self.done = self._n_kept = 0
        self.counts: Integers = np.zeros(N_BINS, np.int64)
        while ledger is not None:
            page = ledger.read_arrays(f"{STRENGTHS}{self.done // PAGE_ITEMS}")
            if page is None or page["first"] != self.done or page["counts"].dtype != np.int64:
                break  # or counted by page, as it was once
            self.add(page["strengths"], page["log_p"], page["counts"])
        self._committed = self.done

    def features(self, at: slice) -> Uints32:
        """Return those of some places."""
        return self._among(np.arange(at.start, at.stop, dtype=np.uint32))

    def add(self, neg_log10_p: Floats32, log_p: Floats, counts: Integers) -> None:
        """Take those of the next features, p-values of the promising ones, and counts of all."""
        features = self.features(slice(self.done, self.done + len(neg_log10_p)))
        n = min(len(log_p), len(self._kept) - self._n_kept)
        to = slice(self._n_kept, self._n_kept + n)
        self._kept[to], self._log_p[to] = features[neg_log10_p >= _PROMISING][:n], log_p[:n]
        self.neg_log10_p[features], self.counts = neg_log10_p, counts
        self._n_kept, self.done = to.stop, self.done + len(features)

    def promising(self) -> tuple[Uints32, Floats]:
        """Return the first promising features, ascending, and p-values of their contrasts."""
        return self._kept[: self._n_kept], self._log_p[: self._n_kept]

    def commit(self) -> float:
        """Keep what was added since; return the seconds it took."""
        start = time.monotonic()
        pages = range(self._committed // PAGE_ITEMS, ceil_div(self.done, PAGE_ITEMS))
        if self._ledger is not None and self.done > self._committed:
            self._ledger.write_all((f"{STRENGTHS}{page}", self._page(page)) for page in pages)
        self._committed = self.done
        return time.monotonic() - start

    def _page(self, number: int) -> dict[str, NDArray[Any]]:
        first = number * PAGE_ITEMS
        features = self.features(slice(first, min(first + PAGE_ITEMS, self.done)))
        kept, log_p = self.promising()
        held = slice(*np.searchsorted(kept, [features[0], features[-1] + np.uint32(1)]))
        return {
            "first": np.array(first),
            "strengths": self.neg_log10_p[features],
            "promising": kept[held],
            "log_p": log_p[held],
            "counts": self.counts,  # of this page and all before, in the last one
        }


class MarginalTests:
    """Rank tests of features against the target, one at a time, within strata where there are any.

    A row of what is tested is a training row, or a whole group of them. Contrasts have their first
    shares of the level until :meth:`split_level`. What is found of all features is kept in the
    ledger, where there is one.

    Attributes
    ----------
    task : Task
        The rows that are tested.
    missing_code : int
        Number of codes that are no missing values.
    tell : callable
        That of the resources.
    location : int64 (N_BINS,)
        P-values of the location of all features, by bins; once these are tested.
    """

    def __init__(self, resources: Resources, ledger: Ledger | None = None) -> None:
        self._resources, self._ledger = resources, ledger
        self.tell, self.task = resources.tell, resources.task.by_group()
        self._units = self.task.units
        self.missing_code = (self._units or resources.manifest).missing_code
        self._target = target_of(self.task)
        self.location: Integers = np.zeros(N_BINS, np.int64)
        self._counts = np.zeros(NO_CONTRAST, np.int64)
        self._own: Bytes | None = None
        self._at_once = _COLUMNS
        # Tested features, ascending, with the p-values of their contrasts: they are not read again.
        self._kept, self._kept_log_p = np.zeros(0, np.uint32), np.zeros((0, NO_CONTRAST))

    def categorical(self, features: Uints32) -> Bools | None:
        """Return which features are; None where none is, or where means of groups are ranked."""
        flags = self._resources.categorical if self._units is None else None
        return None if flags is None else flags[features]

    def columns(self, features: Uints32, at_once: int = _COLUMNS) -> Columns:
        """Yield the codes of features, as :func:`feature_columns` does."""
        units, missing_code = self._units, self._resources.manifest.missing_code
        for at, columns in feature_columns(self._resources, features, at_once):
            yield at, columns if units is None else units.mean_ranks(columns, missing_code)

    @property
    def n_leaders(self) -> int:
        """How many features are looked at beside one another, if there are as many."""
        return n_looked_at(min(self.task.n_rows, MOST_ROWS), self._target.n_scores)

    def split_level(self, neg_log10_p: Floats32) -> None:
        """Give each contrast of a feature its share by what the other features show.

        Parameters
        ----------
        neg_log10_p : float32 (n_features,)
            Of all; become those by the shares, where these can matter. P-values above 0.1 stay:
            one is then at most t with probability at most t, above 0.1 by the old shares, and
            below by the new ones.
        """
        n_tested = int(np.count_nonzero(~np.isnan(neg_log10_p)))
        own = np.full(len(neg_log10_p), NO_CONTRAST, np.uint8)
        for features in _from(neg_log10_p, log(max(n_tested, 1) / rank_tests.CERTAIN) / log(10.0)):
            own[features] = self.strongest_of(features)[1]
        self._counts = np.array([np.count_nonzero(own == c) for c in range(NO_CONTRAST)])
        self._own = own
        for features in _from(neg_log10_p, _PROMISING):
            neg_log10_p[features] = self.strongest_of(features)[0]
        self._kept, self._kept_log_p = self._kept[:0], self._kept_log_p[:0]

    def shares_of(self, features: Uints32) -> Floats:
        """Return the shares of the contrasts of some features; float64 (n, 3)."""
        own = self._own
        own = np.full(len(features), NO_CONTRAST, np.uint8) if own is None else own[features]
        return rank_tests.shares_beside(self._counts, own)

    def of_all(self) -> Floats32:
        """Return -log10 p of every feature.

        Of single precision, as there are many; NaN where left out.
        """
        most = max(self._resources.n_features // _KEPT, _LEAST_KEPT)
        tested, due = TestedFeatures(self._resources, self._ledger, most), commit_due()
        try:
            for at in self._paced(self._resources.n_candidates, tested.done):
                features = tested.features(at)
                log_p, shares = self._log_p(features), self.shares_of(features)
                strengths = rank_tests.strongest_of(log_p, shares)[0].astype(np.float32)
                bins = rank_tests.p_value_bins(log_p[:, Contrast.LOCATION])
                counts = tested.counts + rank_tests.binned(bins)
                tested.add(strengths, log_p[strengths >= _PROMISING], counts)
                if time.monotonic() >= due:
                    due = commit_due(tested.commit())
        except StoppedError:
            tested.commit()
            raise
        self._kept, self._kept_log_p = tested.promising()
        self.location = tested.counts
        return tested.neg_log10_p

    def n_halves(self, n_features: int) -> int:
        """Return how many halves of so many features are looked at in pairs; 0 where none are."""
        asked, n_rows = pairs_of(self._resources.spec.judging), self._resources.manifest.n_rows
        return most_halves(asked, n_rows, n_features, max(1, len(self.task.classes)))

    def best_pairs(self, neg_log10_p: Floats32, most: int) -> Uints32:
        """Return the pairs of all tested features that show most together; uint32 (n, 2).

        Parameters
        ----------
        neg_log10_p : float32 (n_features,)
            NaN where not tested.
        most : int
            Halves that are looked at: of three levels those at both cuts, if so many allow it.
        """
        features = np.flatnonzero(~np.isnan(neg_log10_p)).astype(np.uint32)
        rows = some_rows(self.task.n_rows, PAIRS_ROWS)
        halves = Halves(target_of(self.task, rows), rows, self.missing_code, most)
        are_three: list[Bools] = [np.zeros(0, np.bool_)]
        for at, columns in self.columns(features):
            halves.add(columns, range(at.start, at.stop), other=False)
            are_three.append(halves.three_levels(columns))
            self.tell()
        three = np.flatnonzero(np.concatenate(are_three))
        if len(features) + len(three) <= most:
            for at, columns in self.columns(features[three]):
                halves.add(columns, three[at].tolist(), other=True)
        return features[halves.best(self._scanned(halves))[0]]

    def _scanned(self, halves: Halves) -> Scanned:
        """Look at all pairs; what is found is kept meanwhile, where there is a ledger."""
        ledger = self._ledger
        kept, begun = None if ledger is None else ledger.read_arrays(_PAIRS), None
        if kept is not None:
            begun = Scanned(int(kept["left"]), int(kept["n_tiles"]), kept["scores"], kept["pairs"])
        found, due = begun, commit_due()

        def keep() -> float:
            start = time.monotonic()
            if ledger is not None and found is not None:
                arrays = {name: np.asarray(value) for name, value in found._asdict().items()}
                ledger.write_arrays(_PAIRS, arrays)
            return commit_due(time.monotonic() - start)

        try:
            for found in halves.scan(self._resources.n_testers, begun):
                if time.monotonic() >= due:
                    due = keep()
                due_tiles, total = (n * (n + 1) // 2 for n in (found.left, found.n_tiles))
                self.tell(Step("pairs", total - due_tiles, total, unit="pieces"))
        except StoppedError:
            keep()
            raise
        assert found is not None
        return found

    def inflation(self) -> dict[str, Any]:
        """Return lambda of all features (:func:`srs_ooc.evidence.rank_tests.inflation_of`).

        Correlations, and p-values with the target permuted within strata, are those of a sample.
        """
        n, n_rows = self._resources.n_candidates, self.task.n_rows
        sample = np.linspace(0, n - 1, min(n, _SAMPLED)).astype(np.uint32)
        sample = self._resources.among(sample)
        n_tests = min(max(_FEWEST_NULL, 2 * n), _MOST_NULL)
        n_targets = max(2, min(ceil_div(n_tests, len(sample)), _PERMUTED // n_rows))
        targets = [self._target.permuted(key) for key in range(n_targets)]
        null = np.empty((len(targets), len(sample)), np.intp)
        rows, covariates = some_rows(n_rows, _SAMPLED), self._target.covariates
        kept = np.empty((0, len(rows)), np.uint8)  # what covariates leave of the sample
        for some, columns in self.columns(sample):
            coded, kinds = self._coded(columns), self.categorical(sample[some])
            left = None
            if covariates is not None:
                left = rank_tests.adjusted_steps(*coded, covariates)
                kept = np.concatenate([kept, left[:, Contrast.LOCATION][:, rows]])
            for found, target in zip(null, targets, strict=True):
                only = Contrast.LOCATION
                log_p = contrasts_log_p(*coded, target, only=only, categorical=kinds, steps=left)
                found[some] = rank_tests.p_value_bins(log_p[:, only])
                self.tell()
        is_there = null[0] < N_BINS  # by the margins alone
        codes = (kept[is_there], rank_tests.UNSCORED) if len(kept) else None
        if codes is None and is_there.any():
            codes = _codes_of(self, sample[is_there], rows)
        squares = np.zeros((0, 0)) if codes is None else RankColumns(*codes).squares()
        return rank_tests.inflation_of(self.location, null[:, is_there], squares, len(rows))

    def strongest_of(self, features: Uints32) -> tuple[Floats32, Bytes]:
        """Return -log10 p of some features, the same as among all, and what shows it.

        That is the :class:`Contrast` of each that shows most.
        """
        n = len(features)
        strengths, contrasts = np.zeros(n, np.float32), np.zeros(n, np.uint8)
        for at in self._paced(n):
            log_p, shares = self._log_p(features[at]), self.shares_of(features[at])
            strengths[at], contrasts[at] = rank_tests.strongest_of(log_p, shares)
        return strengths, contrasts

    def censored_by(self, features: Uints32, contrasts: Bytes) -> dict[str, float]:
        """Return the p-values of contrasts that censoring depends on, by feature."""
        if (risk := self._target.risk) is None or not len(features):
            return {}
        log_p = self._tested(features, self._target.of_censoring(risk))
        own = powers(log_p[np.arange(len(features)), contrasts % NO_CONTRAST])
        found = zip(features.tolist(), own.tolist(), strict=True)
        return {str(feature): p for feature, p in found if p < rank_tests.CENSORING_LEVEL}

    def _paced(self, n: int, done: int | None = None) -> Iterator[slice]:
        """Yield pieces of so many features, as large as the last ones were fast to test.

        After each is asked whether to go on. ``done``: they are all features, of which so many were
        tested before.
        """
        start = done or 0
        while start < n:
            began, stop = time.monotonic(), min(start + self._at_once, n)
            yield slice(start, stop)
            growth = min(4.0, _SECONDS / max(time.monotonic() - began, 1e-3))
            self._at_once = int(min(max(growth * self._at_once, _COLUMNS), _PIECE))
            start = stop
            self.tell(None if done is None else Step(TESTS, stop, n, unit="features"))

    def _log_p(self, features: Uints32) -> Floats:
        """Return the p-values of the contrasts of some features, as kept or as tested now."""
        found = np.empty((len(features), NO_CONTRAST))
        places = np.searchsorted(self._kept, features)
        is_kept = np.append(self._kept, np.uint32(NOBODY))[places] == features
        found[is_kept] = self._kept_log_p[places[is_kept]]
        found[~is_kept] = self._tested(features[~is_kept], self._target)
        return found

    def _tested(self, features: Uints32, target: RankTarget) -> Floats:
        """Test features, by several threads, whose columns are read each by its own."""
        found = np.empty((len(features), NO_CONTRAST))
        n_threads = self._resources.n_testers

        def test(at: slice) -> None:
            those, out = features[at], found[at]
            for some, columns in self.columns(those, _TESTED):
                coded, kinds = self._coded(columns), self.categorical(those[some])
                out[some] = contrasts_log_p(*coded, target, categorical=kinds)

        if n_threads == 1 or len(features) <= _COLUMNS:
            test(slice(0, len(features)))
            return found
        size = max(_COLUMNS, ceil_div(len(features), 4 * n_threads))  # not all take as long
        with ThreadPoolExecutor(n_threads, "test") as pool:
            list(pool.map(test, _pieces(len(features), size)))
        return found

    def _coded(self, columns: NDArray[Any]) -> tuple[NDArray[Any], int]:
        """Return columns as they are tested, and how many codes there are; changed in place.

        Codes of two bytes are numbered from 0 as they are in use, missing ones last.
        """
        missing_code = self.missing_code
        if columns.itemsize == 1:
            return columns, missing_code
        is_used = np.zeros(missing_code + 1, np.bool_)
        for column in columns:  # one at a time: sorting all of them takes more memory than tests
            is_used[column] = True
        numbers = (np.cumsum(is_used) - 1).astype(np.uint16)
        for column in columns:
            column[:] = numbers[column]
        return columns, int(np.count_nonzero(is_used[:missing_code]))


def _pieces(n: int, size: int) -> list[slice]:
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def _from(neg_log10_p: Floats32, bar: float) -> Iterator[Uints32]:
    """Yield the features of -log10 p from ``bar`` on, some at a time."""
    for at in _pieces(len(neg_log10_p), 8 * _PIECE):
        some = np.flatnonzero(neg_log10_p[at] >= bar)
        if len(some):
            yield (at.start + some).astype(np.uint32)


def feature_columns(resources: Resources, features: Uints32, at_once: int = _COLUMNS) -> Columns:
    """Yield places among features and their codes, at most ``at_once`` (n_columns, n_rows)."""
    n_rows = resources.n_rows
    size = max(1, min(at_once, TESTED_CELLS // n_rows, len(features)))
    block = Block(size, n_rows, resources.manifest.code_nbytes, tiled=False)
    for start in range(0, len(features), size):
        some = features[start : start + size].astype(np.uint32)  # of a table: aligned then
        resources.source.gather(some, block)
        yield slice(start, start + len(some)), block.as_columns(len(some))


def columns_of(
    store: Store, features: Integers, rows: Ints32, units: Exchangeability | None = None
) -> Iterator[tuple[Indices, NDArray[Any]]]:
    """Yield places among features of a store and their codes (m, n_rows), some at a time.

    They are read in stored order. Of whole groups, ``units`` of the rows, they are mean ranks.

    Raises
    ------
    StoreError
        If the store cannot be read, or was replaced.
    """
    order = np.argsort(features, kind="stable")
    size, manifest = max(1, min(_COLUMNS, _READ_CELLS // len(rows))), store.manifest
    block = Block(size, len(rows), manifest.code_nbytes, tiled=False)
    with store.unchanged(), store.columns(mapped=False) as columns:
        for start in range(0, len(order), size):
            places = order[start : start + size]
            columns.gather(features[places].astype(np.uint32), block, rows)
            codes = block.as_columns(len(places))
            yield places, codes if units is None else units.mean_ranks(codes, manifest.missing_code)


# The most promising features beside one another: which are looked at, in which rows.

NOBODY = 2**32 - 1
"""In place of a stored position, where there is no other feature."""


def strongest(neg_log10_p: Floats32, key: int, most: int) -> Uints32:
    """Return at most so many features, strongest first; those of NaN are left out.

    ``key``: breaks ties.
    """

    def scores(piece: slice) -> Floats:
        found = neg_log10_p[piece].astype(np.float64)
        return np.where(np.isnan(found), -np.inf, found)

    features = largest(scores, len(neg_log10_p), most, key)
    return features[~np.isnan(neg_log10_p[features])]


def add_tests_beside(
    tests: MarginalTests, neg_log10_p: Floats32, leaders: tuple[Uints32, Floats32], closing: Uints32
) -> dict[int, list[int]]:
    """Test the most promising features beside one another.

    Looked at are, of as many as :func:`srs_ooc.evidence.conditional_tests.n_looked_at` allows,
    those that are strongest alone, one half; those of the best pairs, where there are not too many
    features to look at all pairs; and those that are best in the closing stage.

    Parameters
    ----------
    tests : MarginalTests
        Of each feature alone.
    neg_log10_p : float32 (n_features,)
        Of each feature alone; NaN where it is left out. Becomes that of its strongest test, less
        the cost of choosing it.
    leaders : uint32 (m,) and float32 (m,)
        As many features as are looked at, the strongest alone first, and their -log10 p by the
        first shares of the contrasts: no feature has a part in those of others.
    closing : uint32 (n,)
        Features by their place in the closing stage.

    Returns
    -------
    dict
        For each feature that shows most beside others, the stored positions of these; ``NOBODY``
        where there is one only.
    """

    def tell(done: int, total: int) -> None:
        tests.tell(Step(f"{TESTS} beside others", done, total, unit="partitions"))

    n_tested = int(np.count_nonzero(~np.isnan(neg_log10_p)))
    rows = some_rows(tests.task.n_rows, MOST_ROWS)
    target = target_of(tests.task, rows)
    most, first = len(leaders[0]), leaders[0]
    if most < n_tested:  # a half, so that others may be among those looked at
        first = first[: most // 2]
    neg_log10_p -= np.float32(cost(0, n_tested))
    with ThreadpoolController().limit(limits=1):  # sums this short take longer on several
        if most < n_tested and (n_halves := tests.n_halves(n_tested)):
            closing = np.concatenate([tests.best_pairs(neg_log10_p, n_halves).ravel(), closing])
            tests.tell()
        features = _promising(leaders[0], len(first), closing)
        codes, missing_code = _codes_of(tests, features, rows)
        alone = neg_log10_p[features].astype(np.float64)
        shares = tests.shares_of(features)
        kinds = tests.categorical(features)
        places = np.searchsorted(features, first)
        known = leaders[1][: len(first)].astype(np.float64) - cost(0, n_tested)
        found = beside_others(
            codes, missing_code, target, alone, (places, known), n_tested, shares, kinds, tell
        )
    wins = np.flatnonzero(found.neg_log10_p > alone)
    neg_log10_p[features[wins]] = found.neg_log10_p[wins]
    others = np.append(features.astype(np.int64), NOBODY)[found.others[wins]]
    return dict(zip(features[wins].tolist(), others.tolist(), strict=True))


def some_rows(n_rows: int, most: int) -> Indices:
    """Return rows, one of each of ``most`` stretches; all where there are no more.

    Which one is as good as random: rows that come in turns are not all of one kind.
    """
    ends = np.arange(most + 1) * n_rows // most if n_rows > most else np.arange(n_rows + 1)
    sizes = np.diff(ends).astype(np.uint64)
    return (ends[:-1] + derive_array(0, np.arange(len(sizes))) % sizes).astype(np.intp)


def _promising(leaders: Uints32, n_first: int, closing: Uints32) -> Uints32:
    """Return the features that are looked at beside one another, ascending.

    As many as ``leaders``: the first of these, the best of the closing stage, the next of these.
    """
    first, rest = leaders[:n_first], leaders[n_first:]
    best = closing[~np.isin(closing, first)]
    best = best[np.sort(np.unique(best, return_index=True)[1])][: len(rest)]
    rest = rest[~np.isin(rest, best)][: len(rest) - len(best)]
    return np.sort(np.concatenate([first, best, rest]))


def _codes_of(tests: MarginalTests, features: Uints32, rows: Indices) -> tuple[Integers, int]:
    """Return the codes of features in some rows, and from which code on values are missing."""
    codes = np.concatenate([columns[:, rows] for _, columns in tests.columns(features)])
    missing_code = tests.missing_code
    if codes.itemsize == 1:
        return codes, missing_code
    for column in codes:  # as few as are in use, or a test would take room for all there can be
        is_known = column < missing_code
        column[is_known] = np.unique(column[is_known], return_inverse=True)[1]
        column[~is_known] = len(rows)
    return codes, len(rows)
