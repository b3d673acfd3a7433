"""Is a store whole? By the names and sizes of its files; :mod:`srs_ooc.store.verify` reads them."""

from pathlib import Path

from srs_ooc.base.errors import StoreError
from srs_ooc.base.text import ceil_div
from srs_ooc.store.layout import chunk_file, require_file, values_file
from srs_ooc.store.manifest import Manifest
from srs_ooc.store.small_arrays import check_size


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
        check_size(path, manifest, name)
    for name, n_items in manifest.float_arrays.items():
        _check_floats(path, manifest, name, n_items)


def check_chunks(path: Path, manifest: Manifest) -> None:
    """Check that every chunk file of ``codes`` is there, with its full size; reads no data.

    Raises
    ------
    StoreError
        Naming the first file that is missing or of another size.
    """
    for index in range(manifest.n_chunks):
        require_file(path / chunk_file(index), manifest.chunk_nbytes)


def _check_floats(path: Path, manifest: Manifest, name: str, n_items: int) -> None:
    features, items = manifest.float_chunk
    for i in range(ceil_div(manifest.n_features, features)):
        for j in range(ceil_div(n_items, items)):
            file = values_file(path, name, i, j)
            if not file.is_file():
                raise StoreError(
                    f"{file}: expected a chunk of values, found no file. "
                    "The store is damaged; ingest the table again."
                )
