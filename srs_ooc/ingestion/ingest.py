"""From a table of any format to a store: the stages, what they would take, and ``srs_ooc.ingest``.

One pipeline serves all formats: roles, read, code, write, publish. Beside it stand where a new
store goes, what it is made of, and remarks on it.
"""

import contextlib
import logging
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from srs_ooc.base.budget import growth_counted
from srs_ooc.base.errors import InputError, StoreError, UsageError
from srs_ooc.base.files import crc_of, published_folder, release_lock, try_lock
from srs_ooc.base.options import (
    flag_given,
    megabytes_given,
    path_given,
    place_given,
    python_spelling,
    spelled,
    unexpected,
    whole_given,
)
from srs_ooc.base.text import MB, counted, describe_nbytes
from srs_ooc.base.urls import Place
from srs_ooc.ingestion import ingest_memory
from srs_ooc.ingestion.csv import TextForm, estimate, parse_decimal, rows_at_most
from srs_ooc.ingestion.formats.in_memory import memory_of, open_object
from srs_ooc.ingestion.ingest_options import (
    WORDS,
    ByteProgress,
    ForcedKinds,
    IngestOptions,
    SideColumns,
    check_distinct,
    check_kinds,
    choose_roles,
)
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
from srs_ooc.native import _native
from srs_ooc.store.manifest import CATEGORICAL, INTEGER, NO_TARGET, Manifest, Shape, hopeless
from srs_ooc.store.store import Store

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
    if isinstance(table, str | Path):
        return _open_file(path_given(table, "the table"), options, side, work)
    _check_no_text_form("the table", options)
    as_texts = {name for name, kind in options.kinds.given if kind == "categorical"}
    return TableReading(open_object(table, as_texts), "the table", options, side, work, {})


def _open_file(path: Path, options: IngestOptions, side: SideColumns, work: Workplace) -> Reading:
    from srs_ooc.ingestion.formats.files import ArrowFile, SvmlightTable, is_other, open_file

    if options.samples or not is_other(path):
        if side:
            raise InputError(
                f"{path}: a text table holds its names, target and row ids itself. Name their "
                "columns, or give them apart only for arrays."
            )
        text = settle_source(path, work.scratch)
        if not options.samples:
            return TextReading(text, options, work)
        from srs_ooc.ingestion.feature_rows import open_feature_rows

        return open_feature_rows(text, options, work)
    _check_no_text_form(path, options)
    source = SourceFile.file(path)
    opened = open_file(path, work.scratch, options)
    if isinstance(opened, SvmlightTable):
        labels = {"target": [("label", opened.labels)]}
        side = replace(side, columns=labels | dict(side.columns))
    if isinstance(opened, ArrowFile):
        options, found = _with_index(opened.index_names, options, side)
        side = replace(side, inferred=side.inferred | found)
    with path.open("rb", buffering=0) as file:
        crc32, nbytes = crc_of(file)
    origin = {"name": source.name, "nbytes": nbytes, "crc32": crc32}
    return TableReading(opened, source, options, side, work, origin)


def _check_no_text_form(table: object, options: IngestOptions) -> None:
    if options.text != TextForm():
        raise UsageError(
            f"{table}: expected --separator, --comment, --decimal, --missing and "
            "--no-header only for text tables, found one of them. Leave it out."
        )


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
    ingest_memory.load_libraries()
    options = options or IngestOptions()
    if options.overwrite:
        ingest_memory.check_replaceable(store)
    with (
        ingest_memory.disk_errors(store),
        published_folder(store, replaces=options.overwrite) as folder,
    ):
        with Workplace.at(folder, progress) as work:
            reading = open_reading(table, options, side or SideColumns(), work)
            manifest = _ingest(reading, work)
        shutil.rmtree(work.scratch)
    return manifest


def _ingest(reading: Reading, work: Workplace) -> Manifest:
    """Take a table through all stages but the last, which is to publish."""
    header = work.stack.enter_context(TextSpool(work.scratch, "header"))
    rows = work.stack.enter_context(RowColumns(work.scratch))
    inferred = reading.read_names(header)
    options, side = reading.options, reading.side
    has_target = "target" not in side.columns and not options.no_target
    if options.no_target:
        if options.target is not None or options.samples or "target" in side.columns:
            raise UsageError(
                "--no-target: expected a table with rows of samples and no target named, found a "
                "target, or --orient features. Leave one of the two out."
            )
        inferred["target"] = NO_TARGET
    if has_target and options.target is None:
        inferred["target"] = "last column"
    roles = choose_roles(reading.source, header, options, has_target=has_target)
    memory = reading.share(roles)
    check_distinct(reading.source, header, "column names", "Rename them.")
    forced = options.kinds.settle(reading.source, header)
    check_kinds(header, roles, forced)
    reading.read_rows(roles, forced, rows)
    reading.check_unchanged()
    rows.settle(reading.source, reading.where, options)
    facts, kept = rows.facts, rows.kept
    columns, fits_float32, kinds, held_nbytes = reading.features(kept)
    shape = Shape(kept.n_rows, roles.n_features)
    form = options.form("float32" if fits_float32 else "float64")
    batch, n_threads = memory.writing(shape, form, held_nbytes, n_source_rows=columns.n_rows)
    inferred |= side.inferred | facts.inferred
    with reading.naming_the_cap():
        manifest = write_store(
            work.folder,
            columns,
            rows.target,
            replace(facts, inferred=inferred, source=reading.origin()),
            header.blocks(roles.special),
            kinds=kinds,
            form=form,
            batch_features=batch,
            n_threads=n_threads,
            progress=work.tell,
            first_feature=options.first_feature,
        )
    reading.check_unchanged()
    return manifest


