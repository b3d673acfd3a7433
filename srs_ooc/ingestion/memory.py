"""The memory of an ingest: what each stage leases of the budget, and what the cap leaves."""

import gc
import sys
from dataclasses import dataclass

from srs_ooc.base.budget import Budget, cap_to_name, resident_nbytes
from srs_ooc.base.errors import BudgetError
from srs_ooc.base.sizes import MB, ceil_div, megabytes
from srs_ooc.ingestion.contents import StoreForm
from srs_ooc.store.coding import LONG_NBYTES, LONG_ROWS, max_codes
from srs_ooc.store.layout import VALUES_CHUNK_NBYTES, Shape, values_chunk

SLACK_NBYTES = 14 * MB
"""Bytes in flight, texts of the rows in flight, metadata, and what allocators keep."""

PANEL_NBYTES = 64 * MB
BATCH_NBYTES = 64 * MB
"""More memory than this gains nothing, unless rows or features are very long."""

THREAD_NBYTES = 8 * MB
"""What the allocator keeps for each further thread of the last stage."""

PIECE_NBYTES = 2 * MB
"""Features of which rows are left out are read in pieces of so many bytes."""

CATEGORY_NBYTES = 32 * MB
"""Memory that is left for the texts of categories, where the cap is large enough."""

MOST_CATEGORY_NBYTES = 256 * MB

CATEGORY_WORK_NBYTES = 10 * MB
"""Memory of turning texts into categories, beyond the texts."""

_NBYTES_PER_COLUMN_ORDERING = 24  # keys, their order, positions
_NBYTES_PER_COLUMN_READING = 14  # slots twice (ours, the reader's), positions, kinds twice
_NBYTES_PER_ROW = 3  # which rows are kept, twice, and a row's place
_NBYTES_PER_ROW_ID = 8  # hashes, sorted in place


def load_libraries() -> None:
    """Load what will be needed, so that the memory it takes is known when memory is shared out.

    Large blocks of memory are given back to the system from then on when they are freed.
    """
    import srs_ooc.store.codec
    from srs_ooc.native import _native

    _native.return_large_blocks()
    assert srs_ooc.store.codec


def budget_of(cap: int, resident: int | None = None) -> Budget:
    """Return the budget of a stage of an ingest under a cap, both in bytes.

    ``resident`` is what the process holds when it begins; what it holds now if not given.
    """
    budget = Budget(cap, resident_nbytes() if resident is None else resident)
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

        Raises
        ------
        BudgetError
            If that is more than the cap leaves.
        """
        drops_rows = n_source_rows > shape.n_rows
        apart = piece_nbytes(n_source_rows) if drops_rows else 0
        budget = self._writing(Shape(max(n_source_rows, shape.n_rows), shape.n_features))
        budget.grant("categories, or a table that is held", held_nbytes)
        free = budget.free_nbytes
        if apart or held_nbytes:
            least = batch_nbytes(shape, form, smallest_batch(shape, form), 1, apart=apart)
            budget.grant("coding features, rows without a target left out", least)
            budget.check()
        return fit_batch(shape, form, free, apart=apart)

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
    """Return the memory of reading a piece of so many features, and of a part of it."""
    return 2 * 8 * n_rows * piece_features(n_rows)


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
    per_cell = extra + 8 + (4 if form.values_dtype == "float32" else 0) + 2 * form.code_nbytes
    sorting = n_threads * _coding_nbytes(shape.n_rows, form)
    compressing = n_threads * 6 * VALUES_CHUNK_NBYTES  # and pieces of what is read
    ranges = 2 * 8 * batch * form.n_ranges(shape)
    threads = n_threads * apart + (n_threads - 1) * THREAD_NBYTES
    return batch * shape.n_rows * per_cell + sorting + compressing + ranges + threads


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


def grant_stage(budget: Budget, n_columns: int, shape: Shape, form: StoreForm) -> None:
    """Lease the least memory of the largest stage of an ingest; no two of them overlap."""
    coding = batch_nbytes(shape, form, smallest_batch(shape, form), 1) + _writing_nbytes(shape)
    n_rows, n_features = shape.n_rows, shape.n_features
    reading = _NBYTES_PER_COLUMN_READING * n_columns + 8 * n_features
    stages = {
        f"the order of {n_columns} columns": _NBYTES_PER_COLUMN_ORDERING * n_columns,
        f"reading a row of {n_columns} columns": reading,
        f"comparing the ids of {n_rows} rows": _NBYTES_PER_ROW_ID * n_rows,
        f"coding a batch of features of {n_rows} rows": coding,
    }
    largest = max(stages, key=stages.__getitem__)
    budget.grant(largest, stages[largest])


def _writing_nbytes(shape: Shape) -> int:
    return _NBYTES_PER_COLUMN_READING * shape.n_features + _NBYTES_PER_ROW * shape.n_rows


def check_columns(cap: int, n_columns: int) -> None:
    """Refuse a cap that cannot hold what so many columns take, before they are looked at.

    Raises
    ------
    BudgetError
        With the smallest cap that would do for a single row.
    """
    budget = budget_of(cap)
    grant_stage(budget, n_columns, Shape(1, max(1, n_columns)), StoreForm())
    if budget.free_nbytes < 0:
        program, _, stage = budget.leases
        raise BudgetError(
            f"--memory-mb {megabytes(cap):g} cannot hold an ingest of {n_columns} columns: the "
            f"program itself takes {megabytes(program.n_bytes):g} MB, and {stage.purpose} "
            f"{megabytes(stage.n_bytes):g} MB. It takes at least --memory-mb "
            f"{cap_to_name(budget.needed_nbytes)}."
        )


def share_memory(
    cap: int, resident: int, n_columns: int, shape: Shape, form: StoreForm
) -> IngestMemory:
    """Share out what the cap leaves.

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

    Raises
    ------
    BudgetError
        If the cap cannot hold the work.
    """
    budget = budget_of(cap, resident)
    spare = budget.free_nbytes
    grant_stage(budget, n_columns, shape, form)
    budget.check()
    row_nbytes = 8 * shape.n_features
    room = spare - _NBYTES_PER_COLUMN_READING * n_columns
    wanted = max(PANEL_NBYTES, 16 * row_nbytes)
    for_panel = min(wanted, room - min(CATEGORY_NBYTES, room // 4))
    panel_rows = max(1, min(for_panel // row_nbytes, shape.n_rows))
    held_later = batch_nbytes(shape, form, smallest_batch(shape, form), 1, 12)  # float32, too
    room_later = spare - _writing_nbytes(shape) - held_later - CATEGORY_WORK_NBYTES
    room_now = room - panel_rows * row_nbytes
    category_nbytes = max(0, min(room_now, room_later, MOST_CATEGORY_NBYTES))
    return IngestMemory(cap, resident, panel_rows, category_nbytes)
