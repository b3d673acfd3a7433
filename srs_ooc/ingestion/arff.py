"""ARFF, as Weka writes it, turned into CSV while it streams: a line stays a line.

https://waikato.github.io/weka-wiki/formats_and_processing/arff_stable/ describes it. What programs
read differently is refused: a value with a space or % without quotes, or a text that a sparse row
leaves out.
"""

import codecs
import re
from collections.abc import Iterable, Iterator
from sys import getsizeof
from typing import NoReturn

from srs_ooc.base.errors import InputError
from srs_ooc.base.text import MB
from srs_ooc.ingestion.formats import bounded

_BLOCK, _LINE = 1 << 18, 2 * MB
ROW_NBYTES, COLUMN_NBYTES = 4 * _LINE, 320
"""Memory of a row on its way, and more for each column: of its line, and of its values."""
FREE, CATEGORIES, NUMBERS = 0, 3, 4
"""What an attribute is, as ``csv.TableReader`` says it; a date is what its values look like."""
_ESCAPED, _ESCAPES = rb"\\([\W_ntr])", {b"n": b"\n", b"t": b"\t", b"r": b"\r"}
_QUOTES = rb"""'[^'\\]*(?:\\[\W_ntr][^'\\]*)*'|"[^"\\]*(?:\\[\W_ntr][^"\\]*)*\""""
_VALUE = rb"(" + _QUOTES + rb"""|[^\s,'"{}%]+)\s*"""
_CELL = re.compile(rb"\s*" + _VALUE + rb"(?:,(?!$)|$)")
_ENTRY = re.compile(rb"\s*(\d+)\s+" + _VALUE + rb"(?:,(?!$)|$)")
_TYPE = rb"(?:(numeric|real|integer|string|date)\b.*|\{(.*)\}\s*(?:%.*)?)"
_ATTRIBUTE = re.compile(rb"@attribute\s+" + _VALUE + _TYPE, re.IGNORECASE | re.DOTALL)
_SPECIAL, _QUOTED = b"'\"{}% \t\r\v\f", re.compile(rb'[",\r\n]|^\s|\s$|^$')
_KINDS = {b"": CATEGORIES, b"string": CATEGORIES, b"date": FREE}


class Arff:
    """The attributes of a file once its header is read, and its rows as those of CSV.

    Parameters
    ----------
    what : object
        The file, for messages.

    Attributes
    ----------
    kinds : bytearray
        What each attribute is: :data:`NUMBERS`, :data:`CATEGORIES` or :data:`FREE`.
    held_nbytes : int
        Memory that the values of nominal attributes take.
    """

    def __init__(self, what: object) -> None:
        self._what, self._line, self._in_rows = what, 0, False
        self.kinds, self.held_nbytes = bytearray(), 0
        self._zeros: list[bytes] = []
        self._levels: dict[int, frozenset[bytes]] = {}
        self._known: dict[bytes, tuple[bytes, frozenset[bytes]]] = {}

    def text(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """Yield CSV: ``?`` is a missing value.

        Raises
        ------
        InputError
            If a line is none of ARFF, or holds what its attribute cannot.
        """
        for block in bounded(map(self._translated, self._lines(pieces)), len, _BLOCK):
            yield b"".join(block)
        if not self._in_rows:
            self._refuse("a line @data, and rows", "the end of the file")

    def _lines(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        rest = b""
        for piece in pieces:
            *lines, rest = (rest + piece).split(b"\n")
            yield from lines
            if len(rest) > (most := _LINE + 64 * len(self.kinds)):
                self._refuse(f"lines of at most {most} bytes", "a longer one")
        if rest:
            yield rest

    def _translated(self, line: bytes) -> bytes:
        self._line += 1
        text = line.removeprefix(codecs.BOM_UTF8).strip()
        if not text or text.startswith(b"%"):
            return b"\n" * self._in_rows
        return self._row(text) if self._in_rows else self._declared(text)

    def _declared(self, text: bytes) -> bytes:
        """Take a line before the rows; return the name of an attribute, or the end of all names."""
        if (word := text.split()[0].lower()) in (b"@relation", b"@data"):
            self._in_rows = word == b"@data"
            return b"\n" * self._line * self._in_rows
        if not (found := _ATTRIBUTE.fullmatch(text)):
            kinds = "numeric, real, integer, string, date or {a, b}"
            self._refuse(f"@attribute, a name, and {kinds}", repr(text[:80])[1:])
        name, word, nominal = found.groups()
        kind = _KINDS.get((word or b"").lower(), NUMBERS)
        zero = b"0" * (kind == NUMBERS)  # none of a text or a date
        self.kinds.append(kind)
        if nominal is not None:
            if nominal not in self._known:  # most have the same few
                declared = self._found(_CELL, nominal.strip().removesuffix(b","))
                values = [self._value(one[1]) for one in declared]
                self._known[nominal] = (values or [b"?"])[0], frozenset([*values, b"?"])
                sizes = map(getsizeof, [nominal, values, self._known[nominal][1], *values])
                self.held_nbytes += 300 + sum(sizes)
            zero, self._levels[len(self._zeros)] = self._known[nominal]
        self._zeros.append(zero)
        return b"," * (len(self._zeros) > 1) + self._value(name)

    def _row(self, text: bytes) -> bytes:
        plain, n = text.replace(b", ", b","), len(self._zeros)
        if text.startswith(b"{") and text.endswith(b"}"):
            cells, last = self._zeros.copy(), -1
            for found in self._found(_ENTRY, text[1:-1].strip()):
                if not last < (at := int(found[1])) < n:
                    self._refuse(f"numbers of attributes that ascend, below {n}", str(at))
                cells[at], last = self._value(found[2]), at
        elif plain != plain.translate(None, _SPECIAL):
            cells = [self._value(found[1]) for found in self._found(_CELL, text)]
        else:
            cells = plain.split(b",", n)
        if b"" in cells:
            at = cells.index(b"")
            self._refuse(f"a value, or ?, of attribute {at}, counted from 0", "nothing")
        if len(cells) != n:
            self._refuse(f"{n} values, as there are attributes", f"{len(cells)}")
        for at, levels in self._levels.items():
            if cells[at] not in levels:
                what = f"a value that attribute {at}, counted from 0, declares"
                self._refuse(what, repr(cells[at])[1:80])
        return b",".join(cells) + b"\n"

    def _found(self, form: re.Pattern[bytes], text: bytes) -> Iterator[re.Match[bytes]]:
        at, expected = 0, "values between commas, if with spaces, quotes or % in quotes, no weights"
        while at < len(text):
            if not (found := form.match(text, at)):
                self._refuse(expected, repr(text[at : at + 40])[1:])
            yield found
            at = found.end()

    def _value(self, given: bytes) -> bytes:
        """Return a value as CSV has it."""
        if given[0] not in b"'\"":
            return given
        text = re.sub(_ESCAPED, lambda one: _ESCAPES.get(one[1], one[1]), given[1:-1])
        if text == b"?":
            self._refuse("? without quotes, for a missing value", "it in quotes")
        return b'"' + text.replace(b'"', b'""') + b'"' if _QUOTED.search(text) else text

    def _refuse(self, expected: str, found: str) -> NoReturn:
        what = f"{self._what}, line {self._line}"
        raise InputError(f"{what}: expected {expected}, found {found}. Mend the line.")
