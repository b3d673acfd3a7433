"""Tests of categories hold their level, also where expected counts are small and far in the tail.

    python benchmarks/research/category_tests.py level [--columns 40000] [--seed 3000] [--only TEXT]
    python benchmarks/research/category_tests.py tail [--paths 20000] [--seed 3000] [--only TEXT]

``level``: P(p <= t) / t over columns that know nothing of the target, as tested by default; where a
count of less than 5 is expected, also of the exact conditional test of Freeman and Halton (1951).
``tail``: the error of p-values, by importance sampling given the margins.
"""

import argparse
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from srs_ooc.native import _native
from srs_ooc.evidence.rank_tests import MOST_LEVELS, RARE_LEVEL, TARGET_LEVELS, RankTarget

Array = NDArray[Any]
BARS = (0.05, 0.01, 0.001)
FAR = 10.0 ** -np.arange(2, 9)


def p_values(columns: Array, target: RankTarget, *, exactly: bool = False) -> Array:
    """Return the p-values of columns of categories, (n,); NaN where none is tested."""
    log_p = np.full((len(columns), 3), np.nan)
    most = max(TARGET_LEVELS, len(target.scores))
    limits = np.arange(len(columns)), RARE_LEVEL, MOST_LEVELS, most
    _native.level_tests(columns, 254, target.native, None, exactly, *limits, log_p)
    return np.exp(log_p[:, 0])


def level_designs() -> Iterator[dict[str, Any]]:
    """Yield what :func:`null_tables` takes."""
    values = (5, 12, 20, 100, "20 falling", "100 falling")
    kinds = ("2", "2 (.1)", "5", "20", "normal", "zeros")
    for n in (100, 400, 2000):
        for kind, v in product(kinds, values):
            if (n, v) != (100, 100):  # all rare
                yield {"n": n, "values": v, "target": kind}
        for strata, kind, v in product((2, 10), ("2", "5", "normal"), (5, 20)):
            if n > 100:
                yield {"n": n, "values": v, "target": kind, "strata": strata}


def null_tables(
    rng: np.random.Generator, size: int, n: int, values: Any, target: str, strata: int = 1
) -> tuple[Array, RankTarget, Array, Array]:
    """Return columns that depend on strata alone, the target, its classes, and strata."""
    words = str(values).split()
    n_levels, where = int(words[0]), rng.permutation(n) % strata
    chances = 1 / np.arange(1, n_levels + 1) ** len(words[1:])
    # in the first strata the first categories are up to three times as frequent, as are classes
    tilt = 1 + 2 * np.linspace(1, 0, strata)[:, None] * (np.arange(n_levels) < n_levels / 2)
    tilted = chances * (tilt if strata > 1 else np.ones((1, 1)))
    bounds = np.cumsum(tilted / tilted.sum(axis=1, keepdims=True), axis=1)
    columns = np.zeros((size, n), np.uint8)
    for h in range(strata):
        drawn = rng.random((size, int((where == h).sum())))
        columns[:, where == h] = np.searchsorted(bounds[h, :-1], drawn)
    asked = where if strata > 1 else None
    if target in ("normal", "zeros"):
        numbers = rng.normal(size=n) + where / strata
        numbers *= (rng.random(n) > 0.7) if target == "zeros" else 1
        return columns, RankTarget.of_numbers(numbers, asked), np.zeros(n, int), where
    k = int(target.split()[0])
    labels = rng.permutation(n) % k
    if strata > 1:
        labels = np.where(rng.random(n) < where / strata / 2, 0, labels)
    if ".1" in target:
        labels = (rng.permutation(n) < n / 10).astype(int)
    tested = RankTarget.of_classes(labels, k, asked)
    labels[tested.rows] = tested.targets
    return columns, tested, labels, where


def merged(column: Array) -> Array:
    """Return the levels of a column, rare ones taken together; numbered from 0."""
    sizes = np.bincount(column)
    rare = sizes < RARE_LEVEL
    return np.unique(np.where(rare[column], 255, column), return_inverse=True)[1]


