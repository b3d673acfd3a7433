"""What ``designs.py`` does for one table, what it keeps of it, and its tables of figures."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
from designs_catalogue import LEVEL, Design, Group, Promotion, Ranked, Ranking
from designs_screens import Screen
from numpy.typing import NDArray
from selection_methods import standard_error
from selection_tables import Scores, Table, Truth, score

from srs_ooc.evidence.rank_tests import least_passing, p_values_of
from srs_ooc.evidence.tally import by_score
from srs_ooc.runs.resources import MarginalTests, Resources
from srs_ooc.runs.run_verdict import largest_decoy_cluster
from srs_ooc.samplers.elimination import SURVIVORS
from srs_ooc.store.store import Store

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class TableKey:
    """A table: a problem so wide, and its seed."""

    problem: str
    n_features: int
    seed: int


class ArrayCache:
    """A folder of arrays.

    Parameters
    ----------
    folder : Path
        Made when the first arrays are put there.
    version : str
        Of what computes them; those of another are not seen.
    """

    def __init__(self, folder: Path, version: str) -> None:
        self._folder, self._version = folder, version

    def _path(self, table: TableKey, step: str) -> Path:
        name = f"seed{table.seed}-{step}@{self._version}.npz"
        return self._folder / f"{table.problem}-{table.n_features}" / name

    def has(self, table: TableKey, step: str) -> bool:
        """Tell whether a step is done."""
        return self._path(table, step).exists()

    def get(self, table: TableKey, step: str) -> Arrays:
        """Return what a step that is done gave."""
        with np.load(self._path(table, step)) as held:
            return {name: held[name] for name in held.files}

    def put(self, table: TableKey, step: str, arrays: Arrays) -> None:
        """Keep what a step gave; the file appears complete or not at all."""
        path, named = self._path(table, step), dict[str, Any](arrays)
        path.parent.mkdir(parents=True, exist_ok=True)
        scratch = path.with_suffix(f".{os.getpid()}.part")
        with scratch.open("wb") as stream:
            np.savez(stream, **named)
        scratch.replace(path)


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


MORE = "mean", "power gained over the first"
MARGINAL_LABEL = "rank-sum test, Benjamini and Hochberg"


@dataclass(frozen=True)
class Held:
    """The tables asked for, and what is known of them.

    Attributes
    ----------
    cache : ArrayCache
        Of results.
    tables : tuple of TableKey
        In the order asked for.
    """

    cache: ArrayCache
    tables: tuple[TableKey, ...]

    def of(self, problem: str) -> list[TableKey]:
        """Return the tables of a problem."""
        return [table for table in self.tables if table.problem == problem]

    def truth(self, table: TableKey) -> Truth:
        """Return what is relevant, by stored position."""
        facts = self.cache.get(table, FACTS)
        numbers = facts["units"]
        return Truth(
            tuple(tuple(facts["relevant"][numbers == i].tolist()) for i in np.unique(numbers))
        )

    def has(self, design: Design, table: TableKey) -> bool:
        """Tell whether a design was run on a table."""
        return table.problem in design.problems and all(
            self.cache.has(table, ranked.name) for ranked in design.rankings
        )

    def scores(self, design: Design, table: TableKey) -> Scores:
        """Score what a design selects."""
        rankings = [self._ranking(ranked, table) for ranked in design.rankings]
        return score(self.truth(table), design.cut(rankings).tolist(), ())

    def _ranking(self, ranked: Ranked, table: TableKey) -> Ranking:
        arrays = self.cache.get(table, ranked.name)
        families = ranked.screen.families
        arrays.setdefault("expected", np.zeros(0))
        return Ranking(**arrays, n_families=families, n_features=table.n_features)

    def marginal_scores(self, table: TableKey) -> Scores:
        """Score what the marginal test selects."""
        return score(self.truth(table), self.cache.get(table, MARGINAL)["features"].tolist(), ())


def cell(found: Sequence[Scores]) -> str:
    """Return power / false share, means over tables."""
    if not found:
        return ""
    power, false = (mean(getattr(s, name) for s in found) for name in ("power", "false_share"))
    return f"{power:.2f} / {false:.2f}"


def _columns(
    held: Held, group: Group, is_done: Callable[[Design, TableKey], bool]
) -> dict[str, list[TableKey]]:
    """Return for each problem the tables that all designs tried on it were run on."""
    columns = {}
    for problem in dict.fromkeys(table.problem for table in held.tables):
        tried = [design for design in group.designs if problem in design.problems]
        done = [t for t in held.of(problem) if all(is_done(design, t) for design in tried)]
        if len(tried) > 1 and done:
            columns[problem] = done
    return columns


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def gain(found: Sequence[Sequence[Scores]], first: Sequence[Sequence[Scores]]) -> str:
    """Return the power gained over the first design on the same tables, with a standard error.

    Nothing where a design was not tried on all of them.
    """
    if not all(found) or found is first:
        return ""
    pairs = zip(chain.from_iterable(found), chain.from_iterable(first), strict=True)
    gains = [(one.power or 0.0) - (other.power or 0.0) for one, other in pairs]
    return f"{mean(gains):+.2f} ± {standard_error(gains):.2f}"


def _line(label: str, found: list[list[Scores]], first: list[list[Scores]]) -> str:
    together = list(chain.from_iterable(found)) if all(found) else []
    return _row([label, *map(cell, found), cell(together), gain(found, first)])


def largest_errors(cells: Iterable[Sequence[Scores]]) -> str:
    """Return the largest standard errors of the cells' means, of cells of several tables."""
    several = [found for found in cells if len(found) > 1]
    if not several:
        return "One table a cell: no standard errors."
    power, false = (
        max(standard_error([getattr(s, name) for s in found]) for found in several)
        for name in ("power", "false_share")
    )
    return f"Standard errors of a cell are at most {power:.2f} / {false:.2f}."


