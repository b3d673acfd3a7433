"""Bringing a run to its verdict, and the verdict as the ledger keeps it.

What is selected is ordered by what it is worth together, and the lines of what comes first are
kept, so that they can be read without the store.
"""

import json
import time
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.arrays import Floats, Floats32, Integers, Uints32
from srs_ooc.base.budget import peak_resident_nbytes
from srs_ooc.base.errors import StoppedError
from srs_ooc.base.options import exact_share
from srs_ooc.base.records import Stateful, Step
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
from srs_ooc.runs.feature_tests import NOBODY, MarginalTests
from srs_ooc.runs.plan import Plan
from srs_ooc.runs.resources import Resources
from srs_ooc.runs.run import Run
from srs_ooc.samplers.elimination import Elimination
from srs_ooc.samplers.srs import KeptSet, SequentialRandomSubspace
from srs_ooc.store.arrays import Categories
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
    """

    table: NDArray[Any]
    order: Uints32
    facts: dict[str, Any]
    location: Integers

    @classmethod
    def of(cls, ledger: Run) -> "Verdict | None":
        """Return the verdict on the iterations done; None if there is none (yet)."""
        arrays = ledger.read_arrays(VERDICT)
        if arrays is None or int(arrays["n_iterations"]) != ledger.progress().iteration:
            return None  # or more iterations were done since
        return cls(arrays["table"], arrays["order"], ledger.meta(CONCLUSION), arrays["location"])

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
    # Ties by a key that is no seed's: who leads is then the same of all seeds (docs/evidence.md).
    leading = feature_tests.strongest(neg_log10_p, 0, tests.n_leaders)
    leaders = leading, neg_log10_p[leading]
    tests.split_level(neg_log10_p)
    weakest = least_passing(neg_log10_p, level)
    cutoff = p_values_of(np.array([weakest], np.float32))[0] if weakest < np.inf else 0.0
    n_marginal = int(np.count_nonzero(neg_log10_p >= weakest))
    facts = {"marginal_cutoff": float(cutoff), "n_marginal": n_marginal} | tests.inflation()
    if note := tests.task.note:
        facts["groups"] = note
    alone = neg_log10_p.copy()
    others = feature_tests.add_tests_beside(tests, neg_log10_p, leaders, state.features)
    p_beside = p_values_of(neg_log10_p[[*others]]).tolist()
    facts["p_beside"] = dict(zip(map(str, others), p_beside, strict=True))  # as JSON has it
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
    table["differs_in"] = tests.strongest_of(features)[1]
    clusters = correlation.single_linkage(*sampled_codes(resources, features[:CLUSTERED]))
    table["cluster"][: len(clusters)] = 1 + np.unique(clusters, return_inverse=True)[1]
    table["beside"] = [others.get(feature, [NOBODY, NOBODY]) for feature in features.tolist()]
    _add_effects(resources, tests, table, cutoff, n_tested)
    shown = np.flatnonzero(table["selected"] | (table["p_value"] <= cutoff))
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
    resources: Resources, tested: MarginalTests, table: NDArray[Any], cutoff: float, n_tested: int
) -> None:
    """Say of selected and marginally significant features which way they differ, and how much."""
    table["measure"], table["toward"] = Measure.NONE, -1
    table["effect"] = table["low"] = table["high"] = np.nan
    task, missing_code = tested.task, tested.missing_code
    target = feature_tests.effect_target(task)
    passes, features = table["p_value"] <= cutoff, table["stored"]
    wanted = np.flatnonzero(table["selected"] | passes)
    if task.units is not None and resources.categorical is not None:
        # Of means of ranks of categories, higher or lower says nothing.
        wanted = wanted[~resources.categorical[features[wanted]]]
    z = wide_enough(len(wanted), n_tested)
    kinds = tested.categorical(features[wanted])
    kinds = np.zeros(len(wanted), np.bool_) if kinds is None else kinds
    for at, columns in tested.columns(features[wanted]):
        resources.tell(Step("effects", at.start, len(wanted), unit="features"))
        for i, kind, column in zip(wanted[at], kinds[at].tolist(), columns, strict=True):
            contrast = table["differs_in"][i] if passes[i] else Contrast.LOCATION
            given = column, missing_code, target, contrast
            found = effect_of(*given, is_categorical=kind, z=z)
            table["measure"][i], table["toward"][i], (table["effect"][i], *ends) = found
            if task.groups is None:  # else rows are not independent, and ends would be too close
                table["low"][i], table["high"][i] = ends
        resources.tell(Step("effects", at.stop, len(wanted), unit="features"))


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


def sampled_codes(
    resources: Resources, features: Uints32, most: int = correlation.MOST_ROWS
) -> tuple[NDArray[Any], int]:
    """Return the codes of features in as many rows as are enough, and that of missing values."""
    rows = sampled_rows(resources.n_rows, most)
    pieces = feature_tests.feature_columns(resources, features)
    codes = np.concatenate([columns[:, rows] for _, columns in pieces])
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
    columns = RankColumns(*sampled_codes(resources, head, ROWS))
    tie = key_of(resources.spec.run.seed, Purpose.RANK_TIE)
    places = mrmr_order(worth, columns, head, tie, np.arange(len(head)) < n_first)
    return np.concatenate([head[places], found[HEAD:]])


# What a run says of one feature: its line. Those of the head of the list are kept in the ledger, so
# that they can be read without the store.

LINES = "lines"
"""Name of the ledger's record with the lines of the head: their titles, and a list for each."""
LINES_NBYTES = 2_000_000
"""Bytes of lines that a verdict keeps at most, the first by rank before the others."""
DIFFERENCES: dict[int, str] = {
    Contrast.LOCATION: "location",
    Contrast.SPREAD: "spread",
    Contrast.ABSENCE: "what is missing",
}
"""What a marginal test can show, in words."""


