"""Errors of p-values of categories from 1e-2 to 1e-8, by importance sampling given the margins.

    python benchmarks/research/category_tail.py [--seconds 6] [--seed 3000]

Each count, or sum of scores, in turn as the test takes them, tilted to both sides.
"""

import argparse
from itertools import pairwise
from time import monotonic
from typing import Any

import numpy as np
from category_tests import Array, merged, null_tables, p_values
from scipy import special, stats

FAR = (1e-2, 1e-4, 1e-6, 1e-8)
DESIGNS: tuple[tuple[Any, ...], ...] = (
    (100, 5, "2"),
    (100, 12, "2"),
    (400, 20, "2"),
    (400, 20, "2 (.1)"),
    (400, "100 falling", "2 (.1)"),
    (2000, 100, "2"),
    (400, 20, "5"),
    (400, 12, "20"),
    (400, 12, "normal"),
    (400, 12, "zeros"),
    (400, "20 falling", "zeros"),
    (400, 12, "2", 2),
    (400, 20, "2 (.1)", 10),
    (400, 12, "5", 10),
    (400, 12, "zeros", 10),
)


def log_ways(n: Array, k: Array) -> Array:
    """Return the logarithms of binomial coefficients; minus infinity where there is no way."""
    inside = (k >= 0) & (k <= n)
    safe = np.where(inside, k, 0)
    found = special.gammaln(n + 1) - special.gammaln(safe + 1) - special.gammaln(n - safe + 1)
    return np.where(inside, found, -np.inf)


def tilts(t: float) -> tuple[Array, Array]:
    """Return slopes and chances: tilted by one of them, a normal z is as if by exp(t z^2)."""
    slopes, chances = np.polynomial.hermite_e.hermegauss(7)
    chances = chances * np.exp(t * slopes**2)
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
            slope = rng.choice(slopes, size, p=mixture)[:, None, None]
            k = chosen(rng, np.exp(law + slope * z))
            total = np.take_along_axis(z, k[:, :, None], axis=2).sum(axis=(1, 2))
            tilted = np.log(mixture) + np.outer(total, slopes) - np.stack(sums, axis=1)
            log_w -= special.logsumexp(tilted, axis=1)
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


def tail_line(seed: int, seconds: float, design: tuple[Any, ...]) -> str:
    """Return a line of the second table: errors of p-values in percent, beside their 2 SE."""
    rng, size, cells = np.random.default_rng(seed), 500, []
    columns, target, labels, where = null_tables(rng, 1, *design)
    codes, strata = merged(columns[0]), np.arange(where.max() + 1)
    places = np.argsort(target.order)[labels] if target.nominal else labels
    levels = np.stack([np.bincount(codes[where == h], minlength=codes.max() + 1) for h in strata])
    classes = np.stack([np.bincount(places[where == h], minlength=max(places) + 1) for h in strata])
    every, by_class = np.arange(levels.shape[1]), np.lexsort((places, where))
    own = [target.targets[i:j] for i, j in pairwise(target.starts)]
    scores = [target.scores[x] if len(target.scores) else stats.rankdata(x) for x in own]
    n_parts = (levels.shape[1] - 1) * max(1, classes.shape[1] - 1)
    for bar in FAR:
        t = max(0.01, 0.5 - 0.5 * n_parts / stats.chi2.isf(bar, n_parts))
        found, log_w, start = np.zeros(0), np.zeros(0), monotonic()
        while monotonic() - start < seconds:
            columns = np.zeros((size, design[0]), np.uint8)
            if target.nominal:
                tables, more = class_paths(rng, classes, levels, t, size)
                dealt = np.repeat(np.tile(every, tables.size // len(every)), tables.ravel())
                columns[:, by_class] = dealt.reshape(size, -1)
            else:
                ways, more = number_paths(rng, scores, levels, t, size)
                for h, (i, j) in enumerate(pairwise(target.starts)):
                    codes = np.repeat(every, levels[h])[None].astype(np.uint8)
                    np.put_along_axis(columns, target.rows[i:j][ways[h]], codes, axis=1)
            found = np.append(found, p_values(columns, target, exactly=True))
            log_w = np.append(log_w, more)
        passed = found <= bar * (1 + 1e-9)
        kept = np.where(passed, np.exp(log_w), 0)
        exact, se = kept.mean(), kept.std() / np.sqrt(len(kept)) / max(kept.mean(), 1e-300)
        error = 100 * (found[passed].max(initial=0) / max(exact, 1e-300) - 1)
        cells.append(f"{error:+.0f} ± {200 * se:.0f}")
    return " | ".join(["", *map(str, design), *cells, ""]).strip()


def main() -> None:
    """Print a line for each design."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=6.0, help="of each p-value")
    parser.add_argument("--seed", type=int, default=3000)
    given = parser.parse_args()
    for design in DESIGNS:
        print(tail_line(given.seed, given.seconds, design), flush=True)


if __name__ == "__main__":
    main()
