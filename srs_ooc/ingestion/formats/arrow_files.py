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
from srs_ooc.ingestion.formats.arrays import check_shape
from srs_ooc.ingestion.formats.frames import are_narrow, are_texts, read_column
from srs_ooc.ingestion.formats.parquet_footer import footer_nbytes, size_of
from srs_ooc.ingestion.labels import item_blocks
from srs_ooc.ingestion.needs import LOOK_NBYTES, Needs
from srs_ooc.ingestion.options import IngestOptions
from srs_ooc.ingestion.table_needs import line_nbytes
from srs_ooc.ingestion.texts import TextCoder

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
