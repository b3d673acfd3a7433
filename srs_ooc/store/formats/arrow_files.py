"""Parquet and Feather (Arrow IPC) files, read a few columns at a time with PyArrow."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.errors import InputError, UsageError
from srs_ooc.store.formats.arrays import check_shape
from srs_ooc.store.formats.frames import column_numbers

PARQUET, FEATHER = b"PAR1", b"ARROW1"


class ArrowFile:
    """A Parquet or Feather file: a ``Table`` read by columns.

    Raises
    ------
    InputError
        If the file is damaged.
    UsageError
        If PyArrow is not installed.
    """

    by_rows = False

    def __init__(self, path: Path, what: str, *, parquet: bool) -> None:
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
        try:
            self._open()
        except self._damage as error:
            raise InputError(
                f"{what}: expected a {self.format} file, could not read it: {error}. "
                "Get the file again."
            ) from error
        check_shape(self.shape, what)

    def _open(self) -> None:
        self._parquet: Any = None
        if self.format == "parquet":
            from pyarrow import parquet

            self._parquet = parquet.ParquetFile(self._path)
            schema, n_rows = self._parquet.schema_arrow, self._parquet.metadata.num_rows
        else:
            import pyarrow

            with pyarrow.OSFile(str(self._path)) as file:
                reader = pyarrow.ipc.open_file(file)
                schema = reader.schema
            n_rows = self._read_feather(schema.names[:1]).num_rows
        self.names: list[str] = list(schema.names)
        self.shape: tuple[int, int] = (int(n_rows), len(schema.names))

    def _read_feather(self, names: list[str]) -> Any:
        from pyarrow import feather

        return feather.read_table(self._path, columns=names, memory_map=False, use_threads=False)

    def _columns(self, names: list[str]) -> Any:
        try:
            if self._parquet is None:
                return self._read_feather(names)
            return self._parquet.read(columns=names, use_threads=False)
        except self._damage as error:
            raise InputError(
                f"{self._what}: could not read column {names[0]!r} or the next: {error}. "
                "Get the file again."
            ) from error

    def read(self, positions: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return columns, each a row of the result."""
        names = [self.names[position] for position in positions.tolist()]
        table = self._columns(names)
        out = np.empty((len(names), self.shape[0]))
        for line, name in zip(out, names, strict=True):
            line[...] = column_numbers(table.column(name), f"{self._what}, column {name!r}")
        return out

    def items(self, position: int) -> list[Any]:
        """Return the cells of a column."""
        name = self.names[position]
        return list(self._columns([name]).column(name).to_pylist())
