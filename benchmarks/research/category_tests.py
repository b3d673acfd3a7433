"""Tests of categories hold their level, also where expected counts are small.

    python benchmarks/research/category_tests.py [--columns 40000] [--seed 3000]

P(p <= t) / t over columns that know nothing of the target, as tested by default; where a count of
less than 5 is expected, also of the exact conditional test of Freeman and Halton (1951).
"""

import argparse
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from srs_ooc.evidence.rank_tests import MOST_LEVELS, RARE_LEVEL, TARGET_LEVELS, RankTarget
from srs_ooc.native import _native

Array = NDArray[Any]
BARS = (0.05, 0.01, 0.001)


def p_values(columns: Array, target: RankTarget, *, exactly: bool = False) -> Array:
    """Return the p-values of columns of categories, (n,); NaN where none is tested."""
    log_p = np.full((len(columns), 3), np.nan)
    most = max(TARGET_LEVELS, len(target.scores))
    limits = np.arange(len(columns)), RARE_LEVEL, MOST_LEVELS, most
    _native.level_tests(columns, 254, target.native, None, exactly, *limits, log_p)
    return np.asarray(np.exp(log_p[:, 0]))


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
    k = int(target.split(maxsplit=1)[0])
    labels = rng.permutation(n) % k
    if strata > 1:
        labels = np.where(rng.random(n) < where / strata / 2, 0, labels)
    if ".1" in target:
        labels = (rng.permutation(n) < n / 10).astype(int)
    tested = RankTarget.of_classes(labels, k, asked)
    labels[tested.rows] = tested.targets
    return columns, tested, labels, where


def merged(column: Array) -> Array:
    """Return the levels of a column, rare ones taken together; those of the fewest rows first."""
    sizes = np.bincount(column)
    levels = np.where((sizes < RARE_LEVEL)[column], 255, column)
    sizes = np.bincount(levels, minlength=256)
    places = np.argsort(np.argsort(np.where(sizes > 0, sizes, 10**9), kind="stable"))
    return np.asarray(places[levels])


def freeman_halton(rng: np.random.Generator, column: Array, labels: Array, where: Array) -> Array:
    """Return the attained levels at the first two bars, by 20,000 tables of the same margins."""
    levels = merged(column)
    shape = where.max() + 1, labels.max() + 1, levels.max() + 1
    base, n_cells = (where * shape[1] + labels) * shape[2], int(np.prod(shape))
    log_p = np.zeros(20000)
    for i in range(0, len(log_p), 2000):
        traded = np.tile(levels, (2000, 1))
        for rows in (where == h for h in range(shape[0])):
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
            smallest = np.bincount(labels)[np.unique(labels)].min() / len(labels)
            expected += [np.bincount(merged(own)).min() * smallest for own in columns[:20]]
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


def main() -> None:
    """Print a line for each design."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--columns", type=int, default=40000)
    parser.add_argument("--seed", type=int, default=3000)
    given = parser.parse_args()
    for design in level_designs():
        print(level_line(given.seed, given.columns, design), flush=True)


if __name__ == "__main__":
    main()
