"""What a part of a run has learnt, as the ledger commits it and hands it back.

A part returns its :class:`State` and takes it back by ``restore``. The ledger writes the states of
all parts in one transaction and knows no method: only names, arrays and JSON.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.records import Outcome

PAGE_ITEMS = 16384
"""Items of a page: what is written of a large array at a time."""


def n_pages(n_items: int) -> int:
    """Return the pages that an array of ``n_items`` has."""
    return -(-n_items // PAGE_ITEMS)


def touch(changed: NDArray[np.bool_], items: NDArray[np.integer[Any]]) -> None:
    """Mark the pages of ``items`` as changed since the last commit."""
    changed[items // PAGE_ITEMS] = True


@dataclass(frozen=True)
class Pages:
    """A large array, of which a commit writes the pages that changed.

    Attributes
    ----------
    array : (n,)
        As it is now; the ledger writes it straight from memory.
    changed : bool (n_pages,)
        Pages to write. The ledger clears it; arrays that change together may share one.
    """

    array: NDArray[Any]
    changed: NDArray[np.bool_]


@dataclass(frozen=True)
class State:
    """What a part has learnt.

    Attributes
    ----------
    pages : mapping of Pages
        Large arrays, one-dimensional.
    arrays : mapping of arrays
        Small ones, written whole.
    facts : JSON-ready or None
        Such as a dict; None where there are none.
    """

    pages: Mapping[str, Pages] = field(default_factory=dict)
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    facts: Any = None


class Saved(Protocol):
    """A state as it was committed; empty where nothing was."""

    @property
    def facts(self) -> Any:
        """The JSON values, or None."""

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """The small arrays."""

    def length(self, name: str) -> int:
        """Return how many items the large array ``name`` has; 0 where there is none."""

    def fill(self, name: str, out: NDArray[Any], first_page: int = 0) -> None:
        """Fill ``out`` from the large array ``name``, from page ``first_page`` on."""


class Stateful(Protocol):
    """What is committed with a run."""

    def state(self) -> State:
        """Return what was learnt so far."""

    def restore(self, saved: Saved) -> None:
        """Take back what was committed; it is as new."""


class Part(Stateful, Protocol):
    """What learns from outcomes, in order."""

    def absorb(self, iteration: int, outcome: Outcome) -> None:
        """Take the outcome of ``iteration`` (from 0)."""
