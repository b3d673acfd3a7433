"""What the native rank tests compute, in whole numbers and fractions: for small tables.

A column and a target are crossed: rows of each level of the column (midranks are its scores) by
those of each level of the target. Given the margins, and with rows trading places within strata
only, all assignments are equally likely. The p-value is the probability that the sum of products of
scores is at least as far from its mean as it is, on either side."""

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from math import factorial, gcd, prod

import numpy as np
from hypothesis import strategies as st
from joint_reference import joint_p
from scipy import stats

from srs_ooc.evidence.rank_tests import MOST_LEVELS as MOST_COLUMN_LEVELS
from srs_ooc.evidence.rank_tests import (
    RARE_LEVEL,
    TARGET_LEVELS,
    Contrast,
    RankTarget,
    contrasts_log_p,
    strongest_contrasts,
)

GRID = 64
"""Scores are whole numbers up to it."""
COARSE_GRID, COARSE_ROWS, COARSE_LEVELS = 16, 64, 16
"""Scores of at most so many levels of more than so many rows."""
MOST_LEVELS = 32
"""Levels of a column beside a target of more than two levels."""

TINY_STRATUM = 10
"""Where no stratum has more rows, ranks are aligned."""
SHARES = (Fraction(3, 5), Fraction(1, 5), Fraction(1, 5))
"""Of the level: location, spread, what is missing."""

Table = Sequence[Sequence[int]]
"""Rows by level of the column, then by level of the target."""


def rank_scores(counts, *, in_strata):
    """Return the scores of levels with so many rows each, by their midranks."""
    return grid_scores(_double_midranks(counts), sum(counts), in_strata=in_strata)


def _double_midranks(counts):
    below, twice = 0, []
    for count in counts:
        twice.append(2 * below + count + 1)
        below += count
    return twice


