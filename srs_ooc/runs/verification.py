"""Is a run whole? Everything on disk is read and compared with checksums."""

import sqlite3
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from srs_ooc.base.budget import Budget, Lease
from srs_ooc.base.errors import RunError
from srs_ooc.base.files import SCRATCH_SUFFIX, crc_of
from srs_ooc.base.records import PAGE_ITEMS
from srs_ooc.base.text import MB
from srs_ooc.base.urls import Place
from srs_ooc.runs.ledger import (
    CHECKING_NBYTES,
    FILE,
    FOLDS_FOLDER,
    HALVES_FOLDER,
    NOTE_FILE,
    VALID,
    Ledger,
    checksums_digest,
    damaged_run,
    page_checks,
    read_notes,
)
from srs_ooc.runs.run_trees import SPLITS_FILE, TREES_FILE, check_splits, check_trees
from srs_ooc.samplers.base import PREDICTIONS, method_of
from srs_ooc.store.opening import open_store
from srs_ooc.store.store import READING_NBYTES, Verified

# Each of what follows says what was found whole, in the plural and with the file it is in, how many
# there are, and their bytes as far as they were read.


def _parts_of(run: Path, part_of: Path | None = None) -> Iterator[tuple[str, int, int]]:
    """Check a run; ``part_of`` is the one that it is a half of, for messages."""
    with Ledger(run, writable=False, part_of=part_of) as ledger, ledger.reading() as database:
        # What they say was compared as the ledger was opened.
        read_notes(run, part_of or run, all_whole=True)
        yield f"notes of the last commit ({NOTE_FILE})", 1, 0
        (found,) = database.execute("PRAGMA integrity_check(1)").fetchone()
        if found != "ok":
            raise _damaged(run, "a sound database", " ".join(str(found).split()))  # of lines
        (n_pages,) = database.execute("PRAGMA page_count").fetchone()
        (page_nbytes,) = database.execute("PRAGMA page_size").fetchone()
        yield f"database pages ({FILE})", n_pages, n_pages * page_nbytes
        for table, column in (("meta", "value"), ("inputs", "data"), ("arrays", "data")):
            yield _records(run, database, table, column)
        yield _pages(ledger, database)
        done, last, count = ledger.progress().iteration, -1, 0
        for iteration, *_ in ledger.history():
            if not last < iteration <= done:
                wanted = f"a history up to iteration {done}"
                raise _damaged(run, wanted, f"iteration {iteration}")
            last, count = iteration, count + 1
        yield f"rows of the history ({FILE})", count, 0
        valid = ledger.meta(VALID) if ledger.has_meta(VALID) else None
        spec, n_trees = ledger.meta("spec") if valid else {}, None
        # of a method that splits rows only some iterations have any
        if valid and PREDICTIONS not in method_of(spec["method"]).needs:
            n_trees = int(spec["trees_per_subspace"]) * done
    if valid is None and (run / TREES_FILE).exists():
        raise RunError(
            f"{run / TREES_FILE}: expected no file of trees, as the run keeps none, found one. It "
            "is not the run's: move it away, or restore the run's folder from a copy."
        )
    if valid:
        yield f"trees ({TREES_FILE})", check_trees(run / TREES_FILE, valid, n_trees), valid
    if (run / SPLITS_FILE).exists():
        yield f"files of thresholds ({SPLITS_FILE})", 1, check_splits(run / SPLITS_FILE)
    for folder in sorted((*(run / HALVES_FOLDER).glob("*"), *(run / FOLDS_FOLDER).glob("*"))):
        if folder.suffix not in (".removed", SCRATCH_SUFFIX) and (folder / FILE).exists():
            try:
                yield from _parts_of(folder, part_of or run)
            except RunError:  # nothing is known of one that its run was done with meanwhile
                if (folder / FILE).exists():
                    raise


def _records(
    run: Path, database: sqlite3.Connection, table: str, column: str
) -> tuple[str, int, int]:
    count = nbytes = 0
    rows = database.execute(f"SELECT rowid, name, crc FROM {table} ORDER BY rowid")  # noqa: S608
    for row, name, expected in rows:
        with database.blobopen(table, column, row, readonly=True) as blob:
            crc, n_read = crc_of(blob, zlib.crc32(str(name).encode()))
        if crc != expected:
            wanted = f"a record {name!r} of {table} as it was written"
            raise _damaged(run, wanted, "another checksum")
        count, nbytes = count + 1, nbytes + n_read
    return f"records of {table} ({FILE})", count, nbytes


def _pages(ledger: Ledger, database: sqlite3.Connection) -> tuple[str, int, int]:
    if checksums_digest(database) != ledger.meta("state")["pages"]:
        raise _damaged(ledger.run, "the checksums of the last commit's pages", "others")
    query = "SELECT count(*) FROM pages WHERE id NOT IN (SELECT id FROM checksums)"
    (n_strange,) = database.execute(query).fetchone()
    if n_strange:
        raise _damaged(ledger.run, "a checksum for each page", f"{n_strange} pages without one")
    count = nbytes = 0
    for n_read in page_checks(database, dict(ledger.meta("state")["layout"].values())):
        count, nbytes = count + 1, nbytes + n_read
    return f"pages of {PAGE_ITEMS} items ({FILE})", count, nbytes


def _damaged(run: Path, expected: str, found: str) -> RunError:
    return damaged_run(run / FILE, f"expected {expected}, found {found}")


# Reading all of a store or a run, to find damage.


@dataclass(frozen=True)
class Verification(Verified):
    """What was read of a store or a run, all of it as written.

    Attributes
    ----------
    path : Path or Url
        The store or run.
    is_run : bool
        Which of the two it is.
    files : dict of str to int
        What was read, by what it is: files of a store, records of a run.
    nbytes : int
        Bytes read.
    """

    path: Place
    is_run: bool


def verify(path: Place, memory_nbytes: int = 512 * MB) -> Verification:
    """Read every byte of a store or a run that any command could use, and compare.

    Of a run, as of its last commit (it may be going on): its note, the structure of its database,
    every record, page and checksum there, its trees, the thresholds kept beside them, and the runs
    on halves and folds under way. Everything is read in pieces of at most 1 MB.

    Raises
    ------
    StoreError, RunError
        Naming the first file that is damaged.
    BudgetError
        If the cap cannot hold it.
    """
    if isinstance(path, Path) and (path / FILE).is_file():
        Budget(memory_nbytes, [Lease("reading a run in pieces", CHECKING_NBYTES)]).check()
        parts = list(_parts_of(path))
        nbytes = sum(n_read for _, _, n_read in parts)
        return Verification(nbytes, {what: count for what, count, _ in parts}, path, True)
    store = open_store(path)
    # which positions were seen, kinds and counts of codes; places of categorical features
    places = 4 * store.n_features + 24 * store.manifest.kind_counts["categorical"]
    Budget(memory_nbytes, [Lease("reading a store in pieces", READING_NBYTES + places)]).check()
    found = store.verify()
    return Verification(found.nbytes, found.files, path, False)
