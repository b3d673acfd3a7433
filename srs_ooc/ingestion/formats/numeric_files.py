"""Files of numbers: ``.npy`` and ``.npz`` piece by piece, never whole; svmlight (libsvm) files."""

import io
import lzma
import os
import re
import shutil
import zipfile
import zlib
from array import array
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.budget import Lease
from srs_ooc.base.errors import InputError, StoreError
from srs_ooc.base.text import MB, describe_nbytes
from srs_ooc.ingestion.csv import parse_decimal
from srs_ooc.ingestion.formats import Table, TextCoder
from srs_ooc.ingestion.formats.in_memory import (
    BAD_HEADER,
    LOADING_NBYTES,
    SCIPY_NBYTES,
    SparseTable,
    as_float64,
    check_dtype,
    check_shape,
    is_narrow,
    item_blocks,
    line_nbytes,
    read_header,
    with_needs,
)
from srs_ooc.ingestion.ingest_memory import Needs
from srs_ooc.ingestion.ingest_options import IngestOptions
from srs_ooc.ingestion.sources import PieceReader, SourceFile

# ``.npy`` and ``.npz`` files: read piece by piece, never whole.

_PIECE_NBYTES = 2 * MB
_LONG_NBYTES = 1 << 14
"""Rows beyond this are not read whole for one cell of each."""
_N_CELLS = 1 << 14
_SHOWN = 10
_MAIN_KEYS = ("X", "x", "data", "arr_0")
_SPARSE_KEYS = {"data", "shape", "format"}
_BAD_ARCHIVE = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    KeyError,
    ValueError,
    RuntimeError,  # encrypted, or packed in a way that is not known
)


