"""Some columns of a store as a smaller store, with all that is known of its rows."""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.budget import Budget, Lease, cap_to_name
from srs_ooc.base.errors import BudgetError
from srs_ooc.base.files import published_folder
from srs_ooc.base.text import MB
from srs_ooc.ingestion.columns import FeatureKinds
from srs_ooc.ingestion.formats import TextCoder
from srs_ooc.ingestion.ingest_memory import (
    CATEGORY_NBYTES,
    CATEGORY_WORK_NBYTES,
    SLACK_NBYTES,
    batch_nbytes,
    check_disk,
    disk_of,
    fit_batch,
    smallest_batch,
)
from srs_ooc.ingestion.ingest_options import StoreForm, TableFacts, stored_positions
from srs_ooc.ingestion.rows import KeptRows
from srs_ooc.ingestion.scratch import joined, text_blocks
from srs_ooc.ingestion.writer import write_store
from srs_ooc.results.gathered import gather_columns, places_of, read_bytes
from srs_ooc.store.manifest import CATEGORICAL, Shape
from srs_ooc.store.store import Store

COLUMN_NBYTES = 400
"""Memory of a column: its name, its place, what is kept of it until the store is complete."""
_ROW_NBYTES = 32
_CATEGORY_PLACE_NBYTES = 24
"""Memory of a feature of the larger store, where it has categories: where they lie."""


def export_store(
    store: Store, positions: NDArray[np.int64], out: Path, *, cap_nbytes: int | None = None
) -> None:
    """Write columns of a store to a store of their own, which appears complete or not at all.

    It keeps values, codes, kinds and categories of the columns, and of the rows the target, ids,
    weights, strata and groups: all as they are.

    Parameters
    ----------
    store : Store
        The store; it must keep values.
    positions : int64 (k,)
        Source positions of the wanted features, each once, in the order they are to have.
    out : Path
        The store to make.
    cap_nbytes : int, optional
        Cap on the memory of the whole process.

    Raises
    ------
    BudgetError
        If the cap cannot hold a batch of columns and what it takes to read.
    StoreError
        If the store is damaged or keeps no values, or the disk has no room.
    OSError
        If ``out`` exists or cannot be written.
    """
    shape, form = _shape_and_form(store, len(positions))
    memory = _Memory(store, len(positions), out, cap_nbytes)
    with (
        published_folder(out) as folder,
        store.unchanged(),
        tempfile.TemporaryFile(dir=out.parent) as scratch,
    ):
        check_disk(folder, *disk_of(shape, form, by_rows=True))
        gather_columns(scratch.fileno(), store, positions)
        columns = _Columns(scratch.fileno(), store, positions, memory.pool)
        kinds = columns.kinds()
        if not columns.all_coded:
            raise memory.too_small()
        write_store(
            folder,
            columns,
            store.target(),
            _facts(store),
            text_blocks(store.names[i] for i in positions.tolist()),
            row_ids=text_blocks(store.row_ids),
            row_arrays=_row_arrays(store),
            kinds=kinds,
            form=form,
            batch_features=memory.batch,
            n_threads=memory.n_threads,
        )


def _shape_and_form(store: Store, n_columns: int) -> tuple[Shape, StoreForm]:
    manifest = store.manifest
    form = StoreForm(manifest.code_dtype, manifest.values_dtype)
    return Shape(store.n_rows, n_columns), form


def store_leases(store: Store, n_columns: int, out: Path) -> list[Lease]:
    """Return the least memory of an export to a store, besides the process.

    Raises
    ------
    StoreError
        If the store keeps no values.
    """
    has_categories = bool(store.manifest.kind_counts["categorical"])
    return [
        Lease(
            "columns on their way", max(_least(store, n_columns), 3 * store.values().chunk_nbytes)
        ),
        Lease(f"{n_columns} columns of {out.name}", COLUMN_NBYTES * n_columns),
        Lease(
            f"places of {store.n_features} features",
            (_CATEGORY_PLACE_NBYTES if has_categories else 1) * store.n_features,
        ),
        Lease(f"what is known of {store.n_rows} rows", _ROW_NBYTES * store.n_rows),
        Lease("working room", SLACK_NBYTES + CATEGORY_WORK_NBYTES * has_categories),
    ]


