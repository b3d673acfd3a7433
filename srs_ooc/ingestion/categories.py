"""Categorical features: from numbers of texts to codes in the order of the texts.

A feature whose cells are texts reaches the store as numbers of texts, in a pool that all features
share. Its categories are the distinct texts of its cells in the order of their UTF-8 bytes, and its
codes, which are its values too, their places in it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import InputError
from srs_ooc.ingestion.forced_kinds import FREE
from srs_ooc.ingestion.labels import text_of
from srs_ooc.ingestion.memory import CATEGORY_WORK_NBYTES
from srs_ooc.ingestion.row_columns import KeptRows, shown
from srs_ooc.ingestion.scratch import joined
from srs_ooc.ingestion.texts import TO_UTF8, TextCoder
from srs_ooc.store.manifest import code_columns, max_codes, small_file
from srs_ooc.store.writing import SyncedFile

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
