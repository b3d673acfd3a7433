"""All pairs: how long they take beside other ways, and of what strength pairs are found.

    python benchmarks/pairs.py speed [--features 50000] [--rows 1000] [--repeats 3]
    python benchmarks/pairs.py power --results FILE [--kinds xor and product dosage]
        [--flips 0.05 0.2] [--rows 200 500 1000 2000] [--features 200 2000 20000] [--tables 5]
    python benchmarks/pairs.py power --results FILE --report

``speed`` times the scan of the package, on one thread and on two, a product of float32 halves by
NumPy on tiles, and PLINK 1.9's ``--fast-epistasis boost`` where ``plink1.9`` is installed, on the
same made genotypes, of as many features as each does in some seconds: pairs a second.

``power`` makes tables in which one pair decides two classes and nothing else does, a share of the
classes flipped: the share of tables in which both features are selected, and one of them, by the
default run and by a run of tests that looks at no pairs. Each run adds a line to FILE; what is
there is not made again.
"""

import argparse
import json
import shutil
import subprocess
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

import srs_ooc
from srs_ooc.evidence.pairs import Halves
from srs_ooc.evidence.rank_tests import RankTarget

LEVEL = 0.1


def genotypes(rng: np.random.Generator, n_rows: int, n_features: int) -> NDArray[np.uint8]:
    """Return made dosages, uint8 (n_features, n_rows)."""
    rare = rng.uniform(0.1, 0.5, (n_features, 1))
    is_rare = rng.random((2, n_features, n_rows)) < rare
    dosages: NDArray[np.uint8] = is_rare[0].astype(np.uint8) + is_rare[1]
    return dosages


def seconds_of_ours(codes: NDArray[np.uint8], labels: NDArray[np.integer], n_threads: int) -> float:
    """Return the seconds of halving the features and looking at all pairs."""
    start = time.perf_counter()
    rows = np.arange(codes.shape[1])
    halves = Halves(RankTarget.of_classes(labels, 2), rows, 255, len(codes))
    halves.add(codes, range(len(codes)), other=False)
    for _ in halves.scan(n_threads):
        pass
    return time.perf_counter() - start


def seconds_of_products(codes: NDArray[np.uint8], labels: NDArray[np.integer]) -> float:
    """Return the seconds of products of halves and classes, tile against tile."""
    start, size = time.perf_counter(), 1024
    signs = np.where(codes > np.median(codes, axis=1, keepdims=True), 1, -1).astype(np.float32)
    weighed = signs * (labels - labels.mean()).astype(np.float32)
    most = 0.0
    for first in range(0, len(codes), size):
        for other in range(0, first + 1, size):
            seen = weighed[first : first + size] @ signs[other : other + size].T
            most = max(most, float(np.abs(seen).max()))
    return time.perf_counter() - start


def seconds_of_plink(
    codes: NDArray[np.uint8], labels: NDArray[np.integer], n_threads: int
) -> float:
    """Return the seconds of ``--fast-epistasis boost``, reading the table included."""
    pairs = np.array(["2 2", "1 2", "1 1"])
    with TemporaryDirectory() as folder:
        stem = Path(folder) / "t"
        with stem.with_suffix(".tped").open("w") as file:
            for j, column in enumerate(codes):
                file.write(f"1 s{j} 0 {j + 1} {' '.join(pairs[column].tolist())}\n")
        people = (f"p{i} p{i} 0 0 1 {label + 1}\n" for i, label in enumerate(labels.tolist()))
        stem.with_suffix(".tfam").write_text("".join(people))
        plink = ["plink1.9", "--silent", "--allow-no-sex", "--threads", str(n_threads)]
        made = [*plink, "--tfile", str(stem), "--make-bed", "--out", str(stem)]
        subprocess.run(made, check=True)
        start = time.perf_counter()
        what = ["--fast-epistasis", "boost", "--epi1", "1e-12"]
        subprocess.run([*plink, "--bfile", str(stem), *what, "--out", str(stem)], check=True)
        return time.perf_counter() - start


