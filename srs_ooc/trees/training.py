"""The rows a tree is grown on, and what is known of them before it grows."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.seeds import Purpose, derive, derive_array, scale_below
from srs_ooc.trees.entropy import xlogx_table
from srs_ooc.trees.response import Response

_NO_TABLE = np.zeros(1, dtype=np.int64)


@dataclass(frozen=True)
class TrainingRows:
    """Rows grouped by class, as the kernel wants them.

    Attributes
    ----------
    response : Response
        Of all rows of a block.
    order : int32 (n_training,)
        Rows to grow on, grouped by class; a row may come more than once.
    root_stats : int64 (n_classes, 1 + n_channels)
        Their number in each class, and the sums of their channels.
    root_scale : float
        Their weight; for targets the sum of squares about their mean.
    xlogx : int64
        The table of :mod:`srs_ooc.trees.entropy`, where the impurity is entropy.
    """

    response: Response
    order: NDArray[np.int32]
    root_stats: NDArray[np.int64]
    root_scale: float
    xlogx: NDArray[np.int64]

    @classmethod
    def of(cls, response: Response, impurity: str) -> Self:
        """Return all rows; entropy needs a table of ``n_rows + 1`` 8-byte integers."""
        order = np.argsort(response.labels, kind="stable").astype(np.int32)
        table = xlogx_table(len(order)) if impurity == "entropy" else _NO_TABLE
        stats, scale = root_of(response, order)
        return cls(response, order, stats, scale, table)

    def resampled(self, key: int) -> "TrainingRows":
        """Return as many rows drawn with replacement by ``key``.

        Draw i is the ``scale_below(derive(derive(key, BOOTSTRAP), i), n)``-th of the rows in their
        order; the sample keeps that order.
        """
        times = times_drawn(key, len(self.order))
        order = np.repeat(self.order, times)
        stats, scale = root_of(self.response, order)
        return TrainingRows(self.response, order, stats, scale, self.xlogx)

    def only(self, rows: NDArray[np.int32]) -> "TrainingRows":
        """Return those that are among ``rows``, as often as they are there, in the same order."""
        times = np.bincount(rows, minlength=len(self.response.labels))
        order = np.repeat(self.order, times[self.order])
        stats, scale = root_of(self.response, order)
        return TrainingRows(self.response, order, stats, scale, self.xlogx)

    @staticmethod
    def nbytes(n_rows: int, impurity: str, n_channels: int = 0) -> int:
        """Return the bytes needed, the temporaries of construction included."""
        return n_rows * (4 + 8 + (48 if impurity == "entropy" else 0) + 40 * n_channels)


def times_drawn(key: int, n: int) -> NDArray[np.int64]:
    """Return how often each of ``n`` rows is drawn with replacement by ``key``; int64 (n,)."""
    hashes = derive_array(derive(key, Purpose.BOOTSTRAP), np.arange(n, dtype=np.uint64))
    return np.bincount(scale_below(hashes, n).astype(np.int64), minlength=n)


def root_of(response: Response, order: NDArray[np.integer]) -> tuple[NDArray[np.int64], float]:
    """Return the numbers of each class in ``order``, and what importances are divided by."""
    labels, n_classes = response.labels[order], response.n_classes
    stats = np.zeros((n_classes, 1 + response.n_channels), dtype=np.int64)
    stats[:, 0] = np.bincount(labels, minlength=n_classes)
    for c, channel in enumerate(response.channels):
        np.add.at(stats[:, 1 + c], labels, channel[order])
    if not response.is_regression:
        return stats, float(stats[:, -1].sum())
    weight, total = int(stats[0, -2]), int(stats[0, -1])
    spread = _sum_of_squares(response, order) * weight - total * total
    return stats, float(spread) / float(weight)


def _sum_of_squares(response: Response, order: NDArray[np.integer]) -> int:
    """Return the sum of weight times target squared, exactly."""
    sums = response.channels[-1][order].astype(np.int64)
    targets = sums
    if response.n_channels == 2:
        targets = sums // response.channels[0][order]
    products = sums * targets
    high, low = products >> 32, products & 0xFFFFFFFF
    return (int(high.sum()) << 32) + int(low.sum())
