"""Where the seconds of an ingest go, stage by stage, beside what its parts cost alone.

    python benchmarks/ingest_stages.py [--rows 1000] [--features 100000] [--repeats 3]
    python benchmarks/ingest_stages.py --table FILE [OPTION OF INGEST ...]

The first makes a ``.npy`` of float32 and a CSV of a fifth of its columns. Each repetition is a
process of its own, of which the fastest is shown: wall and processor seconds of each stage. Below
stand the parts alone, by one thread: the file read from the page cache, its CRC-32, as many values
coded and compressed, as many bytes written and synced.
"""

import argparse
import contextlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

STAGES = """
import json, os, sys, time, zlib
import numpy as np
from pathlib import Path
from srs_ooc.cli import cli
from srs_ooc.ingestion import reading, stages, writer
table, store, options = sys.argv[1], sys.argv[2], sys.argv[3:]
seconds = {}

def clock():
    return np.array([time.perf_counter(), time.process_time()])

def timed(owner, name, stage):
    inner = getattr(owner, name)
    def outer(*args, **more):
        begin = clock()
        try:
            return inner(*args, **more)
        finally:
            seconds[stage] = seconds.get(stage, 0) + clock() - begin
    setattr(owner, name, outer)

timed(stages, "open_reading", "open")
timed(reading.TableReading, "read_names", "names")
timed(reading.TextReading, "read_names", "names")
timed(reading.TextReading, "read_rows", "rows to columns")
timed(reading.TableReading, "features", "rows to columns")
timed(writer.ColumnsWriter, "write", "code, compress, write")
timed(writer, "write_texts", "write names and ids")
timed(writer.ColumnsWriter, "sync", "sync values")
begin = clock()
cli(["ingest", table, store, "--memory-mb", "512", "-q", *options], standalone_mode=False)
seconds["all"] = clock() - begin

def alone(part, work):
    start = time.perf_counter()
    work()
    seconds["alone: " + part] = np.array([time.perf_counter() - start, 0])

from srs_ooc.store.store import Store
from srs_ooc.store.values import code_columns, encode
known = Store.open(Path(store))
data = Path(table).read_bytes()
alone("read the file", lambda: Path(table).read_bytes())
alone("its CRC-32", lambda: zlib.crc32(data))
some = min(known.n_features, max(1, 4_000_000 // known.n_rows))
values = np.random.default_rng(0).standard_normal((some, known.n_rows))
values = values.astype(known.manifest.values_dtype)
codes, times = np.empty(values.shape, np.uint8), known.n_features / some
alone("code", lambda: code_columns(values, codes))
alone("compress", lambda: encode(values))
for part in ("code", "compress"):
    seconds["alone: " + part] *= times
files = [file for file in Path(store).rglob("*") if file.is_file()]
nbytes = sum(file.stat().st_size for file in files)
block = np.random.default_rng(0).bytes(1 << 24)

def write():
    with open(store + ".bytes", "wb") as file:
        for _ in range(0, nbytes, len(block)):
            file.write(block)
        file.flush()
        os.fsync(file.fileno())

alone(f"write and sync {nbytes / 1e6:,.0f} MB", write)
print(json.dumps({stage: list(both) for stage, both in seconds.items()}))
"""
MAKE = """
import sys
import numpy as np
path, n, p = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
rng = np.random.default_rng(0)
values = rng.standard_normal((n, p), np.float32)
np.save(path + ".npy", values)
np.save(path + ".target.npy", np.arange(n) % 2)
with open(path + ".csv", "w") as file:
    file.write(",".join([f"f{j}" for j in range(p // 5)] + ["y"]) + "\\n")
    for i, row in enumerate(values[:, : p // 5]):
        file.write(",".join(["%.6g" % value for value in row] + [str(i % 2)]) + "\\n")
"""


Stages = dict[str, tuple[float, float]]
"""Seconds of wall and of processor by stage; of parts alone, the second is 0."""


def stages(table: Path, options: list[str], repeats: int) -> Stages:
    """Ingest a file some times, and return the stages of the fastest."""
    found: list[Stages] = []
    for _ in range(repeats):
        with tempfile.TemporaryDirectory(dir=table.parent) as scratch:
            command = [sys.executable, "-c", STAGES, str(table), f"{scratch}/t.zarr", *options]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise SystemExit(done.stderr)
            found.append(json.loads(done.stdout.splitlines()[-1]))
    return min(found, key=lambda one: one["all"][0])


def show(table: Path, options: list[str], repeats: int) -> None:
    """Print the stages of an ingest."""
    print(f"{table.name}, {table.stat().st_size / 1e6:,.0f} MB")
    for stage, (wall, cpu) in stages(table, options, repeats).items():
        print(f"  {stage:<28} {wall:6.2f} s" + f"  CPU {cpu:6.2f} s" * (cpu > 0), flush=True)


@contextlib.contextmanager
def make(n_rows: int, n_features: int) -> Iterator[tuple[Path, list[str], Path]]:
    """Yield a ``.npy``, the options that name its target, and a CSV of a fifth of its columns."""
    with tempfile.TemporaryDirectory() as folder:
        stem = f"{folder}/made"
        command = [sys.executable, "-c", MAKE, stem, str(n_rows), str(n_features)]
        subprocess.run(command, check=True)
        target = ["--target-file", f"{stem}.target.npy"]
        yield Path(f"{stem}.npy"), target, Path(f"{stem}.csv")


def main() -> None:
    """Read the options and measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--features", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--table", type=Path)
    arguments, options = parser.parse_known_args()
    if arguments.table:
        show(arguments.table, options, arguments.repeats)
        return
    with make(arguments.rows, arguments.features) as (npy, target, csv):
        show(npy, [*target, *options], arguments.repeats)
        show(csv, options, arguments.repeats)


if __name__ == "__main__":
    main()
