"""What a run says of each feature, ranked."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import UsageError
from srs_ooc.base.records import PAGE_ITEMS, Saved, State, Stateful
from srs_ooc.base.seeds import Purpose, key_of
from srs_ooc.base.text import MB
from srs_ooc.base.urls import Place
from srs_ooc.evidence.tally import LEADING, RankingHistory, Tally, best_items, mean_importance
from srs_ooc.results.feature_record import (
    LEAST_BATCH,
    MOST_BATCH,
    PLACE_NBYTES,
    FeatureRecord,
    VerdictReading,
    explain,
    own_scores,
    record_type_of,
    room_for_order,
)
from srs_ooc.runs.engine import TALLY
from srs_ooc.runs.inputs import check_store, find_store, spec_of
from srs_ooc.runs.ledger import Ledger
from srs_ooc.runs.run_verdict import kept_names
from srs_ooc.runs.spec import RunSpec
from srs_ooc.samplers.srs import KeptSet, SequentialRandomSubspace
from srs_ooc.store.store import Store
from srs_ooc.trees.response import IMPORTANCE_BITS

_PIECE = 1 << 13
MEMBERS_SHOWN = 5


class Reading:
    """What a run's ledger says, read at one commit; the run may be going on.

    Parameters
    ----------
    ledger : Ledger
        Open for reading.
    store : Store
        The run's store.
    cap_nbytes : int, optional
        Cap on the memory of the whole process, where this is the work of a command.
    beside_nbytes : int
        What is made of the ranking takes besides.
    later_nbytes : int
        What follows takes, once the ranking is given back.

    Attributes
    ----------
    n_iterations, n_selected : int
        Iterations read, and features selected by then.
    positions : uint32 (n_features,)
        Source position of each stored feature.
    tally, kept : Tally, KeptSet
        What the iterations taught of each item; the features that entered F.

    Raises
    ------
    RunError
        If the run was not made on this store, or is damaged.
    BudgetError
        If the cap cannot hold the tallies.
    """

    def __init__(
        self,
        ledger: Ledger,
        store: Store,
        cap_nbytes: int | None = None,
        beside_nbytes: int = 0,
        later_nbytes: int = 0,
    ) -> None:
        check_store(ledger, store)
        spec, manifest = spec_of(ledger), store.manifest
        room = None
        if cap_nbytes is not None:
            room = room_for_order(ledger, spec, manifest, cap_nbytes, beside_nbytes, later_nbytes)
        self._batch = LEAST_BATCH if room is None else room // PLACE_NBYTES
        self._has_probe = spec.judge == "probe"
        self._unit = float(spec.learner.trees_per_subspace << IMPORTANCE_BITS)
        # Before the tallies: checking what is read takes memory that is then free again.
        self.positions = np.empty(manifest.n_features, np.uint32)
        with store.unchanged():
            self._names = store.names
            for start, piece in store.pieces("positions"):
                self.positions[start : start + len(piece)] = piece
        self.tally = Tally(spec.n_items(manifest.n_features), wins=not spec.concludes)
        self.kept = KeptSet(manifest.n_features)
        parts: dict[str, Stateful] = {TALLY: self.tally, SequentialRandomSubspace.name: self.kept}
        self.ranks_only = spec.judge == "none"
        self._scores = own_scores(spec, manifest.n_features)
        self.record_type = record_type_of(self._scores)
        if self._scores is not None:
            parts[self._scores.part] = self._scores
        self.n_iterations = ledger.load(parts).iteration
        self._excluded = ledger.input("excluded", "<u4")
        self.verdict = VerdictReading.of(ledger)
        self.is_provisional = spec.concludes and self.verdict is None
        self.n_selected = self.kept.n if self.verdict is None else self.verdict.n_selected

    def ordered(self) -> Iterator[NDArray[np.uint32]]:
        """Yield the stored positions of all features by rank, a batch at a time.

        First those that the verdict puts first, by what they are worth together, the selected ones
        before all others; then by the method's own scores, if it has some; then importance
        descending, features never drawn last, ties by source position. Each batch takes a pass
        over the tallies, so that memory does not grow with the number of features.
        """
        is_past = np.zeros(len(self.positions), np.bool_)
        if self.verdict is not None:
            is_past[self.verdict.order] = True
            yield self.verdict.order
        while len(batch := self._next_batch(is_past)):
            is_past[batch] = True
            yield batch

    def _next_batch(self, is_past: NDArray[np.bool_]) -> NDArray[np.uint32]:
        size = min(max(self._batch, LEAST_BATCH), MOST_BATCH)
        best, scores = np.zeros(0, np.uint32), np.zeros(0)
        worst = np.inf
        for start in range(0, len(is_past), _PIECE):
            piece = slice(start, min(start + _PIECE, len(is_past)))  # not the decoys behind
            found = -self.importances(piece)
            new = np.flatnonzero(~is_past[piece] & (found <= worst))
            best = np.concatenate([best, (start + new).astype(np.uint32)])
            scores = np.concatenate([scores, found[new]])
            if len(best) >= 2 * size:
                best, scores = self._first(best, scores, size)
                worst = float(scores[-1])
        return self._first(best, scores, size)[0]

    def _first(
        self, members: NDArray[np.uint32], scores: NDArray[np.float64], size: int
    ) -> tuple[NDArray[np.uint32], NDArray[np.float64]]:
        order = self._order(members, scores)[:size]
        return members[order], scores[order]

    def _order(self, members: NDArray[np.integer], scores: NDArray[np.float64]) -> NDArray[np.intp]:
        """Return the places of ``members`` by rank; of ``scores`` the least is first."""
        alike = scores if self._scores is None else -mean_importance(self.tally, members)
        return np.lexsort((self.positions[members], alike, scores))

    def top(self, n: int) -> NDArray[np.uint32]:
        """Return the stored positions of the ``n`` features ranked first."""
        batches: list[NDArray[np.uint32]] = []
        for batch in self.ordered():
            batches.append(batch[: n - sum(map(len, batches))])
            if sum(map(len, batches)) >= n:
                break
        return np.concatenate(batches)

    def best(self, limit: int, *, only_selected: bool) -> list[int]:
        """Return the ``limit`` features that :meth:`ordered` yields first.

        Piece by piece, so that a run's last word needs no more memory than the run.
        """
        if self.verdict is not None:
            those = self.verdict.selected() if only_selected else self.verdict.order
            return [int(stored) for stored in those[:limit]]
        best = np.zeros(0, np.int64)
        n_there = self.n_selected if only_selected else len(self.positions)
        for start in range(0, n_there, _PIECE):
            members = np.arange(start, min(start + _PIECE, n_there))
            if only_selected:
                members = self.kept.features[members].astype(np.int64)
            members = np.concatenate([best, members])
            best = members[self._order(members, -self.importances(members))[:limit]]
        return [int(stored) for stored in best]

    def first(self) -> FeatureRecord:
        """Return the line of the feature ranked first."""
        stored = self.best(1, only_selected=False)[0]
        return self.record(1, stored)

    def selected(self) -> NDArray[np.integer]:
        """Return the stored positions of the selected features, best first."""
        if self.verdict is not None:
            return self.verdict.selected()
        members = self.kept.features
        return members[self._order(members, -self.importances(members))]

    def importances(self, features: slice | NDArray[np.integer]) -> NDArray[np.float64]:
        """Return total MDI / trees it could be in, -1 where never drawn; or its own scores."""
        n_drawn = self.tally.n_drawn[features]
        if self._scores is not None:
            return self._scores.ranked_by(n_drawn, features)
        total = self.tally.importance[features] / self._unit
        out = np.full(len(n_drawn), -1.0)
        np.divide(total, n_drawn, out=out, where=n_drawn > 0)
        return out

    def records(self, among: NDArray[np.integer] | None = None) -> Iterator[FeatureRecord]:
        """Yield the lines of features by stored position, all unless given, best first."""
        is_wanted = None
        if among is not None:
            is_wanted = np.zeros(len(self.positions), np.bool_)
            is_wanted[among] = True
            n_left = len(among)
        by_feature = np.argsort(self.kept.features)
        rank = 0
        for batch in self.ordered():
            wanted = np.ones(len(batch), np.bool_) if is_wanted is None else is_wanted[batch]
            places = np.flatnonzero(wanted)
            entered = self._entered(batch[places], by_feature)
            for place, when in zip(places.tolist(), entered.tolist(), strict=True):
                yield self._record(rank + place + 1, int(batch[place]), when or None)
            rank += len(batch)
            if is_wanted is not None and not (n_left := n_left - len(places)):
                return

    def _entered(
        self, features: NDArray[np.uint32], by_feature: NDArray[np.intp]
    ) -> NDArray[np.uint32]:
        """Return after which iteration each entered F; 0 where it did not."""
        if not self.kept.n:
            return np.zeros(len(features), np.uint32)
        places = np.searchsorted(self.kept.features, features, sorter=by_feature)
        places = by_feature[np.minimum(places, self.kept.n - 1)]
        is_in = self.kept.features[places] == features
        return np.where(is_in, self.kept.entered[places], np.uint32(0))

    def record(self, rank: int, stored: int) -> FeatureRecord:
        """Return the line of one stored feature, whose rank is known."""
        place = np.flatnonzero(self.kept.features == stored)
        return self._record(rank, stored, int(self.kept.entered[place[0]]) if len(place) else None)

    def _record(self, rank: int, stored: int, entered: int | None) -> FeatureRecord:
        n_drawn = int(self.tally.n_drawn[stored])
        total = int(self.tally.importance[stored]) / self._unit
        better = int(self.tally.n_better[stored]) if self._has_probe else 0
        standing = None if self.verdict is None else self.verdict.standing(stored)
        is_in = standing is not None and standing.is_selected
        own = {} if self._scores is None else self._scores.fields(n_drawn, stored)
        fields: dict[str, Any] = {
            "name": self.name(stored),
            "rank": rank,
            "selected": entered is not None or is_in,
            "kept": entered is not None,
            "importance": total / n_drawn if n_drawn else None,
            "importance_ensemble": total / self.n_iterations if n_drawn else None,
            "n_drawn": n_drawn,
            "p_better": better / n_drawn if n_drawn and self._has_probe else None,
            "entered": entered,
            "q_value": None if standing is None else standing.q_value,
            "score": None if standing is None else standing.score,
            "stability": None if standing is None else standing.stability,
            "cluster": None if standing is None else standing.cluster,
            "p_value": None if standing is None else standing.p_value,
            "differs_in": None if standing is None else standing.differs_in,
            "passes_alone": None if standing is None else standing.passes_alone,
        }
        return self.record_type(**fields | own)

    def explain(self, name: str) -> str:
        """Say in one plain sentence why the feature called ``name`` is in or out.

        Raises
        ------
        UsageError
            If there is no such feature, or no verdict yet.
        """
        if self.verdict is None:
            raise _no_verdict("--why", ranks_only=self.ranks_only)
        source = int(self._names.find([name])[0])
        if source < 0:
            raise UsageError(f"--why: expected the name of a feature, found {name!r}.")
        stored = int(np.flatnonzero(self.positions == source)[0])
        standing = self.verdict.standing(stored)
        others = []
        if standing is not None and standing.cluster is not None:
            others = [f for f in self.verdict.members(standing.cluster) if f != stored]
        shown = [self.name(other) for other in others[:MEMBERS_SHOWN]]
        n_drawn = int(self.tally.n_drawn[stored])
        is_excluded = self._excluded is not None and stored in self._excluded
        return explain(name, stored, n_drawn, self.verdict, shown, is_excluded=is_excluded)

    def name(self, stored: int) -> str:
        """Return the name of a stored feature."""
        return self._names[int(self.positions[stored])]

    def importance(self, stored: int) -> float:
        """Return a feature's importance, -1 where never drawn."""
        return float(self.importances(slice(stored, stored + 1))[0])


