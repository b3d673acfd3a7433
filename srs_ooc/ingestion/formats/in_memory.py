"""Arrays, sparse matrices and frames in memory, as tables of float64 that lose nothing.

pandas, polars and SciPy are not imported here.
"""

import math
import re
import tokenize
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from itertools import chain, pairwise
from pathlib import Path
from threading import RLock
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.arrays import Bools, Floats, Indices, Reals
from srs_ooc.base.budget import Lease, resident_nbytes
from srs_ooc.base.errors import InputError, no_features, unfit
from srs_ooc.base.text import MB
from srs_ooc.ingestion import formats
from srs_ooc.ingestion.formats import NAMED, Items, Table, TextCoder
from srs_ooc.ingestion.ingest_memory import IngestMemory, lines_lease, own_nbytes
from srs_ooc.ingestion.ingest_options import IngestOptions
from srs_ooc.ingestion.scratch import TextSpool, numbered, texts_of
from srs_ooc.native import _native

# Arrays of any numeric dtype as floats that lose nothing.

EXACT = 1 << 53
"""Integers up to it are float64 exactly."""


def is_narrow(dtype: np.dtype[Any]) -> bool:
    """Tell whether float32 holds every value of a dtype."""
    return np.can_cast(dtype, np.float32, "safe")


def check_dtype(dtype: np.dtype[Any], what: str) -> None:
    """Refuse dtypes that are no real numbers of at most 64 bits.

    Raises
    ------
    InputError
        Naming ``what`` and the dtype.
    """
    if dtype.kind not in "biuf" or dtype.itemsize > 8:
        expected = "numbers (bool, integers, or floats of at most 64 bits)"
        raise unfit(what, expected, dtype, "Convert or leave it out.")


def as_floats(array: NDArray[Any], what: str) -> Reals:
    """Return an array as C-contiguous float32 where that holds all of its dtype, else float64.

    Raises
    ------
    InputError
        If it holds no numbers, an integer beyond 2**53 that float64 does not hold, or R's NA.
    """
    check_dtype(array.dtype, what)
    dtype = np.float32 if is_narrow(array.dtype) else np.float64
    wide: Reals = np.ascontiguousarray(array, dtype=dtype)
    is_long = array.dtype.kind in "iu" and array.dtype.itemsize == 8 and array.size > 0
    if is_long and abs(found := max(int(array.min()), int(array.max()), key=abs)) > EXACT:
        raise too_large(found, what)
    if array.dtype == np.int32 and np.any(array == np.iinfo(np.int32).min):
        lowest = "-2147483648, the lowest of int32, which stands for a missing one in R"
        remedy = "Give `numpy.where(x == -2**31, numpy.nan, x)`; in R, `x + 0`."
        raise unfit(what, "numbers", lowest, remedy)
    return wide


def too_large(found: int, what: str) -> InputError:
    """Return the error of an integer beyond :data:`EXACT`."""
    expected = "integers of at most 2**53, which float64 holds exactly"
    return unfit(what, expected, found, "Scale it, or leave it out.")


# Cells that attributes of netCDF say how to take.


