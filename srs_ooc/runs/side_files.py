"""Files that options name, read in bounded memory: a name a line, against those of a store."""

import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import UsageError
from srs_ooc.base.text import MB, describe_nbytes
from srs_ooc.ingestion.formats import hash_text
from srs_ooc.store.arrays import Names

MOST_LINE_NBYTES = MB
"""A line of more bytes is no name."""
SPARE_LINES = 1 << 20
"""A file may hold as many lines more than twice the names there are."""
FEWEST = 1 << 16
"""Names looked at together at least."""
NAME_NBYTES = 40
"""Memory of a name that is looked at: its hash twice while sorted, its place, its mark."""
LOOKING_NBYTES = 5 * MB
"""Memory of reading lines and names, and of the fewest names."""
LINES, LINES_NBYTES = 1 << 14, MB
"""Lines looked up together, and their bytes, at most; or a single line."""

_Line = TypeVar("_Line")


def read_lines(file: Path, what: str) -> Iterator[bytes]:
    """Yield the lines of a UTF-8 text file that are not blank, stripped, one at a time.

    Raises
    ------
    UsageError
        If the file cannot be read, or not more than once, is not UTF-8, or has a line that is too
        long for a ``what``.
    """
    try:
        if not stat.S_ISREG(file.stat().st_mode):
            raise UsageError(
                f"{file}: expected a file, which is read more than once, found something else. "
                "Write what it would say to a file."
            )
        with file.open("rb") as stream:
            number = 0
            while line := stream.readline(MOST_LINE_NBYTES + 1):
                number += 1
                if len(line) > MOST_LINE_NBYTES:
                    raise UsageError(
                        f"{file}, line {number}: expected one {what} a line, found a line of more "
                        f"than {describe_nbytes(MOST_LINE_NBYTES)}. Give a text file of names."
                    )
                if text := line.decode("utf-8-sig" if number == 1 else "utf-8").strip():
                    yield text.encode()
    except OSError as error:
        raise UsageError(
            f"{file}: expected a text file with one {what} a line, found that it cannot be read: "
            f"{error.strerror}. Give the path of such a file."
        ) from error
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{file}, line {number}: expected UTF-8 text with one {what} a line, found other bytes "
            f"({error.reason}). Convert the file to UTF-8."
        ) from error


def together(lines: Iterator[_Line], n_bytes_of: Callable[[_Line], int]) -> Iterator[list[_Line]]:
    """Yield lines together, so many that they take little memory."""
    block: list[_Line] = []
    n_bytes = 0
    for line in lines:
        block.append(line)
        n_bytes += n_bytes_of(line)
        if len(block) == LINES or n_bytes > LINES_NBYTES:
            yield block
            block, n_bytes = [], 0
    if block:
        yield block


@dataclass(frozen=True)
class SideFile:
    """A file whose lines are texts of a store.

    Attributes
    ----------
    file : Path
        The file.
    what : str
        What a line is, for messages.
    n_lines : int
        Its lines that are not blank.
    n_names : int
        How many such texts the store has.
    """

    file: Path
    what: str
    n_lines: int
    n_names: int

    @classmethod
    def of(cls, file: Path, what: str, n_names: int) -> "SideFile":
        """Count the lines of a file.

        Raises
        ------
        UsageError
            If there is none, or there are far more than texts, or as of :func:`read_lines`.
        """
        most, n_lines = 2 * n_names + SPARE_LINES, 0
        for n_lines, _ in enumerate(read_lines(file, what), 1):
            if n_lines > most:
                raise UsageError(
                    f"{file}: expected at most {most} lines, as the store has {n_names} {what}s, "
                    "found more. Name each once."
                )
        if not n_lines:
            raise UsageError(f"{file}: expected one {what} a line, found none.")
        return cls(file, what, n_lines, n_names)

    @property
    def n_bytes(self) -> int:
        """Memory of :meth:`find_all`, and of the positions that are found, at least."""
        return LOOKING_NBYTES + self.n_names + 3 * self.n_lines + 4 * self.n_found

    @property
    def n_found(self) -> int:
        """Texts that the file can name at most."""
        return min(self.n_lines, self.n_names)

    def find_all(self, names: Names, spare_nbytes: int) -> NDArray[np.bool_]:
        """Return which texts of a store the lines name; bool (n_names,).

        The file is read once for as many of the store's texts as ``spare_nbytes``, and what
        :attr:`n_bytes` has for them, hold the hashes of. Equal hashes are compared as texts.

        Raises
        ------
        UsageError
            If a line is no such text, or the file is another by now.
        """
        marked, found = np.zeros(len(names), np.bool_), np.zeros(self.n_lines, np.bool_)
        for hashed in hashed_names(names, LOOKING_NBYTES + spare_nbytes):
            start = 0
            for block in together(read_lines(self.file, self.what), len):
                places = hashed.places(block)
                marked[places[places >= 0]] = True
                here = found[start : start + len(block)]
                if len(here) < len(block):
                    raise self._changed()
                here |= places >= 0
                start += len(block)
            if start != self.n_lines:
                raise self._changed()
        if not found.all():
            raise self._absent(found)
        return marked

    def _absent(self, found: NDArray[np.bool_]) -> UsageError:
        lines = islice(read_lines(self.file, self.what), int(found.argmin()), None)
        first = next(lines, b"").decode()
        n_absent = len(found) - int(np.count_nonzero(found))
        listed = "--names" if self.what == "feature" else "--row-ids"
        return UsageError(
            f"{self.file}: expected every line to be a {self.what} of the store, found {n_absent} "
            f"that are not (first: {first[:80]!r}). `srs-ooc inspect STORE {listed}` lists them."
        )

    def _changed(self) -> UsageError:
        return UsageError(
            f"{self.file}: expected the {self.n_lines} lines that were there at first, found "
            "others: the file changed while it was read. Try again."
        )


class HashedNames:
    """Some neighbouring texts of a store, looked up by their hashes."""

    def __init__(self, names: Names, first: int, hashes: NDArray[np.uint64]) -> None:
        self._names, self._first = names, first
        self._order = np.argsort(hashes, kind="stable")
        self._hashes = hashes[self._order]

    def places(self, texts: list[bytes]) -> NDArray[np.int64]:
        """Return the position of each text among the names of the store; -1 if not in these."""
        wanted = np.fromiter(map(hash_text, texts), np.uint64, len(texts))
        out = np.full(len(texts), -1, np.int64)
        low = np.searchsorted(self._hashes, wanted)
        high = np.searchsorted(self._hashes, wanted, side="right")
        for i in np.flatnonzero(high > low).tolist():
            for place in self._order[low[i] : high[i]].tolist():
                if self._names.encoded(self._first + place) == texts[i]:
                    out[i] = self._first + place
        return out


def hashed_names(names: Names, room_nbytes: int) -> Iterator[HashedNames]:
    """Yield all texts of a store, as many together as ``room_nbytes`` of memory hold."""
    size = max(FEWEST, (room_nbytes - LOOKING_NBYTES) // NAME_NBYTES)
    texts = names.texts()
    for first in range(0, len(names), size):
        some = islice(texts, size)
        yield HashedNames(names, first, np.fromiter((hash_text(text) for text in some), np.uint64))
