"""What large tables take, by four subcommands.

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

``wide``: ten million features of 500 rows, made and run under 512 MB: time, peak of each process,
results.

Writes a table of whole numbers as one .npy of 5 GB (column by column; 20 columns tell the classes
apart, the others are random), ingests it without values, and runs it with one thread, with two,
and on one and two Dask workers of this machine. All must end with the same ranking. Peaks are
those of the operating system, of the process itself and of each of its children. Needs 10 GB of
disk, and the extra ``dask``.

    python benchmarks/scale.py wide [--folder FOLDER] [--features 10000000] [--iterations 2000]

``less``: LESS on tables of 850,000 x 72 and 10^6 x 1,000 under a cap of 512 MB.

Claim: scoring takes two sequential passes. A run of 300 trees by ``--judge probe`` adds a quarter
at 10^6 features; one by ``--judge decoy``, whose decoys are scored and tested too, takes two to
five times as much. Seconds are printed beside those of reading the same bytes once, and peaks as
the operating system counts them: each command is a child of this small process.

    python benchmarks/scale.py less [--folder FOLDER] [--sizes 72x850000 1000x1000000]

Stores are made in FOLDER where they are not there (61 MB and 1.1 GB), and kept. Uses the standard
library only.
"""

import argparse
import hashlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from measured import MB, find_srs_ooc, measure, srs_ooc, subcommand

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
        _remove(store)
    table.unlink()


def _remove(folder: Path) -> None:
    for item in folder.iterdir():
        if item.is_dir():
            _remove(item)
        else:
            item.unlink()
    folder.rmdir()


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
        options = ("--alpha", 0.5, "--q", 2500, "--judge", "probe", "--memory-mb", RUN_CAP_MB)
        out = ("--out", Path(scratch) / "a.run", "--iterations", iterations)
        done = srs_ooc("run", store, *out, *options)
    print(
        f"n = 1000, p = 50000, q = 2500, {iterations} iterations: {done.seconds:.1f} s, "
        f"peak {done.peak_mb:.1f} MB of {RUN_CAP_MB}"
    )


def by_width(folder: Path, n: int, q: int, cap_mb: int, few: int, many: int) -> None:
    """Print the cost of an iteration and the memory of a run at p = 10^4, 10^5, 10^6."""
    first_cost = first_peak = 0.0
    for p in (10_000, 100_000, 1_000_000):
        store = make(folder, n, p)
        with tempfile.TemporaryDirectory() as scratch:
            common = ("--q", q, "--memory-mb", cap_mb, "--threads", 1, "--judge", "probe")
            warm = ("--out", Path(scratch) / "warm.run", "--iterations", few)
            srs_ooc("run", store, *warm, *common)  # page cache and clock speed
            short, long = (
                srs_ooc(
                    "run", store, "--out", Path(scratch) / f"{t}.run", "--iterations", t, *common
                )
                for t in (few, many)
            )
        cost = 1e3 * (long.seconds - short.seconds) / (many - few)
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


N_ROWS, N_RELEVANT, CAP_MB = 500, 20, 512
LOOK_SECONDS = 0.2
WRITE = """
import sys
import numpy as np
path, n, p, relevant = sys.argv[1], *map(int, sys.argv[2:])
rng = np.random.default_rng(0)
target = rng.permutation(n) % 2
np.save(path + ".target.npy", target)
header = {"descr": "|u1", "fortran_order": True, "shape": (n, p)}
with open(path, "wb") as file:
    np.lib.format.write_array_header_1_0(file, header)
    for start in range(0, p, 100_000):
        columns = np.frombuffer(rng.bytes(n * min(100_000, p - start)), np.uint8) & 127
        columns = columns.reshape(-1, n)
        if start == 0:
            columns[:relevant] += (20 * target).astype(np.uint8)
        file.write(columns.tobytes())
"""
"""Run in a process of its own: a child's peak begins at its parent's."""


