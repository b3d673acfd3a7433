"""The ledger: what is on disk of a run, in one SQLite database in the run's folder.

A commit is one transaction that holds the whole state after an iteration; SQLite's write-ahead log
makes it all or nothing, whatever kills the process. Commits are counted, and how many there were is
noted outside (:mod:`srs_ooc.ledger.note`), so that a lost log is found. Creating and opening are
different acts: a ledger that cannot be read is an error, never a fresh start (law 3).
"""

import json
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass, fields
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.atomic import published_folder, sync_folder
from srs_ooc.errors import RunError
from srs_ooc.evidence.tally import Tally
from srs_ooc.ledger.connection import connect_reader, connect_writer
from srs_ooc.ledger.lock import hold
from srs_ooc.ledger.note import Noted, NoteWriter, check_note, read_note
from srs_ooc.ledger.pages import (
    PAGE_ITEMS,
    PAGES_SCHEMA,
    checksums_digest,
    read_page,
    read_pages,
    write_pages,
)
from srs_ooc.ledger.records import COMMITS, FILE, RECORDS_SCHEMA, Records, checksum_of
from srs_ooc.samplers.kept import KeptSet

FORMAT = 1
MAX_HISTORY = 10_000

_SCHEMA = (
    RECORDS_SCHEMA
    + """
CREATE TABLE history (
    iteration INTEGER PRIMARY KEY, n_selected INTEGER NOT NULL,
    seconds REAL NOT NULL, resident_nbytes INTEGER NOT NULL);
"""
)
_TALLY_COLUMNS = {"importance": 0, "n_drawn": 1, "n_better": 2}
_KEPT_FEATURES, _KEPT_ENTERED = 3, 4


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
                _check_format(run, self.meta("format"))
                counted, progress = self.commits_counted(), self.progress()
            if not accept_loss:
                check_note(run, part_of or run, noted, counted, progress.iteration)
            self._written_kept, self._iteration = progress.n_kept, progress.iteration
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
                facts["state"] = asdict(Progress(0, 0, 0.0, 0)) | {"pages": 0}
                texts = [(name, json.dumps(value)) for name, value in facts.items()]
                sealed = [(name, text, checksum_of(name, text.encode())) for name, text in texts]
                database.executemany("INSERT INTO meta VALUES (?, ?, ?)", sealed)
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

    def write_arrays(self, name: str, arrays: dict[str, NDArray[Any]]) -> None:
        """Keep small arrays under ``name`` in one transaction, in place of those there were."""
        buffer = BytesIO()
        np.savez(buffer, **arrays)  # type: ignore[arg-type]
        data = buffer.getvalue()
        with self._counted():
            self._database.execute(
                "INSERT OR REPLACE INTO arrays VALUES (?, ?, ?)",
                (name, data, checksum_of(name, data)),
            )

    def progress(self) -> Progress:
        """Return where the last commit left the run."""
        record = self.meta("state")
        return Progress(**{field.name: record[field.name] for field in fields(Progress)})

    def load(self, tally: Tally, kept: KeptSet) -> Progress:
        """Fill empty ``tally`` and ``kept`` from one consistent commit; return where it stands."""
        with self.reading():
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
        with self._counted(progress.iteration):
            for name, array in tally.columns():
                write_pages(self._database, _TALLY_COLUMNS[name], array, pages.tolist())
            if kept.n > self._written_kept:
                write_pages(self._database, _KEPT_FEATURES, kept.features, changed)
                write_pages(self._database, _KEPT_ENTERED, kept.entered, changed)
            state = asdict(progress) | {"pages": checksums_digest(self._database)}
            self.put_meta("state", state)
            self._record_history(progress, resident_nbytes)
            for name, value in (facts or {}).items():
                self.put_meta(name, value)
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
    def _counted(self, iteration: int | None = None) -> Iterator[None]:
        """Write in the block in one transaction, count it, and note it once it is on disk."""
        assert self._note is not None, "open for writing"
        with self._translated():
            with self._transaction("BEGIN IMMEDIATE"):
                yield
                self.put_meta(COMMITS, self._commits + 1)
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
        raise RunError(f"{run}: expected a run made by `srs-ooc run`, found {found}.")


def _check_format(run: Path, version: Any) -> None:
    if version != FORMAT:
        raise RunError(
            f"{run}: expected ledger format {FORMAT}, found {version!r}. "
            "Use the srs-ooc version that wrote it."
        )
