"""Progress on stderr: a bar on a terminal, plain lines now and then elsewhere, or nothing."""

import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from srs_ooc.base.budget import resident_nbytes
from srs_ooc.base.records import Step
from srs_ooc.base.text import MB, describe_nbytes
from srs_ooc.results.live import noted

# How work in progress is shown: a bar on a terminal, lines with the time elsewhere, or nothing.

NOTHING, LINES = "nothing", "lines"
SECONDS_BETWEEN_LINES = 10.0


def progress_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command ``-q`` and ``-v``; it is called with ``shows``: what was chosen, or None."""
    quiet = click.option("-q", "--quiet", "shows", flag_value=NOTHING, default=None,
                         help="Show no progress.")  # fmt: skip
    verbose = click.option("-v", "--verbose", "shows", flag_value=LINES, default=None,
                           help="Show progress as a line every second, with the time, on a "
                           "terminal too.")  # fmt: skip
    return verbose(quiet(command))


def is_live(shows: str | None) -> bool:
    """Whether progress is a bar that moves."""
    return shows is None and sys.stderr.isatty()


def seconds_between(shows: str | None) -> float:
    """Return how long one line stands before the next."""
    return 1.0 if shows == LINES else SECONDS_BETWEEN_LINES


def log(line: str) -> None:
    """Write a line to stderr with the time before it."""
    click.echo(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {line}", err=True)


# A run's progress on stderr: live on a terminal, a plain line now and then elsewhere.

TERMINAL_SECONDS = 0.2


class RunProgress:
    """Iterations done and per second, |F|, time left, resident memory against the cap.

    Parameters
    ----------
    memory_mb : int
        The cap.
    shows : str or None
        What :func:`srs_ooc.cli.progress.progress_option` gave.
    """

    def __init__(self, memory_mb: int, shows: str | None = None) -> None:
        self._memory_mb, self._shows = memory_mb, shows
        self._stage: str | None = None
        self._begun, self._done = (0.0, 0), 0
        self._ended: tuple[str, int] | None = None
        self._next = 0.0
        self._bar: Any = None

    def show(self, step: Step) -> None:
        """Show where the run stands, if it is time to."""
        now = time.monotonic()
        stage = step.stage if step.unit == "iterations" else step.unit
        if self._stage != stage or step.done < self._done:
            self._stage, self._begun = stage, (now, step.done)
        self._done = step.done
        # The end of a stage is shown at once, but once: a stage may be told of after it.
        ends = step.done >= step.total and self._ended != (step.stage, step.total)
        # Of the many stages of folds and halves, lines say no more than now and then.
        is_of_many = step.stage.startswith(("fold ", "half "))
        at_once = ends and (is_live(self._shows) or not is_of_many)
        if self._shows == NOTHING or (now < self._next and not at_once):
            return
        if ends:
            self._ended = (step.stage, step.total)
        live = is_live(self._shows)
        first = self._next == 0.0
        self._next = now + (TERMINAL_SECONDS if live else seconds_between(self._shows))
        if first and not live:
            return
        line = self._line(now, step)
        if not live:
            log(line)
            return
        if self._bar is None:
            self._bar = _started_bar()
        task = self._bar.task_ids[0]
        self._bar.update(task, description=line, completed=step.done, total=step.total)

    def _line(self, now: float, step: Step) -> str:
        seconds, done = now - self._begun[0], step.done - self._begun[1]
        speed = done / seconds if seconds > 0 else 0.0
        left = f"{(step.total - step.done) / speed:.0f} s left" if speed else "starting"
        stage = f"{step.stage}: " if step.stage else ""
        kept = f", {step.n_kept} kept" if step.n_kept and not step.stage else ""
        pace = f"{speed:.0f}" if speed >= 10 else f"{speed:.2g}"
        return (
            f"{stage}{step.done:,} of {step.total:,} {step.unit}{kept}, {pace} a second, "
            f"{left}, {resident_nbytes() / MB:.0f} of {self._memory_mb} MB"
        )

    def close(self) -> None:
        """Leave the terminal on a fresh line."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


def _started_bar() -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    columns = BarColumn(bar_width=24), TextColumn("{task.description}")
    bar = Progress(*columns, console=Console(stderr=True))
    bar.add_task("", total=1)
    bar.start()
    return bar


@contextmanager
def watched(progress: RunProgress) -> Iterator[tuple[Callable[[Step], bool], list[int]]]:
    """Yield what work is to ask after each step, and the first signal, once there was one.

    It shows the step, and says no once there was a SIGINT or SIGTERM: the work stops after the step
    under way. A second one interrupts at once.
    """
    with noted(signal.SIGINT, signal.SIGTERM) as received:

        def keep_going(step: Step) -> bool:
            progress.show(step)
            return not received

        try:
            yield keep_going, received
        finally:
            progress.close()


# Progress of work counted in bytes, on stderr: a bar on a terminal, else a line now and then.

_Progress = Any  # a callable of (stage, bytes done, bytes in all)


@contextmanager
def byte_progress(shows: str | None = None) -> Iterator[_Progress]:
    """Yield what shows progress: call it with (stage, bytes done, bytes in all).

    ``shows`` is what :func:`srs_ooc.cli.progress.progress_option` gave.
    """
    if shows == NOTHING:
        yield lambda stage, done, total: None
        return
    if not is_live(shows):
        yield _lines_every(seconds_between(shows))
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


def _lines_every(seconds: float) -> _Progress:
    """Return what writes a line at most every so many seconds, so that a log stays readable."""
    started: dict[str, float] = {}
    last = time.monotonic()

    def show(stage: str, done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        start = started.setdefault(stage, now)
        if now - last < seconds or not done:
            return
        last = now
        left = (now - start) * (total - done) / done
        log(f"{stage}: {describe_nbytes(done)} of {describe_nbytes(total)}, {left:.0f} s left")

    return show
