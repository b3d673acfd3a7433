"""The ensemble of a run in memory: it predicts when run and store are gone."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import InputError
from srs_ooc.base.urls import Place
from srs_ooc.ensemble.ensemble_memory import kept_panel_rows
from srs_ooc.ensemble.panels import CsvPanels, MemoryPanels, Panels, StorePanels
from srs_ooc.ensemble.prediction import looked_up
from srs_ooc.ingestion.formats.in_memory import frame_library
from srs_ooc.runs.inputs import find_store, trees_of
from srs_ooc.runs.ledger import Ledger
from srs_ooc.runs.run_trees import TreeReader
from srs_ooc.runs.tree_splits import SplitTable, load_splits, probabilities
from srs_ooc.store.store import Store


@dataclass(frozen=True)
class Model:
    """The trees of a run and what their splits mean; small, and pickled as it is.

    Attributes
    ----------
    trees : TreeReader
        As the run's file has them.
    splits : SplitTable
        Names, thresholds and categories.
    positions : int64 (n_used,)
        Column of the training table for each feature that splits use.
    store : str
        Fingerprint of the training store.
    """

    trees: TreeReader
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
            trees, opened = trees_of(ledger), find_store(ledger, store)
            splits = load_splits(run, trees)
            if splits is None:
                splits = looked_up(ledger, trees, opened, data, cap_nbytes)
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
        as_codes = isinstance(data, Store) and data.fingerprint == self.store
        panels: Panels
        if isinstance(data, Path):
            panels = CsvPanels(data, self.splits)
        elif isinstance(data, Store):
            panels = StorePanels(data, self.splits, as_codes=as_codes)
        else:
            positions = self._named(data) if by_name and frame_library(data) else self.positions
            panels = MemoryPanels(data, self.splits, positions)
        n_rows, check_room = kept_panel_rows(panels, self.splits, self.trees, cap_nbytes)
        ids, parts = [], [np.empty((0, max(1, len(self.classes))))]
        for panel in panels.panels(n_rows):
            ids += panel.ids
            check_room(len(ids))
            count = len(panel.ids)
            parts.append(
                probabilities(self.trees, self.splits, panel.values, count, as_codes=as_codes)
            )
        return ids, np.concatenate(parts)

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
