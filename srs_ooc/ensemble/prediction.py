"""From a run and a table to a file of predictions."""

import csv
import io
import math
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.budget import Budget, process_nbytes
from srs_ooc.base.errors import UsageError
from srs_ooc.base.files import published_file
from srs_ooc.base.text import MB
from srs_ooc.base.urls import Place, Url
from srs_ooc.ensemble.panels import (
    CATEGORY_NBYTES,
    TEXT_NBYTES,
    CsvPanels,
    Panels,
    StorePanels,
    TrainingPanels,
    most_csv_nbytes,
    most_store_nbytes,
)
from srs_ooc.native.numerics import log
from srs_ooc.runs.inputs import Inputs, find_store, inputs_of, spec_of, trees_of
from srs_ooc.runs.ledger import Ledger
from srs_ooc.runs.run_trees import TreeReader
from srs_ooc.runs.task import Task, training_response
from srs_ooc.runs.tree_splits import (
    SplitTable,
    ensemble_nbytes,
    load_splits,
    make_splits,
    making_nbytes,
    most_ensemble_nbytes,
    most_splits,
    probabilities,
)
from srs_ooc.store.manifest import Manifest
from srs_ooc.store.opening import open_store
from srs_ooc.store.store import Store
from srs_ooc.trees.block import block_nbytes
from srs_ooc.trees.response import TARGET_BITS

# How good predictions are, where the target is there.

SMALLEST = 1e-15
"""A probability below this counts as this in the log-loss."""


_MISSING = re.compile("(NA)?|[+-]?[nN][aA][nN]")


@dataclass
class Scores:
    """Accuracy and log-loss of the rows seen so far.

    A row whose label is none of the training classes counts as wrong, with probability 0; one whose
    label is missing is left out.

    Parameters
    ----------
    classes : list of str
        The training classes.
    """

    classes: list[str]
    n_rows: int = 0
    n_right: int = 0
    n_unknown: int = 0
    n_unlabelled: int = 0
    r2 = rmse = None
    _loss: float = 0.0
    _codes: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._codes = {label: code for code, label in enumerate(self.classes)}

    def add(self, labels: list[str], predicted: list[int], shares: NDArray[np.float64]) -> None:
        """Count some rows: labels, predicted classes, probabilities (n_rows, n_classes)."""
        for row, (label, guess) in enumerate(zip(labels, predicted, strict=True)):
            code = self._codes.get(label, -1)
            if code < 0 and _MISSING.fullmatch(label):
                self.n_unlabelled += 1
                continue
            probability = float(shares[row, code]) if code >= 0 else 0.0
            self._loss -= log(max(probability, SMALLEST))
            self.n_right += guess == code
            self.n_unknown += code < 0
            self.n_rows += 1

    @property
    def accuracy(self) -> float | None:
        """Share of rows predicted right; None without rows."""
        return self.n_right / self.n_rows if self.n_rows else None

    @property
    def log_loss(self) -> float | None:
        """Mean of minus the natural logarithm of the label's probability; None without rows."""
        return self._loss / self.n_rows if self.n_rows else None


@dataclass
class TargetScores:
    """R2 and root mean squared error of the rows seen so far.

    Rows without a number as target are left out. Sums are taken of differences from the first
    target, so that a large offset costs no digits.

    Parameters
    ----------
    scale : float
        A power of two that brings targets to moderate numbers, so that no square overflows.
    """

    scale: float = 1.0
    n_rows: int = 0
    n_unknown: int = 0
    n_unlabelled: int = 0
    accuracy = log_loss = None
    _first: float = 0.0
    _sum: float = 0.0
    _squares: float = 0.0
    _errors: float = 0.0

    def add(self, labels: list[str], predicted: list[int], means: NDArray[np.float64]) -> None:
        """Count some rows: targets as texts, and mean targets (n_rows, 1)."""
        for label, mean in zip(labels, means[:, 0].tolist(), strict=True):
            number = _number(label)
            if number is None:
                missing = _MISSING.fullmatch(label) is not None
                self.n_unlabelled += missing
                self.n_unknown += not missing
                continue
            target = number * self.scale
            self._first = self._first if self.n_rows else target
            self.n_rows += 1
            away, error = target - self._first, target - mean * self.scale
            self._sum += away
            self._squares += away * away
            self._errors += error * error

    @property
    def r2(self) -> float | None:
        """Share of the variance explained; None where there is none, or no double holds it."""
        if not self.n_rows:
            return None
        spread = self._squares - self._sum * self._sum / self.n_rows
        return _finite(1 - self._errors / spread) if spread > 0 else None

    @property
    def rmse(self) -> float | None:
        """Root of the mean squared error; None without rows, or where no double holds it."""
        if not self.n_rows:
            return None
        return _finite(math.sqrt(self._errors / self.n_rows) / self.scale)


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


