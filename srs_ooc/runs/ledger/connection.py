"""Connections to the SQLite file of a ledger, also where nothing may be written beside it.

A database with a write-ahead log is read together with two files beside it: the log (``-wal``) and
its index in shared memory (``-shm``), which SQLite makes if they are not there. After a clean close
both are gone and the database alone is whole. Where they cannot be made, on a read-only file system
or for another user, such a database is opened as one that does not change.
"""

import os
import sqlite3
from pathlib import Path

from srs_ooc.base.errors import RunError

LOG_SUFFIX, INDEX_SUFFIX = "-wal", "-shm"
_REFUSED = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM)


def connect_writer(file: Path) -> sqlite3.Connection:
    """Open or create a database for commits that are safe on disk when they return.

    Raises
    ------
    RunError
        If that takes a permission that this process does not have.
    """
    for needed in (file.parent, file):
        if needed.exists() and not os.access(needed, os.W_OK):
            raise RunError(
                f"{needed}: expected permission to write, found none. Have its owner grant it, or "
                "copy the run's whole folder to where you can write, and go on with the copy."
            )
    database = _open(file, "mode=rwc")
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = FULL")
    return database


def connect_reader(file: Path) -> sqlite3.Connection:
    """Open a database for reading; a writer may be at work on it.

    Raises
    ------
    RunError
        If that takes a permission that this process does not have.
    """
    try:
        return _open_and_read(file)
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF not in _REFUSED:
            raise
    return _connect_unchanging(file)


def _open_and_read(file: Path) -> sqlite3.Connection:
    """Open a database and read of it: only then the files beside it are opened or made."""
    database = _open(file, "mode=ro")
    try:
        database.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    except BaseException:
        database.close()
        raise
    return database


def _connect_unchanging(file: Path) -> sqlite3.Connection:
    log, index = (file.with_name(file.name + suffix) for suffix in (LOG_SUFFIX, INDEX_SUFFIX))
    for needed in (file, log):
        if needed.exists() and not os.access(needed, os.R_OK):
            raise RunError(
                f"{needed}: expected permission to read it, found none. Have its owner grant it."
            )
    if log.exists() and log.stat().st_size:
        raise RunError(
            f"{file}: expected permission to write in its folder, or a run that was closed, found "
            f"neither: the last commits are in {log.name}, which is read by way of {index.name}, "
            "and that cannot be made or used here. Go on with the run where it can be written, or "
            "copy its whole folder to where you can write, and read the copy."
        )
    return _open(file, "mode=ro&immutable=1")


def _open(file: Path, how: str) -> sqlite3.Connection:
    return sqlite3.connect(
        f"{file.absolute().as_uri()}?{how}",
        uri=True,
        isolation_level=None,
        timeout=10,
        cached_statements=32,
    )
