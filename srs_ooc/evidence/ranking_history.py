"""What led the blind ranking at a few points of a run, so that its course can be shown later."""

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.records import Outcome, Saved, State
from srs_ooc.evidence.ranking import best_items
from srs_ooc.evidence.tally import Tally

FIRST = 100
"""Iterations before the first point."""
GROWTH = 4, 3
"""Each point comes after so many thirds of the iterations of the last: 49 points by 10**8."""
LEADING = 100
"""Items that are kept of each, features and decoys alike."""


class RankingHistory:
    """Keeps the first items of a ranking, best first, at points ever further apart.

    It knows no label: who reads it after the verdict may look up which items are decoys.

    Parameters
    ----------
    tally : Tally
        What the items are ranked by; it has absorbed an outcome before this does.
    key : int
        64-bit key that breaks ties of the ranking.
    """

    name: ClassVar[str] = "ranking_history"

    def __init__(self, tally: Tally, key: int) -> None:
        self._tally, self._key = tally, key
        self._iterations: list[int] = []
        self._items: list[NDArray[np.uint32]] = []

    def absorb(self, iteration: int, outcome: Outcome) -> None:
        """Keep what leads after ``iteration`` (from 0), if it is time to."""
        n_done = iteration + 1
        if n_done >= self._next:
            self._iterations.append(n_done)
            self._items.append(best_items(self._tally, LEADING, self._key))

    @property
    def _next(self) -> int:
        last = self._iterations[-1] if self._iterations else 0
        return max(FIRST, -(-last * GROWTH[0] // GROWTH[1]))

    def state(self) -> State:
        """Return the points so far: iterations (n,), items (n, at most LEADING)."""
        if not self._iterations:
            return State()
        iterations = np.array(self._iterations, np.int64)
        return State(arrays={"iterations": iterations, "items": np.array(self._items)})

    def restore(self, saved: Saved) -> None:
        """Take them back; a run that was begun without starts where it is."""
        arrays = saved.arrays
        if arrays:
            self._iterations = arrays["iterations"].tolist()
            self._items = list(arrays["items"])
