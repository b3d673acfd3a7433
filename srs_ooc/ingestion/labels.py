"""Labels, names and row ids of arrays and frames, or apart from a table, as texts in blocks."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from srs_ooc.base.errors import InputError
from srs_ooc.ingestion.formats.npy_header import read_header
from srs_ooc.ingestion.scratch import TextSpool, texts_of

_BLOCK = 1 << 14
MOST_ITEM_NBYTES = 1 << 20
"""An item of a file is no longer, and no more than so much is held at a time."""
_HOLDERS = (list, tuple, dict, set, np.ndarray)


def list_of(given: Any) -> list[Any]:
    """Return the items of a list, array, series or column."""
    for method in ("to_pylist", "tolist", "to_list"):
        if hasattr(given, method):
            return list(getattr(given, method)())
    return list(given)


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


def texts_in(items: list[Any], where: Callable[[int], str]) -> list[str | None]:
    """Return items as texts; None where one is missing. ``where`` says where an item stands.

    Raises
    ------
    InputError
        If one is no text.
    """
    texts = []
    for i, item in enumerate(items):
        try:
            texts.append(text_of(item))
        except (TypeError, UnicodeError):
            raise InputError(
                f"{where(i)}: expected a number or UTF-8 text, found {repr(item)[:80]}. Convert it."
            ) from None
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
    raise InputError(
        f"{what}: expected a sequence of items, found {found}. Give a list, or an array of one "
        "dimension (y.ravel())."
    )


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
        yield from _text_blocks(path)
    except (OSError, ValueError) as error:
        raise InputError(
            f"{path}: expected a text file with one item a line, or a .npy file, could not read "
            f"it: {error}. Check the path."
        ) from error


def _text_blocks(path: Path) -> Iterator[list[Any]]:
    """Yield the lines of a text file, some at a time: so many lines or characters."""
    with path.open(encoding="utf-8-sig") as file:
        block, size, number = [], 0, 0
        while line := file.readline(MOST_ITEM_NBYTES + 1):
            number += 1
            if len(line) > MOST_ITEM_NBYTES:
                raise InputError(
                    f"{path}, line {number}: expected one item a line, found a line of more than "
                    f"{MOST_ITEM_NBYTES} characters. Give a text file with an item a line."
                )
            block.append(line.removesuffix("\n"))
            size += len(line)
            if len(block) == _BLOCK or size > MOST_ITEM_NBYTES:
                yield block
                block, size = [], 0
        if block:
            yield block


def _npy_blocks(path: Path) -> Iterator[list[Any]]:
    header = read_header(path, str(path))
    if len(header.shape) != 1:
        raise InputError(
            f"{path}: expected a one-dimensional array, found the shape {header.shape}. "
            "Save one item for each row or column."
        )
    size, (n_items,) = header.dtype.itemsize, header.shape
    if size > MOST_ITEM_NBYTES:
        raise InputError(
            f"{path}: expected items of at most {MOST_ITEM_NBYTES} bytes, found {size}. Save "
            "shorter texts."
        )
    step = max(1, min(_BLOCK, MOST_ITEM_NBYTES // max(size, 1)))
    for start in range(0, n_items, step):
        count = min(step, n_items - start)
        yield np.fromfile(path, header.dtype, count, offset=header.offset + start * size).tolist()


def spool_items(spool: TextSpool, blocks: Iterable[list[Any]], where: Callable[[int], str]) -> None:
    """Append items as texts; a missing one is empty. ``where`` says where an item stands.

    Raises
    ------
    InputError
        If one is no text.
    """
    for block in blocks:
        first = len(spool)
        texts = texts_in(block, lambda i, first=first: where(first + i))  # type: ignore[misc]
        spool.append(texts_of(text or "" for text in texts))


def texts_given(what: str, items: Iterable[Any], expected: int) -> Iterator[str]:
    """Yield names of columns as texts; ``what`` says whose they are.

    Raises
    ------
    InputError
        If there are not ``expected`` of them, or one is missing.
    """
    n_items = 0
    for n_items, item in enumerate(items, 1):
        (text,) = texts_in([item], lambda _, n=n_items: f"{what}, item {n}")  # type: ignore[misc]
        if text is None:
            raise InputError(f"{what}: expected a text at {n_items}, found none. Fill it in.")
        yield text
    if n_items != expected:
        raise InputError(
            f"{what}: expected {expected} names, one for each column, found {n_items}. Give as "
            "many as there are columns."
        )
