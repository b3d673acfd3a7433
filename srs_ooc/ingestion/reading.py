"""The readings of a table, stage by stage: text with a sample a row, and any other format.

They are the seam between formats and the pipeline, which calls the same methods of either, once
each, in the order in which they stand, and gets features in stored order.
"""

import math
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from itertools import count, islice
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from srs_ooc.base.arrays import Bools, Bytes, Indices, Integers, Reals
from srs_ooc.base.budget import Lease, total_nbytes
from srs_ooc.base.errors import BudgetError, InputError, unfit
from srs_ooc.base.text import counted
from srs_ooc.ingestion import arff, ingest_memory, ingest_options, scratch
from srs_ooc.ingestion import csv as text_tables
from srs_ooc.ingestion.formats import Table, TextCoder, in_memory
from srs_ooc.ingestion.formats.genotypes import RAW, STATUS, TRAW, cells_of_raw, in_role
from srs_ooc.ingestion.ingest_memory import line_pieces
from srs_ooc.ingestion.ingest_options import ByteProgress, IngestOptions, Roles
from srs_ooc.ingestion.rows import KeptRows, RowColumns, shown
from srs_ooc.ingestion.scratch import Panels, ScratchArray, TextSpool, anonymous_array, texts_of
from srs_ooc.ingestion.sources import N_DECODERS, WHOLE_NBYTES, PieceReader, SourceFile, part_of
from srs_ooc.ingestion.writer import FeatureKinds, as_float32
from srs_ooc.native import _native
from srs_ooc.store.manifest import CATEGORICAL, Shape
from srs_ooc.store.values import CodeFacts

Origin = Callable[[], dict[str, Any]]
"""Tells where a table came from: name, format, size and checksum, as far as known."""


class WorkFolder(ExitStack):
    """Where an ingest works: closes what is opened there, and deletes its scratch, after a block.

    Parameters
    ----------
    folder : Path
        The store that is being made.
    tell : callable, optional
        Told of the bytes read and written.

    Attributes
    ----------
    scratch : Path
        Folder in it for what is given back at the end.
    inferred : dict
        What was found rather than said, for the manifest.
    """

    def __init__(self, folder: Path, tell: ByteProgress | None = None) -> None:
        super().__init__()
        self.folder, self.scratch = folder, folder / "scratch"
        self.tell: ByteProgress = tell or (lambda stage, done, total: None)
        self.inferred: dict[str, Any] = {}
        self.scratch.mkdir()
        self.callback(shutil.rmtree, self.scratch)


Features = tuple[ingest_options.StoredColumns, bool, FeatureKinds, int]
"""The features of a table once they are read.

All rows of them; whether float32 holds every value; what is known of their kinds; and the memory
that is held until they are written, in bytes."""


# A text table with a sample a row (CSV, TSV and their kin), read in one pass into panels.


