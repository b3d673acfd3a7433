"""Commands as forks of this process once it has loaded the program: 20 ms each, not 500.

A fork is a process of its own, with its own descriptors, folder, identity, memory and end. What
happens as Python starts is not in it; a cap on memory counts what it holds of this process, so
that caps are measured on processes started afresh (``attack_parts/caps.py``).
"""

import contextlib
import importlib
import os
import pkgutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NoReturn

Words = Sequence[str | Path | int]
HANGS = 600
"""Seconds after which a command hangs."""
COMMIT_SECONDS = 0.02
"""Of commands that are killed: they commit often, so that kills fall between commits."""
COMMITTING = ("runs.engine", "networks.edges")


@dataclass(frozen=True)
class Done:
    """A finished command; ``status`` is negative for a signal, None if it was killed as it hung."""

    status: int | None
    out: str
    err: str


def load() -> None:
    """Load the program, for all forks to come."""
    package = importlib.import_module("srs_ooc.cli")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"srs_ooc.cli.{module.name}")
    for name in ("__main__", *COMMITTING):
        importlib.import_module(f"srs_ooc.{name}")


def start(words: Words, out: int, err: int, before: Callable[[], None] | None = None) -> int:
    """Start a command as the leader of a group of processes, and return its id.

    ``before`` is called in the new process; it may close descriptors, set limits, and the like.
    """
    sys.stdout.flush()
    pid = os.fork()
    if not pid:
        _become(words, out, err, before)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.setpgid(pid, pid)
    return pid


def _become(words: Words, out: int, err: int, before: Callable[[], None] | None) -> NoReturn:
    status = 1
    try:
        os.setpgid(0, 0)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        for number, descriptor in ((1, out), (2, err)):
            os.dup2(descriptor, number)
        sys.argv = ["srs-ooc", *map(str, words)]
        sys.stdout = os.fdopen(1, "w", closefd=False)
        sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False, errors="backslashreplace")
        if before is not None:
            before()
        status = _status_of_main()
    finally:
        os._exit(status)


def _status_of_main() -> int:
    try:
        importlib.import_module("srs_ooc.__main__").main()
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        status = 1
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):  # closed, or none
            stream.flush()
    return status


def finish(
    *words: str | Path | int,
    before: Callable[[], None] | None = None,
    meanwhile: Callable[[int], None] = lambda pid: None,
) -> Done:
    """Run a command to its end; ``meanwhile`` is given its id as it has started."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        pid = start(words, out.fileno(), err.fileno(), before)
        meanwhile(pid)
        status = _end(pid, time.monotonic() + HANGS)
        return Done(status, _text(out), _text(err))


def kill_after(words: Words, seconds: float, before: Callable[[], None] | None = None) -> bool:
    """Start a command, kill it with its children, and return whether it was still at work."""
    null = os.open(os.devnull, os.O_WRONLY)
    pid = start(words, null, null, before or commit_often)
    os.close(null)
    time.sleep(seconds)
    was_at_work = is_at_work(pid)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return was_at_work


def is_at_work(pid: int) -> bool:
    """Return whether a command that was started has not ended."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None


def commit_often() -> None:
    """Have this process commit often."""
    for name in COMMITTING:
        vars(sys.modules[f"srs_ooc.{name}"])["COMMIT_SECONDS"] = COMMIT_SECONDS


def _end(pid: int, deadline: float) -> int | None:
    while not (ended := os.waitpid(pid, os.WNOHANG))[0]:
        if time.monotonic() > deadline:
            os.killpg(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return None
        time.sleep(0.002)
    return os.waitstatus_to_exitcode(ended[1])


def _text(file: BinaryIO) -> str:
    file.seek(0)
    return file.read().decode(errors="surrogateescape")
