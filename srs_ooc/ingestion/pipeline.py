"""The one pipeline: plan, roles, read, code, write, publish; for a table of any format."""

import contextlib
import logging
import os
import re
import shutil
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from srs_ooc.base.budget import Lease, growth_counted, resident_nbytes
from srs_ooc.base.errors import InputError, StoreError, UsageError
from srs_ooc.base.files import published_folder, try_lock
from srs_ooc.base.options import (
    flag_given,
    megabytes_given,
    path_given,
    place_given,
    python_spelling,
    spelled,
    whole_given,
)
from srs_ooc.base.text import MB
from srs_ooc.base.urls import Place
from srs_ooc.ingestion.columns import kept_columns
from srs_ooc.ingestion.csv import TextForm, estimate, rows_at_most
from srs_ooc.ingestion.feature_rows import feature_needs, open_feature_rows, open_stream
from srs_ooc.ingestion.formats.arrow import ArrowFile
from srs_ooc.ingestion.formats.detection import is_other, open_file, open_object
from srs_ooc.ingestion.formats.in_memory import with_needs
from srs_ooc.ingestion.formats.numeric_files import SvmlightTable
from srs_ooc.ingestion.ingest_memory import (
    Needs,
    check_replaceable,
    disk_errors,
    disk_of,
    load_libraries,
    own_nbytes,
)
from srs_ooc.ingestion.ingest_options import (
    ByteProgress,
    ForcedKinds,
    IngestOptions,
    SideColumns,
    check_distinct,
    check_kinds,
    check_name,
    check_names,
    check_words,
    choose_roles,
    pieces_given,
)
from srs_ooc.ingestion.ingest_options import check_given_kinds as check_kinds_given
from srs_ooc.ingestion.reading import Reading, TableReading, TextReading, Workplace
from srs_ooc.ingestion.rows import (
    RowColumns,
    said_of_missing,
    texts_among_numbers,
    words_for_missing,
)
from srs_ooc.ingestion.scratch import TextSpool
from srs_ooc.ingestion.sources import SourceFile, settle_source
from srs_ooc.ingestion.writer import write_store
from srs_ooc.store.manifest import CATEGORICAL, INTEGER, NO_TARGET, Manifest, Shape
from srs_ooc.store.objects import Objects, Publishing
from srs_ooc.store.remote_cache import CacheOptions
from srs_ooc.store.store import Store

# What a new store may not be meant to hold: an index, words for what is missing, dates.

MOST_FEATURES = 200_000
"""Of more features no texts are looked at, which takes a pass over their kinds."""
MOST_LOOKED_AT = 100
_DATE = re.compile(r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}([T ].*)?|\d{1,2}[-/.]\d{1,2}[-/.](\d{4}|\d{2})")
_BLANK = re.compile(r"(unnamed: \d+)?|__index_level_0__|_0", re.IGNORECASE)


_log = logging.getLogger("srs_ooc")


def log_remarks(place: Place) -> None:
    """Log remarks on a new store, as warnings with the names that Python has; none at a URL."""
    if not isinstance(place, Path):
        return
    for remark in remarks_of(Store.open(place)):
        _log.warning("%s: %s", place, spelled(remark))


def remarks_of(store: Store) -> Iterator[str]:
    """Yield sentences on what of a store, new and on this disk, may be a mistake.

    Parameters
    ----------
    store : Store
        The store.

    Yields
    ------
    str
        What was found, and what to do if it is not meant.
    """
    manifest = store.manifest
    yield from _classes(list(manifest.classes))
    task = manifest.inferred.get("task", "")
    is_guess = manifest.inferred.get("target") not in (None, NO_TARGET)
    if is_guess and task.startswith("regression"):
        yield (
            f"{manifest.target_name!r}, the last column, was taken for the target, and for a "
            "number. If it is not, name the target with --target; if each row of the table is a "
            "feature and each column a sample, say --orient features."
        )
    yield from _index(store)
    yield from _texts(store)


def _classes(labels: list[str]) -> Iterator[str]:
    if texts := texts_among_numbers(labels):
        yield (
            f"most class labels are numbers: if the target is a number, {said_of_missing(texts)}."
        )
    elif words := words_for_missing(labels):
        yield f"{said_of_missing(words)}, if they are no classes."


