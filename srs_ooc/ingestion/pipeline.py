"""The one pipeline: plan, roles, read, code, write, publish; for a table of any format."""

import contextlib
import shutil
from pathlib import Path
from typing import Any

from srs_ooc.base.atomic import published_folder
from srs_ooc.ingestion.choosing import open_reading
from srs_ooc.ingestion.columns import kept_columns
from srs_ooc.ingestion.contents import ByteProgress
from srs_ooc.ingestion.disk import disk_errors
from srs_ooc.ingestion.memory import check_columns, load_libraries
from srs_ooc.ingestion.options import IngestOptions, SideColumns
from srs_ooc.ingestion.reading import Reading, Workplace
from srs_ooc.ingestion.roles import check_distinct, check_kinds, choose_roles
from srs_ooc.ingestion.row_facts import RowColumns
from srs_ooc.ingestion.texts import TextSpool
from srs_ooc.ingestion.writer import write_store
from srs_ooc.store.layout import Shape
from srs_ooc.store.manifest import Manifest


def ingest_table(
    table: Any,
    store: Path,
    options: IngestOptions | None = None,
    progress: ByteProgress | None = None,
    *,
    side: SideColumns | None = None,
) -> Manifest:
    """Turn a table into a store, which appears complete or not at all.

    Equal bytes and options make equal stores.

    Parameters
    ----------
    table : path or object
        A file of any format, ``-`` for text on standard input, or an object in memory.
    store : Path
        The store to make.
    options : IngestOptions, optional
        Defaults if not given.
    progress : callable, optional
        Told of the bytes read and written.
    side : SideColumns, optional
        Names and row columns that are not in the table.

    Raises
    ------
    InputError
        If the table cannot be ingested as asked.
    StoreError
        If the store exists, or cannot be written.
    BudgetError
        If the memory cap cannot hold the work.
    """
    load_libraries()
    with disk_errors(store), published_folder(store) as folder:
        with contextlib.ExitStack() as stack:
            work = Workplace(folder, stack, progress or (lambda stage, done, total: None))
            work.scratch.mkdir()
            reading = open_reading(table, options or IngestOptions(), side or SideColumns(), work)
            manifest = _ingest(reading, work)
        shutil.rmtree(work.scratch)
    return manifest


def _ingest(reading: Reading, work: Workplace) -> Manifest:
    """Take a table through all stages but the last, which is to publish."""
    header = work.stack.enter_context(TextSpool(work.scratch, "header"))
    rows = work.stack.enter_context(contextlib.closing(RowColumns(work.scratch)))
    inferred = reading.read_names(header)
    options, side = reading.options, reading.side
    check_columns(options.memory_nbytes, len(header))
    has_target = "target" not in side.columns
    if has_target and options.target is None:
        inferred["target"] = "last column"
    roles = choose_roles(reading.source, header, options, has_target=has_target)
    memory = reading.share_memory(roles)
    check_distinct(reading.source, header, "column names", "Rename them.")
    forced = options.kinds.settle(reading.source, header)
    check_kinds(header, roles, forced)
    reading.read_rows(roles, forced, memory, rows)
    reading.check_unchanged()
    by_row = rows.settle(reading.source, reading.wording, options)
    features = reading.features(by_row.kept)
    n_rows = features.columns.n_rows
    shape = Shape(by_row.kept.n_rows, roles.n_features)
    form = options.form("float32" if features.fits_float32 else "float64")
    batch, n_threads = memory.writing(shape, form, features.held_nbytes, n_source_rows=n_rows)
    manifest = write_store(
        work.folder,
        kept_columns(features.columns, by_row.kept),
        by_row.target.values,
        by_row.facts(inferred | side.inferred, reading.origin()),
        header.blocks(roles.special),
        row_ids=by_row.row_ids,
        row_arrays=by_row.arrays,
        kinds=features.kinds,
        form=form,
        batch_features=batch,
        n_threads=n_threads,
        progress=work.tell,
    )
    reading.check_unchanged()
    return manifest
