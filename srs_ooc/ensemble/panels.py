"""Panels: some rows at a time of the columns that trees use, from a CSV file or a store."""

from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import InputError, StoreError
from srs_ooc.ingestion.csv import (
    CATEGORIES,
    IGNORED,
    ONLY_NUMBERS,
    ROW_ID,
    TARGET,
    CsvStream,
    TableReader,
    TextForm,
    check_utf8,
    fed,
    raise_fault,
)
from srs_ooc.ingestion.formats import Texts, split_texts
from srs_ooc.ingestion.sources import SourceFile
from srs_ooc.runs.tree_splits import SplitTable
from srs_ooc.store.store import Store
from srs_ooc.trees.block import Block, block_nbytes

_SHOWN = 5
CATEGORY_NBYTES = 8 << 20
"""Memory for the distinct texts of categorical columns."""
TEXT_NBYTES = 300
"""Allowance for a row's id and label, and for a column's name, as Python objects."""


@dataclass(frozen=True)
class Panel:
    """Some rows of a table.

    Attributes
    ----------
    values : float64 (n_used, at least n_rows)
        The columns that trees use, in the order of ``SplitTable.features``: NaN where missing; of
        categories their codes in the training store, -1 for one not there.
    ids : list of str
        Row ids.
    labels : list of str or None
        The target, where the table has it.
    """

    values: NDArray[np.float64]
    ids: list[str]
    labels: list[str] | None


class Panels(Protocol):
    """A table to predict on, read in panels.

    Attributes
    ----------
    fixed_nbytes, row_nbytes : int
        Bytes it needs whatever the size of its panels, and for each row of one.
    most_rows : int or None
        Rows there are, where that is known.
    """

    fixed_nbytes: int
    row_nbytes: int
    most_rows: int | None

    def panels(self, n_rows: int) -> Iterator[Panel]:
        """Yield all rows, ``n_rows`` at a time, each panel valid until the next."""
        ...


def shown(names: list[str]) -> str:
    """Return the first of many names, as messages show them."""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(repr(name) for name in names[:_SHOWN]) + more


def translation(texts: list[str], known: list[str]) -> NDArray[np.float64]:
    """Return the code among ``known`` of each text, -1 where it is none; float64 (n,)."""
    codes = {text: code for code, text in enumerate(known)}
    return np.array([codes.get(text, -1) for text in texts], dtype=np.float64)


def translate(values: NDArray[np.float64], codes: NDArray[np.float64]) -> None:
    """Turn numbers of texts into the codes of these texts, in place; NaN stays."""
    there = ~np.isnan(values)
    values[there] = codes[values[there].astype(np.int64)]


# The rows of a CSV file, in panels of the columns that trees use.


def most_csv_nbytes(path: Path, *, has_categories: bool) -> int:
    """Return a bound on what the columns of a file need, before they are looked at."""
    return (
        16 * CsvStream(SourceFile.file(path), TextForm()).n_fields
        + 2 * CATEGORY_NBYTES * has_categories
    )


