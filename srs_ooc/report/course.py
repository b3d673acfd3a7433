"""The course of a run: what was found when, how often features were drawn, time and memory."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from srs_ooc.report.source import Source
from srs_ooc.results.history import Point, history_of

BARS = 40
POINTS = 500
"""Points of a line at most."""
_PIECE = 1 << 16


@dataclass(frozen=True)
class Discoveries:
    """What was found, or led the ranking, by so many iterations.

    Attributes
    ----------
    points : list of Point
        By iterations.
    comes_last : bool
        Whether the judge decides once, after the last iteration: points count what led then.
    n_selected : int
        Features selected in the end; 0 before the verdict.
    """

    points: list[Point]
    comes_last: bool
    n_selected: int


@dataclass(frozen=True)
class Draws:
    """How often features were drawn.

    Attributes
    ----------
    edges : list of int
        Of the bars: from one (included) to the next (not included).
    features, selected : list of int
        Features drawn so often, and selected ones among them.
    median, least : int
        Over the features that could be drawn.
    n_never : int
        Features never drawn.
    """

    edges: list[int]
    features: list[int]
    selected: list[int]
    median: int
    least: int
    n_never: int


@dataclass(frozen=True)
class Usage:
    """Time and memory as committed with the iterations; sizes in MB of 10**6 bytes.

    Attributes
    ----------
    iterations : list of int
        When the state was committed.
    seconds : list of float
        Seconds of work until then.
    resident_mb : list of float
        Memory resident then.
    cap_mb, peak_mb : float
        The cap, and the largest size, the closing stage and the verdict included.
    total_seconds : float
        Seconds of work in all.
    is_growth : bool
        Whether sizes are by how much the process grew, as of a run made from Python.
    """

    iterations: list[int]
    seconds: list[float]
    resident_mb: list[float]
    cap_mb: float
    peak_mb: float
    total_seconds: float
    is_growth: bool


def discoveries_of(source: Source) -> Discoveries:
    """Return when features were found; of a judge that decides last, what led until then."""
    reading = source.reading
    n_selected = 0 if reading.is_provisional else reading.n_selected
    return Discoveries(history_of(source.ledger, reading), source.spec.concludes, n_selected)


def draws_of(source: Source) -> Draws:
    """Return how often the features that could be drawn were, decoys not counted."""
    n_features, drawn = source.manifest.n_features, source.reading.tally.n_drawn
    largest = max(
        (int(drawn[start : min(start + _PIECE, n_features)].max()) for start in _starts(source)),
        default=0,
    )
    times = np.zeros(largest + 1, np.int64)
    for start in _starts(source):
        piece = drawn[start : min(start + _PIECE, n_features)]
        times += np.bincount(piece, minlength=largest + 1)
    excluded = source.inputs.excluded
    times[0] -= 0 if excluded is None else len(excluded)
    there = np.flatnonzero(times)
    low = int(there[0]) if len(there) else 0
    width = -(-(largest + 1 - low) // BARS)
    edges = np.arange(low, largest + 1 + width, width)
    of_selected = np.bincount(drawn[source.selected], minlength=largest + 1)
    half = int(np.searchsorted(np.cumsum(times), source.n_candidates / 2))
    bars = [times[a:b].sum() for a, b in pairwise(edges.tolist())]
    selected = [of_selected[a:b].sum() for a, b in pairwise(edges.tolist())]
    never = int(times[0])
    return Draws(
        edges.tolist(), [int(n) for n in bars], [int(n) for n in selected], half, low, never
    )


def _starts(source: Source) -> range:
    return range(0, source.manifest.n_features, _PIECE)


def usage_of(source: Source) -> Usage:
    """Return what the ledger noted of time and memory at its commits."""
    rows = np.array(list(source.ledger.history()), np.float64).reshape(-1, 4)
    rows = rows[_thinned(len(rows))]
    return Usage(
        [int(i) for i in rows[:, 0]],
        [round(s, 3) for s in rows[:, 2].tolist()],
        [round(b / 1e6, 1) for b in rows[:, 3].tolist()],
        float(source.status.memory_mb),
        source.status.peak_rss_mb,
        source.status.seconds,
        source.status.memory_is_growth,
    )


def _thinned(n: int) -> list[int]:
    """Return the places of at most ``POINTS`` of ``n``, the last one among them."""
    return np.unique(np.linspace(0, n - 1, min(n, POINTS)).astype(int)).tolist() if n else []