def _index(store: Store) -> Iterator[str]:
    """Look at the first column, which is where data frames write their index."""
    name = store.names[0]
    remedy = f"If it numbers the rows, leave it out: --ignore {name!r}."
    if _BLANK.fullmatch(name.strip()):
        yield f"the first column has no name ({name!r}), as data frames write an index. {remedy}"
    elif _counts_rows(store):
        yield f"the first column, {name!r}, counts up row by row. {remedy}"


def _counts_rows(store: Store) -> bool:
    if store.manifest.values_dtype is None:
        return False
    stored = _first_stored(store)
    if stored is None:
        return False
    last = None
    for _, _, part in store.values().columns(np.array([stored], np.int64)):
        steps = np.diff(part) if last is None else np.diff(part, prepend=last)
        if not np.all(steps >= 1) or np.any(steps > store.manifest.n_dropped_rows + 1):
            return False
        last = part[-1]
    return True


def _first_stored(store: Store) -> int | None:
    """Return where the first column is stored, if its values are whole numbers."""
    for (start, places), (_, kinds) in zip(
        store.pieces("positions"), store.pieces("kinds"), strict=True
    ):
        if len(there := np.flatnonzero(places == 0)):
            return start + int(there[0]) if kinds[there[0]] == INTEGER else None
    return None


def _texts(store: Store) -> Iterator[str]:
    """Look at the first categorical features."""
    if store.n_features > MOST_FEATURES:
        return
    texts = np.flatnonzero(store.kinds() == CATEGORICAL)[:MOST_LOOKED_AT]
    categories, positions = store.categories(), store.array("positions")
    dates, numbers, words = [], [], set[str]()
    for feature in texts.tolist():
        labels = categories.of(feature) or []
        name = store.names[int(positions[feature])]
        if labels and all(_DATE.fullmatch(label.strip()) for label in labels):
            dates.append(name)
        elif among := texts_among_numbers(labels):
            numbers.append(name)
            words.update(among)
    if dates:
        yield (
            f"{_named(dates)} {'holds' if len(dates) == 1 else 'hold'} dates, which were taken for "
            "categories. Leave them out with --ignore, or write them as numbers, such as days."
        )
    if numbers:
        yield (
            f"{_named(numbers)} {'holds' if len(numbers) == 1 else 'hold'} numbers and texts such "
            f"as {_named(list(words))}, all taken for categories. If these stand for missing "
            "values, empty such cells first, as pandas does with `na_values`."
        )


def _named(names: Sequence[str]) -> str:
    return ", ".join(map(repr, sorted(names)[:5])) + (", ..." if len(names) > 5 else "")


# Which reading a table gets: by rows or by columns, by its format.


def open_reading(table: Any, options: IngestOptions, side: SideColumns, work: Workplace) -> Reading:
    """Open a file or an object in memory.

    Raises
    ------
    InputError
        If it is of no format that is known, or is a text table with columns beside it.
    UsageError
        If options of text tables are given for another.
    """
    path = path_given(table, "the table") if isinstance(table, str | Path) else None
    if path is not None and (options.samples or not is_other(path)):
        if side:
            raise InputError(
                f"{path}: a text table holds its names, target and row ids itself. Name their "
                "columns, or give them apart only for arrays."
            )
        source = settle_source(path, work.scratch)
        if options.samples:
            return open_feature_rows(source, options.samples, options, work)
        return TextReading(source, options, work)
    if options.text != TextForm():
        raise UsageError(
            f"{path or 'the table'}: expected --separator, --comment, --decimal, --missing and "
            "--no-header only for text tables, found one of them. Leave it out."
        )
    if path is not None:
        return _open_file(SourceFile.file(path), options, side, work)
    as_texts = {name for name, kind in options.kinds.given if kind == "categorical"}
    opened = open_object(table, as_texts)
    grown = Lease("what is held of the table", max(0, resident_nbytes() - own_nbytes()))
    _, needs = with_needs(opened, options, (grown,))
    return TableReading(opened, "the table", options, side, work, {}, needs)


