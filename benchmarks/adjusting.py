"""False shares and power of features tested beside covariates, on tables whose truth is known.

    OPENBLAS_NUM_THREADS=1 nice python benchmarks/adjusting.py cells --results FILE
        [--only TEXT] [--seeds FROM TO] [--minutes N] [--runs]
    ... mixed --results FILE              an XOR pair, a chain of three and confounding in one table
    ... public --results FILE             public genotypes in the folder SRS_OOC_DATA
    ... sums --results FILE               prints a table of targets that are sums
    ... report --results FILE             writes the tables of docs/research/adjusting-measured.md
    ... cost                              seconds of tests with and without ten columns of basis

Each table adds a line to FILE; what is there is not done again. Seeds are from 3000 on: those below
were read while the recipe was chosen. Cells are tested as a run tests single features (the same
null model, tests, shares of the level; features beside others are left out); ``--runs`` adds whole
runs. Beside them: not adjusted, within five bins of the covariate (of times without risk sets), and
an oracle: Benjamini and Hochberg on the score test of the model that made the table (logistic, by
saddlepoint; least squares; Cox), told the same basis. False is what is independent of the target
given the covariates.
"""

import argparse
import os
import time
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np
from adjusting_designs import (
    CELLS,
    SUMS,
    Cell,
    Floats,
    Table,
    Target,
    column_of,
    genotypes_of,
    make,
    make_mixed,
    make_sum,
    score_test,
)
from evidence import Found, error, scored
from marginal import LEVEL, N_CODES, adjusted, codes_of, passing, strengths, unadjusted
from measured import Record, Results, subcommand
from numpy.typing import NDArray
from scipy import stats

import srs_ooc
from srs_ooc.base.records import Covariate
from srs_ooc.evidence import null_model
from srs_ooc.evidence.null_model import (
    Censored,
    basis_of,
    logistic,
    spline,
    strata_of,
)
from srs_ooc.evidence.rank_tests import (
    Covariates,
    contrasts_log_p,
)
from srs_ooc.native.numerics import orthonormal

PAGE = Path(__file__).parents[1] / "docs/research/adjusting-measured.md"


def five_bins(covariates: list[Covariate]) -> NDArray[np.int64]:
    """Return strata: five bins of the first covariate, or its levels, by those of the second."""
    bins = np.zeros(len(covariates[0].values), np.int64)
    for one in [one for one in covariates[:2] if one is covariates[0] or one.levels]:
        ranks = stats.rankdata(np.nan_to_num(one.values), "ordinal") - 1
        own = one.values if one.levels else ranks * 5 // len(ranks)
        bins = bins * 12 + own.astype(np.int64)
    return bins


def lambda_of(log_p: Floats) -> float:
    """Return the median of z^2 over what it is by chance."""
    return float(np.nanmedian(stats.chi2.isf(np.exp(log_p), 1)) / stats.chi2.median(1))


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
    values, target = table.values, table.target
    codes = codes_of(values)
    beside, location = strengths(codes, adjusted(target, table.covariates))
    strata, q = five_bins(table.covariates), basis_of(table.covariates)
    found = {
        "adjusted": beside,
        "location": -np.nan_to_num(location) / np.log(10),
        "unadjusted": strengths(codes, unadjusted(target))[0],
        "bins": strengths(codes, unadjusted(target, strata))[0],
        "oracle": -np.log10(np.maximum(score_test(values, target, q), 1e-300)),
    }
    is_false = ~np.isin(np.arange(len(codes)), table.relevant)
    p_values = np.exp(location[is_false])
    acts = table.acts
    left = acts - q @ (q.T @ acts)
    return {
        "found": {who: scored(passing(what), table.relevant) for who, what in found.items()},
        "lambda": lambda_of(location),
        "ratio": float(np.nanmean(p_values <= 0.01) / 0.01),
        "left": float(left @ left) / max(float(acts @ acts), 1e-12),
    }


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
        seeds = asked.seeds or (3000, 3040 if cell.n < 20_000 else 3010)
        for seed in range(*seeds) if asked.only in cell.name else ():
            key = {"cell": cell.name, "seed": seed, "runs": asked.runs}
            if results.find(key) is None and time.monotonic() < end:
                table = make(cell, seed)
                results.add(key | (run_found(table) if asked.runs else tested(table)))


