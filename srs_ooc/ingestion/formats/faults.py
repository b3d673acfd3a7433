"""What stopped the reader of a text table, in the user's words."""

import re
from collections.abc import Callable

from srs_ooc.base.errors import InputError
from srs_ooc.ingestion.formats.dialect import name_of
from srs_ooc.ingestion.formats.source import SourceFile
from srs_ooc.ingestion.parse import Dialect, Fault

_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+")


def raise_fault(
    source: SourceFile,
    problem: Fault | None,
    n_columns: int,
    name_of_column: Callable[[int], str],
    dialect: Dialect,
) -> None:
    """Raise what stopped a reader, if anything did.

    Raises
    ------
    InputError
        Naming file, line, column, text, and what would be accepted.
    """
    if problem is None:
        return
    if problem.fault == "ragged":
        raise InputError(
            f"{source}, line {problem.line}: expected {n_columns} fields as in the first row, "
            f"found {problem.column} (separated by {name_of(dialect.separator)}). Mend the line."
        )
    name = "" if problem.fault == "open_quote" else name_of_column(problem.column)
    raise InputError(
        f"{source}, line {problem.line}: {explain(problem, f'column {name}', dialect)}"
    )


def explain(problem: Fault, where: str, dialect: Dialect) -> str:
    """Say what was expected at ``where``, what was found, and what to do."""
    text = repr(problem.text)
    return {
        "not_a_number": f"{where}: expected a number (or {_missing(dialect)} for a missing value), "
        f"found {text}. Mend the cell, leave the column out with --ignore, or take all its cells "
        f"as categories with --kind NAME=categorical.{_hint(problem)}",
        "infinite": f"{where}: expected a finite number, found {text}. Mend the cell, or make it "
        f"missing ({_missing(dialect)}).",
        "many_categories": f"{where}: expected categories whose texts fit into the memory that is "
        f"left for them, found more ({text}). Leave columns of free text out with --ignore, or "
        "raise --memory-mb.",
        "long_field": f"{where}: expected a field of at most 1 MB, found a longer one. "
        "Look for a missing closing quote or delimiter.",
        "open_quote": "expected the quote that opens here to be closed, found the end of the file. "
        "Close or remove the quote.",
    }[problem.fault]


def _missing(dialect: Dialect) -> str:
    if dialect.missing is None:
        return "an empty cell, NA or nan"
    return " or ".join(repr(text) if text else "an empty cell" for text in dialect.missing)


def _hint(problem: Fault) -> str:
    if _DECIMAL_COMMA.fullmatch(problem.text):
        return " If the table writes 1,5 for 1.5, say --decimal comma."
    if problem.text.lower() in ("", "na", "nan", "n/a", "null", "none", "?", "-", "."):
        return (
            " If it stands for a missing value, name it with --missing, with the others there are."
        )
    return ""
