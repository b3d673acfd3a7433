"""Edges by weight, in memory that does not grow with their number."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FEWEST_EDGES = 1 << 16
"""Edges that are put in order together at least."""
EDGE_NBYTES = 120
"""Bytes of an edge that is put in order: those held, those read, and their order."""
Shards = Callable[[], Iterator[tuple[int, NDArray[np.float64]]]]


@dataclass(frozen=True)
class Edges:
    """Some edges, the heaviest first.

    Attributes
    ----------
    weights : float64 (n,)
        Above 0.
    places : int64 (n,)
        ``target * n_regulators + regulator``, both as places among those of the network.
    """

    weights: NDArray[np.float64]
    places: NDArray[np.int64]

    def best(self, count: int) -> "Edges":
        """Return the ``count`` first: by weight, equal ones by place."""
        order = np.lexsort((self.places, -self.weights))[:count]
        return Edges(self.weights[order], self.places[order])

    def also(self, more: "Edges") -> "Edges":
        """Return these and more, in no order."""
        return Edges(
            np.concatenate([self.weights, more.weights]), np.concatenate([self.places, more.places])
        )


NO_EDGES = Edges(np.zeros(0), np.zeros(0, np.int64))


def ranked(shards: Shards, n_together: int, top: int | None = None) -> Iterator[Edges]:
    """Yield all edges of a weight above 0, the heaviest first, some at a time.

    The weights are read once for every ``n_together`` edges: what is yielded is the same.

    Parameters
    ----------
    shards : callable
        Yields (first target, weights (n, n_regulators)) of all targets.
    n_together : int
        Edges that are put in order together, at most.
    top : int, optional
        Stop after so many.
    """
    last: tuple[float, int] = (np.inf, -1)
    n_left = top
    while n_left is None or n_left > 0:
        count = n_together if n_left is None else min(n_together, n_left)
        found = _next(shards, count, last)
        if not len(found.weights):
            return
        yield found
        if len(found.weights) < count:
            return
        last = float(found.weights[-1]), int(found.places[-1])
        n_left = None if n_left is None else n_left - count


def _next(shards: Shards, count: int, last: tuple[float, int]) -> Edges:
    """Return the ``count`` edges that follow ``last``; what is held is twice as many at most."""
    held, least = NO_EDGES, 0.0
    for first, weights in shards():
        n_regulators = weights.shape[1]
        for start in range(0, weights.size, FEWEST_EDGES):
            flat = weights.reshape(-1)[start : start + FEWEST_EDGES]
            chosen = np.flatnonzero((flat > 0) & (flat >= least) & (flat <= last[0]))
            places = chosen + (first * n_regulators + start)
            after = (flat[chosen] < last[0]) | (places > last[1])
            held = held.also(Edges(flat[chosen[after]], places[after]))
            if len(held.weights) >= 2 * count:
                held = held.best(count)
                least = float(held.weights[-1])
    return held.best(count)
