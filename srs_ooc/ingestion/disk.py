"""The disk of an ingest: room for it, and its errors in the user's terms."""

import contextlib
import errno
import shutil
from collections.abc import Iterator
from pathlib import Path

from srs_ooc.base.atomic import SCRATCH_SUFFIX
from srs_ooc.base.errors import InputError, StoreError
from srs_ooc.base.sizes import describe_nbytes

_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def check_disk(folder: Path, scratch_nbytes: int, store_nbytes: int) -> None:
    """Refuse a disk without room for scratch and a store in ``folder``, both in bytes.

    Raises
    ------
    StoreError
        With what is needed and what is free.
    """
    needed, free = scratch_nbytes + store_nbytes, shutil.disk_usage(folder).free
    if free < needed:
        raise StoreError(
            f"{folder.parent}: expected about {describe_nbytes(needed)} of free disk "
            f"({describe_nbytes(scratch_nbytes)} of scratch, given back at the end, and "
            f"{describe_nbytes(store_nbytes)} for the store), found {describe_nbytes(free)}. Free "
            "some space, or put the store on another disk."
        )


def check_replaceable(path: Path) -> None:
    """Refuse to replace what is no store.

    Raises
    ------
    StoreError
        If there is something at ``path`` that is not a folder with the files of a store.
    """
    is_store = (path / "zarr.json").is_file() and (path / "codes").is_dir()
    if path.is_symlink() or (path.exists() and not is_store):
        found = "a link" if path.is_symlink() else "something else"
        raise StoreError(
            f"{path}: expected a store to overwrite, found {found}. Choose another path, or remove "
            "it yourself."
        )


@contextlib.contextmanager
def disk_errors(target_path: Path) -> Iterator[None]:
    """Turn errors of the disk into why the store at ``target_path`` cannot be written."""
    try:
        yield
    except FileExistsError:
        if target_path.exists():
            raise StoreError(
                f"{target_path}: expected a path that is free, found one in use. "
                "Choose another path, remove it first, or replace a store with --overwrite."
            ) from None
        raise StoreError(
            f"{target_path}: another process is writing this store "
            f"({target_path.name}{SCRATCH_SUFFIX} is held). Wait for it, or choose another path."
        ) from None
    except OSError as error:
        if error.errno in _DISK_FULL:
            raise StoreError(
                f"{target_path}: the disk is full ({error.strerror}); nothing was left of the "
                "store. Free some space, or choose a path on another disk."
            ) from error
        named = Path(str(error.filename or target_path))
        scratch = target_path.with_name(target_path.name + SCRATCH_SUFFIX)
        if named not in (target_path, target_path.parent) and scratch not in (
            named,
            *named.parents,
        ):
            raise InputError(
                f"{error.filename}: reading failed: {error.strerror}. Leave the file in its place, "
                "readable, until the ingest has ended."
            ) from error
        raise StoreError(
            f"{target_path}: cannot be written: {error.strerror or error}. "
            "Choose a path in a folder that exists and can be written."
        ) from error
