"""What a run says of each feature, ranked."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from srs_ooc.evidence.tally import Tally
from srs_ooc.kernel.tree import IMPORTANCE_BITS
from srs_ooc.ledger import Ledger
from srs_ooc.runs import spec_of
from srs_ooc.samplers.kept import KeptSet
from srs_ooc.store.manifest import read_manifest
from srs_ooc.store.names import Names, read_array

_PIECE = 1 << 13


@dataclass(frozen=True)
class FeatureRecord:
    """One feature's line; None where the judge or the draws do not define a value.

    ``importance`` is total MDI / trees grown on subspaces it was in (what ``rank`` follows),
    ``importance_ensemble`` total MDI / all trees (Eq. 1), ``n_drawn`` the subspaces it was in,
    ``p_better`` the share of them in which it beat the probe, over all trees of the subspace,
    ``entered`` the iteration after which it entered F, counted from 1.
    """

    name: str
    rank: int
    selected: bool
    kept: bool
    importance: float | None
    importance_ensemble: float | None
    n_drawn: int
    p_better: float | None
    entered: int | None


class Reading:
    """What a run's ledger says, read at one commit; the run may be going on.

    Parameters
    ----------
    ledger : Ledger
        Open for reading.
    store : Path
        The run's store.

    Attributes
    ----------
    n_iterations, n_selected : int
        Iterations read, and features selected by then.
    positions : uint32 (n_features,)
        Source position of each stored feature.
    """

    def __init__(self, ledger: Ledger, store: Path) -> None:
        manifest = read_manifest(store)
        spec = spec_of(ledger)
        self._has_probe = spec.judge == "probe"
        self._unit = float(spec.trees_per_subspace << IMPORTANCE_BITS)
        self._tally = Tally(manifest.n_features)
        self._kept = KeptSet(manifest.n_features)
        self.n_iterations = ledger.load(self._tally, self._kept).iteration
        self.n_selected = self._kept.n
        self.positions = read_array(store, manifest, "positions").view(np.uint32)
        self._names = Names(store, manifest, "names")

    def order(self) -> NDArray[np.integer]:
        """Return the stored positions of all features by rank.

        Importance descending, ties by source position, features never drawn last.
        """
        return np.lexsort((self.positions, -self._importances(slice(None))))

    def best(self, limit: int, *, only_selected: bool) -> list[int]:
        """Return the stored positions of the ``limit`` features that :meth:`order` puts first.

        Piece by piece, so that a run's last word needs no more memory than the run.
        """
        best: list[tuple[float, int, int]] = []
        n_there = self.n_selected if only_selected else len(self.positions)
        for start in range(0, n_there, _PIECE):
            members = np.arange(start, min(start + _PIECE, n_there))
            if only_selected:
                members = self._kept.features[members].astype(np.int64)
            scores = -self._importances(members)
            for place in np.lexsort((self.positions[members], scores))[:limit].tolist():
                stored = int(members[place])
                best.append((float(scores[place]), int(self.positions[stored]), stored))
            best = sorted(best)[:limit]
        return [stored for _, _, stored in best]

    def first(self) -> FeatureRecord:
        """Return the line of the feature ranked first."""
        stored = self.best(1, only_selected=False)[0]
        place = np.flatnonzero(self._kept.features == stored)
        return self._record(1, stored, int(self._kept.entered[place[0]]) if len(place) else None)

    def selected(self) -> NDArray[np.integer]:
        """Return the stored positions of the selected features, best first."""
        members = self._kept.features
        by_rank = np.lexsort((self.positions[members], -self._importances(members)))
        return members[by_rank]

    def _importances(self, features: slice | NDArray[np.integer]) -> NDArray[np.float64]:
        """Return total MDI / trees it could be in, -1 where never drawn."""
        n_drawn = self._tally.n_drawn[features]
        total = self._tally.importance[features] / self._unit
        out = np.full(len(n_drawn), -1.0)
        np.divide(total, n_drawn, out=out, where=n_drawn > 0)
        return out

    def records(self, *, only_selected: bool = False) -> Iterator[FeatureRecord]:
        """Yield the features' lines, best first."""
        order = self.order()
        ranks = np.arange(len(order))
        if only_selected:
            ranks = np.flatnonzero(self._kept.holds(order.astype(np.uint32)))
        entered = np.zeros(len(order), dtype=np.uint32)  # 0: never
        entered[self._kept.features] = self._kept.entered
        for rank in ranks:
            stored = int(order[rank])
            yield self._record(int(rank) + 1, stored, int(entered[stored]) or None)

    def _record(self, rank: int, stored: int, entered: int | None) -> FeatureRecord:
        n_drawn = int(self._tally.n_drawn[stored])
        total = int(self._tally.importance[stored]) / self._unit
        better = int(self._tally.n_better[stored])
        return FeatureRecord(
            name=self.name(stored),
            rank=rank,
            selected=entered is not None,
            kept=entered is not None,
            importance=total / n_drawn if n_drawn else None,
            importance_ensemble=total / self.n_iterations if n_drawn else None,
            n_drawn=n_drawn,
            p_better=better / n_drawn if n_drawn and self._has_probe else None,
            entered=entered,
        )

    def name(self, stored: int) -> str:
        """Return the name of a stored feature."""
        return self._names[int(self.positions[stored])]

    def importance(self, stored: int) -> float:
        """Return a feature's importance, -1 where never drawn."""
        return float(self._importances(slice(stored, stored + 1))[0])
