"""A report as one page of HTML that asks nothing of any network.

Everything is in the file: styles, scripts, figures and data. Its policy allows the very scripts and
styles that were written, by their hashes, and nothing from elsewhere. Names of features are data:
the template escapes them, and the page's script only ever sets them as text.
"""

import base64
import hashlib
import json
from importlib.resources import files
from math import isfinite
from pathlib import Path
from typing import Any

from srs_ooc import __version__
from srs_ooc.base.errors import UsageError
from srs_ooc.base.files import explained, published_file
from srs_ooc.base.frames import library
from srs_ooc.base.text import cell_text, visible
from srs_ooc.results.facts import json_of, markdown_of, words_of
from srs_ooc.results.figures import FIGURES, TAKES, image_of, nothing_to_draw
from srs_ooc.results.report import Report, ends_of, profiles_of
from srs_ooc.runs.verdict import FeatureRecord

PLAIN_ROWS = 200
"""Rows of the table that are there without a script, too."""
_DIGITS = 4
COLUMNS = {
    "rank": "rank",
    "name": "feature",
    "selected": "selected",
    "q_value": "q-value",
    "p_value": "p alone",
    "direction": "direction",
    "measure": "measure",
    "effect": "effect",
    "low": "low",
    "high": "high",
    "differs_in": "differs in",
    "censoring_p": "p of censoring",
    "beside": "beside",
    "score": "score",
    "importance": "importance",
    "tree_agreement": "tree agreement",
    "halves": "halves",
    "cluster": "cluster",
    "p_better": "better",
    "entered": "entered",
    "n_drawn": "drawn",
}
_CAPTIONS = {
    "first": (
        "The feature that comes first",
        "The feature against the target. Values are in their order, not at their distances.",
    ),
    "effects": (
        "Effects",
        "How much the first features differ, alone, with intervals of which 5% miss on average; at "
        "the right in the units of each measure. On the axis a ratio of spreads r is "
        "(r - 1) / (r + 1). Effects are likely overstated, as the same rows chose the features.",
    ),
    "survival": (
        "Time to the event",
        "Kaplan and Meier's estimate of who is still without the event, by halves of the first "
        "features (levels of categories), cut nearest the median; below, how many are at risk. The "
        "same rows chose the features: new rows are likely less far apart.",
    ),
    "pairs": (
        "Pairs",
        "What the first features that show more beside another show together with it: the share of "
        "a class (three levels apart, other features by halves), or the target by halves of the "
        "one, coloured by those of the other. The same rows chose the pairs: new rows are likely "
        "less far apart. `srs-ooc pairs` lists all, with effects.",
    ),
    "qq": (
        "Observed and expected p-values",
        "Each marginal test of location, all features. Where the points leave the line at the "
        "right only, few features matter. Where they lie above it from the left on, the p-values "
        "are too small: something that goes with most features also goes with the target.",
    ),
    "volcano": (
        "Volcano plot",
        "Effect and p-value of features, alone. Grey are features that were not selected, up to "
        "1,000 of them; there are none where rows are more than 20,000. Left out are features that "
        "differ in spread, in what is missing or in one level: those have no such direction.",
    ),
    "discoveries": ("Discoveries", "Features found by so many iterations."),
}


_ON_TOP = ("first", "qq")
"""Figures of the first screen."""
_LEADING = (
    "The features that led the search after so many iterations, before the last stage: how many "
    "were selected in the end (a share of the selected, where these are fewer), and how many led "
    "at the point before. Where lines are flat, more iterations would change little. Tests select: "
    "also what never led."
)
_LEADING_SO_FAR = "How many of the features that lead the search led at the point before."


