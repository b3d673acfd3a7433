"""Ingest of tables larger than the cap, of every shape: seconds, cost a GB, peak against cap.

Claims: the peak stays under the cap whatever the width and length of the table and of its lines
(``wide``, ``tall``, ``square``, ``line``, ``name``, ``long``); and cost follows the bytes, not the
number of columns (``columns-100`` to ``columns-1000000``: the same cells in every width). CPU
seconds a GB compare where the machine has other work.

    python benchmarks/scale_ingest.py [--shape NAME ...] [--folder FOLDER] [--repeats 1]

Each table is written, ingested and deleted; ``long`` takes 20 GB of disk for a while.
"""

import argparse
import random
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from measured import MB, measure, srs_ooc

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
    measure([sys.executable, __file__, "--shape", name, "--only-write", str(table)])
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


def main() -> None:
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


if __name__ == "__main__":
    main()
