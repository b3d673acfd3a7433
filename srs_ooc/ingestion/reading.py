"""The readings of a table, stage by stage: text with a sample a row, and any other format.

A reading is the seam between formats and the pipeline; it hands on features in stored order.
"""

import contextlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.budget import Lease, resident_nbytes
from srs_ooc.base.errors import InputError
from srs_ooc.ingestion.csv import (
    CATEGORIES,
    ROW_NAMES,
    TEXTS,
    CsvStream,
    TableReader,
    cell_text,
    check_utf8,
    count_rows,
    estimate,
    has_row_names,
    name_of,
    read_panels,
    rows_at_most,
)
from srs_ooc.ingestion.formats import Table, TextCoder
from srs_ooc.ingestion.formats.in_memory import (
    beside_nbytes,
    check_items,
    item_blocks,
    spool_items,
    text_of,
    texts_given,
)
from srs_ooc.ingestion.ingest_memory import (
    COLUMN_NBYTES,
    LOOK_NBYTES,
    PICKED_ROWS,
    PIECE_NBYTES,
    IngestMemory,
    Needs,
    check_disk,
    disk_of,
    piece_features,
    share_memory,
    table_nbytes,
)
from srs_ooc.ingestion.ingest_options import (
    FREE,
    ByteProgress,
    IngestOptions,
    Roles,
    SideColumns,
    StoredColumns,
    cells_of,
)
from srs_ooc.ingestion.rows import KeptRows, RowColumns, Wording, shown, wording_of
from srs_ooc.ingestion.scratch import (
    Panels,
    PanelSpool,
    ScratchArray,
    TextSpool,
    anonymous_array,
    joined,
    open_panels,
    texts_of,
)
from srs_ooc.ingestion.sources import N_DECODERS, PieceReader, SourceFile
from srs_ooc.ingestion.writer import FeatureKinds
from srs_ooc.native import _native
from srs_ooc.store.manifest import CATEGORICAL, Shape


@dataclass(frozen=True)
class Workplace:
    """Where an ingest works.

    Attributes
    ----------
    folder : Path
        The store that is being made; its folder ``scratch`` is deleted in the end.
    stack : ExitStack
        Closes what is opened there.
    tell : callable
        Told of the bytes read and written.
    """

    folder: Path
    stack: contextlib.ExitStack
    tell: ByteProgress

    @property
    def scratch(self) -> Path:
        """Folder for what is given back at the end."""
        return self.folder / "scratch"

    @classmethod
    @contextlib.contextmanager
    def at(cls, folder: Path, tell: ByteProgress | None = None) -> Iterator["Workplace"]:
        """Yield a place to work at a folder; what is opened there is closed after the block."""
        with contextlib.ExitStack() as stack:
            work = cls(folder, stack, tell or (lambda stage, done, total: None))
            work.scratch.mkdir()
            yield work


Features = tuple[StoredColumns, bool, FeatureKinds | None, int]
"""The features of a table once they are read.

All rows of them; whether float32 holds every value; what is known of their kinds, if anything is;
and the memory that is held until they are written, in bytes."""


# The features of a table in stored order: read, rows left out, numbers taken for texts.


