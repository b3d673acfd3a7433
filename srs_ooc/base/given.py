"""What a caller from Python gives, checked before it is used: paths, whole numbers, yes or no."""

import math
import os
from pathlib import Path
from typing import Any

from srs_ooc.base.errors import UsageError
from srs_ooc.base.params import LARGEST
from srs_ooc.base.places import Place, Url, place_of


def path_given(value: Any, name: str) -> Path:
    """Return a path.

    Raises
    ------
    UsageError
        If it is none, or one that no file can have.
    """
    try:
        if isinstance(value, str | os.PathLike) and "\0" not in (path := os.fspath(value)):
            os.fsencode(path)
            return Path(path)
    except (TypeError, ValueError):
        pass  # a path of bytes, or a text that no file system can hold
    raise unexpected(name, "a path as text or pathlib.Path", value)


def place_given(value: Any, name: str) -> Place:
    """Return a path, or the URL that a text stands for.

    Raises
    ------
    UsageError
        If it is neither.
    """
    return value if isinstance(value, Url) else place_of(path_given(value, name))


def whole_given(value: Any, name: str, low: int = 1) -> int | None:
    """Return a whole number from ``low`` on; None where none is given.

    Raises
    ------
    UsageError
        If it is none, or out of range.
    """
    if value is None:
        return None
    try:
        number = value.__index__()
    except (AttributeError, TypeError):
        number = low - 1
    if not isinstance(number, int) or not low <= number <= LARGEST:
        raise unexpected(name, f"a whole number from {low} to {LARGEST}", value)
    return number


def megabytes_given(value: Any, name: str = "--memory-mb") -> float:
    """Return a finite number of megabytes above 0.

    Raises
    ------
    UsageError
        If it is none.
    """
    try:
        number = math.nan if isinstance(value, str | bytes) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not 0 < number <= LARGEST:
        raise unexpected(name, f"a number of megabytes up to {LARGEST}", value)
    return number


def flag_given(value: Any, name: str) -> bool:
    """Return yes or no.

    Raises
    ------
    UsageError
        If it is neither.
    """
    if type(value).__name__ not in ("bool", "bool_", "int") or value not in (0, 1):
        raise unexpected(name, "True or False", value)
    return bool(value)


def unexpected(name: str, expected: str, value: Any) -> UsageError:
    """Return the error that says what was expected of ``name``, and what was found."""
    return UsageError(
        f"{name}: expected {expected}, found {ascii(value)[:60]} ({type(value).__name__}). "
        "Give one, or leave it out where it may be."
    )
