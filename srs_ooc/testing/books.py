"""A book in memory: what a ledger does, without a file."""

import copy
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.records import PAGE_ITEMS, State, Stateful, n_pages
from srs_ooc.runs.ledger import Progress


@dataclass
class SavedCopy:
    """One part as it was committed; see :class:`srs_ooc.base.records.Saved`."""

    facts: Any = None
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)
    pages: dict[str, NDArray[Any]] = field(default_factory=dict)

    def length(self, name: str) -> int:
        """Return how many items the large array ``name`` has."""
        return len(self.pages.get(name, ()))

    def fill(self, name: str, out: NDArray[Any], first_page: int = 0) -> None:
        """Fill ``out`` from a large array, from page ``first_page`` on."""
        if name in self.pages:
            start = first_page * PAGE_ITEMS
            out[...] = self.pages[name][start : start + len(out)]

    def take(self, state: State) -> None:
        """Keep what a commit would write: of large arrays the changed pages only."""
        for name, pages in state.pages.items():
            old = self.pages.get(name, np.zeros(0, pages.array.dtype))
            new = np.zeros_like(pages.array)
            new[: min(len(old), len(new))] = old[: len(new)]
            for page in np.flatnonzero(pages.changed[: n_pages(len(new))]):
                piece = slice(page * PAGE_ITEMS, (page + 1) * PAGE_ITEMS)
                new[piece] = pages.array[piece]
            self.pages[name] = new
        for pages in state.pages.values():  # arrays may share one
            pages.changed[:] = False
        if state.arrays:
            self.arrays = {name: np.array(array) for name, array in state.arrays.items()}
        if state.facts is not None:
            self.facts = json.loads(json.dumps(state.facts))


class MemoryBook:
    """Keeps the last commit in memory; :meth:`copy` stands for a run that was killed there."""

    def __init__(self) -> None:
        self.progress = Progress(0, 0, 0.0, 0)
        self.saved: dict[str, SavedCopy] = {}

    def load(self, parts: Mapping[str, Stateful]) -> Progress:
        """Restore parts from the last commit; from an empty one where there was none."""
        for name, part in parts.items():
            part.restore(self.saved.get(name, SavedCopy()))
        return self.progress

    def commit(
        self, progress: Progress, states: Mapping[str, State], resident_nbytes: int
    ) -> float:
        """Keep the states; return that it took no time."""
        for name, state in states.items():
            self.saved.setdefault(name, SavedCopy()).take(state)
        self.progress = progress
        return 0.0

    def copy(self) -> "MemoryBook":
        """Return a book that holds the same commit."""
        return copy.deepcopy(self)
