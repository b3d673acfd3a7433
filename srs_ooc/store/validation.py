"""Is what a store says of itself possible? Types, ranges, and whether its parts agree.

A checksum says that bytes are those that were written, not that they make sense: a file may be
made by other hands, or sealed anew. What is checked here is what the rest of the package, the
native code among it, takes for granted.
"""

from collections.abc import Callable
from typing import Any, NoReturn

from srs_ooc.base.errors import StoreError
from srs_ooc.store.kinds import NAMES
from srs_ooc.store.layout import (
    FLOAT_CHUNK_NBYTES,
    ROW_COLUMNS,
    Shape,
    checksummed_files,
    float_arrays,
    n_float_chunks,
    small_arrays_of,
)

_MOST_ROWS = (1 << 31) - 1
_MOST_FEATURES = (1 << 32) - 1
Record = dict[str, Any]


class ImpossibleError(ValueError):
    """What a store says cannot be; the message says what was expected and what was found."""


def wrong(expected: str, found: Any) -> NoReturn:
    """Raise the error of what cannot be."""
    shown = repr(found)
    raise ImpossibleError(f"expected {expected}, found {shown if len(shown) <= 80 else shown[:77]}")


def _is_count(low: int, high: int) -> Callable[[Any], bool]:
    return lambda item: type(item) is int and low <= item <= high


