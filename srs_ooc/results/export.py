"""Columns of a store as a file, or as a smaller store."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.budget import Budget, Lease
from srs_ooc.base.errors import StoreError, UsageError
from srs_ooc.base.files import published_file
from srs_ooc.base.text import MB
from srs_ooc.results.export_formats import Block, Exported, extra_nbytes, is_store_name, writer_of
from srs_ooc.results.export_store import COLUMN_NBYTES, export_store, store_leases
from srs_ooc.results.gathered import gather_columns, places_of, read_bytes
from srs_ooc.store.store import Store

_BLOCK_NBYTES = MB


def export_columns(
    store: Store,
    positions: NDArray[np.integer[Any]],
    out: Path,
    *,
    cap_nbytes: int | None = None,
    safe: bool = False,
) -> None:
    """Write columns of a store to a file, in the format that its name ends in.

    A store of their own if that is ``.zarr`` (:mod:`srs_ooc.results.export_store`). CSV unless it
    says otherwise (:mod:`srs_ooc.results.export_formats`): the header is the name of the row ids
    (``row_id`` where rows are numbered), the names of the columns, and the name of the target. A
    value is the shortest decimal that reads back as the same float64; a category is its
    text; a missing one is empty. Rows go through memory in bounded blocks.

    Parameters
    ----------
    store : Store
        The store.
    positions : int (k,)
        Source positions of the wanted features, in the order wanted.
    out : Path
        The file or store to make; it appears complete or not at all.
    cap_nbytes : int, optional
        Cap on the memory of the whole process.
    safe : bool
        Texts that a spreadsheet would take for formulas are marked, see
        :func:`srs_ooc.base.text.no_formula`.

    Raises
    ------
    BudgetError
        If the cap cannot hold a row and what it takes to read.
    StoreError
        If the store is damaged, replaced meanwhile, or keeps no values, or ``out`` cannot be
        written.
    UsageError
        If ``out`` exists, or a position is outside the table.
    """
    if out.exists():
        raise UsageError(f"{out}: expected a path that is free, found a file. Choose another.")
    wanted = np.asarray(positions, np.int64)
    if len(wanted) and not 0 <= wanted.min() <= wanted.max() < store.n_features:
        raise UsageError(
            f"expected positions in 0 .. {store.n_features - 1}, found "
            f"{int(wanted.min())} .. {int(wanted.max())}. Check that run and store belong "
            "together."
        )
    with _disk_errors(out):
        if is_store_name(out):
            export_store(store, wanted, out, cap_nbytes=cap_nbytes)
        else:
            _export_file(store, wanted, out, cap_nbytes, safe=safe)


@contextmanager
def _disk_errors(out: Path) -> Iterator[None]:
    """Turn errors of the disk into why ``out`` cannot be written."""
    try:
        yield
    except FileExistsError as error:
        raise UsageError(
            f"{out}: expected a path that is free: {error}. Choose another, or wait for it."
        ) from None
    except OSError as error:
        raise StoreError(
            f"{out}: cannot be written: {error.strerror or error}. "
            "Choose a path in a folder that exists, can be written, and has room."
        ) from error


def export_nbytes(store: Store, n_columns: int, out: Path) -> int:
    """Return the memory that an export of so many columns takes at least, in bytes."""
    leases = (store_leases if is_store_name(out) else _file_leases)(store, n_columns, out)
    return sum(lease.n_bytes for lease in leases)


def _file_leases(store: Store, n_columns: int, out: Path) -> list[Lease]:
    return [
        Lease("a chunk of values", 3 * store.values().chunk_nbytes),
        Lease(f"a row of {n_columns} columns", COLUMN_NBYTES * n_columns),
        Lease(f"{store.n_features} places", store.n_features),
        Lease(f"target of {store.n_rows} rows", 16 * store.n_rows),
        Lease("rows on their way", 3 * _BLOCK_NBYTES + extra_nbytes(writer_of(out))),
    ]


def _export_file(
    store: Store, wanted: NDArray[np.int64], out: Path, cap_nbytes: int | None, *, safe: bool
) -> None:
    write = writer_of(out)
    store.values()  # or say that it keeps none
    if cap_nbytes is not None:
        Budget.of(cap_nbytes, _file_leases(store, len(wanted), out)).check()
    with (
        published_file(out) as scratch,
        store.unchanged(),
        tempfile.TemporaryFile(dir=out.parent) as columns,
    ):
        gather_columns(columns.fileno(), store, wanted)
        with scratch.open("wb") as file:
            write(file, _rows_of(columns.fileno(), store, wanted, safe=safe))


def _rows_of(handle: int, store: Store, positions: NDArray[np.int64], *, safe: bool) -> Exported:
    """Return the gathered columns as rows, with what is known of them."""
    names, manifest = store.names, store.manifest
    header = [names[i] for i in positions.tolist()]
    id_name = manifest.row_id_name
    if id_name is None:
        id_name = "row_id"
        while id_name in header or id_name == manifest.target_name:
            id_name = "_" + id_name
    return Exported(
        id_name,
        manifest.target_name,
        header,
        _categories(store, positions),
        manifest.classes,
        manifest.n_rows,
        _blocks(handle, store, len(positions)),
        safe,
    )


def _blocks(handle: int, store: Store, n_columns: int) -> Iterator[Block]:
    target, ids, start = store.target(), iter(store.row_ids), 0
    for block in _row_blocks(handle, store.n_rows, n_columns):
        targets = target[start : start + len(block)].tolist()
        start += len(block)
        yield list(islice(ids, len(block))), block, targets


def _categories(store: Store, positions: NDArray[np.int64]) -> list[list[str] | None]:
    """Return the categories of the columns at source positions; None where one has none."""
    if not store.manifest.kind_counts.get("categorical"):
        return [None] * len(positions)
    places, categories = places_of(store, positions), store.categories()
    return [categories.of(feature) for feature in places.tolist()]


def _row_blocks(handle: int, n_rows: int, n_columns: int) -> Iterator[NDArray[np.float64]]:
    step = max(1, _BLOCK_NBYTES // (8 * max(1, n_columns)))
    for start in range(0, n_rows, step):
        stop = min(start + step, n_rows)
        block = np.empty((stop - start, n_columns))
        for column in range(n_columns):
            data = read_bytes(handle, 8 * (stop - start), 8 * (column * n_rows + start))
            block[:, column] = np.frombuffer(data)
        yield block
