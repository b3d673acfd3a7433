"""Numbers and texts as people read them: sizes, counts, durations, and texts of others.

One megabyte is 10**6 bytes everywhere, in options, reports and errors. Nothing heavy is imported:
the command line shows its help with this module.
"""

import unicodedata
from math import nan
from typing import Any

MB = 1_000_000


def ceil_div(numerator: int, denominator: int) -> int:
    """Return ``numerator / denominator`` rounded up, for positive integers."""
    return -(-numerator // denominator)


def number_of(value: Any) -> float:
    """Return the number that a value is, or that a text says; NaN where it is none."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return nan


def megabytes(n_bytes: int) -> float:
    """Return ``n_bytes`` in megabytes, rounded to one decimal."""
    return round(n_bytes / MB, 1)


def describe_nbytes(n_bytes: int) -> str:
    """Return a short human-readable size such as ``'163.2 MB'``."""
    for unit, size in (("TB", MB * MB), ("GB", 1000 * MB), ("MB", MB), ("kB", 1000)):
        if n_bytes >= size:
            return f"{n_bytes / size:.1f} {unit}"
    return f"{n_bytes} bytes"


def counted(n: int, noun: str) -> str:
    """Return a number with its noun, plural unless it is one."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


_UNITS = (("years", 365.25 * 86400), ("days", 86400.0), ("h", 3600.0), ("min", 60.0))
LONG_SECONDS = 3600.0
"""From here on what work will take is said before it begins, with what there is to be done."""
_FEWEST = 2
"""Of a unit there are at least so many, or the next smaller one is taken."""


def describe_seconds(seconds: float) -> str:
    """Return a duration in a unit that suits it, such as ``'2.98 ms'``, ``'57.7 min'``."""
    if seconds < 1.0:
        return f"{1000 * seconds:.3g} ms"
    for unit, size in _UNITS:
        if seconds >= _FEWEST * size:
            value = seconds / size
            return f"{value:,.0f} {unit}" if value >= 1000 else f"{value:.3g} {unit}"
    return f"{seconds:.3g} s"


# Texts of others (names of features, classes, files) shown on a terminal or a spreadsheet.

_UNSEEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}
"""Unicode categories: controls, formats such as those that turn the direction, line separators."""


def visible(text: str) -> str:
    r"""Return text with what a terminal would obey, or not show, as escapes; line ends are kept.

    >>> visible("a\x1b[2Jb")
    'a\\x1b[2Jb'
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        character if character == "\n" or unicodedata.category(character) not in _UNSEEN
        else ascii(character)[1:-1]
        for character in text
    )  # fmt: skip


def no_formula(text: str) -> str:
    """Return a text with ``'`` before it where a spreadsheet would take it for a formula."""
    return "'" + text if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text


def cell_text(value: object, missing: str = "", digits: int = 4) -> str:
    """Return a value as a table shows it: a number to some digits, a flag as yes or no."""
    if value is None:
        return missing
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.{digits}g}" if isinstance(value, float) else str(value)
