"""What a run's selected features show in another store: a second cohort, plate or site."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from math import comb
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.arrays import Bools, Floats, Indices, Uints32
from srs_ooc.base.errors import RunError, unfit
from srs_ooc.base.seeds import Purpose, key_of
from srs_ooc.base.text import counted
from srs_ooc.ensemble import compaction
from srs_ooc.ensemble.compaction import MOST_HELD_OUT, forest_says, held_out_nbytes
from srs_ooc.ensemble.panels import translate, translation
from srs_ooc.evidence import effects, rank_tests
from srs_ooc.evidence.conditional_tests import Looked, halves
from srs_ooc.evidence.effects import EffectTarget, Interval, effect_of
from srs_ooc.evidence.rank_tests import FIXED_SHARES, Contrast, contrasts_log_p, strongest_of
from srs_ooc.native.numerics import log
from srs_ooc.results.exporting import places_of
from srs_ooc.results.pair_record import AT_ONCE, PairRecord, codes_of, pairs_of
from srs_ooc.results.ranking import Ranking
from srs_ooc.results.report import Report
from srs_ooc.runs.feature_tests import NOBODY, effect_target, target_of
from srs_ooc.runs.resources import Resources, categorical_features
from srs_ooc.runs.task import Task
from srs_ooc.runs.verdict import none_if_nan
from srs_ooc.store.store import Store
from srs_ooc.store.values import midpoints, whole_columns

LEVEL = 0.05
"""Of all features together, by Bonferroni, at which one is said to show again."""
_HELD_CELLS = 1 << 23
"""Cells of features that are read together, of the others beside them at most twice as many."""


@dataclass(frozen=True)
class AssessedRecord:
    """A selected feature in its own store and in another; None where a value is not defined.

    ``beside`` names the others beside which it was found; it is tested beside the same there.
    ``effect``, ``low`` and ``high`` are those of the run (:class:`FeatureRecord`), likely too
    large, as the same rows chose the feature; ``effect_there`` and the like those of the other
    store, with an interval of 95%. Beside one other they are the difference of differences of
    :class:`PairRecord`; beside two there is none. ``same_way`` is whether both go the same way;
    ``p_value`` is of the other store alone, and ``shows_again`` says that it is at most 0.05 over
    the features there are, and that the way is not another.
    """

    name: str
    is_there: bool
    beside: str
    measure: str
    effect: float | None
    low: float | None
    high: float | None
    effect_there: float | None = None
    low_there: float | None = None
    high_there: float | None = None
    same_way: bool | None = None
    p_value: float | None = None
    shows_again: bool = False


class _There(NamedTuple):
    """The other store, as features are tested there."""

    task: Task
    target: rank_tests.RankTarget
    effects: EffectTarget
    categorical: Bools

    @classmethod
    def of(cls, store: Store) -> "_There":
        task = Task.of(store, exchanges=True).by_group()
        kinds = categorical_features(store) if task.units is None else None
        kinds = np.zeros(store.n_features, np.bool_) if kinds is None else kinds
        return cls(task, target_of(task), effect_target(task), kinds)


def assess(report: Report, other: Store) -> list[AssessedRecord]:
    """Return what each selected feature of a run shows in another store, best first.

    Raises
    ------
    RunError
        If the run has no verdict by tests.
    InputError
        If the other store is the run's own, has another kind of target or other classes, or none of
        the features.
    """
    verdict = report.reading.verdict
    if verdict is None:
        raise RunError(
            f"{report.name}: expected a run with a verdict by tests, found none (yet). Let it end: "
            "srs-ooc resume."
        )
    if other.fingerprint == report.store.fingerprint:
        own = "the run's own, whose rows chose the features"
        raise unfit(other.path, "a store of other rows", own, "Ingest a second cohort.")
    check_target(report.store, other)
    chosen = verdict.selected().tolist()
    beside = (verdict.row(feature)["beside"].tolist() for feature in chosen)
    tested = [
        [f, *(o for o in others if o != NOBODY)] for f, others in zip(chosen, beside, strict=True)
    ]
    names = {feature: report.reading.name(feature) for one in tested for feature in one}
    places = _places_of(other, names.values())
    there_as = [[places.get(names[feature], -1) for feature in one] for one in tested]
    n_there = sum(min(one) >= 0 for one in there_as)
    if chosen and not n_there:
        expected = f"features by the names of {report.name}, such as {names[chosen[0]]!r}"
        none = f"none of its {len(chosen)} selected ones"
        raise unfit(other.path, expected, none, "Name them alike.")
    there, found = _There.of(other), list[AssessedRecord]()
    of_pairs = pairs_of(report.reading, report.task, report.store, only_selected=True)
    pairs = {p.record.name: p.record for p in of_pairs if p.record.within is None}
    step, every = max(1, min(AT_ONCE, _HELD_CELLS // other.n_rows)), np.arange(there.task.n_rows)
    for first in range(0, len(chosen), step):
        some = slice(first, first + step)
        wanted = {place for one in there_as[some] for place in one} - {-1}
        stored = np.array(sorted(wanted), np.int64)
        read, missing_code = codes_of(other, there.task, stored, every)
        for together, at in zip(tested[some], there_as[some], strict=True):
            record = _here(report.reading, together, pairs)
            if min(at) >= 0:
                row, codes = verdict.row(together[0]), read[np.searchsorted(stored, at)]
                kind = bool(there.categorical[at[0]])
                shown = _beside(record, row, codes, missing_code, there, is_categorical=kind)
                record = _shown_there(record, *shown, n_there)
            found.append(record)
    return found


def assess_named(names: Iterable[str], other: Store) -> list[AssessedRecord]:
    """Return what features by these names show in a store, each alone, in the order of the names.

    The p-value is of the contrast that shows most, as in a run; nothing is known of an effect here.

    Raises
    ------
    InputError
        If the store has none of them.
    """
    wanted, there = list(dict.fromkeys(names)), _There.of(other)
    places = _places_of(other, wanted)
    if not places:
        such, none = ", ".join(map(repr, wanted[:3])), f"none of the {len(wanted)}"
        expected = f"features by the names that were given, such as {such}"
        raise unfit(other.path, expected, none, "Name them alike, one a line.")
    found = {name: AssessedRecord(name, False, "", "", None, None, None) for name in wanted}
    stored, step = sorted(places.values()), max(1, _HELD_CELLS // other.n_rows)
    at = {place: name for name, place in places.items()}
    for first in range(0, len(stored), step):
        some = np.array(stored[first : first + step], np.int64)
        codes, code = codes_of(other, there.task, some, np.arange(there.task.n_rows))
        kinds = there.categorical[some]
        log_p = contrasts_log_p(codes, code, there.target, categorical=kinds)
        strength, contrasts = strongest_of(log_p, FIXED_SHARES)
        p_values = rank_tests.p_values_of(strength)
        for i, place in enumerate(some.tolist()):
            tested, kind = (codes[i], code, there.effects, int(contrasts[i])), bool(kinds[i])
            measure, _, ends = effect_of(*tested, is_categorical=kind)
            record = replace(found[at[place]], measure=measure.title if measure else "")
            found[at[place]] = _shown_there(record, ends, float(p_values[i]), len(places))
    return list(found.values())


@dataclass(frozen=True)
class PanelScore:
    """How well the selected features predict the rows of the other store, with a 95% interval.

    Rows are taken as independent.
    """

    measure: str
    score: float
    low: float
    high: float
    n_features: int
    n_rows: int


def panel_scores(
    report: Report, other: Store, memory_mb: int, threads: int | None = None
) -> list[PanelScore]:
    """Return what a forest on the selected features, grown on the run's rows, says of others.

    It is the forest that ``compact`` scores sets with, on the best of the features that both stores
    have; their values there get the codes of the run's store. Of two classes the share predicted
    right and the area under the curve (DeLong), of more the share alone (Wilson), of numbers
    Spearman's correlation, of times Harrell's C. Where the run is adjusted for covariates, they are
    not in the forest, which weighs rows as the run does: the share is left out then. Empty where
    there is nothing to predict by, or the other store keeps no values.

    Raises
    ------
    BudgetError
        If the cap cannot hold the forest.
    """
    spec, store = report.spec, report.store
    plan = report.plan.asked(memory_mb=memory_mb, threads=threads)
    chosen = report.selected[: compaction.room_for(plan)].tolist()
    names = {feature: report.reading.name(feature) for feature in chosen}
    places = _places_of(other, names.values())
    features = np.array(sorted(f for f in chosen if names[f] in places), np.uint32)
    if not len(features) or not spec.learner.is_tree or other.manifest.values_dtype is None:
        return []
    rows = np.linspace(0, other.n_rows - 1, min(other.n_rows, MOST_HELD_OUT)).astype(np.intp)
    at = [places[names[f]] for f in features.tolist()]
    extra = 16 * len(features) * len(rows) + 16 * other.n_rows
    extra += held_out_nbytes(len(rows), len(features), store.manifest)
    with Resources.of(compaction.small(plan, saves=True), beside_nbytes=extra) as parts:
        panel = _recoded(store, features, other, at, rows)
        key = key_of(spec.run.seed, Purpose.COMPACT)
        said = forest_says(parts, parts.trees.rows, features, panel, key)
    sizes, task = (len(features), len(rows)), Task.of(other, exchanges=True)
    if task.censored is not None:
        risks = np.unique(said[:, 0], return_inverse=True)[1]
        ends = effects.concordance(risks, task.censored.of_rows(rows))
        return [PanelScore("C-index", *ends, *sizes)]
    ranks = effects.Levels.of(np.unique(said[:, -1], return_inverse=True)[1], None)
    target = task.target[rows]
    if not task.classes:
        numbers = effects.Levels.of(np.unique(target, return_inverse=True)[1], None)
        return [PanelScore("rank correlation", *effects.spearman(ranks, numbers), *sizes)]
    found = []
    if not spec.adjusts_for:
        right = float(np.mean(np.argmax(said, axis=1) == target))
        share = Interval(right, *effects.wilson(right, len(rows), effects.Z))
        found.append(PanelScore("share predicted right", *share, *sizes))
    if len(task.classes) == 2:
        found.append(PanelScore("AUC", *effects.auc(ranks, target == 1), *sizes))
    return found


def _recoded(
    store: Store, features: Uints32, other: Store, places: list[int], rows: Indices
) -> Floats:
    """Return rows of the other store, its features at ``places``, by the codes of the run's."""
    panel, order = np.empty((len(features), len(rows))), np.argsort(places)
    for i, column in whole_columns(other.values(), np.sort(places)):
        panel[order[i]] = column[rows]
    theirs, ours = other.categories(), store.categories()
    for i, lows, highs in store.code_ranges(features.astype(np.int64)):
        texts, known = theirs.of(places[i]), ours.of(int(features[i]))
        if known is not None:
            translate(panel[i], translation(texts or [], known))
            panel[i, panel[i] < 0] = np.nan  # a category that the run has not seen
            continue
        n_codes = np.count_nonzero(~np.isnan(lows))
        cuts = midpoints(highs[: n_codes - 1], lows[1:n_codes])
        is_there = ~np.isnan(panel[i])
        panel[i, is_there] = np.searchsorted(cuts, panel[i, is_there])
    return panel


