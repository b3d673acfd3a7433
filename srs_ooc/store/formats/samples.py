"""A sample table: what is known of each sample, by its id."""

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from srs_ooc.errors import InputError
from srs_ooc.store.formats.dialect import TextForm
from srs_ooc.store.formats.pieces import PieceReader
from srs_ooc.store.formats.source import Source

_SHOWN = 5


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


def read_samples(
    source: Source, form: TextForm, id_name: str, wanted: Sequence[tuple[str, str]]
) -> Samples:
    """Read ids and columns of a sample table, a line for each sample.

    Parameters
    ----------
    source : Source
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
    cells: dict[str, tuple[str, ...]] = {}
    lines: dict[str, int] = {}
    for row in filled:
        where = f"{source}, line {rows.line_num}"
        if len(row) != len(header):
            raise InputError(
                f"{where}: expected {len(header)} fields as in the header, found {len(row)}. "
                "Mend the line."
            )
        sample, *rest = (row[place].strip(" \t") for place in places)
        if sample in cells:
            raise InputError(
                f"{where}: expected distinct ids in column {id_name!r}, found {sample!r} again. "
                "Keep one line for each sample."
            )
        cells[sample], lines[sample] = tuple(rest), rows.line_num
    return Samples(tuple(name for _, name in wanted), cells, lines)


def _lines(
    source: Source, first: bytes, pieces: Iterator[bytes], comment: str | None
) -> Iterator[str]:
    try:
        text = (first + b"".join(pieces)).decode()
    except UnicodeDecodeError as error:
        raise InputError(f"{source}: expected UTF-8 text: {error}. Convert the file.") from None
    for line in io.StringIO(text, newline=""):
        yield "\n" if comment and line.startswith(comment) else line


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
