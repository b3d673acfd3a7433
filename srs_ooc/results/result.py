"""A run as programs and notebooks read it."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from srs_ooc.base.budget import growth_counted
from srs_ooc.base.frames import check_kind, frame_of, frame_of_columns
from srs_ooc.base.options import python_spelling
from srs_ooc.base.text import MB
from srs_ooc.base.urls import Place, Url, place_of
from srs_ooc.ensemble.feature_sensitivity import AUTO, REPEATS
from srs_ooc.ensemble.model import Model
from srs_ooc.results.comparison import Comparison, compare, side_of
from srs_ooc.results.export import export_columns
from srs_ooc.results.export_formats import check_name
from srs_ooc.results.history import Point, history_of
from srs_ooc.results.html import page_of
from srs_ooc.results.inventory import remove_run
from srs_ooc.results.progress import Progress
from srs_ooc.results.ranking import Reading
from srs_ooc.results.sensitivity import Sensitivity, measured
from srs_ooc.results.status import Status, status_of
from srs_ooc.results.wanted import check_one, named_positions, ranked_positions
from srs_ooc.runs.inputs import find_store
from srs_ooc.runs.ledger import Ledger
from srs_ooc.runs.settling import NamesOrFile, names_file
from srs_ooc.store.opening import open_store
from srs_ooc.store.store import Store

READING_MB = 512
"""Cap on what reading a result takes, in MB, unless another is given."""


class Result:
    """What a run says, as of its last commit; also while it goes on, here or elsewhere.

    Nothing is kept open between calls. What was read is kept until the run is committed again.

    Parameters
    ----------
    run : path
        The run's folder.
    store : path or URL, optional
        The run's store, if it was moved.

    Raises
    ------
    RunError
        If there is no run, or it is damaged.
    """

    def __init__(self, run: str | Path, store: str | Place | None = None) -> None:
        self.run = Path(run).absolute()  # wherever the program goes meanwhile
        self._given = None if store is None else place_of(store)
        self._read: tuple[int | None, Reading] | None = None
        self.status  # noqa: B018 (there is a run, and it can be read)

    @contextmanager
    def _ledger(self) -> Iterator[Ledger]:
        with python_spelling(), growth_counted():
            ledger = Ledger(self.run, writable=False)
            try:
                yield ledger
            finally:
                ledger.close()

    @property
    def reading(self) -> Reading:
        """What the run's ledger says, as of its last commit."""
        with self._ledger() as ledger:
            number = ledger.commits_counted()
            if self._read is None or number is None or self._read[0] != number:
                self._read = number, Reading(ledger, find_store(ledger, self._given))
            return self._read[1]

    @property
    def status(self) -> Status:
        """Where the run stands: state, iterations, settled options, memory, time."""
        with self._ledger() as ledger:
            return status_of(ledger)

    @property
    def store(self) -> Store:
        """The run's store, opened."""
        with self._ledger() as ledger:
            return find_store(ledger, self._given)

    @property
    def n_iterations(self) -> int:
        """Iterations done."""
        return self.status.iterations

    @property
    def is_provisional(self) -> bool:
        """Whether the final verdict is still to come."""
        return self.reading.is_provisional

    @property
    def selected(self) -> list[str]:
        """Names of the selected features, best first; none before a final verdict."""
        return self._names(self.reading)

    def _names(self, reading: Reading) -> list[str]:
        return [reading.name(int(f)) for f in reading.selected()]

    def features(
        self, kind: str = "pandas", *, top: int | None = None, only_selected: bool = False
    ) -> Any:
        """Return the features by rank, with the columns of ``srs-ooc features --csv``.

        Parameters
        ----------
        kind : {'pandas', 'polars', 'records'}
            A DataFrame, or a list of dicts.
        top : int, optional
            Only the first so many.
        only_selected : bool
            Only those that are selected.

        Raises
        ------
        UsageError
            If ``kind`` is not known, or its library is not installed.
        """
        with python_spelling():
            check_kind(kind)
            reading = self.reading
            among = reading.selected() if only_selected else None
            return frame_of(kind, reading.record_type, islice(reading.records(among), top))

    def history(self, kind: str = "pandas") -> Any:
        """Return the course of the run, a row a :class:`srs_ooc.results.history.Point`.

        ``kind`` and errors are those of :meth:`features`.
        """
        with self._ledger() as ledger:
            return frame_of(kind, Point, history_of(ledger, self.reading))

    def why(self, name: str) -> str:
        """Say in one sentence why the feature called ``name`` is in or out.

        Raises
        ------
        UsageError
            If there is no such feature, or no final verdict.
        """
        with python_spelling():
            return self.reading.explain(name)

    def export(
        self,
        path: str | Path,
        *,
        top: int | None = None,
        names: NamesOrFile = None,
        safe: bool = False,
        memory_mb: int = READING_MB,
    ) -> Path:
        """Write the selected columns to a file or store, as ``srs-ooc export``; return its path.

        Parameters
        ----------
        path : path
            The file to make; its name says the format: ``.csv``, ``.csv.gz``, ``.parquet``,
            ``.feather``, ``.svmlight``, ``.npy`` (values alone), ``.txt`` (names alone), ``.zarr``
            (a smaller store).
        top : int, optional
            The first so many by rank instead of the selected.
        names : path or iterable of str, optional
            These features instead of the selected: a file with one a line, or the names.
        safe : bool
            Mark texts that a spreadsheet would take for formulas.
        memory_mb : int
            Cap on growth of the process, in MB of 10^6 bytes.

        Raises
        ------
        RunError
            If there are none to export.
        StoreError, UsageError, BudgetError
            If the store has no values, the file is there, or the cap is too small.
        """
        out, cap = Path(path), memory_mb * MB
        check_one(top, names)
        with self._ledger() as ledger, TemporaryDirectory(prefix="srs-ooc-") as scratch:
            check_name(out)
            store, file = (
                find_store(ledger, self._given),
                names_file(names, Path(scratch) / "names", "names"),
            )
            if file is None:
                wanted = ranked_positions(ledger, self.reading, top)
            else:
                wanted = named_positions(store, file, cap)
            export_columns(store, wanted, out, cap_nbytes=cap, safe=safe)
        return out

    def compare(self, other: "Result") -> Comparison:
        """Compare this run with another one: selections, ranks and options, features by name."""
        with self._ledger() as first, other._ledger() as second:
            return compare(side_of(first, self._given), side_of(second, other._given))

    def remove(self) -> None:
        """Remove the run with all it has learnt; its store stays.

        Raises
        ------
        RunError
            If another process works on it, or it cannot be removed.
        """
        remove_run(self.run)

    def predict(self, data: Any, kind: str = "pandas", *, memory_mb: int = READING_MB) -> Any:
        """Predict rows by the trees of the run, which must have been made with ``save_trees``.

        Parameters
        ----------
        data : Store, path, DataFrame, pyarrow.Table, ndarray or sparse matrix
            A store, a CSV file or a frame, whose columns are found by name; of an array or a matrix
            they are those of the run's table, in their order. Rows go through memory in parts.
        kind : {'pandas', 'polars', 'records'}
            What to return.
        memory_mb : int
            Cap on growth of the process, in MB of 10^6 bytes.

        Returns
        -------
        DataFrame or list of dict
            ``row_id``, ``prediction`` and ``probability_CLASS`` for each class, as ``srs-ooc
            predict`` writes them.

        Raises
        ------
        RunError, InputError, StoreError
            If the run keeps no trees, or the table lacks a column or holds something else in it.
        BudgetError
            If the cap cannot hold the trees, some rows, and all predictions.
        """
        with python_spelling(), growth_counted():
            check_kind(kind)
            table, cap = _table_of(data), memory_mb * MB
            model = Model.of(self.run, self._given, cap_nbytes=cap, data=table)
            ids, shares = model.predict(table, cap_nbytes=cap)
        classes = model.classes
        said = model.chosen(shares).tolist()
        columns: dict[str, list[Any]] = {"row_id": ids}
        columns["prediction"] = [classes[i] for i in said] if classes else shares[:, 0].tolist()
        for i, label in enumerate(classes):
            columns[f"probability_{label}"] = shares[:, i].tolist()
        return frame_of_columns(kind, columns)

    def sensitivity(
        self,
        *,
        rows: NamesOrFile = None,
        flip: str = AUTO,
        repeats: int = REPEATS,
        memory_mb: int = READING_MB,
        threads: int | None = None,
        progress: Progress = None,
    ) -> Sensitivity:
        """Rank features by what altering them does; as :func:`srs_ooc.sensitivity`."""
        asked = (rows, flip, repeats, memory_mb, threads)
        with python_spelling(), growth_counted():
            return measured(self.run, self._given, *asked, progress)

    def __repr__(self) -> str:
        status = self.status
        return (
            f"<Result {str(self.run)!r}: {status.state}, {status.iterations} of "
            f"{status.iterations_asked} iterations, {status.n_selected} selected>"
        )

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        return page_of(self)


def _table_of(data: Any) -> Any:
    """Return what a path stands for: a store opened, or the path of a file."""
    if not isinstance(data, str | Path):
        return data
    path = place_of(data)
    is_store = isinstance(path, Url) or path.is_dir()
    return open_store(path) if is_store else path
