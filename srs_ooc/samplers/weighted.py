"""Drawing items by whole-number weights: exact, and the same on every machine."""

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import UsageError
from srs_ooc.base.seeds import Purpose, derive, derive_array

_GROUP = 64
"""Items whose weights are summed in advance."""
_LOOKED_UP = 1024
"""Places of the line that are looked up together, to bound the memory."""
ITEM_NBYTES = 4 + 8 / _GROUP
"""Memory of an item."""


class WeightedLine:
    """Items laid on a line, each as long as its weight.

    Parameters
    ----------
    weights : uint32 (n_items,)
        Kept, not copied.

    Attributes
    ----------
    total : int
        Length of the line.
    n_positive : int
        Items that have a length.
    """

    def __init__(self, weights: NDArray[np.uint32]) -> None:
        self._weights = weights
        starts = np.arange(0, len(weights), _GROUP)
        self._ends = np.cumsum(np.add.reduceat(weights, starts, dtype=np.uint64))
        self.total = int(self._ends[-1])
        self.n_positive = int(np.count_nonzero(weights))

    def find(self, places: NDArray[np.uint64]) -> tuple[NDArray[np.uint32], NDArray[np.uint64]]:
        """Return the item that lies at each place, from 0 to ``total - 1``, and where it begins."""
        items = np.empty(len(places), np.uint32)
        starts = np.empty(len(places), np.uint64)
        for first in range(0, len(places), _LOOKED_UP):
            some = slice(first, first + _LOOKED_UP)
            items[some], starts[some] = self._find(places[some])
        return items, starts

    def _find(self, places: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
        groups = np.searchsorted(self._ends, places, side="right")
        members = groups[:, None] * _GROUP + np.arange(_GROUP)
        lengths = np.take(self._weights, members, mode="clip").astype(np.uint64)
        lengths[members >= len(self._weights)] = 0
        ends = np.cumsum(lengths, axis=1)
        ends += (self._ends[groups] - ends[:, -1])[:, None]
        within = (ends <= places[:, None]).sum(axis=1)
        one = np.arange(len(places))
        return members[one, within], ends[one, within] - lengths[one, within]

    def weights_of(self, items: NDArray[np.uint32]) -> NDArray[np.uint64]:
        """Return the weights of some items."""
        return self._weights[items].astype(np.uint64)


def uniform_below(key: int, count: int, bound: int) -> NDArray[np.uint64]:
    """Return ``count`` integers under ``key``, exactly uniform in ``0 .. bound - 1``; uint64.

    Hashes beyond the last whole multiple of ``bound`` are passed over, so that none is favoured.
    """
    last = (1 << 64) // bound * bound - 1
    found = np.zeros(0, np.uint64)
    counter = 0
    while len(found) < count:
        n_more = count - len(found)
        hashes = derive_array(key, np.arange(counter, counter + n_more))
        found = np.concatenate([found, hashes[hashes <= np.uint64(last)]])
        counter += n_more
    return found % np.uint64(bound)


def draw_with_replacement(line: WeightedLine, key: int, count: int) -> NDArray[np.uint32]:
    """Return ``count`` items, each drawn by the weights from all of them; in order drawn."""
    return line.find(uniform_below(key, count, line.total))[0]


def draw_without_replacement(line: WeightedLine, key: int, count: int) -> NDArray[np.uint32]:
    """Return ``count`` distinct items, each drawn by the weights from those left; in order drawn.

    In rounds: as many as are wanted are drawn with replacement from what lay on the line when the
    round began, and of equal ones the first counts. To pass over an item drawn twice is to draw
    from the others, so the law is that of one draw after another.
    """
    drawn, starts = np.zeros(0, np.uint32), np.zeros(0, np.uint64)
    number = 0
    while len(drawn) < count:
        order = np.argsort(starts)
        removed = np.concatenate([[0], np.cumsum(line.weights_of(drawn[order]))]).astype(np.uint64)
        places = uniform_below(
            derive(key, number), count - len(drawn), line.total - int(removed[-1])
        )
        # Where the items drawn would lie if those before them were taken off the line.
        gaps = starts[order] - removed[:-1]
        places += removed[np.searchsorted(gaps, places, side="right")]
        items, begins = line.find(places)
        first = np.sort(np.unique(items, return_index=True)[1])
        drawn = np.concatenate([drawn, items[first]])
        starts = np.concatenate([starts, begins[first]])
        number += 1
    return drawn


class WeightedDrawing:
    """Subspaces of items drawn by weights; none is held for kept features.

    Parameters
    ----------
    weights : uint32 (n_items,)
        0 for items that are never drawn.
    subspace_size : int
        k of the paper: items drawn for a tree.
    replacement : bool
        Draw with replacement: a subspace then has ``subspace_size`` items at most.

    Raises
    ------
    UsageError
        If fewer items than wanted can be drawn.
    """

    n_held = 0

    def __init__(
        self, weights: NDArray[np.uint32], subspace_size: int, *, replacement: bool
    ) -> None:
        self._line, self.subspace_size = WeightedLine(weights), subspace_size
        self._draw = draw_with_replacement if replacement else draw_without_replacement
        found = self._line.n_positive
        if found < (1 if replacement else subspace_size):
            raise UsageError(
                f"--subspace-size: expected at most {found}, the features and decoys with a score "
                f"above 0, found {subspace_size}. Ask for fewer, or give more of them a score."
            )

    def draw(self, kept: NDArray[np.uint32], key: int) -> NDArray[np.uint32]:
        """Return the subspace of the iteration with ``key``; uint32, distinct, ascending."""
        return np.unique(self._draw(self._line, derive(key, Purpose.WEIGHTED), self.subspace_size))
