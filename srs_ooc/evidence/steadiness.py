"""Whether the blind ranking is stable: its best items, looked at now and then."""

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.records import Outcome, Saved, State
from srs_ooc.evidence.ranking import best_items
from srs_ooc.evidence.tally import Tally

FIRST = 1000
"""Iterations before the first look."""
GROWTH = 5, 4
"""Each look comes after so many fourths of the iterations of the last."""
BEST = 100
"""Items looked at: features and decoys alike."""
SHARED = 0.9
"""Share of them that must be the same as at the last look, ..."""
LOOKS = 2
"""... as many times in a row."""


class Steadiness:
    """Compares the best items of a ranking with those a quarter of the iterations earlier.

    Parameters
    ----------
    tally : Tally
        What the items are ranked by.
    key : int
        64-bit key that breaks ties of the ranking.

    Attributes
    ----------
    since : int or None
        Iterations after which the ranking was found stable; None if not (yet).
    """

    def __init__(self, tally: Tally, key: int) -> None:
        self._tally, self._key = tally, key
        self._next = FIRST
        self._items: NDArray[np.uint32] = np.zeros(0, np.uint32)
        self._agreed = 0
        self.since: int | None = None

    def absorb(self, iteration: int, outcome: Outcome) -> None:
        """Look at the ranking after ``iteration`` (from 0), if it is time to."""
        n_iterations = iteration + 1
        if n_iterations < self._next or self.since is not None:
            return
        items = np.sort(best_items(self._tally, BEST, self._key))
        n_shared = len(np.intersect1d(items, self._items, assume_unique=True))
        self._agreed = self._agreed + 1 if n_shared >= SHARED * len(items) else 0
        self._items = items
        self._next = -(-self._next * GROWTH[0] // GROWTH[1])
        if self._agreed == LOOKS:
            self.since = n_iterations

    def state(self) -> State:
        """Return what was seen so far."""
        items = self._items.tolist()
        facts = {"next": self._next, "items": items, "agreed": self._agreed, "since": self.since}
        return State(facts=facts)

    def restore(self, saved: Saved) -> None:
        """Take it back."""
        record = saved.facts
        if record is not None:
            self._next, self._agreed = int(record["next"]), int(record["agreed"])
            self._items = np.array(record["items"], np.uint32)
            self.since = record["since"]