def _no_verdict(option: str, *, ranks_only: bool) -> UsageError:
    if ranks_only:
        return UsageError(
            f"{option}: expected a run with a verdict (--judge decoy), found one that ranks "
            "features and selects none. `srs-ooc features RUN` shows ranks and scores."
        )
    return UsageError(
        f"{option}: expected a run with a final verdict (--judge decoy, iterations done), found "
        "none. Bring the run to its end with `srs-ooc resume`."
    )


# The head of a ranking, from a run's ledger alone: its store may be gone.


def kept_records(ledger: Ledger) -> list[FeatureRecord] | None:
    """Return the lines of the features that the verdict put first, best first.

    Parameters
    ----------
    ledger : Ledger
        Open for reading.

    Returns
    -------
    list of FeatureRecord or None
        None of a run without a verdict.
    """
    verdict, names = VerdictReading.of(ledger), kept_names(ledger)
    if verdict is None or names is None:
        return None
    features = verdict.order[: len(names)]
    if features.tolist() != list(names):
        return None  # of another verdict
    tally = _SomeOfTally(features)
    n_iterations = ledger.load({TALLY: tally}).iteration
    unit = float(spec_of(ledger).learner.trees_per_subspace << IMPORTANCE_BITS)
    return [
        _record(rank, name, verdict, stored, drawn, total / unit, n_iterations)
        for rank, (stored, name, drawn, total) in enumerate(
            zip(names, names.values(), tally.n_drawn.tolist(), tally.importance.tolist(),
                strict=True), 1)
    ]  # fmt: skip


