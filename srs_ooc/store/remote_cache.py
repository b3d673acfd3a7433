"""What is kept on a local disk of a store at a URL: small arrays whole, columns in blocks.

Blocks lie in a bounded file of slots, each with the number and the checksum of what it holds.
"""

import os
import weakref
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from threading import Condition, Lock, RLock

import numpy as np

from srs_ooc.base.arrays import Ints
from srs_ooc.base.errors import StoreError, UsageError
from srs_ooc.base.files import release_lock, try_lock
from srs_ooc.base.text import MB, ceil_div
from srs_ooc.store.arrays import codes_changed
from srs_ooc.store.manifest import Manifest, chunk_file, damaged, dtype_of, verify_file
from srs_ooc.store.objects import Objects

# A file of slots of one size, each with the number and the checksum of the block it holds.
#
# Nothing is synced: a slot counts only while its checksum is right, so that whatever a kill, a loss
# of power or slots of another size leave is at worst fetched again.

_ENTRY = np.dtype([("block", "<u4"), ("crc", "<u4")])
INDEX = "index"


class SlotFile:
    """The slots in a folder, as they were left there.

    Parameters
    ----------
    folder : Path
        Of the cache; no other process may use it.
    slot_nbytes : int
        Bytes of a slot.
    n_slots : int
        Slots that there may be; what lies beyond is given up.

    Attributes
    ----------
    held : int64 (n_slots,)
        The block that each slot held when this was opened; -1 for none.
    handles : int32 (1,)
        Descriptor of the slots' file.

    Raises
    ------
    StoreError
        If the folder cannot be written.
    """

    def __init__(self, folder: Path, slot_nbytes: int, n_slots: int) -> None:
        self._folder, self._slot_nbytes = folder, slot_nbytes
        self._entries = entries = np.zeros(n_slots, _ENTRY)
        try:
            flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0)
            self._blocks = os.open(folder / "blocks", flags, 0o600)
            self._index = os.open(folder / INDEX, flags, 0o600)
            found = os.pread(self._index, entries.nbytes, 0)
            whole = len(found) // _ENTRY.itemsize
            entries[:whole] = np.frombuffer(found, _ENTRY, whole)
            os.truncate(self._index, entries.nbytes)
            os.truncate(self._blocks, min(os.fstat(self._blocks).st_size, n_slots * slot_nbytes))
        except OSError as error:
            raise self._cannot(error) from error
        self.handles = np.array([self._blocks], np.int32)
        self.held = entries["block"].astype(np.int64) - 1

    def write(self, slot: int, block: int, data: memoryview) -> None:
        """Put a block into a slot.

        Raises
        ------
        StoreError
            If the disk refuses it.
        """
        entry = np.array([(block + 1, zlib.crc32(data, block))], _ENTRY)
        try:
            done = 0
            while done < len(data):
                done += os.pwrite(self._blocks, data[done:], slot * self._slot_nbytes + done)
            os.pwrite(self._index, entry.tobytes(), slot * _ENTRY.itemsize)
        except OSError as error:
            raise self._cannot(error) from error
        self._entries[slot] = entry[0]

    def holds(self, slot: int, block: int, nbytes: int) -> bool:
        """Return whether a slot holds the ``nbytes`` bytes of its block as they were written."""
        try:
            data = os.pread(self._blocks, nbytes, slot * self._slot_nbytes)
        except OSError:
            return False
        return len(data) == nbytes and zlib.crc32(data, block) == int(self._entries[slot]["crc"])

    def _cannot(self, error: OSError) -> StoreError:
        return StoreError(
            f"{self._folder}: expected room for what is kept of the store, found: "
            f"{error.strerror or error}. Make room, lower {MB_VARIABLE}, or name another "
            f"{DIR_VARIABLE}."
        )

    def close(self) -> None:
        """Close the files."""
        os.close(self._blocks)
        os.close(self._index)


# The blocks of a store at a URL that lie on a local disk, and the requests for the others.

BLOCK_NBYTES = 1 << 16
"""A request takes 10 to 100 ms wherever it goes, in which a connection carries MBs: less than this
is not worth one."""
REQUEST_NBYTES = 1 << 20
"""Neighbouring blocks are asked for together up to this."""
MOST_REQUESTS = 16
"""Requests under way at once; fewer where columns are longer than a request shall be."""


