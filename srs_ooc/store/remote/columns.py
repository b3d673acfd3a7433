"""The codes of a store at a URL: paged into blocks by way of a bounded cache on a local disk."""

import weakref

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import StoreError
from srs_ooc.native import _native
from srs_ooc.store.columns import ALL_ROWS, NO_FAMILIES, ColumnStore
from srs_ooc.store.remote.blocks import Geometry
from srs_ooc.store.remote.mirror import Mirror
from srs_ooc.trees.block import Block

_TILE = _native.TILE
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

    def __init__(self, mirror: Mirror) -> None:
        self.path, self.manifest, self.mapped = mirror.path, mirror.manifest, False
        self._geometry = geometry = Geometry.of(mirror.manifest)
        self._cache = mirror.blocks(geometry)
        self._release = weakref.finalize(self, mirror.release_blocks)

    def gather(
        self,
        items: NDArray[np.uint32],
        block: Block,
        rows: NDArray[np.int32] | None = None,
        families: NDArray[np.int32] | None = None,
    ) -> None:
        """Page codes into ``block`` as :meth:`ColumnStore.gather` does."""
        features, family = self._split(items)
        blocks, within = self._geometry.place(features)
        self._cache.ask(np.unique(blocks))
        n_kept = self.manifest.n_rows if rows is None else len(rows)
        n_at_once = max(_TILE, self._cache.n_slots // 4 // _TILE * _TILE)
        for first in range(0, len(items), n_at_once):
            part = slice(first, first + n_at_once)
            wanted, place = np.unique(blocks[part], return_inverse=True)
            with self._cache.pinned(wanted) as slots:
                local = slots[place] * self._geometry.columns + within[part]
                out = block.codes[first * n_kept * block.code_nbytes :]
                self._lay_out(local, family[part], block, out, rows, families)

    def _split(self, items: NDArray[np.uint32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        family, features = np.divmod(items.astype(np.int64), self.manifest.n_features)
        return features, family

    def _lay_out(
        self,
        local: NDArray[np.int64],
        family: NDArray[np.int64],
        block: Block,
        out: NDArray[np.uint8],
        rows: NDArray[np.int32] | None,
        families: NDArray[np.int32] | None,
    ) -> None:
        """Read columns of the slots' file, and decoys of them, into the codes of a block."""
        n_local = self._cache.n_slots * self._geometry.columns
        items = family * n_local + local
        if len(items) and int(items.max()) >= MOST_ITEMS:
            raise StoreError(
                f"{self.path}: expected a cache whose places, and as many for each family of "
                f"decoys, are fewer than 2^32, found {int(items.max())}. Lower --cache-mb."
            )
        pairs = NO_FAMILIES if families is None else families.reshape(-1)
        kept = ALL_ROWS if rows is None else rows
        shape = (n_local, pairs, n_local, self.manifest.n_rows, kept)
        layout = (block.code_nbytes, block.tiled, out)
        try:
            _native.gather_files(self._cache.handles, items.astype(np.uint32), *shape, *layout)
        except RuntimeError as error:
            raise StoreError(
                f"{self.path}: {error}. This is what is kept of the store on this disk: remove "
                "the folder, and try again."
            ) from error

    def advise(self, features: NDArray[np.uint32]) -> int:
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
