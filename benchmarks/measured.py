"""Running commands and measuring them from outside: seconds, CPU seconds, peak resident memory.

What was measured is kept as records in a file (:class:`Results`).

The peak is the operating system's account of the finished process, got with ``wait4``. A child's
peak begins at its parent's, so this module and what uses it import nothing large.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MB = 1_000_000
MAXRSS_UNIT = 1 if sys.platform == "darwin" else 1024
LOOK_SECONDS = 0.02

Record = dict[str, Any]
"""What one JSON line holds."""


@dataclass(frozen=True)
class Measured:
    """One finished command.

    ``cpu_seconds`` are those of all its threads and of the children it waited for: less disturbed
    by other work on the machine than ``seconds``. ``status`` is its exit status, None where it was
    out of time.
    """

    seconds: float
    peak_mb: float
    status: int | None
    cpu_seconds: float


def find_srs_ooc() -> str:
    """Return the ``srs-ooc`` installed beside this Python, or else the first on the path."""
    beside = Path(sys.executable).with_name("srs-ooc")
    command = str(beside) if beside.exists() else shutil.which("srs-ooc")
    if command is None:
        raise SystemExit("expected srs-ooc to be installed beside this Python; found none")
    return command


def measure(
    texts: list[str],
    *,
    limit_seconds: float | None = None,
    out: str | None = None,
    errors: str | None = None,
    meanwhile: Callable[[int], None] = lambda pid: None,
) -> Measured:
    """Run a command to its end, or to its limit, and measure it.

    Parameters
    ----------
    texts : list of str
        The program's path and its arguments.
    limit_seconds : float, optional
        It is killed, with its children, when it has run so long.
    out, errors : str, optional
        Files for what it writes; as this process writes, where not given.
    meanwhile : callable, optional
        Called with its id once it has started.
    """
    actions = [
        (os.POSIX_SPAWN_OPEN, number, name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        for number, name in ((1, out), (2, errors))
        if name is not None
    ]
    start = time.perf_counter()
    # A shell may have started this process with Ctrl-C ignored, which children inherit.
    how: dict[str, Any] = {"file_actions": actions, "setsigdef": [signal.SIGINT]}
    if limit_seconds is not None:  # a group of its own: it may have to be killed with its children
        how["setpgroup"] = 0
    pid = os.posix_spawn(texts[0], texts, os.environ, **how)
    try:
        meanwhile(pid)
        in_time = limit_seconds is None or _ends(pid, start + limit_seconds)
    except BaseException:
        (os.kill if limit_seconds is None else os.killpg)(pid, signal.SIGKILL)
        os.wait4(pid, 0)
        raise
    if not in_time:
        os.killpg(pid, signal.SIGKILL)
    _, status, usage = os.wait4(pid, 0)
    seconds = time.perf_counter() - start
    code = os.waitstatus_to_exitcode(status) if in_time else None
    cpu_seconds = usage.ru_utime + usage.ru_stime
    return Measured(seconds, usage.ru_maxrss * MAXRSS_UNIT / MB, code, cpu_seconds)


def _ends(pid: int, deadline: float) -> bool:
    """Wait until a process has ended, without reaping it, or until the deadline."""
    while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        if time.perf_counter() > deadline:
            return False
        time.sleep(LOOK_SECONDS)
    return True


def srs_ooc(*arguments: object, quiet: bool = True) -> Measured:
    """Run ``srs-ooc`` to its end and measure it; anything but success ends the benchmark."""
    texts = [find_srs_ooc(), *map(str, arguments)]
    null = os.devnull if quiet else None
    done = measure(texts, out=null, errors=null)
    if done.status != 0:
        raise SystemExit(f"failed: {' '.join(texts)}")
    return done


def said(*arguments: object) -> str:
    """Return what a command of ``srs-ooc`` prints."""
    command = [find_srs_ooc(), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def features_of(run: Path, *options: str) -> Iterator[Record]:
    """Yield the records of ``srs-ooc features --json``, best first: one a line, never all held."""
    command = [find_srs_ooc(), "features", str(run), "--json", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout or ():
            if line.startswith("{"):
                yield json.loads(line.rstrip(",\n"))
    if process.returncode != 0:
        raise SystemExit(f"failed: {' '.join(command)}")


class Results:
    """Records in a file of JSON lines, so that what is known is not done again.

    Parameters
    ----------
    path : Path
        Made when the first record is added; a last line that a kill cut short is taken away.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.records: list[Record] = []
        if path.exists():
            whole = path.read_bytes()
            kept = whole[: whole.rfind(b"\n") + 1]
            if kept != whole:
                path.write_bytes(kept)
            self.records = [json.loads(line) for line in kept.splitlines()]

    def find(self, key: Record) -> Record | None:
        """Return the record that has all of a key, or None."""
        return next((found for found in self.records if found.items() >= key.items()), None)

    def add(self, record: Record, *, is_kept: bool = True) -> None:
        """Add a record; in the file it is for later commands, too."""
        self.records.append(record)
        if is_kept:
            with self._path.open("a") as file:
                file.write(json.dumps(record) + "\n")


def subcommand(**mains: Callable[[], None]) -> None:
    """Run the main function that the first argument names; it sees the others."""
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if name not in mains:
        raise SystemExit(f"expected one of {', '.join(mains)} first; found {name or 'nothing'}")
    sys.argv[:2] = [f"{sys.argv[0]} {name}"]
    mains[name]()
