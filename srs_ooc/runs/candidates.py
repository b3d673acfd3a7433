"""What a small set is chosen from: the selected features of a run, or its best-ranked ones."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.records import Stateful
from srs_ooc.base.seeds import key_of
from srs_ooc.evidence.tally import Tally, largest, mean_importance
from srs_ooc.runs.ledger import Ledger
from srs_ooc.runs.place import spec_of
from srs_ooc.runs.search import TALLY
from srs_ooc.runs.spec import RunSpec
from srs_ooc.runs.verdict_record import VerdictRecord
from srs_ooc.samplers.srs import KeptSet, SequentialRandomSubspace

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
    def of(
        cls,
        tally: Tally,
        selected: NDArray[np.uint32],
        n_features: int,
        key: int,
        *,
        wanted: int,
        most: int,
    ) -> "Candidates":
        """Return the candidates, at least as many as are ``wanted`` if so many were drawn.

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
            Candidates at least; selected ones at most.
        """
        first = _largest(tally, selected, n_features, most, key)
        features = first
        if len(first) < wanted:
            others = _largest(tally, None, n_features, wanted + len(first), key)
            others = others[tally.n_drawn[others] > 0]
            features = np.concatenate([first, others[~np.isin(others, first)]])[:wanted]
        return cls(features, np.arange(len(features)) < len(first), len(selected))

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
        return cls.of(tally, selected, n_features, key_of(spec.seed), wanted=wanted, most=MOST)


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
