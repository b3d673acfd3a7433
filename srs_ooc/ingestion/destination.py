"""Where a new store goes: to a folder as it is made, to a URL once it is complete."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from srs_ooc.base.errors import StoreError
from srs_ooc.base.files import try_lock
from srs_ooc.base.urls import Place
from srs_ooc.ingestion.contents import ByteProgress
from srs_ooc.store.manifest import Manifest
from srs_ooc.store.objects import Objects, Publishing
from srs_ooc.store.remote_cache import CacheOptions

PREFIX, LOCK = "ingest-", "lock"
"""Of a folder in which a store for a URL is made, and of the file that is locked meanwhile."""


def make_at(
    place: Place,
    make: Callable[[Path], Manifest],
    *,
    overwrite: bool = False,
    progress: ByteProgress | None = None,
) -> Manifest:
    """Have a store made at a place; it appears complete or not at all.

    One for a URL is made in a folder among what is kept of stores at URLs, copied, and removed: it
    takes the room of the store there meanwhile, besides what making it takes. After a kill the same
    call makes it once more, and copies what is missing at the URL.

    Parameters
    ----------
    place : Place
        Where the store goes.
    make : callable
        ``make(path)`` makes it at a path of this machine.
    overwrite : bool
        Replace a store at the URL; ``make`` does so at a path.
    progress : callable, optional
        Told of the bytes copied.

    Raises
    ------
    StoreError, UsageError
        If the URL is in use, or cannot be written; and what ``make`` raises.
    """
    if isinstance(place, Path):
        return make(place)
    target = Publishing(Objects(place), replaces=overwrite)
    folder = made_first_at(place).parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _clear(folder)
        scratch = TemporaryDirectory(prefix=PREFIX, dir=folder)
    except OSError as error:
        raise StoreError(
            f"{folder}: expected a folder that can be written, where the store for {place} is "
            f"made, found: {error.strerror or error}. Name another in SRS_OOC_CACHE_DIR."
        ) from error
    with scratch as made, _held(Path(made) / LOCK):
        manifest = make(Path(made) / "made.zarr")
        target.copy(Path(made) / "made.zarr", progress or (lambda stage, done, total: None))
    return manifest


@contextmanager
def _held(file: Path) -> Iterator[None]:
    handle = try_lock(file)
    assert handle is not None, "nobody else knows of it"
    try:
        yield
    finally:
        os.close(handle)


def _clear(folder: Path) -> None:
    """Remove what killed processes left of stores that they were making for a URL."""
    for left in folder.glob(f"{PREFIX}*"):
        with suppress(OSError):  # gone meanwhile, or somebody else's
            handle = try_lock(left / LOCK, flags=os.O_RDWR)
            if handle is not None:
                shutil.rmtree(left, ignore_errors=True)
                os.close(handle)


def made_first_at(place: Place) -> Path:
    """Return where on this machine a store for a place is made."""
    return place if isinstance(place, Path) else CacheOptions().path / "made.zarr"
