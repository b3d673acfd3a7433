"""A learner that grows nothing: features by the difference of two classes' mean ranks."""

from typing import Any

import numpy as np

import srs_ooc.extend as core


class MeanDifference:
    """Takes the difference of mean ranks for the importance of a column.

    Parameters
    ----------
    is_first : bool (n_rows,)
        Rows of the first class.
    """

    provides = frozenset({core.IMPORTANCE})
    tiled = False  # reads whole columns

    def __init__(self, is_first: core.Bools) -> None:
        self.sign = np.where(is_first, np.sum(~is_first), -np.sum(is_first)).astype(np.int64)

    def drawn(self, key: int) -> tuple[core.Learner, None]:
        """Return itself, and all rows."""
        return self, None

    def fit(self, block: Any, columns: core.Columns, iteration: core.Iteration) -> core.Outcome:
        """Return the differences of the columns of an iteration."""
        codes = block.as_columns(len(columns.features)).astype(np.int64)
        found = np.abs(codes @ self.sign)
        n_asked = len(iteration.features)
        return core.Outcome(iteration.features, found[:n_asked], *map(int, found[n_asked:]))


class Means(core.TreeParams):
    """``--model means``: what it says of itself."""

    model = "means"
    judges = ("none",)  # features are ranked: probes and last stages are of trees

    def make(self, task: Any, response: Any, spec: Any, stack: Any, **how: Any) -> core.Learner:
        """Return the learner of a task."""
        return MeanDifference(response.labels == 0)
