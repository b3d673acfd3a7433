"""Bringing a run to its verdict, and the verdict as the ledger keeps it.

What is selected is ordered by what it is worth together, and its names are kept, so that a verdict
can be read without the store.
"""

import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.budget import peak_resident_nbytes
from srs_ooc.base.errors import StoppedError
from srs_ooc.base.options import exact_share
from srs_ooc.base.records import Stateful, Step
from srs_ooc.base.seeds import Purpose, key_of
from srs_ooc.evidence.correlation import (
    HEAD,
    RankColumns,
    mrmr_order,
    sampled_rows,
    single_linkage,
)
from srs_ooc.evidence.effects import EffectTarget, Measure, effect_of
from srs_ooc.evidence.rank_tests import (
    Contrast,
    adjusted,
    least_passing,
    p_values_of,
)
from srs_ooc.evidence.tally import Tally, largest, mean_importance
from srs_ooc.runs.engine import TALLY
from srs_ooc.runs.inputs import spec_of
from srs_ooc.runs.ledger import Ledger
from srs_ooc.runs.resources import (
    STRENGTHS,
    MarginalTests,
    Resources,
    RunContext,
    UnitTable,
    feature_columns,
)
from srs_ooc.runs.run_memory import NAMES_NBYTES
from srs_ooc.runs.screening import screen_and_close
from srs_ooc.runs.spec import RunSpec
from srs_ooc.runs.tests_beside import NOBODY, add_tests_beside, strongest, strongest_alone
from srs_ooc.samplers.elimination import Elimination
from srs_ooc.samplers.srs import KeptSet, SequentialRandomSubspace
from srs_ooc.store.store import Store

if TYPE_CHECKING:
    from srs_ooc.runs.run_trees import TreeWriter

# The verdict: one row for each place of the ranking, in the ledger one array a column.

VERDICT = "verdict"
"""Name of the ledger's arrays with the verdict."""
CONCLUSION = "conclusion"
"""Name of the ledger's record about the verdict."""
ROW = np.dtype(
    [
        ("features", np.uint32),  # stored positions, best first
        ("is_selected", np.bool_),
        ("levels", np.float64),  # q-values
        ("scores", np.float64),  # mean importance in the last closing round, in 2**-36; NaN if none
        ("stability", np.float64),  # tree agreement: of batches; NaN where not defined
        ("groups", np.int32),  # cluster of correlated features, from 0; -1 where not looked at
        ("p_values", np.float64),  # of the marginal tests
        ("contrasts", np.uint8),  # what these saw (srs_ooc.evidence.rank_tests.Contrast)
        ("beside", np.uint32),  # stored position of what it shows beside; NOBODY where it does not
        ("beside_too", np.uint32),  # ... of a second
        ("measure", np.uint8),  # of the effect, alone (srs_ooc.evidence.effects.Measure)
        ("toward", np.int32),  # level * n_classes + class; -1 for neither
        ("effect", np.float64),  # NaN where not looked for
        ("low", np.float64),  # its 95% interval; NaN of groups of rows
        ("high", np.float64),
    ]
)
_UNTOLD = {"measure": Measure.NONE, "toward": -1, "effect": np.nan, "low": np.nan, "high": np.nan}
"""What a verdict without effects has of them, as one that was made before them."""

Rows = np.recarray[Any, Any]
"""Of :data:`ROW`."""


def read_verdict(ledger: Ledger) -> tuple[Rows, NDArray[np.uint32]] | None:
    """Return the rows of a run's verdict and the features to show first; None if there is none.

    None, too, where more iterations were done since.
    """
    arrays = ledger.read_arrays(VERDICT)
    if arrays is None or int(arrays["n_iterations"]) != ledger.progress().iteration:
        return None
    rows = np.recarray(len(arrays["features"]), ROW)
    for name in ROW.names or ():
        rows[name] = arrays.get(name, _UNTOLD.get(name, NOBODY))
    return rows, arrays["order"]


# What is read of the table to judge the places.

CLUSTERED = 250
"""Places of the ranking that are clustered."""
MOST_SELECTED = 30_000
"""Features that are selected, at most: what is known of a place takes some 230 bytes."""


