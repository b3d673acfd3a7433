"""Opening a store wherever it is."""

from pathlib import Path

from srs_ooc.base.urls import Place, Url, place_of
from srs_ooc.store.remote.cache import CacheOptions
from srs_ooc.store.remote.objects import Objects
from srs_ooc.store.remote.store import RemoteStore, read_remote_manifest
from srs_ooc.store.store import Store


def open_store(
    place: Place | str, fingerprint: str | None = None, cache: CacheOptions | None = None
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
    store = _at(where, cache or CacheOptions())
    if fingerprint is not None:
        store.check_is(fingerprint)
    return store


def _at(url: Url, cache: CacheOptions) -> Store:
    objects = Objects(url)
    return RemoteStore(url, objects, read_remote_manifest(url, objects), cache)
