"""What a run says of each feature, ranked."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from math import lgamma, log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.arrays import Bools, Floats, Indices, Integers, Ints, Uints32
from srs_ooc.base.budget import Budget
from srs_ooc.base.errors import RunError, UsageError
from srs_ooc.base.records import Stateful
from srs_ooc.base.text import MB, ceil_div, counted
from srs_ooc.base.urls import Place
from srs_ooc.evidence.rank_tests import Contrast, RankTarget, strongest_contrasts
from srs_ooc.evidence.tally import ModelScores, mean_importance
from srs_ooc.learners.tree_learner import UNWEIGHTED
from srs_ooc.results import feature_record
from srs_ooc.results.feature_record import PartReader, ScoredRecord, explain
from srs_ooc.runs.halves import halves_of
from srs_ooc.runs.run import Run
from srs_ooc.runs.run_memory import LEDGER_NBYTES
from srs_ooc.runs.verdict import LINES, FeatureRecord, Lines, Verdict, none_if_nan
from srs_ooc.samplers.srs import KeptSet, SequentialRandomSubspace
from srs_ooc.store.manifest import CONSTANT, Manifest
from srs_ooc.store.store import Store

_PIECE = 1 << 13
MEMBERS_SHOWN = 5
LEAST_BATCH, MOST_BATCH = 1 << 14, 1 << 20
"""Features that are ordered at a time."""
Scores = Callable[[Integers, slice | Integers], tuple[Floats, Floats | None]]
"""Returns a run's own scores of features drawn so often, NaN where there are none, and errors."""


