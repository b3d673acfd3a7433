"""A table with more columns, from a sample table, after its own."""

from collections.abc import Collection, Iterator, Mapping
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import InputError
from srs_ooc.ingestion.forced_kinds import FREE
from srs_ooc.ingestion.formats.feature_rows import FeatureRows
from srs_ooc.ingestion.labels import item_blocks
from srs_ooc.ingestion.row_columns import Wording, shown
from srs_ooc.ingestion.scratch import joined
from srs_ooc.ingestion.texts import TextCoder
from srs_ooc.store.manifest import CATEGORICAL


class _Names(Collection[str]):
    def __init__(self, first: Collection[str], then: list[str]) -> None:
        self._first, self._then = first, then

    def __len__(self) -> int:
        return len(self._first) + len(self._then)

    def __contains__(self, name: object) -> bool:
        return name in self._then or name in self._first

    def __iter__(self) -> Iterator[str]:
        return chain(self._first, self._then)


class CovariateTable:
    """The features of a table and, after them, covariates held in memory: a ``Table``.

    Parameters
    ----------
    features : FeatureRows
        The table.
    names : list of str
        Names of the covariates.
    columns : list of list of bytes
        Their cells, as many as the table has rows.
    wording : Wording
        How cells are read, and where they stand.
    kinds : mapping of bytes to int
        Kinds that are forced, by name.

    Raises
    ------
    InputError
        If a covariate holds both numbers and texts, or an infinity.
    """

    by_rows = False
    narrow = False
    work_nbytes = 0

    def __init__(
        self,
        features: FeatureRows,
        names: list[str],
        columns: list[list[bytes]],
        wording: Wording,
        kinds: Mapping[bytes, int],
    ) -> None:
        assert features.pool is not None
        assert features.text_columns is not None
        self.format, self.pool = features.format, features.pool
        self._features, self._n_features = features, features.shape[1]
        self.shape = (features.shape[0], features.shape[1] + len(names))
        self.names: Collection[str] | None = _Names(features.names, names)
        self._values = np.empty((len(names), features.shape[0]))
        is_text = []
        for line, name, cells in zip(self._values, names, columns, strict=True):
            kind = kinds.get(name.encode(), FREE)
            is_text.append(_read(line, name, cells, wording, features.pool, kind))
        self.text_columns: NDArray[np.bool_] | None = np.append(features.text_columns, is_text)

    def read(self, positions: NDArray[np.intp], pool: TextCoder) -> NDArray[np.float64]:
        """Return columns, each a row of the result."""
        out = np.empty((len(positions), self.shape[0]))
        mine = positions >= self._n_features
        out[mine] = self._values[positions[mine] - self._n_features]
        if not mine.all():
            out[~mine] = self._features.read(positions[~mine], pool)
        return out

    def items(self, position: int) -> Iterator[list[Any]]:
        """Yield the cells of a column in blocks."""
        if position < self._n_features:
            return self._features.items(position)
        return item_blocks(self._values[position - self._n_features])


def _read(
    line: NDArray[np.float64],
    name: str,
    cells: list[bytes],
    wording: Wording,
    pool: TextCoder,
    kind: int,
) -> bool:
    """Fill ``line`` with numbers, or with the numbers of texts in ``pool``; return which."""
    missing = [wording.is_missing(cell) for cell in cells]
    if kind == CATEGORICAL:
        values: list[float | None] = [None] * len(cells)
    else:
        values = [
            None if gone else wording.number(c) for c, gone in zip(cells, missing, strict=True)
        ]
    texts = [
        row
        for row, (value, gone) in enumerate(zip(values, missing, strict=True))
        if value is None and not gone
    ]
    is_text = bool(texts) and all(value is None for value in values)
    if texts and (not is_text or kind not in (FREE, CATEGORICAL)):
        raise InputError(
            f"{wording.where(texts[0])}: column {name!r} (--covariates): expected a number as in "
            f"other lines or as --kind says, found {shown(cells[texts[0]])}. Mend the cell, or "
            "say --kind NAME=categorical."
        )
    line[...] = [np.nan if value is None else value for value in values]
    if np.isinf(line).any():
        row = int(np.isinf(line).argmax())
        raise InputError(
            f"{wording.where(row)}: column {name!r} (--covariates): expected a finite number, "
            f"found {shown(cells[row])}. Mend the cell."
        )
    if is_text:
        numbers = pool.code(*joined([cells[row] for row in texts]))
        if len(numbers) < len(texts):
            raise InputError(
                f"column {name!r} (--covariates): expected categories whose texts fit into the "
                "memory that is left for them, found more. Raise --memory-mb."
            )
        line[texts] = numbers
    return is_text
