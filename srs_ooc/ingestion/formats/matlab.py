"""Files of MATLAB 5 to 7.2, loaded by SciPy: a matrix, and vectors that stand beside it."""

import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from srs_ooc.base.budget import Lease
from srs_ooc.base.errors import unfit
from srs_ooc.base.text import MB
from srs_ooc.ingestion import formats
from srs_ooc.ingestion.formats import Table, in_memory
from srs_ooc.ingestion.formats.files import File

_NUMBERS = {"single", "double", "sparse", "logical"}
_NUMBERS |= {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
_HEADER_NBYTES, _PACKED = 128, 15
_SCIPY = Lease("SciPy", 40 * MB)


def open_mat(file: File) -> Table:
    """Return the matrix X, or the only one, or that named after ``::``, with vectors beside it.

    Those as long as its rows (numbers, cells of texts, lines of characters) are annotations: row
    ids are ``ids`` and the target ``y``, where nothing else is said. ``names``, as long as its
    columns, are the names.

    Raises
    ------
    InputError
        If there is no such matrix, or the file is damaged.
    BudgetError
        If the cap cannot hold what is loaded.
    """
    import scipy.io

    with formats.reading(file, "a file of MATLAB", "Get the file again.", found="found damage"):
        sizes = {name: (shape, kind) for name, shape, kind in scipy.io.whosmat(file.path)}
        nbytes = 8 * _nbytes(file.path)  # of numbers a byte each
    matrices = [one for one, (size, kind) in sizes.items() if kind in _NUMBERS and min(size) > 1]
    main = file.inner or ("X" if "X" in matrices else matrices[0] if len(matrices) == 1 else "")
    shape, kind = sizes.get(main, ((), ""))
    if kind not in _NUMBERS or len(shape) != 2:
        found = ", ".join(f"{one} ({kind} {shape})" for one, (shape, kind) in sizes.items())
        expected = f"a matrix {main!r}" if main else "one matrix of numbers, or one named X"
        raise unfit(file, expected, found[:300], "Save one, or name it: FILE::NAME.")
    (table := Table()).shape = shape
    held = table.held = (_SCIPY, Lease("cells", nbytes))
    opening = table.opening = (_SCIPY, Lease("cells while they are loaded", 2 * nbytes))
    file.check(table)
    beside = [one for one, (size, kind) in sizes.items() if kind in _NUMBERS | {"char", "cell"}]
    with formats.reading(file, "a file of MATLAB", "Get the file again.", found="found damage"):
        known = scipy.io.loadmat(file.path, variable_names=beside, squeeze_me=True)
    cells: Any = known[main]
    if kind == "logical" and cells.dtype != np.uint8:
        found = "others, as Octave writes sparse ones, which it cannot read itself"
        expected = f"logical cells of a byte in {main!r}"
        raise unfit(file, expected, found, f"Save double({main}).")
    is_sparse = hasattr(cells, "tocsc")
    cells = cells if is_sparse else np.reshape(cells, shape)
    table = (in_memory.SparseTable if is_sparse else in_memory.ArrayTable)(cells, str(file))
    table.format, table.held, table.opening = "mat", held, opening
    lists = [one for one in beside if sizes[one][1] != "sparse" and one != main]
    shapes = {one: np.shape(np.atleast_1d(known[one])) for one in lists}
    in_memory.take_beside(table, shapes, lambda one: _items(np.atleast_1d(known[one])))
    return table


def _items(cells: Any) -> list[Any]:
    """Return numbers or texts; an empty cell is none."""
    return [
        None if isinstance(one, np.ndarray) and not one.size else one
        for one in in_memory.list_of(cells)
    ]


def _nbytes(path: Path) -> int:
    """Return how many bytes variables take that are packed, each of which says so in its tag."""
    total = 0
    with path.open("rb") as file:
        order = "<" if file.read(_HEADER_NBYTES).endswith(b"IM") else ">"
        while len(tag := file.read(8)) == 8:
            kind, size = struct.unpack(f"{order}2I", tag)
            start = file.read(min(size, 1 << 12))
            file.seek(size - len(start), 1)
            if kind == _PACKED:
                size = struct.unpack(f"{order}2I", zlib.decompressobj().decompress(start, 8))[1]
            total += size
    return total
