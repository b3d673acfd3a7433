"""pandas and polars frames and Arrow tables in memory; none of them is imported here."""

import re
from collections.abc import Collection, Iterable, Iterator
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import InputError
from srs_ooc.ingestion.formats.arrays import check_shape
from srs_ooc.ingestion.formats.numbers import EXACT, as_float64, too_large
from srs_ooc.ingestion.labels import is_missing, item_blocks, texts_in
from srs_ooc.ingestion.scratch import joined
from srs_ooc.ingestion.texts import TextCoder

FRAMES = {"pandas": "DataFrame", "polars": "DataFrame", "pyarrow": "Table"}


def frame_library(thing: object) -> str | None:
    """Return the library that a frame is of; None if it is no frame."""
    for kind in type(thing).__mro__:
        library = kind.__module__.split(".")[0]
        if FRAMES.get(library) == kind.__name__:
            return library
    return None


class FrameTable:
    """A frame read by columns; the frame itself says of which library.

    Columns of Python objects are numbers if each of them is one, texts if none is. One of both is
    refused, unless it is named in ``as_texts``.
    """

    by_rows = False
    work_nbytes = 0
    pool: TextCoder | None = None

    def __init__(self, frame: Any, what: str, as_texts: Collection[str] = ()) -> None:
        self.format = str(frame_library(frame))
        self._frame, self._what = frame, what
        self.shape: tuple[int, int] = (int(frame.shape[0]), int(frame.shape[1]))
        check_shape(self.shape, what)
        names = frame.column_names if self.format == "pyarrow" else frame.columns
        self.names: list[str] | None = [str(name) for name in names]
        kinds = frame.schema.types if self.format == "pyarrow" else frame.dtypes
        self.text_columns: NDArray[np.bool_] | None = are_texts(kinds)
        self.narrow = are_narrow(kinds)
        self._as_texts = as_texts
        for position, kind in enumerate(kinds):
            if str(kind).lower() == "object":
                found = kinds_of(chain.from_iterable(item_blocks(self._column(position))))
                self.text_columns[position] = "other" in found

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
            is_text = bool(self.text_columns is not None and self.text_columns[position])
            column = self._column(position)
            if is_text and self.names[position] not in self._as_texts:
                _refuse_mixed(column, what)
            read_column(line, column, pool, what, is_text=is_text)
        return out

    def items(self, position: int) -> Iterator[list[Any]]:
        """Yield the cells of a column in blocks."""
        return item_blocks(self._column(position))


def kinds_of(items: Iterable[Any]) -> set[str]:
    """Return what objects are, as far as they are not missing: ``number``, ``other``."""
    found = set()
    for item in items:
        if isinstance(item, _NUMBERS):
            if not is_missing(item):
                found.add("number")
        elif not is_missing(item):
            found.add("other")
    return found


def _refuse_mixed(column: Any, what: str) -> None:
    """Refuse objects of which some are numbers and others are not."""
    if str(getattr(column, "dtype", "")).lower() != "object":
        return
    first: bool | None = None
    for row, item in enumerate(chain.from_iterable(item_blocks(column)), 1):
        if is_missing(item):
            continue
        is_number = isinstance(item, _NUMBERS)
        if first is not None and is_number != first:
            raise InputError(
                f"{what}, row {row}: expected {'a number' if first else 'a text'} as in the rows "
                f"before, found {repr(item)[:80]}. Mend the cell, leave the column out with "
                "ignore, or take all its cells as categories with kinds={name: 'categorical'}."
            )
        first = is_number


_NUMBERS = (bool, int, float, np.integer, np.floating, np.bool_)
_TEXT = ("object", "string", "large_string", "str", "category", "categorical", "enum", "dictionary")


def are_texts(kinds: Iterable[Any]) -> NDArray[np.bool_]:
    """Tell which dtypes of pandas, polars or Arrow are texts or categories."""
    known: dict[Any, bool] = {}
    return np.array(
        [known.setdefault(kind, _is_text(str(kind).lower())) for kind in kinds],
        np.bool_,
    )


def _is_text(kind: str) -> bool:
    return kind.startswith(_TEXT) and not kind.startswith("struct")


_NUMERIC = re.compile(r"u?int(8|16|32|64)|float(16|32|64)?|double|halffloat|bool(ean)?|null")
_NARROW = (
    "bool",
    "int8",
    "uint8",
    "int16",
    "uint16",
    "float16",
    "halffloat",
    "float32",
    "float",
    "null",
)


def are_narrow(kinds: Iterable[Any]) -> bool:
    """Tell whether float32 holds every value of columns of such dtypes."""
    names = {str(kind).lower().removesuffix("[pyarrow]") for kind in set(kinds)}
    return all(name == "boolean" or name in _NARROW for name in names)


def read_column(
    line: NDArray[np.float64], column: Any, pool: TextCoder, what: str, *, is_text: bool
) -> None:
    """Fill ``line`` with a column's numbers, or with the numbers of its texts in ``pool``.

    Raises
    ------
    InputError
        If it holds something else.
    """
    if is_text:
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
        if not isinstance(item, (str, bytes, *_NUMBERS)) and not is_missing(item):
            raise InputError(
                f"{what}, row {row}: expected numbers or texts, found {repr(item)[:80]}. Convert "
                "it, or leave the column out with ignore (--ignore)."
            )
    out = np.full(len(items), np.nan)
    texts = texts_in(items, lambda i: f"{what}, row {first_row + i + 1}")
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
    if kind == "object":
        return _object_numbers(column, what)
    plain = kind.removesuffix("[pyarrow]")
    if not _NUMERIC.fullmatch(plain):
        raise InputError(
            f"{what}: expected numbers, found {kind}. Convert the column, or leave it out with "
            "ignore (--ignore)."
        )
    if plain == "null":
        return np.full(len(column), np.nan)
    if library == "pyarrow" and not column.null_count:
        return as_float64(column.to_numpy(), what)
    if library == "pandas":
        present = column.dropna()
        numbers = present.to_numpy(dtype=_PLAIN.get(plain, plain))
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


_PLAIN = {"double": "float64", "float": "float32", "halffloat": "float16", "boolean": "bool"}
"""NumPy's dtypes for those of pandas that are called otherwise."""


def _object_numbers(column: Any, what: str) -> NDArray[np.float64]:
    """Return a column of objects, each of which is a number or missing, as float64."""
    out = np.full(len(column), np.nan)
    start = 0
    for block in item_blocks(column):
        for i, item in enumerate(block, start):
            if is_missing(item):
                continue
            if isinstance(item, int | np.integer) and not -EXACT <= int(item) <= EXACT:
                raise too_large(int(item), f"{what}, row {i + 1}")
            out[i] = item
        start += len(block)
    return out
