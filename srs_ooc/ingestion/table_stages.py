"""One ingest of a table of numbers, stage by stage: from arrays, frames, files to a store."""

import contextlib
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.budget import resident_nbytes
from srs_ooc.base.errors import InputError, StoreError
from srs_ooc.base.sizes import describe_nbytes
from srs_ooc.ingestion.categories import FeatureKinds
from srs_ooc.ingestion.forced_kinds import FREE
from srs_ooc.ingestion.formats import Table
from srs_ooc.ingestion.kept_columns import NumbersAsTexts, kept_columns
from srs_ooc.ingestion.labels import check_items, item_blocks, spool_items, texts_given
from srs_ooc.ingestion.memory import IngestPlan, check_columns, plan_ingest, table_nbytes
from srs_ooc.ingestion.parse import TextCoder
from srs_ooc.ingestion.publishing import IngestOptions
from srs_ooc.ingestion.roles import Roles, check_distinct, check_kinds, choose_roles
from srs_ooc.ingestion.row_columns import KeptRows, Wording, shown
from srs_ooc.ingestion.row_facts import RowColumns, same_length
from srs_ooc.ingestion.spool import open_panels
from srs_ooc.ingestion.table import ColumnSource, Progress, StoreForm
from srs_ooc.ingestion.table_columns import TableColumns
from srs_ooc.ingestion.texts import TextSpool, texts_of
from srs_ooc.ingestion.writer import write_store
from srs_ooc.store.kinds import CATEGORICAL
from srs_ooc.store.layout import Shape
from srs_ooc.store.manifest import Manifest

_N_TEXTS = 1 << 14


@dataclass(frozen=True)
class Apart:
    """What of a table is not in it.

    Attributes
    ----------
    names : sequence of str or path, or None
        Names of the columns.
    columns : dict
        By what they are (target, row_ids, weights, strata, groups), the names and the items of
        columns; items in a file by its path.
    inferred : dict
        For the manifest.
    """

    names: Any = None
    columns: Mapping[str, Sequence[tuple[str, Any]]] = field(default_factory=dict)
    inferred: dict[str, Any] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return self.names is not None or bool(self.columns)


