"""What :func:`srs_ooc.ingest` is given, checked before it is used."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from srs_ooc.base.errors import UsageError
from srs_ooc.base.options import path_given, unexpected

WORDS = {
    "task": ("auto", "classification", "regression"),
    "missing_target": ("drop", "refuse"),
    "code_dtype": ("uint8", "uint16"),
}
"""Parameters that are one of a few words."""


def check_words(given: Mapping[str, Any]) -> None:
    """Refuse what is none of the words that a parameter may be.

    Raises
    ------
    UsageError
        Naming parameter and words.
    """
    for name, words in WORDS.items():
        if not isinstance(given[name], str) or given[name] not in words:
            raise unexpected(name, f"one of {', '.join(words)}", given[name])


def check_names(name: str, given: Any) -> None:
    """Refuse what names no columns: names are texts that UTF-8 can write.

    Raises
    ------
    UsageError
        Naming the parameter.
    """
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise unexpected(name, "a list of names of columns", given)
    for text in given:
        check_name(name, text)


def check_name(name: str, given: Any) -> None:
    """Refuse what is no name of a column.

    Raises
    ------
    UsageError
        Naming the parameter.
    """
    try:
        if isinstance(given, str):
            given.encode()
            return
    except UnicodeEncodeError:
        pass
    raise unexpected(name, "the name of a column", given)


def check_kinds(given: Any) -> None:
    """Refuse what does not map names of columns to kinds.

    Raises
    ------
    UsageError
        If it does not.
    """
    if given is None:
        return
    if not isinstance(given, Mapping):
        raise unexpected("kinds", "a mapping of names of columns to kinds", given)
    for name, kind in given.items():
        check_name("kinds", name)
        if not isinstance(kind, str):
            raise UsageError(f"kinds: expected the kind of {name!r} as text, found {kind!r:.60}.")


def pieces_given(table: Any, client: Any, *, has_values: bool) -> list[Path] | None:
    """Return the files of a table in pieces; None where it is something else.

    Raises
    ------
    UsageError
        If what is given beside goes with the other kind; ``has_values``: columns by their values.
    """
    is_pieces = isinstance(table, list | tuple) and len(table) > 0
    if not is_pieces or not all(isinstance(one, str | Path) for one in table):
        if client is not None:
            raise UsageError(
                "client: expected with a list of files, the pieces of a table, found "
                f"{type(table).__name__}. Leave it out."
            )
        return None
    if has_values:
        raise UsageError(
            "names, target, row_ids, weights, strata, groups: expected names of columns with a "
            "table in pieces, found values. Put them into the first piece, and name the columns."
        )
    return [path_given(one, "table") for one in table]
