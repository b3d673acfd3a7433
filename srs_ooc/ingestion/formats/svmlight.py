"""svmlight (libsvm) files: on each line a target and the cells that are not zero.

The cells are held as a sparse matrix, so that memory follows how many there are.
"""

import re
from array import array
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from srs_ooc.base.budget import Lease
from srs_ooc.base.errors import InputError
from srs_ooc.base.text import MB
from srs_ooc.ingestion.formats.arrays import SCIPY_NBYTES, SparseTable
from srs_ooc.ingestion.formats.pieces import PieceReader
from srs_ooc.ingestion.formats.source import SourceFile
from srs_ooc.ingestion.needs import Needs
from srs_ooc.ingestion.options import IngestOptions
from srs_ooc.ingestion.parse import parse_decimal
from srs_ooc.ingestion.table_needs import line_nbytes

_LINE = re.compile(rb"[^\s:#]+(\s+qid:\d+)?(\s+\d+:[^\s:]+)+\s*(#.*)?")
_SUFFIXES = {".svm", ".svmlight", ".libsvm"}
_NBYTES_PER_CELL = 3 * 12  # row by row, column by column, and one of them growing
_NBYTES_PER_ROW = 80
_HELD_NBYTES_PER_CELL = 16
_CHECK_ROWS = 1024
_SCIPY_NBYTES = 40 * MB


def is_svmlight(path: Path) -> bool:
    """Tell by its name, or its first line, whether a file is of this format."""
    if _SUFFIXES & set(path.suffixes[-2:]):
        return True
    try:
        first = next(PieceReader(SourceFile.file(path)).pieces(), b"")
    except (InputError, OSError):
        return False  # the reader of text tables tells what is wrong with it
    lines = (line for line in first.splitlines() if line.strip() and not line.startswith(b"#"))
    return _LINE.fullmatch(next(lines, b"")) is not None


class _Numbered(Collection[str]):
    """Names ``f<i>`` by the indices of the file."""

    def __init__(self, first: int, n: int) -> None:
        self._indices = range(first, first + n)

    def __len__(self) -> int:
        return len(self._indices)

    def __contains__(self, name: object) -> bool:
        return any(name == own for own in self)

    def __iter__(self) -> Iterator[str]:
        return (f"f{i}" for i in self._indices)


class SvmlightTable(SparseTable):
    """A svmlight file as a sparse matrix; the targets stand apart.

    Indices begin at 1, or at 0 if the file has a 0.

    Parameters
    ----------
    path : Path
        The file, plain or compressed.
    what : str
        Its name for messages.
    options : IngestOptions
        With the memory cap.

    Attributes
    ----------
    labels : list of str
        The target of each row.

    Raises
    ------
    InputError
        If a line cannot be read.
    BudgetError
        If the cap cannot hold the cells.
    """

    format = "svmlight"

    def __init__(self, path: Path, what: str, options: IngestOptions) -> None:
        self._options, self._what = options, what
        self.labels: list[str] = []
        self._indices, self._values, self._ends = array("q"), array("d"), array("q", [0])
        self._n_rows = self._n_cells = self._highest = 0
        self._lowest, self._holds = 1, True
        for number, line in enumerate(_lines(PieceReader(SourceFile.file(path))), 1):
            self._take(line.partition(b"#")[0].split(), f"{what}, line {number}")
        if not self._n_cells:
            raise InputError(f"{what}: expected lines of a target and index:value, found none.")
        first = min(1, self._lowest)
        shape = (self._n_rows, self._highest - first + 1)
        self._needs(shape).check(options.memory_nbytes, what)
        self._load(shape, first)

    def _load(self, shape: tuple[int, int], first: int) -> None:
        from scipy import sparse

        values, ends = np.frombuffer(self._values), np.frombuffer(self._ends, np.int64)
        indices = np.frombuffer(self._indices, np.int64) - first
        super().__init__(sparse.csr_array((values, indices, ends), shape=shape), self._what)
        self.names = _Numbered(first, shape[1])
        del self._indices, self._values, self._ends

    def _take(self, fields: list[bytes], where: str) -> None:
        if not fields:
            return
        cells = [field.partition(b":") for field in fields[1:] if not field.startswith(b"qid:")]
        last = -1
        for index, mark, value in cells:
            number = parse_decimal(value) if mark and index.isdigit() else None
            if number is None or not np.isfinite(number) or int(index) <= last:
                text = (index + mark + value)[:80].decode("utf-8", "replace")
                raise InputError(
                    f"{where}: expected index:value with a finite number and ascending indices, "
                    f"found {text!r}. Mend the line."
                )
            self._lowest = min(self._lowest, int(index))
            last = int(index)
            if self._holds:
                self._indices.append(last)
                self._values.append(number)
        self._highest, self._n_cells = max(self._highest, last), self._n_cells + len(cells)
        self._n_rows += 1
        if self._holds:
            self._ends.append(len(self._indices))
            self.labels.append(fields[0].decode("utf-8", "replace"))
            if self._n_rows % _CHECK_ROWS == 1:
                self._check_room()

    def _check_room(self) -> None:
        """Only count from here on where the cap does not hold what was read."""
        needs = self._needs((self._n_rows, self._highest + 1))
        if not needs.fits(self._options.memory_nbytes):
            self._holds, self.labels = False, []
            self._indices, self._values, self._ends = array("q"), array("d"), array("q")

    def _needs(self, shape: tuple[int, int]) -> Needs:
        nbytes = _NBYTES_PER_CELL * self._n_cells + _NBYTES_PER_ROW * self._n_rows
        self.opening = (Lease("SciPy and the cells", _SCIPY_NBYTES + nbytes),)
        held = _HELD_NBYTES_PER_CELL * self._n_cells + _NBYTES_PER_ROW * self._n_rows
        self.held = (Lease("SciPy", SCIPY_NBYTES), Lease("cells", held + 8 * shape[1]))
        lines = Lease("lines on their way", line_nbytes(shape, by_rows=False) + self.work_nbytes)
        held_all = (*self.held, lines)
        return Needs.of(self._options, shape[1], shape[0], held_all, self.opening)


def _lines(pieces: PieceReader) -> Iterator[bytes]:
    rest: list[Any] = []
    for piece in pieces.pieces():
        head, mark, tail = piece.rpartition(b"\n")
        if not mark:
            rest.append(piece)
            continue
        yield from b"".join([*rest, head]).split(b"\n")
        rest = [tail]
    if last := b"".join(rest):
        yield last
