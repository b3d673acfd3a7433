"""Records as a frame of pandas or polars, arrays for Arrow; imported only where asked for."""

from collections.abc import Iterable, Sequence
from typing import Any, get_type_hints

import numpy as np

from srs_ooc.base.arrays import Bools, Floats
from srs_ooc.base.errors import UsageError

KINDS = ("pandas", "polars", "records")
_PANDAS: dict[Any, str] = {int: "int64", float: "float64", bool: "bool", str: "str"}
_PANDAS |= {int | None: "Int64", float | None: "float64", bool | None: "boolean", str | None: "str"}
_POLARS: dict[Any, str] = {int: "Int64", float: "Float64", bool: "Boolean", str: "String"}
_POLARS |= {kind | None: name for kind, name in _POLARS.items()}
"""What the columns of a frame are, by the type of a field."""
_REMEDY = "Install it, or take another kind: 'records' needs neither pandas nor polars."


def check_kind(kind: str) -> None:
    """Refuse a kind of frame that is not known.

    Raises
    ------
    UsageError
        If it is none of :data:`KINDS`.
    """
    if kind not in KINDS:
        raise UsageError(f"kind: expected one of {', '.join(KINDS)}, found {kind!r}.")


def library(module: str, what: str, remedy: str) -> Any:
    """Import a module of a library that only some things take.

    ``what`` takes it, and ``remedy`` says what to do without, for messages.

    Raises
    ------
    UsageError
        If it is not installed.
    """
    import importlib

    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise UsageError(
            f"{what}: expected {module.partition('.')[0]} to be installed, could not import it: "
            f"{error}. {remedy}"
        ) from error


def frame_of(kind: str, record_type: type, records: Iterable[Any]) -> Any:
    """Return dataclass records as ``kind``: a frame with a column a field, or a list of dicts.

    What is None is missing in a frame.

    Parameters
    ----------
    kind : {'pandas', 'polars', 'records'}
        What to return.
    record_type : type
        The dataclass; its annotations give the types of the columns.
    records : iterable
        Of that type.

    Raises
    ------
    UsageError
        If ``kind`` is not known, or its library is not installed.
    """
    check_kind(kind)
    if kind == "records":
        return [dict(vars(record)) for record in records]
    made = library(kind, "kind", _REMEDY)
    types = get_type_hints(record_type)
    filled: dict[str, list[Any]] = {name: [] for name in types}
    for record in records:
        for name, value in vars(record).items():
            filled[name].append(value)
    if kind == "polars":
        schema = {name: getattr(made, _POLARS[of]) for name, of in types.items()}
        return made.DataFrame(filled, schema)
    columns = {name: made.Series(filled[name], dtype=_PANDAS[of]) for name, of in types.items()}
    return made.DataFrame(columns)


def frame_of_columns(
    kind: str, columns: dict[str, list[Any]], index: tuple[str | None, list[Any]] | None = None
) -> Any:
    """Return columns as ``kind``; parameters and errors as of :func:`frame_of`.

    ``index`` is the name and the items of what names the rows: a first column where frames have no
    index, with ``_`` before its name where a column is called so.
    """
    check_kind(kind)
    if kind == "pandas":
        pandas = library(kind, "kind", _REMEDY)
        return pandas.DataFrame(columns, index and pandas.Index(index[1], name=index[0]))
    if index is not None:
        name = index[0] or "index"
        while name in columns:
            name = "_" + name
        columns = {name: index[1]} | columns
    if kind == "records":
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return library(kind, "kind", _REMEDY).DataFrame(columns)


# Arrow arrays of texts and numbers, made from their buffers.
#
# ``pyarrow.array`` looks whether it is given something of pandas, and loads pandas for that where
# it is installed: 50 MB that no cap on memory knows of.


def arrow_texts(texts: Sequence[str | None]) -> Any:
    """Return texts as a ``pyarrow.StringArray``, null where None."""
    import pyarrow as pa

    encoded = [b"" if text is None else text.encode() for text in texts]
    offsets = np.zeros(len(encoded) + 1, np.int32)
    np.cumsum([len(text) for text in encoded], out=offsets[1:])
    missing = np.fromiter((text is None for text in texts), np.bool_, len(encoded))
    buffers = [_validity(missing), pa.py_buffer(offsets), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(pa.string(), len(encoded), buffers)


def arrow_numbers(values: Floats) -> Any:
    """Return float64 (n,) as a ``pyarrow.DoubleArray``, null where NaN."""
    import pyarrow as pa

    values = np.ascontiguousarray(values, np.float64)
    buffers = [_validity(np.isnan(values)), pa.py_buffer(values)]
    return pa.Array.from_buffers(pa.float64(), len(values), buffers)


def _validity(missing: Bools) -> Any:
    """Return the bits of what is there, the lowest first; None if all is."""
    import pyarrow as pa

    return pa.py_buffer(np.packbits(~missing, bitorder="little")) if missing.any() else None
