"""The ensemble of a run in memory: it predicts when run and store are gone."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.sizes import MB
from srs_ooc.ensemble.ensemble import probabilities
from srs_ooc.ensemble.memory_tables import MemoryTable
from srs_ooc.ensemble.tables import StoreTable, Table, TrainingStoreTable
from srs_ooc.runs.inputs import Inputs
from srs_ooc.runs.ledger import Ledger, TreeReader
from srs_ooc.runs.ledger.splits import SplitTable, load_splits, make_splits
from srs_ooc.runs.ledger.trees import HeldTrees
from srs_ooc.runs.place import find_store, spec_of
from srs_ooc.runs.responses import training_response
from srs_ooc.runs.task import Task
from srs_ooc.store.store import Store

PANEL_NBYTES = 32 * MB
MOST_ROWS = 8192
"""Rows of a panel at most: more would not make it faster."""


@dataclass(frozen=True)
class Model:
    """The trees of a run and what their splits mean; small, and pickled as it is.

    Attributes
    ----------
    trees : HeldTrees
        As the run's file has them.
    splits : SplitTable
        Names, thresholds and categories.
    positions : int64 (n_used,)
        Column of the training table for each feature that splits use.
    store : str
        Fingerprint of the training store.
    """

    trees: HeldTrees
    splits: SplitTable
    positions: NDArray[np.int64]
    store: str

    @classmethod
    def of(cls, run: Path, store: Path | None = None) -> "Model":
        """Return the ensemble of a run, as of its last commit.

        Raises
        ------
        RunError, StoreError
            If the run keeps no trees, or its store is not found.
        """
        ledger = Ledger(run, writable=False)
        try:
            trees, opened, spec = TreeReader(ledger), find_store(ledger, store), spec_of(ledger)
            splits = load_splits(run, trees)
            if splits is None:
                inputs = Inputs(None, ledger.input("rows", "<i4"))
                response = training_response(Task.of(opened, inputs, spec.learner.class_weight))
                splits = make_splits(run, trees, opened, response.center, response.scale)
        finally:
            ledger.close()
        positions = np.asarray(opened.array("positions"), np.int64)
        return cls(trees.held(), splits, positions[splits.features], opened.fingerprint)

    def shares(self, data: Any) -> NDArray[np.float64]:
        """Return the mean class shares of each row; of a regression the mean target.

        Parameters
        ----------
        data : Store, or ndarray, DataFrame, pyarrow.Table or sparse matrix
            A store, whose features are found by name; or a table in memory with the columns of
            training, in their order.

        Returns
        -------
        float64 (n_rows, n_classes), or (n_rows, 1)

        Raises
        ------
        InputError, StoreError
            If the table lacks a column, or holds something else in it than training did.
        """
        table, as_codes = self._table(data)
        fitting = PANEL_NBYTES // max(1, table.row_nbytes)
        n_rows = max(1, min(fitting, MOST_ROWS, table.most_rows or MOST_ROWS))
        parts = [
            probabilities(self.trees, self.splits, p.values, len(p.ids), as_codes=as_codes)
            for p in table.panels(n_rows)
        ]
        return np.concatenate(parts)

    def _table(self, data: Any) -> tuple[Table, bool]:
        if not isinstance(data, Store):
            return MemoryTable(data, self.splits, self.positions), False
        if data.fingerprint == self.store:
            return TrainingStoreTable(data, self.splits), True
        return StoreTable(data, self.splits), False
