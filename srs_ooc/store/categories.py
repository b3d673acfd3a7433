"""Categorical features: from numbers of texts to codes in the order of the texts.

A feature whose cells are texts reaches the store as numbers of texts, in a pool that all features
share. Its categories are the distinct texts of its cells in the order of their UTF-8 bytes, and its
codes, which are its values too, their places in it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from srs_ooc.errors import InputError
from srs_ooc.kernel.code import code_columns, max_codes
from srs_ooc.kernel.parse import TextCoder
from srs_ooc.store.chunks import SyncedFile
from srs_ooc.store.kinds import FREE
from srs_ooc.store.layout import small_file
from srs_ooc.store.memory import CATEGORY_WORK_NBYTES
from srs_ooc.store.texts import joined

_PIECE_CELLS = 1 << 17


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
    describe : callable
        Returns the name of a stored feature for messages.
    """

    forced: NDArray[np.uint8]
    is_text: NDArray[np.bool_]
    pool: TextCoder
    describe: Callable[[int], str]

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
        is_there = ~np.isnan(ranks)
        ranks[is_there] = self._rank[ranks[is_there].astype(np.int64)]
        codes = np.empty(ranks.shape, self._code_dtype)
        width = min(max_codes(self._code_dtype), ranks.shape[1])
        facts = code_columns(ranks, codes, ranges=width)
        n_there = is_there.sum(axis=1)
        for i, row in enumerate(rows.tolist()):
            n_codes = int(facts.n_codes[i])
            self._check(start + row, n_codes, int(n_there[i]), exact=bool(facts.exact[i]))
            self._write([self._ordered[int(rank)] for rank in facts.lows[i, :n_codes].tolist()])
        values[rows] = np.where(is_there, codes, np.nan)

    def _order_texts(self) -> None:
        texts = self._kinds.pool.texts()
        for text in texts:
            _check_utf8(text)
        order = sorted(range(len(texts)), key=texts.__getitem__)
        self._ordered = [texts[i] for i in order]
        self._rank = np.empty(len(order), np.int64)
        self._rank[order] = np.arange(len(order))

    def _check(self, feature: int, n_codes: int, n_there: int, *, exact: bool) -> None:
        if not exact:
            name = self._kinds.describe(feature)
            wider = " or take --code-dtype uint16," if self._code_dtype == "uint8" else ""
            raise InputError(
                f"column {name}: expected at most {max_codes(self._code_dtype)} categories, found "
                f"more. Leave it out with --ignore,{wider} or merge categories."
            )
        if n_there > 1 and n_codes == n_there and self._kinds.forced[feature] == FREE:
            name = self._kinds.describe(feature)
            raise InputError(
                f"column {name}: expected numbers, or categories of which some occur more than "
                f"once, found {n_there} different texts. If it identifies the rows, name it with "
                "--row-ids or leave it out with --ignore; if it is a category all the same, say "
                "--kind NAME=categorical."
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


def _check_utf8(text: bytes) -> None:
    try:
        text.decode()
    except UnicodeDecodeError:
        raise InputError(
            f"expected categories as UTF-8 text, found {text[:80]!r}. Convert the table to UTF-8."
        ) from None
