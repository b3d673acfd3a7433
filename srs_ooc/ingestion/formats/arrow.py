"""Parquet and Feather (Arrow IPC) files, read a few columns at a time with PyArrow."""

from collections.abc import Iterator
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.budget import Lease
from srs_ooc.base.errors import InputError, UsageError
from srs_ooc.base.text import MB
from srs_ooc.ingestion.formats import TextCoder
from srs_ooc.ingestion.formats.in_memory import (
    are_narrow,
    are_texts,
    check_shape,
    item_blocks,
    line_nbytes,
    read_column,
)
from srs_ooc.ingestion.ingest_memory import LOOK_NBYTES, Needs
from srs_ooc.ingestion.ingest_options import IngestOptions

# The size of a Parquet file, from the beginning of its footer, before PyArrow decodes all of it.
#
# The footer is a structure in Thrift's compact protocol: a version, the list of the columns'
# schemas, the number of rows, and then the bulk, which is not looked at.

_END_NBYTES = 8  # the footer's length, and the magic bytes
_SCHEMA, _N_ROWS = 2, 3
_BOOLEANS, _BYTE, _DOUBLE, _BINARY, _STRUCT = (1, 2), 3, 7, 8, 12
_VARINTS, _LISTS = (4, 5, 6), (9, 10)
_DEEPEST = 8


def footer_nbytes(path: Path) -> int:
    """Return the length of the footer as the file says, at most that of the file."""
    nbytes = path.stat().st_size
    with path.open("rb") as file:
        file.seek(-min(_END_NBYTES, nbytes), 2)
        return min(int.from_bytes(file.read(4), "little"), nbytes)


def size_of(path: Path) -> tuple[int, int] | None:
    """Return the rows and columns of a file; None if its footer cannot be read so."""
    nbytes = footer_nbytes(path)
    with path.open("rb") as file:
        file.seek(-min(nbytes + _END_NBYTES, path.stat().st_size), 2)
        data = file.read(nbytes)
    try:
        return _Footer(data).size()
    except (IndexError, ValueError):
        return None  # PyArrow says what is wrong with it


