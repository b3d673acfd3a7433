"""Checking single options."""

from srs_ooc.errors import UsageError
from srs_ooc.shares import DECIMALS, share_text


def in_range(
    name: str, value: int | None, default: int, low: int, high: int | None, why: str = ""
) -> int:
    """Return a whole number from ``low`` to ``high``, or the default where none is given.

    Raises
    ------
    UsageError
        If it is outside; ``why`` says what ``high`` is.
    """
    if value is None:
        return default
    if value < low or (high is not None and value > high):
        bound = f"from {low} to {high}{why}" if high is not None else f"of at least {low}"
        raise UsageError(f"--{name}: expected a whole number {bound}, found {value}.")
    return value


def one_of(name: str, value: str, choices: tuple[str, ...]) -> str:
    """Return ``value``, one of ``choices``.

    Raises
    ------
    UsageError
        If it is none of them.
    """
    if value not in choices:
        raise UsageError(f"--{name}: expected one of {', '.join(choices)}, found {value!r}.")
    return value


def share(name: str, text: str) -> str:
    """Check a decimal from 0 to 1 and return its canonical text."""
    try:
        return share_text(text)
    except ValueError as error:
        raise UsageError(
            f"--{name}: expected a decimal number from 0 to 1 with at most "
            f"{DECIMALS} places, found {text[:40]!r}."
        ) from error
