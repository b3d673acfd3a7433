"""How a text table is written: what the user says of it, and what its first lines show."""

import re
from dataclasses import dataclass

from srs_ooc.base.errors import UsageError
from srs_ooc.ingestion.parse import Dialect

SEPARATORS = {"comma": ",", "tab": "\t", "semicolon": ";", "pipe": "|", "space": " "}
_SURE = ",\t;|"  # a space is a separator only where none of these is: names and labels hold spaces
_N_LINES = 20
_QUOTED = re.compile(r'(^|[,\t;|\s])"(?:[^"]|"")*"', re.MULTILINE)

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


@dataclass(frozen=True)
class TextForm:
    """What is said of a text table; the rest is found out.

    Attributes
    ----------
    separator : str or None
        The ASCII character between fields, or its name in :data:`SEPARATORS`; found if None.
    comment : str or None
        Lines that start with this ASCII character are skipped.
    decimal : {'point', 'comma'}
        What separates the whole part of a number from the rest.
    missing : tuple of str or None
        Texts that stand for a missing value, in place of empty, NA and nan.
    header : bool
        Whether the first row holds names; if not, columns are named f0, f1, ...

    Raises
    ------
    UsageError
        If two marks are the same, or one is no single ASCII character.
    """

    separator: str | None = None
    comment: str | None = None
    decimal: str = "point"
    missing: tuple[str, ...] | None = None
    header: bool = True

    def __post_init__(self) -> None:
        marks = {"--decimal": self.point}
        for option, mark in (("--separator", self.separator_mark), ("--comment", self.comment)):
            if mark is None:
                continue
            if len(mark) != 1 or not mark.isascii() or mark in '"\r\n\0':
                names = ", ".join(SEPARATORS) if option == "--separator" else "for example #"
                raise UsageError(
                    f"{option}: expected one ASCII character ({names}) that is no quote and no "
                    f"line end, found {mark!r}."
                )
            for other, used in marks.items():
                if used == mark:
                    raise UsageError(
                        f"expected different characters for {option} and {other}, found {mark!r} "
                        "for both. Name another one."
                    )
            marks[option] = mark

    @property
    def separator_mark(self) -> str | None:
        """The separator as a character."""
        return SEPARATORS.get(self.separator or "", self.separator)

    @property
    def point(self) -> str:
        """The decimal point."""
        return "," if self.decimal == "comma" else "."

    def settle(self, start: str) -> Dialect:
        """Return the dialect of a table that begins with ``start``."""
        mark = self.separator_mark
        if mark is None:
            mark = find_separator(start, self.comment, self.point)
        return Dialect(mark, self.comment, self.point, self.missing)


def find_separator(start: str, comment: str | None, point: str) -> str:
    """Tell the separator of a table from its beginning.

    Of comma, tab, semicolon and pipe it is one found in the first line: one that cuts the first
    lines into equally many fields if there is such, and of several the one that makes the most.
    Without any of them it is a space if the first line holds one, else a comma.

    Parameters
    ----------
    start : str
        Complete lines, or the beginning of the first.
    comment : str or None
        Lines that start with it are passed over.
    point : str
        The decimal point, which is no separator.
    """
    lines = _LINE.findall(_QUOTED.sub(r"\1", start.removeprefix("\ufeff")))
    lines = [line for line in lines if line.strip() and not (comment and line.startswith(comment))]
    whole = [line for line in lines if line.endswith(("\n", "\r"))][:_N_LINES] or lines[:1]
    if not whole:
        return ","
    first = whole[0].rstrip("\r\n")
    found = [mark for mark in _SURE if mark in first and mark != point]
    if not found:
        return " " if " " in first.strip() else ","
    even = [mark for mark in found if len({line.count(mark) for line in whole}) == 1]
    return max(even or found, key=first.count)


def name_of(separator: str) -> str:
    """Return the name of a separator for messages."""
    return next((name for name, mark in SEPARATORS.items() if mark == separator), repr(separator))
