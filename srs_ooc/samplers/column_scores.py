"""Scores of columns: what gives them, in passes over all columns, and the weights they become."""

from collections.abc import Callable, Iterator
from typing import Protocol

import numpy as np

from srs_ooc.base.arrays import Floats, Reals, Uints32
from srs_ooc.base.errors import UsageError

# What a column score is: a number for each column, from a few passes over all of them.

CODES, VALUES = "codes", "values"
"""What of a store columns are scored on: the option ``matrix`` of a method that has them scored."""
BLOCK_COLUMNS = 256
"""ScoredColumns of a block at most: so many products of two 8-bit codes sum exactly in float32."""
BLOCK_CELLS = 1 << 21
"""Cells of a block at most, where a single column has no more."""

ScoredColumns = Reals
"""(n_columns, n_rows), C-contiguous, nothing missing."""
Blocks = Callable[[], Iterator[tuple[int, ScoredColumns]]]
"""Yields one pass: the number of a block's first column, and the block."""


class ColumnScore(Protocol):
    """Learns from all columns, block by block, and gives each a score from 0 on.

    Every pass shows the same blocks in the same order. A block is float64, or float32 where all of
    it are whole numbers of at most 254. Its memory is used again: it is neither kept nor changed.
    """

    @property
    def n_passes(self) -> int:
        """How often all columns are shown."""

    @property
    def nbytes(self) -> int:
        """Memory that it takes at most, its scores included, before it takes any."""

    def update(self, first: int, columns: ScoredColumns) -> None:
        """Learn from the columns with numbers from ``first`` on."""

    def end_pass(self) -> None:
        """Take note that all columns were shown once more."""

    def scores(self) -> Floats:
        """Return the score of each column once all passes are over; float64 (n_columns,)."""


def block_columns(n_rows: int) -> int:
    """Return how many columns a block has: from the rows alone, so that sums are the same."""
    return max(1, min(BLOCK_COLUMNS, BLOCK_CELLS // n_rows))


def score_columns(
    score: ColumnScore, blocks: Blocks, keep_going: Callable[[], bool] = lambda: True
) -> Floats | None:
    """Return the score of each column; None if told to stop before.

    Linear algebra is done by one thread: several round in their own ways, and on a machine that has
    other work they wait for each other at every block (measured: six times as long).

    Parameters
    ----------
    score : ColumnScore
        As new.
    blocks : callable
        Begins a pass.
    keep_going : callable
        Asked after every block.
    """
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        for _ in range(score.n_passes):
            for first, columns in blocks():
                score.update(first, columns)
                if not keep_going():
                    return None
            score.end_pass()
        return score.scores()


# Scores as whole numbers, so that what is drawn by them is the same everywhere.

LARGEST = 2**32 - 1
_PIECE = 1 << 17


def integer_weights(scores: Floats) -> Uints32:
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
            "large to square: score the codes with matrix=codes."
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
