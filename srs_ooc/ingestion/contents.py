"""What a store is made from: columns in stored order, facts, and the form to keep them in."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.seeds import Purpose, derive_array, key_of
from srs_ooc.store.manifest import Shape, max_codes

ORDER_KEY = key_of(Purpose.STORE_ORDER)
"""Key of the random order of features on disk: a constant, so equal tables give equal stores."""

_BLOCK = 1 << 16

ByteProgress = Callable[[str, int, int], None]
"""Called with what is being done, how many bytes of it are done, and how many there are."""


class StoredColumns(Protocol):
    """A table that can be read by columns, in stored order (see :func:`stored_positions`)."""

    @property
    def n_rows(self) -> int:
        """Rows of the table."""
        ...

    @property
    def n_features(self) -> int:
        """Features of the table."""
        ...

    def read(self, start: int, stop: int) -> NDArray[np.float64]:
        """Return the values (stop - start, n_rows) of stored features ``start .. stop - 1``.

        C-contiguous; NaN where a value is missing. The caller reads each feature once, and may
        change what is returned.
        """
        ...


@dataclass(frozen=True)
class TableFacts:
    """What is known of a table besides its values.

    Attributes
    ----------
    target_name : str
        Name of the target.
    classes : tuple of str
        Labels, in class order; none of a regression.
    row_id_name : str or None
        Name of the column of row ids; None where rows are numbered.
    n_dropped_rows : int
        Rows of the source left out.
    row_columns : dict
        Names of the columns of weights, strata and groups, where there are such.
    inferred, source : dict
        What was inferred, and where the table came from; JSON-ready.
    """

    target_name: str
    classes: tuple[str, ...]
    row_id_name: str | None = None
    n_dropped_rows: int = 0
    row_columns: dict[str, list[str]] = field(default_factory=dict)
    inferred: dict[str, Any] = field(default_factory=dict)
    source: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class StoreForm:
    """How a store keeps a table.

    Attributes
    ----------
    code_dtype : {'uint8', 'uint16'}
        Dtype of ``codes``.
    values_dtype : {'float32', 'float64'} or None
        Dtype of ``values``; None keeps each code's lowest and highest value instead.
    """

    code_dtype: str = "uint8"
    values_dtype: str | None = "float64"

    @property
    def code_nbytes(self) -> int:
        """Bytes of a code."""
        return int(np.dtype(self.code_dtype).itemsize)

    @property
    def missing_code(self) -> Any:
        """The code of a missing value, as a scalar of the dtype of codes."""
        return np.dtype(self.code_dtype).type(np.iinfo(self.code_dtype).max)

    def n_ranges(self, shape: Shape) -> int:
        """Columns of ``code_lows`` and ``code_highs``; 0 where values are kept."""
        return 0 if self.values_dtype else min(max_codes(self.code_dtype), shape.n_rows)


def stored_positions(n_features: int, first: int = 0) -> NDArray[np.uint32]:
    """Return the source position of each stored feature: a fixed keyed permutation.

    Of a piece of a table, whose features begin at position ``first`` there, they are counted from
    the piece's own first one. Its order is that of the whole table, with the others left out.
    """
    keys = np.empty(n_features, np.uint64)
    for start in range(0, n_features, _BLOCK):
        stop = min(start + _BLOCK, n_features)
        keys[start:stop] = derive_array(ORDER_KEY, np.arange(first + start, first + stop))
    return np.argsort(keys, kind="stable").astype(np.uint32)
