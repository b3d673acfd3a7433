"""The ensemble of a run in memory: it predicts when run and store are gone."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import InputError
from srs_ooc.base.urls import Place
from srs_ooc.ensemble.csv_panels import CsvPanels
from srs_ooc.ensemble.ensemble import probabilities
from srs_ooc.ensemble.memory_panels import MemoryPanels
from srs_ooc.ensemble.model_memory import room_for
from srs_ooc.ensemble.panels import Panels
from srs_ooc.ensemble.predict import looked_up
from srs_ooc.ensemble.store_panels import StorePanels, TrainingPanels
from srs_ooc.ingestion.formats.in_memory import frame_library
from srs_ooc.runs.inputs import Inputs, find_store, inputs_of, spec_of, trees_of
from srs_ooc.runs.ledger import Ledger
from srs_ooc.runs.run_trees import HeldTrees
from srs_ooc.runs.task import Task, training_response
from srs_ooc.runs.tree_splits import SplitTable, load_splits, make_splits
from srs_ooc.store.store import Store

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
    def of(
        cls, run: Path, store: Place | None = None, *, cap_nbytes: int | None = None, data: Any = ()
    ) -> "Model":
        """Return the ensemble of a run, as of its last commit.

        Parameters
        ----------
        run : Path
            The run's folder.
        store : path or URL, optional
            Its store, if it was moved.
        cap_nbytes : int, optional
            Cap on the memory of the whole process.
        data : Store, Path or object
            What is to be predicted, under the same cap.

        Raises
        ------
        RunError, StoreError
            If the run keeps no trees, or its store is not found.
        BudgetError
            If the cap cannot hold the trees, or finding out what their thresholds are.
        """
        ledger = Ledger(run, writable=False)
        try:
            trees, opened, spec = trees_of(ledger), find_store(ledger, store), spec_of(ledger)
            splits = load_splits(run, trees)
            if splits is None and cap_nbytes is not None:
                splits = looked_up(ledger, trees, opened, data, cap_nbytes)
            elif splits is None:
                inputs = Inputs(None, inputs_of(ledger).rows)
                response = training_response(Task.of(opened, inputs, spec.learner.class_weight))
                splits = make_splits(run, trees, opened, response.center, response.scale)
        finally:
            ledger.close()
        positions = np.asarray(opened.array("positions"), np.int64)
        return cls(trees.held(), splits, positions[splits.features], opened.fingerprint)

    @property
    def classes(self) -> list[str]:
        """Labels in class order; none of a regression."""
        labels: list[str] = self.splits.facts["classes"]
        return labels

    def chosen(self, shares: NDArray[np.float64]) -> NDArray[np.intp]:
        """Return the class of each row, from its shares as :meth:`predict` returns them."""
        return self.trees.ensemble.chosen(shares)

    def shares(self, data: Any) -> NDArray[np.float64]:
        """Return the mean class shares of each row; of a regression the mean target.

        As :meth:`predict`, but that the columns of a table in memory are those of training, in
        their order, whatever their names.
        """
        return self.predict(data, by_name=False)[1]

    def predict(
        self, data: Any, *, by_name: bool = True, cap_nbytes: int | None = None
    ) -> tuple[list[str], NDArray[np.float64]]:
        """Return the ids of rows, and their mean class shares; of a regression the mean target.

        Parameters
        ----------
        data : Store, path of a CSV file, ndarray, DataFrame, pyarrow.Table or sparse matrix
            What to predict. Of an array or a matrix the columns are those of training, in their
            order; anything else has names.
        by_name : bool
            Find the columns of a frame by name.
        cap_nbytes : int, optional
            Cap on the memory of the whole process.

        Returns
        -------
        ids : list of str
            Row ids; numbers from 1 of a table in memory.
        shares : float64 (n_rows, n_classes), or (n_rows, 1)
            Means over trees.

        Raises
        ------
        InputError, StoreError
            If the table lacks a column, or holds something else in it than training did.
        BudgetError
            If the cap cannot hold the trees, a row, and all predictions.
        """
        panels, as_codes = self._panels(data, by_name=by_name)
        room = room_for(self.trees, self.splits, panels, cap_nbytes)
        fitting = room.panel_nbytes // max(1, panels.row_nbytes)
        n_rows = max(1, min(fitting, MOST_ROWS, panels.most_rows or MOST_ROWS))
        ids, parts = [], []
        for panel in panels.panels(n_rows):
            ids += panel.ids
            room.check(len(ids))
            parts.append(
                probabilities(
                    self.trees, self.splits, panel.values, len(panel.ids), as_codes=as_codes
                )
            )
        n_outputs = max(1, len(self.classes))
        return ids, np.concatenate([np.empty((0, n_outputs)), *parts])

    def _panels(self, data: Any, *, by_name: bool) -> tuple[Panels, bool]:
        if isinstance(data, Path):
            return CsvPanels(data, self.splits), False
        if not isinstance(data, Store):
            positions = self._named(data) if by_name and frame_library(data) else self.positions
            return MemoryPanels(data, self.splits, positions), False
        if data.fingerprint == self.store:
            return TrainingPanels(data, self.splits), True
        return StorePanels(data, self.splits), False

    def _named(self, frame: Any) -> NDArray[np.int64]:
        """Return the column of a frame for each feature that splits use."""
        names = getattr(frame, "column_names", None) or frame.columns
        place = {str(name): position for position, name in enumerate(names)}
        absent = [name for name in self.splits.names if name not in place]
        if absent:
            raise InputError(
                f"expected the {len(self.splits.names)} columns that the trees use, found "
                f"{len(absent)} of them missing, {absent[0]!r} first. Columns are found by name."
            )
        return np.array([place[name] for name in self.splits.names], np.int64)
