"""How far the tests of one feature are from the simple test that fits, and which would be nearer.

Genotypes (additive, dominant, recessive), batches as strata, ordered and unordered classes: shares
of relevant features found among 300 of which 15 are relevant, at .1 by Benjamini and Hochberg.

    python benchmarks/research/simple_tests.py bounds genotypes strata classes --tables 20 --seed 0
"""

import argparse
from collections.abc import Callable
from functools import cache
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special, stats

from srs_ooc.evidence import rank_tests

Values = NDArray[np.float64]
P, RELEVANT, LEVEL = 300, 15, 0.1
SHARES = rank_tests.FIRST_SHARES / rank_tests.FIRST_SHARES.sum()
CODINGS = {
    "additive": (0, 1, 2),
    "dominant": (0, 1, 1),
    "recessive": (0, 0, 1),
    "between": (0, 1, 0),
}
MIXTURES = [
    (0.33, 0.33, 0.33, 0),
    (0.6, 0.2, 0.2, 0),
    (0.5, 0.2, 0.2, 0.1),
    (0.6, 0.15, 0.15, 0.1),
    (0.75, 0.05, 0.15, 0.05),
]
"""Weights of alternatives, each DISTANCE away, in one statistic; the package has the fourth."""
DISTANCE = 3.2
"""Of a relevant feature by the test that fits, in standard deviations: found in about .6."""


def found(p_values: Values, level: float = LEVEL) -> float:
    """Return the share of relevant features selected; the first are the relevant ones."""
    return float(
        (stats.false_discovery_control(np.minimum(p_values, 1)) <= level)[:RELEVANT].mean()
    )


def table(title: str, rows: dict[Any, list[dict[str, float]]]) -> None:
    """Print the mean of each number by row, and over all rows."""
    names = list(next(iter(rows.values()))[0])
    print(f"\n{title}\n" + " | ".join(["design", *names]))
    means = {
        row: [np.mean([one[name] for one in all_]) for name in names] for row, all_ in rows.items()
    }
    for row, mean in [*means.items(), ("mean", np.mean(list(means.values()), axis=0))]:
        print(" | ".join([str(row), *(f"{x:.2f}" for x in mean)]), flush=True)


def ours(columns: NDArray[np.uint8], target: rank_tests.RankTarget) -> dict[str, float]:
    """Return what the package's marginal tests find, step by step towards its rule."""
    log_p = rank_tests.contrasts_log_p(np.ascontiguousarray(columns), 255, target)
    p = 10.0 ** -rank_tests.strongest_of(log_p, SHARES)[0]
    return {
        "package": found(p, 0.9 * LEVEL),
        "at .1": found(p),
        "location": found(np.exp(log_p[:, 0])),
    }


# Bounds: no test is nearer to all of several directions at once.


def bounds() -> None:
    """Print how much of the power any one test for several alternatives loses.

    For any weights the likelihood ratio of their mixture has the largest mean power, so that some
    alternative loses at least what the mean does: normal limits, both signs, p = .003.
    """
    rng, alpha = np.random.default_rng(0), 0.003
    best = stats.norm.sf(stats.norm.isf(alpha / 2) - DISTANCE)
    print("\nmean loss at least (any sum of squares): losses by weight of the first, others alike")
    designs: dict[str, Values] = {}
    for maf in (0.1, 0.25, 0.4, 0.5):
        shares = np.array([(1 - maf) ** 2, 2 * maf * (1 - maf), maf**2])
        designs[f"additive, dominant, recessive, MAF {maf}"] = directions(
            shares, list(CODINGS.values())[:3]
        )
    for k in (3, 4, 5, 12):
        designs[f"one of {k} classes"] = directions(np.full(k, 1 / k), np.eye(k))
        trend = directions(np.full(k, 1 / k), [range(k)])
        designs[f"trend, one of {k} classes"] = np.vstack([trend, designs[f"one of {k} classes"]])
    for name, units in designs.items():
        null, n = rng.normal(size=(200_000, units.shape[1])), len(units)
        ratios = [
            np.cosh(DISTANCE * x @ units.T)
            for x in (null, *(null[:50_000] + DISTANCE * u for u in units))
        ]
        firsts = (
            (1 / n,)
            if "trend" not in name and "additive" not in name
            else (0.2, 0.33, 0.5, 0.6, 0.7, 0.8, 0.9)
        )
        said, most = [], 0.0
        for first in firsts:
            weights = np.full(n, (1 - first) / (n - 1))
            weights[0] = first
            bar = np.quantile(ratios[0] @ weights, 1 - alpha)
            losses = [best - np.mean(ratio @ weights > bar) for ratio in ratios[1:]]
            most = max(most, float(weights @ losses))
            said.append(
                f"{first:.2f}: {losses[0]:.3f}, " + ", ".join(f"{x:.3f}" for x in losses[1:3])
            )
        joint = best - stats.ncx2.sf(
            stats.chi2.isf(alpha, len(units[0]) - 1), len(units[0]) - 1, DISTANCE**2
        )
        print(f"{name} | {most:.3f} ({joint:.3f}) | " + " | ".join(said), flush=True)


