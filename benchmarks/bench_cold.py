"""A store far larger than the memory there is, page cache dropped: ours against the device.

Claims: with C drawn by blocks of 64 neighbours, an iteration takes at most twice what the device
needs to read the same bytes sequentially, or what growing the tree takes with everything cached,
whichever is larger; one by one (blocks of 1) it takes what the device needs for as many random
reads, many of them at a time.

All in one run, on one file set: the device's sequential reads, its random reads of the columns of
real iterations by bare threads (``os.pread``), and whole iterations of the engine (draw, read,
layout, growth, judge, tally) cold and again with the same columns cached. The page cache is dropped
by ``posix_fadvise`` before each and looked at by ``mincore``. The disk's own cache is not.

    python benchmarks/bench_cold.py [--size-gb 6 --rows 1000 --subspace 2500 --blocks 1 16 64 250]
"""

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
from cold_store import cached_share, chunk_files, drop_cache, make_noise_store

from srs_ooc.runs.session import RunDraft
from srs_ooc.runs.settling import Request
from srs_ooc.runs.spec import Options
from srs_ooc.store.manifest import Manifest, read_manifest
from srs_ooc.store.store import Store

READERS = (1, 4, 16)
PIECE_NBYTES = 1 << 20
MOST_ITERATIONS = 200
PART_SECONDS = 3.0
SMALL_NBYTES = 250_000_000


def timed(work: Callable[[], object]) -> float:
    """Return the milliseconds that ``work`` takes."""
    start = time.perf_counter()
    work()
    return 1e3 * (time.perf_counter() - start)


def sequential(files: list[Path], n_bytes: int) -> float:
    """Return the milliseconds to read so many bytes one after the other, from a cold start."""
    drop_cache(files)
    buffer = bytearray(PIECE_NBYTES)

    def read() -> None:
        left = n_bytes
        for file in files:
            with file.open("rb", buffering=0) as handle:
                while left > 0 and (got := handle.readinto(buffer)):
                    left -= got

    return timed(read)


class Device:
    """Bare random reads of the columns of real subspaces."""

    def __init__(self, manifest: Manifest, files: list[Path]) -> None:
        self._manifest, self._files = manifest, files

    def read(self, subspaces: list[np.ndarray], n_readers: int) -> float:
        """Return the milliseconds a subspace takes to ``n_readers`` threads, cold."""
        drop_cache(self._files)
        handles = [os.open(file, os.O_RDONLY) for file in self._files]
        reads = [runs(features, self._manifest.chunk_features) for features in subspaces]

        def one(part: list[tuple[int, int, int]]) -> None:
            n_rows = self._manifest.n_rows
            for chunk, place, count in part:
                os.pread(handles[chunk], count * n_rows, place * n_rows)

        with ThreadPoolExecutor(n_readers) as pool:
            all_of_it = timed(
                lambda: [
                    list(pool.map(one, [part[i::n_readers] for i in range(n_readers)]))
                    for part in reads
                ]
            )
        for handle in handles:
            os.close(handle)
        return all_of_it / len(subspaces)


def runs(features: np.ndarray, chunk_features: int) -> list[tuple[int, int, int]]:
    """Return the neighbours of a subspace: (chunk, place of the first, how many)."""
    breaks = (np.diff(features.astype(np.int64)) != 1) | (features[1:] % chunk_features == 0)
    edges = [0, *(np.flatnonzero(breaks) + 1).tolist(), len(features)]
    return [(*divmod(int(features[a]), chunk_features), b - a) for a, b in pairwise(edges)]


def _is_before(until: float) -> bool:
    return time.perf_counter() < until


def ours(subject: RunDraft, files: list[Path]) -> tuple[float, float, list[np.ndarray]]:
    """Return the milliseconds of an iteration cold and cached, and the subspaces grown."""
    drop_cache(files)
    found, n_done, subspaces = [], 0, []
    with subject.resources() as resources:
        for attempt in ("cold", "cached"):
            engine = resources.engine(None)
            begun = time.perf_counter()
            if attempt == "cold":
                until = begun + PART_SECONDS
                engine.advance(MOST_ITERATIONS, partial(_is_before, until))
                n_done = engine.iteration
            else:
                engine.advance(n_done)
            found.append(1e3 * (time.perf_counter() - begun) / n_done)
        engine = resources.engine(None)
        subspaces = [engine.propose(iteration).features for iteration in range(min(n_done, 20))]
    return found[0], found[1], subspaces


def measure(store: Path, q: int, block: int, memory_mb: int, threads: int, repeats: int) -> None:
    """Print one line: ours cold and cached beside the device's readings of the same columns."""
    manifest = read_manifest(store)
    files = chunk_files(store, manifest.n_chunks)
    options = Options(subspace_size=str(q), draw_block=block, judge="probe")
    request = Request(options, memory_mb=memory_mb, threads=threads)
    subject = RunDraft.of(Store.open(store), request)
    table: dict[str, list[float]] = {}
    for _ in range(repeats):
        cold, cached, subspaces = ours(subject, files)
        n_bytes = q * manifest.n_rows
        scale = max(1, SMALL_NBYTES // n_bytes)
        line = {"cold": cold, "cached": cached}
        line["sequential"] = sequential(files, scale * n_bytes) / scale
        device = Device(manifest, files)
        line |= {f"random x{n}": device.read(subspaces, n) for n in READERS}
        for name, value in line.items():
            table.setdefault(name, []).append(value)
    middle = {name: statistics.median(values) for name, values in table.items()}
    bound = max(2 * middle["sequential"], middle["cached"])
    texts = ", ".join(f"{name} {value:.1f}" for name, value in middle.items())
    print(f"g = {block}: ms an iteration: {texts}; cold / bound {middle['cold'] / bound:.2f}")


def main() -> None:
    """Make the store and measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--size-gb", type=float, default=6.0)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--subspace", type=int, default=2500)
    parser.add_argument("--blocks", type=int, nargs="+", default=[1, 16, 64, 250])
    parser.add_argument("--memory-mb", type=int, default=0, help="cap of the run [an eighth]")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="make the store here (not in the temporary)")
    arguments = parser.parse_args()
    n_features = int(arguments.size_gb * 1e9 / arguments.rows)
    memory_mb = arguments.memory_mb or int(arguments.size_gb * 1000 / 8)
    with tempfile.TemporaryDirectory(dir=arguments.folder) as scratch:
        store = Path(scratch) / "cold.zarr"
        seconds = timed(lambda: make_noise_store(store, arguments.rows, n_features)) / 1e3
        files = chunk_files(store, read_manifest(store).n_chunks)
        drop_cache(files)
        print(
            f"{arguments.rows} rows, {n_features} features, {arguments.size_gb:g} GB, made in "
            f"{seconds:.0f} s; cap {memory_mb} MB, threads {arguments.threads}; cached after "
            f"dropping: {cached_share(files):.1%}",
            flush=True,
        )
        for block in arguments.blocks:
            measure(
                store,
                arguments.subspace,
                block,
                memory_mb,
                arguments.threads,
                arguments.repeats,
            )


if __name__ == "__main__":
    main()