def _open_file(
    source: SourceFile, options: IngestOptions, side: SideColumns, work: Workplace
) -> TableReading:
    opened, needs = open_file(source.path, work.scratch, options)
    if isinstance(opened, SvmlightTable):
        labels = {"target": [("label", opened.labels)]}
        side = replace(side, columns=labels | dict(side.columns))
    if isinstance(opened, ArrowFile):
        options, found = _with_index(opened.index_names, options, side)
        side = replace(side, inferred=side.inferred | found)
    origin = {"name": source.name, **_fingerprint(source.path)}
    return TableReading(opened, source, options, side, work, origin, needs)


def _with_index(
    names: list[str], options: IngestOptions, side: SideColumns
) -> tuple[IngestOptions, dict[str, str]]:
    """Take the index that pandas saved with a frame for the row ids; say so.

    An index of several columns is left out, and one where there are row ids.
    """
    named = {name for _, name in options.columns()}
    free = [name for name in names if name not in named.union(options.ignore)]
    if not free:
        return options, {}
    if len(names) == 1 and options.row_ids is None and "row_ids" not in side.columns:
        return replace(options, row_ids=names[0]), {"row_ids": "the index that pandas saved"}
    left_out = ", ".join(map(repr, free))
    ignore = (*options.ignore, *free)
    return replace(options, ignore=ignore), {"index": f"{left_out}, saved by pandas, left out"}


def _fingerprint(path: Path) -> dict[str, int]:
    crc32 = nbytes = 0
    with path.open("rb", buffering=0) as file:
        while data := file.read(1 << 18):
            crc32, nbytes = zlib.crc32(data, crc32), nbytes + len(data)
    return {"nbytes": nbytes, "crc32": crc32}


# Where a new store goes: to a folder as it is made, to a URL once it is complete.

PREFIX, LOCK = "ingest-", "lock"
"""Of a folder in which a store for a URL is made, and of the file that is locked meanwhile."""


def make_at(
    place: Place,
    make: Callable[[Path], Manifest],
    *,
    overwrite: bool = False,
    progress: ByteProgress | None = None,
) -> Manifest:
    """Have a store made at a place; it appears complete or not at all.

    One for a URL is made in a folder among what is kept of stores at URLs, copied, and removed: it
    takes the room of the store there meanwhile, besides what making it takes. After a kill the same
    call makes it once more, and copies what is missing at the URL.

    Parameters
    ----------
    place : Place
        Where the store goes.
    make : callable
        ``make(path)`` makes it at a path of this machine.
    overwrite : bool
        Replace a store at the URL; ``make`` does so at a path.
    progress : callable, optional
        Told of the bytes copied.

    Raises
    ------
    StoreError, UsageError
        If the URL is in use, or cannot be written; and what ``make`` raises.
    """
    if isinstance(place, Path):
        return make(place)
    target = Publishing(Objects(place), replaces=overwrite)
    folder = made_first_at(place).parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _clear(folder)
        scratch = TemporaryDirectory(prefix=PREFIX, dir=folder)
    except OSError as error:
        raise StoreError(
            f"{folder}: expected a folder that can be written, where the store for {place} is "
            f"made, found: {error.strerror or error}. Name another in SRS_OOC_CACHE_DIR."
        ) from error
    with scratch as made, _held(Path(made) / LOCK):
        manifest = make(Path(made) / "made.zarr")
        target.copy(Path(made) / "made.zarr", progress or (lambda stage, done, total: None))
    return manifest


@contextmanager
def _held(file: Path) -> Iterator[None]:
    handle = try_lock(file)
    assert handle is not None, "nobody else knows of it"
    try:
        yield
    finally:
        os.close(handle)


def _clear(folder: Path) -> None:
    """Remove what killed processes left of stores that they were making for a URL."""
    for left in folder.glob(f"{PREFIX}*"):
        with suppress(OSError):  # gone meanwhile, or somebody else's
            handle = try_lock(left / LOCK, flags=os.O_RDWR)
            if handle is not None:
                shutil.rmtree(left, ignore_errors=True)
                os.close(handle)


def made_first_at(place: Place) -> Path:
    """Return where on this machine a store for a place is made."""
    return place if isinstance(place, Path) else CacheOptions().path / "made.zarr"


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
    from srs_ooc.ingestion import shards  # which have need of this module

    workers = client and shards.on_workers(client, options.memory_nbytes // MB)
    return lambda path: shards.ingest_pieces(tables, path, options, progress, workers=workers)


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


# What an ingest would take, found without writing a store: rows, disk, memory.


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