class TextReading:
    """One reading of a text table.

    Attributes
    ----------
    source : SourceFile
        Its name in messages; it is looked at for changes.
    options : IngestOptions
        What is asked, as the table settles it.
    table : Table
        What the format says beside the cells: nothing.
    """

    table = Table()

    def __init__(self, source: SourceFile, options: IngestOptions, work: WorkFolder) -> None:
        self.source, self.options, self._work = source, options, work
        self._lines = ScratchArray(work.scratch / "lines", np.int64)
        self._declared_nbytes = 0

    def read_names(self, header: TextSpool) -> None:
        """Append the names of the columns."""
        self._header, inferred, pieces = header, self._work.inferred, PieceReader(self.source)
        text = text_tables.form_of(pieces, self.options.text)
        self.options = replace(self.options, text=text)
        self._look_at(1)
        has_names = text_tables.has_row_names(self.source, text, header.append, self._look_at)
        self._stream = text_tables.CsvStream(self.source, text, header.append)
        self._declared = np.broadcast_to(np.uint8(text_tables.UNKNOWN), len(header))
        if (known := self._stream.pieces.arff) is not None:
            self._declared = np.frombuffer(known.kinds, np.uint8)
            self._declared_nbytes = known.held_nbytes
            self._look_at(len(known.kinds))
        if has_names:
            inferred["row_ids"] = "first column, over which the header has no field"
            if self.options.row_ids is None:
                self.options = replace(self.options, row_ids=text_tables.ROW_NAMES)
        if list(islice(header, len(TRAW))) == TRAW:
            expected = "--samples beside a .traw, a variant a line"
            remedy = "Say --samples FILE --id IID --target NAME on the command line."
            raise unfit(self.source, expected, "none", remedy)
        self._is_raw = list(islice(header, len(RAW))) == RAW
        if text.separator is None:
            inferred["separator"] = text_tables.name_of(self._stream.separator)
        # the first columns are what the file says they are, unless an option names them
        options, first = self.options.with_targets(header), header.get(0).decode()
        named = {name for _, name in options.columns()}.union(options.ignore)
        ids, own, what = first, [first], "first column, which has no name"
        if self._is_raw:
            ids, own, what = "IID", RAW, "'IID' of the file"
            inferred["alleles"] = "counted is the one that names end in, ID_ALLELE"
            is_given = options.target or options.no_target or "target" in options.beside
            if not is_given and "PHENOTYPE" not in named:
                options = replace(options, target="PHENOTYPE")
                inferred["target"] = "'PHENOTYPE' of the file"
        elif first in named or not text_tables.has_index(self.source, text, header):
            return
        if ids not in named and options.row_ids is None and options.aggregate is None:
            options, inferred["row_ids"] = replace(options, row_ids=ids), what
        elif not self._is_raw:
            inferred["index"] = f"{what}, left out"
        left = (one for one in own if one not in {*named, options.row_ids, options.target})
        self.options = replace(options, ignore=(*options.ignore, *left))

    def where(self, row: int) -> str:
        """Return where a row stands, for messages."""
        if not len(self._lines):  # no column is kept as text
            return f"{self.source}, row {row + 1}"
        return f"{self.source}, line {self._lines[row : row + 1][0]}"

    def _look_at(self, n_columns: int) -> None:
        """Refuse a cap before a look at many columns, or before much is decompressed."""
        memory, nbytes = self._memory(n_columns), ingest_memory.COLUMN_NBYTES * n_columns
        if nbytes + total_nbytes(memory.held) > ingest_memory.LOOK_NBYTES:
            memory.check(self.source)

    def _memory(self, n_columns: int, n_rows: int = 1) -> ingest_memory.IngestMemory:
        pieces = PieceReader(self.source)
        held, decoding = list[Lease](), N_DECODERS * pieces.decoder_nbytes
        if decoding:
            held.append(Lease(f"decompressing {self.source}", decoding))
        if pieces.arff is not None:
            nbytes = arff.ROW_NBYTES + arff.COLUMN_NBYTES * n_columns
            nbytes += N_DECODERS * self._declared_nbytes
            held.append(Lease("rows of ARFF, and what it declares", nbytes))
        return self.options.memory(n_columns, n_rows, tuple(held))

    def memory(self, roles: Roles) -> ingest_memory.IngestMemory:
        """Return what the ingest takes: of a bound on the rows, or their number if that is high."""
        bound = text_tables.rows_at_most(self.source, roles.n_columns)
        texts_nbytes = self._texts_nbytes(roles)
        memory = replace(self._memory(roles.n_columns, bound or 1), texts_nbytes=texts_nbytes)
        if bound and (memory.fits or not memory.depends_on_rows):
            return memory
        n_rows, has_missing = text_tables.count_rows(
            self.source, self.options.text, roles.n_columns, roles.target
        )
        has_missing |= self.options.drops_more or self._is_raw
        drops, memory = memory.drops_rows and has_missing, self._memory(roles.n_columns, n_rows)
        return replace(memory, texts_nbytes=texts_nbytes, drops_rows=drops)

    def look(self, roles: Roles, n_rows: int, text_nbytes: int) -> Iterator[str]:
        """Yield what rows say of the target and of the features: all, or part of a long text.

        Raises
        ------
        InputError
            If one of them cannot be read.
        """
        options, source = self.options, self.source
        if self._is_raw:
            missing = (*(options.text.missing or ("", "NA")), "-9")
            options = replace(options, text=replace(options.text, missing=missing))
        rows = RowColumns(self._work.scratch, source, self.where, options)
        if text_nbytes > WHOLE_NBYTES:
            source = part_of(source, text_nbytes, n_rows, self._work.scratch)
        spool = self._opened(rows, "target", roles.target or 0)
        self._texts_nbytes(roles, source, most_nbytes=WHOLE_NBYTES, take=spool.append)
        yield f"looked at: {source}"
        if roles.target is not None:
            self._name_status([spool], options.text)
            yield f"kind of target: {rows.look()}"
        numbers = int(np.count_nonzero(self._are_numbers))
        texts = len(self._are_numbers) - numbers
        yield f"features: {counted(numbers, 'column')} of numbers, {texts} of texts (categories)"

    def _cells(self, roles: Roles) -> Bytes:
        """Return what cells of each column are: as is forced, or else as the file declares."""
        cells = ingest_options.CELLS_OF[roles.forced]
        return np.where(cells == text_tables.UNKNOWN, self._declared, cells)

    def _opened(self, rows: RowColumns, what: str, column: int) -> TextSpool:
        is_declared = self._declared[column] == text_tables.CATEGORIES
        return rows.open(what, self._header.get(column).decode(), [] if is_declared else None)

    def _texts_nbytes(self, roles: Roles, source: Any = None, **how: Any) -> int | None:
        """Return what the texts of features count as; None where no feature can hold a text."""
        cells, slots = self._cells(roles), roles.slots()
        lines = text_tables.CsvStream(source or self.source, self.options.text)
        slots[slots < text_tables.TARGET] = text_tables.IGNORED
        room = ingest_memory.COUNTED_NBYTES
        reader = text_tables.TableReader(slots, lines, cells, max_category_nbytes=room, counts=True)
        nbytes = reader.counted_nbytes(roles.n_features, **how)
        if "take" in how:
            text_tables.raise_fault(reader, self._header.describe)
        numbers = (text_tables.NUMBERS, text_tables.ONLY_NUMBERS)
        self._are_numbers = np.isin(reader.cells()[roles.stored_columns()], numbers)
        return None if self._are_numbers.all() else nbytes

    def share(self, roles: Roles) -> ingest_memory.IngestMemory:
        """Check memory and disk, and share out what the cap leaves.

        Raises
        ------
        BudgetError, StoreError
            If the cap, or the disk, cannot hold the ingest.
        """
        memory = self.memory(roles)
        memory.check(self.source)
        n_rows, text_nbytes = text_tables.estimate(self.source, self.options.text, roles.n_columns)
        shape = Shape(n_rows, roles.n_features)
        disk = scratch.disk_of(shape, memory.form, by_rows=True, text_nbytes=text_nbytes)
        scratch.check_disk(self._work.folder, *disk)
        self._shared = memory.shared(Shape(memory.n_rows, roles.n_features))
        return self._shared

    def read_rows(self, roles: Roles, rows: RowColumns) -> None:
        """Read all rows: features into panels on disk, row columns as texts, a spool each.

        Raises
        ------
        InputError
            If a cell cannot be read, or holds something else than its column.
        """
        memory = self._shared
        stream, slots = self._stream, roles.slots()
        if self._is_raw and slots[0] == text_tables.IGNORED:  # families may tell ids apart
            slots[0] = text_tables.ROW_ID - 1 - len(roles.named)
        room, n_staged = memory.category_nbytes, memory.staged_rows
        reader = text_tables.TableReader(
            slots, stream, self._cells(roles), max_category_nbytes=room, staged_rows=n_staged
        )
        spool = Panels(self._work.scratch / "panels", roles.n_features, memory.panel_rows)
        self._work.enter_context(spool)
        take = self._row_taker(roles, rows, int(slots[0]))
        try:
            text_tables.read_panels(reader, self._header, take, spool, self._work.tell)
        except BudgetError as error:
            texts_nbytes = self._texts_nbytes(roles, most_nbytes=math.inf) or 0
            bound = text_tables.rows_at_most(self.source, roles.n_columns) or 1
            drops = self._memory(1).drops_rows  # as where the cap holds the bound
            memory = replace(memory, n_rows=max(memory.n_rows, bound), drops_rows=drops)
            raise memory.naming(error, texts_nbytes) from None
        if self.options.no_target:
            rows.number_rows(reader.native.n_rows)
        for ids in self._own_ids:
            if ids.duplicates(1):
                ids.rewrite(map(":".join, zip(self._families, ids, strict=True)))
        self._name_status(self._spools, self.options.text)
        cells, columns = reader.cells(), roles.stored_columns()
        self._panels, self._fits_float32 = spool, reader.native.fits_float32
        is_said = self._cells(roles) == text_tables.CATEGORIES
        self._roles, self._forced = roles, np.where(is_said, CATEGORICAL, roles.forced)[columns]
        self._is_text = ((cells == text_tables.TEXTS) | (cells == text_tables.CATEGORIES))[columns]
        self._categories = reader.categories()

    def _name_status(self, spools: list[TextSpool], form: text_tables.TextForm) -> None:
        """Name cases and controls where a phenotype of PLINK is nothing else, as in a ``.fam``."""
        for spool in (one for one in spools if self._is_raw and one.label == "PHENOTYPE"):
            if all(cell in STATUS or form.is_missing(cell.encode()) for cell in spool):
                spool.rewrite(STATUS.get(cell, cell) for cell in spool)

    def _row_taker(
        self, roles: Roles, rows: RowColumns, first_slot: int
    ) -> Callable[[text_tables.TableReader], None]:
        """Return what takes the texts of the rows read."""
        spools = [(slot, what, self._opened(rows, what, one)) for what, one, slot in roles.texts()]
        self._spools = [spool for _, _, spool in spools]
        own = ("row_ids", "IID") if self._is_raw else None
        self._own_ids = [one for _, what, one in spools if (what, one.label) == own]
        self._families = TextSpool(self._work.scratch, "families", "of each row")
        spools += [(first_slot, "row_ids", self._families)] * self._is_raw
        slots = {slot for slot, *_ in spools}
        raw, found = replace(self.options, task="regression"), self._work.inferred  # no 0 is lost
        declared = [*(self._declared[one] for _, one, _ in roles.texts()), text_tables.UNKNOWN]
        form = self.options.text

        def take(reader: text_tables.TableReader) -> None:
            self._lines.append(reader.take_lines())
            taken = {slot: reader.take_texts(slot) for slot in slots}
            for (slot, what, spool), kind in zip(spools, declared, strict=False):
                texts = taken[slot]
                for row, text in enumerate(texts if kind == text_tables.ONLY_NUMBERS else ()):
                    if not form.is_missing(text) and form.number(text) is None:
                        column = f"{self.where(len(spool) + row)}: column {spool.label!r}"
                        raise InputError(text_tables.explain("not_a_number", text, column, form))
                if what in ("row_ids", "groups") or self._is_raw:
                    text_tables.check_utf8(texts, f"{self.source}: the {what.replace('_', ' ')}")
                if self._is_raw:
                    role, cells = (what, spool.label), cells_of_raw(spool.label, texts, raw.text)
                    texts = texts_of(in_role(raw, role, cells, count(len(spool) + 1), found))
                spool.append(texts)

        return take

    def naming_the_cap(self) -> AbstractContextManager[None]:
        """Return nothing to be entered: all texts were read before."""
        return nullcontext()

    def features(self, kept: KeptRows) -> Features:
        """Return the panels, and what is known of them; ``kept`` says which rows are stored."""
        pool = TextCoder(self._shared.category_nbytes)
        pool.code(*self._categories)
        kinds = FeatureKinds(self._forced, self._is_text, pool, self._locate, kept)
        held = pool.cost + ingest_memory.CATEGORY_WORK_NBYTES if kinds.is_text.any() else 0
        return self._panels, self._fits_float32, kinds, held

    def _locate(self, feature: int, row: int) -> tuple[str, str]:
        """Return where the cell of a stored feature and row stands, and its text."""
        column, n_columns = int(self._roles.stored_columns()[feature]), self._roles.n_columns
        text = text_tables.cell_text(self.source, self.options.text, n_columns, column, row)
        return f"{self.where(row)}: column {self._header.describe(column)}", text

    def origin(self) -> dict[str, Any]:
        """Return where the table came from."""
        return self._stream.origin() | ({"plink": True} if self._is_raw else {})


