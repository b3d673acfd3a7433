"""A sample table: the class label of each sample, by its id."""

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from srs_ooc.errors import InputError
from srs_ooc.store.formats.dialect import TextForm
from srs_ooc.store.formats.pieces import PieceReader
from srs_ooc.store.formats.source import Source

_SHOWN = 5


@dataclass(frozen=True)
class Samples:
    """Labels by sample id, in the order of the file."""

    labels: dict[str, str]


def read_samples(source: Source, form: TextForm, id_name: str, target_name: str) -> Samples:
    """Read the ids and labels of a sample table, a line for each sample.

    Raises
    ------
    InputError
        If a column is not there, a row is ragged, an id occurs twice, or a label is missing.
    """
    pieces = PieceReader(source).pieces()
    first = next(pieces, b"").removeprefix(b"\xef\xbb\xbf")
    separator = form.settle(first.decode(errors="replace")).separator
    rows = csv.reader(_lines(source, first, pieces, form.comment), delimiter=separator)
    filled = (row for row in rows if row)
    header = [name.strip(" \t") for name in next(filled, [])]
    columns = []
    for option, name in (("--id", id_name), ("--target", target_name)):
        if name not in header:
            raise InputError(
                f"{source}: no such column {name!r} ({option}); expected one of "
                f"{', '.join(map(repr, header[:20]))}."
            )
        columns.append(header.index(name))
    labels: dict[str, str] = {}
    for row in filled:
        where = f"{source}, line {rows.line_num}"
        if len(row) != len(header):
            raise InputError(
                f"{where}: expected {len(header)} fields as in the header, found {len(row)}. "
                "Mend the line."
            )
        sample, label = (row[column].strip(" \t") for column in columns)
        if sample in labels:
            raise InputError(
                f"{where}: expected distinct ids in column {id_name!r}, found {sample!r} again. "
                "Keep one line for each sample."
            )
        if label in (form.missing or ("", "NA", "nan", "NaN")):
            raise InputError(
                f"{where}: column {target_name!r}: expected a class label, found {label!r}. "
                "Remove the line, or fill its label in."
            )
        labels[sample] = label
    return Samples(labels)


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
        "samples_without_label": [name for name in ids if name not in samples.labels],
        "labels_without_sample": [name for name in samples.labels if name not in here],
    }
    return {
        side: {"n": len(names), "first": names[:_SHOWN]} for side, names in sides.items() if names
    }
