"""Parquet and Feather (Arrow IPC) files, read a few columns at a time with PyArrow."""

from collections.abc import Iterator
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.budget import resident_nbytes
from srs_ooc.base.errors import BudgetError, InputError, UsageError
from srs_ooc.base.sizes import MB, megabytes
from srs_ooc.ingestion.formats.arrays import check_shape
from srs_ooc.ingestion.formats.frames import are_narrow, are_texts, read_column
from srs_ooc.ingestion.labels import item_blocks
from srs_ooc.ingestion.texts import TextCoder

PARQUET, FEATHER = b"PAR1", b"ARROW1"
_WORK_NBYTES = 40 * MB  # PyArrow reads, decodes and frees; measured 8 to 30 MB at 20,000 columns


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

    def __init__(self, path: Path, what: str, cap: int, *, parquet: bool) -> None:
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
        self._check_cap(cap)
        try:
            self._open()
        except self._damage as error:
            raise InputError(
                f"{what}: expected a {self.format} file, could not read it: {_one_line(error)}. "
                "Get the file again."
            ) from error
        check_shape(self.shape, what)

    def _check_cap(self, cap: int) -> None:
        """Refuse a cap that opening the file would break.

        PyArrow reads a record batch of Feather whole, whatever the columns asked for, and it may be
        the only one; of Parquet it decodes the footer, which took 4 times its size.
        """
        nbytes = self._path.stat().st_size
        if self.format == "parquet":
            with self._path.open("rb") as file:
                file.seek(-min(8, nbytes), 2)
                nbytes = 4 * min(int.from_bytes(file.read(4), "little"), nbytes)
        least = resident_nbytes() + nbytes + self.work_nbytes
        if least > cap:
            raise BudgetError(
                f"--memory-mb {megabytes(cap):g} cannot hold the reading of {self._what} with "
                f"PyArrow: the program itself and {megabytes(nbytes):g} MB for the file take "
                f"--memory-mb {least // MB + 1}, and the table a little more. Give it, or save the "
                f"table as {'CSV' if self.format == 'parquet' else 'Parquet'} or .npy."
            )

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
            n_rows = self._read_feather(schema.names[:1]).num_rows
        self.index_names = [name for name in _index_names(schema) if name in schema.names]
        is_column = [field.name not in self.index_names for field in schema]
        fields = [schema.field(i) for i in np.argsort(is_column, kind="stable").tolist()]
        self.names: list[str] = [field.name for field in fields]
        self.text_columns: NDArray[np.bool_] | None = are_texts(f.type for f in fields)
        self.narrow = are_narrow(f.type for f in fields)
        self.shape: tuple[int, int] = (int(n_rows), len(fields))

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
        names = [self.names[position] for position in positions.tolist()]
        with self._lock:  # one file handle
            table = self._columns(names)
        out = np.empty((len(names), self.shape[0]))
        assert self.text_columns is not None
        are_text = self.text_columns[positions].tolist()
        for line, name, is_text in zip(out, names, are_text, strict=True):
            what = f"{self._what}, column {name!r}"
            read_column(line, table.column(name), pool, what, is_text=is_text)
        return out

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
