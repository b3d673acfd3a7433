"""Columns of the rows that were added to a store later: other targets, and covariates.

Each is a file below ``columns`` in the store's folder, which the manifest does not list: the store
stays the one it was, and so do its runs. A file is replaced all at once; its first line is the
SHA-256 of the rest: a line of JSON, and the arrays one after another.
"""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import StoreError
from srs_ooc.base.files import SCRATCH_SUFFIX, explained, published_file
from srs_ooc.base.text import MB
from srs_ooc.store.manifest import canonical, dtype_of, parse, reading

TARGET, COVARIATE = "target", "covariate"
OWN = "own"
"""Stands for the target that a store was made with, where an added one could be named."""
_MOST_HEAD_NBYTES, _MOST_ROW_NBYTES = 16 * MB, 40


class AddedColumn(NamedTuple):
    """A column of a store's rows that was added.

    Attributes
    ----------
    kind, name : str
        :data:`TARGET` or :data:`COVARIATE`; its name.
    labels : tuple of str
        Classes of a target, levels of a covariate, by code; none of numbers.
    arrays : dict
        Values (n_rows,), by the name of a store's array of such: of a target ``target`` or
        ``target_values``, -1 or NaN where a row has none, and strata, groups and weights added with
        it; of a covariate ``covariates``.
    row_columns : dict
        Names of the columns of strata, groups and weights.
    digest : str
        SHA-256 of its file; empty before it is written.
    """

    kind: str
    name: str
    labels: tuple[str, ...]
    arrays: dict[str, NDArray[Any]]
    row_columns: dict[str, list[str]]
    digest: str = ""

    @property
    def identity(self) -> str:
        """Name and digest, as runs keep them; :func:`name_in` takes the name from it."""
        return f"{self.name} (sha256 {self.digest[:16]})"

    @property
    def is_there(self) -> NDArray[np.bool_]:
        """Which rows have it, bool (n_rows,)."""
        values = next(iter(self.arrays.values()))
        return values >= 0 if values.dtype.kind == "i" else ~np.isnan(values)


def name_in(identity: str) -> str | None:
    """Return the name of the target that a run is of; None of the store's own."""
    return None if identity == OWN else identity.rpartition(" (sha256 ")[0]


def column_file(folder: Path, kind: str, name: str) -> Path:
    """Return the file of a column of the store at ``folder``."""
    return folder / "columns" / f"{kind}-{hashlib.sha256(name.encode()).hexdigest()[:16]}"


def write_column(folder: Path, store: str, column: AddedColumn) -> None:
    """Add a column to the store at ``folder``, or replace it; a kill leaves what was there.

    ``store``: fingerprint of the store.

    Raises
    ------
    StoreError, UsageError
        If the file cannot be written, or another process writes it.
    """
    said = column._asdict() | {"store": store, "arrays": list(column.arrays)}
    parts = (array.astype(dtype_of(name)).tobytes() for name, array in column.arrays.items())
    body = b"".join([canonical(said).encode(), b"\n", *parts])
    file = column_file(folder, column.kind, column.name)
    with explained(file):
        file.parent.mkdir(exist_ok=True)
        with published_file(file, replaces=True) as scratch:
            scratch.write_bytes(hashlib.sha256(body).hexdigest().encode() + b"\n" + body)


def read_columns(folder: Path, store: str, n_rows: int, kind: str = "*") -> Iterator[AddedColumn]:
    """Yield the columns that were added to the store at ``folder``, one at a time in memory.

    Raises
    ------
    StoreError
        If one is damaged, or of another store.
    """
    for file in sorted((folder / "columns").glob(f"{kind}-*")):
        if file.suffix != SCRATCH_SUFFIX:
            yield read_column(file, store, n_rows)


def read_column(file: Path, store: str, n_rows: int) -> AddedColumn:
    """Read a column of the store of this fingerprint; errors as of :func:`read_columns`."""
    with reading(file), file.open("rb") as stream:
        digest, body = (
            stream.readline(65),
            stream.read(_MOST_HEAD_NBYTES + _MOST_ROW_NBYTES * n_rows),
        )
    head, _, rest = body.partition(b"\n")
    try:
        found = parse(head) if hashlib.sha256(body).hexdigest().encode() == digest[:64] else {}
        names, of = found.pop("arrays"), found.pop("store")
        sizes = [n_rows * dtype_of(name).itemsize for name in names]
        starts = [sum(sizes[:i]) for i in range(len(sizes))]
        found["arrays"] = {
            name: np.frombuffer(rest, dtype_of(name), n_rows, start)
            for name, start in zip(names, starts, strict=True)
        }
        column = AddedColumn(
            **found | {"digest": digest[:64].decode(), "labels": tuple(found["labels"])}
        )
        most = np.nanmax(column.arrays[names[0]], initial=-1) if column.labels else -1
        if of == store and most < max(1, len(column.labels)):
            return column
    except (ValueError, KeyError, TypeError):
        pass
    raise StoreError(
        f"{file}: expected a column that `srs-ooc targets` wrote for this store, found that it is "
        "damaged, or of another. Remove the file, and add the column again."
    )
