"""One feature at a time: rank tests of columns of codes, and the level of Benjamini and Hochberg.

The tests are native, and this is their face.
"""

from collections.abc import Sequence
from enum import IntEnum
from itertools import pairwise
from math import fsum, inf, pi, sqrt
from math import log as ln
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.arrays import Bools, Bytes, Floats, Indices, Integers, Ints, Ints32, Reals
from srs_ooc.base.seeds import derive_array
from srs_ooc.base.text import number_of
from srs_ooc.native import _native
from srs_ooc.native.numerics import log, logs, powers, products

TARGET_LEVELS = 32
"""Levels of a regression's target at most: neighbours by rank are put together."""
LIGHT_TAILS = 2.85
"""Tail weight up to which numbers are taken for normal ones; it is 2.6 of these, 2.9 of logistic
ones, for which ranks are best, 3.3 of Laplace's and 3.5 of t with three degrees of freedom."""
SCORE_STEPS = 64
"""Even steps of scores of a target that are no ranks."""
MOST_LEVELS = 254
"""Levels of a categorical column; one of more is tested in the order of its codes."""
RARE_LEVEL = 5
"""Levels of a categorical column of fewer rows are taken together: one by one they show next to
nothing, and many would hide what the others show."""
UNSCORED = 65
"""In place of a step of what covariates leave of a row; steps go to 64."""
SMALL_STRATUM = 20
"""Strata of fewer rows have two such levels."""
BY_RISK_SETS, CENSORING_LEVEL = 0.2, 0.05
"""P-values of the test of censoring below which a contrast is tested by risk sets, and below which
that is said. At 0.05 features of 60 rows passed 1.5 times too often at 0.01 where censoring differs
too little to be seen; 0.2 costs at most 0.01 of power."""
_LN10 = log(10.0)


class Contrast(IntEnum):
    """What a test of one feature looks at."""

    LOCATION = 0
    SPREAD = 1
    ABSENCE = 2


NO_CONTRAST = len(Contrast)
"""In place of one, where nothing is shown."""


class Covariates(NamedTuple):
    """What covariates span: what they explain of a feature's scores is taken off before a test.

    Attributes
    ----------
    basis : float64 (n_rows, k)
        Orthonormal over the rows that were fitted, an intercept among its columns.
    products : float64 (k, k)
        Of its columns, over all of ``n_rows``.
    shrink : float
        What a sum differs by from its mean is taken times this: of n rows in h strata and k columns
        ``sqrt(1 - (k - c) / (n - h))``, c what strata hold of the basis (the squares of its sums
        over a stratum, over its rows). They make up for that part themselves.
    """

    basis: Floats
    products: Floats
    shrink: float

    @classmethod
    def of(cls, basis: Floats, strata: Integers | None = None) -> "Covariates":
        """Return them by their basis, (n, k), and strata from 0, (n,)."""
        numbers = np.zeros(len(basis), np.intp) if strata is None else strata
        sizes, whole = np.bincount(numbers), products(basis, basis)
        sums = np.array([np.bincount(numbers, weights=column) for column in basis.T])
        left = np.trace(whole) - (np.square(sums) / np.maximum(sizes, 1)).sum()
        share = float(left) / (len(basis) - np.count_nonzero(sizes) + 1e-9)
        return cls(basis, whole, float(np.sqrt(np.clip(1 - share, 0.1, 1.0))))

    def of_rows(self, rows: NDArray[np.integer[Any] | np.bool_]) -> "Covariates":
        """Return them in some rows, as they were fitted in all."""
        basis = np.ascontiguousarray(self.basis[rows])
        return self._replace(basis=basis, products=products(basis, basis))


class RiskSets(NamedTuple):
    """Who is at risk at each event of a censored target, where rows do not trade places.

    Attributes
    ----------
    times : int32 (n_rows,)
        Places of the times of rows among the distinct ones.
    events : bool (n_rows,)
        Whose event was seen.
    of_censoring : int32 (n_rows,)
        Scores with events and censorings exchanged: what follows these is censored differently.
    """

    times: Ints32
    events: Bools
    of_censoring: Ints32


