"""Ingest against readers that keep nothing: seconds and peak memory, same files, same run.

Claims: 1,000 x 20,001 decimals (170 MB of CSV) become a finished store in at most the time polars
takes to read them, at a fifth of its memory; 50 x 200,001 three times as fast as polars reads them;
1,000,000 x 51 in at most three times its time.

Each measurement is a process of its own; import included. Peers read into their own memory, by all
cores they like. They are used if installed (``pip install '.[bench]'``), and stop after ``--limit``
seconds.

    python benchmarks/bench_ingest.py [--folder F] [--repeats 3] [--only 1000x20000] [--limit 120]
"""

import argparse
import importlib.util
import os
import shutil
import statistics
import sys
import tempfile
from pathlib import Path

from measured import find_srs_ooc, measure

SHAPES = {
    "1000x20000": (1000, 20_000, "%.5f"),
    "50x200000": (50, 200_000, "%.5f"),
    "1000000x50": (1_000_000, 50, "%.5f"),
    "1000x20000-17": (1000, 20_000, "%r"),  # 15 to 17 digits, as pandas writes doubles
}
"""Rows, features, and how cells are written."""
CAP_MB = 512

MAKE = """
import sys
import numpy as np
path, n, p, cell = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
values = np.random.default_rng(0).standard_normal(200_003).tolist()
pool = [cell % value for value in values]
pool += pool
with open(path, "w") as file:
    file.write(",".join(f"f{j}" for j in range(p)) + ",y\\n")
    for i in range(n):
        start = i * 7919 % 200_003
        file.write(",".join(pool[start : start + p]) + f",{i % 2}\\n")
"""
CSV_PEERS = {
    "polars": "import polars, sys; polars.read_csv(sys.argv[1])",
    "pandas": "import pandas, sys; pandas.read_csv(sys.argv[1])",
    "pyarrow": "import pyarrow.csv as c, sys; o = c.ReadOptions(block_size=1 << 26);"
    "c.read_csv(sys.argv[1], read_options=o)",
    "duckdb": "import duckdb, sys; duckdb.sql(f\"create table t as from read_csv('{sys.argv[1]}',"
    ' max_line_size=100000000)")',
    "numpy.loadtxt": "import numpy, sys; numpy.loadtxt(sys.argv[1], delimiter=',', skiprows=1,"
    " dtype='f4', max_rows=None)",
}


def python(script: str, *arguments: object) -> list[str]:
    """Return the command of a script."""
    return [sys.executable, "-c", script, *map(str, arguments)]


def show(name: str, commands: list[str], repeats: int, limit: float, clear: Path | None) -> float:
    """Run a command several times, print the medians, and return the seconds."""
    seconds, peaks, processor = [], [], []
    for _ in range(repeats):
        done = measure(commands, limit_seconds=limit, out=os.devnull, errors=os.devnull)
        if clear is not None:
            shutil.rmtree(clear, ignore_errors=True)
        if done.status != 0:
            how = "stopped" if done.status is None else "failed"
            print(
                f"  {name}: {how} after {done.seconds:.1f} s, peak {done.peak_mb:.0f} MB",
                flush=True,
            )
            return done.seconds
        seconds.append(done.seconds)
        peaks.append(done.peak_mb)
        processor.append(done.cpu_seconds)
    middle = statistics.median(seconds)
    print(
        f"  {name}: {middle:.2f} s ({min(seconds):.2f} to {max(seconds):.2f}), "
        f"CPU {statistics.median(processor):.2f} s, peak {max(peaks):.0f} MB",
        flush=True,
    )
    return middle


def bench_csv(folder: Path, shape: str, repeats: int, limit: float) -> None:
    """Measure one CSV file."""
    n, p, cell = SHAPES[shape]
    table, store = folder / f"{shape}.csv", folder / "t.zarr"
    measure(python(MAKE, table, n, p, cell))
    print(f"{n} x {p + 1} CSV, {table.stat().st_size / 1e6:.0f} MB", flush=True)
    ours = [find_srs_ooc(), "ingest", str(table), str(store), "--memory-mb", str(CAP_MB)]
    show("ours, a finished store", ours, repeats, limit, store)
    for peer, script in CSV_PEERS.items():
        if importlib.util.find_spec(peer.split(".")[0]):
            show(peer, python(script, table), repeats, limit, None)
    table.unlink()


def main() -> None:
    """Read the options and measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--folder", type=Path, help="where to work; needs about 2 GB")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--limit", type=float, default=120)
    parser.add_argument("--only", choices=SHAPES, action="append")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as scratch:
        for shape in arguments.only or SHAPES:
            bench_csv(Path(scratch), shape, arguments.repeats, arguments.limit)


if __name__ == "__main__":
    main()
