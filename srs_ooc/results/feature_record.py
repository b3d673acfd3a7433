"""What a run and its verdict say in words."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from srs_ooc.base.records import Saved, State
from srs_ooc.base.text import counted
from srs_ooc.evidence.effects import Measure
from srs_ooc.ingestion.formats import Names
from srs_ooc.runs.verdict import FeatureRecord, Verdict


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
            "(a covariate measured with error, or left out, or a form that the null model lacks), "
            "or most features truly matter. What is known of the rows (a batch, a site, age): give "
            "it as --covariates at ingest, and `run --adjust all`.",
        ),
        "The p-values are too large over all features": (
            found == "below",
            f"{said}; 1 is right. Tests are cautious here, so that much may go unseen: rows that "
            "were matched are compared as if they were not (give the match as --strata), or "
            "covariates take up nearly all of the target.",
        ),
    }


def explain(record: FeatureRecord, level: str, names: list[str], *, is_out: bool) -> str:
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


class PartReader:
    """A part of a ledger that is only read: a function gets what was committed of it."""

    def __init__(self, restore: Callable[[Saved], None]) -> None:
        self.restore = restore

    def state(self) -> State:
        """Return nothing: it is only read."""
        return State()
