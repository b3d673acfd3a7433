"""What a report is made from: a run and its store, read at one commit, in bounded memory."""

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.results.ranking import Reading
from srs_ooc.results.status import status_of
from srs_ooc.runs.inputs import inputs_of, spec_of
from srs_ooc.runs.ledger import Ledger
from srs_ooc.runs.task import Task
from srs_ooc.store.store import Store
from srs_ooc.trees.block import Block

LISTED = 10_000
"""Features that a report lists at most."""
LISTED_ANYWAY = 200
"""Features that it lists, best first, where none is selected."""
LOOKED_AT = 20_000
"""Rows that plots of features count at most, evenly spaced."""
_CELLS = 1 << 20
_COLUMNS = 64


class Source:
    """A run that is open for a report.

    Parameters
    ----------
    ledger : Ledger
        Open for reading.
    store : Store
        The run's store.
    cap_nbytes : int, optional
        Cap on the memory of the whole process.
    beside_nbytes : int
        What is made of the ranking takes besides.

    Raises
    ------
    RunError
        If the run was not made on this store, or is damaged.
    BudgetError
        If the cap cannot hold the ranking.

    Attributes
    ----------
    reading : Reading
        The ranking.
    status : Status
        Where the run stands.
    spec : RunSpec
        What identifies it.
    """

    def __init__(
        self, ledger: Ledger, store: Store, cap_nbytes: int | None = None, beside_nbytes: int = 0
    ) -> None:
        self.ledger, self.store, self.manifest = ledger, store, store.manifest
        self.spec, self.status = spec_of(ledger), status_of(ledger)
        self.reading = Reading(ledger, store, cap_nbytes, beside_nbytes)
        self.inputs = inputs_of(ledger)

    @cached_property
    def task(self) -> Task:
        """The rows trained on and what each says."""
        return Task.of(self.store, self.inputs)

    @cached_property
    def n_candidates(self) -> int:
        """Features that could be drawn."""
        excluded = self.inputs.excluded
        return self.manifest.n_features - (0 if excluded is None else len(excluded))

    @cached_property
    def selected(self) -> NDArray[np.integer[Any]]:
        """Stored positions of the selected features, best first."""
        return self.reading.selected()

    @cached_property
    def listed(self) -> NDArray[np.integer[Any]]:
        """Stored positions of the features to list: the selected ones, or else the first."""
        if len(self.selected):
            return self.selected[:LISTED]
        return self.reading.top(min(LISTED_ANYWAY, len(self.reading.positions)))

    def rows_looked_at(self, most: int = LOOKED_AT) -> NDArray[np.int32]:
        """Return evenly spaced training rows, as rows of the store; all where there are few."""
        n = self.task.n_rows
        places = np.linspace(0, n - 1, min(n, most)).astype(np.int64)
        rows = self.task.rows
        return places.astype(np.int32) if rows is None else rows[places]

    def targets_of(self, rows: NDArray[np.int32]) -> NDArray[Any]:
        """Return the class code or number of some rows of the store."""
        return np.asarray(self.store.target()[rows])

    def columns(
        self, features: NDArray[np.integer[Any]], rows: NDArray[np.int32]
    ) -> Iterator[tuple[NDArray[np.intp], NDArray[Any]]]:
        """Yield places among ``features`` and their codes (m, n_rows), some at a time.

        They are read in stored order.

        Raises
        ------
        StoreError
            If the store cannot be read, or was replaced.
        """
        order = np.argsort(features, kind="stable")
        size = max(1, min(_COLUMNS, _CELLS // len(rows)))
        block = Block(size, len(rows), self.manifest.code_nbytes, tiled=False)
        with self.store.unchanged(), self.store.columns(mapped=False) as columns:
            for start in range(0, len(order), size):
                places = order[start : start + size]
                columns.gather(features[places].astype(np.uint32), block, rows)
                yield places, block.as_columns(len(places))
