"""The records of a file of trees: how they are laid out, and whether they are whole.

The file begins with :data:`MAGIC`. A record is the length of a tree's bytes and their CRC-32 (each
a little-endian uint32), then the bytes (:mod:`srs_ooc.trees.forest_reference`). The CRC-32 starts
from the record's number instead of 0, so a record lost or out of place is found as well.

A commit of the ledger says up to which byte the file is valid, after those bytes are safe on disk.
What lies beyond belongs to no commit: readers do not look at it, and a run that goes on cuts it
off.
"""

import os
import struct
import zlib
from pathlib import Path
from typing import BinaryIO

from srs_ooc.base.errors import RunError

MAGIC = b"srs-ooc trees 1\n"
BATCH_NBYTES = 1 << 18
HEAD = struct.Struct("<II")
"""Begins a record: the length of its bytes, and their CRC-32."""


def check_trees(path: Path, nbytes: int, n_trees: int | None) -> int:
    """Check every record of a file of trees up to byte ``nbytes``, in pieces of 256 kB.

    Return how many there are.

    Raises
    ------
    RunError
        If the file is short or a record damaged, or there are not ``n_trees`` of them.
    """
    check_length(path, nbytes)
    number, place = 0, len(MAGIC)
    try:
        with path.open("rb") as file:
            file.seek(place)
            while place < nbytes:
                length, expected = HEAD.unpack(file.read(HEAD.size).ljust(HEAD.size, b"\0"))
                place += HEAD.size + length
                if not length or place > nbytes or _crc_of(file, length, number) != expected:
                    raise damaged(path, number)
                number += 1
    except OSError as error:
        raise RunError(f"{path}: could not be read: {error.strerror}.") from error
    if n_trees is not None and number != n_trees:
        raise RunError(
            f"{path}: expected {n_trees} trees, found {number}. Restore the run's folder from a "
            "copy, or start the run again in another one."
        )
    return number


def count_trees(file: BinaryIO, nbytes: int) -> int:
    """Return how many records end by byte ``nbytes`` of an open file of trees."""
    number, place = 0, len(MAGIC)
    while place < nbytes:
        file.seek(place)
        place += HEAD.size + HEAD.unpack(file.read(HEAD.size).ljust(HEAD.size, b"\0"))[0]
        number += 1
    return number


def _crc_of(file: BinaryIO, length: int, number: int) -> int:
    crc = number & 0xFFFFFFFF
    while length and (piece := file.read(min(length, BATCH_NBYTES))):
        crc, length = zlib.crc32(piece, crc), length - len(piece)
    return crc


def damaged(path: Path, number: int) -> RunError:
    """Return the error of a damaged record of a file; ``number`` is of its tree, from 0."""
    return RunError(
        f"{path}: the record of tree {number + 1} is damaged. Restore the run's folder "
        "from a copy, or start the run again in another one."
    )


def whole_records(data: bytes) -> tuple[list[tuple[int, int]], int]:
    """Return where the trees of whole records lie in ``data``, and where the last one ends."""
    spans, place = [], 0
    while place + HEAD.size <= len(data):
        start = place + HEAD.size
        stop = start + HEAD.unpack_from(data, place)[0]
        if stop > len(data):
            break
        spans.append((start, stop))
        place = stop
    return spans, place


def missing_nbytes(data: bytes) -> int:
    """Return how many bytes the first record, begun in ``data``, is short of."""
    if len(data) < HEAD.size:
        return HEAD.size - len(data)
    return max(0, HEAD.size + int(HEAD.unpack_from(data)[0]) - len(data))


def check_length(path: Path, valid: int) -> None:
    """Check that a file is one of trees and has its ``valid`` bytes; RunError if not."""
    try:
        with path.open("rb") as file:
            magic = file.read(len(MAGIC))
            found = f"{os.fstat(file.fileno()).st_size} bytes"
            right = magic == MAGIC and os.fstat(file.fileno()).st_size >= valid
            if magic != MAGIC:
                found = "another kind of file"
    except OSError as error:
        right, found = False, error.strerror or str(error)
    if not right:
        raise RunError(
            f"{path}: expected at least {valid} bytes of trees, found {found}. Restore the run's "
            "folder from a copy, or start the run again in another one."
        )
