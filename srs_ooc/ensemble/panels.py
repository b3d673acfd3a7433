"""Panels: some rows at a time of the columns that trees use, of a CSV file, a store, or a table.

Each kind says ``fixed_nbytes`` and ``row_nbytes``, the bytes it needs whatever the size of its
panels and for each row of one, and ``most_rows``, where it is known how many there are; a file or a
store also ``reading_nbytes``, those of requests under way.
"""

from array import array
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from srs_ooc.base.arrays import Floats, Integers
from srs_ooc.base.errors import InputError, StoreError, unfit
from srs_ooc.ingestion import csv
from srs_ooc.ingestion.formats import TextCoder, Texts, split_texts
from srs_ooc.ingestion.formats.genotypes import RAW, STATUS
from srs_ooc.ingestion.sources import SourceFile
from srs_ooc.runs.run_trees import SplitTable
from srs_ooc.store.store import Store
from srs_ooc.trees.block import block_nbytes

CATEGORY_NBYTES = 8 << 20
"""Memory for the distinct texts of categorical columns."""
TEXT_NBYTES = 300
"""Allowance for a row's id and label, and for a column's name, as Python objects."""
OPEN_NBYTES = 8 << 20
"""Allowance for chunk files that are open, and what is decoded of one."""
_SHOWN = 5


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

    values: Floats
    ids: list[str]
    labels: list[str] | None


def shown(names: list[str]) -> str:
    """Return the first of many names, as messages show them."""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(repr(name) for name in names[:_SHOWN]) + more


def translation(texts: list[str], known: list[str]) -> Floats:
    """Return the code among ``known`` of each text, -1 where it is none; float64 (n,)."""
    codes = {text: code for code, text in enumerate(known)}
    return np.array([codes.get(text, -1) for text in texts], dtype=np.float64)


def translate(values: Floats, codes: Floats) -> None:
    """Turn numbers of texts into the codes of these texts, in place; NaN stays."""
    there = ~np.isnan(values)
    values[there] = codes[values[there].astype(np.int64)]


# The rows of a CSV file, in panels of the columns that trees use.


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
    as_codes = False
    reading_nbytes = 0

    def __init__(self, path: Path, splits: SplitTable, row_ids: str | None = None) -> None:
        self._path, self._splits = path, splits
        self._wanted = {name.encode(): i for i, name in enumerate(splits.names)}
        self._target = str(splits.facts["target_name"]).encode()
        ids = splits.facts["row_id_name"] if row_ids is None else row_ids
        self._ids = None if ids is None else ids.encode()
        self._slots = array("i")
        self._twice: list[str] = []
        self._is_raw = True
        self._found: set[int] = set()
        self._source = SourceFile(path)
        csv.has_row_names(self._source, csv.TextForm(), self._take_names)
        self._stream = csv.CsvStream(self._source, csv.TextForm(), self._take_names)
        self.origin = self._stream.origin  # once all rows are read, as of a store
        names = splits.names
        if absent := [name for i, name in enumerate(names) if i not in self._found]:
            expected = f"the {len(names)} columns that the trees use"
            found = f"{len(absent)} of them missing: {shown(absent)}"
            remedy = "Columns are found by name; mend the header, or add them."
            raise unfit(path, expected, found, remedy)
        if row_ids is not None and csv.ROW_ID not in self._found:
            raise unfit(path, f"a column {row_ids!r} of row ids", "none", "Check --row-ids.")
        if self._twice:
            found = f"twice: {shown(self._twice)}"
            raise unfit(path, "each column once", found, "Rename or remove one.")
        categorical = any(known is not None for known in splits.facts["categories"])
        texts = 2 * CATEGORY_NBYTES if categorical else 0
        self.fixed_nbytes = 16 * len(self._slots) + TEXT_NBYTES * len(self._wanted) + texts
        self.row_nbytes = 9 * len(self._wanted) + 2 * TEXT_NBYTES

    def _take_names(self, names: Texts) -> None:
        for name in names:
            self._is_raw &= len(self._slots) >= len(RAW) or name.decode() == RAW[len(self._slots)]
            slot = self._wanted.get(name, csv.IGNORED)
            if name == self._ids:
                slot = csv.ROW_ID
            elif name == self._target:
                slot = csv.TARGET
            if slot != csv.IGNORED and slot in self._found:
                self._twice.append(name.decode())
            self._found.add(slot)
            self._slots.append(slot)

    def panels(self, n_rows: int) -> Iterator[Panel]:
        """Yield all rows, ``n_rows`` at a time, each panel valid until the next.

        Raises
        ------
        InputError
            At a row that is ragged, or a cell that is no number or missing.
        """
        # Cells are read as texts where training had texts.
        categories = self._splits.facts["categories"]
        is_text = (slot >= 0 and categories[slot] is not None for slot in self._slots)
        kinds = [csv.CATEGORIES if is_in else csv.ONLY_NUMBERS for is_in in is_text]
        reader = csv.TableReader(
            np.array(self._slots, np.int32),
            self._stream,
            kinds=np.array(kinds, np.uint8),
            max_category_nbytes=CATEGORY_NBYTES,
        )
        values = np.empty((len(self._wanted), n_rows))
        reader.set_panel(values)
        ids: list[str] = []
        labels: list[str] = []
        done = 0

        def panel() -> Panel:
            n_rows = reader.native.panel_row
            blob, ends = reader.categories()
            pool = [text.decode("utf-8", "replace") for text in split_texts(blob, ends)]
            for column, known in zip(values, categories, strict=True):
                if known is not None:
                    translate(column[:n_rows], translation(pool, known))
            named = ids if csv.ROW_ID in self._found else [str(done + i + 1) for i in range(n_rows)]
            return Panel(values, named, labels if csv.TARGET in self._found else None)

        for _ in csv.fed(reader):
            named = reader.take_texts(csv.ROW_ID)
            csv.check_utf8(named, f"{self._path}: the row ids")
            ids.extend(text.decode() for text in named)
            known = {"-9": ""} if self._is_raw and self._target == b"PHENOTYPE" else {}
            known |= STATUS if known and "case" in self._splits.facts["classes"] else {}
            texts = (text.decode("utf-8", "replace") for text in reader.take_texts(csv.TARGET))
            labels.extend(known.get(text, text) for text in texts)
            reader.take_lines()
            self._raise(reader)
            if reader.panel_is_full:
                yield panel()
                done += reader.native.panel_row
                ids, labels = [], []
                reader.set_panel(values)
        if reader.native.n_rows == 0:
            raise InputError(f"{self._path}: expected rows after the header, found none.")
        if reader.native.panel_row:
            yield panel()

    def _raise(self, reader: csv.TableReader) -> None:
        names = self._splits.names

        def name_of(column: int) -> str:
            slot = self._slots[column]
            return repr(names[slot] if slot >= 0 else self._target.decode())

        if reader.native.problem is not None and reader.native.problem[0] == "not_a_number":
            _, line, column, text = reader.native.problem
            where = f"{self._path}, line {line}: column {name_of(column)}, which the trees use"
            raise unfit(where, "a number", repr(text.decode("utf-8", "replace")), "Mend the cell.")
        csv.raise_fault(reader, name_of)


