"""Showing where a run stands while a program of the user's own waits for it."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
"""What a call takes: True for a bar where there is tqdm, a callable of steps, or nothing."""


@contextmanager
def shown(progress: Progress) -> Iterator[Callable[[Step], Any]]:
    """Yield what shows steps as was asked: a bar by :mod:`tqdm.auto`, a callable, or nothing."""
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
    """Yield what shows one bar of tqdm a stage; nothing where tqdm is not installed."""
    try:
        from tqdm.auto import tqdm
    except ImportError:
        yield lambda _: None
        return
    bar, stage = None, ""

    def show(step: Step) -> None:
        nonlocal bar, stage
        if bar is not None and step.stage == stage:
            bar.update(step.done - bar.n)
            return
        if bar is not None:
            bar.close()
        stage = step.stage
        bar = tqdm(total=step.total, initial=step.done, desc=stage or None, unit="it")

    try:
        yield show
    finally:
        if bar is not None:
            bar.close()


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
