"""The ledger: what is on disk of a run, in one SQLite database in the run's folder.

A commit is one transaction that holds the whole state after an iteration; SQLite's write-ahead log
makes it all or nothing, whatever kills the process. Commits are counted, and how many there were is
noted outside, so that a lost log is found. Creating and opening are different acts: a ledger that
cannot be read is an error, never a fresh start (law 3).
"""

import json
import os
import sqlite3
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass, fields
from io import BytesIO
from pathlib import Path
from shlex import quote
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.budget import peak_resident_nbytes, process_nbytes, resident_nbytes
from srs_ooc.base.errors import RunError
from srs_ooc.base.files import Closing, published_folder, release_lock, sync_path, try_lock
from srs_ooc.base.records import PAGE_ITEMS, State, Stateful, n_pages
from srs_ooc.base.text import MB

FILE = "ledger.sqlite"
HALVES_FOLDER, FOLDS_FOLDER = "halves", "compact"
"""Folders of the runs on some of the rows that are under way, in a run's folder."""
VALID = "trees_nbytes"
"""Fact that says up to which byte the file of trees is valid; None where a run keeps none."""
CHECKING_NBYTES = 8 * MB
"""Pieces of a ledger, of trees and of thresholds that are checked; a run is never held whole."""
FORMAT = 4
MAX_HISTORY = 10_000


def damaged_run(place: object, what: str) -> RunError:
    """Return the error of a run of which ``place`` says what cannot be."""
    return RunError(
        f"{place}: {what}. The run is damaged: restore its folder from a copy, or start it again "
        "in another one. Nothing was started afresh."
    )


# Connections to the SQLite file of a ledger, also where nothing may be written beside it.
#
# A database with a write-ahead log is read together with two files beside it: the log (``-wal``)
# and its index in shared memory (``-shm``), which SQLite makes if they are not there. After a clean
# close both are gone and the database alone is whole. Where they cannot be made, on a read-only
# file system or for another user, such a database is opened as one that does not change.

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
    with ExitStack() as opened:
        try:
            database = opened.enter_context(closing(_open(file, "mode=ro")))
            # Only as it is read of, the files beside it are opened or made.
            database.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF not in _REFUSED:
                raise
        else:
            opened.pop_all()
            return database
    return _connect_unchanging(file)


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
    place = f"{file.absolute().as_uri()}?{how}"
    return sqlite3.connect(place, uri=True, isolation_level=None, timeout=10, cached_statements=32)


# The lock of a run: one process works on it, and the lock dies with that process.


def is_held(run: Path) -> bool:
    """Return whether a living process is working on the run."""
    lock = try_lock(run, flags=os.O_RDONLY)
    if lock is None:
        return True
    release_lock(lock)
    return False


def hold(run: Path) -> int:
    """Take the lock of a run; return its descriptor, to be released.

    Raises
    ------
    RunError
        If another process holds it.
    """
    # A reader asking whether the run is held takes the lock for an instant: ask a few times.
    for _ in range(5):
        lock = try_lock(run, flags=os.O_RDONLY)
        if lock is not None:
            return lock
        time.sleep(0.02)
    raise RunError(
        f"{run} is being worked on by another process. Wait for it, or stop it; "
        f"`srs-ooc status {quote(str(run))}` shows it."
    )


# How far a ledger was committed, noted outside of it: the commits there were, and the iteration
# that the run then stood at.
#
# A database whose write-ahead log is lost or damaged goes back to an earlier commit without an
# error. So commits are counted in the ledger, and a small file beside it says how many there were.
# It is written once a commit is safe on disk, and so may lag behind the ledger, but never be ahead
# of it.
#
# The file has two slots of one disk sector each, written in turn, and each is one line of JSON with
# a checksum: a write that is cut short spoils one of them, and the other is the note before. Notes
# carry the run's mark, so that another run's ledger in the place of its own is found.

NOTE_FILE = "committed.json"
_SLOT_NBYTES = 512
_N_SLOTS = 2
_sync = getattr(os, "fdatasync", os.fsync)


Note = tuple[int, int, str]
"""Commits, the iteration, and the mark of the run."""