# The rows of a store, in panels of the columns that trees use.


class StorePanels:
    """A store: values, of columns found by name; of the run's own its codes.

    Codes are compared with the codes of splits.

    Parameters
    ----------
    store : Store
        The store.
    splits : SplitTable
        Says which columns are needed.
    as_codes : bool
        Whether the run was made on it.

    Raises
    ------
    InputError, StoreError
        If a column is missing; if the store keeps no values or is damaged.
    """

    def __init__(self, store: Store, splits: SplitTable, *, as_codes: bool) -> None:
        self._store, self._splits, self.as_codes = store, splits, as_codes
        self.origin, self.reading_nbytes = (lambda: store.manifest.source), store.reading_nbytes
        n_used, code_nbytes = len(splits.features), store.manifest.code_nbytes
        self.most_rows: int | None = store.n_rows
        id_nbytes = max(TEXT_NBYTES, store.manifest.lengths["row_ids_bytes"] // store.n_rows)
        self.row_nbytes, texts = 9 * n_used + 2 * id_nbytes, TEXT_NBYTES * n_used
        if as_codes:
            self._stored = np.asarray(splits.features, np.int64)
            self.fixed_nbytes = texts + 2 * block_nbytes(1, store.n_rows, code_nbytes)
            self.row_nbytes += 2 * block_nbytes(n_used + 1, 1, code_nbytes)
            return
        self.fixed_nbytes = texts + 24 * store.n_features + OPEN_NBYTES
        found = store.names.find(list(splits.names))
        absent = [n for n, source in zip(splits.names, found.tolist(), strict=True) if source < 0]
        if absent:
            expected = f"the {len(splits.names)} features that the trees use"
            gone = f"{len(absent)} of them missing: {shown(absent)}"
            remedy = "Features are found by name; ingest a table that has them."
            raise unfit(store.place, expected, gone, remedy)
        self._stored = np.argsort(np.asarray(store.array("positions"), np.int64))[found]
        # For each column the training code of each of its categories.
        self._codes: list[Floats | None] = []
        own, trained = store.categories(), splits.facts["categories"]
        for name, stored, known in zip(splits.names, self._stored.tolist(), trained, strict=True):
            there = own.of(stored)
            if (there is None) != (known is None):
                kinds = ("numbers", "categories") if there is None else ("categories", "numbers")
                expected = f"{kinds[1]} in feature {name!r}, as in training"
                raise unfit(store.place, expected, kinds[0], "Ingest the table with --kind.")
            self._codes.append(None if there is None else translation(there, known))

    def panels(self, n_rows: int) -> Iterator[Panel]:
        """Yield all rows, ``n_rows`` at a time, each panel valid until the next."""
        is_same = self._store.manifest.target_name == self._splits.facts["target_name"]
        values = np.empty((len(self._stored), n_rows))
        with self._store.columns(mapped=False) if self.as_codes else nullcontext() as columns:
            for first, ids, labels in row_facts(self._store, n_rows):
                some = values[:, : len(ids)]
                if columns is None:
                    self._read_values(first, some)
                else:
                    rows = np.arange(first, first + len(ids), dtype=np.int32)
                    some[:] = columns.codes(self._stored, rows)
                    some[some == columns.manifest.missing_code] = np.nan
                yield Panel(values, ids, labels if is_same else None)
        self._store.check_unchanged()

    def _read_values(self, first: int, values: Floats) -> None:
        order, stop = np.argsort(self._stored), first + values.shape[1]
        for i, row, part in self._store.column_parts(self._stored[order]):
            low, high = max(first, row), min(stop, row + len(part))
            if low < high:
                values[order[i], low - first : high - first] = part[low - row : high - row]
        for column, codes in zip(values, self._codes, strict=True):
            if codes is not None:
                translate(column, codes)


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


# The rows of a table in memory.


class MemoryPanels:
    """An array, frame or sparse matrix whose columns are known by their positions.

    Parameters
    ----------
    thing : ndarray, DataFrame, pyarrow.Table or sparse matrix, (n_rows, n_columns)
        What :func:`srs_ooc.ingest` takes.
    splits : SplitTable
        Says which columns are needed, and what categories were in training.
    positions : int (n_used,)
        Column of the table for each feature of ``splits``.
    """

    as_codes = False

    def __init__(self, thing: Any, splits: SplitTable, positions: Integers) -> None:
        is_sparse = type(thing).__module__.startswith("scipy.sparse")
        self._thing = thing.tocsr() if is_sparse else thing
        self._splits, self._positions = splits, np.asarray(positions, np.intp)
        self.most_rows: int | None = int(thing.shape[0])
        self._categories: list[list[str] | None] = splits.facts["categories"]
        is_any = any(known is not None for known in self._categories)
        self.fixed_nbytes = 2 * CATEGORY_NBYTES * is_any + TEXT_NBYTES * len(self._positions)
        self.row_nbytes = 3 * 8 * len(self._positions) + 2 * TEXT_NBYTES

    def panels(self, n_rows: int) -> Iterator[Panel]:
        """Yield all rows, ``n_rows`` at a time, without labels.

        Raises
        ------
        InputError
            If a column does not hold what it held in training.
        """
        from srs_ooc.ingestion.formats.in_memory import frame_library

        most, library = int(self._thing.shape[0]), frame_library(self._thing)
        for start in range(0, most, n_rows):
            stop = min(start + n_rows, most)
            if library in (None, "pandas"):
                rows = (self._thing.iloc if library else self._thing)[start:stop]
            else:
                rows = self._thing.slice(start, stop - start)
            yield Panel(self._values(rows), [str(i + 1) for i in range(start, stop)], None)

    def _values(self, rows: Any) -> Floats:
        from srs_ooc.ingestion.formats.in_memory import open_object

        if not (names := self._splits.names):
            return np.empty((0, rows.shape[0]))
        as_texts = {
            name for name, known in zip(names, self._categories, strict=True) if known is not None
        }
        opened, pool = open_object(rows, as_texts), TextCoder(CATEGORY_NBYTES)
        is_text = opened.text_columns
        for name, position, known in zip(names, self._positions, self._categories, strict=True):
            if (is_text is not None and bool(is_text[position])) != (known is not None):
                kinds = ("numbers", "categories") if known is None else ("categories", "numbers")
                expected = f"{kinds[0]}, as in training"
                raise unfit(f"column {name!r}", expected, kinds[1], "Convert the column.")
        values = np.ascontiguousarray(opened.read(self._positions, pool), np.float64)
        texts = [text.decode("utf-8", "replace") for text in pool.texts()]
        for column, known in zip(values, self._categories, strict=True):
            if known is not None:
                translate(column, translation(texts, known))
        return values


Panels = CsvPanels | StorePanels | MemoryPanels
