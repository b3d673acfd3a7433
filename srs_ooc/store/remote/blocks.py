"""The blocks of a store at a URL that lie on a local disk, and the requests for the others."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Condition

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.text import ceil_div
from srs_ooc.store.manifest import Manifest
from srs_ooc.store.remote.slots import SlotFile

BLOCK_NBYTES = 1 << 16
"""A request takes 10 to 100 ms wherever it goes, in which a connection carries MBs: less than this
is not worth one."""
REQUEST_NBYTES = 1 << 20
"""Neighbouring blocks are asked for together up to this."""
MOST_REQUESTS = 16
"""Requests under way at once; fewer where columns are longer than a request shall be."""
Fetch = Callable[[int, int, int], memoryview]
"""``fetch(chunk, offset, nbytes)`` returns bytes of a chunk file of codes."""


@dataclass(frozen=True)
class Geometry:
    """How the columns of a store make blocks of neighbours, none of which crosses a chunk file.

    Attributes
    ----------
    column_nbytes : int
        Bytes of a column.
    chunk_features : int
        Features of a chunk file.
    n_chunks : int
        Chunk files.
    """

    column_nbytes: int
    chunk_features: int
    n_chunks: int

    @classmethod
    def of(cls, manifest: Manifest) -> "Geometry":
        """Return the blocks of a store."""
        column_nbytes = manifest.n_rows * manifest.code_nbytes
        return cls(column_nbytes, manifest.chunk_features, manifest.n_chunks)

    @property
    def columns(self) -> int:
        """Columns of a block; the last one of a chunk may have fewer."""
        return min(max(1, BLOCK_NBYTES // self.column_nbytes), self.chunk_features)

    @property
    def per_chunk(self) -> int:
        """Blocks of a chunk file."""
        return ceil_div(self.chunk_features, self.columns)

    @property
    def n_blocks(self) -> int:
        """Blocks of the store."""
        return self.n_chunks * self.per_chunk

    @property
    def slot_nbytes(self) -> int:
        """Bytes of a whole block."""
        return self.columns * self.column_nbytes

    @property
    def per_request(self) -> int:
        """Blocks of a request, at most."""
        return max(1, REQUEST_NBYTES // self.slot_nbytes)

    @property
    def n_requests(self) -> int:
        """Requests under way at once."""
        largest = self.per_request * self.slot_nbytes
        return max(2, min(MOST_REQUESTS, MOST_REQUESTS * REQUEST_NBYTES // largest))

    def place(self, features: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the block of each feature and its place there."""
        chunk, inside = np.divmod(features, self.chunk_features)
        block, within = np.divmod(inside, self.columns)
        return chunk * self.per_chunk + block, within

    def nbytes(self, block: int) -> int:
        """Return the bytes of a block."""
        first = block % self.per_chunk * self.columns
        return min(self.columns, self.chunk_features - first) * self.column_nbytes

    def bytes_of(self, first: int, count: int) -> tuple[int, int, int]:
        """Return the chunk, the offset and the bytes of ``count`` blocks from ``first`` on."""
        chunk, block = divmod(first, self.per_chunk)
        nbytes = sum(self.nbytes(first + i) for i in range(count))
        return chunk, block * self.slot_nbytes, nbytes


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

    def ask(self, blocks: NDArray[np.int64]) -> None:
        """Begin to fetch those of ``blocks`` that are missing, as far as there is room."""
        with self._changed:
            missing = blocks[self._slot_of[blocks] < 0]
            free = self._to_give_up(min(len(missing), self.n_slots // 2), blocks)
            self._begin(missing[: len(free)], free)
            self._check(blocks)

    @contextmanager
    def pinned(self, blocks: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
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
        slots, waits = self._pin(blocks)
        try:
            for wait in waits:
                wait.result()
            yield slots
        finally:
            self._unpin(slots)

    def _pin(self, blocks: NDArray[np.int64]) -> tuple[NDArray[np.int64], list[Future[None]]]:
        with self._changed:
            while True:
                missing = blocks[self._slot_of[blocks] < 0]
                free = self._to_give_up(len(missing), blocks)
                if len(free) == len(missing):  # all or none: who waits holds nothing
                    break
                self._changed.wait()
            self._begin(missing, free)
            self._check(blocks)
            slots = self._slot_of[blocks].astype(np.int64)
            self._n_pins[slots] += 1
            self._clock += 1
            self._wanted_at[slots] = self._clock
            pending = self._pending
            waits = {pending[b] for b in blocks.tolist() if b in pending} if pending else set()
            return slots, list(waits)

    def _unpin(self, slots: NDArray[np.int64]) -> None:
        with self._changed:
            self._n_pins[slots] -= 1
            self._changed.notify_all()

    def _to_give_up(self, count: int, wanted: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return up to ``count`` slots, least recently wanted, that hold none of ``wanted``."""
        if count == 0:
            return np.zeros(0, np.int64)
        idle = self._n_pins == 0
        held = self._slot_of[wanted]
        idle[held[held >= 0]] = False
        free = np.flatnonzero(idle)
        if len(free) > count:
            free = free[np.argpartition(self._wanted_at[free], count - 1)[:count]]
        return free

    def _begin(self, missing: NDArray[np.int64], free: NDArray[np.int64]) -> None:
        """Give ``missing`` the slots ``free``, and begin to fetch them, neighbours together."""
        if len(missing) == 0:
            return
        given_up = self._block_of[free]
        self._slot_of[given_up[given_up >= 0]] = -1
        self._block_of[free], self._slot_of[missing] = missing, free
        self._is_checked[free] = True
        self._clock += 1
        self._wanted_at[free] = self._clock
        geometry = self._geometry
        is_first = np.diff(missing, prepend=-2) != 1
        is_first |= missing % geometry.per_chunk == 0
        for run in np.split(missing, np.flatnonzero(is_first)[1:]):
            for start in range(0, len(run), geometry.per_request):
                self._submit(run[start : start + geometry.per_request].tolist(), self._load)

    def _check(self, blocks: NDArray[np.int64]) -> None:
        """Begin to read blocks that an earlier process left: they may be damaged."""
        slots = self._slot_of[blocks]
        there = slots >= 0
        for block in blocks[there][~self._is_checked[slots[there]]].tolist():
            self._is_checked[self._slot_of[block]] = True
            self._submit([block], self._look)

    def _submit(self, blocks: list[int], work: Callable[[list[int], list[int]], None]) -> None:
        slots = [int(self._slot_of[block]) for block in blocks]
        self._n_pins[slots] += 1
        future = self._pool.submit(self._done, blocks, slots, work)
        self._pending |= dict.fromkeys(blocks, future)

    def _done(
        self, blocks: list[int], slots: list[int], work: Callable[[list[int], list[int]], None]
    ) -> None:
        failed = True
        try:
            work(blocks, slots)
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

    def _look(self, blocks: list[int], slots: list[int]) -> None:
        if not self._slots.holds(slots[0], blocks[0], self._geometry.nbytes(blocks[0])):
            self._load(blocks, slots)

    def _load(self, blocks: list[int], slots: list[int]) -> None:
        data = self._fetch(*self._geometry.bytes_of(blocks[0], len(blocks)))
        start = 0
        for block, slot in zip(blocks, slots, strict=True):
            end = start + self._geometry.nbytes(block)
            self._slots.write(slot, block, data[start:end])
            start = end

    def close(self) -> None:
        """Wait for the requests under way, and close the slots."""
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._slots.close()
