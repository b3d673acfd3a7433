"""Designs of ``evidence.py``: made up and real tables, and the simple test told each design.

Relevant is what carries information on the target, alone or beside others (Definition 1 of the
paper): in correlated blocks all that go with a cause.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import more_problems
import numpy as np
from adjusting_designs import covariates_of, score_test, target_of
from numpy.typing import NDArray
from scipy import special, stats

from srs_ooc.base.records import Covariate
from srs_ooc.evidence.null_model import basis_of
from srs_ooc.synthetic.blocks import Blocks
from srs_ooc.synthetic.chain import Chain
from srs_ooc.synthetic.madelon import Madelon
from srs_ooc.synthetic.problems import Problem, rows

N, P = 800, 1000
Values = NDArray[np.float64]
Labels = NDArray[np.int64]
Rng = np.random.Generator
Draw = Callable[[Rng, tuple[int, int]], Values]


@dataclass(frozen=True)
class Table:
    """One table: ``values`` (n, p) with NaN where missing, ``target`` (n,), who is relevant.

    The target is whole numbers for classes, others for a regression. ``strata`` (n,) where rows
    trade places only with their like; ``test`` names the simple test that is told the design,
    "" where none can see it, and ``also`` others to be shown; ``categories``: values are levels
    without an order; ``numbered``: the names of the classes are numbers; ``covariates``: what is
    adjusted for.
    """

    values: Values
    target: Labels | Values
    relevant: tuple[int, ...] = ()
    strata: Labels | None = None
    test: str = "rank-sum"
    categories: bool = False
    numbered: bool = False
    covariates: tuple[Covariate, ...] = ()
    also: tuple[str, ...] = ()


Make = Callable[[Rng], Table]


def _normal(rng: Rng, shape: tuple[int, int] = (N, P)) -> Values:
    return rng.normal(size=shape)


def _classes(rng: Rng, n: int = N, k: int = 2) -> Labels:
    return rng.permutation(n) % k


def _rarer(rng: Rng, n: int, k: int) -> Labels:
    """Return two classes, the second a k-th of the rows."""
    rarer: Labels = (_classes(rng, n, k) == k - 1).astype(np.int64)
    return rarer


def _above(score: Values) -> Labels:
    """Return two classes cut at the median of a score."""
    above: Labels = (score > np.median(score)).astype(np.int64)
    return above


def _mixed(common: Values, rng: Rng, r: float) -> Values:
    own: Values = rng.normal(size=common.shape)
    mixed: Values = common * r**0.5 + own * (1 - r) ** 0.5
    return mixed


def blocks(rng: Rng, r: float, n: int = N, size: int = 20) -> Values:
    """Return noise in blocks whose members are correlated at r."""
    causes = np.repeat(rng.normal(size=(n, P // size)), size, axis=1)
    return _mixed(causes, rng, r)


def autoregressive(rng: Rng, r: float, n: int = N) -> Values:
    """Return noise in which neighbours are correlated at r, as in linkage disequilibrium."""
    values = rng.normal(size=(n, P))
    for j in range(1, P):
        values[:, j] = r * values[:, j - 1] + np.sqrt(1 - r * r) * values[:, j]
    return values


def factors(rng: Rng, r: float, n: int = N) -> Values:
    """Return noise of which five factors are a share r."""
    loadings = rng.normal(size=(5, P))
    loadings /= np.sqrt((loadings**2).sum(axis=0))
    common = rng.normal(size=(n, 5)) @ loadings
    return _mixed(common, rng, r)


def noise(rng: Rng, values: Callable[[Rng], Values]) -> Table:
    """Return two classes that nothing tells apart."""
    found = values(rng)
    return Table(found, _classes(rng, len(found)))


def permuted_rows(rng: Rng, make: Make) -> Table:
    """Return a table with its target permuted, within strata where it has them."""
    table = make(rng)
    strata = np.zeros(len(table.target)) if table.strata is None else table.strata
    order, places = np.lexsort((rng.random(len(strata)), strata)), np.argsort(strata, kind="stable")
    target = table.target.copy()
    target[places] = table.target[order]
    return replace(table, target=target, relevant=())


def genotypes(rng: Rng) -> Table:
    """Return counts of 0 to 2 in linkage disequilibrium, five classes of 50 to 4%, no signal."""
    n = 400
    bars = np.quantile(rng.normal(size=10_000), rng.uniform(0.5, 0.95, P))
    values = sum((autoregressive(rng, 0.9, n) > bars).astype(np.float64) for _ in range(2))
    sizes = np.round(np.array([0.5, 0.25, 0.13, 0.08, 0.04]) * n).astype(int)
    target = rng.permutation(np.repeat(np.arange(5), sizes))
    return Table(np.asarray(values), target, test="kruskal")


def rare(rng: Rng, n_relevant: int) -> Table:
    """Return features with 1 to 3% ones beside classes 90:10; relevant ones 8 times as many."""
    target = (rng.permutation(N) % 10 == 0).astype(np.int64)
    rates = np.tile(rng.uniform(0.01, 0.03, P), (N, 1))
    rates[:, :n_relevant] *= np.where(target == 1, 8.0, 1.0)[:, None]
    values = (rng.random((N, P)) < rates).astype(np.float64)
    return Table(values, target, tuple(range(n_relevant)), test="fisher")


def counts(rng: Rng) -> Table:
    """Return counts with many zeros, 100 rows, classes 90:10, no signal."""
    target = (rng.permutation(100) % 10 == 0).astype(np.int64)
    means = rng.gamma(0.3, 1.0, (100, P))
    return Table(rng.poisson(means).astype(np.float64), target)


def shifted(
    rng: Rng,
    n_relevant: int,
    shift: float,
    n: int = N,
    p: int = P,
    k: int = 2,
    draw: Draw = _normal,
    seen: Callable[[Values], Values] = np.asarray,
    test: str = "rank-sum",
) -> Table:
    """Return features whose location differs between two classes, the second a k-th of n rows."""
    values, target = draw(rng, (n, p)), _rarer(rng, n, k)
    values[:, :n_relevant] += shift * target[:, None]
    return Table(seen(values), target, tuple(range(n_relevant)), test=test)


def _heavy(rng: Rng, shape: tuple[int, int]) -> Values:
    return rng.standard_t(2, shape)


def _three_steps(values: Values) -> Values:
    return np.digitize(values, (-0.5, 1.0)).astype(np.float64)


def shifted_with_holes(rng: Rng) -> Table:
    """Return 20 shifted features; a fifth of all cells is missing at random."""
    table = shifted(rng, 20, 0.3)
    table.values[rng.random((N, P)) < 0.2] = np.nan
    return table


def several(rng: Rng, n_classes: int) -> Table:
    """Return 20 features whose means differ among classes, each in its own way."""
    values, target = _normal(rng), _classes(rng, N, n_classes)
    values[:, :20] += rng.normal(0, 0.3, (n_classes, 20))[target]
    return Table(values, target, tuple(range(20)), test="kruskal")


def sparse(rng: Rng) -> Table:
    """Return features 95% zeros; of 20 relevant ones a tenth is not zero in the second class."""
    target, values = _classes(rng), rng.exponential(size=(N, P))
    rates = np.full((N, P), 0.05)
    rates[:, :20] += 0.08 * target[:, None]
    return Table(np.where(rng.random((N, P)) < rates, values, 0.0), target, tuple(range(20)))


def more_counts(rng: Rng) -> Table:
    """Return overdispersed counts, 100 rows; of 20 relevant ones 2.2 times as many in one class."""
    target = _classes(rng, 100)
    means = rng.gamma(2.0, 2.0, (100, P))
    means[:, :20] *= np.where(target == 1, 2.2, 1.0)[:, None]
    return Table(rng.poisson(means).astype(np.float64), target, tuple(range(20)))


def categories(
    rng: Rng,
    n_relevant: int,
    levels: int = 6,
    alike: float = 72.0,
    k: int = 2,
    n: int = N,
    p: int = P,
    uneven: float = 0.0,
    halves: float = 0.0,
) -> Table:
    """Return categories; relevant ones have other shares of their levels in each of k classes.

    Dirichlet's with a sum of ``alike``, about shares that fall as level**-uneven; or, in the last
    class, half of the levels are more frequent, all alike: by ``halves`` in log odds to the others.
    """
    falling = np.arange(1.0, levels + 1) ** -uneven
    target, about = _classes(rng, n, k), falling / falling.sum()
    shares = np.full((k, p, levels), about)
    shares[:, :n_relevant] = rng.dirichlet(alike * about, (k, n_relevant))
    if halves:
        more = rng.permuted(np.tile(np.arange(levels) % 2, (n_relevant, 1)), axis=1)
        shares[:, :n_relevant] = about
        shares[-1, :n_relevant] *= np.exp(halves * more)
        shares[-1] /= shares[-1].sum(axis=1, keepdims=True)
    values = np.zeros((n, p))
    drawn, bounds = rng.random((n, p, 1))[..., 0], shares.cumsum(axis=2)
    for level in range(levels - 1):  # not all at once: they are many
        values += drawn > bounds[target, :, level]
    relevant = tuple(range(n_relevant))
    return Table(values, target, relevant, test="levels", categories=True)


def dosage(rng: Rng, n_classes: int, log_odds: float) -> Table:
    """Return genotypes (0 to 2) in balance, of 20 the allele's log odds rise with the class."""
    target, odds = _classes(rng, N, n_classes), special.logit(rng.uniform(0.1, 0.5, P))
    odds = np.tile(odds, (N, 1))
    odds[:, :20] += log_odds * target[:, None] / (n_classes - 1)
    return Table(
        rng.binomial(2, special.expit(odds)).astype(np.float64),
        target,
        tuple(range(20)),
        test="trend",
    )


