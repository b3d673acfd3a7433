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


@dataclass(frozen=True)
class FeatureRecord:
    """One feature's line; None where the judge or the draws do not define a value.

    ``importance`` is total MDI / times drawn (what ``rank`` follows), ``importance_ensemble``
    total MDI / iterations (Eq. 1), ``p_better`` the share of draws in which it beat the probe,
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


class Ranking:
    """The features of a run by rank, from one consistent reading of its ledger.

    Parameters
    ----------
    ledger : Ledger
        Open for reading; the run may be going on.
    store : Path
        The run's store.

    Attributes
    ----------
    n_iterations, n_selected : int
        Iterations read, and features selected by then.
    order : int64 (n_features,)
        Stored positions by rank: importance descending, ties by source position, never drawn last.
    positions : uint32 (n_features,)
        Source position of each stored feature.
    """

    def __init__(self, ledger: Ledger, store: Path) -> None:
        manifest = read_manifest(store)
        self._has_probe = spec_of(ledger).judge == "probe"
        self.tally = Tally(manifest.n_features)
        self.kept = KeptSet(manifest.n_features)
        self.n_iterations = ledger.load(self.tally, self.kept).iteration
        self.n_selected = self.kept.n
        members = self.kept.features.tolist(), self.kept.entered.tolist()
        self._entered: dict[int, int] = dict(zip(*members, strict=True))
        self.positions = read_array(store, manifest, "positions")
        self.names = Names(store, manifest, "names")
        with np.errstate(invalid="ignore"):
            total = self.tally.importance / float(1 << IMPORTANCE_BITS)
            self._importance: NDArray[np.float64] = total / self.tally.n_drawn
        self.order = np.lexsort((self.positions, -np.nan_to_num(self._importance, nan=-1.0)))

    def __iter__(self) -> Iterator[FeatureRecord]:
        """Yield every feature, best first."""
        for rank, stored in enumerate(self.order.tolist(), start=1):
            yield self._record(rank, stored, self._entered.get(stored))

    def selected(self) -> Iterator[FeatureRecord]:
        """Yield the selected features, best first."""
        for rank, stored in zip(self._selected_ranks(), self.selected_order(), strict=True):
            yield self._record(int(rank), int(stored), self._entered[int(stored)])

    def selected_order(self) -> NDArray[np.int64]:
        """Return the stored positions of the selected features, best first."""
        return self.order[self._selected_ranks() - 1]

    def _selected_ranks(self) -> NDArray[np.int64]:
        return 1 + np.flatnonzero(self.kept.holds(self.order.astype(np.uint32)))

    def _record(self, rank: int, stored: int, entered: int | None) -> FeatureRecord:
        n_drawn = int(self.tally.n_drawn[stored])
        total = int(self.tally.importance[stored]) / float(1 << IMPORTANCE_BITS)
        better = int(self.tally.n_better[stored])
        return FeatureRecord(
            name=self.names[int(self.positions[stored])],
            rank=rank,
            selected=entered is not None,
            kept=entered is not None,
            importance=float(self._importance[stored]) if n_drawn else None,
            importance_ensemble=total / self.n_iterations if n_drawn else None,
            n_drawn=n_drawn,
            p_better=better / n_drawn if n_drawn and self._has_probe else None,
            entered=entered,
        )
