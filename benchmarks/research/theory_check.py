"""Claim: the engine needs as many iterations as the theory says where its assumptions hold.

The engine itself (`--judge positive`, K = q, one thread) on exact stores, from
the first iteration until every relevant feature is in F, over many seeds; RS is alpha = 0 and SRS
alpha = 1. Beside its mean: the theory of Section 4 (simplified trees,
`srs_ooc.methods.theory.paper_theory`) and the exact mean for real trees (`theory_examples`). A
99% interval is 2.58 standard errors either side of the engine's mean. Prints a markdown table;
three to four minutes on one core.

    python benchmarks/research/theory_check.py [--runs 3000]
"""

import argparse
import math
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))  # the modules that all benchmarks share

import numpy as np
import theory_examples as examples
from more_problems import Clique, Marginal
from theory_examples import real_tree_time

from srs_ooc.base.text import MB
from srs_ooc.ingestion.ingest_options import stored_positions
from srs_ooc.methods.theory.paper_theory import Setting, expected_time
from srs_ooc.runs.inputs import Inputs
from srs_ooc.runs.plan import Plan
from srs_ooc.runs.request import Request
from srs_ooc.runs.resources import Resources
from srs_ooc.runs.run_memory import shape_of
from srs_ooc.runs.settling import settle
from srs_ooc.samplers.srs import KeptSet, SequentialRandomSubspace
from srs_ooc.store.store import Store
from srs_ooc.synthetic.chain import Chain
from srs_ooc.synthetic.table_files import write_table

Z_99 = 2.5758
CAP_NBYTES = 512 * MB
FOREVER = 10**9
KINDS: dict[str, type[Chain]] = {"chain": Chain, "clique": Clique, "marginal": Marginal}


@dataclass(frozen=True)
class Case:
    """One table: r relevant of p, q paged in, and how often each cell is repeated."""

    scenario: str
    n_features: int
    subspace_size: int
    n_relevant: int
    n_repetitions: int = 1


CASES = [
    Case("chain", 100, 20, 1),
    Case("chain", 200, 40, 2),
    Case("chain", 100, 20, 3),
    Case("chain", 60, 30, 4),
    Case("clique", 100, 20, 2),
    Case("clique", 60, 20, 3),
    Case("clique", 60, 30, 4),
    Case("clique", 60, 20, 3, 2),
    Case("marginal", 100, 10, 3),
    Case("marginal", 200, 20, 4),
    Case("marginal", 100, 5, 4),
]


@dataclass(frozen=True)
class Row:
    """What was predicted for one case and one alpha, and what the engine needed."""

    case: Case
    alpha: str
    times: np.ndarray
    theory: float
    real: float

    @property
    def mean(self) -> float:
        """Mean iterations of the engine."""
        return float(self.times.mean())

    @property
    def half_width(self) -> float:
        """Half the width of the 99% interval."""
        return float(Z_99 * self.times.std(ddof=1) / math.sqrt(len(self.times)))

    def holds(self, predicted: float) -> bool:
        """Return whether a prediction lies within the interval."""
        return abs(predicted - self.mean) <= self.half_width


def measure(case: Case, folder: Path, n_runs: int) -> Iterator[Row]:
    """Run one case for RS and SRS."""
    kind = KINDS[case.scenario]
    n_rows = kind.n_cells(case.n_relevant) * case.n_repetitions
    problem = kind(max(2, n_rows), case.n_features, case.n_relevant, 0, True)
    store = folder / f"{'-'.join(map(str, vars(case).values()))}.zarr"
    write_table(problem, store)
    is_relevant = np.isin(stored_positions(case.n_features), problem.positions)
    relevant = set(np.flatnonzero(is_relevant).tolist())
    distribution = getattr(examples, case.scenario)(case.n_relevant)
    sizes = (case.n_features, case.subspace_size)
    for alpha in ("0", "1"):
        setting = Setting(case.scenario, *sizes, case.n_relevant, alpha)
        theory = expected_time(setting)
        real = real_tree_time(distribution, *sizes, alpha, case.n_repetitions)
        assert theory is not None
        assert real is not None
        times = iterations_needed(store, case, alpha, relevant, n_runs)
        yield Row(case, alpha, times, float(theory), float(real))


def iterations_needed(
    store: Path, case: Case, alpha: str, relevant: set[int], n_runs: int
) -> np.ndarray:
    """Return the iterations after which F held every relevant feature, one number a seed."""
    opened, inputs = Store.open(store), Inputs()
    options = {"alpha": alpha, "subspace_size": str(case.subspace_size), "judge": "positive"}
    asked, times = Request(options=options, memory_mb=CAP_NBYTES // MB, threads=1), np.empty(n_runs)
    spec = settle(asked, shape_of(opened.manifest, inputs), {"store": opened.fingerprint})
    with Resources.of(Plan.of_spec(spec, opened, inputs, asked)) as resources:
        for seed in range(n_runs):
            resources.spec = spec.with_seed(seed)
            engine = resources.engine(None)
            sampler = engine.sampler
            assert isinstance(sampler, SequentialRandomSubspace)

            def wanting(kept: KeptSet = sampler.kept) -> bool:
                return kept.n < len(relevant)

            engine.advance(FOREVER, wanting)
            found = set(sampler.kept.features.tolist())
            if found != relevant:
                raise AssertionError(f"{case}: expected {relevant} in F, found {found}")
            times[seed] = engine.iteration
    return times


def line(row: Row) -> str:
    """Return a row of the table."""
    case = row.case
    sizes = f"{case.n_features} | {case.subspace_size} | {case.n_relevant} | {case.n_repetitions}"
    method = {"0": "RS", "1": "SRS"}[row.alpha]
    verdicts = ["yes" if row.holds(time) else "no" for time in (row.theory, row.real)]
    return (
        f"| {case.scenario} | {sizes} | {method} | {row.mean:.2f} ± {row.half_width:.2f} | "
        f"{row.theory:.2f} | {verdicts[0]} | {row.real:.2f} | {verdicts[1]} |"
    )


def main() -> None:
    """Measure every case and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=3000, help="seeds for each case and alpha")
    n_runs = parser.parse_args().runs
    started, rows = time.monotonic(), []
    print(
        "| scenario | p | q | r | repetitions | method | engine, mean ± 99% | "
        "Section 4 | inside | real trees | inside |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for case in CASES:
            for row in measure(case, Path(folder), n_runs):
                rows.append(row)
                print(line(row), flush=True)
    inside = [sum(row.holds(x) for row, x in zip(rows, xs, strict=True)) for xs in (
        [row.theory for row in rows], [row.real for row in rows])]  # fmt: skip
    print(
        f"\n{n_runs} seeds a row, {time.monotonic() - started:.0f} s: Section 4 inside in "
        f"{inside[0]} of {len(rows)} rows, real trees in {inside[1]}."
    )


if __name__ == "__main__":
    main()
