"""Opening a store wherever it is: a folder, or a URL, which is read as a local disk is."""

from pathlib import Path
from typing import TYPE_CHECKING

from srs_ooc.base.options import place_given, python_spelling
from srs_ooc.base.urls import Place, place_of
from srs_ooc.store.store import Store
from srs_ooc.store.zarr_group import check_group

if TYPE_CHECKING:
    from zarr import Group

    from srs_ooc.store.remote_cache import CacheOptions


def open_store(
    place: Place | str, fingerprint: str | None = None, cache: "CacheOptions | None" = None
) -> Store:
    """Read and check the manifest of the store at a path or a URL, and nothing else.

    Parameters
    ----------
    place : path or URL
        Where it is.
    fingerprint : str, optional
        The one it must have.
    cache : CacheOptions, optional
        Where and how much is kept on this disk of a store at a URL.

    Raises
    ------
    StoreError
        If there is no store, or its manifest is damaged, or it is another.
    UsageError
        If the URL is none, or the library that reads it is missing.
    """
    where = place_of(place)
    if isinstance(where, Path):
        return Store.open(where, fingerprint)
    from srs_ooc.store.remote_cache import remote_store  # most stores are folders

    store = remote_store(where, cache)
    if fingerprint is not None:
        store.check_is(fingerprint)
    return store


@python_spelling()
def open_zarr(store: str | Place) -> "Group":
    """Open a store as the Zarr group that it is, to be read by zarr.

    Features lie in a random order: that of the array ``feature``, which holds their names, and of
    the first dimension of ``codes`` and ``values``.

    Parameters
    ----------
    store : path or URL
        Where it is.

    Returns
    -------
    zarr.Group
        Read-only. A chunk that is missing reads as missing values: ``verify`` finds it.

    Raises
    ------
    StoreError
        If there is no store, or metadata of it are damaged: all of them are compared with its
        manifest.
    UsageError
        If the URL is none, or the library that reads it is missing.
    """
    import zarr

    place = place_given(store, "store")
    if isinstance(place, Path):
        check_group(place, Store.open(place).manifest, lambda name: (place / name).read_bytes())
        return zarr.open_group(place, mode="r")
    from srs_ooc.store.objects import Objects
    from srs_ooc.store.remote_cache import read_remote_manifest

    objects = Objects(place)
    check_group(place, read_remote_manifest(place, objects), objects.read)
    return objects.group()