def _slot(commits: int, iteration: int, mark: str) -> bytes:
    """Return the content of a slot."""
    crc = zlib.crc32(mark.encode(), zlib.crc32(b"%d %d" % (commits, iteration)))
    record = {"commits": commits, "iteration": iteration, "crc": crc, MARK: mark}
    return json.dumps(record).encode().ljust(_SLOT_NBYTES - 1) + b"\n"


def _noted(slot: bytes) -> Note | None:
    """Return what a slot says, or None if it is not as it was written."""
    try:
        record = json.loads(slot)
        noted = int(record["commits"]), int(record["iteration"]), str(record[MARK])
    except (ValueError, KeyError, TypeError):
        return None
    return noted if slot == _slot(*noted) else None


def write_note(run: Path, note: Note, *, anew: bool = False) -> None:
    """Note a commit that is safe on disk; ``anew`` in all slots, whatever they say."""
    handle = os.open(run / NOTE_FILE, os.O_RDWR | (os.O_CREAT if anew else 0), 0o644)
    try:
        n, first = (_N_SLOTS, 0) if anew else (1, note[0] % _N_SLOTS)
        os.pwrite(handle, _slot(*note) * n, first * _SLOT_NBYTES)
        _sync(handle)
    finally:
        os.close(handle)


def read_notes(run: Path, resumed: Path, *, all_whole: bool = False) -> list[Note] | None:
    """Return the notes of a run that are whole, the last one last; None if it has no file of them.

    ``resumed`` is the folder to resume, for the message.

    Raises
    ------
    RunError
        If there is a file, but no note in it that can be read, or not all with ``all_whole``.
    """
    file = run / NOTE_FILE
    try:
        with file.open("rb") as stream:
            slots = [stream.read(_SLOT_NBYTES) for _ in range(_N_SLOTS)]
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RunError(f"{file}: could not be read: {error.strerror}.") from error
    notes = [noted for noted in map(_noted, slots) if noted is not None]
    if len(notes) < (_N_SLOTS if all_whole else 1):
        found = "one of two that cannot be" if notes else "none that can be"
        raise RunError(
            f"{file}: expected a note of how far the run was committed, found {found} "
            f"read: the file is damaged, and commits may be lost. {_way_on(resumed)}"
        )
    return sorted(notes, key=lambda note: note[0])


def check_notes(run: Path, resumed: Path, notes: list[Note] | None, ledger: Note) -> None:
    """Check that a ledger is that of the notes, and has all the commits that were noted.

    Parameters
    ----------
    run : Path
        Its folder.
    resumed : Path
        The folder to resume, for the message.
    notes : list of Note or None
        As of :func:`read_notes`; read before the ledger was: a writer may be at work.
    ledger : Note
        What a note of the ledger as it stands would say.

    Raises
    ------
    RunError
        If it is another run's, or has fewer.
    """
    way_on, (commits, iteration, mark) = _way_on(resumed), ledger
    if notes is None:
        if not (run / NOTE_FILE).exists():
            raise RunError(
                f"{run / NOTE_FILE}: expected a note of how far the run was committed, found no "
                f"file; the run's record stands at iteration {iteration}, and commits after that "
                f"may be lost. {way_on}"
            )
        return
    if {noted[2] for noted in notes} != {mark}:
        raise RunError(
            f"{run}: expected {FILE} and {NOTE_FILE} of one run, found that one of them is of "
            "another run. Put the run's own back from a copy."
        )
    if commits < notes[-1][0]:
        raise RunError(
            f"{run}: expected a record (ledger.sqlite) of {notes[-1][0]} commits, up to iteration "
            f"{notes[-1][1]}, as was noted, found one of {commits}, up to iteration "
            f"{iteration}: its write-ahead file (-wal) was lost or damaged, or an older copy was "
            f"put in its place. {way_on}"
        )


def _way_on(resumed: Path) -> str:
    return (
        "Put the run's folder back from a copy, or go on from what is left with "
        f"`srs-ooc resume {quote(str(resumed))} --accept-loss`."
    )


# The small records of a ledger: facts, inputs and arrays by name, each with a checksum.