class _SomeOfTally:
    """What a tally holds of a few items, read page by page."""

    def __init__(self, items: NDArray[np.uint32]) -> None:
        self._items = items.astype(np.int64)
        self.importance = np.zeros(len(items), np.int64)
        self.n_drawn = np.zeros(len(items), np.uint32)

    def state(self) -> State:
        """Return nothing: it is only read."""
        return State()

    def restore(self, saved: Saved) -> None:
        """Take the items from the pages they are on."""
        for name, out in (("importance", self.importance), ("n_drawn", self.n_drawn)):
            self._take(saved, name, out)

    def _take(self, saved: Saved, name: str, out: NDArray[Any]) -> None:
        length, pages = saved.length(name), self._items // PAGE_ITEMS
        for page in np.unique(pages).tolist():
            first = page * PAGE_ITEMS
            held = np.zeros(min(PAGE_ITEMS, length - first), out.dtype)
            saved.fill(name, held, page)
            out[pages == page] = held[self._items[pages == page] - first]


def _record(
    rank: int,
    name: str,
    verdict: VerdictReading,
    stored: int,
    n_drawn: int,
    total: float,
    n_iterations: int,
) -> FeatureRecord:
    standing = verdict.standing(stored)
    return FeatureRecord(
        name=name,
        rank=rank,
        selected=standing is not None and standing.is_selected,
        kept=False,
        importance=total / n_drawn if n_drawn else None,
        importance_ensemble=total / n_iterations if n_drawn else None,
        n_drawn=n_drawn,
        p_better=None,
        entered=None,
        q_value=None if standing is None else standing.q_value,
        score=None if standing is None else standing.score,
        stability=None if standing is None else standing.stability,
        cluster=None if standing is None else standing.cluster,
        p_value=None if standing is None else standing.p_value,
        differs_in=None if standing is None else standing.differs_in,
        passes_alone=None if standing is None else standing.passes_alone,
    )