def mixed() -> None:
    """Run what is left of the tables with an XOR pair, a chain and confounding."""
    asked = asked_for()
    results = Results(asked.results)
    for seed in range(*(asked.seeds or (3000, 3010))):
        if results.find({"mixed": True, "seed": seed}) is None:
            table = make_mixed(seed)
            chosen = whole_run(table, None)
            results.add({"mixed": True, "seed": seed, **scored(chosen, table.relevant)})


# Targets that are sums: power beside the score test, and what leaving columns out would do.


def without_idle(table: Table) -> Floats:
    """Return the basis without curves and products that say nothing of the target.

    One leaves if its score test, beside those that stay, has |t| of at most 1; lines stay.
    """
    target, numbers = table.target, [one.values for one in table.covariates]
    if isinstance(target, Censored):
        raise NotImplementedError
    lines = [np.ones(len(numbers[0])), *(spline(number, 1)[0] for number in numbers)]
    whole = orthonormal(np.array([*lines, *basis_of(table.covariates).T]), 1e-6)
    whole = np.ascontiguousarray(whole[np.abs(whole).max(axis=1) > 0].T)
    stays, every = np.arange(whole.shape[1]) < len(lines), np.ones(len(whole), np.bool_)
    while True:
        some = np.ascontiguousarray(whole[:, stays])
        left = target - some @ (some.T @ target)
        if target.dtype.kind != "f":
            left = target - logistic(some * np.sqrt(len(some)), np.equal(target, 1), every)
        explains = (left @ whole) ** 2 > left**2 @ whole**2
        if not (explains & ~stays).any():
            return some
        stays |= explains


def of_sum(table: Table) -> Record:
    """Return what the tests find beside the covariates, with all columns and without idle ones."""
    codes = codes_of(table.values)
    is_false = ~np.isin(np.arange(len(codes)), table.relevant)
    p_values = score_test(table.values, table.target, basis_of(table.covariates))
    found = {"oracle": -np.log10(np.maximum(p_values, 1e-300))}
    out: Record = {}
    for who, basis in (("all", basis_of(table.covariates)), ("fewer", without_idle(table))):
        with patch.object(null_model, "basis_of", lambda *_, basis=basis: basis):
            beside = adjusted(table.target, table.covariates)
        found[who], location = strengths(codes, beside)
        found[f"{who}, location"] = -np.nan_to_num(location) / np.log(10)
        p_values = np.exp(location[is_false])
        out[f"{who}: K"] = basis.shape[1]
        out[f"{who}: lambda"] = lambda_of(location)
        out[f"{who}: p"] = [float(np.mean(p_values <= t)) for t in RATIOS]
    return out | {"found": {who: scored(passing(it), table.relevant) for who, it in found.items()}}


def sums() -> None:
    """Do what is left of the sums, and print their table."""
    asked = asked_for()
    results, end = Results(asked.results), time.monotonic() + 60 * asked.minutes
    for cell in SUMS:
        for seed in range(*(asked.seeds or (3000, 3020))) if asked.only in cell.name else ():
            key = {"sum": cell.name, "seed": seed}
            if results.find(key) is None and time.monotonic() < end:
                results.add(key | of_sum(make_sum(cell, seed)))
    some: dict[str, list[Record]] = defaultdict(list)
    for line in results.records:
        some[line.get("sum", "")].append(line)
    print("\n".join([*head(OF_SUMS), *(sum_row(one.name, some[one.name]) for one in SUMS)]))


