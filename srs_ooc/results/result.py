"""A run as programs and notebooks read it."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from html import escape
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from srs_ooc.base.arrays import Floats
from srs_ooc.base.budget import growth_counted
from srs_ooc.base.errors import RunError, UsageError
from srs_ooc.base.frames import frame_of, frame_of_columns, library
from srs_ooc.base.options import checked, python_spelling
from srs_ooc.base.text import MB, cell_text, counted, visible
from srs_ooc.base.urls import Place, Url, place_of
from srs_ooc.results.live import Progress
from srs_ooc.results.ranking import Comparison, Ranking, compare
from srs_ooc.results.standing import Status, remove_run, status_of
from srs_ooc.runs.halves import HalvesRecord, halves_of
from srs_ooc.runs.ledger import COMMITS
from srs_ooc.runs.request import NamesOrFile, asked_in_python
from srs_ooc.runs.run import Run
from srs_ooc.store.opening import open_store, store_of
from srs_ooc.store.store import Store

if TYPE_CHECKING:
    from srs_ooc.results.report import Report

# What a notebook shows of a result: plain HTML, with every text escaped.

SHOWN = 10
_COLUMNS = ("rank", "name", "selected", "importance", "n_drawn")
_VERDICT_COLUMNS = (
    "rank", "name", "selected", "q_value", "direction", "effect", "score", "importance", "p_value"
)  # fmt: skip


def _facts(status: Status) -> str:
    run = status.parts["run"]
    facts = {
        "state": status.state,
        "iterations": f"{status.iterations} of {status.iterations_asked}",
        "selected": counted(status.n_selected, "feature"),
        "run": "method {method}, judge {judge}, q {subspace_size}, seed {seed}".format(**run),
        "memory": status.memory,
        "time": f"{status.seconds:.1f} s of work",
        "store": status.store,
    }
    rows = "".join(
        f'<tr><th scope="row">{_text(name)}</th><td>{_text(value)}</td></tr>'
        for name, value in facts.items()
    )
    return f"<table>{rows}</table>"


def _table(columns: tuple[str, ...], records: list[dict[str, Any]]) -> str:
    head = "".join(f'<th scope="col">{_text(column)}</th>' for column in columns)
    shown = ([_text(cell_text(record[column])) for column in columns] for record in records)
    rows = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in shown)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _text(value: object) -> str:
    return escape(visible(str(value)), quote=True)


READING_MB = 512
"""Cap on what reading a result takes, in MB, unless another is given."""
REPORT_MB = 512
"""Cap on what a report takes, in MB, unless another is given."""


class Result:
    """What a run says, as of its last commit; also while it goes on, here or elsewhere.

    Nothing is kept open between calls. What was read is kept until the run is committed again. Each
    ``plot_`` method draws on the axes of matplotlib it is given, or on new ones, and returns them.

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
        self.store_given = None if store is None else place_of(store)
        self._read: tuple[int, Ranking] | None = None
        self.status  # noqa: B018 (there is a run, and it can be read)

    @contextmanager
    def _ledger(self) -> Iterator[Run]:
        with python_spelling(), growth_counted(), Run(self.run, writable=False) as ledger:
            yield ledger

    @property
    def reading(self) -> Ranking:
        """What the run's ledger says, as of its last commit."""
        with self._ledger() as ledger:
            number = int(ledger.meta(COMMITS))
            if self._read is None or self._read[0] != number:
                self._read = number, Ranking(ledger, ledger.find_store(self.store_given))
            return self._read[1]

    @property
    def status(self) -> Status:
        """Where the run stands: state, iterations, settled options, memory, time."""
        with self._ledger() as ledger:
            return status_of(ledger)

    @property
    def halves(self) -> HalvesRecord | None:
        """What halves of the rows select, where ``halves`` were asked for; None where not."""
        with self._ledger() as ledger:
            return halves_of(ledger)

    @property
    def store(self) -> Store:
        """The run's store, opened."""
        with self._ledger() as ledger:
            return ledger.find_store(self.store_given)

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
        reading = self.reading
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
            _, top = checked(kind=kind, top=top)
            reading = self.reading
            best = islice(reading.records(reading.selected() if only_selected else None), top)
            return frame_of(kind, reading.record_type, best)

    def pairs(self, kind: str = "pandas", *, only_selected: bool = False) -> Any:
        """Return the features that show more beside another, a row a pair, as ``srs-ooc pairs``.

        The columns are those of :class:`srs_ooc.results.pair_record.PairRecord`; ``kind``,
        ``only_selected`` and errors are those of :meth:`features`.
        """
        from srs_ooc.results.pair_record import PairRecord, pairs_of

        with python_spelling(), self._report(draws=False) as report:
            checked(kind=kind)
            given = report.reading, report.task, report.store
            found = pairs_of(*given, only_selected=only_selected)
            return frame_of(kind, PairRecord, (pair.record for pair in found))

    def assess(self, other: Any, kind: str = "pandas") -> Any:
        """Test the selected features again in another store, as ``srs-ooc assess`` does.

        Parameters
        ----------
        other : Store, path or URL
            Its features are found by name.
        kind : {'pandas', 'polars', 'records'}
            What to return.

        Returns
        -------
        DataFrame or list of dict
            A row a feature: :class:`srs_ooc.results.assessment.AssessedRecord`.

        Raises
        ------
        RunError, InputError, StoreError
            If the run has no verdict by tests; if the other target is of another kind, or no
            feature is there; if a store cannot be read.
        """
        from srs_ooc.results.assessment import AssessedRecord, assess

        with python_spelling(), self._report(draws=False) as report:
            checked(kind=kind)
            return frame_of(kind, AssessedRecord, assess(report, store_of(other)))

    def panel_scores(self, other: Any, kind: str = "pandas", *, memory_mb: int = READING_MB) -> Any:
        """Return how well a forest on the selected features predicts another store.

        Parameters
        ----------
        other : Store, path or URL
            Its features are found by name.
        kind : {'pandas', 'polars', 'records'}
            What to return.
        memory_mb : int
            Cap on growth of the process, in MB of 10^6 bytes.

        Returns
        -------
        DataFrame or list of dict
            A row a measure: :class:`srs_ooc.results.assessment.PanelScore`; none where the other
            store has none of the features, or keeps no values.

        Raises
        ------
        RunError, InputError, StoreError, BudgetError
            As of :meth:`assess`; if the cap cannot hold the forest.
        """
        from srs_ooc.results.assessment import PanelScore, check_target, panel_scores

        with python_spelling(), growth_counted(), self._report(draws=False) as report:
            checked(kind=kind)
            check_target(report.store, store := store_of(other))
            return frame_of(kind, PanelScore, panel_scores(report, store, memory_mb, 1))

    @property
    def cautions(self) -> list[str]:
        """What ``srs-ooc report`` warns of, the gravest first: what is so, and what to do.

        Among them a feature that alone tells the target, and why nothing can be found.
        """
        from srs_ooc.results.facts import cautions_of

        with self._report(draws=False) as report:
            return [f"{title}. {text}" for title, text in cautions_of(report)]

    def history(self, kind: str = "pandas") -> Any:
        """Return the course of the run, a row a :class:`srs_ooc.results.report.Point`.

        ``kind`` and errors are those of :meth:`features`.
        """
        from srs_ooc.results.report import Point, history_of

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
        from srs_ooc.results import exporting

        out, cap = Path(path), memory_mb * MB
        with asked_in_python(names=names) as files, self._ledger() as ledger:
            exporting.check_asked(top, names, out)
            store = ledger.find_store(self.store_given)
            if files["names"] is None:
                wanted = exporting.ranked_positions(ledger, self.reading, top)
            else:
                wanted = exporting.named_positions(store, files["names"], cap)
            exporting.export_columns(store, wanted, out, cap_nbytes=cap, safe=safe)
        return out

    def compare(self, other: "Result") -> Comparison:
        """Compare this run with another one: selections, ranks and options, features by name."""
        with self._ledger() as first, other._ledger() as second:
            return compare((first, second), (self.store_given, other.store_given))

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
            A store, a file or a frame, whose columns are found by name; of an array or a matrix
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
        from srs_ooc.ensemble.prediction import Model
        from srs_ooc.ingestion.ingest import as_predicted
        from srs_ooc.runs.run_trees import load_splits

        with python_spelling(), growth_counted(), ExitStack() as stack:
            checked(kind=kind)
            table, cap = data, memory_mb * MB
            if isinstance(data, str | Path):  # a store, or a file
                place = stack.enter_context(as_predicted(place_of(data), cap))
                table = open_store(place) if isinstance(place, Url) or place.is_dir() else place
            model = Model.of(self.run, self.store_given, cap_nbytes=cap, data=table)
            ids, shares = model.predict(table, cap_nbytes=cap)
            if load_splits(self.run, model.trees) is None:
                model.splits.keep(self.run)
        classes = model.classes
        said = model.trees.ensemble.chosen(shares).tolist()
        predicted = [classes[i] for i in said] if classes else shares[:, 0].tolist()
        each = {f"probability_{label}": shares[:, i].tolist() for i, label in enumerate(classes)}
        return frame_of_columns(kind, {"row_id": ids, "prediction": predicted, **each})

    def sensitivity(
        self,
        *,
        rows: NamesOrFile = None,
        flip: str = "auto",
        repeats: int = 5,
        memory_mb: int = READING_MB,
        threads: int | None = None,
        progress: Progress = None,
    ) -> Any:
        """Rank features by what altering them does; as :func:`srs_ooc.sensitivity`."""
        import srs_ooc

        return srs_ooc.sensitivity(
            self,
            rows=rows,
            flip=flip,
            repeats=repeats,
            memory_mb=memory_mb,
            threads=threads,
            progress=progress,
        )

    def __repr__(self) -> str:
        status = self.status
        return (
            f"<Result {str(self.run)!r}: {status.state}, {status.iterations} of "
            f"{status.iterations_asked} iterations, {status.n_selected} selected>"
        )

    def _repr_html_(self) -> str:
        """Return what a notebook shows: no script, no colours of its own."""
        reading = self.reading
        columns = _COLUMNS if reading.verdict is None else _VERDICT_COLUMNS
        records = self.features("records", top=SHOWN)
        more = counted(len(reading.positions) - len(records), "feature")
        is_all = len(records) == len(reading.positions)
        rest = "" if is_all else f"<p>and {more} more: <code>.features()</code></p>"
        provisional = " (no verdict yet)" if reading.is_provisional else ""
        head = f"<strong>{_text(self.run)}</strong>{provisional}"
        return f"<div>{head}{_facts(self.status)}{_table(columns, records)}{rest}</div>"

    def report(
        self, path: str | Path | None = None, *, kind: str = "html", memory_mb: int = REPORT_MB
    ) -> Path:
        """Write the report of the run, as ``srs-ooc report`` does; return its path.

        Parameters
        ----------
        path : path, optional
            The file to make; beside the run, with its name, if not given.
        kind : {'html', 'md', 'json'}
            One page that needs no network, Markdown, or JSON.
        memory_mb : int
            Cap on growth of the process, in MB of 10^6 bytes.

        Raises
        ------
        UsageError
            If the file is there, or a library that draws is not.
        RunError, StoreError, BudgetError
            If the run or its store cannot be read, or not under the cap.
        """
        from srs_ooc.results.page import KINDS, default_path, write_report

        if kind not in KINDS:
            raise UsageError(f"kind: expected one of {', '.join(KINDS)}, found {kind!r}.")
        out = default_path(self.run, kind) if path is None else Path(path)
        with self._report(memory_mb * MB, draws=kind == "html") as report:
            write_report(report, out, kind)
        return out

    def plot_effects(self, ax: Any = None) -> Any:
        """Plot the effects of the first features with their intervals; return the axes."""
        return self._plot("effects", ax)

    def plot_volcano(self, ax: Any = None) -> Any:
        """Plot the effects of features against their p-values; return the axes."""
        return self._plot("volcano", ax)

    def qq(self) -> tuple[Floats, Floats]:
        """Return expected and observed -log10 p of all features, each alone; float64 (n,), twice.

        Of the tests of location, ascending; one point for all p-values of a narrow range.

        Raises
        ------
        RunError
            If there is no verdict yet, or it is of a version that did not keep them.
        """
        with self._report(draws=False) as report:
            if report.qq is None:
                raise RunError(
                    f"{self.run}: expected a run with a verdict by tests (of this version), found "
                    "none. Bring the run to its end with `resume`, or run again."
                )
            return report.qq

    def plot_qq(self, ax: Any = None) -> Any:
        """Plot observed against expected p-values of all features; return the axes."""
        return self._plot("qq", ax)

    def plot_pairs(self, ax: Any = None) -> Any:
        """Plot what the first pairs of features show together; return the axes."""
        return self._plot("pairs", ax)

    def plot_discoveries(self, ax: Any = None) -> Any:
        """Plot features found by so many iterations; return the axes."""
        return self._plot("discoveries", ax)

    def plot_feature(self, name: str, ax: Any = None) -> Any:
        """Plot a feature against the target; return the axes.

        Raises
        ------
        UsageError
            If there is no such feature.
        """
        from srs_ooc.results.figures import draw_feature

        with self._report() as report:
            ax = _new_axes() if ax is None else ax
            place = int(report.store.names.find([name])[0])
            if place < 0:
                raise UsageError(f"name: expected the name of a feature, found {name!r}.")
            stored = np.flatnonzero(report.reading.positions == place)[:1]
            draw_feature(ax, report, stored)
        return ax

    def _plot(self, figure: str, ax: Any) -> Any:
        from srs_ooc.results.figures import draw

        with self._report() as report:
            ax = _new_axes() if ax is None else ax
            draw(ax, report, figure)
        return ax

    @contextmanager
    def _report(self, cap_nbytes: int | None = None, *, draws: bool = True) -> "Iterator[Report]":
        from srs_ooc.results.report import Report

        with self._ledger() as ledger:
            yield Report(ledger, ledger.find_store(self.store_given), cap_nbytes, draws=draws)


def _new_axes() -> Any:
    from srs_ooc.results.figures import TAKES

    return library("matplotlib.pyplot", *TAKES).subplots(layout="constrained")[1]