def directions(shares: Values, codings: Any) -> Values:
    """Return unit vectors of scores of classes with these shares, (n, k), less their mean."""
    scores = np.asarray([list(c) for c in codings], np.float64)
    out = (scores - scores @ shares[:, None]) * np.sqrt(shares)
    return np.asarray(out / np.maximum(np.linalg.norm(out, axis=1), 1e-9)[:, None])


# Genotypes.

LOG_FACTORIALS = special.gammaln(np.arange(5000) + 1.0)


def log_choose(n: Any, k: Any) -> Any:
    """Return the logarithms of binomial coefficients."""
    return LOG_FACTORIALS[n] - LOG_FACTORIALS[k] - LOG_FACTORIALS[n - k]


@cache
def exact(counts: tuple[int, ...], cases: tuple[int, ...]) -> dict[str, float]:
    """Return exact p-values of statistics of three codes and two classes, given the margins."""
    n, r = sum(counts), sum(cases)

    def around(j: int) -> NDArray[np.int64]:
        mean = r * counts[j] / n
        wide = 6 + 7 * np.sqrt(mean * (1 - r / n))
        low, high = min(mean - wide, cases[j]), max(mean + wide, cases[j])
        return np.arange(max(0, int(low)), min(counts[j], r, int(high) + 1) + 1)

    one, two = (x.ravel() for x in np.meshgrid(around(1), around(2)))
    zero = r - one - two
    is_there = (zero >= 0) & (zero <= counts[0])
    x = np.stack([zero, one, two])[:, is_there]
    chance = np.exp(sum(log_choose(counts[j], x[j]) for j in range(3)) - log_choose(n, r))
    x = np.column_stack([x, cases])  # what was found comes last
    shares = np.array(counts) / n
    off = (x - r * shares[:, None]) / np.sqrt(np.maximum(shares[:, None], 1e-12))
    off *= np.sqrt((n - 1) / (r * (n - r)))
    z = np.abs(np.nan_to_num(directions(shares, CODINGS.values()) @ off))
    midranks = np.cumsum(shares) - shares / 2
    statistics = dict(zip(CODINGS, z, strict=True))
    statistics["midranks"] = np.abs(directions(shares, [midranks]) @ off)[0]
    statistics["max3"], statistics["max of 2, 3"] = z[:3].max(axis=0), z[1:3].max(axis=0)
    statistics["powers"] = ((z * [[1.1], [1], [1], [0.95]]) ** 8).sum(axis=0)
    for weights in MIXTURES:
        statistics[str(weights)] = np.array(weights) @ np.exp(np.minimum(DISTANCE * z, 600))
    statistics["Pearson"] = (off**2).sum(axis=0)
    return {
        name: min(1.0, chance[s[:-1] >= s[-1] * (1 - 1e-9)].sum()) for name, s in statistics.items()
    }


def relevant_shares(maf: float, coding: tuple[int, ...], n: int, cases: float) -> Values:
    """Return genotype shares of cases, by an odds ratio (30 at most) that makes DISTANCE."""
    shares, x = np.array([(1 - maf) ** 2, 2 * maf * (1 - maf), maf**2]), np.array(coding)

    def of_cases(log_odds: float) -> Values:
        own = shares * np.exp(log_odds * x)
        return np.asarray(own / own.sum())

    def distance(log_odds: float) -> float:
        own = of_cases(log_odds)
        both = cases * own + (1 - cases) * shares
        variance = both @ x**2 - (both @ x) ** 2
        return float((own - shares) @ x * np.sqrt(n * cases * (1 - cases) / variance) - DISTANCE)

    most = np.log(30)
    return of_cases(most if distance(most) < 0 else float(optimize.brentq(distance, 0, most)))


