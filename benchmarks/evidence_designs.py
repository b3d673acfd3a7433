"""Designs of ``evidence.py``: made up and real tables, and the simple test told each design."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import stats

N, P = 800, 1000
Values = NDArray[np.float64]
Labels = NDArray[np.int64]


@dataclass(frozen=True)
class Table:
    """One table: ``values`` (n, p) with NaN where missing, ``target`` (n,), who is relevant.

    ``strata`` (n,) where rows trade places only with their like; ``test`` names the simple test
    that is told the design.
    """

    values: Values
    target: Labels
    relevant: tuple[int, ...] = ()
    strata: Labels | None = None
    test: str = "rank-sum"


Make = Callable[[np.random.Generator], Table]


def _halves(rng: np.random.Generator, n: int = N) -> Labels:
    return rng.permutation(n) % 2


def _mixed(common: Values, rng: np.random.Generator, r: float) -> Values:
    own: Values = rng.normal(size=common.shape)
    mixed: Values = common * r**0.5 + own * (1 - r) ** 0.5
    return mixed


def blocks(rng: np.random.Generator, r: float, n: int = N, size: int = 20) -> Values:
    """Return noise in blocks whose members are correlated at r."""
    causes = np.repeat(rng.normal(size=(n, P // size)), size, axis=1)
    return _mixed(causes, rng, r)


def autoregressive(rng: np.random.Generator, r: float, n: int = N) -> Values:
    """Return noise in which neighbours are correlated at r, as in linkage disequilibrium."""
    values = rng.normal(size=(n, P))
    for j in range(1, P):
        values[:, j] = r * values[:, j - 1] + np.sqrt(1 - r * r) * values[:, j]
    return values


def factors(rng: np.random.Generator, r: float, n: int = N) -> Values:
    """Return noise of which five factors are a share r."""
    loadings = rng.normal(size=(5, P))
    loadings /= np.sqrt((loadings**2).sum(axis=0))
    common = rng.normal(size=(n, 5)) @ loadings
    return _mixed(common, rng, r)


def noise(rng: np.random.Generator, values: Callable[[np.random.Generator], Values]) -> Table:
    """Return two classes that nothing tells apart."""
    found = values(rng)
    return Table(found, _halves(rng, len(found)))


def _normal(rng: np.random.Generator, n: int = N) -> Values:
    return rng.normal(size=(n, P))


def genotypes(rng: np.random.Generator) -> Table:
    """Return counts of 0 to 2 in linkage disequilibrium, five classes of 50 to 4%, no signal."""
    n = 400
    bars = np.quantile(rng.normal(size=10_000), rng.uniform(0.5, 0.95, P))
    values = sum((autoregressive(rng, 0.9, n) > bars).astype(np.float64) for _ in range(2))
    sizes = np.round(np.array([0.5, 0.25, 0.13, 0.08, 0.04]) * n).astype(int)
    target = rng.permutation(np.repeat(np.arange(5), sizes))
    return Table(np.asarray(values), target, test="kruskal")


def rare(rng: np.random.Generator, n_relevant: int) -> Table:
    """Return features with 1 to 3% ones beside classes 90:10; relevant ones 8 times as many."""
    target = (rng.permutation(N) % 10 == 0).astype(np.int64)
    rates = np.tile(rng.uniform(0.01, 0.03, P), (N, 1))
    rates[:, :n_relevant] *= np.where(target == 1, 8.0, 1.0)[:, None]
    values = (rng.random((N, P)) < rates).astype(np.float64)
    return Table(values, target, tuple(range(n_relevant)), test="fisher")


def counts(rng: np.random.Generator) -> Table:
    """Return counts with many zeros, 100 rows, classes 90:10, no signal."""
    target = (rng.permutation(100) % 10 == 0).astype(np.int64)
    means = rng.gamma(0.3, 1.0, (100, P))
    return Table(rng.poisson(means).astype(np.float64), target)


def shifted(rng: np.random.Generator, n_relevant: int, shift: float) -> Table:
    """Return features whose mean differs between two classes."""
    values, target = _normal(rng), _halves(rng)
    values[:, :n_relevant] += shift * target[:, None]
    return Table(values, target, tuple(range(n_relevant)))


def variance(rng: np.random.Generator, r: float = 0.0) -> Table:
    """Return 20 features whose variance differs, beside noise in blocks correlated at r."""
    values, target = blocks(rng, r), _halves(rng)
    values[:, :20] = rng.normal(size=(N, 20))
    values[np.ix_(target == 1, np.arange(20))] *= 1.6
    return Table(values, target, tuple(range(20)), test="spread")


def bimodal(rng: np.random.Generator) -> Table:
    """Return 20 features with two modes in one class, one in the other, of equal variance."""
    values, target = _normal(rng), _halves(rng)
    modes = np.where(rng.random((N, 20)) < 0.5, -0.9, 0.9)
    two = modes + np.sqrt(1 - 0.81) * values[:, :20]
    values[:, :20] = np.where(target[:, None] == 1, two, values[:, :20])
    return Table(values, target, tuple(range(20)), test="spread")


def both_large(rng: np.random.Generator) -> Table:
    """Return five pairs of features, of which it counts how many are above zero together."""
    values = _normal(rng)
    n_both = (values[:, :10] > 0).reshape(N, 5, 2).all(axis=2).sum(axis=1)
    total = n_both + 0.5 * rng.normal(size=N)
    return Table(values, (total > np.median(total)).astype(np.int64), tuple(range(10)))


def products(rng: np.random.Generator, n_pairs: int, noise: float) -> Table:
    """Return pairs of features whose products, added up, decide; without noise, one is XOR."""
    values = _normal(rng)
    total = (values[:, 0 : 2 * n_pairs : 2] * values[:, 1 : 2 * n_pairs : 2]).sum(axis=1)
    target = (total + noise * rng.normal(size=N) > 0).astype(np.int64)
    return Table(values, target, tuple(range(2 * n_pairs)))


def lone_pair(rng: np.random.Generator, n: int, p: int) -> Table:
    """Return one XOR pair among p features, 5% of the classes flipped."""
    values = rng.normal(size=(n, p))
    is_flipped = rng.random(n) < 0.05
    return Table(values, ((values[:, 0] * values[:, 1] > 0) ^ is_flipped).astype(np.int64), (0, 1))


def pairs(rng: np.random.Generator, shift: float) -> Table:
    """Return 40 pairs, one of each class, that have much in common; 20 features shifted."""
    pair, target = np.repeat(np.arange(40), 2), np.tile([0, 1], 40)
    values = rng.normal(size=(40, P))[pair] + rng.normal(size=(80, P))
    n_relevant = 20 if shift else 0
    values[:, :n_relevant] += shift * target[:, None]
    return Table(values, target, tuple(range(n_relevant)), pair, test="paired")


def missing(rng: np.random.Generator) -> Table:
    """Return features with 10% missing; of 20 more in one class than in the other."""
    values, target = _normal(rng), _halves(rng)
    rates = np.full((N, P), 0.1)
    rates[:, :20] = np.where(target == 1, 0.16, 0.06)[:, None]
    values[rng.random((N, P)) < rates] = np.nan
    return Table(values, target, tuple(range(20)), test="missing")


_CORRELATED = {"blocks": blocks, "AR(1)": autoregressive, "factors": factors}

DESIGNS: dict[str, Make] = {
    "noise": partial(noise, values=_normal),
    "noise, 40 rows": partial(noise, values=partial(_normal, n=40)),
    **{
        f"noise, {name} {r}": partial(noise, values=partial(make, r=r))
        for name, make in _CORRELATED.items()
        for r in (0.3, 0.6, 0.95)
    },
    "noise, genotypes": genotypes,
    "noise, rare": partial(rare, n_relevant=0),
    "noise, counts": counts,
    "noise, pairs": partial(pairs, shift=0.0),
    "rare": partial(rare, n_relevant=20),
    "3 strong": partial(shifted, n_relevant=3, shift=0.8),
    "30 strong": partial(shifted, n_relevant=30, shift=0.5),
    "300 strong": partial(shifted, n_relevant=300, shift=0.3),
    "variance": variance,
    "variance in blocks": partial(variance, r=0.45),
    "bimodal": bimodal,
    "AND": both_large,
    "products": partial(products, n_pairs=3, noise=0.5),
    "XOR": partial(products, n_pairs=1, noise=0.0),
    "XOR among 50, 400 rows": partial(lone_pair, n=400, p=50),
    "pairs": partial(pairs, shift=1.0),
    "missing": missing,
}

CORRELATED: dict[str, Make] = {
    f"{name} {r}, {n} rows": partial(noise, values=partial(make, r=r, n=n))
    for n in (40, 100, 300, 1000)
    for name, make in _CORRELATED.items()
    for r in (0.3, 0.6, 0.95)
}
"""Correlated noise by rows."""

SYNTH: dict[str, tuple[str, ...]] = {
    "chain of 3": ("chain", "--rows", "1000", "--features", "5000", "--relevant", "3"),
    "clique of 2": ("clique", "--rows", "2000", "--features", "500", "--relevant", "2"),
    "Friedman": ("friedman", "--rows", "1000", "--features", "5000"),
    "madelon": ("madelon", "--rows", "1000", "--features", "5000", "--relevant", "20"),
    "five-minute start": ("madelon", "--rows", "500", "--features", "3000", "--relevant", "20"),
    "linear": ("linear", "--rows", "1000", "--features", "5000", "--relevant", "15"),
    "shift": ("shift", "--rows", "72", "--features", "5000", "--relevant", "20"),
    "imbalance": ("imbalance", "--rows", "1000", "--features", "5000", "--relevant", "20"),
}
"""Arguments of ``srs-ooc synth``."""


@lru_cache(maxsize=1)
def read(file: Path) -> tuple[Values, Labels]:
    """Return the values (n, p) of a table, and its last column, the classes, as numbers."""
    cells = np.loadtxt(file, str, delimiter=",", skiprows=1)
    return cells[:, :-1].astype(np.float64), np.unique(cells[:, -1], return_inverse=True)[1]


def permuted(rng: np.random.Generator, file: Path) -> Table:
    """Return a table with its target permuted."""
    values, target = read(file)
    return Table(values, rng.permutation(target), test="kruskal")


def real_designs() -> dict[str, Make]:
    """Return a design for each TABLE.csv.gz in the folder SRS_OOC_DATA; none without it."""
    folder = os.environ.get("SRS_OOC_DATA")
    files = sorted(Path(folder).glob("*.csv.gz")) if folder else []
    names = [file.name.removesuffix(".csv.gz") for file in files]
    return {
        f"{name}, target permuted": partial(permuted, file=file)
        for name, file in zip(names, files, strict=True)
    }


def _fisher(column: Values, target: Labels) -> float:
    seen = np.array([[np.sum((column > 0) & (target == c)) for c in (0, 1)]])
    classes = np.array([np.sum(target == 0), np.sum(target == 1)])
    return float(stats.fisher_exact(np.vstack([seen, classes - seen]))[1])


def _rank_sum(column: Values, target: Labels) -> float:
    known = ~np.isnan(column)
    values, labels = column[known], target[known]
    return float(stats.mannwhitneyu(values[labels == 1], values[labels == 0]).pvalue)


def _kruskal(column: Values, target: Labels) -> float:
    if np.ptp(column) == 0:
        return 1.0
    return float(stats.kruskal(*(column[target == c] for c in np.unique(target))).pvalue)


def _missing(column: Values, target: Labels) -> float:
    return _fisher(np.isnan(column).astype(np.float64), target)


def _spread(column: Values, target: Labels) -> float:
    return _rank_sum(np.abs(column - np.median(column)), target)


def _paired(column: Values, _: Labels) -> float:
    return float(stats.wilcoxon(column[1::2] - column[0::2]).pvalue)


TESTS = {
    "fisher": _fisher,
    "kruskal": _kruskal,
    "missing": _missing,
    "paired": _paired,
    "rank-sum": _rank_sum,
    "spread": _spread,
}
"""By the name that a design gives."""


def selected_by_test(table: Table, level: float) -> NDArray[np.intp]:
    """Return the features whose p-values pass Benjamini and Hochberg at the level."""
    p_values = np.array([TESTS[table.test](column, table.target) for column in table.values.T])
    passing = stats.false_discovery_control(np.nan_to_num(p_values, nan=1.0)) <= level
    return np.flatnonzero(passing)
