"""Tables of ``adjusting.py``: what covariates do to targets and features, and the oracle's tests.

A feature is relevant where it goes with the target beside the covariates: it is shifted by what of
the target they leave open.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from srs_ooc.base.records import Covariate
from srs_ooc.evidence.null_model import Censored, cox, hazards, logistic

Floats = NDArray[np.float64]
Target = NDArray[np.int64] | Floats | Censored
Rng = np.random.Generator


@dataclass(frozen=True)
class Cell:
    """One kind of table: how the covariates act, rows, target, features; ``is_null``: no other."""

    form: str
    n: int
    target: str = "50:50"
    features: str = "normal"
    is_null: bool = False

    @property
    def p(self) -> int:
        """Features."""
        return 1000 if self.n < 20_000 else 300

    @property
    def name(self) -> str:
        """What the results call it."""
        parts = [self.form, f"n {self.n:,}", self.target]
        parts += [self.features] if self.features != "normal" else []
        return ", ".join(parts + (["null"] if self.is_null else []))


@dataclass(frozen=True)
class Table:
    """One table; ``acts``: what the covariates do to the target, of unit variance."""

    values: Floats
    target: Target
    covariates: list[Covariate]
    acts: Floats
    relevant: tuple[int, ...]


def unit(x: Floats) -> Floats:
    """Return it centred, of unit variance; zeros stay."""
    return np.asarray((x - x.mean()) / max(float(x.std()), 1e-12))


def covariates_of(form: str, n: int, rng: Rng) -> tuple[list[Covariate], Floats, Floats]:
    """Return covariates, what they do to the target, and what features follow."""
    u, sex, batch = rng.uniform(-1.7, 1.7, n), rng.integers(0, 2, n), rng.integers(0, 12, n)
    age = [Covariate("age", u)]
    both = [*age, Covariate("sex", sex.astype(np.float64), ("f", "m"))]
    if form == "12 levels":
        levels = Covariate("batch", batch.astype(np.float64), tuple(f"b{i}" for i in range(12)))
        acts = rng.normal(size=12)[batch]
        return [levels], unit(acts), unit(acts)
    if form == "five components":
        parts = rng.normal(size=(5, n))
        acts = unit(parts.sum(axis=0))
        return [Covariate(f"c{i}", part) for i, part in enumerate(parts)], acts, acts
    if form.startswith("eight numbers"):  # the second acts half as much as the first, ...
        parts = rng.normal(size=(8, n))
        acts = unit((1 / np.arange(1, 9)) @ (parts**2 if form.endswith("curved") else parts))
        return [Covariate(f"c{i}", part) for i, part in enumerate(parts)], acts, acts
    acts = {
        "linear": u,
        "linear, with error": u,
        "curved": u**2,
        "wave": np.sin(3 * u),
        "step": np.where(u > 0.3, 1.0, 0.0),
        "product": u * (2 * sex - 1),
        "wave by sex": np.sin(3 * u) * (2 * sex - 1),
        "step, in classes": np.where(u > 0.3, 1.0, 0.0),
        "wave, each sex": np.sin(3 * u) * (2 * sex - 1),
        "no effect": np.zeros(n),
        "none": np.zeros(n),
    }[form]
    follows = u if form == "no effect" else acts
    if form == "step, in classes":  # age as a number, and as twelve classes of one size
        twelfths = (stats.rankdata(u, "ordinal") - 1) * 12 // n
        age += [Covariate("class", twelfths, tuple(f"a{i}" for i in range(12)))]
    if form == "linear, with error":  # of reliability .8
        age = [Covariate("age", u + rng.normal(0, 0.5 * u.std(), n))]
    if form == "wave, each sex":  # the age of women and that of men, each missing where it is not
        age = [Covariate(f"age {i}", np.where(sex == i, u, np.nan)) for i in range(2)]
    return both if form in ("product", "wave by sex") else age, unit(acts), unit(follows)


def target_of(kind: str, acts: Floats, rng: Rng) -> tuple[Target, Floats, float]:
    """Return a target, what relevant features go with, and its variance given the covariates."""
    n = len(acts)
    if kind in ("50:50", "90:10"):
        share, low, high = {"50:50": 0.5, "90:10": 0.1}[kind], -20.0, 20.0
        for _ in range(60):
            middle = (low + high) / 2
            is_low = special.expit(middle + 1.5 * acts).mean() < share
            low, high = (middle, high) if is_low else (low, middle)
        p = special.expit(low + 1.5 * acts)
        classes = (rng.random(n) < p).astype(np.int64)
        return classes, classes - p, float((p * (1 - p)).mean())
    if kind == "three":
        p3 = special.softmax([1.5 * acts, np.zeros(n), -1.5 * acts], axis=0)
        classes = (rng.random(n) > np.cumsum(p3, axis=0)).sum(axis=0)
        return classes, np.array([0.7, -1.4, 0.7])[classes], 0.8
    if kind == "censored":
        own = rng.exponential(size=n)
        times, ends = own * np.exp(-acts), rng.exponential(1.5, n)
        seen = Censored(np.minimum(times, ends), times <= ends)
        return seen, stats.norm.ppf((stats.rankdata(-own) - 0.5) / n), float(seen.events.mean())
    if kind == "heavy":
        own = rng.standard_t(1.5, n)
        return 2 * acts + own, stats.norm.ppf((stats.rankdata(own) - 0.5) / n), 1.0
    own = rng.normal(size=n)
    return acts + own * (np.exp(0.5 * acts) if kind == "uneven" else 1.0), own, 1.0


def make(cell: Cell, seed: int) -> Table:
    """Return the table of a cell: half of the features follow, ten of each half are relevant.

    Their effects put a test beside the covariates at z = 2.4 to 5.6; about half of them pass.
    """
    rng = np.random.default_rng([seed, *cell.name.encode()])
    n, p = cell.n, cell.p
    covariates, acts, follows = covariates_of(cell.form, n, rng)
    target, goes_with, variance = target_of(cell.target, acts, rng)
    strength = np.where(np.arange(p) < p // 2, rng.uniform(0.2, 1, p) * rng.choice([-1, 1], p), 0)
    relevant = () if cell.is_null else (*range(10), *range(p // 2, p // 2 + 10))
    effect = np.zeros(p)
    rate = 0.029 if cell.features == "3% ones" else 0.75 if cell.features == "missing" else 1.0
    size = 4 / np.sqrt(n * variance * rate)
    effect[list(relevant)] = size * rng.uniform(0.6, 1.4, len(relevant))
    moved = follows[:, None] * strength
    own, shift = rng.normal(size=(n, p)), goes_with[:, None] * effect
    if cell.features == "3% ones":
        values = (rng.random((n, p)) < special.expit(-3.5 + moved + shift)).astype(np.float64)
    elif cell.features == "spread":
        values = np.exp(0.5 * moved) * own + shift
    elif cell.features == "missing":
        gone = rng.random((n, p)) < special.expit(-1.5 + 1.5 * moved)
        values = np.where(gone, np.nan, own + shift)
    else:
        values = moved + own + shift
    return Table(values, target, covariates, acts, relevant)


@dataclass(frozen=True)
class Sum:
    """A target that is a sum of covariates and features; ``m`` of ``p`` features are relevant.

    ``form`` is how each of ``k`` covariates acts. Half of the features follow what all do together,
    or, where ``follows`` is "other curves", the squares of the covariates, whatever they do.
    ``z`` is about the score of a relevant feature; where nothing is relevant, all features follow
    what adds ``z`` to the target's own score ("a curve of t").
    """

    form: str
    k: int
    n: int
    p: int
    m: int
    z: float
    target: str = "numbers"
    follows: str = ""

    @property
    def name(self) -> str:
        """What the results call it."""
        parts = [self.form, f"k {self.k}", f"n {self.n:,}", f"{self.m} of {self.p:,}", self.target]
        return ", ".join(parts + [self.follows] * bool(self.follows) + [f"z {self.z:g}"])


def make_sum(cell: Sum, seed: int) -> Table:
    """Return the table of a sum."""
    rng = np.random.default_rng([seed, *cell.name.encode()])
    n, p, m, k = cell.n, cell.p, cell.m, cell.k
    numbers = rng.normal(size=(n, k))
    squares = (numbers**2).sum(axis=1)
    acts = unit((numbers if cell.form == "linear" else numbers**2 + 0.7 * numbers).sum(axis=1))
    strength = rng.uniform(0.2, 1, p) * rng.choice([-1, 1], p)
    follows = unit(squares) if cell.follows else acts
    if cell.follows != "a curve of t":
        strength[::2] = 0
    own = rng.normal(size=(n, p))
    relevant = rng.permutation(p)[:m]
    sizes = rng.uniform(0.6, 1.4, m) * rng.choice([-1, 1], m)
    squared = float(sizes @ sizes)
    share = min(0.8, cell.z**2 * squared / n) if m else 0.0
    signal = own[:, relevant] @ sizes * np.sqrt(share / max(squared, 1e-9))
    if not m:
        signal = cell.z / np.sqrt(n) * unit(squares) * bool(cell.follows)
    if cell.target == "numbers":
        target: Target = 1.2 * acts + signal + np.sqrt(1 - share) * rng.normal(size=n)
    elif cell.target == "uneven":
        target = 1.2 * acts + signal + np.exp(0.5 * acts) * rng.normal(size=n)
    else:
        chance, low, high = 1.5 * acts + 5 * signal, -20.0, 20.0
        for _ in range(60):
            middle = (low + high) / 2
            is_low = special.expit(middle + chance).mean() < int(cell.target[:2]) / 100
            low, high = (middle, high) if is_low else (low, middle)
        target = (rng.random(n) < special.expit(low + chance)).astype(np.int64)
    covariates = [Covariate(f"c{i}", numbers[:, i]) for i in range(k)]
    values = follows[:, None] * strength + own
    return Table(values, target, covariates, acts, tuple(relevant.tolist()))


SIZES = ((200, 300, 20, 4.0), (500, 2000, 20, 3.6), (1000, 1000, 100, 3.2), (2000, 2000, 300, 2.5))
SUMS = [
    *[
        Sum(form, k, *size, target)
        for target in ("numbers", "50:50")
        for form in ("linear", "curved")
        for k in (1, 8)
        for size in SIZES
    ],
    *[Sum("linear", k, 500, 1000, 20, 3.6, "numbers", "other curves") for k in (1, 2, 8)],
    *[
        Sum(form, k, 400, 2000, 0, 0.0, target)
        for form in ("linear", "curved")
        for k in (1, 4)
        for target in ("numbers", "uneven", "50:50", "10:90")
    ],
    *[
        Sum("linear", k, 400, 2000, 0, t, target, "a curve of t")
        for k in (1, 4)
        for target in ("numbers", "50:50")
        for t in (0.0, 1.5, 3.0)
    ],
]

SMALL = ("linear", "curved", "wave", "none", "no effect")
CELLS = [
    *[Cell(form, n) for n in (60, 200, 1000) for form in (*SMALL, "five components")],
    *[Cell(form, n) for n in (200, 1000) for form in ("12 levels", "product")],
    *[Cell(form, n) for n in (200, 1000) for form in ("wave by sex", "wave, each sex")],
    *[Cell(form, n) for n in (200, 1000) for form in ("step", "step, in classes")],
    *[Cell("linear, with error", n) for n in (200, 1000)],
    *[Cell("curved", n, kind) for n in (200, 1000) for kind in ("90:10", "three", "numbers")],
    *[Cell("curved", n, kind) for n in (200, 1000) for kind in ("heavy", "uneven", "censored")],
    *[Cell("none", 200, kind) for kind in ("90:10", "three", "numbers", "censored")],
    *[Cell("linear", 60, kind) for kind in ("numbers", "censored")],
    *[Cell("linear", 1000, kind, "3% ones") for kind in ("50:50", "90:10", "numbers")],
    *[Cell("linear", n, "50:50", what) for n in (200, 1000) for what in ("spread", "missing")],
    *[Cell("linear", 1000, "numbers", what) for what in ("spread", "missing")],
    *[Cell(form, n) for n in (20_000, 60_000) for form in ("linear", "curved", "wave")],
    *[Cell("curved", 20_000, kind) for kind in ("90:10", "numbers", "censored")],
    *[Cell(form, 20_000) for form in ("step", "step, in classes")],
    *[Cell("linear", n, is_null=True) for n in (60, 200, 1000, 20_000)],
    *[Cell(form, 200, is_null=True) for form in ("wave", "12 levels", "five components")],
    *[Cell("curved", 200, kind, is_null=True) for kind in ("90:10", "three", "uneven")],
    *[Cell("curved", 200, kind, is_null=True) for kind in ("numbers", "heavy", "censored")],
    *[Cell("linear", 1000, "50:50", what, is_null=True) for what in ("spread", "missing")],
]


def make_mixed(seed: int) -> Table:
    """Return bits, an XOR pair and a chain of three, beside a curved confounder; two classes.

    A quarter of the rows follows the pair's product, the others that of the first one, two or three
    of the chain.
    """
    rng = np.random.default_rng([seed, *b"mixed"])
    n, p = 1000, 2000
    covariates, acts, follows = covariates_of("curved", n, rng)
    values, first = rng.normal(size=(n, p)), p // 2
    values[:, :first] += follows[:, None] * rng.uniform(0.2, 1, first)
    values[:, first : first + 5] = bits = rng.choice([-1.0, 1.0], (n, 5))
    chain = np.cumprod(bits[:, 2:], axis=1)[np.arange(n), rng.integers(0, 3, n)]
    sign = np.where(rng.random(n) < 0.25, bits[:, 0] * bits[:, 1], chain)
    chance = special.expit(1.5 * acts + 4 * sign)
    classes = (rng.random(n) < chance).astype(np.int64)
    return Table(values, classes, covariates, acts, tuple(range(first, first + 5)))


# Public genotypes.


def genotypes_of(stem: Path) -> tuple[Floats, list[list[str]], list[str]]:
    """Return counts of the first allele (rows, variants), NaN where missing; .fam; variants."""
    people = [line.split() for line in stem.with_suffix(".fam").read_text().splitlines()]
    names = [line.split()[1] for line in stem.with_suffix(".bim").read_text().splitlines()]
    raw = np.fromfile(stem.with_suffix(".bed"), np.uint8)[3:].reshape(len(names), -1)
    two_bits = (raw[:, :, None] >> np.array([0, 2, 4, 6], np.uint8)) & 3
    counts = np.array([2.0, np.nan, 1.0, 0.0])[two_bits].reshape(len(names), -1)
    return counts[:, : len(people)].T, people, names


def column_of(path: Path, column: int, people: list[list[str]], *, skip: int = 0) -> Floats:
    """Return a column of a text file by its rows' ids; NaN of those it lacks."""
    rows = [line.split() for line in path.read_text().splitlines()[skip:]]
    by_id = {row[1]: row[column] for row in rows}
    return np.array([float(by_id.get(person[1], "nan")) for person in people])


