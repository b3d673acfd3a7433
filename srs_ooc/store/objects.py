"""The objects below a URL: read in ranges and written, with patience for what fails now and then.

The library is obstore: one wheel without dependencies, 8 MB resident, that reads S3, Google Cloud
Storage, Azure and HTTP by blocking calls that release the GIL. fsspec with s3fs brings aiohttp and
botocore, several times that, and an event loop of its own.
"""

import hashlib
import random
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

from srs_ooc.base.errors import StoreError, UsageError
from srs_ooc.base.frames import library
from srs_ooc.base.text import MB
from srs_ooc.base.urls import WRITABLE, Url
from srs_ooc.store.manifest import ATTRIBUTE, parse

_Found = TypeVar("_Found")
_memories: dict[str, Any] = {}


ATTEMPTS = 6
"""Times that a request is made in all."""
FIRST_WAIT, LONGEST_WAIT = 0.25, 8.0
"""Seconds before the second attempt, which double with each further one, and at most."""
PIECE_NBYTES = 4 * MB
"""Bytes of an object that are asked for at a time where all of it is read."""
PART_NBYTES = 5 * 1024 * 1024
"""Bytes of a part of an object as it is written: the least that S3 takes."""
TIMEOUT = 30.0
"""Seconds until a request that has not been answered in full has failed."""
_TRY_AGAIN = (
    "This is the network's or the server's error, and need not be damage: try again; what was "
    "committed is kept."
)


class Objects:
    """The objects below a URL, by their names relative to it.

    All methods may be called by several threads at once. What may pass is tried again: timeouts,
    errors of the server, connections that were cut.

    Parameters
    ----------
    url : Url
        The folder.

    Raises
    ------
    UsageError
        If the library is missing, or the URL cannot be one.
    """

    def __init__(self, url: Url) -> None:
        self.url = url
        self._api = library("obstore", str(url), "Run `pip install 'srs-ooc[remote]'`.")
        self._errors = self._api.exceptions
        self._prefix = ""  # of a process's own objects; other stores begin at their URL
        if url.scheme == "memory":
            bucket, _, self._prefix = url.text.removeprefix("memory://").partition("/")
            self._store = _memories.setdefault(bucket, self._api.store.MemoryStore())
        else:
            self._store = _opened(self._api, url)

    def look(self, name: str) -> tuple[int, int]:
        """Return the size of an object, and what distinguishes it from others.

        Raises
        ------
        FileNotFoundError
            If there is none.
        StoreError
            If it cannot be asked for.
        """
        meta = self._tried(name, self._api.head)
        return int(meta["size"]), _stamp_of(meta)

    def range(self, name: str, start: int, nbytes: int) -> tuple[memoryview, int]:
        """Return ``nbytes`` bytes of an object from ``start`` on, and the stamp of :meth:`look`.

        Errors as of :meth:`look`.
        """

        def get(*at: Any) -> tuple[memoryview, int]:
            found = self._api.get(*at, options={"range": (start, start + nbytes)})
            data = memoryview(found.bytes())
            if len(data) != nbytes:
                raise EOFError(f"{len(data)} bytes instead of {nbytes}")
            return data, _stamp_of(found.meta)

        return self._tried(name, get)

    def pieces(self, name: str) -> Iterator[memoryview]:
        """Yield the bytes of an object, some at a time; errors as of :meth:`look`."""
        size, _ = self.look(name)
        for start in range(0, size, PIECE_NBYTES):
            yield self.range(name, start, min(PIECE_NBYTES, size - start))[0]

    def read(self, name: str) -> bytes:
        """Return a small object, in one request; errors as of :meth:`look`."""
        return self._tried(name, lambda *at: bytes(self._api.get(*at).bytes()))

    def write(self, name: str, data: Path | bytes) -> None:
        """Write an object, from a file or bytes: it is there complete, or not at all.

        Raises
        ------
        StoreError
            If it cannot be written.
        """
        how = {"chunk_size": PART_NBYTES, "max_concurrency": 1}
        self._tried(name, lambda *at: self._api.put(*at, data, **how))

    def sizes(self) -> list[tuple[str, int]]:
        """Return the names and sizes of all objects; errors as of :meth:`write`."""
        below = self._prefix or None
        listed = self._tried("", lambda store, _: self._api.list(store, below).collect())
        first = len(self._at(""))
        return [(str(one["path"])[first:], int(one["size"])) for one in listed]

    def remove(self, names: list[str]) -> None:
        """Remove objects; errors as of :meth:`write`."""
        for name in names:
            self._tried(name, self._api.delete)

    def node(self) -> Any:
        """Return the Zarr group or array at the URL as zarr opens it, to be read."""
        import zarr
        from zarr.storage import ObjectStore

        is_own = self.url.scheme == "memory"
        # zarr tries nothing again: the library has to
        store = self._store if is_own else _opened(self._api, self.url, ATTEMPTS - 1)
        return zarr.open(ObjectStore(store, read_only=True), mode="r", path=self._prefix)

    def _at(self, name: str) -> str:
        return f"{self._prefix}/{name}" if self._prefix else name

    def _tried(self, name: str, call: Callable[[Any, str], _Found]) -> _Found:
        """Return what ``call(store, path)`` does, trying again while its failures may pass."""
        wait, attempt, errors = FIRST_WAIT, 1, self._errors
        while True:
            try:
                return call(self._store, self._at(name))
            except FileNotFoundError:
                raise FileNotFoundError(f"{self.url}/{name}") from None
            except (errors.BaseError, OSError, EOFError) as error:
                if isinstance(error, errors.NotSupportedError):
                    found = f"an answer that is none to a request for a range ({_said(error)})"
                    remedy = "The server must answer range requests; S3 and most web servers do."
                elif isinstance(error, errors.PermissionDeniedError | errors.UnauthenticatedError):
                    found = f"that access is refused ({_said(error)})"
                    remedy = "Check the credentials in the environment (docs/remote.md)."
                elif attempt == ATTEMPTS:
                    found = f"{attempt} failures, the last one: {_said(error)}"
                    remedy = _TRY_AGAIN
                else:
                    time.sleep(wait * random.uniform(0.5, 1.0))  # noqa: S311 (spreads requests)
                    wait, attempt = min(2 * wait, LONGEST_WAIT), attempt + 1
                    continue
                place = f"{self.url}/{name}".rstrip("/")
                expected = "an answer of the server"
                raise StoreError(
                    f"{place}: expected {expected}, found {found}. {remedy}"
                ) from error


