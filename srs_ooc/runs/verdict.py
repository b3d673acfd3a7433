"""Bringing a run to its verdict, and the verdict as the ledger keeps it.

What is selected is ordered by what it is worth together, and its names are kept, so that a verdict
can be read without the store.
"""

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.arrays import Floats, Floats32, Integers, Uints32
from srs_ooc.base.budget import peak_resident_nbytes
from srs_ooc.base.errors import StoppedError
from srs_ooc.base.options import exact_share
from srs_ooc.base.records import Step
from srs_ooc.base.seeds import Purpose, key_of
from srs_ooc.base.text import counted
from srs_ooc.evidence import correlation
from srs_ooc.evidence.conditional_tests import FEW_BESIDE, cost, dependence_cost
from srs_ooc.evidence.correlation import HEAD, RankColumns, mrmr_order, sampled_rows
from srs_ooc.evidence.effects import Measure, effect_of, wide_enough
from srs_ooc.evidence.rank_tests import Contrast, adjusted, least_passing, p_values_of
from srs_ooc.evidence.tally import Tally, best_features, largest, mean_importance
from srs_ooc.runs import feature_tests
from srs_ooc.runs.engine import TALLY
from srs_ooc.runs.feature_tests import NOBODY, MarginalTests, TestTable
from srs_ooc.runs.plan import Plan
from srs_ooc.runs.resources import Resources
from srs_ooc.runs.run import Run
from srs_ooc.samplers.elimination import Elimination
from srs_ooc.samplers.srs import KeptSet, SequentialRandomSubspace
from srs_ooc.store.store import Store
from srs_ooc.trees.response import IMPORTANCE_BITS

# The verdict: one row for each place of the ranking.

VERDICT = "verdict"
"""Name of the ledger's arrays with the verdict."""
CONCLUSION = "conclusion"
"""Name of the ledger's record about the verdict."""
TABLE = np.dtype(
    [
        ("stored", np.uint32),  # stored position; strongest tests first, then the closing stage
        ("selected", np.bool_),
        ("q_value", np.float64),
        ("score", np.float64),  # mean importance in the last closing round; NaN if none
        ("tree_agreement", np.float64),  # of batches of trees; NaN where not defined
        ("cluster", np.int32),  # of correlated features, from 1; 0 where not looked at
        ("p_value", np.float64),  # of the marginal tests
        ("differs_in", np.uint8),  # what these saw (srs_ooc.evidence.rank_tests.Contrast)
        ("beside", np.uint32, (2,)),  # stored positions of what it shows beside; else NOBODY
        ("measure", np.uint8),  # of the effect, alone (srs_ooc.evidence.effects.Measure)
        ("toward", np.int32),  # level * n_classes + class; -1 for neither
        ("effect", np.float64),  # NaN where not looked for
        ("low", np.float64),  # its interval; NaN of groups of rows
        ("high", np.float64),
    ]
)
"""A column has the name that users read."""