class CsvPanels:
    """A CSV file, plain or compressed, whose columns are found by name.

    Parameters
    ----------
    path : Path
        The file.
    splits : SplitTable
        Says which columns are needed.
    row_ids : str or None
        Column of row ids, which must be there; None for that of the training table if it is there,
        and numbers from 1 if not.

    Raises
    ------
    InputError
        If the file cannot be read, or a column is missing or there twice.
    """

    most_rows: int | None = None

    def __init__(self, path: Path, splits: SplitTable, row_ids: str | None = None) -> None:
        self._path, self._splits = path, splits
        self._wanted = {name.encode(): i for i, name in enumerate(splits.names)}
        self._target = str(splits.facts["target_name"]).encode()
        ids = splits.facts["row_id_name"] if row_ids is None else row_ids
        self._ids = None if ids is None else ids.encode()
        self._slots = array("i")
        self._twice: list[str] = []
        self._found: set[int] = set()
        self._source = SourceFile.file(path)
        self._stream = CsvStream(self._source, TextForm(), self._take_names)
        self._check(row_ids)
        categorical = any(known is not None for known in splits.facts["categories"])
        texts = 2 * CATEGORY_NBYTES if categorical else 0
        self.fixed_nbytes = 16 * len(self._slots) + TEXT_NBYTES * len(self._wanted) + texts
        self.row_nbytes = 9 * len(self._wanted) + 2 * TEXT_NBYTES

    def _take_names(self, names: Texts) -> None:
        for name in names:
            slot = self._wanted.get(name, IGNORED)
            if name == self._ids:
                slot = ROW_ID
            elif name == self._target:
                slot = TARGET
            if slot != IGNORED and slot in self._found:
                self._twice.append(name.decode())
            self._found.add(slot)
            self._slots.append(slot)

    def _check(self, row_ids: str | None) -> None:
        names = self._splits.names
        absent = [name for i, name in enumerate(names) if i not in self._found]
        if absent:
            raise InputError(
                f"{self._path}: expected the {len(names)} columns that the trees use, found "
                f"{len(absent)} of them missing: {shown(absent)}. Columns are found by name; "
                "mend the header, or add them."
            )
        if row_ids is not None and ROW_ID not in self._found:
            raise InputError(
                f"{self._path}: expected a column {row_ids!r} of row ids, found none. "
                "Check --row-ids."
            )
        if self._twice:
            raise InputError(
                f"{self._path}: expected each column once, found twice: {shown(self._twice)}. "
                "Rename or remove one."
            )

    def panels(self, n_rows: int) -> Iterator[Panel]:
        """Yield all rows, ``n_rows`` at a time, each panel valid until the next.

        Raises
        ------
        InputError
            At a row that is ragged, or a cell that is no number or missing.
        """
        reader = TableReader(
            np.array(self._slots, np.int32),
            self._stream,
            kinds=self._kinds(),
            max_category_nbytes=CATEGORY_NBYTES,
        )
        values = np.empty((len(self._wanted), n_rows))
        reader.set_panel(values)
        ids: list[str] = []
        labels: list[str] = []
        done = 0

        for _ in fed(self._stream, reader):
            texts = reader.take_texts(ROW_ID)
            check_utf8(texts, f"{self._path}: the row ids")
            ids.extend(text.decode() for text in texts)
            for label in reader.take_texts(TARGET):
                labels.append(label.decode("utf-8", "replace"))
            reader.take_lines()
            self._raise(reader)
            if reader.panel_is_full:
                yield self._panel(reader, values, ids, labels, done)
                done += reader.n_panel_rows
                ids, labels = [], []
                reader.set_panel(values)
        if reader.n_rows == 0:
            raise InputError(f"{self._path}: expected rows after the header, found none.")
        if reader.n_panel_rows:
            yield self._panel(reader, values, ids, labels, done)

    def _kinds(self) -> NDArray[np.uint8]:
        """Return how the cells of each column are read: as texts where training had texts."""
        categories = self._splits.facts["categories"]
        return np.array(
            [
                CATEGORIES if slot >= 0 and categories[slot] is not None else ONLY_NUMBERS
                for slot in self._slots
            ],
            dtype=np.uint8,
        )

    def _panel(
        self,
        reader: TableReader,
        values: NDArray[np.float64],
        ids: list[str],
        labels: list[str],
        done: int,
    ) -> Panel:
        n_rows = reader.n_panel_rows
        texts = labels if TARGET in self._found else None
        if ROW_ID not in self._found:
            ids = [str(done + i + 1) for i in range(n_rows)]
        blob, ends = reader.categories()
        pool = [text.decode("utf-8", "replace") for text in split_texts(blob, ends)]
        for column, known in zip(values, self._splits.facts["categories"], strict=True):
            if known is not None:
                translate(column[:n_rows], translation(pool, known))
        return Panel(values, ids, texts)

    def _raise(self, reader: TableReader) -> None:
        names = self._splits.names

        def name_of(column: int) -> str:
            slot = self._slots[column]
            return repr(names[slot] if slot >= 0 else self._target.decode())

        if reader.problem is not None and reader.problem[0] == "not_a_number":
            _, line, column, text = reader.problem
            raise InputError(
                f"{self._path}, line {line}: column {name_of(column)}, which the trees use: "
                f"expected a number, found {text.decode('utf-8', 'replace')!r}. Mend the cell."
            )
        raise_fault(self._stream, reader, name_of)


# The rows of a store, in panels of the columns that trees use.

_OPEN_NBYTES = 8 << 20  # allowance for chunk files that are open, and what is decoded of one


def most_store_nbytes(store: Store, code_nbytes: int) -> int:
    """Return a bound on what a store needs beside rows, whichever of its columns trees use."""
    block = 2 * block_nbytes(1, store.n_rows, code_nbytes)
    return 24 * store.n_features + _OPEN_NBYTES + block


