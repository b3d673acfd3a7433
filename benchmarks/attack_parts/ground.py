"""A small table, commands over it, and how the end of a command is judged."""

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

Words = Sequence[str | Path | int]
HANGS = 600
OFTEN = (
    "import srs_ooc.runs.engine as e; from srs_ooc.__main__ import main; "
    "e.COMMIT_SECONDS = 0.02; main()"
)
"""Runs commit far more often than usual, so that kills fall between commits."""

METHODS: dict[str, Words] = {
    "decoys": ("--iterations", 400, "--q", 20),
    "permutations": ("--iterations", 60, "--q", 20, "--permutations", 9),
    "trees": ("--iterations", 300, "--q", 20, "--judge", "probe", "--save-trees"),
    "prs": ("--method", "prs", "--iterations", 120),
    "less": ("--method", "less", "--iterations", 300),
    "rase": ("--method", "rase", "--iterations", 24),
    "knn": ("--model", "knn", "--iterations", 40, "--q", 10),
}


@dataclass
class Tally:
    """What a campaign did, and what broke."""

    counts: dict[str, int] = field(default_factory=dict)
    breaks: list[str] = field(default_factory=list)

    def add(self, what: str, n: int = 1) -> None:
        """Count something."""
        self.counts[what] = self.counts.get(what, 0) + n


def command(*words: str | Path | int, often: bool = False) -> list[str]:
    """Return the command line of srs-ooc."""
    program = ["-c", OFTEN] if often else ["-m", "srs_ooc"]
    return [sys.executable, *program, *map(str, words)]


def finish(
    *words: str | Path | int, prefix: Sequence[str] = (), **how: Any
) -> "subprocess.CompletedProcess[str]":
    """Run a command to its end; ``how``: further arguments of ``subprocess.run``."""
    line = [*prefix, *command(*words)]
    return subprocess.run(line, capture_output=True, text=True, timeout=HANGS, check=False, **how)


def must(*words: str | Path | int) -> str:
    """Run a command that has to succeed; return what it printed."""
    done = finish(*words)
    if done.returncode:
        raise RuntimeError(f"{words}: {done.returncode}: {done.stderr}")
    return str(done.stdout)


def kill_after(words: Words, seconds: float) -> bool:
    """Start a command and kill it with its children; return whether it was still at work."""
    process = subprocess.Popen(
        command(*words, often=True),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    time.sleep(seconds)
    was_at_work = process.poll() is None
    if was_at_work:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return was_at_work


def is_clear(done: "subprocess.CompletedProcess[str]") -> str:
    """Return what is wrong with the end of a command that may fail; nothing if all is well."""
    if done.returncode < 0:
        return f"signal {-done.returncode}"
    if "Traceback" in done.stderr or "Traceback" in done.stdout:
        return f"traceback: {done.stderr.strip().splitlines()[-1][:200]}"
    if done.returncode not in (0, 2):
        return f"exit status {done.returncode}: {done.stderr[:200]}"
    if done.returncode == 2 and not done.stderr.startswith(("srs-ooc: ", "Usage: ")):
        return f"no message: {done.stderr[:200]}"
    return ""


def table(folder: Path, n_rows: int = 60, n_features: int = 200) -> Path:
    """Write a table with a few relevant features."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(n_rows, n_features)).round(4)
    labels = values[:, 0] + values[:, 1] > 0
    path = folder / "t.csv"
    with path.open("w") as file:
        file.write(",".join([*(f"f{i}" for i in range(n_features)), "y"]) + "\n")
        for row, label in zip(values.tolist(), labels.tolist(), strict=True):
            file.write(",".join([*map(str, row), "uv"[label]]) + "\n")
    return path


def digest(folder: Path) -> str:
    """Return a digest of all files of a folder, or of a file."""
    found = hashlib.sha256()
    files = [folder] if folder.is_file() else sorted(f for f in folder.rglob("*") if f.is_file())
    for file in files:
        found.update(str(file.relative_to(folder)).encode())
        found.update(file.read_bytes())
    return found.hexdigest()


def result_of(run: Path) -> str:
    """Return what a run says of every feature, and its trees."""
    trees = run / "trees.bin"
    kept = digest(trees) if trees.exists() else ""
    return must("features", run, "--csv") + kept


def fresh(path: Path) -> Path:
    """Return a path where nothing is."""
    if path.is_dir():
        shutil.rmtree(path)
    elif path.exists():
        path.unlink()
    return path
