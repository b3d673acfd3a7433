"""LESS on large tables: 850,000 x 72 and 10^6 x 1,000 under a cap of 512 MB.

Claim: scoring takes two sequential passes. A run of 300 trees by ``--judge probe`` adds a quarter
at 10^6 features; one by the default judge, whose decoys are scored and tested too, takes two to
five times as much. Seconds are printed beside those of reading the same bytes once, and peaks as
the operating system counts them: each command is a child of this small process.

    python benchmarks/less_large.py [--folder FOLDER] [--sizes 72x850000 1000x1000000]

Stores are made in FOLDER where they are not there (61 MB and 1.1 GB), and kept. Uses the standard
library only.
"""

import argparse
import tempfile
import time
from pathlib import Path

from measured import MB, srs_ooc

CAP_MB = 512
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
                "run": (*run, "--out", f"{scratch}/b.run"),
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


def main() -> None:
    """Read the options and measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", nargs="+", default=list(SIZES), metavar="ROWSxFEATURES")
    parser.add_argument("--iterations", type=int, default=300, help="trees of the run")
    parser.add_argument("--folder", type=Path, default=Path(), help="of the stores")
    asked = parser.parse_args()
    measure_all(asked.folder, asked.sizes, asked.iterations)


if __name__ == "__main__":
    main()
