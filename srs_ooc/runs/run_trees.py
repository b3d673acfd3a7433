"""The trees of a run: on disk, their splits outside its store, and the mean of them for rows.

They are written in the order of iterations, and read as of the last commit.
"""

import json
import os
import struct
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from copy import copy
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from srs_ooc.base.arrays import Bools, Floats, Ints
from srs_ooc.base.errors import RunError
from srs_ooc.base.files import Closing, crc_of, published_file, sync_path
from srs_ooc.base.records import Outcome, Saved, State
from srs_ooc.runs.ledger import VALID, Ledger, damaged_run
from srs_ooc.samplers.base import Ensemble
from srs_ooc.store.store import Store
from srs_ooc.trees.block import SAVED_BUFFER_NBYTES, SAVED_PIECE_NBYTES
from srs_ooc.trees.saved import ALL_CODES, How, Trees, add_shares, decode_trees

# The records of a file of trees: how they are laid out, and whether they are whole.
#
# The file begins with `MAGIC`. A record is the length of a tree's bytes and their CRC-32 (each a
# little-endian uint32), then the bytes (`tests/helpers/forest_reference.py`). The CRC-32 starts
# from the record's number instead of 0, so a record lost or out of place is found as well.
#
# A commit of the ledger says up to which byte the file is valid, after those bytes are safe on
# disk. What lies beyond belongs to no commit: readers do not look at it, and a run that goes on
# cuts it off.

