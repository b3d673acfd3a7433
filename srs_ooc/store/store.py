"""A store, opened once and handed on: what it says of itself, and everything that is read of it."""

import copy
import mmap
import os
import time
from collections import deque
from collections.abc import Collection, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.arrays import Bools, Bytes, Floats, Integers, Ints, Ints32, Reals, Uints32
from srs_ooc.base.errors import StoreError, UsageError
from srs_ooc.base.files import SCRATCH_SUFFIX, Closing
from srs_ooc.base.records import Covariate
from srs_ooc.base.text import MB
from srs_ooc.base.urls import Place
from srs_ooc.native import _native
from srs_ooc.store import arrays
from srs_ooc.store.bed import BedFile, BedValues, file_of
from srs_ooc.store.manifest import (
    CATEGORICAL,
    CATEGORIES,
    CELL_END,
    COORDINATES,
    FEATURE_COLUMNS,
    NO_TARGET,
    Borrow,
    Manifest,
    cannot_read,
    chunk_file,
    damaged,
    dtype_of,
    read_manifest,
    verify_file,
    verify_group,
)
from srs_ooc.store.values import (
    ValuesReader,
    ValueTables,
    code_columns,
    midpoints,
    n_values_of,
    whole_columns,
)
from srs_ooc.trees.block import Block

# The column store, open for reading: paging subspaces of its codes into blocks.

ALL_ROWS = np.zeros(0, dtype=np.int32)
TILE = _native.TILE
READING_NBYTES = 8 * MB
"""Allowance for pieces of files, a chunk of values and its code, and what is read of them."""


