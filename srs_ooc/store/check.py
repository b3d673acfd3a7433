"""Is a store whole? By the sizes of its files, or by their checksums."""

from pathlib import Path

from srs_ooc.errors import StoreError
from srs_ooc.store.layout import Shape, require_file, values_chunk, verify_file
from srs_ooc.store.manifest import Manifest, chunk_file
from srs_ooc.store.names import map_array


def check_files(path: Path, manifest: Manifest) -> None:
    """Check that every file of ``codes`` and of the small arrays is there, with its full size.

    Reads no data, and so is cheap enough to do whenever a store is opened: an access past the end
    of a mapped file kills the process.

    Raises
    ------
    StoreError
        Naming the first file that is missing or of another size.
    """
    check_chunks(path, manifest)
    for name in manifest.small_arrays:
        map_array(path, manifest, name)
    if manifest.values_dtype is not None:
        _check_values(path, manifest)


def check_chunks(path: Path, manifest: Manifest) -> None:
    """Check that every chunk file of ``codes`` is there, with its full size; reads no data.

    Raises
    ------
    StoreError
        Naming the first file that is missing or of another size.
    """
    for index in range(manifest.n_chunks):
        require_file(path / chunk_file(index), manifest.chunk_nbytes)


def _check_values(path: Path, manifest: Manifest) -> None:
    shape = Shape(manifest.n_rows, manifest.n_features)
    features, rows = values_chunk(shape, dtype_itemsize(manifest))
    for feature in range(-(-shape.n_features // features)):
        for row in range(-(-shape.n_rows // rows)):
            file = path / "values" / "c" / str(feature) / str(row)
            if not file.is_file():
                raise StoreError(
                    f"{file}: expected a chunk of values, found no file. "
                    "The store is damaged; ingest the table again."
                )


def dtype_itemsize(manifest: Manifest) -> int:
    """Return the bytes of a stored value."""
    return 4 if manifest.values_dtype == "float32" else 8


def verify_checksums(path: Path, manifest: Manifest) -> int:
    """Read ``codes`` and the small arrays and compare their checksums; return the bytes read.

    Raises
    ------
    StoreError
        Naming the first file that differs.
    """
    check_files(path, manifest)
    return sum(verify_file(path, name, crc) for name, crc in manifest.checksums.items())