@dataclass(frozen=True)
class FeatureRecord:
    """One feature's line; None where the judge or the draws do not define a value.

    ``importance`` is total MDI / trees grown on subspaces it was in (what ``rank`` follows),
    ``importance_ensemble`` total MDI / all trees (Eq. 1), ``n_drawn`` the subspaces it was in,
    ``p_better`` the share of them in which it beat the probe, over all trees of the subspace,
    ``entered`` the iteration after which it entered F, counted from 1. A method that ranks by
    scores of its own gives each feature its ``score``, and ``rank`` follows that.

    The rest is of the final verdict, for features that reached its closing stage; these rank first,
    by it. ``q_value`` is the smallest level at which it would be selected; ``score`` its mean
    importance in the last round of the closing stage that it was in; ``tree_agreement`` the share
    of ten batches of that round's trees that put it among as many as are selected, no measure of
    evidence; ``cluster`` its cluster of rank-correlated features, from 1 by their best places. Of
    its marginal test, alone: ``p_value``, what the test saw (``differs_in``), and whether it passes
    Benjamini and Hochberg, over all features, at the run's level. ``beside`` names the one or two
    other features beside which it shows more than alone. Of a run with ``--halves``: ``halves`` is
    the share of the halves of the rows that select it. ``inflation`` is lambda of the marginal
    tests of all features, the same in each line.

    Of selected and of marginally significant features, alone: which way they differ in words
    (``direction``), by which ``measure``, by how much (``effect``), and the ends of its 95%
    interval, ``low`` and ``high``: from the rows that were searched, so too large on average. Of a
    target of times ``censoring_p`` is the p-value of censoring that differs, where below 0.05.
    """

    name: str
    rank: int
    selected: bool = False
    kept: bool = False
    importance: float | None = None
    importance_ensemble: float | None = None
    n_drawn: int = 0
    p_better: float | None = None
    entered: int | None = None
    q_value: float | None = None
    score: float | None = None
    tree_agreement: float | None = None
    halves: float | None = None
    cluster: int | None = None
    p_value: float | None = None
    differs_in: str | None = None
    passes_alone: bool | None = None
    beside: str | None = None
    inflation: float | None = None
    direction: str | None = None
    measure: str | None = None
    effect: float | None = None
    low: float | None = None
    high: float | None = None
    censoring_p: float | None = None


_IN_WORDS = {"differs_in", "beside", "measure"}
_AS_KEPT = (FeatureRecord.__annotations__.keys() & set(TABLE.names or ())) - _IN_WORDS
"""Columns of the verdict that are shown as they are kept."""


def none_if_nan(value: Any) -> Any:
    """Return a number; None for NaN."""
    return None if np.isnan(value) else value


