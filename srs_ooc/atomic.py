"""Publishing a folder all at once, and a lock that dies with its holder."""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SCRATCH_SUFFIX = ".partial"


def sync_folder(path: Path) -> None:
    """Flush the directory entries of ``path`` to disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def try_lock(path: Path, *, flags: int = os.O_RDWR | os.O_CREAT) -> int | None:
    """Take an exclusive lock on ``path``; return its descriptor, or None if it is held.

    The kernel releases the lock when the descriptor is closed or its process dies, however it dies.
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
    return handle


def _is_at(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False


@contextmanager
def published_folder(target: Path) -> Iterator[Path]:
    """Yield an empty scratch folder beside ``target`` that becomes ``target`` on success.

    The scratch folder is named after its target and locked while in use; it is removed on any
    error, and what a killed process left of it is cleared by the next attempt. ``target`` appears
    complete or not at all.

    Raises
    ------
    FileExistsError
        If ``target`` exists, or another live process is publishing to it.
    OSError
        If the parent cannot be written.
    """
    scratch = target.with_name(target.name + SCRATCH_SUFFIX)
    if target.exists():
        raise FileExistsError(f"{target} exists")
    scratch.mkdir(exist_ok=True)
    lock = try_lock(scratch, flags=os.O_RDONLY)
    if lock is None:
        raise FileExistsError(f"{target} is being written by another process")
    try:
        if target.exists() or not _is_at(lock, scratch):
            raise FileExistsError(f"{target} was written by another process meanwhile")
        _clear(scratch)
        try:
            yield scratch
            sync_folder(scratch)
            scratch.rename(target)
        except BaseException:
            shutil.rmtree(scratch, ignore_errors=True)
            raise
        sync_folder(target.parent)
    finally:
        os.close(lock)


def _clear(folder: Path) -> None:
    for entry in folder.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()
