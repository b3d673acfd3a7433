"""What large tables take, by subcommands.

``ingest``: ingest of tables larger than the cap, of every shape: seconds, cost a GB, peak against
cap.

Claims: the peak stays under the cap whatever the width and length of the table and of its lines
(``wide``, ``tall``, ``square``, ``line``, ``name``, ``long``); and cost follows the bytes, not the
number of columns (``columns-100`` to ``columns-1000000``: the same cells in every width). CPU
seconds a GB compare where the machine has other work.

    python benchmarks/scale.py ingest [--shape NAME ...] [--folder FOLDER] [--repeats 1]

Each table is written, ingested and deleted; ``long`` takes 20 GB of disk for a while.

``run``: whole runs: seconds, peak memory against the cap, and what a wider table costs.

Claims: 10,000 iterations at n = 1,000, p = 50,000, q = 2,500 take 30 s or less on two cores, with
the peak under the cap of 192 MB; at the same q and cap an iteration costs at most 1.3 times as much
at p = 10^6 as at p = 10^4; a run's own memory grows by at most 32 bytes a feature. What a mapped
store adds is its size: it is mapped where the cap has room for it, and that is said.

The second series is the harder one: with 100 rows a tree takes 0.3 ms, so that reaching a column
costs more than using it. Losses to know: under a cap that cannot hold such a store its columns are
read from files, at about 1 microsecond each, cached or not.

    python benchmarks/scale.py run [--folder FOLDER] [--iterations 10000]

``sizes``: the command with its defaults on six sizes of table, beside what else there is.

A store is made where it is not there: of up to 10^9 cells by ``more_problems.py`` (9 bytes a cell),
of more the same problem to one decimal and without values (9.5 GB for 17,000 x 450,000, 12 GB for
500 x 10^7). Fewer than 200 rows are `shift`, since interactions need more, others `madelon`; 20
features are relevant. Its codes are read once before anything is timed. Then, in turns, ``srs-ooc
run STORE --memory-mb 512``, the same by the Python of another version (``--before``; with
``--before-iterations`` only so many, scaled to that version's default, and marked so), and each
peer with the same codes in memory, where its arrays fit 20 GB. Seconds, processor seconds and peaks
are of whole processes, start and reading included.

Then the bound of each size, from counts, as a virtual machine has no hardware counters: every code
read once at the speed of the disk, cold; the bytes that subspaces move (read, written, and read by
each level of a tree where a block is larger than the last cache) at the speed at which all cores
copy and read memory; and the growing, level by level, at the speed of a block in a core's cache, on
all cores. Levels are counted in one real tree. The closing stage and the tests are in no bound.

    python benchmarks/scale.py sizes --folder FOLDER [--only 1000x1000000 ...] [--turns 1]
        [--before PYTHON] [--before-iterations N] [--peers lightgbm ranksum ...] [--limit 900]
        [--options TEXT]

What is done, but for failures, is kept in FOLDER/sizes.jsonl and not done again. ``--options`` are
more of the run, such as "--judge probe --dask local:2". The extra ``bench`` has the peers.

``less``: LESS on tables of 850,000 x 72 and 10^6 x 1,000 under a cap of 512 MB.

Claim: scoring takes two sequential passes. A run of 300 trees by ``--judge probe`` adds a quarter
at 10^6 features. Seconds are printed beside those of reading the same bytes once, and peaks as
the operating system counts them: each command is a child of this small process.

    python benchmarks/scale.py less [--folder FOLDER] [--sizes 72x850000 1000x1000000]

Stores are made in FOLDER where they are not there (61 MB and 1.1 GB), and kept. What starts
other processes uses the standard library only.
"""

import argparse
import csv
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from math import isnan, nan
from pathlib import Path
from statistics import median
from typing import Any

from measured import MB, Measured, Record, Results, measure, srs_ooc, subcommand

_POOL = 100_003
_STEP = 7919


@dataclass(frozen=True)
class Shape:
    """A table to make: rows, features, the cap; how long numbers and names are, in characters."""

    n_rows: int
    n_features: int
    cap_mb: int
    cell: int = 5
    name: int = 0

    def number(self, draw: random.Random) -> str:
        """Return a number of about ``cell`` characters."""
        return f"{draw.uniform(-9.99, 9.99):.{max(1, self.cell - 3)}f}"