MOST_ROWS = 8192
"""Rows of a panel at most: more would not make it faster."""
_MODERATE = 2.0**-TARGET_BITS
"""Times the scale of whole-number targets: the half range of the training targets becomes 1."""


@dataclass(frozen=True)
class Report:
    """What was predicted; scores are None where the table has no target.

    ``n_training_rows`` are rows that the run was trained on; None where the table is not the run's
    own store, whose rows are not compared.
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
        A CSV file, or a store, which may be at a URL; rows are read in bounded panels, and only the
        columns that trees use.
    out : Path
        The CSV file to make: row id, prediction, and a probability for each class, if there are
        classes. It appears complete or not at all.
    row_ids : str, optional
        Column of row ids in a CSV file.
    memory_nbytes : int
        Cap on the resident memory of the whole process.
    store : Path, optional
        The store of the run, if it was moved; needed when the run's trees are first used.

    Raises
    ------
    SrsOocError
        If run or table cannot be used, the cap is too small, or ``out`` is in the way.
    """
    if out.exists():
        raise UsageError(f"{out}: expected a path that is free, found a file. Choose another.")
    process_nbytes()  # of the program alone, before there is work
    ledger = Ledger(run, writable=False)
    try:
        trees = trees_of(ledger)
        opened = open_store(data) if isinstance(data, Url) or data.is_dir() else None
        splits = load_splits(run, trees)
        if splits is None:
            training = find_store(ledger, store)
            splits = looked_up(ledger, trees, training, opened or data, memory_nbytes)
        is_training = opened is not None and opened.fingerprint == spec_of(ledger).store
        trained_on = inputs_of(ledger).rows if is_training else None
    finally:
        ledger.close()
    _check_data(opened, splits, row_ids)
    panels: Panels
    if opened is None:
        assert isinstance(data, Path)
        panels = CsvPanels(data, splits, row_ids)
    elif is_training:
        panels = TrainingPanels(opened, splits)
    else:
        panels = StorePanels(opened, splits)
    reading_nbytes = 0 if opened is None else opened.reading_nbytes
    n_rows = _panel_rows(panels, splits, memory_nbytes, reading_nbytes)
    try:
        id_name = row_ids or splits.facts["row_id_name"] or "row_id"
        report = _write(out, id_name, panels, trees, splits, n_rows, as_codes=is_training)
    except FileExistsError as error:
        raise UsageError(f"{error}. Choose another path, or wait for it.") from None
    except OSError as error:
        raise UsageError(
            f"{out}: cannot be written: {error.strerror or error}. "
            "Choose a path in a folder that exists, can be written, and has room."
        ) from error
    if not is_training:
        return report
    n_trained = report.n_rows if trained_on is None else len(trained_on)
    return replace(report, n_training_rows=n_trained)


def _check_data(store: Store | None, splits: SplitTable, row_ids: str | None) -> None:
    if store is not None:
        if row_ids is not None:
            raise UsageError(
                f"--row-ids: expected with a CSV file, found the store {store.place}, which has "
                "row ids of its own. Leave it out."
            )
        same_target = store.manifest.target_name == splits.facts["target_name"]
        if same_target and splits.facts["classes"] and store.manifest.task == "regression":
            raise UsageError(
                f"{store.place}: expected a target of classes, as in training, found one of "
                "numbers. Ingest the table with --task classification."
            )
    elif row_ids in splits.names:
        raise UsageError(
            f"--row-ids: expected a column that is no feature, found {row_ids!r}, which the trees "
            "use. Choose another, or leave it out."
        )