COMMITS = "commits"
"""Fact that says how many commits there were."""
MARK = "mark"
"""Fact that no other run has."""
DIGEST = "records"
"""Fact with a checksum over all other records, those that a commit did not change included."""


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
#
# Some releases of Python, 3.11.2 among them, open no blob whose id does not fit 31 bits.

STRIDE = 1 << 20
"""Ids of the pages of a column."""


def write_pages(
    database: sqlite3.Connection, first_id: int, array: NDArray[np.generic], pages: Iterable[int]
) -> None:
    """Write ``pages`` of ``array``, ids from ``first_id`` on, inside the caller's transaction."""
    for page in pages:
        data = array[page * PAGE_ITEMS : (page + 1) * PAGE_ITEMS].data.cast("B")
        row = first_id + page
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


def read_pages(database: sqlite3.Connection, first_id: int, array: NDArray[np.generic]) -> None:
    """Fill ``array`` from pages whose ids are from ``first_id`` on.

    Pages never written leave it as it is.

    Raises
    ------
    RunError
        If a page is missing, or its bytes do not have the checksum they were written with.
    """
    for page in range(n_pages(len(array))):
        items = array[page * PAGE_ITEMS : (page + 1) * PAGE_ITEMS]
        row = first_id + page
        query = "SELECT crc, data FROM checksums LEFT JOIN pages USING (id) WHERE id = ?"
        for crc, kept in database.execute(query, (row,)):  # one, or none
            data = bytes(kept or b"")[: items.nbytes]
            if len(data) != items.nbytes or zlib.crc32(data) != crc:
                raise _damaged_page(row, f"CRC-32 {crc}", str(zlib.crc32(data)))
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
    query = "SELECT id, crc, data FROM checksums LEFT JOIN pages USING (id) ORDER BY id"
    for row, crc, data in database.execute(query):
        column, page = divmod(int(row), STRIDE)
        if data is None or column not in lengths:
            raise _damaged_page(row, "a page", "none" if data is None else "one of no known array")
        n_items = max(0, min(PAGE_ITEMS, lengths[column] - page * PAGE_ITEMS))
        end = n_items * (len(data) // PAGE_ITEMS)
        if zlib.crc32(data[:end]) != crc or data[end:].strip(b"\0"):
            raise _damaged_page(row, f"CRC-32 {crc}", "other bytes")
        yield len(data)


def _damaged_page(row: int, expected: str, found: str) -> RunError:
    column, page = divmod(row, STRIDE)
    what = f"expected {expected}, found {found}"
    return damaged_run(f"page {page} of array {column} of ledger.sqlite", what)


_SCHEMA = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL, crc INTEGER NOT NULL);
CREATE TABLE inputs (name TEXT PRIMARY KEY, data BLOB NOT NULL, crc INTEGER NOT NULL);
CREATE TABLE arrays (name TEXT PRIMARY KEY, data BLOB NOT NULL, crc INTEGER NOT NULL);
CREATE TABLE history (
    iteration INTEGER PRIMARY KEY, n_selected INTEGER NOT NULL,
    seconds REAL NOT NULL, resident_nbytes INTEGER NOT NULL);
