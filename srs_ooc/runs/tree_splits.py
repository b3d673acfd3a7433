"""What a run's trees say: their splits outside its store, and the mean of the trees for rows."""

import json
import struct
import zlib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from srs_ooc.base.arrays import Bools, Floats, Ints
from srs_ooc.base.errors import RunError
from srs_ooc.base.files import crc_of, published_file
from srs_ooc.runs.run_trees import TreeReader
from srs_ooc.store.store import Store
from srs_ooc.trees.saved import ALL_CODES, How, Trees, add_shares

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
    try:
        with file.open("rb") as stream:
            magic, crc = stream.read(len(SPLITS_MAGIC)), stream.read(_CRC.size)
            line = stream.readline()
            body = stream.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _damaged(file, error.strerror or str(error)) from error
    if magic != SPLITS_MAGIC or crc != _CRC.pack(zlib.crc32(body, zlib.crc32(line))):
        raise _damaged(file, "other bytes")
    header = json.loads(line)
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
    except OSError as error:
        raise _damaged(file, error.strerror or str(error)) from error
    if magic != SPLITS_MAGIC or expected != _CRC.pack(crc):
        raise _damaged(file, "other bytes")
    return len(magic) + len(expected) + n_read


def _damaged(file: Path, found: str) -> RunError:
    return RunError(
        f"{file}: expected the thresholds of a run's trees, found {found}. Remove the file; it is "
        "made again from the run's store."
    )


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
    keys, features, facts = _used_keys(trees, store.n_features)
    thresholds = store.boundaries(keys >> CODE_BITS, keys & ((1 << CODE_BITS) - 1))
    positions, names = store.array("positions"), store.names
    categories, manifest = store.categories(), store.manifest
    facts |= {
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


def _used_keys(trees: TreeReader, n_features: int) -> tuple[Ints, Ints, dict[str, Any]]:
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
    return keys, features, {"n_trees": n_trees, "trees_nbytes": trees.nbytes, "largest": largest}


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
