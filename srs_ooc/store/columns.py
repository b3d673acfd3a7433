"""Columns of the rows that were added to a store later: other targets, and covariates.

Each is a file below ``columns`` in the store's folder, which the manifest does not list: the store
stays the one it was, and so do its runs. A file is replaced all at once; its first line is the
SHA-256 of the rest: a line of JSON, and the values, float64, NaN where a row has none.
"""

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from srs_ooc.base.errors import StoreError
from srs_ooc.base.files import SCRATCH_SUFFIX, explained, published_file
from srs_ooc.base.records import Covariate
from srs_ooc.base.text import MB
from srs_ooc.store.manifest import canonical, parse, reading

TARGET, COVARIATE = "target", "covariate"
"""Kinds of column."""
OWN = "own"
"""Stands for the target that a store was made with, where an added one could be named."""
_MOST_HEAD_NBYTES = 16 * MB


def name_in(identity: str) -> str | None:
    """Return the name of the target that a run is of; None of the store's own."""
    return None if identity == OWN else identity.rpartition(" (sha256 ")[0]


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
        :data:`TARGET` or :data:`COVARIATE`.
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


def read_columns(folder: Path, store: str, n_rows: int, kind: str) -> Iterator[Covariate]:
    """Yield the columns of a kind that were added to the store at ``folder``, one at a time.

    Errors as of :func:`read_column`.
    """
    for file in sorted((folder / "columns").glob(f"{kind}-*")):
        if file.suffix != SCRATCH_SUFFIX:
            yield read_column(file, store, n_rows)[0]


def read_column(file: Path, store: str, n_rows: int) -> tuple[Covariate, str]:
    """Return a column of the store of this fingerprint, and its name and digest, as runs keep them.

    :func:`name_in` takes the name from that.

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
        codes = values[~np.isnan(values)]
        is_code = np.isin(codes, np.arange(len(column.levels))).all() or not column.levels
        if said["store"] == store and is_code:
            return column, f"{column.name} (sha256 {digest[:16].decode()})"
    raise StoreError(
        f"{file}: expected a column that `srs-ooc targets` wrote for this store, found that it is "
        "damaged, or of another. Remove the file, and add the column again."
    )
