"""Where the ranking is cut: scores by rank, features beside decoys, and the level."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.records import Saved, State
from srs_ooc.evidence.judges import ProbeParams
from srs_ooc.report.source import Source
from srs_ooc.runs.ledger import StageBook
from srs_ooc.samplers.elimination import Elimination
from srs_ooc.trees.response import IMPORTANCE_BITS

SHOWN = 1000
"""Places drawn at most."""


@dataclass(frozen=True)
class Cut:
    """A ranking and where it is cut.

    Attributes
    ----------
    measure : str
        What ``scores`` are.
    scores : list of float
        By rank.
    is_decoy, is_selected : list of bool
        Of each; decoys only of a run with a verdict.
    level : float or None
        The bound that was asked for, in units of ``levels`` (or of ``scores``, of the probe).
    places, levels : list
        q-values of features by their place in the ranking the verdict cuts; empty without one.
    n_selected : int
        Features selected.
    n_outstanding : int
        Marginally significant features, which stand before the ones that scores order.
    """

    measure: str
    scores: list[float]
    is_decoy: list[bool]
    is_selected: list[bool]
    level: float | None
    places: list[int]
    levels: list[float]
    n_selected: int
    n_outstanding: int


def cut_of(source: Source) -> Cut:
    """Return the ranking of a run around its cut."""
    return _of_verdict(source) if source.reading.verdict is not None else _of_ranking(source)


def _of_verdict(source: Source) -> Cut:
    verdict = source.reading.verdict
    assert verdict is not None
    closing = _Closing(source)
    n_features = source.manifest.n_features
    selected = verdict.features[verdict.is_selected]
    # The places around the cut, thinned where thousands are selected.
    upto = min(len(verdict.levels), max(2 * verdict.n_selected, 100))
    places: list[int] = np.unique(np.linspace(0, upto - 1, min(upto, SHOWN)).astype(int)).tolist()
    return Cut(
        "closing importance",
        [float(f"{s:.4g}") for s in (closing.scores / (1 << IMPORTANCE_BITS)).tolist()],
        (closing.items >= n_features).tolist(),
        np.isin(closing.items, selected).tolist(),
        float(source.spec.fdr),
        [int(p) + 1 for p in places],
        [float(f"{verdict.levels[p]:.4g}") for p in places],
        verdict.n_selected,
        int(np.count_nonzero(verdict.is_outstanding)),
    )


class _Closing:
    """Items and scores of a closing stage, by rank; none where the ledger holds another one."""

    def __init__(self, source: Source) -> None:
        self.items, self.scores = np.zeros(0, np.uint32), np.zeros(0)
        book = StageBook(source.ledger, source.reading.n_iterations)
        book.load({Elimination.name: self})

    def state(self) -> State:
        """Return nothing: it is only read."""
        return State()

    def restore(self, saved: Saved) -> None:
        """Take items and scores."""
        self.items, self.scores = saved.arrays["items"], saved.arrays["scores"]


def _of_ranking(source: Source) -> Cut:
    reading = source.reading
    first = reading.top(min(SHOWN, len(reading.positions)))
    scores, measure, level = reading.importances(first), _measure(source), None
    if isinstance(source.spec.judging, ProbeParams):
        drawn = np.maximum(reading.tally.n_drawn[first], 1)
        scores = reading.tally.n_better[first] / drawn
        level = float(source.spec.judging.probe_min_wins)
    chosen: NDArray[np.bool_] = np.isin(first, source.selected)
    return Cut(
        measure,
        [float(f"{max(s, 0.0):.4g}") for s in scores.tolist()],
        [False] * len(first),
        chosen.tolist(),
        level,
        [],
        [],
        0 if reading.is_provisional else len(source.selected),
        0,
    )


def _measure(source: Source) -> str:
    if isinstance(source.spec.judging, ProbeParams):
        return "share of draws won"
    spec = source.spec
    if spec.model.scores_features:
        return f"score by model {spec.model.model}"
    return "importance" if not spec.method.ranks_by else f"score of method {spec.run.method}"
