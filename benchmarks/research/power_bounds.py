"""What any one test for several alternatives loses, and how two tests of classes share a level.

``bounds``: for any weights the likelihood ratio of a mixture of alternatives has the largest mean
power, so some alternative loses at least what the mean does. In the normal limit, both signs, at
p = .003, each alternative found in .6 by its own test; the weights with the largest mean loss.
``classes``: 15 of 300 features differ, in one class of k or in all; Benjamini and Hochberg at .1.

    python benchmarks/research/power_bounds.py [bounds] [classes] [--tables 20] [--seed 0]
"""

import argparse
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, stats

from srs_ooc.evidence import rank_tests

Values = NDArray[np.float64]
P, RELEVANT, LEVEL, ALPHA = 300, 15, 0.1, 0.003
DISTANCE = 3.2
"""Of a relevant feature by the test that fits, in standard deviations: found in about .6."""
CODINGS = {"additive": (0, 1, 2), "dominant": (0, 1, 1), "recessive": (0, 0, 1)}
OF_JOINT = (0.9, 0.8, 0.7, 0.6, 0.5, 0.3)
"""Shares of the level that the joint test of all classes may have."""


def directions(shares: Values, codings: Any) -> Values:
    """Return unit vectors of scores of classes with these shares, (n, k), less their mean."""
    scores = np.asarray([list(c) for c in codings], np.float64)
    out = (scores - scores @ shares[:, None]) * np.sqrt(shares)
    return np.asarray(out / np.maximum(np.linalg.norm(out, axis=1), 1e-9)[:, None])


def bounds() -> None:
    """Print the mean loss of the best test, that of the joint test, and losses by weights."""
    print("alternatives | mean loss at least | joint test | weight of the first: loss of each kind")
    for maf in (0.1, 0.25, 0.4, 0.5):
        shares = np.array([(1 - maf) ** 2, 2 * maf * (1 - maf), maf**2])
        name = f"{', '.join(CODINGS)}, MAF {maf}"
        print_bound(name, directions(shares, CODINGS.values()), (0.2, 0.33, 0.5, 0.6, 0.7, 0.8))
    for k in (3, 4, 5, 12):
        one = directions(np.full(k, 1 / k), np.eye(k))
        trend = directions(np.full(k, 1 / k), [range(k)])
        print_bound(f"one of {k} classes", one, (1 / k,))
        print_bound(f"trend, one of {k} classes", np.vstack([trend, one]), (0.2, 0.33, 0.5, 0.7))


def print_bound(name: str, units: Values, firsts: tuple[float, ...]) -> None:
    """Print what mixtures of these directions lose; all but the first have like weights."""
    null, n = np.random.default_rng(0).normal(size=(200_000, units.shape[1])), len(units)
    best = stats.norm.sf(stats.norm.isf(ALPHA / 2) - DISTANCE)
    ratios = [
        np.cosh(DISTANCE * x @ units.T)
        for x in (null, *(null[:50_000] + DISTANCE * u for u in units))
    ]
    said, most = [], 0.0
    for first in firsts:
        weights = np.array([first, *[(1 - first) / (n - 1)] * (n - 1)])
        bar = np.quantile(ratios[0] @ weights, 1 - ALPHA)
        losses = [best - np.mean(ratio @ weights > bar) for ratio in ratios[1:]]
        most = max(most, float(weights @ losses))
        said.append(f"{first:.2f}: " + ", ".join(f"{loss:.3f}" for loss in losses[:3]))
    free = units.shape[1] - 1
    joint = best - stats.ncx2.sf(stats.chi2.isf(ALPHA, free), free, DISTANCE**2)
    print(f"{name} | {most:.3f} | {joint:.3f} | {'; '.join(said)}", flush=True)


def found(p_values: Values, level: float = LEVEL) -> float:
    """Return the share of relevant features selected; the first are the relevant ones."""
    passing = stats.false_discovery_control(np.minimum(p_values, 1)) <= level
    return float(passing[:RELEVANT].mean())


def classes(tables: int, seed: int) -> None:
    """Print what joint test and one class against the rest find, by the share of the joint one."""
    for one_differs in (True, False):
        said = "one class differs" if one_differs else "all differ"
        print(
            f"\n{said} | fits | package | joint | {' | '.join(f'.{10 * s:.0f}' for s in OF_JOINT)}"
        )
        for k, n in product((3, 4, 12), (200, 1000)):
            found_by = [
                of_classes(np.random.default_rng([seed + i, k, one_differs, n]), k, n, one_differs)
                for i in range(tables)
            ]
            cells = " | ".join(f"{x:.2f}" for x in np.mean(found_by, axis=0))
            print(f"{k} classes, n {n} | {cells}", flush=True)


def of_classes(rng: np.random.Generator, k: int, n: int, one_differs: bool) -> list[float]:
    """Return what each test finds on one table of k classes."""
    target, means, size = np.arange(n) % k, np.zeros((P, k)), DISTANCE
    if one_differs:
        means[np.arange(RELEVANT), np.arange(RELEVANT) % k] = 1
    else:
        means[:RELEVANT] = rng.normal(size=(RELEVANT, k))
        bar = stats.chi2.isf(ALPHA, k - 1)
        power = stats.norm.sf(stats.norm.isf(ALPHA / 2) - DISTANCE)
        size = optimize.brentq(lambda d: stats.ncx2.sf(bar, k - 1, d * d) - power, 1, 20)
    means -= means.mean(axis=1)[:, None]
    means[:RELEVANT] *= size / np.sqrt(n / k * (means[:RELEVANT] ** 2).sum(axis=1))[:, None]
    ranks = stats.rankdata(rng.normal(size=(n, P)) + means[:, target].T, axis=0)
    counts = np.bincount(target, minlength=k)
    sums = np.stack([ranks[target == c].sum(axis=0) for c in range(k)], axis=1)
    z = (sums - counts * (n + 1) / 2) / np.sqrt(counts * n * (n + 1) / 12)
    joint = stats.chi2.sf((z**2).sum(axis=1), k - 1)
    each = 2 * stats.norm.sf(np.abs(z) / np.sqrt(1 - 1 / k))
    fits = each[np.arange(P), np.arange(P) % k] if one_differs else joint
    codes = np.ascontiguousarray(((ranks - 1) * 254 // n).T.astype(np.uint8))
    log_p = rank_tests.contrasts_log_p(codes, 255, rank_tests.RankTarget.of_classes(target, k))
    shared = [np.minimum(joint / s, k * each.min(axis=1) / (1 - s)) for s in OF_JOINT]
    return [found(p) for p in (fits, np.exp(log_p[:, 0]), joint, *shared)]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", default=["bounds", "classes"])
    parser.add_argument("--tables", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    if "bounds" in asked.parts:
        bounds()
    if "classes" in asked.parts:
        classes(asked.tables, asked.seed)
