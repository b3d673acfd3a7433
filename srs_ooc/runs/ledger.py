"""The ledger: what is on disk of a run, in one SQLite database in the run's folder.

A commit is one transaction that holds the whole state after an iteration; SQLite's write-ahead log
makes it all or nothing, whatever kills the process. Commits are counted, and how many there were is
noted outside (:mod:`srs_ooc.runs.ledger`), so that a lost log is found. Creating and opening
are different acts: a ledger that cannot be read is an error, never a fresh start (law 3).
"""

import json
import os
import sqlite3
import time
import zlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass, fields
from io import BytesIO
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import RunError
from srs_ooc.base.files import published_folder, sync_folder, try_lock
from srs_ooc.base.records import State, Stateful, n_pages
from srs_ooc.runs.ledger_pages import (
    COMMITS,
    DIGEST,
    FILE,
    PAGES_SCHEMA,
    RECORDS_SCHEMA,
    Records,
    SavedPart,
    checksum_of,
    checksums_digest,
    records_digest,
    write_pages,
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


# The lock of a run: one process works on it, and the lock dies with that process.


def is_held(run: Path) -> bool:
    """Return whether a living process is working on the run."""
    lock = try_lock(run, flags=os.O_RDONLY)
    if lock is None:
        return True
    os.close(lock)
    return False


def hold(run: Path) -> int:
    """Take the lock of a run; return its descriptor, to be closed.

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


# How far a ledger was committed, noted outside of it.
#
# A database whose write-ahead log is lost or damaged goes back to an earlier commit without an
# error. So commits are counted in the ledger, and a small file beside it says how many there were.
# It is written once a commit is safe on disk, and so may lag behind the ledger, but never be ahead
# of it.
#
# The file has two slots of one disk sector each, written in turn, and each is one line of JSON with
# a checksum: a write that is cut short spoils one of them, and the other is the note before.

NOTE_FILE = "committed.json"
_SLOT_NBYTES = 512
_N_SLOTS = 2
_sync = getattr(os, "fdatasync", os.fsync)


@dataclass(frozen=True)
class Noted:
    """Commits there were, and the iteration that the run then stood at."""

    commits: int
    iteration: int

    def line(self) -> bytes:
        """Return the content of a slot."""
        record = asdict(self) | {"crc": self._crc()}
        return json.dumps(record).encode().ljust(_SLOT_NBYTES - 1) + b"\n"

    @staticmethod
    def from_line(line: bytes) -> "Noted | None":
        """Return what a slot says, or None if it is not as it was written."""
        try:
            record = json.loads(line)
            noted = Noted(int(record["commits"]), int(record["iteration"]))
            return noted if record["crc"] == noted._crc() else None
        except (ValueError, KeyError, TypeError):
            return None

    def _crc(self) -> int:
        return zlib.crc32(b"%d %d" % (self.commits, self.iteration))


class NoteWriter:
    """Keeps the note of a run.

    Parameters
    ----------
    run : Path
        Its folder.
    start : Noted, optional
        Makes the file anew, saying this.

    Raises
    ------
    OSError
        If the file cannot be opened or made.
    """

    def __init__(self, run: Path, start: Noted | None = None) -> None:
        flags = os.O_RDWR | (0 if start is None else os.O_CREAT)
        self._handle = os.open(run / NOTE_FILE, flags, 0o644)
        if start is not None:
            os.pwrite(self._handle, start.line() * _N_SLOTS, 0)
            os.fsync(self._handle)

    def write(self, noted: Noted) -> None:
        """Note a commit that is safe on disk.

        Raises
        ------
        OSError
            If it cannot be written.
        """
        os.pwrite(self._handle, noted.line(), noted.commits % _N_SLOTS * _SLOT_NBYTES)
        _sync(self._handle)

    def close(self) -> None:
        """Close the file."""
        os.close(self._handle)


def read_note(run: Path, resumed: Path) -> Noted | None:
    """Return the last note of a run; None if it has no file of notes.

    ``resumed`` is the folder to resume, for the message.

    Raises
    ------
    RunError
        If there is a file, but no note in it that can be read.
    """
    file = run / NOTE_FILE
    try:
        with file.open("rb") as stream:
            data = stream.read(_N_SLOTS * _SLOT_NBYTES)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RunError(f"{file}: could not be read: {error.strerror}.") from error
    slots = [data[i * _SLOT_NBYTES : (i + 1) * _SLOT_NBYTES] for i in range(_N_SLOTS)]
    notes = [noted for noted in map(Noted.from_line, slots) if noted is not None]
    if not notes:
        raise RunError(
            f"{file}: expected a note of how far the run was committed, found none that can be "
            f"read: the file is damaged, and commits may be lost. {_way_on(resumed)}"
        )
    return max(notes, key=lambda noted: noted.commits)


def check_note(run: Path, resumed: Path, noted: Noted | None, commits: int, iteration: int) -> None:
    """Check that a ledger has all the commits that were noted.

    Parameters
    ----------
    run : Path
        Its folder.
    resumed : Path
        The folder to resume, for the message.
    noted : Noted or None
        Read before the ledger was: a writer may be at work.
    commits : int
        Commits counted in the ledger.
    iteration : int
        Where the ledger stands.

    Raises
    ------
    RunError
        If it has fewer.
    """
    way_on = _way_on(resumed)
    if noted is None:
        if not (run / NOTE_FILE).exists():
            raise RunError(
                f"{run / NOTE_FILE}: expected a note of how far the run was committed, found no "
                f"file; the ledger stands at iteration {iteration}, and commits after that may be "
                f"lost. {way_on}"
            )
        return
    if commits < noted.commits:
        raise RunError(
            f"{run}: expected a ledger of {noted.commits} commits, up to iteration "
            f"{noted.iteration}, as was noted, found one of {commits}, up to iteration "
            f"{iteration}: its write-ahead file (-wal) was lost or damaged, or an older copy was "
            f"put in its place. {way_on}"
        )


def _way_on(resumed: Path) -> str:
    return (
        "Put the run's folder back from a copy, or go on from what is left with "
        f"`srs-ooc resume {quote(str(resumed))} --accept-loss`."
    )


FORMAT = 3
MAX_HISTORY = 10_000

_SCHEMA = (
    RECORDS_SCHEMA
    + """
CREATE TABLE history (
    iteration INTEGER PRIMARY KEY, n_selected INTEGER NOT NULL,
    seconds REAL NOT NULL, resident_nbytes INTEGER NOT NULL);
"""
)


@dataclass(frozen=True)
class Progress:
    """Where a run stands: iterations done, |F|, seconds worked, largest resident size in bytes."""

    iteration: int
    n_kept: int
    seconds: float
    peak_nbytes: int


class Ledger(Records):
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

    Raises
    ------
    RunError
        If there is no run, its ledger is damaged, lacks commits or is of another version, or, for a
        writer, another process holds it.
    """

    def __init__(
        self,
        run: Path,
        *,
        writable: bool,
        accept_loss: bool = False,
        part_of: Path | None = None,
    ) -> None:
        self.run, self.accepts_loss = run, accept_loss
        _require(run)
        self._held = ExitStack()
        self._note: NoteWriter | None = None
        try:
            if writable:
                self._held.callback(os.close, hold(run))
            # Before the ledger, which a writer may take further meanwhile.
            noted = None if accept_loss else read_note(run, part_of or run)
            with self._translated():
                # A writer would clear a damaged log away when it is closed.
                self._database = self._held.enter_context(closing(connect_reader(run / FILE)))
            with self.reading():
                _check_format(run, self.meta("format"))
                self._commits, progress = self.commits_counted(), self.progress()
                self.check_digest()
            if not accept_loss:
                check_note(run, part_of or run, noted, self._commits, progress.iteration)
            self._iteration = progress.iteration
            if writable:
                self._open_for_writing(make_note=noted is None)
        except BaseException:
            self.close()
            raise

    def _open_for_writing(self, *, make_note: bool) -> None:
        """Connect anew; open the note, or make it where there is none, or none that is to count."""
        with self._translated():
            self._database.close()
            self._database = self._held.enter_context(closing(connect_writer(self.run / FILE)))
            start = Noted(self._commits, self._iteration) if make_note else None
            self._note = self._held.enter_context(closing(NoteWriter(self.run, start)))
            if make_note:
                sync_folder(self.run)

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
                database.executescript(_SCHEMA + PAGES_SCHEMA)
                facts = {"format": FORMAT, COMMITS: 0} | meta
                facts["state"] = asdict(Progress(0, 0, 0.0, 0)) | {"pages": 0, "layout": {}}
                texts = [(name, json.dumps(value)) for name, value in facts.items()]
                sealed = [(name, text, checksum_of(name, text.encode())) for name, text in texts]
                database.executemany("INSERT INTO meta VALUES (?, ?, ?)", sealed)
                digest = json.dumps(records_digest(database))
                seal = (DIGEST, digest, checksum_of(DIGEST, digest.encode()))
                database.execute("INSERT INTO meta VALUES (?, ?, ?)", seal)
                blobs = [(name, array.tobytes()) for name, array in inputs.items()]
                filled = [(name, data, checksum_of(name, data)) for name, data in blobs]
                database.executemany("INSERT INTO inputs VALUES (?, ?, ?)", filled)
                database.close()
                NoteWriter(scratch, Noted(0, 0)).close()
        except (OSError, sqlite3.Error) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else error
            raise RunError(f"{run}: the run's folder could not be created: {reason}.") from error

    def close(self) -> None:
        """Close the database and let go of the lock."""
        self._held.close()

    def set_meta(self, name: str, value: Any) -> None:
        """Keep a fact that is not part of the identity, such as the iterations asked for."""
        with self._counted():
            self.put_meta(name, value)

    def write_arrays(self, name: str, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Keep small arrays under ``name`` in one transaction, in place of those there were."""
        with self._counted():
            self._put_arrays(name, arrays)

    def _put_arrays(self, name: str, arrays: Mapping[str, NDArray[Any]]) -> None:
        buffer = BytesIO()
        np.savez(buffer, **arrays)  # type: ignore[arg-type]
        data = buffer.getvalue()
        self._database.execute(
            "INSERT OR REPLACE INTO arrays VALUES (?, ?, ?)", (name, data, checksum_of(name, data))
        )

    def progress(self) -> Progress:
        """Return where the last commit left the run."""
        record = self.meta("state")
        return Progress(**{field.name: record[field.name] for field in fields(Progress)})

    def load(self, parts: Mapping[str, Stateful]) -> Progress:
        """Restore parts, by name, from one consistent commit; return where it stands."""
        with self.reading():
            progress, record = self.progress(), self.meta("state")
            if checksums_digest(self._database) != record["pages"]:
                raise RunError(
                    f"{self.run / FILE}: pages of the tallies are missing or of another commit. "
                    "The ledger is damaged; restore it from a copy. Nothing was started afresh."
                )
            layout = record["layout"]
            for name, part in parts.items():
                part.restore(SavedPart(self, self._database, name, layout))
        return progress

    def commit(
        self, progress: Progress, states: Mapping[str, State], resident_nbytes: int
    ) -> float:
        """Write the states after ``progress.iteration``; return the seconds it took.

        Parameters
        ----------
        progress : Progress
            What to record.
        states : mapping of State
            By the name of the part. Of large arrays the changed pages are written.
        resident_nbytes : int
            For the history.
        """
        start = time.monotonic()
        with self._counted(progress.iteration):
            layout = self.meta("state")["layout"]
            for name, state in states.items():
                self._write_state(name, state, layout)
            digest = checksums_digest(self._database)
            self.put_meta("state", asdict(progress) | {"pages": digest, "layout": layout})
            self._record_history(progress, resident_nbytes)
        for state in states.values():
            for pages in state.pages.values():
                pages.changed[:] = False
        return time.monotonic() - start

    def _write_state(self, name: str, state: State, layout: dict[str, list[int]]) -> None:
        """Write one part, and note where its large arrays lie: [column, length]."""
        for key, pages in state.pages.items():
            full = f"{name}.{key}"
            column = layout[full][0] if full in layout else len(layout)
            layout[full] = [column, len(pages.array)]
            changed = np.flatnonzero(pages.changed[: n_pages(len(pages.array))])
            write_pages(self._database, column, pages.array, changed.tolist())
        if state.arrays:
            self._put_arrays(name, state.arrays)
        if state.facts is not None:
            self.put_meta(name, state.facts)

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
    def _counted(self, iteration: int | None = None) -> Iterator[None]:
        """Write in the block in one transaction, count it, and note it once it is on disk."""
        assert self._note is not None, "open for writing"
        with self._translated():
            with self._transaction("BEGIN IMMEDIATE"):
                yield
                self.put_meta(COMMITS, self._commits + 1)
                self.put_digest()
            self._commits += 1
            self._iteration = self._iteration if iteration is None else iteration
            self._note.write(Noted(self._commits, self._iteration))


def _require(run: Path) -> None:
    try:
        is_there, is_folder = (run / FILE).exists(), run.is_dir()
    except OSError as error:
        raise RunError(f"{run}: could not be looked into: {error.strerror}.") from error
    if not is_there:
        found = "a folder without a ledger" if is_folder else "nothing there"
        found = "a store, not a run of it" if (run / "zarr.json").exists() else found
        raise RunError(f"{run}: expected the folder of a run or a network, found {found}.")


def _check_format(run: Path, version: Any) -> None:
    if version != FORMAT:
        raise RunError(
            f"{run}: expected ledger format {FORMAT}, found {version!r}. Use the srs-ooc version "
            "that wrote it, or start the run again in another folder."
        )


# A stage of a run beside its main loop: its states are small, and written whole.

_ITERATION, _ORIGIN = "iteration", "n_iterations"


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
        arrays = self._ledger.read_arrays(name)
        if arrays is None or int(arrays[_ORIGIN]) != self._origin:
            return Progress(0, 0, 0.0, 0)
        part.restore(_SavedArrays(arrays))
        return Progress(int(arrays[_ITERATION]), 0, 0.0, 0)

    def commit(
        self, progress: Progress, states: Mapping[str, State], resident_nbytes: int
    ) -> float:
        """Write the part's arrays in one transaction; return the seconds it took."""
        start = time.monotonic()
        ((name, state),) = states.items()
        assert not state.pages
        assert state.facts is None
        where = {_ORIGIN: np.array(self._origin), _ITERATION: np.array(progress.iteration)}
        self._ledger.write_arrays(name, dict(state.arrays) | where)
        return time.monotonic() - start


@dataclass(frozen=True)
class _SavedArrays:
    """A part of arrays alone; see :class:`srs_ooc.base.records.Saved`."""

    arrays: dict[str, NDArray[Any]]
    facts: None = None

    def length(self, name: str) -> int:
        return 0

    def fill(self, name: str, out: NDArray[Any], first_page: int = 0) -> None:
        raise AssertionError("a stage has no large arrays")


# A book that keeps nothing: for probes and measurements that must leave no trace on disk.


class TransientLedger:
    """Starts every engine at iteration 0 and forgets what it is given."""

    def load(self, parts: Mapping[str, Stateful]) -> Progress:
        """Leave the parts as new."""
        return Progress(0, 0, 0.0, 0)

    def commit(
        self, progress: Progress, states: Mapping[str, State], resident_nbytes: int
    ) -> float:
        """Keep nothing, in no time."""
        return 0.0
