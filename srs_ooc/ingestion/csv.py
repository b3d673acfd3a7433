"""Text tables (CSV, TSV and their kin): their dialect, looks at them, bounded reading.

The tokenizer is native; what stops it is said in the user's words.
"""

import math
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, islice, repeat
from typing import Any

import numpy as np

from srs_ooc.base.arrays import Bytes, Floats, Ints, Ints32, Uints
from srs_ooc.base.errors import InputError, UsageError, unfit
from srs_ooc.ingestion.formats import TO_DAYS, TO_UTF8, Texts, bounded
from srs_ooc.ingestion.ingest_memory import PIECE_NBYTES, many_texts
from srs_ooc.ingestion.scratch import Panels, TextSpool, anonymous_array, texts_of
from srs_ooc.ingestion.sources import PieceReader, SourceFile
from srs_ooc.native import _native

# CSV bytes to numbers and texts: the face of the native tokenizer.
#
# A reader is fed bytes in pieces of any size and stops and goes on at any byte, inside a row or a
# field. The rules for fields are those of Python's ``csv`` module; a number is what ``float()``
# makes of its text, exactly: the nearest double.

IGNORED, TARGET, ROW_ID = -1, -2, -3
"""Slots of columns that are not features; a feature's slot is its row in the panel.

Slots below :data:`IGNORED` are text columns, whose cells are kept as they are; more may follow."""

UNKNOWN, NUMBERS, TEXTS, CATEGORIES, ONLY_NUMBERS = range(5)
"""What the cells of a feature are: not known yet; numbers; texts, since the first cell that was not
missing was one; texts whatever they look like; numbers, texts being refused at once."""


SAMPLED_NBYTES = 1 << 20
"""Bytes of a text from which its rows are estimated."""


def _texts(taken: tuple[bytes, bytes, bytes]) -> Texts:
    blob, ends, hashes = taken
    return Texts(blob, np.frombuffer(ends, np.uint64), np.frombuffer(hashes, np.uint64))