CREATE TABLE pages (id INTEGER PRIMARY KEY, data BLOB NOT NULL);
CREATE TABLE checksums (id INTEGER PRIMARY KEY, crc INTEGER NOT NULL);
"""


@dataclass(frozen=True)
class Progress:
    """Where a run stands: iterations done, |F|, seconds worked, largest resident size in bytes."""

    iteration: int
    n_kept: int
    seconds: float
    peak_nbytes: int

    def later(self, iteration: int, n_kept: int, started: float) -> "Progress":
        """Return where work stands that went on from here at ``started``, ``time.monotonic``."""
        seconds = self.seconds + time.monotonic() - started
        return Progress(iteration, n_kept, seconds, max(self.peak_nbytes, peak_resident_nbytes()))


START = Progress(0, 0, 0.0, 0)


class Ledger(Closing):
    """An open ledger.

    Parameters
    ----------
    run : Path
        The run's folder.
    writable : bool
        Take the run's lock, which dies with this process, and allow commits.
    accept_loss : bool
        Of a writer: go on from what is left where commits were lost.
    part_of : Path, optional
        The run that this one is a part of, for messages.

    Attributes
    ----------
    check : callable
        Called before what was learnt is committed: raises where the store was replaced.

    Raises
    ------
    RunError
        If there is no run, its ledger is damaged, lacks commits or is of another version, or, for a
        writer, another process holds it.
    """

    def __init__(
        self, run: Path, *, writable: bool, accept_loss: bool = False, part_of: Path | None = None
    ) -> None:
        self.run, self.accepts_loss = run, accept_loss
        self.check: Callable[[], object] = lambda: None
        process_nbytes()  # of the program alone, before there is work
        _require(run)
        self._held, self._process = ExitStack(), os.getpid() if writable else None
        self._noted_anew = accept_loss
        try:
            if writable:
                self._held.callback(release_lock, hold(run))
            # Before the ledger, which a writer may take further meanwhile.
            notes = None if accept_loss else read_notes(run, part_of or run)
            with self._translated():
                # A writer would clear a damaged log away when it is closed.
                self._database = self._held.enter_context(closing(connect_reader(run / FILE)))
            with self.reading():
                _check_format(run, self.meta("format"))
                commits, iteration = int(self.meta(COMMITS)), self.progress().iteration
                self._stands: Note = commits, iteration, self.meta(MARK)
                self._check_digest()
            if not accept_loss:
                check_notes(run, part_of or run, notes, self._stands)
            if writable:
                with self._translated():
                    self._database.close()
                    database = connect_writer(self.run / FILE)
                    self._database = self._held.enter_context(closing(database))
        except BaseException:
            self.close()
            raise

    def accept(self) -> None:
        """Have the notes say what is left, where a loss was accepted."""
        if self._noted_anew:
            self._write_note()

    def _write_note(self) -> None:
        with self._translated():
            write_note(self.run, self._stands, anew=self._noted_anew)
            if self._noted_anew:
                sync_path(self.run)
            self._noted_anew = False

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
                database = connect_writer(scratch / FILE)
                database.executescript(_SCHEMA)
                mark = os.urandom(8).hex()
                facts = {"format": FORMAT, COMMITS: 0, MARK: mark} | meta
                facts["state"] = asdict(START) | {"pages": 0, "layout": {}}
                for name, value in facts.items():
                    _put(database, "meta", name, json.dumps(value))
                _put(database, "meta", DIGEST, json.dumps(records_digest(database)))
                for name, array in inputs.items():
                    _put(database, "inputs", name, array.tobytes())
                database.close()
                write_note(scratch, (0, 0, mark), anew=True)
        except (OSError, sqlite3.Error) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else error
            raise RunError(f"{run}: the run's folder could not be created: {reason}.") from error

    def close(self) -> None:
        """Close the database and let go of the lock."""
        self._held.close()

    def _record(self, table: str, name: str) -> bytes | None:
        """Return a record as it was written, or None if there is none."""
        with self._translated():
            column = "value" if table == "meta" else "data"
            query = f"SELECT {column}, crc FROM {table} WHERE name = ?"  # noqa: S608
            row = self._database.execute(query, (name,)).fetchone()
        if row is None:
            return None
        data = str(row[0]).encode() if table == "meta" else bytes(row[0])
        if checksum_of(name, data) != row[1]:
            self._refuse(name, "one whose checksum differs")
        return data

    def _refuse(self, name: str, found: str) -> NoReturn:
        what = f"expected a record {name!r} as it was written, found {found}"
        raise damaged_run(self.run / FILE, what)

    def meta(self, name: str) -> Any:
        """Return a fact kept at creation, or set since.

        Raises
        ------
        RunError
            If it is not there, or not as it was written.
        """
        found = self._record("meta", name)
        if found is None:
            self._refuse(name, "none")
        with self._translated():
            return json.loads(found)

    def has_meta(self, name: str) -> bool:
        """Return whether a fact is kept under ``name``."""
        with self._translated():
            query = "SELECT count(*) FROM meta WHERE name = ?"
            (is_there,) = self._database.execute(query, (name,)).fetchone()
        return bool(is_there)

    def input(self, name: str, dtype: str) -> NDArray[Any] | None:
        """Return what an option's file contained, or None if it was not given."""
        found = self._record("inputs", name)
        return None if found is None else np.frombuffer(found, dtype=dtype)

    def read_arrays(self, name: str) -> dict[str, NDArray[Any]] | None:
        """Return what :meth:`write_arrays` kept, or None if there is nothing.

        Raises
        ------
        RunError
            If it is not as it was written.
        """
        found = self._record("arrays", name)
        if found is None:
            return None
        with np.load(BytesIO(found)) as arrays:
            return dict(arrays)

    def set_meta(self, name: str, value: Any) -> None:
        """Keep a fact that is not part of the identity, such as the iterations asked for."""
        with self._counted():
            self._put_meta(name, value)

    def write_arrays(self, name: str, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Keep small arrays under ``name`` in one transaction, in place of those there were."""
        self.write_all([(name, arrays)])

    def write_all(
        self,
        records: Iterable[tuple[str, Mapping[str, NDArray[Any]]]],
        *,
        in_place_of: str | None = None,
    ) -> None:
        """Keep several such arrays, each under its name, in one transaction.

        ``in_place_of``: all whose names begin with that are forgotten.
        """
        self.check()
        with self._counted():
            if in_place_of is not None:
                self._database.execute("DELETE FROM arrays WHERE name GLOB ?", (in_place_of + "*",))
            for name, arrays in records:
                self._put_arrays(name, arrays)

    def _put_meta(self, name: str, value: Any) -> None:
        _put(self._database, "meta", name, json.dumps(value))

    def _put_arrays(self, name: str, arrays: Mapping[str, NDArray[Any]]) -> None:
        buffer = BytesIO()
        np.savez(buffer, **arrays)  # type: ignore[arg-type]
        _put(self._database, "arrays", name, buffer.getvalue())

    def progress(self) -> Progress:
        """Return where the last commit left the run."""
        record = self.meta("state")
        return Progress(**{field.name: record[field.name] for field in fields(Progress)})

    def load(self, parts: Mapping[str, Stateful]) -> Progress:
        """Restore parts, by name, from one consistent commit; return where it stands."""
        with self.reading():
            progress, record = self.progress(), self.meta("state")
            if checksums_digest(self._database) != record["pages"]:
                what = "pages of the counts are missing or of another commit"
                raise damaged_run(self.run / FILE, what)
            for name, part in parts.items():
                part.restore(SavedPart(self, name, record["layout"]))
        return progress

    def commit(self, progress: Progress, states: Mapping[str, State]) -> float:
        """Write the states after ``progress.iteration``; return the seconds it took.

        Parameters
        ----------
        progress : Progress
            What to record.
        states : mapping of State
            By the name of the part. Of large arrays the changed pages are written.
        """
        start = time.monotonic()
        self.check()
        with self._counted(progress.iteration):
            layout = self.meta("state")["layout"]  # of large arrays: [column, length]
            for name, state in states.items():
                for key, pages in state.pages.items():
                    full = f"{name}.{key}"
                    column = layout[full][0] if full in layout else len(layout)
                    layout[full] = [column, len(pages.array)]
                    changed = np.flatnonzero(pages.changed[: n_pages(len(pages.array))])
                    write_pages(self._database, column * STRIDE, pages.array, changed.tolist())
                if state.arrays:
                    self._put_arrays(name, state.arrays)
                if state.facts is not None:
                    self._put_meta(name, state.facts)
            digest = checksums_digest(self._database)
            self._put_meta("state", asdict(progress) | {"pages": digest, "layout": layout})
            self._record_history(progress)
        for state in states.values():
            for pages in state.pages.values():
                pages.changed[:] = False
        return time.monotonic() - start

    def _record_history(self, progress: Progress) -> None:
        self._database.execute(
            "INSERT OR REPLACE INTO history VALUES (?, ?, ?, ?)",
            (progress.iteration, progress.n_kept, progress.seconds, resident_nbytes()),
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
    def _counted(self, iteration: int | None = None) -> Iterator[None]:
        """Write in the block in one transaction, count it, and note it once it is on disk."""
        assert self._process is not None, "open for writing"
        if self._process != os.getpid():
            raise RunError(f"{self.run}: expected the process that opened it, found a fork.")
        commits, before, mark = self._stands
        with self._translated(), self._database:  # commits, or rolls back
            self._database.execute("BEGIN IMMEDIATE")
            yield
            self._put_meta(COMMITS, commits + 1)
            self._put_meta(DIGEST, records_digest(self._database))
        self._stands = commits + 1, before if iteration is None else iteration, mark
        self._write_note()

    def _check_digest(self) -> None:
        """Check that the records are those of one commit; to be called within :meth:`reading`.

        Raises
        ------
        RunError
            If one is lost or of another commit, or an index of the database is damaged.
        """
        if self.meta(DIGEST) != records_digest(self._database):
            what = "expected all records of one commit, found some missing or of another commit"
            raise damaged_run(self.run / FILE, what)

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Read in the block as of one commit."""
        with self._translated(), self._database:
            self._database.execute("BEGIN")
            yield self._database

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError, json.JSONDecodeError) as error:
            raise RunError(
                f"{self.run / FILE}: the run's record could not be used: {error}. If the disk is "
                "full, make room and resume; if the file is damaged, restore it from a copy. "
                "Nothing was started afresh."
            ) from error


