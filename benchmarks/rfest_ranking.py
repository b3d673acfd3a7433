"""Does sensitivity rank better than impurity? Average precision of the relevant features.

The tables are those of `srs-ooc synth`, of rows drawn at random, and two of fair bits: AND and XOR
of two, a tenth of the labels wrong. On each table, one run whose trees are saved and grown on rows
drawn with replacement is ranked by the mean decrease of impurity (what `features` shows) and, out
of bag, by sensitivity: probability (or R2) lost with features permuted, mirrored, and accuracy lost
with features permuted. "impurity, all rows" is the same run without drawing rows. The last columns
are the final rankings of `--judge decoy` with each closing stage, and how many of the relevant
features are selected, and others.

Seeds 0 and on are shown; choices were made on seeds from 100 on.

    python benchmarks/rfest_ranking.py [--seeds 5] [--problems madelon ...] [--closing]
"""

import argparse
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import average_precision_score

import srs_ooc
from srs_ooc.synthetic.problem_tables import write_table
from srs_ooc.synthetic.problems import Blocks, Chain, Clique, Friedman, Linear, Madelon, Marginal

N_ROWS, N_FEATURES, ITERATIONS = 500, 1000, 3000


def synthetic(make: Callable[[int], Any]) -> Callable[[Path, int], set[str]]:
    """Return what writes a problem of a seed to a store, and names its relevant features."""

    def write(store: Path, seed: int) -> set[str]:
        problem = make(seed)
        write_table(problem, store)
        names = list(srs_ooc.open_store(store).names.texts())
        return {_text(names[place]) for place in problem.relevant}

    return write


def _text(name: Any) -> str:
    return name.decode() if isinstance(name, bytes) else str(name)


def bits(label: Callable[[Any], Any]) -> Callable[[Path, int], set[str]]:
    """Return what writes a table of fair bits labelled by the first two, a tenth wrongly."""

    def write(store: Path, seed: int) -> set[str]:
        rng = np.random.default_rng(seed)
        values = rng.integers(0, 2, (N_ROWS, N_FEATURES))
        labels = label(values) ^ (rng.random(N_ROWS) < 0.1)
        srs_ooc.ingest(values.astype(np.float32), store, target=labels.astype(int))
        return {"f0", "f1"}

    return write


PROBLEMS = {
    "madelon": synthetic(lambda seed: Madelon(N_ROWS, N_FEATURES, 20, seed)),
    "blocks": synthetic(lambda seed: Blocks(N_ROWS, N_FEATURES, 10, seed)),
    "linear": synthetic(lambda seed: Linear(N_ROWS, N_FEATURES, 15, seed)),
    "friedman": synthetic(lambda seed: Friedman(N_ROWS, N_FEATURES, seed)),
    "marginal of 5": synthetic(lambda seed: Marginal(N_ROWS, N_FEATURES, 5, seed, exact=False)),
    "chain of 3": synthetic(lambda seed: Chain(N_ROWS, N_FEATURES, 3, seed, exact=False)),
    "clique of 2": synthetic(lambda seed: Clique(N_ROWS, 200, 2, seed, exact=False)),
    "AND": bits(lambda x: (x[:, 0] & x[:, 1]).astype(bool)),
    "XOR": bits(lambda x: (x[:, 0] ^ x[:, 1]).astype(bool)),
}
ENSEMBLE = {"iterations": ITERATIONS, "judge": "probe", "alpha": 0.5, "memory_mb": 300}


def precision(scores: dict[str, float], relevant: set[str], names: list[str]) -> float:
    """Return the average precision; features without a score come last."""
    lowest = min(scores.values(), default=0.0) - 1
    is_relevant = [name in relevant for name in names]
    return float(average_precision_score(is_relevant, [scores.get(n, lowest) for n in names]))


def ensembles(store: Path, folder: Path, seed: int) -> Iterator[tuple[str, dict[str, float]]]:
    """Yield the scores of features by each way to rank a saved ensemble."""
    for name, bootstrap in (("impurity, all rows", False), ("impurity", True)):
        run = folder / f"{bootstrap}.run"
        result = srs_ooc.run(
            store, out=run, seed=seed, save_trees=True, bootstrap=bootstrap, **ENSEMBLE
        )
        yield name, {one["name"]: one["importance"] for one in result.features("records")}
    for flip in ("permute", "mirror"):
        found = result.sensitivity(flip=flip).features("records")
        yield f"sensitivity, {flip}", {one["name"]: one["score"] for one in found}
        if flip == "permute" and found[0]["accuracy_lost"] is not None:
            lost = {one["name"]: one["accuracy_lost"] for one in found}
            yield "accuracy lost, permute", lost


def closings(
    store: Path, folder: Path, seed: int, relevant: set[str]
) -> Iterator[tuple[str, dict[str, float]]]:
    """Yield the final rankings by each closing stage, and what was selected."""
    for closing in ("impurity", "sensitivity"):
        options = {"iterations": ITERATIONS, "memory_mb": 300, "closing": closing}
        result = srs_ooc.run(store, out=folder / f"{closing}.run", seed=seed, **options)
        found = result.features("records")
        yield f"closing by {closing}", {one["name"]: -one["rank"] for one in found}
        selected = set(result.selected)
        yield f"{closing}: found", {"": len(selected & relevant) / len(relevant)}
        yield f"{closing}: false", {"": float(len(selected - relevant))}


def measured(name: str, seed: int, *, closing: bool) -> dict[str, float]:
    """Return the average precision on one table by each ranking."""
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        store = folder / "t.zarr"
        relevant = PROBLEMS[name](store, seed)
        names = [_text(one) for one in srs_ooc.open_store(store).names.texts()]
        found = (
            closings(store, folder, seed, relevant) if closing else ensembles(store, folder, seed)
        )
        return {
            what: scores[""] if "" in scores else precision(scores, relevant, names)
            for what, scores in found
        }


def main() -> None:
    """Print a line a problem: means over seeds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--problems", nargs="+", default=list(PROBLEMS), choices=list(PROBLEMS))
    parser.add_argument("--closing", action="store_true", help="compare closing stages instead")
    given = parser.parse_args()
    columns: list[str] = []
    for name in given.problems:
        seeds = range(given.first_seed, given.first_seed + given.seeds)
        found = [measured(name, seed, closing=given.closing) for seed in seeds]
        if not columns:
            columns = list(found[0])
            if not given.closing and "accuracy lost, permute" not in columns:
                columns.append("accuracy lost, permute")
            print("| problem | " + " | ".join(columns) + " |\n|" + "---|" * (1 + len(columns)))
        cells = [_mean([one.get(column) for one in found]) for column in columns]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


def _mean(values: list[float | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{np.mean(known):.3f}" if known else "-"


if __name__ == "__main__":
    main()
