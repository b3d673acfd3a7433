"""A PLINK 1 ``.bed`` file: two bits a genotype, variant by variant; it may be the codes of a store.

The format is described at https://www.cog-genomics.org/plink/1.9/formats#bed. Of such a store the
``.bed`` holds codes and values, which follow from them. It is ``genotypes.bed`` in the store, in
its order and of its rows; or, of a linked store, a file elsewhere, of which ``link.json`` says
where it is and when it was last changed.
"""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.arrays import Bytes, Floats32, Integers, Ints32, Uints32
from srs_ooc.base.errors import InputError, StoreError, unfit
from srs_ooc.native import _native
from srs_ooc.store.arrays import read_array
from srs_ooc.store.manifest import Manifest, cannot_read, damaged
from srs_ooc.store.values import ValuesReader, crc32c

MAGIC, _BY_VARIANT = b"\x6c\x1b", 1
HEAD = MAGIC + bytes([_BY_VARIANT])
HEAD_NBYTES = len(HEAD)
_OF_TWO_BITS = np.array([2, np.nan, 1, 0], np.float32)  # copies of A1
_DOSAGES = _OF_TWO_BITS[(np.arange(256)[:, None] >> np.arange(0, 8, 2)) & 3].view(np.complex128)
N_DOSAGES = 3
LINK, OWN = "link.json", "genotypes.bed"
"""What a store has beside its arrays: where its file is, or the file."""


@dataclass(frozen=True)
class BedFile:
    """A ``.bed`` file of so many samples and variants.

    Parameters
    ----------
    path : Path
        The file.
    n_samples, n_variants : int
        As the files beside it say.
    """

    path: Path
    n_samples: int
    n_variants: int

    @property
    def line_nbytes(self) -> int:
        """Bytes of a variant."""
        return (self.n_samples + 3) // 4

    @property
    def nbytes(self) -> int:
        """Bytes that the file must have."""
        return HEAD_NBYTES + self.n_variants * self.line_nbytes

    def check(self, samples: str, variants: str) -> None:
        """Check the beginning of the file, and its size; the files beside it are named so.

        Raises
        ------
        InputError
            If it is no such file.
        """
        with self.path.open("rb") as file:
            head, size = file.read(HEAD_NBYTES), os.fstat(file.fileno()).st_size
        if not head.startswith(MAGIC) or len(head) < HEAD_NBYTES or head[2] != _BY_VARIANT:
            found = "samples one after another" if head[2:] == b"\0" else f"{head.hex(' ')}"
            expected = "a .bed file with variants one after another (6c 1b 01)"
            remedy = "Make one with `plink --bfile NAME --make-bed --out NEW`."
            raise unfit(self.path, expected, found, remedy)
        if size != self.nbytes:
            raise InputError(
                f"{self.path}: expected {self.nbytes:,} bytes for the {self.n_variants:,} variants "
                f"of {variants} and the {self.n_samples:,} samples of {samples}, found {size:,}. "
                "Get the three files again, as they belong together."
            )

    def lines(self, positions: Integers) -> Bytes:
        """Return variants as they are, uint8 (count, line_nbytes); neighbours in one read.

        Raises
        ------
        InputError
            If the file ends before.
        """
        lines = np.empty((len(positions), self.line_nbytes), np.uint8)
        try:
            with self.path.open("rb", buffering=0) as file:
                handle, places = np.array([file.fileno()], np.int32), positions.astype(np.int64)
                _native.read_lines(handle, HEAD_NBYTES, self.line_nbytes, places, lines.reshape(-1))
        except RuntimeError as error:
            expected = "as many bytes as when it was opened"
            remedy = "Leave the file alone until the command has ended."
            raise unfit(self.path, expected, "its end before", remedy) from error
        return lines

    def dosages(self, lines: Bytes) -> Floats32:
        """Return dosages of A1, float32 (count, n_samples), NaN where missing."""
        dosages: Floats32 = _DOSAGES.take(lines).view(np.float32)  # four for a byte
        return dosages[:, : self.n_samples]

    def mask(self, rows: Ints32) -> Bytes:
        """Return a line with 01 for each of some samples, 00 for others."""
        fields = np.zeros((self.line_nbytes, 4), np.uint8)
        fields.reshape(-1)[rows] = 1
        kept: Bytes = np.bitwise_or.reduce(fields << np.arange(0, 8, 2, dtype=np.uint8), axis=1)
        return kept

    def counts(self, lines: Bytes, kept: Bytes) -> Uints32:
        """Return how many samples of a mask have dosage 0, 1, 2, uint32 (count, 3)."""
        out = np.empty((len(lines), N_DOSAGES), np.uint32)
        _native.count_genotypes(lines.reshape(-1), kept, out.reshape(-1))
        return out


