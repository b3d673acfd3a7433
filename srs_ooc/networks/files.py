"""Writing edges to a file: CSV, or Parquet where pyarrow is installed."""

import csv
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from srs_ooc.base.errors import UsageError
from srs_ooc.base.files import published_file
from srs_ooc.base.frames import arrow_numbers, arrow_texts
from srs_ooc.base.text import no_formula

COLUMNS = ("regulator", "target", "weight")
PARQUET = ".parquet"
_OTHERS = (".feather", ".arrow", ".npy", ".npz", ".xlsx", ".xls", ".json", ".gz", ".xz", ".zst")
_ROWS_TOGETHER = 1 << 14
Edge = tuple[str, str, float]


class _Writer(Protocol):
    def __call__(self, edges: list[Edge]) -> None:
        """Write some edges."""


def check_edge_file(out: Path) -> None:
    """Refuse a name that promises a format which is not written, or Parquet without pyarrow.

    Raises
    ------
    UsageError
        Saying what to do.
    """
    suffix = out.suffix.lower()
    if str(out) == "-" or suffix in _OTHERS:
        raise UsageError(
            f"--out: expected the name of a CSV or Parquet file, such as edges.csv or "
            f"edges.parquet, found {out}. Choose another name."
        )
    if suffix == PARQUET:
        _arrow(out)


def write_edges(
    out: Path, edges: Iterable[list[Edge]], *, replaces: bool, safe: bool = False
) -> int:
    """Write edges, the heaviest first; the file appears complete or not at all.

    Parameters
    ----------
    out : Path
        Its suffix says the format.
    edges : iterable of lists of (regulator, target, weight)
        Some at a time.
    replaces : bool
        Replace a file that is there.
    safe : bool
        In CSV: no name is a formula to a spreadsheet.

    Returns
    -------
    int
        How many there were.

    Raises
    ------
    FileExistsError
        If there is a file, and it is not to be replaced.
    UsageError
        If the format needs a library that is not installed.
    """
    opened = _parquet if out.suffix.lower() == PARQUET else _csv
    n_edges = 0
    with published_file(out, replaces=replaces) as scratch, opened(scratch, safe) as write:
        for some in edges:
            write(some)
            n_edges += len(some)
    return n_edges


@contextmanager
def _csv(file: Path, safe: bool) -> Iterator[_Writer]:
    with file.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(COLUMNS)

        def write(edges: list[Edge]) -> None:
            shown = ((no_formula(r), no_formula(t), w) for r, t, w in edges)
            writer.writerows(shown if safe else edges)

        yield write


@contextmanager
def _parquet(file: Path, _: bool) -> Iterator[_Writer]:
    arrow, parquet = _arrow(file)
    kinds = (arrow.string(), arrow.string(), arrow.float64())
    schema = arrow.schema(list(zip(COLUMNS, kinds, strict=True)))
    with parquet.ParquetWriter(str(file), schema) as writer:

        def write(edges: list[Edge]) -> None:
            for start in range(0, len(edges), _ROWS_TOGETHER):
                some = edges[start : start + _ROWS_TOGETHER]
                regulators, targets, weights = zip(*some, strict=True)
                arrays = [arrow_texts(regulators), arrow_texts(targets)]
                arrays.append(arrow_numbers(np.array(weights)))
                writer.write_table(arrow.Table.from_arrays(arrays, schema=schema))

        yield write


def _arrow(file: Path) -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise UsageError(
            f"{file}: expected pyarrow for a Parquet file, found that it is not installed. "
            "Install it with `pip install 'srs-ooc[arrow]'`, or write a CSV file."
        ) from error
    return pyarrow, pyarrow.parquet
