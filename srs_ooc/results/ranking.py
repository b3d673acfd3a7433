"""What a run says of each feature, ranked."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import UsageError
from srs_ooc.base.records import Stateful
from srs_ooc.evidence.tally import Tally, mean_importance
from srs_ooc.results.feature_record import FeatureRecord
from srs_ooc.results.method_scores import own_scores, record_type_of
from srs_ooc.results.reading_memory import (
    LEAST_BATCH,
    MOST_BATCH,
    PLACE_NBYTES,
    room_for_order,
)
from srs_ooc.results.verdict import VerdictReading, explain
from srs_ooc.runs.engine import TALLY
from srs_ooc.runs.inputs import check_store, spec_of
from srs_ooc.runs.ledger import Ledger
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