def _put(database: sqlite3.Connection, table: str, name: str, data: str | bytes) -> None:
    """Keep a record with its checksum, inside the caller's transaction."""
    crc = checksum_of(name, data.encode() if isinstance(data, str) else data)
    database.execute(f"INSERT OR REPLACE INTO {table} VALUES (?, ?, ?)", (name, data, crc))  # noqa: S608


def _require(run: Path) -> None:
    try:
        is_there, is_folder = (run / FILE).exists(), run.is_dir()
    except OSError as error:
        raise RunError(f"{run}: could not be looked into: {error.strerror}.") from error
    if not is_there:
        found = (
            "a folder without ledger.sqlite, the record of a run" if is_folder else "nothing there"
        )
        found = "a store, not a run of it" if (run / "zarr.json").exists() else found
        raise RunError(f"{run}: expected the folder of a run or a network, found {found}.")


def _check_format(run: Path, version: Any) -> None:
    if type(version) is not int or version != FORMAT:
        raise RunError(
            f"{run}: expected a record (ledger.sqlite) of format {FORMAT}, found {version!r}. Use "
            "the srs-ooc version that wrote it, or start the run again in another folder."
        )


# What a ledger hands back of a part of a run, and a stage beside the main loop: its states are
# small, and written whole.

_ITERATION, _ORIGIN = "iteration", "n_iterations"


