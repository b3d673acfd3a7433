"""What a run says of one feature: its record, and its line in the verdict."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.records import Saved, State
from srs_ooc.base.text import counted
from srs_ooc.evidence.effects import Measure
from srs_ooc.evidence.rank_tests import Contrast
from srs_ooc.runs.inputs import spec_of
from srs_ooc.runs.ledger import Ledger
from srs_ooc.runs.run_verdict import CONCLUSION, LEVELS, Rows, kept_names, read_verdict
from srs_ooc.runs.spec import RunSpec
from srs_ooc.runs.tests_beside import NOBODY
from srs_ooc.trees.response import IMPORTANCE_BITS

# What the final verdict of a run says of the features that reached its closing stage.

DIFFERENCES: dict[int, str] = {
    Contrast.LOCATION: "location",
    Contrast.SPREAD: "spread",
    Contrast.ABSENCE: "what is missing",
}
"""What a marginal test can show, in words."""


class VerdictReading:
    """The verdict of a concluded run.

    Attributes
    ----------
    features : uint32 (n,)
        Stored positions of the features of the pooled ranking: marginally significant ones first,
        then those that reached the closing stage.
    order : uint32 (m,)
        Stored positions of the features to show first.
    levels : float64 (n,)
        Their q-values.
    n_selected : int
        How many are selected.
    facts : dict
        The record about the verdict.
    """

    def __init__(
        self,
        spec: RunSpec,
        record: Rows,
        order: NDArray[np.uint32],
        facts: dict[str, Any],
        levels: dict[int, str] | None = None,
    ):
        self.spec, self.facts, self._levels = spec, facts, levels or {}
        self._record = record
        self.features, self.is_selected = record.features, record.is_selected
        self.levels = record.levels
        self.order = order if len(order) else record.features
        self.n_selected = int(np.count_nonzero(self.is_selected))
        self._place = {int(feature): i for i, feature in enumerate(self.features)}

    @classmethod
    def of(cls, ledger: Ledger) -> "VerdictReading | None":
        """Return the verdict on the iterations done, or None if there is none (yet)."""
        spec = spec_of(ledger)
        verdict = read_verdict(ledger) if spec.concludes else None
        if verdict is None:
            return None
        return cls(spec, *verdict, ledger.meta(CONCLUSION), kept_names(ledger, LEVELS))

    def selected(self) -> NDArray[np.uint32]:
        """Return the stored positions of the selected features, in the order to show."""
        return self.order[np.isin(self.order, self.features[self.is_selected])]

    def row(self, feature: int) -> dict[str, Any]:
        """Return what is said of a stored feature, by fields of :class:`FeatureRecord`."""
        i = self._place.get(feature)
        if i is None:
            return {}
        a = self._record
        cluster, p_value = int(a.groups[i]), none_if_nan(a.p_values[i])
        is_of_level = Measure(int(a["measure"][i])).is_of_level
        passes = None if p_value is None else p_value <= self.facts["marginal_cutoff"]
        return {
            "selected": bool(a.is_selected[i]),
            "q_value": float(a.levels[i]),
            "score": none_if_nan(a.scores[i] / (1 << IMPORTANCE_BITS)),
            "tree_agreement": none_if_nan(a.stability[i]),
            "cluster": cluster + 1 if cluster >= 0 else None,
            "p_value": p_value,
            "differs_in": "levels" if is_of_level else DIFFERENCES.get(int(a.contrasts[i])),
            "passes_alone": passes,
            "beside": [int(of[i]) for of in (a.beside, a.beside_too) if of[i] != NOBODY],
        } | self._effect(i, feature)

    def _effect(self, i: int, feature: int) -> dict[str, Any]:
        """Return what is known of the effect of a place's feature, alone; nothing if not known."""
        a, classes = self._record, self.facts.get("classes") or [""]
        if np.isnan(a["effect"][i]):
            return {}
        measure, effect = Measure(int(a["measure"][i])), float(a["effect"][i])
        level, k = divmod(int(a["toward"][i]), len(classes))
        name = self._levels.get(feature, f"no. {level + 1}")
        return {
            "direction": measure.direction(effect, classes[k], name),
            "measure": measure.title,
            "effect": effect,
            "low": none_if_nan(a["low"][i]),
            "high": none_if_nan(a["high"][i]),
        }

    def beside(self, feature: int) -> list[int]:
        """Return the stored positions of the other features of its cluster, best first."""
        cluster = self.row(feature).get("cluster")
        members = () if cluster is None else self.features[self._record.groups == cluster - 1]
        return [int(other) for other in members if other != feature]

    @property
    def held(self) -> str:
        """The level, beside the q-value that says by how much the selection keeps it."""
        levels = self._record.levels
        what, q_value = "smallest q-value", levels.min(initial=1.0)
        if self.n_selected:
            what, q_value = "q-values of the selected up to", levels[self.is_selected].max()
        return f"Level {self.spec.fdr}, {what} {q_value:.4g}"

    @property
    def clusters_selected(self) -> str | None:
        """How many clusters hold a selected feature; None where not all their places were seen."""
        clusters = self._record.groups[self.is_selected]
        if not len(clusters) or np.any(clusters < 0):
            return None
        return counted(len(np.unique(clusters)), "cluster")

    @property
    def n_alone_selected(self) -> int:
        """How many selected features are marginally significant."""
        cutoff = self.facts["marginal_cutoff"]
        return int(np.count_nonzero(self._record.p_values[self.is_selected] <= cutoff))

    @property
    def n_absent_selected(self) -> int:
        """How many selected features differ most in what is missing."""
        return int(np.count_nonzero(self._record.contrasts[self.is_selected] == Contrast.ABSENCE))

    @property
    def n_beside_selected(self) -> int:
        """How many selected features show more beside others than alone."""
        return int(np.count_nonzero(self._record.beside[self.is_selected] != NOBODY))

    def why_none(self) -> str:
        """Say why nothing is selected."""
        best = float(self._record.levels.min(initial=1.0))
        return (
            "No feature is different enough between the targets, alone or beside one or two "
            f"others: the smallest q-value is {best:.2g}, {self.spec.fdr} was asked. More rows are "
            "needed, or nothing is there."
        )


