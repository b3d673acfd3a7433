"""The features of a table in stored order: read, rows left out, texts made categories."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import InputError
from srs_ooc.ingestion.formats import TO_UTF8, Table, TextCoder
from srs_ooc.ingestion.formats.in_memory import text_of
from srs_ooc.ingestion.ingest_memory import (
    CATEGORY_WORK_NBYTES,
    PICKED_ROWS,
    PIECE_NBYTES,
    piece_features,
)
from srs_ooc.ingestion.ingest_options import FREE, ByteProgress, StoredColumns
from srs_ooc.ingestion.rows import KeptRows, shown
from srs_ooc.ingestion.scratch import Panels, TextSpool, anonymous_array, joined
from srs_ooc.native import _native
from srs_ooc.store.manifest import code_columns, look_at, max_codes, put_rows, small_file
from srs_ooc.store.writing import SyncedFile

# Categorical features: from numbers of texts to codes in the order of the texts.
#
# A feature whose cells are texts reaches the store as numbers of texts, in a pool that all features
# share. Its categories are the distinct texts of its cells in the order of their UTF-8 bytes, and
# its codes, which are its values too, their places in it.

_PIECE_CELLS = 1 << 17
NAMED = 10
"""Columns that an error names besides the first."""


@dataclass(frozen=True)
class FeatureKinds:
    """What is known of the features before they are coded; arrays in stored order.

    Attributes
    ----------
    forced : uint8 (n_features,)
        Kinds that are forced; ``FREE`` where none is.
    is_text : bool (n_features,)
        Features whose values are numbers of texts.
    pool : TextCoder
        Those texts.
    locate : callable
        Given a stored feature and a row of the source, returns for messages where the cell stands
        (file, line, column), and its text, or None where the source holds no texts.
    kept : KeptRows
        Which rows of the source are rows of the store.
    """

    forced: NDArray[np.uint8]
    is_text: NDArray[np.bool_]
    pool: TextCoder
    locate: Callable[[int, int], tuple[str, str | None]]
    kept: KeptRows

    def cell(self, feature: int, row: int, value: float) -> tuple[str, str]:
        """Return where the cell of a stored feature and row stands, and its text."""
        where, text = self.locate(feature, self.kept.source_row(row))
        if text is None and self.is_text[feature]:
            text = self.pool.texts()[int(value)].decode("utf-8", "replace")
        return where, shown((text if text is not None else text_of(value) or "").encode())

    def held_nbytes(self) -> int:
        """Return the memory that the texts take to the end, and the work on them."""
        return self.pool.cost + CATEGORY_WORK_NBYTES if self.is_text.any() else 0


class CategoryCoder:
    """Turns numbers of texts into codes, and writes ``categories_bytes``, ``categories_offsets``.

    Parameters
    ----------
    folder : Path
        The store being written.
    kinds : FeatureKinds
        Which features are texts, and the texts.
    code_dtype : {'uint8', 'uint16'}
        Bounds the categories of a feature.
    """

    def __init__(self, folder: Path, kinds: FeatureKinds, code_dtype: str) -> None:
        self._kinds, self._code_dtype = kinds, code_dtype
        self.checksums: dict[str, int] = {}
        self.nbytes = 0
        self._names = ["categories_bytes", "categories_offsets"]
        self._files = [SyncedFile(small_file(folder, name)) for name in self._names]
        self._files[1].write(np.zeros(1, "<u8"))
        self._folder = folder
        self._ordered: list[bytes] = []  # the texts in order
        self._rank = np.zeros(0, np.int64)  # the place of each text in it
        self._not_utf8 = np.zeros(0, np.int64)  # numbers of texts that no store can hold

    def code(self, start: int, values: NDArray[np.float64]) -> None:
        """Replace numbers of texts by codes in the features (m, n_rows) from ``start`` on."""
        rows = np.flatnonzero(self._kinds.is_text[start : start + len(values)])
        step = max(1, _PIECE_CELLS // values.shape[1])
        for first in range(0, len(rows), step):
            self._code(start, values, rows[first : first + step])

    def _code(self, start: int, values: NDArray[np.float64], rows: NDArray[np.intp]) -> None:
        if len(self._ordered) != len(self._kinds.pool):
            self._order_texts()
        ranks = values[rows]
        self._check_utf8(start, ranks, rows)
        is_there = ~np.isnan(ranks)
        ranks[is_there] = self._rank[ranks[is_there].astype(np.int64)]
        codes = np.empty(ranks.shape, self._code_dtype)
        width = min(max_codes(self._code_dtype), ranks.shape[1])
        facts = code_columns(ranks, codes, ranges=width)
        self._check_repeated(start, rows, values, facts.n_codes)
        for i, row in enumerate(rows.tolist()):
            n_codes = int(facts.n_codes[i])
            self._check(start + row, n_codes, values[row], exact=bool(facts.exact[i]))
            self._write([self._ordered[int(rank)] for rank in facts.lows[i, :n_codes].tolist()])
        values[rows] = np.where(is_there, codes, np.nan)

    def _order_texts(self) -> None:
        texts = self._kinds.pool.texts()
        self._not_utf8 = np.flatnonzero([not _is_utf8(text) for text in texts])
        order = sorted(range(len(texts)), key=texts.__getitem__)
        self._ordered = [texts[i] for i in order]
        self._rank = np.empty(len(order), np.int64)
        self._rank[order] = np.arange(len(order))

    def _check_utf8(self, start: int, numbers: NDArray[np.float64], rows: NDArray[np.intp]) -> None:
        if not len(self._not_utf8):
            return
        for line, row in zip(numbers, rows.tolist(), strict=True):
            wrong = np.isin(line, self._not_utf8)
            if wrong.any():
                at = int(wrong.argmax())
                where, text = self._kinds.cell(start + row, at, float(line[at]))
                raise InputError(
                    f"{where}: expected a category as UTF-8 text, found {text}. {TO_UTF8}"
                )

    def _check(
        self, feature: int, n_codes: int, numbers: NDArray[np.float64], *, exact: bool
    ) -> None:
        there = np.flatnonzero(~np.isnan(numbers))
        if not exact:
            most = max_codes(self._code_dtype)
            firsts = np.sort(np.unique(numbers[there], return_index=True)[1])
            row = int(there[firsts[most]])
            where, text = self._kinds.cell(feature, row, float(numbers[row]))
            wider = " or take --code-dtype uint16," if self._code_dtype == "uint8" else ""
            raise InputError(
                f"{where}: expected at most {most} categories, found another ({text}). Leave the "
                f"column out with --ignore,{wider} or merge categories."
            )

    def _check_repeated(
        self,
        start: int,
        rows: NDArray[np.intp],
        values: NDArray[np.float64],
        n_codes: NDArray[np.integer[Any]],
    ) -> None:
        """Refuse features whose texts are all different, as many of them as are known here."""
        n_there = (~np.isnan(values[rows])).sum(axis=1)
        is_free = self._kinds.forced[start + rows] == FREE
        wrong = rows[(n_there > 1) & (n_codes == n_there) & is_free].tolist()
        if not wrong:
            return
        cells = []
        for row in wrong[: NAMED + 1]:
            at = int(np.flatnonzero(~np.isnan(values[row]))[0])
            cells.append(self._kinds.cell(start + row, at, float(values[row, at])))
        (where, text), *others = cells
        named = ", ".join(place.rpartition(": ")[2] for place, _ in others[:NAMED])
        more = f" The same holds of {named}{', ...' * (len(wrong) > NAMED + 1)}." if others else ""
        raise InputError(
            f"{where}: expected a number, or a category that occurs more than once in the column, "
            f"found {text}, and {int(n_there[rows == wrong[0]][0])} different texts in all.{more} "
            "If they identify the rows, name the column with --row-ids or leave it out with "
            "--ignore A,B; if they are categories all the same, say --kind NAME=categorical; if "
            "each row is a feature and each column a sample, say --orient features."
        )

    def _write(self, texts: list[bytes]) -> None:
        blob, ends = joined(texts)
        self._files[1].write((ends + np.uint64(self._files[0].nbytes)).astype("<u8"))
        self._files[0].write(blob)

    def abandon(self) -> None:
        """Close without syncing: the work has failed."""
        for file in self._files:
            file.abandon()

    def close(self) -> None:
        """End both arrays."""
        if self._files[0].nbytes == 0:
            self._files[0].write(b"\0")
        for name, file in zip(self._names, self._files, strict=True):
            file.close()
            path = small_file(self._folder, name).relative_to(self._folder).as_posix()
            self.checksums[path] = file.crc32
        self.nbytes = self._files[0].nbytes


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


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
