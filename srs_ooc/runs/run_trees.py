"""The trees of a run on disk: written in the order of iterations, read as of the last commit.

A commit of the ledger says up to which byte the file is valid, after those bytes are safe on disk.
What lies beyond belongs to no commit: readers do not look at it, and a run that goes on cuts it
off. The comment below says what a record is.
"""

import os
import struct
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from copy import copy
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

import numpy as np

from srs_ooc.base.errors import RunError
from srs_ooc.base.files import Closing, crc_of, sync_path
from srs_ooc.base.records import Outcome, Saved, State
from srs_ooc.runs.ledger import VALID, Ledger, damaged_run
from srs_ooc.samplers.base import Ensemble
from srs_ooc.trees.block import SAVED_BUFFER_NBYTES, SAVED_PIECE_NBYTES
from srs_ooc.trees.saved import Trees, decode_trees

# The records of a file of trees: how they are laid out, and whether they are whole.
#
# The file begins with `MAGIC`. A record is the length of a tree's bytes and their CRC-32 (each a
# little-endian uint32), then the bytes (`tests/helpers/forest_reference.py`). The CRC-32 starts
# from the record's number instead of 0, so a record lost or out of place is found as well.
#
# A commit of the ledger says up to which byte the file is valid, after those bytes are safe on
# disk. What lies beyond belongs to no commit: readers do not look at it, and a run that goes on
# cuts it off.