class Decoder:
    """What attributes say of cells, as xarray takes it; without any, cells stay what they are.

    ``_FillValue`` and ``missing_value`` mark those that are missing, ``_Unsigned`` tells how
    integers are meant, ``scale_factor`` and ``add_offset`` what packed numbers stand for.

    Parameters
    ----------
    dtype : numpy.dtype
        Of the cells as they are stored.
    attrs : mapping of str to object
        Their attributes.
    what : str
        Their name for messages.

    Attributes
    ----------
    dtype : numpy.dtype
        Of the numbers that are not missing.

    Raises
    ------
    InputError
        If numbers are scaled or shifted by anything but one number.
    """

    def __init__(self, dtype: np.dtype[Any], attrs: Mapping[str, Any], what: str) -> None:
        self._what, self._stored, is_text = what, dtype, dtype.kind not in "biuf"
        kind = {"true": "u", "false": "i"}.get(str(decoded(attrs.get("_Unsigned"))).lower())
        if kind and dtype.kind in "iu":
            self._stored = np.dtype(f"{kind}{dtype.itemsize}")
        named = [np.ravel(attrs.get(name, ())).tolist() for name in ("_FillValue", "missing_value")]
        kinds = str if is_text else (int, float)
        found = map(decoded, chain(*named))
        self._marks = {one for one in found if isinstance(one, kinds) and not is_missing(one)}
        if dtype == np.int64 and "units" in attrs:
            self._marks.add(np.iinfo(np.int64).min)  # no date, as xarray writes it
        if dtype.kind == "f" or dtype != self._stored:  # -1 and 255 are the same byte
            with np.errstate(all="ignore"):
                cast = {np.asarray(one).astype(self._stored).item() for one in self._marks}
            self._marks = cast if dtype.kind == "f" else self._marks | cast
        names = () if is_text else ("scale_factor", "add_offset")
        self._terms = {name: np.ravel(attrs[name]) for name in names if name in attrs}
        for name, term in self._terms.items():
            if term.size != 1 or term.dtype.kind not in "iuf":
                raise unfit(what, f"one number as {name}", repr(attrs[name])[:80], "Mend it.")
        self.dtype = self._stored
        if self._terms:  # what xarray unpacks to
            is_long = self._stored.kind in "iu" and self._stored.itemsize == 4
            is_safe = "add_offset" not in self._terms or (len(self._terms) == 2 and not is_long)
            dtypes = {term.dtype.type for term in self._terms.values()}
            self.dtype = np.dtype(np.float32 if is_safe and dtypes == {np.float32} else np.float64)

    def numbers(self, cells: NDArray[Any]) -> Reals:
        """Return what stored cells stand for, NaN where missing; ``cells`` are written over."""
        cells, gone = cells.astype(self._stored, copy=False), np.zeros((), np.bool_)
        for mark in self._marks:
            gone = gone | (cells == mark)
        if self._marks:
            cells[gone] = 0  # what is missing need not be a number that can be held
        values = as_floats(cells, self._what)
        if self._terms:
            values = values.astype(self.dtype, copy=False)
            values *= self._terms.get("scale_factor", 1)
            values += self._terms.get("add_offset", 0)
        if self._marks:
            values[gone] = np.nan
        return values

    def items(self, cells: NDArray[Any]) -> list[Any]:
        """Return what stored cells stand for, bytes as texts; None or NaN where missing."""
        if self._terms:
            return [*map(float, self.numbers(cells))]
        items = map(decoded, cells.astype(self._stored, copy=False).tolist())
        return [None if item in self._marks else item for item in items]


def decoded(item: Any) -> Any:
    """Return bytes as a text, anything else as it is."""
    return item.decode(errors="replace") if isinstance(item, bytes) else item


# The header of a ``.npy`` file, checked against the file before anything is made of it.

BAD_HEADER = (
    ValueError, EOFError, OSError, SyntaxError, TypeError, OverflowError, MemoryError,
    RecursionError, tokenize.TokenError,
)  # fmt: skip
HEADERS: dict[tuple[int, int], Callable[[Any], tuple[tuple[int, ...], bool, np.dtype[Any]]]] = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
"""What reads the header, by the version of the format."""


def read_header(path: Path, what: str) -> tuple[tuple[int, ...], np.dtype[Any], bool, int]:
    """Return shape and dtype of a ``.npy`` file, if its order is Fortran's, and where cells start.

    Raises
    ------
    InputError
        If it is none, holds Python objects, has a dimension that is negative, or is of another
        size than the file.
    """
    try:
        with path.open("rb") as file:
            if (version := np.lib.format.read_magic(file)) not in HEADERS:
                raise _refused(what, f"found version {version} of the format")
            shape, is_fortran, dtype = HEADERS[version](file)
            offset = file.tell()
        found = path.stat().st_size - offset
    except OSError as error:
        raise _refused(what, f"could not read it: {error.strerror or error}") from error
    except BAD_HEADER as error:  # what NumPy says of it advises to allow pickles
        raise _refused(what, "found a header that cannot be read") from error
    if dtype.hasobject:
        raise _refused(what, "found one of Python objects")
    if min(shape, default=0) < 0:
        raise _refused(what, f"found the shape {str(shape)[:80]}")
    if found < (expected := math.prod(shape) * dtype.itemsize):
        raise _refused(
            what, f"found {found} bytes for the shape {str(shape)[:80]}, which takes {expected}"
        )
    return tuple(map(int, shape)), dtype, bool(is_fortran), offset