class TableColumns:
    """The features of a table in stored order: a ``StoredColumns`` where it is read by columns."""

    def __init__(
        self,
        table: Table,
        what: object,
        header: TextSpool,
        columns: NDArray[np.intp],
        kinds: FeatureKinds,
    ) -> None:
        self._table, self._what, self._header, self._columns = table, what, header, columns
        self._pool = kinds.pool
        self.n_rows, self.n_features = table.shape[0], len(columns)
        self.fits_float32 = True

    def read(self, start: int, stop: int) -> NDArray[np.float64]:
        """Return the values (stop - start, n_rows) of stored features ``start .. stop - 1``."""
        out = anonymous_array((stop - start, self.n_rows))
        for first, last in _pieces(stop - start, self.n_rows):
            positions = self._columns[start + first : start + last]
            out[first:last] = self._table.read(positions, self._pool)
            self._look(out[first:last], positions)
        return out

    def check(self, progress: ByteProgress | None) -> None:
        """Find out whether float32 would do: from the dtypes, or by reading until it would not.

        Texts are numbered on the way, so that all of them are known before any is coded.
        """
        has_texts = self._table.text_columns is not None and self._table.text_columns.any()
        if self._table.narrow and not has_texts:
            return
        in_order = np.sort(self._columns)
        for first, last in _pieces(self.n_features, self.n_rows):
            positions = in_order[first:last]
            self._look(self._table.read(positions, self._pool), positions)
            if not self.fits_float32 and not has_texts:
                return
            _tell(progress, last * self.n_rows, self.n_features * self.n_rows)

    def spool(self, spool: Panels, progress: ByteProgress | None) -> None:
        """Read all rows, in panels that turn them into columns."""
        _native.reuse_blocks()  # of each piece of rows
        panel_rows, filled = spool.panel.shape[1], 0
        columns = self._columns.astype(np.int64)
        pieces = _pieces(self.n_rows, self._table.shape[1], panel_rows)
        for first, last, rows in self._rows_ahead(pieces):
            infinite, narrow = _native.put_rows(rows, columns, spool.panel, filled)
            if infinite >= 0:
                row, column = divmod(infinite, rows.shape[1])
                self._refuse(first + row, column, rows[row, column])
            self.fits_float32 &= narrow
            filled += len(rows)
            if filled == panel_rows or last == self.n_rows:
                spool.flush(filled)
                filled = 0
            _tell(progress, last * self.n_features, self.n_rows * self.n_features)
        spool.seal()

    def _rows_ahead(
        self, pieces: Iterator[tuple[int, int]]
    ) -> Iterator[tuple[int, int, NDArray[np.float64]]]:
        """Yield pieces of rows; the next is read while one is worked on."""

        def read(first: int, last: int) -> tuple[int, int, NDArray[np.float64]]:
            return first, last, self._table.read(np.arange(first, last), self._pool)

        with ThreadPoolExecutor(1) as reader:
            coming = reader.submit(read, *next(pieces))
            for piece in pieces:
                here, coming = coming.result(), reader.submit(read, *piece)
                yield here
            yield coming.result()

    def _look(self, values: NDArray[np.float64], columns: NDArray[np.intp]) -> None:
        """Look at columns, each a row of ``values``."""
        infinite, narrow = _native.look_at(values)
        if infinite >= 0:
            at, row = divmod(infinite, values.shape[1])
            self._refuse(row, int(columns[at]), values[at, row])
        if not narrow:
            self.fits_float32 = False

    def _refuse(self, row: int, column: int, found: float) -> NoReturn:
        raise InputError(
            f"{self._what}, row {row + 1}, column {self._header.describe(column)}: expected a "
            f"finite number (or a missing value), found {found}. Mend the cell, or make it missing."
        )


class KeptColumns:
    """The kept rows of columns.

    Parameters
    ----------
    columns : StoredColumns
        All rows.
    kept : KeptRows
        Which of them to keep.
    """

    def __init__(self, columns: StoredColumns, kept: KeptRows) -> None:
        self._columns, self._kept = columns, kept
        self.n_rows, self.n_features = kept.n_rows, columns.n_features

    def read(self, start: int, stop: int) -> NDArray[np.float64]:
        """Return the values (stop - start, n_rows) of stored features ``start .. stop - 1``."""
        out = anonymous_array((stop - start, self.n_rows))
        step = piece_features(self._kept.n_source_rows)
        for first in range(start, stop, step):
            values = self._columns.read(first, min(first + step, stop))
            for line, whole in zip(out[first - start :], values, strict=False):
                self._pick(whole, line)
        return out

    def _pick(self, whole: NDArray[np.float64], line: NDArray[np.float64]) -> None:
        """Fill a line with the kept ones of all rows, some at a time."""
        filled = 0
        for begin in range(0, len(whole), PICKED_ROWS):
            picked = self._kept.of(begin, whole[begin : begin + PICKED_ROWS])
            line[filled : filled + len(picked)] = picked
            filled += len(picked)


