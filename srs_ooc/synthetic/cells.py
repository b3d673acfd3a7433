"""The numbers of synthetic tables: a cell depends on a key, its row and its column alone.

Every value is a multiple of 10**-4 with absolute value below 10, held as the integer number of
those steps (a *cell*). A CSV file and a store made from one problem therefore agree exactly.
"""

from functools import cache
from statistics import NormalDist

import numpy as np

from srs_ooc.base.arrays import Floats, Integers, Ints32, Uints, Uints32
from srs_ooc.base.seeds import derive_array

STEPS = 10_000
CELL_LIMIT = 99_999
TILE_CELLS = 1 << 15
SEGMENT_BITS = 8
FRACTION_BITS = 52
SIGN_BIT = np.uint64(1 << 63)

Cells = Ints32


def to_cells(values: Floats) -> Cells:
    """Round values to cells, cut at the largest cell."""
    steps = np.rint(values * STEPS)
    return np.clip(steps, -CELL_LIMIT, CELL_LIMIT, out=steps).astype(np.int32)


def hash_grid(key: int, row_numbers: Integers, column_numbers: Integers) -> Uints:
    """Return one 64-bit hash per (row, column): uint64 (n rows, n columns), rows below 2**32."""
    counters = row_numbers.astype(np.uint64)[:, None] << np.uint64(32)
    return derive_array(key, counters | column_numbers.astype(np.uint64)[None, :])


def uniforms(hashes: Uints) -> Floats:
    """Map hashes to float64 uniform in [-1, 1)."""
    return (hashes >> np.uint64(11)).astype(np.float64) * 2.0**-52 - 1.0


@cache
def _quantile_segments() -> tuple[Floats, Floats, int]:
    """Return intercepts, slopes and the first segment of the upper normal quantile.

    The tail probability is ``t * 2**-53`` for t in [0.5, 2**52). A segment is a value of the
    exponent and leading :data:`SEGMENT_BITS` fraction bits of the float64 t, so segments shrink
    with the tail and the largest error of the chords is below 10**-5 of a standard deviation.
    """
    shift = FRACTION_BITS - SEGMENT_BITS
    first = int(np.float64(0.5).view(np.uint64)) >> shift
    last = int(np.float64(2.0**52).view(np.uint64)) >> shift
    knots = (np.arange(first, last + 1, dtype=np.uint64) << np.uint64(shift)).view(np.float64)
    normal = NormalDist()
    quantiles = np.array([-normal.inv_cdf(t * 2.0**-53) for t in knots.tolist()])
    slopes = np.diff(quantiles) / np.diff(knots)
    return quantiles[:-1] - slopes * knots[:-1], slopes, first


def normals(hashes: Uints) -> Floats:
    """Map hashes to standard normal float64, by inversion: top bit the sign, low 52 the tail."""
    intercepts, slopes, first = _quantile_segments()
    tails = (hashes & np.uint64((1 << FRACTION_BITS) - 1)).astype(np.float64)
    tails += 0.5
    segments = tails.view(np.int64) >> (FRACTION_BITS - SEGMENT_BITS)
    segments -= first
    tails *= slopes[segments]
    tails += intercepts[segments]
    bits = tails.view(np.uint64)
    bits |= hashes & SIGN_BIT
    return tails


def noise_cells(key: int, start: int, stop: int, columns: Uints32) -> Cells:
    """Return standard normal cells of some rows: int32 (stop - start, len(columns)).

    A cell depends on the key, its row and its column only. Work goes in tiles that stay in cache.
    """
    out = np.empty((stop - start, len(columns)), dtype=np.int32)
    row_numbers = np.arange(start, stop, dtype=np.uint64)
    width = min(max(1, len(columns)), TILE_CELLS)
    height = max(1, TILE_CELLS // width)
    for top in range(0, stop - start, height):
        for left in range(0, len(columns), width):
            part = slice(top, top + height), slice(left, left + width)
            out[part] = to_cells(normals(hash_grid(key, row_numbers[part[0]], columns[part[1]])))
    return out
