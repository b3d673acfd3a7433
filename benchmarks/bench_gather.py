"""Paging q columns into a block, against NumPy ``take`` from the whole table in memory.

Claims: where the store fits its lease (p = 50,000 here, 50 MB) a gather runs at 0.7 of the speed of
``take`` or better, though it lays the block out in tiles besides; where the store is far larger
than the cap (p = 10^6, 1 GB, under 192 MB) files are read, at 0.15 of the speed of ``take`` or
better. Cold, with the page cache dropped, the device decides: measured beside it are the same reads
by ``os.pread`` alone.

``take`` gets what it wants: a uint8 array of its own in RAM, one row per feature, and
``mode="clip"`` (a third faster than the default). Dropping the page cache uses
``posix_fadvise``: no root needed.

    python benchmarks/bench_gather.py [--rows 1000 --subspace 2500 --repeats 5 --large 1000000]

Whole iterations on a cold disk, with reading ahead: ``bench_cold.py``.
"""

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from cold_store import chunk_files, drop_cache

from srs_ooc.store.manifest import chunk_file
from srs_ooc.store.store import ColumnStore, Store
from srs_ooc.synthetic.problems import Madelon, write_table
from srs_ooc.trees.block import Block

DRAWS = 40


def milliseconds(work: Callable[[np.ndarray], object], draws: list[np.ndarray]) -> float:
    """Return the median milliseconds of ``work`` over the draws."""
    seconds = []
    for features in draws:
        start = time.perf_counter()
        work(features)
        seconds.append(time.perf_counter() - start)
    return 1e3 * statistics.median(seconds)


def in_memory(store: ColumnStore) -> np.ndarray:
    """Return the codes as one array in RAM."""
    manifest = store.manifest
    shape = (manifest.chunk_features, manifest.n_rows)
    parts = [
        np.fromfile(store.path / chunk_file(i), dtype=np.uint8).reshape(shape)
        for i in range(manifest.n_chunks)
    ]
    return np.concatenate(parts)[: manifest.n_features]


def compare(store: Path, q: int, repeats: int, *, mapped: bool) -> None:
    """Print our gathers, tiled and as columns, against ``take``, warm."""
    rng = np.random.default_rng(0)
    with Store.open(store).columns(mapped=mapped) as columns:
        manifest = columns.manifest
        table = in_memory(columns)
        taken = np.empty((q, manifest.n_rows), dtype=np.uint8)
        ratios: dict[str, list[float]] = {"tiles": [], "columns": []}
        for _ in range(repeats):
            draws = [
                np.sort(rng.choice(manifest.n_features, q, replace=False)).astype(np.uint32)
                for _ in range(DRAWS)
            ]
            theirs = milliseconds(lambda f: table.take(f, axis=0, out=taken, mode="clip"), draws)
            for layout, found in ratios.items():
                block = Block(q, manifest.n_rows, 1, tiled=layout == "tiles")
                ours = milliseconds(partial(columns.gather, block=block), draws)
                found.append(theirs / ours)
        how = "mapped" if mapped else "read from files"
        for layout, found in ratios.items():
            print(
                f"p = {manifest.n_features}, {how}, into {layout}: {statistics.median(found):.2f} "
                f"of take ({min(found):.2f} to {max(found):.2f}); take {theirs:.2f} ms"
            )


def cold(store: Path, q: int, repeats: int) -> None:
    """Print a gather with the page cache dropped beside the bare reads."""
    rng = np.random.default_rng(1)
    with Store.open(store).columns(mapped=False) as columns:
        manifest = columns.manifest
        block = Block(q, manifest.n_rows, 1, tiled=True)
        files = chunk_files(store, manifest.n_chunks)
        ours, bare = [], []
        for _ in range(repeats):
            features = np.sort(rng.choice(manifest.n_features, q, replace=False)).astype(np.uint32)
            drop_cache(files)
            ours.append(milliseconds(lambda f: columns.gather(f, block), [features]))
            drop_cache(files)
            bare.append(milliseconds(lambda f: bare_reads(store, columns, f), [features]))
    print(
        f"p = {manifest.n_features}, cold: {statistics.median(ours):.0f} ms a gather, bare reads "
        f"{statistics.median(bare):.0f} ms"
    )


def bare_reads(store: Path, columns: ColumnStore, features: np.ndarray) -> None:
    """Read the same columns one by one with ``os.pread``."""
    manifest = columns.manifest
    handles = [os.open(store / chunk_file(i), os.O_RDONLY) for i in range(manifest.n_chunks)]
    for feature in features.tolist():
        chunk, place = divmod(feature, manifest.chunk_features)
        os.pread(handles[chunk], manifest.n_rows, place * manifest.n_rows)
    for handle in handles:
        os.close(handle)


def main() -> None:
    """Read the sizes, make the stores, measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--subspace", type=int, default=2500)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--small", type=int, default=50_000)
    parser.add_argument("--large", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path, help="keep the stores here and use them again")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.folder or Path(scratch)
        for p, mapped in ((arguments.small, True), (arguments.large, False)):
            store = folder / f"{arguments.rows}x{p}.zarr"
            if not store.exists():
                write_table(Madelon(arguments.rows, p, 20, 0), store)
            compare(store, arguments.subspace, arguments.repeats, mapped=mapped)
        cold(store, arguments.subspace, arguments.repeats)


if __name__ == "__main__":
    main()
