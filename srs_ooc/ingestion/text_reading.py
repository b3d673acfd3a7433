"""A text table with a sample a row (CSV, TSV and their kin), read in one pass into panels."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.budget import Lease, resident_nbytes
from srs_ooc.base.errors import InputError
from srs_ooc.ingestion.categories import FeatureKinds
from srs_ooc.ingestion.disk import check_disk, disk_of
from srs_ooc.ingestion.forced_kinds import cells_of
from srs_ooc.ingestion.formats.csv import ROW_NAMES, CsvStream, check_utf8, fed
from srs_ooc.ingestion.formats.csv_looks import (
    cell_text,
    count_rows,
    estimate,
    has_row_names,
    rows_at_most,
)
from srs_ooc.ingestion.formats.dialect import name_of
from srs_ooc.ingestion.formats.faults import raise_fault
from srs_ooc.ingestion.formats.pieces import N_DECODERS, PieceReader
from srs_ooc.ingestion.formats.source import SourceFile
from srs_ooc.ingestion.memory import COLUMN_NBYTES, IngestMemory, share_memory
from srs_ooc.ingestion.needs import LOOK_NBYTES, Needs
from srs_ooc.ingestion.options import IngestOptions, SideColumns
from srs_ooc.ingestion.parse import CATEGORIES, TEXTS, TableReader
from srs_ooc.ingestion.reading import Features, Workplace
from srs_ooc.ingestion.roles import Roles
from srs_ooc.ingestion.row_columns import KeptRows
from srs_ooc.ingestion.row_facts import RowColumns, wording_of
from srs_ooc.ingestion.scratch import ScratchArray, TextSpool
from srs_ooc.ingestion.spool import PanelSpool
from srs_ooc.ingestion.texts import TextCoder
from srs_ooc.store.manifest import Shape


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
        guess = estimate(self.source, self.options.text, roles.n_columns)
        guessed = Shape(guess.n_rows, roles.n_features)
        disk = disk_of(guessed, form, by_rows=True, text_nbytes=guess.text_nbytes)
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
        for _ in fed(stream, reader, ahead=True):
            take(reader)
            if reader.panel_is_full:
                panel_full()
            self._work.tell("reading", stream.pieces.n_used, stream.pieces.nbytes)
        raise_fault(
            self.source, reader.problem, roles.n_columns, self._header.describe, stream.dialect
        )
        if reader.n_rows == 0:
            raise InputError(f"{self.source}: expected rows after the header, found none.")
        if self.options.no_target:
            rows.number_rows(reader.n_rows)
        if reader.n_panel_rows:
            panel_full()
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
            return Features(self._panels, self._fits_float32)
        pool = TextCoder(self._category_nbytes)
        pool.code(*self._categories)
        kinds = FeatureKinds(self._forced, self._is_text, pool, self._locate, kept)
        return Features(self._panels, self._fits_float32, kinds, kinds.held_nbytes())

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
