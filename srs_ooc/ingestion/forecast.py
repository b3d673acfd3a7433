"""What an ingest would take, found without writing a store: rows, disk, memory."""

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from srs_ooc.base.errors import UsageError
from srs_ooc.ingestion.disk import disk_of
from srs_ooc.ingestion.feature_needs import feature_needs
from srs_ooc.ingestion.formats.csv_looks import estimate, rows_at_most
from srs_ooc.ingestion.formats.feature_rows import open_stream
from srs_ooc.ingestion.formats.opening import is_other, open_file
from srs_ooc.ingestion.formats.source import SourceFile
from srs_ooc.ingestion.memory import load_libraries
from srs_ooc.ingestion.needs import Needs
from srs_ooc.ingestion.options import IngestOptions, SideColumns
from srs_ooc.ingestion.reading import Workplace
from srs_ooc.ingestion.roles import choose_roles
from srs_ooc.ingestion.scratch import TextSpool
from srs_ooc.ingestion.text_reading import TextReading
from srs_ooc.store.manifest import Shape


@dataclass(frozen=True)
class Forecast:
    """What an ingest would take.

    Attributes
    ----------
    n_columns, n_rows : int
        Shape of the source.
    rows_are_known : bool
        Whether ``n_rows`` is exact, not an estimate from the beginning of the file.
    scratch_nbytes, store_nbytes, free_nbytes : int
        Disk in bytes: what is taken and given back, what the store takes at most, and what there
        is where it would be made.
    least_mb : int
        The smallest cap that would do, in MB; about, where the cap given is known to be enough
        and the rows are not known.
    fits_memory : bool
        Whether the cap given is enough.
    """

    n_columns: int
    n_rows: int
    rows_are_known: bool
    scratch_nbytes: int
    store_nbytes: int
    free_nbytes: int
    least_mb: int
    fits_memory: bool

    @property
    def fits(self) -> bool:
        """Whether the disk has room for it."""
        return self.scratch_nbytes + self.store_nbytes <= self.free_nbytes


@dataclass(frozen=True)
class _Look:
    """What a look found: columns and rows, what the ingest takes, and bytes of text."""

    n_columns: int
    n_rows: int
    rows_are_known: bool
    needs: Needs
    by_rows: bool
    text_nbytes: int | None = None
    unpacked_nbytes: int = 0


def forecast(
    table: Path, store: Path, options: IngestOptions, side: SideColumns | None = None
) -> Forecast:
    """Return what ingesting a file would take, ``side`` being what stands beside it.

    Raises
    ------
    UsageError
        If the table is standard input, which can be read but once.
    InputError
        If the table cannot be read.
    BudgetError
        If the cap cannot hold a look at the table; it names the one that an ingest takes.
    """
    if str(table) == "-":
        raise UsageError("--dry-run: expected a file, found standard input. Save it first.")
    load_libraries()
    has_target = not options.no_target and "target" not in (side or SideColumns()).columns
    with _workplace() as work:
        if options.samples:
            look = _look_at_features(table, options, work)
        elif is_other(table):
            look = _look_at_table(table, options, work)
        else:
            look = _look_at_text(table, options, work, has_target=has_target)
    n_features, n_rows = look.n_columns, look.n_rows
    if options.samples:
        n_features, n_rows = n_rows, n_features - 1
    shape, form = Shape(max(1, n_rows), max(1, n_features)), options.form()
    scratch, stored = disk_of(shape, form, by_rows=look.by_rows, text_nbytes=look.text_nbytes)
    return Forecast(
        n_columns=look.n_columns,
        n_rows=look.n_rows,
        rows_are_known=look.rows_are_known,
        scratch_nbytes=scratch + look.unpacked_nbytes,
        store_nbytes=stored,
        free_nbytes=shutil.disk_usage(store.parent).free,
        least_mb=look.needs.least_mb,
        fits_memory=look.needs.fits(options.memory_nbytes),
    )


@contextlib.contextmanager
def _workplace() -> Iterator[Workplace]:
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        work = Workplace(Path(folder), stack, lambda stage, done, total: None)
        work.scratch.mkdir()
        yield work


def _look_at_table(table: Path, options: IngestOptions, work: Workplace) -> _Look:
    opened, needs = open_file(table, work.scratch, options)
    unpacked = sum(file.stat().st_size for file in work.scratch.iterdir())
    n_rows, n_columns = opened.shape
    return _Look(n_columns, n_rows, True, needs, opened.by_rows, None, unpacked)


def _look_at_features(table: Path, options: IngestOptions, work: Workplace) -> _Look:
    source, samples = SourceFile.file(table), options.samples
    assert samples is not None
    header = work.stack.enter_context(TextSpool(work.scratch, "samples"))
    open_stream(source, options.text, header)
    needs = feature_needs(source, header, samples, options)
    n_columns = len(header)
    guess = estimate(source, options.text, n_columns)
    return _Look(n_columns, guess.n_rows, False, needs, True, guess.text_nbytes)


def _look_at_text(
    table: Path, options: IngestOptions, work: Workplace, *, has_target: bool
) -> _Look:
    source = SourceFile.file(table)
    header = work.stack.enter_context(TextSpool(work.scratch, "header"))
    reading = TextReading(source, options, work)
    reading.read_names(header)
    n_columns = len(header)
    roles = choose_roles(source, header, reading.options, has_target=has_target)
    needs = reading.needs(roles)
    guess = estimate(source, options.text, n_columns)
    if needs.n_rows == rows_at_most(source, n_columns) and needs.depends_on_rows:
        needs = needs.with_rows(guess.n_rows)  # the cap is enough for as many as there can be
    return _Look(n_columns, guess.n_rows, False, needs, True, guess.text_nbytes)
