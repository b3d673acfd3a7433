"""What a column score is: a number for each column, from a few passes over all of them."""

from collections.abc import Callable, Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from srs_ooc.base.text import ceil_div

BLOCK_COLUMNS = 256
"""Columns of a block at most: so many products of two 8-bit codes sum exactly in float32."""
BLOCK_CELLS = 1 << 21
"""Cells of a block at most, where a single column has no more."""

Columns = NDArray[np.floating[Any]]
"""(n_columns, n_rows), C-contiguous, nothing missing."""
Blocks = Callable[[], Iterator[tuple[int, Columns]]]
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

    def update(self, first: int, columns: Columns) -> None:
        """Learn from the columns with numbers from ``first`` on."""

    def end_pass(self) -> None:
        """Take note that all columns were shown once more."""

    def scores(self) -> NDArray[np.float64]:
        """Return the score of each column once all passes are over; float64 (n_columns,)."""


def block_columns(n_rows: int) -> int:
    """Return how many columns a block has: from the rows alone, so that sums are the same."""
    return max(1, min(BLOCK_COLUMNS, BLOCK_CELLS // n_rows))


def n_blocks(n_columns: int, n_rows: int) -> int:
    """Return how many blocks a pass over a table has."""
    return ceil_div(n_columns, block_columns(n_rows))


def score_columns(
    score: ColumnScore, blocks: Blocks, keep_going: Callable[[], bool] = lambda: True
) -> NDArray[np.float64] | None:
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
    with threadpool_limits(1):
        for _ in range(score.n_passes):
            for first, columns in blocks():
                score.update(first, columns)
                if not keep_going():
                    return None
            score.end_pass()
        return score.scores()


def shifted(columns: Columns, *, center: bool) -> Columns:
    """Return the columns less a number near their means, of the same dtype; as they are if not.

    Whole numbers stay whole and no larger than they were, so that their products sum exactly; a
    constant column is exactly 0. What is left of the means is taken off where products are summed.
    """
    if not center:
        return columns
    out = columns - columns[:, :1]
    out -= np.rint(out.mean(axis=1, dtype=np.float64))[:, None].astype(columns.dtype)
    return out
