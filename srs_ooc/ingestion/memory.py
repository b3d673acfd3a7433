"""The memory plan of an ingest: what each stage needs, what the cap leaves, the smallest cap."""

from dataclasses import dataclass

from srs_ooc.base.budget import cap_to_name, resident_nbytes
from srs_ooc.base.errors import BudgetError
from srs_ooc.base.sizes import MB, ceil_div, megabytes
from srs_ooc.ingestion.table import StoreForm
from srs_ooc.store.coding import LONG_NBYTES, LONG_ROWS, max_codes
from srs_ooc.store.layout import VALUES_CHUNK_NBYTES, Shape, values_chunk

SLACK_NBYTES = 13 * MB
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


@dataclass(frozen=True)
class IngestPlan:
    """What an ingest may use.

    Attributes
    ----------
    panel_rows : int
        Rows of a panel.
    spare_nbytes : int
        What the cap leaves beyond the process and its slack, in bytes.
    category_nbytes : int
        Memory for the texts of categorical features, in bytes; held to the end.
    """

    panel_rows: int
    spare_nbytes: int
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
        whole = Shape(max(n_source_rows, shape.n_rows), shape.n_features)
        free = self._left(whole, held_nbytes)
        apart = piece_nbytes(n_source_rows) if drops_rows else 0
        least = batch_nbytes(shape, form, smallest_batch(shape, form), 1, apart=apart)
        if (apart or held_nbytes) and least > free:
            raise BudgetError(
                f"leaving rows without a target out, and keeping categories, takes "
                f"{megabytes(least - free):g} MB more than the cap leaves. Raise --memory-mb by "
                f"{ceil_div(least - free, MB) + 1}, or remove those rows first."
            )
        return fit_batch(shape, form, free, apart=apart)

    def has_room(self, shape: Shape, form: StoreForm, held_nbytes: int = 0) -> bool:
        """Return whether the table fits in memory beside ``held_nbytes`` and a full last stage.

        That stage may copy each batch once more, as where rows are left out.
        """
        step = smallest_batch(shape, form)
        full = max(BATCH_NBYTES, batch_nbytes(shape, form, 2 * step, 2, 8))
        return table_nbytes(shape) + full <= self._left(shape, held_nbytes)

    def _left(self, shape: Shape, held_nbytes: int) -> int:
        return self.spare_nbytes - _writing_nbytes(shape) - held_nbytes


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


def stage_needs(n_columns: int, shape: Shape, form: StoreForm) -> dict[str, int]:
    """Return the least memory of each stage of an ingest beyond the process itself, in bytes."""
    return {
        "the order of the columns": _NBYTES_PER_COLUMN_ORDERING * n_columns,
        "reading a row": _NBYTES_PER_COLUMN_READING * n_columns + 8 * shape.n_features,
        "comparing the row ids": _NBYTES_PER_ROW_ID * shape.n_rows,
        "coding a batch of features": batch_nbytes(shape, form, smallest_batch(shape, form), 1)
        + _writing_nbytes(shape),
    }


def _writing_nbytes(shape: Shape) -> int:
    return _NBYTES_PER_COLUMN_READING * shape.n_features + _NBYTES_PER_ROW * shape.n_rows


def smallest_cap(resident: int, needs: dict[str, int]) -> int:
    """Return the smallest cap that would do, in bytes, a whole number of megabytes."""
    return (ceil_div(resident + SLACK_NBYTES + max(needs.values()), MB) + 1) * MB


def check_columns(cap: int, n_columns: int) -> None:
    """Refuse a cap that cannot hold what so many columns take, before they are looked at.

    Raises
    ------
    BudgetError
        With the smallest cap that would do for a single row.
    """
    resident = resident_nbytes()
    needs = stage_needs(n_columns, Shape(1, max(1, n_columns)), StoreForm())
    stage = max(needs, key=needs.__getitem__)
    least = smallest_cap(resident, needs)
    if cap < least:
        raise BudgetError(
            f"--memory-mb {megabytes(cap):g} cannot hold an ingest of {n_columns} columns: the "
            f"program itself takes {megabytes(resident):g} MB, and {stage} "
            f"{megabytes(needs[stage]):g} MB. It takes at least --memory-mb {cap_to_name(least)}."
        )


def plan_ingest(
    cap: int, resident: int, n_columns: int, shape: Shape, form: StoreForm
) -> IngestPlan:
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
    needs = stage_needs(n_columns, shape, form)
    least = smallest_cap(resident, needs)
    if cap < least:
        stage = max(needs, key=needs.__getitem__)
        raise BudgetError(
            f"--memory-mb {megabytes(cap):g} cannot hold this ingest of {shape.n_features} "
            f"features by {shape.n_rows} rows: the program itself takes "
            f"{megabytes(resident):g} MB, working room {megabytes(SLACK_NBYTES):g} MB, and "
            f"{stage} {megabytes(needs[stage]):g} MB. The smallest cap that would do is "
            f"--memory-mb {cap_to_name(least)}."
        )
    spare = cap - resident - SLACK_NBYTES
    row_nbytes = 8 * shape.n_features
    room = spare - _NBYTES_PER_COLUMN_READING * n_columns
    wanted = max(PANEL_NBYTES, 16 * row_nbytes)
    for_panel = min(wanted, room - min(CATEGORY_NBYTES, room // 4))
    panel_rows = max(1, min(for_panel // row_nbytes, shape.n_rows))
    held_later = batch_nbytes(shape, form, smallest_batch(shape, form), 1, 12)  # float32, too
    room_later = spare - _writing_nbytes(shape) - held_later - CATEGORY_WORK_NBYTES
    room_now = room - panel_rows * row_nbytes
    category_nbytes = max(0, min(room_now, room_later, MOST_CATEGORY_NBYTES))
    return IngestPlan(panel_rows, spare, category_nbytes)