class NpyTable:
    """A ``.npy`` file: row by row in C order, column by column in Fortran order.

    Its cells are read, not mapped: pages of a map count as resident memory until the system takes
    them back.

    Raises
    ------
    InputError
        If the file holds no matrix of numbers, or is cut short.
    """

    format = "npy"
    work_nbytes = 0
    names: list[str] | None = None
    text_columns: NDArray[np.bool_] | None = None
    pool: TextCoder | None = None

    def __init__(self, path: Path, what: str) -> None:
        header = read_header(path, what)
        check_shape(header.shape, what)
        check_dtype(header.dtype, what)
        # Of one row or column both orders are the same.
        self.by_rows = not header.is_fortran or header.shape[0] == 1
        self.shape: tuple[int, int] = (header.shape[0], header.shape[1])
        self._path, self._what = path, what
        self.narrow = is_narrow(header.dtype)
        self._dtype, self._offset = header.dtype, header.offset

    def read(self, positions: NDArray[np.intp], pool: TextCoder) -> NDArray[np.float64]:
        """Return rows or columns, as ``by_rows`` says, each a row of the result."""
        n_items = self.shape[1] if self.by_rows else self.shape[0]
        lines = self._lines(n_items, positions)
        return as_float64(lines, self._what)

    def items(self, position: int) -> Iterator[list[Any]]:
        """Yield the cells of a column in blocks."""
        n_rows, n_columns = self.shape
        if not self.by_rows:
            yield from item_blocks(self._lines(n_rows, np.array([position]))[0])
            return
        line_nbytes = n_columns * self._dtype.itemsize
        if line_nbytes > _LONG_NBYTES:
            yield from self._single_cells(position, line_nbytes)
            return
        step = max(1, _PIECE_NBYTES // line_nbytes)
        for start in range(0, n_rows, step):
            rows = np.arange(start, min(start + step, n_rows))
            yield self._lines(n_columns, rows)[:, position].tolist()

    def _lines(self, n_items: int, positions: NDArray[np.intp]) -> NDArray[Any]:
        return read_lines(self._path, self._dtype, self._offset, n_items, positions, self._what)

    def _single_cells(self, position: int, line_nbytes: int) -> Iterator[list[Any]]:
        first = self._offset + position * self._dtype.itemsize
        with self._path.open("rb", buffering=0) as file:
            for start in range(0, self.shape[0], _N_CELLS):
                rows = range(start, min(start + _N_CELLS, self.shape[0]))
                cells = np.zeros(len(rows), self._dtype)
                for cell, row in zip(cells.reshape(-1, 1), rows, strict=True):
                    n_read = os.preadv(file.fileno(), [cell.data], first + row * line_nbytes)
                    if n_read < cell.nbytes:
                        raise _cut_short(self._what)
                yield cells.tolist()


def read_lines(
    path: Path,
    dtype: np.dtype[Any],
    offset: int,
    n_items: int,
    positions: NDArray[np.intp],
    what: str,
) -> NDArray[Any]:
    """Return lines of ``n_items`` items, by position among those of a file from ``offset`` on.

    Raises
    ------
    InputError
        If the file, ``what`` in messages, is gone or ends before them.
    """

    def read(first: int, count: int) -> NDArray[Any]:
        start = offset + first * n_items * dtype.itemsize
        try:
            found = np.fromfile(path, dtype, count * n_items, offset=start)
        except OSError as error:
            raise InputError(
                f"{what}: reading failed: {error.strerror or error}. Leave the file in its place "
                "until the ingest has ended."
            ) from error
        if len(found) < count * n_items:
            raise _cut_short(what)
        return found.reshape(count, n_items)

    if (np.diff(positions) == 1).all():  # a run, read at once
        return read(int(positions[0]), len(positions))
    out = np.empty((len(positions), n_items), dtype)
    for line, position in zip(out, positions.tolist(), strict=True):
        line[...] = read(position, 1)[0]
    return out


def _cut_short(what: str) -> InputError:
    return InputError(
        f"{what}: expected as many bytes as when the file was opened, found its end before. Leave "
        "the file alone until the ingest has ended, and ingest it again."
    )


def open_npz(path: Path, what: str, scratch: Path, options: IngestOptions) -> tuple[Table, Needs]:
    """Return the table in a ``.npz`` file, and what its ingest takes.

    It is a SciPy sparse matrix, or its one (or main) matrix.

    A dense matrix is unpacked into the folder ``scratch``; a sparse one is loaded.

    Raises
    ------
    InputError
        If it is damaged, or holds several matrices, none of them named X.
    BudgetError
        If a sparse matrix does not fit under the cap.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            sizes = {entry.filename.removesuffix(".npy"): entry for entry in archive.infolist()}
            if sizes.keys() >= _SPARSE_KEYS:
                n_bytes = sum(entry.file_size for entry in sizes.values())
                return _open_sparse(path, what, n_bytes, _shape_of(archive, what), options)
            entry = sizes[_main_key(list(sizes), what)]
            copy = scratch / "matrix.npy"
            _check_room(what, entry.file_size, scratch)
            with archive.open(entry) as packed, copy.open("wb") as file:
                shutil.copyfileobj(packed, file, 1 << 18)
    except _BAD_ARCHIVE as error:
        raise InputError(
            f"{what}: expected a .npz file, found damage: {error}. Get the file again."
        ) from error
    return with_needs(NpyTable(copy, what), options)


def _shape_of(archive: zipfile.ZipFile, what: str) -> tuple[int, int]:
    """Return the dimensions of a sparse matrix, for each of which SciPy keeps places."""
    with archive.open("shape.npy") as file:
        data = file.read(1 << 12)
    shape = np.load(io.BytesIO(data), allow_pickle=False)
    if shape.shape != (2,) or shape.dtype.kind not in "iu":
        raise InputError(
            f"{what}: expected a sparse matrix of rows and columns, found a shape that is none. "
            "Get the file again."
        )
    return max(0, int(shape[0])), max(0, int(shape[1]))


def _check_room(what: str, nbytes: int, scratch: Path) -> None:
    free = shutil.disk_usage(scratch).free
    if free < nbytes:
        raise StoreError(
            f"{what}: expected {describe_nbytes(nbytes)} of free disk to unpack it, found "
            f"{describe_nbytes(free)}. Free some space, or put the store on another disk."
        )


def _main_key(keys: list[str], what: str) -> str:
    if len(keys) == 1:
        return keys[0]
    for key in _MAIN_KEYS:
        if key in keys:
            return key
    raise InputError(
        f"{what}: expected one matrix, or one named X, found "
        f"{', '.join(key[:40] for key in keys[:_SHOWN])}{', ...' * (len(keys) > _SHOWN)}. Save it "
        "alone."
    )


def _open_sparse(
    path: Path, what: str, nbytes: int, shape: tuple[int, int], options: IngestOptions
) -> tuple[Table, Needs]:
    nbytes += 24 * max(shape)
    held = (Lease("SciPy", SCIPY_NBYTES), Lease("cells by columns", nbytes))
    # once as stored, once by columns, and what SciPy itself takes
    opening = (Lease("cells as stored and by columns, SciPy", 2 * nbytes + LOADING_NBYTES),)
    lines = Lease("lines on their way", line_nbytes(shape, by_rows=False) + SparseTable.work_nbytes)
    needs = Needs.of(options, shape[1], shape[0], (*held, lines), opening)
    needs.check(options.memory_nbytes, what)
    import scipy.sparse

    try:
        matrix = scipy.sparse.load_npz(path)
    except (*BAD_HEADER, *_BAD_ARCHIVE) as error:
        raise InputError(
            f"{what}: expected a sparse matrix saved by SciPy, could not read it: {error}. "
            "Get the file again."
        ) from error
    return SparseTable(matrix, what), needs


# svmlight (libsvm) files: on each line a target and the cells that are not zero.
#
# The cells are held as a sparse matrix, so that memory follows how many there are.

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