class RankTarget(NamedTuple):
    """The target's side of the tests.

    Attributes
    ----------
    rows : int32 (n_used,)
        Rows of strata of two rows or more, by stratum.
    starts : int64 (n_strata + 1,)
        Where each stratum begins in ``rows``.
    targets : int32 (n_used,)
        Class or level of each of ``rows``.
    n_targets : int
        Classes or levels.
    nominal : bool
        Classes rather than levels.
    order : int32 (n_classes,)
        Classes, the smallest first: each is compared with all those after it.
    ascending : int32 (n_classes,) or None
        The place of each class among all, where three or more are different numbers: a trend is
        tested, too.
    scores : int64 (n_targets,)
        Of levels, ascending; none where they are ranked within strata.
    covariates : Covariates or None
        What features are adjusted for.
    untested : tuple of Contrast
        What is not tested of any column.
    risk : RiskSets or None
        Of a censored target: by them a feature is tested that censoring depends on.
    """

    rows: Ints32
    starts: Ints
    targets: Ints32
    n_targets: int
    nominal: bool
    order: Ints32
    ascending: Ints32 | None = None
    scores: Ints = np.zeros(0, np.int64)
    covariates: Covariates | None = None
    untested: tuple[Contrast, ...] = ()
    risk: RiskSets | None = None

    @property
    def native(self) -> _native.RankTarget:
        """The same, checked, as the native tests take it."""
        levels = self.targets, self.n_targets, self.nominal, self.order, self.scores
        return _native.RankTarget(self.rows, self.starts, *levels)

    @property
    def fitted(self) -> _native.Covariates | None:
        """The covariates, checked, as the native tests take them."""
        return None if self.covariates is None else _native.Covariates(*self.covariates)

    @classmethod
    def of_classes(
        cls,
        labels: Integers,
        n_classes: int,
        strata: Integers | None = None,
        names: Sequence[str] = (),
    ) -> "RankTarget":
        """Return the target of class codes below ``n_classes``; (n_rows,), as ``strata`` are.

        ``names`` are those of the classes, where a trend is to be tested if they are numbers. Where
        none is, classes of fewer rows than :data:`RARE_LEVEL` are taken together, as rare levels of
        a column are.
        """
        rows, starts = _by_stratum(len(labels), strata)
        sizes = np.bincount(labels, minlength=n_classes)
        numbers, ascending = np.array([number_of(name) for name in names]), None
        if 2 < len(names) <= TARGET_LEVELS and not np.isnan(numbers).any():
            places = np.unique(numbers, return_inverse=True)[1].astype(np.int32)
            if len(np.unique(places[sizes > 0])) > 2:  # two differ alike with a trend and without
                ascending = places
        is_rare = (sizes > 0) & (sizes < RARE_LEVEL)
        if ascending is None and 1 < is_rare.sum() < np.count_nonzero(sizes):
            labels = np.where(is_rare, is_rare.argmax(), np.arange(n_classes))[labels]
            sizes = np.bincount(labels, minlength=n_classes)
        order = np.argsort(sizes, kind="stable").astype(np.int32)
        return cls(rows, starts, labels[rows].astype(np.int32), n_classes, True, order, ascending)

    @classmethod
    def of_values(cls, target: Floats, strata: Integers | None = None) -> "RankTarget":
        """Return the target of a regression; (n_rows,), as ``strata`` are."""
        rows, starts = _by_stratum(len(target), strata)
        levels = np.zeros(len(rows), np.int32)
        for start, stop in pairwise(starts.tolist()):
            most = 2 if len(starts) > 2 and stop - start < SMALL_STRATUM else TARGET_LEVELS
            levels[start:stop] = _levels(target[rows[start:stop]], most)
        n_levels = int(levels.max(initial=0)) + 1
        return cls(rows, starts, levels, n_levels, False, np.zeros(0, np.int32))

    @classmethod
    def of_numbers(cls, target: Floats, strata: Integers | None = None) -> "RankTarget":
        """Return the target of a regression, with the scores that suit it best; (n_rows,).

        Ranks; normal quantiles of ranks (van der Waerden 1952) where there is one stratum, the
        levels are many and the tails no heavier than :data:`LIGHT_TAILS`. As the target alone
        decides which, a test that permutes it stays exact (Hogg 1974, J. Am. Stat. Assoc. 69).
        """
        out = cls.of_values(target, strata)
        is_fine = len(out.starts) == 2 and out.n_targets > TARGET_LEVELS // 2
        if not is_fine or tail_weight(target[out.rows]) > LIGHT_TAILS:
            return out
        counts = np.bincount(out.targets)
        shares = (2 * np.cumsum(counts) - counts) / (2 * len(out.rows))
        return out._scored(even_steps(normal_quantiles(shares))[out.targets])

    @classmethod
    def of_scores(cls, levels: Integers, strata: Integers | None = None) -> "RankTarget":
        """Return the target of scores that are no ranks, whole numbers; (n_rows,)."""
        rows, starts = _by_stratum(len(levels), strata)
        none = np.zeros(0, np.int32)
        return cls(rows, starts, none, 1, False, none)._scored(levels[rows])

    def _scored(self, values: Integers) -> "RankTarget":
        """Return the target of these scores, (n_used,), in place of its levels."""
        scores, dense = np.unique(values, return_inverse=True)
        out = self._replace(targets=dense.astype(np.int32), n_targets=max(1, len(scores)))
        return out._replace(scores=scores.astype(np.int64))

    @property
    def n_scores(self) -> int:
        """Numbers of a row that say which class or level it has: one, of more classes one each."""
        return self.n_targets if self.nominal and self.n_targets > 2 else 1

    def within(self, is_in: Bools) -> "RankTarget":
        """Return the target of some of the rows, bool (n_rows,); no row gets another level."""
        kept = is_in[self.rows]
        starts = np.concatenate([[0], np.cumsum(kept)])[self.starts]
        several = np.diff(starts) > 1
        kept &= np.repeat(several, np.diff(self.starts))
        starts = np.concatenate([[0], np.cumsum(np.diff(starts)[several])]).astype(np.int64)
        out = self._replace(rows=self.rows[kept], starts=starts, targets=self.targets[kept])
        return out if self.nominal else out.of_levels(out.targets)

    def in_strata(self, numbers: Integers) -> "RankTarget":
        """Return the target with its strata parted by a number of each row; int (n_rows,)."""
        strata = np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))
        order = np.lexsort((numbers[self.rows], strata))
        rows, strata = self.rows[order], strata[order]
        is_first = (np.diff(strata) != 0) | (np.diff(numbers[rows]) != 0)
        starts = np.concatenate([[0], np.flatnonzero(is_first) + 1, [len(rows)]])
        out = self._replace(rows=rows, starts=starts, targets=self.targets[order])
        return out.within(np.ones(len(numbers), np.bool_))

    def permuted(self, key: int) -> "RankTarget":
        """Return the target with rows trading places within strata, by the chance of a key.

        Nothing is fitted to it, and censoring depends on nothing.
        """
        strata = np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))
        order = np.lexsort((derive_array(key, np.arange(len(self.rows))), strata))
        out = self._replace(targets=self.targets[order], risk=None)
        if self.covariates is None:
            return out
        return out._replace(covariates=self.covariates._replace(shrink=1.0))

    def of_levels(self, levels: Ints32) -> "RankTarget":
        """Return the target of levels, (n_used,), in place of these; only their order counts."""
        left, dense = np.unique(levels, return_inverse=True)  # no more of them than rows
        scores = self.scores[left if len(left) else slice(1)] if len(self.scores) else self.scores
        out = self._replace(targets=dense.astype(np.int32), n_targets=max(1, len(left)))
        out = out._replace(nominal=False, order=np.zeros(0, np.int32), ascending=None)
        return out._replace(scores=scores)

    def of_censoring(self, risk: RiskSets) -> "RankTarget":
        """Return the target of the same rows with events and censorings exchanged."""
        own = np.zeros(len(risk.times), np.int32)
        own[self.rows] = self.scores[self.targets]
        back = RiskSets(risk.times, ~risk.events, own)
        return self._scored(risk.of_censoring[self.rows])._replace(risk=back)


