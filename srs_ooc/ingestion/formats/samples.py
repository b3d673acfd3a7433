"""A sample table: what is known of each sample, by its id."""

import codecs
import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from srs_ooc.base.errors import InputError
from srs_ooc.base.text import MB, describe_nbytes
from srs_ooc.ingestion.formats.dialect import TextForm
from srs_ooc.ingestion.formats.pieces import PieceReader
from srs_ooc.ingestion.formats.source import SourceFile
from srs_ooc.ingestion.texts import TO_UTF8

_SHOWN = 5
_LINE_END = re.compile(r"(?<=\n)|(?<=\r)(?=[^\n])")
_SAMPLE_NBYTES, _CELL_NBYTES, _ID_NBYTES = 210, 64, 140
"""Memory of a sample in both mappings, of a cell of it, and of an id that is looked up in them, as
Python objects, beyond their texts; measured 202, 62 and 130 at 10^6 samples."""
MOST_LINE_NBYTES = 16 * MB
"""A line of a sample table is no longer."""


@dataclass(frozen=True)
class Samples:
    """What a sample table holds.

    Attributes
    ----------
    columns : tuple of str
        Names of the columns asked for.
    cells : dict
        By sample id, in the order of the file, the cells of those columns.
    lines : dict
        By sample id, the line of the file.
    """

    columns: tuple[str, ...]
    cells: dict[str, tuple[str, ...]]
    lines: dict[str, int]


def samples_nbytes(
    source: SourceFile, form: TextForm, id_name: str, wanted: Sequence[tuple[str, str]]
) -> int:
    """Return the memory that :func:`read_samples` takes, found by reading the file once.

    Raises
    ------
    InputError
        As :func:`read_samples`, but for ids that occur twice.
    """
    return sum(
        _SAMPLE_NBYTES + _text_nbytes(sample) + sum(_CELL_NBYTES + _text_nbytes(c) for c in cells)
        for _, sample, *cells in _samples(source, form, id_name, wanted)
    )


def ids_nbytes(n_ids: int, text_nbytes: int) -> int:
    """Return the memory of the ids of a header that are compared with those of a sample table."""
    return _ID_NBYTES * n_ids + text_nbytes


def _text_nbytes(text: str) -> int:
    return len(text) if text.isascii() else 4 * len(text)


def read_samples(
    source: SourceFile, form: TextForm, id_name: str, wanted: Sequence[tuple[str, str]]
) -> Samples:
    """Read ids and columns of a sample table, a line for each sample.

    Parameters
    ----------
    source : SourceFile
        The file.
    form : TextForm
        What is said of it.
    id_name : str
        Column of the ids.
    wanted : sequence of (str, str)
        For each other column the option that names it, and its name.

    Raises
    ------
    InputError
        If a column is not there, a row is ragged, or an id occurs twice.
    """
    cells: dict[str, tuple[str, ...]] = {}
    lines: dict[str, int] = {}
    for line, sample, *rest in _samples(source, form, id_name, wanted):
        if sample in cells:
            raise InputError(
                f"{source}, line {line}: expected distinct ids in column {id_name!r}, found "
                f"{sample!r} again. Keep one line for each sample."
            )
        cells[sample], lines[sample] = tuple(rest), line
    return Samples(tuple(name for _, name in wanted), cells, lines)


def _samples(
    source: SourceFile, form: TextForm, id_name: str, wanted: Sequence[tuple[str, str]]
) -> Iterator[tuple[Any, ...]]:
    """Yield the line, the id and the columns asked for of each sample."""
    pieces = PieceReader(source).pieces()
    first = next(pieces, b"").removeprefix(b"\xef\xbb\xbf")
    separator = form.settle(first.decode(errors="replace")).separator
    rows = csv.reader(_lines(source, first, pieces, form.comment), delimiter=separator)
    filled = (row for row in rows if row)
    header = [name.strip(" \t") for name in next(filled, [])]
    places = []
    for option, name in (("--id", id_name), *wanted):
        if name not in header:
            raise InputError(
                f"{source}: no such column {name!r} ({option}); expected one of "
                f"{', '.join(map(repr, header[:20]))}."
            )
        places.append(header.index(name))
    for row in filled:
        if len(row) != len(header):
            raise InputError(
                f"{source}, line {rows.line_num}: expected {len(header)} fields as in the header, "
                f"found {len(row)}. Mend the line."
            )
        yield (rows.line_num, *(row[place].strip(" \t") for place in places))


def _lines(
    source: SourceFile, first: bytes, pieces: Iterator[bytes], comment: str | None
) -> Iterator[str]:
    """Yield lines one at a time, with their ends; a file is never held whole."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    rest = ""
    try:
        for piece in chain([first], pieces, [b""]):
            *lines, rest = _LINE_END.split(rest + decoder.decode(piece, final=not piece))
            if len(rest) > MOST_LINE_NBYTES:
                raise InputError(
                    f"{source}: expected lines of at most {describe_nbytes(MOST_LINE_NBYTES)}, "
                    "found a longer one. Give a text table with a line for each sample."
                )
            for line in lines:
                yield "\n" if comment and line.startswith(comment) else line
    except UnicodeDecodeError as error:
        raise InputError(f"{source}: expected UTF-8 text: {error.reason}. {TO_UTF8}") from None
    if rest:
        yield "\n" if comment and rest.startswith(comment) else rest


def unmatched(samples: Samples, ids: list[str]) -> dict[str, Any]:
    """Count and list the ids of either side that the other lacks; JSON-ready."""
    here = set(ids)
    sides = {
        "samples_without_label": [name for name in ids if name not in samples.cells],
        "labels_without_sample": [name for name in samples.cells if name not in here],
    }
    return {
        side: {"n": len(names), "first": names[:_SHOWN]} for side, names in sides.items() if names
    }
