"""What a small set is chosen from: the selected features of a run, or its best-ranked ones."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.seeds import key_of
from srs_ooc.base.state import Stateful
from srs_ooc.evidence.ranking import largest, mean_importance
from srs_ooc.evidence.tally import Tally
from srs_ooc.runs.ledger import Ledger
from srs_ooc.runs.place import spec_of
from srs_ooc.runs.search import TALLY
from srs_ooc.runs.verdict import VERDICT
from srs_ooc.samplers.kept import KeptSet
from srs_ooc.samplers.srs import SequentialRandomSubspace

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
    def of(cls, ledger: Ledger, n_features: int, wanted: int = WANTED) -> "Candidates":
        """Return the candidates of a run that is done, at least as many as are ``wanted``.

        Features never drawn are none.
        """
        spec = spec_of(ledger)
        tally = Tally(spec.n_items(n_features), wins=not spec.concludes)
        kept = KeptSet(n_features)
        parts: dict[str, Stateful] = {TALLY: tally}
        if not spec.concludes:
            parts[SequentialRandomSubspace.name] = kept
        ledger.load(parts)
        selected = kept.features.copy()
        if spec.concludes:
            arrays = ledger.read_arrays(VERDICT)
            assert arrays is not None, "the run is done"
            selected = arrays["features"][arrays["tiers"] > 0]
        key = key_of(spec.seed)
        first = _largest(tally, selected, n_features, MOST, key)
        features = first
        if len(first) < wanted:
            others = _largest(tally, None, n_features, wanted + len(first), key)
            others = others[tally.n_drawn[others] > 0]
            features = np.concatenate([first, others[~np.isin(others, first)]])[:wanted]
        return cls(features, np.arange(len(features)) < len(first), len(selected))


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
