"""The memory of an ingest: what each stage leases of the budget, and what the cap leaves."""

import gc
import sys
from dataclasses import dataclass

from srs_ooc.base.budget import Budget, program_nbytes
from srs_ooc.base.text import MB, ceil_div
from srs_ooc.ingestion.contents import StoreForm
from srs_ooc.store.manifest import (
    LONG_NBYTES,
    LONG_ROWS,
    VALUES_CHUNK_NBYTES,
    Shape,
    max_codes,
    values_chunk,
)

PROGRAM_NBYTES = 46 * MB
"""Published allowance for interpreter and libraries, differences between starts included."""

SLACK_NBYTES = 14 * MB
"""Bytes in flight, texts of the rows in flight, metadata, and what allocators keep."""

PANEL_NBYTES = 64 * MB
BATCH_NBYTES = 64 * MB
"""More memory than this gains nothing, unless rows or features are very long."""

THREAD_NBYTES = 8 * MB
"""What the allocator keeps for each further thread of the last stage."""

PIECE_NBYTES = 2 * MB
"""Features of which rows are left out are read in pieces of so many bytes."""

PICKED_ROWS = 1 << 15
"""Rows that are picked at a time where some are left out."""

CATEGORY_NBYTES = 32 * MB
"""Memory that is left for the texts of categories, where the cap is large enough."""

MOST_CATEGORY_NBYTES = 256 * MB

CATEGORY_WORK_NBYTES = 10 * MB
"""Memory of turning texts into categories, beyond the texts."""

_NBYTES_PER_COLUMN_ORDERING = 24  # keys, their order, positions
COLUMN_NBYTES = 14
"""Memory of a column that is read: slots twice, ours and the reader's, positions, kinds twice."""

_NBYTES_PER_ROW = 3  # which rows are kept, twice, and a row's place
_NBYTES_PER_ROW_ID = 8  # hashes, sorted in place
_N_COMPRESSING = 6  # chunks of values, and pieces of what is read

FEW_ROWS = 1 << 16
"""Tables of so many rows are asked for the same memory, however many they have."""


def load_libraries() -> None:
    """Load what will be needed, so that the memory it takes is known when memory is shared out.

    Large blocks of memory are given back to the system from then on when they are freed.
    """
    import srs_ooc.store.values
    from srs_ooc.native import _native

    _native.return_large_blocks()
    own_nbytes()  # is measured once, now
    assert srs_ooc.store.values


def own_nbytes() -> int:
    """Return what the program takes, before there is work."""
    return program_nbytes(PROGRAM_NBYTES)


def budget_of(cap: int, resident: int) -> Budget:
    """Return the budget of a stage of an ingest under a cap, beside what is held; all in bytes."""
    budget = Budget(cap, resident)
    budget.grant("working room", SLACK_NBYTES)
    return budget


def release() -> None:
    """Give back what an ingest has let go of, before another one counts what there is."""
    gc.collect()
    if "pyarrow" in sys.modules:
        sys.modules["pyarrow"].default_memory_pool().release_unused()


@dataclass(frozen=True)
class IngestMemory:
    """What the stages of an ingest may use.

    Attributes
    ----------
    cap_nbytes, resident_nbytes : int
        The cap, and what the process held when memory was shared out.
    panel_rows : int
        Rows of a panel.
    category_nbytes : int
        Memory for the texts of categorical features, in bytes; held to the end.
    """

    cap_nbytes: int
    resident_nbytes: int
    panel_rows: int
    category_nbytes: int

    def writing(
        self, shape: Shape, form: StoreForm, held_nbytes: int = 0, *, n_source_rows: int = 0
    ) -> tuple[int, int]:
        """Return the features of a batch and the threads of the last stage.

        ``held_nbytes`` are held besides. Where rows are left out, ``shape`` has those that are
        kept, and all ``n_source_rows`` of the source go through each thread in pieces.
        """
        drops_rows = n_source_rows > shape.n_rows
        apart = piece_nbytes(n_source_rows) if drops_rows else 0
        budget = self._writing(Shape(max(n_source_rows, shape.n_rows), shape.n_features))
        budget.grant("categories, or a table that is held", held_nbytes)
        return fit_batch(shape, form, budget.free_nbytes, apart=apart)

    def has_room(self, shape: Shape, form: StoreForm, held_nbytes: int = 0) -> bool:
        """Return whether the table fits in memory beside ``held_nbytes`` and a full last stage.

        That stage may copy each batch once more, as where rows are left out.
        """
        step = smallest_batch(shape, form)
        full = max(BATCH_NBYTES, batch_nbytes(shape, form, 2 * step, 2, 8))
        return self._writing(shape).fits(table_nbytes(shape) + full + held_nbytes)

    def _writing(self, shape: Shape) -> Budget:
        budget = budget_of(self.cap_nbytes, self.resident_nbytes)
        budget.grant("places of rows and features", _writing_nbytes(shape))
        return budget


def table_nbytes(shape: Shape) -> int:
    """Return the memory of all cells as float64, in bytes."""
    return 8 * shape.n_rows * shape.n_features