def grid_scores(twice, n, *, in_strata):
    """Return ascending scores of ``n`` rows as the tests have them.

    In the smallest whole numbers that keep their differences in proportion, or rounded to
    ``0 .. GRID`` (of few levels ``COARSE_GRID``) where those are larger. In strata half of them
    over the rows and one, times ``GRID``.
    """
    if in_strata:
        return [(s * GRID + n + 1) // (2 * (n + 1)) for s in twice]
    scores = [s - twice[0] for s in twice]
    most = scores[-1] or 1
    grid = most // (gcd(*scores) or 1)
    if n > COARSE_ROWS and len(scores) <= COARSE_LEVELS:
        grid = min(grid, _coarse_grid(scores, most))
    return [_on_grid(s, most, min(grid, GRID)) for s in scores]


def fold(table, *, in_strata):
    """Return the table by distance from the middle, nearest first, and the scores of its levels.

    Distances are those of midranks; levels of equal ones are put together. None where they show
    nothing else than the levels do, in order or in reverse, or nothing at all.
    """
    rows = [list(row) for row in table if any(row)]
    n, distances = sum(map(sum, rows)), dict[int, list[int]]()
    if len(rows) < 3:
        return None
    apart = [2 * abs(s - (n + 1)) for s in _double_midranks([sum(row) for row in rows])]
    if apart.count(min(apart)) == 1 and min(apart) in (apart[0], apart[-1]):
        return None
    for distance, row in sorted(zip(apart, rows, strict=True), key=lambda pair: pair[0]):
        others = distances.get(distance, [0] * len(row))
        distances[distance] = [a + b for a, b in zip(others, row, strict=True)]
    return list(distances.values()), grid_scores(list(distances), n, in_strata=in_strata)


def aligned_scores(tables, codes):
    """Return the scores of the levels of tiny strata, whose codes are given.

    Hodges and Lehmann (1962): midranks over all rows, each less the mean of its stratum, rounded to
    the nearer whole half; of these the midranks over all rows of strata with two levels or more.
    """
    counts = [[sum(row) for row in table] for table in tables]
    by_code = Counter[int]()
    for own, of in zip(counts, codes, strict=True):
        by_code.update(dict(zip(of, own, strict=True)))
    order = sorted(by_code)
    rank = dict(zip(order, _double_midranks([by_code[code] for code in order]), strict=True))
    apart: list[list[int]] = []
    for own, of in zip(counts, codes, strict=True):
        n, total = sum(own), sum(c * rank[code] for c, code in zip(own, of, strict=True))
        apart.append([_toward_zero(n * rank[code] - total, n) for code in of])
    ranked = Counter[int]()
    for own, from_mean in zip(counts, apart, strict=True):
        for count, distance in zip(own, from_mean, strict=True):
            ranked[distance] += count if len(own) > 1 else 0
    places = sorted(ranked)
    scores = grid_scores(
        _double_midranks([ranked[d] for d in places]), ranked.total(), in_strata=True
    )
    of_distance = dict(zip(places, scores, strict=True))
    return [[of_distance[d] for d in from_mean] for from_mean in apart]


def _toward_zero(a, b):
    return abs(a) // b * (1 if a > 0 else -1)


def joined(p_values):
    """Return one p-value of those of the contrasts, None where the margins leave one out."""
    there = [(p, share) for p, share in zip(p_values, SHARES, strict=True) if p is not None]
    total = sum((share for _, share in there), Fraction(0))
    return min([Fraction(1), *(p * total / share for p, share in there)])


def _on_grid(score, most, grid):
    return (2 * score * grid + most) // (2 * most)


def _coarse_grid(scores, most):
    """Return the fewest steps whose grid has every score within a fiftieth of the whole."""
    for grid in range(1, COARSE_GRID):
        if all(abs(s * grid - _on_grid(s, most, grid) * most) * 50 <= most * grid for s in scores):
            return grid
    return COARSE_GRID


def level_scores(counts, *, in_strata):
    """Return the scores of a column, or of a target with levels, in a regression.

    Where the most common level has half (three quarters) of the rows, ranks counted from its
    midrank, rounded to eighths (fourths) of the rows.
    """
    n, common = sum(counts), max(counts)
    units = 4 if 4 * common >= 3 * n else 8 if 2 * common >= n else 0
    if not units:
        return rank_scores(counts, in_strata=in_strata)
    twice = [2 * sum(counts[:i]) + count + 1 for i, count in enumerate(counts)]
    origin, step = twice[list(counts).index(common)], GRID // units if in_strata else 1
    rounded = [(abs(s - origin) * units + n) // (2 * n) for s in twice]
    signs = [-1 if s < origin else 1 for s in twice]
    return [step * (units + sign * r) for sign, r in zip(signs, rounded, strict=True)]


def compact(table, most=0):
    """Return the table without empty levels; ``most`` levels at most, neighbours put together."""
    kept = [k for k in range(len(table[0])) if any(row[k] for row in table)]
    rows = [[row[k] for k in kept] for row in table if any(row)]
    if not most or len(rows) <= most:
        return rows
    n, below, bins = sum(map(sum, rows)), 0, dict[int, list[int]]()
    for row in rows:
        own = (2 * below + sum(row)) * most // (2 * n)
        below += sum(row)
        bins[own] = [a + b for a, b in zip(bins.get(own, [0] * len(row)), row, strict=True)]
    return list(bins.values())


def linear_p_value(tables, *, two_classes, in_strata=None, scores=None):
    """Return the p-value of the sum of products of scores over strata.

    Parameters
    ----------
    tables : sequence of tables
        One for each stratum.
    two_classes : bool
        Whether the target's scores are 0 and 1, and the column's levels as many as there are.
    in_strata : bool, optional
        Whether scores are those in strata; by default if there are several.
    scores : sequence of sequences of int, optional
        Of the levels of each table, none of which is empty; by default by rank.
    """
    several = len(tables) > 1 if in_strata is None else in_strata
    law, observed, mean = {0: Fraction(1)}, 0, Fraction(0)
    for i, table in enumerate(tables):
        rows = compact(table, 0 if two_classes else MOST_LEVELS)
        if len(rows) < 2 or len(rows[0]) < 2:
            continue
        score = rank_scores if two_classes else level_scores
        x = score([sum(row) for row in rows], in_strata=several) if scores is None else scores[i]
        y = score([sum(column) for column in zip(*rows, strict=True)], in_strata=several)
        y = [0, 1] if two_classes else y
        observed += sum(c * x[i] * y[k] for i, row in enumerate(rows) for k, c in enumerate(row))
        own = _law(rows, x, y)
        mean += sum((p * s for s, p in own.items()), Fraction(0))
        law = _convolved(law, own)
    distance = abs(observed - mean)
    return sum((p for s, p in law.items() if abs(s - mean) >= distance), Fraction(0))


def _convolved(a, b):
    out = Counter[int]()
    for s, p in a.items():
        for t, q in b.items():
            out[s + t] += p * q
    return dict(out)


def _law(rows, x, y):
    """Return the null distribution of the sum, level by level of the column."""
    sizes = tuple(sum(column) for column in zip(*rows, strict=True))
    states: Counter[tuple[tuple[int, ...], int]] = Counter({(sizes, 0): 1})
    for row, score in zip(rows, x, strict=True):
        after: Counter[tuple[tuple[int, ...], int]] = Counter()
        for (left, total), ways in states.items():
            for taken in _shares(sum(row), left):
                rest = tuple(a - b for a, b in zip(left, taken, strict=True))
                own = factorial(sum(row)) // prod(map(factorial, taken))
                gained = score * sum(t * s for t, s in zip(taken, y, strict=True))
                after[rest, total + gained] += ways * own
        states = after
    every = factorial(sum(sizes)) // prod(map(factorial, sizes))
    return {total: Fraction(ways, every) for (_, total), ways in states.items()}


def _shares(count, left):
    """Yield all ways in which ``count`` rows can be taken from what is left of each level."""
    if len(left) == 1:
        if count <= left[0]:
            yield (count,)
        return
    for first in range(min(count, left[0]) + 1):
        for others in _shares(count - first, left[1:]):
            yield (first, *others)


MISSING = 255


def neg_log10_p(columns, missing_code, target, **given):
    """How strong the test of each column is."""
    return strongest_contrasts(columns, missing_code, target, **given)[0]


def joined_p_values(columns, target, **given):
    """Of all contrasts together."""
    columns = np.ascontiguousarray(np.atleast_2d(columns).astype(np.uint8))
    return 10.0 ** -neg_log10_p(columns, MISSING, target, **({"exactly": True} | given))


def p_values(columns, target, **given):
    """Of location alone."""
    return joined_p_values(columns, target, **({"only": Contrast.LOCATION} | given))


def strata_of(column, target):
    """The rows of each stratum: codes, missing ones included, and targets."""
    for start, stop in zip(target.starts[:-1], target.starts[1:], strict=True):
        yield column[target.rows[start:stop]], target.targets[start:stop]


def crossed(column, target):
    """The crossed strata that the reference takes, without empty levels, and the levels' codes."""
    tables, codes = [], []
    for own, to in strata_of(column, target):
        present = np.unique(own[own < MISSING])
        table = np.zeros((len(present), target.n_targets), int)
        there = own < MISSING
        np.add.at(table, (np.searchsorted(present, own[there]), to[there]), 1)
        if table.any():
            tables.append(table.tolist())
            codes.append(present.tolist())
    return tables, codes


def location_scores(column, target):
    """Scores of the levels, or None where they are by rank."""
    sizes = np.diff(target.starts)
    if len(sizes) < 2 or sizes.max() > TINY_STRATUM:
        return None
    return aligned_scores(*crossed(column, target))


def location_p(column, target, *, two_classes):
    """The p-value of location as the reference has it."""
    tables, scores = crossed(column, target)[0], location_scores(column, target)
    if not tables:
        return 1.0
    several = len(target.starts) > 2
    linear = float(
        linear_p_value(tables, two_classes=two_classes, in_strata=several, scores=scores)
    )
    if not is_of_three_levels(tables, target):
        return linear
    return of_two(linear, joint_p(np.array(tables).swapaxes(1, 2)[:, target.order]), 0.65)


def is_of_three_levels(tables, target):
    """Whether the joint test stands beside that of location, in place of spread."""
    return (
        target.nominal and target.n_targets == 2 and len(target.starts) == 2 and len(tables[0]) == 3
    )


def of_two(p, q, share):
    """Return the p-value of two independent tests by their harmonic mean."""
    h = 1 / (share / p + (1 - share) / q)
    product = share * (1 - share)
    return min(1, h + product * h**2 * np.log((1 / h - share) * (1 / h - 1 + share) / product))


@st.composite
def small_tables(draw, n_targets, most_rows=18):
    """A column, a target, strata or None."""
    n = draw(st.integers(4, most_rows))
    n_levels = draw(st.integers(2, 5))
    codes = st.sampled_from([*range(n_levels), MISSING, 0, 0])
    column = np.array([draw(codes) for _ in range(n)])
    target = np.array([draw(st.integers(0, n_targets - 1)) for _ in range(n)])
    strata = np.array([draw(st.integers(0, draw(st.integers(0, 2)))) for _ in range(n)])
    return column, target, strata if strata.any() else None


def null_tables(name, rng):
    """Many columns that nothing relates to their target."""
    if name == "rare":
        labels = (np.arange(800) < 80).astype(int)
        share = rng.uniform(0.01, 0.03, 20_000)[:, None]
        return (rng.random((20_000, 800)) < share).astype(int), RankTarget.of_classes(labels, 2)
    if name == "counts":
        labels = (np.arange(100) < 10).astype(int)
        return rng.poisson(0.15, (40_000, 100)), RankTarget.of_classes(labels, 2)
    if name == "zero-inflated":
        target = np.where(rng.random(400) < 0.9, 0, rng.random(400))
        share = rng.uniform(0.01, 0.05, 20_000)[:, None]
        return rng.poisson(share, (20_000, 400)), RankTarget.of_values(target)
    if name == "genotypes":
        labels = np.repeat(np.arange(5), [200, 100, 60, 24, 16])
        share = rng.uniform(0.01, 0.4, 20_000)[:, None]
        return rng.binomial(2, share, (20_000, 400)), RankTarget.of_classes(labels, 5)
    strata = np.arange(400) % 20
    target = rng.integers(0, 40, 400).astype(float)
    share = rng.uniform(0.01, 0.3, 20_000)[:, None]
    return rng.binomial(2, share, (20_000, 400)), RankTarget.of_values(target, strata)


def weights_of_sums(counts, scores, n_drawn):
    """Weights of the sums of ``n_drawn`` rows: a convolution of positive numbers, row by row."""
    weights = np.zeros((n_drawn + 1, max(scores) * n_drawn + 1))
    weights[0, 0] = 1
    for count, score in zip(counts, scores, strict=True):
        for _ in range(count):
            weights[1:, score:] += weights[:-1, : weights.shape[1] - score].copy()
        weights /= weights.max()
    return weights[n_drawn] / weights[n_drawn].sum()


def levels_p(column, n_codes, target):
    """Whether the levels of a column, which have no order, differ in the target; None if untested.

    Classes by one joint test. Else the two change sides: the target is a column, and levels are
    classes, one after the other compared with those after it; normal scores squared are added.
    NaN where no test here stands for one of these.
    """
    codes = np.where(column[target.rows] < n_codes, column[target.rows], n_codes).astype(int)
    sizes = np.bincount(codes, minlength=n_codes + 1)[:n_codes]
    is_rare = (sizes > 0) & (sizes < RARE_LEVEL)
    levels = np.where(sizes >= RARE_LEVEL, np.cumsum(sizes >= RARE_LEVEL) - 1 + is_rare.any(), 0)
    n_levels = int(is_rare.any()) + int(np.count_nonzero(sizes >= RARE_LEVEL))
    if np.count_nonzero(sizes) < 3 or not 1 < n_levels <= MOST_COLUMN_LEVELS:
        return None
    own = np.append(levels, n_levels)[codes]
    order = np.argsort(np.bincount(own, minlength=n_levels)[:n_levels], kind="stable")
    if target.nominal:
        strata = np.repeat(np.arange(len(target.starts) - 1), np.diff(target.starts))
        crossed = np.zeros((len(target.starts) - 1, target.n_targets, n_levels + 1), int)
        np.add.at(crossed, (strata, target.targets, own), 1)
        return joint_p(crossed[:, target.order][:, :, order])
    values = np.unique(target.targets[own < n_levels])
    if len(values) == 2 and len(target.starts) == 2 and n_levels > 2:
        counts = [np.sum((own == k) & (target.targets == v)) for k in order for v in values]
        return joint_p(np.array(counts).reshape(1, n_levels, 2))
    answers, squares, n_tests = np.zeros((1, len(column)), np.uint8), 0.0, 0
    answers[0, target.rows] = target.targets
    for place, level in enumerate(order[:-1].tolist()):
        is_left = np.zeros(len(column), np.bool_)
        is_left[target.rows] = np.isin(own, order[place:])
        against = target._replace(
            targets=(own == level).astype(np.int32),
            n_targets=2,
            nominal=True,
            order=np.arange(2, dtype=np.int32),
            scores=np.zeros(0, np.int64),
        ).within(is_left)
        if (
            len(target.starts) == 2
            and len(np.unique(target.targets[np.isin(own, order[place:])])) == 3
        ):
            return np.nan  # as a column it would have the test of three levels
        log_p = contrasts_log_p(
            answers, TARGET_LEVELS, against, exactly=True, only=Contrast.LOCATION
        )[0, Contrast.LOCATION]
        squares += stats.norm.isf(np.exp(min(log_p, 0.0)) / 2) ** 2 if log_p < 0 else 0.0
        n_tests += 1
    return stats.chi2.sf(squares, n_tests)
