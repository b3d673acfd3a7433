"""Source formats, one a file.

Text tables are parsed straight into panels (``csv.py``). Every other format is a :class:`Table` of
numbers, read by columns or by rows, whichever its layout makes cheap.
"""

from collections.abc import Collection, Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from srs_ooc.ingestion.texts import TextCoder


class Table(Protocol):
    """A table that an ingest can read piece by piece; ``srs_ooc.testing`` checks one.

    Attributes
    ----------
    format : str
        Name of the format, for the manifest.
    by_rows : bool
        Whether :meth:`read` takes rows.
    """

    @property
    def format(self) -> str:
        """Name of the format."""
        ...

    @property
    def by_rows(self) -> bool:
        """Whether rows are read, from first to last, rather than columns."""
        ...

    @property
    def narrow(self) -> bool:
        """Whether the dtypes promise that float32 holds every value exactly."""
        ...

    @property
    def work_nbytes(self) -> int:
        """Memory that reading takes beyond what is read and what is held already, in bytes."""
        ...

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        ...

    @property
    def names(self) -> Collection[str] | None:
        """Names of the columns; None if the format has none."""
        ...

    @property
    def text_columns(self) -> NDArray[np.bool_] | None:
        """Which columns hold texts, which are categories; None if the format has no texts."""
        ...

    @property
    def pool(self) -> TextCoder | None:
        """Texts that were numbered when the table was opened; None if that is done by reading."""
        ...

    def read(self, positions: NDArray[np.intp], pool: TextCoder) -> NDArray[np.float64]:
        """Return columns (rows if ``by_rows``) by position, each a row of the result.

        NaN where a value is missing; infinities as they are; of columns of texts the number of
        each text in ``pool``.

        Raises
        ------
        InputError
            If one holds something else than numbers.
        """
        ...

    def items(self, position: int) -> Iterator[list[Any]]:
        """Yield the cells of a column in blocks; None or NaN where one is missing."""
        ...
