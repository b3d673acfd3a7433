"""Numbers with the same bits on every core, processor and instruction set.

A mathematical library rounds its last digit as the processor suits it, and BLAS and LAPACK choose
the order of their sums by it. What decides something is computed here instead, or by NumPy where
IEEE 754 leaves no choice: sums, products, quotients and roots of one element at a time, and NumPy's
own sums, whose order depends on the shape alone. Sums of whole numbers that float64 holds are exact
in any order, so BLAS may take them.
"""

from math import factorial

import numpy as np

from srs_ooc.base.arrays import Floats, Reals
from srs_ooc.native import _native

_HALF_LOG_2PI = 0.9189385332046727
_LARGEST_EXACT = 30
"""Factorials up to this are taken exactly, larger ones by Stirling's series."""


def logs(x: Reals) -> Floats:
    """Return natural logarithms of finite numbers above 0, to about 2e-16; float64, any shape."""
    flat = np.ascontiguousarray(x, np.float64).reshape(-1)
    out = np.empty(flat.shape)
    _native.logs(flat, out)
    return out.reshape(np.shape(x))


def powers(x: Reals) -> Floats:
    """Return e to the power of ``x``, taken as -700 at least and 700 at most; float64."""
    flat = np.ascontiguousarray(x, np.float64).reshape(-1)
    out = np.empty(flat.shape)
    _native.powers(flat, out)
    return out.reshape(np.shape(x))


def log(x: float) -> float:
    """Return the natural logarithm of a finite number above 0."""
    return float(logs(np.array([x]))[0])


def exp(x: float) -> float:
    """Return e to the power of ``x``, as :func:`powers` does."""
    return float(powers(np.array([x]))[0])


def log1p(x: float) -> float:
    """Return log(1 + x) of a number above -1, also where it is small."""
    whole = 1.0 + x
    return x if whole == 1.0 else log(whole) * (x / (whole - 1.0))  # the rounding of 1 + x cancels


def log_factorial(n: int) -> float:
    """Return log(n!)."""
    if n <= _LARGEST_EXACT:
        return log(float(factorial(n)))
    series = (1.0 / 12.0 - (1.0 / 360.0 - 1.0 / (1260.0 * n * n)) / (n * n)) / n
    return (n + 0.5) * log(float(n)) - n + _HALF_LOG_2PI + series


def products(a: Reals, b: Reals, *, exact: bool = False) -> Floats:
    """Return ``a' b`` of two matrices, each sum in one order.

    Parameters
    ----------
    a, b : float (k, n), (k, m)
        float64, or float32 where ``exact``.
    exact : bool
        The products, and all their sums, are numbers that the dtype holds: BLAS may take them.

    Returns
    -------
    float64 (n, m)
    """
    if exact:
        return np.asarray(a.T @ b, np.float64)
    out = np.zeros((a.shape[1], b.shape[1]))
    _native.add_products(
        np.ascontiguousarray(a, np.float64), np.ascontiguousarray(b, np.float64), out
    )
    return out


def top_eigenvectors(symmetric: Floats, rank: int) -> tuple[Floats, Floats]:
    """Return the eigenvectors of the largest eigenvalues, largest first, and these.

    Fewer than ``rank`` where the others are 0 as far as rounding lets one see; a single one of NaN
    where a number is not finite.

    Parameters
    ----------
    symmetric : float64 (n, n)
        C-contiguous; it is overwritten.
    rank : int
        r, at most n.

    Returns
    -------
    vectors : float64 (r, n)
        Of length 1.
    values : float64 (r,)
        Above 0.
    """
    n = len(symmetric)
    largest = float(np.abs(symmetric).max())
    if not np.isfinite(largest):
        return np.full((1, n), np.nan), np.full(1, np.nan)
    exponent = int(np.frexp(largest)[1])
    np.ldexp(symmetric, -exponent, out=symmetric)  # so that squares are finite
    values, vectors = np.empty(rank), np.empty((n, rank))
    _native.top_eigenvectors(symmetric, values, vectors)
    tolerance = n * np.finfo(np.float64).eps * max(float(values[0]), 0.0)
    n_kept = int(np.count_nonzero(values > tolerance))
    return np.ascontiguousarray(vectors[:, :n_kept].T), np.ldexp(values[:n_kept], exponent)


def orthonormal(rows: Floats, least: float | None = None) -> Floats:
    """Return an orthonormal basis of the span of some rows; 0 in place of rows that add nothing.

    Gram and Schmidt's, each row twice ("twice is enough": Giraud, Langou and Rozloznik 2005).

    Parameters
    ----------
    rows : float64 (m, n)
        Not changed.
    least : float, optional
        Part of a row's length that it must add; what rounding leaves if not given.
    """
    basis = np.zeros_like(rows)
    exponents = np.frexp(np.abs(rows).max(axis=1))[1]
    rows = np.ldexp(rows, -exponents[:, None])  # so that squares are finite, and not 0
    for i, row in enumerate(rows):
        length = np.sqrt(np.square(row).sum())
        left = row.copy()
        for _ in range(2):
            for other in basis[:i]:
                left -= (other * left).sum() * other
        rest = np.sqrt(np.square(left).sum())
        if rest > (len(rows) * np.finfo(np.float64).eps if least is None else least) * length:
            basis[i] = left / rest
    return basis
