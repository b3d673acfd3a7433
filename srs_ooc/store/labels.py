"""Labels, names and row ids given apart from a table: as sequences, arrays or files."""

import math
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.errors import InputError
from srs_ooc.store.formats.problems import MAX_CLASSES
from srs_ooc.store.publishing import class_order


def list_of(given: Any) -> list[Any]:
    """Return the items of a list, array, series or column."""
    for method in ("to_pylist", "tolist", "to_list"):
        if hasattr(given, method):
            return list(getattr(given, method)())
    return list(given)


def text_of(item: Any) -> str | None:
    """Return an item as text; None if it is missing. Whole floats are written as integers."""
    if item is None or type(item).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(item, float):
        if math.isnan(item):
            return None
        return str(int(item)) if item.is_integer() else repr(item)
    text = item.decode() if isinstance(item, bytes) else str(item)
    return text.strip(" \t")


def lines_of(path: Path) -> list[Any]:
    """Return the lines of a text file, or the items of a one-dimensional ``.npy`` file.

    Raises
    ------
    InputError
        If the file is not there, or cannot be read so.
    """
    try:
        if path.suffix == ".npy":
            array = np.load(path, allow_pickle=False)
            if array.ndim != 1:
                raise InputError(
                    f"{path}: expected a one-dimensional array, found the shape {array.shape}. "
                    "Save one item for each row or column."
                )
            return list(array.tolist())
        return path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, ValueError) as error:
        raise InputError(
            f"{path}: expected a text file with one item a line, or a .npy file, could not read "
            f"it: {error}. Check the path."
        ) from error


def code_labels(
    what: str, items: Sequence[Any], n_rows: int
) -> tuple[NDArray[np.int32], list[str]]:
    """Return the class of each row, and the labels of the classes in order.

    Raises
    ------
    InputError
        If the labels are not as many as the rows, one is missing, or there are fewer than two
        classes or too many.
    """
    if len(items) != n_rows:
        raise InputError(
            f"{what}: expected {n_rows} class labels, one for each row, found {len(items)}. "
            "Give as many labels as rows."
        )
    numbers: dict[str, int] = {}
    target = np.empty(n_rows, np.int32)
    for row, text in enumerate(map(text_of, items)):
        if not text:
            raise InputError(
                f"{what}, row {row + 1}: expected a class label, found none. Remove the row, or "
                "fill its label in."
            )
        target[row] = numbers.setdefault(text, len(numbers))
        if len(numbers) > MAX_CLASSES:
            raise InputError(
                f"{what}, row {row + 1}: expected a target of at most {MAX_CLASSES} classes, found "
                f"more ({text!r} is one). Name a column of class labels."
            )
    if len(numbers) < 2:
        raise InputError(
            f"{what}: expected a target of at least two classes, found only {next(iter(numbers))!r}"
            ". Name another column, or give other labels."
        )
    labels = list(numbers)
    order = class_order(labels)
    rank = np.empty(len(order), np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    return rank[target], [labels[i] for i in order]


def texts_given(what: str, items: Collection[Any], expected: int) -> Iterator[str]:
    """Yield items as texts.

    Raises
    ------
    InputError
        If there are not ``expected`` of them, or one is missing.
    """
    if len(items) != expected:
        raise InputError(
            f"expected {expected} {what}, found {len(items)}. Give as many as there are."
        )
    for place, item in enumerate(items):
        text = text_of(item)
        if text is None:
            raise InputError(f"{what}: expected a text at {place + 1}, found none. Fill it in.")
        yield text
