"""The memory of predictions that stay in memory, under a cap."""

from dataclasses import dataclass

from srs_ooc.base.budget import Budget, cap_to_name
from srs_ooc.base.errors import BudgetError
from srs_ooc.base.text import MB
from srs_ooc.ensemble.ensemble import ensemble_nbytes
from srs_ooc.ensemble.panels import TEXT_NBYTES, Panels
from srs_ooc.runs.run_trees import HeldTrees
from srs_ooc.runs.tree_splits import SplitTable

PANEL_NBYTES = 32 * MB
"""Memory of a panel of rows: more would not make it faster."""
_OUTPUT_NBYTES = 64
"""Memory of a number of a prediction: as an array, twice while joined, and in a frame."""


@dataclass
class PredictionRoom:
    """What a cap leaves for panels of rows, and for the predictions themselves.

    Attributes
    ----------
    panel_nbytes : int
        For a panel.
    row_nbytes : int
        Memory of a predicted row.
    rest_nbytes : int or None
        For predicted rows, where it is not known how many there are; None without a cap, or where
        they were counted.
    cap_nbytes : int or None
        The cap.
    """

    panel_nbytes: int
    row_nbytes: int = 0
    rest_nbytes: int | None = None
    cap_nbytes: int | None = None

    def check(self, n_rows: int) -> None:
        """Refuse more predictions than there is room for.

        Raises
        ------
        BudgetError
            With what to do.
        """
        if self.rest_nbytes is None or self.cap_nbytes is None:
            return
        over = n_rows * self.row_nbytes - self.rest_nbytes
        if over > 0:
            raise BudgetError(
                f"a memory cap of {self.cap_nbytes / MB:g} MB cannot hold the predictions of "
                f"{n_rows} rows and more. Try --memory-mb {cap_to_name(self.cap_nbytes + 2 * over)}"
                ", or write them to a file with `srs-ooc predict`, which holds no more than some "
                "rows at a time."
            )


def room_for(
    trees: HeldTrees, splits: SplitTable, panels: Panels, cap_nbytes: int | None
) -> PredictionRoom:
    """Share out what a cap leaves beside the trees.

    Raises
    ------
    BudgetError
        If it cannot hold a row, or the predictions of all rows, where their number is known.
    """
    if cap_nbytes is None:
        return PredictionRoom(PANEL_NBYTES)
    n_outputs = max(1, len(splits.facts["classes"]))
    row_nbytes = TEXT_NBYTES + _OUTPUT_NBYTES * (n_outputs + 1)
    budget = Budget(cap_nbytes)
    budget.grant("trees and thresholds", trees.nbytes + ensemble_nbytes(splits))
    budget.grant(f"{len(splits.features)} columns", panels.fixed_nbytes)
    budget.grant("a row", panels.row_nbytes + 24 * n_outputs + row_nbytes)
    if panels.most_rows is not None:
        budget.grant(f"predictions of {panels.most_rows} rows", row_nbytes * panels.most_rows)
    budget.check()
    panel = min(PANEL_NBYTES, budget.free_nbytes // 2) + panels.row_nbytes
    rest = budget.free_nbytes - panel if panels.most_rows is None else None
    return PredictionRoom(panel, row_nbytes, rest, cap_nbytes)
