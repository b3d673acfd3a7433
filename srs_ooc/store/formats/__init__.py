"""Source formats, one a file.

Text tables are parsed straight into panels (``csv.py``). Every other format is a :class:`Table` of
numbers, read by columns or by rows, whichever its layout makes cheap.
"""

from collections.abc import Collection
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray


class Table(Protocol):
    """A table of numbers that an ingest can read piece by piece.

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

    def read(self, positions: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return columns (rows if ``by_rows``) by position, each a row of the result.

        NaN where a value is missing; infinities as they are.

        Raises
        ------
        InputError
            If one holds something else than numbers.
        """
        ...

    def items(self, position: int) -> list[Any]:
        """Return the cells of a column as Python objects; None or NaN where one is missing."""
        ...
