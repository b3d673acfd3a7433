"""The head of a ranking, from a run's ledger alone: its store may be gone."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.records import PAGE_ITEMS, Saved, State
from srs_ooc.results.feature_record import FeatureRecord
from srs_ooc.results.verdict import VerdictReading
from srs_ooc.runs.engine import TALLY
from srs_ooc.runs.inputs import spec_of
from srs_ooc.runs.ledger import Ledger
from srs_ooc.runs.run_verdict import kept_names
from srs_ooc.trees.response import IMPORTANCE_BITS


def kept_records(ledger: Ledger) -> list[FeatureRecord] | None:
    """Return the lines of the features that the verdict put first, best first.

    Parameters
    ----------
    ledger : Ledger
        Open for reading.

    Returns
    -------
    list of FeatureRecord or None
        None of a run without a verdict, or one made before names were kept.
    """
    verdict, names = VerdictReading.of(ledger), kept_names(ledger)
    if verdict is None or names is None:
        return None
    features = verdict.order[: len(names)]
    if features.tolist() != list(names):
        return None  # of another verdict
    tally = _SomeOfTally(features)
    n_iterations = ledger.load({TALLY: tally}).iteration
    unit = float(spec_of(ledger).learner.trees_per_subspace << IMPORTANCE_BITS)
    return [
        _record(rank, name, verdict, stored, drawn, total / unit, n_iterations)
        for rank, (stored, name, drawn, total) in enumerate(
            zip(names, names.values(), tally.n_drawn.tolist(), tally.importance.tolist(),
                strict=True), 1)
    ]  # fmt: skip


class _SomeOfTally:
    """What a tally holds of a few items, read page by page."""

    def __init__(self, items: NDArray[np.uint32]) -> None:
        self._items = items.astype(np.int64)
        self.importance = np.zeros(len(items), np.int64)
        self.n_drawn = np.zeros(len(items), np.uint32)

    def state(self) -> State:
        """Return nothing: it is only read."""
        return State()

    def restore(self, saved: Saved) -> None:
        """Take the items from the pages they are on."""
        for name, out in (("importance", self.importance), ("n_drawn", self.n_drawn)):
            self._take(saved, name, out)

    def _take(self, saved: Saved, name: str, out: NDArray[Any]) -> None:
        length, pages = saved.length(name), self._items // PAGE_ITEMS
        for page in np.unique(pages).tolist():
            first = page * PAGE_ITEMS
            held = np.zeros(min(PAGE_ITEMS, length - first), out.dtype)
            saved.fill(name, held, page)
            out[pages == page] = held[self._items[pages == page] - first]


def _record(
    rank: int,
    name: str,
    verdict: VerdictReading,
    stored: int,
    n_drawn: int,
    total: float,
    n_iterations: int,
) -> FeatureRecord:
    standing = verdict.standing(stored)
    return FeatureRecord(
        name=name,
        rank=rank,
        selected=standing is not None and standing.is_selected,
        kept=False,
        importance=total / n_drawn if n_drawn else None,
        importance_ensemble=total / n_iterations if n_drawn else None,
        n_drawn=n_drawn,
        p_better=None,
        entered=None,
        q_value=None if standing is None else standing.q_value,
        score=None if standing is None else standing.score,
        stability=None if standing is None else standing.stability,
        cluster=None if standing is None else standing.cluster,
        p_value=None if standing is None else standing.p_value,
        differs_in=None if standing is None else standing.differs_in,
        passes_alone=None if standing is None else standing.passes_alone,
    )
