"""The header of a ``.npy`` file, checked against the file before anything is made of it."""

import math
import tokenize
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from srs_ooc.base.errors import InputError

BAD_HEADER = (
    ValueError, EOFError, OSError, SyntaxError, TypeError, OverflowError, MemoryError,
    RecursionError, tokenize.TokenError,
)  # fmt: skip


@dataclass(frozen=True)
class NpyHeader:
    """Shape and dtype of an array in a file, its order, and the byte its cells start at."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    is_fortran: bool
    offset: int


def read_header(path: Path, what: str) -> NpyHeader:
    """Read the header of a ``.npy`` file.

    Raises
    ------
    InputError
        If it is none, holds Python objects, has a dimension that is negative, or is of another
        size than the file.
    """
    try:
        with path.open("rb") as file:
            version = np.lib.format.read_magic(file)
            if version == (1, 0):
                shape, is_fortran, dtype = np.lib.format.read_array_header_1_0(file)
            elif version == (2, 0):
                shape, is_fortran, dtype = np.lib.format.read_array_header_2_0(file)
            else:
                raise ValueError(f"version {version} of the format")
            offset = file.tell()
        found = path.stat().st_size - offset
    except BAD_HEADER as error:
        raise _refused(what, f"could not read it: {str(error)[:200]}") from error
    if dtype.hasobject:
        raise _refused(what, "found one of Python objects")
    if min(shape, default=0) < 0:
        raise _refused(what, f"found the shape {str(shape)[:80]}")
    expected = math.prod(shape) * dtype.itemsize
    if found < expected:
        raise _refused(
            what, f"found {found} bytes for the shape {str(shape)[:80]}, which takes {expected}"
        )
    return NpyHeader(tuple(map(int, shape)), dtype, bool(is_fortran), offset)


def _refused(what: str, found: str) -> InputError:
    return InputError(
        f"{what}: expected a .npy file of numbers or texts, {found}. Get the file again, or save "
        "it again without objects."
    )