TREES_MAGIC = b"srs-ooc trees 1\n"
HEAD = struct.Struct("<II")
"""Begins a record: the length of its bytes, and their CRC-32."""


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Name the file of trees where it cannot be read."""
    try:
        yield
    except OSError as error:
        raise RunError(f"{path}: could not be read: {error.strerror}.") from error


def check_trees(path: Path, nbytes: int, n_trees: int | None) -> int:
    """Check every record of a file of trees up to byte ``nbytes``, in pieces of 1 MB.

    Return how many there are.

    Raises
    ------
    RunError
        If the file is short or a record damaged, or there are not ``n_trees`` of them.
    """
    check_length(path, nbytes)
    number = 0
    with _reading(path), path.open("rb") as file:
        for length, expected, end in heads(file, nbytes):
            crc, _ = crc_of(file, number & 0xFFFFFFFF, length)
            if not length or end > nbytes or crc != expected:
                raise damaged(path, number)
            number += 1
    if n_trees is not None and number != n_trees:
        raise damaged_run(path, f"expected {n_trees} trees, found {number}")
    return number


def heads(file: BinaryIO, nbytes: int) -> Iterator[tuple[int, int, int]]:
    """Yield the length and the CRC-32 of each record of an open file of trees, and where it ends.

    Up to byte ``nbytes``; the file is then at the bytes of the record.
    """
    place = len(TREES_MAGIC)
    while place < nbytes:
        file.seek(place)
        length, crc = HEAD.unpack(file.read(HEAD.size).ljust(HEAD.size, b"\0"))
        place += HEAD.size + length
        yield length, crc, place


def damaged(path: Path, number: int) -> RunError:
    """Return the error of a damaged record of a file; ``number`` is of its tree, from 0."""
    return damaged_run(path, f"the record of tree {number + 1} is damaged")


def check_length(path: Path, valid: int) -> None:
    """Check that a file is one of trees and has its ``valid`` bytes; RunError if not."""
    try:
        with path.open("rb") as file:
            magic, size = file.read(len(TREES_MAGIC)), os.fstat(file.fileno()).st_size
        if magic == TREES_MAGIC and size >= valid:
            return
        found = f"{size} bytes" if magic == TREES_MAGIC else "another kind of file"
    except OSError as error:
        found = error.strerror or str(error)
    raise damaged_run(path, f"expected at least {valid} bytes of trees, found {found}")


ALL = Ensemble()
TREES_FILE = "trees.bin"


class TreeWriter(Closing):
    """Appends trees to the file of a run, from where its ledger left it.

    Parameters
    ----------
    ledger : Ledger
        Open for writing.

    Raises
    ------
    RunError
        If the file is shorter than the ledger says, is not one of trees, or cannot be written.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._path, self._open = ledger.run / TREES_FILE, ExitStack()
        self.nbytes = int(ledger.meta(VALID))
        if self.nbytes:
            check_length(self._path, self.nbytes)

    def absorb(self, iteration: int, outcome: Outcome) -> None:
        """Append the trees of the next iteration."""
        with self._writing():
            for tree in outcome.trees:
                head = HEAD.pack(len(tree), zlib.crc32(tree, self._n_trees & 0xFFFFFFFF))
                self._file.writelines((head, tree))
                self._n_trees += 1
                self.nbytes += len(head) + len(tree)

    def state(self) -> State:
        """Make what was appended safe on disk; return up to which byte it reaches."""
        with self._writing():
            self._file.flush()
            os.fsync(self._file.fileno())
        return State(facts=self.nbytes)

    def restore(self, saved: Saved) -> None:
        """Make the file, or cut it where the ledger left it: the work begins."""
        with self._writing():
            if self.nbytes == 0:
                self._path.write_bytes(TREES_MAGIC)
                sync_path(self._path.parent)
                self.nbytes = len(TREES_MAGIC)
            file = self._path.open("r+b", buffering=SAVED_BUFFER_NBYTES)
            self._file = self._open.enter_context(file)
            self._file.truncate(self.nbytes)
            self._n_trees = sum(1 for _ in heads(self._file, self.nbytes))
            self._file.seek(self.nbytes)

    def close(self) -> None:
        """Close the file."""
        with self._writing():
            self._open.close()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Refuse with what to do where the file cannot be written."""
        try:
            yield
        except OSError as error:
            raise RunError(
                f"{self._path}: the trees could not be written: {error.strerror or error}. If the "
                "disk is full, make room and resume; nothing that was committed is lost."
            ) from error


class TreeReader:
    """The trees of a run as of its last commit; the run may be going on.

    Parameters
    ----------
    ledger : Ledger
        Open for reading.
    ensemble : Ensemble, optional
        Which of them to read; default all.

    Attributes
    ----------
    nbytes : int
        Valid bytes of the file.
    ensemble : Ensemble
        Which of them are read, and how they are combined.

    Raises
    ------
    RunError
        If the run keeps no trees, has none yet, or its file is damaged.
    """

    def __init__(self, ledger: Ledger, ensemble: Ensemble = ALL) -> None:
        self.path, self.ensemble = ledger.run / TREES_FILE, ensemble
        valid = ledger.meta(VALID)
        if valid is None and "model" in ledger.meta("spec"):
            raise RunError(
                f"{ledger.run}: expected a run of trees, found --model "
                f"{ledger.meta('spec')['model']}: its fitted models are not kept, as they could be "
                "read back only by running what a file says. Fit the estimator yourself on the "
                "features ranked first (`srs-ooc export RUN --top N`)."
            )
        if valid is None:
            raise RunError(
                f"{ledger.run}: expected a run that saves its trees, found one that does not. "
                "Begin another with `srs-ooc run STORE --fresh --save-trees`."
            )
        if valid <= len(TREES_MAGIC):
            raise RunError(
                f"{ledger.run}: expected trees, found none committed yet. "
                "Wait a moment, or go on with the run."
            )
        self.nbytes = int(valid)
        self._regression = ledger.meta("spec")["impurity"] == "variance"
        self._data: bytes | None = None  # of the file, where it is held
        check_length(self.path, self.nbytes)

    def batches(self) -> Iterator[Trees]:
        """Yield the trees in the order of iterations, about 256 kB of their bytes at a time.

        Raises
        ------
        RunError
            At a record that is damaged.
        """
        trees: list[bytes] = []
        first = n_bytes = 0
        with _reading(self.path), self._opened() as file:
            for number, (length, expected, end) in enumerate(heads(file, self.nbytes)):
                if not length or end > self.nbytes:
                    raise damaged(self.path, number)
                if not self.ensemble.holds(number):
                    continue
                trees.append(file.read(length))
                if zlib.crc32(trees[-1], number & 0xFFFFFFFF) != expected:
                    raise damaged(self.path, number)
                first, n_bytes = number + 1 - len(trees), n_bytes + length
                if n_bytes >= SAVED_PIECE_NBYTES:
                    yield self._decoded(trees, first)
                    trees, n_bytes = [], 0
        if trees:
            yield self._decoded(trees, first)

    def held(self) -> "TreeReader":
        """Return the same trees in memory, where they stay when the run's folder is gone.

        Raises
        ------
        RunError
            If the file cannot be read.
        """
        held = copy(self)
        with _reading(self.path), self._opened() as file:
            held._data = file.read(self.nbytes)
            held.nbytes = len(held._data)
        return held

    def _opened(self) -> BinaryIO:
        return self.path.open("rb") if self._data is None else BytesIO(self._data)

    def _decoded(self, trees: list[bytes], first: int) -> Trees:
        ends = np.cumsum([0, *map(len, trees)])
        try:
            return decode_trees(b"".join(trees), ends[:-1], ends[1:], regression=self._regression)
        except ValueError as error:
            raise damaged(self.path, first) from error


# What the splits of a run's trees mean outside its store: a table beside the trees.
#
# The engine knows codes only, and a saved split is a feature and a code. The table holds, for each
# feature that splits use, its name, and for each of its codes that they use the threshold in the
# feature's own units (`srs_ooc.store.values`). It is made when trees are first asked to predict,
# and again when there are more of them, so that a run is not slowed; that needs the store the run
# was made on, predicting afterwards does not.
#
# The file is `MAGIC`, the CRC-32 of all that follows it (4 bytes, little-endian), one line of JSON,
# and the arrays one after another.

SPLITS_FILE = "splits.bin"
SPLITS_MAGIC = b"srs-ooc splits 3\n"
_CRC = struct.Struct("<I")
CODE_BITS = 16
_MERGE_ITEMS = 1 << 18


@dataclass(frozen=True)
class SplitTable:
    """What splits mean.

    Attributes
    ----------
    features : int64 (n_used,)
        Stored features that splits use, ascending.
    names : tuple of str
        Their names.
    keys : int64 (k,)
        ``feature << 16 | code`` of each split met, ascending.
    thresholds : float64 (k,)
        Values up to it go left.
    facts : dict
        ``classes``, ``target_name``, ``row_id_name`` and ``code_nbytes`` of the training store;
        ``categories``, for each of ``features`` its categories by code, or None; ``center`` and
        ``scale`` of targets, else None; ``n_trees``, ``trees_nbytes`` and ``largest`` (most nodes
        decoded at a time) of the trees; ``table``, the :func:`digest_of` what the store was made
        of, and its ``n_rows``.
    """

    features: Ints
    names: tuple[str, ...]
    keys: Ints
    thresholds: Floats
    facts: dict[str, Any]

    def keep(self, run: Path) -> None:
        """Keep the table in the run's folder, which is left as it is if it cannot be written."""
        names = json.dumps(self.names, ensure_ascii=False).encode()
        arrays = (self.keys, self.thresholds, self.features)
        body = b"".join([*(array.tobytes() for array in arrays), names])
        sizes = {"n_keys": len(self.keys), "n_features": len(self.features)}
        line = json.dumps(self.facts | sizes).encode() + b"\n"
        head = SPLITS_MAGIC + _CRC.pack(zlib.crc32(body, zlib.crc32(line)))
        with (
            suppress(OSError),
            published_file(run / SPLITS_FILE, replaces=True) as scratch,
            scratch.open("wb") as stream,
        ):
            stream.writelines([head, line, body])


