"""The figures of a report, each drawn on axes of matplotlib."""

import base64
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np

from srs_ooc.base.arrays import Floats, Integers, Ints
from srs_ooc.base.errors import UsageError
from srs_ooc.base.files import explained, published_file
from srs_ooc.base.frames import library
from srs_ooc.base.text import visible
from srs_ooc.evidence.conditional_tests import halves
from srs_ooc.evidence.null_model import Censored, kaplan_meier
from srs_ooc.results.feature_record import lambda_text, size_text
from srs_ooc.results.pair_record import Pair
from srs_ooc.results.report import Profiles, Report, ends_of, profiles_of, signed
from srs_ooc.runs.feature_tests import columns_of
from srs_ooc.runs.verdict import FeatureRecord

BLUE, ORANGE, GREEN, PURPLE, GREY = "#0072b2", "#d55e00", "#009e73", "#aa4499", "#8a8f98"
INK = "#1d2229"
COLOURS = (
    BLUE, ORANGE, GREEN, PURPLE, "#b8860b", "#56b4e9", "#7f3b08", "#4d4dff", "#66a61e", "#e7298a",
    "#1b7f8c", "#a6761d", GREY,
)  # fmt: skip
"""Of classes: told apart by most people, whatever colours they see."""
_TWO, _FEW_CLASSES = 2, 3
_BARS, _FEW_NAMES = 10, 5
_SHORT, _LINE = 24, 64
"""Letters of a name on a legend, and of a line as long as a figure is wide."""
MOST_EFFECTS, _NAMED = 30, 6
"""Features of the plot of effects; those that are named in the volcano plot."""
_MISSING_AT = 1.15
_HALVES = ["lower half", "upper half"]
_CURVES, _LEVELS = 6, 4
"""Features whose curves are drawn together; levels of a category that have a curve."""


def draw_effects(ax: Any, report: Report) -> None:
    """Draw the effects of the first features with their intervals, coloured by direction."""
    records = _with_effects(report)
    n, size = len(records), min(9, 240 / len(records))
    ways = {str(record.direction) for record in records}
    are_few = len(ways) <= _FEW_NAMES and max(map(len, ways)) <= _SHORT
    for at, record in enumerate(records):
        ends = (record.effect, record.low, record.high)
        x, *reach = (np.nan if end is None else signed(str(record.measure), end) for end in ends)
        label = record.direction if are_few else ("lower or less", "higher or more")[int(x > 0)]
        style = {"color": ORANGE if x > 0 else BLUE, "linewidth": 1.4, "markersize": 5}
        ax.plot(reach, [at, at], **style)
        ax.plot([x], [at], marker="o" if x > 0 else "s", label=_plain(str(label)), **style)
    right = ax.secondary_yaxis("right")
    ax.tick_params(axis="y", length=0)
    right.tick_params(length=0)
    names = [_short(record.name, _SHORT) for record in records]
    ax.set_yticks(range(n), names, fontsize=size, parse_math=False)
    said = [size_text(vars(record)) for record in records]
    if not are_few:
        room = _LINE - max(map(len, names))
        said = [_said(*both, room) for both in zip(said, records, strict=True)]
    right.set_yticks(range(n), said, fontsize=size, parse_math=False)
    right.spines["right"].set_visible(False)
    ax.set_ylim(max(n, 5) - 0.5, -0.5)
    _sign_axis(ax, report)


def _said(size: str, record: FeatureRecord, most: int) -> str:
    """Return how much and which way, without the interval where there is no room."""
    text = f"{size}, {record.direction}"
    return _short(text if len(text) <= most else f"{record.effect:.2f}, {record.direction}", most)


def _with_effects(report: Report) -> list[FeatureRecord]:
    return [record for record in report.records[:MOST_EFFECTS] if record.measure is not None]


def _no_effects(report: Report) -> str:
    if report.reading.is_provisional:
        return "Effects come with the verdict."
    if report.reading.verdict is None:
        return "No effects: the judge of this run tests no single features."
    if not any(record.selected or record.passes_alone for record in report.records):
        return "No feature is selected or marginally significant."
    groups = " where rows come in groups" if "groups" in report.manifest.row_columns else ""
    return f"No feature has an effect and a p-value to show{groups}."


