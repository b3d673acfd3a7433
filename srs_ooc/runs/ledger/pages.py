"""Arrays in an SQLite database, in fixed pages written in place by incremental blob I/O.

A page is one row; only pages that changed are written, each straight from the array's memory.
Every page carries a CRC-32, so a damaged one is found when it is read.
"""

import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import RunError
from srs_ooc.base.records import PAGE_ITEMS, n_pages

PAGES_SCHEMA = """
CREATE TABLE pages (id INTEGER PRIMARY KEY, data BLOB NOT NULL);
CREATE TABLE checksums (id INTEGER PRIMARY KEY, crc INTEGER NOT NULL);
"""
_ID_STRIDE = 1 << 32


def write_pages(
    database: sqlite3.Connection, column: int, array: NDArray[np.generic], pages: Iterable[int]
) -> None:
    """Write ``pages`` of ``array`` as column number ``column``, inside the caller's transaction."""
    for page in pages:
        items = array[page * PAGE_ITEMS : (page + 1) * PAGE_ITEMS]
        data = items.data.cast("B")
        row = column * _ID_STRIDE + page
        size = PAGE_ITEMS * array.itemsize
        database.execute("INSERT OR IGNORE INTO pages VALUES (?, zeroblob(?))", (row, size))
        with database.blobopen("pages", "data", row) as blob:
            blob.write(data)
        database.execute("INSERT OR REPLACE INTO checksums VALUES (?, ?)", (row, zlib.crc32(data)))


def checksums_digest(database: sqlite3.Connection) -> int:
    """Return a CRC-32 over the checksums of all pages: a page that goes missing changes it."""
    digest = 0
    for row in database.execute("SELECT id, crc FROM checksums ORDER BY id"):
        digest = zlib.crc32(b"%d %d\n" % row, digest)
    return digest


def read_pages(
    database: sqlite3.Connection, column: int, array: NDArray[np.generic], first_page: int = 0
) -> None:
    """Fill ``array`` from column number ``column``, from page ``first_page`` on.

    Pages never written leave it as it is.

    Raises
    ------
    RunError
        If a page is missing, or its bytes do not have the checksum they were written with.
    """
    for page in range(n_pages(len(array))):
        items = array[page * PAGE_ITEMS : (page + 1) * PAGE_ITEMS]
        _read_page(database, column, first_page + page, items)


def _read_page(
    database: sqlite3.Connection, column: int, page: int, items: NDArray[np.generic]
) -> None:
    row = column * _ID_STRIDE + page
    checksum = database.execute("SELECT crc FROM checksums WHERE id = ?", (row,)).fetchone()
    if checksum is None:
        return
    with database.blobopen("pages", "data", row, readonly=True) as blob:
        data = blob.read(items.nbytes)
    if len(data) != items.nbytes or zlib.crc32(data) != checksum[0]:
        raise _damaged(row, f"CRC-32 {checksum[0]}", str(zlib.crc32(data)))
    items[...] = np.frombuffer(data, dtype=items.dtype)


def page_checks(database: sqlite3.Connection, lengths: Mapping[int, int]) -> Iterator[int]:
    """Read every page and compare its checksum; yield the bytes of each that is as it was written.

    Parameters
    ----------
    database : Connection
        Open for reading.
    lengths : mapping
        Items of each array, by its column; 0 where that is not known: its last page may then end
        anywhere before the zeros that fill it.

    Raises
    ------
    RunError
        If a page is missing or damaged.
    """
    query = "SELECT c.id, c.crc, p.id FROM checksums c LEFT JOIN pages p ON p.id = c.id ORDER BY 1"
    for row, crc, held in database.execute(query):
        column, page = divmod(int(row), _ID_STRIDE)
        if held is None or column not in lengths:
            raise _damaged(row, "a page", "none" if held is None else "one of no known array")
        with database.blobopen("pages", "data", row, readonly=True) as blob:
            data = blob.read()
        possible = _lengths(data, crc)
        if lengths[column]:
            possible &= {max(0, min(PAGE_ITEMS, lengths[column] - page * PAGE_ITEMS))}
        if not possible:
            raise _damaged(row, f"CRC-32 {crc}", "other bytes")
        yield len(data)


def _lengths(data: bytes, crc: int) -> set[int]:
    """Return how many items a page may have: what follows them is zero, and their CRC-32 is so."""
    size = len(data) // PAGE_ITEMS
    if zlib.crc32(data) == crc:
        return {PAGE_ITEMS}
    least = -(-len(data.rstrip(b"\0")) // size)
    found, running = set(), zlib.crc32(data[: least * size])
    for n_items in range(least, PAGE_ITEMS):
        if running == crc:
            found.add(n_items)
        running = zlib.crc32(data[n_items * size : (n_items + 1) * size], running)
    return found


def _damaged(row: int, expected: str, found: str) -> RunError:
    column, page = divmod(row, _ID_STRIDE)
    return RunError(
        f"page {page} of array {column} of the ledger is damaged: expected {expected}, found "
        f"{found}. Restore the run's folder from a copy, or start the run again in another one."
    )