def numbers(
    rng: Rng,
    n_relevant: int = 10,
    noise: float = 4.0,
    draw: Draw = _normal,
    features: Callable[[Values], Values] = np.asarray,
    answer: Callable[[Values], Values] = np.asarray,
    test: str = "spearman",
) -> Table:
    """Return numbers as target: a sum of functions of features and noise, itself transformed."""
    values = _normal(rng)
    total = features(values[:, :n_relevant]).sum(axis=1) + noise * draw(rng, (N, 1))[:, 0]
    return Table(values, answer(total), tuple(range(n_relevant)), test=test)


def standing_in(rng: Rng, n_causes: int) -> Table:
    """Return blocks of 10 correlated at .9; the sum of one feature of each of some blocks decides.

    The other members of these blocks stand in for it: all are relevant.
    """
    values = blocks(rng, 0.9, size=10)
    score = values[:, : 10 * n_causes : 10].sum(axis=1)
    target = _above(score + 2.5 * n_causes**0.5 * rng.normal(size=N))
    return Table(values, target, tuple(range(10 * n_causes)))


def batches(
    rng: Rng, shift: float, k: int = 8, n: int = N, p: int = P, n_relevant: int = 20
) -> Table:
    """Return k batches with levels and shares of the classes of their own; features shifted."""
    batch, level = np.repeat(np.arange(k), n // k), rng.normal(size=(k, p))
    target = (rng.random(n) < np.linspace(0.2, 0.8, k)[batch]).astype(np.int64)
    values, n_relevant = _normal(rng, (n, p)) + level[batch], n_relevant if shift else 0
    values[:, :n_relevant] += shift * target[:, None]
    return Table(values, target, tuple(range(n_relevant)), batch, test="within strata")


def variance(rng: Rng, r: float = 0.0) -> Table:
    """Return 20 features whose variance differs, beside noise in blocks correlated at r."""
    values, target = blocks(rng, r), _classes(rng)
    values[:, :20] = rng.normal(size=(N, 20))
    values[np.ix_(target == 1, np.arange(20))] *= 1.6
    return Table(values, target, tuple(range(20)), test="spread")


def bimodal(rng: Rng) -> Table:
    """Return 20 features with two modes in one class, one in the other, of equal variance."""
    values, target = _normal(rng), _classes(rng)
    modes = np.where(rng.random((N, 20)) < 0.5, -0.9, 0.9)
    two = modes + np.sqrt(1 - 0.81) * values[:, :20]
    values[:, :20] = np.where(target[:, None] == 1, two, values[:, :20])
    return Table(values, target, tuple(range(20)), test="spread")


def both_large(rng: Rng) -> Table:
    """Return five pairs of features, of which it counts how many are above zero together."""
    values = _normal(rng)
    n_both = (values[:, :10] > 0).reshape(N, 5, 2).all(axis=2).sum(axis=1)
    total = n_both + 0.5 * rng.normal(size=N)
    return Table(values, _above(total), tuple(range(10)))


def products(rng: Rng, n_pairs: int, noise: float) -> Table:
    """Return pairs of features whose products, added up, decide; without noise, one is XOR."""
    values = _normal(rng)
    total = (values[:, 0 : 2 * n_pairs : 2] * values[:, 1 : 2 * n_pairs : 2]).sum(axis=1)
    target = (total + noise * rng.normal(size=N) > 0).astype(np.int64)
    return Table(values, target, tuple(range(2 * n_pairs)), test="")


def lone_pair(rng: Rng, n: int, p: int) -> Table:
    """Return one XOR pair among p features, 5% of the classes flipped."""
    values = rng.normal(size=(n, p))
    is_flipped = rng.random(n) < 0.05
    target = ((values[:, 0] * values[:, 1] > 0) ^ is_flipped).astype(np.int64)
    return Table(values, target, (0, 1), test="")


def wide(rng: Rng, n_relevant: int, score: Callable[[Values, Rng], Values]) -> Table:
    """Return 20,000 features of 500 rows, the first of which decide; 10% of classes flipped."""
    values = rng.normal(size=(500, 20_000))
    is_above = _above(score(values[:, :n_relevant], rng)) == 1
    target = is_above ^ (rng.random(500) < 0.1)
    return Table(values, target.astype(np.int64), tuple(range(n_relevant)), test="")


def chained(x: Values, rng: Rng) -> Values:
    """Return the product of the signs of the first i features, i of each row by chance."""
    products, which = np.cumprod(np.sign(x), axis=1), rng.integers(0, x.shape[1], len(x))
    chosen: Values = products[np.arange(len(x)), which].astype(np.float64)
    return chosen + 0.01 * x[:, 0]


def pairs(rng: Rng, shift: float) -> Table:
    """Return 40 pairs, one of each class, that have much in common; 20 features shifted."""
    pair, target = np.repeat(np.arange(40), 2), np.tile([0, 1], 40)
    values = rng.normal(size=(40, P))[pair] + rng.normal(size=(80, P))
    n_relevant = 20 if shift else 0
    values[:, :n_relevant] += shift * target[:, None]
    return Table(values, target, tuple(range(n_relevant)), pair, test="paired")


def missing(
    rng: Rng,
    n: int = N,
    p: int = P,
    n_relevant: int = 20,
    rates: tuple[float, float] = (0.06, 0.16),
) -> Table:
    """Return features with 10% missing; of some fewer in one class than in the other."""
    values, target = _normal(rng, (n, p)), _classes(rng, n)
    chances = np.full((n, p), 0.1)
    chances[:, :n_relevant] = np.array(rates)[target][:, None]
    values[rng.random((n, p)) < chances] = np.nan
    return Table(values, target, tuple(range(n_relevant)), test="missing")


def missing_together(rng: Rng, draw: Draw, n_sections: int) -> Table:
    """Return three shifted features and others, whose cells are missing together.

    In sections of columns, each of which a row lacks as a whole, by a chance of a quarter. In one
    section all of a row are missing, in every second of the columns.
    """
    values, target = draw(rng, (N, P)), _classes(rng)
    values[:, :3] = rng.normal(size=(N, 3)) + 1.5 * target[:, None]
    section = rng.permutation(P) % n_sections
    section[:3] = 0
    is_missing = (rng.random((N, n_sections)) < 0.25)[:, section]
    if n_sections == 1:
        is_missing[:, 1::2] = False
    values[is_missing] = np.nan
    return Table(values, target, tuple(range(3)))


def following(rng: Rng) -> Table:
    """Return one cause c and 20 columns |c| + noise, which say nothing beside c."""
    values, cause = _normal(rng), rng.normal(size=N)
    target = _above(cause + 0.5 * rng.normal(size=N))
    values[:, 0] = cause
    values[:, 1:21] += 2 * np.abs(cause)[:, None]
    return Table(values, target, (0,))


def of_classes(
    rng: Rng,
    k: int,
    effect: float,
    one: bool = False,
    falling: float = 1.0,
    numbered: bool = False,
    n: int = N,
    p: int = P,
    n_relevant: int = 20,
) -> Table:
    """Return features whose means differ in one of k classes, drawn for each, or in all of them.

    Each class has ``falling`` times the rows of the one before.
    """
    bounds = np.cumsum(falling ** np.arange(k))
    target = np.searchsorted(bounds / bounds[-1], (rng.permutation(n) + 0.5) / n)
    own = np.arange(k)[:, None] == rng.integers(0, k, n_relevant)
    values = _normal(rng, (n, p))
    values[:, :n_relevant] += effect * (own if one else rng.normal(size=(k, n_relevant)))[target]
    tests = ("one class", "kruskal") if one else ("kruskal", "one class")
    return Table(
        values,
        target,
        tuple(range(n_relevant)),
        test=tests[0],
        also=tests[1:],
        numbered=numbered,
    )


def ordinal(rng: Rng, step: float, n: int = N, p: int = P, n_relevant: int = 20) -> Table:
    """Return features whose means rise with five ordered classes."""
    values, target = _normal(rng, (n, p)), _classes(rng, n, 5)
    values[:, :n_relevant] += step * target[:, None]
    return Table(values, target, tuple(range(n_relevant)), test="spearman", numbered=True)


CODINGS = {
    "additive": ((0.0, 1.0, 2.0), "trend"),
    "recessive": ((0.0, 0.0, 1.0), "recessive"),
    "dominant": ((0.0, 1.0, 1.0), "fisher"),
}
"""What counts 0 to 2 of an allele do to the log odds of a class, and the test of that."""


def alleles(
    rng: Rng,
    z: float,
    coding: str = "additive",
    rates: tuple[float, float] = (0.01, 0.5),
    n: int = N,
    p: int = P,
    n_relevant: int = 20,
) -> Table:
    """Return genotypes; of relevant ones the log odds are as their test has z at large n."""
    code, test = np.array(CODINGS[coding][0]), CODINGS[coding][1]
    target, rate = _classes(rng, n), rng.uniform(*rates, p)
    shares = np.stack([(1 - rate) ** 2, 2 * rate * (1 - rate), rate**2])
    log_odds = z / np.sqrt(n / 4 * (code**2 @ shares - (code @ shares) ** 2))
    log_odds[n_relevant:] = 0.0
    cases = shares * np.exp(code[:, None] * log_odds)
    bounds = np.stack([shares, cases / cases.sum(axis=0)]).cumsum(axis=1)[target, :2]
    values = (rng.random((n, 1, p)) > bounds).sum(axis=1).astype(np.float64)
    return Table(values, target, tuple(range(n_relevant)), test=test)


def beside(rng: Rng, form: str, z: float, n: int = N, p: int = P, n_relevant: int = 20) -> Table:
    """Return two classes and features that covariates go with; z of relevant ones beside these.

    Every second feature follows the covariates.
    """
    covariates, acts, follows = covariates_of(form, n, rng)
    target, left, variance = target_of("50:50", acts, rng)
    values = _normal(rng, (n, p))
    values[:, ::2] += follows[:, None] * rng.uniform(-1, 1, len(values[0, ::2]))
    values[:, :n_relevant] += (z / np.sqrt(n * variance)) * left[:, None]
    relevant = tuple(range(n_relevant))
    return Table(
        values,
        np.asarray(target, np.int64),
        relevant,
        test="score",
        covariates=tuple(covariates),
        also=() if "curved" in form else ("linear score",),
    )


def _binary(rng: Rng, shape: tuple[int, int]) -> Values:
    return rng.integers(0, 2, shape).astype(np.float64)


def _few_counts(rng: Rng, shape: tuple[int, int]) -> Values:
    return rng.poisson(2.0, shape).astype(np.float64)


_CORRELATED = {"blocks": blocks, "AR(1)": autoregressive, "factors": factors}

DESIGNS: dict[str, Make] = {
    "noise": partial(noise, values=_normal),
    "noise, 40 rows": partial(noise, values=partial(_normal, shape=(40, P))),
    **{
        f"noise, {name} {r}": partial(noise, values=partial(make, r=r))
        for name, make in _CORRELATED.items()
        for r in (0.3, 0.6, 0.95)
    },
    "noise, genotypes": genotypes,
    "noise, rare": partial(rare, n_relevant=0),
    "noise, counts": counts,
    "noise, pairs": partial(pairs, shift=0.0),
    "noise, batches": partial(batches, shift=0.0),
    "noise, ties": partial(shifted, n_relevant=0, shift=0.0, seen=np.round),
    "noise, three levels": partial(shifted, n_relevant=0, shift=0.0, seen=_three_steps),
    "noise, heavy tails": partial(shifted, n_relevant=0, shift=0.0, draw=_heavy),
    "noise, 95:5": partial(shifted, n_relevant=0, shift=0.0, k=20),
    "noise, categories": partial(categories, n_relevant=0),
    "noise, numbers": partial(numbers, n_relevant=0),
    "noise, ten classes permuted": partial(permuted_rows, make=partial(several, n_classes=10)),
    "noise, blocks permuted": partial(permuted_rows, make=partial(standing_in, n_causes=5)),
    "noise, missing permuted": partial(permuted_rows, make=missing),
    "rare": partial(rare, n_relevant=20),
    "3 strong": partial(shifted, n_relevant=3, shift=0.8),
    "30 strong": partial(shifted, n_relevant=30, shift=0.5),
    "300 strong": partial(shifted, n_relevant=300, shift=0.3),
    "300 weak": partial(shifted, n_relevant=300, shift=0.2),
    "tied": partial(shifted, n_relevant=20, shift=0.3, seen=np.round),
    "three-step score": partial(shifted, n_relevant=20, shift=0.3, seen=_three_steps, test="trend"),
    "exponential": partial(shifted, n_relevant=20, shift=0.3, seen=np.exp),
    "heavy tails": partial(shifted, n_relevant=20, shift=0.4, draw=_heavy),
    "unbalanced, 90:10": partial(shifted, n_relevant=20, shift=0.5, k=10),
    "missing cells beside a shift": shifted_with_holes,
    "30 rows": partial(shifted, n_relevant=10, shift=2.0, n=30),
    "200 x 5,000": partial(shifted, n_relevant=20, shift=0.7, n=200, p=5000),
    "500 x 50": partial(shifted, n_relevant=5, shift=0.3, n=500, p=50),
    "three classes": partial(several, n_classes=3),
    "ten classes": partial(several, n_classes=10),
    "sparse": sparse,
    "counts": more_counts,
    "categories": partial(categories, n_relevant=20),
    "dosage, two classes": partial(dosage, n_classes=2, log_odds=0.5),
    "dosage, five classes": partial(dosage, n_classes=5, log_odds=0.7),
    "linear numbers": partial(numbers, noise=6.0, test="pearson"),
    "monotone numbers": partial(numbers, features=np.exp, noise=6.0, answer=np.cbrt),
    "heavy numbers": partial(numbers, noise=5.0, draw=_heavy),
    "U-shape": partial(numbers, n_relevant=5, noise=7.0, features=np.square, test="U-shape"),
    "correlated blocks": partial(standing_in, n_causes=5),
    "batches": partial(batches, shift=0.3),
    "variance": variance,
    "variance in blocks": partial(variance, r=0.45),
    "bimodal": bimodal,
    "AND": both_large,
    "products": partial(products, n_pairs=3, noise=0.5),
    "XOR": partial(products, n_pairs=1, noise=0.0),
    "XOR among 50, 400 rows": partial(lone_pair, n=400, p=50),
    "XOR among 200": partial(lone_pair, n=N, p=200),
    "pairs": partial(pairs, shift=1.0),
    "missing": missing,
    **{
        f"missing by {by}, {name}": partial(missing_together, draw=draw, n_sections=n_sections)
        for name, draw in {"binary": _binary, "counts": _few_counts, "numbers": _normal}.items()
        for by, n_sections in {"row": 1, "section": 10}.items()
    },
}

CORRELATED: dict[str, Make] = {
    f"{name} {r}, {n} rows": partial(noise, values=partial(make, r=r, n=n))
    for n in (40, 100, 300, 1000)
    for name, make in _CORRELATED.items()
    for r in (0.3, 0.6, 0.95)
}
"""Correlated noise by rows."""

PAIRS: dict[str, Make] = {
    f"XOR pair, {p} x {n}": partial(lone_pair, n=n, p=p)
    for p in (50, 200, 1000)
    for n in (200, 400, 1000, 2000)
}
"""One pair by features and rows."""

WIDE: dict[str, Make] = {
    "wide, beside a leader": partial(
        wide, n_relevant=2, score=lambda x, _: x[:, 0] + 0.8 * np.sign(x[:, 0]) * x[:, 1]
    ),
    "wide, four beside a leader": partial(
        wide, n_relevant=5, score=lambda x, _: x[:, 0] + np.sign(x[:, 0]) * x[:, 1:].sum(axis=1)
    ),
    "wide, chain of 2": partial(wide, n_relevant=2, score=chained),
    "wide, chain of 3": partial(wide, n_relevant=3, score=chained),
    "wide, AND": partial(wide, n_relevant=2, score=lambda x, _: x.min(axis=1)),
    "wide, XOR": partial(wide, n_relevant=2, score=lambda x, _: x[:, 0] * x[:, 1]),
    "wide, XOR of three": partial(wide, n_relevant=3, score=lambda x, _: x.prod(axis=1)),
    "wide, tree": partial(
        wide, n_relevant=3, score=lambda x, _: np.where(x[:, 0] > 0, x[:, 1], x[:, 2])
    ),
    "wide, 30 weak": partial(
        wide, n_relevant=30, score=lambda x, rng: x.sum(axis=1) + 3 * rng.normal(size=len(x))
    ),
    "wide, nothing": partial(wide, n_relevant=0, score=lambda x, rng: rng.normal(size=len(x))),
}
"""What a search may add to tests where features are many."""

FOLLOWING: dict[str, Make] = {"20 that follow a cause": following}
"""Selected though irrelevant by Definition 1 of the paper: not of the null that is tested."""


def _small(make: Callable[..., Table], **own: Any) -> Make:
    return partial(make, **{"n": 400, "p": 300, "n_relevant": 15} | own)


def _null(make: Callable[..., Table], **own: Any) -> Make:
    return _small(make, n_relevant=0, **own)


SIMPLE: dict[str, Make] = {
    **{
        f"{k} values": _small(categories, levels=k, alike=alike)
        for k, alike in {5: 28.0, 12: 51.0, 20: 140.0, 50: 200.0, 100: 250.0}.items()
    },
    "12 values in halves": _small(categories, levels=12, halves=1.18),
    "20 values in halves": _small(categories, levels=20, halves=1.0),
    "20 values, uneven": _small(categories, levels=20, alike=110.0, uneven=1.0),
    "20 values, five classes": _small(categories, levels=20, alike=110.0, k=5),
    "one of four classes": _small(of_classes, k=4, effect=0.41, one=True),
    "one of four classes, numbers": _small(of_classes, k=4, effect=0.41, one=True, numbered=True),
    "one of twelve classes": _small(of_classes, k=12, effect=0.79, one=True),
    "all of four classes": _small(of_classes, k=4, effect=0.29),
    "all of twelve classes": _small(of_classes, k=12, effect=0.28),
    "five ordered classes": _small(ordinal, step=0.097),
    "adjusted, one number": _small(beside, form="linear", z=3.9),
    "adjusted, one number, curved": _small(beside, form="curved", z=3.9),
    "adjusted, one number, 200 rows": _small(beside, form="linear", z=3.8, n=200),
    "adjusted, one number, 2,000 rows": _small(beside, form="linear", z=3.9, n=2000),
    "adjusted, eight numbers, 200 rows": _small(beside, form="eight numbers", z=4.2, n=200),
    "adjusted, eight numbers": _small(beside, form="eight numbers", z=4.5),
    "adjusted, eight numbers, curved": _small(beside, form="eight numbers, curved", z=4.0),
    "adjusted, eight numbers, 2,000 rows": _small(beside, form="eight numbers", z=4.0, n=2000),
    **{
        f"adjusted, {k} weak of 2,000, {form}": _small(
            beside, form=form, z=z, n=500, p=2000, n_relevant=k
        )
        for k, form, z in (
            (20, "linear", 2.9),
            (20, "curved", 3.1),
            (300, "linear", 2.7),
            (300, "curved", 2.7),
        )
    },
    "missing more often": _small(missing, rates=(0.06, 0.167)),
    "2 batches": _small(batches, shift=0.53, k=2),
    "10 batches": _small(batches, shift=0.48, k=10),
    "40 batches": _small(batches, shift=0.49, k=40),
    "2 batches, 200 rows": _small(batches, shift=0.62, k=2, n=200),
    "40 batches, 2,000 rows": _small(batches, shift=0.17, k=40, n=2000),
    "genotypes": _small(alleles, z=2.8),
    "genotypes, 200 rows": _small(alleles, z=2.7, n=200),
    "genotypes, 2,000 rows": _small(alleles, z=2.9, n=2000),
    "genotypes, MAF 0.01": _small(alleles, z=2.25, rates=(0.01, 0.01)),
    "genotypes, MAF 0.05": _small(alleles, z=2.5, rates=(0.05, 0.05)),
    "genotypes, MAF 0.5": _small(alleles, z=3.05, rates=(0.5, 0.5)),
    "recessive": _small(alleles, z=2.3, coding="recessive", rates=(0.1, 0.5)),
    "recessive, 2,000 rows": _small(alleles, z=2.6, coding="recessive", rates=(0.1, 0.5), n=2000),
    "dominant": _small(alleles, z=3.1, coding="dominant"),
    "dominant, 2,000 rows": _small(alleles, z=3.0, coding="dominant", n=2000),
    **{
        f"noise, {levels} values, {k} classes": _null(categories, levels=levels, k=k)
        for levels in (5, 12, 20, 100)
        for k in (2, 5)
    },
    "noise, twelve classes": _null(of_classes, k=12, effect=0.0, falling=0.75),
    "noise, five ordered classes": _null(ordinal, step=0.0),
    "noise, beside one number": _null(beside, form="linear", z=0.0),
    "noise, beside eight numbers": _null(beside, form="eight numbers", z=0.0),
    "noise, 2 batches": _null(batches, shift=0.0, k=2),
    "noise, 40 batches": _null(batches, shift=0.0, k=40),
    "noise, MAF 0.01 to 0.5": _null(alleles, z=0.0),
    "noise, MAF 0.01": _null(alleles, z=0.0, rates=(0.01, 0.01)),
}
"""What one simple test that is told the design is right for; small tables, so that many are run."""

SYNTH: dict[str, Callable[[int], tuple[Problem, str]]] = {
    "chain of 3": lambda seed: (Chain(1000, 5000, 3, seed), ""),
    "clique of 2": lambda seed: (more_problems.Clique(2000, 500, 2, seed), ""),
    "Friedman": lambda seed: (more_problems.Friedman(1000, 5000, seed), ""),
    "madelon": lambda seed: (Madelon(1000, 5000, 20, seed), ""),
    "five-minute start": lambda seed: (Madelon(500, 3000, 20, seed), ""),
    "linear": lambda seed: (more_problems.Linear(1000, 5000, 15, seed), "rank-sum"),
    "shift": lambda seed: (more_problems.Shift(72, 5000, 20, seed), "rank-sum"),
    "imbalance": lambda seed: (more_problems.Imbalance(1000, 5000, 20, seed), "rank-sum"),
    "AR(1) blocks": lambda seed: (Blocks(1000, 1000, 5, seed), "rank-sum"),
}
"""Synthetic tables by seed, and their tests; of the last all of a block counts."""


def synthetic(design: str, seed: int) -> Table:
    """Return the table of a synthetic problem and a seed."""
    problem, test = SYNTH[design](seed)
    drawn = problem.target(0, problem.n_rows)
    target = drawn.astype(np.int64) if drawn.dtype == np.uint8 else drawn.astype(np.float64)
    return Table(rows(problem, 0, problem.n_rows), target, problem.relevant, test=test)


@lru_cache(maxsize=1)
def read(file: Path) -> tuple[Values, Labels]:
    """Return the values (n, p) of a table, and its last column, the classes, as numbers."""
    cells = np.loadtxt(file, str, delimiter=",", skiprows=1)
    return cells[:, :-1].astype(np.float64), np.unique(cells[:, -1], return_inverse=True)[1]


def permuted(rng: Rng, file: Path) -> Table:
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


Test = Callable[[Table], Values]


def _rank_sum(values: Values, target: Labels | Values) -> Values:
    two = values[target == 1], values[target == 0]
    found: Values = stats.mannwhitneyu(*two, axis=0, nan_policy="omit").pvalue
    return found


def _fisher(seen: NDArray[np.bool_], target: Labels | Values) -> Values:
    """Test how often each column is seen in two classes: few distinct counts, each tested once."""
    sizes = np.array([np.sum(target == c) for c in (0, 1)])
    counts = np.stack([seen[target == c].sum(axis=0) for c in (0, 1)], axis=1)
    distinct, of = np.unique(counts, axis=0, return_inverse=True)
    found = [stats.fisher_exact([row, sizes - row]).pvalue for row in distinct]
    return np.array(found)[of]


def _kruskal(table: Table) -> Values:
    classes = [table.values[table.target == c] for c in np.unique(table.target)]
    found: Values = stats.kruskal(*classes, axis=0, nan_policy="omit").pvalue
    return found


def _one_class(table: Table) -> Values:
    """Test each class against the rest by rank sums; the least p-value times the classes."""
    classes = np.unique(table.target)
    found = [_rank_sum(table.values, table.target == c) for c in classes]
    least: Values = np.minimum(len(classes) * np.min(found, axis=0), 1.0)
    return least


def _levels(table: Table) -> Values:
    """Test by Pearson's chi-squared, of the levels that a column has."""
    classes = (table.target[:, None] == np.unique(table.target)).astype(np.float64)
    sizes, chi2, n_there = classes.sum(axis=0)[:, None], 0.0, 0
    for level in np.unique(table.values):
        seen = classes.T @ (table.values == level)
        expected = sizes * seen.sum(axis=0) / len(classes)
        chi2 = chi2 + (np.square(seen - expected) / np.maximum(expected, 1e-12)).sum(axis=0)
        n_there = n_there + (seen.sum(axis=0) > 0)
    found: Values = stats.chi2.sf(chi2, (len(sizes) - 1) * (n_there - 1))
    return found


def _pearson(values: Values, target: Labels | Values) -> Values:
    found: Values = stats.pearsonr(values, target[:, None].astype(float), axis=0).pvalue
    return found


def _spearman(values: Values, target: Labels | Values) -> Values:
    return _pearson(stats.rankdata(values, axis=0), stats.rankdata(target))


def _trend(table: Table) -> Values:
    """Test by Cochran and Armitage, of many ordered classes linear by linear: n - 1 times r^2."""
    centred = table.values - table.values.mean(axis=0)
    scores = table.target - table.target.mean()
    squares = (scores @ centred) ** 2 / ((centred**2).sum(axis=0) * (scores @ scores))
    found: Values = stats.chi2.sf((len(scores) - 1) * squares, 1)
    return found


def _within_strata(table: Table) -> Values:
    """Test by van Elteren: rank sums within strata, added up, over their standard deviation."""
    assert table.strata is not None
    total, variance = np.zeros((2, table.values.shape[1]))
    for stratum in np.unique(table.strata):
        inside = table.strata == stratum
        n, scores = inside.sum(), table.target[inside] - table.target[inside].mean()
        ranks = stats.rankdata(table.values[inside], axis=0) / (n + 1)
        total += scores @ ranks
        variance += n * ranks.var(axis=0) * (scores @ scores) / (n - 1)
    found: Values = 2 * stats.norm.sf(np.abs(total) / np.sqrt(variance))
    return found


def _linear(table: Table) -> Values:
    """Return an orthonormal basis of the covariates as they are."""
    columns = [np.ones(len(table.target)), *(one.values for one in table.covariates)]
    return np.asarray(np.linalg.qr(np.array(columns).T)[0])


def _away(values: Values) -> Values:
    far: Values = np.abs(values - np.median(values, axis=0))
    return far


TESTS: dict[str, Test] = {
    "fisher": lambda table: _fisher(table.values > 0, table.target),
    "kruskal": _kruskal,
    "levels": _levels,
    "missing": lambda table: _fisher(np.isnan(table.values), table.target),
    "one class": _one_class,
    "paired": lambda table: stats.wilcoxon(table.values[1::2] - table.values[::2], axis=0).pvalue,
    "pearson": lambda table: _pearson(table.values, table.target),
    "rank-sum": lambda table: _rank_sum(table.values, table.target),
    "recessive": lambda table: _fisher(table.values > 1, table.target),
    "score": lambda table: score_test(table.values, table.target, basis_of(table.covariates)),
    "linear score": lambda table: score_test(table.values, table.target, _linear(table)),
    "spearman": lambda table: _spearman(table.values, table.target),
    "spread": lambda table: _rank_sum(_away(table.values), table.target),
    "trend": _trend,
    "U-shape": lambda table: _spearman(_away(table.values), table.target),
    "within strata": _within_strata,
}
"""P-values (p,) of a table's columns, NaN where one is constant, by the name a design gives."""


def selected_by_test(table: Table, level: float) -> NDArray[np.intp]:
    """Return the features whose p-values pass Benjamini and Hochberg at the level."""
    with np.errstate(invalid="ignore", divide="ignore"):
        p_values = np.nan_to_num(TESTS[table.test](table), nan=1.0)
    return np.flatnonzero(stats.false_discovery_control(p_values) <= level)
