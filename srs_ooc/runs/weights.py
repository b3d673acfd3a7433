"""What features are drawn by: scores of their columns, computed once and kept in the ledger."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Self

import numpy as np

from srs_ooc.base.arrays import Floats
from srs_ooc.base.budget import Lease
from srs_ooc.base.errors import UsageError
from srs_ooc.base.records import Pages, Saved, State, Step, Watch, n_pages
from srs_ooc.base.text import ceil_div
from srs_ooc.runs.inputs import WEIGHTS, Inputs
from srs_ooc.runs.run_memory import LEDGER_NBYTES
from srs_ooc.samplers import column_scores
from srs_ooc.store.store import Scan, Store

STAGE = "scoring columns"


class Weights:
    """The weights of all features, as a ledger commits them; uint32 (n_features,)."""

    def __init__(self) -> None:
        self.weights = np.zeros(0, np.uint32)

    def state(self) -> State:
        """Return all pages: they are written once."""
        return State({WEIGHTS: Pages(self.weights, np.ones(n_pages(len(self.weights)), np.bool_))})

    def restore(self, saved: Saved) -> None:
        """Take the weights back; none where they were not committed yet."""
        self.weights = np.zeros(saved.length(WEIGHTS), np.uint32)
        saved.fill(WEIGHTS, self.weights)


@dataclass(frozen=True)
class Scoring:
    """Passes over all columns of a store, and what scores them.

    Attributes
    ----------
    score : ColumnScore
        As new.
    scan : Scan
        The columns of the rows trained on.
    n_features : int
        Features of the store.
    """

    score: column_scores.ColumnScore
    scan: Scan
    n_features: int

    @classmethod
    def of(
        cls,
        score_of: Callable[[int, int, int], column_scores.ColumnScore | None],
        matrix: str,
        store: Store,
        inputs: Inputs,
        key: int,
    ) -> Self | None:
        """Return the passes that ``score_of`` asks for; None where it asks for none.

        Parameters
        ----------
        score_of : callable
            :meth:`srs_ooc.samplers.base.Method.score`.
        matrix : {'codes', 'values'}
            What is scored.
        store : Store
            The store.
        inputs : Inputs
            The features and rows that are left out.
        key : int
            What is drawn by chance follows from it.

        Raises
        ------
        UsageError
            If the store keeps no values and they are to be scored.
        """
        by_values, rows = matrix == column_scores.VALUES, inputs.rows
        n_rows = store.n_rows if rows is None else len(rows)
        score = score_of(n_rows, store.n_features, key)
        if score is None:
            return None
        if by_values and store.manifest.values_dtype is None:
            raise UsageError(
                f"matrix=values: expected a store that keeps the values, found {store.place}, "
                "which keeps only codes. Score the codes with matrix=codes, or ingest without "
                "--no-values."
            )
        size, excluded = column_scores.block_columns(n_rows), inputs.excluded
        scan = Scan(store, size, rows=rows, excluded=excluded, values=by_values)
        return cls(score, scan, store.n_features)

    @property
    def leases(self) -> list[Lease]:
        """What the passes need besides the process."""
        return [
            Lease("scoring columns", self.score.nbytes),
            Lease("a block of columns", self.scan.nbytes),
            Lease(f"weights of {self.n_features} features", 4 * self.n_features),
            Lease("the run's record", LEDGER_NBYTES),
        ]

    def scores(self, watch: Watch) -> Floats | None:
        """Score all columns; None if ``watch``, told how many blocks are done, said no."""
        size, done = column_scores.block_columns(self.scan.n_rows), count(1)
        n_steps = self.score.n_passes * ceil_div(self.n_features, size)
        return column_scores.score_columns(
            self.score,
            self.scan.blocks,
            lambda: watch(Step(STAGE, next(done), n_steps, unit="blocks")),
        )
