"""The ledger: what is on disk of a run, in one SQLite database in the run's folder.

A commit is one transaction that holds the whole state after an iteration; SQLite's write-ahead log
makes it all or nothing, whatever kills the process. Creating and opening are different acts: a
ledger that cannot be read is an error, never a fresh start (law 3).
"""

import json
import os
import sqlite3
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.atomic import published_folder, try_lock
from srs_ooc.errors import RunError
from srs_ooc.evidence.tally import Tally
from srs_ooc.ledger.pages import (
    PAGE_ITEMS,
    PAGES_SCHEMA,
    checksums_digest,
    read_page,
    read_pages,
    write_pages,
)
from srs_ooc.samplers.kept import KeptSet

FORMAT = 1
FILE = "ledger.sqlite"
MAX_HISTORY = 10_000

_SCHEMA = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL, crc INTEGER NOT NULL);
CREATE TABLE inputs (name TEXT PRIMARY KEY, data BLOB NOT NULL, crc INTEGER NOT NULL);
CREATE TABLE arrays (name TEXT PRIMARY KEY, data BLOB NOT NULL, crc INTEGER NOT NULL);
CREATE TABLE history (
    iteration INTEGER PRIMARY KEY, n_selected INTEGER NOT NULL,
    seconds REAL NOT NULL, resident_nbytes INTEGER NOT NULL);