def looked_up(
    ledger: Ledger, trees: TreeReader, store: Store, data: Any, cap_nbytes: int
) -> SplitTable:
    """Return what the splits of trees mean, by the values of their store, and keep it in the run.

    Raises
    ------
    BudgetError
        If the cap cannot hold it; one that is named holds what predicting ``data`` takes, too.
    """
    spec, manifest = spec_of(ledger), store.manifest
    with store.unchanged():
        n_keys, n_used = most_splits(trees, store)
        applying = (
            most_ensemble_nbytes(trees, n_keys, n_used, manifest.n_rows)
            + _most_panels_nbytes(data, manifest, n_used)
            + 24 * len(manifest.classes)
        )
        budget = Budget(cap_nbytes, other_nbytes=applying)
        budget.grant("looking thresholds up", making_nbytes(n_keys, n_used))
        budget.check()
        inputs = Inputs(None, inputs_of(ledger).rows)
        response = training_response(Task.of(store, inputs, spec.learner.class_weight))
        return make_splits(ledger.run, trees, store, response.center, response.scale)


def _most_panels_nbytes(data: Any, training: Manifest, n_used: int) -> int:
    """Return a bound on what a table needs, a row included, before its columns are looked at.

    ``training`` is the manifest of the store that trees were grown on, of whose features they use
    at most ``n_used``.
    """
    row = 2 * block_nbytes(n_used + 1, 1, training.code_nbytes) + 9 * n_used + 2 * TEXT_NBYTES
    if isinstance(data, Store):
        columns = most_store_nbytes(data, training.code_nbytes) + data.reading_nbytes
    elif not isinstance(data, Path):
        columns = 2 * CATEGORY_NBYTES
    else:
        has_categories = bool(training.kind_counts.get("categorical"))
        columns = most_csv_nbytes(data, has_categories=has_categories)
    return row + TEXT_NBYTES * n_used + columns


def _panel_rows(
    panels: Panels, splits: SplitTable, cap_nbytes: int, reading_nbytes: int = 0
) -> int:
    """Return how many rows at a time the cap holds."""
    budget = Budget(cap_nbytes)
    if reading_nbytes:
        budget.grant("requests under way", reading_nbytes)
    row_nbytes = panels.row_nbytes + 24 * len(splits.facts["classes"])
    budget.grant("trees and thresholds", ensemble_nbytes(splits))
    budget.grant(f"{len(splits.features)} columns", panels.fixed_nbytes)
    budget.grant("a row", row_nbytes)
    budget.check()
    fitting = budget.free_nbytes // row_nbytes + 1
    return int(min(fitting, MOST_ROWS, panels.most_rows or MOST_ROWS))


def _write(
    out: Path,
    id_name: str,
    panels: Panels,
    trees: TreeReader,
    splits: SplitTable,
    panel_rows: int,
    *,
    as_codes: bool,
) -> Report:
    classes: list[str] = splits.facts["classes"]
    scores: Scores | TargetScores
    scores = Scores(classes) if classes else TargetScores(splits.facts["scale"] * _MODERATE)
    n_rows, has_target = 0, True
    with (
        published_file(out) as scratch,
        scratch.open("wb") as raw,
        io.TextIOWrapper(raw, encoding="utf-8", newline="") as file,
    ):
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([id_name, "prediction", *(f"probability_{label}" for label in classes)])
        for panel in panels.panels(panel_rows):
            count = len(panel.ids)
            shares = probabilities(trees, splits, panel.values, count, as_codes=as_codes)
            predicted = trees.ensemble.chosen(shares).tolist()
            for row_id, guess, row in zip(panel.ids, predicted, shares, strict=True):
                said = row.tolist()
                writer.writerow([row_id, classes[guess], *said] if classes else [row_id, *said])
            n_rows += count
            has_target = panel.labels is not None
            if panel.labels is not None:
                scores.add(panel.labels, predicted, shares)
    return Report(
        n_rows=n_rows,
        n_trees=int(splits.facts["n_trees"]),
        n_features=len(splits.features),
        accuracy=scores.accuracy,
        log_loss=scores.log_loss,
        n_unknown_labels=scores.n_unknown if has_target else None,
        n_unlabelled=scores.n_unlabelled if has_target else None,
        r2=scores.r2,
        rmse=scores.rmse,
    )
