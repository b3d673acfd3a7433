"""Two lanes: plain Random Subspace, and subspaces that hold the few items that lead the ranking."""

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.records import Outcome, Saved, State, Subspace
from srs_ooc.evidence.tally import Tally, best_items
from srs_ooc.samplers.base import IMPORTANCE, Unbounded
from srs_ooc.samplers.drawing import SubspaceDraw

EVERY = 100
"""Iterations after which the leaders are chosen again, at the end of a round."""


class Leaders(Unbounded):
    """Holds the leading items in every other round; the rounds between hold none.

    Beside what leads, features show that matter only with it; without it, those that it would
    mask. How many are held does not depend on which items are decoys.

    Parameters
    ----------
    drawing : SubspaceDraw
        How a subspace is drawn.
    tally : Tally
        What the items are ranked by; it has absorbed an outcome before this sampler does.
    count : int
        Items held at most.
    round_size : int
        Iterations proposed from one state.
    key : int
        64-bit key that breaks ties of the ranking.
    """

    name: ClassVar[str] = "leaders"
    needs: ClassVar[frozenset[str]] = frozenset({IMPORTANCE})

    def __init__(
        self, drawing: SubspaceDraw, tally: Tally, count: int, round_size: int, key: int
    ) -> None:
        self._drawing, self._tally, self._key = drawing, tally, key
        self._count, self._round_size = count, round_size
        self._every = -(-EVERY // round_size) * round_size
        self._items: NDArray[np.uint32] = np.zeros(0, dtype=np.uint32)
        self._since = 0

    @property
    def capacity(self) -> int:
        """Q."""
        return self._drawing.subspace_size

    def propose(self, iteration: int, key: int) -> Subspace:
        """Return the subspace of ``iteration``, in its round's lane."""
        held = self._items if self._holds(iteration) else self._items[:0]
        return Subspace(self._drawing.draw(held, key))

    def version(self, iteration: int) -> int:
        """Return when the leaders were chosen, for the rounds that hold them."""
        return self._since if self._drawing.n_held and self._holds(iteration) else -1

    def _holds(self, iteration: int) -> bool:
        return iteration // self._round_size % 2 == 1

    def absorb(self, iteration: int, outcome: Outcome) -> None:
        """Choose the leaders again where it is time to."""
        n_done = iteration + 1
        if self._drawing.n_held and self._count and n_done % self._every == 0:
            self._items = best_items(self._tally, self._count, self._key)
            self._since = n_done

    def state(self) -> State:
        """Return the leaders and when they were chosen."""
        return State(facts={"items": self._items.tolist(), "since": self._since})

    def restore(self, saved: Saved) -> None:
        """Take them back."""
        if saved.facts is not None:
            self._items = np.array(saved.facts["items"], dtype=np.uint32)
            self._since = int(saved.facts["since"])