def verdict_on(
    resources: Resources, state: Elimination, key: int, ledger: Ledger | None = None
) -> tuple[Rows, dict[str, Any], NDArray[np.float32]]:
    """Test every feature alone, and the most promising beside others; then judge.

    Parameters
    ----------
    resources : Resources
        Of the run.
    state : Elimination
        Its closing stage.
    key : int
        Breaks ties.
    ledger : Ledger, optional
        Where strengths are kept meanwhile.

    Returns
    -------
    rows : Rows
        Of the features with the strongest tests, strongest first, then of the others of the closing
        stage.
    facts : dict
        What is said of all of them.
    strengths : float32 (n,)
        Of the first of the rows: the strongest test of each, alone or beside others.
    """
    level, tests = float(exact_share(resources.spec.fdr)), MarginalTests(resources, ledger)
    strengths = tests.of_all()
    leaders = strongest_alone(tests, strengths, key)
    tests.share_out(strengths)
    facts = _marginal_facts(strengths, level)
    alone = strengths.copy()
    others = add_tests_beside(tests, strengths, leaders, state.features)
    n_passing = np.count_nonzero(strengths >= least_passing(strengths, level, MOST_SELECTED))
    first = strongest(strengths, key, min(max(HEAD, int(n_passing)), MOST_SELECTED))
    features = np.concatenate([first, state.features[~np.isin(state.features, first)]])
    rows = np.recarray(len(features), ROW)
    rows.features = features
    rows.levels = adjusted(strengths, strengths[features], MOST_SELECTED)
    rows.is_selected = (np.arange(len(rows)) < len(first)) & (rows.levels <= level)
    n_selected = int(np.count_nonzero(rows.is_selected))
    rows.scores, rows.stability = _closing_columns(state, features, n_selected)
    rows["contrasts"], rows.p_values = tests.contrasts_of(features), p_values_of(alone[features])
    rows["groups"] = -1
    clusters = single_linkage(*_codes_of(resources, features[:CLUSTERED]))
    rows["groups"][: len(clusters)] = np.unique(clusters, return_inverse=True)[1]
    nobody = [NOBODY, NOBODY]
    beside = np.array([others.get(feature, nobody) for feature in features.tolist()])
    rows["beside"], rows["beside_too"] = beside.T
    _add_effects(resources, tests.table, rows, facts["marginal_cutoff"])
    return rows, facts, strengths[first]


def _add_effects(resources: Resources, table: UnitTable, rows: Rows, cutoff: float) -> None:
    """Say of selected and marginally significant features which way they differ, and how much."""
    for name, value in _UNTOLD.items():
        rows[name] = value
    task, missing_code = table.task, table.missing_code
    codes = np.unique(task.target, return_inverse=True)[1] if task.is_regression else task.target
    target = EffectTarget(codes.astype(np.int32), len(task.classes), task.strata)
    passes = rows.p_values <= cutoff
    wanted = np.flatnonzero(rows.is_selected | passes)
    wanted = wanted[~table.ranks_names(rows.features[wanted])]
    kinds = table.categorical(rows.features[wanted])
    is_categorical = np.zeros(len(rows), np.bool_)
    is_categorical[wanted] = False if kinds is None else kinds
    done = 0
    for columns in table.columns(rows.features[wanted]):
        resources.tell(Step("effects", done, len(wanted), unit="features"))
        for i, column in zip(wanted[done:], columns, strict=False):
            contrast = rows["contrasts"][i] if passes[i] else Contrast.LOCATION
            is_named = bool(is_categorical[i])
            found = effect_of(column, missing_code, target, contrast, is_categorical=is_named)
            rows["measure"][i], rows["toward"][i], (rows["effect"][i], *ends) = found
            if task.groups is None:  # else rows are not independent, and ends would be too close
                rows["low"][i], rows["high"][i] = ends
        done += len(columns)


def _marginal_facts(strengths: NDArray[np.float32], level: float) -> dict[str, Any]:
    """Return up to which p-value features pass Benjamini and Hochberg, and how many do."""
    weakest = least_passing(strengths, level)
    cutoff = p_values_of(np.array([weakest], np.float32))[0] if weakest < np.inf else 0.0
    n_marginal = int(np.count_nonzero(strengths >= weakest))
    return {"marginal_cutoff": float(cutoff), "n_marginal": n_marginal}


