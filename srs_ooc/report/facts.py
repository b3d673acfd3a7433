"""Everything a report says, gathered: what pages, texts and JSON are made of."""

from dataclasses import asdict, dataclass
from typing import Any

from srs_ooc.report.cautions import Caution, cautions_of
from srs_ooc.report.correlations import Correlations, correlations_of
from srs_ooc.report.course import (
    Discoveries,
    Draws,
    Usage,
    discoveries_of,
    draws_of,
    usage_of,
)
from srs_ooc.report.cut import Cut, cut_of
from srs_ooc.report.held_out import HeldOut, held_out_of
from srs_ooc.report.repeat import Repeat, repeat_of
from srs_ooc.report.sentences import not_claimed_of, summary_of, surety_of
from srs_ooc.report.source import Source
from srs_ooc.results.feature_record import FeatureRecord
from srs_ooc.results.status import Status


@dataclass(frozen=True)
class Facts:
    """What a report says.

    Attributes
    ----------
    name : str
        Of the run.
    summary, surety, not_claimed : list of str
        Sentences.
    cautions : list of Caution
        Warnings.
    features : list of FeatureRecord
        The listed ones, best first: those selected, or, if none is, the first by rank.
    n_selected : int
        Features selected, listed or not.
    """

    name: str
    summary: list[str]
    surety: list[str]
    not_claimed: list[str]
    cautions: list[Caution]
    features: list[FeatureRecord]
    n_selected: int
    status: Status
    cut: Cut
    discoveries: Discoveries
    draws: Draws
    correlations: Correlations
    held_out: HeldOut | None
    usage: Usage
    repeat: Repeat

    def values(self) -> dict[str, Any]:
        """Return the facts as JSON-ready values."""
        return asdict(self)


def facts_of(source: Source) -> Facts:
    """Gather what a report on a run says.

    Raises
    ------
    RunError, StoreError
        If the run or its store is damaged.
    """
    records = list(source.reading.records(source.listed))
    draws, held_out = draws_of(source), held_out_of(source)
    return Facts(
        source.ledger.run.absolute().name,
        summary_of(source, records),
        surety_of(source),
        not_claimed_of(source),
        cautions_of(source, records, draws, held_out),
        records,
        0 if source.reading.is_provisional else len(source.selected),
        source.status,
        cut_of(source),
        discoveries_of(source),
        draws,
        correlations_of(source),
        held_out,
        usage_of(source),
        repeat_of(source),
    )