class TableIngest:
    """One ingest of a table of numbers, stage by stage."""

    def __init__(
        self,
        table: Table,
        what: object,
        folder: Path,
        options: IngestOptions,
        progress: Progress | None,
        stack: contextlib.ExitStack,
    ) -> None:
        self._table, self._what, self._folder = table, what, folder
        self._options, self._progress, self._stack = options, progress, stack
        self._header = stack.enter_context(TextSpool(folder / "scratch", "header"))
        self._rows = stack.enter_context(contextlib.closing(RowColumns(folder / "scratch")))

    def run(
        self,
        apart: Apart,
        source: dict[str, Any],
        wording: Wording | None = None,
        locate: Callable[[int, int], str] | None = None,
    ) -> Manifest:
        """Do it.

        ``source`` is for the manifest, ``wording`` says how row columns are read, and ``locate``
        where the cell of a column and row stands.
        """
        self._locate = locate or self._in_row
        n_rows, n_columns = self._table.shape
        check_columns(self._options.memory_nbytes, n_columns)
        inferred = self._name_columns(apart.names, n_columns) | apart.inferred
        has_target = "target" not in apart.columns
        roles = choose_roles(self._what, self._header, self._options, has_target=has_target)
        check_distinct(self._what, self._header, "column names", "Rename them.")
        if has_target and self._options.target is None:
            inferred["target"] = "last column"
        forced = self._options.kinds.settle(self._what, self._header)
        check_kinds(self._header, roles, forced)
        name = self._spool_rows(apart, roles)
        wording = wording or Wording(lambda row: f"{self._what}, row {row + 1}")
        by_row = self._rows.settle(self._what, wording, self._options)
        plan = self._plan(roles, Shape(n_rows, roles.n_features))
        kinds = self._kinds(roles, forced, plan, by_row.kept)
        grows = 0 if self._table.pool else plan.category_nbytes - kinds.pool.cost
        held = kinds.held_nbytes() + grows if kinds.is_text.any() else 0
        shape = Shape(n_rows, roles.n_features)
        holds = self._table.by_rows and plan.has_room(shape, self._wide, held)
        columns, form = self._prepare(roles, 0 if holds else plan.panel_rows, kinds)
        if holds:
            held += table_nbytes(shape)
        kept = Shape(by_row.kept.n_rows, roles.n_features)
        batch, n_threads = plan.writing(kept, form, held, n_source_rows=n_rows)
        return write_store(
            self._folder,
            kept_columns(columns, by_row.kept),
            by_row.target.values,
            by_row.facts(name, inferred, source),
            self._header.blocks(roles.special),
            row_ids=by_row.row_ids,
            row_arrays=by_row.arrays,
            kinds=kinds,
            form=form,
            batch_features=batch,
            n_threads=n_threads,
            progress=self._progress,
        )

    def _name_columns(self, names: Any, n_columns: int) -> dict[str, Any]:
        given = self._table.names if names is None else names
        texts: Iterator[str]
        if given is None:
            texts = (f"f{i}" for i in range(n_columns))
        else:
            what = str(names) if isinstance(names, Path) else "names of columns"
            if names is not None:
                check_items(names, what)
            items = chain.from_iterable(item_blocks(given))
            texts = texts_given(what, items, n_columns)
        _spool(self._header, texts)
        return {"names": "f0, f1, ..."} if given is None else {}

    def _spool_rows(self, apart: Apart, roles: Roles) -> str:
        """Spool all that is known of the rows; return the name of the target."""
        names = {}
        for what, column, _ in roles.texts():
            name = names[what] = self._header.get(column).decode()
            where = partial(self._in_row, column)
            spool_items(self._rows.open(what, name), self._table.items(column), where)
        for what, columns in apart.columns.items():
            for name, given in columns:
                spool = self._rows.open(what, name)
                label = str(given) if isinstance(given, Path) else name
                check_items(given, label)
                spool_items(spool, item_blocks(given), partial(_item, label))
                same_length(label, len(spool), self._table.shape[0])
                names[what] = name
        return names["target"]

    def _in_row(self, column: int, row: int) -> str:
        return f"{self._what}, row {row + 1}: column {self._header.describe(column)}"

    def _kinds(
        self, roles: Roles, forced: NDArray[np.uint8], plan: IngestPlan, kept: KeptRows
    ) -> FeatureKinds:
        columns = roles.stored_columns()
        in_table = self._table.text_columns
        is_text = np.zeros(len(columns), np.bool_) if in_table is None else in_table[columns]
        pool = self._table.pool or TextCoder(plan.category_nbytes)
        self._refuse_texts(columns, is_text & ~np.isin(forced[columns], (FREE, CATEGORICAL)), pool)
        return FeatureKinds(
            forced[columns],
            is_text | (forced[columns] == CATEGORICAL),
            pool,
            lambda feature, row: (self._locate(int(columns[feature]), row), None),
            kept,
        )

    def _refuse_texts(
        self, columns: NDArray[np.intp], which: NDArray[np.bool_], pool: TextCoder
    ) -> None:
        """Refuse columns of texts that are forced to be numbers."""
        if not which.any():
            return
        column = int(columns[which].min())
        values = self._table.read(np.array([column]), pool)[0]
        row = int((~np.isnan(values)).argmax())
        found = values[row]
        text = "no text" if np.isnan(found) else shown(pool.texts()[int(found)])
        raise InputError(
            f"{self._locate(column, row)}: expected a number, as --kind says, found {text}. Mend "
            "the column, or leave --kind out."
        )

    def _plan(self, roles: Roles, shape: Shape) -> IngestPlan:
        self._check_disk(shape, self._wide)
        resident = resident_nbytes()
        resident += 3 * 8 * (roles.n_columns if self._table.by_rows else shape.n_rows)
        resident += self._table.work_nbytes
        cap = self._options.memory_nbytes
        return plan_ingest(cap, resident, roles.n_columns, shape, self._wide)

    @property
    def _wide(self) -> StoreForm:
        options = self._options
        return StoreForm(options.code_dtype, "float64" if options.keep_values else None)

    def _prepare(
        self, roles: Roles, panel_rows: int, kinds: FeatureKinds
    ) -> tuple[ColumnSource, StoreForm]:
        """Return the columns, checked, and how to keep them.

        A table of rows becomes columns by panels on disk, or all in memory if ``panel_rows`` is 0.
        """
        columns = TableColumns(self._table, self._what, self._header, roles.stored_columns(), kinds)
        source: ColumnSource = columns
        if self._table.by_rows:
            path = self._folder / "scratch" / "panels"
            panels = open_panels(path, columns.n_features, columns.n_rows, panel_rows)
            self._stack.push(panels)
            columns.spool(panels, self._progress)
            source = panels
        else:
            columns.check(self._progress)
        narrow = "float32" if columns.fits_float32 else "float64"
        form = replace(self._wide, values_dtype=narrow if self._options.keep_values else None)
        in_table = self._table.text_columns
        are_numbers = (
            kinds.is_text.copy()
            if in_table is None
            else kinds.is_text & ~in_table[roles.stored_columns()]
        )
        if are_numbers.any():
            source = NumbersAsTexts(source, are_numbers, kinds)
        return source, form

    def _check_disk(self, shape: Shape, form: StoreForm) -> None:
        per_cell = form.code_nbytes + 8 * (self._options.keep_values + self._table.by_rows)
        needed = per_cell * shape.n_rows * shape.n_features
        free = shutil.disk_usage(self._folder).free
        if free < needed:
            raise StoreError(
                f"{self._folder.parent}: expected up to {describe_nbytes(needed)} of free disk, "
                f"found {describe_nbytes(free)}. Free some space, or put the store on another disk."
            )


def _item(what: str, item: int) -> str:
    return f"{what}, item {item + 1}"


def _spool(spool: TextSpool, texts: Iterator[str]) -> None:
    while block := list(islice(texts, _N_TEXTS)):
        spool.append(texts_of(block))