def fewest_expected(column: Array, labels: Array) -> float:
    """Return the smallest expected count of a level and a class."""
    classes = np.bincount(labels)
    return float(np.bincount(merged(column)).min() * classes[classes > 0].min() / len(labels))


def freeman_halton(rng: np.random.Generator, column: Array, labels: Array, where: Array) -> Array:
    """Return the attained levels at the first two bars, by 20,000 tables of the same margins."""
    levels = merged(column)
    n_cells = (where.max() + 1) * (labels.max() + 1) * (levels.max() + 1)
    base = (where * (labels.max() + 1) + labels) * (levels.max() + 1)
    kept, log_p = [np.flatnonzero(where == h) for h in range(where.max() + 1)], np.zeros(20000)
    for i in range(0, len(log_p), 2000):
        traded = np.tile(levels, (2000, 1))
        for rows in kept:
            traded[:, rows] = rng.permuted(traded[:, rows], axis=1)
        cells = base + traded + n_cells * np.arange(2000)[:, None]
        counts = np.bincount(cells.ravel(), minlength=2000 * n_cells).reshape(2000, -1)
        log_p[i : i + 2000] = -special.gammaln(np.arange(len(column) + 2))[counts + 1].sum(axis=1)
    _, ways = np.unique(np.round(log_p, 6), return_counts=True)
    reached = np.cumsum(ways) / len(log_p)
    return np.array([reached[reached <= bar].max(initial=0) / bar for bar in BARS[:2]])


