"""Files that are no text tables: opening one, and NumPy's, svmlight, Parquet and Feather."""

import io
import lzma
import os
import shutil
import zipfile
import zlib
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.arrays import Indices, Reals
from srs_ooc.base.budget import Lease
from srs_ooc.base.errors import InputError, UsageError, unfit
from srs_ooc.base.frames import library
from srs_ooc.base.options import part_at, places_of
from srs_ooc.base.text import MB
from srs_ooc.base.urls import Url, place_of
from srs_ooc.ingestion import formats, ingest_memory, sources
from srs_ooc.ingestion.csv import parse_decimal
from srs_ooc.ingestion.formats import Format, Items, Names, Table, TextCoder, in_memory
from srs_ooc.ingestion.ingest_options import IngestOptions
from srs_ooc.ingestion.scratch import check_disk
from srs_ooc.ingestion.sources import START_NBYTES, PieceReader, SourceFile, place_in

# A file that is opened, by what its format is.
#
# An entry point of the group ``srs_ooc.formats`` has the ending, without its dot, for a name, and
# for a value a function ``open(path, scratch, cap_nbytes) -> Table``.

GROUP = "srs_ooc.formats"
Opener = Callable[[Path, IngestOptions], Table]
Known = tuple[Format, str, str]


@dataclass(frozen=True)
class File:
    """A file to be opened: what a reader of :data:`FORMATS` is given; its text is its name.

    Attributes
    ----------
    format : Format
        What it is.
    path, inner : path or URL, and str
        Where it is, and what within it is asked for, if anything.
    scratch : Path
        A folder for what must be unpacked.
    options : IngestOptions
        With the memory cap and the query.
    """

    format: Format
    path: Any
    inner: str
    scratch: Path
    options: IngestOptions

    def __str__(self) -> str:
        return f"{self.path}::{self.inner}" if self.inner else str(self.path)

    def library(self) -> Any:
        """Return the module that its format needs; a ``UsageError`` where it is not installed."""
        return library(self.format.needs, str(self), formats.REMEDIES[self.format.needs])

    def scratch_file(self, name: str, nbytes: int) -> Path:
        """Return the path of a scratch file, for which the disk has room, or a ``StoreError``."""
        check_disk(self.scratch.parent, nbytes, 0)
        return self.scratch / name

    def check(self, table: Table) -> None:
        """Refuse a cap that cannot hold the ingest of a table, by a ``BudgetError``."""
        in_memory.memory_of(table, self.options).check(self)


_TURNED = ("HDF5", "MatrixMarket")


def turned(path: Path) -> Path:
    """Return the place in a file of matrices whose rows are features; any other path as it is."""
    file, inner = place_in(path)
    known = format_of(file)
    is_turned = inner.endswith(".T") or known is None or known.name not in _TURNED
    return path if is_turned else Path(f"{file}::{inner}.T")


def together(tables: Sequence[Any]) -> Sequence[Any]:
    """Return tables, but one place for several matrices of 10x, which are samples."""
    paths = [Path(one) for one in tables if isinstance(one, str | Path)]
    is_one = (known_of(one)[0].reader.endswith("MtxTable") for one in paths)
    if not 1 < len(paths) == len(tables) or not all(is_one):
        return tables
    others = "|".join(os.path.relpath(one, paths[0].parent) for one in paths[1:])
    return [Path(f"{paths[0]}::{others}")]


def known_of(path: Path, inner: str = "") -> Known:
    """Return what a file is, by what it is known, and how it is packed (``gz``), if it is."""
    packing, start, text = sources.beginnings_of(path)
    for one in formats.FORMATS:
        if why := one.fits(path, start[:START_NBYTES], text, inner):
            return one, why, packing
    return formats.TEXT, "", packing


def format_of(path: Path, inner: str = "") -> Format | None:
    """Return what a file is that has a reader; None if it is a text table, or nothing reads it."""
    known = known_of(path, inner)[0]
    return known if known.reader not in ("", formats.TEXT.reader) else None


