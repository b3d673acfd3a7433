"""The memory of an ingest: what its stages take, the smallest cap, and how it is shared out.

What a format holds stands with the format. The smallest cap is one number, whichever stage refuses
a smaller: it follows from what the table is (columns, rows, format, compression) and from published
allowances, never from what a process happens to hold, so that a dry run and an ingest name the same
cap, which works when it is given.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

import numpy as np

from srs_ooc.base.budget import Lease, program_nbytes, refusal, resident_nbytes, total_nbytes
from srs_ooc.base.errors import BudgetError
from srs_ooc.base.text import MB, ceil_div, counted
from srs_ooc.native import _native
from srs_ooc.store.manifest import VALUES_CHUNK_NBYTES, Shape, max_codes, values_chunk
from srs_ooc.store.values import LONG_NBYTES, LONG_ROWS

# What stages take, whatever the format.

SLACK_NBYTES = 14 * MB
"""Bytes in flight, texts of the rows in flight, metadata, and what allocators keep."""

LOOK_NBYTES = 72 * MB
"""A look that finds out how large a table is may take so much, whatever the cap."""

ENOUGH_NBYTES = 64 * MB
"""More memory than this for a panel or a batch gains nothing, unless rows or features are very
long."""

THREAD_NBYTES = 8 * MB
"""What the allocator keeps for each further thread of the last stage."""

PIECE_NBYTES = 2 * MB
"""Lines are read in pieces of so many bytes, and features of which rows are left out, too."""

CATEGORY_NBYTES = 32 * MB
"""Memory that is left for the texts of categories, where the cap is large enough."""

COUNTED_NBYTES = 8 * MB
"""Memory of texts that are counted exactly, by what they count as, where they are not held."""

CATEGORY_WORK_NBYTES = 10 * MB
"""Memory of turning texts into categories, beyond the texts."""

COLUMN_NBYTES = 14
"""Memory of a column that is read: slots twice, ours and the reader's, positions, kinds twice."""

GROUPED_NBYTES = 72
"""Memory of a row whose group becomes a row: its group, and places and values in their order."""

STAGED_ROWS = 8
"""Rows of text that go to a panel together: so many cells of a column are a line of the cache."""

FEW_ROWS = 1 << 16
"""Tables of so many rows are asked for the same memory, however many they have."""


def load_libraries() -> None:
    """Measure what is loaded by now, so that it is known when memory is shared out.

    Large blocks of memory are given back to the system from then on when they are freed.
    """
    _native.return_large_blocks()
    own_nbytes()  # is measured once, now


def own_nbytes() -> int:
    """Return what the program takes, before there is work, differences between starts included."""
    return program_nbytes(48 * MB)


@dataclass(frozen=True)
class StoreForm:
    """How a store keeps a table.

    Attributes
    ----------
    code_dtype : {'uint8', 'uint16'}
        Dtype of ``codes``.
    values_dtype : {'float32', 'float64'} or None
        Dtype of ``values``; None keeps each code's lowest and highest value instead.
    is_packed : bool
        Codes 0, 1, 2 are the values, and take two bits each.
    values_codec : {'lz4', 'zstd'}
        How values are compressed; zstd of a sparse table.
    """

    code_dtype: str = "uint8"
    values_dtype: str | None = "float64"
    is_packed: bool = False
    values_codec: str = "lz4"

    @property
    def code_nbytes(self) -> int:
        """Bytes of a code."""
        return int(np.dtype(self.code_dtype).itemsize)

    def n_ranges(self, shape: Shape) -> int:
        """Columns of ``code_lows`` and ``code_highs``; 0 where values are kept."""
        return 0 if self.values_dtype else min(max_codes(self.code_dtype), shape.n_rows)


