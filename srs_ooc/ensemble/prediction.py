"""Predictions by the trees of a run: of a table to a file, or in memory when the run is gone."""

import csv
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from srs_ooc.base.arrays import Floats, Ints
from srs_ooc.base.budget import Budget, Lease, cap_to_name
from srs_ooc.base.errors import BudgetError, InputError, UsageError, unfit
from srs_ooc.base.files import check_free, explained, published_file
from srs_ooc.base.text import MB, number_of
from srs_ooc.base.urls import Place, Url
from srs_ooc.ensemble.panels import (
    CATEGORY_NBYTES,
    OPEN_NBYTES,
    TEXT_NBYTES,
    CsvPanels,
    MemoryPanels,
    Panel,
    Panels,
    StorePanels,
)
from srs_ooc.ingestion.csv import CsvStream, TextForm
from srs_ooc.ingestion.ingest import as_predicted
from srs_ooc.ingestion.sources import SourceFile
from srs_ooc.native.numerics import log
from srs_ooc.runs.run import Run
from srs_ooc.runs.run_trees import (
    SplitTable,
    TreeReader,
    digest_of,
    load_splits,
    make_splits,
    probabilities,
)
from srs_ooc.runs.task import Task
from srs_ooc.runs.training import training_response
from srs_ooc.store.opening import open_store
from srs_ooc.store.store import Store
from srs_ooc.trees.block import SAVED_PIECE_NBYTES, block_nbytes
from srs_ooc.trees.response import TARGET_BITS

# What decoded trees take in memory, and finding out what their splits mean.

SPLIT_NBYTES = 6
"""Bytes a split takes at least in the file of trees, its share of leaves included."""
NODE_NBYTES = 160
"""Allowance for a decoded node, its copies and what is looked up for it."""


def ensemble_nbytes(splits: SplitTable) -> int:
    """Return the bytes that trees and thresholds need in memory, however many trees there are."""
    table = 24 * len(splits.keys) + 8 * len(splits.features)
    return NODE_NBYTES * int(splits.facts["largest"]) + table


def most_ensemble_nbytes(trees: TreeReader, n_keys: int, n_used: int, n_training_rows: int) -> int:
    """Return a bound on :func:`ensemble_nbytes` before it is known how many nodes trees have."""
    record = 18 * n_training_rows  # of one tree, at most
    n_nodes = 2 * min(trees.nbytes, SAVED_PIECE_NBYTES + record) // SPLIT_NBYTES
    return NODE_NBYTES * n_nodes + 24 * n_keys + 8 * n_used


# What predictions take: panels of rows, and what is said of them.

PANEL_NBYTES = 32 * MB
"""Memory of a panel of rows that stays in memory: more would not make it faster."""
OUTPUT_NBYTES = 64
"""Memory of a number of a prediction: as an array, twice while joined, and in a frame."""
_NO_CAP = 1 << 62
MOST_PANEL_ROWS = 8192
"""Rows of a panel at most: more would not make it faster."""


