"""``srs_ooc.ingest``: a table, or its pieces, into a store on this disk or at a URL."""

import contextlib
import logging
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from srs_ooc.base.budget import Budget, Lease, growth_counted
from srs_ooc.base.errors import StoreError, UsageError
from srs_ooc.base.files import release_lock, try_lock
from srs_ooc.base.options import path_given, place_given, python_spelling, spelled
from srs_ooc.base.records import Covariate
from srs_ooc.base.text import MB
from srs_ooc.base.urls import Place, Url
from srs_ooc.ingestion.formats.files import format_of, opener_of
from srs_ooc.ingestion.formats.genotypes import is_plink
from srs_ooc.ingestion.ingest_memory import SLACK_NBYTES
from srs_ooc.ingestion.ingest_options import ByteProgress, IngestOptions, options_of
from srs_ooc.ingestion.remarks import remarks_of
from srs_ooc.ingestion.rows import RowColumns
from srs_ooc.ingestion.scratch import is_store
from srs_ooc.ingestion.shards import ingest_pieces
from srs_ooc.ingestion.sources import place_in
from srs_ooc.ingestion.stages import ingest_table
from srs_ooc.store.arrays import write_column
from srs_ooc.store.manifest import Manifest
from srs_ooc.store.store import Store

_log = logging.getLogger("srs_ooc")

# Where a new store goes: to a folder as it is made, to a URL once it is complete.

PREFIX, LOCK = "ingest-", "lock"
"""Of a folder in which a store for a URL is made, and of the file that is locked meanwhile."""


def make_at(
    place: Place, table: Any, options: IngestOptions, progress: ByteProgress | None, client: Any
) -> Manifest:
    """Make the store of a table, or of its pieces, at a place; it appears complete or not at all.

    One for a URL is made in a folder among what is kept of stores at URLs, copied, and removed: it
    takes the room of the store there meanwhile, besides what making it takes. After a kill the same
    call makes it once more, and copies what is missing at the URL.

    Parameters
    ----------
    place : Place
        Where the store goes.
    table, options : object, IngestOptions
        What it is made of, and how.
    progress : callable or None
        Told of the bytes read, written and copied.
    client : distributed.Client or None
        By whose workers pieces are done.

    Raises
    ------
    StoreError, UsageError
        If the URL is in use, or cannot be written; and errors as of :func:`make_store`.
    """
    if isinstance(place, Path):
        return make_store(table, place, options, progress, client)
    from srs_ooc.store.objects import Objects, check_free, copy_store

    target = Objects(place)
    there = check_free(target, replaces=options.overwrite)
    folder = made_first_at(place).parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _clear(folder)
        scratch = tempfile.TemporaryDirectory(prefix=PREFIX, dir=folder)
    except OSError as error:
        raise StoreError(
            f"{folder}: expected a folder that can be written, where the store for {place} is "
            f"made, found: {error.strerror or error}. Name another in SRS_OOC_CACHE_DIR."
        ) from error
    with scratch as made, contextlib.ExitStack() as stack:
        lock = try_lock(Path(made) / LOCK)
        assert lock is not None, "nobody else knows of it"
        stack.callback(release_lock, lock)
        manifest = make_store(table, Path(made) / "made.zarr", options, progress, client)
        if manifest.n_linked_rows:
            raise UsageError(
                f"--link, --code-dtype: expected a store on this disk, found {place}. Leave --link "
                "out, and --code-dtype 2bit: codes go where the store goes, as uint8."
            )
        tell = {} if progress is None else {"progress": progress}
        copy_store(Path(made) / "made.zarr", target, there, **tell)
    return manifest


def _clear(folder: Path) -> None:
    """Remove what killed processes left of stores that they were making for a URL."""
    for left in folder.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):  # gone meanwhile, or somebody else's
            if (handle := try_lock(left / LOCK, flags=os.O_RDWR)) is not None:
                shutil.rmtree(left, ignore_errors=True)
                release_lock(handle)


def made_first_at(place: Place) -> Path:
    """Return where on this machine a store for a place is made."""
    if isinstance(place, Path):
        return place
    from srs_ooc.store.remote_cache import CacheOptions

    return CacheOptions().path / "made.zarr"