SHAPES = {
    "wide": Shape(200, 1_000_000, 96),
    "tall": Shape(1_000_000, 200, 96),
    "square": Shape(20_000, 20_000, 96, cell=4),
    "line": Shape(8, 1_000_000, 96, cell=50, name=50),
    "name": Shape(2000, 200, 96, name=10_000),
    "long": Shape(5_000_000, 200, 192, cell=4),
} | {
    f"columns-{p}": Shape(50_000_000 // p, p, 128) for p in (100, 1000, 10_000, 100_000, 1_000_000)
}


def write_table(path: Path, shape: Shape) -> None:
    """Write a table of classes and random numbers, of which any row and column repeats few."""
    draw = random.Random(0)  # noqa: S311 - a table, not a secret
    pool = [shape.number(draw) for _ in range(_POOL)]
    p = shape.n_features
    pool *= 2 + p // _POOL
    with path.open("w") as file:
        file.write("".join(f"f{j}".ljust(shape.name, "_") + "," for j in range(p)) + "y\n")
        for i in range(shape.n_rows):
            start = i * _STEP % _POOL
            file.write(",".join(pool[start : start + p]) + f",{draw.randrange(2)}\n")


def ingest(folder: Path, name: str, cap_mb: int | None, repeats: int) -> None:
    """Make a table, ingest it, and print what that took.

    The table is made by another process: memory of this one would show as the ingest's.
    """
    shape = SHAPES[name]
    table, store = folder / f"{name}.csv", folder / f"{name}.zarr"
    measure([sys.executable, __file__, "ingest", "--shape", name, "--only-write", str(table)])
    nbytes, cap = table.stat().st_size, cap_mb or shape.cap_mb
    for _ in range(repeats):
        done = srs_ooc("ingest", table, store, "--memory-mb", cap)
        srs_ooc("inspect", store)
        print(
            f"{name}: {shape.n_rows} x {shape.n_features}, {nbytes / MB:.0f} MB of CSV in "
            f"{done.seconds:.1f} s, CPU {done.cpu_seconds / nbytes * 1e9:.1f} s/GB, "
            f"peak {done.peak_mb:.1f} MB of {cap}",
            flush=True,
        )
        shutil.rmtree(store)
    table.unlink()


def ingest_main() -> None:
    """Read the options and measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--folder", type=Path, help="where to work")
    parser.add_argument("--shape", choices=SHAPES, action="append", help="[default: all]")
    parser.add_argument("--cap", type=int, help="memory cap in MB instead of the shape's own")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--only-write", type=Path, metavar="FILE", help="write the one table there")
    arguments = parser.parse_args()
    if arguments.only_write:
        write_table(arguments.only_write, SHAPES[arguments.shape[0]])
        return
    with tempfile.TemporaryDirectory(dir=arguments.folder) as scratch:
        for name in arguments.shape or SHAPES:
            ingest(Path(scratch), name, arguments.cap, arguments.repeats)


RUN_CAP_MB = 192


def make(folder: Path, n: int, p: int) -> Path:
    """Return a madelon-like store of n rows and p features, made if it is not there."""
    store = folder / f"{n}x{p}.zarr"
    if not store.exists():
        srs_ooc(
            "synth", "madelon", store, "--rows", n, "--features", p, "--relevant", 20, "--seed", 0
        )
    return store


def whole_run(folder: Path, iterations: int) -> None:
    """Print the seconds and the peak of the long job."""
    store = make(folder, 1000, 50_000)
    with tempfile.TemporaryDirectory() as scratch:
        options = (
            "--with",
            "alpha=0.5",
            "--q",
            2500,
            "--judge",
            "probe",
            "--memory-mb",
            RUN_CAP_MB,
        )
        out = ("--out", Path(scratch) / "a.run", "--iterations", iterations)
        done = srs_ooc("run", store, *out, *options)
    print(
        f"n = 1000, p = 50000, q = 2500, {iterations} iterations: {done.seconds:.1f} s, "
        f"peak {done.peak_mb:.1f} MB of {RUN_CAP_MB}"
    )


def an_iteration(store: Path, few: int, many: int, *options: object) -> tuple[float, Measured]:
    """Return milliseconds an iteration, of a long less a short run, and the long run."""
    with tempfile.TemporaryDirectory() as scratch:
        short, long = (
            srs_ooc("run", store, "--out", Path(scratch) / f"{t}.run", "--iterations", t, *options)
            for t in (few, many)
        )
    return 1e3 * (long.seconds - short.seconds) / (many - few), long


def by_width(folder: Path, n: int, q: int, cap_mb: int, few: int, many: int) -> None:
    """Print the cost of an iteration and the memory of a run at p = 10^4, 10^5, 10^6."""
    first_cost = first_peak = 0.0
    for p in (10_000, 100_000, 1_000_000):
        store = make(folder, n, p)
        with tempfile.TemporaryDirectory() as scratch:
            common = ("--q", q, "--memory-mb", cap_mb, "--threads", 1, "--judge", "probe")
            warm = ("--out", Path(scratch) / "warm.run", "--iterations", few)
            srs_ooc("run", store, *warm, *common)  # page cache and clock speed
        cost, long = an_iteration(store, few, many, *common)
        first_cost, first_peak = first_cost or cost, first_peak or long.peak_mb
        extra = (long.peak_mb - first_peak) * MB / max(1, p - 10_000)
        print(
            f"n = {n}, q = {q}, cap {cap_mb} MB, p = {p}: {cost:.3f} ms an iteration "
            f"({cost / first_cost:.2f} of p = 10^4), peak {long.peak_mb:.1f} MB "
            f"({extra:.1f} bytes more a feature)"
        )


def run_main() -> None:
    """Read the options and measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--folder", type=Path, help="keep the stores here and use them again")
    parser.add_argument("--iterations", type=int, default=10_000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.folder or Path(scratch)
        whole_run(folder, arguments.iterations)
        by_width(folder, 1000, 2500, 1500, few=300, many=2300)
        by_width(folder, 1000, 2500, RUN_CAP_MB, few=300, many=2300)
        by_width(folder, 100, 2500, 256, few=500, many=5500)
        by_width(folder, 100, 2500, 128, few=500, many=5500)


CAP_MB = 512
SIZES = ("72x850000", "1000x1000000")


def measure_all(folder: Path, sizes: list[str], iterations: int) -> None:
    """Print the seconds of scoring and searching large stores beside those of reading them."""
    for size in sizes:
        store = folder / f"{size}.zarr"
        if not store.exists():
            n, p = size.split("x")
            problem = ("--rows", n, "--features", p, "--relevant", 20, "--seed", 0)
            srs_ooc("synth", "madelon", store, *problem)
        n_bytes, reading = read_codes(store)
        print(f"{size}: reading the {n_bytes / MB:,.0f} MB of codes once {reading:.1f} s")
        with tempfile.TemporaryDirectory() as scratch:
            run = ("run", store, "--method", "less", "--iterations", iterations)
            commands: dict[str, tuple[object, ...]] = {
                "scores, norm": (
                    "scores",
                    store,
                    "--with",
                    "scores=norm",
                    "--with",
                    "matrix=codes",
                ),
                "scores, leverage": ("scores", store, "--with", "scores=leverage"),
                "run, judge probe": (*run, "--judge", "probe", "--out", f"{scratch}/a.run"),
            }
            for what, command in commands.items():
                top = ("--top", 10) if command[0] == "scores" else ("--threads", 1)
                done = srs_ooc(*command, *top, "--memory-mb", CAP_MB)
                rate = n_bytes / MB / done.seconds
                print(
                    f"  {what}: {done.seconds:.1f} s ({done.cpu_seconds:.1f} of processors), "
                    f"{rate:.0f} MB of the table a second; peak {done.peak_mb:.0f} MB of {CAP_MB}",
                    flush=True,
                )


def read_codes(store: Path) -> tuple[int, float]:
    """Return the bytes of a store's codes, and the seconds of reading them once."""
    start, n_bytes = time.perf_counter(), 0
    for file in sorted((store / "codes").glob("c/*/0")):
        with file.open("rb", buffering=0) as opened:
            while piece := opened.read(1 << 20):
                n_bytes += len(piece)
    return n_bytes, time.perf_counter() - start


def less_main() -> None:
    """Read the options and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", nargs="+", default=list(SIZES), metavar="ROWSxFEATURES")
    parser.add_argument("--iterations", type=int, default=300, help="trees of the run")
    parser.add_argument("--folder", type=Path, default=Path(), help="of the stores")
    asked = parser.parse_args()
    measure_all(asked.folder, asked.sizes, asked.iterations)


TABLES = ("50x1000000", "72x850000", "1000x1000000", "500x10000000", "17000x450000", "60000x5000")
N_RELEVANT, MOST_MB, MOST_CELLS, FEW_ROWS = 20, 20_000, 1_000_000_000, 200
PEERS = ("lightgbm", "extra_trees_default", "ranksum")
LAST_CACHE = Path("/sys/devices/system/cpu/cpu0/cache/index3/size")
AFTER, BEFORE, BOUND = "srs-ooc", "srs-ooc before", "bound"

SPEEDS = ("levels", "moved GB", "disk GB/s", "copy GB/s", "read GB/s", "cells/ns")


def needed_mb(peer: str, n: int, p: int) -> float:
    """Return about what a peer's arrays take: the table as it wants it, and what it is known for.

    LightGBM keeps a histogram of every feature for each of its 31 leaves, of 16 bytes a bin of
    three rows or more, and 5 kB a feature beside that (measured).
    """
    more = {
        "lightgbm": 4 * n * p + p * (31 * 16 * min(255, max(2, n // 3)) + 5000),
        "extra_trees_default": 3 * n * p + 1700 * p,
        "ranksum": 1000 * n * 64,
    }
    return (n * p + more.get(peer, 11 * n * p)) / MB


def make_sized(folder: Path, size: str) -> Path:
    """Return the store of a size, made if it is not there."""
    store, (n, p) = folder / f"{size}.zarr", map(int, size.split("x"))
    if not store.exists():
        make = [sys.executable, __file__, "store", store]
        if n * p <= MOST_CELLS:
            table = ("--rows", n, "--features", p, "--relevant", N_RELEVANT, "--seed", 1)
            make = [sys.executable, MORE_PROBLEMS, problem_of(size), store, *table]
        if measure([*map(str, make)], out=os.devnull).status:
            raise SystemExit(f"failed: {make}")
    return store


def problem_of(size: str) -> str:
    """Return the synthetic problem of a size."""
    return "shift" if int(size.partition("x")[0]) < FEW_ROWS else "madelon"


def store_main() -> None:
    """Write a store without values, as a process of its own: ``scale.py store NxP.zarr``."""
    from bench_cold import write_without_values
    from more_problems import PROBLEMS

    path = Path(sys.argv[1])
    n, p = map(int, path.stem.split("x"))
    kind: Any = PROBLEMS[problem_of(path.stem)]
    write_without_values(path, kind(n, p, N_RELEVANT, 1))


OURS = [sys.executable, "-P", "-m", "srs_ooc"]
MORE_PROBLEMS = Path(__file__).with_name("more_problems.py")


def judged(found: Iterable[str], store: Path) -> Record:
    """Return how many of the found features are relevant, and how many are not."""
    truth = json.loads(Path(f"{store}.truth.json").read_text())
    found, relevant = set(found), set(truth["relevant"])
    return {"true of 20": len(found & relevant), "false": len(found - relevant)}


def run_default(python: str, store: Path, options: list[str], n_iterations: int | None) -> Record:
    """Run the command by some Python; with a number of iterations, scale to what it would do."""
    command = [python, *OURS[1:]]

    def said(*words: str) -> str:
        return subprocess.run([*command, *words], check=True, capture_output=True, text=True).stdout

    with tempfile.TemporaryDirectory(dir=store.parent) as scratch:
        run, errors = f"{scratch}/a.run", f"{scratch}/err"
        words = ["run", str(store), "--out", run, "--memory-mb", str(CAP_MB), *options]
        words += ["--iterations", str(n_iterations)] if n_iterations else []
        done = measure([*command, *words], out=os.devnull, errors=errors)
        if done.status:
            raise SystemExit(f"failed: {words}: {Path(errors).read_text()}")
        status = json.loads(said("status", run, "--json"))
        found = csv.DictReader(said("features", run, "--selected", "--csv").splitlines())
        record = judged([line["name"] for line in found], store)
    record |= {"q": status["subspace_size"], "iterations": status["iterations"], "note": ""}
    factor = 1.0
    if n_iterations:
        wanted = json.loads(said("plan", str(store), "--json"))["iterations"]
        rest = (wanted - n_iterations) * status["seconds_per_iteration"]
        factor = 1 + rest / done.seconds
        record["note"] = f"scaled from {n_iterations} of {wanted} iterations"
    costs = {"seconds": factor * done.seconds, "cpu": factor * done.cpu_seconds}
    return record | costs | {"peak_mb": done.peak_mb}


def run_peer(peer: str, store: Path, limit: float) -> Record:
    """Run a peer on the codes of a store, in memory; of what it cannot do the note says why."""
    n, p = map(int, store.stem.split("x"))
    if (needed := needed_mb(peer, n, p)) > MOST_MB:
        return {"note": f"does not fit: about {needed / 1000:,.0f} GB"}
    program = str(Path(__file__).with_name("selection_peers.py"))
    with tempfile.TemporaryDirectory(dir=store.parent) as scratch:
        errors = f"{scratch}/errors"
        words = [sys.executable, program, peer, scratch, "0", str(store)]
        done = measure(words, limit_seconds=limit, out=os.devnull, errors=errors)
        if done.status is None:
            return {"note": f"over {limit:.0f} s", "peak_mb": done.peak_mb}
        if done.status:
            why = (Path(errors).read_text().strip().splitlines() or [""])[-1]
            return {"note": f"failed ({done.status}): {why[:100]}", "peak_mb": done.peak_mb}
        found = json.loads(Path(scratch, "selected.json").read_text())
    costs = {"seconds": done.seconds, "cpu": done.cpu_seconds, "peak_mb": done.peak_mb}
    return costs | judged([f"f{j}" for j in found], store) | {"note": ""}


def bound_main() -> None:
    """Print what bounds a run, as a process of its own: ``scale.py bound STORE Q ITERATIONS``."""
    from concurrent.futures import ThreadPoolExecutor

    import numpy as np
    from bench_cold import chunk_files, drop_cache
    from bench_tree import Case, our_milliseconds

    from srs_ooc.store.store import Store
    from srs_ooc.trees.block import Block
    from srs_ooc.trees.kernel import grow_tree, instruction_sets
    from srs_ooc.trees.response import Response, TrainingRows, TreeLimits
    from srs_ooc.trees.saved import LEAF, decode_trees

    path, q, iterations = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    store, cores = Store.open(path), os.cpu_count() or 1
    n, p = store.n_rows, store.n_features

    source, copy = np.ones(1 << 28, np.uint8), np.zeros(1 << 28, np.uint8)
    parts = list(zip(np.array_split(source, cores), np.array_split(copy, cores), strict=True))
    speeds: dict[str, float] = {}
    work = {"copy": lambda part: np.copyto(part[1], part[0]), "read": lambda part: part[0].max()}
    with ThreadPoolExecutor(cores) as pool:
        for what, n_passes in ("copy", 2), ("read", 1):
            for _ in range(5):
                start = time.perf_counter()
                list(pool.map(work[what], parts))
                speed = n_passes * source.nbytes / (time.perf_counter() - start)
                speeds[what] = max(speeds.get(what, 0), speed)
    del source, copy, parts

    files = chunk_files(path, store.manifest.n_chunks)
    drop_cache(files)
    n_bytes, seconds = read_codes(path)
    first = files[: -(-q // store.manifest.chunk_features)]
    read = np.concatenate([np.fromfile(file, np.uint8) for file in first])
    codes = read[: q * n].reshape(q, n)
    rows = TrainingRows.of(Response.classes(store.target().astype(np.int32), 2), "gini")

    def levels(columns: Any) -> float:
        """Return by how many nodes of a tree a row passes, on average."""
        width = len(columns)
        block = Block(width, n, 1, tiled=False)
        block.codes[: columns.size] = columns.reshape(-1)
        features, limits = np.arange(width, dtype=np.uint32), TreeLimits(width, impurity="gini")
        record = grow_tree(block, features, rows, 1, limits, record=True).record or b""
        tree = decode_trees(record, np.array([0]), np.array([len(record)]))
        return float(tree.n_rows[tree.feature != LEAF].sum() / n)

    few = codes[: max(64, 500_000 // n)]
    isa = instruction_sets()[0]
    warm = our_milliseconds(Case(n, len(few), 2), few, rows, isa, 21) / 1000
    deep, shallow = levels(codes), levels(few)
    cells = iterations * q * n
    cache = int(LAST_CACHE.read_text().strip().removesuffix("K")) * 1024
    again = deep if q * n > cache else 0
    found = {
        "disk": n * p / (n_bytes / seconds),
        "memory": cells * (2 / speeds["copy"] + again / speeds["read"]),
        "work": cells * deep * warm / (few.size * shallow) / cores,
        "disk GB/s": n_bytes / seconds / 1e9,
        "copy GB/s": speeds["copy"] / 1e9,
        "read GB/s": speeds["read"] / 1e9,
        "moved GB": cells * (2 + again) / 1e9,
        "levels": deep,
        "cells/ns": few.size * shallow / warm / 1e9,
    }
    print(json.dumps(found))


def bound_of(store: Path, record: Record) -> Record:
    """Return what bounds the run that a record is of."""
    words = [sys.executable, __file__, "bound", store, record["q"], record["iterations"]]
    done = subprocess.run([*map(str, words)], check=True, stdout=subprocess.PIPE, text=True)
    found: Record = json.loads(done.stdout)
    return found | {"took": record["seconds"]}


def markdown(lines: list[list[str]]) -> str:
    """Return lines of cells as a table, the first as its head."""
    whole = [lines[0], ["---"] * len(lines[0]), *lines[1:]]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in whole)


class Sizes(Results):
    """Records, one of each size, party and turn."""

    def have(self, size: str, who: str, turn: int, work: Callable[[], Record]) -> Record:
        """Return what is known, or what the work comes to, which is kept."""
        key: Record = {"size": size, "who": who, "turn": turn}
        if (known := self.find(key)) is not None:
            return known
        done = key | work()
        print(f"{size} {who}: {done}", file=sys.stderr, flush=True)
        self.add(done, is_kept=not done.get("note", "").startswith("failed"))
        return done

    def table(self, sizes: list[str]) -> str:
        """Return the tables: medians of the turns, of the peak the largest; and the bounds."""
        lines = [["size", "who", "seconds", "cpu", "peak_mb", "true of 20", "false", "note"]]
        groups: dict[tuple[str, str], list[Record]] = {}
        for record in self.records:
            if record["size"] in sizes and record["who"] != BOUND:
                groups.setdefault((record["size"], record["who"]), []).append(record)
        in_order = sorted(groups.items(), key=lambda group: sizes.index(group[0][0]))
        for (size, who), turns in in_order:
            cells = [f"{size} ({problem_of(size)})", who]
            for name in lines[0][2:5]:
                values = [turn[name] for turn in turns if name in turn] or [nan]
                value = max(values) if name == "peak_mb" else median(values)
                cells.append("" if isnan(value) else f"{value:,.0f}")
            lines.append(cells + [str(turns[-1].get(name, "")) for name in lines[0][5:]])
        names = ["took", "disk", "memory", "work", *SPEEDS]
        bounds = [["size", *names]]
        for record in self.bounds(sizes):
            bounds.append([record["size"], *(f"{record[name]:,.3g}" for name in names)])
        return f"{markdown(lines)}\n\n{markdown(bounds)}"

    def bounds(self, sizes: list[str]) -> list[Record]:
        """Return the bounds of some sizes, in their order."""
        found = [record for record in self.records if record["who"] == BOUND]
        return [record for size in sizes for record in found if record["size"] == size]


def sizes_main() -> None:
    """Make, run, compare, bound, draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True, help="stores and results, kept")
    parser.add_argument("--only", nargs="+", default=list(TABLES), metavar="ROWSxFEATURES")
    parser.add_argument("--turns", type=int, default=1)
    parser.add_argument("--before", metavar="PYTHON", help="of an environment with another version")
    parser.add_argument("--before-iterations", type=int, metavar="N")
    parser.add_argument("--peers", nargs="*", default=list(PEERS), metavar="NAME")
    parser.add_argument("--limit", type=float, default=900, help="seconds of a peer")
    parser.add_argument("--options", default="", help="more options of the run")
    asked = parser.parse_args()
    options, folder = asked.options.split(), asked.folder.absolute()
    results = Sizes(folder / "sizes.jsonl")
    for size in asked.only:
        store = make_sized(folder, size)
        read_codes(store)
        parties = [(AFTER, sys.executable, None)]
        if asked.before:
            parties.append((BEFORE, str(Path(asked.before).absolute()), asked.before_iterations))
        for turn in range(asked.turns):
            for who, python, some in parties:
                work = partial(run_default, python, store, options, some)
                results.have(size, " ".join([who, *options]), turn, work)
        ours = results.have(size, " ".join([AFTER, *options]), 0, dict)
        for peer in asked.peers:
            results.have(size, peer, 0, partial(run_peer, peer, store, asked.limit))
        results.have(size, "ranger", 0, lambda: {"note": "not run: needs R"})
        if not options:
            results.have(size, BOUND, 0, partial(bound_of, store, ours))
    print(results.table(asked.only))


if __name__ == "__main__":
    parts = {"store": store_main, "bound": bound_main}  # of ``sizes``
    subcommand(ingest=ingest_main, run=run_main, less=less_main, sizes=sizes_main, **parts)