# Two runs side by side: what both select, how alike their rankings are, and what differs.

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


# The course of a run: what was found, or led, after how many iterations, seconds and trees.

POINTS = 500
"""Points at most."""


@dataclass(frozen=True)
class Point:
    """Where a run stood after some iterations.

    Attributes
    ----------
    iterations : int
        Iterations done.
    seconds : float
        Seconds of work until then, between those noted with the commits before and after.
    memory_mb : float
        Memory resident at the next commit, in MB of 10**6 bytes.
    trees : int
        Trees grown.
    found : int or None
        Features in F. With the judge ``decoy``: of the ``leading`` items, the features that the
        verdict selected later; None before the verdict.
    leading : int or None
        Items, features and decoys, that led the ranking and are counted; of the judge ``decoy``.
    decoys : int or None
        Decoys among them; None before the verdict, which alone may read which items are decoys.
    unchanged : int or None
        Those among them that led at the point before, too; None at the first point.
    """

    iterations: int
    seconds: float
    memory_mb: float
    trees: int
    found: int | None
    leading: int | None
    decoys: int | None
    unchanged: int | None


def history_of(ledger: Ledger, reading: Reading) -> list[Point]:
    """Return the course of a run up to the iterations that ``reading`` knows.

    Parameters
    ----------
    ledger : Ledger
        Open for reading.
    reading : Reading
        Of the same run.

    Returns
    -------
    list of Point
        By iterations, at most ``POINTS``. A run that was begun before leading items were kept has
        only those of its later iterations.
    """
    spec = spec_of(ledger)
    key = key_of(spec.seed, Purpose.RANK_TIE)
    found = _led(ledger, reading, key) if spec.concludes else _entered(reading)
    commits = np.array([(0, 0, 0, 0), *ledger.history()], np.float64)
    points = []
    for iterations, counts in found:
        after = min(int(np.searchsorted(commits[:, 0], iterations)), len(commits) - 1)
        points.append(
            Point(
                iterations,
                round(float(np.interp(iterations, commits[:, 0], commits[:, 2])), 3),
                round(float(commits[after, 3]) / MB, 1),
                iterations * spec.learner.trees_per_subspace,
                *counts,
            )
        )
    return points