class Ranking(Lines):
    """What a run's ledger says, read at one commit; the run may be going on.

    Parameters
    ----------
    ledger : Run
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
    n_selected : int
        Features selected by the iterations read.
    kept : KeptSet
        The features that entered F.

    Raises
    ------
    RunError
        If the run was not made on this store, or is damaged.
    BudgetError
        If the cap cannot hold the tallies.
    """

    def __init__(
        self,
        ledger: Run,
        store: Store,
        cap_nbytes: int | None = None,
        beside_nbytes: int = 0,
        later_nbytes: int = 0,
    ) -> None:
        ledger.check_store(store)
        spec, manifest = ledger.spec, store.manifest
        room = None
        if cap_nbytes is not None:
            budget = Budget(cap_nbytes, later_nbytes=later_nbytes)
            room = _room_for_order(budget, ledger, manifest.n_features, beside_nbytes)
        self._batch = LEAST_BATCH if room is None else room // PLACE_NBYTES
        self._has_probe = spec.run.judge == "probe"
        self.kept = KeptSet(manifest.n_features)
        parts: dict[str, Stateful] = {SequentialRandomSubspace.name: self.kept}
        self.ranks_only, self._spec = spec.run.judge == "none", spec
        self._scores: Scores | None = None
        if part := spec.method.ranks_by:
            scores = np.zeros(manifest.n_features)
            parts[part] = PartReader(lambda saved: saved.fill("score", scores))
            self._scores = lambda _, features: (scores[features], None)
        elif (models := spec.learner.model_scores(manifest.n_features)) is not None:
            parts[ModelScores.name], self._scores = models, models.scores
        kind = ScoredRecord if ModelScores.name in parts else FeatureRecord
        self.record_type, self._titles = feature_record.with_columns(kind, manifest.feature_columns)
        super().__init__(ledger, store, parts)
        self._excluded, self.halves = ledger.input("excluded", "<u4"), halves_of(ledger)
        self.is_provisional = spec.concludes and self.verdict is None
        self.n_selected = self.kept.n if self.verdict is None else self.verdict.n_selected

    def ordered(self) -> Iterator[Uints32]:
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
        size = min(max(self._batch, LEAST_BATCH), MOST_BATCH)
        while not is_past.all():
            batch = self._first((some[~is_past[some]] for some in _pieces(len(is_past))), size)
            is_past[batch] = True
            yield batch

    def _first(self, pieces: Iterable[Uints32], count: int) -> Uints32:
        """Return the ``count`` best of features that come piece by piece, best first."""
        best, scores, worst = np.zeros(0, np.uint32), np.zeros(0), np.inf
        for members in pieces:
            found = -self.importances(members)
            best = np.concatenate([best, members[found <= worst]])
            scores = np.concatenate([scores, found[found <= worst]])
            if len(best) >= 2 * count:
                order = self._order(best, scores)[:count]
                best, scores = best[order], scores[order]
                worst = float(scores[-1])
        return best[self._order(best, scores)[:count]]

    def _order(self, members: Integers, scores: Floats) -> Indices:
        """Return the places of ``members`` by rank; of ``scores`` the least is first."""
        alike = scores if self._scores is None else -mean_importance(self.tally, members)
        return np.lexsort((self.positions[members], alike, scores))

    def top(self, n: int) -> Uints32:
        """Return the stored positions of the ``n`` features ranked first."""
        return np.fromiter(islice(chain.from_iterable(self.ordered()), n), np.uint32)

    def selected(self, limit: int | None = None) -> Integers:
        """Return the stored positions of the selected features, best first; only so many.

        Piece by piece, so that a run's last word needs no more memory than the run.
        """
        if self.verdict is not None:
            return self.verdict.selected()[:limit]
        pieces = (self.kept.features[some] for some in _pieces(self.kept.n))
        return self._first(pieces, self.kept.n if limit is None else limit)

    def importances(self, features: slice | Integers) -> Floats:
        """Return total MDI / trees it could be in, -1 where never drawn; or its own scores."""
        n_drawn = self.tally.n_drawn[features]
        if self._scores is not None:
            found = self._scores(n_drawn, features)[0]
            return np.where(np.isnan(found), -np.inf, found)
        total = self.tally.importance[features] / self._unit
        out = np.full(len(n_drawn), -1.0)
        np.divide(total, n_drawn, out=out, where=n_drawn > 0)
        return out

    def records(self, among: Integers | None = None) -> Iterator[FeatureRecord]:
        """Yield the lines of features by stored position, all unless given, best first."""
        is_wanted = np.zeros(len(self.positions), np.bool_)
        is_wanted[slice(None) if among is None else among] = True
        n_left = int(np.count_nonzero(is_wanted))
        by_feature = np.argsort(self.kept.features)
        rank = 0
        for batch in self.ordered():
            places = np.flatnonzero(is_wanted[batch])
            entered = self._entered(batch[places], by_feature)
            for place, when in zip(places.tolist(), entered.tolist(), strict=True):
                stored = int(batch[place])
                further = {"selected": True, "kept": True, "entered": when} if when else {}
                line = self.record(rank + place + 1, stored, **further)
                at = [int(self.positions[stored])]
                for cells in self._store.feature_cells(at) if self._titles else ():
                    shown = (cell or None for cell in cells)
                    vars(line).update(zip(self._titles, shown, strict=True))
                yield line
            rank += len(batch)
            if not (n_left := n_left - len(places)):
                return

    def _entered(self, features: Uints32, by_feature: Indices) -> Uints32:
        """Return after which iteration each entered F; 0 where it did not."""
        if not self.kept.n:
            return np.zeros(len(features), np.uint32)
        places = np.searchsorted(self.kept.features, features, sorter=by_feature)
        places = by_feature[np.minimum(places, self.kept.n - 1)]
        is_in = self.kept.features[places] == features
        return np.where(is_in, self.kept.entered[places], np.uint32(0))

    def record(self, rank: int, stored: int, **further: Any) -> FeatureRecord:
        """Return the line of one stored feature, whose rank is known."""
        n_drawn = int(self.tally.n_drawn[stored])
        if self._has_probe and n_drawn:
            further["p_better"] = int(self.tally.n_better[stored]) / n_drawn
        if self._scores is not None:
            score, error = self._scores(np.array([n_drawn]), np.array([stored]))
            further["score"] = none_if_nan(score[0])
            if error is not None:
                further["standard_error"] = none_if_nan(error[0])
        if self.halves is not None:
            further["halves"] = self.halves.share(stored)
        return super().record(rank, stored, **further)

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
        if self._store.kinds()[stored] == CONSTANT:
            return f"{name} is out: its values are all the same, or missing."
        shown = [self.name(other) for other in self.verdict.cluster_of(stored)[:MEMBERS_SHOWN]]
        record = next(self.records(np.array([stored])))
        is_out = self._excluded is not None and stored in self._excluded
        return explain(record, self._spec.fdr, shown, is_out=is_out)

    @property
    def n_candidates(self) -> int:
        """Features that could be drawn."""
        return len(self.positions) - (0 if self._excluded is None else len(self._excluded))

    def mask(self, stored: Integers) -> Bools:
        """Return which columns of the table some stored features are."""
        found = np.zeros(len(self.positions), np.bool_)
        found[self.positions[stored]] = True
        return found

    def ranks(self) -> Ints:
        """Return the rank of each column of the table, from 1."""
        ranks = np.empty(len(self.positions), np.int64)
        done = 0
        for batch in self.ordered():
            ranks[self.positions[batch]] = np.arange(done + 1, done + 1 + len(batch))
            done += len(batch)
        return ranks


