"""Whole runs: seconds, peak memory against the cap, and what a wider table costs.

Claims: 10,000 iterations at n = 1,000, p = 50,000, q = 2,500 take 30 s or less on two cores, with
the peak under the cap of 192 MB; at the same q and cap an iteration costs at most 1.3 times as much
at p = 10^6 as at p = 10^4; a run's own memory grows by at most 32 bytes a feature. What a mapped
store adds is its size: it is mapped where the cap has room for it, and that is said.

The second series is the harder one: with 100 rows a tree takes 0.3 ms, so that reaching a column
costs more than using it. Losses to know: under a cap that cannot hold such a store its columns are
read from files, at about 1 microsecond each, cached or not.

    python benchmarks/scale_run.py [--folder FOLDER] [--iterations 10000]
"""

import argparse
import tempfile
from pathlib import Path

from measured import MB, srs_ooc

CAP_MB = 192


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
        options = ("--alpha", 0.5, "--q", 2500, "--judge", "probe", "--memory-mb", CAP_MB)
        out = ("--out", Path(scratch) / "a.run", "--iterations", iterations)
        done = srs_ooc("run", store, *out, *options)
    print(
        f"n = 1000, p = 50000, q = 2500, {iterations} iterations: {done.seconds:.1f} s, "
        f"peak {done.peak_mb:.1f} MB of {CAP_MB}"
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


def main() -> None:
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
        by_width(folder, 1000, 2500, CAP_MB, few=300, many=2300)
        by_width(folder, 100, 2500, 256, few=500, many=5500)
        by_width(folder, 100, 2500, 128, few=500, many=5500)


if __name__ == "__main__":
    main()
