"""What a run says of all features, as arrays in the order of the table."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from srs_ooc.results.ranking import Reading


@dataclass(frozen=True)
class FeatureArrays:
    """One value a feature, in the order of the table's columns.

    Attributes
    ----------
    selected : bool (n_features,)
        Whether it is selected.
    ranking : int64 (n_features,)
        Its rank, from 1.
    importance : float64 (n_features,)
        Mean decrease in impurity over the trees on subspaces it was in; 0 if it was in none.
    q_values : float64 (n_features,) or None
        Smallest level at which it would be selected; NaN where it did not reach the closing stage.
        None without a final verdict.
    """

    selected: NDArray[np.bool_]
    ranking: NDArray[np.int64]
    importance: NDArray[np.float64]
    q_values: NDArray[np.float64] | None


def arrays_of(reading: Reading) -> FeatureArrays:
    """Return what a reading says of all features."""
    positions = reading.positions
    n = len(positions)
    selected, ranking = np.zeros(n, np.bool_), np.empty(n, np.int64)
    selected[positions[reading.selected()]] = True
    done = 0
    for batch in reading.ordered():
        ranking[positions[batch]] = np.arange(done + 1, done + 1 + len(batch))
        done += len(batch)
    importance = np.empty(n)
    importance[positions] = np.maximum(reading.importances(slice(0, n)), 0.0)
    return FeatureArrays(selected, ranking, importance, _q_values(reading))


def _q_values(reading: Reading) -> NDArray[np.float64] | None:
    if reading.verdict is None:
        return None
    q_values = np.full(len(reading.positions), np.nan)
    for stored in reading.verdict.features.tolist():
        standing = reading.verdict.standing(stored)
        if standing is not None:
            q_values[reading.positions[stored]] = standing.q_value
    return q_values


def best(reading: Reading, n: int) -> NDArray[np.bool_]:
    """Return which features are the first ``n`` by rank; bool (n_features,)."""
    found = np.zeros(len(reading.positions), np.bool_)
    found[reading.positions[reading.top(n)]] = True
    return found
