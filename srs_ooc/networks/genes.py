"""Which features of a store are regulators and which are targets."""

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import UsageError
from srs_ooc.runs.engine import ItemSource
from srs_ooc.runs.inputs import SideFile
from srs_ooc.store.manifest import CATEGORICAL, CONSTANT
from srs_ooc.store.store import Store
from srs_ooc.trees.block import Block

HASH_COLUMNS = 256
"""Columns that are read together to be compared."""
GENE_NBYTES = 64
"""Bytes kept of a feature while regulators and targets are found and compared."""
DUPLICATE_NBYTES = 300
"""Bytes of a pair of equal columns, of which at most :data:`MOST_DUPLICATES` are kept."""
MOST_DUPLICATES = 1000


@dataclass(frozen=True)
class Genes:
    """Regulators and targets of a network.

    Attributes
    ----------
    regulators, targets : uint32
        Stored positions, ascending.
    """

    regulators: NDArray[np.uint32]
    targets: NDArray[np.uint32]


@dataclass(frozen=True)
class GeneFiles:
    """The files that name regulators and targets, not read yet; None for all features."""

    regulators: SideFile | None
    targets: SideFile | None

    @classmethod
    def of(cls, store: Store, regulators: Path | None, targets: Path | None) -> "GeneFiles":
        """Count the lines of the files that are given.

        Raises
        ------
        UsageError
            If one cannot be read, or has no lines or far too many.
        """
        sides = [
            None if file is None else SideFile.of(file, "feature", store.n_features)
            for file in (regulators, targets)
        ]
        return cls(sides[0], sides[1])

    def n_regulators(self, store: Store) -> int:
        """Return how many regulators the files name at most."""
        return store.n_features if self.regulators is None else self.regulators.n_found

    def n_targets(self, store: Store) -> int:
        """Return how many targets the files name at most."""
        return store.n_features if self.targets is None else self.targets.n_found

    def leases(self) -> list[tuple[str, int]]:
        """Return what reading them needs besides the process: (purpose, bytes)."""
        files = [file for file in (self.regulators, self.targets) if file is not None]
        return [(f"{file.n_lines} lines of {file.what}s", file.n_bytes) for file in files]


def find_genes(store: Store, files: GeneFiles, spare_nbytes: int = 0) -> Genes:
    """Find the features that files name, one a line; all of them where there is no file.

    Raises
    ------
    UsageError
        If a name is none of the store's, a named target is categorical, or a side has nothing.
    """
    named = [_stored(store, file, spare_nbytes) for file in (files.regulators, files.targets)]
    kinds = store.kinds()
    categorical = kinds[named[1]] == CATEGORICAL
    if files.targets is not None and categorical.any():
        first = _name(store, int(named[1][categorical.argmax()]))
        raise UsageError(
            f"{files.targets.file}: expected targets of numbers, found "
            f"{int(categorical.sum())} categorical "
            f"(first: {first!r}). Leave them out; they may be regulators."
        )
    genes = Genes(named[0], named[1][~categorical])
    if not len(genes.targets):
        raise UsageError("--targets: expected features of numbers, found only categories.")
    if len(genes.regulators) == 1 and np.array_equal(genes.regulators, genes.targets):
        raise UsageError("--regulators: expected one besides the only target, found none.")
    return genes


def _stored(store: Store, file: SideFile | None, spare_nbytes: int) -> NDArray[np.uint32]:
    if file is None:
        return np.arange(store.n_features, dtype=np.uint32)
    named = file.find_all(store.names, spare_nbytes)
    pieces = [
        start + np.flatnonzero(named[positions]) for start, positions in store.pieces("positions")
    ]
    return np.concatenate(pieces).astype(np.uint32)


def _name(store: Store, stored: int) -> str:
    return store.names[int(names_of(store, np.array([stored]))[0])]


def names_of(store: Store, stored: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return the places, among the names of a store, of stored features."""
    out = np.empty(len(stored), np.int64)
    for start, positions in store.pieces("positions"):
        here = (stored >= start) & (stored < start + len(positions))
        out[here] = positions[stored[here].astype(np.int64) - start]
    return out


def equal_columns(
    source: ItemSource, genes: Genes, kinds: NDArray[np.uint8], n_rows: int
) -> tuple[int, list[tuple[int, int]]]:
    """Find regulators whose codes equal a target's: to a tree they are the target itself.

    Parameters
    ----------
    source : ItemSource
        The columns, with the rows trained on.
    genes : Genes
        Regulators and targets; constant ones are not compared.
    kinds : uint8 (n_features,)
        Of the store.
    n_rows : int
        Rows trained on.

    Returns
    -------
    n, pairs : int, list of (int, int)
        How many there are, and the first of them: (target, regulator), stored.
    """
    varying = kinds != CONSTANT
    regulators = genes.regulators[varying[genes.regulators]]
    targets = genes.targets[varying[genes.targets]]
    by_hash: dict[bytes, list[int]] = {}
    for feature, digest in _digests(source, regulators, n_rows):
        by_hash.setdefault(digest, []).append(feature)
    pairs = (
        (target, regulator)
        for target, digest in _digests(source, targets, n_rows)
        for regulator in by_hash.get(digest, ())
        if regulator != target
    )
    first = list(islice(pairs, MOST_DUPLICATES))
    return len(first) + sum(1 for _ in pairs), first


def _digests(
    source: ItemSource, features: NDArray[np.uint32], n_rows: int
) -> Iterable[tuple[int, bytes]]:
    code_nbytes = source.columns.manifest.code_nbytes
    block = Block(HASH_COLUMNS, n_rows, code_nbytes, tiled=False)
    for start in range(0, len(features), HASH_COLUMNS):
        some = features[start : start + HASH_COLUMNS]
        source.columns.gather(some, block, source.rows)
        for feature, column in zip(some.tolist(), block.as_columns(len(some)), strict=True):
            yield feature, blake2b(column.tobytes(), digest_size=16).digest()
