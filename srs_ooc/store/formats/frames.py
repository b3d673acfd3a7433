"""pandas and polars frames and Arrow tables in memory; none of them is imported here."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.errors import InputError
from srs_ooc.kernel.parse import TextCoder
from srs_ooc.store.formats.arrays import check_shape
from srs_ooc.store.formats.numbers import as_float64
from srs_ooc.store.labels import item_blocks, text_of
from srs_ooc.store.texts import joined

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
    pool: TextCoder | None = None

    def __init__(self, frame: Any, what: str) -> None:
        self.format = str(frame_library(frame))
        self._frame, self._what = frame, what
        self.shape: tuple[int, int] = (int(frame.shape[0]), int(frame.shape[1]))
        check_shape(self.shape, what)
        names = frame.column_names if self.format == "pyarrow" else frame.columns
        self.names: list[str] | None = [str(name) for name in names]
        kinds = frame.schema.types if self.format == "pyarrow" else frame.dtypes
        self.text_columns: NDArray[np.bool_] | None = are_texts(kinds)
        self.narrow = are_narrow(kinds)

    def _column(self, position: int) -> Any:
        if self.format == "pandas":
            return self._frame.iloc[:, position]
        if self.format == "polars":
            return self._frame.to_series(position)
        return self._frame.column(position)

    def read(self, positions: NDArray[np.intp], pool: TextCoder) -> NDArray[np.float64]:
        """Return columns, each a row of the result."""
        assert self.names is not None
        out = np.empty((len(positions), self.shape[0]))
        for line, position in zip(out, positions.tolist(), strict=True):
            what = f"{self._what}, column {self.names[position]!r}"
            read_column(line, self._column(position), pool, what)
        return out

    def items(self, position: int) -> Iterator[list[Any]]:
        """Yield the cells of a column in blocks."""
        return item_blocks(self._column(position))


_TEXT = ("object", "string", "large_string", "str", "category", "categorical", "enum", "dictionary")


def are_texts(kinds: Iterable[Any]) -> NDArray[np.bool_]:
    """Tell which dtypes of pandas, polars or Arrow are texts or categories."""
    known: dict[Any, bool] = {}
    return np.array(
        [known.setdefault(kind, str(kind).lower().startswith(_TEXT)) for kind in kinds],
        np.bool_,
    )


_NARROW = ("bool", "int8", "uint8", "int16", "uint16", "float16", "halffloat", "float32", "float")


def are_narrow(kinds: Iterable[Any]) -> bool:
    """Tell whether float32 holds every value of columns of such dtypes."""
    names = {str(kind).lower().split("[", maxsplit=1)[0] for kind in set(kinds)}
    return all(name == "boolean" or name in _NARROW for name in names)


def read_column(line: NDArray[np.float64], column: Any, pool: TextCoder, what: str) -> None:
    """Fill ``line`` with a column's numbers, or with the numbers of its texts in ``pool``.

    Raises
    ------
    InputError
        If it holds something else.
    """
    library = type(column).__module__.split(".")[0]
    kind = column.type if library == "pyarrow" else column.dtype
    if are_texts([kind])[0]:
        line[...] = np.nan
        start = 0
        for block in item_blocks(column):
            line[start : start + len(block)] = text_numbers(block, pool, what, start)
            start += len(block)
    else:
        line[...] = column_numbers(column, what)


def text_numbers(
    items: list[Any], pool: TextCoder, what: str, first_row: int
) -> NDArray[np.float64]:
    """Return the numbers in ``pool`` of items as texts; NaN where one is missing or empty.

    ``what`` and the rows from ``first_row`` on are for messages.

    Raises
    ------
    InputError
        If the pool is full, or an item is of a kind that is no category.
    """
    for row, item in enumerate(items, first_row + 1):
        known = isinstance(item, str | bytes | bool | int | float | None)
        if not known and text_of(item) is not None:
            raise InputError(
                f"{what}, row {row}: expected numbers or texts, found {item!r}. Convert it, or "
                "leave the column out with ignore (--ignore)."
            )
    out = np.full(len(items), np.nan)
    texts = [text_of(item) for item in items]
    there = np.array([bool(text) for text in texts])
    found = pool.code(*joined([text.encode() for text in texts if text]))
    if len(found) < there.sum():
        row = int(np.flatnonzero(there)[len(found)])
        raise InputError(
            f"{what}, row {first_row + row + 1}: expected categories whose texts fit into the "
            f"memory that is left for them, found more ({(texts[row] or '')[:80]!r}). "
            "Leave columns of free text out with ignore (--ignore), or raise the cap."
        )
    out[there] = found
    return out


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
    if library == "pyarrow" and not column.null_count:
        return as_float64(column.to_numpy(), what)
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