def check_target(here: Store, other: Store) -> None:
    """Refuse another kind of target, or other classes.

    Raises
    ------
    InputError
        Saying what both are.
    """
    ours, theirs = here.manifest, other.manifest
    kinds = [
        (m.task, "events" in m.row_columns, m.classes if len(m.classes) else None)
        for m in (ours, theirs)
    ]
    if kinds[0] != kinds[1]:
        said = [", ".join(m.classes) or m.task for m in (ours, theirs)]
        expected = f"a target as the run's ({said[0]})"
        remedy = "Ingest it with the same --target and --task, classes named alike."
        raise unfit(other.path, expected, said[1], remedy)


def _places_of(store: Store, names: Iterable[str]) -> dict[str, int]:
    """Return the stored positions of those names that there are."""
    wanted = set(names)
    found = {name: source for source, name in enumerate(store.names) if name in wanted}
    if not found:
        return {}
    return dict(zip(found, places_of(store, np.array([*found.values()])).tolist(), strict=True))


def _here(reading: Ranking, together: list[int], pairs: dict[str, PairRecord]) -> AssessedRecord:
    """Return what the run itself shows of a feature."""
    name, *others = map(reading.name, together)
    said = vars(pairs[name]) if len(others) == 1 and name in pairs else {}
    if not others:
        said = vars(reading.record(0, together[0]))
    effect, low, high = (said.get(what) for what in ("effect", "low", "high"))
    measure = said.get("measure", "") if others or effect else ""
    return AssessedRecord(name, False, " and ".join(others), measure, effect, low, high)


