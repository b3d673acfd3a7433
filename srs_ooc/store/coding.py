"""Values to ordinal codes: the face of the native coder."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.native import _native

LONG_ROWS = 1 << 19
"""Features of at least so many rows are coded to uint8 without sorting them."""

LONG_NBYTES = 8_000_000
"""Memory that this takes: at most 253 groups of 2,048 counters, and tables digit by digit."""


@dataclass(frozen=True)
class CodeFacts:
    """What coding found of each of ``m`` features.

    Attributes
    ----------
    n_missing : uint32 (m,)
        Missing cells.
    n_codes : uint16 (m,)
        Codes in use: ``0 .. n_codes - 1``, the missing code not counted.
    exact : bool (m,)
        Equal codes mean equal values.
    kinds : uint8 (m,)
        What the values show: constant (or all missing), boolean (0 and 1), integer, or numeric.
    lows, highs : float64 (m, width)
        Lowest and highest value of each code, NaN past ``n_codes``; width 0 where not wanted.
    """

    n_missing: NDArray[np.uint32]
    n_codes: NDArray[np.uint16]
    exact: NDArray[np.bool_]
    kinds: NDArray[np.uint8]
    lows: NDArray[np.float64]
    highs: NDArray[np.float64]


def max_codes(dtype: Any) -> int:
    """Return how many codes ``dtype`` has besides the missing code and one kept in reserve."""
    return int(np.iinfo(dtype).max) - 1


def code_columns(
    values: NDArray[np.floating[Any]],
    codes: NDArray[np.unsignedinteger[Any]],
    *,
    ranges: int = 0,
    long_rows: int = LONG_ROWS,
) -> CodeFacts:
    """Code features; with B = 254 (65,534) codes for uint8 (uint16).

    At most B distinct values: a value's code is its rank among them. Otherwise, with s the sorted
    values, the edges are the distinct ones of ``s[floor(k n / B)]``, k = 1 .. B - 1, above
    ``s[0]``, and a value's code is the number of edges not above it. Missing values (NaN) get the
    largest code of the dtype; -0.0 equals 0.0.

    Parameters
    ----------
    values : float64 or float32 (m, n_rows)
        C-contiguous.
    codes : uint8 or uint16 (m, n_rows)
        C-contiguous; filled here.
    ranges : int
        Width of ``lows`` and ``highs``, at least the codes in use; 0 for none.
    long_rows : int
        From how many rows on uint8 codes are found by counting rather than sorting, which takes no
        memory that grows with the rows; the codes are the same.
    """
    m = values.shape[0]
    facts = CodeFacts(
        np.empty(m, np.uint32),
        np.empty(m, np.uint16),
        np.empty(m, np.bool_),
        np.empty(m, np.uint8),
        np.full((m, ranges), np.nan),
        np.full((m, ranges), np.nan),
    )
    _native.code_columns(
        values,
        codes,
        facts.n_missing,
        facts.n_codes,
        facts.exact,
        facts.kinds,
        facts.lows,
        facts.highs,
        long_rows,
    )
    return facts


def look_at(values: NDArray[np.float64]) -> tuple[int, bool]:
    """Return the flat position of an infinite value, the first, and whether float32 would do.

    Parameters
    ----------
    values : float64 (m, n)
        C-contiguous.

    Returns
    -------
    infinite : int
        -1 where none is.
    narrow : bool
        Whether every value survives the round trip through float32; NaN does.
    """
    return _native.look_at(values)


def put_rows(
    rows: NDArray[np.float64],
    columns: NDArray[np.int64],
    panel: NDArray[np.float64],
    first: int,
) -> tuple[int, bool]:
    """Write rows into a panel as columns, and look at the values written as :func:`look_at` does.

    Parameters
    ----------
    rows : float64 (m, n_columns)
        C-contiguous.
    columns : int64 (n_features,)
        The column that each line of the panel holds.
    panel : float64 (n_features, panel_rows)
        C-contiguous; columns ``first .. first + m - 1`` are filled.
    """
    return _native.put_rows(rows, columns, panel, first)
