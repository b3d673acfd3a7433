"""Formats of other packages, known by how the names of their files end.

An entry point of the group ``srs_ooc.formats`` has the ending, without its dot, for a name, and for
a value a function ``open(path, scratch, cap_nbytes) -> Table``.
"""

from collections.abc import Callable
from pathlib import Path

from srs_ooc.base.options import part_at, places_of
from srs_ooc.ingestion.formats import Table

GROUP = "srs_ooc.formats"
Opener = Callable[[Path, Path, int], Table]


def is_outside(path: Path) -> bool:
    """Return whether a package says that it opens files with such a name."""
    return _ending(path) in places_of(GROUP)


def opener_of(path: Path) -> Opener:
    """Return what opens a file that :func:`is_outside`.

    Raises
    ------
    UsageError
        If the package cannot be imported.
    """
    ending = _ending(path)
    opener: Opener = part_at(places_of(GROUP)[ending], f"files named .{ending}")
    return opener


def _ending(path: Path) -> str:
    return path.suffix.removeprefix(".")
