"""Bringing a run to its verdict, and the verdict as the ledger keeps it.

Only here is it read what is a decoy. What is selected is ordered by what it is worth together, and
its names are kept, so that a verdict can be read without the store.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.budget import peak_resident_nbytes
from srs_ooc.base.options import exact_share
from srs_ooc.base.records import Stateful
from srs_ooc.base.seeds import Purpose, key_of
from srs_ooc.evidence.correlation import HEAD, RankColumns, mrmr_order, sampled_rows
from srs_ooc.evidence.judges import VERSIONS
from srs_ooc.evidence.rank_tests import p_values_of
from srs_ooc.evidence.tally import Tally, largest, mean_importance
from srs_ooc.evidence.verdict import Verdict, certify, count_decoys, passing_level
from srs_ooc.runs.engine import TALLY
from srs_ooc.runs.inputs import spec_of
from srs_ooc.runs.ledger import Ledger
from srs_ooc.runs.resources import Resources, RunContext, item_columns
from srs_ooc.runs.run_trees import TreeWriter
from srs_ooc.runs.screening import screen_and_close
from srs_ooc.runs.spec import RunSpec
from srs_ooc.runs.survey import Survey, bests_of_permutation_runs, survey
from srs_ooc.samplers.elimination import Elimination
from srs_ooc.samplers.srs import KeptSet, SequentialRandomSubspace
from srs_ooc.store.store import Store

# The verdict of a run as the ledger keeps it: packed and unpacked here, and nowhere else.

VERDICT = "verdict"
"""Name of the ledger's arrays with the verdict."""


@dataclass(frozen=True)
class VerdictRecord:
    """What is known of each feature of the pooled ranking, by place, and the order to show.

    Attributes
    ----------
    n_iterations : int
        Iterations of the screen that the verdict follows.
    features : uint32 (n,)
        Stored positions; marginally significant ones first, then those of the closing stage.
    is_selected : bool (n,)
        Whether the feature is above the cut.
    levels : float64 (n,)
        q-values.
    scores : float64 (n,)
        Mean importance in the last round of the closing stage, in units of ``2**-36``; NaN if none.
    is_outstanding : bool (n,)
        Whether it is there by its marginal test.
    is_best : bool (n,)
        Whether no decoy of it is above.
    stability : float64 (n,)
        Share of batches of trees that agree; NaN where not defined.
    groups : int32 (n,)
        Cluster of rank-correlated items; -1 where not looked at.
    p_values : float64 (n,)
        Of the marginal tests.
    contrasts : uint8 (n,)
        What these saw (:class:`srs_ooc.evidence.rank_tests.Contrast`).
    order : uint32 (m,)
        Stored positions of the features to show first.
    """

    n_iterations: int
    features: NDArray[np.uint32]
    is_selected: NDArray[np.bool_]
    levels: NDArray[np.float64]
    scores: NDArray[np.float64]
    is_outstanding: NDArray[np.bool_]
    is_best: NDArray[np.bool_]
    stability: NDArray[np.float64]
    groups: NDArray[np.int32]
    p_values: NDArray[np.float64]
    contrasts: NDArray[np.uint8]
    order: NDArray[np.uint32]

    def write(self, ledger: Ledger) -> None:
        """Keep the record in one transaction."""
        arrays = {field.name: np.asarray(getattr(self, field.name)) for field in fields(self)}
        ledger.write_arrays(VERDICT, arrays)

    @classmethod
    def read(cls, ledger: Ledger) -> Self | None:
        """Return the record, or None if there is none."""
        arrays = ledger.read_arrays(VERDICT)
        if arrays is None:
            return None
        known: dict[str, Any] = arrays | {"n_iterations": int(arrays["n_iterations"])}
        return cls(**{field.name: known[field.name] for field in fields(cls)})


# What a small set is chosen from: the selected features of a run, or its best-ranked ones.

MOST = 30_000
"""Candidates at most: those of the largest importance."""
WANTED = 200
"""Candidates at least: where fewer are selected, the best of the others are added."""


@dataclass(frozen=True)
class Candidates:
    """Features by importance: the selected ones, then the others.

    Attributes
    ----------
    features : uint32 (n,)
        Stored positions, the most important first, but selected ones before all others.
    is_selected : bool (n,)
        Whether the run selected them.
    n_selected : int
        How many features the run selected.
    """

    features: NDArray[np.uint32]
    is_selected: NDArray[np.bool_]
    n_selected: int

    @classmethod
    def of_run(cls, ledger: Ledger, n_features: int, wanted: int = WANTED) -> "Candidates":
        """Return the candidates of a run that is done."""
        spec = spec_of(ledger)
        tally, kept = tally_of(spec, n_features), KeptSet(n_features)
        parts: dict[str, Stateful] = {TALLY: tally}
        if not spec.concludes:
            parts[SequentialRandomSubspace.name] = kept
        ledger.load(parts)
        selected = kept.features.copy()
        if spec.concludes:
            record = VerdictRecord.read(ledger)
            assert record is not None, "the run is done"
            selected = record.features[record.is_selected]
        found, n_first = by_importance(
            tally, selected, n_features, key_of(spec.seed), wanted=wanted, most=MOST
        )
        return cls(found, np.arange(len(found)) < n_first, len(selected))


