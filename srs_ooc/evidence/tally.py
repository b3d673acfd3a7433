"""Accumulated evidence per item: 12 or 16 bytes each, sums that do not depend on their order."""

import numpy as np

from srs_ooc.base.records import PAGE_ITEMS, Outcome, Pages, Saved, State, n_pages
from srs_ooc.native import _native

_NO_COUNTS = np.zeros(0, np.uint32)


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
        self._changed = np.zeros(n_pages(n_features), dtype=np.bool_)

    def absorb(self, iteration: int, outcome: Outcome) -> None:
        """Add one iteration; its features are distinct."""
        probe = outcome.probe_importance
        _native.add_outcome(
            outcome.features,
            outcome.importance,
            0 if probe is None else probe,
            self.importance,
            self.n_drawn,
            _NO_COUNTS if probe is None else self.n_better,
            self._changed,
            PAGE_ITEMS,
        )

    def state(self) -> State:
        """Return the arrays, of which the pages drawn from since the last commit changed."""
        names = ("importance", "n_drawn", "n_better")
        return State({name: Pages(getattr(self, name), self._changed) for name in names})

    def restore(self, saved: Saved) -> None:
        """Fill the arrays with what was committed."""
        for name, pages in self.state().pages.items():
            saved.fill(name, pages.array)
