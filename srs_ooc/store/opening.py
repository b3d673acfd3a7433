"""A store wherever it is: a folder, or a URL, which is read through what is kept of it here."""

import weakref
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from srs_ooc.base.arrays import Ints32, Uints32
from srs_ooc.base.errors import StoreError
from srs_ooc.base.options import place_given, python_spelling
from srs_ooc.base.urls import Place, Url, place_of
from srs_ooc.native import _native
from srs_ooc.store.manifest import Manifest, check_group, chunk_file, damaged, manifest_of
from srs_ooc.store.objects import Objects
from srs_ooc.store.remote_cache import MB_VARIABLE, MOST_REQUESTS, CacheOptions, Mirror
from srs_ooc.store.store import TILE, ColumnStore, Store
from srs_ooc.trees.block import Block

if TYPE_CHECKING:
    from zarr import Group

# The codes of a store at a URL: paged into blocks by way of a bounded cache on a local disk.

MOST_ITEMS = 1 << 32


class RemoteColumns(ColumnStore):
    """The codes of a store at a URL, by feature in stored order.

    Blocks of neighbouring columns lie in slots of a file, from which a gather reads as from a chunk
    file: what it lays out is the same, to the bit.

    Parameters
    ----------
    mirror : Mirror
        What is kept of the store here.

    Raises
    ------
    StoreError
        If the cache cannot be used.
    """

    n_ahead = 8  # a request takes longer than a tree: more of them have to be under way
    remedy = "This is what is kept of the store on this disk: remove the folder, and try again."

    def __init__(self, mirror: Mirror) -> None:
        self.path, self.manifest, self.mapped = mirror.path, mirror.manifest, False
        self._geometry, self._cache = mirror.geometry, mirror.blocks()
        self._release = weakref.finalize(self, mirror.release_blocks)

    def _fill(self, features: Uints32, block: Block, rows: Ints32) -> None:
        blocks, within = self._geometry.place(features.astype(np.int64))
        self._cache.ask(np.unique(blocks))
        n_kept = len(rows) or self.manifest.n_rows
        if (n_local := self._cache.n_slots * self._geometry.columns) > MOST_ITEMS:
            raise StoreError(
                f"{self.path}: expected a cache of fewer than 2^32 places, found "
                f"{n_local}. Lower {MB_VARIABLE}."
            )
        shape = (n_local, n_local, self.manifest.n_rows, rows)
        layout = (block.code_nbytes, block.tiled)
        n_at_once = max(TILE, self._cache.n_slots // 4 // TILE * TILE)
        for first in range(0, len(features), n_at_once):
            part = slice(first, first + n_at_once)
            wanted, place = np.unique(blocks[part], return_inverse=True)
            with self._cache.pinned(wanted) as slots:
                local = (slots[place] * self._geometry.columns + within[part]).astype(np.uint32)
                out = block.codes[first * n_kept * block.code_nbytes :]
                _native.gather_files(self._cache.handles, local, *shape, *layout, out)

    def advise(self, features: Uints32) -> int:
        """Begin to fetch columns that are missing, and do not wait for them.

        Returns
        -------
        int
            0: what is here already is known without asking.
        """
        blocks, _ = self._geometry.place(features.astype(np.int64))
        self._cache.ask(np.unique(blocks))
        return 0

    def close(self) -> None:
        """Wait for the requests under way, and close the cache if nothing else uses it."""
        self._release()


# A store at a URL, read through what is kept of it here.

_open = weakref.WeakValueDictionary[tuple[str, str, str, int], Mirror]()


class RemoteStore(Store):
    """A store at a URL; made by :func:`srs_ooc.store.opening.open_store`.

    Its manifest is read whenever the store is compared; small arrays are copied here when first
    read, columns in blocks, and files of values one at a time.

    Parameters
    ----------
    url : Url
        Where it is.
    objects : Objects
        Below that.
    manifest : Manifest
        What it says of itself.
    cache : CacheOptions
        Where and how much is kept of it here.
    """

    def __init__(self, url: Url, objects: Objects, manifest: Manifest, cache: CacheOptions) -> None:
        self._objects, self.cache = objects, cache
        key = (str(url), manifest.fingerprint, str(cache.path), cache.most_nbytes)
        if (mirror := _open.get(key)) is None:
            mirror = _open[key] = Mirror(objects, manifest, cache)
        self._mirror, self._has_all = mirror, False
        super().__init__(mirror.path, manifest)
        self.place = self._url = url
        self._borrow = mirror.borrowed
        self.reading_nbytes = mirror.geometry.reading_nbytes(mirror.n_slots)

    def _have(self, *arrays: str) -> None:
        for name in arrays:
            if name in self.manifest.small_arrays:
                self._mirror.keep(name)

    def code_files(self) -> list[tuple[str, int]]:
        """Return none: each answer says which object it is of, and is compared as it comes."""
        return []

    def columns(self, *, mapped: bool) -> ColumnStore:
        """Open the codes; to be closed."""
        return RemoteColumns(self._mirror)

    def check_unchanged(self) -> None:
        """Look again whether the store at the URL is still this one."""
        try:
            found = read_remote_manifest(self._url, self._objects)
            self.check_is(self.fingerprint, found.fingerprint)
        except StoreError:
            self._mirror.forget()
            raise

    def check_files(self) -> None:
        """Check that every object of codes is there, with its full size; asks once."""
        if self._has_all:
            return
        with ThreadPoolExecutor(MOST_REQUESTS, "check") as pool:
            deque(pool.map(self._check_chunk, range(self.manifest.n_chunks)), maxlen=0)
        self._has_all = True

    def _check_chunk(self, index: int) -> None:
        name, expected = chunk_file(index), self.manifest.chunk_nbytes
        try:
            size, stamp = self._objects.look(name)
            found = f"{size} bytes"
        except FileNotFoundError:
            found = "no object"
        if found != f"{expected} bytes":
            raise damaged(f"{self._url}/{name}", f"expected {expected} bytes, found {found}")
        self._mirror.check_same(index, stamp)

    def stored_nbytes(self) -> int | None:
        """Return the bytes of all its files; None of a web server, which lists none."""
        is_listed = self._url.scheme not in ("http", "https")
        return sum(size for _, size in self._objects.sizes()) if is_listed else None


def read_remote_manifest(url: Url, objects: Objects) -> Manifest:
    """Read and check the manifest of the store at a URL.

    Raises
    ------
    StoreError
        As :func:`srs_ooc.store.manifest.read_manifest`.
    """
    try:
        text = objects.read("zarr.json")
    except FileNotFoundError:
        raise StoreError(
            f"{url}: expected a store made by `srs-ooc ingest`, found no zarr.json there. Check "
            "the URL, or ingest the table; a store that is being written has none yet."
        ) from None
    return manifest_of(text, url)


# Opening a store wherever it is.


def open_store(
    place: Place | str, fingerprint: str | None = None, cache: CacheOptions | None = None
) -> Store:
    """Read and check the manifest of the store at a path or a URL, and nothing else.

    Parameters
    ----------
    place : path or URL
        Where it is.
    fingerprint : str, optional
        The one it must have.
    cache : CacheOptions, optional
        Where and how much is kept on this disk of a store at a URL.

    Raises
    ------
    StoreError
        If there is no store, or its manifest is damaged, or it is another.
    UsageError
        If the URL is none, or the library that reads it is missing.
    """
    where = place_of(place)
    if isinstance(where, Path):
        return Store.open(where, fingerprint)
    objects = Objects(where)
    manifest = read_remote_manifest(where, objects)
    if manifest.n_linked_rows:
        raise StoreError(
            f"{where}: expected a store with codes of uint8, found one whose codes are in a .bed "
            "file. Ingest the table with --code-dtype uint8, and upload that store."
        )
    store = RemoteStore(where, objects, manifest, cache or CacheOptions())
    store.check_is(fingerprint)
    return store


StoreOrPath = Store | str | Path | Url


def store_of(store: StoreOrPath) -> Store:
    """Return a store, given as it or as its path.

    Raises
    ------
    StoreError
        If there is none, or its manifest is damaged.
    """
    return store if isinstance(store, Store) else open_store(place_given(store, "store"))


@python_spelling()
def open_zarr(store: str | Place) -> "Group":
    """Open a store as the Zarr group that it is, to be read by zarr.

    Features lie in a random order: that of the array ``feature``, which holds their names, and of
    the first dimension of ``codes`` and ``values``.

    Parameters
    ----------
    store : path or URL
        Where it is.

    Returns
    -------
    zarr.Group
        Read-only. A chunk that is missing reads as missing values: ``verify`` finds it.

    Raises
    ------
    StoreError
        If there is no store, or metadata of it are damaged: all of them are compared with its
        manifest.
    UsageError
        If the URL is none, or the library that reads it is missing.
    """
    import zarr

    place = place_given(store, "store")
    if isinstance(place, Path):
        check_group(place, Store.open(place).manifest, lambda name: [(place / name).read_bytes()])
        return zarr.open_group(place, mode="r")
    objects = Objects(place)
    check_group(place, read_remote_manifest(place, objects), lambda name: [objects.read(name)])
    return objects.node()