# A table of any other format (arrays, frames, files), read by columns or by rows.


class TableReading:
    """One reading of a table.

    Parameters
    ----------
    table : Table
        The table, opened.
    source : object
        Its name in messages; a ``SourceFile`` is looked at for changes.
    options, work : IngestOptions, WorkFolder
        What is asked, and where to work.
    origin : callable
        Tells where it came from, for the manifest.

    Attributes
    ----------
    needs : IngestMemory
        What all of the ingest takes; what the table says if nobody else does.
    where, locate : callable
        Return where a row, and the cell of a column and row, stand, for messages.
    fits_float32 : bool
        Whether float32 holds all values that were read; it may be said beforehand that it does not.
    amend : callable
        Given positions of columns, and what coding found of them, mends that.
    """

    fits_float32 = True
    amend: Callable[[Integers, CodeFacts], None] = staticmethod(lambda places, facts: None)

    def __init__(
        self, table: Table, source: object, options: IngestOptions, work: WorkFolder, origin: Origin
    ) -> None:
        self.table, self.source, self._work = table, source, work
        self.options, self._origin = options.settled(table), origin
        self.needs = in_memory.memory_of(table, self.options)
        self.where: Callable[[int], str] = lambda row: f"{source}, row {row + 1}"
        self.locate: Callable[[int, int], str] = self._in_row

    def read_names(self, header: TextSpool) -> None:
        """Append the names of the columns: those given, the table's own, or f0, f1, ..."""
        self._header, n_columns = header, self.table.shape[1]
        if ingest_memory.COLUMN_NBYTES * n_columns > ingest_memory.LOOK_NBYTES:
            self.needs.check(self.source)
        own = self.options.names
        given = self.table.names if own is None else own
        if given is None:
            self._work.inferred["names"] = "f0, f1, ..."
            header.extend(f"f{i}" for i in range(n_columns))
            return
        what = str(given) if isinstance(given, Path) else "names of columns"
        if own is not None:
            in_memory.check_items(given, what)
        for block in in_memory.item_blocks(given):
            texts = in_memory.texts_in(block, partial(_item, what), len(header))
            if None in texts:
                place = len(header) + texts.index(None) + 1
                raise unfit(what, f"a text at {place}", "none", "Fill it in.")
            header.append(texts_of(text or "" for text in texts))
        if len(header) != n_columns:
            remedy = "Give as many as there are columns."
            raise unfit(what, f"{n_columns} names, one for each column", len(header), remedy)

    def memory(self, roles: Roles) -> ingest_memory.IngestMemory:
        """Return what the ingest takes."""
        return self.needs

    def share(self, roles: Roles) -> ingest_memory.IngestMemory:
        """Check memory and disk, and share out what the cap leaves for the rows there are."""
        table, self._columns = self.table, roles.stored_columns().astype(np.uint32)
        self.n_rows, self.n_features = table.shape[0], roles.n_features
        shape = Shape(self.n_rows, self.n_features)
        self.needs.check(self.source)
        n_items, size = table.shape[int(table.by_rows)], self.needs.cell_nbytes
        if not self.options.link:
            how = partial(scratch.disk_of, shape, self.needs.form, by_rows=table.by_rows)
            panels, stored = how(text_nbytes=table.values_nbytes, cell_nbytes=size)
            scratch.check_disk(self._work.folder, panels + table.scratch_nbytes, stored)
        lines = ingest_memory.lines_lease(n_items, table.work_nbytes, size)
        self.needs = self.needs.shared(shape, lines.n_bytes)
        return self.needs

    def read_rows(self, roles: Roles, rows: RowColumns) -> None:
        """Read the row columns, of the table and beside it, as texts.

        Raises
        ------
        InputError
            If a cell cannot be read, or columns beside the table are longer or shorter.
        """
        self._forced = roles.forced[self._columns]
        for what, column in roles.named:
            name, where = self._header.get(column).decode(), partial(self._in_row, column)
            spool = rows.open(what, name, self.table.levels(column))
            in_memory.spool_items(spool, self.table.items(column), where)
        if self.options.no_target:
            rows.number_rows(self.n_rows)
        for what, columns in self.options.beside.items():
            for name, given in columns:
                spool = rows.open(what, name, in_memory.levels_of(given))
                label = str(given) if isinstance(given, Path) else name
                in_memory.check_items(given, label)
                in_memory.check_index(self.table.index, given, label)
                in_memory.spool_items(spool, in_memory.item_blocks(given), partial(_item, label))
                if len(spool) != self.n_rows:
                    expected = f"{self.n_rows} items, one for each row"
                    raise unfit(label, expected, len(spool), "Give as many as rows.")

    def _in_row(self, column: int, row: int) -> str:
        return f"{self.source}, row {row + 1}: column {self._header.describe(column)}"

    def features(self, kept: KeptRows) -> Features:
        """Return the features, checked; a table of rows is turned into columns here.

        Raises
        ------
        InputError
            If a cell holds an infinity, or something else than its column.
        """
        table, memory = self.table, self.needs
        table.prepare()
        holds_texts = np.zeros(table.shape[1], np.bool_)
        if table.text_columns is not None:
            holds_texts |= table.text_columns
        self._found = kinds = self._kinds(holds_texts[self._columns], kept)
        if not table.by_rows:
            with self.naming_the_cap():
                self._check(holds_texts)
        held = 0
        if kinds.is_text.any():
            is_known = table.pool or not (table.by_rows or (self._forced == CATEGORICAL).any())
            cost = kinds.pool.cost if is_known else memory.category_nbytes
            held = cost + ingest_memory.CATEGORY_WORK_NBYTES
        is_narrow = self.fits_float32 and (not table.by_rows or bool(np.all(table.narrow)))
        is_plain = not kinds.is_text.any() and self.options.aggregate is None
        self._dtype = np.dtype(np.float32 if is_narrow and is_plain else np.float64)
        if not table.by_rows:
            return self, self.fits_float32, kinds, held
        path, n_rows = self._work.scratch / "panels", min(memory.panel_rows, self.n_rows)
        panels = Panels(path, self.n_features, n_rows, self._dtype)
        self._work.enter_context(panels)
        with self.naming_the_cap():
            self._spool(panels)
        return panels, self.fits_float32, kinds, held

    @contextmanager
    def naming_the_cap(self) -> Iterator[None]:
        """Have a refusal of too many texts name the cap, for which all of them are read."""
        try:
            yield
        except BudgetError as error:
            pool, table = TextCoder(ingest_memory.COUNTED_NBYTES, counts=True), self.table
            lines = np.arange(self.n_rows) if table.by_rows else self._columns
            for first, last in line_pieces(len(lines), table.shape[int(table.by_rows)]):
                cells = table.read(lines[first:last].astype(np.intp), pool)
                start, cells = (0, cells.T[self._columns]) if table.by_rows else (first, cells)
                replace(self._found, pool=pool).number_texts(start, cells)
            raise self.needs.naming(error, pool.needed_nbytes) from None

    def places(self, start: int, stop: int) -> Indices:
        """Return the columns of the table that stored features ``start .. stop - 1`` are."""
        return self._columns[start:stop].astype(np.intp)

    def read(self, start: int, stop: int) -> Reals:
        """Return the values (stop - start, n_rows) of stored features ``start .. stop - 1``."""
        out = anonymous_array((stop - start, self.n_rows), self._dtype)
        for first, last in line_pieces(stop - start, self.n_rows):
            positions = self.places(start + first, start + last)
            values = self.table.read(positions, self._found.pool)
            self._look(values, positions)
            out[first:last] = as_float32(values) if out.dtype == np.float32 else values
        return out

    def _check(self, holds_texts: Bools) -> None:
        """Find out whether float32 would do: from the dtypes, or by reading until it would not.

        Texts are numbered on the way, so that all of them are known before any is coded. Columns
        of numbers whose own dtypes promise it are not read.
        """
        is_read = holds_texts | np.logical_not(self.table.narrow)
        in_order = np.sort(self._columns[is_read[self._columns]])
        for first, last in line_pieces(len(in_order), self.n_rows):
            positions = in_order[first:last].astype(np.intp)
            self._look(self.table.read(positions, self._found.pool), positions)
            if not self.fits_float32 and not holds_texts.any():
                return
            self._tell(last * self.n_rows)

    def _spool(self, spool: Panels) -> None:
        """Read all rows, in panels that turn them into columns."""
        _native.reuse_blocks()  # of each piece of rows
        panel_rows, n_threads = spool.panel.shape[1], self.options.most_threads
        pieces = line_pieces(self.n_rows, self.table.shape[1], panel_rows)
        read, pool = self.table.read, self._found.pool
        reads = ((first, last, read(np.arange(first, last), pool)) for first, last in pieces)
        for first, last, rows in text_tables.read_ahead(reads):
            infinite, narrow = spool.put(rows, self._columns, first % panel_rows, n_threads)
            if infinite >= 0:
                row, column = divmod(infinite, rows.shape[1])
                self._refuse(first + row, column, rows[row, column])
            self.fits_float32 &= narrow
            if not narrow and self._dtype == np.float32:
                as_float32(rows)  # says so
            if last % panel_rows == 0 or last == self.n_rows:
                spool.flush((last - 1) % panel_rows + 1)
            self._tell(last * self.n_features)
        spool.seal()

    def _look(self, values: Reals, columns: Indices) -> None:
        """Look at columns, each a row of ``values``."""
        infinite, narrow = _native.look_at(values)
        if infinite >= 0:
            at, row = divmod(infinite, values.shape[1])
            self._refuse(row, int(columns[at]), values[at, row])
        self.fits_float32 &= narrow

    def _refuse(self, row: int, column: int, found: float) -> NoReturn:
        where = f"{self.source}, row {row + 1}, column {self._header.describe(column)}"
        remedy = "Mend the cell, or make it missing."
        raise unfit(where, "a finite number (or a missing value)", found, remedy)

    def _tell(self, n_cells: int) -> None:
        self._work.tell("reading", 8 * n_cells, 8 * self.n_rows * self.n_features)

    def _kinds(self, holds_texts: Bools, kept: KeptRows) -> FeatureKinds:
        columns, forced = self._columns, self._forced
        pool = self.table.pool or TextCoder(self.needs.category_nbytes)
        wrong = columns[holds_texts & ~np.isin(forced, (ingest_options.FREE, CATEGORICAL))]
        if len(wrong):
            column = int(wrong.min())
            values = self.table.read(np.array([column]), pool)[0]
            row = int((~np.isnan(values)).argmax())
            text = "no text" if np.isnan(values[row]) else shown(pool.texts()[int(values[row])])
            where, remedy = self.locate(column, row), "Mend the column, or leave --kind out."
            raise unfit(where, "a number, as --kind says", text, remedy)
        return FeatureKinds(
            forced,
            holds_texts | (forced == CATEGORICAL),
            pool,
            lambda feature, row: (self.locate(int(columns[feature]), row), None),
            kept,
            (forced == CATEGORICAL) & ~holds_texts,
            lambda start, facts: self.amend(columns[start : start + len(facts.kinds)], facts),
        )

    def origin(self) -> dict[str, Any]:
        """Return where the table came from."""
        return self._origin() | {"format": self.table.format}


Reading = TextReading | TableReading


def _item(what: str, item: int) -> str:
    return f"{what}, item {item + 1}"
