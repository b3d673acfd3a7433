"""Classes that are often none: of one row, words for what is missing, texts among numbers."""

from collections.abc import Mapping, Sequence
from shlex import quote

from srs_ooc.base.errors import InputError
from srs_ooc.base.text import counted
from srs_ooc.ingestion.parse import parse_decimal

NAMED = 5
"""Labels that a message names."""
FEW_ROWS = 20
"""In tables of fewer rows classes of one are nothing unusual."""
_WORDS = frozenset(
    ("?", "-", "--", ".", "null", "none", "nil", "n/a", "#n/a", "nan", "<na>", "na", "missing",
     "unknown", "unk", "not available", "not known", "undefined")
)  # fmt: skip


def words_for_missing(labels: Sequence[str]) -> list[str]:
    """Return the labels that look like words for a missing value."""
    return [label for label in labels if label.strip().lower() in _WORDS]


def texts_among_numbers(labels: Sequence[str]) -> list[str]:
    """Return the labels that are no numbers, where most are; else none."""
    texts = [label for label in labels if parse_decimal(label.encode()) is None]
    return texts if 0 < len(texts) < len(labels) / 2 else []


def check_counts(where: str, rows: Mapping[str, int], least: int | None = None) -> None:
    """Refuse classes of too few rows.

    Parameters
    ----------
    where : str
        File and column, for messages.
    rows : mapping of str to int
        Rows of each class.
    least : int, optional
        Rows that a class must have; by default two, where there are :data:`FEW_ROWS` or more.

    Raises
    ------
    InputError
        Naming such classes, and what they may be.
    """
    if least is None:
        least = 2 if sum(rows.values()) >= FEW_ROWS else 1
    rare = [label for label, count in rows.items() if count < least]
    if not rare:
        return
    classes = f"{len(rare):,} of {len(rows):,} classes {'has' if len(rare) == 1 else 'have'}"
    raise InputError(
        f"{where}: expected classes of {counted(least, 'row')} or more, found that {classes} "
        f"fewer: {_named(rare)}. {_remedy(list(rows), rare)}"
    )


def _remedy(labels: Sequence[str], rare: Sequence[str]) -> str:
    keep = "--min-class-rows 1 takes classes as they are."
    if texts := texts_among_numbers(labels):
        return f"If the target is a number, {said_of_missing(texts)}. {keep}"
    if words := words_for_missing(rare):
        return f"Perhaps {said_of_missing(words)}. {keep}"
    return (
        "Name another column with --target if this is none of classes; if the target is a number, "
        f"say --task regression; merge the classes, or leave their rows out. {keep}"
    )


def said_of_missing(labels: Sequence[str]) -> str:
    """Say that some labels stand for missing values, and what to do then."""
    verb = "stands" if len(labels) == 1 else "stand"
    return (
        f"{_named(labels)} {verb} for missing values: empty such cells, or say "
        f"{missing_options(labels)}"
    )


def missing_options(labels: Sequence[str]) -> str:
    """Return the options that take some labels for missing, beside what is so by default."""
    words = ("", "NA", "nan", *labels[:NAMED])
    return " ".join(f"--missing {quote(word)}" for word in words)


def _named(labels: Sequence[str]) -> str:
    more = f" and {len(labels) - NAMED:,} more" if len(labels) > NAMED else ""
    return f"{', '.join(map(repr, labels[:NAMED]))}{more}"