def _beside(
    record: AssessedRecord,
    row: Any,
    codes: NDArray[Any],
    code: int,
    there: _There,
    *,
    is_categorical: bool,
) -> tuple[Interval, float]:
    """Return the effect in the other store, and the p-value; ``row`` is that of the verdict.

    ``codes``: of the feature, and of those beside which it is tested.
    """
    column, kinds = np.ascontiguousarray(codes[:1]), np.array([is_categorical])
    found = effects.UNKNOWN
    if len(codes) > 1:
        looked = Looked(codes, code, there.target)
        parts = looked.parts([*range(1, len(codes))], there.target)
        log_ps = [contrasts_log_p(column, code, part, categorical=kinds) for part in parts]
        strength = rank_tests.combined(
            np.array([strongest_of(one, FIXED_SHARES)[0] for one in log_ps])
        )
        if record.measure:  # of a pair: of the class, or the numbers, that this is of
            task, values = there.task, there.task.target.astype(np.float64)
            if task.classes:
                values = task.target == task.classes.index(record.measure.removeprefix("share of "))
            is_known, high = (codes < code).all(axis=0), halves(codes, code)
            strata = None if task.strata is None else task.strata[is_known]
            cells = (2 * high[0].astype(np.int64) + high[1])[is_known]
            found = effects.interaction(values[is_known], cells, strata)
    else:
        only = Contrast(int(row["differs_in"]) % len(Contrast))
        log_p = contrasts_log_p(column, code, there.target, only=only, categorical=kinds)
        strength = np.nan_to_num(-log_p[:, only] / log(10.0))
        if not is_categorical:  # levels are numbered by each store in its own way
            found = _effect(column[0], code, row, there.effects)
    return found, float(rank_tests.p_values_of(strength)[0])


