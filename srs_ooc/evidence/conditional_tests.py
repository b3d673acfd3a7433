"""Tests of a feature beside others: within the halves of one, within the quarters of two.

What shows only together with others no test of single features can see, and trees do not say how
sure it is. Here the rows are parted by other features, at the cut of each nearest its median, rows
where one of these is missing apart, and the feature is tested by ranks within each part. The
p-values of the parts are put together
(:func:`combined`), and multiplied by the number of ways in which the rows could have been parted:
so the ways that look best may be chosen by whatever means, from the same rows.
"""

from collections.abc import Callable
from functools import partial
from itertools import combinations
from math import comb, isqrt
from typing import NamedTuple

import numpy as np

from srs_ooc.base.arrays import Bools, Floats, Indices, Integers, Ints
from srs_ooc.evidence import rank_tests
from srs_ooc.evidence.rank_tests import RankTarget, combined, contrasts_log_p, strongest_of
from srs_ooc.native.numerics import log

# How the level is divided. A feature's p-value is the smallest of those of d = 0, 1 and 2 others,
# each times the number of choices of these others and divided by its share: then it is at most t
# with probability at most t, whatever the tests have to do with one another (Bonferroni).
#
# Half of a share is for others that lead, of which there are few; which these are is found without
# the feature that is tested (:func:`leading`), and so it is known before its column is looked at.

MOST_OTHERS = 2
SHARE = 0.9
"""Share of the level for d others: ``SHARE * (1 - SHARE)**d``, a tenth of what is left for more."""
LEADING = 32
"""Others that lead, at most."""
_LN10 = log(10.0)


def cost(n_others: int, n_tested: int) -> float:
    """Return what -log10 p loses: log10 of the ways to choose ``n_others``, over their share.

    Infinite where there are not so many other features among the ``n_tested``.
    """
    ways, halved = comb(n_tested - 1, n_others), log(2.0) if n_others else 0.0
    if not ways:
        return np.inf
    return (log(ways) - log(SHARE) - n_others * log(1 - SHARE) + halved) / _LN10


FEW_BESIDE = 128
"""Features at most that the rule for tests beside others is made for; it holds of more, too."""


def dependence_cost(n_tested: int) -> float:
    """Return what -log10 p loses where features pass whatever their tests have to do with another.

    log10(1 + 1/2 + ... + 1 / m), m being :data:`FEW_BESIDE` or all: at place k a p-value passes
    that is at most ``level min(k, m) / n`` then. That is the step-up procedure of Blanchard and
    Roquain (2008), Electron. J. Stat. 2, Section 2.2, with a prior of 1 / j on j = 1 to m; with m =
    n that of Benjamini and Yekutieli (2001), Ann. Stat. 29, Theorem 1.3.
    """
    return log(sum(1 / k for k in range(1, max(1, min(n_tested, FEW_BESIDE)) + 1))) / _LN10


Progress = Callable[[int, int], object]
"""Told how much is done, and of how much; raises where the work is to stop."""

# Which parts look best, by sums of squared correlations within parts.
#
# All sums are of whole numbers that float64 holds, so BLAS may take them in any order; see
# srs_ooc.native.numerics. Nothing here decides: it proposes what is then tested.

CELLS = 1 << 22
"""Codes that are held, at most."""
WORK = 3 * 10**9
"""Products taken to look at all pairs, at most."""
MOST_ROWS, MOST_FEATURES = 1 << 14, 1000
PROPOSED = 2
"""Ways of parting the rows that are tested for each feature, of each number of others."""
_PIECE = 1 << 15
_MASKS = 1 << 21
"""Rows that are marked at once, of the ways of parting them that are looked at together."""
_BITS = 8


