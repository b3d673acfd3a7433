"""The ensemble of a run in memory: it predicts when run and store are gone."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.budget import Budget, cap_to_name
from srs_ooc.base.errors import BudgetError, InputError
from srs_ooc.base.text import MB
from srs_ooc.base.urls import Place
from srs_ooc.ensemble.panels import (
    CATEGORY_NBYTES,
    TEXT_NBYTES,
    CsvPanels,
    Panel,
    Panels,
    StorePanels,
    TrainingPanels,
    translate,
    translation,
)
from srs_ooc.ensemble.prediction import MOST_ROWS, looked_up
from srs_ooc.ingestion.formats import TextCoder
from srs_ooc.ingestion.formats.in_memory import frame_library, open_object
from srs_ooc.runs.inputs import Inputs, find_store, inputs_of, spec_of, trees_of
from srs_ooc.runs.ledger import Ledger
from srs_ooc.runs.run_trees import HeldTrees
from srs_ooc.runs.task import Task, training_response
from srs_ooc.runs.tree_splits import (
    SplitTable,
    ensemble_nbytes,
    load_splits,
    make_splits,
    probabilities,
)
from srs_ooc.store.store import Store

# The rows of a table in memory, in panels of the columns that trees use.


class MemoryPanels:
    """An array, frame or sparse matrix whose columns are known by their positions.

    Parameters
    ----------
    thing : ndarray, DataFrame, pyarrow.Table or sparse matrix, (n_rows, n_columns)
        What :func:`srs_ooc.ingest` takes.
    splits : SplitTable
        Says which columns are needed, and what categories were in training.
    positions : int (n_used,)
        Column of the table for each feature of ``splits``.
    """

    def __init__(self, thing: Any, splits: SplitTable, positions: NDArray[np.integer[Any]]) -> None:
        is_sparse = type(thing).__module__.startswith("scipy.sparse")
        self._thing = thing.tocsr() if is_sparse else thing
        self._splits, self._positions = splits, np.asarray(positions, np.intp)
        self.most_rows: int | None = int(thing.shape[0])
        self._categories: list[list[str] | None] = splits.facts["categories"]
        is_any = any(known is not None for known in self._categories)
        self.fixed_nbytes = 2 * CATEGORY_NBYTES * is_any + TEXT_NBYTES * len(self._positions)
        self.row_nbytes = 3 * 8 * len(self._positions) + 2 * TEXT_NBYTES

    def panels(self, n_rows: int) -> Iterator[Panel]:
        """Yield all rows, ``n_rows`` at a time, without labels.

        Raises
        ------
        InputError
            If a column does not hold what it held in training.
        """
        most = int(self._thing.shape[0])
        for start in range(0, most, n_rows):
            stop = min(start + n_rows, most)
            values = self._values(_rows_of(self._thing, start, stop))
            yield Panel(values, [str(i + 1) for i in range(start, stop)], None)

    def _values(self, rows: Any) -> NDArray[np.float64]:
        names = self._splits.names
        if not names:
            return np.empty((0, rows.shape[0]))
        as_texts = {
            name for name, known in zip(names, self._categories, strict=True) if known is not None
        }
        opened, pool = open_object(rows, as_texts), TextCoder(CATEGORY_NBYTES)
        is_text = opened.text_columns
        for name, position, known in zip(names, self._positions, self._categories, strict=True):
            if (is_text is not None and bool(is_text[position])) != (known is not None):
                kinds = ("numbers", "categories") if known is None else ("categories", "numbers")
                raise InputError(
                    f"column {name!r}: expected {kinds[0]}, as in training, found {kinds[1]}. "
                    "Convert the column."
                )
        values = np.ascontiguousarray(opened.read(self._positions, pool), np.float64)
        texts = [text.decode("utf-8", "replace") for text in pool.texts()]
        for column, known in zip(values, self._categories, strict=True):
            if known is not None:
                translate(column, translation(texts, known))
        return values


def _rows_of(thing: Any, start: int, stop: int) -> Any:
    library = frame_library(thing)
    if library is None:
        return thing[start:stop]
    return thing.iloc[start:stop] if library == "pandas" else thing.slice(start, stop - start)


# The memory of predictions that stay in memory, under a cap.

PANEL_NBYTES = 32 * MB
"""Memory of a panel of rows: more would not make it faster."""
_OUTPUT_NBYTES = 64
"""Memory of a number of a prediction: as an array, twice while joined, and in a frame."""


def _room_for(
    trees: HeldTrees, splits: SplitTable, panels: Panels, cap_nbytes: int
) -> tuple[int, int | None]:
    """Return what a cap leaves beside the trees: bytes of a panel, and of predicted rows.

    The latter only where it is not known how many there are.

    Raises
    ------
    BudgetError
        If it cannot hold a row, or the predictions of all rows, where their number is known.
    """
    n_outputs = max(1, len(splits.facts["classes"]))
    row_nbytes = _predicted_nbytes(n_outputs)
    budget = Budget(cap_nbytes)
    budget.grant("trees and thresholds", trees.nbytes + ensemble_nbytes(splits))
    budget.grant(f"{len(splits.features)} columns", panels.fixed_nbytes)
    budget.grant("a row", panels.row_nbytes + 24 * n_outputs + row_nbytes)
    if panels.most_rows is not None:
        budget.grant(f"predictions of {panels.most_rows} rows", row_nbytes * panels.most_rows)
    budget.check()
    panel = min(PANEL_NBYTES, budget.free_nbytes // 2) + panels.row_nbytes
    return panel, budget.free_nbytes - panel if panels.most_rows is None else None


def _check_room(n_rows: int, n_outputs: int, rest_nbytes: int, cap_nbytes: int) -> None:
    """Refuse more predictions than there is room for."""
    over = n_rows * _predicted_nbytes(n_outputs) - rest_nbytes
    if over > 0:
        raise BudgetError(
            f"a memory cap of {cap_nbytes / MB:g} MB cannot hold the predictions of {n_rows} rows "
            f"and more. Try --memory-mb {cap_to_name(cap_nbytes + 2 * over)}, or write them to a "
            "file with `srs-ooc predict`, which holds no more than some rows at a time."
        )


def _predicted_nbytes(n_outputs: int) -> int:
    """Return the memory of a predicted row."""
    return TEXT_NBYTES + _OUTPUT_NBYTES * (n_outputs + 1)


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
        panel_nbytes, rest = PANEL_NBYTES, None
        if cap_nbytes is not None:
            panel_nbytes, rest = _room_for(self.trees, self.splits, panels, cap_nbytes)
        fitting = panel_nbytes // max(1, panels.row_nbytes)
        n_rows = max(1, min(fitting, MOST_ROWS, panels.most_rows or MOST_ROWS))
        n_outputs = max(1, len(self.classes))
        ids, parts = [], []
        for panel in panels.panels(n_rows):
            ids += panel.ids
            if rest is not None and cap_nbytes is not None:
                _check_room(len(ids), n_outputs, rest, cap_nbytes)
            count = len(panel.ids)
            parts.append(
                probabilities(self.trees, self.splits, panel.values, count, as_codes=as_codes)
            )
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