def check_looking_up(trees: TreeReader, store: Store, data: Any, cap_nbytes: int) -> None:
    """Check that the cap holds finding out what the splits of trees mean, by their store's values.

    A cap that is named holds what predicting ``data`` takes, too, a row of it included, before its
    columns are looked at.

    Raises
    ------
    BudgetError
        If it cannot.
    """
    manifest, n_codes = store.manifest, store.array("n_codes")
    # There are no more different splits than codes in the store.
    n_keys = min(trees.nbytes // SPLIT_NBYTES, int(np.sum(n_codes, dtype=np.int64)))
    n_used = min(n_keys, len(n_codes))
    applying = most_ensemble_nbytes(trees, n_keys, n_used, manifest.n_rows)
    applying += (TEXT_NBYTES + 24) * n_used  # a name, and a cell of a row in three forms
    if isinstance(data, Store):
        applying += 24 * data.n_features + OPEN_NBYTES + data.reading_nbytes
        applying += 2 * block_nbytes(1, data.n_rows, manifest.code_nbytes)
    else:
        applying += 2 * CATEGORY_NBYTES * bool(manifest.kind_counts.get("categorical"))
        if isinstance(data, Path):
            applying += 16 * CsvStream(SourceFile(data), TextForm()).n_fields
    lease = Lease("looking thresholds up", 6 * 8 * n_keys + TEXT_NBYTES * n_used + (24 << 20))
    Budget(cap_nbytes, [lease], later_nbytes=applying).check()


def panel_rows(panels: CsvPanels | StorePanels, splits: SplitTable, cap_nbytes: int) -> int:
    """Return how many rows at a time the cap holds, where predictions are written as they come."""
    a_row = panels.row_nbytes + 24 * len(splits.facts["classes"])
    leases = [
        Lease("requests under way", panels.reading_nbytes),
        Lease("trees and thresholds", ensemble_nbytes(splits)),
        Lease(f"{len(splits.features)} columns", panels.fixed_nbytes),
        Lease("a row", a_row),
    ]
    budget = Budget(cap_nbytes, leases)
    budget.check()
    fitting = budget.free_nbytes // a_row + 1
    return int(min(fitting, MOST_PANEL_ROWS, panels.most_rows or MOST_PANEL_ROWS))


def kept_panel_rows(
    panels: Panels, splits: SplitTable, trees: TreeReader, cap_nbytes: int | None
) -> tuple[int, Callable[[int], None]]:
    """Return how many rows at a time a cap holds, where predictions stay in memory.

    Also what refuses more predicted rows than there is room for, where it is not known how many
    there will be.

    Raises
    ------
    BudgetError
        If it cannot hold a row, or the predictions of all rows, where their number is known.
    """
    n_outputs = max(1, len(splits.facts["classes"]))
    predicted = TEXT_NBYTES + OUTPUT_NBYTES * (n_outputs + 1)
    n_rows, cap_nbytes = panels.most_rows or 0, _NO_CAP if cap_nbytes is None else cap_nbytes
    leases = [
        Lease("trees and thresholds", trees.nbytes + ensemble_nbytes(splits)),
        Lease(f"{len(splits.features)} columns", panels.fixed_nbytes),
        Lease("a row", panels.row_nbytes + 24 * n_outputs + predicted),
        Lease(f"predictions of {n_rows} rows", predicted * n_rows),
    ]
    budget = Budget(cap_nbytes, leases)
    budget.check()
    panel = min(PANEL_NBYTES, budget.free_nbytes // 2) + panels.row_nbytes
    rest = budget.free_nbytes - panel

    def check(n_rows: int) -> None:
        over = n_rows * predicted - rest
        if panels.most_rows is None and over > 0:
            raise BudgetError(
                f"a memory cap of {cap_nbytes / MB:g} MB cannot hold the predictions of {n_rows} "
                f"rows and more. Try --memory-mb {cap_to_name(cap_nbytes + 2 * over)}, or write "
                "them to a file with `srs-ooc predict`, which holds no more than some rows at a "
                "time."
            )

    fitting = panel // max(1, panels.row_nbytes)
    return max(1, min(fitting, MOST_PANEL_ROWS, panels.most_rows or MOST_PANEL_ROWS)), check


# How good predictions are, where the target is there.

SMALLEST = 1e-15
"""A probability below this counts as this in the log-loss."""


_MISSING = re.compile("(NA)?|[+-]?[nN][aA][nN]")


class Scores:
    """How good the predictions seen so far are: accuracy and log-loss, or R2 and RMSE.

    A row whose label is none of the training classes counts as wrong, with probability 0; one whose
    label is missing is left out, and so is one without a number where numbers are predicted. Sums
    are then taken of differences from the first target, so that a large offset costs no digits.

    Parameters
    ----------
    classes : list of str
        The training classes; none of a regression.
    scale : float
        Of a regression, a power of two that brings targets to moderate numbers, so that no square
        overflows.
    """

    def __init__(self, classes: list[str], scale: float = 1.0) -> None:
        self._codes = {label: code for code, label in enumerate(classes)}
        self._scale, self.n_rows, self.n_unknown, self.n_unlabelled = scale, 0, 0, 0
        self._n_right, self._loss = 0, 0.0
        self._first = self._sum = self._squares = self._errors = 0.0

    def add(self, labels: list[str], predicted: list[int], shares: Floats) -> None:
        """Count some rows.

        Labels, predicted classes, and probabilities (n_rows, n_classes); of a regression targets as
        texts, anything, and mean targets (n_rows, 1).
        """
        add = self._add_class if self._codes else self._add_number
        for label, guess, row in zip(labels, predicted, shares, strict=True):
            if not add(label, guess, row):
                missing = _MISSING.fullmatch(label) is not None
                self.n_unlabelled += missing
                self.n_unknown += not missing

    def _add_class(self, label: str, guess: int, shares: Floats) -> bool:
        code = self._codes.get(label, -1)
        if code < 0 and _MISSING.fullmatch(label):
            return False
        self._loss -= log(max(float(shares[code]) if code >= 0 else 0.0, SMALLEST))
        self._n_right += guess == code
        self.n_rows += 1
        return code >= 0

    def _add_number(self, label: str, _: int, mean: Floats) -> bool:
        if (number := _finite(number_of(label))) is None:
            return False
        target = number * self._scale
        self._first = self._first if self.n_rows else target
        self.n_rows += 1
        away, error = target - self._first, target - float(mean[0]) * self._scale
        self._sum += away
        self._squares += away * away
        self._errors += error * error
        return True

    def measures(self) -> dict[str, float | None]:
        """Return ``accuracy`` and ``log_loss`` of classes, ``r2`` and ``rmse`` of a regression.

        The log-loss is the mean of minus the natural logarithm of the label's probability. None
        without rows, and of a regression where no double holds it or R2 has no variance to explain.
        """
        found: dict[str, float | None] = dict.fromkeys(("accuracy", "log_loss", "r2", "rmse"))
        if self.n_rows and self._codes:
            return found | {
                "accuracy": self._n_right / self.n_rows,
                "log_loss": self._loss / self.n_rows,
            }
        if self.n_rows:
            spread = self._squares - self._sum * self._sum / self.n_rows
            r2 = 1 - self._errors / spread if spread > 0 else math.inf
            rmse = math.sqrt(self._errors / self.n_rows) / self._scale
            found |= {"r2": _finite(r2), "rmse": _finite(rmse)}
        return found


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


_MODERATE = 2.0**-TARGET_BITS
"""Times the scale of whole-number targets: the half range of the training targets becomes 1."""


@dataclass(frozen=True)
class Report:
    """What was predicted; scores are None where the table has no target, and of times to an event.

    Where these were trained on, predictions are risks (``is_risk``): a higher one is sooner.
    ``n_training_rows`` are rows that the run was trained on; None where the table is neither the
    run's own store nor, byte for byte, the table that this was made of: rows are not compared.
    """

    n_rows: int
    n_trees: int
    n_features: int
    accuracy: float | None
    log_loss: float | None
    n_unknown_labels: int | None
    n_unlabelled: int | None = None
    r2: float | None = None
    rmse: float | None = None
    n_training_rows: int | None = None
    is_risk: bool = False


def predict(
    run: Path,
    data: Place,
    out: Path,
    *,
    row_ids: str | None = None,
    memory_nbytes: int = 512 * MB,
    store: Place | None = None,
) -> Report:
    """Predict the class or target of each row of a table by a run's trees, as of its last commit.

    Parameters
    ----------
    run : Path
        A run with saved trees; it may be going on.
    data : Path or URL
        A CSV file, a store, which may be at a URL, or a file of another format that an ingest
        reads, of which a store is made for the while. Rows are read in bounded panels, and only the
        columns that trees use.
    out : Path
        The CSV file to make: row id, prediction, and a probability for each class, if there are
        classes. It appears complete or not at all.
    row_ids : str, optional
        Column of row ids in a file.
    memory_nbytes : int
        Cap on the resident memory of the whole process.
    store : Path, optional
        The store of the run, if it was moved; needed when the run's trees are first used.

    Raises
    ------
    SrsOocError
        If run or table cannot be used, the cap is too small, or ``out`` is in the way.
    """
    check_free(out)
    with Run(run, writable=False) as ledger:
        trees = ledger.trees()
        with as_predicted(data, memory_nbytes, row_ids) as table:
            if table is not data:
                return predict(run, table, out, memory_nbytes=memory_nbytes, store=store)
        opened = open_store(data) if isinstance(data, Url) or data.is_dir() else data
        splits = kept = load_splits(run, trees)
        if splits is None:
            training = ledger.find_store(store)
            splits = looked_up(ledger, trees, training, opened, memory_nbytes)
        trained_on, made_on = ledger.inputs.rows, ledger.spec.store
    _check_data(opened, splits, row_ids)
    panels = _panels_of(opened, splits, made_on, row_ids)
    n_rows = panel_rows(panels, splits, memory_nbytes)
    id_name = row_ids or splits.facts["row_id_name"] or "row_id"
    with explained(out):
        report = _write(out, id_name, predicted(trees, splits, panels, n_rows), trees, splits)
    if kept is None:  # not before: what is refused leaves nothing
        splits.keep(run)
    digest = splits.facts["table"]
    if not panels.as_codes and (digest is None or digest_of(panels.origin()) != digest):
        return report
    n_trained = splits.facts["n_rows"] if trained_on is None else len(trained_on)
    return replace(report, n_training_rows=n_trained)


def _panels_of(
    data: Store | Path, splits: SplitTable, made_on: str, row_ids: str | None = None
) -> CsvPanels | StorePanels:
    """Return the rows of a store, or of a CSV file; ``made_on``: fingerprint of the run's store."""
    if isinstance(data, Store):
        return StorePanels(data, splits, as_codes=data.fingerprint == made_on)
    return CsvPanels(data, splits, row_ids)


def _check_data(data: Store | Path, splits: SplitTable, row_ids: str | None) -> None:
    if isinstance(data, Store):
        if row_ids is not None:
            raise UsageError(
                f"--row-ids: expected with a CSV file, found the store {data.place}, which has "
                "row ids of its own. Leave it out."
            )
        same_target = data.manifest.target_name == splits.facts["target_name"]
        if same_target and splits.facts["classes"] and data.manifest.task == "regression":
            raise UsageError(
                f"{data.place}: expected a target of classes, as in training, found one of "
                "numbers. Ingest the table with --task classification."
            )
    elif row_ids in splits.names:
        raise UsageError(
            f"--row-ids: expected a column that is no feature, found {row_ids!r}, which the trees "
            "use. Choose another, or leave it out."
        )


def looked_up(
    ledger: Run, trees: TreeReader, store: Store, data: Any, cap_nbytes: int | None
) -> SplitTable:
    """Return what the splits of trees mean, by the values of their store.

    Raises
    ------
    BudgetError
        If the cap cannot hold it; one that is named holds what predicting ``data`` takes, too.
    """
    with store.unchanged():
        if cap_nbytes is not None:
            check_looking_up(trees, store, data, cap_nbytes)
        task = Task.of(store, ledger.inputs.rows, ledger.spec.learner.class_weight)
        response = training_response(task.adjusted(ledger.inputs.null_model))
        return make_splits(trees, store, response.center, response.scale)


def predicted(
    trees: TreeReader, splits: SplitTable, panels: Panels, n_rows: int
) -> Iterator[tuple[Panel, Floats]]:
    """Yield all rows, ``n_rows`` at a time, with their mean class shares or mean targets."""
    for panel in panels.panels(n_rows):
        count, as_codes = len(panel.ids), panels.as_codes
        yield panel, probabilities(trees, splits, panel.values, count, as_codes=as_codes)


def _write(
    out: Path,
    id_name: str,
    panels: Iterator[tuple[Panel, Floats]],
    trees: TreeReader,
    splits: SplitTable,
) -> Report:
    classes: list[str] = splits.facts["classes"]
    scores = Scores(classes, 1.0 if classes else splits.facts["scale"] * _MODERATE)
    is_risk = splits.facts["is_risk"]
    n_rows, has_target = 0, not is_risk
    with published_file(out) as scratch, scratch.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        titles = (f"probability_{label}" for label in classes)
        writer.writerow([id_name, "risk" if is_risk else "prediction", *titles])
        for panel, shares in panels:
            chosen = trees.ensemble.chosen(shares).tolist()
            for row_id, guess, row in zip(panel.ids, chosen, shares, strict=True):
                said = row.tolist()
                writer.writerow([row_id, classes[guess], *said] if classes else [row_id, *said])
            n_rows += len(panel.ids)
            has_target = not is_risk and panel.labels is not None
            if has_target and panel.labels is not None:
                scores.add(panel.labels, chosen, shares)
    return Report(
        n_rows,
        int(splits.facts["n_trees"]),
        len(splits.features),
        n_unknown_labels=scores.n_unknown if has_target else None,
        n_unlabelled=scores.n_unlabelled if has_target else None,
        n_training_rows=None,
        is_risk=is_risk,
        **scores.measures(),
    )


# The ensemble in memory: it predicts when run and store are gone.


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
    n_features : int
        Of the training store.
    """

    trees: TreeReader
    splits: SplitTable
    positions: Ints
    store: str
    n_features: int

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
        with Run(run, writable=False) as ledger:
            trees, opened = ledger.trees(), ledger.find_store(store)
            if (splits := load_splits(run, trees)) is None:
                splits = looked_up(ledger, trees, opened, data, cap_nbytes)
        positions = np.asarray(opened.array("positions"), np.int64)[splits.features]
        return cls(trees.held(), splits, positions, opened.fingerprint, opened.n_features)

    @property
    def classes(self) -> list[str]:
        """Labels in class order; none of a regression."""
        return list(self.splits.facts["classes"])

    def predict(
        self, data: Any, *, by_name: bool = True, cap_nbytes: int | None = None
    ) -> tuple[list[str], Floats]:
        """Return the ids of rows, and their mean class shares; of a regression the mean target.

        Parameters
        ----------
        data : Store, path of a CSV file, ndarray, DataFrame, pyarrow.Table or sparse matrix
            What to predict. Of an array or a matrix the columns are those of training, in their
            order; anything else has names.
        by_name : bool
            Find the columns of a frame by name; else they are those of training, in their order,
            whatever their names.
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
        from srs_ooc.ingestion.formats.in_memory import frame_library

        if isinstance(data, Path | Store):
            panels: Panels = _panels_of(data, self.splits, self.store)
        else:
            is_frame, shape = frame_library(data), getattr(data, "shape", None)
            if not (is_frame and by_name) and (shape is None or shape[1:] != (self.n_features,)):
                expected = f"rows of all {self.n_features} columns of training"
                remedy = "Give those, or a frame, which has names."
                raise unfit("data", expected, shape or type(data).__name__, remedy)
            positions = self._named(data) if by_name and is_frame else self.positions
            panels = MemoryPanels(data, self.splits, positions)
        n_rows, check_room = kept_panel_rows(panels, self.splits, self.trees, cap_nbytes)
        ids, parts = [], [np.empty((0, max(1, len(self.classes))))]
        for panel, shares in predicted(self.trees, self.splits, panels, n_rows):
            ids += panel.ids
            check_room(len(ids))
            parts.append(shares)
        return ids, np.concatenate(parts)

    def _named(self, frame: Any) -> Ints:
        """Return the column of a frame for each feature that splits use."""
        names = getattr(frame, "column_names", None) or frame.columns
        place = {str(name): position for position, name in enumerate(names)}
        if absent := [name for name in self.splits.names if name not in place]:
            raise InputError(
                f"expected the {len(self.splits.names)} columns that the trees use, found "
                f"{len(absent)} of them missing, {absent[0]!r} first. Columns are found by name."
            )
        return np.array([place[name] for name in self.splits.names], np.int64)
