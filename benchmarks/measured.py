"""Running ``srs-ooc`` and measuring it from outside: seconds and peak resident memory.

The peak is the operating system's account of the finished process, got with ``wait4``. A child's
peak begins at its parent's, so this module and what uses it import nothing large.
"""

import os
import shutil
import sys
import time
from dataclasses import dataclass
from pathlib import Path

MB = 1_000_000
MAXRSS_UNIT = 1 if sys.platform == "darwin" else 1024


@dataclass(frozen=True)
class Measured:
    """One finished command."""

    seconds: float
    peak_mb: float


def srs_ooc(*arguments: object, quiet: bool = True) -> Measured:
    """Run a command to its end and measure it; anything but success ends the benchmark."""
    beside = Path(sys.executable).with_name("srs-ooc")
    command = str(beside) if beside.exists() else shutil.which("srs-ooc")
    if command is None:
        raise SystemExit("expected srs-ooc to be installed beside this Python; found none")
    texts = [command, *map(str, arguments)]
    actions = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)] if quiet else []
    if quiet:
        actions.append((os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0))
    start = time.perf_counter()
    pid = os.posix_spawn(command, texts, os.environ, file_actions=actions)
    _, status, usage = os.wait4(pid, 0)
    seconds = time.perf_counter() - start
    if os.waitstatus_to_exitcode(status) != 0:
        raise SystemExit(f"failed: {' '.join(texts)}")
    return Measured(seconds, usage.ru_maxrss * MAXRSS_UNIT / MB)
