"""Files that options name: features left out, rows, scores."""

import csv
import hashlib
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from math import isfinite
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.arrays import Bools, Indices, Ints, Ints32, Uints, Uints32
from srs_ooc.base.budget import Lease
from srs_ooc.base.errors import UsageError
from srs_ooc.base.text import MB, describe_nbytes, number_of
from srs_ooc.evidence.judges import NOT_ADJUSTED
from srs_ooc.evidence.null_model import NullModel
from srs_ooc.native._native import hash_text
from srs_ooc.samplers.column_scores import integer_weights
from srs_ooc.store.arrays import PIECE_ITEMS, Names
from srs_ooc.store.store import Store

# Files that options name, read in bounded memory: a name a line, against those of a store.

SPARE_LINES = 1 << 20
"""A file may hold as many lines more than twice the names there are."""
FEWEST = 1 << 16
"""Names looked at together at least."""
MOST_LINE_NBYTES = MB
"""A line of more bytes is no name."""
LINES, LINES_NBYTES = 1 << 14, MB
"""Lines looked up together at most, and their bytes, or a single line."""
NAME_NBYTES = 40
"""Memory of a name that is looked at: its hash twice while sorted, its place, its mark."""
LOOKING_NBYTES = 5 * MB
"""Memory of reading lines and names, and of the fewest names."""

_Line = TypeVar("_Line")


def read_lines(file: Path, what: str) -> Iterator[bytes]:
    """Yield the lines of a UTF-8 text file that are not blank, stripped, one at a time.

    Raises
    ------
    UsageError
        If the file cannot be read, or not more than once, is not UTF-8, or has a line that is too
        long for a ``what``.
    """
    try:
        if not stat.S_ISREG(file.stat().st_mode):
            raise UsageError(
                f"{file}: expected a file, which is read more than once, found something else. "
                "Write what it would say to a file."
            )
        with file.open("rb") as stream:
            number = 0
            while line := stream.readline(MOST_LINE_NBYTES + 1):
                number += 1
                if len(line) > MOST_LINE_NBYTES:
                    raise UsageError(
                        f"{file}, line {number}: expected one {what} a line, found a line of more "
                        f"than {describe_nbytes(MOST_LINE_NBYTES)}. Give a text file of names."
                    )
                if text := line.decode("utf-8-sig" if number == 1 else "utf-8").strip():
                    yield text.encode()
    except OSError as error:
        raise UsageError(
            f"{file}: expected a text file with one {what} a line, found that it cannot be read: "
            f"{error.strerror}. Give the path of such a file."
        ) from error
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{file}, line {number}: expected UTF-8 text with one {what} a line, found other bytes "
            f"({error.reason}). Convert the file to UTF-8."
        ) from error


def together(lines: Iterator[_Line], n_bytes_of: Callable[[_Line], int]) -> Iterator[list[_Line]]:
    """Yield lines together, so many that they take little memory."""
    block: list[_Line] = []
    n_bytes = 0
    for line in lines:
        block.append(line)
        n_bytes += n_bytes_of(line)
        if len(block) == LINES or n_bytes > LINES_NBYTES:
            yield block
            block, n_bytes = [], 0
    if block:
        yield block


