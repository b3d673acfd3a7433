"""Ingest of tables far larger than the cap: seconds, and peak memory against the cap.

Claim: under ``--memory-mb 128`` a CSV file ten times that size (8,000 rows x 20,000 features, about
1.2 GB) is ingested with its peak below the cap, and so are a wide one (50 x 1,000,000) and a tall
one (1,000,000 x 100).

    python benchmarks/scale_ingest.py [--folder FOLDER]
"""

import argparse
import tempfile
from pathlib import Path

from measured import MB, srs_ooc

CAP_MB = 128
SHAPES = ((8000, 20_000), (50, 1_000_000), (1_000_000, 100))


def ingest(folder: Path, n: int, p: int) -> None:
    """Make a table, ingest it, and print what that took."""
    table, store = folder / f"{n}x{p}.csv", folder / f"{n}x{p}.zarr"
    srs_ooc("synth", "madelon", table, "--rows", n, "--features", p, "--relevant", 20, "--seed", 0)
    done = srs_ooc("ingest", table, store, "--memory-mb", CAP_MB)
    print(
        f"{n} x {p}: {table.stat().st_size / MB:.0f} MB of CSV in {done.seconds:.1f} s, "
        f"peak {done.peak_mb:.1f} MB of {CAP_MB}",
        flush=True,
    )
    table.unlink()


def main() -> None:
    """Read the options and measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--folder", type=Path, help="where to work; needs about 5 GB")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as scratch:
        for n, p in SHAPES:
            ingest(Path(scratch), n, p)


if __name__ == "__main__":
    main()
