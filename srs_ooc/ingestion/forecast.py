"""What an ingest would take, found without writing a store: rows, disk, memory."""

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from srs_ooc.base.budget import resident_nbytes
from srs_ooc.base.errors import BudgetError, UsageError
from srs_ooc.ingestion.disk import disk_of
from srs_ooc.ingestion.formats.csv import CsvStream
from srs_ooc.ingestion.formats.csv_looks import estimate, has_row_names, rows_at_most
from srs_ooc.ingestion.formats.opening import is_other, open_file
from srs_ooc.ingestion.formats.pieces import N_DECODERS, PieceReader
from srs_ooc.ingestion.formats.source import SourceFile
from srs_ooc.ingestion.memory import budget_of, check_columns, grant_stage, load_libraries
from srs_ooc.ingestion.options import IngestOptions
from srs_ooc.ingestion.texts import Texts
from srs_ooc.store.layout import Shape


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
    least_memory_nbytes : int
        The smallest cap that would do, about.
    """

    n_columns: int
    n_rows: int
    rows_are_known: bool
    scratch_nbytes: int
    store_nbytes: int
    free_nbytes: int
    least_memory_nbytes: int

    @property
    def fits(self) -> bool:
        """Whether the disk has room for it."""
        return self.scratch_nbytes + self.store_nbytes <= self.free_nbytes


def forecast(table: Path, store: Path, options: IngestOptions) -> Forecast:
    """Return what ingesting a file would take.

    Raises
    ------
    UsageError
        If the table is standard input, which can be read but once.
    InputError
        If the table cannot be read.
    """
    if str(table) == "-":
        raise UsageError("--dry-run: expected a file, found standard input. Save it first.")
    load_libraries()
    with tempfile.TemporaryDirectory() as folder:
        if is_other(table):
            opened = open_file(table, Path(folder), options.memory_nbytes)
            (n_rows, n_columns), known = opened.shape, True
            work, by_rows, text_nbytes = opened.work_nbytes, opened.by_rows, None
            unpacked = sum(file.stat().st_size for file in Path(folder).iterdir())
        else:
            unpacked = 0
            n_columns, n_rows, work, text_nbytes = _look(table, options)
            known, by_rows = False, True
    n_features, n_rows = (n_rows, n_columns - 1) if options.samples else (n_columns, n_rows)
    shape = Shape(max(1, n_rows), max(1, n_features))
    form = options.form()
    budget = budget_of(options.memory_nbytes, resident_nbytes() + work)
    grant_stage(budget, n_columns, shape, form)
    scratch, stored = disk_of(shape, form, by_rows=by_rows, text_nbytes=text_nbytes)
    return Forecast(
        n_columns=n_columns,
        n_rows=n_rows,
        rows_are_known=known,
        scratch_nbytes=scratch + unpacked,
        store_nbytes=stored,
        free_nbytes=shutil.disk_usage(store.parent).free,
        least_memory_nbytes=budget.needed_nbytes,
    )


def _look(table: Path, options: IngestOptions) -> tuple[int, int, int, int | None]:
    """Return columns, rows (about), memory of decompressing, and bytes of text."""
    source = SourceFile.file(table)
    n_columns = 0

    def count(names: Texts) -> None:
        nonlocal n_columns
        n_columns += len(names.ends)

    CsvStream(source, options.text, count)
    try:
        check_columns(options.memory_nbytes, n_columns)
    except BudgetError:  # nor does the cap hold a look at the rows
        n_rows, text_nbytes = rows_at_most(source, n_columns) or 1, None
    else:
        n_columns += has_row_names(source, options.text)
        guess = estimate(source, options.text, n_columns)
        n_rows, text_nbytes = guess.n_rows, guess.text_nbytes
    return n_columns, n_rows, N_DECODERS * PieceReader(source).decoder_nbytes, text_nbytes