TREES_MAGIC = b"srs-ooc trees 1\n"
HEAD = struct.Struct("<II")
"""Begins a record: the length of its bytes, and their CRC-32."""


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Name the file of trees where it cannot be read."""
    try:
        yield
    except OSError as error:
        raise RunError(f"{path}: could not be read: {error.strerror}.") from error


def check_trees(path: Path, nbytes: int, n_trees: int | None) -> int:
    """Check every record of a file of trees up to byte ``nbytes``, in pieces of 1 MB.

    Return how many there are.

    Raises
    ------
    RunError
        If the file is short or a record damaged, or there are not ``n_trees`` of them.
    """
    check_length(path, nbytes)
    number = 0
    with _reading(path), path.open("rb") as file:
        for length, expected, end in heads(file, nbytes):
            crc, _ = crc_of(file, number & 0xFFFFFFFF, length)
            if not length or end > nbytes or crc != expected:
                raise damaged(path, number)
            number += 1
    if n_trees is not None and number != n_trees:
        raise damaged_run(path, f"expected {n_trees} trees, found {number}")
    return number


def heads(file: BinaryIO, nbytes: int) -> Iterator[tuple[int, int, int]]:
    """Yield the length and the CRC-32 of each record of an open file of trees, and where it ends.

    Up to byte ``nbytes``; the file is then at the bytes of the record.
    """
    place = len(TREES_MAGIC)
    while place < nbytes:
        file.seek(place)
        length, crc = HEAD.unpack(file.read(HEAD.size).ljust(HEAD.size, b"\0"))
        place += HEAD.size + length
        yield length, crc, place


def damaged(path: Path, number: int) -> RunError:
    """Return the error of a damaged record of a file; ``number`` is of its tree, from 0."""
    return damaged_run(path, f"the record of tree {number + 1} is damaged")


def check_length(path: Path, valid: int) -> None:
    """Check that a file is one of trees and has its ``valid`` bytes; RunError if not."""
    try:
        with path.open("rb") as file:
            magic, size = file.read(len(TREES_MAGIC)), os.fstat(file.fileno()).st_size
        if magic == TREES_MAGIC and size >= valid:
            return
        found = f"{size} bytes" if magic == TREES_MAGIC else "another kind of file"
    except OSError as error:
        found = error.strerror or str(error)
    raise damaged_run(path, f"expected at least {valid} bytes of trees, found {found}")


ALL = Ensemble()
TREES_FILE = "trees.bin"


class TreeWriter(Closing):
    """Appends trees to the file of a run, from where its ledger left it.

    Parameters
    ----------
    ledger : Ledger
        Open for writing.

    Raises
    ------
    RunError
        If the file is shorter than the ledger says, is not one of trees, or cannot be written.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._path, self._open = ledger.run / TREES_FILE, ExitStack()
        self.nbytes = int(ledger.meta(VALID))
        if self.nbytes:
            check_length(self._path, self.nbytes)

    def absorb(self, iteration: int, outcome: Outcome) -> None:
        """Append the trees of the next iteration."""
        with self._writing():
            for tree in outcome.trees:
                head = HEAD.pack(len(tree), zlib.crc32(tree, self._n_trees & 0xFFFFFFFF))
                self._file.writelines((head, tree))
                self._n_trees += 1
                self.nbytes += len(head) + len(tree)

    def state(self) -> State:
        """Make what was appended safe on disk; return up to which byte it reaches."""
        with self._writing():
            self._file.flush()
            os.fsync(self._file.fileno())
        return State(facts=self.nbytes)

    def restore(self, saved: Saved) -> None:
        """Make the file, or cut it where the ledger left it: the work begins."""
        with self._writing():
            if self.nbytes == 0:
                self._path.write_bytes(TREES_MAGIC)
                sync_path(self._path.parent)
                self.nbytes = len(TREES_MAGIC)
            file = self._path.open("r+b", buffering=SAVED_BUFFER_NBYTES)
            self._file = self._open.enter_context(file)
            self._file.truncate(self.nbytes)
            self._n_trees = sum(1 for _ in heads(self._file, self.nbytes))
            self._file.seek(self.nbytes)

    def close(self) -> None:
        """Close the file."""
        with self._writing():
            self._open.close()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Refuse with what to do where the file cannot be written."""
        try:
            yield
        except OSError as error:
            raise RunError(
                f"{self._path}: the trees could not be written: {error.strerror or error}. If the "
                "disk is full, make room and resume; nothing that was committed is lost."
            ) from error


class TreeReader:
    """The trees of a run as of its last commit; the run may be going on.

    Parameters
    ----------
    ledger : Ledger
        Open for reading.
    ensemble : Ensemble, optional
        Which of them to read; default all.

    Attributes
    ----------
    nbytes : int
        Valid bytes of the file.
    ensemble : Ensemble
        Which of them are read, and how they are combined.

    Raises
    ------
    RunError
        If the run keeps no trees, has none yet, or its file is damaged.
    """

    def __init__(self, ledger: Ledger, ensemble: Ensemble = ALL) -> None:
        self.path, self.ensemble = ledger.run / TREES_FILE, ensemble
        valid = ledger.meta(VALID)
        if valid is None and "model" in ledger.meta("spec"):
            raise RunError(
                f"{ledger.run}: expected a run of trees, found --model "
                f"{ledger.meta('spec')['model']}: its fitted models are not kept, as they could be "
                "read back only by running what a file says. Fit the estimator yourself on the "
                "features ranked first (`srs-ooc export RUN --top N`)."
            )
        if valid is None:
            raise RunError(
                f"{ledger.run}: expected a run that saves its trees, found one that does not. "
                "Begin another with `srs-ooc run STORE --fresh --save-trees`."
            )
        if valid <= len(TREES_MAGIC):
            raise RunError(
                f"{ledger.run}: expected trees, found none committed yet. "
                "Wait a moment, or go on with the run."
            )
        self.nbytes = int(valid)
        self._regression = ledger.meta("spec")["impurity"] == "variance"
        self._data: bytes | None = None  # of the file, where it is held
        check_length(self.path, self.nbytes)

    def batches(self) -> Iterator[Trees]:
        """Yield the trees in the order of iterations, about 256 kB of their bytes at a time.

        Raises
        ------
        RunError
            At a record that is damaged.
        """
        trees: list[bytes] = []
        first = n_bytes = 0
        with _reading(self.path), self._opened() as file:
            for number, (length, expected, end) in enumerate(heads(file, self.nbytes)):
                if not length or end > self.nbytes:
                    raise damaged(self.path, number)
                if not self.ensemble.holds(number):
                    continue
                trees.append(file.read(length))
                if zlib.crc32(trees[-1], number & 0xFFFFFFFF) != expected:
                    raise damaged(self.path, number)
                first, n_bytes = number + 1 - len(trees), n_bytes + length
                if n_bytes >= SAVED_PIECE_NBYTES:
                    yield self._decoded(trees, first)
                    trees, n_bytes = [], 0
        if trees:
            yield self._decoded(trees, first)

    def held(self) -> "TreeReader":
        """Return the same trees in memory, where they stay when the run's folder is gone.

        Raises
        ------
        RunError
            If the file cannot be read.
        """
        held = copy(self)
        with _reading(self.path), self._opened() as file:
            held._data = file.read(self.nbytes)
            held.nbytes = len(held._data)
        return held

    def _opened(self) -> BinaryIO:
        return self.path.open("rb") if self._data is None else BytesIO(self._data)

    def _decoded(self, trees: list[bytes], first: int) -> Trees:
        ends = np.cumsum([0, *map(len, trees)])
        try:
            return decode_trees(b"".join(trees), ends[:-1], ends[1:], regression=self._regression)
        except ValueError as error:
            raise damaged(self.path, first) from error