def opener_of(path: Path, query: str | None = None, known_as: Known | None = None) -> Opener | None:
    """Return what opens a file, as it is known or known as; None for a text table.

    It is given a folder for what must be unpacked, and the options, whose memory cap formats keep
    that have to be loaded.

    Raises
    ------
    UsageError
        If the package that opens it cannot be imported, or it is no database for a ``query``.
    InputError
        With what unpacks or converts it, if nothing reads it as it is.
    """
    what, (file, inner) = str(path), place_in(path)
    if isinstance(url := place_of(file), Url):
        zarr = next(one for one in formats.FORMATS if one.name == "Zarr")
        return partial(_opened, zarr, url, inner)
    known, _, packing = known_as or known_of(file, inner)
    if query is not None and known.also != "query":
        engines = " or ".join(one.name for one in formats.FORMATS if one.also == "query")
        raise UsageError(
            f"{what}: expected a database of {engines} for --query, found another file. "
            "Leave --query out, or check the path."
        )
    if inner and file.is_file() and known.also != "path":
        others = ", ".join(dict.fromkeys(one.name for one in formats.FORMATS if one.also == "path"))
        expected = f":: and a name after a file of {others}"
        raise unfit(what, expected, known.name, "Leave both out.")
    if known.reader not in ("", formats.TEXT.reader) and not (packing and known.magic):
        return partial(_opened, known, file, inner)
    outside = places_of(GROUP)
    if (ending := file.suffix.removeprefix(".")) not in outside:
        if packing and known.magic:
            how = formats.PACKED[packing]
            raise unfit(what, known.name, how, f"Unpack it: `{how} -dc FILE > NEW`.")
        if not known.reader:
            raise unfit(what, "a kind of file that is read", known.name, known.remedy)
        return None
    opens: Callable[[Path, Path, int], Any] = part_at(outside[ending], f"files named .{ending}")

    def opened(scratch: Path, options: IngestOptions) -> Table:
        return in_memory.open_object(opens(file, scratch, int(options.memory_mb * MB)))

    return opened


def _opened(known: Format, path: Any, inner: str, scratch: Path, options: IngestOptions) -> Table:
    file = File(known, path, inner, scratch, options)
    reader: Callable[[File], Table] = part_at(f"{formats.__name__}.{known.reader}", str(file))
    return reader(file)


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

    def __init__(self, file: File, unpacked: Path | None = None) -> None:
        path, what = unpacked or file.path, str(file)
        shape, self._dtype, is_fortran, self._offset = in_memory.read_header(path, what)
        in_memory.settle_matrix(self, shape, self._dtype, what)
        # Of one row or column both orders are the same.
        self.by_rows = not is_fortran or shape[0] == 1
        self._path, self._what = path, what
        self.cell_nbytes = 4 if self.narrow else 8

    def read(self, positions: Indices, pool: TextCoder) -> Reals:
        """Return rows or columns, as ``by_rows`` says, each a row of the result."""
        return in_memory.as_floats(self._lines(positions), self._what)

    def items(self, position: int) -> Iterator[list[Any]]:
        """Yield the cells of a column in blocks."""
        n_rows, n_columns = self.shape
        if not self.by_rows:
            yield from in_memory.item_blocks(self._lines(np.array([position]))[0])
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
                yield self._lines(rows)[:, position].tolist()

    def _lines(self, positions: Indices) -> NDArray[Any]:
        cells, n_items = (self._path, self._dtype, self._offset), self.shape[int(self.by_rows)]
        return in_memory.read_lines(*cells, n_items, positions, self._what)


def open_npz(file: File) -> Table:
    """Return the table in a ``.npz`` file: a SciPy sparse matrix, or its one (or main) matrix.

    A dense matrix is unpacked into scratch, with the arrays that are as long as it has rows, which
    are annotations: row ids are ``ids`` and the target ``y``, where nothing else is said. Those of
    columns are ``names``. A sparse matrix is loaded.

    Raises
    ------
    InputError
        If it is damaged, or holds several matrices, none of them named X or after ``::``.
    BudgetError
        If a sparse matrix does not fit under the cap.
    StoreError
        If there is no room on the disk to unpack it.
    """
    what, remedy = str(file), "Get the file again."
    damage = formats.reading(what, "a .npz file", remedy, _BAD_ARCHIVE, "found damage")
    with damage, zipfile.ZipFile(file.path) as archive:
        sizes = {entry.filename.removesuffix(".npy"): entry for entry in archive.infolist()}
        if sizes.keys() >= _SPARSE_KEYS:
            n_bytes = sum(entry.file_size for entry in sizes.values())
            return _open_sparse(file, n_bytes, _shape_of(archive, what))
        keys, shapes = list(sizes), {key: _shape_in(archive, one) for key, one in sizes.items()}
        matrices = keys if len(keys) == 1 else [one for one in keys if len(shapes[one]) == 2]
        main = file.inner or next((one for one in _MAIN_KEYS if one in sizes), "")
        if (main := main or (matrices[0] if len(matrices) == 1 else "")) not in sizes:
            expected = f"one matrix, or one named {file.inner or 'X'}"
            found = ", ".join(key[:40] for key in keys[:_SHOWN]) + ", ..." * (len(keys) > _SHOWN)
            raise unfit(what, expected, found, "Name one, FILE::NAME, or save it alone.")

        def unpacked(key: str) -> Path:
            copy = file.scratch_file(f"array-{keys.index(key)}.npy", sizes[key].file_size)
            with archive.open(sizes[key]) as packed, copy.open("wb") as out:
                shutil.copyfileobj(packed, out, 1 << 18)
            return copy

        def items(key: str) -> Items:
            read = partial(in_memory.npy_items, unpacked(key), f"{file}, {key!r}")
            return Items(shapes[key][0], lambda some: read()[some])

        table = NpyTable(file, unpacked(main))
        in_memory.take_beside(table, {one: shapes[one] for one in keys if one != main}, items)
    return table


