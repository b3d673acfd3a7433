"""Arrays in an SQLite database, in fixed pages written in place by incremental blob I/O.

A page is one row; only pages that changed are written, each straight from the array's memory.
Every page carries a CRC-32, so a damaged one is found when it is read.
"""

import sqlite3
import zlib
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from srs_ooc.errors import RunError

PAGE_ITEMS = 16384

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


def read_pages(database: sqlite3.Connection, column: int, array: NDArray[np.generic]) -> None:
    """Fill ``array`` from column number ``column``; pages never written leave it as it is.

    Raises
    ------
    RunError
        If a page is missing, or its bytes do not have the checksum they were written with.
    """
    for page in range(-(-len(array) // PAGE_ITEMS)):
        items = array[page * PAGE_ITEMS : (page + 1) * PAGE_ITEMS]
        read_page(database, column, page, items)


def read_page(
    database: sqlite3.Connection, column: int, page: int, items: NDArray[np.generic]
) -> None:
    """Fill ``items``, page ``page`` of a column; leave them as they are if it was never written.

    Raises
    ------
    RunError
        As :func:`read_pages`.
    """
    row = column * _ID_STRIDE + page
    checksum = database.execute("SELECT crc FROM checksums WHERE id = ?", (row,)).fetchone()
    if checksum is None:
        return
    with database.blobopen("pages", "data", row, readonly=True) as blob:
        data = blob.read(items.nbytes)
    if len(data) != items.nbytes or zlib.crc32(data) != checksum[0]:
        raise RunError(
            f"page {page} of array {column} of the ledger is damaged: expected CRC-32 "
            f"{checksum[0]}, found {zlib.crc32(data)}. Restore the run's folder from a copy, "
            "or start the run again in another one."
        )
    items[...] = np.frombuffer(data, dtype=items.dtype)
