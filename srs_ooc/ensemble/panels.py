"""Panels: some rows at a time of the columns that trees use."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

_SHOWN = 5
CATEGORY_NBYTES = 8 << 20
"""Memory for the distinct texts of categorical columns."""
TEXT_NBYTES = 300
"""Allowance for a row's id and label, and for a column's name, as Python objects."""


@dataclass(frozen=True)
class Panel:
    """Some rows of a table.

    Attributes
    ----------
    values : float64 (n_used, at least n_rows)
        The columns that trees use, in the order of ``SplitTable.features``: NaN where missing; of
        categories their codes in the training store, -1 for one not there.
    ids : list of str
        Row ids.
    labels : list of str or None
        The target, where the table has it.
    """

    values: NDArray[np.float64]
    ids: list[str]
    labels: list[str] | None


class Panels(Protocol):
    """A table to predict on, read in panels."""

    @property
    def fixed_nbytes(self) -> int:
        """Bytes it needs whatever the size of its panels."""
        ...

    @property
    def row_nbytes(self) -> int:
        """Bytes it needs for each row of a panel."""
        ...

    @property
    def most_rows(self) -> int | None:
        """Rows there are, where that is known."""
        ...

    def panels(self, n_rows: int) -> Iterator[Panel]:
        """Yield all rows, ``n_rows`` at a time, each panel valid until the next."""
        ...


def shown(names: list[str]) -> str:
    """Return the first of many names, as messages show them."""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(repr(name) for name in names[:_SHOWN]) + more


def translation(texts: list[str], known: list[str]) -> NDArray[np.float64]:
    """Return the code among ``known`` of each text, -1 where it is none; float64 (n,)."""
    codes = {text: code for code, text in enumerate(known)}
    return np.array([codes.get(text, -1) for text in texts], dtype=np.float64)


def translate(values: NDArray[np.float64], codes: NDArray[np.float64]) -> None:
    """Turn numbers of texts into the codes of these texts, in place; NaN stays."""
    there = ~np.isnan(values)
    values[there] = codes[values[there].astype(np.int64)]
