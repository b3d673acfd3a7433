"""The disk of an ingest: room for it, and its errors in the user's terms."""

import contextlib
import errno
import shutil
from collections.abc import Iterator
from pathlib import Path

from srs_ooc.base.errors import InputError, StoreError
from srs_ooc.base.files import SCRATCH_SUFFIX
from srs_ooc.base.text import describe_nbytes
from srs_ooc.ingestion.contents import StoreForm
from srs_ooc.store.manifest import Shape

_FEATURE_NBYTES = 40
"""A feature's name, kind and place, about."""
_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def disk_of(
    shape: Shape, form: StoreForm, *, by_rows: bool, text_nbytes: int | None = None
) -> tuple[int, int]:
    """Return the bytes of scratch and, at most about, of the store that ingesting a table takes.

    Parameters
    ----------
    shape : Shape
        Rows and features.
    form : StoreForm
        How the store keeps them.
    by_rows : bool
        Whether the source is read by rows, which are turned into columns in scratch.
    text_nbytes : int, optional
        Bytes of text of a source that is text: values take no more.
    """
    n_cells = shape.n_rows * shape.n_features
    values = 0 if form.values_dtype is None else 8 * n_cells
    if text_nbytes is not None:
        values = min(values, text_nbytes)
    ranges = 16 * form.n_ranges(shape) * shape.n_features
    codes = form.code_nbytes * n_cells
    return 8 * n_cells * by_rows, codes + values + ranges + _FEATURE_NBYTES * shape.n_features


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