def kept_columns(columns: StoredColumns, kept: KeptRows) -> StoredColumns:
    """Return the kept rows of columns; the columns themselves if that is all."""
    return columns if kept.mask is None else KeptColumns(columns, kept)


class NumbersAsTexts:
    """Columns of which some hold numbers that are categories.

    Parameters
    ----------
    columns : StoredColumns
        Numbers.
    which : bool (n_features,)
        The stored features whose numbers are to be taken for texts.
    kinds : FeatureKinds
        Whose pool numbers the texts.
    """

    def __init__(
        self, columns: StoredColumns, which: NDArray[np.bool_], kinds: FeatureKinds
    ) -> None:
        self._columns, self._which, self._kinds = columns, which, kinds
        self.n_rows, self.n_features = columns.n_rows, columns.n_features

    def read(self, start: int, stop: int) -> NDArray[np.float64]:
        """Return the values (stop - start, n_rows) of stored features ``start .. stop - 1``."""
        values = self._columns.read(start, stop)
        for i in np.flatnonzero(self._which[start:stop]).tolist():
            distinct, place = np.unique(values[i], return_inverse=True)
            is_there = ~np.isnan(distinct)
            texts = [text_of(value) or "" for value in distinct[is_there].tolist()]
            numbers = np.full(len(distinct), np.nan)
            found = self._kinds.pool.code(*joined([text.encode() for text in texts]))
            if len(found) < len(texts):
                beyond = float(distinct[is_there][len(found)])
                row = int((values[i] == beyond).argmax())
                raise InputError(
                    f"{self._kinds.locate(start + i, row)[0]}: expected categories whose texts fit "
                    f"into the memory that is left for them, found more ({text_of(beyond)!r}). "
                    "Force fewer columns to be categorical, or raise --memory-mb."
                )
            numbers[is_there] = found
            values[i] = numbers[place]
        return values


def _tell(progress: ByteProgress | None, n_cells: int, n_all: int) -> None:
    if progress:
        progress("reading", 8 * n_cells, 8 * n_all)


