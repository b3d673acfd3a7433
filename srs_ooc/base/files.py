"""Files and folders: published all at once, locked, closed; a lock dies with its holder."""

import ctypes
import errno
import fcntl
import os
import shutil
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

from srs_ooc.base.errors import StoreError, UsageError

SCRATCH_SUFFIX = ".partial"
MARKER = ".srs-ooc-scratch"
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2
_CANNOT_EXCHANGE = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP)
_locks: set[int] = set()
"""Descriptors of the locks that this process holds."""


def sync_path(path: Path) -> None:
    """Flush a file, or the entries of a folder, to disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def try_lock(path: Path, *, flags: int = os.O_RDWR | os.O_CREAT) -> int | None:
    """Take an exclusive lock on ``path``: its descriptor, or None if another process holds it.

    :func:`release_lock` gives it up; so does the system when its process dies, however it dies.
    """
    handle = os.open(path, flags, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return None
    except BaseException:
        os.close(handle)
        raise
    _locks.add(handle)
    return handle


def release_lock(handle: int) -> None:
    """Give up a lock of this process; that of the process it was forked from stays as it is.

    It is unlocked before it is closed: a child between its fork and the next line may have it, too.
    """
    if handle in _locks:
        fcntl.flock(handle, fcntl.LOCK_UN)
        _locks.discard(handle)
        os.close(handle)


def _drop_locks() -> None:
    """In a child by fork: close what the parent holds, which then dies with the parent alone."""
    while _locks:
        os.close(_locks.pop())


os.register_at_fork(after_in_child=_drop_locks)


def _is_at(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False


@contextmanager
def published_folder(target: Path, *, replaces: bool = False) -> Iterator[Path]:
    """Yield an empty scratch folder beside ``target``, renamed to it if the block succeeds.

    The scratch folder is named after its target and locked while in use; it is removed on any
    error, and what a killed process left of it is cleared by the next attempt. ``target`` appears
    complete or not at all. With ``replaces``, a folder that is there trades places with the new one
    and is removed: at every moment ``target`` is the one or the other, where the system can do that
    (Linux, on its own file systems), and else it is missing for a moment.

    Raises
    ------
    FileExistsError
        If ``target`` exists, another live process is publishing to it, or a folder that is not
        ours lies where the scratch folder has to be.
    OSError
        If the parent cannot be written.
    StoreError
        If ``target`` was replaced, but what was there cannot be removed.
    """
    scratch = _scratch_of(target, replaces=replaces)
    # Nothing that this module did not make lies in the scratch folder's place.
    if scratch.is_symlink():
        raise FileExistsError(f"{scratch} is a link, where a scratch folder has to be")
    if scratch.is_dir() and any(scratch.iterdir()) and not (scratch / MARKER).exists():
        raise FileExistsError(f"{scratch} holds files of somebody else's; move it away")
    scratch.mkdir(exist_ok=True)
    with _held(scratch, target, os.O_RDONLY, replaces=replaces):
        (scratch / MARKER).touch()
        _empty(scratch)
        yield scratch
        sync_path(scratch)
        if is_replaced := replaces and target.exists():
            (target / MARKER).touch()  # before it is the scratch folder: that is never without it
            _exchange(scratch, target)
        else:
            scratch.rename(target)
        (target / MARKER).unlink()  # last, so that a scratch folder is never without it
        sync_path(target.parent)
        try:
            if is_replaced:
                _remove(scratch)
        except OSError as error:
            raise StoreError(
                f"{target}: the new one is there, whole, but the old one could not be removed: "
                f"{error.strerror}. Remove what is left of it: {scratch}."
            ) from error


def _exchange(scratch: Path, target: Path) -> None:
    """Have two folders trade places, at once where the system can."""
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is not None:
        paths = os.fsencode(scratch), os.fsencode(target)
        if rename(_AT_FDCWD, paths[0], _AT_FDCWD, paths[1], _RENAME_EXCHANGE) == 0:
            return
        if (number := ctypes.get_errno()) not in _CANNOT_EXCHANGE:
            raise OSError(number, os.strerror(number), str(target))
    aside = scratch.with_name(scratch.name + ".replaced")
    target.rename(aside)
    scratch.rename(target)
    aside.rename(scratch)


def check_free(out: Path) -> None:
    """Refuse to write over a file.

    Raises
    ------
    UsageError
        If there is one.
    """
    if out.exists():
        raise UsageError(f"{out}: expected a path that is free, found a file. Choose another.")


@contextmanager
def explained(out: Path) -> Iterator[None]:
    """Turn errors of the file system into why ``out`` is not written, and what to do.

    Raises
    ------
    UsageError
        If it exists, or another process writes it.
    StoreError
        If it cannot be written.
    """
    try:
        yield
    except FileExistsError as error:
        raise UsageError(
            f"{out}: expected a path that is free: {error}. Choose another, or wait for it."
        ) from None
    except OSError as error:
        raise StoreError(
            f"{out}: cannot be written: {error.strerror or error}. "
            "Choose a path in a folder that exists, can be written, and has room."
        ) from error


@contextmanager
def published_file(target: Path, *, replaces: bool = False) -> Iterator[Path]:
    """Yield an empty scratch file beside ``target``, renamed to it if the block succeeds.

    The block writes to the path it is given. With ``replaces``, a file that is there is replaced.
    Otherwise as :func:`published_folder`.

    Raises
    ------
    FileExistsError
        If ``target`` exists, when the block begins or ends, or another live process is publishing
        to it.
    OSError
        If the parent cannot be written.
    """
    scratch = _scratch_of(target, replaces=replaces)
    with _held(scratch, target, os.O_RDWR | os.O_CREAT, replaces=replaces) as lock:
        os.ftruncate(lock, 0)
        yield scratch
        os.fsync(lock)
        _scratch_of(target, replaces=replaces)
        scratch.rename(target)
    sync_path(target.parent)


def _scratch_of(target: Path, *, replaces: bool = False) -> Path:
    if target.exists() and not replaces:
        raise FileExistsError(f"{target} exists")
    return target.with_name(target.name + SCRATCH_SUFFIX)


@contextmanager
def _held(scratch: Path, target: Path, flags: int, *, replaces: bool = False) -> Iterator[int]:
    """Hold the lock of ``scratch`` during the block, and remove it if the block fails."""
    if (lock := try_lock(scratch, flags=flags)) is None:
        raise FileExistsError(f"{target} is being written by another process; wait for it")
    try:
        # Whoever held the lock before may have renamed or removed what was opened here.
        if not _is_at(lock, scratch):
            raise FileExistsError(f"{target} was written by another process meanwhile")
        try:
            _scratch_of(target, replaces=replaces)
            yield lock
        except BaseException:
            with suppress(OSError):
                if lock in _locks:  # else it is of the process that this one was forked from
                    _remove(scratch)
            raise
    finally:
        release_lock(lock)


def _empty(folder: Path) -> None:
    """Remove what is in a folder but the marker, which goes with the folder."""
    for entry in folder.iterdir():
        if entry.name != MARKER:
            _remove(entry)


def _remove(entry: Path) -> None:
    if entry.is_dir() and not entry.is_symlink():
        _empty(entry)
        shutil.rmtree(entry)
    else:
        entry.unlink(missing_ok=True)


def crc_of(stream: Any, crc: int = 0, most: int | None = None) -> tuple[int, int]:
    """Read a stream in pieces of 1 MB; return its CRC-32, from ``crc`` on, and the bytes read.

    ``stream`` has ``read(n)``; of it ``most`` bytes are read, or all that are left.
    """
    n_read = 0
    while piece := stream.read(1 << 20 if most is None else min(1 << 20, most - n_read)):
        crc, n_read = zlib.crc32(piece, crc), n_read + len(piece)
    return crc, n_read


# What is closed at the end of a ``with`` block.


class Closing(ABC):
    """Something that holds files or threads; a ``with`` block closes it, come what may."""

    @abstractmethod
    def close(self) -> None:
        """Give up what is held."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
