"""The features of a table in stored order: read, rows left out, numbers taken for texts."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import InputError
from srs_ooc.ingestion.categories import FeatureKinds
from srs_ooc.ingestion.contents import ByteProgress, StoredColumns
from srs_ooc.ingestion.formats import Table
from srs_ooc.ingestion.labels import text_of
from srs_ooc.ingestion.memory import PICKED_ROWS, PIECE_NBYTES, piece_features
from srs_ooc.ingestion.row_columns import KeptRows
from srs_ooc.ingestion.scratch import TextSpool, joined
from srs_ooc.ingestion.spool import Panels, anonymous_array
from srs_ooc.native import _native
from srs_ooc.store.manifest import look_at, put_rows


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
            infinite, narrow = put_rows(rows, columns, spool.panel, filled)
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
        infinite, narrow = look_at(values)
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
