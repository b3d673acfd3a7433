"""Files that are no text tables: NumPy's, svmlight, Parquet and Feather, and which one is what."""

import io
import lzma
import os
import re
import shutil
import zipfile
import zlib
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.budget import Lease
from srs_ooc.base.errors import InputError, UsageError
from srs_ooc.base.frames import library
from srs_ooc.base.options import part_at, places_of
from srs_ooc.base.text import MB
from srs_ooc.base.urls import Url, place_of
from srs_ooc.ingestion import formats, ingest_memory
from srs_ooc.ingestion.csv import parse_decimal
from srs_ooc.ingestion.formats import Floats, Names, Table, TextCoder, genotypes, in_memory
from srs_ooc.ingestion.ingest_options import IngestOptions
from srs_ooc.ingestion.scratch import check_disk
from srs_ooc.ingestion.sources import PieceReader, SourceFile, place_in
from srs_ooc.store import bed

# ``.npy`` and ``.npz`` files: read piece by piece, never whole.

_LONG = 1 << 14
"""Rows of more bytes are not read whole for one cell of each."""
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


class NpyTable(Table):
    """A ``.npy`` file: row by row in C order, column by column in Fortran order.

    Its cells are read, not mapped: pages of a map count as resident memory until the system takes
    them back.

    Raises
    ------
    InputError
        If the file holds no matrix of numbers, or is cut short.
    """

    format = "npy"
    held = ()

    def __init__(self, path: Path, what: str) -> None:
        shape, self._dtype, is_fortran, self._offset = in_memory.read_header(path, what)
        in_memory.check_shape(shape, what)
        in_memory.check_dtype(self._dtype, what)
        # Of one row or column both orders are the same.
        self.by_rows = not is_fortran or shape[0] == 1
        self.shape: tuple[int, int] = (shape[0], shape[1])
        self._path, self._what = path, what
        self.narrow = self.reads_narrow = in_memory.is_narrow(self._dtype)

    def read(self, positions: NDArray[np.intp], pool: TextCoder) -> Floats:
        """Return rows or columns, as ``by_rows`` says, each a row of the result."""
        n_items = self.shape[1] if self.by_rows else self.shape[0]
        lines = self._lines(n_items, positions)
        return in_memory.as_floats(lines, self._what)

    def items(self, position: int) -> Iterator[list[Any]]:
        """Yield the cells of a column in blocks."""
        n_rows, n_columns = self.shape
        if not self.by_rows:
            yield from in_memory.item_blocks(self._lines(n_rows, np.array([position]))[0])
            return
        line_nbytes = n_columns * self._dtype.itemsize
        is_long = line_nbytes > _LONG
        step = _N_CELLS if is_long else max(1, ingest_memory.PIECE_NBYTES // line_nbytes)
        for start in range(0, n_rows, step):
            rows = np.arange(start, min(start + step, n_rows))
            if is_long:  # a line of one item for each cell
                places, first = rows * n_columns + position, self._offset
                cells = in_memory.read_lines(self._path, self._dtype, first, 1, places, self._what)
                yield cells[:, 0].tolist()
            else:
                yield self._lines(n_columns, rows)[:, position].tolist()

    def _lines(self, n_items: int, positions: NDArray[np.intp]) -> NDArray[Any]:
        return in_memory.read_lines(
            self._path, self._dtype, self._offset, n_items, positions, self._what
        )


def open_npz(path: Path, what: str, scratch: Path, options: IngestOptions) -> Table:
    """Return the table in a ``.npz`` file: a SciPy sparse matrix, or its one (or main) matrix.

    A dense matrix is unpacked into the folder ``scratch``; a sparse one is loaded.

    Raises
    ------
    InputError
        If it is damaged, or holds several matrices, none of them named X.
    BudgetError
        If a sparse matrix does not fit under the cap.
    StoreError
        If there is no room on the disk to unpack it.
    """
    remedy = "Get the file again."
    damage = formats.reading(what, "a .npz file", remedy, _BAD_ARCHIVE, "found damage")
    with damage, zipfile.ZipFile(path) as archive:
        sizes = {entry.filename.removesuffix(".npy"): entry for entry in archive.infolist()}
        if sizes.keys() >= _SPARSE_KEYS:
            n_bytes = sum(entry.file_size for entry in sizes.values())
            return _open_sparse(path, what, n_bytes, _shape_of(archive, what), options)
        entry = sizes[_main_key(list(sizes), what)]
        copy = scratch / "matrix.npy"
        check_disk(scratch.parent, entry.file_size, 0)
        with archive.open(entry) as packed, copy.open("wb") as file:
            shutil.copyfileobj(packed, file, 1 << 18)
    return NpyTable(copy, what)


def _shape_of(archive: zipfile.ZipFile, what: str) -> tuple[int, int]:
    """Return the dimensions of a sparse matrix, for each of which SciPy keeps places."""
    with archive.open("shape.npy") as file:
        data = file.read(1 << 12)
    try:
        shape = np.load(io.BytesIO(data), allow_pickle=False)
    except in_memory.BAD_HEADER:
        shape = np.zeros(0)
    if shape.shape != (2,) or shape.dtype.kind not in "iu":
        raise InputError(
            f"{what}: expected a sparse matrix of rows and columns, found a shape that is none. "
            "Get the file again."
        )
    return max(0, int(shape[0])), max(0, int(shape[1]))


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


_SCIPY_NBYTES = 20 * MB  # SciPy's sparse matrices, loaded; measured 17 MB
_LOADING_NBYTES = 40 * MB  # SciPy, and what it takes while it loads a matrix


def _open_sparse(
    path: Path, what: str, nbytes: int, shape: tuple[int, int], options: IngestOptions
) -> Table:
    nbytes += 24 * max(shape)
    held = (Lease("SciPy", _SCIPY_NBYTES), Lease("cells by columns", nbytes))
    both = Lease("cells as stored and by columns, SciPy", 2 * nbytes + _LOADING_NBYTES)
    lines = ingest_memory.lines_lease(shape[0], in_memory.SparseTable.work_nbytes)
    options.memory(shape[1], shape[0], (*held, lines), (both,)).check(what)
    import scipy.sparse

    try:
        matrix = scipy.sparse.load_npz(path)
    except (*in_memory.BAD_HEADER, *_BAD_ARCHIVE) as error:
        raise InputError(
            f"{what}: expected a sparse matrix saved by SciPy, found arrays that cannot be "
            "read. Get the file again."
        ) from error
    table = in_memory.SparseTable(matrix, what)
    table.held, table.opening = held, (both,)
    return table


# svmlight (libsvm) files: on each line a target and the cells that are not zero.
#
# The cells are held as a sparse matrix, so that memory follows how many there are.

_LINE = re.compile(rb"[^\s:#]+(\s+qid:\d+)?(\s+\d+:[^\s:]+)+\s*(#.*)?")
_SUFFIXES = {".svm", ".svmlight", ".libsvm"}
_CHECK_ROWS = 1024


def is_svmlight(path: Path) -> bool:
    """Tell by its name, or its first line, whether a file is of this format."""
    if _SUFFIXES & set(path.suffixes[-2:]):
        return True
    try:
        first = next(PieceReader(SourceFile(path)).pieces(), b"")
    except (InputError, OSError):
        return False  # the reader of text tables tells what is wrong with it
    lines = (line for line in first.splitlines() if line.strip() and not line.startswith(b"#"))
    return _LINE.fullmatch(next(lines, b"")) is not None


class SvmlightTable(in_memory.SparseTable):
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
        for number, line in enumerate(_lines(PieceReader(SourceFile(path))), 1):
            self._take(line.partition(b"#")[0].split(), f"{what}, line {number}")
        if not self._n_cells:
            raise InputError(f"{what}: expected lines of a target and index:value, found none.")
        first = min(1, self._lowest)
        shape = (self._n_rows, self._highest - first + 1)
        self._memory(shape).check(what)
        self._load(shape, first)

    def _load(self, shape: tuple[int, int], first: int) -> None:
        from scipy import sparse

        values, ends = np.frombuffer(self._values), np.frombuffer(self._ends, np.int64)
        indices = np.frombuffer(self._indices, np.int64) - first
        super().__init__(sparse.csr_array((values, indices, ends), shape=shape), self._what)
        self.names = Names(shape[1], lambda: (f"f{first + i}" for i in range(shape[1])))
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
        if not self._memory((self._n_rows, self._highest + 1)).fits:
            self._holds, self.labels = False, []
            self._indices, self._values, self._ends = array("q"), array("d"), array("q")

    def _memory(self, shape: tuple[int, int]) -> ingest_memory.IngestMemory:
        n_cells, labels = self._n_cells, 80 * self._n_rows
        cells = Lease("cells", 16 * n_cells + labels + 8 * shape[1])
        self.held = (Lease("SciPy", _SCIPY_NBYTES), cells)
        # row by row, column by column, and one of them growing
        loading = _LOADING_NBYTES + 3 * 12 * n_cells + labels
        self.opening = (Lease("SciPy and the cells", loading),)
        held = (*self.held, ingest_memory.lines_lease(shape[0], self.work_nbytes))
        return self._options.memory(shape[1], shape[0], held, self.opening)


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


# Parquet and Feather (Arrow IPC) files, read a few columns at a time with PyArrow; first the size
# of a Parquet file, from the beginning of its footer, before PyArrow decodes all of it.
#
# The footer is a structure in Thrift's compact protocol: a version, the list of the columns'
# schemas, the number of rows, and then the bulk, which is not looked at.

_END = 8  # bytes of the footer's length, and of the magic
_SCHEMA, _N_ROWS, _GROUPS = 2, 3, 4
_TEXTS = b"\x15\x0c"  # as a column's schema begins that holds bytes
_BOOLEANS, _BYTE, _DOUBLE, _BINARY, _STRUCT = (1, 2), 3, 7, 8, 12
_VARINTS, _LISTS = (4, 5, 6), (9, 10)
_DEEPEST = 8


def length_of_footer(path: Path) -> int:
    """Return the length of the footer as the file says, at most that of the file."""
    size = path.stat().st_size
    with path.open("rb") as file:
        file.seek(-min(_END, size), 2)
        return min(int.from_bytes(file.read(4), "little"), size)


def size_of(path: Path) -> tuple[int, int, int, bool] | None:
    """Return rows, columns, groups of rows, and whether there are texts; None if it cannot."""
    length = length_of_footer(path)
    with path.open("rb") as file:
        file.seek(-min(length + _END, path.stat().st_size), 2)
        footer = io.BytesIO(file.read(length))
    try:
        return _size_in(footer)
    except (IndexError, OverflowError, ValueError):
        return None  # PyArrow says what is wrong with it


def _size_in(footer: io.BytesIO) -> tuple[int, int, int, bool]:
    """Read the fields of the outermost structure up to the groups of rows."""
    number = n_columns = n_rows = 0
    holds = False
    while True:
        head = _byte(footer)
        if not head:
            raise ValueError("the structure ends before the groups of rows")
        number = number + (head >> 4) if head >> 4 else _varint(footer) >> 1
        kind = head & 0x0F
        if number == _SCHEMA and kind in _LISTS:
            n_columns = _list_header(footer)[0] - 1  # but for the root
            for _ in range(n_columns + 1):
                holds |= footer.read(2) == _TEXTS
                footer.seek(-2, 1)
                _skip(footer, _STRUCT, 1)
        elif number == _N_ROWS and kind in _VARINTS:
            n_rows = _varint(footer) >> 1
        elif number == _GROUPS and kind in _LISTS:
            return n_rows, n_columns, _list_header(footer)[0], holds
        else:
            _skip(footer, kind, 0)


def _byte(footer: io.BytesIO) -> int:
    return footer.read(1)[0]


def _varint(footer: io.BytesIO) -> int:
    value = shift = 0
    while shift <= 63:
        byte = _byte(footer)
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value
        shift += 7
    raise ValueError("no number of 64 bits")


def _list_header(footer: io.BytesIO) -> tuple[int, int]:
    head = _byte(footer)
    n_items = head >> 4
    return (_varint(footer) if n_items == 0x0F else n_items), head & 0x0F


def _skip(footer: io.BytesIO, kind: int, depth: int) -> None:
    if depth > _DEEPEST:
        raise ValueError("nested too deeply")
    if kind in _VARINTS:
        _varint(footer)
    elif kind in (_BYTE, _DOUBLE, _BINARY):
        footer.seek({_BYTE: 1, _DOUBLE: 8}.get(kind) or _varint(footer), 1)
    elif kind in _LISTS:
        n_items, of = _list_header(footer)
        for _ in range(n_items):
            # a boolean of a list takes a byte, one of a structure none
            _skip(footer, _BYTE if of in _BOOLEANS else of, depth + 1)
    elif kind == _STRUCT:
        while head := _byte(footer):
            if not head >> 4:
                _varint(footer)
            _skip(footer, head & 0x0F, depth + 1)
    elif kind not in _BOOLEANS:
        raise ValueError("a kind that is not used here")


PARQUET, FEATHER = b"PAR1", b"ARROW1"
_COLUMNS = 1024  # that are read at a time: each takes PyArrow 5 kB, however few rows there are


class ArrowFile(Table):
    """A Parquet or Feather file: a ``Table`` read by columns.

    Columns that pandas notes as the index of a frame (``index_names``) stand before the others.

    Raises
    ------
    InputError
        If the file is damaged.
    BudgetError
        If the cap cannot hold what PyArrow takes to open it.
    UsageError
        If PyArrow is not installed.
    """

    work_nbytes = 40 * MB  # to read, decode and free; measured 8 to 30 MB

    def __init__(self, path: Path, what: str, options: IngestOptions, *, parquet: bool) -> None:
        remedy = "Run `pip install 'srs-ooc[arrow]'`, or save the table as CSV or .npy."
        # what Arrow's own pools keep of freed memory would count against the cap: of a library that
        # is loaded already some of its parts have theirs
        os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
        pyarrow = library("pyarrow", what, remedy)
        self._damage = (pyarrow.ArrowInvalid, OSError)
        pyarrow.set_memory_pool(pyarrow.system_memory_pool())
        self.format = "parquet" if parquet else "feather"
        self._path, self._what = path, what
        self._lock = Lock()
        self._check_footer(options)
        with formats.reading(what, f"a {self.format} file", "Get the file again.", self._damage):
            self._open()
        in_memory.check_shape(self.shape, what)
        self.held = self._held(self.shape[1], self._n_groups)

    def _held(self, n_columns: int, n_groups: int) -> tuple[Lease, ...]:
        """Return what PyArrow holds: a footer decoded, or a whole batch, which may be the only one.

        Decoding a footer took 9 to 23 times its size; 2 to 7 times of long names and long texts.
        """
        if self.format == "parquet":
            nbytes = length_of_footer(self._path)
            nbytes = min(24 * nbytes, 5 * nbytes + 3600 * n_columns * n_groups)
        else:
            nbytes = self._path.stat().st_size + 1100 * n_columns
        pyarrow = Lease("PyArrow", 40 * MB)  # and a file open; measured 42, 4 in the program's
        return pyarrow, Lease(f"what PyArrow holds of {self._what}", nbytes)

    def _check_footer(self, options: IngestOptions) -> None:
        """Refuse a cap before a large footer of Parquet is decoded."""
        nbytes = 24 * length_of_footer(self._path)
        if self.format != "parquet" or nbytes <= ingest_memory.LOOK_NBYTES:
            return
        if size := size_of(self._path):
            n_rows, n_columns, n_groups, holds = size
            self.shape, self.text_columns = (n_rows, n_columns), np.array([holds])
            self.held = self._held(n_columns, n_groups)
            in_memory.memory_of(self, options).check(self._what)

    def _open(self) -> None:
        self._parquet: Any = None
        self._n_groups = 1
        if self.format == "parquet":
            from pyarrow import parquet

            self._parquet = parquet.ParquetFile(self._path, pre_buffer=False)
            schema, about = self._parquet.schema_arrow, self._parquet.metadata
            n_rows, self._n_groups = about.num_rows, about.num_row_groups
        else:
            import pyarrow

            with pyarrow.OSFile(str(self._path)) as file:
                reader = pyarrow.ipc.open_file(file)
                schema = reader.schema
            n_rows = self._count_feather()
        self.index_names = [name for name in _index_names(schema) if name in schema.names]
        is_column = [field.name not in self.index_names for field in schema]
        self._fields = np.argsort(is_column, kind="stable")
        fields = [schema.field(i) for i in self._fields.tolist()]
        self.names: list[str] = [field.name for field in fields]
        self._kinds = [field.type for field in fields]
        self.text_columns: NDArray[np.bool_]
        self.text_columns, self.narrow_columns, self._others = in_memory.kinds_of(self._kinds)
        self.narrow = bool(self.narrow_columns.all())
        self.shape = (int(n_rows), len(fields))
        has_index = len(self.index_names) == 1
        self.index = Names(self.shape[0], partial(self._cells, 0)) if has_index else None
        self._texts = self._parquet
        if self._parquet is not None and self.text_columns.any():  # read in pieces, not whole
            how = {"pre_buffer": False, "buffer_size": formats.BLOCK_NBYTES}
            self._texts = parquet.ParquetFile(self._path, metadata=about, **how)

    def _count_feather(self) -> int:
        """Return the rows of a Feather file, of which the first column alone is read."""
        import pyarrow

        first = pyarrow.ipc.IpcReadOptions(use_threads=False, included_fields=[0])
        with pyarrow.OSFile(str(self._path)) as file:
            reader = pyarrow.ipc.open_file(file, options=first)
            return sum(reader.get_batch(i).num_rows for i in range(reader.num_record_batches))

    def _columns(self, positions: list[int]) -> list[Any]:
        """Return columns, looked through for damage that would lead PyArrow out of its memory."""
        names = [self.names[position] for position in positions]
        fields, places = np.unique(self._fields[positions], return_inverse=True)
        with self._reading("".join(names[:1])):
            if self._parquet is None:
                from pyarrow import feather

                table = feather.read_table(
                    self._path, columns=fields.tolist(), memory_map=False, use_threads=False
                )
            else:
                table = self._parquet.read(columns=names, use_threads=False)
            table.validate(full=True)
        if self._parquet is None:
            return [table.column(place) for place in places.tolist()]
        return [table.column(self._place(table.schema, position)) for position in positions]

    def _place(self, schema: Any, position: int) -> int:
        """Return where a column of Parquet is among those read: of a name that repeats all are."""
        name = self.names[position]
        found: list[int] = schema.get_all_field_indices(name)
        return found[len(found) > 1 and self.names[:position].count(name)]

    def _cells(self, position: int) -> Iterator[Any]:
        """Yield the cells of a column, few at a time: texts may be of any length."""
        if self._parquet is None:
            yield from chain.from_iterable(in_memory.item_blocks(self._columns([position])[0]))
            return
        name = self.names[position]
        batches = self._texts.iter_batches(formats.FEW, columns=[name], use_threads=False)
        while True:
            with self._reading(name):
                if (batch := next(batches, None)) is None:
                    return
                batch.validate(full=True)
            yield from batch.column(self._place(batch.schema, position)).to_pylist()

    @contextmanager
    def _reading(self, name: str) -> Iterator[None]:
        expected, remedy = f"column {name!r} and the next", "Get the file again."
        with self._lock, formats.reading(self._what, expected, remedy, self._damage):
            yield  # one file handle

    def read(self, positions: NDArray[np.intp], pool: TextCoder) -> Floats:
        """Return columns, each a row of the result."""
        in_memory.refuse_others(self._what, self.names, self._others, positions, "pyarrow")
        out = np.empty((len(positions), self.shape[0]))
        for start in range(0, len(positions), _COLUMNS):
            some = positions[start : start + _COLUMNS].tolist()
            numbers = iter(self._columns([at for at in some if not self.text_columns[at]]))
            for line, at in zip(out[start:], some, strict=False):
                is_text = bool(self.text_columns[at])
                column = self._cells(at) if is_text else next(numbers)
                what = f"{self._what}, column {self.names[at]!r}"
                in_memory.read_column(line, column, pool, what, is_text=is_text)
        return out

    def items(self, position: int) -> Iterator[list[Any]]:
        """Yield the cells of a column in blocks."""
        return in_memory.item_blocks(self._cells(position))

    def levels(self, position: int) -> list[str] | None:
        """Return the levels of a column that is declared categorical."""
        if getattr(kind := self._kinds[position], "ordered", False):
            return in_memory.levels_of(self._columns([position])[0])
        return [] if str(kind).startswith("dictionary") else None


def _index_names(schema: Any) -> list[str]:
    """Return the names of the columns in which pandas saved the index of a frame."""
    try:
        noted = (schema.pandas_metadata or {}).get("index_columns", [])
    except ValueError:
        return []  # notes that cannot be read are none
    return [name for name in noted if isinstance(name, str)]


# Which format a file is of; formats of other packages, known by how the names of their files end.
#
# An entry point of the group ``srs_ooc.formats`` has the ending, without its dot, for a name, and
# for a value a function ``open(path, scratch, cap_nbytes) -> Table``.

GROUP = "srs_ooc.formats"
Opener = Callable[[Path, Path, int], Table]


_ZIP = b"PK\x03\x04"
_BY_MAGIC: dict[bytes, Callable[[Path, Path, IngestOptions], Table]] = {
    b"\x93NUMPY": lambda path, scratch, options: NpyTable(path, str(path)),
    PARQUET: lambda path, scratch, options: ArrowFile(path, str(path), options, parquet=True),
    FEATHER: lambda path, scratch, options: ArrowFile(path, str(path), options, parquet=False),
    bed.MAGIC: lambda path, scratch, options: genotypes.open_plink(path),
}
"""What opens a file, by its first bytes."""
_DATABASES = (("SQLite", b"SQLite format 3\0", 0), ("DuckDB", b"DUCK", 8))
_TO_CONVERT = {
    rb"\xff{4}": "stream of Arrow: `parquet.write_table(ipc.open_stream(FILE).read_all(), NEW)`",
    rb"\x80[\2-\5]": "pickle, which, if you trust it, `pandas.read_pickle(FILE).to_parquet(NEW)`",
}
_HDF5 = b"\x89HDF\r\n\x1a\n"
_USER_BLOCK = 512
"""HDF5 may begin after so many bytes, as that of MATLAB does."""


def turned(path: Path) -> Path:
    """Return the place in an HDF5 file whose rows are features; any other path as it is."""
    file, inner = place_in(path)
    is_turned = inner.endswith(".T") or not _is_hdf5(_start_of(file))
    return path if is_turned else Path(f"{file}::{inner}.T")


def _is_hdf5(start: bytes) -> bool:
    return _HDF5 in (start[: len(_HDF5)], start[_USER_BLOCK:])


def _start_of(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_USER_BLOCK + len(_HDF5))
    except OSError:
        return b""  # the reader of text tables tells what is wrong with it


def opener_of(
    path: Path, query: str | None = None
) -> Callable[[Path, IngestOptions], Table] | None:
    """Return what opens a file, by its first bytes or its name; None for a text table.

    It is given a folder for what must be unpacked, and the options, whose memory cap formats keep
    that have to be loaded.

    Raises
    ------
    UsageError
        If the package that opens it cannot be imported, or it is no database for a ``query``.
    """
    what, (path, inner) = str(path), place_in(path)
    if isinstance(url := place_of(path), Url):
        from srs_ooc.ingestion.formats import zarr_arrays

        return partial(zarr_arrays.open_folder, url, inner)
    start = _start_of(path)
    for engine, magic, at in _DATABASES:
        if start.startswith(magic, at):
            from srs_ooc.ingestion.formats.databases import QueryTable

            return partial(QueryTable, engine, path)
    if query is not None:
        raise UsageError(
            f"{what}: expected a database of SQLite or DuckDB for --query, found another file. "
            "Leave --query out, or check the path."
        )
    if _is_hdf5(start):
        from srs_ooc.ingestion.formats.hdf5 import open_hdf5

        return lambda scratch, options: open_hdf5(path, inner, scratch, options)
    if start and inner:
        raise InputError(
            f"{what}: expected :: and a path after an HDF5 file, found another. Leave both out."
        )
    for magic, opens in _BY_MAGIC.items():
        if start.startswith(magic):
            return partial(opens, path)
    for magic, found in _TO_CONVERT.items():
        if re.match(magic, start):
            raise InputError(f"{what}: expected a table, found a {found} converts.")
    return _opener_by_name(path, inner, start)


def _opener_by_name(
    path: Path, inner: str, start: bytes
) -> Callable[[Path, IngestOptions], Table] | None:
    what, ending = str(path), path.suffix.removeprefix(".")
    if start and is_svmlight(path):
        return lambda scratch, options: SvmlightTable(path, what, options)
    if ending in places_of(GROUP):
        opener: Opener = part_at(places_of(GROUP)[ending], f"files named .{ending}")
        return lambda scratch, options: opener(path, scratch, int(options.memory_mb * MB))
    if start.startswith(_ZIP) and path.suffix == ".npz":
        return lambda scratch, options: open_npz(path, what, scratch, options)
    if path.is_dir():
        from srs_ooc.ingestion.formats import zarr_arrays

        if inner or zarr_arrays.is_zarr(path):
            return partial(zarr_arrays.open_folder, path, inner)
    return None
