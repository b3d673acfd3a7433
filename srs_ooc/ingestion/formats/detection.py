"""Which format a file or an object is of."""

from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, cast

import numpy as np

from srs_ooc.base.budget import Lease, resident_nbytes
from srs_ooc.base.errors import InputError
from srs_ooc.base.options import part_at, places_of
from srs_ooc.ingestion.formats import Table
from srs_ooc.ingestion.formats.arrow import FEATHER, PARQUET, ArrowFile
from srs_ooc.ingestion.formats.in_memory import (
    ArrayTable,
    FrameTable,
    SparseTable,
    frame_library,
    with_needs,
)
from srs_ooc.ingestion.formats.numeric_files import NpyTable, SvmlightTable, is_svmlight, open_npz
from srs_ooc.ingestion.ingest_memory import Needs, own_nbytes
from srs_ooc.ingestion.ingest_options import IngestOptions

# Formats of other packages, known by how the names of their files end.
#
# An entry point of the group ``srs_ooc.formats`` has the ending, without its dot, for a name, and
# for a value a function ``open(path, scratch, cap_nbytes) -> Table``.

GROUP = "srs_ooc.formats"
Opener = Callable[[Path, Path, int], Table]


def is_outside(path: Path) -> bool:
    """Return whether a package says that it opens files with such a name."""
    return _ending(path) in places_of(GROUP)


def opener_of(path: Path) -> Opener:
    """Return what opens a file that :func:`is_outside`.

    Raises
    ------
    UsageError
        If the package cannot be imported.
    """
    ending = _ending(path)
    opener: Opener = part_at(places_of(GROUP)[ending], f"files named .{ending}")
    return opener


def _ending(path: Path) -> str:
    return path.suffix.removeprefix(".")


_TABLE = [name for name in dir(Table) if not name.startswith("_")]
_NPY, _ZIP = b"\x93NUMPY", b"PK\x03\x04"


def _start(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(8)
    except OSError:
        return b""  # the reader of text tables tells what is wrong with it


def is_other(path: Path) -> bool:
    """Return whether a file is one of :func:`open_file` rather than a text table."""
    start = _start(path)
    if start and is_svmlight(path):
        return True
    if start.startswith((_NPY, PARQUET, FEATHER)):
        return True
    return is_outside(path) or (start.startswith(_ZIP) and path.suffix == ".npz")


def open_file(path: Path, scratch: Path, options: IngestOptions) -> tuple[Table, Needs]:
    """Open a file that is no text table; return what all of its ingest takes, too.

    Parameters
    ----------
    path : Path
        The file.
    scratch : Path
        Folder for what must be unpacked.
    options : IngestOptions
        With the memory cap, for formats that have to be loaded.

    Raises
    ------
    BudgetError
        If the cap cannot hold what opening it takes.
    """
    if _start(path).startswith(_NPY):
        return with_needs(NpyTable(path, str(path)), options)
    for magic in (PARQUET, FEATHER):
        if _start(path).startswith(magic):
            arrow = ArrowFile(path, str(path), options, parquet=magic == PARQUET)
            return with_needs(arrow, options, arrow.held)
    if is_svmlight(path):
        cells = SvmlightTable(path, str(path), options)
        return with_needs(cells, options, cells.held, cells.opening)
    if is_outside(path):
        table = opener_of(path)(path, scratch, options.memory_nbytes)
        grown = Lease("what is held of the table", max(0, resident_nbytes() - own_nbytes()))
        return with_needs(table, options, (grown,))
    return open_npz(path, str(path), scratch, options)


def open_object(thing: Any, as_texts: Collection[str] = ()) -> Table:
    """Open an object in memory as a table.

    The columns ``as_texts`` may hold numbers and texts at once, which are taken as texts.

    Raises
    ------
    InputError
        If it is of no kind that is known.
    """
    if isinstance(thing, np.ndarray):
        return ArrayTable(thing, "the array")
    if frame_library(thing):
        return FrameTable(thing, "the frame", as_texts)
    if type(thing).__module__.startswith("scipy.sparse"):
        return SparseTable(thing, "the sparse matrix")
    if all(hasattr(thing, name) for name in _TABLE):
        return cast("Table", thing)  # of a format of the caller's own
    raise InputError(
        "expected a path, a NumPy array, a pandas or polars DataFrame, a pyarrow.Table, a SciPy "
        "sparse matrix or an object with the shape of srs_ooc.ingestion.formats.Table, found "
        f"{type(thing).__module__}.{type(thing).__qualname__}. Convert it."
    )