def piece_features(n_rows: int) -> int:
    """Return how many features are read at a time where only some of their rows are kept."""
    return max(1, PIECE_NBYTES // (8 * n_rows))


def piece_nbytes(n_rows: int) -> int:
    """Return the memory of reading a piece of so many features, and of picking rows of it."""
    return 8 * n_rows * piece_features(n_rows) + 16 * PICKED_ROWS


def smallest_batch(shape: Shape, form: StoreForm) -> int:
    """Return the features of the smallest batch of which every batch is a multiple."""
    n_ranges = form.n_ranges(shape)
    if n_ranges:
        return values_chunk(Shape(n_ranges, shape.n_features), 8)[0]
    return values_chunk(shape, 4 if form.values_dtype == "float32" else 8)[0]


def batch_nbytes(
    shape: Shape, form: StoreForm, batch: int, n_threads: int, extra: int = 0, *, apart: int = 0
) -> int:
    """Return the memory of coding and writing ``batch`` features at a time, in bytes.

    ``extra`` bytes a cell are held besides, and ``apart`` bytes by each thread.
    """
    per_cell = extra + _cell_nbytes(form)
    sorting = n_threads * _coding_nbytes(shape.n_rows, form)
    compressing = n_threads * _N_COMPRESSING * VALUES_CHUNK_NBYTES
    ranges = 2 * 8 * batch * form.n_ranges(shape)
    threads = n_threads * apart + (n_threads - 1) * THREAD_NBYTES
    return batch * shape.n_rows * per_cell + sorting + compressing + ranges + threads


def _cell_nbytes(form: StoreForm) -> int:
    return 8 + (4 if form.values_dtype == "float32" else 0) + 2 * form.code_nbytes


def _coding_nbytes(n_rows: int, form: StoreForm) -> int:
    """Return the memory of finding the codes of a feature."""
    if n_rows >= LONG_ROWS and form.code_dtype == "uint8":
        return LONG_NBYTES
    return 16 * n_rows + 8 * min(n_rows, max_codes(form.code_dtype))


def fit_batch(shape: Shape, form: StoreForm, nbytes: int, *, apart: int = 0) -> tuple[int, int]:
    """Return the features of a batch and the threads that fit into ``nbytes``.

    Each thread holds ``apart`` bytes besides.
    """
    step = smallest_batch(shape, form)
    n_threads = 2 if batch_nbytes(shape, form, 2 * step, 2, apart=apart) <= nbytes else 1
    least = batch_nbytes(shape, form, n_threads * step, n_threads, apart=apart)
    per_step = batch_nbytes(shape, form, (n_threads + 1) * step, n_threads, apart=apart) - least
    n_more = max(0, min(nbytes, max(BATCH_NBYTES, least)) - least) // per_step
    n_steps = (n_threads + n_more) // n_threads * n_threads
    return min(step * n_steps, ceil_div(shape.n_features, step) * step), n_threads


def largest_stage(
    n_columns: int, n_rows: int, form: StoreForm, *, drops_rows: bool
) -> tuple[str, int]:
    """Return the largest stage of an ingest and the least memory for it; no two of them overlap.

    It never decreases with columns or rows, and is the same up to :data:`FEW_ROWS` where values are
    kept, so that rows need be counted of long tables only. ``drops_rows``: some may be left out.
    """
    if not form.n_ranges(Shape(n_rows, n_columns)):
        n_rows = max(n_rows, FEW_ROWS)
    stages = {
        f"the order of {n_columns} columns": _NBYTES_PER_COLUMN_ORDERING * n_columns,
        f"reading a row of {n_columns} columns": (COLUMN_NBYTES + 8) * n_columns,
        f"comparing the ids of {n_rows} rows": _NBYTES_PER_ROW_ID * n_rows,
        "coding a batch of features": _least_coding(n_columns, n_rows, form, drops_rows=drops_rows),
    }
    largest = max(stages, key=stages.__getitem__)
    return largest, stages[largest]


def _least_coding(n_columns: int, n_rows: int, form: StoreForm, *, drops_rows: bool) -> int:
    """Return the memory of the smallest batch of a table of so many rows, or of fewer."""
    shape, items = Shape(n_rows, n_columns), VALUES_CHUNK_NBYTES // 8
    n_ranges = form.n_ranges(shape)
    features = max(1, items // (n_ranges or n_rows))
    cells = min(max(items, features * n_rows), n_rows * n_columns)
    ranges = 2 * 8 * items if n_ranges else 0
    apart = max(PIECE_NBYTES, 8 * n_rows if drops_rows else 0) + 16 * PICKED_ROWS
    work = _coding_nbytes(n_rows, form) + _N_COMPRESSING * VALUES_CHUNK_NBYTES
    return cells * _cell_nbytes(form) + work + ranges + apart + _writing_nbytes(shape)


def _writing_nbytes(shape: Shape) -> int:
    return COLUMN_NBYTES * shape.n_features + _NBYTES_PER_ROW * shape.n_rows


def share_memory(
    cap: int, resident: int, n_columns: int, shape: Shape, form: StoreForm
) -> IngestMemory:
    """Share out what the cap leaves; that it holds the work was checked (:mod:`..needs`).

    Parameters
    ----------
    cap, resident : int
        The memory cap, and what the process holds already, in bytes.
    n_columns : int
        Columns of the source.
    shape : Shape
        Rows (at most) and features of the table.
    form : StoreForm
        How the store keeps it.
    """
    spare = budget_of(cap, resident).free_nbytes
    row_nbytes = 8 * shape.n_features
    room = spare - COLUMN_NBYTES * n_columns
    wanted = max(PANEL_NBYTES, 16 * row_nbytes)
    for_panel = min(wanted, room - min(CATEGORY_NBYTES, room // 4))
    panel_rows = max(1, min(for_panel // row_nbytes, shape.n_rows))
    held_later = batch_nbytes(shape, form, smallest_batch(shape, form), 1, 12)  # float32, too
    room_later = spare - _writing_nbytes(shape) - held_later - CATEGORY_WORK_NBYTES
    room_now = room - panel_rows * row_nbytes
    category_nbytes = max(0, min(room_now, room_later, MOST_CATEGORY_NBYTES))
    return IngestMemory(cap, resident, panel_rows, category_nbytes)