def read_lines(
    path: Path, dtype: np.dtype[Any], offset: int, n_items: int, positions: Indices, what: str
) -> NDArray[Any]:
    """Return lines of ``n_items`` items, by position among those of a file from ``offset`` on.

    Raises
    ------
    InputError
        If the file, ``what`` in messages, is gone or ends before them.
    """
    lines = np.empty((len(positions), n_items), dtype)
    try:
        with path.open("rb", buffering=0) as file:
            handle, places = np.array([file.fileno()], np.int32), positions.astype(np.int64)
            size, out = n_items * dtype.itemsize, lines.reshape(-1).view(np.uint8)
            _native.read_lines(handle, offset, size, places, out)
    except OSError as error:
        raise InputError(
            f"{what}: reading failed: {error.strerror or error}. Leave the file in its place "
            "until the ingest has ended."
        ) from error
    except RuntimeError as error:
        expected = "as many bytes as when the file was opened"
        remedy = "Leave the file alone until the ingest has ended, and ingest it again."
        raise unfit(what, expected, "its end before", remedy) from error
    return lines


class CopiedTable(Table):
    """A table that is copied to scratch once: when it is prepared, or else when it is first read.

    Attributes
    ----------
    is_copied : bool
        Whether it was.
    """

    is_copied = False
    _copy: Any = None
    _dtype: np.dtype[Any]
    _what: str

    def make_room(self, copy: Path, dtype: np.dtype[Any], nbytes: int) -> None:
        """Make a file of so many bytes, for columns of cells of a dtype."""
        self._copy, self._dtype = copy, dtype
        with copy.open("wb") as file:
            file.truncate(nbytes)

    def prepare(self) -> None:
        """Copy the table, if it is not copied yet."""
        with _COPYING:
            if not self.is_copied:
                self.copy()
                self.is_copied = True

    def copy(self) -> None:
        """Write the cells to scratch."""
        raise NotImplementedError

    def copied(self, positions: Indices) -> NDArray[Any]:
        """Return columns of the copy, each a row of the result."""
        self.prepare()
        return read_lines(self._copy, self._dtype, 0, self.shape[0], positions, self._what)


_COPYING = RLock()


def _refused(what: str, found: str) -> InputError:
    return InputError(
        f"{what}: expected a .npy file of numbers or texts, {found}. Get the file again, or save "
        "it again without objects."
    )


# Labels, names and row ids of arrays and frames, or apart from a table, as texts in blocks.

_BLOCK = 1 << 14
_HOLDERS = (list, tuple, dict, set, np.ndarray)


def list_of(given: Any) -> list[Any]:
    """Return the items of a list, array, series or column."""
    for method in ("to_pylist", "tolist", "to_list"):
        if hasattr(given, method):
            return list(getattr(given, method)())
    return np.asarray(given).tolist() if hasattr(given, "__array__") else list(given)


def is_missing(item: Any) -> bool:
    """Tell whether an item is none: None, NaN, or what pandas has for it."""
    if item is None or type(item).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(item, float | np.floating) and bool(np.isnan(item))


def text_of(item: Any) -> str | None:
    """Return an item as text; None if it is missing. Whole floats are written as integers.

    Raises
    ------
    TypeError, UnicodeError
        If it holds items itself, or no text that UTF-8 can write.
    """
    if type(item) is str and item.isascii():  # as nearly all are
        return item.strip(" \t")
    if is_missing(item):
        return None
    if isinstance(item, float | np.floating):
        number = float(item)
        return str(int(number)) if number.is_integer() else repr(number)
    if isinstance(item, _HOLDERS):
        raise TypeError("no single item")
    text = item.decode() if isinstance(item, bytes) else str(item)
    if not text.isascii():
        text.encode()
    return text.strip(" \t")


def texts_in(items: list[Any], where: Callable[[int], str], first: int = 0) -> list[str | None]:
    """Return items, from ``first`` on, as texts; None where one is missing.

    ``where`` says where an item stands.

    Raises
    ------
    InputError
        If one is no text.
    """
    texts = []
    for i, item in enumerate(items, first):
        try:
            texts.append(text_of(item))
        except (TypeError, UnicodeError):
            expected = "a number or UTF-8 text"
            raise unfit(where(i), expected, repr(item)[:80], "Convert it.") from None
    return texts


