"""Two runs side by side: what both select, how alike their rankings are, and what differs."""

from dataclasses import dataclass
from typing import Any

from srs_ooc.base.text import MB
from srs_ooc.base.urls import Place
from srs_ooc.results.ranking import Reading
from srs_ooc.runs.inputs import find_store, spec_of
from srs_ooc.runs.ledger import Ledger
from srs_ooc.runs.spec import RunSpec

COMPARED = 1000
"""Features of the head of each ranking whose ranks are compared."""
NAMED = 10
_NAMES_NBYTES = 10 * MB
"""Allowance for the names that two runs select."""


@dataclass(frozen=True)
class Side:
    """What is compared of one run: its identity, selection, and the ranks of its first features."""

    spec: RunSpec
    n_iterations: int
    is_provisional: bool
    selected: set[str]
    ranks: dict[str, int]


@dataclass(frozen=True)
class Comparison:
    """How two runs compare.

    Attributes
    ----------
    same_store : bool
        Whether they are runs on one store.
    differences : dict of str to list
        Options that differ, with the value of each run; None where a run has no such option.
    n_iterations, n_selected : list of int
        Of each run.
    n_both : int
        Features that both select, by name.
    jaccard : float or None
        Those over the features that either selects; None if none does.
    n_ranked : int
        Features among the first of both rankings.
    rank_correlation : float or None
        Spearman's, of their ranks; None of fewer than two.
    only_first, only_second : list of str
        The best features that only one of them selects.
    is_provisional : bool
        Whether a verdict is still to come.
    """

    same_store: bool
    differences: dict[str, list[Any]]
    n_iterations: list[int]
    n_selected: list[int]
    n_both: int
    jaccard: float | None
    n_ranked: int
    rank_correlation: float | None
    only_first: list[str]
    only_second: list[str]
    is_provisional: bool


def side_of(ledger: Ledger, store: Place | None = None, cap_nbytes: int | None = None) -> Side:
    """Read one side of a comparison, in bounded memory.

    Raises
    ------
    RunError, StoreError, BudgetError
        If the run or its store cannot be read, or not under the cap.
    """
    reading = Reading(ledger, find_store(ledger, store), cap_nbytes, _NAMES_NBYTES)
    selected = [] if reading.is_provisional or reading.ranks_only else reading.selected().tolist()
    first = reading.top(min(COMPARED, len(reading.positions))).tolist()
    ranks = {reading.name(int(stored)): rank + 1 for rank, stored in enumerate(first)}
    names = {reading.name(int(stored)) for stored in selected}
    return Side(spec_of(ledger), reading.n_iterations, reading.is_provisional, names, ranks)


def compare(first: Side, second: Side) -> Comparison:
    """Compare two runs, features by name."""
    both = first.selected & second.selected
    either = first.selected | second.selected
    ranked = sorted(first.ranks.keys() & second.ranks.keys())
    return Comparison(
        first.spec.store == second.spec.store,
        _differences(first.spec, second.spec),
        [first.n_iterations, second.n_iterations],
        [len(first.selected), len(second.selected)],
        len(both),
        len(both) / len(either) if either else None,
        len(ranked),
        _spearman([first.ranks[n] for n in ranked], [second.ranks[n] for n in ranked]),
        _best(first, second.selected),
        _best(second, first.selected),
        first.is_provisional or second.is_provisional,
    )


def _differences(first: RunSpec, second: RunSpec) -> dict[str, list[Any]]:
    sides = [spec.facts() for spec in (first, second)]
    names = list(dict.fromkeys([*sides[0], *sides[1]]))
    values = {name: [side.get(name) for side in sides] for name in names}
    return {name: pair for name, pair in values.items() if pair[0] != pair[1]}


def _best(side: Side, others: set[str]) -> list[str]:
    only = side.selected - others
    return sorted(only, key=lambda name: (side.ranks.get(name, COMPARED + 1), name))[:NAMED]


def _spearman(first: list[int], second: list[int]) -> float | None:
    """Return the correlation of the orders of two lists without ties, from whole numbers."""
    n = len(first)
    if n < 2:
        return None
    places = [{rank: i for i, rank in enumerate(sorted(ranks))} for ranks in (first, second)]
    apart = sum((places[0][a] - places[1][b]) ** 2 for a, b in zip(first, second, strict=True))
    return 1.0 - 6 * apart / (n * (n * n - 1))