class ColumnStore(Closing):
    """The codes of a store on disk, by feature in stored order.

    Parameters
    ----------
    store : Store
        The store, which must be looked at again once this is open (:meth:`Store.unchanged`).
    mapped : bool
        Map the chunk files into memory, where they stay resident once touched (for a store that
        fits its lease); otherwise each gather reads what it needs into the block.

    Raises
    ------
    StoreError
        If a chunk file is missing, has the wrong size or is not what it was. All sizes are checked
        here: an access past the end of a mapped file would kill the process.
    """

    n_ahead = 2
    """Subspaces to ask for beyond those being paged in and grown."""
    n_threads = 1
    """Threads that share a large gather from files."""
    remedy = (
        "Try again if it is the disk's error; else `srs-ooc verify` says what is damaged: ingest "
        "the table again."
    )
    """What to do where a file cannot be read."""

    def __init__(self, store: "Store", *, mapped: bool) -> None:
        self.path, self.manifest, self.mapped = store.path, store.manifest, mapped
        arrays.check_chunks(self.path, self.manifest)
        self._maps, handles = list[mmap.mmap](), list[int]()
        with ExitStack() as opened:
            for (file, nbytes), stamp in zip(store.code_files(), store.stamps, strict=True):
                try:
                    handles.append(os.open(file, os.O_RDONLY))
                except OSError as error:
                    raise cannot_read(file, error) from error
                opened.callback(os.close, handles[-1])
                if arrays.stamp_of(handles[-1]) != stamp:
                    raise arrays.codes_changed(file)
                if mapped:
                    self._map(file, handles[-1], nbytes)
            self._opened = ExitStack() if mapped else opened.pop_all()  # a map has its own
        addresses = [np.frombuffer(view, dtype=np.uint8).ctypes.data for view in self._maps]
        self._addresses = np.array(addresses, dtype=np.uint64)
        self._descriptors = np.array([] if mapped else handles, dtype=np.int32)

    def _map(self, file: str, handle: int, nbytes: int) -> None:
        try:
            view = mmap.mmap(handle, nbytes, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            found = getattr(error, "strerror", None) or error  # ValueError: the file was cut
            raise StoreError(
                f"{file}: expected a file that can be mapped into memory, found: {found}. Check "
                "the disk and try again; a network disk may not map files: copy the store to a "
                "local one."
            ) from error
        if hasattr(mmap, "MADV_RANDOM"):
            # It fits and will be wanted: one long read now, then pages are met at random.
            view.madvise(mmap.MADV_WILLNEED)
            view.madvise(mmap.MADV_RANDOM)
        self._maps.append(view)

    def gather(self, features: Uints32, block: Block, rows: Ints32 | None = None) -> None:
        """Page the codes of ``features`` into the first columns of ``block``, without the GIL.

        Parameters
        ----------
        features : uint32 (n,)
            Stored positions; ascending ones are read with the fewest requests.
        block : Block
            With room for them, and as many rows as are kept.
        rows : int32 (n_kept,), optional
            Rows of the store to keep, in this order; default all.

        Raises
        ------
        StoreError
            If a chunk file cannot be read to its expected end.
        """
        try:
            self._fill(features, block, ALL_ROWS if rows is None else rows)
        except RuntimeError as error:
            raise StoreError(f"{self.path}: {error}. {self.remedy}") from error

    def _fill(self, features: Uints32, block: Block, rows: Ints32) -> None:
        m = self.manifest
        shape = (m.n_features, m.chunk_features, m.n_rows, rows)
        layout = (block.code_nbytes, block.tiled, block.codes)
        if self.mapped:
            _native.gather_mapped(self._addresses, features, *shape, *layout)
        else:
            handles, n_threads = self._descriptors, self.n_threads
            _native.gather_files(handles, features, *shape, *layout, n_threads=n_threads)

    def codes(self, stored: Integers, rows: Ints32 = ALL_ROWS) -> NDArray[Any]:
        """Return the codes (n, n_rows) of features, ascending; of rows as :meth:`gather` does."""
        n, m = len(stored), self.manifest
        block = Block(n, len(rows) or m.n_rows, m.code_nbytes, tiled=False)
        self.gather(stored.astype(np.uint32), block, rows)
        codes: NDArray[Any] = block.codes[: n * block.n_rows * m.code_nbytes].view(m.code_dtype)
        return codes.reshape(n, block.n_rows)

    def advise(self, features: Uints32) -> int:
        """Ask the system to read columns of a store that is not mapped, and do not wait for them.

        Parameters
        ----------
        features : uint32 (n,)
            Stored positions; ascending ones take the fewest requests.

        Returns
        -------
        int
            How many requests were made; columns less than a page apart share one.
        """
        m = self.manifest
        column_nbytes = m.n_rows * m.code_nbytes
        return _native.advise_files(self._descriptors, features, m.chunk_features, column_nbytes)

    def close(self) -> None:
        """Close the files; maps go when nothing refers to them."""
        self._opened.close()
        self._descriptors = np.zeros(0, dtype=np.int32)
        self._addresses = np.zeros(0, dtype=np.uint64)
        self._maps.clear()


@dataclass(frozen=True)
class Verified:
    """What was read of a store and found as it was written.

    Attributes
    ----------
    nbytes : int
        Bytes read.
    files : dict
        Number of files, by what they hold.
    """

    nbytes: int
    files: dict[str, int]


class Store:
    """A store on disk, known by its fingerprint: another may come to lie at its path.

    Small arrays are compared with the checksums of the manifest whenever they are read, values with
    theirs. Files of codes are those that were there when this was made, untouched, as long as
    :meth:`unchanged` says so.

    Parameters
    ----------
    path : Path
        Its folder.
    manifest : Manifest
        What it says of itself; :meth:`open` reads it.

    Attributes
    ----------
    place : Path or Url
        Where it is: its folder, or its URL, whose ``path`` is what is kept of it here.
    reading_nbytes : int
        Memory that reading its columns takes besides the block.
    target_identity : str
        Which target it is seen with: ``own``, or name and digest of one that was added.
    """

    def __init__(self, path: Path, manifest: Manifest) -> None:
        self.path, self.manifest = path, manifest
        self._own = manifest  # what its files are, where it is seen with another target
        self.target_identity = arrays.OWN
        self._beside: dict[str, NDArray[Any]] = {}
        self.place: Place = path
        self.stamps = self._codes_now()
        self.reading_nbytes = 0
        self._borrow: Borrow = nullcontext  # the files of a local store are there

    @classmethod
    def open(cls, path: Path, fingerprint: str | None = None) -> "Store":
        """Read and check the manifest of the store at ``path``, and nothing else.

        Raises
        ------
        StoreError
            If there is no store, or its manifest is damaged, or it is not the one with this
            ``fingerprint``.
        """
        manifest = read_manifest(path)
        store = (BedStore if manifest.n_linked_rows else cls)(path, manifest)
        store.check_is(fingerprint)
        return store

    def check_is(self, fingerprint: str | None, found: str | None = None) -> None:
        """Check that this, or the one ``found`` at its place, is the store with that fingerprint.

        Raises
        ------
        StoreError
            If it is not; never where None is asked for.
        """
        if fingerprint not in (None, found := found or self.fingerprint):
            raise StoreError(
                f"{self.place}: expected the store with fingerprint {fingerprint[:16]}, found "
                f"another store there, with fingerprint {found[:16]}: it was replaced. "
                "Put the store back, or name its new place, and repeat the command; nothing read "
                "since was kept."
            )

    def check_unchanged(self) -> None:
        """Look again whether the store at the path is still this one, and its codes untouched.

        Raises
        ------
        StoreError
            If it is another, or there is none, or a file of codes was changed or replaced since
            this was made.
        """
        self.check_is(self.fingerprint, read_manifest(self.path).fingerprint)
        is_changed = self._codes_now() != self.stamps
        if is_changed.any():
            raise arrays.codes_changed(self.code_files()[int(is_changed.argmax())][0])

    def code_files(self) -> list[tuple[str, int]]:
        """Return the files of codes, and the bytes of each; none of a store at a URL."""
        folder, nbytes = str(self.path), self.manifest.chunk_nbytes
        return [(f"{folder}/{chunk_file(i)}", nbytes) for i in range(self.manifest.n_chunks)]

    def _codes_now(self) -> Ints:
        """Return what distinguishes the files of codes from others put there later."""
        return np.array([arrays.stamp_of(file) for file, _ in self.code_files()], np.int64)

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Have the store at the path be this one when the block begins and when it ends.

        Raises
        ------
        StoreError
            If it is another; also in place of damage that the block found, where that comes of the
            store having been replaced.
        """
        self.check_unchanged()
        try:
            yield
        except StoreError:
            self.check_unchanged()
            raise
        self.check_unchanged()

    def _have(self, *arrays: str) -> None:
        """Have the files of small arrays, as far as the store has them, be at its path."""

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the manifest: the identity of the store."""
        return self._own.fingerprint

    @property
    def own_target(self) -> str | None:
        """Name of the target that it was made with; None if it was made without."""
        return None if self._own.inferred.get("target") == NO_TARGET else self._own.target_name

    def added(self, kind: str) -> Iterator[Covariate]:
        """Yield what was added later: ``target`` (its classes are levels) or ``covariate``.

        Nothing of a store at a URL.
        """
        for file in sorted((self.path / "columns").glob(f"{kind}-*")):
            if file.suffix != SCRATCH_SUFFIX:  # which a kill left unfinished
                yield arrays.read_column(file, self.fingerprint, self.n_rows)[0]

    def of_target(self, name: str | None) -> "Store":
        """Return the store as seen with a target that was added later; None for its own.

        Its manifest says what is of that target, which is -1 or NaN where a row has none.

        Raises
        ------
        UsageError
            If there is no such target.
        """
        seen, own = copy.copy(self), self._own
        seen.manifest, seen.target_identity, seen._beside = own, arrays.OWN, {}
        if name is None or name == self.own_target:
            return seen
        file = arrays.column_file(self.path, "target", name)
        if not file.is_file():
            there = filter(None, [self.own_target, *(one.name for one in self.added("target"))])
            raise UsageError(
                f"{self.place}: expected one of its targets ({', '.join(there)}), found {name!r}. "
                "`srs-ooc targets` adds some, to a store on this machine."
            )
        column, seen.target_identity = arrays.read_column(file, self.fingerprint, own.n_rows)
        values, labels, counts = column.values, column.levels, ()
        if labels:
            codes = np.nan_to_num(values, nan=-1).astype(np.int32)
            counts = tuple(np.bincount(codes[codes >= 0], minlength=len(labels)).tolist())
        seen._beside = {"target": codes} if labels else {"target_values": values}
        seen.reading_nbytes += 8 * self.n_rows
        seen.manifest = replace(
            own,
            task="classification" if labels else "regression",
            classes=labels,
            class_counts=counts,
            target_name=name,
            row_columns={what: n for what, n in own.row_columns.items() if what != "events"},
            inferred={},  # all of it is of how the store was made
        )
        return seen

    def seen_as(self, identity: str) -> "Store":
        """Return the store as seen with the target of a run.

        Raises
        ------
        StoreError
            If the target was replaced since.
        UsageError
            If it is no longer there.
        """
        seen = self.of_target(
            None if identity == arrays.OWN else identity.rpartition(" (sha256 ")[0]
        )
        if seen.target_identity != identity:
            raise StoreError(
                f"{self.place}: expected the target {identity} that the run was made on, found "
                f"{seen.target_identity}: it was replaced. Add it again as it was with `srs-ooc "
                "targets`, or begin another run with `srs-ooc run --target NAME --fresh`."
            )
        return seen

    def target_rows(self) -> Ints32 | None:
        """Return the rows that have a target, int32, ascending; None for all, as of its own."""
        for values in self._beside.values():
            is_there = values >= 0 if self.manifest.classes else ~np.isnan(values)
            return None if is_there.all() else np.flatnonzero(is_there).astype(np.int32)
        return None

    @property
    def n_rows(self) -> int:
        """Rows of the table."""
        return self.manifest.n_rows

    @property
    def n_features(self) -> int:
        """Features of the table."""
        return self.manifest.n_features

    @cached_property
    def names(self) -> arrays.Names:
        """Names of the features, in source order; opened when first asked for."""
        return self._texts("names")

    @cached_property
    def row_ids(self) -> arrays.Names:
        """Ids of the rows; opened when first asked for."""
        return self._texts("row_ids")

    def _texts(self, which: str) -> arrays.Names:
        self._have(f"{which}_offsets", f"{which}_bytes")
        return arrays.Names(self.path, self.manifest, which)

    @cached_property
    def _feature_facts(self) -> arrays.Names | list[str]:
        return self._texts(FEATURE_COLUMNS) if self.manifest.feature_columns else []

    def feature_cells(self, positions: Collection[int] | None = None) -> Iterator[list[str]]:
        """Yield what ``feature_columns`` of the manifest, if any, hold of features by position.

        Of all features if none are given.
        """
        facts, columns = self._feature_facts, self.manifest.feature_columns
        for text in facts if positions is None else map(facts.__getitem__, positions):
            if len(cells := text.split(CELL_END)) != len(columns):
                raise damaged(self.place, f"expected {columns} of a feature, found {cells}")
            yield cells

    def array(self, name: str) -> NDArray[np.generic]:
        """Read a small array, checked: a key of :data:`srs_ooc.store.manifest.SMALL_ARRAYS`.

        Raises
        ------
        StoreError
            If the store is damaged; so do all methods that read.
        """
        if name in self._beside:
            return self._beside[name]
        self._have(name)
        return arrays.read_array(self.path, self._own, name)

    def opened(self, name: str) -> arrays.SmallFile:
        """Open a small array, checked, of which slices are read; to be closed."""
        self._have(name)
        return arrays.SmallFile(self.path, self._own, name)

    def pieces(self, name: str) -> Iterator[tuple[int, NDArray[np.generic]]]:
        """Yield (first item, items) of a small array, some at a time, in bounded memory."""
        if name in self._beside:
            yield 0, self._beside[name]
            return
        with self.opened(name) as file:
            for start in range(0, len(file), arrays.PIECE_ITEMS):
                yield start, file[start : start + arrays.PIECE_ITEMS]

    def positions_of(self, stored: Integers) -> Ints:
        """Return the place in the table, and so among the names, of each stored feature."""
        out = np.empty(len(stored), np.int64)
        for start, positions in self.pieces("positions"):
            here = np.flatnonzero((stored >= start) & (stored < start + len(positions)))
            out[here] = positions[stored[here].astype(np.int64) - start]
        return out

    def target(self) -> Ints32 | Floats:
        """Return the target of each row: int32 (n_rows,) classes, or float64 of a regression."""
        if self.manifest.task == "regression":
            return np.asarray(self.array("target_values"), dtype=np.float64)
        return np.asarray(self.array("target"), dtype=np.int32)

    def weights(self) -> Floats | None:
        """Return the weight of each row, float64 (n_rows,); None if the store has none."""
        return self._of_rows("weights")

    def strata(self) -> Ints32 | None:
        """Return the stratum of each row, int32 (n_rows,) from 0; None if the store has none."""
        return self._of_rows("strata")

    def groups(self) -> Ints32 | None:
        """Return the group of each row, int32 (n_rows,) from 0; None if the store has none."""
        return self._of_rows("groups")

    def covariates(self) -> list[Covariate]:
        """Return the covariates in the order given: 8 bytes for each and each row; [] if none."""
        return list(self.each_covariate())

    def each_covariate(self) -> Iterator[Covariate]:
        """Yield the covariates in the order given, one at a time in memory; added ones last."""
        if names := self.manifest.row_columns.get("covariates"):
            with self.opened("covariates") as file:
                for i, (name, levels) in enumerate(zip(names, self.manifest.levels, strict=True)):
                    values = file[i * self.n_rows : (i + 1) * self.n_rows]
                    yield Covariate(name, np.asarray(values, np.float64), levels)
        yield from self.added("covariate")

    def events(self) -> Bools | None:
        """Return where the event was seen, bool (n_rows,); None if the target is not censored."""
        return self._of_rows("events")

    def _of_rows(self, name: str) -> NDArray[Any] | None:
        return self.array(name) if name in self.manifest.row_columns else None

    def kinds(self) -> Bytes:
        """Return the kind of each stored feature, uint8 (n_features,)."""
        return np.asarray(self.array("kinds"), dtype=np.uint8)

    def categories(self) -> arrays.Categories:
        """Return what gives the categories of a stored feature."""
        self._have("kinds", "n_codes", *CATEGORIES)
        return arrays.Categories(self.path, self.manifest)

    def columns(self, *, mapped: bool) -> ColumnStore:
        """Open the codes, mapped into memory or to be read; to be closed."""
        return ColumnStore(self, mapped=mapped)

    def value_tables(self) -> ValueTables:
        """Make the tables of the values of codes; to be closed."""
        features = np.flatnonzero(self.kinds() != CATEGORICAL)
        ranges = ((int(features[i]), low, high) for i, low, high in self.code_ranges(features))
        return ValueTables(self.path, self.manifest, ranges)

    def values(self, array: str = "values") -> ValuesReader:
        """Return what reads the values, or ``code_lows`` or ``code_highs`` where none are kept."""
        self._have(f"{array}_crc32c")
        return ValuesReader(self.path, self.manifest, array, self._borrow)

    def column_parts(self, stored: Ints) -> Iterator[tuple[int, int, Reals]]:
        """Yield values of stored features as :meth:`srs_ooc.store.values.ValuesReader.columns`.

        Raises
        ------
        StoreError
            As there; also if a value of a categorical feature is not the code of a category.
        """
        categories = self.categories()
        for i, first_row, part in self.values().columns(stored):
            if (wrong := categories.wrong_code(int(stored[i]), part)) is not None:
                at, found = wrong
                name = self.names[int(self.array("positions")[stored[i]])]
                raise damaged(self.place, f"feature {name!r}, row {first_row + at + 1}: {found}")
            yield i, first_row, part

    def numbers_of(self, stored: Integers) -> Floats:
        """Return the values of some stored features, ascending; float64 (k, n_rows).

        Of a store that keeps no values, a code stands for the middle of its range. NaN is missing.
        """
        out, wanted = np.full((len(stored), self.n_rows), np.nan), stored.astype(np.int64)
        if self.manifest.values_dtype is not None:
            for i, first, values in self.values().columns(wanted):
                out[i, first : first + len(values)] = values
            return out
        with self.columns(mapped=False) as columns:
            codes = columns.codes(wanted)
        for i, lows, highs in self.code_ranges(wanted):
            known = codes[i] != np.iinfo(codes.dtype).max
            out[i, known] = (lows / 2 + highs / 2)[codes[i, known]]
        return out

    def boundaries(self, features: Ints, codes: Ints) -> Floats:
        """Return the value that separates ``codes[i]`` of ``features[i]`` from the next code.

        Parameters
        ----------
        features : int64 (k,)
            Stored features, ascending; repeated for each of their codes.
        codes : int64 (k,)
            Codes, not the highest of their feature.

        Raises
        ------
        StoreError
            If the store is damaged, or has no such codes.
        """
        used, first, counts = np.unique(features, return_index=True, return_counts=True)
        out = np.empty(len(features))
        with np.errstate(invalid="ignore"):
            for i, lows, highs in self.code_ranges(used):
                place = slice(first[i], first[i] + counts[i])
                wanted = codes[place]
                are_there = wanted[-1] + 1 < len(lows)
                out[place] = midpoints(highs[wanted], lows[wanted + 1]) if are_there else np.nan
        if np.isnan(out).any():
            raise StoreError(
                f"{self.path}: expected the codes that the trees split on, found fewer in feature "
                f"{int(features[np.isnan(out).argmax()])} as stored. Store and run do not belong "
                "together, or one of them is damaged."
            )
        return out

    def code_ranges(self, used: Ints) -> Iterator[tuple[int, Floats, Floats]]:
        """Yield (i, lowest, highest value of each code) of each of ``used``, stored features."""
        if self.manifest.values_dtype is None:
            columns = (whole_columns(self.values(a), used) for a in self.manifest.float_arrays)
            yield from ((i, low, high) for (i, low), (_, high) in zip(*columns, strict=True))
            return
        codes = np.empty((1, self.n_rows), self.manifest.code_dtype)
        for i, column in whole_columns(self.values(), used):
            facts = code_columns(column[None], codes, ranges=n_values_of(self.manifest))
            yield i, facts.lows[0], facts.highs[0]

    def check_files(self) -> None:
        """Check that every file is there, with its full size; reads no data."""
        arrays.check_files(self.path, self._own)

    def stored_nbytes(self) -> int | None:
        """Return the bytes of all its files; None where they cannot be listed."""
        return sum(file.stat().st_size for file in self.path.rglob("*") if file.is_file())

    def verify(self) -> Verified:
        """Read all of it, and compare it with its checksums and its parts with each other."""
        path, manifest = self.path, self._own
        self._have(*manifest.small_arrays)
        self.check_files()
        counts = {"metadata": 0, "codes": 0, "small arrays": 0, "coordinates": 0, "values": 0}
        counts["metadata"], nbytes = verify_group(path, self.place, manifest, self._borrow)
        _native.return_large_blocks()  # zarr is loaded now: what is read may not stay, too
        for name, crc in manifest.checksums.items():
            array = name.split("/")[0]
            with self._borrow(path / name):
                if array in manifest.small_arrays:
                    counts["small arrays"] += 1
                    arrays.verify_array(path, manifest, array)
                    nbytes += manifest.lengths[array] * dtype_of(array).itemsize
                else:
                    counts["coordinates" if array in COORDINATES else "codes"] += 1
                    nbytes += verify_file(path, name, crc)
        for texts in (self.names, self.row_ids):
            deque(texts, maxlen=0)
        deque(self.feature_cells(), maxlen=0)
        is_category = self.kinds() == CATEGORICAL
        categories = self.categories()
        for feature in np.flatnonzero(is_category).tolist():
            categories.of(feature)
        for name in manifest.float_arrays:
            reader = self.values(name)
            counts["values"] += reader.n_chunks
            nbytes += sum(reader.read_chunk(index)[1] for index in range(reader.n_chunks))
        if manifest.values_dtype is not None and is_category.any():
            deque(self.column_parts(np.flatnonzero(is_category)), maxlen=0)
        if columns := [one.values.nbytes for kind in "tc" for one in self.added(f"{kind}*")]:
            counts["added columns"], nbytes = len(columns), nbytes + sum(columns)
        return Verified(nbytes, counts)


# A store whose codes and values are in a .bed file.


class BedColumns(ColumnStore):
    """The codes of such a store: variants of a ``.bed`` file, in the order of the file.

    Parameters
    ----------
    store : BedStore
        The store.
    mapped : bool
        As of the base.

    Raises
    ------
    StoreError
        If the file cannot be opened or mapped, or is not what it was.
    """

    def __init__(self, store: "BedStore", *, mapped: bool) -> None:
        self._bed, self._kept = store.bed, np.asarray(store.array("linked_rows"))
        self._present = np.asarray(store.array("present"))
        super().__init__(store, mapped=mapped)
        if len(self._kept) == self._bed.n_samples:
            self._kept = ALL_ROWS

    def _fill(self, features: Uints32, block: Block, rows: Ints32) -> None:
        if len(self._kept):
            rows = self._kept[rows] if len(rows) else self._kept
        wanted, layout = (self._present, features, self._bed.n_samples), (block.tiled, block.codes)
        _native.gather_genotypes(
            self._addresses, self._descriptors, *wanted, rows, *layout, n_threads=self.n_threads
        )

    def advise(self, features: Uints32) -> int:
        """Ask for columns as :meth:`ColumnStore.advise` does."""
        n_features, line_nbytes = self.manifest.n_features, self._bed.line_nbytes
        return _native.advise_files(self._descriptors, features, n_features, line_nbytes)


class BedStore(Store):
    """A store whose codes and values are those of a ``.bed`` file; :meth:`Store.open` makes it."""

    bed: BedFile

    def __init__(self, path: Path, manifest: Manifest) -> None:
        self.bed = file_of(path, manifest)
        super().__init__(path, manifest)
        lines = TILE * (self.bed.n_samples + self.bed.line_nbytes)
        self.reading_nbytes = manifest.n_features + 4 * manifest.n_rows + 2 * lines

    def code_files(self) -> list[tuple[str, int]]:
        """Return the ``.bed`` file, and its bytes."""
        return [(str(self.bed.path), self.bed.nbytes)]

    def columns(self, *, mapped: bool) -> ColumnStore:
        """Open the codes, mapped into memory or to be read; to be closed."""
        return BedColumns(self, mapped=mapped)

    def values(self, array: str = "values") -> ValuesReader:
        """Return what reads the dosages."""
        return BedValues(self.path, self.manifest, self.bed)


# All columns of a store from first to last, as numbers: for passes that look at each of them.

MEAN_BITS = 8
"""The mean that stands for missing 8-bit codes is rounded to ``2**-MEAN_BITS``: sums stay exact."""
LARGEST = 1e100
"""Values above cannot be squared and summed."""


class Scan:
    """The columns of a store in stored order, read sequentially, some at a time.

    Missing values are the mean of their column. Columns left out are 0.

    Parameters
    ----------
    store : Store
        The store; it must be looked at again after the pass (:meth:`Store.unchanged`).
    block_columns : int
        Columns of a block.
    rows : int32 (n_kept,), optional
        Rows to keep, ascending; default all.
    excluded : uint32, optional
        Stored positions to leave out, ascending.
    values : bool
        The values themselves rather than their codes.

    Attributes
    ----------
    n_rows : int
        Rows of a column as read.
    nbytes : int
        Memory of a pass.

    Raises
    ------
    StoreError
        If the store keeps no values where they are wanted.
    """

    def __init__(
        self,
        store: Store,
        block_columns: int,
        *,
        rows: Ints32 | None = None,
        excluded: Uints32 | None = None,
        values: bool = False,
    ) -> None:
        self._store, self._manifest, self._size = store, store.manifest, block_columns
        self._rows, self._excluded = rows, excluded
        self._reader = store.values() if values else None
        self.n_rows = store.n_rows if rows is None else len(rows)
        # a block as read and as numbers, and what making them takes: a chunk, or tables of codes
        making = 128 * store.n_rows if self._reader is None else 2 * self._reader.chunk_nbytes
        self.nbytes = 24 * block_columns * store.n_rows + making

    def blocks(self) -> Iterator[tuple[int, Reals]]:
        """Yield the first position and the columns (m, n_rows) of each block, float32 or float64.

        Raises
        ------
        StoreError
            If the store cannot be read to its end.
        UsageError
            If a value is too large for sums of squares.
        """
        blocks = self._codes() if self._reader is None else self._values(self._reader)
        for first, columns in blocks:
            if self._excluded is not None:
                ends = np.searchsorted(self._excluded, [first, first + len(columns)])
                columns[self._excluded[slice(*ends)] - first] = 0
            yield first, columns

    def _positions(self) -> Iterator[Ints]:
        p = self._manifest.n_features
        for first in range(0, p, self._size):
            yield np.arange(first, min(first + self._size, p))

    def _codes(self) -> Iterator[tuple[int, Reals]]:
        rows, missing = ALL_ROWS if self._rows is None else self._rows, self._manifest.missing_code
        with self._store.columns(mapped=False) as columns:
            for positions in self._positions():
                # neither has a name: two batches would be held as the next one is read
                yield int(positions[0]), code_numbers(columns.codes(positions, rows), missing)

    def _values(self, reader: ValuesReader) -> Iterator[tuple[int, Reals]]:
        whole = np.zeros((self._size, self._manifest.n_rows))
        for positions in self._positions():
            for i, row, values in reader.columns(positions):
                whole[i, row : row + len(values)] = values
            some = whole[: len(positions)]
            some = some.copy() if self._rows is None else np.take(some, self._rows, axis=1)
            fill_with_means(some, np.isnan(some))
            if not np.abs(some).max() <= LARGEST:
                raise UsageError(
                    f"{self._store.place}: expected values of at most {LARGEST:g}, found larger "
                    "ones, whose squares cannot be summed. Use the codes: matrix=codes."
                )
            yield int(positions[0]), some


def code_numbers(codes: NDArray[Any], missing_code: int) -> Reals:
    """Return codes as numbers, missing ones as the rounded mean of their column.

    Returns
    -------
    float32 or float64 (n_columns, n_rows)
        float32 for 8-bit codes none of which is missing.
    """
    is_missing = codes == missing_code
    if not is_missing.any():
        return codes.astype(np.float32 if codes.itemsize == 1 else np.float64)
    numbers = codes.astype(np.float64)
    fill_with_means(numbers, is_missing, MEAN_BITS if codes.itemsize == 1 else 0)
    return numbers


def fill_with_means(numbers: Floats, is_missing: Bools, bits: int | None = None) -> None:
    """Put the mean of each column, rounded to ``2**-bits`` if given, where a value is missing."""
    n_missing = is_missing.sum(axis=1)
    if not n_missing.any():
        return
    numbers[is_missing] = 0.0
    means = numbers.sum(axis=1) / np.maximum(numbers.shape[1] - n_missing, 1)
    if bits is not None:
        means = np.ldexp(np.rint(np.ldexp(means, bits)), -bits)
    numbers[is_missing] = np.repeat(means, n_missing)


# Reading ahead of need: the system is asked for columns that will be gathered soon.

CACHED_SECONDS = 3e-6
"""A request answered faster than this, on average, found its columns in memory already."""
SAMPLE = 16
"""Where the last columns were in memory already, only each 16th is asked for."""
MOST_WAITING = 8
"""Subspaces that may wait to be asked for: more come too late to be of use, and are left out."""


class ReadAhead(Closing):
    """Asks the operating system, on a thread of its own, to read columns into its page cache.

    All requests of a subspace are under way at once, which a cold disk needs to be fast, and they
    take no memory of this process. Once columns turn out to be cached, asking stops but for a
    sample, until one is not.

    Parameters
    ----------
    store : ColumnStore
        Whose columns to ask for; nothing is asked where it is mapped.

    Attributes
    ----------
    depth : int
        How many subspaces to ask for beyond those being grown.
    """

    def __init__(self, store: ColumnStore) -> None:
        self.depth = 0 if store.mapped else store.n_ahead
        self._store = store
        self._thread = ThreadPoolExecutor(1, "read")
        self._cached = False
        self._waiting: deque[Future[None]] = deque()

    def ask(self, features: Uints32) -> None:
        """Ask for the columns of ``features`` (ascending, as gathered) and return at once."""
        while self._waiting and self._waiting[0].done():
            self._waiting.popleft()
        if self.depth and len(self._waiting) < MOST_WAITING:
            self._waiting.append(self._thread.submit(self._ask, features))

    def _ask(self, features: Uints32) -> None:
        wanted = features[::SAMPLE] if self._cached else features
        started = time.perf_counter()
        n_requests = self._store.advise(np.ascontiguousarray(wanted))
        self._cached = time.perf_counter() - started < CACHED_SECONDS * n_requests

    def close(self) -> None:
        """Drop what was not asked for yet, and end the thread."""
        self._thread.shutdown(wait=True, cancel_futures=True)
