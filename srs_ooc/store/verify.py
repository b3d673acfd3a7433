"""Reading every byte of a store that a command or a Zarr client could use, in bounded memory."""

from dataclasses import dataclass
from pathlib import Path

from srs_ooc.base.errors import StoreError
from srs_ooc.base.text import MB
from srs_ooc.store.files import LOCAL, Files
from srs_ooc.store.layout import COORDINATES, cannot_read, verify_file
from srs_ooc.store.manifest import Manifest, canonical, parse
from srs_ooc.store.metadata import documents
from srs_ooc.store.names import Names
from srs_ooc.store.reading import Categories
from srs_ooc.store.small_arrays import length_of, verify_array
from srs_ooc.store.values import ValuesReader

_READING_NBYTES = 8 * MB
"""Pieces of files, a chunk of values and its code, and what is read of them."""
_NBYTES_PER_FEATURE, _NBYTES_PER_CATEGORICAL = 4, 24
"""Which positions were seen, kinds and counts of codes; and places of categorical features."""


def verifying_nbytes(manifest: Manifest) -> int:
    """Return the memory that verifying a store takes, in bytes."""
    n_categorical = manifest.kind_counts["categorical"]
    per_feature = _NBYTES_PER_FEATURE * manifest.n_features
    return _READING_NBYTES + per_feature + _NBYTES_PER_CATEGORICAL * n_categorical


@dataclass(frozen=True)
class Verified:
    """What was read of a store and found as it was written.

    Attributes
    ----------
    nbytes : int
        Bytes read.
    files : dict
        Number of files, by what they hold.
    knows_places : bool
        Whether chunks of values were compared with their places; format 2 cannot tell.
    """

    nbytes: int
    files: dict[str, int]
    knows_places: bool


def verify_store(path: Path, manifest: Manifest, files: Files = LOCAL) -> Verified:
    """Read a whole store and compare it with its checksums, and its parts with each other.

    ``files`` has its files be there, whose sizes have been checked.

    Raises
    ------
    StoreError
        Naming the first file that differs.
    """
    counts = {"metadata": 0, "codes": 0, "small arrays": 0, "coordinates": 0, "values": 0}
    counts["metadata"], nbytes = _verify_documents(path, manifest, files)
    for name, crc in manifest.checksums.items():
        array = name.split("/")[0]
        with files.borrowed(path / name):
            if array in manifest.small_arrays:
                counts["small arrays"] += 1
                nbytes += verify_array(path, manifest, array)
            else:
                counts["coordinates" if array in COORDINATES else "codes"] += 1
                nbytes += verify_file(path, name, crc)
    _verify_texts(path, manifest)
    for name in manifest.float_arrays:
        reader = ValuesReader(path, manifest, name, files)
        counts["values"] += reader.n_chunks
        nbytes += sum(reader.read_chunk(index)[1] for index in range(reader.n_chunks))
    return Verified(nbytes, counts, manifest.format >= 3)


def _verify_documents(path: Path, manifest: Manifest, files: Files) -> tuple[int, int]:
    """Compare the metadata that Zarr clients read; return its files and bytes."""
    lengths = {name: length_of(path, manifest, name) for name in manifest.small_arrays}
    expected, nbytes = documents(manifest, lengths), 0
    for name, document in expected.items():
        file = path / name / "zarr.json"
        with files.borrowed(file):
            text = _read(file)
        nbytes += len(text)
        try:
            same = canonical(parse(text)) == canonical(document)
        except (ValueError, RecursionError):
            same = False
        if not same:
            raise StoreError(
                f"{file}: expected the metadata that follows from the store's manifest, found "
                "others. The store is damaged; ingest the table again."
            )
    others = sorted({file.parent.name for file in path.glob("*/zarr.json")} - set(expected))
    if others:
        raise StoreError(
            f"{path / others[0]}: expected the arrays of a store, found another. Remove it if you "
            "put it there: Zarr shows it as a part of the store."
        )
    return len(expected), nbytes


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except FileNotFoundError:
        raise StoreError(
            f"{file}: expected a file, found none. The store is damaged; ingest the table again."
        ) from None
    except OSError as error:
        raise cannot_read(file, error) from error


def _verify_texts(path: Path, manifest: Manifest) -> None:
    """Decode every text."""
    for which in ("names", "row_ids"):
        for _ in Names(path, manifest, which):
            pass
    categories = Categories(path, manifest)
    for feature in range(manifest.n_features if manifest.kind_counts["categorical"] else 0):
        categories.of(feature)