def by_importance(
    tally: Tally,
    selected: NDArray[np.uint32],
    n_features: int,
    key: int,
    *,
    wanted: int,
    most: int,
) -> tuple[NDArray[np.uint32], int]:
    """Return selected features, then others if fewer than ``wanted``; and how many are selected.

    Parameters
    ----------
    tally : Tally
        Of the screen.
    selected : uint32 (n,)
        Stored positions.
    n_features : int
        Features of the store; what is tallied beyond them are decoys.
    key : int
        64-bit key that breaks ties.
    wanted, most : int
        Features at least, if so many were drawn; selected ones at most.
    """
    first = _largest(tally, selected, n_features, most, key)
    if len(first) >= wanted:
        return first, len(first)
    others = _largest(tally, None, n_features, wanted + len(first), key)
    others = others[tally.n_drawn[others] > 0]
    found = np.concatenate([first, others[~np.isin(others, first)]])[:wanted]
    return found, len(first)


def tally_of(spec: RunSpec, n_features: int) -> Tally:
    """Return an empty tally of a run's items."""
    return Tally(spec.n_items(n_features), wins=not spec.concludes)


def _largest(
    tally: Tally, among: NDArray[np.uint32] | None, n_features: int, count: int, key: int
) -> NDArray[np.uint32]:
    """Return the ``count`` most important features, of ``among`` only where given."""
    if among is not None:
        among = np.sort(among)
        places = largest(lambda piece: mean_importance(tally, among[piece]), len(among), count, key)
        return among[places]
    return largest(
        lambda piece: mean_importance(tally, slice(piece.start, min(piece.stop, n_features))),
        n_features,
        count,
        key,
    )


# The order in which a run's features are shown: by what they are worth together.

ROWS = 1024
"""Rows that correlations are computed from, at most: they tell 0.1 from 0, which is enough here."""


def first_by_worth(
    resources: Resources, ledger: Ledger, selected: NDArray[np.uint32]
) -> NDArray[np.uint32]:
    """Return the stored positions of the features to show first, at most ``HEAD`` unless selected.

    Selected features come before all others. The ``HEAD`` most important are ordered by what they
    are worth together (:func:`srs_ooc.evidence.correlation.mrmr_order`); further selected ones
    follow by importance. All that are not here follow by importance too.

    Parameters
    ----------
    resources : Resources
        Of the run.
    ledger : Ledger
        With the tallies of its screen.
    selected : uint32 (n,)
        Stored positions.
    """
    spec = resources.spec
    tally = tally_of(spec, resources.n_features)
    ledger.load({TALLY: tally})
    found, n_first = by_importance(
        tally, selected, resources.n_features, key_of(spec.seed), wanted=HEAD, most=len(selected)
    )
    head = found[:HEAD]
    importance = mean_importance(tally, head)
    del tally
    if not len(head):
        return head
    columns = _columns_of(resources, head)
    tie = key_of(spec.seed, Purpose.RANK_TIE)
    places = mrmr_order(importance, columns, head, tie, np.arange(len(head)) < n_first)
    return np.concatenate([head[places], found[HEAD:]])


def _columns_of(resources: Resources, features: NDArray[np.uint32]) -> RankColumns:
    rows = sampled_rows(resources.n_rows, ROWS)
    pieces = [columns[:, rows] for columns in item_columns(resources, features)]
    return RankColumns(np.concatenate(pieces), resources.manifest.missing_code)


# Names of the features that a verdict ranks, kept so that they can be read without the store.

RANKED_NAMES = "ranked_names"
"""Name of the ledger's arrays with them."""
MOST_NBYTES = 2_000_000
"""Bytes of names that are kept at most, the first by rank before the others."""


def keep_names(ledger: Ledger, store: Store, features: NDArray[np.uint32]) -> None:
    """Keep the names of stored features, as many of the first as there is room for."""
    positions = np.zeros(len(features), np.int64)
    for start, piece in store.pieces("positions"):
        there = np.flatnonzero((features >= start) & (features < start + len(piece)))
        positions[there] = piece[features[there] - start]
    names = list(_first(store, positions))
    ends = np.cumsum([len(name) for name in names], dtype=np.int64)
    arrays: dict[str, NDArray[Any]] = {
        "features": features[: len(names)],
        "names": np.frombuffer(b"".join(names), np.uint8),
        "ends": ends,
    }
    ledger.write_arrays(RANKED_NAMES, arrays)


