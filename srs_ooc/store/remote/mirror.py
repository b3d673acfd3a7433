"""What is kept on a local disk of a store at a URL: its small arrays whole, its columns in blocks.

The folder is the store's fingerprint's, and held by one process at a time; another process gets a
folder of its own beside it.
"""

import os
import weakref
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock, RLock

from srs_ooc.base.errors import StoreError, UsageError
from srs_ooc.base.files import try_lock
from srs_ooc.base.text import MB, ceil_div
from srs_ooc.store.layout import chunk_file, dtype_of
from srs_ooc.store.manifest import Manifest
from srs_ooc.store.remote.blocks import BlockCache, Geometry
from srs_ooc.store.remote.cache import CacheOptions
from srs_ooc.store.remote.objects import Objects
from srs_ooc.store.remote.slots import SlotFile

FEWEST_SLOTS = 128
"""A gather wants the blocks of 64 columns at once, and others are under way meanwhile."""
_MOST_FOLDERS = 1000


class Mirror:
    """The folder of a store at a URL among what is kept of such stores.

    Parameters
    ----------
    objects : Objects
        The store's.
    manifest : Manifest
        Its manifest.
    options : CacheOptions
        Where the folder is, and how much it may hold.

    Attributes
    ----------
    path : Path
        The folder.

    Raises
    ------
    StoreError
        If it cannot be made.
    """

    def __init__(self, objects: Objects, manifest: Manifest, options: CacheOptions) -> None:
        self.objects, self.manifest, self._nbytes = objects, manifest, options.nbytes
        try:
            self.path, lock = _own_folder(options.path, manifest.fingerprint)
        except OSError as error:
            raise StoreError(
                f"{options.path}: expected a folder that can be written, where what is kept of "
                f"{objects.url} goes, found: {error.strerror or error}. Name another --cache-dir."
            ) from error
        self._close = weakref.finalize(self, os.close, lock)
        self._kept: set[str] = set()
        self._lock, self._n_users, self._borrowing = Lock(), 0, RLock()
        self._blocks: BlockCache | None = None

    @property
    def small_nbytes(self) -> int:
        """Bytes of the small arrays."""
        lengths = self.manifest.lengths
        return sum(n * dtype_of(name).itemsize for name, n in lengths.items())

    @property
    def blocks_nbytes(self) -> int:
        """Bytes that are left for blocks of columns."""
        return max(0, self._nbytes - self.small_nbytes)

    def blocks(self, geometry: Geometry) -> BlockCache:
        """Return the blocks of columns, which all of the process share; to be released.

        Raises
        ------
        StoreError, UsageError
            If there is no room for them.
        """
        with self._lock:
            if self._blocks is None:
                self._check_room(geometry.slot_nbytes)
                slots = SlotFile(self.path, geometry.slot_nbytes, self.n_slots(geometry))
                self._blocks = BlockCache(slots, geometry, self._fetch_range)
            self._n_users += 1
            return self._blocks

    def release_blocks(self) -> None:
        """Say that the blocks are no longer used; the last one to say so closes them."""
        with self._lock:
            self._n_users -= 1
            if self._n_users == 0 and self._blocks is not None:
                self._blocks.close()
                self._blocks = None

    def _fetch_range(self, chunk: int, offset: int, nbytes: int) -> memoryview:
        try:
            return self.objects.range(chunk_file(chunk), offset, nbytes)
        except FileNotFoundError as error:
            raise StoreError(
                f"{error}: expected {nbytes} bytes at {offset}, found no object. The store is "
                "damaged or was removed; ingest the table again."
            ) from None

    def n_slots(self, geometry: Geometry) -> int:
        """Return how many blocks there is room for."""
        return min(geometry.n_blocks, self.blocks_nbytes // geometry.slot_nbytes)

    def _check_room(self, slot_nbytes: int) -> None:
        """Check that the cache holds the small arrays and enough blocks for a gather.

        Raises
        ------
        UsageError
            If it does not; the size that would do is named.
        """
        needed = self.small_nbytes + FEWEST_SLOTS * slot_nbytes
        if self._nbytes < needed:
            raise UsageError(
                f"--cache-mb: expected at least {ceil_div(needed, MB)} for {self.objects.url}, "
                f"found {self._nbytes // MB}. Its names and other small arrays are kept whole, and "
                f"{FEWEST_SLOTS} blocks of its columns."
            )

    def keep(self, name: str) -> None:
        """Have a small array here from now on, as the manifest says it was written.

        Raises
        ------
        StoreError
            If it cannot be fetched, or is damaged.
        """
        file = f"{name}/c/0"
        if name in self._kept:
            return
        expected = self.manifest.checksums[file]
        if _crc_of(self.path / file) != expected:
            found = self._fetch(file)
            if found != expected:
                raise StoreError(
                    f"{self.objects.url}/{file}: expected CRC-32 {expected:08x}, found "
                    f"{found:08x}. The store is damaged; ingest the table again."
                )
        self._kept.add(name)

    @contextmanager
    def borrowed(self, file: Path) -> Iterator[None]:
        """Have a file of the store, named by its place here, be here while the block lasts.

        Raises
        ------
        StoreError
            If it cannot be fetched; and what the block raises of it, with the file's URL.
        """
        name = file.relative_to(self.path).as_posix()
        with self._borrowing:  # by one thread at a time: the file goes with the first that is done
            was_here = file.exists()
            self._fetch(name)
            try:
                yield
            except StoreError as error:
                text = str(error).replace(str(self.path), str(self.objects.url))
                raise StoreError(text) from error
            finally:
                if not was_here:
                    file.unlink(missing_ok=True)

    def _fetch(self, name: str) -> int:
        """Copy an object here; return its CRC-32."""
        file, crc = self.path / name, 0
        part = file.with_name(f"{file.name}.part")
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            with part.open("wb") as out:
                for piece in self.objects.pieces(name):
                    crc = zlib.crc32(piece, crc)
                    out.write(piece)
            part.replace(file)
        except FileNotFoundError as error:
            raise StoreError(
                f"{error}: expected an object, found none. The store is damaged; ingest the table "
                "again."
            ) from None
        except OSError as error:
            raise StoreError(
                f"{self.path}: expected room for what is kept of {self.objects.url}, found: "
                f"{error.strerror or error}. Make room, or name another --cache-dir."
            ) from error
        finally:
            with suppress(OSError):
                part.unlink(missing_ok=True)
        return crc


def _crc_of(file: Path) -> int | None:
    crc = 0
    try:
        with file.open("rb") as opened:
            while piece := opened.read(MB):
                crc = zlib.crc32(piece, crc)
    except OSError:
        return None
    return crc


def _own_folder(caches: Path, fingerprint: str) -> tuple[Path, int]:
    """Return the first folder of a store that no process holds, and the lock on it."""
    caches.mkdir(parents=True, exist_ok=True)
    for number in range(1, _MOST_FOLDERS):
        name = fingerprint[:32] + (f"-{number}" if number > 1 else "")
        (caches / name).mkdir(exist_ok=True)
        lock = try_lock(caches / name / "lock")
        if lock is not None:
            return caches / name, lock
    raise OSError(f"{_MOST_FOLDERS} folders of this store are in use")