"""
_TALLY_COLUMNS = {"importance": 0, "n_drawn": 1, "n_better": 2}
_KEPT_FEATURES, _KEPT_ENTERED = 3, 4


@dataclass(frozen=True)
class Progress:
    """Where a run stands: iterations done, |F|, seconds worked, largest resident size in bytes."""

    iteration: int
    n_kept: int
    seconds: float
    peak_nbytes: int


class Ledger:
    """An open ledger.

    Parameters
    ----------
    run : Path
        The run's folder.
    writable : bool
        Take the run's lock, which dies with this process, and allow commits.

    Raises
    ------
    RunError
        If there is no run, its ledger is damaged or of another version, or, for a writer, another
        process holds it.
    """

    def __init__(self, run: Path, *, writable: bool) -> None:
        self.run = run
        if not (run / FILE).exists():
            found = "a folder without a ledger" if run.is_dir() else "nothing there"
            raise RunError(f"{run}: expected a run made by `srs-ooc run`, found {found}.")
        self._lock = _hold(run) if writable else None
        with self._translated():
            self._database = _connect(run / FILE, writable=writable)
            version = self.meta("format")
        if version != FORMAT:
            raise RunError(
                f"{run}: expected ledger format {FORMAT}, found {version!r}. "
                "Use the srs-ooc version that wrote it."
            )
        self._written_kept = self.progress().n_kept

    @staticmethod
    def create(run: Path, meta: dict[str, Any], inputs: dict[str, NDArray[Any]]) -> None:
        """Create the folder of a new run; it appears complete or not at all.

        Parameters
        ----------
        run : Path
            Must not exist.
        meta : dict
            JSON-ready facts: the run's identity, where its store is, what was asked of it.
        inputs : dict of arrays
            What options named by file contained, so that resuming needs no file.
        """
        try:
            with published_folder(run) as scratch:
                database = _connect(scratch / FILE, writable=True)
                database.executescript(_SCHEMA + PAGES_SCHEMA)
                facts = {"format": FORMAT} | meta
                facts["state"] = asdict(Progress(0, 0, 0.0, 0)) | {"pages": 0}
                texts = [(name, json.dumps(value)) for name, value in facts.items()]
                sealed = [(name, text, _crc(name, text.encode())) for name, text in texts]
                database.executemany("INSERT INTO meta VALUES (?, ?, ?)", sealed)
                blobs = [(name, array.tobytes()) for name, array in inputs.items()]
                filled = [(name, data, _crc(name, data)) for name, data in blobs]
                database.executemany("INSERT INTO inputs VALUES (?, ?, ?)", filled)
                database.close()
        except (OSError, sqlite3.Error) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else error
            raise RunError(f"{run}: the run's folder could not be created: {reason}.") from error

    def close(self) -> None:
        """Close the database and let go of the lock."""
        self._database.close()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

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

    def set_meta(self, name: str, value: Any) -> None:
        """Keep a fact that is not part of the identity, such as the iterations asked for."""
        text = json.dumps(value)
        with self._translated():
            self._database.execute(
                "INSERT OR REPLACE INTO meta VALUES (?, ?, ?)",
                (name, text, _crc(name, text.encode())),
            )

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

    def write_arrays(self, name: str, arrays: dict[str, NDArray[Any]]) -> None:
        """Keep small arrays under ``name`` in one transaction, in place of those there were."""
        buffer = BytesIO()
        np.savez(buffer, **arrays)  # type: ignore[arg-type]
        data = buffer.getvalue()
        with self._translated():
            self._database.execute(
                "INSERT OR REPLACE INTO arrays VALUES (?, ?, ?)", (name, data, _crc(name, data))
            )

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
        if data is None or _crc(name, data) != row[1]:
            found = "none" if data is None else "one whose checksum differs"
            raise RunError(
                f"{self.run / FILE}: expected a record {name!r} as it was written, found {found}. "
                "The ledger is damaged; restore it from a copy. Nothing was started afresh."
            )

    def progress(self) -> Progress:
        """Return where the last commit left the run."""
        record = self.meta("state")
        return Progress(**{field.name: record[field.name] for field in fields(Progress)})

    def load(self, tally: Tally, kept: KeptSet) -> Progress:
        """Fill empty ``tally`` and ``kept`` from one consistent commit; return where it stands."""
        with self._translated(), self._transaction("BEGIN"):
            progress = self.progress()
            if checksums_digest(self._database) != self.meta("state")["pages"]:
                raise RunError(
                    f"{self.run / FILE}: pages of the tallies are missing or of another commit. "
                    "The ledger is damaged; restore it from a copy. Nothing was started afresh."
                )
            for name, array in tally.columns():
                read_pages(self._database, _TALLY_COLUMNS[name], array)
            self._load_kept(kept, progress.n_kept)
        return progress

    def _load_kept(self, kept: KeptSet, n_kept: int) -> None:
        """Add the members page by page: what adding needs besides stays small."""
        kept.reserve(n_kept)
        for page in range(-(-n_kept // PAGE_ITEMS)):
            size = min(PAGE_ITEMS, n_kept - page * PAGE_ITEMS)
            features, entered = np.zeros(size, np.uint32), np.zeros(size, np.uint32)
            read_page(self._database, _KEPT_FEATURES, page, features)
            read_page(self._database, _KEPT_ENTERED, page, entered)
            kept.add(features, entered)

    def commit(
        self,
        progress: Progress,
        tally: Tally,
        pages: NDArray[np.integer],
        kept: KeptSet,
        resident_nbytes: int,
        facts: dict[str, Any] | None = None,
    ) -> float:
        """Write the state after ``progress.iteration``; return the seconds it took.

        Parameters
        ----------
        progress : Progress
            What to record.
        tally : Tally
            Written only at ``pages``, those touched since the last commit.
        pages : integers
            Page numbers.
        kept : KeptSet
            Written from the first member that entered since the last commit.
        resident_nbytes : int
            For the history.
        facts : dict, optional
            JSON-ready facts that hold from this commit on.
        """
        start = time.monotonic()
        changed = range(self._written_kept // PAGE_ITEMS, -(-kept.n // PAGE_ITEMS))
        with self._translated(), self._transaction("BEGIN IMMEDIATE"):
            for name, array in tally.columns():
                write_pages(self._database, _TALLY_COLUMNS[name], array, pages.tolist())
            if kept.n > self._written_kept:
                write_pages(self._database, _KEPT_FEATURES, kept.features, changed)
                write_pages(self._database, _KEPT_ENTERED, kept.entered, changed)
            state = asdict(progress) | {"pages": checksums_digest(self._database)}
            self.set_meta("state", state)
            self._record_history(progress, resident_nbytes)
            for name, value in (facts or {}).items():
                self.set_meta(name, value)
        self._written_kept = kept.n
        return time.monotonic() - start

    def _record_history(self, progress: Progress, resident_nbytes: int) -> None:
        self._database.execute(
            "INSERT OR REPLACE INTO history VALUES (?, ?, ?, ?)",
            (progress.iteration, progress.n_kept, progress.seconds, resident_nbytes),
        )
        (count,) = self._database.execute("SELECT count(*) FROM history").fetchone()
        if count > MAX_HISTORY:
            self._database.execute(
                "DELETE FROM history WHERE iteration IN (SELECT iteration FROM "
                "(SELECT iteration, row_number() OVER (ORDER BY iteration) AS place FROM history) "
                "WHERE place % 2 = 0)"
            )

    def history(self) -> Iterator[tuple[int, int, float, int]]:
        """Yield (iteration, |F|, seconds, resident bytes), thinned to at most 10,000 rows."""
        yield from self._database.execute("SELECT * FROM history ORDER BY iteration")

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
        except (sqlite3.Error, json.JSONDecodeError) as error:
            raise RunError(
                f"{self.run / FILE}: the ledger could not be used: {error}. If the disk is full, "
                "make room and resume; if the file is damaged, restore it from a copy. Nothing was "
                "started afresh."
            ) from error


def _crc(name: str, data: bytes) -> int:
    return zlib.crc32(data, zlib.crc32(name.encode()))


def is_held(run: Path) -> bool:
    """Return whether a living process is working on the run."""
    lock = try_lock(run, flags=os.O_RDONLY)
    if lock is None:
        return True
    os.close(lock)
    return False


def _hold(run: Path) -> int:
    # A reader asking whether the run is held takes the lock for an instant: ask a few times.
    for _ in range(5):
        lock = try_lock(run, flags=os.O_RDONLY)
        if lock is not None:
            return lock
        time.sleep(0.02)
    raise RunError(
        f"{run} is being worked on by another process. Wait for it, or stop it; "
        f"`srs-ooc status {run}` shows it."
    )


def _connect(file: Path, *, writable: bool) -> sqlite3.Connection:
    mode = "rwc" if writable else "ro"
    database = sqlite3.connect(
        f"{file.absolute().as_uri()}?mode={mode}",
        uri=True,
        isolation_level=None,
        timeout=10,
        cached_statements=32,
    )
    if writable:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = FULL")
    return database