def load_splits(run: Path, trees: TreeReader) -> SplitTable | None:
    """Return the table kept in a run's folder, or None if there is none for these very trees.

    Raises
    ------
    RunError
        If the file is damaged.
    """
    file = run / SPLITS_FILE
    if not file.exists():
        return None
    check_splits(file)
    with file.open("rb") as stream:
        stream.seek(len(SPLITS_MAGIC) + _CRC.size)
        header, body = json.loads(stream.readline()), stream.read()
    if header["trees_nbytes"] != trees.nbytes:
        return None
    n_keys, n_features = int(header["n_keys"]), int(header["n_features"])
    keys = np.frombuffer(body, np.int64, n_keys)
    thresholds = np.frombuffer(body, np.float64, n_keys, 8 * n_keys)
    features = np.frombuffer(body, np.int64, n_features, 16 * n_keys)
    names = tuple(json.loads(body[8 * (2 * n_keys + n_features) :]))
    return SplitTable(features, names, keys, thresholds, header)


def check_splits(file: Path) -> int:
    """Compare the checksum of a file of thresholds, in pieces of 1 MB; return the bytes read.

    Raises
    ------
    RunError
        If it is damaged.
    """
    try:
        with file.open("rb") as stream:
            magic, expected = stream.read(len(SPLITS_MAGIC)), stream.read(_CRC.size)
            crc, n_read = crc_of(stream)
        is_whole = magic == SPLITS_MAGIC and expected == _CRC.pack(crc)
        found = "" if is_whole else "other bytes"
    except OSError as error:
        found = error.strerror or str(error)
    if found:
        raise RunError(
            f"{file}: expected the thresholds of a run's trees, found {found}. Remove the file; it "
            "is made again from the run's store."
        )
    return len(magic) + len(expected) + n_read


