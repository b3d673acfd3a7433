"""A run's progress on stderr: live on a terminal, a plain line now and then elsewhere."""

import sys
import time
from collections.abc import Callable
from typing import Any

import click

from srs_ooc.base.budget import resident_nbytes
from srs_ooc.base.records import Step
from srs_ooc.base.sizes import MB

TERMINAL_SECONDS = 0.2
PLAIN_SECONDS = 10.0


class RunProgress:
    """Iterations done and per second, |F|, time left, resident memory against the cap.

    Parameters
    ----------
    memory_mb : int
        The cap.
    """

    def __init__(self, memory_mb: int) -> None:
        self._memory_mb = memory_mb
        self._stage: str | None = None
        self._begun = (0.0, 0)
        self._next = 0.0
        self._live: Any = None

    def show(self, step: Step) -> None:
        """Show where the run stands, if it is time to."""
        now = time.monotonic()
        stage = step.stage if step.unit == "iterations" else step.unit
        if self._stage != stage:
            self._stage, self._begun = stage, (now, step.done)
        if now < self._next and step.done < step.total:
            return
        on_terminal = sys.stderr.isatty()
        first = self._next == 0.0
        self._next = now + (TERMINAL_SECONDS if on_terminal else PLAIN_SECONDS)
        if first and not on_terminal:
            return
        self._write(step, self._line(now, step), on_terminal=on_terminal)

    def _line(self, now: float, step: Step) -> str:
        seconds, done = now - self._begun[0], step.done - self._begun[1]
        speed = done / seconds if seconds > 0 else 0.0
        left = f"{(step.total - step.done) / speed:.0f} s left" if speed else "starting"
        stage = f"{step.stage}: " if step.stage else ""
        kept = f", {step.n_kept} kept" if not step.stage else ""
        return (
            f"{stage}{step.done:,} of {step.total:,} {step.unit}{kept}, {speed:.0f} a second, "
            f"{left}, {resident_nbytes() / MB:.0f} of {self._memory_mb} MB"
        )

    def _write(self, step: Step, line: str, *, on_terminal: bool) -> None:
        if not on_terminal:
            click.echo(line, err=True)
            return
        if self._live is None:
            self._live = _live_line()
        self._live(line, step)

    def close(self) -> None:
        """Leave the terminal on a fresh line."""
        if self._live is not None:
            self._live(None, None)
            self._live = None


def _live_line() -> Callable[[str | None, Step | None], None]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    progress = Progress(
        BarColumn(bar_width=24), TextColumn("{task.description}"), console=Console(stderr=True)
    )
    task = progress.add_task("", total=1)
    progress.start()

    def update(line: str | None, step: Step | None) -> None:
        if line is None or step is None:
            progress.stop()
        else:
            progress.update(task, description=line, completed=step.done, total=step.total)

    return update
