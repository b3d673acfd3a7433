"""The tables of what was tried, from what is in the cache."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from statistics import mean

import numpy as np
from selection_parts.report import standard_error
from selection_parts.scores import Scores, Truth, score

from designs_parts.cache import ArrayCache, TableKey
from designs_parts.catalogue import Design, Group, Ranked
from designs_parts.cuts import LEVEL, Ranking
from designs_parts.screens import Screen
from designs_parts.steps import FACTS, MARGINAL
from srs_ooc.samplers.elimination import SURVIVORS

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
