"""From a text table to a published store: plan, read, turn rows into columns, write, publish."""

import contextlib
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.atomic import published_folder
from srs_ooc.base.budget import cap_to_name, resident_nbytes
from srs_ooc.base.errors import BudgetError, InputError, StoreError
from srs_ooc.base.sizes import MB, describe_nbytes, megabytes
from srs_ooc.ingestion.categories import FeatureKinds
from srs_ooc.ingestion.forced_kinds import cells_of
from srs_ooc.ingestion.formats.csv import (
    ROW_NAMES,
    CsvStream,
    Estimate,
    cell_text,
    check_utf8,
    count_rows,
    estimate,
    has_row_names,
    read_rows,
    rows_at_most,
)
from srs_ooc.ingestion.formats.dialect import name_of
from srs_ooc.ingestion.formats.pieces import PieceReader
from srs_ooc.ingestion.formats.problems import raise_problem
from srs_ooc.ingestion.formats.source import Source, check_unchanged, settle_source, stamp_of
from srs_ooc.ingestion.kept_columns import kept_columns
from srs_ooc.ingestion.memory import IngestPlan, check_columns, plan_ingest, smallest_cap
from srs_ooc.ingestion.parse import CATEGORIES, TEXTS, TableReader, TextCoder
from srs_ooc.ingestion.publishing import IngestOptions, load_libraries, words_for_the_disk
from srs_ooc.ingestion.roles import Roles, check_distinct, check_kinds, choose_roles
from srs_ooc.ingestion.row_columns import KeptRows
from srs_ooc.ingestion.row_facts import RowColumns, RowFacts, wording_of
from srs_ooc.ingestion.scratch_array import ScratchArray
from srs_ooc.ingestion.spool import PanelSpool
from srs_ooc.ingestion.table import Progress, StoreForm
from srs_ooc.ingestion.texts import TextSpool
from srs_ooc.ingestion.writer import write_store
from srs_ooc.store.layout import Shape
from srs_ooc.store.manifest import Manifest

_N_DECODERS = 2  # a look at the file is taken while another reader waits at its first row


__all__ = ["IngestOptions", "ingest_csv"]


def ingest_csv(
    source: Path,
    target_path: Path,
    options: IngestOptions | None = None,
    progress: Progress | None = None,
) -> Manifest:
    """Ingest a text table (CSV, TSV and their kin), plain or compressed, into a store.

    The store appears at ``target_path`` complete or not at all. The same bytes and options give
    the same store.

    Parameters
    ----------
    source : Path
        The table, as UTF-8 text; ``-`` for standard input, of which a scratch copy is made.
    target_path : Path
        The store to make.
    options : IngestOptions, optional
        Defaults if not given.
    progress : Progress, optional
        Told of the bytes read and written.

    Raises
    ------
    InputError
        If the table cannot be ingested as asked.
    StoreError
        If the store exists, or cannot be written.
    BudgetError
        If the memory cap cannot hold the work.
    """
    load_libraries()
    options = options or IngestOptions()
    with words_for_the_disk(target_path), published_folder(target_path) as folder:
        scratch = folder / "scratch"
        scratch.mkdir()
        with contextlib.ExitStack() as stack:
            manifest = _Ingest(
                source=settle_source(source, scratch),
                folder=folder,
                scratch=scratch,
                options=options,
                progress=progress,
                stack=stack,
            ).run()
        shutil.rmtree(scratch)
    return manifest


@dataclass(frozen=True)
class _RowsRead:
    """What reading the rows left, the reader and its panel being gone."""

    spool: PanelSpool
    cells: NDArray[np.uint8]
    categories: tuple[bytes, NDArray[np.uint64]]
    values_dtype: str
    source: dict[str, Any]
    separator: str


