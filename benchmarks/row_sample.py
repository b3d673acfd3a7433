"""Trees on a sample of the rows of tall tables: what it saves, and what it finds.

For each of eleven designs and each seed a table is made; runs with all rows and with samples of
``--samples`` rows follow, beside each other: seconds, and which of the relevant features, and how
many others, are selected. The tests that select take all rows in every run. Tuning seeds were 0 to
9; what is reported is of others.

    python benchmarks/row_sample.py [--rows 30000] [--features 1000] [--seeds 100 102]
        [--samples 4000 10000] [--designs NAME ...]
"""

import argparse
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from statistics import mean

import numpy as np
from numpy.typing import NDArray

import srs_ooc
from srs_ooc.synthetic.madelon import Madelon
from srs_ooc.synthetic.problems import rows

Made = tuple[NDArray[np.float32], NDArray[np.float64], list[int]]
N_RELEVANT = 10


def _normal(rng: np.random.Generator, n: int, p: int) -> NDArray[np.float32]:
    return rng.standard_normal((n, p), np.float32)


def shift(rng: np.random.Generator, n: int, p: int, share: float = 0.5) -> Made:
    """Ten features a little higher in one class, which may be rare."""
    x, y = _normal(rng, n, p), (rng.random(n) < share).astype(float)
    x[:, :N_RELEVANT] += (4 / np.sqrt(n * share)) * np.linspace(0.8, 2, N_RELEVANT) * y[:, None]
    return x, y, list(range(N_RELEVANT))


def madelon(rng: np.random.Generator, n: int, p: int) -> Made:
    """Features that tell only together."""
    problem = Madelon(n_rows=n, n_features=p, n_relevant=12, seed=int(rng.integers(1 << 30)))
    y = problem.target(0, n).astype(float)
    return rows(problem, 0, n).astype(np.float32), y, [*problem.relevant]


def parity(rng: np.random.Generator, n: int, p: int) -> Made:
    """Two pairs whose products go with the class, no feature alone."""
    x = _normal(rng, n, p)
    y = np.sign(x[:, 0] * x[:, 1]) + np.sign(x[:, 2] * x[:, 3]) + 2 * rng.standard_normal(n) > 0
    return x, y.astype(float), [0, 1, 2, 3]


def weak_products(rng: np.random.Generator, n: int, p: int) -> Made:
    """Three pairs whose products say little of a number."""
    x = _normal(rng, n, p)
    y = sum(x[:, 2 * k] * x[:, 2 * k + 1] for k in range(3)) + 6 * rng.standard_normal(n)
    return x, np.asarray(y, float), list(range(6))


def several(rng: np.random.Generator, n: int, p: int) -> Made:
    """Five classes, each of two features."""
    x, y = _normal(rng, n, p), rng.integers(0, 5, n).astype(float)
    for k in range(N_RELEVANT):
        x[:, k] += 0.1 * (y == k // 2)
    return x, y, list(range(N_RELEVANT))


def sparse(rng: np.random.Generator, n: int, p: int) -> Made:
    """Mostly zero counts, more of them in one class."""
    y = (rng.random(n) < 0.5).astype(float)
    rate = np.full((n, p), 0.03, np.float32)
    rate[:, :N_RELEVANT] *= 1 + 0.3 * y[:, None]
    return rng.poisson(rate).astype(np.float32), y, list(range(N_RELEVANT))


def levels(rng: np.random.Generator, n: int, p: int) -> Made:
    """Three levels, as genotypes; each of ten says a little of a number."""
    x = rng.binomial(2, 0.3, (n, p)).astype(np.float32)
    y = 0.06 * x[:, :N_RELEVANT].sum(axis=1) + rng.standard_normal(n)
    return x, y.astype(float), list(range(N_RELEVANT))


def blocks(rng: np.random.Generator, n: int, p: int) -> Made:
    """Blocks of ten that go together, one cause in each of five."""
    x = _normal(rng, n, p)
    common = np.repeat(_normal(rng, n, p // 10), 10, axis=1)
    x = np.sqrt(0.5, dtype=np.float32) * (x[:, : p // 10 * 10] + common)
    y = 0.06 * x[:, [0, 10, 20, 30, 40]].sum(axis=1) + rng.standard_normal(n)
    return x, y.astype(float), list(range(50))


def spread(rng: np.random.Generator, n: int, p: int) -> Made:
    """Features that vary more in one class, with heavy tails."""
    x, y = rng.standard_t(4, (n, p)).astype(np.float32), (rng.random(n) < 0.5).astype(float)
    x[:, :N_RELEVANT] *= 1 + 0.06 * y[:, None]
    return x, y, list(range(N_RELEVANT))


def noise(rng: np.random.Generator, n: int, p: int) -> Made:
    """Nothing."""
    return _normal(rng, n, p), (rng.random(n) < 0.3).astype(float), []


DESIGNS = {
    "shift": shift,
    "one row in fifty": lambda rng, n, p: shift(rng, n, p, 0.02),
    "madelon": madelon,
    "parity": parity,
    "weak products": weak_products,
    "five classes": several,
    "sparse": sparse,
    "levels": levels,
    "blocks": blocks,
    "spread": spread,
    "noise": noise,
}


def one_run(store: Path, relevant: set[int], sample: int | None) -> tuple[float, float, float]:
    """Run with a sample, or all rows; return seconds, power, and share of false features."""
    started = time.perf_counter()
    how = {} if sample is None else {"row_sample": sample}
    result = srs_ooc.run(store, out=store.with_suffix(f".{sample}.run"), **how)
    seconds = time.perf_counter() - started
    found = [int(one["name"].lstrip("f")) for one in result.features("records", top=1000)
             if one["selected"]]  # fmt: skip
    true = len(relevant.intersection(found))
    power = true / len(relevant) if relevant else float("nan")
    return seconds, power, (len(found) - true) / max(1, len(found))


def main() -> None:
    """Run the designs."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=30_000)
    parser.add_argument("--features", type=int, default=1000)
    parser.add_argument("--seeds", type=int, nargs=2, default=[100, 102])
    parser.add_argument("--samples", type=int, nargs="+", default=[4000, 10_000])
    parser.add_argument("--designs", nargs="+", choices=list(DESIGNS), default=list(DESIGNS))
    options = parser.parse_args()
    print(f"| {options.rows:,} x {options.features:,} | rows of a tree | s | power | false |")
    print("|---|---|---|---|---|")
    for name in options.designs:
        found = defaultdict(list)
        for seed in range(*options.seeds):
            x, y, relevant = DESIGNS[name](
                np.random.default_rng(seed), options.rows, options.features
            )
            with tempfile.TemporaryDirectory() as folder:
                store = Path(folder) / "t.zarr"
                srs_ooc.ingest(x, store, target=y)
                for sample in (None, *options.samples):
                    found[sample].append(one_run(store, set(relevant), sample))
        for sample, runs in found.items():
            seconds, power, false = map(mean, zip(*runs, strict=True))
            many = "all" if sample is None else f"{sample:,}"
            print(f"| {name} | {many} | {seconds:.1f} | {power:.2f} | {false:.2f} |", flush=True)


if __name__ == "__main__":
    main()
