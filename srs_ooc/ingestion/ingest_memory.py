"""Memory and disk of an ingest: what each stage takes, the smallest cap, and how it is shared out.

All that an ingest counts stands here; other modules ask. The smallest cap is one number, whichever
stage refuses a smaller: it follows from what the table is (columns, rows, format, compression) and
from published allowances, never from what a process happens to hold, so that a dry run and an
ingest name the same cap, which works when it is given. Errors of the disk are said in the user's
terms.
"""

import contextlib
import errno
import gc
import lzma
import shutil
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from srs_ooc.base.budget import Budget, Lease, program_nbytes, resident_nbytes
from srs_ooc.base.errors import BudgetError, InputError, StoreError
from srs_ooc.base.files import SCRATCH_SUFFIX
from srs_ooc.base.text import MB, ceil_div, counted, describe_nbytes, megabytes
from srs_ooc.store.manifest import VALUES_CHUNK_NBYTES, Shape, max_codes, values_chunk
from srs_ooc.store.values import LONG_NBYTES, LONG_ROWS

# What stages take, whatever the format.

PROGRAM_NBYTES = 46 * MB
"""Published allowance for interpreter and libraries, differences between starts included."""

SLACK_NBYTES = 14 * MB
"""Bytes in flight, texts of the rows in flight, metadata, and what allocators keep."""

LOOK_NBYTES = 72 * MB
"""A look that finds out how large a table is may take so much, whatever the cap."""

PANEL_NBYTES = 64 * MB
BATCH_NBYTES = 64 * MB
"""More memory than this gains nothing, unless rows or features are very long."""

THREAD_NBYTES = 8 * MB
"""What the allocator keeps for each further thread of the last stage."""

PIECE_NBYTES = 2 * MB
"""Lines are read in pieces of so many bytes, and features of which rows are left out, too."""

PICKED_ROWS = 1 << 15
"""Rows that are picked at a time where some are left out."""

CATEGORY_NBYTES = 32 * MB
"""Memory that is left for the texts of categories, where the cap is large enough."""

MOST_CATEGORY_NBYTES = 256 * MB

TEXTS_NBYTES = 2 * MB
"""Memory of texts that is counted on where there are columns of texts, before these are read."""

COUNTED_NBYTES = 8 * MB
"""Memory of texts that are counted exactly, by what they count as, where they are not held."""

CATEGORY_WORK_NBYTES = 10 * MB
"""Memory of turning texts into categories, beyond the texts."""

CODES_NBYTES = 8_000_000
"""Memory for the distinct texts of strata and groups, a column at a time."""

LABELS_NBYTES = 10_000 * 528
"""Memory for the labels of as many classes as there may be, of 100 bytes each."""

COLUMN_NBYTES = 14
"""Memory of a column that is read: slots twice, ours and the reader's, positions, kinds twice."""

_NBYTES_PER_COLUMN_ORDERING = 24  # keys, their order, positions
_NBYTES_PER_ROW = 3  # which rows are kept, twice, and a row's place
_NBYTES_PER_ROW_ID = 8  # hashes, sorted in place
_N_COMPRESSING = 6  # chunks of values, and pieces of what is read

FEW_ROWS = 1 << 16
"""Tables of so many rows are asked for the same memory, however many they have."""

READ_NBYTES, START_NBYTES, SAMPLED_NBYTES = 1 << 18, 4096, 1 << 20
"""A file is read in pieces of so many bytes; so much of its beginning is looked at first, and so
much of its text where its rows are estimated."""

FEATURE_NBYTES = 40
"""A feature's name, kind and place, about."""

_MERGED_NBYTES = 48 * MB  # features of pieces that are read and written at a time
_NAME_NBYTES = 540  # a name and its kind that are held, and once more by the reader of the table


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


def release() -> None:
    """Give back what an ingest has let go of, before another one counts what there is."""
    gc.collect()
    if "pyarrow" in sys.modules:
        sys.modules["pyarrow"].default_memory_pool().release_unused()