class _Ingest:
    """One ingest, stage by stage."""

    def __init__(
        self,
        *,
        source: Source,
        folder: Path,
        scratch: Path,
        options: IngestOptions,
        progress: Progress | None,
        stack: contextlib.ExitStack,
    ) -> None:
        self._source, self._folder, self._scratch = source, folder, scratch
        self._options, self._progress = options, progress
        self._stack = stack
        self._header = stack.enter_context(TextSpool(scratch, "header"))
        self._columns = stack.enter_context(contextlib.closing(RowColumns(scratch)))
        self._lines = ScratchArray(scratch / "lines", np.int64)

    def run(self) -> Manifest:
        self._stamp = stamp_of(self._source.path)
        self._check_decoder()
        self._has_row_names = has_row_names(self._source, self._options.text, self._check_columns)
        stream = CsvStream(
            self._source,
            self._options.text,
            self._header.append,
            row_names=self._has_row_names,
        )
        if self._has_row_names and self._options.row_ids is None:
            self._options = replace(self._options, row_ids=ROW_NAMES)
        self._check_columns(len(self._header))
        roles = choose_roles(self._source, self._header, self._options)
        plan = self._plan(roles, stream)
        check_distinct(
            self._source,
            self._header,
            "column names",
            "Rename them in the header.",
        )
        forced = self._options.kinds.settle(self._source, self._header)
        check_kinds(self._header, roles, forced)
        rows = self._read(stream, roles, plan, forced)
        wording = wording_of(self._options.text, self._where)
        by_row = self._columns.settle(self._source, wording, self._options)
        return self._write(rows, plan, roles, by_row, forced)

    def _where(self, row: int) -> str:
        return f"{self._source}, line {self._lines[row : row + 1][0]}"

    def _check_columns(self, n_columns: int) -> None:
        check_columns(self._options.memory_nbytes, n_columns)

    def _form(self, values_dtype: str) -> StoreForm:
        kept = values_dtype if self._options.keep_values else None
        return StoreForm(self._options.code_dtype, kept)

    def _check_decoder(self) -> None:
        """Refuse a cap that cannot hold decompression, before anything is decompressed."""
        resident, cap = resident_nbytes(), self._options.memory_nbytes
        nbytes = _N_DECODERS * PieceReader(self._source).decoder_nbytes
        least = smallest_cap(resident, {"decompressing": nbytes})
        if nbytes > MB and cap < least:
            raise BudgetError(
                f"--memory-mb {megabytes(cap):g} cannot hold this ingest: the program itself takes "
                f"{megabytes(resident):g} MB, and decompressing {self._source} "
                f"{megabytes(nbytes):g} MB. It takes at least --memory-mb {cap_to_name(least)}, "
                "and a little more for the table; or decompress the file first."
            )

    def _plan(self, roles: Roles, stream: CsvStream) -> IngestPlan:
        form = self._options.text
        guess = estimate(self._source, form, roles.n_columns)
        self._check_disk(roles, guess)
        resident = resident_nbytes()
        resident += _N_DECODERS * stream.pieces.decoder_nbytes

        def plan(n_rows: int) -> IngestPlan:
            return plan_ingest(
                self._options.memory_nbytes,
                resident,
                roles.n_columns,
                Shape(n_rows, roles.n_features),
                self._form("float64"),
            )

        with contextlib.suppress(BudgetError):
            bound = rows_at_most(self._source, roles.n_columns)
            if bound is not None:
                return plan(bound)
        return plan(max(1, count_rows(self._source, form, roles.n_columns)))

    def _check_disk(self, roles: Roles, guess: Estimate) -> None:
        n_cells = guess.n_rows * roles.n_features
        values = min(8 * n_cells, guess.text_nbytes) if self._options.keep_values else 0
        codes = n_cells * self._form("float64").code_nbytes
        needed = 8 * n_cells + codes + values + 2 * self._header.nbytes
        free = shutil.disk_usage(self._folder).free
        if free < needed:
            raise StoreError(
                f"{self._folder.parent}: expected about {describe_nbytes(needed)} of free disk "
                f"({describe_nbytes(8 * n_cells)} of scratch, given back at the end, and "
                f"{describe_nbytes(needed - 8 * n_cells)} for the store), found "
                f"{describe_nbytes(free)}. Free some space, or put the store on another disk."
            )

    def _read(
        self, stream: CsvStream, roles: Roles, plan: IngestPlan, forced: NDArray[np.uint8]
    ) -> _RowsRead:
        reader = TableReader(
            roles.slots(),
            stream.dialect,
            place=stream.place,
            kinds=cells_of(forced),
            max_category_nbytes=plan.category_nbytes,
        )
        spool = self._stack.enter_context(
            PanelSpool(self._scratch / "panels", roles.n_features, plan.panel_rows)
        )
        reader.set_panel(spool.panel)

        def panel_full() -> None:
            spool.flush(reader.n_panel_rows)
            reader.set_panel(spool.panel)

        for _ in read_rows(stream, reader, self._row_taker(roles), panel_full):
            if self._progress:
                self._progress("reading", stream.pieces.n_used, stream.pieces.nbytes)
        raise_problem(
            self._source, reader.problem, roles.n_columns, self._header.describe, stream.dialect
        )
        if reader.n_rows == 0:
            raise InputError(f"{self._source}: expected rows after the header, found none.")
        spool.seal()
        check_unchanged(self._source.path, self._stamp, self._source)
        pieces = stream.pieces
        source = {
            "name": self._source.name,
            "format": f"csv{pieces.suffix}",
            "nbytes": pieces.n_read,
            "crc32": pieces.crc32,
        }
        dtype = "float32" if reader.fits_float32 else "float64"
        return _RowsRead(
            spool, reader.cells(), reader.categories(), dtype, source, stream.dialect.separator
        )

    def _row_taker(self, roles: Roles) -> Callable[[TableReader], None]:
        """Return what takes the texts of the rows read from a reader."""
        spools = [
            (slot, what, self._columns.open(what, self._header.get(column).decode()))
            for what, column, slot in roles.texts()
        ]

        def take(reader: TableReader) -> None:
            self._lines.append(reader.take_lines())
            for slot, what, spool in spools:
                texts = reader.take_texts(slot)
                if what == "row_ids":
                    check_utf8(texts, f"{self._source}: the row ids")
                spool.append(texts)

        return take

    def _inferred(self, rows: _RowsRead) -> dict[str, Any]:
        inferred = {"target": "last column"} if self._options.target is None else {}
        if self._has_row_names:
            inferred["row_ids"] = "first column, over which the header has no field"
        if self._options.text.separator is None:
            inferred["separator"] = name_of(rows.separator)
        return inferred

    def _kinds(
        self,
        rows: _RowsRead,
        roles: Roles,
        forced: NDArray[np.uint8],
        plan: IngestPlan,
        kept: KeptRows,
    ) -> FeatureKinds | None:
        """Return what is known of the kinds; None if nothing is, which takes no memory."""
        is_text = (rows.cells == TEXTS) | (rows.cells == CATEGORIES)
        if not self._options.kinds and not is_text.any():
            return None
        columns = roles.stored_columns()
        pool = TextCoder(plan.category_nbytes)
        pool.code(*rows.categories)

        def locate(feature: int, row: int) -> tuple[str, str]:
            column = int(roles.stored_columns()[feature])
            text = cell_text(self._source, self._options.text, roles.n_columns, column, row)
            return f"{self._where(row)}: column {self._header.describe(column)}", text

        return FeatureKinds(forced[columns], is_text[columns], pool, locate, kept)

    def _write(
        self,
        rows: _RowsRead,
        plan: IngestPlan,
        roles: Roles,
        by_row: RowFacts,
        forced: NDArray[np.uint8],
    ) -> Manifest:
        assert roles.target is not None
        name = self._header.get(roles.target).decode()
        form = self._form(rows.values_dtype)
        kinds = self._kinds(rows, roles, forced, plan, by_row.kept)
        held = 0 if kinds is None else kinds.held_nbytes()
        shape = Shape(by_row.kept.n_rows, rows.spool.n_features)
        batch, n_threads = plan.writing(shape, form, held, n_source_rows=rows.spool.n_rows)
        return write_store(
            self._folder,
            kept_columns(rows.spool, by_row.kept),
            by_row.target.values,
            by_row.facts(name, self._inferred(rows), rows.source),
            self._header.blocks(roles.special),
            row_ids=by_row.row_ids,
            row_arrays=by_row.arrays,
            kinds=kinds,
            form=form,
            batch_features=batch,
            n_threads=n_threads,
            progress=self._progress,
        )
