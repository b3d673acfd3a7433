"""The rows of a CSV file, in panels of the columns that trees use."""

from array import array
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import InputError
from srs_ooc.ensemble.panels import (
    CATEGORY_NBYTES,
    TEXT_NBYTES,
    Panel,
    shown,
    translate,
    translation,
)
from srs_ooc.ingestion.csv import (
    CATEGORIES,
    IGNORED,
    ONLY_NUMBERS,
    ROW_ID,
    TARGET,
    CsvStream,
    Fault,
    TableReader,
    TextForm,
    check_utf8,
    fed,
    raise_fault,
)
from srs_ooc.ingestion.formats import Texts, split_texts
from srs_ooc.ingestion.sources import SourceFile
from srs_ooc.runs.tree_splits import SplitTable


def most_csv_nbytes(path: Path, *, has_categories: bool) -> int:
    """Return a bound on what the columns of a file need, before they are looked at."""
    n_columns = 0

    def count(names: Texts) -> None:
        nonlocal n_columns
        n_columns += len(names.ends)

    CsvStream(SourceFile.file(path), TextForm(), count)
    return 16 * n_columns + 2 * CATEGORY_NBYTES * has_categories


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

    most_rows = None

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

    @property
    def fixed_nbytes(self) -> int:
        """Bytes it needs whatever the size of its panels."""
        categorical = any(known is not None for known in self._splits.facts["categories"])
        texts = 2 * CATEGORY_NBYTES if categorical else 0
        return 16 * len(self._slots) + TEXT_NBYTES * len(self._wanted) + texts

    @property
    def row_nbytes(self) -> int:
        """Bytes it needs for each row of a panel."""
        return 9 * len(self._wanted) + 2 * TEXT_NBYTES

    def panels(self, n_rows: int) -> Iterator[Panel]:
        """Yield all rows, ``n_rows`` at a time, each panel valid until the next.

        Raises
        ------
        InputError
            At a row that is ragged, or a cell that is no number or missing.
        """
        reader = TableReader(
            np.array(self._slots, np.int32),
            self._stream.dialect,
            place=self._stream.place,
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
            self._raise(reader.problem)
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

    def _raise(self, problem: Fault | None) -> None:
        if problem is None:
            return
        names = self._splits.names

        def name_of(column: int) -> str:
            slot = self._slots[column]
            return repr(names[slot] if slot >= 0 else self._target.decode())

        if problem.fault == "not_a_number":
            raise InputError(
                f"{self._path}, line {problem.line}: column {name_of(problem.column)}, which the "
                f"trees use: expected a number, found {problem.text!r}. Mend the cell."
            )
        raise_fault(self._source, problem, len(self._slots), name_of, self._stream.dialect)
