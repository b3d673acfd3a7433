"""``srs_ooc.ingest``: where a new store goes, what it is made of, and remarks on it."""

import logging
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from srs_ooc.base.budget import growth_counted
from srs_ooc.base.errors import StoreError
from srs_ooc.base.files import try_lock
from srs_ooc.base.options import (
    flag_given,
    megabytes_given,
    place_given,
    python_spelling,
    spelled,
    whole_given,
)
from srs_ooc.base.text import MB
from srs_ooc.base.urls import Place
from srs_ooc.ingestion.ingest_options import (
    ByteProgress,
    ForcedKinds,
    IngestOptions,
    SideColumns,
    check_name,
    check_names,
    check_words,
    pieces_given,
)
from srs_ooc.ingestion.ingest_options import check_given_kinds as check_kinds_given
from srs_ooc.ingestion.pipeline import ingest_table
from srs_ooc.ingestion.rows import said_of_missing, texts_among_numbers, words_for_missing
from srs_ooc.store.manifest import CATEGORICAL, INTEGER, NO_TARGET, Manifest
from srs_ooc.store.store import Store

# What a new store may not be meant to hold: an index, words for what is missing, dates.

MOST_FEATURES = 200_000
"""Of more features no texts are looked at, which takes a pass over their kinds."""
MOST_LOOKED_AT = 100
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
        scratch = TemporaryDirectory(prefix=PREFIX, dir=folder)
    except OSError as error:
        raise StoreError(
            f"{folder}: expected a folder that can be written, where the store for {place} is "
            f"made, found: {error.strerror or error}. Name another in SRS_OOC_CACHE_DIR."
        ) from error
    with scratch as made, _held(Path(made) / LOCK):
        manifest = make(Path(made) / "made.zarr")
        tell = {} if progress is None else {"progress": progress}
        copy_store(Path(made) / "made.zarr", target, there, **tell)
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
    named: dict[str, Any] = {
        what: given for what, given in columns.items() if isinstance(given, str)
    }
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
        kinds=ForcedKinds(tuple((kinds or {}).items())),
        strata=names_of_strata if by_name else (),
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
    from srs_ooc.ingestion.shards import ingest_pieces, on_workers  # of pieces alone

    workers = client and on_workers(client, options.memory_nbytes // MB)
    return lambda path: ingest_pieces(tables, path, options, progress, workers=workers)