def _pieces(n: int) -> Iterator[Uints32]:
    """Yield the places of ``n`` features, some at a time."""
    for start in range(0, n, _PIECE):
        yield np.arange(start, min(start + _PIECE, n), dtype=np.uint32)


def _no_verdict(option: str, *, ranks_only: bool) -> UsageError:
    if ranks_only:
        return UsageError(
            f"{option}: expected a run with a verdict (--judge tests), found one that ranks "
            "features and selects none. `srs-ooc features RUN` shows ranks and scores."
        )
    return UsageError(
        f"{option}: expected a run with a final verdict (--judge tests, iterations done), found "
        "none. Bring the run to its end with `srs-ooc resume`."
    )


# What a run's end, its list and its report warn of alike: first of leading features that are too
# good to be true, as a copy of the target, or what numbers the rows.

LEADING, MOST_ROWS = 10, 1 << 14
SURE = 6
"""Minus the decimal logarithm of the p-value from which rows are said to be in order."""


def grave_cautions(reading: Ranking, ledger: Run, store: Store) -> list[tuple[str, str]]:
    """Return what a run's end, its list and its report warn of alike: what is so, what to do."""
    verdict, spec, given = reading.verdict, ledger.spec, store.manifest.row_columns
    contrasts = np.empty(0, np.uint8) if verdict is None else verdict.best["differs_in"]
    n, n_absent = len(contrasts), int(np.count_nonzero(contrasts == Contrast.ABSENCE))
    more = {} if verdict is None else feature_record.lambda_cautions(verdict)
    more |= {
        "Most of what is selected differs in what is missing": (
            2 * n_absent > n,
            f"{n_absent:,} of {counted(n, 'selected feature')}. If cells are missing by how rows "
            "were measured, give that as --strata at ingest, or say --exclude-missing.",
        ),
        "More than a fifth of all features are selected": (
            n > max(reading.n_candidates / 5, LEADING),
            f"{n:,} of {reading.n_candidates:,}. If rows differ in what most features follow (a "
            "batch, a site, sex, age), give it as --covariates at ingest, and `run --adjust all`.",
        ),
        "Weights play no part in the tests": (
            spec.concludes and ("weights" in given or spec.learner.class_weight != UNWEIGHTED),
            "Trees weigh rows; the tests and the level take all rows as equal. What weights make "
            "up for may be selected: give what they depend on as --covariates at ingest, and "
            "`run --adjust all`.",
        ),
    }
    found = _of_leading(reading, ledger, store)
    if verdict is not None and (note := verdict.facts.get("groups")):
        found.append(("Not all groups are permuted together", f"{note[0].upper()}{note[1:]}."))
    return [*found, *((title, text) for title, (is_so, text) in more.items() if is_so)]


def _of_leading(reading: Ranking, ledger: Run, store: Store) -> list[tuple[str, str]]:
    """Return warnings, if leading features tell the target, count up or drift with the rows.

    Looked at are the first of the selected features, or of a ranking, in some of many rows.
    """
    leading = reading.top(LEADING) if reading.ranks_only else reading.selected(LEADING)
    if not len(leading):
        return []
    given, manifest, found = ledger.input("rows", "<i4"), store.manifest, []
    n_rows = store.n_rows if given is None else len(given)
    rows = np.arange(0, n_rows, ceil_div(n_rows, MOST_ROWS), dtype=np.int32)
    rows, target = rows if given is None else given[rows], np.empty(len(rows))
    with store.unchanged(), store.columns(mapped=False) as stored_columns:
        columns = stored_columns.codes(leading, rows)
        for start, piece in store.pieces("target" if manifest.classes else "target_values"):
            here = (rows >= start) & (rows < start + len(piece))
            target[here] = piece[rows[here] - start]
    least = log(1000 * store.n_features)  # else chance is as good more often than in 0.1%
    drifting, drifts = [], _drifting(columns, target, manifest).tolist()
    for stored, column, is_drift in zip(leading.tolist(), columns, drifts, strict=True):
        codes, name = column.astype(np.int64), repr(reading.name(stored))
        groups, values = (target, codes) if manifest.classes else (codes, target)
        if _apart(groups, values, least, sort=bool(manifest.classes)):
            found.append(f"{name} alone tells the target of each row looked at")
        elif 2 * len(set(codes.tolist())) > min(len(rows), 254) and _apart(codes, rows, least):
            found.append(f"{name} rises or falls from row to row")
        elif is_drift:
            drifting.append(name)
    text = f"{'; '.join(found)}. If it is a copy of the target, or numbers the rows, leave it out"
    cautions = [("Too good to be true", f"{text} with --exclude.")] if found else []
    if drifting:
        text = (
            f"Classes follow the order of rows, and within each class so does {', '.join(drifting)}"
            ". If days, plates or a drift do so too, give them as --strata at ingest."
        )
        cautions.append(("Rows are in order", text))
    elif not manifest.classes and _in_order(target > np.median(target), 2, manifest):
        text = (
            "The target follows the order of rows. If they were measured so, what drifts "
            "goes with it: give days or plates as --strata or --covariates at ingest. If they were "
            "sorted later, nothing is wrong."
        )
        cautions.append(("Rows are in order", text))
    return cautions


