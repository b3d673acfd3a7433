"""Figures of a report as files, and as parts of a page."""

import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from srs_ooc.base.errors import UsageError
from srs_ooc.base.files import published_file
from srs_ooc.report import figures
from srs_ooc.report.facts import Facts

Draw = Callable[[Any, Facts], None]
FIGURES: dict[str, tuple[Draw, tuple[float, float]]] = {
    "cut": (lambda ax, facts: figures.draw_cut(ax, facts.cut), (6.4, 3.4)),
    "levels": (lambda ax, facts: figures.draw_levels(ax, facts.cut), (6.4, 3.4)),
    "discoveries": (lambda ax, facts: figures.draw_discoveries(ax, facts.discoveries), (6.4, 3)),
    "draws": (lambda ax, facts: figures.draw_draws(ax, facts.draws), (6.4, 3)),
    "correlation": (
        lambda ax, facts: figures.draw_correlations(ax, facts.correlations),
        (6.4, 5.2),
    ),
    "accuracy": (lambda ax, facts: figures.draw_held_out(ax, facts.held_out), (6.4, 3)),
    "memory": (lambda ax, facts: figures.draw_memory(ax, facts.usage), (6.4, 3)),
    "time": (lambda ax, facts: figures.draw_time(ax, facts.usage), (6.4, 3)),
}
"""Figures by name, and their sizes in inches."""
FORMATS = (".svg", ".png", ".pdf")
_UNDATED: dict[str, dict[str, None]] = {
    "svg": {"Date": None}, "png": {}, "pdf": {"CreationDate": None},
}  # fmt: skip
_SVG, _LINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}href"
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "srs-ooc",  # the same figure is the same file
    "text.parse_math": False,
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": figures.INK,
    "axes.labelcolor": figures.INK,
    "text.color": figures.INK,
    "xtick.color": figures.INK,
    "ytick.color": figures.INK,
}
_THEMED = {figures.INK: "var(--ink)", **{c: f"var(--c{i})" for i, c in enumerate(figures.COLOURS)}}
"""Colours of figures that a page sets by its theme."""


@contextmanager
def _figure(size: tuple[float, float]) -> Iterator[Any]:
    """Yield an empty figure in the style of a report; no window, no state that stays."""
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError as error:
        raise missing("matplotlib", error) from error
    with mpl.rc_context(_STYLE), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of letters that the font of this machine lacks
        yield Figure(figsize=size, layout="constrained")


def missing(library: str, error: ImportError) -> UsageError:
    """Return the error of a report without one of its libraries."""
    return UsageError(
        f"report: expected {library} to be installed, could not import it: {error}. Run `pip "
        "install 'srs-ooc[report]'`, or take --format md or json, which need no library."
    )


def save_figure(
    path: Path,
    size: tuple[float, float],
    draw: Callable[[Any], None],
    *,
    replaces: bool = False,
) -> None:
    """Draw one figure to a file that appears whole; its name says the format.

    With ``replaces``, a file that is there is replaced.

    Raises
    ------
    UsageError
        If the format is not one of :data:`FORMATS`, the file is there, or matplotlib is not.
    """
    if path.suffix.lower() not in FORMATS:
        raise UsageError(
            f"{path}: expected a name that ends in {', '.join(FORMATS)}, found "
            f"{path.suffix or 'none'}. Choose another name."
        )
    with _figure(size) as figure:
        draw(figure.subplots())
        try:
            with published_file(path, replaces=replaces) as scratch:
                kind = path.suffix[1:].lower()
                hidden = (
                    {} if kind == "png" else {"Date" if kind == "svg" else "CreationDate": None}
                )
                figure.savefig(scratch, format=kind, dpi=150, metadata=hidden)
        except FileExistsError as error:
            raise UsageError(f"{path}: expected a path that is free: {error}.") from error


def inline_svg(facts: Facts, name: str) -> str:
    """Return a figure as SVG to put into a page: no style attributes, colours of the theme.

    Parameters
    ----------
    facts : Facts
        What the report says.
    name : str
        Of :data:`FIGURES`; ids of elements begin with it.
    """
    draw, size = FIGURES[name]
    text = StringIO()
    with _figure(size) as figure:
        draw(figure.subplots(), facts)
        figure.savefig(text, format="svg", transparent=True, metadata={"Date": None})
    return _for_page(text.getvalue(), name)


def _for_page(svg: str, name: str) -> str:
    root = ET.fromstring(svg)  # noqa: S314 (matplotlib's own, of this moment)
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in (f"{_SVG}metadata", f"{_SVG}style"):
                parent.remove(child)
    referred = set(re.findall(r'(?:url\(|href=")#([^")]+)', svg))
    for element in root.iter():
        _set_styles(element)
        _set_ids(element, name, referred)
    root.set("role", "img")
    for size in ("width", "height"):
        root.attrib.pop(size, None)
    ET.register_namespace("", _SVG[1:-1])
    ET.register_namespace("xlink", _LINK[1 : _LINK.index("}")])
    return ET.tostring(root, encoding="unicode")


def _set_styles(element: ET.Element) -> None:
    """Turn a style attribute, which the page's policy forbids, into attributes of its own."""
    for rule in filter(None, map(str.strip, element.attrib.pop("style", "").split(";"))):
        key, value = (part.strip() for part in rule.split(":", 1))
        if key == "font":
            key, value = "font-size", value.split("px")[0].split()[-1] + "px"
        if key != "font-family":
            element.set(key, value)
    for key in ("fill", "stroke"):
        if element.get(key, "").lower() in _THEMED:
            element.set(key, _THEMED[element.attrib[key].lower()])


def _set_ids(element: ET.Element, name: str, referred: set[str]) -> None:
    """Keep the ids that are referred to, unlike those of other figures of the page."""
    own = element.attrib.pop("id", None)
    if own in referred:
        element.set("id", f"{name}-{own}")
    for key, value in element.attrib.items():
        if key in (_LINK, "href") and value.startswith("#"):
            element.set(key, f"#{name}-{value[1:]}")
        elif value.startswith("url(#"):
            element.set(key, f"url(#{name}-{value[5:]}")