class TableReader:
    """Reads rows into panels of float64, and text columns aside.

    In the panel a missing cell is NaN, and a text the number of its category: its place among the
    distinct texts of all features, in order of first appearance.

    Parameters
    ----------
    slots : int32 (n_columns,)
        For each source column the panel row its cells go to, :data:`IGNORED`, or a text column.
    stream : CsvStream
        Says how the table is written, and where its header ended.
    kinds : uint8 (n_columns,), optional
        :data:`UNKNOWN`, :data:`CATEGORIES` or :data:`ONLY_NUMBERS`, for each column; all are
        numbers if not given.
    max_category_nbytes : int
        Memory that the distinct texts of features may take.
    row_kinds : mapping of bytes to int, optional
        A row is a feature if given: its cells are of one kind, :data:`CATEGORIES` or
        :data:`ONLY_NUMBERS` as this says by the row's id, or else found out; held in memory.
    counts : bool
        Texts beyond that memory are counted, not kept, and get the number of another.
    staged_rows : int
        So many rows at a time go to the panel, from a room of 8 bytes a cell: quicker where there
        are many columns. 0: each cell by itself.

    Attributes
    ----------
    native : _native.TableReader
        Reads, and tells how far: ``n_rows`` in all, ``panel_row`` of them in the panel, the
        ``column`` reached in the row, and whether each value ``fits_float32``. Its ``problem`` is
        why reading stopped, if there was a fault: its name (``ragged``, ``not_a_number``,
        ``infinite``, ``many_categories``, ``long_field`` or ``open_quote``), the line of the file,
        from 1, on which the row starts, the column of the cell, from 0 (of a ragged row the fields
        found), and the beginning of the cell's text.
    """

    def __init__(
        self,
        slots: Ints32,
        stream: "CsvStream",
        kinds: Bytes | None = None,
        *,
        max_category_nbytes: int = 0,
        row_kinds: Mapping[bytes, int] | None = None,
        counts: bool = False,
        staged_rows: int = 0,
    ) -> None:
        missing = stream.form.missing_texts
        cells = bytes([ONLY_NUMBERS]) * (len(slots) if row_kinds is None else 0)
        self.native = _native.TableReader(
            slots,
            stream.marks,
            None if missing is None else list(missing),
            *stream.place,
            cells if kinds is None else kinds.tobytes(),
            row_kinds is not None,
            max_category_nbytes,
            dict(row_kinds or {}),
            counts,
        )
        self.native.stage(staged_rows)
        self.n_columns, self.stream = len(slots), stream
        self._panel: Floats | None = None

    def set_panel(self, panel: Floats) -> None:
        """Let the next rows go to the columns of ``panel`` (n_features, n_panel_rows)."""
        self.native.set_panel(panel)
        self._panel = panel

    def feed(self, data: bytes, start: int = 0) -> int:
        """Read ``data`` from ``start`` until it ends, the panel is full, or there is a problem.

        Returns
        -------
        int
            The position after what was read.
        """
        return self.native.feed(np.frombuffer(data, np.uint8), start)

    def take_texts(self, slot: int) -> Texts:
        """Return the cells of a text column of the rows read since the last call."""
        return _texts(self.native.take_texts(IGNORED - 1 - slot))

    def take_lines(self) -> Ints:
        """Return the line of each row read since the last call, where there are text columns."""
        return np.frombuffer(self.native.take_lines(), np.int64)

    def cells(self) -> Bytes:
        """Return what the cells of each column are."""
        return np.frombuffer(self.native.cells(), np.uint8)

    def categories(self) -> tuple[bytes, Uints]:
        """Return the distinct texts of features, one after another, and where each ends."""
        blob, ends = self.native.categories()
        return blob, np.frombuffer(ends, np.uint64)

    def counted_nbytes(
        self,
        n_features: int,
        most_nbytes: float = SAMPLED_NBYTES,
        take: Callable[[Texts], None] = lambda targets: None,
    ) -> int:
        """Return what the texts in the first bytes of rows count as, and a quarter more of more.

        ``take`` gets the targets of these rows.
        """
        n_rows, n_body = max(1, PIECE_NBYTES // (8 * n_features)), 0
        panel = anonymous_array((n_features, n_rows))
        self.set_panel(panel)
        for n_fed in fed(self, most_nbytes=most_nbytes):
            self.take_texts(ROW_ID)
            take(self.take_texts(TARGET))
            self.take_lines()
            if self.panel_is_full:
                self.set_panel(panel)
            n_body += n_fed
        nbytes: int = self.native.texts_nbytes
        return nbytes * 5 // 4 if n_body >= most_nbytes else nbytes

    @property
    def panel_is_full(self) -> bool:
        """Whether the current panel has no room for another row."""
        return self._panel is not None and self.native.panel_row == self._panel.shape[1]


parse_decimal = _native.parse_decimal
"""Returns the double nearest to a decimal, infinite beyond the largest; None if it is none."""


# How a text table is written: what the user says of it, and what its first lines show.

SEPARATORS = {"comma": ",", "tab": "\t", "semicolon": ";", "pipe": "|", "space": " "}
_SURE = ",\t;|"  # a space is a separator only where none of these is: names and labels hold spaces
_N_LINES = 20
_QUOTED = re.compile(r'"(?<![^,\t;|\s]")(?:[^"]|"")*"')  # begins with its mark: searched for fast

_OF_PLINK = re.compile(r"FID([ \t])IID\1PAT\1MAT\1SEX\1PHENOTYPE\b|CHR(\t)SNP\t\(C\)M\tPOS\t")

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_INFINITY = re.compile(rb"[+-]?inf(inity)?", re.IGNORECASE)
_NAN = re.compile(rb"[+-]?nan", re.IGNORECASE)


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
        taken = {self.point: "--decimal"}
        for option, mark in (("--separator", self.separator_mark), ("--comment", self.comment)):
            if mark is None:
                continue
            in_numbers = option == "--separator" and (mark.isalnum() or mark in "+-")
            if len(mark) != 1 or not mark.isascii() or mark in '"\r\n\0' or in_numbers:
                names = ", ".join(SEPARATORS) if option == "--separator" else "for example #"
                raise UsageError(
                    f"{option}: expected one ASCII character ({names}) that is no quote, no line "
                    f"end and in no number, found {mark!r}."
                )
            if mark in taken:
                raise UsageError(
                    f"expected different characters for {option} and {taken[mark]}, found {mark!r} "
                    "for both. Name another one."
                )
            taken[mark] = option

    @property
    def separator_mark(self) -> str | None:
        """The separator as a character."""
        return SEPARATORS.get(self.separator or "", self.separator)

    @property
    def point(self) -> str:
        """The decimal point."""
        return "," if self.decimal == "comma" else "."

    def separator_of(self, start: str) -> str:
        """Return the separator of a table that begins with ``start``, said or told from that.

        Of comma, tab, semicolon and pipe it is one found in the first line: one that cuts the first
        lines into equally many fields if there is such, and of several the one that makes the most.
        Without any of them it is a space if the first line holds one, else a comma.
        """
        if self.separator_mark:
            return self.separator_mark
        if own := _OF_PLINK.match(start):  # ids of variants may hold any other mark
            return own[1] or own[2]
        lines = [line for line in _LINE.findall(_QUOTED.sub('""', start)) if line.strip()]
        lines = [line for line in lines if not (self.comment and line.startswith(self.comment))]
        whole = [line for line in lines if line.endswith(("\n", "\r"))][:_N_LINES] or lines[:1]
        if not whole:
            return ","
        first = whole[0].rstrip("\r\n")
        if not (found := [mark for mark in _SURE if mark in first and mark != self.point]):
            return " " if " " in first.strip() else ","
        even = [mark for mark in found if len({line.count(mark) for line in whole}) == 1]
        return max(even or found, key=first.count)

    @cached_property
    def missing_texts(self) -> frozenset[bytes] | None:
        """The texts that stand for a missing value, where they are said."""
        return None if self.missing is None else frozenset(text.encode() for text in self.missing)

    def is_missing(self, text: bytes) -> bool:
        """Tell whether a text stands for a missing value."""
        if self.missing_texts is not None:
            return text in self.missing_texts
        return text in (b"", b"NA") or _NAN.fullmatch(text) is not None

    def number(self, text: bytes) -> float | None:
        """Return the number that a text is, infinities included; None if it is none."""
        plain = text if self.point == "." else text.replace(b",", b".")
        if (value := parse_decimal(plain)) is None and _INFINITY.fullmatch(plain):
            return -math.inf if plain.startswith(b"-") else math.inf
        return value

    def numbers(self, texts: Iterable[bytes]) -> dict[bytes, float | None]:
        """Return by text the numbers of those that are not missing; None where one is none."""
        return {text: self.number(text) for text in texts if not self.is_missing(text)}


def name_of(separator: str) -> str:
    """Return the name of a separator for messages."""
    return next((name for name, mark in SEPARATORS.items() if mark == separator), repr(separator))


# What stopped the reader of a text table, in the user's words.

_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+")
_LIKE_NONE = re.compile(r"(na|nan|n/a|null|none|missing|unknown|[?.-]|[<>] ?[\d.,]+|<?l?lo[dq])?")


def raise_fault(reader: TableReader, describe: Callable[[int], str]) -> None:
    """Raise what stopped a reader, if anything did; ``describe`` names a column.

    Raises
    ------
    InputError
        Naming file, line, column, text, and what would be accepted.
    """
    if reader.native.problem is None:
        return
    (fault, line, column, text), stream = reader.native.problem, reader.stream
    if fault == "ragged":
        expected = f"{reader.n_columns} fields as in the first row"
        found = f"{column} (separated by {name_of(stream.separator)})"
        raise unfit(f"{stream.source}, line {line}", expected, found, "Mend the line.")
    name = "" if fault == "open_quote" else describe(column)
    if fault == "many_categories":
        where = f"{stream.source}, line {line}: column {name}"
        raise many_texts(where, text.decode("utf-8", "replace"))
    what = explain(fault, text, f"column {name}", stream.form)
    raise InputError(f"{stream.source}, line {line}: {what}")


def explain(fault: str, cell: bytes, where: str, form: TextForm) -> str:
    """Say what was expected at ``where``, what was found, and what to do."""
    text = cell.decode("utf-8", "replace")
    words = ("", "NA", "nan") if form.missing is None else form.missing
    missing = " or ".join(repr(word) if word else "an empty cell" for word in words)
    hints = {
        " If the table writes 1,5 for 1.5, say --decimal comma.": _DECIMAL_COMMA.fullmatch(text),
        f" It looks like a date: {TO_DAYS}.": is_date(text),
        " If it stands for a missing value, name it with --missing, with the others there are.": (
            _LIKE_NONE.fullmatch(text.lower())
        ),
    }
    hint = next((hint for hint, fits in hints.items() if fits), "")
    return {
        "not_a_number": f"{where}: expected a number (or {missing} for a missing value), "
        f"found {text!r}. Mend the cell, leave the column out with --ignore, or take all its cells "
        f"as categories with --kind NAME=categorical.{hint}",
        "infinite": f"{where}: expected a finite number, found {text!r}. Mend the cell, or make it "
        f"missing ({missing}).",
        "long_field": f"{where}: expected a field of at most 1 MB, found a longer one. "
        "Look for a missing closing quote or delimiter.",
        "open_quote": "expected the quote that opens here to be closed, found the end of the file. "
        "Close or remove the quote.",
    }[fault]


_MONTHS = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
_DATE = re.compile(
    rf"(\d{{4}}[-/.]\d\d?[-/.]\d\d?|\d\d?[-/.](\d\d?|{_MONTHS})[-/.](\d{{4}}|\d\d)"
    rf"|\d\d? ?({_MONTHS})[a-z]* ?\d{{4}})([T ].*)?",
    re.IGNORECASE,
)


def is_date(text: str) -> bool:
    """Tell whether a text looks like a date."""
    return _DATE.fullmatch(text.strip()) is not None


# Text tables (CSV, TSV and their kin), plain or compressed, read in bounded pieces.

_N_AHEAD = 4


_NO_NAME = re.compile("(Unnamed: 0|__index_level_0__)?")  # as R and pandas write row names
ROW_NAMES = "row_names"
"""Name of a first column that the header does not name, as R writes row names."""


class CsvStream:
    """A text table read once: its header when opened, its rows after that.

    Parameters
    ----------
    source : SourceFile
        The file.
    form : TextForm
        What is said of it.
    take_names : callable, optional
        Given the names of its columns, some at a time.

    Attributes
    ----------
    pieces : PieceReader
        Where the bytes come from: how many were read, their checksum.
    n_fields : int
        Fields of the header.
    separator, marks : str, bytes
        The character between fields; that, comment (NUL if none) and point, a byte each.
    place : (int, bool)
        Where the header ended: the line, and whether the last byte read was a carriage return.
    body : iterator of (bytes, int)
        Pieces of the rows, and where in the piece to start.

    Raises
    ------
    InputError
        If there is no header, or it is not UTF-8 text.
    """

    body: Iterator[tuple[bytes, int]]

    def __init__(
        self,
        source: SourceFile,
        form: TextForm,
        take_names: Callable[[Texts], None] = lambda names: None,
    ) -> None:
        self.source, self.n_fields = source, 0
        self.pieces = PieceReader(source)
        self.form = form_of(self.pieces, form)
        self._read_header(take_names)
        if not self.form.header:
            self.pieces, self.place = PieceReader(source), (1 + source.head[1], False)
            self.body = zip(self.pieces.pieces(), repeat(0))
            for block in bounded(f"f{i}" for i in range(self.n_fields)):
                take_names(texts_of(block))

    def _read_header(self, take_names: Callable[[Texts], None]) -> None:
        pieces = self.pieces.pieces()
        first = next(pieces, b"")
        self.separator = self.form.separator_of(first.decode(errors="replace"))
        marks = f"{self.separator}{self.form.comment or chr(0)}{self.form.point}"
        self.marks = marks.encode("ascii")
        reader = _native.HeaderReader(self.marks)
        for data in chain([first], pieces, [b""]):
            start = reader.feed(np.frombuffer(data, np.uint8), 0)
            if not data:
                reader.finish()
            if reader.problem is not None:
                fault, line, column, text = reader.problem
                what = explain(fault, text, f"column {column + 1} of the header", self.form)
                raise InputError(f"{self.source}, line {line + self.source.head[1]}: {what}")
            names = _texts(reader.take_names())
            self.n_fields += len(names.ends)
            if self.form.header:
                check_utf8(names, f"{self.source}: the header")
                take_names(names)
            if reader.done:
                self.place = reader.line, reader.after_return
                self.body = chain([(data, start)], zip(pieces, repeat(0)))
                return
        raise InputError(
            f"{self.source}: expected a header and rows, found only blank lines"
            f"{' and comments' if self.form.comment else ''}."
        )

    def origin(self) -> dict[str, Any]:
        """Return where the table came from, for the manifest, once all of it is read."""
        kind = "arff" if self.pieces.arff else "csv"
        named = {"name": self.source.name, "format": f"{kind}{self.pieces.suffix}"}
        return named | {"nbytes": self.pieces.n_read, "crc32": self.pieces.crc32}


def form_of(pieces: PieceReader, form: TextForm) -> TextForm:
    """Return how a file is written, of which ARFF says all but further missing texts.

    Raises
    ------
    UsageError
        If more is said of it.
    """
    if pieces.arff is None:
        return form
    if form not in (own := TextForm("comma", missing=form.missing), replace(own, separator=None)):
        raise UsageError(
            f"{pieces.source}: expected no --separator, --comment, --decimal or --no-header of "
            "ARFF, which says it itself, found one of them. Leave it out."
        )
    return replace(own, missing=("?", *(one for one in form.missing or () if one != "?")))


def check_utf8(texts: Texts, what: str) -> None:
    """Refuse texts that are not UTF-8."""
    try:
        texts.blob.decode()
    except UnicodeDecodeError as error:
        found = texts.blob[error.start : error.start + 8]
        raise unfit(what, "UTF-8 text", f"the bytes {found!r}", TO_UTF8) from None


def fed(
    reader: TableReader, *, ahead: bool = False, most_nbytes: float = math.inf
) -> Iterator[int]:
    """Feed rows, of so many bytes or all, to a reader, until it finds a fault.

    Yields the bytes fed after each piece.

    Who asks for the next piece must have taken the texts before, and must set the next panel
    where one is full. With ``ahead``, a thread reads and decompresses what comes next meanwhile.
    """
    n_fed, pieces = 0, reader.stream.body
    for data, first in read_ahead(pieces, _N_AHEAD) if ahead else pieces:
        start = first
        while start < len(data):
            stop = reader.feed(data, start)
            yield stop - start
            if reader.native.problem is not None or (n_fed := n_fed + stop - start) >= most_nbytes:
                return
            start = stop
    reader.native.finish()
    yield 0


def read_panels(
    reader: TableReader,
    header: TextSpool,
    take: Callable[[TableReader], None],
    panels: Panels,
    tell: Callable[[str, int, int], None],
) -> None:
    """Have all rows read, the next pieces of the file being read and decompressed meanwhile.

    Parameters
    ----------
    reader : TableReader
        Reads them.
    header : TextSpool
        The names of the columns.
    take : callable
        Takes the texts of the rows read.
    panels : Panels
        Where rows go; sealed at the end.
    tell : callable
        Told of the bytes read.

    Raises
    ------
    InputError
        If a row cannot be read, or there is none.
    """
    stream = reader.stream
    reader.set_panel(panels.panel)
    for _ in fed(reader, ahead=True):
        take(reader)
        if reader.panel_is_full:
            panels.flush(reader.native.panel_row)
            reader.set_panel(panels.panel)
        tell("reading", stream.pieces.n_used, stream.pieces.nbytes)
    raise_fault(reader, header.describe)
    if reader.native.n_rows == 0:
        raise InputError(f"{stream.source}: expected rows after the header, found none.")
    if reader.native.panel_row:
        panels.flush(reader.native.panel_row)
    panels.seal()


def read_ahead(pieces: Iterator[Any], n_pieces: int = 1) -> Iterator[Any]:
    """Yield pieces, of which the next few are read, and decompressed, by a thread meanwhile."""
    with ThreadPoolExecutor(1) as pool:
        waiting = deque(pool.submit(next, pieces, None) for _ in range(n_pieces))
        while (piece := waiting.popleft().result()) is not None:
            waiting.append(pool.submit(next, pieces, None))
            yield piece


# Looks at a text table beside its one reading: how many rows it has, whether it names them.


def _skim(source: SourceFile, form: TextForm, n_columns: int, kept: int | None) -> TableReader:
    """Open a file again, of which at most one column is kept, as the target's texts."""
    slots = np.full(n_columns, IGNORED, np.int32)
    if kept is not None:
        slots[kept] = TARGET
    return TableReader(slots, CsvStream(source, form))


def has_row_names(
    source: SourceFile,
    form: TextForm,
    take_names: Callable[[Texts], None],
    check: Callable[[int], None] = lambda n_columns: None,
) -> bool:
    """Tell whether the first row has one field more than the header, as R writes row names.

    Then ``take_names`` is given :data:`ROW_NAMES`, the name of the first column, before a stream
    gives it those of the header. ``check`` is told how many fields there are before memory is taken
    for each.

    Raises
    ------
    InputError
        If the last field of the first rows is empty, which a separator at their ends explains too,
        or the first name is empty, as over row names: then a name is lost.
    """
    if not form.header:
        return False
    first = list[bytes]()
    stream = CsvStream(source, form, take_names=lambda some: first.extend([*some][: not first]))
    check(stream.n_fields)
    reader = TableReader(np.full(stream.n_fields, IGNORED, np.int32), stream)
    any(reader.native.n_rows for _ in fed(reader))  # up to the first row
    n_found = stream.n_fields + 1
    fault, _, column, _ = reader.native.problem or ("", 0, 0, b"")
    if (fault, column, reader.native.n_rows) != ("ragged", n_found, 1):
        return False
    reader = _skim(source, form, n_found, -1)
    any(reader.native.n_rows for _ in fed(reader))  # up to the first row
    if first == [b""] or not any(reader.take_texts(TARGET)):
        which = "the first name" if first == [b""] else "the last of them"
        raise InputError(
            f"{source}: expected as many fields in the rows as in the header, {n_found - 1}, "
            f"found one more, {which} empty. Remove the "
            f"{name_of(stream.separator)} at the ends of the lines; or, if the first "
            "column holds row ids, name it in the header."
        )
    take_names(texts_of([ROW_NAMES]))
    return True


def has_index(source: SourceFile, form: TextForm, header: TextSpool) -> bool:
    """Tell whether a first column without a name counts the first rows, or holds texts."""
    if not _NO_NAME.fullmatch(header.get(0).decode()):
        return False
    reader, cells = _skim(source, form, len(header), 0), list[bytes]()
    for _ in fed(reader, most_nbytes=SAMPLED_NBYTES):
        cells.extend(reader.take_texts(TARGET))
    numbers = [form.number(cell) for cell in cells if not form.is_missing(cell)]
    places = range(len(cells))
    return None in numbers or numbers in ([*places], [place + 1 for place in places])


def estimate(source: SourceFile, form: TextForm, n_columns: int) -> tuple[int, int]:
    """Estimate the rows of a file from the first megabyte after its header, and its text in bytes.

    The bytes are exact where the file is not compressed.
    """
    reader = _skim(source, form, n_columns, None)
    n_body, pieces = sum(fed(reader, most_nbytes=SAMPLED_NBYTES)), reader.stream.pieces
    text_nbytes = int(pieces.nbytes * pieces.n_text / max(1, pieces.n_used))
    if not (n_cells := reader.native.n_rows * n_columns + reader.native.column):
        return 0, text_nbytes
    body_nbytes = text_nbytes - (pieces.n_text - n_body)
    return int(body_nbytes * n_cells / (n_body * n_columns)) + 1, text_nbytes


def rows_at_most(source: SourceFile, n_columns: int) -> int | None:
    """Return a bound on the rows of a file; None if its compression sets none worth having.

    A row takes at least a byte per column, and gzip packs at most 1032 bytes into one.
    """
    pieces = PieceReader(source)
    factor = {"": 1, ".gz": 1032}.get(pieces.suffix)
    n_columns = min(n_columns, 3) if pieces.arff else n_columns  # {} and the end of a sparse row
    return None if factor is None else pieces.nbytes * factor // n_columns + 1


def count_rows(
    source: SourceFile, form: TextForm, n_columns: int, target: int | None = None
) -> tuple[int, bool]:
    """Count the rows of a file by reading it; return whether one has no ``target``, too.

    Raises
    ------
    InputError
        If a row is ragged.
    """
    has_missing, reader = False, _skim(source, form, n_columns, target)
    for _ in fed(reader):
        texts = reader.take_texts(TARGET) if target is not None else ()
        has_missing = has_missing or any(map(form.is_missing, texts))
    raise_fault(reader, str)
    return reader.native.n_rows, has_missing


def cell_text(source: SourceFile, form: TextForm, n_columns: int, column: int, row: int) -> str:
    """Return the text of a cell, from 0, by reading the file up to there."""
    reader = _skim(source, form, n_columns, column)
    cells = chain.from_iterable(reader.take_texts(TARGET) for _ in fed(reader))
    return next(islice(cells, row, None)).decode("utf-8", "replace")
