"""False shares and power of features tested beside covariates, on tables whose truth is known.

    OPENBLAS_NUM_THREADS=1 nice python benchmarks/adjusting.py cells --results FILE
        [--only TEXT] [--seeds FROM TO] [--minutes N] [--runs]
    ... mixed --results FILE              an XOR pair, a chain of three and confounding in one table
    ... public --results FILE             public genotypes in the folder SRS_OOC_DATA
    ... report --results FILE             writes the tables of docs/research/adjusting-measured.md
    ... cost                              seconds of tests with and without ten columns of basis

Each table adds a line to FILE; what is there is not done again. Cells are tested as a run tests
single features (the same null model, tests, shares of the level; features beside others are left
out); ``--runs`` adds whole runs. Beside them: not adjusted, within five bins of the covariate, and
an oracle: Benjamini and Hochberg on the score test of the model that made the table (logistic, by
saddlepoint; least squares; Cox), told the same basis. False is what is independent of the target
given the covariates.
"""

import argparse
import os
import time
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from evidence import Found, error, scored
from measured import Record, Results, subcommand
from numpy.typing import NDArray
from scipy import special, stats

import srs_ooc
from srs_ooc.base.records import Covariate
from srs_ooc.evidence.conditional_tests import cost
from srs_ooc.evidence.null_model import (
    Censored,
    NullModel,
    basis_of,
    censored_scores,
    cox,
    form_of,
    hazards,
    logistic,
)
from srs_ooc.evidence.rank_tests import (
    CERTAIN,
    NO_CONTRAST,
    RankTarget,
    contrasts_log_p,
    least_passing,
    shares_beside,
    strongest_of,
)

LEVEL, N_CODES = 0.1, 254
PAGE = Path(__file__).parents[1] / "docs/research/adjusting-measured.md"
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
    acts = {
        "linear": u,
        "curved": u**2,
        "wave": np.sin(3 * u),
        "step": np.where(u > 0.3, 1.0, 0.0),
        "product": u * (2 * sex - 1),
        "wave by sex": np.sin(3 * u) * (2 * sex - 1),
        "no effect": np.zeros(n),
        "none": np.zeros(n),
    }[form]
    follows = u if form == "no effect" else acts
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


