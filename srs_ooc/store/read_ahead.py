"""Reading ahead of need: the system is asked for columns that will be gathered soon."""

import time
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.files import Closing
from srs_ooc.store.columns import ColumnStore

CACHED_SECONDS = 3e-6
"""A request answered faster than this, on average, found its columns in memory already."""
SAMPLE = 16
"""Where the last columns were in memory already, only each 16th is asked for."""
MOST_WAITING = 8
"""Subspaces that may wait to be asked for: more come too late to be of use, and are left out."""


class ReadAhead(Closing):
    """Asks the operating system, on a thread of its own, to read columns into its page cache.

    All requests of a subspace are under way at once, which a cold disk needs to be fast, and they
    take no memory of this process. Once columns turn out to be cached, asking stops but for a
    sample, until one is not.

    Parameters
    ----------
    store : ColumnStore
        Whose columns to ask for; nothing is asked where it is mapped.

    Attributes
    ----------
    depth : int
        How many subspaces to ask for beyond those being grown.
    """

    def __init__(self, store: ColumnStore) -> None:
        self.depth = 0 if store.mapped else store.n_ahead
        self._store = store
        self._thread = None if store.mapped else ThreadPoolExecutor(1, "read")
        self._cached = False
        self._waiting: deque[Future[None]] = deque()

    def ask(self, items: NDArray[np.uint32]) -> None:
        """Ask for the columns of ``items`` (ascending, as gathered) and return at once."""
        while self._waiting and self._waiting[0].done():
            self._waiting.popleft()
        if self._thread is not None and len(self._waiting) < MOST_WAITING:
            self._waiting.append(self._thread.submit(self._ask, items))

    def _ask(self, items: NDArray[np.uint32]) -> None:
        wanted = items[::SAMPLE] if self._cached else items
        n_features = np.uint32(self._store.manifest.n_features)
        if wanted[-1] >= n_features:  # decoys are read from their features' columns
            wanted = np.sort(wanted % n_features)
        started = time.perf_counter()
        n_requests = self._store.advise(np.ascontiguousarray(wanted))
        self._cached = time.perf_counter() - started < CACHED_SECONDS * n_requests

    def close(self) -> None:
        """Drop what was not asked for yet, and end the thread."""
        if self._thread is not None:
            self._thread.shutdown(wait=True, cancel_futures=True)
