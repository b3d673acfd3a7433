"""Ten million features of 500 rows, made and run under 512 MB: time, peak of each process, results.

Writes a table of whole numbers as one .npy of 5 GB (column by column; 20 columns tell the classes
apart, the others are random), ingests it without values, and runs it with one thread, with two,
and on one and two Dask workers of this machine. All must end with the same ranking. Peaks are
those of the operating system, of the process itself and of each of its children. Needs 10 GB of
disk, and the extra ``dask``.

    python benchmarks/scale_wide.py [--folder FOLDER] [--features 10000000] [--iterations 2000]
"""

import argparse
import hashlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from measured import MB, find_srs_ooc

N_ROWS, N_RELEVANT, CAP_MB = 500, 20, 512
LOOK_SECONDS = 0.2
WRITE = """
import sys
import numpy as np
path, n, p, relevant = sys.argv[1], *map(int, sys.argv[2:])
rng = np.random.default_rng(0)
target = rng.permutation(n) % 2
np.save(path + ".target.npy", target)
header = {"descr": "|u1", "fortran_order": True, "shape": (n, p)}
with open(path, "wb") as file:
    np.lib.format.write_array_header_1_0(file, header)
    for start in range(0, p, 100_000):
        columns = np.frombuffer(rng.bytes(n * min(100_000, p - start)), np.uint8) & 127
        columns = columns.reshape(-1, n)
        if start == 0:
            columns[:relevant] += (20 * target).astype(np.uint8)
        file.write(columns.tobytes())
"""
"""Run in a process of its own: a child's peak begins at its parent's."""


class Peaks:
    """The peaks of a process and of its children, looked at until it ends."""

    def __init__(self, pid: int) -> None:
        self.of: dict[int, tuple[str, float]] = {}
        self._pid, self._over = pid, threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def _look(self) -> None:
        while not self._over.wait(LOOK_SECONDS):
            for pid in family(self._pid):
                try:
                    status = Path(f"/proc/{pid}/status").read_text()
                except OSError:
                    continue
                fields = dict(line.split(":", 1) for line in status.splitlines())
                if "VmHWM" in fields:
                    peak = int(fields["VmHWM"].split()[0]) * 1024 / MB
                    self.of[pid] = (fields["Name"].strip(), peak)

    def stop(self) -> str:
        """Return the peaks, largest first."""
        self._over.set()
        self._thread.join()
        peaks = sorted((peak for _, peak in self.of.values()), reverse=True)
        return ", ".join(f"{peak:.0f}" for peak in peaks)


def family(pid: int) -> list[int]:
    """Return a process and all that come from it."""
    children: list[str] = []
    for of_thread in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            children += of_thread.read_text().split()
    return [pid, *(one for child in children for one in family(int(child)))]


def timed(name: str, *words: Any) -> None:
    """Run srs-ooc, print seconds and peaks; anything but success ends the benchmark."""
    line = [find_srs_ooc(), *map(str, words)]
    start = time.perf_counter()
    with subprocess.Popen(line, stdout=subprocess.DEVNULL, start_new_session=True) as process:
        peaks = Peaks(process.pid)
        try:
            status = process.wait()
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    seconds = time.perf_counter() - start
    print(f"{name}: {seconds:.0f} s; peak MB of each process: {peaks.stop()}", flush=True)
    if status:
        raise SystemExit(f"failed: {' '.join(line)}")


def digest_of(run: Path, store: Path) -> str:
    """Return a digest of all that a run says of its first 1,000,000 features."""
    words = ("features", str(run), "--store", str(store), "--csv", "--top", "1000000")
    found = hashlib.sha256()
    with subprocess.Popen([find_srs_ooc(), *words], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        while part := process.stdout.read(1 << 20):
            found.update(part)
    return found.hexdigest()[:16]


def main() -> None:
    """Make, ingest, run four times."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--folder", type=Path, help="keep the store here and use it again")
    parser.add_argument("--features", type=int, default=10_000_000)
    parser.add_argument("--iterations", type=int, default=2000)
    parser.add_argument("--q", type=int, default=10_000)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=asked.folder) as scratch:
        store = (asked.folder or Path(scratch)) / f"{N_ROWS}x{asked.features}.zarr"
        if not store.exists():
            ingest(Path(scratch) / "table.npy", store, asked.features)
        options: tuple[Any, ...] = (
            "--judge",
            "probe",
            "--q",
            asked.q,
            "--iterations",
            asked.iterations,
        )
        options += ("--round-size", 1000, "--memory-mb", CAP_MB)
        digests = set()
        for name, how in (
            ("1 thread", ("--threads", 1)),
            ("2 threads", ("--threads", 2)),
            ("1 worker", ("--dask", "local:1", "--worker-memory-mb", CAP_MB)),
            ("2 workers", ("--dask", "local:2", "--worker-memory-mb", CAP_MB)),
        ):
            run = Path(scratch) / f"{name.replace(' ', '-')}.run"
            timed(name, "run", store, "--out", run, *options, *how)
            digests.add(digest_of(run, store))
    print(f"rankings: {'the same' if len(digests) == 1 else 'they differ'} ({', '.join(digests)})")


def ingest(table: Path, store: Path, n_features: int) -> None:
    """Make the table, then the store."""
    numbers = map(str, (N_ROWS, n_features, N_RELEVANT))
    subprocess.run([sys.executable, "-c", WRITE, str(table), *numbers], check=True)
    labels = f"{table}.target.npy"
    options = ("--target-file", labels, "--no-values", "--memory-mb", CAP_MB)
    timed(f"ingest of {table.stat().st_size / 1e9:.1f} GB", "ingest", table, store, *options)
    table.unlink()


if __name__ == "__main__":
    main()
