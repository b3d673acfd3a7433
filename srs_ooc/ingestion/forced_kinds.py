"""Kinds of feature that the user forces."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import InputError, UsageError
from srs_ooc.base.text import MB, describe_nbytes
from srs_ooc.ingestion.parse import CATEGORIES, ONLY_NUMBERS, UNKNOWN
from srs_ooc.ingestion.scratch import TextSpool
from srs_ooc.ingestion.texts import hash_text
from srs_ooc.store.manifest import BOOLEAN, CATEGORICAL, INTEGER, KINDS

FREE = 255
"""Stands for a kind that is to be found."""

ACCEPTED = {INTEGER: "a whole number", BOOLEAN: "0 or 1"}
"""What the cells of features of these forced kinds may hold, besides missing values."""

_PAIRS_AT_A_TIME = 1 << 13
_NAME_NBYTES = 540
"""Memory of a name and its kind that are held, and once more by the reader of the table."""
MOST_LINE_NBYTES = MB
"""A line of a file of kinds is no longer."""


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
        for pairs in self._blocks():
            found = _force(pairs, header, out)
            for name in pairs:
                if name not in found:
                    raise InputError(
                        f"{source}: no such column {name.decode()!r} (--kind); expected one of its "
                        f"{len(header)} columns. Check the spelling."
                    )
        return out

    def by_name_nbytes(self) -> int:
        """Return the memory of :meth:`by_name`, found by reading the file once."""
        return sum(4 * len(name) + _NAME_NBYTES for pairs in self._blocks() for name in pairs)

    def by_name(self) -> dict[bytes, int]:
        """Return the kind forced of each name, held in memory."""
        out: dict[bytes, int] = {}
        for pairs in self._blocks():
            for name, kind in pairs.items():
                if name in out:
                    raise _twice(name)
                out[name] = kind
        return out

    def _blocks(self) -> Iterator[dict[bytes, int]]:
        """Yield kinds by name, some at a time."""
        pairs = chain(self.given, _pairs_of(self.file) if self.file else ())
        while block := list(islice(pairs, _PAIRS_AT_A_TIME)):
            out: dict[bytes, int] = {}
            for name, kind in block:
                key = name.strip(" \t").encode()
                if key in out:
                    raise _twice(key)
                out[key] = KINDS[kind]
            yield out


def _force(pairs: dict[bytes, int], header: TextSpool, out: NDArray[np.uint8]) -> set[bytes]:
    """Note the kinds of the columns that are named; return the names that were found.

    Hashes say where to look, names what is there.
    """
    wanted = np.array([hash_text(name) for name in pairs], np.uint64)
    found = set()
    for start, hashes in header.hash_blocks():
        for column in (start + np.flatnonzero(np.isin(hashes, wanted))).tolist():
            name = header.get(column)
            if name not in pairs:
                continue
            if out[column] != FREE:
                raise _twice(name)
            out[column] = pairs[name]
            found.add(name)
    return found


def _twice(name: bytes) -> UsageError:
    return UsageError(
        f"--kind: expected each column once, found {name.decode()!r} twice. Leave one out."
    )


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


def _pairs_of(file: Path) -> Iterator[tuple[str, str]]:
    try:
        with file.open(encoding="utf-8-sig", newline="") as stream:
            rows = csv.reader(_bounded(stream, file))
            is_first = True
            for row in rows:
                if row and not (is_first and [cell.strip() for cell in row] == ["name", "kind"]):
                    yield _pair(row, f"{file}, line {rows.line_num}")
                is_first = is_first and not row
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(
            f"{file}: expected a CSV file of names and kinds, could not read it: {error}. "
            "Check the path."
        ) from error


def _bounded(stream: TextIO, file: Path) -> Iterator[str]:
    while line := stream.readline(MOST_LINE_NBYTES + 1):
        if len(line) > MOST_LINE_NBYTES:
            raise InputError(
                f"{file}: expected a name and a kind a line, found a line of more than "
                f"{describe_nbytes(MOST_LINE_NBYTES)}. Give a CSV file."
            )
        yield line


def _pair(row: list[str], where: str) -> tuple[str, str]:
    if len(row) != 2:
        raise InputError(
            f"{where}: expected a name and a kind, found {','.join(row)!r}. Write for example "
            "chromosome,categorical."
        )
    kind = row[1].strip()
    _check_kind(kind, where)
    return row[0], kind


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


def row_cells_of(forced: Mapping[bytes, int]) -> dict[bytes, int]:
    """Return the same for rows by their names."""
    return {
        name: CATEGORIES if kind == CATEGORICAL else ONLY_NUMBERS for name, kind in forced.items()
    }


def first_misfit(
    values: NDArray[np.floating[Any]], forced: NDArray[np.uint8]
) -> tuple[int, int] | None:
    """Return feature and row of the first of ``values`` (m, n_rows) its forced kind excludes."""
    for feature in np.flatnonzero(np.isin(forced, list(ACCEPTED))).tolist():
        line = values[feature]
        if forced[feature] == BOOLEAN:
            wrong = (line != 0) & (line != 1) & ~np.isnan(line)
        else:
            wrong = (line != np.floor(line)) & ~np.isnan(line)
        if wrong.any():
            return feature, int(wrong.argmax())
    return None
