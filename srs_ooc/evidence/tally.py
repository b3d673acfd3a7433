"""Accumulated evidence per item: 12 or 16 bytes each, sums that do not depend on their order."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from srs_ooc.records import Outcome


class Tally:
    """What the iterations so far taught of each feature, by stored position.

    Parameters
    ----------
    n_features : int
        Number of features of the store, or of items: features and their decoys.
    wins : bool
        Whether wins over a probe are counted.

    Attributes
    ----------
    importance : int64 (n_features,)
        Sum of MDI importances over the trees, in units of ``2**-36`` (Eq. 1 times their number).
    n_drawn : uint32 (n_features,)
        Subspaces the feature was in, whatever the number of trees on each.
    n_better : uint32 (n_features,)
        Subspaces in which it was strictly more important than the probe; empty without ``wins``.
    """

    def __init__(self, n_features: int, *, wins: bool = True) -> None:
        self.importance = np.zeros(n_features, dtype=np.int64)
        self.n_drawn = np.zeros(n_features, dtype=np.uint32)
        self.n_better = np.zeros(n_features if wins else 0, dtype=np.uint32)

    def add(self, outcome: Outcome) -> None:
        """Add one iteration; its features are distinct."""
        features = outcome.features
        self.importance[features] += outcome.importance
        self.n_drawn[features] += np.uint32(1)
        if outcome.probe_importance is not None:
            better = outcome.importance > outcome.probe_importance
            self.n_better[features[better]] += np.uint32(1)

    def columns(self) -> Iterator[tuple[str, NDArray[np.generic]]]:
        """Yield each array under its name, for the ledger."""
        yield "importance", self.importance
        yield "n_drawn", self.n_drawn
        yield "n_better", self.n_better
