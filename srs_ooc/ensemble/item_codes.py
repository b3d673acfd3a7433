"""The codes of the items that trees use, as they are and altered, some rows at a time."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from srs_ooc.ensemble.altered import mirror, permutation
from srs_ooc.ensemble.unseen import Unseen
from srs_ooc.store.store import ColumnStore
from srs_ooc.trees.block import Block

PIECE = 512
"""Columns that are read together."""

Codes = NDArray[np.unsignedinteger]


def piece_nbytes(code_nbytes: int, n_repeats: int) -> int:
    """Return the bytes of a row in the columns that are read together."""
    return PIECE * code_nbytes * (4 + n_repeats) + 32 * (1 + n_repeats)


@dataclass(frozen=True)
class ItemCodes:
    """Reads the codes of items: features, and decoys at the rows they were trained on.

    Attributes
    ----------
    columns : ColumnStore
        The store's, open.
    items : int64 (n_items,)
        Ascending; item m p + f is the decoy of feature f in family m.
    mirrored : uint16 (n_items,)
        Codes of those that are mirrored; 0 of those that are permuted.
    unseen : Unseen
        The rows.
    trained : int32 (n_trained,)
        Rows of the store trained on.
    families : int32 (n_families, n_trained) or None
        The training row whose code a decoy of each family has; None where there are only features.
    n_repeats : int
        Permutations.
    seed : int
        They follow from it.
    """

    columns: ColumnStore
    items: NDArray[np.int64]
    mirrored: NDArray[np.uint16]
    unseen: Unseen
    trained: NDArray[np.int32]
    families: NDArray[np.int32] | None
    n_repeats: int
    seed: int

    def read(self, rows: slice) -> tuple[Codes, list[Codes]]:
        """Return the codes of some of the rows: as they are, and altered once a repeat.

        Returns
        -------
        codes : uint8 or uint16 (n_items, n_rows)
            As they are.
        altered : list of the same
            One for each repeat.

        Raises
        ------
        StoreError
            If the store cannot be read.
        """
        n = len(self.unseen.rows)
        wanted = [np.arange(n)[rows]]
        if (self.mirrored == 0).any():
            wanted += [permutation(self.seed, k, n)[rows] for k in range(self.n_repeats)]
        n_each, code_nbytes = len(wanted[0]), self.columns.manifest.code_nbytes
        found = [np.empty((len(self.items), n_each), f"u{code_nbytes}") for _ in wanted]
        places = np.concatenate(wanted)
        block = Block(PIECE, len(places), code_nbytes, tiled=False)
        memory = block.codes.view(f"u{code_nbytes}")
        for family, low, high in self._pieces():
            features = self.items[low:high] - family * self.columns.manifest.n_features
            self.columns.gather(features.astype(np.uint32), block, self._rows(family, places))
            read = memory[: (high - low) * len(places)].reshape(high - low, len(places))
            for k, out in enumerate(found):
                out[low:high] = read[:, k * n_each : (k + 1) * n_each]
        return found[0], self._altered(found)

    def _altered(self, found: list[Codes]) -> list[Codes]:
        at = np.flatnonzero(self.mirrored)
        if len(found) == 1:
            found.append(np.empty_like(found[0]))
        for altered in found[1:]:
            for low in range(0, len(at), PIECE):
                some = at[low : low + PIECE]
                altered[some] = mirror(found[0][some], self.mirrored[some])
        return found[1:]

    def _pieces(self) -> Iterator[tuple[int, int, int]]:
        """Yield (family, first, stop) of items of one family, read together."""
        n_features = self.columns.manifest.n_features
        n_families = 0 if self.families is None else len(self.families)
        for family in range(1 + n_families):
            bounds = np.searchsorted(self.items, [family * n_features, (family + 1) * n_features])
            first, stop = map(int, bounds)
            for low in range(first, stop, PIECE):
                yield family, low, min(low + PIECE, stop)

    def _rows(self, family: int, places: NDArray[np.intp]) -> NDArray[np.int32]:
        """Return the rows of the store whose codes items of a family have at some of the rows."""
        if family == 0 or self.families is None:
            return self.unseen.rows[places]
        of_decoys = self.families[family - 1][self.unseen.places[places]]
        rows: NDArray[np.int32] = self.trained[of_decoys]
        return rows
