"""A table of any other format (arrays, frames, files), read by columns or by rows."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.budget import resident_nbytes
from srs_ooc.base.errors import InputError
from srs_ooc.ingestion.categories import FeatureKinds
from srs_ooc.ingestion.columns import NumbersAsTexts, TableColumns
from srs_ooc.ingestion.contents import StoredColumns
from srs_ooc.ingestion.disk import check_disk, disk_of
from srs_ooc.ingestion.forced_kinds import FREE
from srs_ooc.ingestion.formats import Table
from srs_ooc.ingestion.formats.source import SourceFile
from srs_ooc.ingestion.labels import check_items, item_blocks, spool_items, texts_given
from srs_ooc.ingestion.memory import IngestMemory, share_memory, table_nbytes
from srs_ooc.ingestion.needs import Needs
from srs_ooc.ingestion.options import IngestOptions, SideColumns
from srs_ooc.ingestion.reading import Features, Workplace
from srs_ooc.ingestion.roles import Roles
from srs_ooc.ingestion.row_columns import KeptRows, Wording, shown
from srs_ooc.ingestion.row_facts import RowColumns, same_length
from srs_ooc.ingestion.scratch import TextSpool, texts_of
from srs_ooc.ingestion.spool import open_panels
from srs_ooc.ingestion.table_needs import beside_nbytes
from srs_ooc.ingestion.texts import TextCoder
from srs_ooc.store.manifest import CATEGORICAL, Shape

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
                same_length(label, len(spool), self._table.shape[0])

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
        return Features(source, columns.fits_float32, kinds, held)

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
