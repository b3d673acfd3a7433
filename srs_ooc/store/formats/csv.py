"""CSV with a header, plain or gzip-compressed, read in bounded pieces."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from srs_ooc.errors import InputError
from srs_ooc.kernel.parse import IGNORED, HeaderReader, Problem, TableReader, Texts
from srs_ooc.store.formats.pieces import PieceReader

MAX_CLASSES = 10_000
_BOM = b"\xef\xbb\xbf"
_SAMPLE_NBYTES = 1 << 20


@dataclass(frozen=True)
class Estimate:
    """What a look at the beginning of a file says of the whole.

    Attributes
    ----------
    n_rows : int
        Rows there are, about.
    text_nbytes : int
        Bytes of text there are, about; exact where the file is not compressed.
    """

    n_rows: int
    text_nbytes: int


class CsvStream:
    """A CSV file read once: its header when opened, its rows after that.

    Parameters
    ----------
    path : Path
        The file.
    take_names : callable
        Given the header's names, some at a time.

    Attributes
    ----------
    pieces : PieceReader
        Where the bytes come from: how many were read, their checksum.
    place : (int, bool)
        Where the header ended, for :class:`TableReader`.

    Raises
    ------
    InputError
        If there is no header, or it is not UTF-8 text.
    """

    def __init__(self, path: Path, take_names: Callable[[Texts], None]) -> None:
        self.path = path
        self.pieces = PieceReader(path)
        self._iterator = self.pieces.pieces()
        self._rest, self._start = b"", 0
        reader = HeaderReader()
        first = True
        for data in self._iterator:
            start = len(_BOM) if first and data.startswith(_BOM) else 0
            first = False
            self._rest, self._start = data, reader.feed(data, start)
            self._hand_over(reader, take_names)
            if reader.done:
                break
        else:
            self._rest, self._start = b"", 0
            reader.finish()
            self._hand_over(reader, take_names)
        if not reader.done:
            raise InputError(f"{path}: expected a header and rows, found only blank lines.")
        self.place = reader.place

    def _hand_over(self, reader: HeaderReader, take_names: Callable[[Texts], None]) -> None:
        if reader.problem is not None:
            raise InputError(f"{self.path}: {_explain(reader.problem, 'a column name')}")
        names = reader.take_names()
        check_utf8(names, f"{self.path}: the header")
        take_names(names)

    def body(self) -> Iterator[tuple[bytes, int]]:
        """Yield pieces of the rows, and where in the piece to start."""
        if self._start < len(self._rest):
            yield self._rest, self._start
        self._rest = b""
        for data in self._iterator:
            yield data, 0


def check_utf8(texts: Texts, what: str) -> None:
    """Refuse texts that are not UTF-8."""
    try:
        texts.blob.decode()
    except UnicodeDecodeError as error:
        raise InputError(
            f"{what}: expected UTF-8 text, found the bytes "
            f"{texts.blob[error.start : error.start + 8]!r}. Convert the file to UTF-8."
        ) from None


def _skim(path: Path, n_columns: int) -> tuple[CsvStream, TableReader]:
    stream = CsvStream(path, lambda names: None)
    slots = np.full(n_columns, IGNORED, np.int32)
    return stream, TableReader(slots, place=stream.place)


def estimate(path: Path, n_columns: int) -> Estimate:
    """Estimate the rows of a file from the first megabyte after its header."""
    stream, reader = _skim(path, n_columns)
    n_body = 0
    for data, start in stream.body():
        reader.feed(data, start)
        n_body += len(data) - start
        if n_body >= _SAMPLE_NBYTES or reader.problem is not None:
            break
    pieces = stream.pieces
    text_nbytes = int(pieces.nbytes * pieces.n_text / max(1, pieces.n_used))
    n_cells = reader.n_rows * n_columns + reader.column
    if not n_cells:
        return Estimate(0, text_nbytes)
    body_nbytes = text_nbytes - (pieces.n_text - n_body)
    return Estimate(int(body_nbytes * n_cells / (n_body * n_columns)) + 1, text_nbytes)


def rows_at_most(path: Path, n_columns: int) -> int:
    """Return a bound on the rows of a file.

    A row takes at least a byte per column, and gzip packs at most 1032 bytes into one.
    """
    pieces = PieceReader(path)
    return pieces.nbytes * (1032 if pieces.is_gzip else 1) // n_columns + 1


def count_rows(path: Path, n_columns: int) -> int:
    """Count the rows of a file by reading it.

    Raises
    ------
    InputError
        If a row is ragged.
    """
    stream, reader = _skim(path, n_columns)
    for data, start in stream.body():
        reader.feed(data, start)
        raise_problem(path, reader.problem, n_columns, lambda column: "")
    reader.finish()
    raise_problem(path, reader.problem, n_columns, lambda column: "")
    return reader.n_rows


def raise_problem(
    path: Path, problem: Problem | None, n_columns: int, name_of: Callable[[int], str]
) -> None:
    """Raise what stopped a reader, if anything did, in the user's words."""
    if problem is None:
        return
    if problem.fault == "ragged":
        raise InputError(
            f"{path}, line {problem.line}: expected {n_columns} fields as in the header, "
            f"found {problem.column}. Mend the line."
        )
    name = "" if problem.fault == "open_quote" else name_of(problem.column)
    raise InputError(f"{path}, line {problem.line}: {_explain(problem, f'column {name}')}")


def _explain(problem: Problem, where: str) -> str:
    text = repr(problem.text)
    return {
        "not_a_number": f"{where}: expected a number (or an empty cell, NA or nan for a missing "
        f"value), found {text}. Mend the cell, or leave the column out with --ignore.",
        "infinite": f"{where}: expected a finite number, found {text}. Mend the cell, or make it "
        "empty to count it as missing.",
        "missing_target": f"{where}: expected a class label, found "
        f"{text if problem.text else 'an empty cell'}. Remove the row, or fill its label in.",
        "too_many_classes": f"{where}: expected a target of at most {MAX_CLASSES} classes, found "
        "more. Name a column of class labels with --target.",
        "long_label": f"{where}: expected a class label of at most 1000 bytes, found a longer one. "
        "Name a column of class labels with --target.",
        "long_field": f"{where}: expected a field of at most 1 MB, found a longer one. "
        "Look for a missing closing quote or delimiter.",
        "open_quote": "expected the quote that opens here to be closed, found the end of the file. "
        "Close or remove the quote.",
    }[problem.fault]


def read_rows(
    stream: CsvStream,
    reader: TableReader,
    take_rows: Callable[[NDArray[np.int32], Texts], None],
    panel_full: Callable[[], None],
) -> Iterator[None]:
    """Read all rows; yield after each piece.

    Parameters
    ----------
    stream : CsvStream
        The file.
    reader : TableReader
        With its first panel set.
    take_rows : callable
        Given the class numbers and row ids read since it was called last.
    panel_full : callable
        Must set the next panel.
    """
    for data, first in stream.body():
        start = first
        while True:
            start = reader.feed(data, start)
            take_rows(reader.take_labels(), reader.take_ids())
            if reader.problem is not None:
                return
            if reader.panel_is_full:
                panel_full()
            if start >= len(data):
                break
        yield
    reader.finish()
    take_rows(reader.take_labels(), reader.take_ids())
    if reader.problem is None and reader.n_panel_rows:
        panel_full()