# The oracle.


def tail(a: Floats, p: Floats, u: Floats) -> Floats:
    """Return P(|sum of (y - p) a| >= |u|), y of chances p; a (n, m). Lugannani and Rice's tail."""
    a, u, t = a * np.where(u < 0, -1.0, 1.0), np.abs(u), np.zeros(len(u))
    odds, middle = special.logit(np.clip(p, 1e-12, 1 - 1e-12))[:, None], p @ a
    most = np.where(a > 0, a, 0).sum(axis=0)
    for _ in range(50):
        tilted = special.expit(odds + a * t)
        slope, curve = (
            (tilted * a).sum(axis=0) - middle - u,
            (tilted * (1 - tilted) * a * a).sum(axis=0),
        )
        if (np.abs(slope) < 1e-8 * np.sqrt(curve)).all():
            break
        t = t - np.clip(slope / np.maximum(curve, 1e-12), -1, 1) / (1 + (np.abs(slope) > most))
    cumulant = (np.logaddexp(0, odds + a * t) - np.logaddexp(0, odds)).sum(axis=0) - t * middle
    w, v = np.sqrt(2 * np.maximum(t * u - cumulant, 1e-12)), t * np.sqrt(curve)
    beyond = stats.norm.pdf(w) * (1 / np.where(v > 0, v, w) - 1 / w)
    one_sided = stats.norm.sf(w) + beyond
    return np.asarray(np.clip(2 * one_sided, 1e-300, 1))


