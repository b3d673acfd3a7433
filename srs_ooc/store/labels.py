"""Labels, names and row ids of arrays and frames, or apart from a table, as texts in blocks."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from srs_ooc.errors import InputError
from srs_ooc.store.texts import TextSpool, texts_of

_BLOCK = 1 << 14
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
