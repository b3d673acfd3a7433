"""The ledger: what is on disk of a run, in one SQLite database in the run's folder.

A commit is one transaction that holds the whole state after an iteration; SQLite's write-ahead log
makes it all or nothing, whatever kills the process. Commits are counted, and how many there were is
noted outside (:mod:`srs_ooc.runs.ledger.note`), so that a lost log is found. Creating and opening
are different acts: a ledger that cannot be read is an error, never a fresh start (law 3).
"""

import json
import os
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass, fields
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import RunError
from srs_ooc.base.files import published_folder, sync_folder
from srs_ooc.base.records import State, Stateful, n_pages
from srs_ooc.runs.ledger.connection import connect_reader, connect_writer
from srs_ooc.runs.ledger.lock import hold
from srs_ooc.runs.ledger.note import Noted, NoteWriter, check_note, read_note
from srs_ooc.runs.ledger.older import layout_of
from srs_ooc.runs.ledger.pages import PAGES_SCHEMA, checksums_digest, write_pages
from srs_ooc.runs.ledger.records import (
    COMMITS,
    DIGEST,
    FILE,
    RECORDS_SCHEMA,
    Records,
    checksum_of,
    records_digest,
)
from srs_ooc.runs.ledger.saved import SavedPart

FORMAT = 3
READ_FORMATS = (1, 2, 3)
_DIGEST_SINCE = 3
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
                self._format = self.meta("format")
                _check_format(run, self._format)
                counted, progress = self.commits_counted(), self.progress()
                if self._format >= _DIGEST_SINCE:
                    self.check_digest()
            if not accept_loss:
                check_note(run, part_of or run, noted, counted, progress.iteration)
            self._iteration = progress.iteration
            self._commits = counted or 0
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
            layout = layout_of(record)
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
            record = self.meta("state")
            layout = layout_of(record)
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
                if self._format != FORMAT:
                    self.put_meta("format", FORMAT)
                self.put_digest()
            self._format = FORMAT
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
    if version not in READ_FORMATS:
        raise RunError(
            f"{run}: expected ledger format {' or '.join(map(str, READ_FORMATS))}, found "
            f"{version!r}. Use the srs-ooc version that wrote it."
        )