def _shape_in(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> tuple[int, ...]:
    """Return the shape of an array, and that of a single number for what is none."""
    with suppress(*in_memory.BAD_HEADER, *_BAD_ARCHIVE), archive.open(entry) as file:
        return tuple(map(int, in_memory.HEADERS[np.lib.format.read_magic(file)](file)[0]))
    return ()


def _shape_of(archive: zipfile.ZipFile, what: str) -> tuple[int, int]:
    """Return the dimensions of a sparse matrix, for each of which SciPy keeps places."""
    with archive.open("shape.npy") as file:
        data = file.read(1 << 12)
    shape = np.zeros(0)
    with suppress(*in_memory.BAD_HEADER):
        shape = np.load(io.BytesIO(data), allow_pickle=False)
    if shape.shape != (2,) or shape.dtype.kind not in "iu":
        raise unfit(what, "a sparse matrix of rows and columns", "a shape that is none")
    return max(0, int(shape[0])), max(0, int(shape[1]))


SCIPY_NBYTES = 20 * MB  # SciPy's sparse matrices, loaded; measured 17 MB
_LOADING_NBYTES = 40 * MB  # SciPy, and what it takes while it loads a matrix


def _open_sparse(file: File, nbytes: int, shape: tuple[int, int]) -> Table:
    what, nbytes = str(file), nbytes + 24 * max(shape)
    held = (Lease("SciPy", SCIPY_NBYTES), Lease("cells by columns", nbytes))
    both = Lease("cells as stored and by columns, SciPy", 2 * nbytes + _LOADING_NBYTES)
    lines = ingest_memory.lines_lease(shape[0], in_memory.SparseTable.work_nbytes)
    file.options.memory(shape[1], shape[0], (*held, lines), (both,)).check(what)
    import scipy.sparse

    try:
        matrix = scipy.sparse.load_npz(file.path)
    except (*in_memory.BAD_HEADER, *_BAD_ARCHIVE) as error:
        expected = "a sparse matrix saved by SciPy"
        raise unfit(what, expected, "arrays that cannot be read") from error
    table = in_memory.SparseTable(matrix, what)
    table.held, table.opening = held, (both,)
    return table


# svmlight (libsvm) files: on each line a target and the cells that are not zero.
#
# The cells are held as a sparse matrix, so that memory follows how many there are.

_CHECK_ROWS = 1024


class SvmlightTable(in_memory.SparseTable):
    """A svmlight file, plain or compressed, as a sparse matrix; the targets stand beside it.

    Indices begin at 1, or at 0 if the file has a 0.

    Raises
    ------
    InputError
        If a line cannot be read.
    BudgetError
        If the cap cannot hold the cells.
    """

    format = "svmlight"
    default_target = "label"

    def __init__(self, file: File) -> None:
        self._options = file.options
        self.annotations: dict[str, list[str]] = {"label": []}
        self._indices, self._values, self._ends = array("q"), array("d"), array("q", [0])
        self._n_rows = self._n_cells = self._highest = 0
        self._lowest, self._holds = 1, True
        for number, line in enumerate(lines_in(PieceReader(SourceFile(file.path))), 1):
            self._take(line.partition(b"#")[0].split(), f"{file}, line {number}")
        if not self._n_cells:
            raise InputError(f"{file}: expected lines of a target and index:value, found none.")
        first = min(1, self._lowest)
        self._memory(shape := (self._n_rows, self._highest - first + 1)).check(file)
        from scipy import sparse

        values, ends = np.frombuffer(self._values), np.frombuffer(self._ends, np.int64)
        indices = np.frombuffer(self._indices, np.int64) - first
        super().__init__(sparse.csr_array((values, indices, ends), shape=shape), str(file))
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
                expected = "index:value with a finite number and ascending indices"
                raise unfit(where, expected, repr(text), "Mend the line.")
            self._lowest = min(self._lowest, int(index))
            last = int(index)
            if self._holds:
                self._indices.append(last)
                self._values.append(number)
        self._highest, self._n_cells = max(self._highest, last), self._n_cells + len(cells)
        self._n_rows += 1
        if self._holds:
            self._ends.append(len(self._indices))
            self.annotations["label"].append(fields[0].decode("utf-8", "replace"))
            is_due, shape = self._n_rows % _CHECK_ROWS == 1, (self._n_rows, self._highest + 1)
            if is_due and not self._memory(shape).fits:  # only count from here on
                self._holds, self.annotations = False, {"label": []}
                self._indices, self._values, self._ends = array("q"), array("d"), array("q")

    def _memory(self, shape: tuple[int, int]) -> ingest_memory.IngestMemory:
        n_cells, labels = self._n_cells, 80 * self._n_rows
        cells = Lease("cells", 16 * n_cells + labels + 8 * shape[1])
        self.held = (Lease("SciPy", SCIPY_NBYTES), cells)
        # row by row, column by column, and one of them growing
        loading = _LOADING_NBYTES + 3 * 12 * n_cells + labels
        self.opening = (Lease("SciPy and the cells", loading),)
        self.shape = shape
        return in_memory.memory_of(self, self._options)


def lines_in(pieces: PieceReader) -> Iterator[bytes]:
    """Yield the lines of a text, without their ends."""
    parts = list[bytes]()  # of a line, which may be as long as the file
    for piece in pieces.pieces():
        first, *others = piece.split(b"\n")
        parts.append(first)
        for line in others:
            yield b"".join(parts)
            parts = [line]
    if last := b"".join(parts):
        yield last


# Parquet and Feather (Arrow IPC) files, read a few columns at a time with PyArrow; first the size
# of a Parquet file, from the beginning of its footer, before PyArrow decodes all of it.
#
# The footer is a structure in Thrift's compact protocol: a version, the list of the columns'
# schemas, the number of rows, and then the bulk, which is not looked at. Schemas hold no lists.

_END = 8  # bytes of the footer's length, and of the magic
_SCHEMA, _N_ROWS, _GROUPS = 2, 3, 4
_TEXTS = b"\x15\x0c"  # as a column's schema begins that holds bytes
_BOOLEANS, _BYTE, _BINARY, _STRUCT = (1, 2), 3, 8, 12
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
    n_columns, n_rows, holds = 0, 0, False
    try:
        for number, kind in _fields(footer):
            if number == _SCHEMA and kind in _LISTS:
                n_columns = _n_items(footer) - 1  # but for the root
                for _ in range(n_columns + 1):
                    holds |= footer.read(2) == _TEXTS
                    footer.seek(-2, 1)
                    _skip(footer, _STRUCT, 1)
            elif number == _N_ROWS and kind in _VARINTS:
                n_rows = _varint(footer) >> 1
            elif number == _GROUPS and kind in _LISTS:
                return n_rows, n_columns, _n_items(footer), holds
            else:
                _skip(footer, kind, 0)
    except (IndexError, OverflowError, ValueError):
        pass  # PyArrow says what is wrong with it
    return None


def _fields(footer: io.BytesIO) -> Iterator[tuple[int, int]]:
    """Yield number and kind of each field of a structure; who asks reads it, or skips it."""
    number = 0
    while head := footer.read(1)[0]:
        number = number + (head >> 4) if head >> 4 else _varint(footer) >> 1
        yield number, head & 0x0F


def _varint(footer: io.BytesIO) -> int:
    value = 0
    for shift in range(0, 64, 7):
        byte = footer.read(1)[0]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value
    raise ValueError("no number of 64 bits")


def _n_items(footer: io.BytesIO) -> int:
    """Return how many items a list has, which begins there."""
    n_items = footer.read(1)[0] >> 4
    return _varint(footer) if n_items == 0x0F else n_items


def _skip(footer: io.BytesIO, kind: int, depth: int) -> None:
    if depth > _DEEPEST:
        raise ValueError("nested too deeply")
    if kind in _VARINTS:
        _varint(footer)
    elif kind in (_BYTE, _BINARY):
        footer.seek(1 if kind == _BYTE else _varint(footer), 1)
    elif kind == _STRUCT:
        for _, inner in _fields(footer):
            _skip(footer, inner, depth + 1)
    elif kind not in _BOOLEANS:
        raise ValueError("a kind that is not used here")


_COLUMNS = 1024  # that are read at a time: each takes PyArrow 5 kB, however few rows there are


class ArrowFile(in_memory.FrameTable):
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
    _library = "pyarrow"

    def __init__(self, file: File) -> None:
        # what Arrow's own pools keep of freed memory would count against the cap: of a library that
        # is loaded already some of its parts have theirs
        os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
        pyarrow = file.library()
        self._damage = (pyarrow.ArrowInvalid, OSError)
        pyarrow.set_memory_pool(pyarrow.system_memory_pool())
        self.format, self._lock = file.format.name.lower(), Lock()
        self._path, self._what = file.path, (what := str(file))
        length = 24 * length_of_footer(self._path) if self.format == "parquet" else 0
        if length > ingest_memory.LOOK_NBYTES and (size := size_of(self._path)):
            n_rows, n_columns, n_groups, holds = size  # refused before all of it is decoded
            self.shape, self.text_columns = (n_rows, n_columns), np.array([holds])
            self.held = self._held(n_columns, n_groups)
            file.check(self)
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

            # of the batches the first column alone is read
            first = pyarrow.ipc.IpcReadOptions(use_threads=False, included_fields=[0])
            with pyarrow.OSFile(str(self._path)) as file:
                schema = pyarrow.ipc.open_file(file).schema
                reader = pyarrow.ipc.open_file(file, options=first)
                n_rows = sum(reader.get_batch(i).num_rows for i in range(reader.num_record_batches))
        noted: list[Any] = ["__index_level_0__"]  # of pandas, though the note be lost
        with suppress(ValueError):  # notes that cannot be read are none
            noted = (schema.pandas_metadata or {}).get("index_columns", noted)
        self.index_names: list[str] = [one for one in noted if one in schema.names]
        is_column = [field.name not in self.index_names for field in schema]
        self._fields = np.argsort(is_column, kind="stable")
        fields = [schema.field(i) for i in self._fields.tolist()]
        self._describe([field.name for field in fields], [field.type for field in fields])
        self.shape = (int(n_rows), len(fields))
        self._texts = self._parquet
        if self._parquet is not None and self.text_columns.any():  # read in pieces, not whole
            how = {"pre_buffer": False, "buffer_size": formats.BLOCK_NBYTES}
            self._texts = parquet.ParquetFile(self._path, metadata=about, **how)

    def _whole(self, positions: list[int]) -> list[Any]:
        """Return columns, looked through for damage that would lead PyArrow out of its memory."""
        names = [self.names[position] for position in positions]
        with self._reading("".join(names[:1])):
            if self._parquet is None:
                from pyarrow import feather

                fields, places = np.unique(self._fields[positions], return_inverse=True)
                how = {"columns": fields.tolist(), "memory_map": False, "use_threads": False}
                table, at = feather.read_table(self._path, **how), places.tolist()
            else:
                table = self._parquet.read(columns=names, use_threads=False)
                at = [self._place(table.schema, position) for position in positions]
            table.validate(full=True)
        return [table.column(place) for place in at]

    def _place(self, schema: Any, position: int) -> int:
        """Return where a column of Parquet is among those read: of a name that repeats all are."""
        name = self.names[position]
        found: list[int] = schema.get_all_field_indices(name)
        return found[len(found) > 1 and self.names[:position].count(name)]

    def _cells(self, position: int) -> Iterator[Any]:
        """Yield the cells of a column, few at a time: texts may be of any length."""
        if self._parquet is None:
            yield from chain.from_iterable(in_memory.item_blocks(self._whole([position])[0]))
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

    def _columns(self, positions: list[int]) -> Iterator[Any]:
        for start in range(0, len(positions), _COLUMNS):
            some = positions[start : start + _COLUMNS]
            numbers = iter(self._whole([at for at in some if not self.text_columns[at]]))
            yield from (self._cells(at) if self.text_columns[at] else next(numbers) for at in some)

    @property
    def index(self) -> Names | None:
        """The index of a frame that pandas saved, if it has one column."""
        return Names(self.shape[0], partial(self._cells, 0)) if len(self.index_names) == 1 else None

    def items(self, position: int) -> Iterator[list[Any]]:
        """Yield the cells of a column in blocks."""
        return in_memory.item_blocks(self._cells(position))

    def levels(self, position: int) -> list[str] | None:
        """Return the levels of a column that is declared categorical."""
        if getattr(kind := self._kinds[position], "ordered", False):
            return in_memory.levels_of(self._whole([position])[0])
        return [] if str(kind).startswith("dictionary") else None