@dataclass(frozen=True)
class Verdict:
    """The verdict of a run that is done.

    Attributes
    ----------
    table : structured (n,) of :data:`TABLE`
        Of the features with the strongest tests, strongest first, then of the others of the closing
        stage.
    order : uint32 (m,)
        Stored positions of the features to show first.
    facts : dict
        What is said of all of them; in the ledger the record :data:`CONCLUSION`.
    location : int (n_bins,)
        P-values of the location of all features, by the first bins
        (:func:`srs_ooc.evidence.rank_tests.binned`).
    levels : dict
        Names of the levels toward which effects of categorical features go, by stored position.
    """

    table: NDArray[Any]
    order: Uints32
    facts: dict[str, Any]
    location: Integers
    levels: dict[int, str] = field(default_factory=dict)

    @classmethod
    def of(cls, ledger: Run) -> "Verdict | None":
        """Return the verdict on the iterations done; None if there is none (yet)."""
        arrays = ledger.read_arrays(VERDICT)
        if arrays is None or int(arrays["n_iterations"]) != ledger.progress().iteration:
            return None  # or more iterations were done since
        facts, levels = ledger.meta(CONCLUSION), kept_names(ledger, LEVELS)
        return cls(arrays["table"], arrays["order"], facts, arrays["location"], levels)

    @cached_property
    def best(self) -> NDArray[Any]:
        """Rows of the table of the selected features."""
        return np.asarray(self.table[self.table["selected"]])

    @property
    def n_selected(self) -> int:
        """How many are selected."""
        return len(self.best)

    def selected(self) -> Uints32:
        """Return the stored positions of the selected features, in the order to show."""
        return self.order[np.isin(self.order, self.best["stored"])]

    @cached_property
    def _places(self) -> dict[int, int]:
        return {feature: i for i, feature in enumerate(self.table["stored"].tolist())}

    def row(self, feature: int) -> Any:
        """Return the row of a stored feature; None if the table has none."""
        place = self._places.get(feature)
        return None if place is None else self.table[place]

    def cluster_of(self, feature: int) -> list[int]:
        """Return the stored positions of the other features of its cluster, best first."""
        row = self.row(feature)
        if row is None or not row["cluster"]:
            return []
        members = self.table["stored"][self.table["cluster"] == row["cluster"]].tolist()
        return [other for other in members if other != feature]

    @property
    def clusters_selected(self) -> str | None:
        """How many clusters hold a selected feature.

        None where not all their places were seen, or none holds more than one.
        """
        clusters = self.best["cluster"]
        n = len(np.unique(clusters))
        return counted(n, "cluster") if clusters.all() and n < len(clusters) else None

    @property
    def n_beside_selected(self) -> int:
        """How many selected features show more beside others than alone."""
        return int(np.count_nonzero(self.best["beside"][:, 0] != NOBODY))


# What is read of the table to judge the places.

CLUSTERED = 250
"""Places of the ranking that are clustered."""
MOST_SELECTED = 30_000
"""Features that are selected, at most: what is known of a place takes some 230 bytes."""


def verdict_on(
    resources: Resources, state: Elimination, key: int, ledger: Run | None = None
) -> Verdict:
    """Test every feature alone, and the most promising beside others; then judge.

    Parameters
    ----------
    resources : Resources
        Of the run.
    state : Elimination
        Its closing stage.
    key : int
        Breaks ties.
    ledger : Run, optional
        Where -log10 p are kept meanwhile.
    """
    level, tests = float(exact_share(resources.spec.fdr)), MarginalTests(resources, ledger)
    neg_log10_p = tests.of_all()
    leaders = feature_tests.strongest_alone(tests, neg_log10_p, key)
    tests.split_level(neg_log10_p)
    facts = _marginal_facts(neg_log10_p, level) | tests.inflation()
    if note := tests.table.task.note:
        facts["groups"] = note
    alone = neg_log10_p.copy()
    others = feature_tests.add_tests_beside(tests, neg_log10_p, leaders, state.features)
    facts["p_beside"] = dict(zip(others, p_values_of(neg_log10_p[[*others]]).tolist(), strict=True))
    n_passing = np.count_nonzero(neg_log10_p >= least_passing(neg_log10_p, level, MOST_SELECTED))
    first = feature_tests.strongest(neg_log10_p, key, min(max(HEAD, int(n_passing)), MOST_SELECTED))
    features = np.concatenate([first, state.features[~np.isin(state.features, first)]])
    n_tested, strengths = int(np.count_nonzero(~np.isnan(alone))), neg_log10_p[first]
    p_values = p_values_of(alone[features])
    q_values = _q_values(alone, neg_log10_p, features, others)
    is_selected = (np.arange(len(features)) < len(first)) & (q_values <= level)
    n_selected = int(np.count_nonzero(is_selected))
    order = np.argsort(~is_selected, kind="stable")  # of two rules one may select the weaker
    features, strengths = features[order], strengths[order[: len(first)]]
    table = np.zeros(len(features), TABLE)
    table["stored"], table["selected"] = features, is_selected[order]
    table["q_value"], table["p_value"] = q_values[order], p_values[order]
    table["score"], table["tree_agreement"] = _closing_columns(state, features, n_selected)
    table["differs_in"] = tests.contrasts_of(features)
    clusters = correlation.single_linkage(*_codes_of(resources, features[:CLUSTERED]))
    table["cluster"][: len(clusters)] = 1 + np.unique(clusters, return_inverse=True)[1]
    table["beside"] = [others.get(feature, [NOBODY, NOBODY]) for feature in features.tolist()]
    _add_effects(resources, tests.table, table, facts["marginal_cutoff"], n_tested)
    shown = np.flatnonzero(table["selected"] | (table["p_value"] <= facts["marginal_cutoff"]))
    shown = shown[:HEAD]
    facts["censored_by"] = tests.censored_by(features[shown], table["differs_in"][shown])
    shown_first = _first_by_worth(resources, table, strengths)
    return Verdict(table, shown_first, facts, np.trim_zeros(tests.location, "b"))


