"""Accuracy on rows held out, where ``srs-ooc compact`` measured it."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from srs_ooc.ensemble.compaction import Curve
from srs_ooc.report.source import Source
from srs_ooc.runs.verification import VERSION, FoldRecord, Records


@dataclass(frozen=True)
class HeldOut:
    """What nested small sets are worth on rows that nothing had seen.

    Attributes
    ----------
    sizes : list of int
        Features of the sets.
    scores, errors : list of float
        Mean score of each, and its standard error: the share of rows predicted right, or of the
        target's variance.
    chosen : int
        The smallest size within one standard error of the best.
    n_folds : int
        Folds that were scored.
    is_regression : bool
        Which of the two the scores are.
    """

    sizes: list[int]
    scores: list[float]
    errors: list[float]
    chosen: int
    n_folds: int
    is_regression: bool


def held_out_of(source: Source) -> HeldOut | None:
    """Return what a compaction of the run after these iterations found; None if there is none."""
    best: list[FoldRecord] = []
    parent = source.ledger.run / "compact"
    for folder in sorted(parent.glob(f"v{VERSION}-{source.reading.n_iterations}-iterations-*")):
        found = _scored(folder)
        best = found if len(found) > len(best) else best
    common = set.intersection(*(set(record.scores) for record in best)) if best else set()
    if not common:
        return None
    sizes = sorted(int(size) for size in common)
    curve = Curve(sizes, np.array([[record.scores[str(s)] for s in sizes] for record in best]))
    return HeldOut(
        sizes,
        [round(float(s), 4) for s in curve.means],
        [round(float(e), 4) for e in curve.errors],
        curve.smallest(),
        len(best),
        source.task.is_regression,
    )


def _scored(folder: Path) -> list[FoldRecord]:
    records, found = Records(folder), []
    for file in sorted(folder.glob("repeat-*-fold-*.json")):
        repeat, fold = (int(part) - 1 for part in file.stem.split("-")[1::2])
        record = records.fold(repeat, fold)
        if record is not None and record.scores:
            found.append(record)
    return found