def genotypes_once(
    rng: np.random.Generator, maf: float, n: int, model: str, cases: float
) -> dict[str, float]:
    """Return what each statistic finds of one table."""
    target = (np.arange(n) < cases * n).astype(np.int64)
    shares = np.array([(1 - maf) ** 2, 2 * maf * (1 - maf), maf**2])
    of_cases = np.tile(shares, (P, 1))
    of_cases[:RELEVANT] = relevant_shares(maf, CODINGS[model], n, cases)
    bars = np.where(target[:, None, None] == 1, of_cases.cumsum(axis=1), shares.cumsum())[:, :, :2]
    columns = (rng.random((n, P, 1)) > bars).sum(axis=2).T.astype(np.uint8)
    counts = np.stack([(columns == g).sum(axis=1) for g in range(3)], axis=1)
    own = np.stack([(columns[:, target == 1] == g).sum(axis=1) for g in range(3)], axis=1)
    asymptotic = np.ones((len(CODINGS), P))
    for coding, x in enumerate(np.array(list(CODINGS.values()))):
        r = own[0].sum()
        variance = counts @ x**2 / n - (counts @ x / n) ** 2
        z = (own @ x - r * (counts @ x) / n) / np.sqrt(
            np.maximum(variance, 1e-9) * r * (n - r) / (n - 1)
        )
        asymptotic[coding] = 2 * stats.norm.sf(np.abs(z))
    names = [*CODINGS, "midranks", "max3", "max of 2, 3", "powers", *map(str, MIXTURES), "Pearson"]
    all_ = {name: np.ones(P) for name in names}
    for i in np.flatnonzero(asymptotic.min(axis=0) < 0.05):  # others are never selected
        for name, value in exact(tuple(counts[i].tolist()), tuple(own[i].tolist())).items():
            all_[name][i] = value
    p = {
        "oracle, chi-squared": asymptotic[list(CODINGS).index(model)],
        "oracle, exact": all_[model],
    }
    p |= {name: all_[name] for name in names if name not in (*list(CODINGS)[1:], "max of 2, 3")}
    parts = np.stack([all_[name] for name in list(CODINGS)[:3]])
    p["Bonferroni .6/.2/.2"] = (parts / [[0.6], [0.2], [0.2]]).min(axis=0)
    p["additive .8, max of others .2"] = np.minimum(parts[0] / 0.8, all_["max of 2, 3"] / 0.2)
    out = {name: found(value) for name, value in p.items()}
    out |= {f"{w} at .09": found(all_[str(w)], 0.9 * LEVEL) for w in MIXTURES[2:4]}
    return ours(columns, rank_tests.RankTarget.of_classes(target, 2)) | out


def genotypes(tables: int, seed: int) -> None:
    """Print what each statistic of three codes finds."""
    for model in CODINGS:
        rows: dict[Any, list[dict[str, float]]] = {}
        for maf, n, cases in product(
            (0.05, 0.1, 0.25, 0.4, 0.5), (200, 400, 1000, 2000), (0.5, 0.2)
        ):
            for number in range(tables):
                rng = np.random.default_rng([seed + number, n, int(100 * maf), int(10 * cases)])
                row = (f"MAF {maf}", f"n {n}", "1:1" if cases == 0.5 else "1:4")
                rows.setdefault(" ".join(row), []).append(genotypes_once(rng, maf, n, model, cases))
            exact.cache_clear()
        parts = [
            "MAF 0.05 ",
            "MAF 0.1 ",
            "MAF 0.25 ",
            "MAF 0.4 ",
            "MAF 0.5 ",
            "n 200 ",
            "n 400 ",
            "n 1000 ",
            "n 2000 ",
            "1:1",
            "1:4",
        ]
        table(
            f"genotypes, {model}",
            {
                part: [x for row, all_ in rows.items() if part in row for x in all_]
                for part in parts
            },
        )


# Strata.


def z_of(scores: Values, target: Values, strata: NDArray[np.int64]) -> Values:
    """Return the normal score of each column of (n, p) of the sum of scores within strata."""
    total, variance = np.zeros((2, scores.shape[1]))
    for s in np.unique(strata):
        own, y = scores[strata == s], target[strata == s] - target[strata == s].mean()
        total += y @ own
        variance += len(y) * own.var(axis=0) * (y @ y) / max(len(y) - 1, 1)
    return np.asarray(total / np.sqrt(variance))


