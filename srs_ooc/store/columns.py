"""Columns of the rows that were added to a store later: other targets, and covariates.

Each is a file below ``columns`` in the store's folder, which the manifest does not list: the store
stays the one it was, and so do its runs. A file is replaced all at once; its first line is the
SHA-256 of the rest: a line of JSON, and the values, float64, NaN where a row has none.
"""

import hashlib
import re
from pathlib import Path

import numpy as np

from srs_ooc.base.errors import StoreError
from srs_ooc.base.files import SCRATCH_SUFFIX, explained, published_file
from srs_ooc.base.records import Covariate
from srs_ooc.base.text import MB
from srs_ooc.store.manifest import canonical, parse, reading

OWN = "own"
"""Stands for the target that a store was made with, where an added one could be named."""
_MOST_HEAD_NBYTES = 16 * MB


def column_file(folder: Path, kind: str, name: str) -> Path:
    """Return the file of a column of the store at ``folder``."""
    digest, shown = hashlib.sha256(name.encode()).hexdigest(), re.sub(r"\W+", "_", name)[:40]
    return folder / "columns" / f"{kind}-{shown}-{digest[:16]}"


def write_column(folder: Path, store: str, kind: str, column: Covariate) -> None:
    """Add a column to the store at ``folder``, or replace it; a kill leaves what was there.

    Parameters
    ----------
    folder, store : Path, str
        The store's folder and fingerprint.
    kind : str
        ``target`` or ``covariate``.
    column : Covariate
        The column; its levels are the classes of a target.

    Raises
    ------
    StoreError, UsageError
        If the file cannot be written, or another process writes it.
    """
    said = {"store": store, "kind": kind, "name": column.name, "levels": column.levels}
    body = canonical(said).encode() + b"\n" + column.values.astype("<f8").tobytes()
    file = column_file(folder, kind, column.name)
    with explained(file):
        file.parent.mkdir(exist_ok=True)
        with published_file(file, replaces=True) as scratch:
            scratch.write_bytes(hashlib.sha256(body).hexdigest().encode() + b"\n" + body)


def column_files(folder: Path, kind: str) -> list[Path]:
    """Return the files of the columns of a kind; none of those that a kill left unfinished."""
    files = (folder / "columns").glob(f"{kind}-*")
    return sorted(file for file in files if file.suffix != SCRATCH_SUFFIX)


def read_column(file: Path, store: str, n_rows: int) -> tuple[Covariate, str]:
    """Return a column of the store of this fingerprint; and name and digest, as runs keep them.

    Raises
    ------
    StoreError
        If it is damaged, or of another store.
    """
    with reading(file), file.open("rb") as stream:
        digest, body = stream.read(64), stream.read(1 + _MOST_HEAD_NBYTES + 8 * n_rows)[1:]
    head, _, rest = body.partition(b"\n")
    if hashlib.sha256(body).hexdigest().encode() == digest and len(rest) == 8 * n_rows:
        said, values = parse(head), np.frombuffer(rest, "<f8")
        column = Covariate(said["name"], values, tuple(said["levels"]))
        codes, n_levels = values[~np.isnan(values)], len(column.levels)
        is_code = (codes >= 0) & (codes < n_levels) & (codes % 1 == 0) | (n_levels == 0)
        if said["store"] == store and is_code.all():
            return column, f"{column.name} (sha256 {digest[:16].decode()})"
    raise StoreError(
        f"{file}: expected a column that `srs-ooc targets` wrote for this store, found that it is "
        "damaged, or of another. Remove the file, and add the column again."
    )
