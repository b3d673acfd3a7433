"""Files that options name, read in bounded memory: a name a line, against those of a store."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import UsageError
from srs_ooc.base.sizes import MB, describe_nbytes
from srs_ooc.ingestion.texts import hash_text
from srs_ooc.store.names import Names

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
LINES = 1 << 14
"""Lines looked up together."""


def read_lines(file: Path, what: str) -> Iterator[bytes]:
    """Yield the lines of a UTF-8 text file that are not blank, stripped, one at a time.

    Raises
    ------
    UsageError
        If the file cannot be read, is not UTF-8, or has a line that is too long for a ``what``.
    """
    try:
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
        raise UsageError(f"{file}: could not be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{file}, line {number}: expected UTF-8 text with one {what} a line, found other bytes "
            f"({error.reason}). Convert the file to UTF-8."
        ) from error


def find_all(file: Path, names: Names, what: str, room_nbytes: int) -> NDArray[np.bool_]:
    """Return which texts of a store the lines of a file name; bool (n_names,).

    The file is read once for every ``room_nbytes`` that hashes of the store's texts take. Equal
    hashes are compared as texts.

    Raises
    ------
    UsageError
        If a line is no such text, there is no line, or there are far more lines than texts.
    """
    n_lines = _count(file, names, what)
    marked, found = np.zeros(len(names), np.bool_), np.zeros(n_lines, np.bool_)
    for hashed in hashed_names(names, room_nbytes - 3 * n_lines):
        start, lines = 0, read_lines(file, what)
        while block := list(islice(lines, LINES)):
            places = hashed.places(block)
            marked[places[places >= 0]] = True
            found[start : start + len(block)] |= places >= 0
            start += len(block)
    if not found.all():
        raise _absent(file, what, found)
    return marked


class HashedNames:
    """Some neighbouring texts of a store, looked up by their hashes."""

    def __init__(self, names: Names, first: int, hashes: NDArray[np.uint64]) -> None:
        self._names, self._first = names, first
        self._order = np.argsort(hashes)
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


def _count(file: Path, names: Names, what: str) -> int:
    most, n_lines = 2 * len(names) + SPARE_LINES, 0
    for n_lines, _ in enumerate(read_lines(file, what), 1):
        if n_lines > most:
            raise UsageError(
                f"{file}: expected at most {most} lines, as the store has {len(names)} {what}s, "
                "found more. Name each once."
            )
    if not n_lines:
        raise UsageError(f"{file}: expected one {what} a line, found none.")
    return n_lines


def _absent(file: Path, what: str, found: NDArray[np.bool_]) -> UsageError:
    first = next(islice(read_lines(file, what), int(found.argmin()), None)).decode()
    n_absent = len(found) - int(np.count_nonzero(found))
    return UsageError(
        f"{file}: expected every line to be a {what} of the store, found {n_absent} that are not "
        f"(first: {first[:80]!r}). `srs-ooc inspect` shows what the store holds."
    )
