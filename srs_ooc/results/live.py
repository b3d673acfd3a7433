"""Showing where a run stands while a program of the user's own waits for it."""

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import Any

from srs_ooc.base.budget import resident_nbytes
from srs_ooc.base.errors import UsageError
from srs_ooc.base.files import Closing
from srs_ooc.base.records import Step
from srs_ooc.base.text import MB, describe_nbytes, visible


@contextmanager
def noted(*numbers: signal.Signals) -> Iterator[list[int]]:
    """Note the first of these signals in the block, and handle them as before after it.

    They ask work to stop where nothing is lost; a second one interrupts at once. Signals reach the
    main thread only: in another one the block runs as it is.
    """
    received: list[int] = []
    before = {}

    def note(number: int, _: FrameType | None) -> None:
        if received:
            signal.default_int_handler(number, None)
        received.append(number)

    if threading.current_thread() is threading.main_thread():
        for number in numbers:
            before[number] = signal.signal(number, note)
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


BAR_SECONDS, LINE_SECONDS, SHORT_LINE_SECONDS = 0.2, 10.0, 1.0
"""How long what is shown stands at least: a bar, a line, a line where lines were asked for."""


class RunProgress(Closing):
    """Where work stands, on stderr: how much of it is done, how fast, how long the rest takes.

    On a terminal and in a notebook a bar that moves; elsewhere a line with the time now and then.

    Parameters
    ----------
    memory_mb : int, optional
        The cap, for the resident memory to be shown against.
    shows : bool, optional
        Nothing if not; a line every second, on a terminal too, if so.
    """

    def __init__(self, memory_mb: int | None = None, shows: bool | None = None) -> None:
        self._memory_mb, self._shows = memory_mb, shows
        self._stage: str | None = None
        self._begun, self._done = (0.0, 0), 0
        self._ended: tuple[str, int] | None = None
        self._next = 0.0
        self._is_live = shows is None and (sys.stderr.isatty() or is_notebook())
        self._seconds = SHORT_LINE_SECONDS if shows else LINE_SECONDS
        self._bar: Any = None
        self._draw: Callable[[], Any] = str

    def show(self, step: Step) -> bool:
        """Show where work stands, if it is time to; the work goes on."""
        now, self._last = time.monotonic(), step
        stage = step.stage if step.unit in ("iterations", "bytes") else step.unit
        if self._stage != stage or step.done < self._done:
            self._stage, self._begun = stage, (now, step.done)
        self._done = step.done
        # The end of a stage is shown at once, but once: a stage may be told of after it.
        ends = step.done >= step.total and self._ended != (step.stage, step.total)
        # Of the many stages of folds and halves, lines say no more than now and then.
        is_of_many = step.stage.startswith(("fold ", "half ")) or step.unit == "bytes"
        at_once = ends and (self._is_live or not is_of_many)
        if self._shows is False or (now < self._next and not at_once):
            return True
        if ends:
            self._ended = (step.stage, step.total)
        is_first = self._next == 0.0
        self._next = now + (BAR_SECONDS if self._is_live else self._seconds)
        line = self._line(now, step)
        if self._is_live:
            if self._bar is None:
                self._bar, self._draw = _started_bar()
            self._bar.update(0, description=line, completed=step.done, total=step.total)
            self._draw()
        elif not is_first:
            print(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {visible(line)}", file=sys.stderr)
        return True

    def _line(self, now: float, step: Step) -> str:
        seconds, done = now - self._begun[0], step.done - self._begun[1]
        speed = done / seconds if seconds > 0 else 0.0
        left = f"{(step.total - step.done) / speed:.0f} s left" if speed else "starting"
        stage = f"{step.stage}: " if step.stage else ""
        if step.unit == "bytes":
            return f"{stage}{describe_nbytes(step.done)} of {describe_nbytes(step.total)}, {left}"
        kept = f", {step.n_kept} kept" if step.n_kept and not step.stage else ""
        pace = f"{speed:.0f}" if speed >= 10 else f"{speed:.2g}"
        line = f"{stage}{step.done:,} of {step.total:,} {step.unit}{kept}, {pace} a second, {left}"
        if self._memory_mb is None:
            return line
        return f"{line}, {resident_nbytes() / MB:.0f} of {self._memory_mb} MB"

    def show_bytes(self, stage: str, done: int, total: int) -> None:
        """Show how many bytes of a stage are done."""
        self.show(Step(stage, done, total, unit="bytes"))

    def close(self) -> None:
        """Show the last step, if it was not due, and leave the terminal on a fresh line."""
        if self._bar is not None:
            self._next = 0.0
            self.show(self._last)
        if self._bar is not None and self._bar.live.is_started:
            self._bar.stop()


def is_notebook() -> bool:
    """Return whether the process is the kernel of a notebook."""
    return "ipykernel" in sys.modules


def _started_bar() -> tuple[Any, Callable[[], Any]]:
    """Return a bar of rich with one task, and what draws it."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    columns = BarColumn(bar_width=24), TextColumn("{task.description}", markup=False)
    # Without its thread: it is drawn where steps are told, and a fork then is as safe as before.
    bar = Progress(*columns, console=Console(stderr=True), auto_refresh=False,
                   redirect_stdout=False, redirect_stderr=False)  # fmt: skip
    bar.add_task("", total=1)
    if is_notebook():  # by IPython alone: rich would want ipywidgets
        from IPython.display import display

        return bar, partial(display(bar, display_id=True).update, bar)
    bar.start()
    return bar, bar.refresh


Progress = bool | Callable[[Step], Any] | None
"""What a call takes: True for a bar, a callable of steps, or nothing."""


@contextmanager
def shown(progress: Progress) -> Iterator[Callable[[Step], Any]]:
    """Yield what shows steps as was asked: a bar, a callable, or nothing."""
    if progress is True:
        with RunProgress() as bar:
            yield bar.show
    elif callable(progress):
        yield progress
    elif progress in (None, False):
        yield lambda _: None
    else:
        raise UsageError(f"progress: expected True, False, None or a callable, found {progress!r}.")


@contextmanager
def watched(progress: RunProgress) -> Iterator[tuple[Callable[[Step], bool], list[int]]]:
    """Yield what work is to ask after each step, and the first signal, once there was one.

    It shows the step, and says no once there was a SIGINT or SIGTERM: the work stops after the step
    under way. A second one interrupts at once.
    """
    with progress, noted(signal.SIGINT, signal.SIGTERM) as received:

        def goes_on(step: Step) -> bool:
            progress.show(step)
            return not received

        yield goes_on, received


@contextmanager
def interruptible(progress: Progress) -> Iterator[Callable[[Step], bool]]:
    """Yield what work is to ask after each step: it shows the step, and says whether to go on.

    Raises
    ------
    KeyboardInterrupt
        After the block, if there was a Ctrl-C in it: the work has kept then what it did. What a
        callable of the user's raised is raised then too.
    """
    errors: list[BaseException] = []
    with shown(progress) as show, noted(signal.SIGINT) as received:

        def goes_on(step: Step) -> bool:
            if not errors:
                try:
                    show(step)
                except BaseException as error:  # raised again once all is committed
                    errors.append(error)
            return not errors and not received

        yield goes_on
    if errors:
        raise errors[0]
    if received:
        raise KeyboardInterrupt