class StorePanels:
    """Another store than the training store: values, of columns found by name.

    Raises
    ------
    InputError, StoreError
        If a column is missing; if the store keeps no values or is damaged.
    """

    def __init__(self, store: Store, splits: SplitTable) -> None:
        self._store, self._splits = store, splits
        found = store.names.find(list(splits.names))
        absent = [n for n, source in zip(splits.names, found.tolist(), strict=True) if source < 0]
        if absent:
            raise InputError(
                f"{store.place}: expected the {len(splits.names)} features that the trees use, "
                f"found {len(absent)} of them missing: {shown(absent)}. Features are found by "
                "name; ingest a table that has them."
            )
        sources = np.asarray(store.array("positions"), np.int64)
        self._stored = np.argsort(sources)[found]
        self._codes = self._translations()
        n_used = len(self._stored)
        self.most_rows: int | None = store.n_rows
        self.fixed_nbytes = 24 * store.n_features + TEXT_NBYTES * n_used + _OPEN_NBYTES
        self.row_nbytes = 9 * n_used + 2 * TEXT_NBYTES

    def _translations(self) -> list[NDArray[np.float64] | None]:
        """Return for each column the training code of each of its categories."""
        own, codes = self._store.categories(), []
        trained = self._splits.facts["categories"]
        for i, (stored, known) in enumerate(zip(self._stored.tolist(), trained, strict=True)):
            texts = own.of(stored)
            if (texts is None) != (known is None):
                kinds = ("numbers", "categories") if texts is None else ("categories", "numbers")
                raise InputError(
                    f"{self._store.place}: expected {kinds[1]} in feature "
                    f"{self._splits.names[i]!r}, as in training, found {kinds[0]}. "
                    "Ingest the table with --kind."
                )
            codes.append(None if texts is None or known is None else translation(texts, known))
        return codes

    def panels(self, n_rows: int) -> Iterator[Panel]:
        """Yield all rows, ``n_rows`` at a time, each panel valid until the next."""
        order = np.argsort(self._stored)
        is_same = self._store.manifest.target_name == self._splits.facts["target_name"]
        values = np.empty((len(order), n_rows))
        for first, ids, labels in row_facts(self._store, n_rows):
            stop = first + len(ids)
            for i, row, part in self._store.column_parts(self._stored[order]):
                low, high = max(first, row), min(stop, row + len(part))
                if low < high:
                    values[order[i], low - first : high - first] = part[low - row : high - row]
            for column, codes in zip(values, self._codes, strict=True):
                if codes is not None:
                    translate(column[: len(ids)], codes)
            yield Panel(values, ids, labels if is_same else None)
        self._store.check_unchanged()


class TrainingPanels:
    """The very store a run was made on: its codes, to be compared with the codes of splits."""

    def __init__(self, store: Store, splits: SplitTable) -> None:
        self._store, self._manifest = store, store.manifest
        self._features = splits.features.astype(np.uint32)
        n_used, code_nbytes = len(self._features), store.manifest.code_nbytes
        self.most_rows: int | None = store.n_rows
        column = 2 * block_nbytes(1, store.n_rows, code_nbytes)
        self.fixed_nbytes = TEXT_NBYTES * n_used + column
        codes = 2 * block_nbytes(n_used + 1, 1, code_nbytes)
        self.row_nbytes = codes + 9 * n_used + 2 * TEXT_NBYTES

    def panels(self, n_rows: int) -> Iterator[Panel]:
        """Yield all rows, ``n_rows`` at a time, each panel valid until the next."""
        n_used, code_nbytes = len(self._features), self._manifest.code_nbytes
        values = np.empty((n_used, n_rows))
        with self._store.columns(mapped=False) as columns:
            for first, ids, labels in row_facts(self._store, n_rows):
                rows = np.arange(first, first + len(ids), dtype=np.int32)
                block = Block(max(1, n_used), len(rows), code_nbytes, tiled=False)
                if n_used:
                    columns.gather(self._features, block, rows)
                values[:, : len(rows)] = block.as_columns(n_used)
                values[values == self._manifest.missing_code] = np.nan
                yield Panel(values, ids, labels)
        self._store.check_unchanged()


def row_facts(store: Store, n_rows: int) -> Iterator[tuple[int, list[str], list[str]]]:
    """Yield (first row, row ids, labels) of a store, ``n_rows`` at a time."""
    ids, target, manifest = iter(store.row_ids), store.target(), store.manifest
    for first in range(0, manifest.n_rows, n_rows):
        some = list(islice(ids, n_rows))
        codes = target[first : first + n_rows].tolist()
        if len(some) != len(codes):
            raise StoreError(f"{store.place}: expected {manifest.n_rows} row ids, found fewer.")
        if manifest.task == "regression":
            yield first, some, [repr(value) for value in codes]
        else:
            yield first, some, [manifest.classes[code] for code in codes]