def _first(store: Store, positions: NDArray[np.int64]) -> Iterator[bytes]:
    room = MOST_NBYTES
    for position in positions.tolist():
        name = store.names[position].encode()
        room -= len(name)
        if room < 0:
            return
        yield name


def kept_names(ledger: Ledger) -> dict[int, str] | None:
    """Return the names by stored position, best first; None of a run that kept none."""
    arrays = ledger.read_arrays(RANKED_NAMES)
    if arrays is None:
        return None
    text, ends = arrays["names"].tobytes(), arrays["ends"].tolist()
    names = [text[start:end].decode() for start, end in pairwise([0, *ends])]
    return dict(zip(arrays["features"].tolist(), names, strict=True))


CONCLUSION = "conclusion"
"""Name of the ledger's record about the verdict."""


def is_concluded(ledger: Ledger) -> bool:
    """Return whether the verdict after the iterations done so far is there."""
    record = VerdictRecord.read(ledger)
    return record is not None and record.n_iterations == ledger.progress().iteration


def conclude(
    ledger: Ledger,
    context: RunContext,
    until: int,
    trees: TreeWriter | None,
    *,
    until_stable: bool = False,
) -> None:
    """Bring a run to its verdict after ``until`` iterations, or as far as it is allowed.

    ``until_stable`` ends the screen before, once its blind ranking is stable; the iterations asked
    for are then those done.
    """
    start = time.monotonic()
    before, spec = ledger.progress(), context.spec
    with context.resources(saves=trees is not None) as resources:
        closed = screen_and_close(
            resources,
            ledger,
            until,
            context.watch,
            "screening",
            trees=trees,
            until_stable=until_stable,
        )
        if closed is None:
            return
    state, until = closed
    permuted = None
    if spec.permutations:
        permuted = bests_of_permutation_runs(ledger, context, until)
        if permuted is None:
            return
    with replace(context, cluster=None).resources() as resources:
        key = key_of(spec.seed, Purpose.RANK_TIE, until)
        found = survey(resources, state, key, permuted)
        verdict = judge(spec, state, found)
        selected = found.ranking.items[verdict.is_selected]
        order = first_by_worth(resources, ledger, selected)
    record = _record_of(state, found, verdict, order, until)
    facts = {
        "n_iterations": until,
        "largest_group": found.largest_cluster,
        "n_outstanding": found.ranking.n_outstanding,
        "n_decoys_above": int(np.count_nonzero(found.is_decoy[: verdict.n_above])),
        "marginal_cutoff": found.marginal_cutoff,
        "n_marginal": found.n_marginal,
        "seconds": time.monotonic() - start - (ledger.progress().seconds - before.seconds),
        "peak_nbytes": peak_resident_nbytes(),
        "evidence": VERSIONS["evidence"],
        "begun_evidence": VERSIONS["evidence"],
    }
    with context.store.unchanged():
        keep_names(ledger, context.store, order if len(order) else record.features)
    ledger.set_meta("iterations", until)
    ledger.set_meta(CONCLUSION, facts)
    record.write(ledger)


def judge(spec: RunSpec, state: Elimination, found: Survey) -> Verdict:
    """Return the verdict on the pooled ranking."""
    level, ranking = exact_share(spec.fdr), found.ranking
    if found.comparison is not None:
        scores = np.where(state.rounds == state.rounds.max(), state.scores, 0.0)
        in_closing = ranking.closing_places >= 0
        scores = np.where(in_closing, scores[ranking.closing_places], 0.0)
        return certify(found.comparison, scores, found.strengths.astype(np.float64), level)
    return count_decoys(
        found.is_decoy,
        spec.decoys,
        found.largest_cluster,
        float(level),
        found.is_best,
        expected=found.n_tested * ranking.p_values,
        largest_outstanding=found.largest_outstanding_cluster,
        passing_level=float(passing_level(level)),
    )


def _record_of(
    state: Elimination,
    found: Survey,
    verdict: Verdict,
    order: NDArray[np.uint32],
    n_iterations: int,
) -> VerdictRecord:
    keep = ~found.is_decoy
    places = found.ranking.closing_places[keep]
    within = max(verdict.n_above, 1)
    # Of a round with no more items than that, every batch would agree.
    tells = np.array(state.sizes)[state.rounds] > within
    stability = np.where(tells, (state.batch_ranks < within).mean(axis=0), np.nan)
    unknown = places < 0
    return VerdictRecord(
        n_iterations,
        found.ranking.items[keep],
        verdict.is_selected[keep],
        verdict.levels[keep],
        np.where(unknown, np.nan, state.scores[places]),
        (np.arange(len(keep)) < found.ranking.n_outstanding)[keep],
        found.is_best[keep],
        np.where(unknown, np.nan, stability[places]),
        found.cluster_numbers[keep],
        p_values_of(found.strengths[keep]),
        found.contrasts[keep],
        order,
    )
