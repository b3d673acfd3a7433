"""A part of a run as its ledger hands it back."""

import sqlite3
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from srs_ooc.runs.ledger.pages import read_pages
from srs_ooc.runs.ledger.records import Records


@dataclass(frozen=True)
class SavedPart:
    """A part as it was committed; see :class:`srs_ooc.base.records.Saved`."""

    _ledger: Records
    _database: sqlite3.Connection
    _name: str
    _layout: dict[str, list[int]]

    @property
    def facts(self) -> Any:
        """The JSON values, or None."""
        return self._ledger.meta(self._name) if self._ledger.has_meta(self._name) else None

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """The small arrays."""
        return self._ledger.read_arrays(self._name) or {}

    def length(self, name: str) -> int:
        """Return how many items a large array has; 0 where there is none."""
        return self._layout.get(f"{self._name}.{name}", [0, 0])[1]

    def fill(self, name: str, out: NDArray[Any], first_page: int = 0) -> None:
        """Fill ``out`` from a large array, from page ``first_page`` on."""
        place = self._layout.get(f"{self._name}.{name}")
        if place is not None:
            read_pages(self._database, place[0], out, first_page)
