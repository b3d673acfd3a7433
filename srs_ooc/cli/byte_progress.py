"""Progress of work counted in bytes, on stderr: a bar on a terminal, else a line now and then."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from srs_ooc.base.text import describe_nbytes
from srs_ooc.cli.shows import NOTHING, is_live, log, seconds_between

_Progress = Any  # a callable of (stage, bytes done, bytes in all)


@contextmanager
def byte_progress(shows: str | None = None) -> Iterator[_Progress]:
    """Yield what shows progress: call it with (stage, bytes done, bytes in all).

    ``shows`` is what :func:`srs_ooc.cli.shows.progress_option` gave.
    """
    if shows == NOTHING:
        yield lambda stage, done, total: None
        return
    if not is_live(shows):
        yield _PlainLines(seconds_between(shows))
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
    """A line at most every so many seconds, so that a log stays readable."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._started: dict[str, float] = {}
        self._last = time.monotonic()

    def __call__(self, stage: str, done: int, total: int) -> None:
        now = time.monotonic()
        start = self._started.setdefault(stage, now)
        if now - self._last < self._seconds or not done:
            return
        self._last = now
        left = (now - start) * (total - done) / done
        log(f"{stage}: {describe_nbytes(done)} of {describe_nbytes(total)}, {left:.0f} s left")
