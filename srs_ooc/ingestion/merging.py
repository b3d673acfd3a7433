"""Stores of pieces of a table, put together into the store of the whole.

The features of each piece lie in the order of the whole, so that all of them are read from first to
last, once. Nothing is coded again: codes depend on a feature's own values alone.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.budget import resident_nbytes
from srs_ooc.base.text import MB
from srs_ooc.ingestion.contents import ByteProgress, stored_positions
from srs_ooc.ingestion.memory import budget_of
from srs_ooc.ingestion.scratch import text_blocks
from srs_ooc.store.manifest import CATEGORICAL, ROW_ARRAYS, Manifest, Shape, codes_chunk_features
from srs_ooc.store.store import Store
from srs_ooc.store.writing import (
    CodesWriter,
    FloatsWriter,
    write_coordinate,
    write_metadata,
    write_small,
    write_texts,
)
from srs_ooc.trees.block import Block

_BY_FEATURE = ("kinds", "n_missing", "n_codes", "exact")
_FEATURE_NBYTES = 40
"""Memory of a feature: its place, those of its name, and an array of its facts."""
_BATCH_NBYTES = 48 * MB


class _Order:
    """Which piece each feature of the whole comes from, and how far each piece is read."""

    def __init__(self, sizes: list[int]) -> None:
        self.positions = stored_positions(sum(sizes))
        self._ends = np.cumsum(sizes)

    def batches(self, size: int) -> Iterator[tuple[int, list[tuple[int, int, NDArray[np.intp]]]]]:
        """Yield the first feature of each batch, and its parts.

        A part is the piece, the first of its features as stored there, and their places in the
        batch: they follow each other in both.
        """
        read = np.zeros(len(self._ends), np.int64)
        for first in range(0, len(self.positions), size):
            which = np.searchsorted(self._ends, self.positions[first : first + size], "right")
            parts = []
            for piece in np.unique(which).tolist():
                places = np.flatnonzero(which == piece)
                parts.append((piece, int(read[piece]), places))
                read[piece] += len(places)
            yield first, parts


class Merging:
    """Writes the store of a table from those of its pieces.

    Parameters
    ----------
    folder : Path
        Empty; to be published by the caller.
    stores : list of Store
        Of pieces with the same rows, in the order of their features.
    cap_nbytes : int
        Cap on the memory of the whole process.
    progress : callable
        Told of the bytes of codes written.

    Raises
    ------
    BudgetError
        If the cap cannot hold it.
    """

    def __init__(
        self, folder: Path, stores: list[Store], cap_nbytes: int, progress: ByteProgress
    ) -> None:
        self._folder, self._stores, self._tell = folder, stores, progress
        one = stores[0].manifest
        self._shape = shape = Shape(one.n_rows, sum(store.n_features for store in stores))
        dtypes = {store.manifest.values_dtype for store in stores}
        self._values_dtype = "float32" if dtypes == {"float32"} else one.values_dtype and "float64"
        self._arrays = one.float_arrays
        self._dtype = np.dtype(self._values_dtype or "float64")
        n_items = next(iter(self._arrays.values()))
        column_nbytes = one.n_rows * 2 * one.code_nbytes + len(self._arrays) * n_items * 8
        step = FloatsWriter(folder, "", Shape(n_items, shape.n_features), self._dtype).chunk[0]
        self._batch = max(1, _BATCH_NBYTES // (column_nbytes * step)) * step
        budget = budget_of(cap_nbytes, resident_nbytes())
        budget.grant("places and names", _FEATURE_NBYTES * shape.n_features)
        budget.grant("features as read and written", self._batch * column_nbytes + 8 * MB)
        budget.check()
        self._order = _Order([store.n_features for store in stores])

    def write(self, source: dict[str, Any]) -> Manifest:
        """Write everything; ``source`` says where the table came from.

        Raises
        ------
        StoreError
            If a piece is damaged.
        """
        one, shape = self._stores[0].manifest, self._shape
        checksums, chunk_features = self._write_codes()
        floats_chunk = (0, 0)
        lengths: dict[str, int] = {}
        for name, n_items in self._arrays.items():
            floats = self._write_floats(name, n_items)
            floats_chunk = floats.chunk
            checksums |= write_small(self._folder, f"{name}_crc32c", [floats.crcs])
            lengths[f"{name}_crc32c"] = len(floats.crcs)
        for name in _BY_FEATURE:
            checksums |= write_small(self._folder, name, self._by_feature(name))
        checksums |= self._write_texts(lengths) | self._write_categories(lengths)
        for name in (name for name in one.small_arrays if name in ROW_ARRAYS):
            checksums |= write_small(self._folder, name, [self._stores[0].array(name)])
        manifests = [store.manifest for store in self._stores]
        manifest = replace(
            one,
            n_features=shape.n_features,
            kind_counts={k: sum(m.kind_counts[k] for m in manifests) for k in one.kind_counts},
            chunk_features=chunk_features,
            values_dtype=self._values_dtype,
            n_missing_cells=sum(m.n_missing_cells for m in manifests),
            n_missing_features=sum(m.n_missing_features for m in manifests),
            source=source,
            checksums=checksums,
            values_chunk=floats_chunk,
            lengths={},
        )
        every = {n: lengths.get(n) or shape.length_of(n) for n in manifest.small_arrays}
        manifest = replace(manifest, lengths=every)
        write_metadata(self._folder, manifest)
        return manifest

    def _write_codes(self) -> tuple[dict[str, int], int]:
        one, shape = self._stores[0].manifest, self._shape
        missing = np.dtype(one.code_dtype).type(one.missing_code)
        chunk_features = codes_chunk_features(shape, one.code_nbytes)
        writer = CodesWriter(self._folder, shape, chunk_features, missing)
        block = Block(min(self._batch, shape.n_features), one.n_rows, one.code_nbytes, tiled=False)
        with ExitStack() as stack:
            stack.callback(writer.abandon)
            columns = [stack.enter_context(s.columns(mapped=False)) for s in self._stores]
            for first, parts in self._order.batches(self._batch):
                n = sum(len(places) for _, _, places in parts)
                codes = np.empty((n, one.n_rows), one.code_dtype)
                for piece, start, places in parts:
                    items = np.arange(start, start + len(places), dtype=np.uint32)
                    columns[piece].gather(items, block)
                    read = block.codes.view(one.code_dtype)[: len(places) * one.n_rows]
                    codes[places] = read.reshape(len(places), one.n_rows)
                writer.write(codes)
                self._tell("merging", (first + n) * one.n_rows, shape.n_features * one.n_rows)
            writer.close()
        return dict(writer.checksums), chunk_features

    def _write_floats(self, name: str, n_items: int) -> FloatsWriter:
        shape = Shape(n_items, self._shape.n_features)
        writer = FloatsWriter(self._folder, name, shape, self._dtype)
        readers = [store.values(name) for store in self._stores]
        for first, parts in self._order.batches(self._batch):
            n = sum(len(places) for _, _, places in parts)
            values = np.empty((n, n_items), self._dtype)
            for piece, start, places in parts:
                stored = np.arange(start, start + len(places))
                for i, row, some in readers[piece].columns(stored):
                    values[places[i], row : row + len(some)] = some
            writer.write(first, values)
        writer.sync()
        return writer

    def _by_feature(self, name: str) -> Iterator[NDArray[Any]]:
        """Yield an array of the features of the whole, in stored order."""
        arrays = [store.array(name) for store in self._stores]
        for _, parts in self._order.batches(self._batch):
            out = np.empty(sum(len(places) for _, _, places in parts), arrays[0].dtype)
            for piece, start, places in parts:
                out[places] = arrays[piece][start : start + len(places)]
            yield out

    def _write_texts(self, lengths: dict[str, int]) -> dict[str, int]:
        """Write names, row ids, places, and the coordinates that follow from them."""
        names = (name for store in self._stores for name in store.names)
        checksums, _, lengths["names_bytes"] = write_texts(
            self._folder, "names", text_blocks(names)
        )
        ids, _, lengths["row_ids_bytes"] = write_texts(
            self._folder, "row_ids", text_blocks(self._stores[0].row_ids)
        )
        positions = self._order.positions
        checksums |= ids | write_small(self._folder, "positions", [positions])
        checksums |= write_coordinate(self._folder, "feature", "names", positions)
        return checksums | write_coordinate(self._folder, "row", "row_ids")

    def _write_categories(self, lengths: dict[str, int]) -> dict[str, int]:
        if not any(store.manifest.kind_counts["categorical"] for store in self._stores):
            return {}
        checksums, n_texts, n_bytes = write_texts(
            self._folder, "categories", text_blocks(self._categories())
        )
        lengths |= {"categories_bytes": n_bytes, "categories_offsets": n_texts + 1}
        kinds = np.concatenate(list(self._by_feature("kinds")))
        n_codes = np.concatenate(list(self._by_feature("n_codes")))
        firsts = np.zeros(len(kinds) + 1, np.int64)
        np.cumsum(np.where(kinds == CATEGORICAL, n_codes, 0), out=firsts[1:])
        return checksums | write_small(self._folder, "categories_first", [firsts])

    def _categories(self) -> Iterator[str]:
        """Yield the categories of all features, in stored order."""
        found = [store.categories() for store in self._stores]
        for _, parts in self._order.batches(self._batch):
            stored = {
                int(place): (piece, start + i)
                for piece, start, places in parts
                if self._stores[piece].manifest.kind_counts["categorical"]
                for i, place in enumerate(places)
            }
            for place in sorted(stored):
                piece, feature = stored[place]
                yield from found[piece].of(feature) or ()
