"""What a run says of one feature: its record, and its line in the verdict."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from srs_ooc.base.records import Saved, State
from srs_ooc.base.text import counted
from srs_ooc.evidence.effects import Measure
from srs_ooc.evidence.rank_tests import Contrast
from srs_ooc.ingestion.formats import Names
from srs_ooc.runs.feature_tests import NOBODY
from srs_ooc.runs.halves import HalvesRecord
from srs_ooc.runs.verdict import TABLE, Verdict

# What the final verdict of a run says, in words.

DIFFERENCES: dict[int, str] = {
    Contrast.LOCATION: "location",
    Contrast.SPREAD: "spread",
    Contrast.ABSENCE: "what is missing",
}
"""What a marginal test can show, in words."""


def held_text(verdict: Verdict, level: str) -> str:
    """Say the level, and the q-value that says by how much the selection keeps it."""
    what, q_value = "smallest q-value", verdict.table["q_value"].min(initial=1.0)
    if verdict.n_selected:
        what, q_value = "q-values of the selected up to", verdict.best["q_value"].max()
    beside = "".join(f" beside {names}" for names in [verdict.facts.get("adjust")] if names)
    return f"Level {level}{beside}, {what} {q_value:.4g}"


def why_none(verdict: Verdict, level: str) -> str:
    """Say why nothing is selected."""
    return (
        "No feature is different enough between the targets, alone or beside one or two others: "
        f"the smallest q-value is {verdict.table['q_value'].min(initial=1.0):.2g}, {level} was "
        "asked. More rows are needed, or nothing is there."
    )


def lambda_text(facts: dict[str, Any]) -> str | None:
    """Say the genomic inflation of a verdict with these facts; None where nothing was tested."""
    if facts.get("lambda") is None:
        return None
    n, error = f"{facts['n_effective']:,.0f}", f"{facts['lambda_error']:.2g}"
    return f"Lambda {facts['lambda']:.3g}, error {error} (that of {n} independent features)"


def lambda_cautions(verdict: Verdict) -> dict[str, tuple[bool, str]]:
    """Return what is warned of where all p-values together are not as they should be."""
    said, found = lambda_text(verdict.facts), verdict.facts.get("lambda_is")
    return {
        "The p-values are too small over all features": (
            found == "above",
            f"{said}; 1 is right. Something that goes with the target also goes with most features "
            "(a covariate left out, or a form that the null model lacks), or most features truly "
            "matter. What is known of the rows (a batch, a site, age): give it as --covariates at "
            "ingest, and `run --adjust all`.",
        ),
        "The p-values are too large over all features": (
            found == "below",
            f"{said}; 1 is right. Tests are cautious here, so that much may go unseen: rows that "
            "were matched are compared as if they were not (give the match as --strata), or "
            "covariates take up nearly all of the target.",
        ),
    }


def fields_of(verdict: Verdict, feature: int) -> dict[str, Any]:
    """Return what the verdict says of a stored feature, by fields of :class:`FeatureRecord`.

    ``beside`` has stored positions; nothing of a feature that it does not rank.
    """
    row = verdict.row(feature)
    if row is None:
        return {}
    found = {name: none_if_nan(row[name].item()) for name in _AS_KEPT}
    measure, classes = Measure(int(row["measure"])), verdict.facts["classes"] or [""]
    found |= {
        "cluster": found["cluster"] or None,
        "differs_in": "levels" if measure.is_of_level else DIFFERENCES.get(int(row["differs_in"])),
        "passes_alone": bool(row["p_value"] <= verdict.facts["marginal_cutoff"]),
        "beside": [other for other in row["beside"].tolist() if other != NOBODY],
        "inflation": verdict.facts.get("lambda"),
        "censoring_p": verdict.facts.get("censored_by", {}).get(str(feature)),
    }
    if found["effect"] is not None:
        level, k = divmod(int(row["toward"]), len(classes))
        name = verdict.levels.get(feature, f"no. {level + 1}")
        of_class = f"class {classes[k]}" if classes[k][:1].isdigit() else classes[k]
        found["direction"] = measure.direction(found["effect"], of_class, name)
        found["measure"] = measure.title
    return found


def none_if_nan(value: Any) -> Any:
    """Return a number; None for NaN."""
    return None if np.isnan(value) else value


def explain(record: "FeatureRecord", level: str, names: list[str], *, is_out: bool) -> str:
    """Say in one plain sentence why a feature is in or out.

    Parameters
    ----------
    record : FeatureRecord
        Its line.
    level : str
        What was asked.
    names : list of str
        Other features of its cluster.
    is_out : bool
        Whether the run was told to leave the feature out.
    """
    if record.q_value is None:
        if is_out:
            return f"{record.name} is out: the run was told to leave it out (--exclude)."
        return (
            f"{record.name} is out: drawn {counted(record.n_drawn, 'time')}, it was neither among "
            "the best of the search nor among those with the strongest tests."
        )
    is_in = f"{record.name} is {'in' if record.selected else 'out'}: rank {record.rank}"
    smallest = f"q-value {record.q_value:.4g} (the smallest level at which it would be selected"
    shows = f" It shows beside {record.beside}." if record.beside else ""
    alone = f"differs in {record.differs_in}" if record.passes_alone else ""
    is_alone = f"is{'' if alone else ' not'} marginally significant (p = {record.p_value:.2g}"
    tested = f" It {is_alone}{alone and f', it {alone}'})."
    more = f" Rank-correlated with {', '.join(names)}." if names else ""
    effect = ""
    if record.effect is not None:
        neutral = next(one.neutral for one in Measure if one.title == record.measure)
        low, high = (np.nan if end is None else end for end in (record.low, record.high))
        way = "no direction" if low < neutral < high else record.direction or "no difference"
        said = f"{way}: {size_text(vars(record))}"
        effect = f" Alone, {said}; likely overstated, as the same rows chose it."
        if record.censoring_p is not None:
            p = f"{record.censoring_p:.2g}"
            effect += f" Censoring differs, too (p = {p}): look why rows were lost."
    return f"{is_in}, {smallest}; {level} asked).{shows}{tested}{effect}{more}"


def size_text(fields: dict[str, Any]) -> str:
    """Say how much a feature differs, from the fields of its record: AUC 0.91 (0.84 to 0.96)."""
    ends = "" if fields["low"] is None else f" ({fields['low']:.2f} to {fields['high']:.2f})"
    return f"{fields['measure']} {fields['effect']:.2f}{ends}"


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
    the share of the halves of the rows that select it. ``inflation`` is lambda of the marginal
    tests of all features, the same in each line.

    Of selected and of marginally significant features, alone: which way they differ in words
    (``direction``), by which ``measure``, by how much (``effect``), and the ends of its 95%
    interval, ``low`` and ``high``: from the rows that were searched, so too large on average. Of a
    target of times ``censoring_p`` is the p-value of censoring that differs, where below 0.05.
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
    inflation: float | None = None
    direction: str | None = None
    measure: str | None = None
    effect: float | None = None
    low: float | None = None
    high: float | None = None
    censoring_p: float | None = None


_IN_WORDS = {"differs_in", "beside", "measure"}
_AS_KEPT = [
    name for name in TABLE.names or () if name in FeatureRecord.__annotations__.keys() - _IN_WORDS
]
"""Columns of the verdict that are shown as they are kept."""


@dataclass(frozen=True)
class ScoredRecord(FeatureRecord):
    """One feature's line where base models score it: its ``score`` has a standard error."""

    standard_error: float | None = None


