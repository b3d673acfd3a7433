"""The sampler's F: the features kept so far, in the order they entered."""

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.records import PAGE_ITEMS, Pages, Saved, State, n_pages


class KeptSet:
    """A set of features that only grows, with the iteration at which each entered.

    Parameters
    ----------
    n_features : int
        Size of V; membership takes one bit per feature.

    Attributes
    ----------
    n : int
        |F|.
    """

    def __init__(self, n_features: int) -> None:
        self._n_features = n_features
        self._bits = np.zeros(-(-n_features // 8), dtype=np.uint8)
        self._features = np.zeros(min(64, n_features), dtype=np.uint32)
        self._entered = np.zeros(min(64, n_features), dtype=np.uint32)
        self._changed = np.zeros(n_pages(n_features), dtype=np.bool_)
        self.n = 0

    @property
    def features(self) -> NDArray[np.uint32]:
        """Members in the order they entered; uint32 (n,)."""
        return self._features[: self.n]

    @property
    def entered(self) -> NDArray[np.uint32]:
        """Iterations (counted from 1) after which each member entered; uint32 (n,)."""
        return self._entered[: self.n]

    def n_before(self, iteration: int) -> int:
        """Return how many members had entered when iteration ``iteration`` (from 0) began."""
        return int(np.searchsorted(self.entered, iteration, side="right"))

    def holds(self, features: NDArray[np.uint32]) -> NDArray[np.bool_]:
        """Return which of ``features`` are members."""
        bits = np.take(self._bits, features >> np.uint32(3)) >> (features & np.uint32(7)).astype(
            np.uint8
        )
        return (bits & np.uint8(1)).astype(np.bool_)

    def add(self, features: NDArray[np.uint32], entered: NDArray[np.uint32] | int) -> None:
        """Add features that are not members yet."""
        if not len(features):
            return
        end = self.n + len(features)
        if end > len(self._features):
            self._reserve(min(max(end, 2 * len(self._features)), self._n_features))
        self._features[self.n : end] = features
        self._entered[self.n : end] = entered
        flags = np.left_shift(np.uint8(1), (features & np.uint32(7)).astype(np.uint8))
        np.bitwise_or.at(self._bits, features >> np.uint32(3), flags)
        self._changed[self.n // PAGE_ITEMS : n_pages(end)] = True
        self.n = end

    def state(self) -> State:
        """Return the members and when each entered."""
        arrays = {"features": self.features, "entered": self.entered}
        return State({name: Pages(array, self._changed) for name, array in arrays.items()})

    def restore(self, saved: Saved) -> None:
        """Add the members page by page: what adding needs besides stays small."""
        n_kept = saved.length("features")
        self._reserve(n_kept)
        for page in range(n_pages(n_kept)):
            size = min(PAGE_ITEMS, n_kept - page * PAGE_ITEMS)
            features, entered = np.zeros(size, np.uint32), np.zeros(size, np.uint32)
            saved.fill("features", features, page)
            saved.fill("entered", entered, page)
            self.add(features, entered)
        self._changed[:] = False

    def _reserve(self, room: int) -> None:
        """Make room for ``room`` members in all."""
        if room > len(self._features):
            self._features = _grown(self._features, room)
            self._entered = _grown(self._entered, room)


def _grown(array: NDArray[np.uint32], size: int) -> NDArray[np.uint32]:
    out = np.zeros(size, dtype=np.uint32)
    out[: len(array)] = array
    return out
