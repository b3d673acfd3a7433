"""The one pipeline: plan, roles, read, code, write, publish; for a table of any format."""

import contextlib
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from srs_ooc.base.budget import growth_counted
from srs_ooc.base.errors import UsageError
from srs_ooc.base.files import published_folder
from srs_ooc.base.options import (
    flag_given,
    megabytes_given,
    place_given,
    python_spelling,
    whole_given,
)
from srs_ooc.base.text import MB
from srs_ooc.base.urls import Place
from srs_ooc.ingestion.choosing import open_reading
from srs_ooc.ingestion.columns import kept_columns
from srs_ooc.ingestion.contents import ByteProgress
from srs_ooc.ingestion.destination import make_at
from srs_ooc.ingestion.disk import check_replaceable, disk_errors
from srs_ooc.ingestion.forced_kinds import ForcedKinds
from srs_ooc.ingestion.given import check_kinds as check_kinds_given
from srs_ooc.ingestion.given import check_name, check_names, check_words, pieces_given
from srs_ooc.ingestion.memory import load_libraries
from srs_ooc.ingestion.options import IngestOptions, SideColumns
from srs_ooc.ingestion.reading import Reading, Workplace
from srs_ooc.ingestion.remarks import log_remarks
from srs_ooc.ingestion.roles import check_distinct, check_kinds, choose_roles
from srs_ooc.ingestion.row_facts import RowColumns
from srs_ooc.ingestion.scratch import TextSpool
from srs_ooc.ingestion.writer import write_store
from srs_ooc.store.manifest import NO_TARGET, Manifest, Shape


@python_spelling()
@growth_counted()
def ingest(
    table: Any,
    store: str | Place,
    *,
    target: Any = None,
    names: Any = None,
    row_ids: Any = None,
    ignore: Sequence[str] = (),
    task: str = "auto",
    missing_target: str = "drop",
    min_class_rows: int | None = None,
    kinds: Mapping[str, str] | None = None,
    weights: Any = None,
    strata: Any = None,
    groups: Any = None,
    memory_mb: float = 512,
    code_dtype: str = "uint8",
    keep_values: bool = True,
    overwrite: bool = False,
    no_target: bool = False,
    client: Any = None,
    progress: ByteProgress | None = None,
) -> Manifest:
    """Turn a table, or its pieces, into a store.

    Parameters
    ----------
    table : path, list of paths, ndarray, DataFrame, pyarrow.Table, or sparse matrix
        A file of any format ``srs-ooc ingest`` reads, or an object of NumPy, pandas, polars,
        PyArrow or SciPy, of shape (n_rows, n_columns). NaN and nulls are missing values. Sparse
        matrices stay sparse. Several files are pieces of columns of one table: the same rows in the
        same order, the first with the target. After an interruption the same call does the pieces
        that are missing.
    store : path or URL
        The store to make; it appears complete or not at all. One for a URL is made on this disk
        first.
    target : str or sequence (n_rows,), optional
        Name of the column of class labels or numbers, or those; the last column if not given.
    names : path or sequence of str (n_columns,), optional
        Names of the columns where the table has none; f0, f1, ... if not given.
    row_ids : str or sequence (n_rows,), optional
        Name of the column of row ids, or the ids; rows are numbered from 1 if not given.
    ignore : sequence of str
        Columns to leave out.
    task : {'auto', 'classification', 'regression'}
        What the target is; found out if ``auto``.
    missing_target : {'drop', 'refuse'}
        Whether rows without a target are left out, or refused.
    min_class_rows : int, optional
        Classes of fewer rows are refused: they are often no classes. 1 takes them all; by default 2
        of a table of 20 rows or more.
    kinds : mapping of str to str, optional
        Kinds (``numeric``, ``integer``, ``boolean``, ``categorical``) of columns by name; the
        others are found out.
    weights : str or sequence (n_rows,), optional
        Name of the column of weights, positive finite numbers, or those.
    strata : str, tuple of str, or sequence (n_rows,), optional
        Names of the columns whose tuples are the strata, or the strata.
    groups : str or sequence (n_rows,), optional
        Name of the column of groups, or the groups.
    memory_mb : float
        Cap in megabytes (10^6 bytes) on growth of the process: what it held when the call began,
        such as the table, does not count.
    code_dtype : {'uint8', 'uint16'}
        Dtype of the codes.
    keep_values : bool
        Keep the values beside the codes.
    overwrite : bool
        Replace a store that is there, once the new one is complete. A run of the old store will
        refuse the new one, whose fingerprint is another.
    no_target : bool
        No column is the target, for a table of which no run is to be made, only networks.
    client : distributed.Client, optional
        Of pieces: they are coded on the workers of this Dask client, each under ``memory_mb``.
    progress : callable, optional
        Told what is being done, how many bytes of it are done, and how many there are.

    Returns
    -------
    Manifest
        What the store says of itself; ``inferred`` holds what was found rather than said.

    Notes
    -----
    What may be a mistake (an index among the features, dates, words for what is missing) is logged
    as a warning by the logger ``srs_ooc``.

    Raises
    ------
    InputError
        If the table cannot be ingested as asked.
    StoreError
        If the store exists, or cannot be written.
    BudgetError
        If the memory cap cannot hold the work.
    """
    check_words({"task": task, "missing_target": missing_target, "code_dtype": code_dtype})
    check_names("ignore", ignore)
    check_kinds_given(kinds)
    columns = {"target": target, "row_ids": row_ids, "weights": weights, "groups": groups}
    names_of_strata = (strata,) if isinstance(strata, str) else strata
    by_name = isinstance(names_of_strata, tuple)
    _check_named(columns, names_of_strata if by_name else ())
    options = IngestOptions(
        target=target if isinstance(target, str) else None,
        row_ids=row_ids if isinstance(row_ids, str) else None,
        ignore=ignore,
        task=task,
        missing_target=missing_target,
        min_class_rows=whole_given(min_class_rows, "min_class_rows"),
        kinds=ForcedKinds(tuple((kinds or {}).items())),
        weights=weights if isinstance(weights, str) else None,
        strata=names_of_strata if by_name else (),
        groups=groups if isinstance(groups, str) else None,
        memory_nbytes=int(megabytes_given(memory_mb) * MB),
        code_dtype=code_dtype,
        keep_values=flag_given(keep_values, "keep_values"),
        overwrite=flag_given(overwrite, "overwrite"),
        no_target=flag_given(no_target, "no_target"),
    )
    side = _side_columns(names, columns | {"strata": None if by_name else strata})
    place = place_given(store, "store")
    make = _maker(table, options, side, client, progress)
    manifest = make_at(place, make, overwrite=overwrite, progress=progress)
    log_remarks(place)
    return manifest