class SavedPart:
    """A part of a run as it was committed; see :class:`srs_ooc.base.records.Saved`.

    Parameters
    ----------
    ledger : Ledger
        Open.
    name : str
        Of the part.
    layout : dict
        Where large arrays lie: column and length.
    """

    def __init__(self, ledger: Ledger, name: str, layout: Mapping[str, list[int]]) -> None:
        self._ledger, self._name, self._layout = ledger, name, layout

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
            read_pages(self._ledger._database, place[0] * STRIDE + first_page, out)


class StageBook:
    """Commits one part as arrays of a ledger; the run's own progress stays as it is.

    Parameters
    ----------
    ledger : Ledger
        Open for writing.
    origin : int
        Iterations of the run that the stage follows: what a stage after another number left is not
        taken up.
    """

    def __init__(self, ledger: Ledger, origin: int) -> None:
        self._ledger, self._origin = ledger, origin

    def load(self, parts: Mapping[str, Stateful]) -> Progress:
        """Restore the stage's part; return where it stands."""
        ((name, part),) = parts.items()
        with self._ledger.reading():
            arrays = self._ledger.read_arrays(name)
            if arrays is None or int(arrays[_ORIGIN]) != self._origin:
                return START
            part.restore(SavedPart(self._ledger, name, {}))
        return Progress(int(arrays[_ITERATION]), 0, 0.0, 0)

    def commit(self, progress: Progress, states: Mapping[str, State]) -> None:
        """Write the part's arrays in one transaction."""
        ((name, state),) = states.items()
        assert not state.pages
        assert state.facts is None
        where = {_ORIGIN: np.array(self._origin), _ITERATION: np.array(progress.iteration)}
        self._ledger.write_arrays(name, dict(state.arrays) | where)