class Lines:
    """What a run's ledger and its store say of each feature, as of one commit.

    Parameters
    ----------
    ledger : Run
        Open for reading.
    store : Store
        The run's store.
    parts : dict of Stateful
        Restored as of the same commit.
    verdict : Verdict, optional
        Where it is not in the ledger yet.

    Attributes
    ----------
    positions : uint32 (n_features,)
        Source position of each stored feature.
    tally : Tally
        What the iterations taught of each feature.
    n_iterations : int
        Iterations read.
    """

    record_type: type[FeatureRecord] = FeatureRecord

    def __init__(
        self,
        ledger: Run,
        store: Store,
        parts: dict[str, Stateful],
        verdict: Verdict | None = None,
    ) -> None:
        self._store, n_features = store, store.n_features
        self._unit = float(ledger.spec.learner.trees_per_subspace << IMPORTANCE_BITS)
        # Before the tallies: checking what is read takes memory that is then free again.
        with store.unchanged():
            self._names, self.positions = store.names, np.asarray(store.array("positions"))
        self.tally = Tally(n_features, wins=not ledger.spec.concludes)
        self.n_iterations = ledger.load({TALLY: self.tally} | parts).iteration
        self.verdict = verdict or Verdict.of(ledger)

    def name(self, stored: int) -> str:
        """Return the name of a stored feature."""
        return self._names[int(self.positions[stored])]

    @cached_property
    def _categories(self) -> Categories:
        with self._store.unchanged():
            return self._store.categories()

    def record(self, rank: int, stored: int, **further: Any) -> FeatureRecord:
        """Return the line of a stored feature, whose rank is known."""
        fields: dict[str, Any] = self._judged(stored)
        if n_drawn := int(self.tally.n_drawn[stored]):
            total = int(self.tally.importance[stored]) / self._unit
            fields |= {"n_drawn": n_drawn, "importance": total / n_drawn}
            fields["importance_ensemble"] = total / self.n_iterations
        return self.record_type(self.name(stored), rank, **fields | further)

    def _judged(self, stored: int) -> dict[str, Any]:
        """Return what the verdict says of a feature; nothing of one that it does not rank."""
        verdict = self.verdict
        if verdict is None or (row := verdict.row(stored)) is None:
            return {}
        found = {name: none_if_nan(row[name].item()) for name in _AS_KEPT}
        measure, classes = Measure(int(row["measure"])), verdict.facts["classes"] or [""]
        others = [self.name(other) for other in row["beside"].tolist() if other != NOBODY]
        differs = DIFFERENCES.get(int(row["differs_in"]))
        found |= {
            "cluster": found["cluster"] or None,
            "differs_in": "levels" if measure.is_of_level else differs,
            "passes_alone": bool(row["p_value"] <= verdict.facts["marginal_cutoff"]),
            "beside": " and ".join(others) or None,
            "inflation": verdict.facts.get("lambda"),
            "censoring_p": verdict.facts.get("censored_by", {}).get(str(stored)),
        }
        if found["effect"] is not None:
            level, k = divmod(int(row["toward"]), len(classes))
            texts = self._categories.of(stored) if measure.is_of_level else None
            of_class = f"class {classes[k]}" if classes[k][:1].isdigit() else classes[k]
            way = measure.direction(found["effect"], of_class, texts[level] if texts else "")
            found |= {"direction": way, "measure": measure.title}
        return found


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
    facts = verdict.facts
    facts |= {
        "n_iterations": until,
        "seconds": time.monotonic() - began - ledger.progress().seconds,
        "peak_nbytes": peak_resident_nbytes(),
        "evidence": spec.judging.versions["evidence"],
        "begun_evidence": spec.judging.versions["evidence"],
        "classes": plan.task.classes,
    }
    if spec.adjusts_for:
        facts["adjust"] = ", ".join(spec.adjusts_for)
    said, room, kept = Lines(ledger, plan.store, {}, verdict), LINES_NBYTES, []
    for rank, stored in enumerate(verdict.order.tolist(), 1):
        kept.append([*vars(said.record(rank, stored)).values()])
        room -= len(json.dumps(kept[-1]))
        if room < 0:
            break
    ledger.set_meta(LINES, [[*FeatureRecord.__annotations__], *kept])
    ledger.set_meta("iterations", until)
    ledger.set_meta(CONCLUSION, facts)
    arrays = {"n_iterations": np.array(until), "table": verdict.table, "order": verdict.order}
    arrays["location"] = verdict.location
    ledger.write_all([(VERDICT, arrays)], in_place_of=feature_tests.STRENGTHS)
