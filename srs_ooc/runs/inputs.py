"""What options naming files mean for a store: excluded features and training rows."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import RunError, UsageError
from srs_ooc.runs.ledger import Ledger
from srs_ooc.runs.place import spec_of
from srs_ooc.runs.score_files import SCORE_NBYTES, read_weights
from srs_ooc.runs.side_files import LOOKING_NBYTES, SideFile
from srs_ooc.runs.spec.identity import INPUTS, NOT_GIVEN
from srs_ooc.store.arrays import PIECE_ITEMS
from srs_ooc.store.store import Store

WEIGHTS = "weights"
"""Name of weights in a ledger: what a file of scores said, or what was computed."""
_FILE_DIGITS = tuple("0123456789")
"""A digest begins with how many items there were; other values of ``scores`` are words."""
_Position = TypeVar("_Position", np.int32, np.uint32)


@dataclass(frozen=True)
class Inputs:
    """Features left out and rows trained on.

    Attributes
    ----------
    excluded : uint32 (n_excluded,) or None
        Stored positions, ascending; None if nothing is excluded.
    rows : int32 (n_rows,) or None
        Rows of the store, ascending; None for all.
    weights : uint32 (n,) or None
        How often features are to be drawn relative to others, by stored position, from a file of
        scores; of a run that is worked on, of all its items, whatever they come from.
    validation : int32 or None
        Those of the rows that are held out, ascending; None where the method chooses them.
    """

    excluded: NDArray[np.uint32] | None = None
    rows: NDArray[np.int32] | None = None
    weights: NDArray[np.uint32] | None = None
    validation: NDArray[np.int32] | None = None

    def validation_places(self) -> NDArray[np.int32] | None:
        """Return the places among the rows of those that are held out."""
        if self.validation is None or self.rows is None:
            return self.validation
        return np.searchsorted(self.rows, self.validation).astype(np.int32)

    def candidates(self, n_features: int) -> NDArray[np.uint32] | None:
        """Return V as stored positions, or None where it is every feature."""
        if self.excluded is None:
            return None
        included = np.ones(n_features, dtype=np.bool_)
        included[self.excluded] = False
        return _positions(included, np.uint32)


def inputs_of(ledger: Ledger) -> Inputs:
    """Return what the files of options said when a run was made.

    Raises
    ------
    RunError
        If it is not what the run's identity says: lost, or of another run.
    """
    inputs = Inputs(
        ledger.input("excluded", "<u4"),
        ledger.input("rows", "<i4"),
        ledger.input(WEIGHTS, "<u4"),
        ledger.input("validation", "<i4"),
    )
    held = {name: NOT_GIVEN[name] for name in INPUTS} | spec_of(ledger).to_json()
    kinds = {"excluded": "features", "rows": "rows", "validation": "rows"}
    if held.get("scores", "file").startswith(_FILE_DIGITS):
        kinds["scores"] = WEIGHTS
    for name, what in kinds.items():
        given = inputs.weights if name == "scores" else getattr(inputs, name)
        found = digest(given, what) or NOT_GIVEN.get(name, "none")
        if found != held[name]:
            raise RunError(
                f"{ledger.run}: expected the {name} that the run was made with, {held[name]}, "
                f"found {found}. The ledger is damaged; restore the run's folder from a copy, or "
                "start the run again in another one."
            )
    return inputs


@dataclass(frozen=True)
class InputFiles:
    """The files of ``--exclude``, ``--rows``, ``--validation-rows`` and ``--scores``, not read yet.

    Attributes
    ----------
    exclude, rows, validation : SideFile or None
        Files of names and of row ids, where given.
    scores : Path or None
        File of scores.
    exclude_missing : bool
        Leave out features with missing values.
    """

    exclude: SideFile | None = None
    rows: SideFile | None = None
    validation: SideFile | None = None
    scores: Path | None = None
    exclude_missing: bool = False

    @classmethod
    def of(
        cls,
        store: Store,
        exclude: Path | None,
        rows: Path | None,
        validation: Path | None = None,
        scores: Path | None = None,
        *,
        exclude_missing: bool = False,
    ) -> "InputFiles":
        """Count the lines of the files that are given.

        Raises
        ------
        UsageError
            If one cannot be read, or has no lines or far too many.
        """
        features, ids = ("feature", store.n_features), ("row id", store.n_rows)
        named = [
            None if file is None else SideFile.of(file, *what)
            for file, what in ((exclude, features), (rows, ids), (validation, ids))
        ]
        return cls(named[0], named[1], named[2], scores, exclude_missing)

    def leases(self, n_features: int) -> list[tuple[str, int]]:
        """Return what reading them needs besides the process: (purpose, bytes)."""
        files = [file for file in (self.exclude, self.rows, self.validation) if file is not None]
        leases = [(f"{file.n_lines} lines of {file.what}s", file.n_bytes) for file in files]
        if self.exclude is not None or self.exclude_missing:
            leases.append((f"{n_features} marks", 2 * n_features))
        if self.scores is not None:
            nbytes = LOOKING_NBYTES + SCORE_NBYTES * n_features
            leases.append((f"scores of {n_features} features", nbytes))
        return leases

    def stand_in(self) -> Inputs:
        """Return inputs of as many rows as the files can name, for what a run on them needs."""
        if self.rows is None:
            return Inputs()
        return Inputs(rows=np.arange(self.rows.n_found, dtype=np.int32))


def resolve(store: Store, files: InputFiles, spare_nbytes: int = 0) -> Inputs:
    """Read the files.

    With more ``spare_nbytes`` of memory, besides :meth:`InputFiles.leases`, they are read fewer
    times; what is found is the same.

    Raises
    ------
    UsageError
        If a name or row id is not in the store, or nothing would be left.
    """
    excluded = np.zeros(store.n_features, dtype=np.bool_)
    if files.exclude is not None:
        named = files.exclude.find_all(store.names, spare_nbytes)
        for start, positions in store.pieces("positions"):
            excluded[start : start + len(positions)] = named[positions]
        del named
    if files.exclude_missing:
        for start, n_missing in store.pieces("n_missing"):
            excluded[start : start + len(n_missing)] |= n_missing.astype(np.uint32) > 0
    if excluded.all():
        raise UsageError("every feature of the store is excluded; nothing is left to draw from.")
    rows, validation = (
        None if file is None else _positions(file.find_all(store.row_ids, spare_nbytes), np.int32)
        for file in (files.rows, files.validation)
    )
    if rows is not None and validation is not None and not np.isin(validation, rows).all():
        raise UsageError(
            "--validation-rows: expected rows that --rows names, found others. The rows of "
            "--validation-rows are held out of those of --rows: name them in both."
        )
    stored = _positions(excluded, np.uint32)
    weights = None
    if files.scores is not None:
        weights = read_weights(files.scores, store, spare_nbytes)
        weights[stored] = 0
    return Inputs(stored if len(stored) else None, rows, weights, validation)


def _positions(mask: NDArray[np.bool_], dtype: type[_Position]) -> NDArray[_Position]:
    """Return where ``mask`` holds, without positions of 8 bytes for all of it at once."""
    out, n = np.empty(np.count_nonzero(mask), dtype), 0
    for start in range(0, len(mask), PIECE_ITEMS):
        some = start + np.flatnonzero(mask[start : start + PIECE_ITEMS])
        out[n : n + len(some)] = some
        n += len(some)
    return out


def digest(array: NDArray[np.generic] | None, what: str) -> str | None:
    """Return a short text that identifies an input, or None if it was not given."""
    if array is None:
        return None
    sha256 = hashlib.sha256(np.ascontiguousarray(array).data).hexdigest()
    return f"{len(array)} {what} (sha256 {sha256[:16]})"