def _least(store: Store, n_columns: int) -> int:
    """Return the memory of the smallest batch of columns, in bytes."""
    shape, form = _shape_and_form(store, n_columns)
    return batch_nbytes(shape, form, smallest_batch(shape, form), 1)


class _Memory:
    """What the cap leaves for a batch of columns, and for the texts of categories."""

    def __init__(self, store: Store, n_columns: int, out: Path, cap: int | None) -> None:
        self.batch, self.n_threads, self._cap = None, 2, cap
        n_texts_nbytes = CATEGORY_NBYTES
        leases = store_leases(store, n_columns, out)
        if cap is not None:
            budget = Budget.of(cap, leases)
            budget.check()
            has_categories = bool(store.manifest.kind_counts["categorical"])
            n_texts_nbytes = min(n_texts_nbytes, budget.free_nbytes // 2) * has_categories
            room = _least(store, n_columns) + budget.free_nbytes - n_texts_nbytes
            self.batch, self.n_threads = fit_batch(*_shape_and_form(store, n_columns), room)
        self.pool = TextCoder(n_texts_nbytes)

    def too_small(self) -> BudgetError:
        """Return the error of texts of categories that do not fit."""
        if self._cap is None:
            return BudgetError("expected less text in the categories of these columns, found more.")
        return BudgetError(
            f"--memory-mb {self._cap // MB} cannot hold the texts of the categories of these "
            f"columns, which may take half of what is left. Try --memory-mb "
            f"{cap_to_name(2 * self._cap)}."
        )


class _Columns:
    """Gathered columns in the order of the new store; categories as numbers of texts."""

    def __init__(
        self, handle: int, store: Store, positions: NDArray[np.int64], pool: TextCoder
    ) -> None:
        self._handle, self._pool, self._path = handle, pool, store.path
        self.n_rows, self.n_features = store.n_rows, len(positions)
        self._order = stored_positions(len(positions)).astype(np.int64)
        self._places = places_of(store, positions)[self._order]
        self._kinds = store.kinds()[self._places]
        self._categories = store.categories()
        self.all_coded = True

    def kinds(self) -> FeatureKinds:
        """Return the kinds, all of them known, once every text has its number."""
        is_text = self._kinds == CATEGORICAL
        for feature in np.flatnonzero(is_text).tolist():
            self._numbers(feature)
        path, rows = str(self._path), KeptRows(self.n_rows)
        return FeatureKinds(self._kinds, is_text, self._pool, lambda *_: (path, None), rows)

    def _numbers(self, feature: int) -> NDArray[np.float64]:
        """Return the number of the text of each code of a categorical feature."""
        texts = self._categories.of(int(self._places[feature])) or []
        numbers = self._pool.code(*joined([text.encode() for text in texts]))
        self.all_coded &= len(numbers) == len(texts)
        return numbers.astype(np.float64)

    def read(self, start: int, stop: int) -> NDArray[np.float64]:
        """Return the values (stop - start, n_rows) of stored features ``start .. stop - 1``."""
        out = np.empty((stop - start, self.n_rows))
        n_bytes = 8 * self.n_rows
        for line, feature in zip(out, range(start, stop), strict=True):
            place = int(self._order[feature])
            line[:] = np.frombuffer(read_bytes(self._handle, n_bytes, n_bytes * place))
            if self._kinds[feature] == CATEGORICAL:
                there = ~np.isnan(line)
                line[there] = self._numbers(feature)[line[there].astype(np.int64)]
        return out


def _facts(store: Store) -> TableFacts:
    manifest = store.manifest
    source: dict[str, Any] = {
        "format": "store",
        "name": store.path.name,
        "fingerprint": store.fingerprint,
        "n_features": store.n_features,
    }
    return TableFacts(
        manifest.target_name,
        manifest.classes,
        manifest.row_id_name,
        manifest.n_dropped_rows,
        manifest.row_columns,
        manifest.inferred,
        source,
    )


def _row_arrays(store: Store) -> dict[str, NDArray[Any]]:
    given = {"weights": store.weights(), "strata": store.strata(), "groups": store.groups()}
    return {name: array for name, array in given.items() if array is not None}