def _stamp_of(meta: Any) -> int:
    """Return a number for the object's tag, or its time where the server gives none."""
    return hash(meta["e_tag"] or meta["last_modified"])


def _said(error: BaseException) -> str:
    """Return what an error says, without the library's account of its insides."""
    return (str(error) or type(error).__name__).split("\n", 1)[0].strip()[:300]


def _opened(api: Any, url: Url, more_attempts: int = 0) -> Any:
    seconds = timedelta(seconds=TIMEOUT)
    client = {"timeout": seconds, "connect_timeout": min(seconds, timedelta(seconds=10))}
    # One layer of patience: ours, which also knows of answers that are cut.
    try:
        return api.store.from_url(
            url.text,
            client_options=client | {"allow_http": True},
            retry_config={"max_retries": more_attempts, "retry_timeout": seconds},
        )
    except (api.exceptions.BaseError, ValueError) as error:
        raise UsageError(
            f"{url}: expected a URL that can be opened, found: {_said(error)}. Check it, and the "
            "settings in the environment (docs/remote.md)."
        ) from error


# Copying a store to a URL, where it appears complete or not at all.
#
# The metadata of the group, without which there is no store, is written last and removed first.
# What a killed copy left is known by its mark. The next one takes up what is there of the same
# store, since objects are complete or absent, and clears the rest; nothing else is removed.

N_WRITERS = 4
_MARK, _ROOT = ".srs-ooc-incomplete", "zarr.json"


def check_free(objects: Objects, *, replaces: bool) -> dict[str, int]:
    """Check that a new store may be copied to a URL; return the sizes of the objects there.

    Parameters
    ----------
    objects : Objects
        Below the URL.
    replaces : bool
        A store that is there is removed before the new one is copied.

    Raises
    ------
    UsageError
        If nothing can be written there.
    StoreError
        If there is a store, or something that is none.
    """
    if objects.url.scheme not in WRITABLE:
        raise UsageError(
            f"{objects.url}: expected a place that can be written, "
            f"{', '.join(f'{name}://' for name in WRITABLE)} or a folder, found a web "
            "server's. Write to a folder, and have the server's owner copy it there."
        )
    there = dict(objects.sizes())
    if _ROOT in there and not replaces:
        raise StoreError(
            f"{objects.url}: expected a URL that is free, found a store there. Choose another "
            "one, or replace it with --overwrite."
        )
    if there and _MARK not in there and not (_ROOT in there and _is_store(objects)):
        raise StoreError(
            f"{objects.url}: expected nothing there, or a store to replace, found something "
            f"else ({min(there)}). Choose another URL, or remove it yourself."
        )
    return there


def _is_store(objects: Objects) -> bool:
    try:
        return ATTRIBUTE in parse(objects.read(_ROOT))["attributes"]
    except (FileNotFoundError, ValueError, KeyError, TypeError, RecursionError):
        return False


def copy_store(
    folder: Path,
    objects: Objects,
    there: dict[str, int],
    progress: Callable[[str, int, int], None] = lambda stage, done, total: None,
) -> None:
    """Copy the store in ``folder`` to a URL, telling of the bytes; what is there was checked.

    One process may write a store at a URL at a time: there are no locks there.

    Parameters
    ----------
    folder : Path
        The store.
    objects : Objects
        Below the URL.
    there : dict
        Sizes of the objects there, from :func:`check_free`.
    progress : callable
        Told what is done, how many bytes of it, and of how many.

    Raises
    ------
    StoreError
        If it cannot be written in full; then there is no store at the URL.
    """
    files = {f.relative_to(folder).as_posix(): f for f in folder.rglob("*") if f.is_file()}
    sizes = {name: file.stat().st_size for name, file in files.items()}
    mark = hashlib.sha256(files[_ROOT].read_bytes()).hexdigest().encode()
    taken_up: set[str] = set()
    if _MARK in there and objects.read(_MARK) == mark:  # a killed copy of the same store
        taken_up = {name for name in sizes if there.get(name) == sizes[name]} - {_ROOT}
    done, lock = sum(sizes[name] for name in taken_up), threading.Lock()

    def write(name: str) -> None:
        nonlocal done
        objects.write(name, files[name])
        with lock:
            done += sizes[name]
            progress("copying", done, sum(sizes.values()))

    if not taken_up:
        # Nothing of another store may be taken up after a kill: the mark says which this is
        # once all that was there is gone.
        objects.write(_MARK, b"")
        objects.remove([name for name in there if name == _ROOT])
        objects.remove(sorted(set(there) - {_MARK, _ROOT}))
        objects.write(_MARK, mark)
    with ThreadPoolExecutor(N_WRITERS, "copy") as pool:
        try:
            deque(pool.map(write, sorted(set(files) - taken_up - {_ROOT})), maxlen=0)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    write(_ROOT)
    objects.remove([_MARK])
