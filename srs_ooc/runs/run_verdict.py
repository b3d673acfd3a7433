"""Bringing a run to its verdict, and the verdict as the ledger keeps it.

Only here is it read what is a decoy. What is selected is ordered by what it is worth together, and
its names are kept, so that a verdict can be read without the store.
"""

import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
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
    average_linkage,
    largest_cluster,
    mrmr_order,
    sampled_rows,
    single_linkage,
)
from srs_ooc.evidence.effects import EffectTarget, Measure, effect_of
from srs_ooc.evidence.rank_tests import (
    NO_CONTRAST,
    Contrast,
    adjusted,
    least_passing,
    p_values_of,
)
from srs_ooc.evidence.tally import Tally, best_of_each, largest, mean_importance
from srs_ooc.evidence.verdict import (
    Comparison,
    PooledRanking,
    Verdict,
    certify,
    count_decoys,
    exceeds_chance,
    passing_level,
    pool,
)
from srs_ooc.runs.engine import TALLY
from srs_ooc.runs.inputs import spec_of
from srs_ooc.runs.ledger import Ledger
from srs_ooc.runs.resources import (
    STRENGTHS,
    MarginalTests,
    Resources,
    RunContext,
    UnitTable,
    item_columns,
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

# The verdict: one row for each place of the pooled ranking, in the ledger one array a column.

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
        ("is_outstanding", np.bool_),  # there by its marginal test
        ("is_best", np.bool_),  # no place above is of the same feature or one of its decoys
        ("stability", np.float64),  # tree agreement: of batches; NaN where not defined
        ("groups", np.int32),  # cluster of correlated items, from 0; -1 where not looked at
        ("p_values", np.float64),  # of the marginal tests; NaN beside decoys of groups of rows
        ("contrasts", np.uint8),  # what these saw (srs_ooc.evidence.rank_tests.Contrast)
        ("beside", np.uint32),  # stored position of what it shows beside; NOBODY where it does not
        ("beside_too", np.uint32),  # ... of a second
        ("measure", np.uint8),  # of the effect, alone (srs_ooc.evidence.effects.Measure)
        ("toward", np.int32),  # level * n_classes + class; -1 for neither
        ("effect", np.float64),  # NaN where not looked for
        ("low", np.float64),  # its 95% interval; NaN beside decoys of groups of rows
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


# The pooled ranking, and what is read of the table to judge its places.

CLUSTERED = 250
"""Places of the ranking that are clustered."""
OUTSTANDING = 30_000
"""Marginally significant items at most: what is known of a place takes some 230 bytes."""
_SLACK = 1e-6


def verdict_on(
    resources: Resources,
    state: Elimination,
    key: int,
    permuted: NDArray[np.float64] | None = None,
    ledger: Ledger | None = None,
) -> tuple[Rows, dict[str, Any], NDArray[np.float32] | None]:
    """Test every item alone and, without decoys, the most promising beside others; then judge.

    Parameters
    ----------
    resources : Resources
        Of the run.
    state : Elimination
        Its closing stage.
    key : int
        Breaks ties.
    permuted : float64 (n_permutations, 2), optional
        Best score and best strength of each permutation run, where they judge.
    ledger : Ledger, optional
        Where strengths are kept meanwhile.

    Returns
    -------
    rows : Rows
        Of the features; no decoys.
    facts : dict
        What is said of all of them. ``n_decoys_above``, of all families, is kept to look into: no
        command says it, as beside ``n_selected`` it would read as a share of false features.
    strengths : float32 (n,) or None
        Of the first of the rows: the strongest test of each, alone or beside others, strongest
        first. None where decoys judge.
    """
    n_features, level = resources.n_features, exact_share(resources.spec.fdr)
    tests = MarginalTests(resources, ledger)
    strengths = tests.of_all()
    comparison = None
    if permuted is not None:
        comparison = Comparison.of((best_score(state), best_strength(strengths)), permuted)
    shown = None
    if resources.spec.decoy_judge is None:
        leaders = strongest_alone(tests, strengths, key)
        tests.share_out(strengths)
    marginal = _marginal_facts(strengths[:n_features], float(level))
    if resources.spec.decoy_judge is None:
        alone = strengths.copy()
        others = add_tests_beside(tests, strengths, leaders, state.items)
        verdict, ranking = _by_tests(state, strengths, float(level), key)
        largest_group, strengths, shown = 1, alone, ranking.strengths
    else:
        outstanding, others = _outstanding(resources, strengths, comparison, level, key), {}
        ranking = pool(state.items, outstanding, tests.of(outstanding), key)
        largest_group = largest_decoy_cluster(resources, ranking.items, ranking.n_outstanding)
        verdict = _judge(resources, state, ranking, comparison, strengths, largest_group)
    items, places = ranking.items, ranking.closing_places
    is_decoy, found = items >= n_features, strengths[items % n_features]
    rows = np.recarray(len(items), ROW)
    rows.features, rows.is_best = items, best_of_each(items % n_features)
    rows.is_selected, rows.levels = verdict.is_selected, verdict.levels
    rows.is_outstanding = np.arange(len(items)) < ranking.n_outstanding
    rows.scores, rows.stability = _closing_columns(state, places, verdict.n_above)
    rows["groups"], rows["contrasts"], rows.p_values = -1, NO_CONTRAST, p_values_of(found)
    clusters = single_linkage(*_codes_of(resources, items[:CLUSTERED]))
    rows["groups"][: len(clusters)] = np.unique(clusters, return_inverse=True)[1]
    if resources.spec.decoy_judge is not None and resources.task.groups is not None:
        # Tests beside decoys take rows one by one; of groups, chance makes many significant.
        rows.p_values, marginal = np.nan, {"marginal_cutoff": 0.0, "n_marginal": 0}
    else:
        rows["contrasts"][~is_decoy] = tests.contrasts_of(items[~is_decoy])
    nobody = [NOBODY, NOBODY]
    beside = np.array([others.get(item, nobody) for item in items.tolist()])
    rows["beside"], rows["beside_too"] = beside.T
    facts = {"n_outstanding": ranking.n_outstanding} | marginal
    if resources.spec.decoy_judge is not None:
        n_above = int(np.count_nonzero(is_decoy[: verdict.n_above]))
        facts |= {"largest_group": largest_group, "n_decoys_above": n_above}
    rows = rows[~is_decoy].view(np.recarray)
    _add_effects(resources, tests.table, rows, marginal["marginal_cutoff"])
    return rows, facts, shown


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


def best_score(state: Elimination) -> float:
    """Return the best score of the last closing round."""
    in_last = state.rounds == state.rounds.max()
    return float(state.scores.max(where=in_last, initial=0.0))


def best_strength(strengths: NDArray[np.float32]) -> float:
    """Return the best strength of any item that is tested."""
    return float(np.nanmax(strengths))


def _judge(
    resources: Resources,
    state: Elimination,
    ranking: PooledRanking,
    comparison: Comparison | None,
    strengths: NDArray[np.float32],
    largest_group: int,
) -> Verdict:
    """Return the verdict on the places of a ranking; ``strengths`` are of marginal tests."""
    level, n_features = exact_share(resources.spec.fdr), resources.n_features
    items, places = ranking.items, ranking.closing_places
    strengths = strengths[items % n_features]
    if comparison is not None:
        scores = np.where(state.rounds == state.rounds.max(), state.scores, 0.0)
        scores = np.where(places >= 0, scores[places], 0.0)
        return certify(comparison, scores, strengths.astype(np.float64), level)
    return count_decoys(
        items >= n_features,
        resources.spec.decoys,
        largest_group,
        float(level),
        best_of_each(items % n_features),
        expected=_n_tested(resources) * ranking.p_values,
        largest_outstanding=largest_outstanding_cluster(resources, ranking),
        passing_level=float(passing_level(level)),
    )


def _by_tests(
    state: Elimination, strengths: NDArray[np.float32], level: float, key: int
) -> tuple[Verdict, PooledRanking]:
    """Return the verdict by Benjamini and Hochberg; ``strengths`` are of all features.

    First come those that are to be shown first, by their strengths.
    """
    n_passing = np.count_nonzero(strengths >= least_passing(strengths, level, OUTSTANDING))
    first = _strongest(strengths, -np.inf, key, min(max(HEAD, int(n_passing)), OUTSTANDING))
    ranking = pool(state.items, first, strengths[first], key)
    levels = adjusted(strengths, strengths[ranking.items], OUTSTANDING)
    is_selected = (np.arange(len(levels)) < len(first)) & (levels <= level)
    return Verdict(is_selected, levels, int(np.count_nonzero(is_selected))), ranking


def _marginal_facts(strengths: NDArray[np.float32], level: float) -> dict[str, Any]:
    """Return up to which p-value features pass Benjamini and Hochberg, and how many do."""
    weakest = least_passing(strengths, level)
    cutoff = p_values_of(np.array([weakest], np.float32))[0] if weakest < np.inf else 0.0
    n_marginal = int(np.count_nonzero(strengths >= weakest))
    return {"marginal_cutoff": float(cutoff), "n_marginal": n_marginal}


def _closing_columns(
    state: Elimination, places: NDArray[np.int64], n_above: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return scores and agreement by their places in the closing stage; NaN where they have none.

    Agreement is the share of batches of trees that have an item within the first ``n_above``.
    """
    within = max(n_above, 1)
    # Of a round with no more items than that, every batch would agree.
    tells = np.array(state.sizes)[state.rounds] > within
    agreement = np.where(tells, (state.batch_ranks < within).mean(axis=0), np.nan)
    unknown = places < 0
    scores = np.where(unknown, np.nan, state.scores[places])
    return scores, np.where(unknown, np.nan, agreement[places])


def _n_tested(resources: Resources) -> int:
    return resources.n_candidates // (1 + resources.spec.decoys)


def _outstanding(
    resources: Resources,
    strengths: NDArray[np.float32],
    comparison: Comparison | None,
    level: Fraction,
    key: int,
) -> NDArray[np.uint32]:
    """Return the marginally significant items, or those above what permutation runs reach."""
    if comparison is not None:
        return _above(strengths, comparison, level, key)
    if resources.task.groups is not None:
        return np.zeros(0, np.uint32)  # the tests take rows one by one
    tested = strengths[: resources.n_features]
    return _strongest(strengths, least_passing(tested, float(passing_level(level))), key)


def _above(
    strengths: NDArray[np.float32], comparison: Comparison, level: Fraction, key: int
) -> NDArray[np.uint32]:
    """Return the items whose marginal strength is above what permutation runs reach."""
    # Few are looked at: eight bytes for each of all would break the memory plan.
    bound = max(0.0, float(comparison.scale[1]) * comparison.bar(level))
    items = _strongest(strengths, bound * (1 - _SLACK), key)
    found = strengths[items].astype(np.float64)
    reached = comparison.statistics(np.zeros(len(items)), found)
    return items[reached > comparison.bar(level)]


def _strongest(
    strengths: NDArray[np.float32], bound: float, key: int, most: int | None = None
) -> NDArray[np.uint32]:
    """Return the items with strengths from ``bound`` on, strongest first.

    At most ``most``, by default ``OUTSTANDING``.
    """
    if bound == np.inf:
        return np.zeros(0, np.uint32)

    items = strongest(strengths, key, most or OUTSTANDING)
    return items[strengths[items] >= bound]


def largest_decoy_cluster(
    resources: Resources, items: NDArray[np.uint32], n_outstanding: int
) -> int:
    """Return the c of a ranking: the most correlated decoys among those that count.

    Looked for in the first ``CLUSTERED`` places below the ``n_outstanding`` first.
    """
    place = slice(n_outstanding, n_outstanding + CLUSTERED)
    members = ((items >= resources.n_features) & best_of_each(items % resources.n_features))[place]
    if not members.any():
        return 1
    return largest_cluster(average_linkage(*_codes_of(resources, items[place])), members)


def largest_outstanding_cluster(resources: Resources, ranking: PooledRanking) -> int:
    """Return the most correlated decoys among the first that are marginally significant.

    Of these ``CLUSTERED`` are looked at. 1 where these are no more than chance allows: no columns
    are read then.
    """
    items, n_families = ranking.items[: ranking.n_outstanding], resources.spec.decoys
    is_decoy = items >= resources.n_features
    allowed = _n_tested(resources) * ranking.p_values
    if not exceeds_chance(is_decoy, n_families, 1, allowed).any():
        return 1
    decoys = items[is_decoy][:CLUSTERED]
    clusters = average_linkage(*_codes_of(resources, decoys))
    return largest_cluster(clusters, np.ones(len(decoys), np.bool_))


def _codes_of(resources: Resources, items: NDArray[np.uint32]) -> tuple[NDArray[Any], int]:
    """Return the codes of items in the rows that are enough to tell, and that of missing values."""
    rows = sampled_rows(resources.n_rows)
    codes = np.concatenate([columns[:, rows] for columns in item_columns(resources, items)])
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
    resources: Resources,
    ledger: Ledger,
    rows: Rows,
    strengths: NDArray[np.float32] | None,
) -> NDArray[np.uint32]:
    """Return the stored positions of the features to show first, at most ``HEAD`` unless selected.

    Selected features come before all others. The first ``HEAD``, by the strength of their tests or,
    where decoys judge, by importance, are ordered by what they are worth together
    (:func:`srs_ooc.evidence.correlation.mrmr_order`); further selected ones follow. All that are
    not here follow by importance. Strengths do not depend on the trees: another seed gives much the
    same order.

    Parameters
    ----------
    resources : Resources
        Of the run.
    ledger : Ledger
        With the tallies of its screen.
    rows : Rows
        The verdict.
    strengths : float32 (n,) or None
        Those of :func:`verdict_on`.
    """
    spec, selected = resources.spec, rows.features[rows.is_selected]
    found: NDArray[np.uint32]
    if strengths is not None:
        found, n_first = rows.features[: len(strengths)], len(selected)
        # By their roots, which grow as a correlation with the target does.
        head, worth = found[:HEAD], np.sqrt(np.maximum(strengths[:HEAD].astype(np.float64), 0))
    else:
        tally = tally_of(spec, resources.n_features)
        ledger.load({TALLY: tally})
        found, n_first = by_importance(
            tally,
            selected,
            resources.n_features,
            key_of(spec.seed),
            wanted=HEAD,
            most=len(selected),
        )
        head = found[:HEAD]
        worth = mean_importance(tally, head)
        del tally
    if not len(head):
        return found
    some = sampled_rows(resources.n_rows, ROWS)
    codes = np.concatenate([columns[:, some] for columns in item_columns(resources, head)])
    columns = RankColumns(codes, resources.manifest.missing_code)
    tie = key_of(spec.seed, Purpose.RANK_TIE)
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


def conclude(
    ledger: Ledger,
    context: RunContext,
    until: int,
    trees: "TreeWriter | None",
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
        from srs_ooc.runs.permutation_runs import bests_of_permutation_runs

        permuted = bests_of_permutation_runs(ledger, context, until)
        if permuted is None:
            return
    try:
        with replace(context, cluster=None).resources(grows=False) as resources:
            key = key_of(spec.seed, Purpose.RANK_TIE, until)
            rows, facts, strengths = verdict_on(resources, state, key, permuted, ledger)
            order = first_by_worth(resources, ledger, rows, strengths)
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
