"""Selected columns as a file: row id, the columns' real values, and the target label."""

import errno
import os
import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.atomic import published_file
from srs_ooc.base.budget import Budget
from srs_ooc.base.errors import StoreError, UsageError
from srs_ooc.base.sizes import MB
from srs_ooc.results.export_formats import Block, Exported, extra_nbytes, writer_of
from srs_ooc.store.store import Store

_BLOCK_NBYTES = MB
_COLUMN_NBYTES = 400
"""Memory of a column of one row: its name, its number, its text."""


def export_columns(
    store: Store,
    positions: NDArray[np.integer[Any]],
    out: Path,
    *,
    cap_nbytes: int | None = None,
    safe: bool = False,
) -> None:
    """Write columns of a store to a file, in the format that its name ends in.

    CSV unless it says otherwise (:mod:`srs_ooc.results.export_formats`): the header is the name of
    the row ids (``row_id`` where rows are numbered), the names of the columns, and the name of the
    target. A value is the shortest decimal that reads back as the same float64; a category is its
    text; a missing one is empty. Rows go through memory in bounded blocks.

    Parameters
    ----------
    store : Store
        The store.
    positions : int (k,)
        Source positions of the wanted features, in the order wanted.
    out : Path
        The file to make; it appears complete or not at all.
    cap_nbytes : int, optional
        Cap on the memory of the whole process.
    safe : bool
        Texts that a spreadsheet would take for formulas are marked, see
        :func:`srs_ooc.base.terminal.no_formula`.

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
    write, wanted = writer_of(out), np.asarray(positions, np.int64)
    if len(wanted) and not 0 <= wanted.min() <= wanted.max() < store.n_features:
        raise UsageError(
            f"expected positions in 0 .. {store.n_features - 1}, found "
            f"{int(wanted.min())} .. {int(wanted.max())}. Check that run and store belong "
            "together."
        )
    values = store.values()
    if cap_nbytes is not None:
        budget = Budget(cap_nbytes)
        budget.grant("a chunk of values", 3 * values.chunk_nbytes)
        budget.grant(f"a row of {len(wanted)} columns", _COLUMN_NBYTES * len(wanted))
        budget.grant(f"{store.n_features} places", store.n_features)
        budget.grant(f"target of {store.n_rows} rows", 16 * store.n_rows)
        budget.grant("rows on their way", 3 * _BLOCK_NBYTES + extra_nbytes(write))
        budget.check()
    try:
        with (
            published_file(out) as scratch,
            store.unchanged(),
            tempfile.TemporaryFile(dir=out.parent) as columns,
        ):
            _gather(columns.fileno(), store, wanted)
            with scratch.open("wb") as file:
                write(file, _rows_of(columns.fileno(), store, wanted, safe=safe))
    except FileExistsError as error:
        raise UsageError(
            f"{out}: expected a path that is free: {error}. Choose another, or wait for it."
        ) from None
    except OSError as error:
        raise StoreError(
            f"{out}: cannot be written: {error.strerror or error}. "
            "Choose a path in a folder that exists, can be written, and has room."
        ) from error


def _gather(
    handle: int,
    store: Store,
    positions: NDArray[np.int64],
) -> None:
    """Write the columns one after another, as float64, to a scratch file."""
    wanted = np.sort(positions)
    stored, source = _stored(store, wanted)
    order = np.argsort(positions, kind="stable")
    first = np.searchsorted(wanted, source)
    last = np.searchsorted(wanted, source, side="right")
    for i, row, part in store.column_parts(stored):
        data = part.astype(np.float64).tobytes()
        for column in order[first[i] : last[i]].tolist():
            offset = (column * store.n_rows + row) * 8
            written = 0
            while written < len(data):
                written += os.pwrite(handle, data[written:], offset + written)


def _stored(store: Store, wanted: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the stored positions of sources, ascending, and the source of each."""
    is_wanted = np.zeros(store.n_features, np.bool_)
    is_wanted[wanted] = True
    parts = []
    for start, piece in store.pieces("positions"):
        sources = piece.astype(np.int64)
        here = np.flatnonzero(is_wanted[sources])
        parts.append(np.stack([start + here, sources[here]]))
    stored, source = np.concatenate(parts, axis=1)
    return stored, source


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
    stored, source = _stored(store, positions)
    order = np.argsort(source)
    places = order[np.searchsorted(source, positions, sorter=order)]
    categories = store.categories()
    return [categories.of(feature) for feature in stored[places].tolist()]


def _row_blocks(handle: int, n_rows: int, n_columns: int) -> Iterator[NDArray[np.float64]]:
    step = max(1, _BLOCK_NBYTES // (8 * max(1, n_columns)))
    for start in range(0, n_rows, step):
        stop = min(start + step, n_rows)
        block = np.empty((stop - start, n_columns))
        for column in range(n_columns):
            data = _read(handle, 8 * (stop - start), 8 * (column * n_rows + start))
            block[:, column] = np.frombuffer(data)
        yield block


def _read(handle: int, n_bytes: int, offset: int) -> bytes:
    """Read all the bytes asked for, however many a single call gives."""
    parts: list[bytes] = []
    while n_bytes:
        part = os.pread(handle, n_bytes, offset)
        if not part:
            raise OSError(errno.EIO, "the scratch file ended early")
        parts.append(part)
        n_bytes, offset = n_bytes - len(part), offset + len(part)
    return b"".join(parts)
