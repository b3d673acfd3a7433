"""A store far larger than the memory there is, page cache dropped: ours against the device.

Claims: with C drawn by blocks of 64 neighbours, an iteration takes at most twice what the device
needs to read the same bytes sequentially, or what growing the tree takes with everything cached,
whichever is larger; one by one (blocks of 1) it takes what the device needs for as many random
reads, many of them at a time.

All in one run, on one file set: the device's sequential reads, its random reads of the columns of
real iterations by bare threads (``os.pread``), and whole iterations of the engine (draw, read,
layout, growth, judge, tally) cold and again with the same columns cached. The page cache is dropped
by ``posix_fadvise`` before each and looked at by ``mincore``. The disk's own cache is not. Making
6 GB takes a quarter of an hour.

    python benchmarks/bench_cold.py [--size-gb 6 --rows 1000 --subspace 2500 --blocks 1 16 64 250]
"""

import argparse
import ctypes
import json
import mmap
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

from srs_ooc.base.files import published_folder
from srs_ooc.ingestion.ingest_memory import StoreForm
from srs_ooc.ingestion.rows import TableFacts
from srs_ooc.ingestion.scratch import text_blocks
from srs_ooc.ingestion.writer import CodedTable, write_store
from srs_ooc.runs.plan import Plan
from srs_ooc.runs.request import Request
from srs_ooc.runs.resources import Resources
from srs_ooc.store.manifest import Manifest, chunk_file, read_manifest
from srs_ooc.store.store import Store
from srs_ooc.synthetic.blocks import Noise
from srs_ooc.synthetic.problems import Problem, describe, feature_name
from srs_ooc.synthetic.table_files import truth_path

READERS = (1, 4, 16)
PIECE_NBYTES = 1 << 20
MOST_ITERATIONS = 200
PART_SECONDS = 3.0
SMALL_NBYTES = 250_000_000


class Tenths:
    """The columns of a problem, to one decimal: a ``StoredColumns``."""

    def __init__(self, problem: Problem) -> None:
        self.n_rows, self.n_features = problem.n_rows, problem.n_features
        self._problem = problem

    def read(self, start: int, stop: int) -> np.ndarray:
        """Return some columns."""
        return np.round(self._problem.read(start, stop), 1)


def write_without_values(path: Path, problem: Problem) -> None:
    """Write the codes of a synthetic problem of two classes as a store, and the truth beside it.

    Its numbers are of one decimal, since what each code stands for is kept: 254 of four decimals
    take 4 kB a feature.
    """
    target = problem.target(0, problem.n_rows).astype(np.int32)
    facts = TableFacts("target", ("0", "1"), arrays={"target": target})
    form = StoreForm(values_dtype=None)
    names = text_blocks(feature_name(j) for j in range(problem.n_features))
    truth_path(path).write_text(json.dumps(describe(problem)))
    with published_folder(path) as folder:
        write_store(folder, CodedTable(Tenths(problem), form), facts, names)


def chunk_files(store: Path, n_chunks: int) -> list[Path]:
    """Return the chunk files of a store."""
    return [store / chunk_file(index) for index in range(n_chunks)]


def drop_cache(files: list[Path]) -> None:
    """Have the system forget the files: no root needed."""
    os.sync()
    for file in files:
        handle = os.open(file, os.O_RDONLY)
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(handle)


def cached_share(files: list[Path]) -> float:
    """Return the share of the files' pages that are in memory, by ``mincore``."""
    library = ctypes.CDLL(None, use_errno=True)
    n_pages = n_cached = 0
    for file in files:
        with file.open("rb") as handle:
            view = mmap.mmap(handle.fileno(), 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | 2)
        address = ctypes.addressof(ctypes.c_char.from_buffer(view))
        flags = (ctypes.c_ubyte * -(-len(view) // mmap.PAGESIZE))()
        if library.mincore(ctypes.c_void_p(address), ctypes.c_size_t(len(view)), flags):
            raise OSError(ctypes.get_errno(), "mincore")
        n_cached += sum(flag & 1 for flag in flags)
        n_pages += len(flags)
    return n_cached / n_pages


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


def ours(subject: Plan, files: list[Path]) -> tuple[float, float, list[np.ndarray]]:
    """Return the milliseconds of an iteration cold and cached, and the subspaces grown."""
    drop_cache(files)
    found, n_done, subspaces = [], 0, []
    with Resources.of(subject) as resources:
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
    options = {"subspace_size": str(q), "draw_block": block, "judge": "probe"}
    request = Request(options=options, memory_mb=memory_mb, threads=threads)
    subject = Plan.of(Store.open(store), request)
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
        seconds = (
            timed(lambda: write_without_values(store, Noise(arguments.rows, n_features, 0))) / 1e3
        )
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
