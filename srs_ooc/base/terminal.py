"""Texts of others (names of features, classes, files) shown on a terminal or a spreadsheet."""

import unicodedata

_UNSEEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}
"""Unicode categories: controls, formats such as those that turn the direction, line separators."""


def visible(text: str) -> str:
    r"""Return text with what a terminal would obey, or not show, as escapes; line ends are kept.

    >>> visible("a\x1b[2Jb")
    'a\\x1b[2Jb'
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        character if character == "\n" or unicodedata.category(character) not in _UNSEEN
        else _escaped(character)
        for character in text
    )  # fmt: skip


def _escaped(character: str) -> str:
    return ascii(character)[1:-1]


def no_formula(text: str) -> str:
    """Return a text with ``'`` before it where a spreadsheet would take it for a formula."""
    return "'" + text if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text
