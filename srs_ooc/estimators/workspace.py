"""A folder to work in that is removed after, and errors as scikit-learn's callers expect them."""

import errno
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from srs_ooc.base.budget import growth_counted
from srs_ooc.base.errors import InputError, UsageError
from srs_ooc.base.options import python_spelling

_CODE_NBYTES, _VALUE_NBYTES, _FEATURE_NBYTES = 1, 8, 40
_RANGES = 254
"""Codes of a feature at most, each with its lowest and highest value."""


@contextmanager
def python_errors() -> Iterator[None]:
    """Raise what is wrong with arguments as ``ValueError``; count only growth against caps."""
    try:
        with python_spelling(), growth_counted():
            yield
    except (InputError, UsageError) as error:
        raise ValueError(str(error)) from error


@contextmanager
def workspace(cache_dir: str | Path | None) -> Iterator[Path]:
    """Yield a folder of its own in ``cache_dir``, or in the system's; it is removed after.

    Raises
    ------
    OSError
        If it cannot be made there.
    """
    try:
        folder = TemporaryDirectory(prefix="srs-ooc-", dir=cache_dir)
    except OSError as error:
        where = "the temporary folder" if cache_dir is None else f"cache_dir {str(cache_dir)!r}"
        raise type(error)(
            error.errno,
            f"{where}: expected a folder that exists and can be written, found: {error.strerror}. "
            "Make it, or name another with cache_dir",
        ) from error
    with folder:
        yield Path(folder.name)


def disk_nbytes(n_rows: int, n_features: int, *, keeps_values: bool) -> int:
    """Return the bytes of disk that the store of a table takes at most."""
    ranges = 2 * _VALUE_NBYTES * min(n_rows, _RANGES)
    values = _VALUE_NBYTES * n_rows if keeps_values else ranges
    return n_features * (_CODE_NBYTES * n_rows + values + _FEATURE_NBYTES)


def require_disk(folder: Path, n_bytes: int, cache_dir: str | Path | None) -> None:
    """Refuse a folder with less room.

    Raises
    ------
    OSError
        Of ``errno.ENOSPC``, with both numbers.
    """
    free = shutil.disk_usage(folder).free
    if n_bytes <= free:
        return
    where = "the temporary folder" if cache_dir is None else f"cache_dir {str(cache_dir)!r}"
    raise OSError(
        errno.ENOSPC,
        f"{where}: expected room for a store of up to {n_bytes / 1e6:,.0f} MB, found "
        f"{free / 1e6:,.0f} MB free. Make room, or name another folder with cache_dir",
    )
