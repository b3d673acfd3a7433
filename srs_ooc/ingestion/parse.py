"""CSV bytes to numbers and texts: the face of the native tokenizer.

A reader is fed bytes in pieces of any size and stops and goes on at any byte, inside a row or a
field. The rules for fields are those of Python's ``csv`` module; a number is what ``float()`` makes
of its text, exactly: the nearest double.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from srs_ooc.ingestion.texts import Texts
from srs_ooc.native import _native

IGNORED, TARGET, ROW_ID = -1, -2, -3
"""Slots of columns that are not features; a feature's slot is its row in the panel.

Slots below :data:`IGNORED` are text columns, whose cells are kept as they are; more may follow."""

UNKNOWN, NUMBERS, TEXTS, CATEGORIES, ONLY_NUMBERS = range(5)
"""What the cells of a feature are: not known yet; numbers; texts, since the first cell that was not
missing was one; texts whatever they look like; numbers, texts being refused at once."""


@dataclass(frozen=True)
class Dialect:
    """How a text table is written.

    Attributes
    ----------
    separator : str
        The ASCII character between fields. A run of spaces is one separator.
    comment : str or None
        Lines that start with this ASCII character are skipped.
    point : {'.', ','}
        The decimal point.
    missing : tuple of str or None
        Texts that stand for a missing value; empty, NA and nan (in any case) if None.
    """

    separator: str = ","
    comment: str | None = None
    point: str = "."
    missing: tuple[str, ...] | None = None

    @property
    def marks(self) -> bytes:
        """Separator, comment (NUL if none) and point, a byte each."""
        return f"{self.separator}{self.comment or chr(0)}{self.point}".encode("ascii")


PLAIN = Dialect()


@dataclass(frozen=True)
class Fault:
    """Why a reader stopped.

    Attributes
    ----------
    fault : str
        ``ragged``, ``not_a_number``, ``infinite``, ``many_categories``, ``long_field`` or
        ``open_quote``.
    line : int
        Line of the file, from 1, on which the row starts.
    column : int
        Column of the cell, from 0; of a ragged row, the number of fields found.
    text : str
        The beginning of the cell's text.
    """

    fault: str
    line: int
    column: int
    text: str


def _texts(taken: tuple[bytes, bytes, bytes]) -> Texts:
    blob, ends, hashes = taken
    return Texts(blob, np.frombuffer(ends, np.uint64), np.frombuffer(hashes, np.uint64))


def _problem(found: tuple[str, int, int, bytes] | None) -> Fault | None:
    if found is None:
        return None
    fault, line, column, text = found
    return Fault(fault, line, column, text.decode("utf-8", "replace"))


class HeaderReader:
    """Reads the first row that is not blank as names (surrounding blanks stripped)."""

    def __init__(self, dialect: Dialect = PLAIN) -> None:
        self._native = _native.HeaderReader(dialect.marks)

    def feed(self, data: bytes, start: int = 0) -> int:
        """Read ``data`` from ``start``; return the position after what was read."""
        return self._native.feed(np.frombuffer(data, np.uint8), start)

    def finish(self) -> None:
        """Say that the text has ended."""
        self._native.finish()

    def take_names(self) -> Texts:
        """Return the names read since the last call."""
        return _texts(self._native.take_names())

    @property
    def done(self) -> bool:
        """Whether the row has ended."""
        return self._native.done

    @property
    def place(self) -> tuple[int, bool]:
        """Line reached, and whether the last byte read was a carriage return."""
        return self._native.line, self._native.after_return

    @property
    def problem(self) -> Fault | None:
        """Why reading stopped, if it did."""
        return _problem(self._native.problem)


class TableReader:
    """Reads rows into panels of float64, and text columns aside.

    In the panel a missing cell is NaN, and a text the number of its category: its place among the
    distinct texts of all features, in order of first appearance.

    Parameters
    ----------
    slots : int32 (n_columns,)
        For each source column the panel row its cells go to, :data:`IGNORED`, or a text column.
    dialect : Dialect
        How the table is written.
    place : (int, bool)
        Where the header ended: :attr:`HeaderReader.place`.
    kinds : uint8 (n_columns,), optional
        :data:`UNKNOWN`, :data:`CATEGORIES` or :data:`ONLY_NUMBERS`, for each column; all are
        numbers if not given.
    by_row : bool
        A row is a feature: its cells are of one kind, which is found out.
    max_category_nbytes : int
        Memory that the distinct texts of features may take.
    row_kinds : mapping of bytes to int, optional
        With ``by_row``, :data:`CATEGORIES` or :data:`ONLY_NUMBERS` by the text of the first column,
        a text column; held in memory.
    """

    def __init__(
        self,
        slots: NDArray[np.int32],
        dialect: Dialect = PLAIN,
        place: tuple[int, bool] = (1, False),
        kinds: NDArray[np.uint8] | None = None,
        *,
        by_row: bool = False,
        max_category_nbytes: int = 0,
        row_kinds: Mapping[bytes, int] | None = None,
    ) -> None:
        missing = None if dialect.missing is None else [text.encode() for text in dialect.missing]
        cells = b"" if by_row else bytes([ONLY_NUMBERS]) * len(slots)
        self._native = _native.TableReader(
            slots,
            dialect.marks,
            missing,
            *place,
            cells if kinds is None else kinds.tobytes(),
            by_row,
            max_category_nbytes,
            dict(row_kinds or {}),
        )
        self._panel: NDArray[np.float64] | None = None

    def set_panel(self, panel: NDArray[np.float64]) -> None:
        """Let the next rows go to the columns of ``panel`` (n_features, n_panel_rows)."""
        self._native.set_panel(panel)
        self._panel = panel

    def feed(self, data: bytes, start: int = 0) -> int:
        """Read ``data`` from ``start`` until it ends, the panel is full, or there is a problem.

        Returns
        -------
        int
            The position after what was read.
        """
        return self._native.feed(np.frombuffer(data, np.uint8), start)

    def finish(self) -> None:
        """Say that the text has ended."""
        self._native.finish()

    def take_texts(self, slot: int) -> Texts:
        """Return the cells of a text column of the rows read since the last call."""
        return _texts(self._native.take_texts(IGNORED - 1 - slot))

    def take_lines(self) -> NDArray[np.int64]:
        """Return the line of each row read since the last call, where there are text columns."""
        return np.frombuffer(self._native.take_lines(), np.int64)

    def take_row_cells(self) -> NDArray[np.uint8]:
        """Return what the cells of each row read since the last call are, if ``by_row``."""
        return np.frombuffer(self._native.take_row_cells(), np.uint8)

    def cells(self) -> NDArray[np.uint8]:
        """Return what the cells of each column are."""
        return np.frombuffer(self._native.cells(), np.uint8)

    def categories(self) -> tuple[bytes, NDArray[np.uint64]]:
        """Return the distinct texts of features, one after another, and where each ends."""
        blob, ends = self._native.categories()
        return blob, np.frombuffer(ends, np.uint64)

    @property
    def n_rows(self) -> int:
        """Rows read in all."""
        return self._native.n_rows

    @property
    def n_panel_rows(self) -> int:
        """Rows read into the current panel."""
        return self._native.panel_row

    @property
    def panel_is_full(self) -> bool:
        """Whether the current panel has no room for another row."""
        return self._panel is not None and self.n_panel_rows == self._panel.shape[1]

    @property
    def column(self) -> int:
        """Column reached inside the current row."""
        return self._native.column

    @property
    def fits_float32(self) -> bool:
        """Whether every value so far survives the round trip through float32."""
        return self._native.fits_float32

    @property
    def problem(self) -> Fault | None:
        """Why reading stopped, if there was a fault."""
        return _problem(self._native.problem)


def parse_decimal(text: bytes) -> float | None:
    """Return the double nearest to a decimal, infinite beyond the largest; None if it is none."""
    return _native.parse_decimal(text)
