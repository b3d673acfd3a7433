"""The steps of a table, each cached: its facts, screens, closed rankings, and the marginal test."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from fractions import Fraction

import numpy as np
from selection_parts.tables import Table

from designs_parts.cache import ArrayCache, Arrays, TableKey
from designs_parts.catalogue import Promotion, Ranked
from designs_parts.cuts import LEVEL
from designs_parts.screens import Screen
from srs_ooc.evidence.rank_tests import least_passing, p_values_of
from srs_ooc.evidence.tally import by_score
from srs_ooc.runs.resources import MarginalTests, Resources
from srs_ooc.runs.survey import largest_decoy_cluster
from srs_ooc.store.store import Store

FACTS, MARGINAL = "facts", "marginal"


def facts(table: Table) -> Arrays:
    """Return ``relevant``, uint32 (r,): stored positions; and ``units``, int64 (r,), of each."""
    units = table.truth().units
    positions = np.asarray(Store.open(table.store()).array("positions"), np.int64)
    stored = np.argsort(positions)
    members = np.array([feature for unit in units for feature in unit], np.int64)
    numbers = np.repeat(np.arange(len(units)), [len(unit) for unit in units])
    return {"relevant": stored[members].astype(np.uint32), "units": numbers}


def marginal(tests: MarginalTests, n_features: int) -> Arrays:
    """Return ``features``, uint32: those that pass the marginal test among the features."""
    strengths = tests.of(np.arange(n_features, dtype=np.uint32))
    passing = np.flatnonzero(strengths >= least_passing(strengths, LEVEL))
    return {"features": passing.astype(np.uint32)}


def passing_level(x: Fraction, n_families: int) -> Fraction:
    """Return the level of all items at which x / (1 - x) of the features that pass are false."""
    return x * (1 + n_families) / (1 + (n_families - 1) * x)


def outstanding(tests: MarginalTests, promotion: Promotion, n_families: int, key: int) -> Arrays:
    """Return ``items``, uint32, that pass among features and decoys, best first; ``p_values``."""
    strengths = tests.of_all()
    level = passing_level(Fraction(LEVEL).limit_denominator() * promotion.share, n_families)
    passing = np.flatnonzero(strengths >= least_passing(strengths, float(level)))
    passing = passing.astype(np.uint32)
    order = by_score(strengths[passing].astype(np.float64), passing, key)
    return {"items": passing[order], "p_values": p_values_of(strengths[passing[order]])}


def promote(resources: Resources, promotion: Promotion, first: Arrays, closed: Arrays) -> Arrays:
    """Return a closed ranking with the items of ``first`` before the rest of it."""
    rest = ~np.isin(closed["items"], first["items"])
    items = np.concatenate([first["items"], closed["items"][rest]])
    expected = np.zeros(0) if promotion.counted else resources.n_features * first["p_values"]
    largest = largest_decoy_cluster(resources, items, len(expected))
    return {
        "items": items,
        "largest": np.array(largest),
        "expected": expected,
    }


class TableWork:
    """What is to be done on one table.

    Parameters
    ----------
    key : TableKey
        Which.
    wanted : iterable of Ranked
        Rankings.
    cache : ArrayCache
        Where they are kept.
    """

    def __init__(self, key: TableKey, wanted: Iterable[Ranked], cache: ArrayCache) -> None:
        self.key, self._cache = key, cache
        self._by_screen: dict[Screen, list[Ranked]] = {}
        for ranked in dict.fromkeys(wanted):
            if not cache.has(key, ranked.name):
                self._by_screen.setdefault(ranked.screen, []).append(ranked)

    @property
    def is_done(self) -> bool:
        """Whether all of it is in the cache."""
        return not self._by_screen

    def steps(self, table: Table) -> Iterator[str]:
        """Do what is missing, one step at a time; yields the name of each as it is done."""
        yield from self._step(FACTS, facts, table)
        for screen, rankings in self._by_screen.items():
            with screen.resources(table.store(), self.key.seed) as resources:
                tests = MarginalTests(resources)
                yield from self._step(MARGINAL, marginal, tests, resources.n_features)
                yield from self._step(
                    screen.name, screen.run, resources, self._get(FACTS)["relevant"]
                )
                for ranked in rankings:
                    yield from self._rank(ranked, resources, tests)

    def _rank(self, ranked: Ranked, resources: Resources, tests: MarginalTests) -> Iterator[str]:
        screen, closed = ranked.screen, replace(ranked, promotion=None)
        survivors, key = self._get(screen.name)["survivors"], screen.closing_key(resources)
        yield from self._step(closed.name, closed.closing.run, resources, survivors, key)
        promotion = ranked.promotion
        if promotion is not None:
            alone, tie_key = f"{screen.name}-{promotion.name}", screen.tie_key(resources)
            yield from self._step(alone, outstanding, tests, promotion, screen.families, tie_key)
            first, others = self._get(alone), self._get(closed.name)
            yield from self._step(ranked.name, promote, resources, promotion, first, others)

    def _get(self, step: str) -> Arrays:
        return self._cache.get(self.key, step)

    def _step(self, name: str, compute: Callable[..., Arrays], *arguments: object) -> Iterator[str]:
        if not self._cache.has(self.key, name):
            self._cache.put(self.key, name, compute(*arguments))
            yield name