class SideFile:
    """A file whose lines are texts of a store.

    Parameters
    ----------
    file : Path
        The file.
    what : str
        What a line is, for messages.
    n_names : int
        How many such texts the store has.

    Raises
    ------
    UsageError
        If there is no line, or there are far more than texts, or as of :func:`read_lines`.
    """

    def __init__(self, file: Path, what: str, n_names: int) -> None:
        self.file, self.what, self.n_names, self.n_lines = file, what, n_names, 0
        most = 2 * n_names + SPARE_LINES
        for self.n_lines, _ in enumerate(read_lines(file, what), 1):
            if self.n_lines > most:
                raise UsageError(
                    f"{file}: expected at most {most} lines, as the store has {n_names} {what}s, "
                    "found more. Name each once."
                )
        if not self.n_lines:
            raise UsageError(f"{file}: expected one {what} a line, found none.")

    @property
    def lease(self) -> Lease:
        """Memory of :meth:`find_all`, and of the positions that are found, at least."""
        marks = self.n_names + 3 * self.n_lines + 4 * self.n_found
        return Lease(f"{self.n_lines} lines of {self.what}s", LOOKING_NBYTES + marks)

    @property
    def n_found(self) -> int:
        """Texts that the file can name at most."""
        return min(self.n_lines, self.n_names)

    def find_all(self, names: Names, spare_nbytes: int) -> Bools:
        """Return which texts of a store the lines name; bool (n_names,).

        The file is read once for as many of the store's texts as ``spare_nbytes``, and what
        :attr:`lease` has for them, hold the hashes of. Equal hashes are compared as texts.

        Raises
        ------
        UsageError
            If a line is no such text, or the file is another by now.
        """
        marked, found = np.zeros(len(names), np.bool_), np.zeros(self.n_lines, np.bool_)
        for places_in in hashed_names(names, spare_nbytes):
            start = 0
            for block in together(read_lines(self.file, self.what), len):
                places = places_in(block)
                marked[places[places >= 0]] = True
                here = found[start : start + len(block)]
                here |= places[: len(here)] >= 0
                start += len(block)
            if start != self.n_lines:
                raise UsageError(
                    f"{self.file}: expected the {self.n_lines} lines that were there at first, "
                    "found others: the file changed while it was read. Try again."
                )
        if not found.all():
            lines = islice(read_lines(self.file, self.what), int(found.argmin()), None)
            first = next(lines, b"").decode()
            n_absent = len(found) - int(np.count_nonzero(found))
            listed = "--names" if self.what == "feature" else "--row-ids"
            raise UsageError(
                f"{self.file}: expected every line to be a {self.what} of the store, found "
                f"{n_absent} that are not (first: {first[:80]!r}). `srs-ooc inspect STORE "
                f"{listed}` lists them."
            )
        return marked

    def stored_in(self, store: Store, spare_nbytes: int) -> Bools:
        """Return which stored features the lines name, as :meth:`find_all`; bool (n_features,)."""
        named, out = self.find_all(store.names, spare_nbytes), np.zeros(self.n_names, np.bool_)
        for start, positions in store.pieces("positions"):
            out[start : start + len(positions)] = named[positions]
        return out