def n_looked_at(n_rows: int, n_scores: int) -> int:
    """Return how many features, at most, are looked at beside one another.

    Parameters
    ----------
    n_rows : int
        Rows that are looked at.
    n_scores : int
        Classes; 1 of two classes or of numbers.
    """
    by_work = isqrt(WORK // (n_rows * (2 + n_scores)))
    return max(2, min(MOST_FEATURES, CELLS // n_rows, by_work))


def held_nbytes(
    n_rows: int, n_features: int, n_classes: int, code_nbytes: int, *, adjusts: bool
) -> int:
    """Return the bytes that features looked at beside one another take, besides some megabytes.

    ``adjusts``: also what covariates leave of them.
    """
    n_rows, n_scores = min(n_rows, MOST_ROWS), n_classes if n_classes > 2 else 1
    each = 2 * code_nbytes + len(rank_tests.Contrast) * adjusts
    return min(n_features, n_looked_at(n_rows, n_scores)) * n_rows * each


def halves(codes: Integers, missing_code: int) -> Bools:
    """Return which rows are above the cut of each column nearest its median; bool (n, n_rows).

    Of the rows that are known; the others are not above it.
    """
    is_high = np.zeros(codes.shape, np.bool_)
    for column, high in zip(codes, is_high, strict=True):
        counts = np.bincount(column, minlength=1)[:missing_code]
        below = np.cumsum(counts)
        used = np.flatnonzero(counts)[:-1]
        if len(used):
            cut = used[np.argmin(np.abs(2 * below[used] - below[-1]))]
            np.logical_and(column > cut, column < missing_code, out=high)
    return is_high


def by_others(others: Integers) -> list[tuple[list[int], Indices]]:
    """Return each way of parting the rows that is proposed, and the features it is proposed for.

    ``others``: int (n, k, n_others), as :meth:`Looked.propose` returns them.
    """
    n, k, n_others = others.shape
    ways, which = np.unique(others.reshape(n * k, n_others), axis=0, return_inverse=True)
    order = np.argsort(which.reshape(-1), kind="stable")
    ends = np.cumsum(np.bincount(which.reshape(-1), minlength=len(ways)))
    found = zip(ways.tolist(), np.split(order, ends[:-1]), strict=True)
    return [(way, some // k) for way, some in found if way[0] >= 0]


class Looked:
    """Features looked at beside one another, by squared correlations within parts of the rows.

    Parameters
    ----------
    codes : uint8 or uint16 (n, n_rows)
        Of features; codes from ``missing_code`` on are missing.
    missing_code : int
        Number of codes that are not.
    target : RankTarget
        Of these rows.

    Attributes
    ----------
    is_high, is_known : bool (n, n_rows)
        Which rows are in the upper half of each feature, and which are in either.
    """

    def __init__(self, codes: Integers, missing_code: int, target: RankTarget) -> None:
        self.is_high, self.is_known = halves(codes, missing_code), codes < missing_code
        self._codes = _without_missing(codes, missing_code)
        self._shift = max(0, int(self._codes.max()).bit_length() - _BITS)
        self._scores = np.zeros((1 + target.n_scores, codes.shape[1]))
        self._scores[0, target.rows] = 1.0
        sizes, several = np.diff(target.starts), range(target.n_scores)
        some = [target.targets == c for c in several] if len(several) > 1 else [target.targets]
        for number, score in enumerate(some, 1):
            values = score.astype(np.int64)
            if len(sizes) > 1:  # compared with the mean of the stratum, times its size
                means = np.add.reduceat(values, target.starts[:-1])
                values = values * np.repeat(sizes, sizes) - np.repeat(means, sizes)
            self._scores[number, target.rows] = values
        every = np.ones((1, codes.shape[1]), np.bool_)
        self._whole = [self.sums(every, score) for score in range(len(self._scores))]
        self._all_known = bool(self.is_known.all())

    def sums(self, masks: Bools, score: int) -> Floats:
        """Return sums over the rows of each mask, bool (m, n_rows), by codes' upper eight bits.

        float64 (3, n, m): of x s, s and s^2, s the score of that number, from 1; 0 stands for those
        of x, of 1 and of x^2.
        """
        n, n_rows = self._codes.shape
        sums, scores = np.zeros((3, n, len(masks))), self._scores[score]
        size = max(1, 2 * _PIECE // max(n, len(masks)))
        for start in range(0, n_rows, size):
            rows = slice(start, start + size)
            x = (self._codes[:, rows] >> self._shift).astype(np.float64)
            weights = masks[:, rows] * scores[rows]
            sums[0] += x @ weights.T
            sums[1] += weights.sum(axis=1)
            sums[2] += (weights * scores[rows]).sum(axis=1) if score else (x * x) @ weights.T
        return sums

    def parts(self, way: list[int], target: RankTarget) -> list[RankTarget]:
        """Return the target within each part that a way makes: the halves, or quarters.

        One more is of the rows where one of the others is missing, if there are any. There, rows
        trade places only where the same others are missing and the known ones in the same half.
        """
        number, unknown = np.zeros((2, self.is_high.shape[1]), np.int64)
        for place in way:
            number = 2 * number + self.is_high[place]
            unknown = 2 * unknown + ~self.is_known[place]
        parts = [target.within((number == part) & (unknown == 0)) for part in range(1 << len(way))]
        if unknown.any():
            parts.append(target.within(unknown > 0).in_strata((unknown << len(way)) + number))
        return parts

    def neg_log10_p(self, ways: Integers) -> Floats:
        """Return about how strong each column is within the parts that each way makes.

        float64 (n, n_ways), that of the score it goes with most; 0 where the column is one of those
        that part the rows. ``ways`` is int (n_ways, n_others): features by place.
        """
        best, sums = np.zeros((len(self.is_high), len(ways))), self._parts(ways, 0)
        for score in range(1, len(self._whole)):
            seen = np.zeros_like(best)
            for part, of_score in zip(sums, self._parts(ways, score), strict=True):
                (total, count, squares), (products, of_one, of_squares) = part, of_score
                shared, correlated = count * products - total * of_one, np.zeros_like(best)
                scale = (count * squares - total * total) * (count * of_squares - of_one * of_one)
                np.divide(shared * shared, scale, out=correlated, where=scale > 0)
                seen += correlated * (count - 1)  # rows less one, times r^2
            np.maximum(best, seen, out=best)
        best[ways.T, np.arange(len(ways))] = 0.0
        return best / (2 * _LN10)

    def _parts(self, ways: Integers, score: int) -> list[Floats]:
        """Return the sums over each part, from those over few of them; of known rows alone."""
        high, known, whole = self.is_high, self.is_known, self._whole[score]
        if ways.shape[1] == 1:
            left = self._over(high, ways[:, 0], score)
            return [left, self._over(known, ways[:, 0], score) - left]
        one, other = ways.T
        both = self.sums(high[one] & high[other], score)
        if self._all_known:
            left, right = (self._over(high, of, score) for of in ways.T)
        else:
            left = self.sums(high[one] & known[other], score)
            right = self.sums(known[one] & high[other], score)
            whole = self.sums(known[one] & known[other], score)
        return [both, left - both, right - both, whole - left - right + both]

    def _over(self, of: Bools, places: Integers, score: int) -> Floats:
        """Return the sums over the rows of some features, which may repeat."""
        if of is self.is_known and self._all_known:
            return self._whole[score]
        distinct, which = np.unique(places, return_inverse=True)
        return self.sums(of[distinct], score)[..., which]

    def propose(
        self,
        ways: Integers,
        charges: Callable[[Integers], Floats],
        tell: Progress = lambda done, total: None,
    ) -> Ints:
        """Return, for each column, the ways in which it seems strongest, its charges paid.

        int64 (n, k, n_others): places of the others among the features; -1 where there is none.

        Parameters
        ----------
        ways : int (n_ways, n_others)
            Features by place.
        charges : callable
            Returns what each column pays for each of some ways; float64 (n, n_ways).
        tell : callable
            Told how many ways are looked at, of how many.
        """
        n = len(self.is_high)
        best = np.zeros((n, PROPOSED))
        others = np.full((n, PROPOSED, ways.shape[1]), -1)
        size = max(1, min(_PIECE // n, _MASKS // self.is_high.shape[1]))
        for start in range(0, len(ways), size):
            tell(start, len(ways))
            some = ways[start : start + size]
            every = np.concatenate([best, self.neg_log10_p(some) - charges(some)], axis=1)
            first = np.argsort(-every, axis=1, kind="stable")[:, :PROPOSED]
            best = np.take_along_axis(every, first, axis=1)
            all_others = np.concatenate([others, np.broadcast_to(some, (n, *some.shape))], axis=1)
            others = np.take_along_axis(all_others, first[..., None], axis=1)
        return others


def leading(looked: Looked, order: Indices, alone: Floats, n_leading: int) -> tuple[Bools, Bools]:
    """Return which others lead, of those beside which a feature is tested: by one, and by two.

    For each feature, the ``n_leading`` of all others that are strongest alone; and of the others
    of ``order`` that are strongest alone, as many that are strongest alone or beside one of the
    former. The feature itself has no part in either.

    Parameters
    ----------
    looked : Looked
        Of n features.
    order : int (m,)
        The m features of all that are strongest alone, strongest first. Where they are not all
        there are, the last of them is left out for all that are not among them: so each of n has
        m - 1 others.
    alone : float64 (m,)
        Their -log10 p alone, in which no other feature has a part.
    n_leading : int
        Below m, or m where these are all.

    Returns
    -------
    by_one, by_two : bool (n, n)
        For each feature, of all.
    """
    n = len(looked.is_high)
    first = order[: n_leading + 1]
    beside = looked.neg_log10_p(first[:, None]) - log(max(n_leading, 1)) / _LN10
    by_one, by_two = np.zeros((2, n, n), np.bool_)
    for feature in range(n):
        mine = first[first != feature][:n_leading]
        by_one[feature, mine] = True
        others = np.flatnonzero(order != feature)[: len(order) - 1]
        strong = order[others]
        reached = beside[strong][:, np.isin(first, mine)].max(axis=1, initial=-np.inf)
        best = np.argsort(-np.maximum(alone[others], reached), kind="stable")[:n_leading]
        by_two[feature, strong[best]] = True
    return by_one, by_two


class Beside(NamedTuple):
    """What tests of features beside others show.

    Attributes
    ----------
    neg_log10_p : float64 (n,)
        Minus the decimal logarithms of their p-values, less the :func:`cost` of the choice; below 0
        where they show nothing.
    others : int64 (n, MOST_OTHERS)
        Places of the others beside which each shows that; -1 for none.
    """

    neg_log10_p: Floats
    others: Ints


def beside_others(
    codes: Integers,
    missing_code: int,
    target: RankTarget,
    alone: Floats,
    leaders: tuple[Indices, Floats],
    n_tested: int,
    shares: Floats,
    categorical: Bools | None = None,
    tell: Progress = lambda done, total: None,
) -> Beside:
    """Test features within parts of the rows that one or two of the others make.

    Parameters
    ----------
    codes : uint8 or uint16 (n, n_rows)
        C-contiguous; codes from ``missing_code`` on are missing.
    missing_code : int
        Number of codes that are not.
    target : RankTarget
        Of these rows.
    alone : float64 (n,)
        Strengths of their tests alone, less the :func:`cost` of no others.
    leaders : int (m,) and float64 (m,)
        The m features, of all that are tested, that are strongest alone, strongest first: by
        place; and their -log10 p, by contrasts whose shares no other feature has a part in.
    n_tested : int
        Features among which these were chosen.
    shares : float64 (n, 3)
        Of the contrasts of each (:func:`srs_ooc.evidence.rank_tests.shares_beside`).
    categorical : bool (n,), optional
        Features whose codes have no order.
    tell : callable
        Told how many ways of parting the rows are done, of how many; by one other, then by two,
        looked at and then tested.
    """
    n, (order, _) = len(codes), leaders
    n_leading = min(LEADING, len(order) - (len(order) < n_tested))
    found = Beside(np.full(n, -np.inf), np.full((n, MOST_OTHERS), -1))
    looked, steps = Looked(codes, missing_code, target), None
    if target.covariates is not None:
        steps = rank_tests.adjusted_steps(codes, missing_code, target.covariates)
    able = parts_rows = looked.is_high.any(axis=1)
    for n_others, leads in enumerate(leading(looked, *leaders, n_leading), 1):
        if n_others > 1:
            best = np.argsort(-np.maximum(alone, found.neg_log10_p), kind="stable")[:LEADING]
            able = parts_rows & (leads.any(axis=0) | np.isin(np.arange(n), best))
        ways = np.array([*combinations(np.flatnonzero(able).tolist(), n_others)])
        if not len(ways):
            continue
        costs = cost(n_others, 1 + n_leading), cost(n_others, n_tested)
        charges = partial(_charges, leads, costs)
        proposed = by_others(looked.propose(ways, charges, tell))
        for done, (way, some) in enumerate(proposed, 1):
            tell(done, len(proposed))
            columns = np.ascontiguousarray(codes[some])
            kinds = None if categorical is None else categorical[some]
            left = None if steps is None else steps[some]
            log_ps = [
                contrasts_log_p(columns, missing_code, part, categorical=kinds, steps=left)
                for part in looked.parts(way, target)
            ]
            neg_log10_p = np.array([strongest_of(log_p, shares[some])[0] for log_p in log_ps])
            if len(log_ps) > 1 << n_others:  # nothing may differ where the others are missing
                neg_log10_p[-1][np.isnan(log_ps[-1]).all(axis=1)] = np.nan
            reached = combined(neg_log10_p) - charges(np.array([way]))[some, 0]
            wins = reached > found.neg_log10_p[some]
            found.neg_log10_p[some[wins]] = reached[wins]
            found.others[some[wins]] = [*way, *[-1] * (MOST_OTHERS - n_others)]
    return found


def _charges(leads: Bools, costs: tuple[float, float], ways: Integers) -> Floats:
    """Return what each feature pays for each of some ways; float64 (n, n_ways)."""
    return np.where(leads[:, ways].all(axis=2), *costs)


def _without_missing(codes: Integers, missing_code: int) -> Integers:
    """Return codes in which those of missing values are the column's middle one of the others."""
    is_missing = codes >= missing_code
    if not is_missing.any():
        return codes
    out = codes.copy()
    for column, gone in zip(out, is_missing, strict=True):
        known = np.sort(column[~gone])
        column[gone] = known[len(known) // 2] if len(known) else 0
    return out