def _by_stratum(n_rows: int, strata: Integers | None) -> tuple[Ints32, Ints]:
    if strata is None:
        return np.arange(n_rows, dtype=np.int32), np.array([0, n_rows], np.int64)
    parts = [rows.astype(np.int32) for rows in rows_by(strata) if len(rows) > 1]
    starts = np.cumsum([0, *map(len, parts)]).astype(np.int64)
    return np.concatenate([np.zeros(0, np.int32), *parts]), starts


def rows_by(numbers: Integers) -> list[Indices]:
    """Return the rows of each number of (n_rows,), by number, ascending."""
    order = np.argsort(numbers, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(numbers[order])) + 1)


def even_steps(values: Floats) -> Ints32:
    """Return numbers in even steps from 0 to :data:`SCORE_STEPS`; int32 (n,)."""
    low, high = float(values.min()), float(values.max())
    if not low < high:
        return np.zeros(len(values), np.int32)
    return np.rint((values - low) * (SCORE_STEPS / (high - low))).astype(np.int32)


def normal_quantiles(shares: Floats) -> Floats:
    """Return the normal quantiles of shares; float64 (n,)."""
    return np.array([NormalDist().inv_cdf(share) for share in shares.tolist()])


def tail_weight(values: Floats) -> float:
    """Return how far apart the means of the upper and the lower twentieth of numbers are.

    In units of how far apart those of the halves are; (n,). Infinite where these are not.
    """
    ascending, n = np.sort(values), len(values)

    def apart(k: int) -> float:
        return (fsum(ascending[n - k :]) - fsum(ascending[:k])) / k

    halves = apart(max(1, n // 2))
    return apart(max(1, n // 20)) / halves if halves > 0 else inf


def _levels(target: Floats, most: int) -> Ints:
    """Return the level of each row: the distinct values, or as many bins of ranks."""
    _, codes, counts = np.unique(target, return_inverse=True, return_counts=True)
    if len(counts) <= most:
        return codes
    twice = 2 * np.cumsum(counts) - counts
    bins = np.unique(twice * most // (2 * len(target)), return_inverse=True)[1]
    return np.asarray(bins[codes], np.int64)


FIXED_SHARES = np.array([0.6, 0.2, 0.2])
"""Of the level, what each contrast gets where a column is shown by itself, apart from a verdict."""
CERTAIN = 0.009
"""Features are counted for a contrast whose p-value, times the number of features, is up to this: a
level of 0.01 or more selects them without these shares too."""


FIRST_SHARES = np.array([2.0, 0.5, 0.5])
"""What each contrast counts before any feature is counted: most that differ differ in location."""


def shares_beside(counts: Integers, own: Bytes) -> Floats:
    """Return the share of the level that each contrast of a feature gets, from the other features.

    As of Laplace's rule of succession: ``FIRST_SHARES``, and the other features that show it for
    certain.

    Parameters
    ----------
    counts : int (3,)
        How many features show each contrast for certain (``CERTAIN``).
    own : uint8 (n,)
        The contrast for which each feature is counted itself; ``NO_CONTRAST`` where for none.

    Returns
    -------
    float64 (n, 3)
    """
    others = FIRST_SHARES + counts - (own[:, None] == np.arange(NO_CONTRAST))
    return np.asarray(others / others.sum(axis=1)[:, None], np.float64)


def strongest_contrasts(
    columns: NDArray[Any],
    missing_code: int,
    target: RankTarget,
    *,
    exactly: bool = False,
    only: Contrast | None = None,
    shares: Floats = FIXED_SHARES,
    categorical: Bools | None = None,
) -> tuple[Floats, Bytes]:
    """Test each column, without the GIL: how strong its test is, and the contrast that shows most.

    The p-value is the smallest of its contrasts, each divided by its share (Bonferroni's inequality
    with weights): whatever these have to do with one another. Which contrasts a column has follows
    from its margins. The same bits on every machine: no library's logarithm is on the way.

    Parameters
    ----------
    columns : uint8 or uint16 (n_columns, n_rows)
        C-contiguous; codes from ``missing_code`` on are missing.
    missing_code : int
        Number of codes that are not.
    target : RankTarget
        What they are tested against.
    exactly : bool
        Whether contrasts that show nothing by the asymptotic test are tested like the others.
    only : Contrast, optional
        Test by it alone; by default by all that the column's margins allow.
    shares : float64 (3,) or (n_columns, 3)
        Of the level, by contrast; divided among those that a column has.
    categorical : bool (n_columns,), optional
        Columns whose codes have no order: location is then that of the target by level.

    Returns
    -------
    neg_log10_p : float64 (n_columns,)
        Minus the decimal logarithms of the p-values; 0 where a column is constant.
    contrasts : uint8 (n_columns,)
        As numbered by :class:`Contrast`; ``NO_CONTRAST`` where nothing is shown.
    """
    log_p = contrasts_log_p(
        columns, missing_code, target, exactly=exactly, only=only, categorical=categorical
    )
    return strongest_of(log_p, shares)


def contrasts_log_p(
    columns: NDArray[Any],
    missing_code: int,
    target: RankTarget,
    *,
    exactly: bool = False,
    only: Contrast | None = None,
    categorical: Bools | None = None,
    steps: Bytes | None = None,
) -> Floats:
    """Test each column, as :func:`strongest_contrasts` does; which contrast shows most is open.

    ``steps``: what covariates leave of the columns, where :func:`adjusted_steps` was asked before.

    Returns
    -------
    float64 (n_columns, 3)
        Natural logarithms of the p-values of the contrasts; NaN of those that a column has not.
    """
    own, fitted = target.native, target.fitted

    def tested(target: _native.RankTarget) -> Floats:
        out = np.full((len(columns), NO_CONTRAST), np.nan)
        if steps is None or fitted is None:
            which = NO_CONTRAST if only is None else only
            _native.rank_tests(columns, missing_code, target, fitted, exactly, which, out)
            return out
        for contrast in Contrast if only is None else (only,):
            found, of_contrast = np.empty_like(out), np.ascontiguousarray(steps[:, contrast])
            _native.step_tests(of_contrast, target, fitted, found)
            out[:, contrast] = found[:, Contrast.LOCATION]
        return out

    log_p = tested(own)
    if target.ascending is not None:
        by_trend = target.of_levels(target.ascending[target.targets])
        if target.covariates is not None:  # what is left of a feature has no ranks within strata
            by_trend = by_trend._replace(scores=np.arange(by_trend.n_targets))
        log_p = log_of_two(log_p, tested(by_trend.native))
    if (risk := target.risk) is not None:
        censoring, bar = target.of_censoring(risk).native, log(BY_RISK_SETS)
        of_rows = risk.times, risk.events, bar
        _native.risk_set_tests(columns, missing_code, own, censoring, *of_rows, log_p)
    if categorical is not None and categorical.any() and only in (None, Contrast.LOCATION):
        most = TARGET_LEVELS if fitted is not None else max(TARGET_LEVELS, len(target.scores))
        limits = np.flatnonzero(categorical), RARE_LEVEL, MOST_LEVELS, most
        _native.level_tests(columns, missing_code, own, fitted, exactly, *limits, log_p)
    log_p[:, list(target.untested)] = np.nan
    return log_p


def log_of_two(log_p: Floats, log_q: Floats) -> Floats:
    """Return the natural logarithms of p-values of two tests together; NaN where one is.

    By h, the harmonic mean of both (Wilson 2019, Proc. Natl. Acad. Sci. 116), at most twice the
    smaller one: of independent tests it is at most h with probability h + h^2 / 2 log(2 / h - 1).
    """
    least, most = np.minimum(log_p, log_q), np.maximum(log_p, log_q)
    log_h = log(2.0) + least - logs(1.0 + powers(least - most))
    h = powers(log_h)
    return np.asarray(np.minimum(log_h + logs(1.0 + h / 2 * logs(2.0 / h - 1.0)), 0.0), np.float64)


def strongest_of(log_p: Floats, shares: Floats) -> tuple[Floats, Bytes]:
    """Return -log10 p and contrasts as :func:`strongest_contrasts` does, by these p-values.

    ``log_p``: (n_columns, 3), as of :func:`contrasts_log_p`.
    """
    own = np.where(np.isnan(log_p), 0.0, shares)
    among = own[:, 0] + own[:, 1] + own[:, 2]
    best, contrasts = np.zeros(len(log_p)), np.full(len(log_p), NO_CONTRAST, np.uint8)
    for number in range(NO_CONTRAST):
        is_there = own[:, number] > 0
        joined = np.zeros(len(log_p))
        joined[is_there] = log_p[is_there, number] - logs(own[is_there, number] / among[is_there])
        wins = joined < best
        best[wins], contrasts[wins] = joined[wins], number
    return -best / _LN10, contrasts


def adjusted_steps(columns: NDArray[Any], missing_code: int, covariates: Covariates) -> Bytes:
    """Return what covariates leave of the scores of columns, in even steps.

    uint8 (n_columns, 3, n_rows), by contrast; ``UNSCORED`` where a row has no score. So tests of
    parts of the rows need not take it off again.
    """
    out = np.empty((len(columns), NO_CONTRAST * columns.shape[1]), np.uint8)
    fitted = _native.Covariates(*covariates)
    _native.adjusted_steps(np.ascontiguousarray(columns), missing_code, fitted, out)
    return out.reshape(len(columns), NO_CONTRAST, -1)


def combined(neg_log10_p: Floats) -> Floats:
    """Return -log10 p of independent tests together, by Fisher's sum of logarithms.

    Fisher (1932), Statistical Methods for Research Workers, Section 21.1: of k independent p-values
    minus twice the sum of logarithms is chi-squared with 2k degrees of freedom, or less.

    Parameters
    ----------
    neg_log10_p : float64 (k, n)
        Minus the decimal logarithms of p-values; NaN of tests that a column has not.

    Returns
    -------
    float64 (n,)
        That of the probability of a sum as large.
    """
    total = np.zeros(neg_log10_p.shape[1])
    for part in np.where(np.isnan(neg_log10_p), 0.0, neg_log10_p):
        total += part
    term, tail = np.ones_like(total), np.zeros_like(total)
    n_tests = np.count_nonzero(~np.isnan(neg_log10_p), axis=0)
    for i in range(len(neg_log10_p)):
        tail[i < n_tests] += term[i < n_tests]
        term *= total * (_LN10 / (i + 1))
    return np.where(n_tests > 0, total - logs(np.maximum(tail, 1.0)) / _LN10, 0.0)


# One feature at a time: how strong its test is, and Benjamini and Hochberg.
#
# On plain additive signal with few rows this beats any forest; users should see both. P-values are
# held as minus their decimal logarithms: single precision then holds the smallest.

_PIECE = 1 << 16
_LEAST = 1e-300


def p_values_of(neg_log10_p: Reals) -> Floats:
    """Return p-values, at least 1e-300; NaN stays NaN."""
    return np.maximum(powers(-_LN10 * neg_log10_p.astype(np.float64)), _LEAST)


def least_passing(neg_log10_p: Reals, level: float, most: int | None = None) -> float:
    """Return -log10 p from which features pass at false discovery rate ``level``.

    Benjamini and Hochberg (1995), J. R. Statist. Soc. B 57, Section 3.1. Infinite if none passes;
    NaN is no feature. At most ``most`` pass: with p-values t falling from 1, the first t passes at
    which p t / k is at most the level, k the features up to t, and k is no more than that. Of
    independent p-values this is a stopping time, so that the level holds (Storey, Taylor and
    Siegmund 2004, J. R. Statist. Soc. B 66, Theorem 2).
    """
    (descending, n, n_eligible), weakest = _falling(neg_log10_p, most), np.inf
    for start in range(0, n_eligible, _PIECE):
        some = -descending[start : min(start + _PIECE, n_eligible)]  # not a few numbers a feature
        bar = -logs(level * np.arange(start + 1, start + 1 + len(some)) / n) / _LN10
        weakest = min(weakest, float(some[some >= bar].min(initial=np.inf)))
    return weakest


def _falling(neg_log10_p: Reals, most: int | None) -> tuple[Reals, int, int]:
    """Return logarithms of p-values, the least first; how many there are, and may pass.

    At most ``most``, and equals all or none; NaN is no feature.
    """
    found = np.negative(neg_log10_p)
    found.sort()
    # of another type it would have all of them copied
    n = int(np.searchsorted(found, found.dtype.type(np.nan)))
    few = most is None or n <= most
    return found, n, n if few else int(np.searchsorted(found[:n], found[most]))


def adjusted(
    neg_log10_p: Reals, wanted: Reals, most: int | None = None, few: int | None = None
) -> Floats:
    """Return the smallest level at which a p-value passes Benjamini and Hochberg; at most 1.

    Parameters
    ----------
    neg_log10_p : float (m,)
        Of all features; NaN is no feature.
    wanted : float (n,)
        Some of them.
    most : int, optional
        How many may pass, as of :func:`least_passing`.
    few : int, optional
        Places from there on count as that one.
    """
    descending, n, n_eligible = _falling(neg_log10_p, most)
    # The last place of each p-value among its equals, and the lowest level from there on.
    places = np.searchsorted(descending[:n], -wanted, side="right") - 1
    out, best = np.ones(len(wanted)), 1.0
    for start in reversed(range(0, n_eligible, _PIECE)):
        some = descending[start : min(start + _PIECE, n_eligible)].astype(np.float64)
        counted = np.minimum(np.arange(start + 1, start + 1 + len(some)), few or n)
        levels = p_values_of(-some) * n / counted
        levels = np.minimum(np.minimum.accumulate(levels[::-1])[::-1], best)
        here = np.flatnonzero((places >= start) & (places < start + len(some)))
        out[here] = levels[places[here] - start]
        best = float(levels[0])
    return out


# Genomic inflation: whether the p-values of all features, taken together, are as they should be.
#
# If few features matter, half of all p-values are above 1/2, whatever the features have to do with
# one another. Lambda says how far the median is from that, in units of z^2 (Devlin and Roeder 1999,
# Biometrics 55). P-values are counted in bins, which add up whatever the order.

STEPS, N_BINS = 128, 4096
"""Bins of a unit of the root of -log10 p, and of all; the last has what is beyond 1024, too."""
MEDIAN = NormalDist().inv_cdf(0.75) ** 2
"""The median of z^2, 0.455."""
_SLOPE = 2.33
"""The error of lambda times the root of the features (independent ones)."""
_SHARED = (0.37, 0.2, 0.43)
"""Of the squared correlation of two scores, its second and its fourth power: together about the
correlation of which of both are beyond the median (Hermite's expansion: 0.368, 0.198, 0.434)."""
_LUMPY = 1.95
"""Largest distance of a uniform distribution from one drawn from it, times the root of the draws:
more in 0.1% of cases (Kolmogorov)."""
N_ERRORS, LEAST_OFF = 3, 0.05
"""A median is cautioned of so many errors from 1/2, if lambda is so far from 1."""
_LEAST_LOG10 = 300.0


def p_value_bins(log_p: Floats) -> Indices:
    """Return the bins of natural logarithms of p-values; ``N_BINS`` of NaN, which is no test."""
    roots = np.sqrt(np.maximum(-log_p / _LN10, 0.0))
    bins = np.where(np.isnan(roots), N_BINS, np.minimum(roots * STEPS, N_BINS - 1))
    return bins.astype(np.intp)


def binned(bins: Indices) -> Ints:
    """Return how many p-values are in each bin; int64 (N_BINS,)."""
    return np.bincount(bins.ravel(), minlength=N_BINS + 1)[:N_BINS]


def expected_beside(counts: Integers) -> tuple[Floats, Floats]:
    """Return the points of a QQ plot, one a bin: -log10 p by chance, and that found; ascending.

    ``counts``: int (n,), of the first bins.
    """
    bins = np.flatnonzero(counts)[::-1]
    among = counts[bins]
    ranks = np.cumsum(among) - among / 2  # the middle one of a bin, the smallest p-value first
    expected = -logs(ranks / max(1, among.sum())) / _LN10
    return expected[::-1], np.square((bins[::-1] + 0.5) / STEPS)


def inflation_of(counts: Integers, null: Indices, squares: Floats, n_rows: int) -> dict[str, Any]:
    """Return lambda, its error, and whether it is off; empty where nothing was tested.

    Where p-values can only take few values, or are not uniform for another reason, as permutations
    of the target show (Kolmogorov's test), the median is compared with theirs, not with 1/2.

    Parameters
    ----------
    counts : int64 (N_BINS,)
        Of the p-values of all features.
    null : intp (n_permutations, n)
        Bins of the p-values of some features, with the target permuted.
    squares : float64 (n, n)
        Squared correlations of these features, ...
    n_rows : int
        ... in so many rows.

    Returns
    -------
    dict
        ``lambda``; ``lambda_error``; ``n_effective``, how many independent features would have this
        error; ``lambda_by``, "chi-squared" or "permutations"; ``lambda_is``, "above" or "below" 1
        by more than chance, or None.
    """
    m, n = int(counts.sum()), len(squares)
    if not m or not n:
        return {}
    a, b, c = _SHARED
    shared = a * squares + b * squares**2 + c * squares**4
    by_chance = (a + 3 * b / (n_rows + 1)) / max(n_rows - 1, 1)  # of independent features
    alike = (shared.sum() - np.trace(shared)) / max(n * (n - 1), 1) - by_chance
    n_effective = m / (1 + (m - 1) * max(float(alike), 0.0))
    edges = np.arange(N_BINS + 1) / STEPS
    above, null_above = (np.append(0, np.cumsum(c)) / c.sum() for c in (counts, binned(null)))
    root = float(np.interp(0.5, above, edges))
    median, variance = root * root, 0.25 / n_effective
    n_null = len(null) * min(n_effective, n)
    uniform = 1 - powers(-_LN10 * np.square(edges))
    is_lumpy = np.abs(null_above - uniform).max() > _LUMPY / sqrt(n_null)
    if is_lumpy:
        rest = 1 - float(np.interp(0.5, above, null_above))
        median = -log(rest) / _LN10 if rest > 1 / null.size else median
        variance += 0.25 / n_null + float((null >= root * STEPS).mean(axis=0).var()) / n
    found = _squared_score(median) / MEDIAN
    is_off = abs(10**-median - 0.5) > N_ERRORS * sqrt(variance) and abs(found - 1) > LEAST_OFF
    return {
        "lambda": round(found, 4),
        "lambda_error": round(2 * _SLOPE * sqrt(variance), 4),
        "n_effective": round(n_effective, 1),
        "lambda_by": "permutations" if is_lumpy else "chi-squared",
        "lambda_is": ("above" if found > 1 else "below") if is_off else None,
    }


def _squared_score(neg_log10_p: float) -> float:
    """Return the z^2 whose two-sided p-value that is."""
    if neg_log10_p < _LEAST_LOG10:
        return NormalDist().inv_cdf(10**-neg_log10_p / 2) ** 2
    found = twice = 2 * _LN10 * neg_log10_p
    for _ in range(8):  # the tail is the density over z: p = 2 exp(-z^2 / 2) / (z sqrt(2 pi))
        found = twice - ln(found * pi / 2)
    return found
