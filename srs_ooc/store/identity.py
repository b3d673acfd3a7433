"""A store is known by its fingerprint, not by its path: another may lie where it was."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from srs_ooc.base.errors import StoreError
from srs_ooc.store.manifest import Manifest, read_manifest


def read_same(path: Path, fingerprint: str) -> Manifest:
    """Read the manifest of the store at ``path``, which must have this fingerprint.

    Raises
    ------
    StoreError
        If it has another, or there is no store.
    """
    manifest = read_manifest(path)
    if manifest.fingerprint != fingerprint:
        raise StoreError(
            f"{path}: expected the store with fingerprint {fingerprint[:16]}, found another store "
            f"there, with fingerprint {manifest.fingerprint[:16]}: it was replaced. Put the store "
            "back, or name its new place, and repeat the command; nothing read since was kept."
        )
    return manifest


@contextmanager
def same_store(path: Path, fingerprint: str) -> Iterator[Manifest]:
    """Yield the manifest of a store that must be the same when the block begins and ends.

    What the block opens by path is what the manifest describes: small arrays because their
    checksums are compared with it, the other files because the store is looked at again.

    Raises
    ------
    StoreError
        If it is another store before or after the block; also in place of a file's damage, where
        that comes of the store having been replaced.
    """
    manifest = read_same(path, fingerprint)
    try:
        yield manifest
    except StoreError:
        read_same(path, fingerprint)
        raise
    read_same(path, fingerprint)