def check_items(given: Any, what: str) -> None:
    """Refuse what is neither a file nor a sequence of items.

    Raises
    ------
    InputError
        Naming ``what``, and what was found.
    """
    if isinstance(given, Path):
        return
    shape = getattr(given, "shape", (0,))
    if len(shape) != 1:
        found = f"the shape {tuple(shape)}"
    elif not isinstance(given, Iterable) or isinstance(given, str | bytes | Mapping | Set):
        found = type(given).__qualname__
    else:
        return
    remedy = "Give a list, or an array of one dimension (y.ravel())."
    raise unfit(what, "a sequence of items", found, remedy)


def check_index(index: Any, given: Any, what: str) -> None:
    """Refuse what has the labels of a table's index in another order, as rows go by their places.

    Of labels that are shared in part only, the counted ones (0, 1, ...) are taken for none.

    Raises
    ------
    InputError
        With the line that puts it in order.
    """
    own: Any = getattr(given, "index", None)
    if index is None or not hasattr(own, "get_indexer") or own.equals(index):
        return
    ours, theirs = list(index), list(own)
    is_counted, labels, others = [*range(len(ours))] in (ours, theirs), {*ours}, {*theirs}
    if ours != theirs and (labels == others if is_counted else labels & others):
        raise InputError(
            f"{what}: expected the labels of the table's index in its order, or others, found them "
            "in another order. Put it in order, y.loc[X.index]; or give y.to_numpy(), if the items "
            "are those of the rows as they stand."
        )


def levels_of(given: Any) -> list[str] | None:
    """Return the levels of a column that is declared categorical; None of any other.

    They are in the order that is declared, and none where they have no order. Columns are those of
    pandas, polars and PyArrow, and what says it by a method ``declared``.
    """
    if hasattr(given, "declared"):
        return cast("list[str] | None", given.declared())
    kind: Any = getattr(given, "dtype", getattr(given, "type", None))
    if not str(kind).lower().startswith(_DECLARED):
        return None
    if not getattr(kind, "ordered", str(kind).startswith("Enum")):
        return []
    if (levels := getattr(kind, "categories", None)) is None:  # Arrow's, chunk by chunk
        chunks = given.unify_dictionaries().chunks if hasattr(given, "chunks") else [given]
        levels = list_of(chunks[0].dictionary) if chunks else ()
    return [str(text_of(one)) for one in levels]


def item_blocks(given: Any) -> Iterator[list[Any]]:
    """Yield the items of a list, array, series, column, iterable or file, some at a time.

    A file is text with an item a line, or a one-dimensional ``.npy``.

    Raises
    ------
    InputError
        If the file is not there, or cannot be read so.
    """
    if isinstance(given, Path):
        expected = "a text file with one item a line, or a .npy file"
        with formats.reading(given, expected, "Check the path.", (OSError, ValueError)):
            lines = (line.removesuffix("\n") for line in formats.lines_of(given, "one item"))
            yield from formats.bounded(
                npy_items(given, str(given)) if given.suffix == ".npy" else lines
            )
        return
    is_sliced = hasattr(given, "__getitem__") and hasattr(given, "__len__")
    if is_sliced and not isinstance(given, Items):  # which know how many are read at a time
        part = given.iloc if hasattr(given, "iloc") else given
        given = Items(len(given), lambda some: list_of(part[some]), formats.FEW)
    yield from formats.bounded(given)