def codes_of(values: Floats) -> NDArray[np.uint8]:
    """Return codes as a store has them, (p, n)."""
    if len(np.unique(values[:, 0])) == 2:
        return np.ascontiguousarray(values.T, dtype=np.uint8)
    ranks = np.empty(values.T.shape, np.int64)
    np.put_along_axis(ranks, np.argsort(values.T, axis=1), np.arange(len(values))[None], axis=1)
    known = (~np.isnan(values)).sum(axis=0)[:, None]
    codes = np.where(known > N_CODES, ranks * N_CODES // known, ranks)
    return np.where(np.isnan(values.T), 255, codes).astype(np.uint8)


def unadjusted(target: Target, strata: NDArray[np.int64] | None = None) -> RankTarget:
    """Return what features are tested against, within strata or not."""
    if isinstance(target, Censored):
        return RankTarget.of_scores(censored_scores(target, strata), strata)
    if target.dtype.kind == "f":
        return RankTarget.of_values(target.astype(np.float64), strata)
    return RankTarget.of_classes(target.astype(np.int64), int(target.max()) + 1, strata)


def adjusted(target: Target, covariates: list[Covariate]) -> RankTarget:
    """Return what features are tested against beside covariates."""
    null = NullModel.of(target, covariates)
    if isinstance(target, Censored) or target.dtype.kind == "f":
        beside = RankTarget.of_scores(null.scores, null.strata)
    else:
        beside = unadjusted(target, null.strata.astype(np.int64))
    return beside._replace(covariates=null.covariates())


def five_bins(covariates: list[Covariate]) -> NDArray[np.int64]:
    """Return strata: five bins of the first covariate, or its levels, by those of the second."""
    bins = np.zeros(len(covariates[0].values), np.int64)
    for one in [one for one in covariates[:2] if one is covariates[0] or one.levels]:
        ranks = stats.rankdata(one.values, method="ordinal") - 1
        own = one.values if one.levels else ranks * 5 // len(ranks)
        bins = bins * 12 + own.astype(np.int64)
    return bins


def strengths(codes: NDArray[np.uint8], target: RankTarget) -> tuple[Floats, Floats]:
    """Return -log10 p of features as a run has them, and logarithms of p-values of location."""
    log_p = contrasts_log_p(codes, N_CODES, target)
    even, contrasts = strongest_of(log_p, np.full(3, 1 / 3))
    own = np.where(even >= np.log10(len(codes) / CERTAIN), contrasts, NO_CONTRAST).astype(np.uint8)
    shares = shares_beside(np.bincount(own, minlength=NO_CONTRAST)[:NO_CONTRAST], own)
    found = np.where(even >= 1, strongest_of(log_p, shares)[0], even)
    return found - cost(0, len(codes)), log_p[:, 0]


def lambda_of(log_p: Floats) -> float:
    """Return the median of z^2 over what it is by chance."""
    return float(np.nanmedian(stats.chi2.isf(np.exp(log_p), 1)) / stats.chi2.median(1))


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
        t = t - np.clip(slope / np.maximum(curve, 1e-12), -1, 1) / (1 + (np.abs(slope) > most))
    cumulant = (np.logaddexp(0, odds + a * t) - np.logaddexp(0, odds)).sum(axis=0) - t * middle
    w, v = np.sqrt(2 * np.maximum(t * u - cumulant, 1e-12)), t * np.sqrt(curve)
    one_sided = stats.norm.sf(w) + stats.norm.pdf(w) * (1 / v - 1 / w)
    return np.asarray(np.clip(2 * one_sided, 1e-300, 1))


def oracle(table: Table) -> Floats:
    """Return p-values of the score test of the model, told the basis; of least squares, t's.

    Others' sums are taken times sqrt((n - K) / n), as the fit of K columns is in sample.
    """
    q, target = basis_of(table.covariates, form_of(table.covariates)), table.target
    n, columns, c = len(q), q * np.sqrt(len(q)), np.sqrt(1 - q.shape[1] / len(q))
    x = table.values - np.nanmean(table.values, axis=0)
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
    risks = np.exp(cox(columns, target))
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


# What is done of each table.


def whole_run(table: Table, iterations: int | None) -> list[int]:
    """Return the features that a run of the package selects."""
    target = table.target
    kind: dict[str, Any] = {"target": target, "task": "regression"}
    if isinstance(target, Censored):
        kind = {"time": target.times, "event": target.events.astype(np.int64)}
    elif target.dtype.kind == "i":
        kind = {"target": [f"c{i}" for i in target], "task": "classification"}
    beside = {
        one.name: [one.levels[int(i)] for i in one.values] if one.levels else one.values
        for one in table.covariates
    }
    with TemporaryDirectory() as folder:
        store, run = Path(folder) / "t.zarr", Path(folder) / "t.run"
        srs_ooc.ingest(table.values, store, covariates=beside, **kind)
        names = srs_ooc.run(store, out=run, adjust="all", iterations=iterations).selected
    return [int(name[1:]) for name in names]


def tested(table: Table) -> Record:
    """Return what the tests find beside the covariates, and otherwise."""
    codes, target = codes_of(table.values), table.target
    beside, location = strengths(codes, adjusted(target, table.covariates))
    strata = five_bins(table.covariates)
    found = {
        "adjusted": beside,
        "location": -np.nan_to_num(location) / np.log(10),
        "unadjusted": strengths(codes, unadjusted(target))[0],
        "bins": strengths(codes, unadjusted(target, strata))[0],
        "oracle": -np.log10(np.maximum(oracle(table), 1e-300)),
    }
    is_false = ~np.isin(np.arange(len(codes)), table.relevant)
    p_values = np.exp(location[is_false])
    q, acts = basis_of(table.covariates, form_of(table.covariates)), table.acts
    left = acts - q @ (q.T @ acts)
    return {
        "found": {who: scored(passing(what), table.relevant) for who, what in found.items()},
        "lambda": lambda_of(location),
        "ratio": float(np.nanmean(p_values <= 0.01) / 0.01),
        "left": float(left @ left) / max(float(acts @ acts), 1e-12),
    }


def passing(strength: Floats) -> list[int]:
    """Return the features that pass Benjamini and Hochberg."""
    return np.flatnonzero(strength >= least_passing(strength, LEVEL)).tolist()


SMALL = ("linear", "curved", "wave", "none", "no effect")
CELLS = [
    *[Cell(form, n) for n in (60, 200, 1000) for form in (*SMALL, "five components")],
    *[Cell(form, n) for n in (200, 1000) for form in ("12 levels", "product")],
    *[Cell(form, n) for n in (200, 1000) for form in ("wave by sex", "step")],
    *[Cell("curved", n, kind) for n in (200, 1000) for kind in ("90:10", "three", "numbers")],
    *[Cell("curved", n, kind) for n in (200, 1000) for kind in ("heavy", "uneven", "censored")],
    *[Cell("none", 200, kind) for kind in ("90:10", "three", "numbers", "censored")],
    *[Cell("linear", 60, kind) for kind in ("numbers", "censored")],
    *[Cell("linear", 1000, kind, "3% ones") for kind in ("50:50", "90:10", "numbers")],
    *[Cell("linear", n, "50:50", what) for n in (200, 1000) for what in ("spread", "missing")],
    *[Cell("linear", 1000, "numbers", what) for what in ("spread", "missing")],
    *[Cell(form, n) for n in (20_000, 60_000) for form in ("linear", "curved", "wave")],
    *[Cell("curved", 20_000, kind) for kind in ("90:10", "numbers", "censored")],
    *[Cell("linear", n, is_null=True) for n in (60, 200, 1000, 20_000)],
    *[Cell(form, 200, is_null=True) for form in ("wave", "12 levels", "five components")],
    *[Cell("curved", 200, kind, is_null=True) for kind in ("90:10", "three", "uneven")],
    *[Cell("curved", 200, kind, is_null=True) for kind in ("numbers", "heavy", "censored")],
    *[Cell("linear", 1000, "50:50", what, is_null=True) for what in ("spread", "missing")],
]


def run_found(table: Table) -> Record:
    """Return what a whole run finds; tests decide, so that few iterations do."""
    return {"found": {"run": scored(whole_run(table, 50), table.relevant)}}


def asked_for() -> argparse.Namespace:
    """Return the options of a command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--seeds", nargs=2, type=int, default=None)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--only", default="")
    parser.add_argument("--runs", action="store_true")
    return parser.parse_args()


def cells() -> None:
    """Do what is left of the cells."""
    asked = asked_for()
    results, end = Results(asked.results), time.monotonic() + 60 * asked.minutes
    for cell in CELLS:
        seeds = asked.seeds or (1000, 1040 if cell.n < 20_000 else 1020)
        for seed in range(*seeds) if asked.only in cell.name else ():
            key = {"cell": cell.name, "seed": seed, "runs": asked.runs}
            if results.find(key) is None and time.monotonic() < end:
                table = make(cell, seed)
                results.add(key | (run_found(table) if asked.runs else tested(table)))


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


def mixed() -> None:
    """Run what is left of the tables with an XOR pair, a chain and confounding."""
    asked = asked_for()
    results = Results(asked.results)
    for seed in range(*(asked.seeds or (1000, 1010))):
        if results.find({"mixed": True, "seed": seed}) is None:
            table = make_mixed(seed)
            chosen = whole_run(table, None)
            results.add({"mixed": True, "seed": seed, **scored(chosen, table.relevant)})


# Public tables of genotypes.


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


def public() -> None:
    """Test public genotypes beside their population, or their first principal component."""
    asked, folder = asked_for(), Path(os.environ.get("SRS_OOC_DATA", "data"))
    results, rng = Results(asked.results), np.random.default_rng(0)
    if not (folder / "fastlmm-synth").exists():
        print(f"skipped: expected fastlmm-synth in {folder} (SRS_OOC_DATA); it is not there")
        return
    values, people, names = genotypes_of(folder / "fastlmm-synth/all")
    number = column_of(folder / "fastlmm-synth/pheno_10_causals.txt", 2, people)
    population = np.array([float(person[1].endswith("P1")) for person in people])
    drawn = (rng.random(len(people)) < np.where(population == 1, 0.8, 0.2)).astype(np.int64)
    scaled = (values - values.mean(axis=0)) / np.maximum(values.std(axis=0), 1e-9)
    component = np.linalg.svd(scaled, full_matrices=False)[0][:, 0]
    covariates = {
        "nothing": [],
        "population": [Covariate("population", population, ("P0", "P1"))],
        "first component": [Covariate("c1", component)],
    }
    codes = np.ascontiguousarray(values.T).astype(np.uint8)
    targets: dict[str, Target] = {"ten causes": number, "80:20 by population": drawn}
    for what, target in targets.items():
        for beside, some in covariates.items():
            against = adjusted(target, some) if some else unadjusted(target)
            strength, location = strengths(codes, against)
            chosen = [names[j].split("_")[0] for j in passing(strength)]
            of = {"public": f"{what}, beside {beside}", "lambda": lambda_of(location)}
            results.add(of | {"selected": len(chosen), "names": chosen[:8]})
    if (folder / "regenie-example").exists():
        results.add(of_regenie(folder / "regenie-example"))


def of_regenie(folder: Path) -> Record:
    """Return how the tests agree with REGENIE's (Firth) of the same target and covariates."""
    values, people, names = genotypes_of(folder / "example")
    target = column_of(folder / "phenotype_bin.txt", 2, people, skip=1)
    columns = [column_of(folder / "covariates.txt", 2 + i, people, skip=1) for i in range(3)]
    kept = ~np.isnan([target, *columns]).any(axis=0)
    some = [Covariate(f"V{i}", column[kept]) for i, column in enumerate(columns)]
    codes = np.where(np.isnan(values), 255, values)[kept].T.astype(np.uint8, order="C")
    _, location = strengths(codes, adjusted(target[kept].astype(np.int64), some))
    lines = (folder / "example.test_bin_out_firth_Y1.regenie").read_text().splitlines()[1:]
    theirs = {line.split()[2]: float(line.split()[-1]) for line in lines}
    both = [j for j, name in enumerate(names) if name in theirs]
    pairs = -location[both] / np.log(10), [theirs[names[j]] for j in both]
    agree = float(stats.spearmanr(*pairs, nan_policy="omit").statistic)
    return {"public": "REGENIE's example", "lambda": lambda_of(location), "correlation": agree}


def time_tests() -> None:
    """Print the seconds of tests with and without ten columns of basis."""
    rng, n, p, seconds = np.random.default_rng(0), 1000, 100_000, []
    codes = rng.integers(0, N_CODES, (p, n), np.uint8)
    covariates = [Covariate(f"c{i}", rng.normal(size=n)) for i in range(3)]
    classes = rng.integers(0, 2, n)
    for target in (unadjusted(classes), adjusted(classes, covariates)):
        start = time.process_time()
        contrasts_log_p(codes, N_CODES, target)
        seconds.append(time.process_time() - start)
    print(seconds, seconds[1] / seconds[0])


# The tables.

BEGIN, END = "<!-- tables: python benchmarks/adjusting.py report -->", "<!-- end of tables -->"
SIGNALS = (
    "table; tables; not in basis; **false share**; power; oracle: false; power; loss; of location "
    "alone; not adjusted: false; power; five bins: false; power; lambda; ratio at .01; whole run: "
    "tables; false; power"
)
NULLS = "table; tables; **select something**; oracle; not adjusted; five bins; lambda; ratio at .01"


def row(cells: Iterable[object]) -> str:
    """Return a row of a table."""
    return f"| {' | '.join(map(str, cells))} |"


def head(names: str) -> list[str]:
    """Return the head of a table."""
    return ["", row(names.split("; ")), "|---" * (names.count(";") + 1) + "|"]


def report() -> None:
    """Print the tables, and write them into the page."""
    lines = Results(asked_for().results).records
    by_cell: dict[str, list[Record]] = defaultdict(list)
    for line in lines:
        by_cell[line.get("cell", "")].append(line)
    done = [cell for cell in CELLS if by_cell[cell.name]]
    text = head(SIGNALS) + [row_of(one, by_cell[one.name]) for one in done if not one.is_null]
    text += head(NULLS) + [null_row(one, by_cell[one.name]) for one in done if one.is_null]
    if some := [line for line in lines if "mixed" in line]:
        text += head("XOR pair, chain of three, curved confounder; tables; power; false share")
        cells = mean(line["power"] for line in some), mean(line["false"] for line in some)
        text.append(row(["1,000 x 2,000", len(some), *(f"{cell:.3f}" for cell in cells)]))
    if some := [line for line in lines if "public" in line]:
        text += head("public table; lambda; selected; what")
        for line in some:
            what = ", ".join(line["names"]) if "names" in line else f"{line['correlation']:.3f}"
            text.append(row([line["public"], f"{line['lambda']:.2f}", line.get("selected"), what]))
    print("\n".join(text))
    page = PAGE.read_text()
    before, after = page.split(BEGIN)[0], page.split(END)[1]
    PAGE.write_text("\n".join([before + BEGIN, *text, "", END + after]))


def runs_of(lines: list[Record]) -> dict[str, dict[int, Found]]:
    """Return what was found, by method and seed."""
    found: dict[str, dict[int, Found]] = defaultdict(dict)
    for line in lines:
        for who, what in line["found"].items():
            found[who][line["seed"]] = what
    return found


def said(lines: list[Record]) -> list[str]:
    """Return cells of lambda and of the level at .01 as a ratio."""
    some = [line for line in lines if "lambda" in line]
    return [f"{mean(line[key] for line in some):.2f}" for key in ("lambda", "ratio")]


def null_row(cell: Cell, lines: list[Record]) -> str:
    """Return the row of a cell in which nothing is relevant."""
    runs = runs_of(lines)
    order = ("adjusted", "oracle", "unadjusted", "bins")
    some = [mean(run["selected"] > 0 for run in runs[who].values()) for who in order]
    shares = [f"{share:.3f}" for share in some]
    return row([cell.name, len(runs["adjusted"]), *shares, *said(lines)])


def row_of(cell: Cell, lines: list[Record]) -> str:
    """Return the row of a cell; a false share more than two standard errors above is bold."""
    runs = runs_of(lines)

    def both(who: str) -> list[str]:
        some = runs[who].values()
        return [f"{mean(run[key] for run in some):.2f}" for key in ("false", "power")]

    def loss(who: str) -> str:
        some = [told["power"] - runs[who][seed]["power"] for seed, told in runs["oracle"].items()]
        return f"{mean(some):.3f} ± {error(some):.3f}"

    shares = [run["false"] for run in runs["adjusted"].values()]
    share = f"{mean(shares):.3f} ± {error(shares):.3f}"
    if mean(shares) > LEVEL + 2 * error(shares):
        share = f"**{share}**"
    left = mean(line["left"] for line in lines if "left" in line)
    cells = [cell.name, len(shares), f"{left:.3f}", share, both("adjusted")[1], *both("oracle")]
    cells += [loss("adjusted"), loss("location"), *both("unadjusted"), *both("bins"), *said(lines)]
    return row(cells + ([len(runs["run"]), *both("run")] if "run" in runs else ["", "", ""]))


if __name__ == "__main__":
    subcommand(cells=cells, mixed=mixed, public=public, report=report, cost=time_tests)
