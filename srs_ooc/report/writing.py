"""Writing a report: the page, its texts, or one figure, under a memory cap."""

from pathlib import Path

from srs_ooc.base.errors import StoreError, UsageError
from srs_ooc.base.files import published_file
from srs_ooc.base.text import MB
from srs_ooc.report.drawing import FIGURES, save_figure
from srs_ooc.report.ends import ends_of
from srs_ooc.report.facts import Facts, facts_of
from srs_ooc.report.page import page_of
from srs_ooc.report.profiles import profiles_of
from srs_ooc.report.source import LISTED, LISTED_ANYWAY, Source
from srs_ooc.report.texts import json_of, markdown_of
from srs_ooc.results.verdict import VerdictReading
from srs_ooc.runs.ledger import Ledger
from srs_ooc.store.store import Store

KINDS = ("html", "md", "json")
DRAWING_NBYTES = 60 * MB
"""Allowance for the libraries that draw figures and make pages, and their work."""
GATHERING_NBYTES, LINE_NBYTES = 10 * MB, 4000
"""Allowances for what is read of the store, and for each feature: its line, plot and text."""


def opened(
    ledger: Ledger, store: Store, cap_nbytes: int | None = None, *, draws: bool = True
) -> Source:
    """Return a run open for a report, having set aside what the report takes besides the ranking.

    Parameters
    ----------
    ledger : Ledger
        Open for reading.
    store : Store
        The run's store.
    cap_nbytes : int, optional
        Cap on the memory of the whole process.
    draws : bool
        Whether figures are drawn.

    Raises
    ------
    BudgetError
        If the cap cannot hold it.
    """
    verdict = VerdictReading.of(ledger)
    n_selected = ledger.progress().n_kept if verdict is None else verdict.n_selected
    n_listed = min(max(n_selected, LISTED_ANYWAY), LISTED)
    beside = GATHERING_NBYTES + LINE_NBYTES * n_listed + (DRAWING_NBYTES if draws else 0)
    return Source(ledger, store, cap_nbytes, beside)


def default_path(run: Path, kind: str) -> Path:
    """Return where the report of a run is written if nothing else is said: beside it."""
    return run.absolute().with_name(f"{run.absolute().name.removesuffix('.run')}.{kind}")


def write_report(source: Source, out: Path, kind: str, *, replaces: bool = False) -> Facts:
    """Write a report to a file that appears whole; return what it says.

    Parameters
    ----------
    source : Source
        The run.
    out : Path
        The file to make.
    kind : {'html', 'md', 'json'}
        What to write.
    replaces : bool
        Whether a file that is there is replaced.

    Raises
    ------
    UsageError
        If the file is there, or a library is missing.
    StoreError, RunError
        If the store or the run is damaged, or the file cannot be written.
    """
    if out.exists() and not replaces:
        raise UsageError(
            f"{out}: expected a path that is free, found a file. Choose another, or --overwrite."
        )
    facts = facts_of(source)
    text = text_of(source, facts, kind)
    try:
        with published_file(out, replaces=replaces) as scratch:
            scratch.write_text(text, encoding="utf-8", newline="\n")
    except FileExistsError as error:
        raise UsageError(f"{out}: expected a path that is free: {error}.") from None
    except OSError as error:
        raise StoreError(
            f"{out}: cannot be written: {error.strerror or error}. Choose a path in a folder that "
            "exists, can be written, and has room."
        ) from error
    return facts


def text_of(source: Source, facts: Facts, kind: str) -> str:
    """Return a report as text of a kind of :data:`KINDS`."""
    if kind == "html":
        listed = source.listed
        return page_of(facts, profiles_of(source, listed), ends_of(source, listed))
    return json_of(facts) if kind == "json" else markdown_of(facts)


def write_figure(source: Source, out: Path, name: str, *, replaces: bool = False) -> None:
    """Draw one figure to a file; errors as of :func:`srs_ooc.report.drawing.save_figure`."""
    if name not in FIGURES:
        raise UsageError(f"figure: expected one of {', '.join(FIGURES)}, found {name!r}.")
    draw, size = FIGURES[name]
    facts = facts_of(source)
    save_figure(out, size, lambda ax: draw(ax, facts), replaces=replaces)
