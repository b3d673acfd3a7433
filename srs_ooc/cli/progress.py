"""A run's progress on stderr: live on a terminal, a plain line now and then elsewhere."""

import sys
import time
from collections.abc import Callable
from typing import Any

import click

from srs_ooc.budget import resident_nbytes
from srs_ooc.sizes import MB

TERMINAL_SECONDS = 0.2
PLAIN_SECONDS = 10.0


class RunProgress:
    """Iterations done and per second, |F|, time left, resident memory against the cap.

    Parameters
    ----------
    until : int
        Iterations to reach.
    memory_mb : int
        The cap.
    """

    def __init__(self, until: int, memory_mb: int) -> None:
        self._until, self._memory_mb = until, memory_mb
        self._begun: tuple[float, int] | None = None
        self._next = 0.0
        self._live: Any = None

    def show(self, iteration: int, n_selected: int) -> None:
        """Show where the run stands, if it is time to."""
        now = time.monotonic()
        if self._begun is None:
            self._begun = now, iteration
        if now < self._next and iteration < self._until:
            return
        on_terminal = sys.stderr.isatty()
        first = self._next == 0.0
        self._next = now + (TERMINAL_SECONDS if on_terminal else PLAIN_SECONDS)
        if first and not on_terminal:
            return
        self._write(self._line(now, iteration, n_selected), on_terminal=on_terminal)

    def _line(self, now: float, iteration: int, n_selected: int) -> str:
        assert self._begun is not None
        seconds, done = now - self._begun[0], iteration - self._begun[1]
        speed = done / seconds if seconds > 0 else 0.0
        left = f"{(self._until - iteration) / speed:.0f} s left" if speed else "starting"
        return (
            f"{iteration}/{self._until} iterations, {speed:.0f}/s, {n_selected} in F, {left}, "
            f"{resident_nbytes() / MB:.0f} of {self._memory_mb} MB"
        )

    def _write(self, line: str, *, on_terminal: bool) -> None:
        if not on_terminal:
            click.echo(line, err=True)
            return
        if self._live is None:
            self._live = _live_line(self._until)
        self._live(line)

    def close(self) -> None:
        """Leave the terminal on a fresh line."""
        if self._live is not None:
            self._live(None)
            self._live = None


def _live_line(until: int) -> Callable[[str | None], None]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    progress = Progress(
        BarColumn(bar_width=24), TextColumn("{task.description}"), console=Console(stderr=True)
    )
    task = progress.add_task("", total=until)
    progress.start()

    def update(line: str | None) -> None:
        if line is None:
            progress.stop()
        else:
            progress.update(task, description=line, completed=int(line.split("/", 1)[0]))

    return update