def _sign_axis(ax: Any, report: Report) -> None:
    """Name the axis of signed effects, mark its middle, and put each colour once on a legend."""
    classes, text = report.manifest.classes, "2 AUC - 1 of the class named, against the others"
    if report.censored is not None:
        text = "2 C - 1 of the concordance C, positive where higher is sooner"
    elif report.task.is_regression:
        text = "rank correlation with the target"
    elif len(classes) == _TWO:
        text = f"2 AUC - 1, positive where higher in {_short(classes[1])}"
    ax.set_xlabel(text, parse_math=False)
    ax.axvline(0, color=INK, linewidth=0.8, linestyle="--")
    reach = 1.08 * float(np.abs(ax.dataLim.intervalx).max()) or 1.0
    ax.set_xlim(-reach, reach)
    ax.locator_params(axis="x", nbins=6)
    handles, labels = ax.get_legend_handles_labels()
    once = dict(zip(labels, handles, strict=True))
    place = {"loc": "lower center", "bbox_to_anchor": (0.5, 1), "ncols": 2}
    _legend(ax, handles=once.values(), labels=once.keys(), fontsize="small", **place)


def draw_volcano(ax: Any, report: Report) -> None:
    """Draw effects against minus the decimal logarithms of p-values, the selected coloured."""
    stored, x, y, chosen = (np.array(column) for column in zip(*report.effects, strict=True))
    ways = "lower or falling", "higher or rising"
    if report.censored is not None:
        ways = "longer when higher", "shorter when higher"
    kinds = (
        ("not selected", ~chosen, GREY, "."),
        (f"selected, {ways[0]}", chosen & (x < 0), BLUE, "s"),
        (f"selected, {ways[1]}", chosen & (x >= 0), ORANGE, "o"),
    )
    for label, these, colour, marker in kinds:
        if these.any():
            ax.scatter(x[these], y[these], s=16, c=colour, marker=marker, linewidths=0, label=label)
    assert report.reading.verdict is not None, "where there are effects"
    if cutoff := report.reading.verdict.facts["marginal_cutoff"]:
        style = {"color": GREEN, "linewidth": 1, "linestyle": ":"}
        ax.axhline(-np.log10(cutoff), label="marginally significant above", **style)
    named: list[int] = []
    for i in sorted(np.flatnonzero(chosen).tolist(), key=lambda i: -y[i]):
        # names side by side would cover each other
        is_free = all(x[i] * x[j] < 0 or y[j] - y[i] > y.max() / 25 for j in named)
        if is_free and len(named) < _NAMED:
            named.append(i)
            name = _short(report.reading.name(int(stored[i])), 16)
            style = {"ha": "right" if x[i] > 0 else "left", "va": "center", "fontsize": 8}
            away, place = (-5 if x[i] > 0 else 5, 0), {"textcoords": "offset points"}
            ax.annotate(name, (x[i], y[i]), away, parse_math=False, **place, **style)
    ax.set(ylabel="-log10 p", ylim=(0, None))
    _sign_axis(ax, report)


def draw_qq(ax: Any, report: Report) -> None:
    """Draw observed against expected -log10 p of all marginal tests of location, and lambda."""
    assert report.qq is not None, "where it is drawn"
    expected, observed = report.qq
    ax.plot([0, expected[-1]], [0, expected[-1]], color=GREY, linewidth=1, label="by chance")
    ax.plot(expected, observed, color=BLUE, marker=".", markersize=4, linestyle="", label="found")
    if said := lambda_text(report.status.inflation):
        ax.set_title(said.partition(" (")[0], fontsize="medium")
    ax.set(xlabel="expected -log10 p", ylabel="observed -log10 p")
    _legend(ax)


def draw_discoveries(ax: Any, report: Report) -> None:
    """Draw how many features were found, or what led the ranking, by so many iterations."""
    iterations = [point.iterations for point in report.points]
    if report.spec.concludes:
        _draw_leading(ax, report, iterations)
    else:
        ax.step(iterations, [point.found for point in report.points], where="post", color=BLUE)
        ax.set_ylabel("features found")
    ax.set(ylim=(0, None), xlabel="iterations")