class Peaks:
    """The peaks of a process and of its children, looked at until it ends."""

    def __init__(self, pid: int) -> None:
        self.of: dict[int, tuple[str, float]] = {}
        self._pid, self._over = pid, threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def _look(self) -> None:
        while not self._over.wait(LOOK_SECONDS):
            for pid in family(self._pid):
                try:
                    status = Path(f"/proc/{pid}/status").read_text()
                except OSError:
                    continue
                fields = dict(line.split(":", 1) for line in status.splitlines())
                if "VmHWM" in fields:
                    peak = int(fields["VmHWM"].split()[0]) * 1024 / MB
                    self.of[pid] = (fields["Name"].strip(), peak)

    def stop(self) -> str:
        """Return the peaks, largest first."""
        self._over.set()
        self._thread.join()
        peaks = sorted((peak for _, peak in self.of.values()), reverse=True)
        return ", ".join(f"{peak:.0f}" for peak in peaks)


def family(pid: int) -> list[int]:
    """Return a process and all that come from it."""
    children: list[str] = []
    for of_thread in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            children += of_thread.read_text().split()
    return [pid, *(one for child in children for one in family(int(child)))]


def timed(name: str, *words: Any) -> None:
    """Run srs-ooc, print seconds and peaks; anything but success ends the benchmark."""
    line = [find_srs_ooc(), *map(str, words)]
    start = time.perf_counter()
    with subprocess.Popen(line, stdout=subprocess.DEVNULL, start_new_session=True) as process:
        peaks = Peaks(process.pid)
        try:
            status = process.wait()
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    seconds = time.perf_counter() - start
    print(f"{name}: {seconds:.0f} s; peak MB of each process: {peaks.stop()}", flush=True)
    if status:
        raise SystemExit(f"failed: {' '.join(line)}")


def digest_of(run: Path, store: Path) -> str:
    """Return a digest of all that a run says of its first 1,000,000 features."""
    words = ("features", str(run), "--store", str(store), "--csv", "--top", "1000000")
    found = hashlib.sha256()
    with subprocess.Popen([find_srs_ooc(), *words], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        while part := process.stdout.read(1 << 20):
            found.update(part)
    return found.hexdigest()[:16]


def wide_main() -> None:
    """Make, ingest, run four times."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--folder", type=Path, help="keep the store here and use it again")
    parser.add_argument("--features", type=int, default=10_000_000)
    parser.add_argument("--iterations", type=int, default=2000)
    parser.add_argument("--q", type=int, default=10_000)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=asked.folder) as scratch:
        store = (asked.folder or Path(scratch)) / f"{N_ROWS}x{asked.features}.zarr"
        if not store.exists():
            ingest_wide(Path(scratch) / "table.npy", store, asked.features)
        options: tuple[Any, ...] = (
            "--judge",
            "probe",
            "--q",
            asked.q,
            "--iterations",
            asked.iterations,
        )
        options += ("--round-size", 1000, "--memory-mb", CAP_MB)
        digests = set()
        for name, how in (
            ("1 thread", ("--threads", 1)),
            ("2 threads", ("--threads", 2)),
            ("1 worker", ("--dask", "local:1", "--worker-memory-mb", CAP_MB)),
            ("2 workers", ("--dask", "local:2", "--worker-memory-mb", CAP_MB)),
        ):
            run = Path(scratch) / f"{name.replace(' ', '-')}.run"
            timed(name, "run", store, "--out", run, *options, *how)
            digests.add(digest_of(run, store))
    print(f"rankings: {'the same' if len(digests) == 1 else 'they differ'} ({', '.join(digests)})")


def ingest_wide(table: Path, store: Path, n_features: int) -> None:
    """Make the table, then the store."""
    numbers = map(str, (N_ROWS, n_features, N_RELEVANT))
    subprocess.run([sys.executable, "-c", WRITE, str(table), *numbers], check=True)
    labels = f"{table}.target.npy"
    options = ("--target-file", labels, "--no-values", "--memory-mb", CAP_MB)
    timed(f"ingest of {table.stat().st_size / 1e9:.1f} GB", "ingest", table, store, *options)
    table.unlink()


SIZES = ("72x850000", "1000x1000000")
"""Rows and features."""


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
                "scores, norm": ("scores", store, "--scores", "norm", "--matrix", "codes"),
                "scores, leverage": ("scores", store, "--scores", "leverage"),
                "run, judge probe": (*run, "--judge", "probe", "--out", f"{scratch}/a.run"),
                "run, judge decoy": (*run, "--judge", "decoy", "--out", f"{scratch}/b.run"),
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


if __name__ == "__main__":
    subcommand(ingest=ingest_main, run=run_main, wide=wide_main, less=less_main)
