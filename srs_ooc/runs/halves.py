"""Stability over rows: the same search and verdict on random halves of the rows.

Halves come in pairs that share no row (Shah and Samworth 2013, complementary pairs); strata,
classes and whole groups are shared out evenly. Each half has a seed of its own, so that chance in
the search counts too. No answer of the run depends on them.
"""

from dataclasses import dataclass
from statistics import median

import numpy as np
from numpy.typing import NDArray

from srs_ooc.runs.ledger import Ledger

HALVES = "halves"
"""Name of the ledger's arrays with what halves select, and of the record of how many are asked."""
FIRST = 20
"""Features at the head of the ranking of each half that are compared."""
NOT_DONE = -1


@dataclass(frozen=True)
class HalvesRecord:
    """What the halves of the rows that are done select.

    Attributes
    ----------
    n_asked : int
        Halves that were asked for.
    n_selected : list of int
        Features that each half selects, of those that are done.
    agreement : float or None
        Share of the first 20 features of a half that are among the first 20 of the half with the
        other rows, mean over pairs; None before a pair is done.
    features : uint32 (n,)
        Stored positions of the features that any half selects, ascending.
    counts : int64 (n,)
        In how many halves each is selected.
    """

    n_asked: int
    n_selected: list[int]
    agreement: float | None
    features: NDArray[np.uint32]
    counts: NDArray[np.int64]

    @property
    def n_halves(self) -> int:
        """Halves that are done."""
        return len(self.n_selected)

    def share(self, stored: int) -> float:
        """Return the share of halves that select a stored feature."""
        return int(self.counts[self.features == stored].sum()) / self.n_halves

    def __str__(self) -> str:
        """Return it as one sentence, without a full stop."""
        few, many, middle = min(self.n_selected), max(self.n_selected), median(self.n_selected)
        heads = f"; their first {FIRST} agree by {self.agreement or 0:.2f}"
        return (
            f"{self.n_halves} halves of the rows select {few} to {many} features (median "
            f"{middle:g}){'' if self.agreement is None else heads}"
        )


def halves_asked(ledger: Ledger) -> int:
    """Return how many halves were asked for; 0 if none."""
    return int(ledger.meta(HALVES)) if ledger.has_meta(HALVES) else 0


def halves_of(ledger: Ledger) -> HalvesRecord | None:
    """Return what halves of the rows select, of as many iterations as the run has.

    None if no half is done. ``ledger`` is open for reading; the store is not needed.
    """
    arrays, n_asked = ledger.read_arrays(HALVES), halves_asked(ledger)
    n_iterations = ledger.progress().iteration
    if not n_asked or arrays is None or int(arrays["n_iterations"]) != n_iterations:
        return None
    n_selected = arrays["n_selected"]
    is_done = n_selected != NOT_DONE
    pairs = np.flatnonzero(is_done[::2] & is_done[1::2])
    shares = [_overlap(*arrays["first"][2 * i : 2 * i + 2]) for i in pairs.tolist()]
    return HalvesRecord(
        n_asked,
        n_selected[is_done].tolist(),
        float(np.mean(shares)) if shares else None,
        arrays["features"],
        arrays["counts"],
    )


def _overlap(first: NDArray[np.int64], second: NDArray[np.int64]) -> float:
    """Return the share of the features of two heads, padded with -1, that are in both."""
    found = [head[head >= 0] for head in (first, second)]
    return len(np.intersect1d(*found)) / max(1, *map(len, found))