def _q_values(
    alone: Floats32, neg_log10_p: Floats32, features: Uints32, others: dict[int, list[int]]
) -> Floats:
    """Return the smallest level at which each of some features would be selected.

    By its test alone at :data:`SHARE` of the level, by Benjamini and Hochberg; or by its tests
    beside others at the rest, by a rule that holds whatever these have to do with one another. So
    the expected false share is bounded (docs/research/evidence-method.md).

    Parameters
    ----------
    alone, neg_log10_p : float32 (n_features,)
        Strengths of all tests alone, and of the strongest, the cost of choosing it paid. Both are
        used up.
    features : uint32 (n,)
        Which are asked for.
    others : dict
        By feature, where tests beside others show more.
    """
    is_tested, won = ~np.isnan(alone), np.array([*others], np.int64)
    n_tested = int(np.count_nonzero(is_tested))
    alone -= np.float32(cost(0, n_tested))
    found = adjusted(alone, alone[features], MOST_SELECTED)
    beside = neg_log10_p[won] - np.float32(dependence_cost(n_tested))
    neg_log10_p[is_tested] = 0
    neg_log10_p[won] = np.maximum(beside, 0)
    beside_others = adjusted(neg_log10_p, neg_log10_p[features], MOST_SELECTED, FEW_BESIDE)
    return np.minimum(found, beside_others)


def _add_effects(
    resources: Resources, tested: TestTable, table: NDArray[Any], cutoff: float, n_tested: int
) -> None:
    """Say of selected and marginally significant features which way they differ, and how much."""
    table["measure"], table["toward"] = Measure.NONE, -1
    table["effect"] = table["low"] = table["high"] = np.nan
    task, missing_code = tested.task, tested.missing_code
    target = feature_tests.effect_target(task)
    passes, features = table["p_value"] <= cutoff, table["stored"]
    wanted = np.flatnonzero(table["selected"] | passes)
    wanted = wanted[~tested.ranks_names(features[wanted])]
    z = wide_enough(len(wanted), n_tested)
    kinds = tested.categorical(features[wanted])
    is_categorical = np.zeros(len(table), np.bool_)
    is_categorical[wanted] = False if kinds is None else kinds
    done = 0
    for columns in tested.columns(features[wanted]):
        resources.tell(Step("effects", done, len(wanted), unit="features"))
        for i, column in zip(wanted[done:], columns, strict=False):
            contrast = table["differs_in"][i] if passes[i] else Contrast.LOCATION
            is_named, given = bool(is_categorical[i]), (column, missing_code, target, contrast)
            found = effect_of(*given, is_categorical=is_named, z=z)
            table["measure"][i], table["toward"][i], (table["effect"][i], *ends) = found
            if task.groups is None:  # else rows are not independent, and ends would be too close
                table["low"][i], table["high"][i] = ends
        done += len(columns)
        resources.tell(Step("effects", done, len(wanted), unit="features"))