@dataclass(frozen=True)
class StoreForm:
    """How a store keeps a table.

    Attributes
    ----------
    code_dtype : {'uint8', 'uint16'}
        Dtype of ``codes``.
    values_dtype : {'float32', 'float64'} or None
        Dtype of ``values``; None keeps each code's lowest and highest value instead.
    """

    code_dtype: str = "uint8"
    values_dtype: str | None = "float64"

    @property
    def code_nbytes(self) -> int:
        """Bytes of a code."""
        return int(np.dtype(self.code_dtype).itemsize)

    @property
    def missing_code(self) -> Any:
        """The code of a missing value, as a scalar of the dtype of codes."""
        return np.dtype(self.code_dtype).type(np.iinfo(self.code_dtype).max)

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
    resident_nbytes, panel_rows, category_nbytes : int
        Once :meth:`shared`: what the process held then, rows of a panel, and memory for the texts
        of categorical features, held to the end.
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

    def with_rows(self, n_rows: int, *, drops_rows: bool | None = None) -> "IngestMemory":
        """Return what a table of another number of rows takes."""
        drops = self.drops_rows if drops_rows is None else drops_rows
        return replace(self, n_rows=max(1, n_rows), drops_rows=drops)

    @property
    def depends_on_rows(self) -> bool:
        """Whether the smallest cap is another if there are fewer rows than so many."""
        return self.with_rows(1, drops_rows=False).least_mb < self.least_mb

    @property
    def spare_nbytes(self) -> int:
        """What the cap leaves, in bytes."""
        return max(0, self.cap_nbytes - _sum(self._leases()))

    @property
    def fits(self) -> bool:
        """Whether the cap holds it."""
        return self.cap_nbytes >= self.least_mb * MB

    @property
    def least_mb(self) -> int:
        """The smallest cap that works, in MB."""
        return ceil_div(_sum(self._leases()), MB)

    def _leases(self) -> list[Lease]:
        """Return what is held at once where most is."""
        program = Lease("interpreter and libraries", own_nbytes())
        stage = largest_stage(self.n_columns, self.n_rows, self.form, drops_rows=self.drops_rows)
        room, texts = Lease("working room", SLACK_NBYTES), self._texts()
        ways = [[program, *self.opening], [program, room, *self.held, Lease(*stage)]]
        return [*max(ways, key=_sum), *texts]

    def _texts(self) -> list[Lease]:
        """Return what categories take besides; of what is left panels take an eighth."""
        if self.texts_nbytes is None:
            return []
        copied = 12 * self.n_rows * smallest_batch(Shape(self.n_rows, self.n_columns), self.form)
        nbytes = ceil_div(8 * self.texts_nbytes, 7) + CATEGORY_WORK_NBYTES + copied
        return [Lease("texts of categories", nbytes)]

    def naming(self, refusal: BudgetError, texts_nbytes: int) -> BudgetError:
        """Return a refusal with the smallest cap that works, as texts count as so much."""
        above = self.resident_nbytes - own_nbytes() - _sum(self.held)  # what was held when shared
        leases = replace(self, texts_nbytes=texts_nbytes)._leases()
        least_mb = ceil_div(_sum(leases) + max(0, above), MB)
        return BudgetError(f"{refusal} The smallest cap that works is --memory-mb {least_mb}.")

    def check(self, source: object) -> None:
        """Refuse a cap that does not hold it.

        Raises
        ------
        BudgetError
            With all parts, and the smallest cap that works.
        """
        if self.fits:
            return
        parts = [f"{lease.purpose} {megabytes(lease.n_bytes):g}" for lease in self._leases()]
        raise BudgetError(
            f"--memory-mb {megabytes(self.cap_nbytes):g} cannot hold the ingest of {source}, in "
            f"MB: {', '.join(parts)}. The smallest cap that works is --memory-mb {self.least_mb}."
        )

    def shared(self, shape: Shape, beside_nbytes: int = 0) -> "IngestMemory":
        """Share out what the cap leaves for a table of so many rows and features.

        What the process holds is measured now; ``beside_nbytes`` will be held besides.
        """
        held = max(own_nbytes() + _sum(self.held), resident_nbytes() + beside_nbytes)
        spare = _budget(self.cap_nbytes, held).free_nbytes
        row_nbytes = 8 * shape.n_features
        room = spare - COLUMN_NBYTES * self.n_columns
        wanted = max(PANEL_NBYTES, 16 * row_nbytes)
        for_panel, most = min(wanted, room - min(CATEGORY_NBYTES, room // 4)), MOST_CATEGORY_NBYTES
        if self.texts_nbytes is not None:
            for_panel, most = min(for_panel, room // 8), spare
        panel_rows = max(1, min(for_panel // row_nbytes, shape.n_rows))
        step = smallest_batch(shape, self.form)
        held_later = batch_nbytes(shape, self.form, step, 1, 12)  # float32, too
        room_later = spare - _writing_nbytes(shape) - held_later - CATEGORY_WORK_NBYTES
        room_now = room - panel_rows * row_nbytes
        categories = max(0, min(room_now, room_later, most))
        return replace(
            self, resident_nbytes=held, panel_rows=panel_rows, category_nbytes=categories
        )

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

    def has_room(self, shape: Shape, held_nbytes: int = 0) -> bool:
        """Return whether the table fits in memory beside ``held_nbytes`` and a full last stage.

        That stage may copy each batch once more, as where rows are left out.
        """
        step = smallest_batch(shape, self.form)
        full = max(BATCH_NBYTES, batch_nbytes(shape, self.form, 2 * step, 2, 8))
        return self._writing(shape).fits(table_nbytes(shape) + full + held_nbytes)

    def _writing(self, shape: Shape) -> Budget:
        budget = _budget(self.cap_nbytes, self.resident_nbytes)
        budget.grant("places of rows and features", _writing_nbytes(shape))
        return budget


def _sum(leases: tuple[Lease, ...] | list[Lease]) -> int:
    return sum(lease.n_bytes for lease in leases)


def _budget(cap: int, resident: int) -> Budget:
    budget = Budget(cap, resident)
    budget.grant("working room", SLACK_NBYTES)
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


def many_texts(where: str, text: str) -> BudgetError:
    """Return the refusal of a text of a category, found at a place, for which memory is too small.

    :meth:`IngestMemory.naming` names the cap.
    """
    return BudgetError(
        f"{where}: expected categories whose texts fit into the memory that is left for them, "
        f"found more ({text[:80]!r}). Leave free text out, as with --ignore, or raise --memory-mb."
    )


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
        f"the order of {counted(n_columns, 'column')}": _NBYTES_PER_COLUMN_ORDERING * n_columns,
        f"reading a row of {counted(n_columns, 'column')}": (COLUMN_NBYTES + 8) * n_columns,
        f"comparing the ids of {counted(n_rows, 'row')}": _NBYTES_PER_ROW_ID * n_rows,
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


def merged_features(shape: Shape, column_nbytes: int, step: int, cap: int) -> int:
    """Return how many features of pieces, a multiple of ``step``, are put together at a time.

    Raises
    ------
    BudgetError
        If the cap, in bytes, cannot hold it.
    """
    budget, least = _budget(cap, resident_nbytes()), column_nbytes * step
    budget.grant("places and names", FEATURE_NBYTES * shape.n_features)
    budget.grant("features as read and written", least + 8 * MB)
    budget.check()
    return (1 + min(budget.free_nbytes, max(0, _MERGED_NBYTES - least)) // least) * step


# What formats take besides.

WORK_NBYTES = {"parquet": 40 * MB, "feather": 40 * MB, "scipy.sparse": 4 * MB, "svmlight": 4 * MB}
"""What reading takes by format: PyArrow reads, decodes and frees (measured 8 to 30 MB); two threads
make columns of a sparse matrix dense at once."""

_SCIPY_NBYTES = 20 * MB  # SciPy's sparse matrices, loaded; measured 17 MB
_LOADING_NBYTES = 40 * MB  # SciPy, and what it takes while it loads a matrix
_ARROW_NBYTES = 36 * MB  # PyArrow, and a file open; measured 38 MB, 4 of them in the program's
_FOOTER_FACTOR = 24  # what decoding a footer of Parquet took, 12 to 23 times its size
_FEATHER_NBYTES_PER_COLUMN = 1100  # as measured
_SAMPLE_NBYTES, _CELL_NBYTES, _ID_NBYTES = 210, 64, 140
"""Memory of a sample in both mappings, of a cell of it, and of an id that is looked up in them, as
Python objects, beyond their texts; measured 202, 62 and 130 at 10^6 samples."""
SAMPLES_PANEL_NBYTES = 3 * MB
ZSTD_NBYTES = 10 * MB
"""What a decoder of zstd takes besides its window."""
_N_DECODERS = 2  # one looks at the file while another waits at its first row


def decoder_nbytes(kind: str, start: bytes) -> int:
    """Return the memory of a decoder, from the beginning of a file, before it is taken."""
    if kind == "xz":
        return _xz_nbytes(start)
    if kind == "zst":  # later frames may have the usual window
        return max(_zst_window(start), 8 << 20) + ZSTD_NBYTES
    return {"gz": MB // 10, "bz2": 8 * MB}[kind]


def _xz_nbytes(start: bytes) -> int:
    """Return the memory with which the decoder agrees to begin, 20 MB or more."""
    for power in range(24, 33):
        limit = (1 << power) + (1 << 22)  # a dictionary, and the rest
        try:
            lzma.LZMADecompressor(memlimit=limit).decompress(start, 1)
        except lzma.LZMAError as error:
            if "limit" in str(error).lower():
                continue
        return limit
    return 1 << 33


def _zst_window(start: bytes) -> int:
    """Return the window of the first frame (RFC 8878, section 3.1.1.1)."""
    if len(start) < 6:
        return 1 << 10
    descriptor = start[4]
    if not descriptor & 0x20:
        base = 1 << (10 + (start[5] >> 3))
        return base + base // 8 * (start[5] & 7)
    at = 5 + (0, 1, 2, 4)[descriptor & 3]
    n_bytes = (1, 2, 4, 8)[descriptor >> 6]
    size = int.from_bytes(start[at : at + n_bytes], "little")
    return size + 256 if n_bytes == 2 else size


def lines_lease(shape: tuple[int, int], work_nbytes: int = 0, *, by_rows: bool = False) -> Lease:
    """Return what reading takes beside what is read: a line, three times, and the format's work."""
    n_items = shape[1] if by_rows else shape[0]
    return Lease("lines on their way", 3 * 8 * n_items + work_nbytes)


def grown_lease() -> Lease:
    """Return what the process holds of a table that it was given, or that others opened."""
    return Lease("what is held of the table", max(0, resident_nbytes() - own_nbytes()))


def decoding_leases(source: object, decoder_nbytes: int) -> tuple[Lease, ...]:
    """Return what decompressing a text table takes."""
    nbytes = _N_DECODERS * decoder_nbytes
    return (Lease(f"decompressing {source}", nbytes),) if nbytes else ()


def sparse_leases(nbytes: int, n_most: int) -> tuple[tuple[Lease, ...], tuple[Lease, ...]]:
    """Return what a sparse matrix of a file holds, and what opening it takes.

    It is of ``nbytes`` as stored, and its longer side has ``n_most`` places.
    """
    nbytes += 24 * n_most
    held = (Lease("SciPy", _SCIPY_NBYTES), Lease("cells by columns", nbytes))
    # once as stored, once by columns, and what SciPy itself takes
    opening = Lease("cells as stored and by columns, SciPy", 2 * nbytes + _LOADING_NBYTES)
    return held, (opening,)


def svmlight_leases(
    n_cells: int, n_rows: int, n_columns: int
) -> tuple[tuple[Lease, ...], tuple[Lease, ...]]:
    """Return what the cells of a svmlight file hold, and what opening it takes."""
    labels = 80 * n_rows
    held = Lease("cells", 16 * n_cells + labels + 8 * n_columns)
    # row by row, column by column, and one of them growing
    opening = Lease("SciPy and the cells", _LOADING_NBYTES + 3 * 12 * n_cells + labels)
    return (Lease("SciPy", _SCIPY_NBYTES), held), (opening,)


def arrow_leases(what: str, n_columns: int, nbytes: int, footer: int | None) -> tuple[Lease, ...]:
    """Return what PyArrow holds of a file of ``nbytes``; of Parquet the length of its footer.

    It reads a record batch of Feather whole, whatever the columns asked for, and it may be the
    only one.
    """
    held = nbytes + _FEATHER_NBYTES_PER_COLUMN * n_columns
    if footer is not None:
        held = _FOOTER_FACTOR * footer
    return Lease("PyArrow", _ARROW_NBYTES), Lease(f"what PyArrow holds of {what}", held)


def names_nbytes(names: Iterable[bytes]) -> int:
    """Return the memory of names of columns, and of a kind for each."""
    return sum(4 * len(name) + _NAME_NBYTES for name in names)


def samples_lease(samples: Iterable[tuple[Any, ...]], n_ids: int, ids_nbytes: int) -> Lease:
    """Return what samples (line, id, and cells of each) hold, and the ids looked up in them."""

    def text_nbytes(text: str) -> int:
        return len(text) if text.isascii() else 4 * len(text)

    known = _ID_NBYTES * n_ids + ids_nbytes
    for _, sample, *cells in samples:
        known += _SAMPLE_NBYTES + text_nbytes(sample)
        known += sum(_CELL_NBYTES + text_nbytes(cell) for cell in cells)
    return Lease("the samples", known)


def feature_rows_leases(n_samples: int, decoder_nbytes: int) -> tuple[Lease, ...]:
    """Return what reading a text table with a feature a row takes: panels, and column slots."""
    panels = 2 * max(SAMPLES_PANEL_NBYTES, 8 * n_samples) + 12 * n_samples
    reading = Lease("reading features", panels + _N_DECODERS * decoder_nbytes)
    return Lease("working room", SLACK_NBYTES), reading


# The disk of an ingest: room for it, and its errors in the user's terms.

_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def disk_of(
    shape: Shape, form: StoreForm, *, by_rows: bool, text_nbytes: int | None = None
) -> tuple[int, int]:
    """Return the bytes of scratch and, at most about, of the store that ingesting a table takes.

    Parameters
    ----------
    shape : Shape
        Rows and features.
    form : StoreForm
        How the store keeps them.
    by_rows : bool
        Whether the source is read by rows, which are turned into columns in scratch.
    text_nbytes : int, optional
        Bytes of text of a source that is text: values take no more.
    """
    n_cells = shape.n_rows * shape.n_features
    values = 0 if form.values_dtype is None else 8 * n_cells
    if text_nbytes is not None:
        values = min(values, text_nbytes)
    ranges = 16 * form.n_ranges(shape) * shape.n_features
    codes = form.code_nbytes * n_cells
    return 8 * n_cells * by_rows, codes + values + ranges + FEATURE_NBYTES * shape.n_features


def check_disk(folder: Path, scratch_nbytes: int, store_nbytes: int) -> None:
    """Refuse a disk without room for scratch and a store in ``folder``, both in bytes.

    Raises
    ------
    StoreError
        With what is needed and what is free.
    """
    needed, free = scratch_nbytes + store_nbytes, shutil.disk_usage(folder).free
    if free < needed:
        raise StoreError(
            f"{folder.parent}: expected about {describe_nbytes(needed)} of free disk "
            f"({describe_nbytes(scratch_nbytes)} of scratch, given back at the end, and "
            f"{describe_nbytes(store_nbytes)} for the store), found {describe_nbytes(free)}. Free "
            "some space, or put the store on another disk."
        )


def check_replaceable(path: Path) -> None:
    """Refuse to replace what is no store.

    Raises
    ------
    StoreError
        If there is something at ``path`` that is not a folder with the files of a store.
    """
    is_store = (path / "zarr.json").is_file() and (path / "codes").is_dir()
    if path.is_symlink() or (path.exists() and not is_store):
        found = "a link" if path.is_symlink() else "something else"
        raise StoreError(
            f"{path}: expected a store to overwrite, found {found}. Choose another path, or remove "
            "it yourself."
        )


@contextlib.contextmanager
def disk_errors(target_path: Path) -> Iterator[None]:
    """Turn errors of the disk into why the store at ``target_path`` cannot be written."""
    try:
        yield
    except FileExistsError:
        if target_path.exists():
            raise StoreError(
                f"{target_path}: expected a path that is free, found one in use. "
                "Choose another path, remove it first, or replace a store with --overwrite."
            ) from None
        raise StoreError(
            f"{target_path}: another process is writing this store "
            f"({target_path.name}{SCRATCH_SUFFIX} is held). Wait for it, or choose another path."
        ) from None
    except OSError as error:
        if error.errno in _DISK_FULL:
            raise StoreError(
                f"{target_path}: the disk is full ({error.strerror}); nothing was left of the "
                "store. Free some space, or choose a path on another disk."
            ) from error
        named = Path(str(error.filename or target_path))
        scratch = target_path.with_name(target_path.name + SCRATCH_SUFFIX)
        if named not in (target_path, target_path.parent) and scratch not in (
            named,
            *named.parents,
        ):
            raise InputError(
                f"{error.filename}: reading failed: {error.strerror}. Leave the file in its place, "
                "readable, until the ingest has ended."
            ) from error
        raise StoreError(
            f"{target_path}: cannot be written: {error.strerror or error}. "
            "Choose a path in a folder that exists and can be written."
        ) from error
