"""pandas and polars frames and Arrow tables in memory; none of them is imported here."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.errors import InputError
from srs_ooc.store.formats.arrays import check_shape
from srs_ooc.store.formats.numbers import as_float64

FRAMES = {"pandas": "DataFrame", "polars": "DataFrame", "pyarrow": "Table"}


def frame_library(thing: object) -> str | None:
    """Return the library that a frame is of; None if it is no frame."""
    for kind in type(thing).__mro__:
        library = kind.__module__.split(".")[0]
        if FRAMES.get(library) == kind.__name__:
            return library
    return None


class FrameTable:
    """A frame read by columns; the library is told by the frame itself."""

    by_rows = False
    work_nbytes = 0

    def __init__(self, frame: Any, what: str) -> None:
        self.format = str(frame_library(frame))
        self._frame, self._what = frame, what
        self.shape: tuple[int, int] = (int(frame.shape[0]), int(frame.shape[1]))
        check_shape(self.shape, what)
        names = frame.column_names if self.format == "pyarrow" else frame.columns
        self.names: list[str] | None = [str(name) for name in names]

    def _column(self, position: int) -> Any:
        if self.format == "pandas":
            return self._frame.iloc[:, position]
        if self.format == "polars":
            return self._frame.to_series(position)
        return self._frame.column(position)

    def read(self, positions: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return columns, each a row of the result."""
        assert self.names is not None
        out = np.empty((len(positions), self.shape[0]))
        for line, position in zip(out, positions.tolist(), strict=True):
            column = self._column(position)
            line[...] = column_numbers(column, f"{self._what}, column {self.names[position]!r}")
        return out

    def items(self, position: int) -> list[Any]:
        """Return the cells of a column."""
        column = self._column(position)
        return list(column.to_pylist() if self.format == "pyarrow" else column.to_list())


def column_numbers(column: Any, what: str) -> NDArray[np.float64]:
    """Return a pandas, polars or Arrow column as float64, NaN where it is null.

    Raises
    ------
    InputError
        If it holds no numbers.
    """
    library = type(column).__module__.split(".")[0]
    kind = str(column.type if library == "pyarrow" else column.dtype).lower()
    if not kind.startswith(("int", "uint", "float", "double", "halffloat", "bool")):
        raise InputError(
            f"{what}: expected numbers, found {kind}. Convert the column, or leave it out with "
            "ignore (--ignore)."
        )
    if library == "pandas":
        present = column.dropna()
        numbers = present.to_numpy(dtype=_plain(kind))
        is_present = column.notna().to_numpy()
    elif library == "polars":
        is_present = column.is_not_null().to_numpy()
        numbers = column.drop_nulls().to_numpy()
    else:
        is_present = column.is_valid().to_numpy()
        numbers = column.drop_null().to_numpy()
    out = np.full(len(is_present), np.nan)
    out[is_present] = as_float64(numbers, what)
    return out


def _plain(pandas_dtype: str) -> str:
    """Return NumPy's dtype for pandas' own (Int64, Float32, int64[pyarrow], ...)."""
    plain = pandas_dtype.split("[", maxsplit=1)[0]
    return {"double": "float64", "float": "float32", "boolean": "bool"}.get(plain, plain)
