"""What options naming files mean for a store: excluded features and training rows."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from srs_ooc.errors import UsageError
from srs_ooc.store.manifest import Manifest
from srs_ooc.store.names import Names, read_array


@dataclass(frozen=True)
class Inputs:
    """Features left out and rows trained on.

    Attributes
    ----------
    excluded : uint32 (n_excluded,) or None
        Stored positions, ascending; None if nothing is excluded.
    rows : int32 (n_rows,) or None
        Rows of the store, ascending; None for all.
    """

    excluded: NDArray[np.uint32] | None = None
    rows: NDArray[np.int32] | None = None

    def candidates(self, n_features: int) -> NDArray[np.uint32] | None:
        """Return V as stored positions, or None where it is every feature."""
        if self.excluded is None:
            return None
        included = np.ones(n_features, dtype=np.bool_)
        included[self.excluded] = False
        return np.flatnonzero(included).astype(np.uint32)


def resolve(
    path: Path,
    manifest: Manifest,
    exclude_file: Path | None,
    rows_file: Path | None,
    *,
    exclude_missing: bool,
) -> Inputs:
    """Read the files of ``--exclude`` and ``--rows`` against the store at ``path``.

    Raises
    ------
    UsageError
        If a name or row id is not in the store, or nothing would be left.
    """
    excluded = np.zeros(manifest.n_features, dtype=np.bool_)
    if exclude_file is not None:
        sources = _find(exclude_file, Names(path, manifest, "names"), "feature")
        positions = read_array(path, manifest, "positions")
        excluded |= np.isin(positions, sources)
    if exclude_missing:
        excluded |= _has_missing(path, manifest)
    if excluded.all():
        raise UsageError("every feature of the store is excluded; nothing is left to draw from.")
    rows = None
    if rows_file is not None:
        found = _find(rows_file, Names(path, manifest, "row_ids"), "row id")
        rows = np.unique(found).astype(np.int32)
    stored = np.flatnonzero(excluded).astype(np.uint32)
    return Inputs(stored if len(stored) else None, rows)


def digest(array: NDArray[np.generic] | None, what: str) -> str | None:
    """Return a short text that identifies an input, or None if it was not given."""
    if array is None:
        return None
    return f"{len(array)} {what} (sha256 {hashlib.sha256(array.tobytes()).hexdigest()[:16]})"


def _has_missing(path: Path, manifest: Manifest) -> NDArray[np.bool_]:
    return np.asarray(read_array(path, manifest, "n_missing"), dtype=np.uint32) > 0


def _find(file: Path, names: Names, what: str) -> NDArray[np.int64]:
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise UsageError(f"{file}: could not be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{file}: expected UTF-8 text with one {what} a line: {error}.") from error
    wanted = [line.strip() for line in lines if line.strip()]
    if not wanted:
        raise UsageError(f"{file}: expected one {what} a line, found none.")
    found = names.find(wanted)
    absent = [text for text, position in zip(wanted, found, strict=True) if position < 0]
    if absent:
        raise UsageError(
            f"{file}: expected every line to be a {what} of the store, found {len(absent)} that "
            f"are not (first: {absent[0]!r}). `srs-ooc inspect` shows what the store holds."
        )
    return found