def sum_row(name: str, lines: list[Record]) -> str:
    """Return the row of a sum."""
    if not lines:
        return row([name, 0])

    def power(who: str) -> Floats:
        return np.array([line["found"][who]["power"] for line in lines], np.float64)

    cells: list[object] = [name, len(lines), f"{power('oracle').mean():.2f}"]
    for who in ("all", "fewer"):
        below, alone = (power("oracle") - power(it) for it in (who, f"{who}, location"))
        ratios = np.mean([line[f"{who}: p"] for line in lines], axis=0) / RATIOS
        cells += [f"{mean(line[f'{who}: K'] for line in lines):.0f}"]
        apart = float(below.std(ddof=1)) / len(lines) ** 0.5
        cells += [f"{below.mean():.3f} ± {apart:.3f}", f"{alone.mean():.3f}"]
        cells += [f"{mean(line['found'][who]['false'] for line in lines):.2f}"]
        cells += [f"{mean(line[f'{who}: lambda'] for line in lines):.2f}"]
        cells += [" ".join(f"{ratio:.2f}" for ratio in ratios)]
    return row("" if "nan" in str(cell) else cell for cell in cells)


# Public tables of genotypes.


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
            if results.find({"public": of["public"]}) is None:
                results.add(of | {"selected": len(chosen), "names": chosen[:8]})
    example = {"public": "REGENIE's example"}
    if (folder / "regenie-example").exists() and results.find(example) is None:
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
    classes, basis = rng.integers(0, 2, n), np.linalg.qr(rng.normal(size=(n, 10)))[0]
    beside = unadjusted(classes, strata_of([basis[:, 0]]).astype(np.int64))
    for target in (unadjusted(classes), beside._replace(covariates=Covariates.of(basis))):
        start = time.process_time()
        contrasts_log_p(codes, N_CODES, target)
        seconds.append(time.process_time() - start)
    print(seconds, seconds[1] / seconds[0])


# The tables.

BEGIN, END = "<!-- tables: python benchmarks/adjusting.py report -->", "<!-- end of tables -->"
SIGNALS = (
    "table; tables; not in basis; **false share**; power; oracle: false; power; loss; of location "
    "alone; not adjusted: false; power; five bins: false; power; lambda; ratio at .01"
)
RUNS = "; whole run: tables; false; power"
RATIOS = np.array([0.05, 0.01, 0.001])
WAYS = "K; below; of location alone; false; lambda; level at .05, .01, .001"
OF_SUMS = f"table; tables; score test; all columns: {WAYS}; fewer: {WAYS}"
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
    with_runs = any(line.get("runs") for line in lines)
    text = head(SIGNALS + RUNS * with_runs)
    text += [row_of(one, by_cell[one.name], with_runs) for one in done if not one.is_null]
    text += head(NULLS) + [null_row(one, by_cell[one.name]) for one in done if one.is_null]
    if some := [line for line in lines if "mixed" in line]:
        text += head("XOR pair, chain of three, curved confounder; tables; power; false share")
        cells = mean(line["power"] for line in some), mean(line["false"] for line in some)
        text.append(row(["1,000 x 2,000", len(some), *(f"{cell:.3f}" for cell in cells)]))
    if some := [line for line in lines if "public" in line]:
        text += head("public table; lambda; selected; what")
        for line in some:
            what = ", ".join(line["names"]) if "names" in line else f"{line['correlation']:.3f}"
            lam, n_selected = f"{line['lambda']:.2f}", line.get("selected", "")
            text.append(row([line["public"], lam, n_selected, what]))
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


def row_of(cell: Cell, lines: list[Record], with_runs: bool) -> str:
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
    if with_runs:
        cells += [len(runs["run"]), *both("run")] if "run" in runs else ["", "", ""]
    return row(cells)


if __name__ == "__main__":
    subcommand(cells=cells, mixed=mixed, public=public, report=report, sums=sums, cost=time_tests)