def make_splits(
    trees: TreeReader, store: Store, center: float | None = None, scale: float | None = None
) -> SplitTable:
    """Look the thresholds of a run's trees up in its store.

    ``center`` and ``scale`` are those of :class:`srs_ooc.trees.response.Response`.

    Raises
    ------
    RunError, StoreError
        If trees or store are damaged, or the store was replaced meanwhile.
    """
    keys = features = np.zeros(0, np.int64)
    waiting: list[Ints] = []
    n_trees = n_waiting = largest = 0
    for batch in trees.batches():
        features = np.union1d(features, batch.feature[batch.feature >= 0])
        splits = has_threshold(batch)
        waiting.append(np.unique(batch.feature[splits] << CODE_BITS | batch.code[splits]))
        n_waiting += len(waiting[-1])
        n_trees += len(batch.root)
        largest = max(largest, len(batch.feature))
        if n_waiting > max(_MERGE_ITEMS, len(keys)):
            keys, waiting, n_waiting = np.unique(np.concatenate([keys, *waiting])), [], 0
    keys = np.unique(np.concatenate([keys, *waiting]))
    thresholds = store.boundaries(keys >> CODE_BITS, keys & ((1 << CODE_BITS) - 1))
    positions, names = store.array("positions"), store.names
    categories, manifest = store.categories(), store.manifest
    facts = {
        "n_trees": n_trees,
        "trees_nbytes": trees.nbytes,
        "largest": largest,
        "code_nbytes": manifest.code_nbytes,
        "categories": [categories.of(feature) for feature in features.tolist()],
        "center": center,
        "scale": scale,
        "classes": list(manifest.classes),
        "is_risk": "events" in manifest.row_columns,
        "target_name": manifest.target_name,
        "row_id_name": manifest.row_id_name,
        "table": digest_of(manifest.source),
        "n_rows": manifest.n_rows,
    }
    found = tuple(names[int(positions[feature])] for feature in features.tolist())
    table = SplitTable(features, found, keys, thresholds, facts)
    store.check_unchanged()
    return table


def digest_of(source: dict[str, Any]) -> list[int] | None:
    """Return what tells a table from others, where a manifest says it: CRC-32 and size."""
    return [source["crc32"], source["nbytes"]] if "crc32" in source else None


def has_threshold(trees: Trees) -> Bools:
    """Return which nodes split values at a threshold between two codes; bool (n_nodes,).

    Not those that split categories, nor those that part missing values from all others.
    """
    within = (trees.code >= 0) & (trees.code < ALL_CODES)
    return np.asarray((trees.feature >= 0) & (trees.how != How.MAPPED) & within, np.bool_)


# The ensemble of a run (the paper's second result) applied to rows: the mean of its trees.


def probabilities(
    trees: TreeReader, splits: SplitTable, values: Floats, n_rows: int, *, as_codes: bool
) -> Floats:
    """Return the mean class shares, or mean votes, of the first ``n_rows`` rows of a panel.

    NaN is a missing value; a category not known is -1. Trees are read from disk a part at a time.
    Sums are taken in the order of trees, row by row, so the result does not depend on how rows or
    trees are parted.

    Parameters
    ----------
    trees : TreeReader
        The run's trees.
    splits : SplitTable
        For these trees.
    values : float64 (n_used, at least n_rows)
        The features of ``splits``.
    n_rows : int
        Rows wanted.
    as_codes : bool
        The values are codes of the training store.

    Returns
    -------
    float64 (n_rows, n_classes)
        Of a regression the mean targets, as the only column.
    """
    facts = splits.facts
    shares = np.zeros((n_rows, max(1, len(facts["classes"]))))
    n_trees = 0
    for batch in trees.batches():
        n_trees += len(batch.root)
        slot = batch.slots(splits.features)
        given = slot, _thresholds(batch, slot, splits, as_codes=as_codes), values
        if not (trees.ensemble.votes and facts["classes"]):
            add_shares(batch, *given, shares, facts["code_nbytes"])
            continue
        for one in batch.parts(1):  # a tree's vote: the likeliest class, the first of equal ones
            own = np.zeros_like(shares)
            add_shares(one, *given, own, facts["code_nbytes"])
            shares[np.arange(n_rows), own.argmax(axis=1)] += 1.0
    shares /= n_trees
    return shares if facts["scale"] is None else facts["center"] + shares / facts["scale"]


def _thresholds(trees: Trees, slot: Ints, splits: SplitTable, *, as_codes: bool) -> Floats:
    """Return the threshold of each node; infinite where all values that are there go one way."""
    if as_codes:
        return trees.code.astype(np.float64)
    threshold = np.where(trees.code < 0, -np.inf, np.inf)
    looked_up = has_threshold(trees) & (slot >= 0)
    keys = trees.feature[looked_up] << CODE_BITS | trees.code[looked_up]
    threshold[looked_up] = splits.thresholds[np.searchsorted(splits.keys, keys)]
    return threshold
