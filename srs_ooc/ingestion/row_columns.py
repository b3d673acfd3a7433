"""What a table says of its rows besides features: target, weights, strata, groups, row ids.

Each such column is first spooled as text, whatever the format, and settled when all of it is known.
"""

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import InputError
from srs_ooc.ingestion.parse import parse_decimal
from srs_ooc.ingestion.scratch import ScratchArray, TextSpool, blocks_of, joined
from srs_ooc.ingestion.texts import TextCoder, split_texts

MOST_TUPLES = 1 << 16
"""Strata of several columns are at most so many."""

_INFINITY = re.compile(rb"[+-]?inf(inity)?", re.IGNORECASE)
_NAN = re.compile(rb"[+-]?nan", re.IGNORECASE)


@dataclass(frozen=True)
class Wording:
    """How the cells of a table are to be read, and where they stand.

    Attributes
    ----------
    missing : frozenset of bytes or None
        Texts that stand for a missing value; empty, NA and nan if None.
    point : bytes
        The decimal point.
    where : callable
        Returns for a row, from 0, the file and the line or row, for messages.
    """

    where: Callable[[int], str]
    missing: frozenset[bytes] | None = None
    point: bytes = b"."

    def is_missing(self, text: bytes) -> bool:
        """Tell whether a text stands for a missing value."""
        if self.missing is not None:
            return text in self.missing
        return text in (b"", b"NA") or _NAN.fullmatch(text) is not None

    def number(self, text: bytes) -> float | None:
        """Return the number that a text is, infinities included; None if it is none."""
        plain = text if self.point == b"." else text.replace(self.point, b".")
        value = parse_decimal(plain)
        if value is not None:
            return value
        if _INFINITY.fullmatch(plain):
            return -math.inf if plain.startswith(b"-") else math.inf
        return None


@dataclass(frozen=True)
class RowColumn:
    """A column of texts, one for each row of the source.

    Attributes
    ----------
    name : str
        What it is called.
    texts : TextSpool
        Its cells.
    """

    name: str
    texts: TextSpool


class KeptRows:
    """The rows that are kept: all, or those of a mask."""

    def __init__(self, n_rows: int, mask: NDArray[np.bool_] | None = None) -> None:
        self.mask = None if mask is None or mask.all() else mask
        self.n_source_rows = n_rows
        self.n_rows = n_rows if self.mask is None else int(self.mask.sum())

    @property
    def n_dropped(self) -> int:
        """Rows that are not kept."""
        return self.n_source_rows - self.n_rows

    def source_row(self, row: int) -> int:
        """Return the row of the source that kept row ``row`` is."""
        return row if self.mask is None else int(np.flatnonzero(self.mask)[row])

    def of(self, start: int, block: NDArray[np.generic]) -> NDArray[np.generic]:
        """Return the kept ones of the items of the rows from ``start`` on."""
        return block if self.mask is None else block[self.mask[start : start + len(block)]]

    def texts(self, spool: TextSpool) -> Iterator[tuple[bytes, NDArray[np.uint64]]]:
        """Yield the texts of kept rows in blocks."""
        start = 0
        for blob, ends in spool.blocks():
            n_texts = len(ends)
            if self.mask is None:
                yield blob, ends
            else:
                kept = self.mask[start : start + n_texts].tolist()
                pieces = split_texts(blob, ends)
                yield joined([text for text, k in zip(pieces, kept, strict=True) if k])
            start += n_texts

    def numbers(self) -> Iterator[int]:
        """Yield the number of each kept row, from 1."""
        for row in range(self.n_source_rows):
            if self.mask is None or self.mask[row]:
                yield row + 1


def coded_texts(
    column: RowColumn, kept: KeptRows, wording: Wording, out: Path, option: str, max_nbytes: int
) -> tuple[ScratchArray, int]:
    """Return the numbers of the distinct texts of a column, in order of appearance among kept rows.

    Returns
    -------
    codes : ScratchArray of int32
        The number of the text of each kept row.
    n_codes : int
        Distinct texts.

    Raises
    ------
    InputError
        If a text is missing, or the distinct ones take too much memory.
    """
    coder, codes, start = TextCoder(max_nbytes), ScratchArray(out, np.int32), 0
    for blob, ends in column.texts.blocks():
        pieces = list(split_texts(blob, ends))
        chosen = [
            (row, text)
            for row, text in enumerate(pieces, start)
            if kept.mask is None or kept.mask[row]
        ]
        n_known = len(coder)
        numbers = coder.code(*joined([text for _, text in chosen]))
        if len(numbers) < len(chosen):
            row, text = chosen[len(numbers)]
            raise InputError(
                f"{wording.where(row)}: column {column.name!r} ({option}): expected texts of which "
                f"{len(coder)} different ones fill the memory there is, found another "
                f"({shown(text)}). Name a column of fewer, or raise --memory-mb."
            )
        fresh = numbers.max(initial=-1) >= n_known
        for (row, text), number in zip(chosen, numbers.tolist(), strict=True) if fresh else ():
            if number >= n_known and wording.is_missing(text):
                raise InputError(
                    f"{wording.where(row)}: column {column.name!r} ({option}): expected a text, "
                    f"found {shown(text)}, a missing value. Fill it in, or remove the row."
                )
        codes.append(numbers)
        start += len(pieces)
    return codes, len(coder)


def combined_codes(parts: list[tuple[ScratchArray, int]], out: Path, what: str) -> ScratchArray:
    """Return codes of the tuples of several codes, in order of first appearance.

    Raises
    ------
    InputError
        If there are more than :data:`MOST_TUPLES`; ``what`` says of what.
    """
    if len(parts) == 1:
        return parts[0][0]
    known: dict[int, int] = {}
    codes = ScratchArray(out, np.int32)
    for blocks in zip(*(blocks_of(array) for array, _ in parts), strict=True):
        key = np.zeros(len(blocks[0]), np.int64)
        for block, (_, n_codes) in zip(blocks, parts, strict=True):
            key = key * n_codes + block
        distinct, first, inverse = np.unique(key, return_index=True, return_inverse=True)
        for i in np.argsort(first).tolist():
            known.setdefault(int(distinct[i]), len(known))
        if len(known) > MOST_TUPLES:
            raise InputError(
                f"{what}: expected columns that combine to at most {MOST_TUPLES} different tuples, "
                f"found more. Name fewer columns."
            )
        codes.append(np.array([known[k] for k in distinct.tolist()], np.int32)[inverse])
    return codes


def weights_of(column: RowColumn, kept: KeptRows, wording: Wording, out: Path) -> ScratchArray:
    """Return the weights of the kept rows.

    Raises
    ------
    InputError
        If one is no positive finite number.
    """
    weights, row = ScratchArray(out, np.float64), 0
    for blob, ends in column.texts.blocks():
        block = np.empty(len(ends))
        for i, text in enumerate(split_texts(blob, ends)):
            value = None if wording.is_missing(text) else wording.number(text)
            is_kept = kept.mask is None or kept.mask[row + i]
            if is_kept and (value is None or not 0 < value < math.inf):
                raise InputError(
                    f"{wording.where(row + i)}: column {column.name!r} (--weights): expected a "
                    f"positive finite number, found {shown(text)}. Mend it, or remove the row."
                )
            block[i] = math.nan if value is None else value
        weights.append(kept.of(row, block))
        row += len(ends)
    return weights


def shown(text: bytes) -> str:
    """Return the beginning of a cell for a message."""
    return repr(text[:80].decode("utf-8", "replace")) if text else "an empty cell"
