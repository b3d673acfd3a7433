"""The sampler's F where it is not admitted by a test: the few items that lead the ranking."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

EVERY = 100
"""Iterations after which the leaders are chosen again, at the end of a round."""


class Leaders:
    """The leading items, held in every other round; the rounds between are plain Random Subspace.

    Two lanes side by side: beside what leads, features show that matter only with it; without it,
    those that it would mask. How many are held does not depend on which items are decoys.

    Parameters
    ----------
    count : int
        Items held at most.
    round_size : int
        Iterations proposed from one state.

    Attributes
    ----------
    items : uint32 (n,)
        The leaders, n at most ``count``.
    since : int
        Iterations done when they were chosen.
    """

    def __init__(self, count: int, round_size: int) -> None:
        self.count, self._round_size = count, round_size
        self._every = -(-EVERY // round_size) * round_size
        self.items: NDArray[np.uint32] = np.zeros(0, dtype=np.uint32)
        self.since = 0

    def retainable(self, iteration: int) -> NDArray[np.uint32]:
        """Return what R may be drawn from in ``iteration`` (from 0)."""
        return self.items if iteration // self._round_size % 2 else self.items[:0]

    def token(self, iteration: int) -> int:
        """Return a number that is equal whenever what may be retained is."""
        return self.since if iteration // self._round_size % 2 else -1

    def is_due(self, n_iterations: int) -> bool:
        """Return whether the leaders are chosen again after so many iterations."""
        return self.count > 0 and n_iterations % self._every == 0

    def choose(self, items: NDArray[np.uint32], n_iterations: int) -> None:
        """Hold ``items`` from now on."""
        self.items, self.since = items, n_iterations

    def to_json(self) -> dict[str, Any]:
        """Return the state as JSON-ready values."""
        return {"items": self.items.tolist(), "since": self.since}

    def restore(self, record: dict[str, Any]) -> None:
        """Take the state that :meth:`to_json` returned."""
        self.choose(np.array(record["items"], dtype=np.uint32), int(record["since"]))
