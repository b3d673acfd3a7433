"""The lock of a run: one process works on it, and the lock dies with that process."""

import os
import time
from pathlib import Path
from shlex import quote

from srs_ooc.base.errors import RunError
from srs_ooc.base.files import try_lock


def is_held(run: Path) -> bool:
    """Return whether a living process is working on the run."""
    lock = try_lock(run, flags=os.O_RDONLY)
    if lock is None:
        return True
    os.close(lock)
    return False


def hold(run: Path) -> int:
    """Take the lock of a run; return its descriptor, to be closed.

    Raises
    ------
    RunError
        If another process holds it.
    """
    # A reader asking whether the run is held takes the lock for an instant: ask a few times.
    for _ in range(5):
        lock = try_lock(run, flags=os.O_RDONLY)
        if lock is not None:
            return lock
        time.sleep(0.02)
    raise RunError(
        f"{run} is being worked on by another process. Wait for it, or stop it; "
        f"`srs-ooc status {quote(str(run))}` shows it."
    )
