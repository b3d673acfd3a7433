"""Copying a store to a URL, where it appears complete or not at all.

The metadata of the group, without which there is no store, is written last and removed first. What
a killed copy left is known by its mark. The next one takes up what is there of the same store,
since objects are complete or absent, and clears the rest; nothing else is removed.
"""

import hashlib
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from srs_ooc.base.errors import StoreError
from srs_ooc.base.text import MB
from srs_ooc.store.manifest import ATTRIBUTE, parse
from srs_ooc.store.remote.objects import Objects

N_WRITERS = 4
WRITING_NBYTES = N_WRITERS * 2 * 5 * MB + 16 * MB
"""Memory of copying: two parts of a file for each writer, and the library."""
_MARK, _ROOT = ".srs-ooc-incomplete", "zarr.json"


class Publishing:
    """A place at a URL for a new store; makes sure that it is free when it is made.

    One process may write a store at a URL at a time: there are no locks there.

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

    def __init__(self, objects: Objects, *, replaces: bool) -> None:
        objects.check_writable()
        self._objects = objects
        self._sizes = dict(objects.sizes())
        self._there = list(self._sizes)
        if _ROOT in self._there and not replaces:
            raise StoreError(
                f"{objects.url}: expected a URL that is free, found a store there. Choose another "
                "one, or replace it with --overwrite."
            )
        is_ours = _MARK in self._there or _ROOT not in self._there or self._is_store()
        if self._there and not (is_ours and (_MARK in self._there or _ROOT in self._there)):
            raise StoreError(
                f"{objects.url}: expected nothing there, or a store to replace, found something "
                f"else ({min(self._there)}). Choose another URL, or remove it yourself."
            )

    def _is_store(self) -> bool:
        try:
            return ATTRIBUTE in parse(self._objects.read(_ROOT))["attributes"]
        except (FileNotFoundError, ValueError, KeyError, TypeError, RecursionError):
            return False

    def copy(self, folder: Path, progress: Callable[[str, int, int], None]) -> None:
        """Copy the store in ``folder``, telling of the bytes.

        Raises
        ------
        StoreError
            If it cannot be written in full; then there is no store at the URL.
        """
        files = {f.relative_to(folder).as_posix(): f for f in folder.rglob("*") if f.is_file()}
        sizes = {name: file.stat().st_size for name, file in files.items()}
        taken_up = self._taken_up(mark := _digest_of(folder), sizes)
        n_bytes = sum(sizes.values())
        done, lock = sum(sizes[name] for name in taken_up), threading.Lock()

        def write(name: str) -> None:
            nonlocal done
            self._objects.write(name, files[name])
            with lock:
                done += sizes[name]
                progress("copying", done, n_bytes)

        if not taken_up:
            # Nothing of another store may be taken up after a kill: the mark says which this is
            # once all that was there is gone.
            self._objects.write(_MARK, b"")
            self._objects.remove([name for name in self._there if name == _ROOT])
            self._objects.remove(sorted(set(self._there) - {_MARK, _ROOT}))
            self._objects.write(_MARK, mark)
        with ThreadPoolExecutor(N_WRITERS, "copy") as pool:
            try:
                for _ in pool.map(write, sorted(set(files) - taken_up - {_ROOT})):
                    pass
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        write(_ROOT)
        self._objects.remove([_MARK])

    def _taken_up(self, mark: bytes, sizes: dict[str, int]) -> set[str]:
        """Return the files that a killed copy of the same store wrote."""
        if _MARK not in self._there or self._objects.read(_MARK) != mark:
            return set()
        return {name for name, size in sizes.items() if self._sizes.get(name) == size} - {_ROOT}


def _digest_of(folder: Path) -> bytes:
    """Return what the mark of a copy says: which store it is of."""
    return hashlib.sha256((folder / _ROOT).read_bytes()).hexdigest().encode()
