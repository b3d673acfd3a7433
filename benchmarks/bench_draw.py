"""One iteration against the loop a user would write, on the same data in the same run.

Claim: at n = 1,000 rows, p = 50,000 features, q = 2,500 and K = q, one iteration of the engine
(draw, gather, layout, growth, probe, tally, judge and its share of commits) takes a fortieth of the
time of one pass of the obvious loop on one core, and a fiftieth on two.

The loop: a float32 memory map with one row per feature (so that columns are contiguous and nothing
is converted), q of them picked at random and a shuffled one added, one
``sklearn.tree.ExtraTreeClassifier(max_features=None)``, importances added up. It has no F, no
ledger and no memory cap. It uses one core: step t + 1 needs the F that step t leaves.

    python benchmarks/bench_draw.py [--rows 1000 --features 50000 --subspace 2500 --repeats 5]
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
from scale import an_iteration, make
from sklearn.tree import ExtraTreeClassifier

from srs_ooc.synthetic.madelon import Madelon
from srs_ooc.synthetic.problems import columns

PEER_PASSES = 4
CAP_MB = 4000
FEW, MANY = 300, 2300
"""Iterations of the runs of which an iteration is the difference: what it takes to start is not."""


def peer_seconds(values: np.memmap, labels: np.ndarray, q: int, seed: int) -> float:
    """Return the seconds one pass of the loop takes."""
    rng = np.random.default_rng(seed)
    importance, n_drawn = np.zeros(len(values)), np.zeros(len(values), dtype=int)
    n_better = np.zeros(len(values), dtype=int)
    start = time.perf_counter()
    for _ in range(PEER_PASSES):
        picked = rng.choice(len(values), q, replace=False)
        block = np.empty((len(labels), q + 1), dtype=np.float32)
        block[:, :q] = values[picked].T
        block[:, q] = rng.permutation(block[:, rng.integers(q)])
        tree = ExtraTreeClassifier(max_features=None, random_state=int(rng.integers(2**31)))
        found = tree.fit(block, labels).tree_.compute_feature_importances(normalize=False)
        importance[picked] += found[:q]
        n_drawn[picked] += 1
        n_better[picked] += found[:q] > found[q]
    return (time.perf_counter() - start) / PEER_PASSES


def measure(folder: Path, n: int, p: int, q: int, repeats: int) -> None:
    """Make the table, run both in turn, and print the ratios."""
    problem, store = Madelon(n, p, 20, 0), make(folder, n, p)
    values = np.memmap(folder / "values.f32", dtype=np.float32, mode="w+", shape=(p, n))
    for start in range(0, p, 1000):
        stop = min(start + 1000, p)
        values[start:stop] = columns(problem, np.arange(start, stop, dtype=np.uint32))
    labels = np.asarray(problem.target(0, n)).astype(np.int64)
    ratios: dict[int, list[float]] = {1: [], 2: []}
    print(f"n = {n}, p = {p}, q = {q}; ms per iteration (loop / engine), ratio")
    for repeat in range(repeats):
        for threads, found in ratios.items():
            theirs = peer_seconds(values, labels, q, repeat)
            options = ("--q", q, "--seed", repeat, "--judge", "probe", "--threads", threads)
            ours, _ = an_iteration(store, FEW, MANY, *options, "--memory-mb", CAP_MB)
            found.append(1e3 * theirs / ours)
            print(f"  {threads} core(s): {1e3 * theirs:.1f} / {ours:.3f}  {found[-1]:.1f}")
    for threads, found in ratios.items():
        low, middle, high = min(found), statistics.median(found), max(found)
        print(f"{threads} core(s): {middle:.0f} times the loop ({low:.0f} to {high:.0f})")


def main() -> None:
    """Read the sizes and measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--features", type=int, default=50_000)
    parser.add_argument("--subspace", type=int, default=2500)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        shape = arguments.rows, arguments.features, arguments.subspace
        measure(Path(folder), *shape, arguments.repeats)


if __name__ == "__main__":
    main()