def selection_table(held: Held, group: Group) -> Iterator[str]:
    """Yield the lines of a group: power / false share by design and problem."""
    columns = _columns(held, group, held.has)
    columns = {name: done for name, done in columns.items() if name in group.selected}
    if not columns:
        return
    yield f"**{group.title}**: power / false share at level {LEVEL} (tables)\n"
    yield _row(["design", *(f"{name} ({len(done)})" for name, done in columns.items()), *MORE])
    yield "|---" * (3 + len(columns)) + "|"
    rows = {
        design.label: [
            [held.scores(design, table) for table in done if held.has(design, table)]
            for done in columns.values()
        ]
        for design in group.designs
    }
    rows[MARGINAL_LABEL] = [[held.marginal_scores(t) for t in done] for done in columns.values()]
    first = next(iter(rows.values()))
    yield from (_line(label, found, first) for label, found in rows.items())
    yield "\n" + largest_errors(some for found in rows.values() for some in found) + "\n"


def worst_rank(held: Held, screen: Screen, table: TableKey) -> str:
    """Return the worst rank of a relevant unit in a screen, and how many go on."""
    ranks, units = (
        held.cache.get(table, screen.name)["ranks"],
        held.cache.get(table, FACTS)["units"],
    )
    best = [int(ranks[units == i].min()) for i in np.unique(units)]
    return f"{max(best):,} ({sum(rank < SURVIVORS for rank in best)} of {len(best)})"


def rank_table(held: Held, group: Group) -> Iterator[str]:
    """Yield the lines of the screens of a group: where the worst relevant item of a table ranks."""
    columns = _columns(held, group, lambda d, t: held.cache.has(t, d.screens[0].name))
    if not columns:
        return
    yield (
        f"**{group.title}**: worst rank of a relevant item, table by table (0 is best; in brackets "
        f"how many are among the {SURVIVORS:,} that go on)\n"
    )
    yield _row(["screen", *columns])
    yield "|---" * (1 + len(columns)) + "|"
    for screen in (design.screens[0] for design in group.designs):
        cells = (", ".join(worst_rank(held, screen, t) for t in done) for done in columns.values())
        yield _row([screen.label, *cells])
    yield ""