def _is_text(item: Any) -> bool:
    if not isinstance(item, str):
        return False
    try:
        item.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_list(of: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda item: isinstance(item, list) and all(map(of, item))


def _is_dict(of: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda item: (
        isinstance(item, dict) and all(map(_is_text, item)) and all(map(of, item.values()))
    )


def _is_plain(item: Any) -> bool:
    """Return whether JSON can hold it and a terminal can show it."""
    if isinstance(item, dict | list):
        return (_is_dict if isinstance(item, dict) else _is_list)(_is_plain)(item)
    return item is None or isinstance(item, bool | int | float) or _is_text(item)


_COUNT = _is_count(0, (1 << 63) - 1)
_POSITIVE = _is_count(1, (1 << 63) - 1)
_FIELDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "n_rows": (f"1 .. {_MOST_ROWS}", _is_count(1, _MOST_ROWS)),
    "n_features": (f"1 .. {_MOST_FEATURES}", _is_count(1, _MOST_FEATURES)),
    "task": ("classification or regression", lambda t: t in ("classification", "regression")),
    "classes": ("a list of texts", _is_list(_is_text)),
    "class_counts": ("a list of whole numbers", _is_list(_COUNT)),
    "n_dropped_rows": ("a whole number", _COUNT),
    "row_columns": ("lists of texts by name", _is_dict(_is_list(_is_text))),
    "kind_counts": ("whole numbers by kind", _is_dict(_COUNT)),
    "code_dtype": ("uint8 or uint16", lambda t: t in ("uint8", "uint16")),
    "chunk_features": ("a positive whole number", _POSITIVE),
    "values_dtype": ("float32, float64 or null", lambda t: t in ("float32", "float64", None)),
    "n_missing_cells": ("a whole number", _COUNT),
    "n_missing_features": ("a whole number", _COUNT),
    "order_key": ("a whole number of 64 bits", _is_count(0, (1 << 64) - 1)),
    "target_name": ("a text", _is_text),
    "row_id_name": ("a text or null", lambda t: t is None or _is_text(t)),
    "inferred": ("facts by name", _is_dict(_is_plain)),
    "source": ("facts by name", _is_dict(_is_plain)),
    "checksums": ("checksums of 32 bits by file", _is_dict(_is_count(0, (1 << 32) - 1))),
    "format": ("a whole number", _POSITIVE),
    "lengths": ("positive whole numbers by array", _is_dict(_POSITIVE)),
    "values_chunk": (
        "two positive whole numbers",
        lambda c: _is_list(_POSITIVE)(c) and len(c) == 2,
    ),
}


def check_record(record: Record) -> None:
    """Check the fields of a manifest, each by itself and against the others.

    Parameters
    ----------
    record : dict
        The manifest as JSON; it has the fields of its format, and no others.

    Raises
    ------
    ImpossibleError
        Naming the first field that is wrong.
    """
    for name, value in record.items():
        expected, holds = _FIELDS[name]
        if not holds(value):
            wrong(f"{name} to be {expected}", value)
    for expected, agrees, found in _agreements(record):
        if not agrees:
            wrong(expected, found)
    _check_files(record)
    if "lengths" in record:
        _check_lengths(record)
        _check_values_chunk(record)


def _agreements(r: Record) -> list[tuple[str, bool, Any]]:
    """Return what must hold between fields: what is expected, whether it does, what was found."""
    n_rows, n_features, cells = r["n_rows"], r["n_features"], r["n_missing_cells"]
    counts, columns = r["class_counts"], r["row_columns"]
    is_regression, with_missing = r["task"] == "regression", r["n_missing_features"]
    return [
        ("no classes of a regression", not (is_regression and r["classes"]), r["classes"]),
        ("classes of a classification", is_regression or bool(r["classes"]), r["classes"]),
        ("classes that differ", len(set(r["classes"])) == len(r["classes"]), r["classes"]),
        ("a count of each class", len(counts) == len(r["classes"]), counts),
        (f"{n_rows} rows in class_counts", is_regression or sum(counts) == n_rows, counts),
        ("row_columns of known names", set(columns) <= set(ROW_COLUMNS), columns),
        ("columns in row_columns", all(columns.values()), columns),
        ("the kinds in kind_counts", set(r["kind_counts"]) == set(NAMES), r["kind_counts"]),
        (
            f"{n_features} features in kind_counts",
            sum(r["kind_counts"].values()) == n_features,
            r["kind_counts"],
        ),
        ("chunk_features <= n_features", r["chunk_features"] <= n_features, r["chunk_features"]),
        ("n_missing_features <= n_features", with_missing <= n_features, with_missing),
        (
            "missing cells in the features said to have them",
            with_missing <= cells <= with_missing * n_rows,
            cells,
        ),
    ]


def _check_files(record: Record) -> None:
    n_chunks = -(-record["n_features"] // record["chunk_features"])
    found = record["checksums"]
    if len(found) < n_chunks:  # before as many names are made as a wrong number says
        wrong(f"checksums of {n_chunks} chunks of codes", len(found))
    different = checksummed_files(record).symmetric_difference(found)
    if different:
        wrong("checksums of the files of the store", sorted(different)[:3])


def _check_lengths(record: Record) -> None:
    lengths, shape = record["lengths"], Shape(record["n_rows"], record["n_features"])
    names = small_arrays_of(record)
    if set(lengths) != names:
        wrong("lengths of the small arrays", sorted(names.symmetric_difference(lengths)))
    for name, length in lengths.items():
        if name.endswith("_crc32c"):
            expected = n_float_chunks(record)
        elif (name.startswith("categories_") and name != "categories_first") or name.endswith(
            "_bytes"
        ):
            continue
        else:
            expected = shape.length_of(name)
        if length != expected:
            wrong(f"{expected} items of {name} in lengths", length)


def _check_values_chunk(record: Record) -> None:
    features, items = record["values_chunk"]
    itemsize = 4 if record["values_dtype"] == "float32" else 8
    most = next(iter(float_arrays(record).values()))
    if features > record["n_features"] or items > most:
        wrong(f"values_chunk within {record['n_features']} x {most}", [features, items])
    if features * items * itemsize > FLOAT_CHUNK_NBYTES:
        wrong(f"chunks of values of at most {FLOAT_CHUNK_NBYTES} bytes", [features, items])


def damaged(place: object, error: Exception) -> StoreError:
    """Return the error of a store of which ``place`` says what cannot be."""
    return StoreError(f"{place}: {error}. The store is damaged; ingest the table again.")
