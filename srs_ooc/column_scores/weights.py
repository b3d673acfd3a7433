"""Scores as whole numbers, so that what is drawn by them is the same everywhere."""

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import UsageError

LARGEST = 2**32 - 1
_PIECE = 1 << 17


def integer_weights(scores: NDArray[np.float64]) -> NDArray[np.uint32]:
    """Return scores in units of the largest by ``2**32 - 1``, rounded; 0 stays 0, others do not.

    Raises
    ------
    UsageError
        If a score is negative or not finite, or none is above 0.
    """
    largest = float(scores.max(initial=0.0))
    if not np.isfinite(largest) or not float(scores.min(initial=0.0)) >= 0:
        raise UsageError(
            "expected finite scores from 0 on, found others. The values of the table may be too "
            "large to square: score the codes with --matrix codes."
        )
    if largest == 0:
        raise UsageError(
            "expected a column with a score above 0, found none: all are constant on the training "
            "rows. Check the table, and the file given with --rows."
        )
    weights = np.zeros(len(scores), np.uint32)
    for start in range(0, len(scores), _PIECE):
        some = scores[start : start + _PIECE]
        whole = np.maximum(np.rint(some / largest * LARGEST), some > 0)
        weights[start : start + _PIECE] = whole.astype(np.uint32)
    return weights