def score_test(values: Floats, target: Target, q: Floats) -> Floats:
    """Return p-values of the score test beside an orthonormal basis; of least squares, t's.

    Others' sums are taken times sqrt((n - K) / n), as the fit of K columns is in sample.
    """
    n, columns, c = len(q), q * np.sqrt(len(q)), np.sqrt(1 - q.shape[1] / len(q))
    x = values - np.nanmean(values, axis=0)
    x = np.where(np.isnan(x), 0.0, x)
    if isinstance(target, Censored):
        return of_cox(x, columns[:, 1:], target, c)
    if target.dtype.kind == "f":
        left, y = x - q @ (q.T @ x), target - q @ (q.T @ target)
        r = (y @ left) / np.sqrt((y @ y) * (left * left).sum(axis=0))
        df = n - q.shape[1] - 1
        return np.asarray(2 * stats.t.sf(np.abs(r) * np.sqrt(df / (1 - r * r)), df))
    every, classes = np.ones(n, np.bool_), int(target.max()) + 1
    if classes > 2:  # sums of residuals of all classes but one, by their products
        fits = np.array([logistic(columns, target == c, every) for c in range(classes)])
        fits /= fits.sum(axis=0)
        left = x - q @ (q.T @ x)
        parts = [((target == c) - fits[c])[:, None] * left for c in range(classes - 1)]
        sums = np.array([part.sum(axis=0) for part in parts]).T
        curve = np.array([[(a * b).sum(axis=0) for a in parts] for b in parts]).transpose(2, 0, 1)
        z2 = np.einsum("ji,ji->j", sums, np.linalg.solve(curve, sums[..., None])[..., 0])
        return np.asarray(stats.chi2.sf(z2 * c * c, classes - 1))
    p = logistic(columns, target == 1, every)
    w = p * (1 - p)
    left = x - q @ np.linalg.solve((q * w[:, None]).T @ q, (q * w[:, None]).T @ x)
    sums, squares = c * (target - p) @ left, np.maximum(w @ (left * left), 1e-12)
    z = np.abs(sums) / np.sqrt(squares)
    out: Floats = 2 * stats.norm.sf(z)
    far = np.flatnonzero(z > 2)
    out[far] = tail(left[:, far], p, sums[far])
    return out


def of_cox(x: Floats, columns: Floats, target: Censored, c: float) -> Floats:
    """Return p-values of Cox's score test beside columns."""
    risks = np.exp(columns @ cox(columns, target))
    expected = risks * hazards(target, risks)
    order = np.argsort(-target.times)
    seen = target.events[order]

    def means(of: Floats) -> Floats:
        weights = np.cumsum(risks[order])[:, None]
        sums = np.cumsum(of[order] * risks[order, None], axis=0)
        return np.asarray((sums / weights)[seen])

    of_x, of_c = means(x), means(columns)
    own = expected @ (x * x) - (of_x * of_x).sum(axis=0)
    cross = (columns * expected[:, None]).T @ x - of_c.T @ of_x
    inner = (columns * expected[:, None]).T @ columns - of_c.T @ of_c
    squares = own - (cross * np.linalg.solve(inner, cross)).sum(axis=0)
    return np.asarray(2 * stats.norm.sf(np.abs(c * (target.events - expected) @ x) / squares**0.5))
