"""Columns with rows left out, or numbers taken for texts: a ``ColumnSource`` over another."""

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import InputError
from srs_ooc.ingestion.categories import FeatureKinds
from srs_ooc.ingestion.labels import text_of
from srs_ooc.ingestion.memory import piece_features
from srs_ooc.ingestion.row_columns import KeptRows
from srs_ooc.ingestion.spool import anonymous_array
from srs_ooc.ingestion.table import ColumnSource
from srs_ooc.ingestion.texts import joined


class KeptColumns:
    """The kept rows of columns.

    Parameters
    ----------
    columns : ColumnSource
        All rows.
    kept : KeptRows
        Which of them to keep.
    """

    def __init__(self, columns: ColumnSource, kept: KeptRows) -> None:
        self._columns, self._kept = columns, kept
        self.n_rows, self.n_features = kept.n_rows, columns.n_features

    def read(self, start: int, stop: int) -> NDArray[np.float64]:
        """Return the values (stop - start, n_rows) of stored features ``start .. stop - 1``."""
        out = anonymous_array((stop - start, self.n_rows))
        step = piece_features(self._kept.n_source_rows)
        for first in range(start, stop, step):
            values = self._columns.read(first, min(first + step, stop))
            for line, whole in zip(out[first - start :], values, strict=False):
                line[:] = whole[self._kept.mask]
        return out


def kept_columns(columns: ColumnSource, kept: KeptRows) -> ColumnSource:
    """Return the kept rows of columns; the columns themselves if that is all."""
    return columns if kept.mask is None else KeptColumns(columns, kept)


class NumbersAsTexts:
    """Columns of which some hold numbers that are categories.

    Parameters
    ----------
    columns : ColumnSource
        Numbers.
    which : bool (n_features,)
        The stored features whose numbers are to be taken for texts.
    kinds : FeatureKinds
        Whose pool numbers the texts.
    """

    def __init__(
        self, columns: ColumnSource, which: NDArray[np.bool_], kinds: FeatureKinds
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
