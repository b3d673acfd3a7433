"""Signals that ask work to stop where nothing is lost, instead of ending it where it stands."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


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