# What an ingest would take, found without writing a store: rows, disk, memory.


def forecast(
    table: Path, store: Path, options: IngestOptions, side: SideColumns | None = None
) -> Iterator[str]:
    """Yield lines on what ingesting a file would take, ``side`` being what stands beside it.

    Rows, and what follows from them, are estimated of text: the lines say ``about``. The last line
    names the smallest cap.

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
    from srs_ooc.ingestion.formats.files import is_other, open_file

    ingest_memory.load_libraries()
    has_target = not options.no_target and "target" not in (side or SideColumns()).columns
    unpacked, by_rows, text_nbytes = 0, True, None
    with tempfile.TemporaryDirectory() as folder, Workplace.at(Path(folder)) as work:
        about = "about " if options.samples or not is_other(table) else ""
        if about:
            look = _look_at_text(table, options, work, has_target=has_target)
            n_columns, n_rows, text_nbytes, memory = look
        else:
            opened = open_file(table, work.scratch, options)
            memory = memory_of(opened, options)
            unpacked = sum(file.stat().st_size for file in work.scratch.iterdir())
            by_rows, (n_rows, n_columns) = opened.by_rows, opened.shape
    shape = Shape(max(1, n_rows), max(1, n_columns))
    if options.samples:
        shape = Shape(max(1, n_columns - 1), max(1, n_rows))
    scratch, stored = ingest_memory.disk_of(
        shape, memory.form, by_rows=by_rows, text_nbytes=text_nbytes
    )
    scratch, free = scratch + unpacked, shutil.disk_usage(store.parent).free
    yield f"columns: {n_columns}"
    yield f"rows: {about}{n_rows}"
    yield f"scratch disk: {about}{describe_nbytes(scratch)}, given back"
    yield f"store: at most {about}{describe_nbytes(stored)}"
    words = "enough" if scratch + stored <= free else "NOT enough"
    yield f"free disk: {describe_nbytes(free)}, {words}"
    words = "enough" if memory.fits else "NOT enough"
    given = memory.cap_nbytes // MB
    yield f"memory: --memory-mb {memory.least_mb} or more; {given} is {words}"


def _look_at_text(
    table: Path, options: IngestOptions, work: Workplace, *, has_target: bool
) -> tuple[int, int, int, ingest_memory.IngestMemory]:
    """Return columns, rows and bytes of a text table, about, and what its ingest takes."""
    source = SourceFile.file(table)
    header = work.stack.enter_context(TextSpool(work.scratch, "header"))
    if options.samples:
        from srs_ooc.ingestion.feature_rows import feature_memory, open_stream

        open_stream(source, options.text, header)
        memory = feature_memory(source, header, options)
        return len(header), *estimate(source, options.text, len(header)), memory
    reading = TextReading(source, options, work)
    reading.read_names(header)
    roles = choose_roles(source, header, reading.options, has_target=has_target)
    memory = reading.memory(roles)
    n_rows, text_nbytes = estimate(source, options.text, len(header))
    if memory.n_rows == rows_at_most(source, len(header)) and memory.depends_on_rows:
        memory = memory.with_rows(n_rows)  # the cap is enough for as many as there can be
    return len(header), n_rows, text_nbytes, memory


# What a new store may not be meant to hold: an index, words for what is missing, dates.

MOST_FEATURES = 200_000
"""Of more features no texts are looked at, which takes a pass over their kinds."""
MOST_LOOKED_AT = 100
MOST_CELLS = 1 << 24
"""Of numbers no more cells are looked at, and a thousand more for each column."""
_NINES = {sign * (10.0**digits - 1) for digits in range(2, 8) for sign in (-1, 1)}
_DATE = re.compile(r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}([T ].*)?|\d{1,2}[-/.]\d{1,2}[-/.](\d{4}|\d{2})")
_BLANK = re.compile(r"(unnamed: \d+)?|__index_level_0__|_0", re.IGNORECASE)


_log = logging.getLogger("srs_ooc")


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
    yield from filter(None, [hopeless(manifest)])
    yield from _classes(list(manifest.classes))
    task = manifest.inferred.get("task", "")
    is_guess = manifest.inferred.get("target") not in (None, NO_TARGET)
    if is_guess and task.startswith("regression"):
        yield (
            f"{manifest.target_name!r}, the last column, was taken for the target, and for a "
            "number. If it is not, name the target with --target; if each row of the table is a "
            "feature and each column a sample, say --orient features."
        )
    if task.startswith("classification") and "whole numbers" in task:
        yield (
            f"the {len(manifest.classes)} whole numbers of the target were taken for classes. If "
            "they are steps of a score or a dose, say --task regression."
        )
    yield from _index(store)
    if _look_like_cells(store.names.between(0, min(MOST_LOOKED_AT, store.n_features))):
        yield "the names of columns are numbers: if the first line holds data, say --no-header."
    if store.n_features <= MOST_FEATURES:
        yield from _texts(store)
        yield from _far_out(store)


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


def _look_like_cells(names: Iterator[bytes]) -> bool:
    """Whether names are numbers in no order; those of wavelengths and of places are in order."""
    steps = np.diff(np.array([parse_decimal(name) for name in names], np.float64))
    return bool(steps.min(initial=0) < 0 < steps.max(initial=0))


@np.errstate(over="ignore")
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
    texts = np.flatnonzero(store.kinds() == CATEGORICAL)[:MOST_LOOKED_AT]
    categories, positions = store.categories(), store.array("positions")
    dates, others, words = [], [], set[str]()
    for feature in texts.tolist():
        labels = categories.of(feature) or []
        name = store.names[int(positions[feature])]
        if labels and all(_DATE.fullmatch(label.strip()) for label in labels):
            dates.append(name)
        elif among := texts_among_numbers(labels) or words_for_missing(labels):
            others.append(name)
            words.update(among)
    if dates:
        yield (
            f"{_named(dates)} {'holds' if len(dates) == 1 else 'hold'} dates, which were taken for "
            "categories. Leave them out with --ignore, or write them as numbers, such as days."
        )
    if others:
        yield f"{_named(others)}: {said_of_missing(sorted(words))}, if they are no categories."


def _far_out(store: Store) -> Iterator[str]:
    """Look for a number such as -999 that is repeated, far from all others of its column."""
    if store.manifest.values_dtype is None:
        return
    numbers = np.flatnonzero(store.kinds() <= INTEGER)[: MOST_CELLS // (1000 + store.n_rows)]
    found: dict[int, float] = {}
    _native.reuse_blocks()
    for start, at, _, chunk in store.values().chunks(numbers):
        ends = [end.reduce(chunk, axis=1, initial=0)[at] for end in (np.fmin, np.fmax)]
        for i, side in np.argwhere(np.isin(np.transpose(ends), list(_NINES))).tolist():
            end, cells = float(ends[side][i]), chunk[at[i]]
            part = cells[~np.isnan(cells)]
            rest = part[part != end]
            gap = np.abs(rest - end).min(initial=np.inf) / (1 if end < 0 else 2)
            if 0 < len(rest) < len(part) - 1 and 0 < rest.max() / 2 - rest.min() / 2 < gap / 2:
                found[int(numbers[start + i])] = end
    _native.return_large_blocks()
    if found:
        places, labels = store.array("positions"), {f"{end:.0f}" for end in found.values()}
        first = _named([store.names[int(places[feature])] for feature in list(found)[:6]])
        yield (
            f"{counted(len(found), 'column')} ({first}): far from all other numbers, "
            f"{said_of_missing(sorted(labels))}, if nobody measured that."
        )


def _named(names: Sequence[str]) -> str:
    return ", ".join(map(repr, sorted(names)[:5])) + (", ..." if len(names) > 5 else "")


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
    from srs_ooc.store.objects import Objects, check_free, copy_store

    target = Objects(place)
    there = check_free(target, replaces=overwrite)
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
        manifest = make(Path(made) / "made.zarr")
        tell = {} if progress is None else {"progress": progress}
        copy_store(Path(made) / "made.zarr", target, there, **tell)
    return manifest


def _clear(folder: Path) -> None:
    """Remove what killed processes left of stores that they were making for a URL."""
    for left in folder.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):  # gone meanwhile, or somebody else's
            handle = try_lock(left / LOCK, flags=os.O_RDWR)
            if handle is not None:
                shutil.rmtree(left, ignore_errors=True)
                release_lock(handle)


def made_first_at(place: Place) -> Path:
    """Return where on this machine a store for a place is made."""
    if isinstance(place, Path):
        return place
    from srs_ooc.store.remote_cache import CacheOptions

    return CacheOptions().path / "made.zarr"


# What `srs_ooc.ingest` is given, checked before it is used.


def check_words(given: Mapping[str, Any]) -> None:
    """Refuse what is none of the words that a parameter may be.

    Raises
    ------
    UsageError
        Naming parameter and words.
    """
    for name, words in WORDS.items():
        if not isinstance(given[name], str) or given[name] not in words:
            raise unexpected(name, f"one of {', '.join(words)}", given[name])


def check_names(name: str, given: Any) -> None:
    """Refuse what names no columns: names are texts that UTF-8 can write.

    Raises
    ------
    UsageError
        Naming the parameter.
    """
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise unexpected(name, "a list of names of columns", given)
    for text in given:
        check_name(name, text)


def check_name(name: str, given: Any) -> None:
    """Refuse what is no name of a column.

    Raises
    ------
    UsageError
        Naming the parameter.
    """
    try:
        if isinstance(given, str):
            given.encode()
            return
    except UnicodeEncodeError:
        pass
    raise unexpected(name, "the name of a column", given)


def _kinds_given(given: Any) -> ForcedKinds:
    """Return kinds from a mapping of names of columns to them."""
    if given is None:
        return ForcedKinds()
    if not isinstance(given, Mapping):
        raise unexpected("kinds", "a mapping of names of columns to kinds", given)
    for name, kind in given.items():
        check_name("kinds", name)
        if not isinstance(kind, str):
            raise UsageError(f"kinds: expected the kind of {name!r} as text, found {kind!r:.60}.")
    return ForcedKinds(tuple(given.items()))


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
    columns = {"target": target, "row_ids": row_ids, "weights": weights, "groups": groups}
    names_of_strata = (strata,) if isinstance(strata, str) else strata
    by_name = isinstance(names_of_strata, tuple)
    named: dict[str, Any] = {what: one for what, one in columns.items() if isinstance(one, str)}
    for what, name in named.items():
        check_name(what, name)
    if by_name:
        check_names("strata", names_of_strata)
    options = IngestOptions(
        **named,
        ignore=ignore,
        task=task,
        missing_target=missing_target,
        min_class_rows=whole_given(min_class_rows, "min_class_rows"),
        kinds=_kinds_given(kinds),
        strata=names_of_strata if by_name else (),
        memory_mb=megabytes_given(memory_mb),
        code_dtype=code_dtype,
        keep_values=flag_given(keep_values, "keep_values"),
        overwrite=flag_given(overwrite, "overwrite"),
        no_target=flag_given(no_target, "no_target"),
    )
    side = _side_columns(names, columns | {"strata": None if by_name else strata})
    place = place_given(store, "store")

    def make(path: Path) -> Manifest:
        return make_store(table, path, options, side, progress, client)

    manifest = make_at(place, make, overwrite=overwrite, progress=progress)
    if isinstance(place, Path):
        for remark in remarks_of(Store.open(place)):
            _log.warning("%s: %s", place, spelled(remark))
    return manifest


def _side_columns(names: Any, given: Mapping[str, Any]) -> SideColumns:
    """Return names and row columns that were given as such, not by the name of a column."""
    columns = {
        what: [(what.replace("_", " "), item)]
        for what, item in given.items()
        if item is not None and not isinstance(item, str)
    }
    return SideColumns(Path(names) if isinstance(names, str) else names, columns)


def make_store(
    table: Any,
    path: Path,
    options: IngestOptions,
    side: SideColumns,
    progress: ByteProgress | None,
    client: Any = None,
) -> Manifest:
    """Make the store of a table, or of its pieces, at a path; ``client``: by its Dask workers.

    Errors as of :func:`ingest_table`, and of the pieces.
    """
    tables = pieces_given(table, client, has_values=bool(side))
    if tables is None:
        return ingest_table(table, path, options, progress, side=side)
    from srs_ooc.ingestion.shards import ingest_pieces, on_workers  # of pieces alone

    workers = client and on_workers(client, int(options.memory_mb))
    return ingest_pieces(tables, path, options, progress, workers=workers)


def pieces_given(table: Any, client: Any, *, has_values: bool) -> list[Path] | None:
    """Return the files of a table in pieces; None where it is something else.

    Raises
    ------
    UsageError
        If what is given beside goes with the other kind; ``has_values``: columns by their values.
    """
    is_pieces = isinstance(table, list | tuple) and len(table) > 0
    if not is_pieces or not all(isinstance(one, str | Path) for one in table):
        if client is not None:
            raise UsageError(
                "client: expected with a list of files, the pieces of a table, found "
                f"{type(table).__name__}. Leave it out."
            )
        return None
    if has_values:
        raise UsageError(
            "names, target, row_ids, weights, strata, groups: expected names of columns with a "
            "table in pieces, found values. Put them into the first piece, and name the columns."
        )
    return [path_given(one, "table") for one in table]
