"""The steps of a table, each cached: its facts, screens, closed rankings, and the marginal test."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from selection_parts.tables import Table

from designs_parts.cache import ArrayCache, Arrays, TableKey
from designs_parts.closings import Closing
from designs_parts.cuts import LEVEL
from designs_parts.screens import Screen
from srs_ooc.evidence.marginal import class_p_values, largest_passing
from srs_ooc.fitting import EngineParts
from srs_ooc.kernel.block import Block
from srs_ooc.store.manifest import read_manifest
from srs_ooc.store.names import read_array

FACTS, MARGINAL = "facts", "marginal"
COLUMNS = 64


def ranking_step(screen: Screen, closing: Closing) -> str:
    """Return the name of a closed ranking."""
    return f"{screen.name}-then-{closing.name}"


def facts(table: Table) -> Arrays:
    """Return ``relevant``, uint32 (r,): stored positions; and ``units``, int64 (r,), of each."""
    units = table.truth().units
    store = table.store()
    positions = np.asarray(read_array(store, read_manifest(store), "positions"), np.int64)
    stored = np.argsort(positions)
    members = np.array([feature for unit in units for feature in unit], np.int64)
    numbers = np.repeat(np.arange(len(units)), [len(unit) for unit in units])
    return {"relevant": stored[members].astype(np.uint32), "units": numbers}


def marginal(parts: EngineParts) -> Arrays:
    """Return ``features``, uint32: those that pass the marginal test of each by itself."""
    response, missing = parts.learner.rows.response, parts.source.store.manifest.missing_code
    block = Block(COLUMNS, parts.n_rows, 1, tiled=False)
    found: list[NDArray[np.float64]] = []
    for start in range(0, parts.n_features, COLUMNS):
        some = np.arange(start, min(start + COLUMNS, parts.n_features), dtype=np.uint32)
        parts.source.gather(some, block)
        columns = block.as_columns(len(some))
        found.append(class_p_values(columns, response.labels, response.n_classes, missing))
    p_values = np.concatenate(found)
    passing = np.flatnonzero(p_values <= largest_passing(p_values, LEVEL))
    return {"features": passing.astype(np.uint32)}


class TableWork:
    """What is to be done on one table.

    Parameters
    ----------
    key : TableKey
        Which.
    pairs : list of (Screen, Closing)
        Rankings that are wanted.
    cache : ArrayCache
        Where they are kept.
    """

    def __init__(
        self, key: TableKey, pairs: list[tuple[Screen, Closing]], cache: ArrayCache
    ) -> None:
        self.key, self._cache = key, cache
        by_screen: dict[Screen, list[Closing]] = {}
        for screen, closing in dict.fromkeys(pairs):
            if not cache.has(key, ranking_step(screen, closing)):
                by_screen.setdefault(screen, []).append(closing)
        self._by_screen = by_screen

    @property
    def is_done(self) -> bool:
        """Whether all of it is in the cache."""
        return not self._by_screen and self._cache.has(self.key, FACTS)

    def steps(self, table: Table) -> Iterator[str]:
        """Do what is missing, one step at a time; yields the name of each as it is done."""
        if not self._cache.has(self.key, FACTS):
            self._cache.put(self.key, FACTS, facts(table))
            yield FACTS
        for screen, closings in self._by_screen.items():
            with screen.parts(table.store(), self.key.seed) as parts:
                yield from self._after(screen, closings, parts)

    def _after(self, screen: Screen, closings: list[Closing], parts: EngineParts) -> Iterator[str]:
        if not self._cache.has(self.key, MARGINAL):
            self._cache.put(self.key, MARGINAL, marginal(parts))
            yield MARGINAL
        if not self._cache.has(self.key, screen.name):
            relevant = self._cache.get(self.key, FACTS)["relevant"]
            self._cache.put(self.key, screen.name, screen.run(parts, relevant))
            yield screen.name
        survivors = self._cache.get(self.key, screen.name)["survivors"]
        for closing in closings:
            arrays = closing.run(parts, survivors, screen.closing_key(parts))
            self._cache.put(self.key, ranking_step(screen, closing), arrays)
            yield ranking_step(screen, closing)
