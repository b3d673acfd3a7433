"""The course of a run: what was found, or led, after how many iterations, seconds and trees."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.seeds import Purpose, key_of
from srs_ooc.base.text import MB
from srs_ooc.evidence.tally import LEADING, RankingHistory, best_items
from srs_ooc.results.ranking import Reading
from srs_ooc.runs.inputs import spec_of
from srs_ooc.runs.ledger import Ledger

POINTS = 500
"""Points at most."""


@dataclass(frozen=True)
class Point:
    """Where a run stood after some iterations.

    Attributes
    ----------
    iterations : int
        Iterations done.
    seconds : float
        Seconds of work until then, between those noted with the commits before and after.
    memory_mb : float
        Memory resident at the next commit, in MB of 10**6 bytes.
    trees : int
        Trees grown.
    found : int or None
        Features in F. With the judge ``decoy``: of the ``leading`` items, the features that the
        verdict selected later; None before the verdict.
    leading : int or None
        Items, features and decoys, that led the ranking and are counted; of the judge ``decoy``.
    decoys : int or None
        Decoys among them; None before the verdict, which alone may read which items are decoys.
    unchanged : int or None
        Those among them that led at the point before, too; None at the first point.
    """

    iterations: int
    seconds: float
    memory_mb: float
    trees: int
    found: int | None
    leading: int | None
    decoys: int | None
    unchanged: int | None


def history_of(ledger: Ledger, reading: Reading) -> list[Point]:
    """Return the course of a run up to the iterations that ``reading`` knows.

    Parameters
    ----------
    ledger : Ledger
        Open for reading.
    reading : Reading
        Of the same run.

    Returns
    -------
    list of Point
        By iterations, at most ``POINTS``. A run that was begun before leading items were kept has
        only those of its later iterations.
    """
    spec = spec_of(ledger)
    key = key_of(spec.seed, Purpose.RANK_TIE)
    found = _led(ledger, reading, key) if spec.concludes else _entered(reading)
    commits = np.array([(0, 0, 0, 0), *ledger.history()], np.float64)
    points = []
    for iterations, counts in found:
        after = min(int(np.searchsorted(commits[:, 0], iterations)), len(commits) - 1)
        points.append(
            Point(
                iterations,
                round(float(np.interp(iterations, commits[:, 0], commits[:, 2])), 3),
                round(float(commits[after, 3]) / MB, 1),
                iterations * spec.learner.trees_per_subspace,
                *counts,
            )
        )
    return points


_Counts = tuple[int | None, int | None, int | None, int | None]


def _entered(reading: Reading) -> list[tuple[int, _Counts]]:
    """Return the size of F whenever it grew, and in the end."""
    at, entered = np.unique(reading.kept.entered.astype(np.int64), return_counts=True)
    places = np.unique(np.linspace(0, len(at) - 1, min(len(at), POINTS - 2)).astype(int))
    sizes = dict(zip(at[places].tolist(), np.cumsum(entered)[places].tolist(), strict=True))
    sizes = {0: 0} | sizes | {reading.n_iterations: reading.kept.n}
    return [(iterations, (size, None, None, None)) for iterations, size in sizes.items()]


def _led(ledger: Ledger, reading: Reading, key: int) -> list[tuple[int, _Counts]]:
    """Return what the items that led were, at the points that were kept and in the end."""
    points: dict[int, NDArray[np.uint32]] = {}
    if (kept := ledger.read_arrays(RankingHistory.name)) is not None:
        points = dict(zip(kept["iterations"].tolist(), kept["items"], strict=True))
    if reading.n_iterations:
        points[reading.n_iterations] = best_items(reading.tally, LEADING, key)
    found: list[tuple[int, _Counts]] = []
    before: NDArray[np.uint32] | None = None
    for iterations, items in points.items():
        if iterations <= reading.n_iterations:  # one that goes on may be ahead
            stayed = None if before is None else int(np.isin(items, before).sum())
            found.append((iterations, (*_named(items, reading), stayed)))
            before = items
    return found


def _named(
    items: NDArray[np.uint32], reading: Reading
) -> tuple[int | None, int | None, int | None]:
    """Return selected features, items and decoys of some; before the verdict only items."""
    if reading.verdict is None:
        return None, len(items), None
    n_selected = int(np.isin(items, reading.verdict.selected()).sum())
    return n_selected, len(items), int(np.count_nonzero(items >= len(reading.positions)))