def hashed_names(names: Names, spare_nbytes: int) -> Iterator[Callable[[list[bytes]], Ints]]:
    """Yield what looks texts up among some neighbouring names of a store, until all had their turn.

    It returns the position of each text among the names; -1 if it is not one of these. So many
    are looked at together as ``spare_nbytes`` of memory hold the hashes of.
    """
    size = max(FEWEST, spare_nbytes // NAME_NBYTES)
    texts = names.texts()
    for first in range(0, len(names), size):
        hashes = np.fromiter(map(hash_text, islice(texts, size)), np.uint64)
        order = np.argsort(hashes, kind="stable")
        hashes = hashes[order]
        yield partial(_places, names, first, order, hashes)


def _places(names: Names, first: int, order: Indices, hashes: Uints, texts: list[bytes]) -> Ints:
    wanted = np.fromiter(map(hash_text, texts), np.uint64, len(texts))
    out = np.full(len(texts), -1, np.int64)
    low = np.searchsorted(hashes, wanted)
    high = np.searchsorted(hashes, wanted, side="right")
    for i in np.flatnonzero(high > low).tolist():
        for place in order[low[i] : high[i]].tolist():
            if names.encoded(first + place) == texts[i]:
                out[i] = first + place
    return out


# A file of scores by feature name, as `srs-ooc scores --csv` writes it, read in bounded memory.

_COLUMNS = ("name", "score")


def read_weights(file: Path, store: Store, spare_nbytes: int = 0) -> Uints32:
    """Return the scores in a file as weights by stored position; uint32 (n_features,).

    Features that the file does not name weigh 0. With more ``spare_nbytes`` of memory the file is
    read fewer times; what is found is the same.

    Raises
    ------
    UsageError
        If the file has no columns ``name`` and ``score``, names a feature twice or one that is not
        in the store, or a score is no number from 0 on.
    """
    n_features = store.n_features
    scores, n_found = np.full(n_features, np.nan), 0
    for places_in in hashed_names(store.names, spare_nbytes):
        for block in together(_rows(file), lambda row: len(row[0])):
            places = places_in([name for name, _ in block])
            for (name, score), place in zip(block, places.tolist(), strict=True):
                if place >= 0:
                    if not np.isnan(scores[place]):
                        raise UsageError(
                            f"{file}: expected each feature once, found {name.decode()[:80]!r} "
                            "again. Leave one out."
                        )
                    scores[place], n_found = score, n_found + 1
    n_rows = sum(1 for _ in _rows(file))
    if n_found < n_rows:
        raise UsageError(
            f"{file}: expected every name to be a feature of the store, found {n_rows - n_found} "
            "that are not. `srs-ooc inspect STORE --names` lists them."
        )
    np.nan_to_num(scores, copy=False, nan=0.0)
    by_source = integer_weights(scores)
    del scores
    weights = np.zeros(n_features, np.uint32)
    for start, positions in store.pieces("positions"):
        weights[start : start + len(positions)] = by_source[positions]
    return weights


def _rows(file: Path) -> Iterator[tuple[bytes, float]]:
    """Yield name and score of each row."""
    lines = csv.reader(line.decode() for line in read_lines(file, "feature"))
    try:
        header = next(lines, [])
        if any(header.count(column) != 1 for column in _COLUMNS):
            raise UsageError(
                f"{file}: expected a CSV file with the columns name and score, found the header "
                f"{','.join(header)[:80]!r}. `srs-ooc scores STORE --csv` writes such a file."
            )
        name, score = (header.index(column) for column in _COLUMNS)
        for row in lines:
            where = f"{file}, line {lines.line_num}"
            if len(row) != len(header):
                raise UsageError(f"{where}: expected {len(header)} cells, found {len(row)}.")
            value = number_of(row[score])
            if not (isfinite(value) and value >= 0):
                raise UsageError(
                    f"{where}: expected a score from 0 on, found {row[score][:40]!r}. Leave "
                    "features out that shall not be drawn, or give them 0."
                )
            yield row[name].encode(), value
    except csv.Error as error:
        raise UsageError(
            f"{file}, line {lines.line_num}: expected a CSV file with the columns name and score, "
            f"found one that cannot be read: {error}."
        ) from error


# What options naming files mean for a store: excluded features and training rows.

WEIGHTS = "weights"
"""Name of weights in a ledger: what a file of scores said, or what was computed."""
NULL_MODEL = ("basis", "bins", "null_scores")
"""Names of the parts of a null model in a ledger."""
FILE_DIGITS = tuple("0123456789")
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
    null_model : NullModel or None
        What covariates say of the rows trained on; None where nothing is adjusted.
    """

    excluded: Uints32 | None = None
    rows: Ints32 | None = None
    weights: Uints32 | None = None
    validation: Ints32 | None = None
    null_model: NullModel | None = None

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """Those there are, by the names they have in a ledger."""
        arrays = {name: array for name, array in vars(self).items() if array is not None}
        if (null := arrays.pop("null_model", None)) is not None:
            arrays |= zip(NULL_MODEL, (null.basis, null.strata, null.scores), strict=True)
        return arrays

    def among(self, there: Ints32 | None) -> "Inputs":
        """Return these without rows that are not ``there``, int32, ascending; None for all."""
        if there is None:
            return self
        rows, held = (
            one if one is None else np.intersect1d(one, there)
            for one in (self.rows, self.validation)
        )
        return replace(self, rows=there if rows is None else rows, validation=held)

    def part(self, rows: Ints32, is_in: Bools) -> "Inputs":
        """Return what some of the rows are trained on with, as fitted to all of them.

        ``rows``: those of the store that are trained on; ``is_in``: bool (n_rows,).
        """
        null = self.null_model and self.null_model.of_rows(is_in)
        return Inputs(self.excluded, rows[is_in], null_model=null)

    @property
    def digests(self) -> dict[str, str]:
        """What identifies those there are, by its name in an identity."""
        given = {
            "excluded": digest(self.excluded, "features"),
            "rows": digest(self.rows, "rows"),
            "validation": digest(self.validation, "rows"),
            "scores": digest(self.weights, WEIGHTS),
        }
        if (null := self.null_model) is not None:
            parts = np.concatenate([null.basis.ravel(), null.strata, null.scores])
            given["null_model"] = f"{null.basis.shape[1]} columns, {digest(parts, 'numbers')}"
        return {name: text for name, text in given.items() if text is not None}

    @property
    def null_digest(self) -> str:
        """Identifies the null model."""
        return self.digests.get("null_model", NOT_ADJUSTED)

    def validation_places(self) -> Ints32 | None:
        """Return the places among the rows of those that are held out."""
        if self.validation is None or self.rows is None:
            return self.validation
        return np.searchsorted(self.rows, self.validation).astype(np.int32)

    def candidates(self, n_features: int) -> Uints32 | None:
        """Return V as stored positions, or None where it is every feature."""
        if self.excluded is None:
            return None
        included = np.ones(n_features, dtype=np.bool_)
        included[self.excluded] = False
        return _positions(included, np.uint32)


class InputFiles:
    """The files of ``--exclude``, ``--rows``, ``validation_rows`` and ``scores``, not read yet.

    Parameters
    ----------
    store : Store
        The store whose names they are of.
    exclude, rows, validation : Path, optional
        Files of names and of row ids; their lines are counted.
    scores : Path, optional
        File of scores.
    exclude_missing : bool
        Leave out features with missing values.

    Raises
    ------
    UsageError
        If one cannot be read, or has no lines or far too many.
    """

    def __init__(
        self,
        store: Store,
        exclude: Path | None = None,
        rows: Path | None = None,
        validation: Path | None = None,
        scores: Path | None = None,
        *,
        exclude_missing: bool = False,
    ) -> None:
        features, ids = ("feature", store.n_features), ("row id", store.n_rows)
        self.exclude, self.rows, self.validation = (
            None if file is None else SideFile(file, *what)
            for file, what in ((exclude, features), (rows, ids), (validation, ids))
        )
        self.store, self.scores, self.exclude_missing = store, scores, exclude_missing

    def leases(self) -> list[Lease]:
        """Return what reading them needs besides the process."""
        files, n_features = (self.exclude, self.rows, self.validation), self.store.n_features
        leases = [file.lease for file in files if file is not None]
        if self.exclude is not None or self.exclude_missing:
            leases.append(Lease(f"{n_features} marks", 2 * n_features))
        if self.scores is not None:
            scores = LOOKING_NBYTES + 25 * n_features
            leases.append(Lease(f"scores of {n_features} features", scores))
        return leases

    def stand_in(self) -> Inputs:
        """Return inputs of as many rows as the files can name, for what a run on them needs."""
        if self.rows is None:
            return Inputs()
        return Inputs(rows=np.arange(self.rows.n_found, dtype=np.int32))

    def resolve(self, spare_nbytes: int = 0) -> Inputs:
        """Read the files.

        With more ``spare_nbytes`` of memory, besides :meth:`leases`, they are read fewer times;
        what is found is the same.

        Raises
        ------
        UsageError
            If a name or row id is not in the store, or nothing would be left.
        """
        store = self.store
        excluded = np.zeros(store.n_features, dtype=np.bool_)
        if self.exclude is not None:
            excluded = self.exclude.stored_in(store, spare_nbytes)
        if self.exclude_missing:
            for start, n_missing in store.pieces("n_missing"):
                excluded[start : start + len(n_missing)] |= n_missing.astype(np.uint32) > 0
        if excluded.all():
            raise UsageError(
                "every feature of the store is excluded; nothing is left to draw from."
            )
        rows, validation = (
            None
            if file is None
            else _positions(file.find_all(store.row_ids, spare_nbytes), np.int32)
            for file in (self.rows, self.validation)
        )
        if rows is not None and validation is not None and not np.isin(validation, rows).all():
            raise UsageError(
                "validation_rows: expected rows that --rows names, found others. The rows of "
                "validation_rows are held out of those of --rows: name them in both."
            )
        stored, weights = _positions(excluded, np.uint32), None
        if self.scores is not None:
            weights = read_weights(self.scores, store, spare_nbytes)
            weights[stored] = 0
        return Inputs(stored if len(stored) else None, rows, weights, validation)


def _positions(mask: Bools, dtype: type[_Position]) -> NDArray[_Position]:
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
