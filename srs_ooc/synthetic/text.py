"""A table as comma-separated text, by table lookup: every cell is one of 199,999 short strings."""

import gzip
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from srs_ooc.synthetic.problem import (
    CELL_LIMIT,
    PIECE_CELLS,
    STEPS,
    TARGET_NAME,
    Problem,
    Target,
    feature_name,
    pieces,
)

NAMES_AT_ONCE = 1 << 16
GZIP_LEVEL = 1


@cache
def _words() -> NDArray[np.uint64]:
    """Return the text of each cell from -CELL_LIMIT up, comma included, padded to eight bytes."""
    values = (f"{step / STEPS:.4f}," for step in range(-CELL_LIMIT, CELL_LIMIT + 1))
    packed = b"".join(value.encode().ljust(8, b"\0") for value in values)
    return np.frombuffer(packed, dtype=np.uint64)


@cache
def _endings() -> NDArray[np.uint64]:
    """Return the text of each label with its line end, packed like a cell."""
    packed = b"".join(f"{label}\n".encode().ljust(8, b"\0") for label in range(256))
    return np.frombuffer(packed, dtype=np.uint64)


def _target_texts(target: Target) -> NDArray[np.uint64]:
    """Return the text of each target with its line end, packed like a cell."""
    if target.dtype == np.uint8:
        return _endings()[target]
    packed = b"".join(f"{value:.4f}\n".encode().ljust(8, b"\0") for value in target.tolist())
    return np.frombuffer(packed, dtype=np.uint64)


def _header(n_features: int) -> Iterator[bytes]:
    for start in range(0, n_features, NAMES_AT_ONCE):
        stop = min(start + NAMES_AT_ONCE, n_features)
        yield "".join(f"{feature_name(i)}," for i in range(start, stop)).encode()
    yield f"{TARGET_NAME}\n".encode()


def _text(words: NDArray[np.uint64]) -> bytes:
    return words.tobytes().translate(None, b"\0")


def csv_pieces(problem: Problem) -> Iterator[bytes]:
    """Yield the table as CSV, header first and target last, in pieces of bounded size."""
    yield from _header(problem.n_features)
    width = min(problem.n_features, PIECE_CELLS)
    for start, stop in pieces(problem.n_rows, width):
        endings = _target_texts(problem.target(start, stop))[:, None]
        for left in range(0, problem.n_features, width):
            right = min(left + width, problem.n_features)
            cells = problem.cells(start, stop, np.arange(left, right, dtype=np.uint32))
            cells += CELL_LIMIT
            words = _words()[cells]
            yield _text(np.hstack([words, endings]) if right == problem.n_features else words)


def write_csv(problem: Problem, path: Path, *, compressed: bool) -> None:
    """Write the table to ``path`` as CSV, gzipped if ``compressed``; equal problems, equal bytes.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    with path.open("wb") as plain:
        if not compressed:
            plain.writelines(csv_pieces(problem))
            return
        # No name and no time in the gzip header, so that equal tables are equal files.
        with gzip.GzipFile("", "wb", GZIP_LEVEL, plain, mtime=0) as zipped:
            zipped.writelines(csv_pieces(problem))