def _marginal_facts(neg_log10_p: Floats32, level: float) -> dict[str, Any]:
    """Return up to which p-value features pass Benjamini and Hochberg, and how many do."""
    weakest = least_passing(neg_log10_p, level)
    cutoff = p_values_of(np.array([weakest], np.float32))[0] if weakest < np.inf else 0.0
    n_marginal = int(np.count_nonzero(neg_log10_p >= weakest))
    return {"marginal_cutoff": float(cutoff), "n_marginal": n_marginal}


def _closing_columns(
    state: Elimination, features: Uints32, n_selected: int
) -> tuple[Floats, Floats]:
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
    scores = np.where(is_there, state.scores[places] / (1 << IMPORTANCE_BITS), np.nan)
    return scores, np.where(is_there, agreement[places], np.nan)


def _codes_of(
    resources: Resources, features: Uints32, most: int = correlation.MOST_ROWS
) -> tuple[NDArray[Any], int]:
    """Return the codes of features in as many rows as are enough, and that of missing values."""
    rows = sampled_rows(resources.n_rows, most)
    pieces = feature_tests.feature_columns(resources, features)
    codes = np.concatenate([columns[:, rows] for columns in pieces])
    return codes, resources.manifest.missing_code


# What a small set is chosen from: the selected features of a run, or its best-ranked ones.

MOST = 30_000
"""Candidates at most: those of the largest importance."""
WANTED = 200
"""Candidates at least: where fewer are selected, the best of the others are added."""


def candidates_of(ledger: Run, n_features: int) -> tuple[Uints32, Uints32, int]:
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
    spec = ledger.spec
    tally, kept = Tally(n_features, wins=not spec.concludes), KeptSet(n_features)
    ledger.load({TALLY: tally, SequentialRandomSubspace.name: kept})
    selected = kept.features.copy()
    if spec.concludes:
        verdict = Verdict.of(ledger)
        assert verdict is not None, "the run is done"
        selected = verdict.best["stored"]
    key, among = key_of(spec.run.seed), np.sort(selected)
    places = largest(lambda piece: mean_importance(tally, among[piece]), len(among), MOST, key)
    first = among[places]
    if len(first) >= WANTED:
        return first, first, len(selected)
    others = best_features(tally, WANTED + len(first), key)
    others = others[(tally.n_drawn[others] > 0) & ~np.isin(others, first)]
    return np.concatenate([first, others])[:WANTED], first, len(selected)


# The order in which a run's features are shown: by what they are worth together.

ROWS = 1024
"""Rows that correlations are computed from, at most: they tell 0.1 from 0, which is enough here."""


def _first_by_worth(resources: Resources, table: NDArray[Any], neg_log10_p: Floats32) -> Uints32:
    """Return the stored positions of the features to show first, at most ``HEAD`` unless selected.

    Selected features come before all others. The first ``HEAD``, by -log10 p of their tests
    (``neg_log10_p``, of the first rows of the table), are ordered by what they are worth together
    (:func:`srs_ooc.evidence.correlation.mrmr_order`); further selected ones follow. All that are
    not here follow by importance. Strengths do not depend on the trees: another seed gives much the
    same order.
    """
    stored: Uints32 = table["stored"]
    found, n_first = stored[: len(neg_log10_p)], np.count_nonzero(table["selected"])
    head = found[:HEAD]
    if not len(head):
        return stored
    # By their roots, which grow as a correlation with the target does.
    worth = np.sqrt(np.maximum(neg_log10_p[:HEAD].astype(np.float64), 0))
    columns = RankColumns(*_codes_of(resources, head, ROWS))
    tie = key_of(resources.spec.run.seed, Purpose.RANK_TIE)
    places = mrmr_order(worth, columns, head, tie, np.arange(len(head)) < n_first)
    return np.concatenate([head[places], found[HEAD:]])