def _closing_columns(
    state: Elimination, features: NDArray[np.uint32], n_selected: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return scores and agreement in the closing stage; NaN of features that did not reach it.

    Agreement is the share of batches of trees that have a feature within the first ``n_selected``.
    """
    order = np.argsort(state.features)
    at = np.minimum(np.searchsorted(state.features[order], features), len(order) - 1)
    places, is_there = order[at], state.features[order][at] == features
    within = max(n_selected, 1)
    # Of a round with no more features than that, every batch would agree.
    tells = np.array(state.sizes)[state.rounds] > within
    agreement = np.where(tells, (state.batch_ranks < within).mean(axis=0), np.nan)
    scores = np.where(is_there, state.scores[places], np.nan)
    return scores, np.where(is_there, agreement[places], np.nan)


def _codes_of(resources: Resources, features: NDArray[np.uint32]) -> tuple[NDArray[Any], int]:
    """Return the codes of features in as many rows as are enough, and that of missing values."""
    rows = sampled_rows(resources.n_rows)
    codes = np.concatenate([columns[:, rows] for columns in feature_columns(resources, features)])
    return codes, resources.manifest.missing_code


# What a small set is chosen from: the selected features of a run, or its best-ranked ones.

MOST = 30_000
"""Candidates at most: those of the largest importance."""
WANTED = 200
"""Candidates at least: where fewer are selected, the best of the others are added."""


def candidates_of(
    ledger: Ledger, n_features: int
) -> tuple[NDArray[np.uint32], NDArray[np.uint32], int]:
    """Return what small sets of a run that is done are chosen from, the most important first.

    Returns
    -------
    features : uint32 (n,)
        Stored positions; selected ones before all others.
    selected : uint32 (n_first,)
        Those of them that the run selected.
    n_selected : int
        How many features it selected.
    """
    spec = spec_of(ledger)
    tally, kept = tally_of(spec, n_features), KeptSet(n_features)
    parts: dict[str, Stateful] = {TALLY: tally}
    if not spec.concludes:
        parts[SequentialRandomSubspace.name] = kept
    ledger.load(parts)
    selected = kept.features.copy()
    if spec.concludes:
        verdict = read_verdict(ledger)
        assert verdict is not None, "the run is done"
        selected = verdict[0].features[verdict[0].is_selected]
    found, n_first = by_importance(
        tally, selected, n_features, key_of(spec.seed), wanted=WANTED, most=MOST
    )
    return found, found[:n_first], len(selected)


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
        Features of the store.
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
    """Return an empty tally of a run's features."""
    return Tally(n_features, wins=not spec.concludes)


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
    resources: Resources, rows: Rows, strengths: NDArray[np.float32]
) -> NDArray[np.uint32]:
    """Return the stored positions of the features to show first, at most ``HEAD`` unless selected.

    Selected features come before all others. The first ``HEAD``, by the strength of their tests,
    are ordered by what they are worth together
    (:func:`srs_ooc.evidence.correlation.mrmr_order`); further selected ones follow. All that are
    not here follow by importance. Strengths do not depend on the trees: another seed gives much the
    same order.

    Parameters
    ----------
    resources : Resources
        Of the run.
    rows : Rows
        The verdict.
    strengths : float32 (n,)
        Those of :func:`verdict_on`.
    """
    found, n_first = rows.features[: len(strengths)], np.count_nonzero(rows.is_selected)
    head: NDArray[np.uint32] = found[:HEAD]
    if not len(head):
        return head
    # By their roots, which grow as a correlation with the target does.
    worth = np.sqrt(np.maximum(strengths[:HEAD].astype(np.float64), 0))
    some = sampled_rows(resources.n_rows, ROWS)
    codes = np.concatenate([columns[:, some] for columns in feature_columns(resources, head)])
    columns = RankColumns(codes, resources.manifest.missing_code)
    tie = key_of(resources.spec.seed, Purpose.RANK_TIE)
    places = mrmr_order(worth, columns, head, tie, np.arange(len(head)) < n_first)
    return np.concatenate([head[places], found[HEAD:]])


# Names of the features that a verdict ranks, kept so that they can be read without the store.

RANKED_NAMES = "ranked_names"
"""Name of the ledger's arrays with them."""
LEVELS = "levels"
"""The same of levels of categorical features, of a store that has some."""


