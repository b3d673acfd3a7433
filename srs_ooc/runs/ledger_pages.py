"""How a ledger keeps arrays and small records: pages, facts and inputs, each with a checksum."""

import json
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import RunError
from srs_ooc.base.records import PAGE_ITEMS, n_pages

# The small records of a ledger: facts, inputs and arrays by name, each with a checksum.

FILE = "ledger.sqlite"
PERMUTATIONS_FOLDER = "replays"
"""Folder of the permutation runs under way, in a run's folder."""
COMMITS = "commits"
"""Fact that says how many commits there were."""
DIGEST = "records"
"""Fact with a checksum over all other records, those that a commit did not change included."""
RECORDS_SCHEMA = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL, crc INTEGER NOT NULL);
CREATE TABLE inputs (name TEXT PRIMARY KEY, data BLOB NOT NULL, crc INTEGER NOT NULL);
CREATE TABLE arrays (name TEXT PRIMARY KEY, data BLOB NOT NULL, crc INTEGER NOT NULL);
"""


class Records:
    """The records of a ledger whose database is open."""

    run: Path
    _database: sqlite3.Connection

    def meta(self, name: str) -> Any:
        """Return a fact kept at creation, or set since.

        Raises
        ------
        RunError
            If it is not there, or not as it was written.
        """
        with self._translated():
            row = self._database.execute(
                "SELECT value, crc FROM meta WHERE name = ?", (name,)
            ).fetchone()
            self._check(name, row, None if row is None else str(row[0]).encode())
            return json.loads(row[0])

    def input(self, name: str, dtype: str) -> NDArray[Any] | None:
        """Return what an option's file contained, or None if it was not given."""
        with self._translated():
            row = self._database.execute(
                "SELECT data, crc FROM inputs WHERE name = ?", (name,)
            ).fetchone()
        if row is None:
            return None
        self._check(name, row, row[0])
        return np.frombuffer(row[0], dtype=dtype)

    def read_arrays(self, name: str) -> dict[str, NDArray[Any]] | None:
        """Return what :meth:`write_arrays` kept, or None if there is nothing.

        Raises
        ------
        RunError
            If it is not as it was written.
        """
        with self._translated():
            row = self._database.execute(
                "SELECT data, crc FROM arrays WHERE name = ?", (name,)
            ).fetchone()
        if row is None:
            return None
        self._check(name, row, row[0])
        with np.load(BytesIO(row[0])) as arrays:
            return dict(arrays)

    def _check(self, name: str, row: Any, data: bytes | None) -> None:
        if data is None or checksum_of(name, data) != row[1]:
            found = "none" if data is None else "one whose checksum differs"
            raise RunError(
                f"{self.run / FILE}: expected a record {name!r} as it was written, found {found}. "
                "The ledger is damaged; restore it from a copy. Nothing was started afresh."
            )

    def has_meta(self, name: str) -> bool:
        """Return whether a fact is kept under ``name``."""
        with self._translated():
            query = "SELECT count(*) FROM meta WHERE name = ?"
            (is_there,) = self._database.execute(query, (name,)).fetchone()
        return bool(is_there)

    def commits_counted(self) -> int:
        """Return how many commits there were."""
        return int(self.meta(COMMITS))

    def put_meta(self, name: str, value: Any) -> None:
        """Keep a fact, inside the caller's transaction."""
        text = json.dumps(value)
        self._database.execute(
            "INSERT OR REPLACE INTO meta VALUES (?, ?, ?)",
            (name, text, checksum_of(name, text.encode())),
        )

    def put_digest(self) -> None:
        """Keep the checksum over all records, inside the caller's transaction, as its last step."""
        self.put_meta(DIGEST, records_digest(self._database))

    def check_digest(self) -> None:
        """Check that the records are those of one commit; to be called within :meth:`reading`.

        Raises
        ------
        RunError
            If one is lost or of another commit, or an index of the database is damaged.
        """
        if self.meta(DIGEST) != records_digest(self._database):
            raise RunError(
                f"{self.run / FILE}: expected all records of one commit, found that some are "
                "missing or of another commit. The ledger is damaged; restore it from a copy. "
                "Nothing was started afresh."
            )

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Read in the block as of one commit."""
        with self._translated(), self._transaction("BEGIN"):
            yield self._database

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[None]:
        self._database.execute(begin)
        try:
            yield
        except BaseException:
            self._database.execute("ROLLBACK")
            raise
        self._database.execute("COMMIT")

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError, json.JSONDecodeError) as error:
            raise RunError(
                f"{self.run / FILE}: the ledger could not be used: {error}. If the disk is full, "
                "make room and resume; if the file is damaged, restore it from a copy. Nothing was "
                "started afresh."
            ) from error


def records_digest(database: sqlite3.Connection) -> int:
    """Return a CRC-32 over names and checksums of the records of an open ledger.

    Names are read from the indices, by which records are looked up: where an index does not know a
    record, it would count as one that was never kept.
    """
    digest = 0
    for table in ("meta", "arrays"):
        index = f"sqlite_autoindex_{table}_1"
        query = f"SELECT name, crc FROM {table} INDEXED BY {index} WHERE name != ? ORDER BY name"  # noqa: S608
        for row in database.execute(query, (DIGEST,)):
            digest = zlib.crc32(repr((table, *row)).encode(), digest)
    return digest


def checksum_of(name: str, data: bytes) -> int:
    """Return the checksum of a record, its name included."""
    return zlib.crc32(data, zlib.crc32(name.encode()))


# Arrays in an SQLite database, in fixed pages written in place by incremental blob I/O.
#
# A page is one row; only pages that changed are written, each straight from the array's memory.
# Every page carries a CRC-32, so a damaged one is found when it is read.

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
        Items of each array, by its column.

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
        n_items = max(0, min(PAGE_ITEMS, lengths[column] - page * PAGE_ITEMS))
        end = n_items * (len(data) // PAGE_ITEMS)
        if zlib.crc32(data[:end]) != crc or data[end:].strip(b"\0"):
            raise _damaged(row, f"CRC-32 {crc}", "other bytes")
        yield len(data)


def _damaged(row: int, expected: str, found: str) -> RunError:
    column, page = divmod(row, _ID_STRIDE)
    return RunError(
        f"page {page} of array {column} of the ledger is damaged: expected {expected}, found "
        f"{found}. Restore the run's folder from a copy, or start the run again in another one."
    )


# A part of a run as its ledger hands it back.


@dataclass(frozen=True)
class SavedPart:
    """A part as it was committed; see :class:`srs_ooc.base.records.Saved`."""

    _ledger: Records
    _database: sqlite3.Connection
    _name: str
    _layout: dict[str, list[int]]

    @property
    def facts(self) -> Any:
        """The JSON values, or None."""
        return self._ledger.meta(self._name) if self._ledger.has_meta(self._name) else None

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """The small arrays."""
        return self._ledger.read_arrays(self._name) or {}

    def length(self, name: str) -> int:
        """Return how many items a large array has; 0 where there is none."""
        return self._layout.get(f"{self._name}.{name}", [0, 0])[1]

    def fill(self, name: str, out: NDArray[Any], first_page: int = 0) -> None:
        """Fill ``out`` from a large array, from page ``first_page`` on."""
        place = self._layout.get(f"{self._name}.{name}")
        if place is not None:
            read_pages(self._database, place[0], out, first_page)