def speed(n_rows: int, n_features: int, n_repeats: int) -> None:
    """Print pairs a second of each way."""
    rng = np.random.default_rng(0)
    codes, labels = genotypes(rng, n_rows, n_features), np.arange(n_rows) % 2
    few, fewer = codes[: n_features // 5], codes[: n_features // 10]
    ways: dict[str, tuple[NDArray[np.uint8], Callable[[], float]]] = {
        "ours, one thread": (codes, lambda: seconds_of_ours(codes, labels, 1)),
        "ours, two threads": (codes, lambda: seconds_of_ours(codes, labels, 2)),
        "NumPy product": (few, lambda: seconds_of_products(few, labels)),
    }
    if shutil.which("plink1.9"):
        ways["PLINK 1.9 boost, two threads"] = (fewer, lambda: seconds_of_plink(fewer, labels, 2))
    for repeat in range(n_repeats):
        rates = {}
        for name, (some, work) in ways.items():
            seconds = work()
            rates[name] = len(some) * (len(some) - 1) / 2 / seconds
            of = f"{len(some):6} features  {seconds:7.2f} s  {rates[name]:.3g}/s"
            print(f"{repeat}  {name:28}  {of}")
        ours = rates["ours, two threads"]
        ratios = (f"{name} {ours / rate:.3g}" for name, rate in rates.items() if "ours" not in name)
        print(f"{repeat}  times as fast as:", ", ".join(ratios), flush=True)


def table_of(
    kind: str, n_rows: int, n_features: int, flip: float, seed: int
) -> tuple[NDArray[np.float64], NDArray[np.int64], list[int]]:
    """Return values (n_rows, n_features), classes and the two relevant features."""
    rng = np.random.default_rng([seed, n_rows, n_features, *kind.encode()])
    if kind == "dosage":
        values = genotypes(rng, n_rows, n_features).T.astype(np.float64)
    else:
        values = rng.normal(size=(n_rows, n_features))
    chosen = rng.choice(n_features, 2, replace=False)
    one, other = values[:, chosen].T
    if kind == "xor":
        score = (one > 0) ^ (other > 0)
    elif kind == "and":
        score = (one > 0) & (other > 0)
    elif kind == "product":
        score = one * other > 0.3
    else:
        score = (one == 1) ^ (other == 1)
    classes = score ^ (rng.random(n_rows) < flip)
    return values, classes.astype(np.int64), chosen.tolist()


def found_in(folder: Path, store: Path, relevant: list[int], pairs: str) -> dict[str, Any]:
    """Return what a run selects."""
    start = time.process_time()
    run = srs_ooc.run(store, out=folder / f"{pairs}.run", pairs=pairs, fdr=LEVEL)
    chosen = [int(name[1:]) for name in run.selected]
    n_true = len(set(chosen) & set(relevant))
    cpu = round(time.process_time() - start, 2)
    return {"true": n_true, "false": len(chosen) - n_true, "cpu": cpu}


def power(args: argparse.Namespace) -> None:
    """Make the tables that are not made yet."""
    done = read(args.results)
    cases = [
        (kind, n, p, flip, seed)
        for seed in range(args.tables)
        for p in args.features
        for n in args.rows
        for kind in args.kinds
        for flip in args.flips
    ]
    for case in cases:
        if case in done:
            continue
        values, classes, relevant = table_of(*case)
        with TemporaryDirectory() as name:
            folder = Path(name)
            srs_ooc.ingest(values, folder / "t.zarr", target=[f"c{c}" for c in classes])
            found = {
                pairs: found_in(folder, folder / "t.zarr", relevant, pairs)
                for pairs in ("auto", "none")
            }
        with args.results.open("a") as file:
            file.write(json.dumps({"case": case, "found": found}) + "\n")


def read(path: Path) -> dict[tuple[Any, ...], dict[str, Any]]:
    """Return what was found, by case."""
    lines = path.read_text().splitlines() if path.exists() else []
    records = [json.loads(line) for line in lines]
    return {tuple(record["case"]): record["found"] for record in records}


def report(path: Path) -> None:
    """Print the share of tables in which both are selected, of auto and of none, as a table."""
    shares: dict[tuple[str, float], dict[tuple[int, int], list[tuple[bool, bool]]]] = {}
    false: dict[str, list[float]] = defaultdict(list)
    for (kind, n, p, flip, _), found in read(path).items():
        cell = shares.setdefault((kind, flip), {}).setdefault((n, p), [])
        cell.append((found["auto"]["true"] == 2, found["none"]["true"] == 2))
        for way, one in found.items():
            false[way].append(one["false"] / max(1, one["true"] + one["false"]))
    for (kind, flip), cells in shares.items():
        rows, features = ({key[i] for key in cells} for i in (0, 1))
        print(f"\n{kind}, {flip:.0%} flipped\n\n| rows |", *(f"{p:,} |" for p in sorted(features)))
        print("|---|" + "---|" * len(features))
        for n in sorted(rows):
            texts = []
            for p in sorted(features):
                cell = cells.get((n, p), [])
                both = (np.mean([way[i] for way in cell]) if cell else np.nan for i in (0, 1))
                texts.append(" / ".join(f"{share:.2f}" for share in both))
            print(f"| {n:,} |", *(f"{text} |" for text in texts))
    for way, values in false.items():
        print(f"\nmean false share of {way}: {np.mean(values):.3f}, {len(values)} tables")


def main() -> None:
    """Parse the command line and do it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("what", choices=["speed", "power"])
    parser.add_argument("--results", type=Path)
    parser.add_argument("--report", action="store_true")
    parser.add_argument("--kinds", nargs="*", default=["xor", "and", "product", "dosage"])
    parser.add_argument("--flips", nargs="*", type=float, default=[0.05, 0.2])
    parser.add_argument("--rows", nargs="*", type=int)
    parser.add_argument("--features", nargs="*", type=int)
    parser.add_argument("--tables", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    if args.what == "speed":
        speed((args.rows or [1000])[0], (args.features or [50_000])[0], args.repeats)
        return
    if args.results is None:
        parser.error("power: expected --results FILE")
    args.rows, args.features = (
        args.rows or [200, 500, 1000, 2000],
        args.features or [200, 2000, 20_000],
    )
    if not args.report:
        power(args)
    report(args.results)


if __name__ == "__main__":
    main()