def _others(rows: Rows, first: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return the features beside which some of the ``first`` show that are not of these."""
    shown = np.isin(rows.features, first)
    others: NDArray[np.uint32] = np.concatenate([rows.beside[shown], rows.beside_too[shown]])
    return np.setdiff1d(others, np.append(first, np.uint32(NOBODY)))


def keep_names(ledger: Ledger, store: Store, features: NDArray[np.uint32]) -> None:
    """Keep the names of stored features, as many of the first as there is room for."""
    positions = np.zeros(len(features), np.int64)
    for start, piece in store.pieces("positions"):
        there = np.flatnonzero((features >= start) & (features < start + len(piece)))
        positions[there] = piece[features[there] - start]
    _keep(ledger, RANKED_NAMES, features, (store.names[at] for at in positions.tolist()))


def _keep(ledger: Ledger, kind: str, features: NDArray[np.uint32], texts: Iterable[str]) -> None:
    names = list(_first(texts))
    ends = np.cumsum([len(name) for name in names], dtype=np.int64)
    arrays: dict[str, NDArray[Any]] = {
        "features": features[: len(names)],
        "names": np.frombuffer(b"".join(names), np.uint8),
        "ends": ends,
    }
    ledger.write_arrays(kind, arrays)


def _first(texts: Iterable[str]) -> Iterator[bytes]:
    room = NAMES_NBYTES
    for text in texts:
        name = text.encode()
        room -= len(name)
        if room < 0:
            return
        yield name


def keep_levels(ledger: Ledger, store: Store, rows: Rows) -> None:
    """Keep the names of the levels toward which effects of categorical features go."""
    categories, n_classes = store.categories(), max(1, len(store.manifest.classes))
    there = rows[[Measure(measure).is_of_level for measure in rows["measure"].tolist()]]
    levels = zip(there["features"].tolist(), (there["toward"] // n_classes).tolist(), strict=True)
    texts = ((categories.of(feature) or [])[level] for feature, level in levels)
    _keep(ledger, LEVELS, there["features"], texts)


def kept_names(ledger: Ledger, kind: str = RANKED_NAMES) -> dict[int, str] | None:
    """Return the names by stored position, best first; None of a run that kept none."""
    arrays = ledger.read_arrays(kind)
    if arrays is None:
        return None
    text, ends = arrays["names"].tobytes(), arrays["ends"].tolist()
    names = [text[start:end].decode() for start, end in pairwise([0, *ends])]
    return dict(zip(arrays["features"].tolist(), names, strict=True))


def conclude(ledger: Ledger, context: RunContext, until: int, trees: "TreeWriter | None") -> None:
    """Bring a run to its verdict after ``until`` iterations, or as far as it is allowed."""
    start = time.monotonic()
    before, spec = ledger.progress(), context.spec
    with context.resources(saves=trees is not None) as resources:
        watch = context.watch
        state = screen_and_close(resources, ledger, until, watch, "screening", trees=trees)
        if state is None:
            return
    try:
        with replace(context, cluster=None).resources(grows=False) as resources:
            key = key_of(spec.seed, Purpose.RANK_TIE, until)
            rows, facts, strengths = verdict_on(resources, state, key, ledger)
            order = first_by_worth(resources, rows, strengths)
    except StoppedError:
        return
    facts = {"n_iterations": until} | facts
    facts |= {
        "seconds": time.monotonic() - start - (ledger.progress().seconds - before.seconds),
        "peak_nbytes": peak_resident_nbytes(),
        "evidence": spec.judging.versions["evidence"],
        "begun_evidence": spec.judging.versions["evidence"],
        "classes": context.task.classes,
    }
    with context.store.unchanged():
        first = order if len(order) else rows.features
        keep_names(ledger, context.store, np.concatenate([first, _others(rows, first)]))
        if context.store.manifest.kind_counts.get("categorical"):
            keep_levels(ledger, context.store, rows)
    ledger.set_meta("iterations", until)
    ledger.set_meta(CONCLUSION, facts)
    columns = {name: rows[name] for name in ROW.names or ()}
    verdict = {"n_iterations": np.array(until)} | columns | {"order": order}
    ledger.write_all([(VERDICT, verdict)], in_place_of=STRENGTHS)