def npy_items(path: Path, what: str) -> Items:
    """Return the items of a ``.npy`` file, called ``what`` in messages.

    Raises
    ------
    InputError
        If it holds no array of one dimension, Python objects, or items that are too long.
    """
    shape, dtype, _, offset = read_header(path, what)
    if len(shape) != 1:
        remedy = "Save one item for each row or column."
        raise unfit(what, "a one-dimensional array", f"the shape {shape}", remedy)
    if (size := dtype.itemsize) > formats.LONGEST:
        expected = f"items of at most {formats.LONGEST} bytes"
        raise unfit(what, expected, size, "Save shorter texts.")

    def read(some: slice) -> list[Any]:
        count = some.stop - some.start
        return list(np.fromfile(path, dtype, count, offset=offset + some.start * size).tolist())

    return Items(shape[0], read, max(1, min(_BLOCK, formats.LONGEST // max(size, 1))))


def spool_items(spool: TextSpool, blocks: Iterable[list[Any]], where: Callable[[int], str]) -> None:
    """Append items as texts; a missing one is empty. ``where`` says where an item stands.

    Raises
    ------
    InputError
        If one is no text.
    """
    for block in blocks:
        texts = texts_in(block, where, len(spool))
        spool.append(texts_of(text or "" for text in texts))


# NumPy arrays and SciPy sparse matrices in memory.


def take_beside(
    table: Table, shapes: Mapping[str, tuple[int, ...]], items: Callable[[str], Sequence[Any]]
) -> None:
    """Have a matrix take what stands beside it, by shapes and items of arrays by name.

    ``names`` of its columns, and columns of its rows, of which ``ids`` and ``y`` have their roles.
    """
    if is_named := shapes.get("names") == table.shape[1:]:
        table.names = items("names")
    rows = [one for one, shape in shapes.items() if shape == table.shape[:1]]
    known = {one: items(one) for one in rows if not (is_named and one == "names")}
    table.annotations = known
    table.default_ids = "ids" if "ids" in known else None
    table.default_target = "y" if "y" in known else None


def check_shape(shape: tuple[int, ...], what: str) -> None:
    """Refuse what is no matrix.

    Raises
    ------
    InputError
        If there are not two dimensions, or one of them is empty.
    """
    if len(shape) != 2 or 0 in shape:
        expected = "a matrix of at least one row and column"
        raise unfit(what, expected, f"the shape {shape}", "Give rows x columns.")


def settle_matrix(table: Table, shape: tuple[int, ...], dtype: np.dtype[Any], what: str) -> None:
    """Have a table take shape and dtype; refuse what is no matrix of numbers.

    Raises
    ------
    InputError
        As :func:`check_shape` and :func:`check_dtype`.
    """
    check_shape(shape, what)
    check_dtype(dtype, what)
    table.shape, table.narrow = (int(shape[0]), int(shape[1])), is_narrow(dtype)


class ArrayTable(Table):
    """A matrix (n_rows, n_columns) in memory, read by columns; masked cells are missing."""

    format = "numpy"

    def __init__(self, array: NDArray[Any], what: str) -> None:
        settle_matrix(self, array.shape, array.dtype, what)
        is_masked = isinstance(array, np.ma.MaskedArray) and array.mask is not np.ma.nomask
        self._array: Any = array if is_masked else np.asarray(array)  # of others, the plain array
        self._what = what

    def read(self, positions: Indices, pool: TextCoder) -> Reals:
        """Return columns, each a row of the result."""
        cells = self._array[:, positions].T
        if not isinstance(cells, np.ma.MaskedArray):
            return as_floats(cells, self._what)
        # what a mask hides need not be a number that can be held
        values = as_floats(cells.filled(0), self._what)
        values[np.ma.getmaskarray(cells)] = np.nan
        return values

    def items(self, position: int) -> Iterator[list[Any]]:
        """Yield the cells of a column in blocks."""
        return item_blocks(self._array[:, position])


class SparseTable(Table):
    """A SciPy sparse matrix or array, made dense some columns at a time."""

    format = "scipy.sparse"
    work_nbytes = 4 * MB  # two threads make columns dense at once

    def __init__(self, matrix: Any, what: str) -> None:
        settle_matrix(self, matrix.shape, matrix.dtype, what)
        if matrix.format in ("lil", "dok"):
            matrix = matrix.tocsr()
        try:  # indices outside the shape, which SciPy would follow wherever they point
            if matrix.format == "coo":  # whose indices are checked as it is made
                matrix = type(matrix)((matrix.data, (matrix.row, matrix.col)), matrix.shape)
            elif hasattr(matrix, "check_format"):
                matrix.check_format(full_check=True)
        except (TypeError, ValueError) as error:
            expected = f"a sparse matrix with indices within its shape {matrix.shape}"
            raise unfit(what, expected, f"damage: {error}", "Make it again.") from error
        is_plain = getattr(matrix, "has_canonical_format", True)
        self._columns, self._what = matrix.tocsc(copy=not is_plain), what
        self._columns.sum_duplicates()  # a column takes no more memory than its cells

    def read(self, positions: Indices, pool: TextCoder) -> Reals:
        """Return columns, each a row of the result."""
        return as_floats(self._columns[:, positions].toarray(order="F").T, self._what)

    def items(self, position: int) -> Iterator[list[Any]]:
        """Yield the cells of a column in blocks."""
        return item_blocks(self._columns[:, [position]].toarray()[:, 0])


# pandas and polars frames and Arrow tables in memory; none of them is imported here.

FRAMES = {"pandas": "DataFrame", "polars": "DataFrame", "pyarrow": "Table"}


def frame_library(thing: object) -> str | None:
    """Return the library that a frame is of; None if it is no frame."""
    for kind in type(thing).__mro__:
        library = kind.__module__.split(".")[0]
        if FRAMES.get(library) == kind.__name__:
            return library
    return None


def column_of(table: Any, position: int) -> Any:
    """Return a column of an array or a frame, as its library has it."""
    if frame_library(table) in ("polars", "pyarrow"):
        return (table.to_series if hasattr(table, "to_series") else table.column)(position)
    return getattr(table, "iloc", table)[:, position]


class FrameTable(Table):
    """A frame read by columns; the frame itself says of which library.

    Columns of Python objects are numbers if each of them is one, texts if none is. One of both is
    refused, unless it is named in ``as_texts``.
    """

    names: list[str]
    text_columns: Bools
    narrow: Bools

    def __init__(self, frame: Any, what: str, as_texts: Collection[str] = ()) -> None:
        self.format = self._library = str(frame_library(frame))
        self._frame, self._what, self._as_texts = frame, what, as_texts
        self.shape: tuple[int, int] = (int(frame.shape[0]), int(frame.shape[1]))
        check_shape(self.shape, what)
        is_arrow = self.format == "pyarrow"
        names = frame.column_names if is_arrow else frame.columns
        self._describe(names, frame.schema.types if is_arrow else frame.dtypes)
        for position, kind in enumerate(self._kinds):
            if str(kind).lower() == "object":
                items = chain.from_iterable(item_blocks(column_of(self._frame, position)))
                self.text_columns[position] = any(
                    not isinstance(item, _NUMBERS) and not is_missing(item) for item in items
                )

    def _describe(self, names: Iterable[Any], kinds: Iterable[Any]) -> None:
        self.names, self._kinds = list(map(str, names)), list(kinds)
        called = {kind: str(kind).lower() for kind in set(self._kinds)}
        plain = {kind: name.removesuffix("[pyarrow]") for kind, name in called.items()}
        is_text = {kind: _TEXT.match(name) is not None for kind, name in called.items()}
        self.text_columns = np.array([is_text[kind] for kind in self._kinds], np.bool_)
        narrow = {kind for kind, name in plain.items() if _NARROW.fullmatch(name)}
        self.narrow = np.array([kind in narrow for kind in self._kinds], np.bool_)
        known = {kind for kind, name in plain.items() if is_text[kind] or _NUMERIC.fullmatch(name)}
        # by its place each dtype that is of neither numbers, texts nor Python objects
        self._others = {at: called[one] for at, one in enumerate(self._kinds) if one not in known}

    def read(self, positions: Indices, pool: TextCoder) -> Reals:
        """Return columns, each a row of the result."""
        out, places = np.empty((len(positions), self.shape[0])), positions.tolist()
        self._refuse_others(places)
        for line, place, column in zip(out, places, self._columns(places), strict=True):
            what, start = f"{self._what}, column {self.names[place]!r}", 0
            if not self.text_columns[place]:
                line[...] = column_numbers(column, what)
                continue
            for block in item_blocks(column):
                line[start : start + len(block)] = text_numbers(block, pool, what, start)
                start += len(block)
        return out

    def _columns(self, positions: list[int]) -> Iterator[Any]:
        for place in positions:
            column = column_of(self._frame, place)
            if self.text_columns[place] and self.names[place] not in self._as_texts:
                _refuse_mixed(column, f"{self._what}, column {self.names[place]!r}")
            yield column

    @property
    def index(self) -> Iterable[Any] | None:
        """The index of a frame of pandas."""
        return getattr(self._frame, "index", None)

    def items(self, position: int) -> Iterator[list[Any]]:
        """Yield the cells of a column in blocks."""
        return item_blocks(column_of(self._frame, position))

    def levels(self, position: int) -> list[str] | None:
        """Return the levels of a column that is declared categorical."""
        return levels_of(column_of(self._frame, position))

    def _refuse_others(self, places: list[int]) -> None:
        """Refuse columns of other dtypes, naming all of them, and how some become numbers."""
        names, found, library = self.names, self._others, self._library
        if not (wrong := sorted(found.keys() & places)):
            return
        first, *rest = wrong
        more = ", ".join(f"{names[place]!r} ({found[place]})" for place in rest[:NAMED])
        more = f" The same holds of {more}{', ...' * (len(rest) > NAMED)}." if more else ""
        what = f"{self._what}, column {names[first]!r}"
        said = f"{what}: expected numbers, found {found[first]}.{more}"
        for kind, line in _AS_NUMBERS.items():
            for place in [i for i in wrong if re.match(kind, f"{library} {found[i]}")][:1]:
                numbers = line.format(f"df[{names[place]!r}]")
                change = _CHANGED[library].format(names[place], numbers, place)
                said += f" As numbers, by {library}: {change}."
        raise no_features((said, "Or leave such columns out with --ignore."))


def _refuse_mixed(column: Any, what: str) -> None:
    """Refuse objects of which some are numbers and others are not."""
    if str(getattr(column, "dtype", "")).lower() != "object":
        return
    items = enumerate(chain.from_iterable(item_blocks(column)), 1)
    there = ((row, item, isinstance(item, _NUMBERS)) for row, item in items if not is_missing(item))
    for (_, _, first), (row, item, is_number) in pairwise(there):
        if is_number != first:
            expected = f"{'a number' if first else 'a text'} as in the rows before"
            found = f"{what}, row {row}: expected {expected}, found {repr(item)[:80]}."
            remedy = (
                "Mend the cell, leave the column out with --ignore, or take all its cells as "
                "categories with kinds={name: 'categorical'}."
            )
            raise no_features((found, remedy))


_NUMBERS = (bool, int, float, np.integer, np.floating, np.bool_)
_DECLARED = ("category", "categorical", "enum", "dictionary")
_TEXT = re.compile(rf"object|(large_)?str(?!uct)|{'|'.join(_DECLARED)}")


_NUMERIC = re.compile(r"u?int(8|16|32|64)|float(16|32|64)?|double|halffloat|bool(ean)?|null")
_NARROW = re.compile(r"bool(ean)?|u?int(8|16)|float(16|32)?|halffloat|null")


_AS_NUMBERS = {
    "pandas date|pandas timestamp": "({0} - {0}.min()).dt.days", "pandas interval": "{0}.array.mid",
    "pandas (timedelta|duration)|polars duration": "{0}.dt.total_seconds()",
    "pandas period": "{0}.astype(int)", "pandas decimal": "{0}.astype(float)",
    "polars date": "({0} - {0}.min()).dt.total_days()", "pandas sparse": "{0}.sparse.to_dense()",
    "polars time": "{0}.cast(pl.Int64)", "polars (decimal|u?int128)": "{0}.cast(pl.Float64)",
    "pyarrow (date|timestamp)": "{0}.cast('date32').cast('int32')",
    "pyarrow (duration|time64)": "{0}.cast('int64')", "pyarrow decimal": "{0}.cast('float64')",
}  # fmt: skip
_CHANGED = {"pandas": "df[{0!r}] = {1}", "polars": "df = df.with_columns({1})",
            "pyarrow": "df = df.set_column({2}, {0!r}, {1})"}  # fmt: skip
"""What makes numbers of a column, by library and dtype, and what puts them in its place."""


def text_numbers(items: list[Any], pool: TextCoder, what: str, first_row: int) -> Floats:
    """Return the numbers in ``pool`` of items as texts; NaN where one is missing or empty.

    ``what`` and the rows from ``first_row`` on are for messages.

    Raises
    ------
    InputError
        If the pool is full, or an item is of a kind that is no category.
    """
    for row, item in enumerate(items, first_row + 1):
        if not isinstance(item, (str, bytes, *_NUMBERS)) and not is_missing(item):
            said = f"{what}, row {row}: expected numbers or texts, found {repr(item)[:80]}."
            raise no_features((said, "Convert it, or leave the column out with --ignore."))
    out = np.full(len(items), np.nan)
    texts = texts_in(items, lambda i: f"{what}, row {i + 1}", first_row)
    there = [i for i, text in enumerate(texts, first_row) if text]
    known = [text.encode() for text in texts if text]
    numbers = numbered(pool, known, lambda n: f"{what}, row {there[n] + 1}")
    out[np.array(there, np.intp) - first_row] = numbers
    return out


def column_numbers(column: Any, what: str) -> Reals:
    """Return a pandas, polars or Arrow column of numbers as float64, NaN where it is null."""
    library = type(column).__module__.split(".")[0]
    kind = str(column.type if library == "pyarrow" else column.dtype).lower()
    if library == "pyarrow" and not column.null_count:
        return as_floats(column.to_numpy(), what)
    out, plain = np.full(len(column), np.nan), kind.removesuffix("[pyarrow]")
    if kind == "object":
        for i, item in enumerate(chain.from_iterable(item_blocks(column))):
            if isinstance(item, int | np.integer) and not -EXACT <= int(item) <= EXACT:
                raise too_large(int(item), f"{what}, row {i + 1}")
            if not is_missing(item):
                out[i] = item
    elif plain != "null":
        there, kept = (getattr(column, name)() for name in _THERE[library])
        as_dtype = {"dtype": _PLAIN.get(plain, plain)} if library == "pandas" else {}
        out[there.to_numpy()] = as_floats(kept.to_numpy(**as_dtype), what)
    return out


_PLAIN = {"double": "float64", "float": "float32", "halffloat": "float16", "boolean": "bool"}
"""NumPy's dtypes for those of pandas that are called otherwise."""
_THERE = {
    "pandas": ("notna", "dropna"),
    "polars": ("is_not_null", "drop_nulls"),
    "pyarrow": ("is_valid", "drop_null"),
}
"""Methods of a column that say which items are there, and leave out the others, by library."""


def open_object(thing: Any, as_texts: Collection[str] = ()) -> Table:
    """Open an object in memory as a table.

    The columns ``as_texts`` may hold numbers and texts at once, which are taken as texts.

    Raises
    ------
    InputError
        If it is of no kind that is known.
    """
    if isinstance(thing, np.ndarray):
        return ArrayTable(thing, "the array")
    if frame_library(thing):
        return FrameTable(thing, "the frame", as_texts)
    if type(thing).__module__.startswith("scipy.sparse"):
        return SparseTable(thing, "the sparse matrix")
    if isinstance(thing, Table):
        return thing  # of a format of the caller's own
    raise InputError(
        "expected a path, a NumPy array, a pandas or polars DataFrame, a pyarrow.Table, a SciPy "
        "sparse matrix or an object of a subclass of srs_ooc.extend.Table, found "
        f"{type(thing).__module__}.{type(thing).__qualname__}. Convert it."
    )


def memory_of(table: Table, options: IngestOptions) -> IngestMemory:
    """Return what the ingest of a table takes that is read by columns or by rows."""
    options, held = options.settled(table), table.held
    if held is None:  # it was given, or others opened it
        grown = max(0, resident_nbytes() - own_nbytes())
        held = (Lease("what is held of the table", grown),)
    is_plain = options.aggregate is None and not options.kinds and table.text_columns is None
    cell_nbytes = table.cell_nbytes if is_plain else 8
    lines = lines_lease(table.shape[int(table.by_rows)], table.work_nbytes, cell_nbytes)
    n_rows, n_columns = table.shape
    taken = options.memory(n_columns, n_rows, (*held, lines), table.opening)
    holds = bool(options.kinds) or (table.text_columns is not None and table.text_columns.any())
    texts_nbytes = 2 * MB if holds else None  # before texts are read
    return replace(taken, texts_nbytes=texts_nbytes, cell_nbytes=cell_nbytes)