def _in_order(classes: NDArray[Any], n_classes: int, manifest: Manifest) -> bool:
    """Tell whether classes surely follow the rows, where neither strata nor groups were given."""
    if not manifest.row_columns.keys().isdisjoint(("strata", "groups")):
        return False
    rows = np.arange(len(classes), dtype=np.uint16)[None]
    tested = RankTarget.of_classes(classes.astype(np.int64), n_classes)
    return bool(strongest_contrasts(rows, rows.size, tested)[0] >= SURE)


def _drifting(columns: NDArray[Any], target: NDArray[Any], manifest: Manifest) -> Bools:
    """Tell which columns rise or fall with the rows within each class, where classes do so too.

    Not looked for with numbers as targets, of which there is no part without an order, nor where
    strata or groups of rows were given.
    """
    if manifest.classes and _in_order(target, len(manifest.classes), manifest):
        within = RankTarget.of_values(np.arange(float(len(target))), target.astype(np.int64))
        only, missing = Contrast.LOCATION, manifest.missing_code
        return strongest_contrasts(columns, missing, within, only=only)[0] >= SURE
    return np.zeros(len(columns), np.bool_)


def _apart(groups: NDArray[Any], values: NDArray[Any], least: float, *, sort: bool = False) -> bool:
    """Tell whether the values of each group lie above those of the one before, or all below.

    Groups may be sorted by their values first. Never where values can be dealt to groups of these
    sizes in fewer ways than exp(``least``).
    """
    order = np.lexsort((values, groups))
    firsts = np.flatnonzero(np.diff(groups[order], prepend=np.nan))
    sizes = np.diff(firsts, append=len(order)).tolist()
    low, high = values[order[firsts]], values[order[firsts + sizes - 1]]
    if sort:
        low, high = np.sort(low), np.sort(high)
    ways = lgamma(len(order) + 1) - sum(lgamma(size + 1) for size in sizes)
    return ways > least and bool((high[:-1] < low[1:]).all() or (low[:-1] > high[1:]).all())


# The head of a ranking, from a run's ledger alone: its store may be gone.


def kept_records(ledger: Run) -> dict[int, FeatureRecord] | None:
    """Return the lines of the features that the verdict put first by stored position, best first.

    None of a run without a verdict, or of one that a version made which kept no lines.

    Raises
    ------
    RunError
        If the run is of another version.
    """
    verdict = Verdict.of(ledger) if ledger.spec.concludes else None
    if verdict is None or not ledger.has_meta(LINES):
        return None
    (titles, *lines), halves = ledger.meta(LINES), halves_of(ledger)
    records = {}
    for stored, line in zip(verdict.order.tolist(), lines, strict=False):
        record = FeatureRecord(**dict(zip(titles, line, strict=True)))
        records[stored] = replace(record, halves=halves.share(stored) if halves else None)
    return records


def kept_reason(ledger: Run, name: str, missing: str) -> str:
    """Say as :meth:`Ranking.explain` why a feature that the verdict put first is in or out.

    Raises
    ------
    UsageError
        If there is no verdict.
    RunError
        Beginning with what is ``missing``, if the feature is another one.
    """
    verdict, kept = Verdict.of(ledger), kept_records(ledger) or {}
    if verdict is None:
        raise _no_verdict("--why", ranks_only=ledger.spec.run.judge == "none")
    for stored, record in kept.items():
        if record.name == name:
            shown = [kept[o].name for o in verdict.cluster_of(stored) if o in kept]
            fdr = ledger.spec.fdr
            return explain(record, fdr, shown[:MEMBERS_SHOWN], is_out=False)  # it was drawn
    raise RunError(
        f"{missing} --why without a store knows only the features that the verdict put first: "
        "`srs-ooc features RUN` shows them."
    )


