"""A file of slots of one size, each with the number and the checksum of the block it holds.

Nothing is synced: a slot counts only while its checksum is right, so that whatever a kill or a loss
of power leaves is at worst fetched again.
"""

import os
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import StoreError

_HEADER = np.dtype([("magic", "S8"), ("slot_nbytes", "<u8")])
_ENTRY = np.dtype([("block", "<u4"), ("crc", "<u4")])
_MAGIC = b"srsooc-1"


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
        try:
            flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0)
            self._blocks = os.open(folder / "blocks", flags, 0o600)
            self._index = os.open(folder / "index", flags, 0o600)
            self._entries = self._read_index(n_slots)
            os.truncate(self._blocks, min(os.fstat(self._blocks).st_size, n_slots * slot_nbytes))
        except OSError as error:
            raise self._cannot(error) from error
        self.handles = np.array([self._blocks], np.int32)
        self.held = self._entries["block"].astype(np.int64) - 1

    def _read_index(self, n_slots: int) -> NDArray[Any]:
        """Return the entries that are there; the index begins anew for slots of another size."""
        entries = np.zeros(n_slots, _ENTRY)
        header = np.array([(_MAGIC, self._slot_nbytes)], _HEADER).tobytes()
        found = os.pread(self._index, len(header) + entries.nbytes, 0)
        if found[: len(header)] == header:
            whole = (len(found) - len(header)) // _ENTRY.itemsize
            entries[:whole] = np.frombuffer(found, _ENTRY, whole, len(header))
            os.truncate(self._index, len(header) + entries.nbytes)
        else:
            os.truncate(self._index, 0)
            os.pwrite(self._index, header, 0)
        return entries

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
            os.pwrite(self._index, entry.tobytes(), _HEADER.itemsize + slot * _ENTRY.itemsize)
        except OSError as error:
            raise self._cannot(error) from error
        self._entries[slot] = entry[0]

    def holds(self, slot: int, block: int, nbytes: int) -> bool:
        """Return whether a slot holds the ``nbytes`` bytes of a block as they were written."""
        entry = self._entries[slot]
        if int(entry["block"]) != block + 1:
            return False
        try:
            data = os.pread(self._blocks, nbytes, slot * self._slot_nbytes)
        except OSError:
            return False
        return len(data) == nbytes and zlib.crc32(data, block) == int(entry["crc"])

    def _cannot(self, error: OSError) -> StoreError:
        return StoreError(
            f"{self._folder}: expected room for what is kept of the store, found: "
            f"{error.strerror or error}. Make room, lower --cache-mb, or name another --cache-dir."
        )

    def close(self) -> None:
        """Close the files."""
        os.close(self._blocks)
        os.close(self._index)