def none_if_nan(value: float) -> float | None:
    """Return a number; None for NaN."""
    return None if np.isnan(value) else float(value)


def explain(
    record: "FeatureRecord", stored: int, verdict: VerdictReading, names: list[str], *, is_out: bool
) -> str:
    """Say in one plain sentence why a feature is in or out.

    Parameters
    ----------
    record : FeatureRecord
        Its line.
    stored : int
        Its stored position.
    verdict : VerdictReading
        The verdict.
    names : list of str
        Other features of its cluster.
    is_out : bool
        Whether the run was told to leave the feature out.
    """
    row, name = verdict.row(stored) | {"beside": record.beside}, record.name
    if record.q_value is None:
        if is_out:
            return f"{name} is out: the run was told to leave it out (--exclude)."
        return (
            f"{name} is out: drawn {counted(record.n_drawn, 'time')}, it was neither among the "
            "best of the search nor among those with the strongest tests."
        )
    is_in = f"{name} is {'in' if row['selected'] else 'out'}: rank {record.rank}"
    level = f"q-value {row['q_value']:.4g} (the smallest level at which it would be selected"
    return f"{is_in}, {level}; {verdict.spec.fdr} asked).{_tail(row, names)}"


def _tail(row: dict[str, Any], names: list[str]) -> str:
    """Say what else is known of a feature."""
    alone, shown = "is not", ""
    if row["passes_alone"]:
        alone, shown = "is", f", it differs in {row['differs_in']}"
    more = f" Rank-correlated with {', '.join(names)}." if names else ""
    shows = f" It shows beside {row['beside']}." if row["beside"] else ""
    tested = f"{alone} marginally significant (p = {row['p_value']:.2g}{shown})"
    return f"{shows} It {tested}.{_effect_text(row)}{more}"


def _effect_text(row: dict[str, Any]) -> str:
    """Say which way a feature differs, and by how much."""
    if row.get("effect") is None:
        return ""
    said = f"{row['direction'] or 'no difference'}: {size_text(row)}"
    return f" Alone, {said}; likely overstated, as the same rows chose it."


def size_text(row: dict[str, Any]) -> str:
    """Say how much a feature differs, from the fields of its record: AUC 0.91 (0.84 to 0.96)."""
    ends = "" if row["low"] is None else f" ({row['low']:.2f} to {row['high']:.2f})"
    return f"{row['measure']} {row['effect']:.2f}{ends}"


# What a run says of one feature.


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
    the share of the halves of the rows that select it.

    Of selected and of marginally significant features, alone: which way they differ in words
    (``direction``), by which ``measure``, by how much (``effect``), and the ends of its 95%
    interval, ``low`` and ``high``: from the rows that were searched, so too large on average.
    """

    name: str
    rank: int
    selected: bool
    kept: bool
    importance: float | None
    importance_ensemble: float | None
    n_drawn: int
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
    direction: str | None = None
    measure: str | None = None
    effect: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class ScoredRecord(FeatureRecord):
    """One feature's line where base models score it: its ``score`` has a standard error."""

    standard_error: float | None = None


def record_of(
    kind: type[FeatureRecord],
    name: str,
    rank: int,
    n_drawn: int,
    total: float,
    n_iterations: int,
    further: dict[str, Any],
) -> FeatureRecord:
    """Return the line of a feature of ``total`` MDI, with further fields."""
    fields: dict[str, Any] = {
        "name": name,
        "rank": rank,
        "selected": False,
        "kept": False,
        "importance": total / n_drawn if n_drawn else None,
        "importance_ensemble": total / n_iterations if n_drawn else None,
        "n_drawn": n_drawn,
    }
    return kind(**fields | further)


class PartReader:
    """A part of a ledger that is only read: a function gets what was committed of it."""

    def __init__(self, restore: Callable[[Saved], None]) -> None:
        self.restore = restore

    def state(self) -> State:
        """Return nothing: it is only read."""
        return State()