def _side_columns(names: Any, given: Mapping[str, Any]) -> SideColumns:
    """Return names and row columns that were given as such, not by the name of a column."""
    columns = {
        what: [(what.replace("_", " "), item)]
        for what, item in given.items()
        if item is not None and not isinstance(item, str)
    }
    return SideColumns(Path(names) if isinstance(names, str) else names, columns)


def _maker(
    table: Any,
    options: IngestOptions,
    side: SideColumns,
    client: Any,
    progress: ByteProgress | None,
) -> Callable[[Path], Manifest]:
    """Return what makes the store of a table, or of its pieces, at a path."""
    tables = pieces_given(table, client, has_values=bool(side))
    if tables is None:
        return lambda path: ingest_table(table, path, options, progress, side=side)
    from srs_ooc.ingestion import piece_workers, pieces  # which have need of this module

    workers = client and piece_workers.on_workers(client, options.memory_nbytes // MB)
    return lambda path: pieces.ingest_pieces(tables, path, options, progress, workers=workers)


def _check_named(columns: Mapping[str, Any], names_of_strata: Sequence[str]) -> None:
    """Refuse names of columns that no column can have."""
    for name, column in columns.items():
        if isinstance(column, str):
            check_name(name, column)
    check_names("strata", names_of_strata)


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
    options = options or IngestOptions()
    if options.overwrite:
        check_replaceable(store)
    with disk_errors(store), published_folder(store, replaces=options.overwrite) as folder:
        with contextlib.ExitStack() as stack:
            work = Workplace(folder, stack, progress or (lambda stage, done, total: None))
            work.scratch.mkdir()
            reading = open_reading(table, options, side or SideColumns(), work)
            manifest = _ingest(reading, work)
        shutil.rmtree(work.scratch)
    return manifest


def _ingest(reading: Reading, work: Workplace) -> Manifest:
    """Take a table through all stages but the last, which is to publish."""
    header = work.stack.enter_context(TextSpool(work.scratch, "header"))
    rows = work.stack.enter_context(contextlib.closing(RowColumns(work.scratch)))
    inferred = reading.read_names(header)
    options, side = reading.options, reading.side
    has_target = "target" not in side.columns and not options.no_target
    if options.no_target:
        _check_no_target(options, side)
        inferred["target"] = NO_TARGET
    if has_target and options.target is None:
        inferred["target"] = "last column"
    roles = choose_roles(reading.source, header, options, has_target=has_target)
    needs = reading.needs(roles)
    needs.check(options.memory_nbytes, reading.source)
    memory = reading.share_memory(roles, needs)
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
        first_feature=options.first_feature,
    )
    reading.check_unchanged()
    return manifest


def _check_no_target(options: IngestOptions, side: SideColumns) -> None:
    if options.target is not None or options.samples is not None or "target" in side.columns:
        raise UsageError(
            "--no-target: expected a table with rows of samples and no target named, found a "
            "target, or --orient features. Leave one of the two out."
        )
