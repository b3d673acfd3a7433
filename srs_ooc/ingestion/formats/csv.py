"""Text tables (CSV, TSV and their kin), plain or compressed, read in bounded pieces."""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from srs_ooc.base.errors import InputError
from srs_ooc.ingestion.formats.dialect import TextForm
from srs_ooc.ingestion.formats.faults import explain
from srs_ooc.ingestion.formats.pieces import PieceReader
from srs_ooc.ingestion.formats.source import SourceFile
from srs_ooc.ingestion.parse import HeaderReader, TableReader
from srs_ooc.ingestion.scratch import texts_of
from srs_ooc.ingestion.texts import TO_UTF8, Texts

_NAMES_AT_A_TIME = 1 << 14
_BOM = b"\xef\xbb\xbf"
_N_AHEAD = 4


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
    take_names : callable
        Given the names of its columns, some at a time.
    row_names : bool
        The header has no field over the first column, which is named :data:`ROW_NAMES`.

    Attributes
    ----------
    pieces : PieceReader
        Where the bytes come from: how many were read, their checksum.
    dialect : Dialect
        How the table is written.
    place : (int, bool)
        Where the header ended, for :class:`TableReader`.

    Raises
    ------
    InputError
        If there is no header, or it is not UTF-8 text.
    """

    def __init__(
        self,
        source: SourceFile,
        form: TextForm,
        take_names: Callable[[Texts], None],
        *,
        row_names: bool = False,
    ) -> None:
        self.source = source
        self._rewind()
        n_columns = 0
        if row_names:
            take_names(texts_of([ROW_NAMES]))

        def take(names: Texts) -> None:
            nonlocal n_columns
            n_columns += len(names.ends)
            if form.header:
                check_utf8(names, f"{source}: the header")
                take_names(names)

        self._read_header(form, take)
        if not form.header:
            self._rewind()
            self.place = (1, False)
            for start in range(0, n_columns, _NAMES_AT_A_TIME):
                stop = min(start + _NAMES_AT_A_TIME, n_columns)
                take_names(texts_of(f"f{i}" for i in range(start, stop)))

    def _rewind(self) -> None:
        self.pieces = PieceReader(self.source)
        self._iterator = _without_bom(self.pieces.pieces())
        self._rest, self._start = b"", 0

    def _read_header(self, form: TextForm, take: Callable[[Texts], None]) -> None:
        reader: HeaderReader | None = None
        for data in self._iterator:
            if reader is None:
                self.dialect = form.settle(data.decode(errors="replace"))
                reader = HeaderReader(self.dialect)
            self._rest, self._start = data, reader.feed(data)
            self._hand_over(reader, take)
            if reader.done:
                break
        else:
            self._rest, self._start = b"", 0
            if reader is not None:
                reader.finish()
                self._hand_over(reader, take)
        if reader is None or not reader.done:
            raise InputError(
                f"{self.source}: expected a header and rows, found only blank lines"
                f"{' and comments' if form.comment else ''}."
            )
        self.place = reader.place

    def _hand_over(self, reader: HeaderReader, take: Callable[[Texts], None]) -> None:
        if reader.problem is not None:
            problem = reader.problem
            what = explain(problem, f"column {problem.column + 1} of the header", self.dialect)
            raise InputError(f"{self.source}, line {problem.line}: {what}")
        take(reader.take_names())

    def body(self) -> Iterator[tuple[bytes, int]]:
        """Yield pieces of the rows, and where in the piece to start."""
        if self._start < len(self._rest):
            yield self._rest, self._start
        self._rest = b""
        for data in self._iterator:
            yield data, 0

    def origin(self) -> dict[str, Any]:
        """Return where the table came from, for the manifest, once all of it is read."""
        pieces = self.pieces
        found = {"nbytes": pieces.n_read, "crc32": pieces.crc32}
        return {"name": self.source.name, "format": f"csv{pieces.suffix}"} | found


def _without_bom(pieces: Iterator[bytes]) -> Iterator[bytes]:
    for first in pieces:
        if text := first.removeprefix(_BOM):
            yield text
        break
    yield from pieces


def check_utf8(texts: Texts, what: str) -> None:
    """Refuse texts that are not UTF-8."""
    try:
        texts.blob.decode()
    except UnicodeDecodeError as error:
        raise InputError(
            f"{what}: expected UTF-8 text, found the bytes "
            f"{texts.blob[error.start : error.start + 8]!r}. {TO_UTF8}"
        ) from None


def fed(stream: CsvStream, reader: TableReader, *, ahead: bool = False) -> Iterator[int]:
    """Feed all rows to a reader, until it finds a fault; yield the bytes fed after each piece.

    Who asks for the next piece must have taken the texts before, and must set the next panel
    where one is full. With ``ahead``, a thread reads and decompresses what comes next meanwhile.
    """
    for data, first in _ahead(stream.body()) if ahead else stream.body():
        start = first
        while True:
            stop = reader.feed(data, start)
            yield stop - start
            if reader.problem is not None:
                return
            start = stop
            if start >= len(data):
                break
    reader.finish()
    yield 0


def _ahead(pieces: Iterator[tuple[bytes, int]]) -> Iterator[tuple[bytes, int]]:
    """Yield pieces, the next few of which are read and decompressed by a thread meanwhile."""
    with ThreadPoolExecutor(1) as pool:
        waiting = deque(pool.submit(next, pieces, None) for _ in range(_N_AHEAD))
        while (piece := waiting.popleft().result()) is not None:
            waiting.append(pool.submit(next, pieces, None))
            yield piece
