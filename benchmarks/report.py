"""Size, seconds and memory of a report on a run that selects thousands of features of many.

    python benchmarks/report.py [--features 1000000] [--relevant 12000] [--rows 100]

Makes a table of ten classes, where so many features are shifted by class, runs on it briefly, and
writes the report; each step is a process of its own. Takes a few minutes and some 700 MB of disk.
"""

import argparse
import os
import tempfile
from pathlib import Path

import numpy as np
from measured import srs_ooc

CLASSES = 10
_PIECE = 50_000


def make_table(folder: Path, n_rows: int, n_features: int, n_relevant: int) -> None:
    """Write table, target and names."""
    rng = np.random.default_rng(0)
    shape = (n_rows, n_features)
    table = np.lib.format.open_memmap(folder / "t.npy", "w+", np.float32, shape)
    labels = np.arange(n_rows) % CLASSES
    for start in range(0, n_features, _PIECE):
        width = min(_PIECE, n_features - start)
        table[:, start : start + width] = rng.standard_normal((n_rows, width), dtype=np.float32)
    relevant = np.sort(rng.choice(n_features, n_relevant, replace=False))
    shifts = (1.6 * rng.normal(size=(CLASSES, n_relevant))).astype(np.float32)
    for row, label in enumerate(labels.tolist()):
        table[row, relevant] += shifts[label]
    table.flush()
    (folder / "y.txt").write_text("".join(f"class {label}\n" for label in labels))
    names = (f"cg{i:08d}\n" for i in range(n_features))
    (folder / "names.txt").write_text("".join(names))


def main() -> None:
    """Make the run, write its report, and say what that took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--features", type=int, default=1_000_000)
    parser.add_argument("--relevant", type=int, default=12_000)
    parser.add_argument("--rows", type=int, default=100)
    parser.add_argument("--out", type=Path, help="keep the page as this file")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="srs-ooc-report-") as name:
        folder = Path(name)
        # In a child: a large parent would count in the children's peaks.
        if os.fork() == 0:
            make_table(folder, given.rows, given.features, given.relevant)
            os._exit(0)
        os.wait()
        table, store, run, page = (folder / n for n in ("t.npy", "t.zarr", "t.run", "t.html"))
        files = ("--names", folder / "names.txt", "--target-file", folder / "y.txt")
        srs_ooc("ingest", table, store, *files)
        table.unlink()
        done = srs_ooc("run", store, "--iterations", 400, "--memory-mb", 500)
        print(f"run: {done.seconds:.1f} s, {done.peak_mb:.0f} MB")
        done = srs_ooc("report", run, "-o", page)
        print(
            f"report: {page.stat().st_size / 1e6:.2f} MB, {done.seconds:.1f} s, "
            f"peak {done.peak_mb:.0f} MB"
        )
        if given.out is not None:
            given.out.write_bytes(page.read_bytes())


if __name__ == "__main__":
    main()
