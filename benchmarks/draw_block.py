"""What drawing by blocks of neighbours does to selection.

Claim: on madelon-like tables, SRS with the probe judge (alpha 0.5, K = q) ranks and selects the
relevant features as well with blocks of 16 and 64 neighbours as one by one; on chains, at 16 blocks
a subspace, a loss is at most a few hundredths. A feature is drawn as often either way; pairs inside
a block meet far more often, others a little less (docs/research/theory.md, Blocks).

Per problem and g, over tables and several runs on each: average precision of the ranking by mean
importance, recall among its first (as many as are relevant), and F1 of what the judge selected,
as mean and standard error; the error is that of runs on given tables, which all g share. Below,
the difference from the first g, its error from the differences of single tables.

    python benchmarks/draw_block.py [--problems madelon chain --seeds 8 --runs 3 --first-seed 0]

With ``--rounds 1 100 500`` the same for rounds of so many subspaces drawn from one F, one by one:
what the staleness of F does, which clusters ask for (docs/research/cluster-measured.md).
"""

import argparse
import tempfile
from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np

from srs_ooc.runs.engine import Engine
from srs_ooc.runs.plan import Plan
from srs_ooc.runs.request import Request
from srs_ooc.runs.resources import Resources
from srs_ooc.samplers.srs import SequentialRandomSubspace
from srs_ooc.store.store import Store
from srs_ooc.synthetic.chain import Chain
from srs_ooc.synthetic.madelon import Madelon
from srs_ooc.synthetic.problems import Problem
from srs_ooc.synthetic.table_files import write_table

PROBLEMS: dict[str, tuple[Callable[[int], Problem], int]] = {  # name: table of a seed, q
    "madelon": (lambda seed: Madelon(1000, 50_000, 20, seed), 2500),
    "chain": (lambda seed: Chain(1000, 20_000, 3, seed), 1000),
}


def scores(engine: Engine, relevant: np.ndarray) -> tuple[float, float, float]:
    """Return average precision, recall among the first, and F1 of the selected features."""
    sampler = engine.sampler
    assert isinstance(sampler, SequentialRandomSubspace)
    tally, kept = engine.tally, sampler.kept.features
    mean = tally.importance / np.maximum(tally.n_drawn, 1)
    places = np.sort(np.flatnonzero(np.isin(np.argsort(-mean, kind="stable"), relevant))) + 1
    precision = float(np.mean(np.arange(1, len(places) + 1) / places))
    recall = float(np.mean(places <= len(relevant)))
    right = np.count_nonzero(np.isin(kept, relevant))
    return precision, recall, 2 * right / (len(kept) + len(relevant))


def run(
    store: Path, relevant: np.ndarray, q: int, way: dict[str, int], iterations: int, seed: int
) -> tuple[float, float, float]:
    """Return the scores of one run, drawn in a way of its own."""
    options = {"subspace_size": str(q), "seed": seed, "judge": "probe", **way}
    subject = Plan.of(Store.open(store), Request(options=options))
    with Resources.of(subject) as resources:
        engine = resources.engine(None)
        engine.advance(iterations)
        return scores(engine, relevant)


def stored(store: Path, problem: Problem) -> np.ndarray:
    """Return the stored positions of the relevant features."""
    positions = Store.open(store).array("positions")
    return np.flatnonzero(np.isin(positions, problem.relevant))


def print_row(problem: str, what: str, means: np.ndarray, errors: np.ndarray) -> None:
    """Print a row of the table: three means with their standard errors."""
    cells = [f"{m:.3f} ± {e:.3f}" for m, e in zip(means, errors, strict=True)]
    print(f"| {problem} | {what} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    """Make the tables and run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--first-seed", type=int, default=0, help="of the tables")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--iterations", type=int, default=1500)
    parser.add_argument("--problems", nargs="+", choices=PROBLEMS, default=[*PROBLEMS])
    parser.add_argument("--blocks", type=int, nargs="+", default=[1, 16, 64])
    parser.add_argument("--rounds", type=int, nargs="+", help="round sizes, instead of blocks")
    arguments = parser.parse_args()
    varied = "round_size" if arguments.rounds else "draw_block"
    sizes = arguments.rounds or arguments.blocks
    fixed = {"draw_block": 1} if arguments.rounds else {}
    print(
        f"| problem | {'round' if arguments.rounds else 'g'} | average precision "
        "| recall in the first r | F1 of the selected |"
    )
    print("|---|---|---|---|---|")
    for name in arguments.problems:
        table, q = PROBLEMS[name]
        found = {size: np.zeros((arguments.seeds, arguments.runs, 3)) for size in sizes}
        for place in range(arguments.seeds):
            seed = arguments.first_seed + place
            with tempfile.TemporaryDirectory() as folder:
                store, problem = Path(folder) / "t.zarr", table(seed)
                write_table(problem, store)
                relevant = stored(store, problem)
                for size, number in product(sizes, range(arguments.runs)):
                    run_seed = 1000 * (number + 1) + seed
                    way = fixed | {varied: size}
                    found[size][place, number] = run(
                        store, relevant, q, way, arguments.iterations, run_seed
                    )
        for size, values in found.items():
            means = values.mean(axis=(0, 1))
            errors = np.sqrt(values.var(axis=1, ddof=1).mean(axis=0) / values[..., 0].size)
            print_row(name, str(size), means, errors)
        first = sizes[0]
        for size in sizes[1:]:
            differences = (found[size] - found[first]).mean(axis=1)
            errors = differences.std(axis=0, ddof=1) / np.sqrt(arguments.seeds)
            print_row(name, f"{size} less {first}", differences.mean(axis=0), errors)


if __name__ == "__main__":
    main()
