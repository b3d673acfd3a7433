"""Showing where a run stands while a program of the user's own waits for it."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from srs_ooc.base.errors import UsageError
from srs_ooc.base.records import Step

# Signals that ask work to stop where nothing is lost, instead of ending it where it stands.


class Signals:
    """The first signal is noted; a second one interrupts at once.

    Attributes
    ----------
    received : int or None
        The number of the first.
    """

    received: int | None = None

    def note(self, number: int, _: FrameType | None) -> None:
        """Note a signal, as its handler."""
        if self.received is not None:
            signal.default_int_handler(number, None)
        self.received = number


@contextmanager
def noted(*numbers: signal.Signals) -> Iterator[Signals]:
    """Note these signals in the block, and handle them as before after it.

    Signals reach the main thread only: in another one the block runs as it is.
    """
    signals = Signals()
    before = {}
    if threading.current_thread() is threading.main_thread():
        for number in numbers:
            before[number] = signal.signal(number, signals.note)
    try:
        yield signals
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


Progress = bool | Callable[[Step], Any] | None
"""What a call takes: True for a bar where there is tqdm, a callable of steps, or nothing."""


class Shown:
    """Shows steps as was asked; what goes wrong in a callable of the user's is kept for later.

    Parameters
    ----------
    progress : bool, callable or None
        True: a bar by :mod:`tqdm.auto`, if it is installed. A callable is called with each
        :class:`srs_ooc.base.records.Step`, in the thread of the call.

    Attributes
    ----------
    error : BaseException or None
        What the callable raised: the work is to stop then, and it is to be raised again.
    """

    def __init__(self, progress: Progress) -> None:
        self.error: BaseException | None = None
        self._show: Callable[[Step], Any] | None = None
        self._bar: _Bar | None = None
        if progress is True:
            self._bar = _Bar.made()
            self._show = None if self._bar is None else self._bar.show
        elif callable(progress):
            self._show = progress
        elif progress not in (None, False):
            raise UsageError(
                f"progress: expected True, False, None or a callable, found {progress!r}."
            )

    def step(self, step: Step) -> bool:
        """Show a step; return whether the work may go on."""
        if self._show is not None and self.error is None:
            try:
                self._show(step)
            except BaseException as error:  # raised again once all is committed
                self.error = error
        return self.error is None

    def close(self) -> None:
        """Leave the bar as it is."""
        if self._bar is not None:
            self._bar.close()


class _Bar:
    """One bar of tqdm a stage."""

    def __init__(self, tqdm: Any) -> None:
        self._tqdm, self._bar, self._stage = tqdm, None, ""

    @classmethod
    def made(cls) -> "_Bar | None":
        """Return a bar; None where tqdm is not installed."""
        try:
            from tqdm.auto import tqdm
        except ImportError:
            return None
        return cls(tqdm)

    def show(self, step: Step) -> None:
        """Move the bar; of another stage, begin another one."""
        if self._bar is None or step.stage != self._stage:
            self.close()
            self._stage = step.stage
            self._bar = self._tqdm(
                total=step.total, initial=step.done, desc=step.stage or None, unit="it"
            )
            return
        self._bar.update(step.done - self._bar.n)

    def close(self) -> None:
        """Leave the bar as it is."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None


@contextmanager
def interruptible(progress: Progress) -> Iterator[Callable[[Step], bool]]:
    """Yield what work is to ask after each step: it shows the step, and says whether to go on.

    Raises
    ------
    KeyboardInterrupt
        After the block, if there was a Ctrl-C in it: the work has kept then what it did. What a
        callable of the user's raised is raised then too.
    """
    shown = Shown(progress)
    try:
        with noted(signal.SIGINT) as signals:
            yield lambda step: shown.step(step) and signals.received is None
    finally:
        shown.close()
    if shown.error is not None:
        raise shown.error
    if signals.received is not None:
        raise KeyboardInterrupt