class _Footer:
    """Reads the fields of the outermost structure up to the number of rows."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def size(self) -> tuple[int, int]:
        number, n_columns = 0, 0
        while True:
            number, kind = self._field(number)
            if number == _SCHEMA and kind in _LISTS:
                begin = self._at
                n_columns = self._list_header()[0] - 1  # but for the root
                self._at = begin
            if number == _N_ROWS and kind in _VARINTS:
                n_rows = self._varint() >> 1
                return n_rows, n_columns
            self._skip(kind, 0)

    def _byte(self) -> int:
        self._at += 1
        return self._data[self._at - 1]

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
            if shift > 63:
                raise ValueError("no number of 64 bits")

    def _field(self, before: int) -> tuple[int, int]:
        head = self._byte()
        if not head:
            raise ValueError("the structure ends before the number of rows")
        number = before + (head >> 4) if head >> 4 else self._varint() >> 1
        return number, head & 0x0F

    def _list_header(self) -> tuple[int, int]:
        head = self._byte()
        n_items = head >> 4
        return (self._varint() if n_items == 0x0F else n_items), head & 0x0F

    def _skip(self, kind: int, depth: int) -> None:
        if depth > _DEEPEST:
            raise ValueError("nested too deeply")
        if kind in _BOOLEANS:
            return
        if kind in _VARINTS:
            self._varint()
        elif kind == _BYTE:
            self._at += 1
        elif kind == _DOUBLE:
            self._at += 8
        elif kind == _BINARY:
            nbytes = self._varint()
            self._at += nbytes
        elif kind in _LISTS:
            n_items, of = self._list_header()
            for _ in range(n_items):
                # a boolean of a list takes a byte, one of a structure none
                self._skip(_BYTE if of in _BOOLEANS else of, depth + 1)
        elif kind == _STRUCT:
            self._skip_fields(depth)
        else:
            raise ValueError("a kind that is not used here")

    def _skip_fields(self, depth: int) -> None:
        while head := self._byte():
            if not head >> 4:
                self._varint()
            self._skip(head & 0x0F, depth + 1)


PARQUET, FEATHER = b"PAR1", b"ARROW1"
_LIBRARY_NBYTES = 32 * MB  # PyArrow, loaded; measured 29 to 34 MB, of which 4 are in the program's
_FOOTER_FACTOR = 24  # what decoding a footer of Parquet took, 12 to 23 times its size
_FEATHER_NBYTES_PER_COLUMN = 1100  # as measured
_COLUMNS = 2048  # that are read at a time: each takes PyArrow 5 kB, however few rows there are
_WORK_NBYTES = 40 * MB  # PyArrow reads, decodes and frees; measured 8 to 30 MB


class ArrowFile:
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

    by_rows = False
    work_nbytes = _WORK_NBYTES
    pool: TextCoder | None = None

    def __init__(self, path: Path, what: str, options: IngestOptions, *, parquet: bool) -> None:
        try:
            import pyarrow
        except ImportError:
            raise UsageError(
                f"{what}: reading Parquet and Feather takes PyArrow, which is not installed. "
                "Run `pip install 'srs-ooc[arrow]'`, or save the table as CSV or .npy."
            ) from None
        self._damage = (pyarrow.ArrowInvalid, OSError)
        # what Arrow's own pools keep of freed memory would count against the cap
        pyarrow.set_memory_pool(pyarrow.system_memory_pool())
        self.format = "parquet" if parquet else "feather"
        self._path, self._what = path, what
        self._lock = Lock()
        self._check_footer(options)
        try:
            self._open()
        except self._damage as error:
            raise InputError(
                f"{what}: expected a {self.format} file, could not read it: {_one_line(error)}. "
                "Get the file again."
            ) from error
        check_shape(self.shape, what)
        self.held = self._held(self.shape[1])

    def _held(self, n_columns: int) -> tuple[Lease, ...]:
        """Return what PyArrow holds of a file.

        It reads a record batch of Feather whole, whatever the columns asked for, and it may be the
        only one.
        """
        nbytes = self._path.stat().st_size + _FEATHER_NBYTES_PER_COLUMN * n_columns
        if self.format == "parquet":
            nbytes = _FOOTER_FACTOR * footer_nbytes(self._path)
        return Lease("PyArrow", _LIBRARY_NBYTES), Lease(
            f"what PyArrow holds of {self._what}", nbytes
        )

    def _check_footer(self, options: IngestOptions) -> None:
        """Refuse a cap before a large footer of Parquet is decoded."""
        large = _FOOTER_FACTOR * footer_nbytes(self._path) > LOOK_NBYTES
        if self.format == "parquet" and large and (size := size_of(self._path)):
            lines = line_nbytes(size, by_rows=False) + self.work_nbytes
            held = (*self._held(size[1]), Lease("lines on their way", lines))
            Needs.of(options, size[1], size[0], held).check(options.memory_nbytes, self._what)

    def _open(self) -> None:
        self._parquet: Any = None
        if self.format == "parquet":
            from pyarrow import parquet

            self._parquet = parquet.ParquetFile(self._path, pre_buffer=False)
            schema, n_rows = self._parquet.schema_arrow, self._parquet.metadata.num_rows
        else:
            import pyarrow

            with pyarrow.OSFile(str(self._path)) as file:
                reader = pyarrow.ipc.open_file(file)
                schema = reader.schema
            n_rows = self._count_feather()
        self.index_names = [name for name in _index_names(schema) if name in schema.names]
        is_column = [field.name not in self.index_names for field in schema]
        fields = [schema.field(i) for i in np.argsort(is_column, kind="stable").tolist()]
        self.names: list[str] = [field.name for field in fields]
        self.text_columns: NDArray[np.bool_] | None = are_texts(f.type for f in fields)
        self.narrow = are_narrow(f.type for f in fields)
        self.shape: tuple[int, int] = (int(n_rows), len(fields))

    def _count_feather(self) -> int:
        """Return the rows of a Feather file, of which the first column alone is read."""
        import pyarrow

        first = pyarrow.ipc.IpcReadOptions(use_threads=False, included_fields=[0])
        with pyarrow.OSFile(str(self._path)) as file:
            reader = pyarrow.ipc.open_file(file, options=first)
            return sum(reader.get_batch(i).num_rows for i in range(reader.num_record_batches))

    def _read_feather(self, names: list[str]) -> Any:
        from pyarrow import feather

        return feather.read_table(self._path, columns=names, memory_map=False, use_threads=False)

    def _columns(self, names: list[str]) -> Any:
        """Return columns, looked through for damage that would lead PyArrow out of its memory."""
        try:
            if self._parquet is None:
                table = self._read_feather(names)
            else:
                table = self._parquet.read(columns=names, use_threads=False)
            table.validate(full=True)
        except self._damage as error:
            raise InputError(
                f"{self._what}: could not read column {names[0]!r} or the next: "
                f"{_one_line(error)}. Get the file again."
            ) from error
        return table

    def read(self, positions: NDArray[np.intp], pool: TextCoder) -> NDArray[np.float64]:
        """Return columns, each a row of the result."""
        out = np.empty((len(positions), self.shape[0]))
        for start in range(0, len(positions), _COLUMNS):
            some = slice(start, start + _COLUMNS)
            self._read_some(out[some], positions[some], pool)
        return out

    def _read_some(
        self, out: NDArray[np.float64], positions: NDArray[np.intp], pool: TextCoder
    ) -> None:
        names = [self.names[position] for position in positions.tolist()]
        with self._lock:  # one file handle
            table = self._columns(names)
        assert self.text_columns is not None
        are_text = self.text_columns[positions].tolist()
        for line, name, is_text in zip(out, names, are_text, strict=True):
            what = f"{self._what}, column {name!r}"
            read_column(line, table.column(name), pool, what, is_text=is_text)

    def items(self, position: int) -> Iterator[list[Any]]:
        """Yield the cells of a column in blocks."""
        name = self.names[position]
        return item_blocks(self._columns([name]).column(name))


def _index_names(schema: Any) -> list[str]:
    """Return the names of the columns in which pandas saved the index of a frame."""
    try:
        noted = (schema.pandas_metadata or {}).get("index_columns", [])
    except ValueError:
        return []  # notes that cannot be read are none
    return [name for name in noted if isinstance(name, str)]


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()).rstrip(".")
