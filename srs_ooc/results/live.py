"""Showing where a run stands while a program of the user's own waits for it."""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from types import FrameType
from typing import Any

from srs_ooc.base.errors import UsageError
from srs_ooc.base.records import Step


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


Progress = bool | Callable[[Step], Any] | None
"""What a call takes: True for a bar, a callable of steps, or nothing."""

BAR_SECONDS, LINE_SECONDS = 0.1, 10.0
"""How long a bar stands as it is, at least, where it moves and where each is a line."""


@contextmanager
def shown(progress: Progress) -> Iterator[Callable[[Step], Any]]:
    """Yield what shows steps as was asked: a bar, a callable, or nothing."""
    if progress is True:
        with _bar() as show:
            yield show
    elif callable(progress):
        yield progress
    elif progress in (None, False):
        yield lambda _: None
    else:
        raise UsageError(f"progress: expected True, False, None or a callable, found {progress!r}.")


@contextmanager
def _bar() -> Iterator[Callable[[Step], Any]]:
    """Yield what shows one bar a stage, below those of the stages before."""
    stage: str | None = None
    draw: Callable[[Step], Any]
    with ExitStack() as bar:

        def show(step: Step) -> None:
            nonlocal stage, draw
            if step.stage != stage:
                bar.close()
                stage, draw = step.stage, bar.enter_context(_stage_bar(step))
            draw(step)

        yield show


@contextmanager
def _stage_bar(first: Step) -> Iterator[Callable[[Step], None]]:
    """Yield what shows the steps of one stage on stderr: a bar that stays where it ends.

    It moves on a terminal and in a notebook; elsewhere it is a line now and then, and at the end.
    """
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (TextColumn("{task.description}", markup=False), TaskProgressColumn(),
               BarColumn(bar_width=20), MofNCompleteColumn(), TimeElapsedColumn(),
               TimeRemainingColumn(), TextColumn("{task.fields[pace]}"))  # fmt: skip
    console = Console(stderr=True)
    # Without its thread: it is drawn where steps are told, and a fork then is as safe as before.
    bar = Progress(*columns, console=console, auto_refresh=False,
                   redirect_stdout=False, redirect_stderr=False)  # fmt: skip
    number = bar.add_task(first.stage, total=first.total, completed=first.done, pace="")
    seconds, draw = BAR_SECONDS, bar.refresh
    if console.is_jupyter:  # by IPython alone: rich would want ipywidgets
        from IPython.display import display

        draw = partial(display(bar, display_id=True).update, bar)
    elif console.is_terminal and not console.is_dumb_terminal:
        bar.start()
    else:
        seconds, draw = LINE_SECONDS, partial(console.print, bar)
    drawn = time.monotonic()

    def draw_with_pace() -> None:
        nonlocal drawn
        speed = bar.tasks[0].finished_speed or bar.tasks[0].speed
        bar.update(number, pace=f"{speed:.3g} it/s" if speed else "")
        draw()
        drawn = time.monotonic()

    def show(step: Step) -> None:
        bar.update(number, completed=step.done)
        if time.monotonic() - drawn >= seconds:
            draw_with_pace()

    try:
        yield show
    finally:
        draw_with_pace()
        if bar.live.is_started:
            bar.stop()


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