def level_line(seed: int, n_columns: int, design: dict[str, Any]) -> str:
    """Return a line of the first table."""
    rng, size, found, expected, exact = np.random.default_rng(seed), 1000, [], [], []
    for i in range(n_columns // size):
        columns, target, labels, where = null_tables(rng, size, **design)
        p = p_values(columns, target)
        found.append([(p <= bar).sum() for bar in BARS] + [np.isfinite(p).sum()])
        if target.nominal:
            expected += [fewest_expected(column, labels) for column in columns[:20]]
            if i < min(20, 8000 // design["n"]) and np.median(expected) < 5:
                exact.append(freeman_halton(rng, columns[0], labels, where))
    *passed, tested = np.sum(found, axis=0)
    is_thick = bool(expected) and np.median(expected) >= 5
    cells = []
    for bar, count in zip(BARS, passed, strict=True):
        ratio = count / tested / bar
        se = np.sqrt((1 - bar) / bar / tested)
        above, below = ratio > 1.05 + 2 * se, is_thick and ratio < 0.8
        cells.append(f"{ratio:.2f}" + (" **above**" if above else " **below**" if below else ""))
    own = f"{np.median(expected):.2g}" if expected else ""
    of_exact = ", ".join(f"{x:.2f}" for x in np.mean(exact, axis=0)) if exact else ""
    words = design["n"], design["values"], design["target"], design.get("strata", 1)
    return " | ".join(["", *map(str, words), own, *cells, of_exact, ""]).strip()


TAIL_DESIGNS: tuple[dict[str, Any], ...] = (
    {"n": 100, "values": 5, "target": "2"},
    {"n": 100, "values": 12, "target": "2"},
    {"n": 400, "values": 20, "target": "2"},
    {"n": 400, "values": 20, "target": "2 (.1)"},
    {"n": 400, "values": "100 falling", "target": "2 (.1)"},
    {"n": 2000, "values": 100, "target": "2"},
    {"n": 400, "values": 20, "target": "5"},
    {"n": 400, "values": 12, "target": "20"},
    {"n": 400, "values": 12, "target": "normal"},
    {"n": 400, "values": 12, "target": "zeros"},
    {"n": 400, "values": "20 falling", "target": "zeros"},
    {"n": 400, "values": 12, "target": "2", "strata": 2},
    {"n": 400, "values": 20, "target": "2 (.1)", "strata": 10},
    {"n": 400, "values": 12, "target": "5", "strata": 10},
    {"n": 400, "values": 12, "target": "zeros", "strata": 10},
)


def log_ways(n: Array, k: Array) -> Array:
    """Return the logarithms of binomial coefficients; minus infinity where there is no way."""
    inside = (k >= 0) & (k <= n)
    safe = np.where(inside, k, 0)
    found = special.gammaln(n + 1) - special.gammaln(safe + 1) - special.gammaln(n - safe + 1)
    return np.where(inside, found, -np.inf)


def tilts(t: float) -> tuple[Array, Array]:
    """Return slopes and chances: the mean of exp(slope z) is near exp(t z^2)."""
    slopes, chances = np.polynomial.hermite_e.hermegauss(7)
    return slopes * np.sqrt(2 * t), chances / chances.sum()


def chosen(rng: np.random.Generator, chances: Array) -> Array:
    """Return a number from 0 for each row, drawn by (..., n) weights of the numbers."""
    below = np.cumsum(chances, axis=-1)
    at = rng.random(below.shape[:-1])[..., None] * below[..., -1:]
    return np.asarray((below <= at).sum(axis=-1))


def class_paths(
    rng: np.random.Generator, classes: Array, levels: Array, t: float, size: int
) -> tuple[Array, Array]:
    """Draw tables of these margins, (strata, classes or levels), each count tilted; log weights.

    Class by class and level by level, as the parts of the test are.
    """
    slopes, mixture = tilts(t)
    left, log_w = np.tile(levels, (size, 1, 1)), np.zeros(size)
    tables = np.zeros((size, *classes.shape, levels.shape[1]), np.int64)
    for c in range(classes.shape[1] - 1):
        m = np.tile(classes[:, c], (size, 1))
        for i in range(levels.shape[1]):
            n, k = left[:, :, i:].sum(axis=2), left[:, :, i]
            spread = m * (n - m) * k * (n - k) / np.maximum(n**2 * (n - 1), 1)
            sd = np.maximum(np.sqrt(spread.sum(axis=1)), 1e-9)[:, None, None]
            at = np.arange(int(np.minimum(m, k).max()) + 1)
            z = (at - (m * k / np.maximum(n, 1))[:, :, None]) / sd
            z[spread == 0] = 0
            many, of_level = m[:, :, None], k[:, :, None]
            law = log_ways(of_level, at + 0 * of_level)
            law = law + log_ways(n[:, :, None] - of_level, many - at) - log_ways(n, m)[:, :, None]
            sums = [np.log(np.exp(law + s * z).sum(axis=2)).sum(axis=1) for s in slopes]
            weights = mixture * np.exp(np.stack(sums, axis=1))
            slope = slopes[chosen(rng, weights)][:, None, None]
            k = chosen(rng, np.exp(law + slope * z))
            total = np.take_along_axis(z, k[:, :, None], axis=2).sum(axis=(1, 2))
            log_w += np.log(weights.sum(axis=1)) - np.log(np.exp(np.outer(total, slopes)) @ mixture)
            tables[:, :, c, i], m = k, m - k
        left -= tables[:, :, c]
    tables[:, :, -1] = left
    return tables, log_w


def number_paths(
    rng: np.random.Generator, scores: list[Array], levels: Array, t: float, size: int
) -> tuple[list[Array], Array]:
    """Deal the rows of each stratum to its levels in turn, (strata, levels), higher scores first.

    Or lower ones first. Returns the rows in the order in which they were dealt; log weights.
    """
    slopes, mixture = tilts(t)
    mixture = mixture * np.exp(slopes**2 / 2) / np.sum(mixture * np.exp(slopes**2 / 2))
    dealt = [np.tile(np.arange(len(own)), (size, 1)) for own in scores]
    starts, log_w = np.zeros(len(scores), int), np.zeros(size)
    for of_level in levels.T[:-1]:
        left = [s[d[:, i:]] for s, d, i in zip(scores, dealt, starts, strict=True)]
        left = [own - own.mean(axis=1, keepdims=True) for own in left]
        spread = sum(
            own.var(axis=1) * m * (own.shape[1] - m) / max(own.shape[1] - 1, 1)
            for own, m in zip(left, of_level, strict=True)
        )
        sd = np.sqrt(np.maximum(spread, 1e-12))[:, None]
        slope = rng.choice(slopes, size, p=mixture)[:, None]
        log_q = np.tile(np.log(mixture), (size, 1))
        for h, (own, m) in enumerate(zip(left, of_level, strict=True)):
            order = np.argsort(-slope * own / sd - rng.gumbel(size=own.shape), axis=1)
            dealt[h][:, starts[h] :] = np.take_along_axis(dealt[h][:, starts[h] :], order, axis=1)
            scaled = np.take_along_axis(own, order, axis=1) / sd
            for g, s in enumerate(slopes):
                rest = np.cumsum(np.exp(s * scaled[:, ::-1]), axis=1)[:, ::-1]
                log_q[:, g] += (s * scaled[:, :m] - np.log(rest[:, :m])).sum(axis=1)
            log_w -= np.log(own.shape[1] - np.arange(m)).sum()
        log_w -= special.logsumexp(log_q, axis=1)
        starts = starts + of_level
    return dealt, log_w


def tail_line(seed: int, n_paths: int, design: dict[str, Any]) -> str:
    """Return a line of the second table: errors of p-values in percent, beside their 2 SE."""
    rng, size, cells = np.random.default_rng(seed), 1000, []
    columns, target, labels, where = null_tables(rng, 1, **design)
    codes = merged(columns[0])
    codes = np.argsort(np.argsort(np.bincount(codes), kind="stable"))[codes]
    n_strata = where.max() + 1
    levels = np.stack([np.bincount(codes[where == h], minlength=codes.max() + 1) for h in range(n_strata)])
    places = np.argsort(target.order)[labels] if target.nominal else labels
    classes = np.stack([np.bincount(places[where == h], minlength=places.max() + 1) for h in range(n_strata)])
    by_class = np.lexsort((places, where))
    values = target.scores[target.targets] if len(target.scores) else target.targets
    scores = [stats.rankdata(values[i:j]) if not len(target.scores) else values[i:j] for i, j in zip(target.starts, target.starts[1:])]
    n_parts = (levels.shape[1] - 1) * max(1, classes.shape[1] - 1)
    for bar in FAR:
        t = max(0.01, 0.5 - 0.5 * n_parts / stats.chi2.isf(bar, n_parts))
        found, log_w = np.zeros(0), np.zeros(0)
        while len(found) < n_paths:
            columns = np.zeros((size, design["n"]), np.uint8)
            if target.nominal:
                tables, own = class_paths(rng, classes, levels, t, size)
                every = np.tile(np.arange(levels.shape[1]), tables.size // levels.shape[1])
                columns[:, by_class] = np.repeat(every, tables.ravel()).reshape(size, -1)
            else:
                dealt, own = number_paths(rng, scores, levels, t, size)
                for h, rows in enumerate(dealt):
                    at = target.rows[target.starts[h] : target.starts[h + 1]][rows]
                    np.put_along_axis(columns, at, np.repeat(np.arange(levels.shape[1]), levels[h])[None].astype(np.uint8), axis=1)
            found = np.append(found, p_values(columns, target, exactly=True))
            log_w = np.append(log_w, own)
        passed = found <= bar * (1 + 1e-9)
        if not passed.any():
            cells.append("none")
            continue
        kept = np.where(passed, np.exp(log_w), 0)
        exact, se = kept.mean(), kept.std() / np.sqrt(len(kept)) / kept.mean()
        cells.append(f"{100 * (found[passed].max() / exact - 1):+.0f} ± {200 * se:.0f}")
    words = design["n"], design["values"], design["target"], design.get("strata", 1)
    return " | ".join(["", *map(str, words), *cells, ""]).strip()


def main() -> None:
    """Print a line for each design."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", choices=("level", "tail"))
    parser.add_argument("--columns", type=int, default=40000)
    parser.add_argument("--seed", type=int, default=3000)
    parser.add_argument("--paths", type=int, default=20000)
    given = parser.parse_args()
    if given.table == "tail":
        for design in TAIL_DESIGNS:
            print(tail_line(given.seed, given.paths, design), flush=True)
        return
    for design in level_designs():
        print(level_line(given.seed, given.columns, design), flush=True)


if __name__ == "__main__":
    main()
