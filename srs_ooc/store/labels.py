"""Labels, names and row ids of arrays and frames, or apart from a table, as texts in blocks."""

import math
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from srs_ooc.errors import InputError
from srs_ooc.store.texts import TextSpool, texts_of

_BLOCK = 1 << 14


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


def item_blocks(given: Any) -> Iterator[list[Any]]:
    """Yield the items of a list, array, series or column, some at a time."""
    for start in range(0, len(given), _BLOCK):
        part = given.iloc if hasattr(given, "iloc") else given
        yield list_of(part[start : start + _BLOCK])


def spool_items(spool: TextSpool, blocks: Iterable[list[Any]]) -> None:
    """Append items as texts; a missing one is empty."""
    for block in blocks:
        spool.append(texts_of(text_of(item) or "" for item in block))


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
