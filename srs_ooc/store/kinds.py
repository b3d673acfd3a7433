"""Kinds of feature: their names, and those that the user forces."""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from srs_ooc.errors import InputError, UsageError
from srs_ooc.kernel.code import BOOLEAN, CATEGORICAL, CONSTANT, INTEGER, NUMERIC
from srs_ooc.kernel.parse import CATEGORIES, ONLY_NUMBERS, UNKNOWN, hash_text
from srs_ooc.store.texts import TextSpool

KINDS = {
    "numeric": NUMERIC,
    "integer": INTEGER,
    "boolean": BOOLEAN,
    "categorical": CATEGORICAL,
    "constant": CONSTANT,
}
NAMES = tuple(KINDS)
"""Names of the kinds, by number."""

FREE = 255
"""Stands for a kind that is to be found."""

_FITTING = {  # what may be found where a kind is forced
    NUMERIC: (NUMERIC, INTEGER, BOOLEAN, CONSTANT),
    INTEGER: (INTEGER, BOOLEAN, CONSTANT),
    BOOLEAN: (BOOLEAN, CONSTANT),
}


@dataclass(frozen=True)
class ForcedKinds:
    """Kinds that the user names.

    Attributes
    ----------
    given : sequence of (str, str)
        Names of columns and of their kinds.
    file : Path or None
        A CSV file of such pairs, without a header, or with the header ``name,kind``.

    Raises
    ------
    UsageError
        If a kind is none that can be forced.
    """

    given: Sequence[tuple[str, str]] = ()
    file: Path | None = None

    def __post_init__(self) -> None:
        for name, kind in self.given:
            _check_kind(kind, f"--kind {name}={kind}")

    def __bool__(self) -> bool:
        return bool(self.given) or self.file is not None

    def settle(self, source: object, header: TextSpool) -> NDArray[np.uint8]:
        """Return the kind forced of each column, :data:`FREE` where none is.

        Raises
        ------
        InputError
            If a name is no column, or named twice.
        """
        out = np.full(len(header), FREE, np.uint8)
        if not self:
            return out
        wanted, numbers, names = self._wanted()
        found = np.zeros(len(wanted), np.bool_)
        for start, hashes in header.hash_blocks():
            at = np.minimum(np.searchsorted(wanted, hashes), len(wanted) - 1)
            here = wanted[at] == hashes
            out[start : start + len(hashes)][here] = numbers[at[here]]
            found[at[here]] = True
        if not found.all():
            raise InputError(
                f"{source}: no such column {names[int(found.argmin())]!r} (--kind); expected one "
                f"of its {len(header)} columns. Check the spelling."
            )
        return out

    def _wanted(self) -> tuple[NDArray[np.uint64], NDArray[np.uint8], list[str]]:
        """Return hashes of names, ascending, with kinds and names."""
        pairs = [*self.given, *(_pairs_of(self.file) if self.file else ())]
        names = [name.strip(" \t") for name, _ in pairs]
        hashes = np.array([hash_text(name.encode()) for name in names], np.uint64)
        order = np.argsort(hashes, kind="stable")
        repeated = np.flatnonzero(np.diff(hashes[order]) == 0)
        if len(repeated):
            raise UsageError(
                f"--kind: expected each column once, found {names[order[repeated[0]]]!r} twice. "
                "Leave one out."
            )
        kinds = np.array([KINDS[kind] for _, kind in pairs], np.uint8)
        return hashes[order], kinds[order], [names[i] for i in order.tolist()]


def pair_of(text: str) -> tuple[str, str]:
    """Return the two parts of ``NAME=KIND``.

    Raises
    ------
    UsageError
        If there is no ``=``.
    """
    name, mark, kind = text.rpartition("=")
    if not mark:
        raise UsageError(
            f"--kind: expected NAME=KIND, found {text!r}. Write for example --kind chromosome="
            "categorical."
        )
    return name, kind


def _pairs_of(file: Path) -> list[tuple[str, str]]:
    try:
        with file.open(encoding="utf-8-sig", newline="") as stream:
            rows = [row for row in csv.reader(stream) if row]
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"{file}: expected a CSV file of names and kinds, could not read it: {error}. "
            "Check the path."
        ) from error
    if rows and [cell.strip() for cell in rows[0]] == ["name", "kind"]:
        rows = rows[1:]
    for row in rows:
        if len(row) != 2:
            raise InputError(
                f"{file}: expected a name and a kind on each line, found {','.join(row)!r}. "
                "Write for example chromosome,categorical."
            )
        _check_kind(row[1].strip(), f"{file}: {','.join(row)}")
    return [(name, kind.strip()) for name, kind in rows]


def _check_kind(kind: str, where: str) -> None:
    allowed = [name for name in KINDS if name != "constant"]
    if kind not in allowed:
        raise UsageError(
            f"{where}: expected one of the kinds {', '.join(allowed)}, found {kind!r}. Name one."
        )


def cells_of(forced: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return for a ``TableReader`` what the cells of columns of these forced kinds are."""
    cells = np.full(len(forced), ONLY_NUMBERS, np.uint8)
    cells[forced == FREE] = UNKNOWN
    cells[forced == CATEGORICAL] = CATEGORIES
    return cells


def first_misfit(found: NDArray[np.uint8], forced: NDArray[np.uint8]) -> int | None:
    """Return the first feature whose values do not show the kind that is forced, or None."""
    wrong = np.zeros(len(found), np.bool_)
    for kind, fitting in _FITTING.items():
        wrong |= (forced == kind) & ~np.isin(found, fitting)
    return int(wrong.argmax()) if wrong.any() else None


def describe_counts(counts: Mapping[str, int]) -> str:
    """Return counts by kind for people; kinds of which there are none are left out."""
    return ", ".join(f"{count} {name}" for name, count in counts.items() if count)