def page_of(report: Report) -> str:
    """Return a report as HTML.

    Raises
    ------
    UsageError
        If Jinja2 or matplotlib is not installed.
    """
    jinja = library("jinja2", *TAKES)
    environment = jinja.Environment(
        autoescape=True, undefined=jinja.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["seen"] = lambda text: visible(str(text))
    environment.filters["number"] = lambda value: visible(cell_text(value, digits=3))
    # Parts of a text with their numbers: the odd ones, between backticks, are commands.
    environment.filters["commands"] = lambda text: enumerate(visible(text).split("`"))
    template = environment.from_string(_text("template.html"))
    style = _text("uPlot.min.css") + _text("style.css")
    script = _text("uPlot.iife.min.js") + _text("script.js")
    of_style, of_script = (
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for text in (style, script)
    )
    columns = _columns(report.records)
    figures = [(name, *_caption(report, name), image_of(report, name)) for name in _drawn(report)]
    return str(
        template.render(
            report=report,
            **words_of(report),
            style=style,
            script=script,
            policy=(
                f"default-src 'none'; img-src data:; style-src 'sha256-{of_style}'; "
                f"script-src 'sha256-{of_script}'; base-uri 'none'; form-action 'none'"
            ),
            first=[those for those in figures if those[0] in _ON_TOP],
            figures=[those for those in figures if those[0] not in _ON_TOP],
            columns=columns,
            rows=report.records[:PLAIN_ROWS],
            data=_data(report, columns),
            version=__version__,
            licence=_text("uPlot.LICENSE"),
        )
    )


def _text(name: str) -> str:
    return (files("srs_ooc.results") / "page_files" / name).read_text(encoding="utf-8")


def _caption(report: Report, name: str) -> tuple[str, str]:
    """Return title and caption of a figure; that of the course depends on the judge."""
    title, text = _CAPTIONS[name]
    if name == "discoveries" and report.spec.concludes:
        text = _LEADING_SO_FAR if report.points[-1].found is None else _LEADING
    return title, text


def _drawn(report: Report) -> list[str]:
    """Return the figures that have something to show; a line at no feature found is not drawn."""
    is_flat = not report.spec.concludes and not report.points[-1].found
    drawn = [name for name in FIGURES if nothing_to_draw(report, name) is None]
    return [name for name in drawn if not (is_flat and name == "discoveries")]


def _columns(records: list[FeatureRecord]) -> dict[str, str]:
    """Return the columns of which a record has a value, with their titles.

    Whether features are selected is told only where some are, and some not.
    """
    found = {}
    for name, title in COLUMNS.items():
        values = {getattr(record, name) for record in records}
        if len(values) > 1 if name == "selected" else values - {None}:
            found[name] = title
    if "direction" in found:  # says that, too
        found.pop("differs_in", None)
    return found


def _data(report: Report, columns: dict[str, str]) -> str:
    """Return what the page's script draws from, as JSON that cannot end a script element."""
    profiles, records = profiles_of(report, report.listed), report.records
    values = {name: [_compact(getattr(record, name)) for record in records] for name in columns}
    values["name"] = [visible(record.name) for record in records]
    record = {
        "run": visible(report.name),
        "titles": columns,
        "values": values,
        "legend": {
            "n_bins": profiles.n_bins,
            "classes": [visible(label) for label in profiles.classes],
            "class_rows": profiles.class_rows,
            "target": "target" if report.censored is None else "score (higher is sooner)",
            "targets": profiles.targets,
            "low": profiles.low,
            "high": profiles.high,
        },
        "ends": [
            ends and [visible(end) if isinstance(end, str) else end for end in ends]
            for ends in ends_of(report, report.listed)
        ],
        "used": profiles.n_used.tolist(),
        "scale": [_compact(scale) for scale in profiles.scale.tolist()],
        "cells": [base64.b64encode(cells.tobytes()).decode() for cells in profiles.cells],
    }
    text = json.dumps(record, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _compact(value: Any) -> Any:
    if not isinstance(value, float):
        return value
    return float(f"{value:.{_DIGITS}g}") if isfinite(value) else None


# Writing a report: the page, its texts, or one figure, under a memory cap.

KINDS = {"html": page_of, "md": markdown_of, "json": json_of}
"""What makes a report as text, by kind."""


def default_path(run: Path, kind: str) -> Path:
    """Return where the report of a run is written if nothing else is said: beside it."""
    return run.absolute().with_name(f"{run.absolute().name.removesuffix('.run')}.{kind}")


def write_report(report: Report, out: Path, kind: str, *, replaces: bool = False) -> None:
    """Write a report to a file that appears whole.

    Parameters
    ----------
    report : Report
        Of the run.
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
    text = KINDS[kind](report)
    with explained(out), published_file(out, replaces=replaces) as scratch:
        scratch.write_text(text, encoding="utf-8", newline="\n")