class Geometry:
    """How the columns of a store make blocks of neighbours, none of which crosses a chunk file.

    Attributes
    ----------
    columns : int
        Columns of a block; the last one of a chunk may have fewer.
    per_chunk, n_blocks : int
        Blocks of a chunk file, and of the store.
    slot_nbytes : int
        Bytes of a whole block.
    per_request, n_requests : int
        Blocks of a request at most, and requests under way at once.
    """

    def __init__(self, manifest: Manifest) -> None:
        self._column_nbytes = manifest.n_rows * manifest.code_nbytes
        self._chunk_features = manifest.chunk_features
        self.columns = min(max(1, BLOCK_NBYTES // self._column_nbytes), self._chunk_features)
        self.per_chunk = ceil_div(self._chunk_features, self.columns)
        self.n_blocks = manifest.n_chunks * self.per_chunk
        self.slot_nbytes = self.columns * self._column_nbytes
        self.per_request = max(1, REQUEST_NBYTES // self.slot_nbytes)
        largest = self.per_request * self.slot_nbytes
        self.n_requests = max(2, min(MOST_REQUESTS, MOST_REQUESTS * REQUEST_NBYTES // largest))

    def place(self, features: Ints) -> tuple[Ints, Ints]:
        """Return the block of each feature and its place there."""
        chunk, inside = np.divmod(features, self._chunk_features)
        block, within = np.divmod(inside, self.columns)
        return chunk * self.per_chunk + block, within

    def nbytes(self, block: int) -> int:
        """Return the bytes of a block."""
        first = block % self.per_chunk * self.columns
        return min(self.columns, self._chunk_features - first) * self._column_nbytes

    def reading_nbytes(self, n_slots: int) -> int:
        """Return the memory of reading by way of ``n_slots`` slots.

        The library that reads URLs and its connections; requests under way, received and being
        written; of a slot what it holds, since when, and looking for one to give up.
        """
        under_way = 2 * self.n_requests * self.per_request * self.slot_nbytes
        return 24 * MB + under_way + 48 * n_slots + 4 * self.n_blocks


Fetch = Callable[[int, int, int], memoryview]
"""``fetch(chunk, offset, nbytes)`` returns bytes of a chunk file of codes."""


class BlockCache:
    """Blocks in slots: those wanted are pinned, and fetched where they are missing.

    The least recently wanted block gives way. May be used by several threads at once.

    Parameters
    ----------
    slots : SlotFile
        Where blocks lie.
    geometry : Geometry
        What they are.
    fetch : callable
        Returns bytes of a chunk file.
    """

    def __init__(self, slots: SlotFile, geometry: Geometry, fetch: Fetch) -> None:
        self._slots, self._geometry, self._fetch = slots, geometry, fetch
        self.n_slots, self.handles = len(slots.held), slots.handles
        self._slot_of = np.full(geometry.n_blocks, -1, np.int32)
        self._block_of = np.where(slots.held < geometry.n_blocks, slots.held, -1)
        there = np.flatnonzero(self._block_of >= 0)
        self._slot_of[self._block_of[there]] = there
        self._block_of[there[self._slot_of[self._block_of[there]] != there]] = -1
        self._is_checked = np.zeros(self.n_slots, np.bool_)
        self._n_pins = np.zeros(self.n_slots, np.int32)
        self._wanted_at = np.zeros(self.n_slots, np.int64)
        self._clock = 0
        self._pending: dict[int, Future[None]] = {}
        self._changed = Condition()
        self._pool = ThreadPoolExecutor(geometry.n_requests, "fetch")

    def ask(self, blocks: Ints) -> None:
        """Begin to fetch those of ``blocks`` that are missing, as far as there is room."""
        with self._changed:
            missing, free = self._room_for(blocks, self.n_slots // 2)
            self._begin(blocks, missing[: len(free)], free)

    @contextmanager
    def pinned(self, blocks: Ints) -> Iterator[Ints]:
        """Have ``blocks``, ascending, at most as many as slots, be there in the block.

        Yields
        ------
        int64 (n,)
            The slot of each.

        Raises
        ------
        StoreError
            If one cannot be fetched.
        """
        with self._changed:
            missing, free = self._room_for(blocks, self.n_slots)
            while len(free) < len(missing):  # all or none: who waits holds nothing
                self._changed.wait()
                missing, free = self._room_for(blocks, self.n_slots)
            self._begin(blocks, missing, free)
            slots = self._slot_of[blocks].astype(np.int64)
            self._n_pins[slots] += 1
            self._clock += 1
            self._wanted_at[slots] = self._clock
            waits = [self._pending[b] for b in blocks.tolist() if b in self._pending]
        try:
            for wait in waits:
                wait.result()
            yield slots
        finally:
            with self._changed:
                self._n_pins[slots] -= 1
                self._changed.notify_all()

    def _room_for(self, wanted: Ints, most: int) -> tuple[Ints, Ints]:
        """Return which of ``wanted`` are missing, and slots for them, ``most`` at most.

        They are those least recently wanted, and none that holds one of ``wanted``.
        """
        idle, held = self._n_pins == 0, self._slot_of[wanted]
        idle[held[held >= 0]] = False
        missing, free = wanted[held < 0], np.flatnonzero(idle)
        if len(free) > (count := min(len(missing), most)):
            free = free[np.argpartition(self._wanted_at[free], count - 1)[:count]]
        return missing, free

    def _begin(self, blocks: Ints, missing: Ints, free: Ints) -> None:
        """Give ``missing`` the slots ``free``, and begin to fetch them, neighbours together.

        Those of ``blocks`` that an earlier process left are read: they may be damaged.
        """
        given_up = self._block_of[free]
        self._slot_of[given_up[given_up >= 0]] = -1
        self._block_of[free], self._slot_of[missing] = missing, free
        self._is_checked[free] = True
        self._clock += 1
        self._wanted_at[free] = self._clock
        geometry = self._geometry
        is_first = (np.diff(missing, prepend=-2) != 1) | (missing % geometry.per_chunk == 0)
        for run in np.split(missing, np.flatnonzero(is_first)[1:]):
            for start in range(0, len(run), geometry.per_request):
                self._submit(run[start : start + geometry.per_request].tolist())
        slots = self._slot_of[blocks]
        there = slots >= 0
        for block in blocks[there][~self._is_checked[slots[there]]].tolist():
            self._is_checked[self._slot_of[block]] = True
            self._submit([block], is_left=True)

    def _submit(self, blocks: list[int], *, is_left: bool = False) -> None:
        slots = [int(self._slot_of[block]) for block in blocks]
        self._n_pins[slots] += 1
        task = self._pool.submit(self._load, blocks, slots, is_left)
        self._pending |= dict.fromkeys(blocks, task)

    def _load(self, blocks: list[int], slots: list[int], is_left: bool) -> None:
        """Fetch neighbours into their slots; one that was left there only if it is damaged."""
        failed, geometry = True, self._geometry
        chunk, place = divmod(blocks[0], geometry.per_chunk)
        ends = np.cumsum([0, *map(geometry.nbytes, blocks)]).tolist()
        try:
            if not (is_left and self._slots.holds(slots[0], blocks[0], ends[-1])):
                data = self._fetch(chunk, place * geometry.slot_nbytes, ends[-1])
                for block, slot, (start, end) in zip(blocks, slots, pairwise(ends), strict=True):
                    self._slots.write(slot, block, data[start:end])
            failed = False
        finally:
            with self._changed:
                if failed:
                    self._slot_of[blocks] = -1
                    self._block_of[slots] = -1
                for block in blocks:
                    del self._pending[block]
                self._n_pins[slots] -= 1
                self._changed.notify_all()

    def close(self) -> None:
        """Wait for the requests under way, and close the slots."""
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._slots.close()


# Where and how much is kept on a local disk of stores at a URL.

DIR_VARIABLE, MB_VARIABLE = "SRS_OOC_CACHE_DIR", "SRS_OOC_CACHE_MB"
DEFAULT_CACHE_MB = 2048


@dataclass(frozen=True)
class CacheOptions:
    """A cache's folder and its bound; those of a worker elsewhere are the run's, where it has some.

    Attributes
    ----------
    folder : str or None
        Holds a folder for each store; None for what the environment says.
    megabytes : int, text or None
        MB of 10**6 bytes of each store, at most; None for what the environment says.
    """

    folder: str | None = field(default_factory=lambda: os.environ.get(DIR_VARIABLE))
    megabytes: int | str | None = field(default_factory=lambda: os.environ.get(MB_VARIABLE))

    @property
    def path(self) -> Path:
        """The folder: as given, or ``SRS_OOC_CACHE_DIR``, or srs-ooc in the user's caches."""
        if given := self.folder or os.environ.get(DIR_VARIABLE):
            return Path(given).absolute()
        caches = os.environ.get("XDG_CACHE_HOME")
        return (Path(caches) if caches else Path.home() / ".cache") / "srs-ooc"

    @property
    def most_nbytes(self) -> int:
        """The bound in bytes: as given, or ``SRS_OOC_CACHE_MB``, or 2048 MB.

        Raises
        ------
        UsageError
            If the environment holds no number.
        """
        text = str(self.megabytes or os.environ.get(MB_VARIABLE, DEFAULT_CACHE_MB))
        if not (text.isascii() and text.isdigit() and 0 < int(text) < 10**9):
            raise UsageError(f"{MB_VARIABLE}: expected MB as a whole number, found {text!r}.")
        return int(text) * MB


# What is kept on a local disk of a store at a URL: its small arrays whole, its columns in blocks.
#
# The folder is the store's fingerprint's, and held by one process at a time; another process gets a
# folder of its own beside it.

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
    geometry : Geometry
        How columns make blocks.
    n_slots : int
        How many blocks there is room for.

    Raises
    ------
    StoreError
        If it cannot be made.
    """

    def __init__(self, objects: Objects, manifest: Manifest, options: CacheOptions) -> None:
        self.objects, self.manifest = objects, manifest
        self._nbytes, self.geometry = options.most_nbytes, Geometry(manifest)
        self._small_nbytes = sum(
            n * dtype_of(name).itemsize for name, n in manifest.lengths.items()
        )
        left = max(0, self._nbytes - self._small_nbytes)
        self.n_slots = min(self.geometry.n_blocks, left // self.geometry.slot_nbytes)
        try:
            self.path, lock = _own_folder(options.path, manifest.fingerprint)
        except OSError as error:
            raise StoreError(
                f"{options.path}: expected a folder that can be written, where what is kept of "
                f"{objects.url} goes, found: {error.strerror or error}. Name another "
                f"{DIR_VARIABLE}."
            ) from error
        self._close = weakref.finalize(self, release_lock, lock)
        self._kept: set[str] = set()
        self._lock, self._n_users, self._borrowing = Lock(), 0, RLock()
        self._blocks: BlockCache | None = None
        self._stamps: dict[int, int] = {}

    def blocks(self) -> BlockCache:
        """Return the blocks of columns, which all of the process share; to be released.

        Raises
        ------
        StoreError, UsageError
            If there is no room for them, or the cache does not hold the small arrays and enough
            blocks for a gather.
        """
        with self._lock:
            geometry = self.geometry
            if self._blocks is None:
                needed = self._small_nbytes + FEWEST_SLOTS * geometry.slot_nbytes
                if self._nbytes < needed:
                    raise UsageError(
                        f"{MB_VARIABLE}: expected at least {ceil_div(needed, MB)} for "
                        f"{self.objects.url}, found {self._nbytes // MB}. Its names and other "
                        f"small arrays are kept whole, and {FEWEST_SLOTS} blocks of its columns."
                    )
                slots = SlotFile(self.path, geometry.slot_nbytes, self.n_slots)
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

    def forget(self) -> None:
        """Let no one take up the blocks that are here: some may be of another store."""
        self._stamps.clear()
        (self.path / INDEX).unlink(missing_ok=True)

    def _fetch_range(self, chunk: int, offset: int, nbytes: int) -> memoryview:
        try:
            data, stamp = self.objects.range(chunk_file(chunk), offset, nbytes)
        except FileNotFoundError as error:
            raise StoreError(
                f"{error}: expected {nbytes} bytes at {offset}, found no object. The store is "
                "damaged or was removed; ingest the table again."
            ) from None
        self.check_same(chunk, stamp)
        return data

    def check_same(self, chunk: int, stamp: int) -> None:
        """Check that an object of codes is the one that was seen first.

        Raises
        ------
        StoreError
            If it was written again meanwhile.
        """
        if self._stamps.setdefault(chunk, stamp) != stamp:
            (self.path / INDEX).unlink(missing_ok=True)
            raise codes_changed(f"{self.objects.url}/{chunk_file(chunk)}")

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
        try:
            verify_file(self.path, file, expected)
        except StoreError:  # it is not here, or not whole
            if (found := self._fetch(file)) != expected:
                what = f"expected CRC-32 {expected:08x}, found {found:08x}"
                raise damaged(f"{self.objects.url}/{file}", what) from None
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
            raise damaged(error, "expected an object, found none") from None
        except OSError as error:
            raise StoreError(
                f"{self.path}: expected room for what is kept of {self.objects.url}, found: "
                f"{error.strerror or error}. Make room, or name another {DIR_VARIABLE}."
            ) from error
        finally:
            with suppress(OSError):
                part.unlink(missing_ok=True)
        return crc


def _own_folder(caches: Path, fingerprint: str) -> tuple[Path, int]:
    """Return the first folder of a store that no process holds, and the lock on it."""
    caches.mkdir(parents=True, exist_ok=True)
    for number in range(1, _MOST_FOLDERS):
        name = fingerprint[:32] + (f"-{number}" if number > 1 else "")
        (caches / name).mkdir(exist_ok=True)
        if (lock := try_lock(caches / name / "lock")) is not None:
            return caches / name, lock
    raise OSError(f"{_MOST_FOLDERS} folders of this store are in use")