def _draw_leading(ax: Any, report: Report, iterations: list[int]) -> None:
    """Draw what the features were that led after so many iterations."""
    points, n_leading = report.points, report.points[-1].leading or 1
    of_all = f", of {report.n_selected}" if report.n_selected <= n_leading else ""
    n_selected = min(report.n_selected, n_leading)
    lines = (
        ("the same as at the point before", [p.unchanged for p in points], n_leading, GREY),
        (f"selected features{of_all}", [p.found for p in points], n_selected, BLUE),
    )
    for label, counts, whole, colour in lines:
        known = [(x, n) for x, n in zip(iterations, counts, strict=True) if n is not None]
        if known and whole:
            shares = [n / whole for _, n in known]
            at = [x for x, _ in known]
            ax.plot(at, shares, color=colour, marker="o", markersize=3, linewidth=1.2, label=label)
    ax.set_xscale("log")
    ax.xaxis.get_major_locator().set_params(subs=(1, 2, 5))
    ax.xaxis.set(major_formatter="{x:g}", minor_formatter="")
    ax.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    ax.set(ylim=(None, 1.04), ylabel=f"among the first {n_leading}")
    _legend(ax, reverse=True)


def draw_feature(ax: Any, report: Report, stored: Integers | None = None) -> None:
    """Draw a feature (1,) against the target: shares of rows by class, or rows and their trend.

    That which comes first, unless another is given.
    """
    stored = report.listed[:1] if stored is None else stored
    ax.set_title(_short(report.reading.name(int(stored[0]))), parse_math=False)
    if report.censored is not None:
        _draw_curves(ax, report, stored, report.censored)
        return
    profiles, (ends,) = profiles_of(report, stored), ends_of(report, stored)
    (_draw_classes if profiles.classes else _draw_numbers)(ax, profiles, ends or [])


def draw_survival(ax: Any, report: Report) -> None:
    """Draw who is still without the event, by halves of each of the first features."""
    n = min(len(report.listed), _CURVES)
    for i, part in enumerate(_in_two_columns(ax, n, 0.65, 0.58)):
        draw_feature(part, report, report.listed[i : i + 1])


