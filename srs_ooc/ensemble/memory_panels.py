"""The rows of a table in memory, in panels of the columns that trees use."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import InputError
from srs_ooc.ensemble.panels import CATEGORY_NBYTES, TEXT_NBYTES, Panel, translate, translation
from srs_ooc.ingestion.formats import TextCoder
from srs_ooc.ingestion.formats.detection import open_object
from srs_ooc.ingestion.formats.in_memory import frame_library
from srs_ooc.runs.tree_splits import SplitTable


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

    def __init__(self, thing: Any, splits: SplitTable, positions: NDArray[np.integer[Any]]) -> None:
        is_sparse = type(thing).__module__.startswith("scipy.sparse")
        self._thing = thing.tocsr() if is_sparse else thing
        self._splits, self._positions = splits, np.asarray(positions, np.intp)
        self.most_rows = int(thing.shape[0])
        self._categories: list[list[str] | None] = splits.facts["categories"]

    @property
    def fixed_nbytes(self) -> int:
        """Bytes it needs whatever the size of its panels."""
        is_any = any(known is not None for known in self._categories)
        return 2 * CATEGORY_NBYTES * is_any + TEXT_NBYTES * len(self._positions)

    @property
    def row_nbytes(self) -> int:
        """Bytes it needs for each row of a panel."""
        return 3 * 8 * len(self._positions) + 2 * TEXT_NBYTES

    def panels(self, n_rows: int) -> Iterator[Panel]:
        """Yield all rows, ``n_rows`` at a time, without labels.

        Raises
        ------
        InputError
            If a column does not hold what it held in training.
        """
        for start in range(0, self.most_rows, n_rows):
            stop = min(start + n_rows, self.most_rows)
            values = self._values(_rows_of(self._thing, start, stop))
            yield Panel(values, [str(i + 1) for i in range(start, stop)], None)

    def _values(self, rows: Any) -> NDArray[np.float64]:
        names = self._splits.names
        if not names:
            return np.empty((0, rows.shape[0]))
        as_texts = {
            name for name, known in zip(names, self._categories, strict=True) if known is not None
        }
        opened, pool = open_object(rows, as_texts), TextCoder(CATEGORY_NBYTES)
        is_text = opened.text_columns
        for name, position, known in zip(names, self._positions, self._categories, strict=True):
            if (is_text is not None and bool(is_text[position])) != (known is not None):
                kinds = ("numbers", "categories") if known is None else ("categories", "numbers")
                raise InputError(
                    f"column {name!r}: expected {kinds[0]}, as in training, found {kinds[1]}. "
                    "Convert the column."
                )
        values = np.ascontiguousarray(opened.read(self._positions, pool), np.float64)
        texts = [text.decode("utf-8", "replace") for text in pool.texts()]
        for column, known in zip(values, self._categories, strict=True):
            if known is not None:
                translate(column, translation(texts, known))
        return values


def _rows_of(thing: Any, start: int, stop: int) -> Any:
    library = frame_library(thing)
    if library is None:
        return thing[start:stop]
    return thing.iloc[start:stop] if library == "pandas" else thing.slice(start, stop - start)
