"""A problem as a store, without a CSV file in between."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.text import MB
from srs_ooc.ingestion.ingest_memory import fit_batch
from srs_ooc.ingestion.ingest_options import StoreForm, TableFacts, stored_positions
from srs_ooc.ingestion.scratch import text_blocks
from srs_ooc.ingestion.writer import write_store
from srs_ooc.store.manifest import Shape
from srs_ooc.synthetic.problem_tables import TARGET_NAME, Problem, columns, describe, feature_name

WORK_NBYTES = 48 * MB
N_THREADS = 2


class ProblemColumns:
    """The features of a problem in stored order: a ``StoredColumns``.

    Parameters
    ----------
    problem : Problem
        What is read.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._positions = stored_positions(problem.n_features)

    @property
    def n_rows(self) -> int:
        """Rows of the table."""
        return self._problem.n_rows

    @property
    def n_features(self) -> int:
        """Features of the table."""
        return self._problem.n_features

    def read(self, start: int, stop: int) -> NDArray[np.float64]:
        """Return the values (stop - start, n_rows) of stored features ``start .. stop - 1``."""
        return columns(self._problem, self._positions[start:stop])


def write_problem(problem: Problem, folder: Path) -> None:
    """Write the files of a store into an empty folder, as ingesting the CSV file would.

    Only the manifest differs: it names the problem as the source.

    Raises
    ------
    OSError
        If the folder cannot be written.
    """
    shape, form = Shape(problem.n_rows, problem.n_features), StoreForm()
    target: NDArray[Any] = problem.target(0, problem.n_rows)
    labels: tuple[str, ...] = ()
    if target.dtype == np.uint8:
        target = target.astype(np.int32)
        labels = tuple(str(label) for label in range(int(target.max()) + 1))
    truth = describe(problem)
    source = {"format": "synth", "name": truth["problem"], "parameters": truth["parameters"]}
    write_store(
        folder,
        ProblemColumns(problem),
        target,
        TableFacts(TARGET_NAME, labels, source=source),
        text_blocks(feature_name(position) for position in range(problem.n_features)),
        form=form,
        batch_features=fit_batch(shape, form, WORK_NBYTES)[0],
        n_threads=N_THREADS,
    )
