"""A table in pieces of columns: each coded by itself, here or by workers, into one store.

Pieces that are done lie beside the store until all of them are; after a kill the same command does
those that are missing.
"""

import gc
import hashlib
import json
import shutil
import sys
import zlib
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from itertools import accumulate, chain, count, repeat, starmap
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base import budget
from srs_ooc.base.arrays import Bytes, Indices, Ints, Ints32, Uints32
from srs_ooc.base.budget import Lease, growth_counted, resident_nbytes, total_nbytes
from srs_ooc.base.errors import BudgetError, InputError, StoreError, UsageError, unfit
from srs_ooc.base.files import published_folder, release_lock, try_lock
from srs_ooc.base.text import MB, ceil_div
from srs_ooc.ingestion import ingest_memory, ingest_options, scratch
from srs_ooc.ingestion.csv import TextForm
from srs_ooc.ingestion.feature_rows import sample_columns
from srs_ooc.ingestion.formats import split_texts
from srs_ooc.ingestion.formats.files import opener_of
from srs_ooc.ingestion.formats.genotypes import is_plink
from srs_ooc.ingestion.ingest_memory import StoreForm
from srs_ooc.ingestion.ingest_options import ByteProgress, ForcedKinds, IngestOptions
from srs_ooc.ingestion.reading import Reading, WorkFolder
from srs_ooc.ingestion.rows import TableFacts
from srs_ooc.ingestion.scratch import TextSpool
from srs_ooc.ingestion.sources import place_in
from srs_ooc.ingestion.stages import ingest_table, open_reading, read_names
from srs_ooc.ingestion.writer import FACTS, OF_ROWS, Coded, CodedFeatures, packed, write_store
from srs_ooc.store.arrays import write_column
from srs_ooc.store.manifest import CATEGORICAL, ROW_ARRAYS, Manifest, Shape
from srs_ooc.store.store import ALL_ROWS, BedStore, Store
from srs_ooc.store.values import CodeFacts, code_columns
from srs_ooc.store.writing import TextBlocks, TextsWriter

# Stores of pieces of a table, put together into that of the whole; or a store of some features.
#
# The features of each piece lie in the order of the whole, so that all of them are read from first
# to last, once.

MERGED_NBYTES = 48 * MB
"""Memory of features of pieces that are read and written at a time."""
Part = tuple[int, Ints, Indices]
"""Of a batch of features: the piece, their places there, ascending, and in the batch."""


def merging_leases(shape: Shape, form: StoreForm) -> list[Lease]:
    """Return what writing a store, of such a shape, from others takes at least."""
    return [
        Lease("working room", ingest_memory.SLACK_NBYTES),
        Lease("places and names", 40 * shape.n_features),
        Lease("features as read and written", _smallest(shape, form)[1] + 8 * MB),
    ]


def _smallest(shape: Shape, form: StoreForm) -> tuple[int, int]:
    """Return how many features are written at a time at least, and their bytes."""
    n_ranges = form.n_ranges(shape)
    step = ingest_memory.smallest_batch(shape, form)
    return step, step * (2 * form.code_nbytes * shape.n_rows + 8 * (2 * n_ranges or shape.n_rows))


def check_merging(shape: Shape, form: StoreForm, memory_mb: float) -> int:
    """Refuse a cap that cannot hold writing a store from others.

    Returns
    -------
    int
        What the cap leaves for batches, in bytes.

    Raises
    ------
    BudgetError
        With the smallest cap that works.
    """
    own = Lease("interpreter and libraries", ingest_memory.own_nbytes())
    leases = [own, *merging_leases(shape, form)]
    if (left := int(memory_mb * MB) - total_nbytes(leases)) < 0:
        least, cap = ceil_div(total_nbytes(leases), MB), int(memory_mb * MB)
        raise budget.refusal(cap, "the parts put together", leases, least)
    return min(left - max(0, resident_nbytes() - own.n_bytes), MERGED_NBYTES)


def _places_of(store: Store, first: int) -> Ints:
    """Return where a piece stores its features, counted from the ``first``, its own first one.

    Raises
    ------
    StoreError
        If they are not in the order of the whole, in which all are read once; but variants of a
        linked store lie as in its file.
    """
    positions = store.array("positions")
    order = ingest_options.stored_positions(store.n_features, first)
    if not (store.manifest.is_linked or np.array_equal(positions, order)):
        raise StoreError(
            f"{store.place}: expected features in the order of the whole, found those of a "
            "piece that an older version made, or of another table. Begin again without it."
        )
    return first + np.argsort(positions)


