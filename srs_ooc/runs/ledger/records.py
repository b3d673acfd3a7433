"""The small records of a ledger: facts, inputs and arrays by name, each with a checksum."""

import json
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import RunError

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

    def commits_counted(self) -> int | None:
        """Return how many commits there were; None in a ledger made before they were counted."""
        return int(self.meta(COMMITS)) if self.has_meta(COMMITS) else None

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