def strata_once(
    rng: np.random.Generator, n: int, k: int, by_class: bool, tails: float
) -> dict[str, float]:
    """Return what each test finds of one table with k batches."""
    batch = np.arange(n) * k // n
    share = np.linspace(0.2, 0.8, k)[batch] if by_class else np.full(n, 0.5)
    target = (rng.random(n) < share).astype(np.float64)
    values = rng.standard_t(tails, (n, P)) if tails < 50 else rng.normal(size=(n, P))
    within = sum(np.sum(batch == s) * target[batch == s].var() for s in range(k))
    own = {3.0: 1.3, 5.0: 1.12}.get(tails, 1.0)
    values[:, :RELEVANT] += own * DISTANCE / np.sqrt(within) * target[:, None]
    values += 0.7 * rng.normal(size=(k, P))[batch]
    means = np.stack([values[batch == s].mean(axis=0) for s in range(k)])[batch]
    ranks, fine, centred = (np.zeros_like(values) for _ in range(3))
    for s in range(k):
        own_ranks = stats.rankdata(values[batch == s], axis=0)
        ranks[batch == s] = own_ranks / (np.sum(batch == s) + 1)
        fine[batch == s] = np.rint(64 * ranks[batch == s])
    over_all = stats.rankdata(values, axis=0)
    for s in range(k):
        centred[batch == s] = over_all[batch == s] - over_all[batch == s].mean(axis=0)
    linear = z_of(values, target, batch)
    z = {
        "linear model": np.sqrt(n - k - 1)
        * linear
        / np.sqrt(np.maximum(n - linear**2 * n / (n - k), 1)),
        "van Elteren": z_of(ranks, target, batch),
        "van Elteren, 64 steps": z_of(fine, target, batch),
        "aligned, ranks": z_of(stats.rankdata(centred, axis=0), target, batch),
        "aligned, values": z_of(stats.rankdata(values - means, axis=0), target, batch),
    }
    p = {name: 2 * stats.norm.sf(np.abs(value)) for name, value in z.items()}
    p["linear model"] = 2 * stats.t.sf(np.abs(z["linear model"]), n - k - 1)
    codes = (over_all - 1) * 254 // n if n > 254 else over_all - 1
    rank_target = rank_tests.RankTarget.of_classes(target.astype(np.int64), 2, batch)
    out = ours(codes.T.astype(np.uint8), rank_target)
    return out | {name: found(value) for name, value in p.items()}


def strata(tables: int, seed: int) -> None:
    """Print what tests within batches find."""
    for by_class, tails in ((True, 99.0), (True, 3.0)):
        rows: dict[Any, list[dict[str, float]]] = {}
        for n, k in product((200, 400, 800, 2000), (2, 8, 20, 40)):
            for number in range(tables):
                rng = np.random.default_rng([seed + number, n, k, by_class, int(tails)])
                rows.setdefault(f"n {n}, {k} batches", []).append(
                    strata_once(rng, n, k, by_class, tails)
                )
        table(
            f"strata, shares of classes differ, {'normal' if tails > 50 else 't3'}",
            rows,
        )


# Classes.

Parts = tuple[Values, Values, Values]
ORDERED = [
    (0.5, 0.5, 0),
    (0.5, 0.25, 0.25),
    (0.6, 0.2, 0.2),
    (0.7, 0.15, 0.15),
    (0.8, 0.1, 0.1),
    (0.9, 0.05, 0.05),
    (0.8, 0, 0.2),
]
NOMINAL = [(0, 0.9, 0.1), (0, 0.8, 0.2), (0, 0.7, 0.3), (0, 0.6, 0.4), (0, 0.5, 0.5), (0, 0.3, 0.7)]


def class_parts(projected: Values, shares: Values) -> Parts:
    """Return p-values of trend, joint test, and one class against the rest, of (m, k)."""
    k = len(shares)
    trend = 2 * stats.norm.sf(np.abs(projected @ directions(shares, [range(k)])[0]))
    joint = stats.chi2.sf((projected**2).sum(axis=1), k - 1)
    return trend, joint, 2 * stats.norm.sf(np.abs(projected) / np.sqrt(1 - shares)).min(axis=1) * k


def joined(parts: Parts, shares: tuple[float, ...]) -> Values:
    """Return the smallest p-value, each over its share."""
    return np.asarray(np.min([p / s for p, s in zip(parts, shares, strict=True) if s > 0], axis=0))


