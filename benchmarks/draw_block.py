"""What drawing by blocks of neighbours does to selection: nothing that can be seen.

Claim: on madelon-like tables and on chains, SRS with the probe judge (alpha 0.5, K = q) ranks and
selects the relevant features as well with blocks of 16 and 64 neighbours as one by one. A feature
is drawn as often either way; pairs inside a block meet far more often (docs/theory.md, Blocks).

Per problem and g, over seeds of the table and the run: average precision of the ranking by mean
importance, recall among its first (as many as are relevant), and F1 of what the judge selected,
each as mean and standard error. g = 1 is run twice, with different seeds of the run on the same
tables: the difference between the two is what chance alone does.

    python benchmarks/draw_block.py [--problems madelon chain --seeds 8 --blocks 1 16 64]
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np

from srs_ooc.engine import Engine
from srs_ooc.fitting import engine_parts
from srs_ooc.inputs import Inputs
from srs_ooc.ledger import TransientLedger
from srs_ooc.plan.subject import subject_of_store
from srs_ooc.runs import Request
from srs_ooc.spec import Options
from srs_ooc.store.manifest import read_manifest
from srs_ooc.store.names import read_array
from srs_ooc.synth.madelon import Madelon
from srs_ooc.synth.output import write_table
from srs_ooc.synth.problem import Problem
from srs_ooc.synth.scenarios import Chain

PROBLEMS = {  # name: table of a seed, q
    "madelon": (lambda seed: Madelon(1000, 50_000, 20, seed), 2500),
    "chain": (lambda seed: Chain(1000, 20_000, 3, seed, exact=False), 1000),
}


def scores(engine: Engine, relevant: np.ndarray) -> tuple[float, float, float]:
    """Return average precision, recall among the first, and F1 of the selected features."""
    tally, kept = engine.state.tally, engine.state.kept.features
    mean = tally.importance / np.maximum(tally.n_drawn, 1)
    places = np.sort(np.flatnonzero(np.isin(np.argsort(-mean, kind="stable"), relevant))) + 1
    precision = float(np.mean(np.arange(1, len(places) + 1) / places))
    recall = float(np.mean(places <= len(relevant)))
    right = np.count_nonzero(np.isin(kept, relevant))
    return precision, recall, 2 * right / (len(kept) + len(relevant))


def run(
    store: Path, relevant: np.ndarray, q: int, block: int, iterations: int, seed: int
) -> tuple[float, float, float]:
    """Return the scores of one run."""
    options = Options(subspace_size=str(q), draw_block=block, seed=seed)
    subject = subject_of_store(store, Request(options))
    with engine_parts(subject.spec, store, Inputs(), subject.cap_nbytes, None) as parts:
        engine = parts.engine(TransientLedger())
        engine.advance(iterations)
        return scores(engine, relevant)


def stored(store: Path, problem: Problem) -> np.ndarray:
    """Return the stored positions of the relevant features."""
    positions = read_array(store, read_manifest(store), "positions")
    return np.flatnonzero(np.isin(positions, problem.truth().relevant))


def main() -> None:
    """Make the tables and run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--iterations", type=int, default=1500)
    parser.add_argument("--problems", nargs="+", choices=PROBLEMS, default=[*PROBLEMS])
    parser.add_argument("--blocks", type=int, nargs="+", default=[1, 16, 64])
    arguments = parser.parse_args()
    cases = [("1", 1, 0), *((f"{g}", g, 0) for g in arguments.blocks if g > 1), ("1 again", 1, 1)]
    print("| problem | g | average precision | recall in the first r | F1 of the selected |")
    print("|---|---|---|---|---|")
    for name in arguments.problems:
        table, q = PROBLEMS[name]
        found: dict[str, list[tuple[float, float, float]]] = {case: [] for case, _, _ in cases}
        for seed in range(arguments.seeds):
            with tempfile.TemporaryDirectory() as folder:
                store, problem = Path(folder) / "t.zarr", table(seed)
                write_table(problem, store)
                relevant = stored(store, problem)
                for case, block, other in cases:
                    run_seed = seed + 1000 * other
                    found[case].append(
                        run(store, relevant, q, block, arguments.iterations, run_seed)
                    )
        for case, values in found.items():
            means = np.mean(values, axis=0)
            errors = np.std(values, axis=0, ddof=1) / np.sqrt(len(values))
            cells = [f"{m:.2f} ± {e:.2f}" for m, e in zip(means, errors, strict=True)]
            print(f"| {name} | {case} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