_Counts = tuple[int | None, int | None, int | None, int | None]


def _entered(reading: Reading) -> list[tuple[int, _Counts]]:
    """Return the size of F whenever it grew, and in the end."""
    at, entered = np.unique(reading.kept.entered.astype(np.int64), return_counts=True)
    places = np.unique(np.linspace(0, len(at) - 1, min(len(at), POINTS - 2)).astype(int))
    sizes = dict(zip(at[places].tolist(), np.cumsum(entered)[places].tolist(), strict=True))
    sizes = {0: 0} | sizes | {reading.n_iterations: reading.kept.n}
    return [(iterations, (size, None, None, None)) for iterations, size in sizes.items()]


def _led(ledger: Ledger, reading: Reading, key: int) -> list[tuple[int, _Counts]]:
    """Return what the items that led were, at the points that were kept and in the end."""
    points: dict[int, NDArray[np.uint32]] = {}
    if (kept := ledger.read_arrays(RankingHistory.name)) is not None:
        points = dict(zip(kept["iterations"].tolist(), kept["items"], strict=True))
    if reading.n_iterations:
        points[reading.n_iterations] = best_items(reading.tally, LEADING, key)
    found: list[tuple[int, _Counts]] = []
    before: NDArray[np.uint32] | None = None
    for iterations, items in points.items():
        if iterations <= reading.n_iterations:  # one that goes on may be ahead
            stayed = None if before is None else int(np.isin(items, before).sum())
            found.append((iterations, (*_named(items, reading), stayed)))
            before = items
    return found


def _named(
    items: NDArray[np.uint32], reading: Reading
) -> tuple[int | None, int | None, int | None]:
    """Return selected features, items and decoys of some; before the verdict only items."""
    if reading.verdict is None:
        return None, len(items), None
    n_selected = int(np.isin(items, reading.verdict.selected()).sum())
    return n_selected, len(items), int(np.count_nonzero(items >= len(reading.positions)))


# What a run says of all features, as arrays in the order of the table.


@dataclass(frozen=True)
class FeatureArrays:
    """One value a feature, in the order of the table's columns.

    Attributes
    ----------
    selected : bool (n_features,)
        Whether it is selected.
    ranking : int64 (n_features,)
        Its rank, from 1.
    importance : float64 (n_features,)
        Mean decrease in impurity over the trees on subspaces it was in; 0 if it was in none.
    q_values : float64 (n_features,) or None
        Smallest level at which it would be selected; NaN where it did not reach the closing stage.
        None without a final verdict.
    """

    selected: NDArray[np.bool_]
    ranking: NDArray[np.int64]
    importance: NDArray[np.float64]
    q_values: NDArray[np.float64] | None


def arrays_of(reading: Reading) -> FeatureArrays:
    """Return what a reading says of all features."""
    positions = reading.positions
    n = len(positions)
    selected, ranking = np.zeros(n, np.bool_), np.empty(n, np.int64)
    selected[positions[reading.selected()]] = True
    done = 0
    for batch in reading.ordered():
        ranking[positions[batch]] = np.arange(done + 1, done + 1 + len(batch))
        done += len(batch)
    importance = np.empty(n)
    importance[positions] = np.maximum(reading.importances(slice(0, n)), 0.0)
    return FeatureArrays(selected, ranking, importance, _q_values(reading))


def _q_values(reading: Reading) -> NDArray[np.float64] | None:
    if reading.verdict is None:
        return None
    q_values = np.full(len(reading.positions), np.nan)
    for stored in reading.verdict.features.tolist():
        standing = reading.verdict.standing(stored)
        if standing is not None:
            q_values[reading.positions[stored]] = standing.q_value
    return q_values


def best(reading: Reading, n: int) -> NDArray[np.bool_]:
    """Return which features are the first ``n`` by rank; bool (n_features,)."""
    found = np.zeros(len(reading.positions), np.bool_)
    found[reading.positions[reading.top(n)]] = True
    return found
