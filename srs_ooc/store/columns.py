"""The column store, open for reading: paging subspaces of its codes into blocks."""

import mmap
import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import StoreError
from srs_ooc.base.files import Closing
from srs_ooc.native import _native
from srs_ooc.store.check import check_chunks
from srs_ooc.store.layout import cannot_read, chunk_file
from srs_ooc.store.manifest import Manifest
from srs_ooc.trees.block import Block

ALL_ROWS = np.zeros(0, dtype=np.int32)
NO_FAMILIES = np.zeros(0, dtype=np.int32)


class ColumnStore(Closing):
    """The codes of a store on disk, by feature in stored order.

    Parameters
    ----------
    path : Path
        Folder of the store.
    manifest : Manifest
        Its manifest; the store must be looked at again once this is open
        (:meth:`srs_ooc.store.store.Store.unchanged`).
    mapped : bool
        Map the chunk files into memory, where they stay resident once touched (for a store that
        fits its lease); otherwise each gather reads what it needs into the block.

    Raises
    ------
    StoreError
        If a chunk file is missing or has the wrong size. All sizes are checked here: an access past
        the end of a mapped file would kill the process.
    """

    n_ahead = 2
    """Subspaces to ask for beyond those being paged in and grown."""

    def __init__(self, path: Path, manifest: Manifest, *, mapped: bool) -> None:
        self.path = path
        self.manifest = manifest
        check_chunks(path, manifest)
        self.mapped = mapped
        self._maps: list[mmap.mmap] = []
        self._descriptors = np.zeros(0, dtype=np.int32)
        self._addresses = np.zeros(0, dtype=np.uint64)
        self._open()

    def _open(self) -> None:
        addresses, descriptors = [], []
        for index in range(self.manifest.n_chunks):
            file = self.path / chunk_file(index)
            try:
                descriptor = os.open(file, os.O_RDONLY)
            except OSError as error:
                raise cannot_read(file, error) from error
            if not self.mapped:
                descriptors.append(descriptor)
                continue
            view = self._map(file, descriptor)
            if hasattr(mmap, "MADV_RANDOM"):
                # It fits and will be wanted: one long read now, then pages are met at random.
                view.madvise(mmap.MADV_WILLNEED)
                view.madvise(mmap.MADV_RANDOM)
            self._maps.append(view)
            addresses.append(np.frombuffer(view, dtype=np.uint8).ctypes.data)
        self._addresses = np.array(addresses, dtype=np.uint64)
        self._descriptors = np.array(descriptors, dtype=np.int32)

    def _map(self, file: Path, descriptor: int) -> mmap.mmap:
        try:
            return mmap.mmap(descriptor, self.manifest.chunk_nbytes, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            self.close()
            found = getattr(error, "strerror", None) or error  # ValueError: the file was cut
            raise StoreError(
                f"{file}: expected a file that can be mapped into memory, found: {found}. Check "
                "the disk and try again; a network disk may not map files: copy the store to a "
                "local one."
            ) from error
        finally:
            os.close(descriptor)

    def gather(
        self,
        items: NDArray[np.uint32],
        block: Block,
        rows: NDArray[np.int32] | None = None,
        families: NDArray[np.int32] | None = None,
    ) -> None:
        """Page the codes of ``items`` into the first columns of ``block``, without the GIL.

        Parameters
        ----------
        items : uint32 (n,)
            Stored positions; ascending ones are read with the fewest requests. With p features,
            item ``m p + f`` is the decoy of feature f in family m, counted from 1.
        block : Block
            With room for them, and as many rows as are kept.
        rows : int32 (n_kept,), optional
            Rows of the store to keep, in this order; default all.
        families : int32 (n_families, n_kept), optional
            The row of the block that a decoy of each family takes at each row: involutions.

        Raises
        ------
        StoreError
            If a chunk file cannot be read to its expected end.
        """
        manifest = self.manifest
        pairs = NO_FAMILIES if families is None else families.reshape(-1)
        kept = ALL_ROWS if rows is None else rows
        shape = (manifest.n_features, pairs, manifest.chunk_features, manifest.n_rows, kept)
        layout = (block.code_nbytes, block.tiled, block.codes)
        try:
            if self.mapped:
                _native.gather_mapped(self._addresses, items, *shape, *layout)
            else:
                _native.gather_files(self._descriptors, items, *shape, *layout)
        except RuntimeError as error:
            raise StoreError(
                f"{self.path}: {error}. Try again if it is the disk's error; else `srs-ooc verify` "
                "says what is damaged: ingest the table again."
            ) from error

    def advise(self, features: NDArray[np.uint32]) -> int:
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
        manifest = self.manifest
        column_nbytes = manifest.n_rows * manifest.code_nbytes
        return _native.advise_files(
            self._descriptors, features, manifest.chunk_features, column_nbytes
        )

    def close(self) -> None:
        """Close the files; maps go when nothing refers to them."""
        for descriptor in self._descriptors:
            os.close(int(descriptor))
        self._descriptors = np.zeros(0, dtype=np.int32)
        self._addresses = np.zeros(0, dtype=np.uint64)
        self._maps.clear()