def mixed(projected: Values, shares: Values, weights: tuple[float, ...]) -> Values:
    """Return minus the likelihood ratio of a mixture: no test has more power on the average."""
    k, (by_trend, by_joint, by_one) = len(shares), weights
    trend = np.cosh(DISTANCE * projected @ directions(shares, [range(k)])[0])
    one = np.cosh(DISTANCE * projected / np.sqrt(1 - shares)).mean(axis=1)
    joint = special.hyp0f1((k - 1) / 2, DISTANCE**2 / 4 * (projected**2).sum(axis=1))
    return np.asarray(-(by_trend * trend + by_joint * joint + by_one * one))


@cache
def null_of(k: int) -> Values:
    """Return a million draws of projected sums of k classes where nothing is relevant."""
    draws = np.random.default_rng(k).normal(size=(1_000_000, k))
    return np.asarray(draws - draws.mean(axis=1)[:, None])


@cache
def calibrated(k: int, shares: tuple[float, ...], mixes: bool) -> Callable[[Values], Values]:
    """Return what makes a p-value of a statistic, small ones showing more."""
    own = np.full(k, 1 / k)
    null = np.sort(
        mixed(null_of(k), own, shares) if mixes else joined(class_parts(null_of(k), own), shares)
    )
    return lambda found: (np.searchsorted(null, found, side="right") + 1) / (len(null) + 1)


def classes_once(
    rng: np.random.Generator, k: int, kind: str, ordered: bool, n: int
) -> dict[str, float]:
    """Return what each way to share the level finds of one table of k classes."""
    target, shares = np.arange(n) % k, np.full(k, 1 / k)
    means, size = np.zeros((P, k)), DISTANCE
    if kind == "trend":
        means[:RELEVANT] = np.arange(k)
    elif kind == "one differs":
        means[np.arange(RELEVANT), np.arange(RELEVANT) % k] = 1
    else:
        means[:RELEVANT] = rng.normal(size=(RELEVANT, k))
        bar, power = stats.chi2.isf(0.003, k - 1), stats.norm.sf(stats.norm.isf(0.0015) - DISTANCE)
        size = float(optimize.brentq(lambda d: stats.ncx2.sf(bar, k - 1, d * d) - power, 1, 20))
    means -= means.mean(axis=1)[:, None]
    means[:RELEVANT] *= size / np.sqrt(n / k * (means[:RELEVANT] ** 2).sum(axis=1))[:, None]
    ranks = stats.rankdata(rng.normal(size=(n, P)) + means[:, target].T, axis=0)
    counts = np.bincount(target, minlength=k)
    sums = (
        np.stack([ranks[target == c].sum(axis=0) for c in range(k)], axis=1) - counts * (n + 1) / 2
    )
    projected = sums / np.sqrt(counts * n * (n + 1) / 12)
    parts = class_parts(projected, shares)
    own = 2 * stats.norm.sf(np.abs(projected[np.arange(P), np.arange(P) % k]) / np.sqrt(1 - 1 / k))
    out = {"oracle": found({"trend": parts[0], "all differ": parts[1], "one differs": own}[kind])}
    names = [str(c) for c in range(k)] if ordered else []
    codes = ((ranks - 1) * 254 // n).T.astype(np.uint8)
    out |= ours(codes, rank_tests.RankTarget.of_classes(target, k, names=names))
    out["joint"] = found(parts[1])
    for way in ORDERED if ordered else NOMINAL:
        p = joined(parts, way)
        name = "/".join(f"{s:.2f}".lstrip("0") for s in way)
        out[name] = found(p)
        out["exact" + name] = found(calibrated(k, way, False)(p))
        out["mixed" + name] = found(calibrated(k, way, True)(mixed(projected, shares, way)))
    return out


def classes(tables: int, seed: int) -> None:
    """Print what shares between trend, joint test and one class against the rest find."""
    for ordered in (True, False):
        for kind in ("trend", "one differs", "all differ")[not ordered :]:
            rows: dict[Any, list[dict[str, float]]] = {}
            for k, n, number in product(
                (3, 4, 5) if ordered else (3, 4, 12), (200, 1000), range(tables)
            ):
                rng = np.random.default_rng([seed + number, k, len(kind), n])
                rows.setdefault(f"{k} classes, n {n}", []).append(
                    classes_once(rng, k, kind, ordered, n)
                )
            table(f"{'trend/joint/one' if ordered else 'no order: 0/joint/one'}; {kind}", rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", default=["bounds", "genotypes", "strata", "classes"])
    parser.add_argument("--tables", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    for part in asked.parts:
        if part == "bounds":
            bounds()
        else:
            {"genotypes": genotypes, "strata": strata, "classes": classes}[part](
                asked.tables, asked.seed
            )