# Names of the features that a verdict ranks, kept so that they can be read without the store.

NAMES_NBYTES = 2_000_000
"""Bytes of names that a verdict keeps at most, the first by rank before the others."""
RANKED_NAMES = "ranked_names"
"""Name of the ledger's arrays with them."""
LEVELS = "levels"
"""The same of levels of categorical features, of a store that has some."""


def _keep(ledger: Run, kind: str, features: Uints32, texts: Iterable[str]) -> None:
    """Keep the names of stored features, as many of the first as there is room for."""
    names: list[bytes] = []
    room = NAMES_NBYTES
    for name in map(str.encode, texts):
        room -= len(name)
        if room < 0:
            break
        names.append(name)
    arrays: dict[str, NDArray[Any]] = {
        "features": features[: len(names)],
        "names": np.frombuffer(b"".join(names), np.uint8),
        "ends": np.cumsum([len(name) for name in names], dtype=np.int64),
    }
    ledger.write_arrays(kind, arrays)


def keep_levels(ledger: Run, store: Store, table: NDArray[Any]) -> None:
    """Keep the names of the levels toward which effects of categorical features go."""
    categories, n_classes = store.categories(), max(1, len(store.manifest.classes))
    there = table[[Measure(measure).is_of_level for measure in table["measure"].tolist()]]
    levels = zip(there["stored"].tolist(), (there["toward"] // n_classes).tolist(), strict=True)
    texts = ((categories.of(feature) or [])[level] for feature, level in levels)
    _keep(ledger, LEVELS, there["stored"], texts)


def kept_names(ledger: Run, kind: str = RANKED_NAMES) -> dict[int, str]:
    """Return the names by stored position, best first; none of a run that kept none."""
    arrays = ledger.read_arrays(kind)
    if arrays is None:
        return {}
    text, ends = arrays["names"].tobytes(), arrays["ends"].tolist()
    names = [text[start:end].decode() for start, end in pairwise([0, *ends])]
    return dict(zip(arrays["features"].tolist(), names, strict=True))


def conclude(ledger: Run, plan: Plan, until: int, state: Elimination, began: float) -> None:
    """Bring a run whose closing stage is over to its verdict, or as far as it is allowed.

    ``began``: on the clock of ``time.monotonic``, less the seconds of work that were done before.
    """
    spec = plan.spec
    try:
        with Resources.of(plan, grows=False) as resources:
            key = key_of(spec.run.seed, Purpose.RANK_TIE, until)
            verdict = verdict_on(resources, state, key, ledger)
    except StoppedError:
        return
    facts = {
        "n_iterations": until,
        **verdict.facts,
        "seconds": time.monotonic() - began - ledger.progress().seconds,
        "peak_nbytes": peak_resident_nbytes(),
        "evidence": spec.judging.versions["evidence"],
        "begun_evidence": spec.judging.versions["evidence"],
        "classes": plan.task.classes,
    }
    if spec.adjusts_for:
        facts["adjust"] = ", ".join(spec.adjusts_for)
    table, first = verdict.table, verdict.order
    with plan.store.unchanged():
        beside = table["beside"][np.isin(table["stored"], first)]
        others = np.setdiff1d(beside, np.append(first, np.uint32(NOBODY)))
        shown, names = np.concatenate([first, others]), plan.store.names
        places = plan.store.positions_of(shown).tolist()
        _keep(ledger, RANKED_NAMES, shown, (names[at] for at in places))
        if plan.store.manifest.kind_counts.get("categorical"):
            keep_levels(ledger, plan.store, table)
    ledger.set_meta("iterations", until)
    ledger.set_meta(CONCLUSION, facts)
    arrays = {"n_iterations": np.array(until), "table": table, "order": first}
    arrays["location"] = verdict.location
    ledger.write_all([(VERDICT, arrays)], in_place_of=feature_tests.STRENGTHS)
