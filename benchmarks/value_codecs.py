"""What the values of real tables take by each codec: bytes, and seconds a GB to write and to read.

    python benchmarks/value_codecs.py [TABLE ...]

Without tables, the six of ../shared/data. Each is ingested, and its values compressed again by each
codec, chunk by chunk as a store has them, by one thread: the ratio of bytes, and GB of values a
second, of the best of five. ``none`` is what a copy costs.
"""

import argparse
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from measured import find_srs_ooc
from numcodecs import Zstd, blosc

from srs_ooc.store.store import Store

NAMES = ("arcene", "isolet", "madelon", "orl", "prostate_ge", "tox_171")
FOLDER = Path(__file__).parents[2] / "shared" / "data"
CODECS = {
    "none": None,
    "LZ4, bits": blosc.Blosc("lz4", 1, blosc.Blosc.BITSHUFFLE),
    "LZ4, bits, level 5": blosc.Blosc("lz4", 5, blosc.Blosc.BITSHUFFLE),
    "LZ4, bytes": blosc.Blosc("lz4", 1, blosc.Blosc.SHUFFLE),
    "Zstd, bits": blosc.Blosc("zstd", 1, blosc.Blosc.BITSHUFFLE),
    "Zstd, bits, level 5": blosc.Blosc("zstd", 5, blosc.Blosc.BITSHUFFLE),
    "Zstd": Zstd(1),
}


def best_of_five(work: Callable[[], list[Any]]) -> tuple[float, list[Any]]:
    """Return the least seconds, and what was made."""
    times = []
    for _ in range(5):
        start = time.perf_counter()
        made = work()
        times.append(time.perf_counter() - start)
    return min(times), made


def show(table: Path) -> None:
    """Print the line of each codec."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.zarr"
        command = [find_srs_ooc(), "ingest", str(table), str(path), "-q"]
        subprocess.run(command, check=True, capture_output=True)
        store = Store.open(path)
        reader = store.values()
        chunks = [reader.read_chunk(i)[0].copy() for i in range(reader.n_chunks)]
    nbytes = sum(chunk.nbytes for chunk in chunks)
    n_rows, n_features = store.manifest.n_rows, store.n_features
    print(f"{table.name}: {n_rows} x {n_features}, {chunks[0].dtype}")
    for name, codec in CODECS.items():
        encode = codec.encode if codec else lambda chunk: chunk.tobytes()
        decode = codec.decode if codec else np.frombuffer
        wrote, packed = best_of_five(lambda: [encode(chunk) for chunk in chunks])  # noqa: B023
        read, _ = best_of_five(lambda: [decode(one) for one in packed])  # noqa: B023
        share = sum(map(len, packed)) / nbytes
        print(f"  {name:<20} {share:5.2f} of the bytes, write {nbytes / wrote / 1e9:6.2f} "
              f"GB/s, read {nbytes / read / 1e9:6.2f}", flush=True)  # fmt: skip


def main() -> None:
    """Read the options and measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("tables", nargs="*", type=Path, metavar="TABLE")
    blosc.use_threads = False
    for table in parser.parse_args().tables or [FOLDER / f"{name}.csv.gz" for name in NAMES]:
        show(table)


if __name__ == "__main__":
    main()