def _pieces(n_lines: int, n_items: int, multiple: int = 0) -> Iterator[tuple[int, int]]:
    """Yield ranges of lines of about 2 MB; none crosses a ``multiple``."""
    step = max(1, PIECE_NBYTES // (8 * n_items))
    for begin in range(0, n_lines, multiple or n_lines):
        end = min(begin + (multiple or n_lines), n_lines)
        for start in range(begin, end, step):
            yield start, min(start + step, end)


# A text table with a sample a row (CSV, TSV and their kin), read in one pass into panels.


class TextReading:
    """One reading of a text table: a ``Reading``."""

    def __init__(self, source: SourceFile, options: IngestOptions, work: Workplace) -> None:
        self.source, self.options, self.side = source, options, SideColumns()
        self.wording = wording_of(options.text, self._where)
        self._work = work
        self._lines = ScratchArray(work.scratch / "lines", np.int64)

    def read_names(self, header: TextSpool) -> dict[str, Any]:
        """Append the names of the columns."""
        self._header, text, inferred = header, self.options.text, {}
        self._check_decoder()
        has_names = has_row_names(self.source, text, self._check_columns)
        self._stream = CsvStream(self.source, text, header.append, row_names=has_names)
        if has_names:
            inferred["row_ids"] = "first column, over which the header has no field"
            if self.options.row_ids is None:
                self.options = replace(self.options, row_ids=ROW_NAMES)
        if text.separator is None:
            inferred["separator"] = name_of(self._stream.dialect.separator)
        return inferred

    def _where(self, row: int) -> str:
        return f"{self.source}, line {self._lines[row : row + 1][0]}"

    def _check_columns(self, n_columns: int) -> None:
        """Refuse a cap before a look at the first row of a table with very many columns."""
        if COLUMN_NBYTES * n_columns > LOOK_NBYTES:
            self._needs(n_columns).check(self.options.memory_nbytes, self.source)

    def _check_decoder(self) -> None:
        """Refuse a cap that cannot hold decompression, before much is decompressed."""
        if PieceReader(self.source).decoder_nbytes > LOOK_NBYTES:
            self._needs(1).check(self.options.memory_nbytes, self.source)

    def _needs(self, n_columns: int, n_rows: int = 1) -> Needs:
        nbytes = N_DECODERS * PieceReader(self.source).decoder_nbytes
        held = (Lease(f"decompressing {self.source}", nbytes),) if nbytes else ()
        return Needs.of(self.options, n_columns, n_rows, held)

    def needs(self, roles: Roles) -> Needs:
        """Return what a bound on the rows takes, or their number where the bound is too high."""
        bound = rows_at_most(self.source, roles.n_columns)
        needs = self._needs(roles.n_columns, bound or 1)
        if bound and (needs.fits(self.options.memory_nbytes) or not needs.depends_on_rows):
            return needs
        n_rows, has_missing = count_rows(
            self.source,
            self.options.text,
            roles.n_columns,
            target=roles.target,
            is_missing=self.wording.is_missing,
        )
        return needs.with_rows(n_rows, drops_rows=needs.drops_rows and has_missing)

    def share_memory(self, roles: Roles, needs: Needs) -> IngestMemory:
        """Share out what the cap leaves."""
        form = self.options.form()
        n_rows, text_nbytes = estimate(self.source, self.options.text, roles.n_columns)
        guessed = Shape(n_rows, roles.n_features)
        disk = disk_of(guessed, form, by_rows=True, text_nbytes=text_nbytes)
        check_disk(self._work.folder, *disk)
        resident = max(needs.held_nbytes, resident_nbytes())
        shape = Shape(needs.n_rows, roles.n_features)
        return share_memory(self.options.memory_nbytes, resident, roles.n_columns, shape, form)

    def read_rows(
        self, roles: Roles, forced: NDArray[np.uint8], memory: IngestMemory, rows: RowColumns
    ) -> None:
        """Read all rows: features into panels on disk, row columns as texts."""
        stream = self._stream
        reader = TableReader(
            roles.slots(),
            stream.dialect,
            place=stream.place,
            kinds=cells_of(forced),
            max_category_nbytes=memory.category_nbytes,
        )
        spool = PanelSpool(self._work.scratch / "panels", roles.n_features, memory.panel_rows)
        self._work.stack.enter_context(spool)
        reader.set_panel(spool.panel)

        def panel_full() -> None:
            spool.flush(reader.n_panel_rows)
            reader.set_panel(spool.panel)

        take = self._row_taker(roles, rows)
        read_panels(stream, reader, self._header, take, panel_full, self._work.tell)
        if self.options.no_target:
            rows.number_rows(reader.n_rows)
        spool.seal()
        cells, columns = reader.cells(), roles.stored_columns()
        self._panels, self._fits_float32 = spool, reader.fits_float32
        self._roles, self._forced = roles, forced[columns]
        self._is_text = ((cells == TEXTS) | (cells == CATEGORIES))[columns]
        self._categories, self._category_nbytes = reader.categories(), memory.category_nbytes

    def _row_taker(self, roles: Roles, rows: RowColumns) -> Callable[[TableReader], None]:
        """Return what takes the texts of the rows read from a reader."""
        spools = [
            (slot, what, rows.open(what, self._header.get(column).decode()))
            for what, column, slot in roles.texts()
        ]

        def take(reader: TableReader) -> None:
            self._lines.append(reader.take_lines())
            for slot, what, spool in spools:
                texts = reader.take_texts(slot)
                if what == "row_ids":
                    check_utf8(texts, f"{self.source}: the row ids")
                spool.append(texts)

        return take

    def features(self, kept: KeptRows) -> Features:
        """Return the panels; nothing is said of kinds where nothing is known of them."""
        if not self.options.kinds and not self._is_text.any():
            return self._panels, self._fits_float32, None, 0
        pool = TextCoder(self._category_nbytes)
        pool.code(*self._categories)
        kinds = FeatureKinds(self._forced, self._is_text, pool, self._locate, kept)
        return self._panels, self._fits_float32, kinds, kinds.held_nbytes()

    def _locate(self, feature: int, row: int) -> tuple[str, str]:
        """Return where the cell of a stored feature and row stands, and its text."""
        column = int(self._roles.stored_columns()[feature])
        text = cell_text(self.source, self.options.text, self._roles.n_columns, column, row)
        return f"{self._where(row)}: column {self._header.describe(column)}", text

    def origin(self) -> dict[str, Any]:
        """Return where the table came from."""
        return self._stream.origin()

    def check_unchanged(self) -> None:
        """Refuse a file that was written to meanwhile."""
        self.source.check_unchanged()


# A table of any other format (arrays, frames, files), read by columns or by rows.

_N_TEXTS = 1 << 14


class TableReading:
    """One reading of a table: a ``Reading``.

    Parameters
    ----------
    table : Table
        The table, opened.
    source : object
        Its name in messages; a ``SourceFile`` is looked at for changes.
    options, side, work : IngestOptions, SideColumns, Workplace
        What is asked, what stands beside the table, and where to work.
    origin : dict
        Where it came from, for the manifest.
    needs : Needs
        What all of the ingest takes of memory.
    wording : Wording, optional
        How row columns are read; as items, by row, if not given.
    locate : callable, optional
        Returns where the cell of a column and row stands.
    """

    def __init__(
        self,
        table: Table,
        source: object,
        options: IngestOptions,
        side: SideColumns,
        work: Workplace,
        origin: dict[str, Any],
        needs: Needs,
        wording: Wording | None = None,
        locate: Callable[[int, int], str] | None = None,
    ) -> None:
        self._table, self.source, self._work = table, source, work
        self.options, self.side, self._origin, self._needs = options, side, origin, needs
        self.wording = wording or Wording(lambda row: f"{source}, row {row + 1}")
        self._locate = locate or self._in_row

    def read_names(self, header: TextSpool) -> dict[str, Any]:
        """Append the names of the columns: those given, the table's own, or f0, f1, ..."""
        self._header, n_columns = header, self._table.shape[1]
        self._needs.check(self.options.memory_nbytes, self.source)
        given = self._table.names if self.side.names is None else self.side.names
        texts: Iterator[str] = (f"f{i}" for i in range(n_columns))
        if given is not None:
            what = str(given) if isinstance(given, Path) else "names of columns"
            if self.side.names is not None:
                check_items(given, what)
            texts = texts_given(what, chain.from_iterable(item_blocks(given)), n_columns)
        while block := list(islice(texts, _N_TEXTS)):
            header.append(texts_of(block))
        return {"names": "f0, f1, ..."} if given is None else {}

    def needs(self, roles: Roles) -> Needs:
        """Return what the table takes, whatever its columns are for."""
        return self._needs

    def share_memory(self, roles: Roles, needs: Needs) -> IngestMemory:
        """Share memory out for the rows there are."""
        shape, form = Shape(self._table.shape[0], roles.n_features), self.options.form()
        by_rows = self._table.by_rows
        check_disk(self._work.folder, *disk_of(shape, form, by_rows=by_rows))
        resident = max(needs.held_nbytes, resident_nbytes() + beside_nbytes(self._table))
        return share_memory(self.options.memory_nbytes, resident, roles.n_columns, shape, form)

    def read_rows(
        self, roles: Roles, forced: NDArray[np.uint8], memory: IngestMemory, rows: RowColumns
    ) -> None:
        """Read the row columns, of the table and beside it, as texts."""
        self._memory, self._columns = memory, roles.stored_columns()
        self._forced = forced[self._columns]
        for what, column, _ in roles.texts():
            name, where = self._header.get(column).decode(), partial(self._in_row, column)
            spool_items(rows.open(what, name), self._table.items(column), where)
        if self.options.no_target:
            rows.number_rows(self._table.shape[0])
        for what, columns in self.side.columns.items():
            for name, given in columns:
                spool = rows.open(what, name)
                label = str(given) if isinstance(given, Path) else name
                check_items(given, label)
                spool_items(spool, item_blocks(given), partial(_item, label))
                if len(spool) != (n_rows := self._table.shape[0]):
                    raise InputError(
                        f"{label}: expected {n_rows} items, one for each row, found {len(spool)}. "
                        "Give as many as rows."
                    )

    def _in_row(self, column: int, row: int) -> str:
        return f"{self.source}, row {row + 1}: column {self._header.describe(column)}"

    def features(self, kept: KeptRows) -> Features:
        """Return the features, checked; a table of rows is turned into columns here.

        By panels on disk, or all in memory where there is room.
        """
        table, memory = self._table, self._memory
        texts = table.text_columns
        holds_texts = np.zeros(len(self._columns), np.bool_)
        if texts is not None:
            holds_texts = texts[self._columns]
        kinds = self._kinds(holds_texts, kept)
        grows = 0 if table.pool else memory.category_nbytes - kinds.pool.cost
        held = kinds.held_nbytes() + grows if kinds.is_text.any() else 0
        columns = TableColumns(table, self.source, self._header, self._columns, kinds)
        source: StoredColumns = columns
        if table.by_rows:
            shape = Shape(columns.n_rows, columns.n_features)
            holds = memory.has_room(shape, self.options.form(), held)
            panel_rows = 0 if holds else memory.panel_rows
            held += table_nbytes(shape) if holds else 0
            path = self._work.scratch / "panels"
            panels = open_panels(path, columns.n_features, columns.n_rows, panel_rows)
            self._work.stack.push(panels)
            columns.spool(panels, self._work.tell)
            source = panels
        else:
            columns.check(self._work.tell)
        are_numbers = kinds.is_text & ~holds_texts
        if are_numbers.any():
            source = NumbersAsTexts(source, are_numbers, kinds)
        return source, columns.fits_float32, kinds, held

    def _kinds(self, holds_texts: NDArray[np.bool_], kept: KeptRows) -> FeatureKinds:
        columns, forced = self._columns, self._forced
        pool = self._table.pool or TextCoder(self._memory.category_nbytes)
        self._refuse_texts(columns[holds_texts & ~np.isin(forced, (FREE, CATEGORICAL))], pool)
        return FeatureKinds(
            forced,
            holds_texts | (forced == CATEGORICAL),
            pool,
            lambda feature, row: (self._locate(int(columns[feature]), row), None),
            kept,
        )

    def _refuse_texts(self, columns: NDArray[np.intp], pool: TextCoder) -> None:
        """Refuse columns of texts that are forced to be numbers."""
        if not len(columns):
            return
        column = int(columns.min())
        values = self._table.read(np.array([column]), pool)[0]
        row = int((~np.isnan(values)).argmax())
        found = values[row]
        text = "no text" if np.isnan(found) else shown(pool.texts()[int(found)])
        raise InputError(
            f"{self._locate(column, row)}: expected a number, as --kind says, found {text}. Mend "
            "the column, or leave --kind out."
        )

    def origin(self) -> dict[str, Any]:
        """Return where the table came from."""
        return self._origin | {"format": self._table.format}

    def check_unchanged(self) -> None:
        """Refuse a file that was written to meanwhile."""
        if isinstance(self.source, SourceFile):
            self.source.check_unchanged()


def _item(what: str, item: int) -> str:
    return f"{what}, item {item + 1}"


Reading = TextReading | TableReading
"""A table that is being read, its methods called once each, in the order of their definition."""