def is_there(store: Path) -> bool:
    """Return whether a folder holds such a file, or says where it is."""
    return (store / OWN).is_file() or (store / LINK).is_file()


def write_link(folder: Path, bed: Path) -> None:
    """Write where the file of a linked store is, and when it was last changed."""
    link = {"path": str(bed.resolve()), "mtime_ns": bed.stat().st_mtime_ns}
    (folder / LINK).write_text(json.dumps(link, indent=2), "utf-8")


def file_of(store: Path, manifest: Manifest) -> BedFile:
    """Return the file of a store: its own, or that which it is linked to.

    This one is where it was, or beside the store.

    Raises
    ------
    StoreError
        If it is gone, of another size, or was changed since; or what the store says of it cannot
        be.
    """
    shape = manifest.n_linked_rows, manifest.n_features
    if not manifest.is_linked:
        own = BedFile(store / OWN, *shape)
        try:
            own.check("the manifest", "the manifest")
        except OSError as error:
            raise damaged(own.path, error) from error
        except InputError as error:
            expected = f"expected the head of a .bed file and {own.nbytes:,} bytes, found others"
            raise damaged(own.path, expected) from error
        return own
    try:
        link: Any = json.loads((store / LINK).read_text("utf-8"))
        path, mtime_ns = Path(link["path"]), int(link["mtime_ns"])
    except OSError as error:
        raise cannot_read(store / LINK, error) from error
    except (ValueError, KeyError, TypeError) as error:
        raise damaged(store / LINK, f"expected where the .bed file is, found {error!r}") from error
    if not path.is_file():
        path = store.parent / path.name
    again = f"Put it back, or link it again: `srs-ooc ingest --link --overwrite {path} {store}`; "
    again += "runs go on where its genotypes are the same."
    if not path.is_file():
        raise StoreError(f"{store}: expected the .bed file {link['path']}, found none. {again}")
    bed, found = BedFile(path, *shape), path.stat()
    if (found.st_size, found.st_mtime_ns) != (bed.nbytes, mtime_ns):
        what = "another size" if found.st_size != bed.nbytes else "that it was changed"
        raise StoreError(
            f"{path}: expected the file that {store} is linked to, found {what}. {again}"
        )
    return bed


class BedValues(ValuesReader):
    """The values of a store whose codes are in a ``.bed``, in chunks with a checksum each, as any.

    Parameters
    ----------
    path, manifest
        As of the base.
    bed : BedFile
        The file.
    """

    def __init__(self, path: Path, manifest: Manifest, bed: BedFile) -> None:
        super().__init__(path, manifest)
        self._bed, self._n_features = bed, manifest.n_features
        self._rows = np.asarray(read_array(path, manifest, "linked_rows"))

    def read_chunk(self, index: int) -> tuple[NDArray[Any], int]:
        """Read a chunk as the base does; it is padded with NaN."""
        (features, rows), (place, across) = self._chunk, divmod(index, self._n_across)
        first = place * features
        count = min(features, self._n_features - first)
        try:
            lines = self._bed.lines(np.arange(first, first + count))
        except InputError as error:
            raise StoreError(str(error)) from error
        if crc32c(lines.tobytes()) != int(self._crcs[index]):
            found = f"other genotypes, in variants {first + 1} to {first + count}"
            raise damaged(
                self._bed.path, f"expected those of the store {self._path}, found {found}"
            )
        chosen = self._rows[across * rows : (across + 1) * rows]
        out = np.full((features, rows), np.nan, self._dtype)
        out[:count, : len(chosen)] = self._bed.dosages(lines)[:, chosen]
        return out, lines.nbytes if across == 0 else 0
