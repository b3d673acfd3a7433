"""Kills on a cluster: of workers, of the scheduler, of the process that holds the work.

    python benchmarks/attack_cluster.py --each 40 [--only network] [--seed 0]

One scheduler and two workers run as processes of this machine. While a command is at work on them,
one of the processes is killed (SIGKILL) at a random moment and started again, several times; then
the command is given once more and has to end as on one core, to the byte. What commands say where
they end early has to be one message. It prints what was killed and every break, and ends with
status 1 if there was one. ``docs/research/cluster-measured.md`` says what was found.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from attack_parts import forks
from attack_parts.forks import HANGS, Done, Words
from attack_parts.ground import Tally, digest, fresh, must, table, unclear
from attack_parts.kills import result_of

OFTEN = (
    f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); "
    "from attack_parts import forks; forks.load(); forks.commit_often(); "
    "from srs_ooc.__main__ import main; main()"
)
QUIET = ("--host", "127.0.0.1", "--dashboard-address", "127.0.0.1:0", "--no-dashboard")
WORKER, SCHEDULER, COORDINATOR = "a worker", "the scheduler", "the process that holds the work"
VICTIMS = [WORKER] * 5 + [SCHEDULER] + [COORDINATOR] * 4
PER_ROUND = 8
"""Kills before the work is let end."""
IMPATIENT = {"DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "2s"}


class Ground:
    """A scheduler and two workers."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "scheduler.json"
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._start_all()

    def _start_all(self) -> None:
        self.close()
        self.file.unlink(missing_ok=True)
        scheduler = self._start("distributed.cli.dask_scheduler", "--port", "0")
        while not self.file.exists():
            if scheduler.poll() is not None:
                raise RuntimeError("the scheduler did not start")
            time.sleep(0.05)
        self._processes = {SCHEDULER: scheduler, "0": self._worker(), "1": self._worker()}

    def _start(self, module: str, *words: str) -> "subprocess.Popen[bytes]":
        line = [sys.executable, "-m", module, "--scheduler-file", str(self.file), *words, *QUIET]
        quiet = subprocess.DEVNULL
        return subprocess.Popen(line, stdout=quiet, stderr=quiet, env=os.environ | IMPATIENT)

    def _worker(self) -> "subprocess.Popen[bytes]":
        return self._start("distributed.cli.dask_worker", "--nthreads", "1", "--no-nanny")

    def kill(self, victim: str, chance: Random) -> None:
        """Kill a worker or the scheduler, and start what is missing then."""
        if victim == SCHEDULER:
            _kill(self._processes[SCHEDULER])
            self._start_all()
            return
        name = chance.choice("01")
        _kill(self._processes[name])
        self._processes[name] = self._worker()

    def close(self) -> None:
        """End all of them."""
        for process in self._processes.values():
            _kill(process)


def _kill(process: "subprocess.Popen[Any]") -> None:
    process.kill()
    process.communicate()


def attack(
    tally: Tally,
    ground: Ground,
    chance: Random,
    name: str,
    words: Words,
    clear: Callable[[], object],
    n: int,
    answer: Callable[[], str],
) -> None:
    """Kill so many processes while a command is at work, and compare what it comes to."""
    clear()
    must(*words, "--threads", 1)
    expected, there = answer(), (*words, "--dask-scheduler-file", ground.file)
    done = 0
    while done < n:
        clear()
        done += _killed(tally, ground, chance, name, there, min(PER_ROUND, n - done))
        must(*there)
        tally.add(f"{name}: compared with one core")
        if answer() != expected:
            tally.breaks.append(f"{name}: another result after kills")


def _killed(tally: Tally, ground: Ground, chance: Random, name: str, words: Words, n: int) -> int:
    """Kill until ``n`` are done or the command has ended as it should; return how many were."""
    done, process = 0, _begin(words)
    try:
        while done < n:
            time.sleep(chance.uniform(0.2, 3.0))
            if process.poll() is not None:
                if _ended(tally, name, process):
                    break
                process = _begin(words)
                continue
            victim = chance.choice(VICTIMS)
            if victim == COORDINATOR:
                _kill(process)
                process = _begin(words)
            else:
                ground.kill(victim, chance)
            tally.add(f"{name}: {victim}")
            done += 1
        if process.poll() is None:
            tally.add(f"{name}: {COORDINATOR}")
            done += 1
    finally:
        _kill(process)
    return done


def _begin(words: Words) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", OFTEN, *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | IMPATIENT,
    )


def _ended(tally: Tally, name: str, process: "subprocess.Popen[str]") -> bool:
    """Return whether a command that ended is done; note what is wrong with its end."""
    out, errors = process.communicate(timeout=HANGS)
    lines = [line for line in errors.splitlines() if line.startswith("srs-ooc: ")]
    said = "\n".join(lines) if "Traceback" not in errors else errors
    if process.returncode:
        tally.add(f"{name}: ended with a message")
        if wrong := unclear(Done(process.returncode, out, said)):
            tally.breaks.append(f"{name}: {wrong}")
    return process.returncode == 0


def campaign(tally: Tally, folder: Path, n_each: int, seed: int, only: list[str]) -> None:
    """Attack each kind of work so many times."""
    chance = Random(seed)  # noqa: S311
    store, run = folder / "t.zarr", folder / "t.run"
    must("ingest", table(folder, 300, 400), store)
    edges, compacted = folder / "edges.csv", folder / "small.run"
    must("run", store, "--out", compacted, "--judge", "probe", "--iterations", 1500, "--q", 40,
         "--probe-min-draws", 2, "--probe-min-wins", "0.6")  # fmt: skip

    def clear() -> None:
        for path in (run, edges, compacted / "compact"):
            fresh(path)

    work: dict[str, tuple[Words, Callable[[], str]]] = {
        "network": (
            ("network", store, "--out", edges, "--run", run, "--trees", 150),
            lambda: digest(edges),
        ),
        "permutations": (
            ("run", store, "--out", run, "--iterations", 300, "--q", 40, "--permutations", 19),
            lambda: result_of(run),
        ),
        "folds": (
            ("compact", compacted, "--folds", 4, "--repeats", 1, "--json"),
            lambda: must("compact", compacted, "--folds", 4, "--repeats", 1, "--json"),
        ),
        "run": (
            ("run", store, "--out", run, "--iterations", 4000, "--q", 40, "--round-size", 100),
            lambda: result_of(run),
        ),
    }
    ground = Ground(folder)
    try:
        for name, (words, answer) in work.items():
            if not only or name in only:
                attack(tally, ground, chance, name, words, clear, n_each, answer)
    finally:
        ground.close()


def main() -> None:
    """Run the campaign asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--each", type=int, default=40, help="kills for each kind of work")
    parser.add_argument("--only", nargs="*", default=[], help="kinds of work")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    forks.load()
    tally = Tally()
    try:
        with tempfile.TemporaryDirectory(prefix="attack-cluster-") as folder:
            campaign(tally, Path(folder), asked.each, asked.seed, asked.only)
    finally:  # when it is ended from outside, too
        print(json.dumps(vars(tally), indent=2), flush=True)
    sys.exit(bool(tally.breaks))


if __name__ == "__main__":
    main()