@python_spelling()
@growth_counted()
def ingest(
    table: Any,
    store: str | Place,
    *,
    target: Any = None,
    names: Any = None,
    row_ids: Any = None,
    ignore: str | Sequence[str] = (),
    task: str = "auto",
    missing_target: str = "drop",
    min_class_rows: int | None = None,
    rename_repeated: bool = False,
    names_from: str | None = None,
    feature_type: str | None = None,
    kinds: Mapping[str, str] | None = None,
    weights: Any = None,
    strata: Any = None,
    groups: Any = None,
    covariates: Any = (),
    missing_covariates: str = "keep",
    time: Any = None,
    event: Any = None,
    aggregate: str | None = None,
    query: str | None = None,
    memory_mb: float = 512,
    threads: int | None = None,
    code_dtype: str = "auto",
    keep_values: bool = True,
    overwrite: bool = False,
    no_target: bool = False,
    link: bool = False,
    append_rows: str | Place | None = None,
    append_features: str | Place | None = None,
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
    ignore : str or sequence of str
        Column or columns to leave out.
    task : {'auto', 'classification', 'regression'}
        What the target is; found out if ``auto``.
    missing_target : {'drop', 'refuse'}
        Whether rows without a target are left out, or refused.
    min_class_rows : int, optional
        Classes of fewer rows are refused: they are often no classes. 1 takes them all; by default 2
        of a table of 20 rows or more.
    rename_repeated : bool
        Of columns with the same name the first keeps it, later ones end in -1, -2, ...; they are
        refused if not.
    names_from : {'id', 'symbol'}, optional
        Of 10x and loom: what features are named by; symbol if not given, or id where there is none.
    feature_type : str, optional
        Of 10x: only features of this type, such as ``Gene Expression``; all if not given.
    kinds : mapping of str to str, optional
        Kinds (``numeric``, ``integer``, ``boolean``, ``categorical``) of columns by name; the
        others are found out.
    weights : str or sequence (n_rows,), optional
        Name of the column of weights, positive finite numbers, or those.
    strata : str, tuple of str, or sequence (n_rows,), optional
        Names of the columns whose tuples are the strata, or the strata.
    groups : str or sequence (n_rows,), optional
        Name of the column of groups, or the groups.
    covariates : str, tuple or list of str, or mapping of str to sequence (n_rows,), optional
        Names of columns, or columns by name, that are kept beside the features and never searched:
        numbers, or categories. Cells may be missing.
    missing_covariates : {'keep', 'drop'}
        Whether rows without a value of a covariate are kept, or left out.
    time, event : str or sequence (n_rows,), optional
        In place of a target: when each row was seen last, 0 or more, and whether its event was seen
        then. The event has two values, such as 0 and 1; for others ``"NAME=VALUE"`` says which one
        means the event.
    aggregate : {'mean', 'median', 'sum'}, optional
        Make one row of each group: features become this of its known values, covariates that are
        numbers their mean; all else must be the same in its rows. Rows are named by their groups.
    query : str, optional
        Of a file of SQLite or DuckDB: the ``select`` whose result is the table. Three columns are a
        long table: row id, feature, value. More are row ids, then a column for each feature.
    memory_mb : float
        Cap in megabytes (10^6 bytes) on growth of the process: what it held when the call began,
        such as the table, does not count.
    threads : int, optional
        Threads that code at most; the store does not depend on it. Default: the cores there are.
    code_dtype : {'auto', '2bit', 'uint8', 'uint16'}
        Dtype of the codes; ``2bit`` holds 0, 1, 2 and missing, and is that of ``.bed`` files.
    keep_values : bool
        Keep the values beside the codes.
    overwrite : bool
        Replace a store that is there, once the new one is complete. A run of the old store will
        refuse the new one, whose fingerprint is another.
    no_target : bool
        No column is the target, for a table of which no run is to be made, only networks.
    link : bool
        Leave the genotypes in the ``.bed`` file, and make a store of what is known of them. The
        file has to stay as it is.
    append_rows : path or URL, optional
        A store, which stays as it is: make its next version, with the rows of the table after its
        own. Features, target and row columns are those of the store, by name.
    append_features : path or URL, optional
        The same, with the features of the table beside its own, for the same rows by row id.
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
    options = options_of(locals())
    place = place_given(store, "store")
    options = options if isinstance(place, Path) else options.settled()
    manifest = make_at(place, table, options, progress, client)
    for remark in remarks_of(Store.open(place)) if isinstance(place, Path) else ():
        _log.warning("%s", spelled(f"{place}: {remark}"))
    return manifest


def make_store(
    table: Any, path: Path, options: IngestOptions, progress: ByteProgress | None, client: Any
) -> Manifest:
    """Make the store of a table, or of its pieces, at a path; ``client``: by its Dask workers.

    Errors as of :func:`ingest_table`, and of the pieces.
    """
    has_groups = options.groups is not None or "groups" in options.beside
    if options.aggregate is not None and not (has_groups and options.row_ids is None):
        raise UsageError(
            "--aggregate: expected --groups, whose texts become the row ids, and no --row-ids. "
            "Name the column of the groups alone."
        )
    from srs_ooc.ingestion.formats.files import together

    if isinstance(table, list | tuple) and len(joined := together(table)) < len(table):
        table = joined[0]
    if (options.append_rows, options.append_features) != (None, None):
        from srs_ooc.ingestion.appending import append

        if isinstance(table, list | tuple) or client is not None:
            raise UsageError(
                "expected one table with --append-rows or --append-features, found pieces, or "
                "workers. Append them one after another."
            )
        return append(table, path, options, progress)
    is_pieces = isinstance(table, list | tuple) and len(table) > 0
    if not is_pieces or not all(isinstance(one, str | Path) for one in table):
        if client is not None:
            raise UsageError(
                "client: expected with a list of files, the pieces of a table, found "
                f"{type(table).__name__}. Leave it out."
            )
        return ingest_table(table, path, options, progress)
    if options.has_items:
        raise UsageError(
            "names, target, row_ids, weights, strata, groups, covariates, time, event: expected "
            "names of columns with a table in pieces, found values. Put them into the first piece, "
            "and name the columns."
        )
    tables = [path_given(one, "table") for one in table]
    return ingest_pieces(tables, path, options, progress, client=client)


@contextlib.contextmanager
def as_predicted(data: Place, memory_nbytes: int, row_ids: str | None = None) -> Iterator[Place]:
    """Yield a table as it is predicted: a store, or a text; of any other file a store of it.

    That has no target, lies in a folder for temporary files, and is gone after the block. Errors as
    of :func:`ingest_table`.
    """
    if (
        isinstance(data, Url)
        or not (file := place_in(data)[0]).exists()
        or (file.is_dir() and (is_store(file) or format_of(file) is None))
        or opener_of(data) is None
    ):
        yield data
    else:
        options = IngestOptions(no_target=True, row_ids=row_ids, memory_mb=memory_nbytes / MB)
        with tempfile.TemporaryDirectory(prefix="srs-ooc-") as folder:
            ingest_table(data, made := Path(folder) / file.name, options)
            yield made


def add_columns(store: Store, options: IngestOptions) -> dict[str, Any]:
    """Add targets and covariates of a sample table to a store, or replace those added before.

    All are settled before the first is written; what the store was made with stays as it is.

    Parameters
    ----------
    store : Store
        The store, on this machine.
    options : IngestOptions
        The table (``samples``), its column of row ids (``id_name``), and the columns.

    Returns
    -------
    dict
        Ids that the other side lacks, and labels of one number, as an ingest notes them.

    Raises
    ------
    InputError
        If no row is in the table, an id occurs twice, or a column does not hold what it should.
    UsageError
        If nothing is named, a name is that of a column the store was made with, or the store is at
        a URL.
    StoreError, BudgetError
        If the store cannot be written, or the cap cannot hold the table.
    """
    from srs_ooc.ingestion import feature_rows as tables

    asked = tables.asked_of(options)
    own = [store.own_target, *store.manifest.row_columns.get("covariates", ())]
    taken = [name for _, name in asked if name in own]
    if taken or not asked or not isinstance(store.place, Path):
        found = f"{taken[0]!r}, which is its own" if taken else "none, or a store at a URL"
        raise UsageError(
            f"{store.place}: expected a store on this machine, and --target or --covariates that "
            f"it was not made with, found {found}. Name such columns; its own stay as they are."
        )
    lease = tables.samples_lease(options, store.n_rows, store.manifest.lengths["row_ids_bytes"])
    columns = Lease("columns of the rows", SLACK_NBYTES + (30 + 20 * len(asked)) * store.n_rows)
    Budget(int(options.memory_mb * MB), [lease, columns]).check()
    ids, inferred = list(store.row_ids), dict[str, Any]()
    known = tables.read_samples(options, ids, f"{store.place}: expected row ids", inferred)
    gone = next(iter(options.text.missing or ("",)))
    plink = inferred if is_plink(store.manifest.source) else None
    with tempfile.TemporaryDirectory() as folder, store.unchanged():
        where = lambda row: tables.line_of(options, known[ids[row]])  # noqa: E731
        rows = RowColumns(Path(folder), options.samples[0], where, replace(options, no_target=True))
        rows.number_rows(len(ids))
        for what, name, cells in tables.columns_of(options, known, ids, plink, gone):
            rows.open("covariates" if what == "covariates" else "targets", name).extend(cells)
        rows.settle()
        values = rows.facts.arrays.get("covariates", np.empty(0))[:].reshape(-1, len(ids))
        for target in rows.further:
            write_column(store.path, store.fingerprint, "target", target)
        for one in zip(options.covariates, values, rows.facts.levels, strict=True):
            write_column(store.path, store.fingerprint, "covariate", Covariate(*one))
    return inferred | {"joined": rows.facts.inferred.get("joined", [])}
