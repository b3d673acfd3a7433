"""Progress of work counted in bytes, on stderr: a bar on a terminal, else a line now and then."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from srs_ooc.base.sizes import describe_nbytes

_SECONDS_BETWEEN_LINES = 10.0

_Progress = Any  # a callable of (stage, bytes done, bytes in all)


@contextmanager
def byte_progress() -> Iterator[_Progress]:
    """Yield what shows progress: call it with (stage, bytes done, bytes in all)."""
    if not sys.stderr.isatty():
        yield _PlainLines()
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bars:
        tasks: dict[str, Any] = {}

        def show(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(stage, total=total)
            bars.update(tasks[stage], completed=done)

        yield show


class _PlainLines:
    """A line at most every ten seconds, so that a log stays readable."""

    def __init__(self) -> None:
        self._started: dict[str, float] = {}
        self._last = time.monotonic()

    def __call__(self, stage: str, done: int, total: int) -> None:
        now = time.monotonic()
        start = self._started.setdefault(stage, now)
        if now - self._last < _SECONDS_BETWEEN_LINES or not done:
            return
        self._last = now
        left = (now - start) * (total - done) / done
        print(
            f"{stage}: {describe_nbytes(done)} of {describe_nbytes(total)}, {left:.0f} s left",
            file=sys.stderr,
            flush=True,
        )
