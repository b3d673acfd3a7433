"""What a column score must pass."""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from srs_ooc.samplers.base import Columns, ColumnScore, score_columns

Make = Callable[[int, int], ColumnScore]
_CLOSE = 1e-6


def check_score(
    make: Make,
    columns: NDArray[np.float32],
    *,
    has_symmetry: bool = True,
    tolerance: float = _CLOSE,
) -> NDArray[np.float64]:
    """Check that a score keeps to the contract of :class:`srs_ooc.samplers.base.ColumnScore`.

    Parameters
    ----------
    make : callable
        ``make(n_rows, n_columns) -> ColumnScore``, as new; called several times.
    columns : float32 (n_columns, n_rows)
        Whole numbers of at most 254, with no column of zeros.
    has_symmetry : bool
        Whether a column's score is the same wherever it stands, and whichever way rows are
        ordered; False for a score that draws by chance.
    tolerance : float
        Relative to the largest score: by how much equal scores may differ.

    Returns
    -------
    float64 (n_columns,)
        The scores.

    Raises
    ------
    AssertionError
        Saying which rule is broken.
    """
    n_columns, n_rows = columns.shape
    score = make(n_rows, n_columns)
    declared = score.nbytes
    assert score.n_passes >= 1, f"n_passes: expected 1 or more, found {score.n_passes}"
    assert declared >= 8 * n_columns, "nbytes: expected room for the scores"
    scores = _scored(score, columns, 7)
    assert scores.dtype == np.float64, f"scores: dtype {scores.dtype}"
    assert scores.shape == (n_columns,), f"scores: shape {scores.shape}"
    assert np.isfinite(scores).all(), "scores: expected finite numbers"
    assert (scores >= 0).all(), "scores: expected numbers from 0 on"
    assert score.nbytes == declared, "nbytes: changed while it worked"
    again = _scored(make(n_rows, n_columns), columns, 7)
    assert np.array_equal(again, scores), "update: other scores the second time"
    doubles = _scored(make(n_rows, n_columns), columns.astype(np.float64), 7)
    assert np.array_equal(doubles, scores), "update: whole numbers as float64 score otherwise"
    others = _scored(make(n_rows, n_columns), columns, 16)
    assert np.array_equal(others, scores), "update: whole numbers in other blocks score otherwise"
    _check_constant(make, columns, scores, tolerance)
    if has_symmetry:
        _check_symmetry(make, columns, scores, tolerance)
    return scores


def _check_constant(
    make: Make, columns: NDArray[np.float32], scores: NDArray[np.float64], tolerance: float
) -> None:
    """Check that a column of zeros scores 0, and changes no other's score beyond ``tolerance``."""
    n_columns, n_rows = columns.shape
    more = np.vstack([columns, np.zeros((1, n_rows), np.float32)])
    found = _scored(make(n_rows, n_columns + 1), more, 7)
    assert found[-1] == 0, "scores: a column of zeros: expected 0"
    close = np.allclose(found[:-1], scores, rtol=0, atol=tolerance * scores.max())
    assert close, "scores: a column of zeros changed others"


def _check_symmetry(
    make: Make, columns: NDArray[np.float32], scores: NDArray[np.float64], tolerance: float
) -> None:
    """Check that the order of columns and of rows does not matter, as decoys need."""
    n_columns, n_rows = columns.shape
    by_column = np.random.default_rng(0).permutation(n_columns)
    by_row = np.random.default_rng(1).permutation(n_rows)
    for what, found, expected in (
        ("columns", columns[by_column], scores[by_column]),
        ("rows", columns[:, by_row], scores),
    ):
        other = _scored(make(n_rows, n_columns), np.ascontiguousarray(found), 7)
        close = np.allclose(other, expected, rtol=0, atol=tolerance * scores.max())
        assert close, f"scores: {what} in another order: other scores"


def _scored(score: ColumnScore, columns: Columns, size: int) -> NDArray[np.float64]:
    """Return the scores, from blocks whose memory is used again and must not be changed."""
    block = np.zeros((size, columns.shape[1]), columns.dtype)

    def blocks() -> Iterator[tuple[int, Columns]]:
        for first in range(0, len(columns), size):
            some = columns[first : first + size]
            block[: len(some)] = some
            yield first, block[: len(some)]
            assert np.array_equal(block[: len(some)], some), "update: changed the columns"
            block[:] = 0

    found = score_columns(score, blocks)
    assert found is not None
    return found
