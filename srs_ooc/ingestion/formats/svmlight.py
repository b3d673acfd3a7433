"""svmlight (libsvm) files: on each line a target and the cells that are not zero.

The cells are held as a sparse matrix, so that memory follows how many there are.
"""

import re
from array import array
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from srs_ooc.base.budget import resident_nbytes
from srs_ooc.base.errors import BudgetError, InputError
from srs_ooc.base.sizes import MB, megabytes
from srs_ooc.ingestion.formats.arrays import SparseTable
from srs_ooc.ingestion.formats.pieces import PieceReader
from srs_ooc.ingestion.formats.source import SourceFile
from srs_ooc.ingestion.parse import parse_decimal

_LINE = re.compile(rb"[^\s:#]+(\s+qid:\d+)?(\s+\d+:[^\s:]+)+\s*(#.*)?")
_SUFFIXES = {".svm", ".svmlight", ".libsvm"}
_NBYTES_PER_CELL = 3 * 12  # row by row, column by column, and one of them growing
_NBYTES_PER_ROW = 80
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
    cap : int
        The memory cap in bytes.

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

    def __init__(self, path: Path, what: str, cap: int) -> None:
        from scipy import sparse

        self._cap = cap
        self.labels: list[str] = []
        self._indices, self._values, self._ends = array("q"), array("d"), array("q", [0])
        for number, line in enumerate(_lines(PieceReader(SourceFile.file(path))), 1):
            self._take(line.partition(b"#")[0].split(), f"{what}, line {number}")
        if not self._indices:
            raise InputError(f"{what}: expected lines of a target and index:value, found none.")
        indices = np.frombuffer(self._indices, np.int64)
        first = min(1, int(indices.min()))
        shape = (len(self.labels), int(indices.max()) - first + 1)
        values, ends = np.frombuffer(self._values), np.frombuffer(self._ends, np.int64)
        super().__init__(sparse.csr_array((values, indices - first, ends), shape=shape), what)
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
            last = int(index)
            self._indices.append(last)
            self._values.append(number)
        self._ends.append(len(self._indices))
        self.labels.append(fields[0].decode("utf-8", "replace"))
        if len(self.labels) % _CHECK_ROWS == 1:
            self._check_cap(where)

    def _check_cap(self, where: str) -> None:
        grown = 16 * len(self._indices) + 8 * len(self._ends)
        nbytes = _NBYTES_PER_CELL * len(self._indices) + _NBYTES_PER_ROW * len(self.labels)
        needed = resident_nbytes() - grown + nbytes + _SCIPY_NBYTES
        if needed > self._cap:
            raise BudgetError(
                f"{where}: --memory-mb {megabytes(self._cap):g} cannot hold the cells up to here: "
                f"they take {megabytes(nbytes):g} MB. Give more than --memory-mb {needed // MB}."
            )


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