def with_columns(
    kind: type[FeatureRecord], columns: Sequence[str]
) -> tuple[type[FeatureRecord], list[str]]:
    """Return a kind of record with texts more, to be set in its ``vars``, and their titles."""
    if not columns:
        return kind, []
    own = [field.name for field in fields(kind)]
    titles = [*Names.numbered([*own, *columns])][len(own) :]
    said = {"__annotations__": dict.fromkeys(titles, str | None)}
    made = dataclass(frozen=True, init=False, repr=False, eq=False)
    return made(type(kind.__name__, (kind,), said)), titles


def record_of(
    stored: int,
    name: Callable[[int], str],
    drawing: tuple[int, int, float, int],
    verdict: Verdict | None,
    halves: HalvesRecord | None,
    kind: type[FeatureRecord] = FeatureRecord,
    **further: Any,
) -> FeatureRecord:
    """Return the line of a stored feature: what its draws, the verdict and the halves say of it.

    ``drawing`` is its rank, how often it was drawn, its MDI, and of how many iterations.
    """
    rank, n_drawn, total, n_iterations = drawing
    said = {} if verdict is None else fields_of(verdict, stored)
    if said:
        said["beside"] = " and ".join(map(name, said["beside"])) or None
    if halves is not None:
        said["halves"] = halves.share(stored)
    fields: dict[str, Any] = {
        "name": name(stored),
        "rank": rank,
        "selected": False,
        "kept": False,
        "importance": total / n_drawn if n_drawn else None,
        "importance_ensemble": total / n_iterations if n_drawn else None,
        "n_drawn": n_drawn,
    }
    return kind(**fields | said | further)


class PartReader:
    """A part of a ledger that is only read: a function gets what was committed of it."""

    def __init__(self, restore: Callable[[Saved], None]) -> None:
        self.restore = restore

    def state(self) -> State:
        """Return nothing: it is only read."""
        return State()