def _effect(column: NDArray[Any], code: int, row: Any, target: EffectTarget) -> Interval:
    """Return the effect of the same measure; toward the same class, where there are several."""
    if target.n_classes > 2 and row["toward"] >= 0:
        k = int(row["toward"]) % target.n_classes
        target = target._replace(codes=(target.codes == k).astype(np.int32), n_classes=2)
    measure, _, found = effect_of(column, code, target, int(row["differs_in"]))
    return found if measure else effects.UNKNOWN


def _shown_there(
    record: AssessedRecord, ends: Interval, p_value: float, n_there: int
) -> AssessedRecord:
    """Return the record with what the other store shows: whether the same way, and again."""
    effect, low, high = map(none_if_nan, ends)
    neutral = next((m.neutral for m in effects.Measure if m.title == record.measure), 0.0)
    same = None
    if record.effect is not None and effect is not None:
        same = (record.effect > neutral) == (effect > neutral)
    again = same is not False and p_value <= LEVEL / n_there
    there = replace(record, effect_there=effect, low_there=low, high_there=high, same_way=same)
    return replace(there, is_there=True, p_value=p_value, shows_again=again)


def summary(
    records: list[AssessedRecord], scores: list[PanelScore], what: str = "selected"
) -> Iterator[str]:
    """Yield how many features are there, go the same way and show again; what they predict."""
    there = [record for record in records if record.is_there]
    yield f"{len(there)} of {len(records)} {what} features are in the other store."
    if not there:
        return
    told = [record.same_way for record in there if record.same_way is not None]
    n, same = len(told), sum(told)
    if n:
        chance = sum(comb(n, k) for k in range(same, n + 1)) / 2**n
        yield (
            f"{same} of {n} go the same way; {n / 2:g} would by chance (so many or more: p = "
            f"{chance:.2g}, if features are independent)."
        )
    again = sum(record.shows_again for record in there)
    yield (
        f"{again} of {len(there)} show again: p at most {LEVEL:g} / {len(there)}, and no other way."
    )
    n_other = sum(r.same_way is False and (r.p_value or 0) <= LEVEL / len(there) for r in there)
    if n_other:
        yield (
            f"{n_other} of {len(there)} show as clearly the other way: look whether both stores "
            "code them alike, as genotypes count the same allele."
        )
    if scores:
        said = ", ".join(f"{s.measure} {s.score:.3f} ({s.low:.3f} to {s.high:.3f})" for s in scores)
        yield (
            f"A forest on {counted(scores[0].n_features, 'feature')}, grown on the run's rows, "
            f"predicts there: {said}; 95% intervals, as of independent rows."
        )
