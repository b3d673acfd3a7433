"""The rows of a store, in panels of the columns that trees use."""

from collections.abc import Iterator
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import InputError, StoreError
from srs_ooc.ensemble.panels import TEXT_NBYTES, Panel, shown, translate, translation
from srs_ooc.runs.tree_splits import SplitTable
from srs_ooc.store.store import Store
from srs_ooc.trees.block import Block, block_nbytes

_OPEN_NBYTES = 8 << 20  # allowance for chunk files that are open, and what is decoded of one


def most_store_nbytes(store: Store, code_nbytes: int) -> int:
    """Return a bound on what a store needs beside rows, whichever of its columns trees use."""
    block = 2 * block_nbytes(1, store.n_rows, code_nbytes)
    return 24 * store.n_features + _OPEN_NBYTES + block


class StorePanels:
    """Another store than the training store: values, of columns found by name.

    Raises
    ------
    InputError, StoreError
        If a column is missing; if the store keeps no values or is damaged.
    """

    def __init__(self, store: Store, splits: SplitTable) -> None:
        self._store, self._splits = store, splits
        found = store.names.find(list(splits.names))
        absent = [n for n, source in zip(splits.names, found.tolist(), strict=True) if source < 0]
        if absent:
            raise InputError(
                f"{store.place}: expected the {len(splits.names)} features that the trees use, "
                f"found {len(absent)} of them missing: {shown(absent)}. Features are found by "
                "name; ingest a table that has them."
            )
        sources = np.asarray(store.array("positions"), np.int64)
        self._stored = np.argsort(sources)[found]
        self._codes = self._translations()
        self.most_rows = store.n_rows

    def _translations(self) -> list[NDArray[np.float64] | None]:
        """Return for each column the training code of each of its categories."""
        own, codes = self._store.categories(), []
        trained = self._splits.facts["categories"]
        for i, (stored, known) in enumerate(zip(self._stored.tolist(), trained, strict=True)):
            texts = own.of(stored)
            if (texts is None) != (known is None):
                kinds = ("numbers", "categories") if texts is None else ("categories", "numbers")
                raise InputError(
                    f"{self._store.place}: expected {kinds[1]} in feature "
                    f"{self._splits.names[i]!r}, as in training, found {kinds[0]}. "
                    "Ingest the table with --kind."
                )
            codes.append(None if texts is None or known is None else translation(texts, known))
        return codes

    @property
    def fixed_nbytes(self) -> int:
        """Bytes it needs whatever the size of its panels."""
        return 24 * self._store.n_features + TEXT_NBYTES * len(self._stored) + _OPEN_NBYTES

    @property
    def row_nbytes(self) -> int:
        """Bytes it needs for each row of a panel."""
        return 9 * len(self._stored) + 2 * TEXT_NBYTES

    def panels(self, n_rows: int) -> Iterator[Panel]:
        """Yield all rows, ``n_rows`` at a time, each panel valid until the next."""
        order = np.argsort(self._stored)
        is_same = self._store.manifest.target_name == self._splits.facts["target_name"]
        values = np.empty((len(order), n_rows))
        for first, ids, labels in row_facts(self._store, n_rows):
            stop = first + len(ids)
            for i, row, part in self._store.column_parts(self._stored[order]):
                low, high = max(first, row), min(stop, row + len(part))
                if low < high:
                    values[order[i], low - first : high - first] = part[low - row : high - row]
            for column, codes in zip(values, self._codes, strict=True):
                if codes is not None:
                    translate(column[: len(ids)], codes)
            yield Panel(values, ids, labels if is_same else None)
        self._store.check_unchanged()


class TrainingPanels:
    """The very store a run was made on: its codes, to be compared with the codes of splits."""

    def __init__(self, store: Store, splits: SplitTable) -> None:
        self._store, self._manifest = store, store.manifest
        self._features = splits.features.astype(np.uint32)
        self.most_rows = store.n_rows

    @property
    def fixed_nbytes(self) -> int:
        """Bytes it needs whatever the size of its panels."""
        code_nbytes = self._manifest.code_nbytes
        return TEXT_NBYTES * len(self._features) + 2 * block_nbytes(
            1, self._manifest.n_rows, code_nbytes
        )

    @property
    def row_nbytes(self) -> int:
        """Bytes it needs for each row of a panel."""
        codes = 2 * block_nbytes(len(self._features) + 1, 1, self._manifest.code_nbytes)
        return codes + 9 * len(self._features) + 2 * TEXT_NBYTES

    def panels(self, n_rows: int) -> Iterator[Panel]:
        """Yield all rows, ``n_rows`` at a time, each panel valid until the next."""
        n_used, code_nbytes = len(self._features), self._manifest.code_nbytes
        values = np.empty((n_used, n_rows))
        with self._store.columns(mapped=False) as columns:
            for first, ids, labels in row_facts(self._store, n_rows):
                rows = np.arange(first, first + len(ids), dtype=np.int32)
                block = Block(max(1, n_used), len(rows), code_nbytes, tiled=False)
                if n_used:
                    columns.gather(self._features, block, rows)
                values[:, : len(rows)] = block.as_columns(n_used)
                values[values == self._manifest.missing_code] = np.nan
                yield Panel(values, ids, labels)
        self._store.check_unchanged()


def row_facts(store: Store, n_rows: int) -> Iterator[tuple[int, list[str], list[str]]]:
    """Yield (first row, row ids, labels) of a store, ``n_rows`` at a time."""
    ids, target, manifest = iter(store.row_ids), store.target(), store.manifest
    for first in range(0, manifest.n_rows, n_rows):
        some = list(islice(ids, n_rows))
        codes = target[first : first + n_rows].tolist()
        if len(some) != len(codes):
            raise StoreError(f"{store.place}: expected {manifest.n_rows} row ids, found fewer.")
        if manifest.task == "regression":
            yield first, some, [repr(value) for value in codes]
        else:
            yield first, some, [manifest.classes[code] for code in codes]