# Two runs side by side: what both select, how alike their rankings are, and what differs.

COMPARED = 1000
"""Features of the head of each ranking whose ranks are compared."""
NAMED = 10


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


def compare(
    ledgers: Sequence[Run],
    stores: Sequence[Place | None] = (None, None),
    cap_nbytes: int | None = None,
) -> Comparison:
    """Compare two runs, features by name; they are read one after the other.

    Raises
    ------
    RunError, StoreError, BudgetError
        If a run or its store cannot be read, or not under the cap.
    """
    specs = [ledger.spec.to_json() for ledger in ledgers]
    values = {n: [spec.get(n) for spec in specs] for n in dict.fromkeys([*specs[0], *specs[1]])}
    sides = zip(ledgers, stores, strict=True)
    found = [_named(ledger, store, cap_nbytes) for ledger, store in sides]
    n_iterations, are_provisional, selected, ranks = zip(*found, strict=True)
    both, either = selected[0] & selected[1], selected[0] | selected[1]
    ranked = sorted(ranks[0].keys() & ranks[1].keys())
    return Comparison(
        ledgers[0].spec.store == ledgers[1].spec.store,
        {name: pair for name, pair in values.items() if pair[0] != pair[1]},
        list(n_iterations),
        list(map(len, selected)),
        len(both),
        len(both) / len(either) if either else None,
        len(ranked),
        _spearman([ranks[0][name] for name in ranked], [ranks[1][name] for name in ranked]),
        _best(selected[0] - selected[1], ranks[0]),
        _best(selected[1] - selected[0], ranks[1]),
        any(are_provisional),
    )


def _named(
    ledger: Run, store: Place | None, cap_nbytes: int | None
) -> tuple[int, bool, set[str], dict[str, int]]:
    """Return iterations, whether a verdict is to come, what is selected, ranks of the first."""
    ranking = Ranking(ledger, ledger.find_store(store), cap_nbytes, _NAMES_NBYTES)
    selected = [] if ranking.is_provisional or ranking.ranks_only else ranking.selected().tolist()
    first = ranking.top(min(COMPARED, len(ranking.positions))).tolist()
    ranks = {ranking.name(int(stored)): rank + 1 for rank, stored in enumerate(first)}
    names = {ranking.name(int(stored)) for stored in selected}
    return ranking.n_iterations, ranking.is_provisional, names, ranks


def _best(only: set[str], ranks: dict[str, int]) -> list[str]:
    return sorted(only, key=lambda name: (ranks.get(name, COMPARED + 1), name))[:NAMED]


def _spearman(first: list[int], second: list[int]) -> float | None:
    """Return the correlation of the orders of two lists without ties, from whole numbers."""
    n = len(first)
    if n < 2:
        return None
    places = [{rank: i for i, rank in enumerate(sorted(ranks))} for ranks in (first, second)]
    apart = sum((places[0][a] - places[1][b]) ** 2 for a, b in zip(first, second, strict=True))
    return 1.0 - 6 * apart / (n * (n * n - 1))


# The memory that reading a run takes: for its ranking, and for what is made of it.

READING_NBYTES = 6 * MB
"""Allowance for the verdict and the lines on their way."""
PLACE_NBYTES = 2 * 64
"""Memory of a feature of a batch: twice as many, with scores, are sorted at a time."""
_NAMES_NBYTES = 10 * MB
"""Allowance for the names that two runs select."""


def _room_for_order(budget: Budget, ledger: Run, n_features: int, beside_nbytes: int) -> int:
    """Return what the cap leaves for ordering features, having checked that it holds the rest."""
    spec, n, n_kept = ledger.spec, n_features, ledger.progress().n_kept
    tally = (12 if spec.concludes else 16) * n
    by_model = 0 if spec.learner.model_scores(0) is None else 16
    scores = (8 if spec.method.ranks_by else by_model) * n
    verdict = READING_NBYTES if spec.concludes else 0
    budget.grant(f"counts of {n} features", tally + scores + 6 * n + 32 * n_kept)
    budget.grant("the run's record", LEDGER_NBYTES)
    budget.grant("what is made of it", beside_nbytes)
    budget.grant("verdict and order", verdict + LEAST_BATCH * PLACE_NBYTES)
    budget.check()
    return budget.free_nbytes