class Merging(CodedFeatures):
    """The features of the stores of pieces of a table, or some features of another store.

    Where codes of all pieces take two bits, so do those of the whole.

    Parameters
    ----------
    stores : list of Store
        Of pieces with the same rows, in the order of their features.
    chosen : int64 (k,), optional
        Of a single store that keeps values: the stored features, in the order they are to have.
    rows : list of int32 (n_rows,), optional
        Where each row of the whole is in each store; rows are in the same order if not given.

    Attributes
    ----------
    shape, form : Shape, StoreForm
        Of the store to be.
    """

    def __init__(
        self, stores: list[Store], chosen: Ints | None = None, rows: list[Ints32] | None = None
    ) -> None:
        self._stores, one = stores, stores[0].manifest
        self._rows, self._chosen = rows or [ALL_ROWS] * len(stores), chosen
        dtypes = {store.manifest.values_dtype for store in stores}
        own = (isinstance(store, BedStore) and not store.manifest.is_linked for store in stores)
        values_dtype = "float32" if dtypes == {"float32"} else one.values_dtype and "float64"
        # codes of its own, whatever those are linked to
        self.form = StoreForm(one.code_dtype, values_dtype, chosen is None and all(own))
        columns = chain(*(store.manifest.feature_columns for store in stores))
        self._known = tuple(dict.fromkeys(columns))
        kinds = (store.kinds() if chosen is None else store.kinds()[chosen] for store in stores)
        self.holds_texts = any((some == CATEGORICAL).any() for some in kinds)
        *self._firsts, _ = accumulate((store.n_features for store in stores), initial=0)
        if chosen is None:
            chosen = np.concatenate([*map(_places_of, stores, self._firsts)])
        self.shape = Shape(one.n_rows, len(chosen))
        self._positions = ingest_options.stored_positions(len(chosen))
        self._stored = chosen.astype(np.uint32)[self._positions]  # all of a store after one another

    def write(
        self,
        folder: Path,
        names: TextBlocks,
        room_nbytes: int,
        progress: ByteProgress,
        **said: dict[str, Any],
    ) -> Manifest:
        """Write everything into an empty folder, with room on its disk; to be published.

        ``names``: of the features, in their order; ``room_nbytes``: memory beside the leases;
        ``progress`` is told of the codes written; ``said``: the ``source``, and what was
        ``inferred`` if that is not what the first store says.

        Raises
        ------
        StoreError
            If a piece is damaged, or the disk has no room.
        """
        scratch.check_disk(folder, *scratch.disk_of(self.shape, self.form, by_rows=False))
        step, nbytes = _smallest(self.shape, self.form)
        one, floats = self._stores[0], self._stores[0].manifest.float_arrays
        m, row_ids = one.manifest, scratch.text_blocks(one.row_ids)
        by_row = {name: one.opened(name) for name in m.small_arrays if name in ROW_ARRAYS}
        known = {name: getattr(m, name) for name in OF_ROWS} | {"feature_columns": self._known}
        known |= said
        facts = TableFacts(**known, row_ids=row_ids, arrays=by_row, feature_cells=self._cells())
        with ExitStack() as stack:
            opened = (stack.enter_context(one.columns(mapped=False)) for one in self._stores)
            self._columns = [] if self.form.is_packed else list(opened)
            self._readers = {n: [store.values(n).columns for store in self._stores] for n in floats}
            if self._chosen is not None:
                self._readers["values"] = [one.column_parts]  # looks at categories too
            each = ((name, [store.array(name) for store in self._stores]) for name in FACTS)
            self._facts: Any = {name: np.concatenate(some)[self._stored] for name, some in each}
            self._categories = [store.categories() for store in self._stores]
            return write_store(
                folder,
                self,
                facts,
                names,
                batch_features=(1 + max(0, room_nbytes) // nbytes) * step,
                n_threads=1,
                progress=lambda _, *done: progress("merging", *done),
            )

    def _parts(self, first: int, last: int) -> list[Part]:
        """Return the parts of a batch: features of a piece, but of a linked one, lie together."""
        stored = self._stored[first:last].astype(np.int64)
        order = np.argsort(stored)
        cuts = np.searchsorted(stored[order], self._firsts[1:])
        each = zip(count(), self._firsts, np.split(order, cuts))
        return [(i, stored[places] - start, places) for i, start, places in each if len(places)]

    def _floats(self, name: str, n: int, parts: list[Part]) -> NDArray[Any]:
        """Return the values of a batch of so many features, or ranges of their codes."""
        width = self.form.n_ranges(self.shape) or self.shape.n_rows
        values = np.empty((n, width), self.form.values_dtype or "float64")
        for piece, stored, places in parts:
            for i, row, some in self._readers[name][piece](stored):
                values[places[i], row : row + len(some)] = some
            if name == "values" and len(order := self._rows[piece]):
                for place in places.tolist():
                    values[place] = values[place, order]
        return values

    def coded(self, start: int, stop: int, categories: TextsWriter | None) -> Coded:
        """Return the batch that is next as the pieces hold it.

        Nothing is coded again, as codes depend on a feature's own values alone; but those of chosen
        features are, as only their values are checked when they are read.
        """
        n, parts = stop - start, self._parts(start, stop)
        codes = np.empty((n, self.shape.n_rows), self.form.code_dtype)
        floats = tuple(self._floats(name, n, parts) for name in self._readers)
        if self._chosen is not None:
            code_columns(floats[0], codes)
        for piece, stored, places in parts if self._chosen is None else ():
            codes[places] = self._columns[piece].codes(stored, self._rows[piece])
        if categories is not None:
            for feature in self._stored[start:stop].tolist():
                piece = bisect_right(self._firsts, feature) - 1
                if texts := self._categories[piece].of(feature - self._firsts[piece]):
                    categories.write(*scratch.joined([text.encode() for text in texts]))
        none = np.zeros((n, 0))
        known = {name: facts[start:stop] for name, facts in self._facts.items()}
        return codes, CodeFacts(**known, lows=none, highs=none), floats

    def lines(self, start: int, stop: int) -> Bytes:
        """Return the batch that is next as lines of a ``.bed`` file."""
        return packed(self._floats("values", stop - start, self._parts(start, stop)))[0]

    def positions(self) -> Uints32:
        """Return the place of each feature in the source."""
        return self._positions

    def _cells(self) -> Iterator[list[str]]:
        """Yield what is known of each feature of the whole, in the order of the source."""
        for store in self._stores:
            places = None if self._chosen is None else store.positions_of(self._chosen).tolist()
            own, cells = store.manifest.feature_columns, store.feature_cells(places)
            for some in cells if own else repeat((), store.n_features):
                said = dict(zip(own, some, strict=True))
                yield [said.get(name, "") for name in self._known]


# The headers of the pieces of a table: which options each takes, and whether they fit together.


def _pieces(
    tables: list[Path], options: IngestOptions, folder: Path
) -> list[tuple[Path, Path, IngestOptions]]:
    """Read the headers of all pieces; return of each the file, the store it becomes, and how.

    Those after the first need not have what it has: their options are those of the whole, as far as
    the piece has what they name. What ``ignore`` and ``kinds`` name may be in any.

    Raises
    ------
    InputError
        If one cannot be read, the first or all lack a column that is named, or a feature is in two.
    """
    pieces, sizes, unknown = [], list[int](), _chosen(options)
    refused, rows = list[BudgetError](), list[int]()
    with TemporaryDirectory(dir=folder) as temporary:
        names = TextSpool(Path(temporary), "names")
        for number, table in enumerate(tables):
            with _noting(refused):
                its_own = _options_of(table, options, folder) if number or unknown else options
                unknown -= _chosen(its_own)
                if number == 0:
                    its_own = replace(options, ignore=its_own.ignore, kinds=its_own.kinds)
                with _read(table, its_own, folder) as (header, reading):
                    if number == 0:
                        options = options.with_targets(header)
                        its_own = its_own.with_targets(header)
                    roles = ingest_options.choose_roles(table, header, reading.options)
                    for block in header.blocks(roles.special):
                        names.append(scratch.texts_of(split_texts(*block)))
                    settled = replace(its_own, first_feature=sum(sizes), overwrite=False)
                    settled = replace(settled, samples=tuple(map(Path.absolute, options.samples)))
                    made = folder.absolute() / f"{number:06}.zarr"
                    pieces.append((table.absolute(), made, settled))
                    sizes.append(roles.n_features)
                    rows.append((memory := reading.memory(roles)).n_rows)
                    memory.check(table)
        with _noting(refused):
            shape = Shape(min(rows, default=1), sum(sizes))
            check_merging(shape, options.form("float32"), options.memory_mb)  # holds float64, too
        if refused:
            raise max(refused, key=lambda one: one.least_mb)
        _check_distinct(names, tables, sizes)
    if unknown:
        raise InputError(
            f"{tables[0]} and {len(tables) - 1} more: no such column {min(unknown)!r} (--ignore, "
            "--kind); expected one that a piece has. Mend the name, or leave it out."
        )
    return pieces


@contextmanager
def _noting(refused: list[BudgetError]) -> Iterator[None]:
    """Note that a cap is refused: the largest of those that are named holds all stages."""
    try:
        yield
    except BudgetError as error:
        refused.append(error.with_traceback(None))


def _chosen(options: IngestOptions) -> set[str]:
    return {*options.ignore, *(name for name, _ in options.kinds.given)}


def _check_distinct(names: TextSpool, tables: list[Path], sizes: list[int]) -> None:
    last, found = np.cumsum(sizes), []
    for pair in names.duplicates():
        places = np.searchsorted(last, pair, "right").tolist()
        found.append(f"{names.describe(pair[0])} in {' and '.join(str(tables[i]) for i in places)}")
    if found:
        raise InputError(
            f"expected pieces with other features each, found {'; '.join(found)}. Rename them. If "
            "the pieces are rows of one table, join them under one header, which standard input "
            "takes: (cat A; tail -q -n +2 B C) | srs-ooc ingest - STORE"
        )


def _options_of(table: Path, options: IngestOptions, folder: Path) -> IngestOptions:
    """Return options without the columns that neither a piece nor a table of samples has."""
    if options.samples and opener_of(table) is None:
        return options  # a line is a feature: it has no columns
    named, kinds = {name for _, name in options.columns()} | _chosen(options), options.kinds.given
    bare = replace(options.without_columns(), ignore=(), kinds=ForcedKinds(), no_target=True)
    bare = replace(bare, samples=(), text=TextForm() if options.samples else options.text)
    with _read(table, replace(bare, censored=False), folder) as (header, reading):
        beside = {*reading.table.annotations, *(sample_columns(options) if options.samples else ())}
        absent = {name for name in named if name not in beside and header.find(name) is None}
    time: Any = (options.target, options.event) if options.censored else ()
    together = (options.strata, options.covariates, time)  # none of them without the others
    own = options.without_columns(absent.union(*filter(absent.intersection, together)))
    return replace(
        own,
        ignore=tuple(name for name in options.ignore if name not in absent),
        kinds=ForcedKinds(tuple(pair for pair in kinds if pair[0] not in absent)),
        no_target=own.target is None,
        censored=options.censored and own.target is not None,
    )


@contextmanager
def _read(table: Path, options: IngestOptions, folder: Path) -> Iterator[tuple[TextSpool, Reading]]:
    """Yield the names of a table's columns, and its reading."""
    with TemporaryDirectory(dir=folder) as made, WorkFolder(Path(made)) as work:
        reading = open_reading(table, options, work)
        yield read_names(reading, work), reading
    del reading
    release()


LOCK, IDENTITY, FINISHED = "lock", "identity", "finished"
"""Files in the folder of the pieces; the last one says that the store is there, and they can go."""


def do_piece(table: Path, store: Path, options: IngestOptions) -> None:
    """Code a piece of a table in a worker, unless its store is there.

    Raises
    ------
    InputError, StoreError, BudgetError
        As of :func:`srs_ooc.ingestion.stages.ingest_table`.
    """
    release()
    with growth_counted():  # a worker holds what is none of an ingest's
        do_here(table, store, options)


def release() -> None:
    """Give back what an ingest has let go of, before another one counts what there is."""
    gc.collect()
    if "pyarrow" in sys.modules:
        sys.modules["pyarrow"].default_memory_pool().release_unused()
    budget.give_back()


def do_here(table: Path, store: Path, options: IngestOptions) -> None:
    """Code a piece in this process, unless it is there; errors as of :func:`do_piece`."""
    if not store.exists():
        ingest_table(table, store, options)
        release()


def ingest_pieces(
    tables: list[Path],
    store: Path,
    options: IngestOptions,
    progress: ByteProgress | None = None,
    *,
    client: Any = None,
) -> Manifest:
    """Turn a table in pieces of columns into one store, which appears complete or not at all.

    All that the store holds is what one ingest of the joined table gives; its fingerprint differs,
    since it says what it was made of, and depends on the pieces and options alone.

    Parameters
    ----------
    tables : list of Path
        Files with the same rows in the same order; the first one has the target. Others are
        compared where they have it, row ids, weights, strata or groups as well.
    store : Path
        The store to make.
    options : IngestOptions
        As for a single table; each process is under the memory cap.
    progress : callable, optional
        Told of the pieces done, and of the bytes merged.
    client : distributed.Client, optional
        Its workers do the pieces (:func:`on_workers`).

    Raises
    ------
    InputError
        If the pieces do not fit together.
    StoreError
        If the store cannot be written, or pieces of something else lie there.
    UsageError
        If options are given that pieces cannot have.
    """
    ingest_memory.load_libraries()
    tell = progress or (lambda stage, done, total: None)
    _check_options(options)
    errors = scratch.disk_errors(store, replaces=options.overwrite)
    with errors, _work_folder(store, tables, options) as folder:
        pieces = _pieces(tables, options, folder)
        each = starmap(do_here, pieces) if client is None else on_workers(client, pieces)
        sizes = [place_in(table)[0].stat().st_size for table in tables]
        for done, _ in enumerate(each):  # in any order, so about
            tell("pieces", sum(sizes[: done + 1]), sum(sizes))
        stores = [Store.open(made) for _, made, _ in pieces]
        _check_rows(stores, tables)
        with published_folder(store, replaces=options.overwrite) as made:
            merging = Merging(stores)
            more = f" and {len(tables) - 1} more" * (len(tables) > 1)
            source = source_of(place_in(tables[0])[0].name + more, stores, pieces=len(tables))
            names = scratch.text_blocks(name for one in stores for name in one.names)
            room = check_merging(merging.shape, merging.form, options.memory_mb)
            manifest = merging.write(made, names, room, tell, source=source)
            for column in stores[0].added("target"):
                write_column(made, manifest.fingerprint, "target", column)
        (folder / IDENTITY).replace(folder / FINISHED)
        with suppress(OSError):
            _clear(folder)
    shutil.rmtree(folder, ignore_errors=True)
    return manifest


_ALONE = {
    "aggregate": "Leave it out.",
    "link": "Leave the option out.",
    "sample_features": "Leave it out.",
    "kinds": "Name kinds by --kind NAME=KIND, or give one table.",
}
"""Options that go with one table, and what to do where there are pieces."""


def _check_options(options: IngestOptions) -> None:
    for name, remedy in _ALONE.items():
        if options.kinds.file if name == "kinds" else getattr(options, name):
            raise UsageError(f"{options.flag_of(name)}: expected one table, found pieces. {remedy}")
    if options.target is None and not options.no_target:
        raise UsageError(
            "expected --target NAME, or --no-target, with a table in pieces, found neither: the "
            "last column of each piece is another. Name the target's column in the first piece."
        )


@contextmanager
def _work_folder(store: Path, tables: list[Path], options: IngestOptions) -> Iterator[Path]:
    """Yield the folder of the pieces beside the store, held by this process alone."""
    if store.exists() and not options.overwrite:
        raise FileExistsError(f"{store} exists")
    folder = store.with_name(f"{store.name}.pieces")
    folder.mkdir(exist_ok=True)
    if (lock := try_lock(folder / LOCK)) is None:
        raise StoreError(
            f"{folder}: another process is doing the pieces of this store. Wait for it, or choose "
            "another path."
        )
    with ExitStack() as stack:
        stack.callback(release_lock, lock)
        _check_same(folder, _identity(tables, options))
        try:
            yield folder
        finally:
            if {path.name for path in folder.iterdir()} <= {LOCK, IDENTITY}:  # no piece is begun
                shutil.rmtree(folder)


def _clear(folder: Path) -> None:
    """Remove pieces that are no longer needed, and last what says so: kills leave it to be done."""
    for path in folder.iterdir():
        if path.name not in (LOCK, FINISHED):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    (folder / FINISHED).unlink()


def _check_same(folder: Path, identity: str) -> None:
    if (folder / FINISHED).exists():
        _clear(folder)
    noted, partial = folder / IDENTITY, folder / f"{IDENTITY}.partial"
    if not noted.exists():
        if any(path.name not in (LOCK, partial.name) for path in folder.iterdir()):
            raise StoreError(
                f"{folder}: expected a free path for the pieces, found files of somebody else's. "
                "Move them away, or choose another store."
            )
        partial.write_text(identity, encoding="ascii")
        partial.replace(noted)
    elif noted.read_text(encoding="ascii") != identity:
        raise StoreError(
            f"{folder}: expected pieces of these tables with these options, found those of others, "
            "or a table was written to since. Repeat the command that began them, or remove the "
            "folder to begin again."
        )


def _identity(tables: list[Path], options: IngestOptions) -> str:
    """Return a digest of what decides what the pieces become."""
    files_of = [(table, place_in(table)[0]) for table in tables]
    for table in tables:
        stem = table.absolute()
        beside = (stem.with_suffix(one) for one in (".bim", ".fam", ".pvar", ".psam", ".sample"))
        files_of += [(path, path) for path in (*beside, *options.samples) if path.is_file()]
    stats = [(str(table.absolute()), path.stat()) for table, path in files_of]
    files = [(name, stat.st_size, stat.st_mtime_ns) for name, stat in stats]
    plain = repr(replace(options, overwrite=False, threads=None, memory_mb=0))
    return hashlib.sha256(json.dumps([files, plain]).encode()).hexdigest()


def _check_rows(stores: list[Store], tables: list[Path]) -> None:
    """Refuse pieces whose rows are not those of the first, as far as they say."""
    one = stores[0].manifest
    for store, table in zip(stores[1:], tables[1:], strict=True):
        other = store.manifest
        if other.n_rows != one.n_rows:
            dropped = one.n_dropped_rows
            why = f" (after {dropped} rows were left out)" if dropped else ""
            raise InputError(
                f"{table}: expected the {one.n_rows} rows of {tables[0]}{why}, found "
                f"{other.n_rows}. All pieces have the same rows in the same order; where rows lack "
                "a target or a covariate, leave them out of all pieces, or have it in each."
            )
        wanted = ["row_ids"] if None not in (one.row_id_name, other.row_id_name) else []
        wanted += [what for what in one.row_columns if what in other.row_columns]
        named = other.target_name == one.target_name and other.task == one.task
        if named and "target" not in other.inferred:
            wanted.append("target" if one.task == "classification" else "target_values")
        for what in wanted:
            file = f"{what}_bytes/c/0" if what == "row_ids" else f"{what}/c/0"
            is_same = one.checksums[file] == other.checksums[file]
            is_same &= what != "covariates" or one.levels == other.levels
            if not is_same or (what == "target" and one.classes != other.classes):
                expected = f"the {what.replace('_', ' ')} of {tables[0]}"
                remedy = "All pieces have the same rows in the same order: sort them alike."
                raise unfit(table, expected, "others", remedy)


def source_of(name: str, stores: list[Store], **said: Any) -> dict[str, Any]:
    """Return where a store came from that is made of others, of which it says more."""
    sources = "".join(json.dumps(store.manifest.source, sort_keys=True) for store in stores)
    nbytes = sum(int(store.manifest.source.get("nbytes", 0)) for store in stores)
    if any(is_plink(store.manifest.source) for store in stores):
        said["plink"] = True
    return {"name": name, **said, "nbytes": nbytes, "crc32": zlib.crc32(sources.encode())}


# Pieces of a table coded by the workers of a Dask client.


def on_workers(client: Any, pieces: list[tuple[Path, Path, IngestOptions]]) -> Iterator[None]:
    """Have pieces done by a client's workers, each under a cap of its own.

    A piece whose worker is lost is done by another, from its beginning: what the lost one had
    written of it does not count.

    Parameters
    ----------
    client : distributed.Client
        Its workers have the tables and the store's folder at the same paths; one does a piece for
        each of its threads.
    pieces : list of tuple
        The arguments of :func:`do_piece`.
    """
    import distributed

    finished: Any = partial(distributed.as_completed, loop=client.loop)
    keys = [f"srs_ooc_piece-{number}-{made}" for number, (_, made, _) in enumerate(pieces)]
    futures = client.map(do_piece, *zip(*pieces, strict=True), key=keys)
    try:
        for future in finished(futures):
            yield future.result()
    finally:
        client.cancel(futures)
