"""Labels, names and row ids of arrays and frames, or apart from a table, as texts in blocks."""

import math
from collections.abc import Iterable, Iterator
from itertools import islice
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


def item_blocks(given: Any) -> Iterator[list[Any]]:
    """Yield the items of a list, array, series, column, iterable or file, some at a time.

    A file is text with an item a line, or a one-dimensional ``.npy``.

    Raises
    ------
    InputError
        If the file is not there, or cannot be read so.
    """
    if isinstance(given, Path):
        yield from _file_blocks(given)
    elif hasattr(given, "__getitem__") and hasattr(given, "__len__"):
        for start in range(0, len(given), _BLOCK):
            part = given.iloc if hasattr(given, "iloc") else given
            yield list_of(part[start : start + _BLOCK])
    else:
        items = iter(given)
        while block := list(islice(items, _BLOCK)):
            yield block


def _file_blocks(path: Path) -> Iterator[list[Any]]:
    try:
        if path.suffix == ".npy":
            yield from _npy_blocks(path)
            return
        with path.open(encoding="utf-8-sig") as file:
            while block := [line.removesuffix("\n") for line in islice(file, _BLOCK)]:
                yield block
    except (OSError, ValueError) as error:
        raise InputError(
            f"{path}: expected a text file with one item a line, or a .npy file, could not read "
            f"it: {error}. Check the path."
        ) from error


def _npy_blocks(path: Path) -> Iterator[list[Any]]:
    array = np.load(path, mmap_mode="r", allow_pickle=False)  # for its shape
    if array.ndim != 1:
        raise InputError(
            f"{path}: expected a one-dimensional array, found the shape {array.shape}. "
            "Save one item for each row or column."
        )
    size = array.dtype.itemsize
    for start in range(0, len(array), _BLOCK):
        count = min(_BLOCK, len(array) - start)
        yield np.fromfile(path, array.dtype, count, offset=array.offset + start * size).tolist()


def spool_items(spool: TextSpool, blocks: Iterable[list[Any]]) -> None:
    """Append items as texts; a missing one is empty."""
    for block in blocks:
        spool.append(texts_of(text_of(item) or "" for item in block))


def texts_given(what: str, items: Iterable[Any], expected: int) -> Iterator[str]:
    """Yield items as texts.

    Raises
    ------
    InputError
        If there are not ``expected`` of them, or one is missing.
    """
    n_items = 0
    for n_items, item in enumerate(items, 1):
        text = text_of(item)
        if text is None:
            raise InputError(f"{what}: expected a text at {n_items}, found none. Fill it in.")
        yield text
    if n_items != expected:
        raise InputError(f"expected {expected} {what}, found {n_items}. Give as many as there are.")