def _in_two_columns(ax: Any, n: int, foot: float, height: float) -> Iterator[Any]:
    """Yield axes within others, in rows of two; foot and height as shares of a row."""
    ax.set_axis_off()
    each = 1 / -(-n // 2)
    for i in range(n):
        down, across = divmod(i, 2)
        yield ax.inset_axes((0.57 * across, 1 - each * (down + foot), 0.43, height * each))


def _draw_curves(ax: Any, report: Report, stored: Integers, censored: Censored) -> None:
    """Draw Kaplan and Meier's curves of a feature's halves, or levels, and how many are at risk."""
    missing, texts = report.manifest.missing_code, report.store.categories().of(int(stored[0]))
    _, columns = next(columns_of(report.store, stored, report.rows_looked_at()))
    known, high = columns[0] < missing, halves(columns, missing)[0]
    parts = {"lower half": known & ~high, "upper half": high, "missing": ~known}
    if texts is not None:
        common = np.argsort(-np.bincount(columns[0][known], minlength=1), kind="stable")
        parts = {_short(texts[k], _SHORT): columns[0] == k for k in common[:_LEVELS].tolist()}
    ends, at = float(censored.times.max()), np.linspace(0, float(censored.times.max()), 5)
    drawn = [(label, rows) for label, rows in parts.items() if rows.any()]
    for k, (label, rows) in enumerate(drawn):
        some = censored.of_rows(np.flatnonzero(rows))
        times, shares = kaplan_meier(some)
        whole = np.concatenate([[0], times]), np.concatenate([[1], shares])
        ax.step(*whole, where="post", color=COLOURS[k], label=label)
        for x in at.tolist():
            style = {"ha": "center", "va": "top", "fontsize": 7, "color": COLOURS[k]}
            n, place = int((some.times >= x).sum()), ax.get_xaxis_transform()
            ax.text(x, -0.3 - 0.12 * k, f"{n}", transform=place, **style)
    ax.set(xlim=(0, ends or 1.0), ylim=(0, 1.02))
    ax.set_ylabel("without event", fontsize="small", labelpad=1)
    ax.set_xlabel("time; below, rows at risk", fontsize="small", labelpad=1)
    _legend(ax, fontsize="x-small", loc="upper right")


def draw_pairs(ax: Any, report: Report) -> None:
    """Draw what the first features that show more beside another show together with it."""
    places = _in_two_columns(ax, len(report.pairs), 0.78, 0.68)
    for pair, part in zip(report.pairs, places, strict=True):
        measure = pair.record.measure.removeprefix("mean ").removeprefix("of ")
        within = "" if pair.record.within is None else f"\n{_short(pair.record.within)}"
        part.set_title(f"{_short(measure)}{within}", fontsize="small", parse_math=False)
        (_draw_shares if pair.values.dtype == np.bool_ else _draw_boxes)(part, pair)


def _draw_shares(ax: Any, pair: Pair) -> None:
    """Draw the share of a class where both features have so high values, and the rows there."""
    (high, y), (across, x) = (_levels(pair, which) for which in (0, 1))
    counts, members = (
        np.bincount(len(x) * high + across, of, len(x) * len(y)).reshape(len(y), len(x))
        for of in (None, pair.values)
    )
    shares = np.where(counts > 0, members / np.maximum(counts, 1), np.nan)
    ax.pcolormesh(shares, cmap="Blues", vmin=0, vmax=1, edgecolors="white")
    for (down, at), share in np.ndenumerate(shares):
        text = f"{share:.0%}\n{counts[down, at]:,} rows" if counts[down, at] else "no rows"
        colour = "white" if share > 0.6 else INK
        style = {"ha": "center", "va": "center", "fontsize": 8 if len(x) == _TWO else 7}
        ax.text(at + 0.5, down + 0.5, text, color=colour, **style)
    ax.set_xticks(np.arange(len(x)) + 0.5, x, fontsize="small")
    ax.set_yticks(np.arange(len(y)) + 0.5, y, fontsize="small", rotation=90, va="center")
    ax.tick_params(length=0)
    ax.set_xlabel(_short(pair.record.beside, _SHORT), fontsize="small", parse_math=False)
    ax.set_ylabel(_short(pair.record.name, _SHORT), fontsize="small", parse_math=False)


def _levels(pair: Pair, which: int) -> tuple[Ints, list[str]]:
    """Return the level of each row, and their names: of three those, or halves."""
    used, levels = np.unique(pair.codes[which], return_inverse=True)
    if len(used) == _FEW_CLASSES:
        return levels.astype(np.int64), ["lowest", "middle", "highest"]
    return pair.cells >> (1 - which) & 1, _HALVES


def _draw_boxes(ax: Any, pair: Pair) -> None:
    """Draw the target by halves of a feature, coloured by halves of the other."""
    boxes = []
    for cell in range(4):
        place, colour = cell // 2 + 0.36 * (cell % 2) - 0.18, COLOURS[cell % 2]
        box = ax.boxplot(
            [pair.values[pair.cells == cell]], positions=[place], widths=0.3, patch_artist=True,
            manage_ticks=False, medianprops={"color": INK}, flierprops={"marker": ".", "ms": 2},
        )["boxes"][0]  # fmt: skip
        box.set(facecolor=colour, alpha=0.7)
        boxes.append(box)
    counts = np.bincount(pair.cells, minlength=4).reshape(2, 2).tolist()
    named = [
        f"{half}\n{low:,} + {high:,} rows"
        for half, (low, high) in zip(_HALVES, counts, strict=True)
    ]
    ax.set_xticks([0, 1], named, fontsize="small")
    ax.set_xlabel(_short(pair.record.name, _SHORT), fontsize="small", parse_math=False)
    labels = [f"{half} of {_short(pair.record.beside, 12)}" for half in _HALVES]
    _legend(ax, handles=boxes[:2], labels=labels, fontsize="x-small")


def _draw_classes(ax: Any, profiles: Profiles, ends: list[Any]) -> None:
    used = max(int(profiles.n_used[0]), 1)
    counts, absent = profiles.counts(0)[:, :used], profiles.counts(0)[:, profiles.n_bins :]
    if not _are_texts(ends):  # of few rows thin bars are a comb
        counts = np.add.reduceat(counts, range(0, used, -(-used // _BARS)), axis=1)
    at = np.arange(counts.shape[1], dtype=np.float64)
    _name_values(ax, at, at[-1] + 1.5 if absent.any() else None, ends)
    if absent.any():
        counts, at = np.hstack([counts, absent]), np.append(at, at[-1] + 1.5)
    n = len(profiles.classes)
    are_few = n <= _FEW_CLASSES  # then side by side, else one upon another
    wholes = np.array(profiles.class_rows)[:, None] if are_few else counts.sum(axis=0)
    shares, width = counts / np.maximum(wholes, 1), 0.8 / n if are_few else 1.0
    below = (np.cumsum(shares, axis=0) - shares) * (not are_few)
    for k, (label, share) in enumerate(zip(profiles.classes, shares, strict=True)):
        style = {"color": COLOURS[k % len(COLOURS)], "label": _short(label, _SHORT)}
        ax.bar(at + are_few * (k - (n - 1) / 2) * width, share, width, below[k], **style)
    of_values = "classes of the rows with such values"
    ax.set_ylabel("share of the class's rows" if are_few else of_values)
    beside = {"loc": "center left", "bbox_to_anchor": (1, 0.5), "reverse": True}
    _legend(ax, fontsize="small", **({} if are_few else beside))


def _draw_numbers(ax: Any, profiles: Profiles, ends: list[Any]) -> None:
    places, trend = profiles.scatter(0), profiles.trend(0)
    targets, used = np.array(profiles.targets), max(int(profiles.n_used[0]), 1)
    x = np.where(np.isnan(places), _MISSING_AT, places)
    ax.scatter(x, targets, s=8, color=GREY, linewidths=0)
    at = (np.arange(used) + 0.5) / used if used == profiles.n_bins else (
        np.arange(used) / max(used - 1, 1))  # fmt: skip
    ax.plot(at, trend[:used], color=BLUE, marker=".", label="mean")
    ax.plot([_MISSING_AT], trend[-1:], color=ORANGE, marker="_", markersize=12, linestyle="")
    _name_values(ax, at, None if np.isnan(trend[-1]) else _MISSING_AT, ends)
    ax.set_ylabel("target")
    _legend(ax)


def _are_texts(ends: list[Any]) -> bool:
    return bool(ends) and isinstance(ends[0], str)


def _name_values(ax: Any, at: Floats, missing: float | None, ends: list[Any]) -> None:
    """Name the values on an axis of ranks, the ends or categories, and the missing ones' place."""
    if _are_texts(ends):
        named = {x: _short(end, _SHORT) for x, end in zip(at.tolist(), ends, strict=False)}
    else:
        low, high = [f"{end:g}" for end in ends] or ("lowest", "highest")
        named = {at[0]: low, at[-1]: high}
    named |= {} if missing is None else {missing: "missing"}
    are_long = len(named) > _FEW_NAMES or 2 * sum(map(len, named.values())) > _LINE
    tilted = {"rotation": 30, "ha": "right"} if are_long else {}
    ax.set_xticks(list(named), list(named.values()), parse_math=False, **tilted)
    ax.set_xlabel("values in their order")


def _legend(ax: Any, **style: Any) -> None:
    for text in ax.legend(frameon=False, **style).get_texts():
        text.set_parse_math(False)  # labels are data


def _short(text: str, most: int = 32) -> str:
    plain = _plain(text)
    return plain if len(plain) <= most else plain[: most - 1] + "…"


def _plain(text: str) -> str:
    """Return a text of others with what is not shown as escapes; matplotlib hides labels with _."""
    seen = visible(text).replace("\n", " ")
    return f" {seen}" if seen.startswith("_") else seen


# Figures of a report as files, and as parts of a page.

FIGURES: dict[str, tuple[Callable[[Any, Report], None], tuple[float, float]]] = {
    "first": (draw_feature, (5, 3.6)),
    "effects": (draw_effects, (6.4, 5.2)),
    "survival": (draw_survival, (7.2, 8)),
    "pairs": (draw_pairs, (7.2, 6.4)),
    "qq": (draw_qq, (5, 3.6)),
    "volcano": (draw_volcano, (6.4, 5.2)),
    "discoveries": (draw_discoveries, (6.4, 3)),
}
"""Figures by name: what draws one, and its size in inches."""


def nothing_to_draw(report: Report, name: str) -> str | None:
    """Return why a figure has nothing to show; None where it has."""
    why = None
    match name:
        case "first" if not report.records:
            why = "There is no feature to list."
        case "effects" if not _with_effects(report):
            why = _no_effects(report)
        case "survival" if report.censored is None or not report.records:
            why = "Drawn of runs on times to an event (ingest --time T --event E)."
        case "pairs" if not report.pairs:
            why = "No selected feature shows more beside another than alone."
        case "qq" if report.qq is None:
            why = "There are no p-values of all features."
        case "volcano" if not report.effects:
            why = _no_effects(report)
        case "discoveries" if report.spec.concludes and len(report.points) < 2:
            why = "Too few iterations to compare the ranking at two points."
    return why


def draw(ax: Any, report: Report, name: str) -> None:
    """Draw a figure on axes, or say on them why there is nothing to draw."""
    if (why := nothing_to_draw(report, name)) is None:
        FIGURES[name][0](ax, report)
    else:
        ax.set_axis_off()
        ax.text(0.5, 0.5, why, ha="center", va="center", transform=ax.transAxes, color=INK)


_DATES = {".svg": ["Date"], ".png": [], ".pdf": ["CreationDate"]}
"""What files of each format are not to hold, so that the same figure is the same file."""
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "srs-ooc",
    "text.parse_math": False,
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
}


TAKES = (
    "report",
    "Run `pip install 'srs-ooc[report]'`, or take --format md or json, which need no library.",
)
"""What takes matplotlib and Jinja2, and what to do without."""


@contextmanager
def _figure(name: str, report: Report) -> Iterator[Any]:
    """Yield a figure as it is drawn, in the style of a report; no window, no state that stays."""
    mpl, figures = (library(f"matplotlib{part}", *TAKES) for part in ("", ".figure"))
    with mpl.rc_context(_STYLE), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of letters that the font of this machine lacks
        figure = figures.Figure(figsize=FIGURES[name][1], layout="constrained")
        draw(figure.subplots(), report, name)
        yield figure


def save_figure(path: Path, name: str, report: Report, *, replaces: bool = False) -> None:
    """Draw one figure to a file that appears whole; its name says the format.

    Parameters
    ----------
    path : Path
        The file to make.
    name : str
        Of :data:`FIGURES`.
    report : Report
        Of the run.
    replaces : bool
        Whether a file that is there is replaced.

    Raises
    ------
    UsageError
        If name or format is not known, the file is there, or matplotlib is not.
    StoreError
        If the file cannot be written.
    """
    if name not in FIGURES:
        raise UsageError(f"figure: expected one of {', '.join(FIGURES)}, found {name!r}.")
    ending = path.suffix.lower()
    if ending not in _DATES:
        raise UsageError(
            f"{path}: expected a name that ends in {', '.join(_DATES)}, found "
            f"{path.suffix or 'none'}. Choose another name."
        )
    undated = dict.fromkeys(_DATES[ending])
    published = published_file(path, replaces=replaces)
    with _figure(name, report) as figure, explained(path), published as scratch:
        figure.savefig(scratch, format=ending[1:], dpi=150, metadata=undated)


def image_of(report: Report, name: str) -> str:
    """Return a figure as the URL of an image that is in it; an SVG, so that it is sharp.

    An image cannot run scripts or be styled, so the policy of a page need not know of it.

    Parameters
    ----------
    report : Report
        Of the run.
    name : str
        Of :data:`FIGURES`.
    """
    text = StringIO()
    with _figure(name, report) as figure:
        figure.savefig(text, format="svg", metadata={"Date": None}, transparent=True)
    return f"data:image/svg+xml;base64,{base64.b64encode(text.getvalue().encode()).decode()}"
