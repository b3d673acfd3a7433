"""Kills on a cluster: of workers, of the scheduler, of the process that holds the work.

One scheduler and two workers run as processes of this machine. While a command is at work on them,
one of the processes is killed (SIGKILL) at a random moment and started again, several times; then
the command is given once more and has to end as on one core, to the byte. What commands say where
they end early has to be one message.
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from attack_parts.forks import HANGS, Done, Words
from attack_parts.ground import Tally, digest, fresh, must, table, unclear
from attack_parts.kills import result_of

OFTEN = (
    f"import sys; sys.path.insert(0, {str(Path(__file__).parents[1])!r}); "
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
        python = [sys.executable, "-P", "-m", module]  # what is installed, not the checkout
        line = [*python, "--scheduler-file", str(self.file), *words, *QUIET]
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
    name: str,
    words: Words,
    renew: Callable[[], object],
    n: int,
    answer: Callable[[], str],
) -> None:
    """Kill so many processes while a command is at work, and compare what it comes to."""
    left = tally.left(name, -(-n // PER_ROUND))
    if not left:
        return
    renew()
    must(*words, "--threads", 1)
    expected, there = answer(), (*words, "--dask", ground.file)
    for i in left:
        with tally.attack(name, i) as chance:
            renew()
            _killed(tally, ground, chance, name, there, min(PER_ROUND, n))
            must(*there)
            tally.add(f"compared with one core: {name}")
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
            tally.add(f"kills of {victim}: {name}")
            done += 1
        if process.poll() is None:
            tally.add(f"kills of {COORDINATOR}: {name}")
            done += 1
    finally:
        _kill(process)
    return done


def _begin(words: Words) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-P", "-c", OFTEN, *map(str, words)],
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
        tally.add(f"ended with a message: {name}")
        if wrong := unclear(Done(process.returncode, out, said)):
            tally.breaks.append(f"{name}: {wrong}")
    return process.returncode == 0


def _remove(*made: Path) -> None:
    for path in made:
        fresh(path)


def _restore(done: Path, copy: Path) -> None:
    """Put a run as it was before it was compacted in place of what became of it."""
    fresh(copy)
    shutil.copytree(done, copy)


def cluster(tally: Tally, folder: Path, n_each: int) -> None:
    """Kill so often while each kind of work goes on."""
    store, run = folder / "t.zarr", folder / "t.run"
    must("ingest", table(folder, 300, 400), store)
    edges, done, compacted = folder / "edges.csv", folder / "done.run", folder / "small.run"
    must("run", store, "--out", done, "--judge", "probe", "--iterations", 1500, "--q", 40,
         "--probe-min-draws", 2, "--probe-min-wins", "0.6")  # fmt: skip
    narrow = folder / "narrow.zarr"
    must("ingest", table(folder, 200, 60, "narrow.csv"), narrow)
    of_run = partial(result_of, run)
    run_of = ("run", store, "--out", run)
    net_of = ("network", narrow, "--out", edges, "--run", run)
    folds: Words = ("compact", compacted, "--folds", 4, "--repeats", 1, "--json")
    rase = (
        "--method",
        "rase",
        "--iterations",
        200,
        "--with",
        "candidates=200",
        "--with",
        "rounds=4",
    )
    prs = ("--method", "prs", "--with", "epochs=30", "--with", "models=20", "--with", "folds=3")
    work: dict[str, tuple[Words, Callable[[], object], Callable[[], str]]] = {
        "network genie3": (
            ("network", store, "--out", edges, "--run", run, "--with", "trees=150"),
            partial(_remove, edges, run),
            partial(digest, edges),
        ),
        "network srs": (
            (*net_of, "--method", "srs", "--with", "trees=4000"),
            partial(_remove, edges, run),
            partial(digest, edges),
        ),
        "network prs": ((*net_of, *prs), partial(_remove, edges, run), partial(digest, edges)),
        "rase": ((*run_of, *rase), partial(_remove, run), of_run),
        "compact": (folds, partial(_restore, done, compacted), partial(must, *folds)),
        "run": (
            (*run_of, "--iterations", 4000, "--q", 40, "--with", "round_size=100"),
            partial(_remove, run),
            of_run,
        ),
    }  # fmt: skip
    ground = Ground(folder)
    try:
        for name, (words, renew, answer) in work.items():
            attack(tally, ground, name, words, renew, n_each, answer)
    finally:
        ground.close()