@dataclass(frozen=True)
class IngestMemory:
    """What an ingest takes, the smallest cap that holds it, and what its stages may use.

    Attributes
    ----------
    cap_nbytes : int
        The memory cap.
    n_columns, n_rows : int
        Columns of the source, and its rows at most.
    form : StoreForm
        How the store keeps them.
    drops_rows : bool
        Whether rows may be left out for want of a target.
    held : tuple of Lease
        What is held besides from the first stage to the last.
    opening : tuple of Lease
        What opening the table takes, before any stage.
    texts_nbytes : int or None
        What the texts of categorical features count as, about; None where there are none.
    aggregates : bool
        Whether groups of rows become one row each.
    cell_nbytes : {4, 8}
        Bytes of a cell on its way.
    resident_nbytes, panel_rows, category_nbytes, staged_rows : int
        Once :meth:`shared`: what the process held then, rows of a panel, memory for the texts of
        categorical features, held to the end, and rows of text gathered before they go to a panel.
    """

    cap_nbytes: int
    n_columns: int
    n_rows: int
    form: StoreForm
    drops_rows: bool
    held: tuple[Lease, ...] = ()
    opening: tuple[Lease, ...] = ()
    texts_nbytes: int | None = None
    resident_nbytes: int = 0
    panel_rows: int = 1
    category_nbytes: int = 0
    aggregates: bool = False
    cell_nbytes: int = 8
    staged_rows: int = 0

    @property
    def depends_on_rows(self) -> bool:
        """Whether the smallest cap is another if there are fewer rows than so many."""
        return replace(self, n_rows=1, drops_rows=False).least_mb < self.least_mb

    @property
    def fits(self) -> bool:
        """Whether the cap holds it."""
        return self.cap_nbytes >= self.least_mb * MB

    @property
    def least_mb(self) -> int:
        """The smallest cap that works, in MB."""
        return ceil_div(total_nbytes(self.leases()), MB)

    def leases(self) -> list[Lease]:
        """Return what is held at once in the stage that takes most; no two of them overlap.

        Of coding, it never decreases with columns or rows, and is the same up to :data:`FEW_ROWS`
        where values are kept, so that rows need be counted of long tables only.
        """
        program = Lease("interpreter and libraries", own_nbytes())
        held = [program, Lease("working room", SLACK_NBYTES), *self.held]
        order = Lease(f"the order of {counted(self.n_columns, 'column')}", 24 * self.n_columns)
        # The smallest batch of a table of so many rows, or of fewer.
        n_rows, items = self.n_rows, VALUES_CHUNK_NBYTES // 8
        if not (n_ranges := self.form.n_ranges(Shape(n_rows, self.n_columns))):
            n_rows = max(n_rows, FEW_ROWS)
        features = max(1, items // (n_ranges or n_rows))
        cells = min(max(items, features * n_rows), n_rows * self.n_columns)
        apart = max(PIECE_NBYTES, 8 * n_rows * (self.drops_rows or self.aggregates))
        apart += GROUPED_NBYTES * n_rows * self.aggregates
        nbytes = coding_nbytes(n_rows, self.form, cells, 1, apart) + 16 * items * bool(n_ranges)
        nbytes += places_nbytes(Shape(n_rows, self.n_columns))
        coding = Lease("coding a batch of features", nbytes)
        stages = [program, *self.opening], [*held, order], [*held, coding]
        taken = max(stages, key=total_nbytes)
        if self.texts_nbytes is None:
            return taken
        copied = 12 * self.n_rows * smallest_batch(Shape(self.n_rows, self.n_columns), self.form)
        nbytes = ceil_div(8 * self.texts_nbytes, 7) + CATEGORY_WORK_NBYTES + copied
        return [*taken, Lease("texts of categories", nbytes)]  # panels take an eighth of the rest

    def naming(self, refusal: BudgetError, texts_nbytes: int) -> BudgetError:
        """Return a refusal with the smallest cap that works, as texts count as so much."""
        more = self.resident_nbytes - own_nbytes() - total_nbytes(self.held)  # when shared
        leases = replace(self, texts_nbytes=texts_nbytes).leases()
        least_mb = ceil_div(total_nbytes(leases) + max(0, more), MB)
        return BudgetError(f"{refusal} The smallest cap that works is --memory-mb {least_mb}.")

    def check(self, source: object) -> None:
        """Refuse a cap that does not hold it.

        Raises
        ------
        BudgetError
            With all parts, and the smallest cap that works.
        """
        if not self.fits:
            raise refusal(self.cap_nbytes, f"the ingest of {source}", self.leases(), self.least_mb)

    def shared(self, shape: Shape, beside_nbytes: int = 0) -> "IngestMemory":
        """Share out what the cap leaves for a table of so many rows and features.

        What the process holds is measured now; ``beside_nbytes`` will be held besides.
        """
        held = max(own_nbytes() + total_nbytes(self.held), resident_nbytes() + beside_nbytes)
        spare = self.cap_nbytes - held - SLACK_NBYTES
        row_nbytes = self.cell_nbytes * shape.n_features
        room = spare - COLUMN_NBYTES * self.n_columns
        wanted = max(ENOUGH_NBYTES, 16 * row_nbytes)
        for_panel, most = min(wanted, room - min(CATEGORY_NBYTES, room // 4)), 256 * MB
        if self.texts_nbytes is not None:
            for_panel, most = min(for_panel, room // 8), spare
        panel_rows = max(1, min(for_panel // row_nbytes, shape.n_rows))
        step = smallest_batch(shape, self.form)
        # values are copied for their texts, as float32, too
        held_later = batch_nbytes(shape, self.form, step, 1) + 12 * step * shape.n_rows
        room_later = spare - places_nbytes(shape) - held_later - CATEGORY_WORK_NBYTES
        room_now = room - panel_rows * row_nbytes
        staging = STAGED_ROWS * 8 * self.n_columns
        staged_rows = STAGED_ROWS if room_now >= staging + min(CATEGORY_NBYTES, most) else 0
        room_now -= staging if staged_rows else 0
        categories = max(0, min(room_now, room_later, most))
        return replace(
            self,
            resident_nbytes=held,
            panel_rows=panel_rows,
            category_nbytes=categories,
            staged_rows=staged_rows,
        )

    def writing(
        self, shape: Shape, form: StoreForm, held_nbytes: int, n_source_rows: int, most_threads: int
    ) -> tuple[int, int]:
        """Return the features of a batch and the threads of the last stage, at most so many.

        ``held_nbytes`` are held besides. Where rows are left out, ``shape`` has those that are
        kept, and all ``n_source_rows`` of the source go through each thread in pieces.
        """
        drops_rows = n_source_rows > shape.n_rows or self.aggregates
        apart = drops_rows * max(PIECE_NBYTES, 8 * n_source_rows)
        apart += GROUPED_NBYTES * n_source_rows * self.aggregates
        whole = Shape(max(n_source_rows, shape.n_rows), shape.n_features)
        left = self.cap_nbytes - self.resident_nbytes - SLACK_NBYTES - places_nbytes(whole)
        return fit_batch(shape, form, left - held_nbytes, apart=apart, most_threads=most_threads)


def places_nbytes(shape: Shape) -> int:
    """Return the memory of places of columns and rows: which are kept, twice, and a row's place."""
    return COLUMN_NBYTES * shape.n_features + 3 * shape.n_rows


def lines_lease(n_items: int, work_nbytes: int = 0, cell_nbytes: int = 8) -> Lease:
    """Return what reading takes beside what is read: a line, three times, and the format's work."""
    return Lease("lines on their way", 3 * cell_nbytes * n_items + work_nbytes)


def line_pieces(n_lines: int, n_items: int, multiple: int = 0) -> Iterator[tuple[int, int]]:
    """Yield ranges of lines of at most about 2 MB as doubles; none crosses a ``multiple``."""
    step = max(1, PIECE_NBYTES // (8 * n_items))
    cuts = {*range(0, n_lines, step), *range(0, n_lines, multiple or max(1, n_lines)), n_lines}
    return pairwise(sorted(cuts))


def smallest_batch(shape: Shape, form: StoreForm) -> int:
    """Return the features of the smallest batch of which every batch is a multiple."""
    if n_ranges := form.n_ranges(shape):
        return values_chunk(Shape(n_ranges, shape.n_features), 8)[0]
    return values_chunk(shape, 4 if form.values_dtype == "float32" else 8)[0]


def coding_nbytes(n_rows: int, form: StoreForm, n_cells: int, n_threads: int, apart: int) -> int:
    """Return the memory of coding and writing so many cells at a time, in bytes.

    Each thread holds ``apart`` bytes besides.
    """
    per_cell = 8 + 4 * (form.values_dtype == "float32") + 2 * form.code_nbytes
    sorting = 16 * n_rows + 8 * min(n_rows, max_codes(form.code_dtype))
    if n_rows >= LONG_ROWS and form.code_dtype == "uint8":
        sorting = LONG_NBYTES
    # chunks of values that are compressed, pieces of what is read, and rows picked of these
    each_thread = sorting + 6 * VALUES_CHUNK_NBYTES + MB // 2 + apart
    return n_cells * per_cell + n_threads * each_thread + (n_threads - 1) * THREAD_NBYTES


def batch_nbytes(shape: Shape, form: StoreForm, batch: int, n_threads: int, apart: int = 0) -> int:
    """Return the memory of coding and writing ``batch`` features at a time, in bytes.

    Each thread holds ``apart`` bytes besides.
    """
    coding = coding_nbytes(shape.n_rows, form, batch * shape.n_rows, n_threads, apart)
    return coding + 16 * batch * form.n_ranges(shape)


def fit_batch(
    shape: Shape, form: StoreForm, nbytes: int, *, apart: int = 0, most_threads: int = 2
) -> tuple[int, int]:
    """Return the features of a batch and the threads that fit into ``nbytes``, at most so many.

    Each thread holds ``apart`` bytes besides.
    """
    step, taken = smallest_batch(shape, form), partial(batch_nbytes, shape, form, apart=apart)
    n_threads = 1
    while n_threads < most_threads and taken((n_threads + 1) * step, n_threads + 1) <= nbytes:
        n_threads += 1
    least = taken(n_threads * step, n_threads)
    per_step = taken((n_threads + 1) * step, n_threads) - least
    n_more = max(0, min(nbytes, max(ENOUGH_NBYTES, least)) - least) // per_step
    n_steps = (n_threads + n_more) // n_threads * n_threads
    return min(step * n_steps, ceil_div(shape.n_features, step) * step), n_threads


def many_texts(where: str, text: str) -> BudgetError:
    """Return the refusal of a text of a category, found at a place, for which memory is too small.

    :meth:`IngestMemory.naming` names the cap.
    """
    return BudgetError(
        f"{where}: expected categories whose texts fit into the memory that is left for them, "
        f"found more ({text[:80]!r}). Leave free text out, as with --ignore, or raise --memory-mb."
    )
