"""A result that also draws itself, and writes its report."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from srs_ooc.base.budget import growth_counted
from srs_ooc.base.errors import UsageError
from srs_ooc.base.options import python_spelling
from srs_ooc.base.text import MB
from srs_ooc.report import figures
from srs_ooc.report.correlations import correlations_of
from srs_ooc.report.course import discoveries_of, draws_of, usage_of
from srs_ooc.report.cut import cut_of
from srs_ooc.report.drawing import missing
from srs_ooc.report.held_out import held_out_of
from srs_ooc.report.profiles import profiles_of
from srs_ooc.report.source import Source
from srs_ooc.report.writing import KINDS, default_path, opened, write_report
from srs_ooc.results import result
from srs_ooc.runs.inputs import find_store
from srs_ooc.runs.ledger import Ledger

REPORT_MB = 512
"""Cap on what a report takes, in MB, unless another is given."""


class Result(result.Result):
    """What a run says, as of its last commit; also while it goes on, here or elsewhere.

    Nothing is kept open between calls. What was read is kept until the run is committed again. Each
    ``plot_`` method draws on the axes of matplotlib it is given, or on new ones, and returns them.

    Parameters
    ----------
    run : path
        The run's folder.
    store : path, optional
        The run's store, if it was moved.

    Raises
    ------
    RunError
        If there is no run, or it is damaged.
    """

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
        if kind not in KINDS:
            raise UsageError(f"kind: expected one of {', '.join(KINDS)}, found {kind!r}.")
        out = default_path(self.run, kind) if path is None else Path(path)
        with self._source(memory_mb * MB, draws=kind == "html") as source:
            write_report(source, out, kind)
        return out

    def plot_cut(self, ax: Any = None) -> Any:
        """Plot scores by rank, features beside decoys; return the axes."""
        return self._plot(ax, lambda ax, source: figures.draw_cut(ax, cut_of(source)))

    def plot_levels(self, ax: Any = None) -> Any:
        """Plot the q-value of each feature by its place, with the level; return the axes."""
        return self._plot(ax, lambda ax, source: figures.draw_levels(ax, cut_of(source)))

    def plot_discoveries(self, ax: Any = None) -> Any:
        """Plot features found by so many iterations; return the axes."""
        return self._plot(
            ax, lambda ax, source: figures.draw_discoveries(ax, discoveries_of(source))
        )

    def plot_draws(self, ax: Any = None) -> Any:
        """Plot how often features were drawn; return the axes."""
        return self._plot(ax, lambda ax, source: figures.draw_draws(ax, draws_of(source)))

    def plot_correlation(self, ax: Any = None) -> Any:
        """Plot rank correlations among the first selected features; return the axes."""
        return self._plot(
            ax, lambda ax, source: figures.draw_correlations(ax, correlations_of(source))
        )

    def plot_accuracy(self, ax: Any = None) -> Any:
        """Plot accuracy on rows held out, where ``compact`` measured it; return the axes."""
        return self._plot(ax, lambda ax, source: figures.draw_held_out(ax, held_out_of(source)))

    def plot_memory(self, ax: Any = None) -> Any:
        """Plot memory against the cap over the run; return the axes."""
        return self._plot(ax, lambda ax, source: figures.draw_memory(ax, usage_of(source)))

    def plot_time(self, ax: Any = None) -> Any:
        """Plot iterations done by seconds of work; return the axes."""
        return self._plot(ax, lambda ax, source: figures.draw_time(ax, usage_of(source)))

    def plot_feature(self, name: str, ax: Any = None) -> Any:
        """Plot a feature against the target; return the axes.

        Raises
        ------
        UsageError
            If there is no such feature.
        """

        def draw(ax: Any, source: Source) -> None:
            stored = _stored(source, name)
            figures.draw_feature(ax, name, profiles_of(source, np.array([stored])))

        return self._plot(ax, draw)

    def _plot(self, ax: Any, draw: Callable[[Any, Source], None]) -> Any:
        with self._source() as source:
            if ax is None:
                ax = _new_axes()
            draw(ax, source)
        return ax

    @contextmanager
    def _source(self, cap_nbytes: int | None = None, *, draws: bool = True) -> Iterator[Source]:
        with python_spelling(), growth_counted():
            ledger = Ledger(self.run, writable=False)
            try:
                yield opened(ledger, find_store(ledger, self._given), cap_nbytes, draws=draws)
            finally:
                ledger.close()


def _new_axes() -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise missing("matplotlib", error) from error
    return plt.subplots(layout="constrained")[1]


def _stored(source: Source, name: str) -> int:
    """Return the stored position of a feature.

    Raises
    ------
    UsageError
        If there is no such feature.
    """
    place = int(source.store.names.find([name])[0])
    if place < 0:
        raise UsageError(f"name: expected the name of a feature, found {name!r}.")
    return int(np.flatnonzero(source.reading.positions == place)[0])
