"""What trees are grown on and to predict, and how: response, training rows, kind of tree.

A response is classes or targets as whole numbers, with weights. Entropy is computed from a table
of ``x log2 x`` in fixed point, in integers only.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from srs_ooc.base.arrays import Floats, Integers, Ints, Ints32, Reals, Uints
from srs_ooc.base.seeds import Purpose, derive, derive_array, scale_below
from srs_ooc.native import _native

LARGEST_WEIGHT = 4095
TOTAL_WEIGHT = 1 << 24
TARGET_BITS = 23
_WEIGHTED_BITS = 27
_LARGEST_EXPONENT = 1023


@dataclass(frozen=True)
class Response:
    """What each row of a table says, for the kernel.

    Attributes
    ----------
    labels : int32 (n_rows,)
        Class codes; all 0 for targets.
    n_classes : int
        Number of classes; 1 for targets.
    channels : int32 (n_channels, n_rows)
        What is summed beside rows. Classes: nothing, or the weight. Targets: the target, or the
        weight and the target times it.
    center, scale : float or None
        A whole-number target t stands for ``center + t / scale``; None for classes.
    """

    labels: Ints32
    n_classes: int
    channels: Ints32
    center: float | None = None
    scale: float | None = None

    @property
    def is_regression(self) -> bool:
        """Whether it holds targets."""
        return self.scale is not None

    @property
    def n_channels(self) -> int:
        """Numbers summed beside rows."""
        return len(self.channels)

    @property
    def weights(self) -> Floats:
        """The weight of each row; float64 (n_rows,)."""
        if self.n_channels > int(self.is_regression):
            return np.asarray(self.channels[0], np.float64)
        return np.ones(len(self.labels))

    @property
    def numbers(self) -> Floats:
        """The whole-number target of each row, not weighted; float64 (n_rows,)."""
        return np.asarray(self.channels[-1] / self.weights, np.float64)

    @cached_property
    def native(self) -> _native.Response:
        """The same, as native code takes it."""
        # what travelled to a worker may lie at any address
        labels, channels = (np.require(a, None, ["C", "A"]) for a in (self.labels, self.channels))
        return _native.Response(labels, self.n_classes, channels, self.is_regression)

    @staticmethod
    def classes(labels: Integers, n_classes: int, weights: Reals | None = None) -> "Response":
        """Return the response of class codes below ``n_classes``, weighted or not."""
        none = np.zeros((0, len(labels)), dtype=np.int32)
        channels = none if weights is None else whole_weights(weights)[None]
        return Response(labels.astype(np.int32, copy=False), n_classes, channels)

    @staticmethod
    def targets(values: Reals, weights: Reals | None = None) -> "Response":
        """Return the response of numbers, weighted or not.

        Raises
        ------
        ValueError
            If they are all equal, or not all finite.
        """
        values = np.asarray(values, dtype=np.float64)
        low, high = float(values.min()), float(values.max())
        if not (math.isfinite(low) and math.isfinite(high)) or low == high:
            raise ValueError(f"expected finite targets that differ, found {low} to {high}")
        whole = None if weights is None else whole_weights(weights)
        total = len(values) if whole is None else int(whole.sum(dtype=np.int64))
        bits = min(TARGET_BITS, 63 - 2 * (total - 1).bit_length())
        if whole is not None:
            bits = min(bits, _WEIGHTED_BITS - (int(whole.max()) - 1).bit_length())
        center = low / 2 + high / 2
        exponent = min(bits - math.frexp(max(high - center, center - low))[1], _LARGEST_EXPONENT)
        targets = np.rint(np.ldexp(values - center, exponent)).astype(np.int32)
        channels = targets[None] if whole is None else np.stack([whole, whole * targets])
        labels = np.zeros(len(values), dtype=np.int32)
        return Response(labels, 1, channels, center, math.ldexp(1.0, exponent))


def whole_weights(weights: Reals) -> Ints32:
    """Return weights as whole numbers from 1 to 4095; int32 (n_rows,).

    Raises
    ------
    ValueError
        If they are not all finite and above 0.
    """
    weights = np.asarray(weights, dtype=np.float64)
    if not bool(np.all(np.isfinite(weights) & (weights > 0))):
        found = weights[~(np.isfinite(weights) & (weights > 0))][0]
        raise ValueError(f"expected finite weights above 0, found {found}")
    largest = float(weights.max())
    as_they_are = largest <= LARGEST_WEIGHT and bool(np.all(weights == np.rint(weights)))
    if not (as_they_are and math.fsum(weights.tolist()) <= TOTAL_WEIGHT):
        # By a power of two first, which changes no digit: sums and quotients stay within doubles.
        weights = np.ldexp(weights, -math.frexp(largest)[1])
        total = math.fsum(weights.tolist())
        weights = weights * min(LARGEST_WEIGHT / float(weights.max()), TOTAL_WEIGHT / total)
    return np.maximum(np.rint(weights), 1).astype(np.int32)


# The table of ``x log2 x`` that entropy is computed from, in fixed point and in integers only.
#
# A mathematical library's logarithm differs between machines in its last bits; this one cannot.

ENTROPY_BITS = 32
_LOG_BITS = 40
_MANTISSA_BITS = 31


def log2_table(size: int) -> Uints:
    """Return ``log2(x)`` for x in 1 .. size - 1 (entry 0 is 0), in units of ``2**-40``.

    The integer part is the position of the leading bit; each further bit comes from squaring the
    mantissa (kept to 31 bits, so the error stays below ``2**-24``).
    """
    x = np.arange(size, dtype=np.uint64)
    x[:1] = 1
    whole = np.zeros(size, dtype=np.uint64)
    for shift in (32, 16, 8, 4, 2, 1):
        large = (x >> whole) >= np.uint64(1 << shift)
        whole += np.where(large, np.uint64(shift), np.uint64(0))
    one = np.uint64(1 << _MANTISSA_BITS)
    mantissa = (x << np.uint64(_MANTISSA_BITS)) >> whole
    log = whole << np.uint64(_LOG_BITS)
    for bit in range(_LOG_BITS - 1, -1, -1):
        mantissa = (mantissa * mantissa) >> np.uint64(_MANTISSA_BITS)
        doubled = mantissa >= one + one
        log += np.where(doubled, np.uint64(1 << bit), np.uint64(0))
        mantissa = np.where(doubled, mantissa >> np.uint64(1), mantissa)
    return log


def xlogx_table(n_rows: int) -> Ints:
    """Return ``x log2 x`` for x in 0 .. n_rows, in units of ``2**-32``; int64 (n_rows + 1,)."""
    x = np.arange(n_rows + 1, dtype=np.uint64)
    log = log2_table(n_rows + 1)
    # Two halves, so that the product of up to 24 and 45 bits does not overflow.
    high, low = log >> np.uint64(20), log & np.uint64((1 << 20) - 1)
    product = ((x * high) << np.uint64(12)) + ((x * low) >> np.uint64(8))
    return product.astype(np.int64)


# The rows a tree is grown on, and what is known of them before it grows.

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
        The table of :mod:`srs_ooc.trees.response`, where the impurity is entropy.
    """

    response: Response
    order: Ints32
    root_stats: Ints
    root_scale: float
    xlogx: Ints

    @cached_property
    def native(self) -> _native.TrainingRows:
        """The same, as native code takes it."""
        root = self.root_stats, self.root_scale
        return _native.TrainingRows(self.response.native, self.order, *root, self.xlogx)

    @classmethod
    def of(cls, response: Response, impurity: str) -> Self:
        """Return all rows; entropy needs a table of ``n_rows + 1`` 8-byte integers."""
        order = np.argsort(response.labels, kind="stable").astype(np.int32)
        table = xlogx_table(len(order)) if impurity == "entropy" else _NO_TABLE
        return cls(response, order, *root_of(response, order), table)

    def resampled(self, key: int) -> "TrainingRows":
        """Return as many rows drawn with replacement by ``key``.

        Draw i is the ``scale_below(derive(derive(key, BOOTSTRAP), i), n)``-th of the rows in their
        order; the sample keeps that order.
        """
        return self._repeated(times_drawn(key, len(self.order)))

    def only(self, rows: Ints32) -> "TrainingRows":
        """Return those that are among ``rows``, as often as they are there, in the same order."""
        return self._repeated(np.bincount(rows, minlength=len(self.response.labels))[self.order])

    def drawn(self, strata: Ints, key: int) -> Ints32:
        """Return one row of each stratum (:meth:`strata`), drawn by ``key``, ascending.

        Of stratum i that is the ``scale_below(derive(derive(key, ROW_SAMPLE), i), size)``-th.
        """
        sizes = np.diff(strata)
        hashes = derive_array(derive(key, Purpose.ROW_SAMPLE), np.arange(len(sizes)))
        return np.sort(self.order[strata[:-1] + scale_below(hashes, sizes).astype(np.int64)])

    def block_of(self, rows: Ints32) -> "TrainingRows":
        """Return some rows as those of a block that has them alone."""
        whole = self.response
        channels = np.ascontiguousarray(whole.channels[:, rows])
        response = replace(whole, labels=whole.labels[rows], channels=channels)
        order = np.argsort(response.labels, kind="stable").astype(np.int32)
        return TrainingRows(response, order, *root_of(response, order), self.xlogx)

    def strata(self, n_sampled: int) -> Ints:
        """Return where each of ``n_sampled`` strata of ``order`` begins, and where the last ends.

        Classes have as many strata each, or one for each row where they have fewer rows; strata of
        a class are as large as each other, give or take one row. ``n_sampled`` is less than the
        rows.
        """
        sizes, quotas, left = self.root_stats[:, 0], np.zeros(len(self.root_stats), int), n_sampled
        for n_more, which in enumerate(np.argsort(sizes, kind="stable")):
            quotas[which] = min(sizes[which], left // (len(sizes) - n_more))
            left -= quotas[which]
        within = [
            first + np.arange(quota) * size // max(1, quota)
            for first, size, quota in zip(np.cumsum(sizes) - sizes, sizes, quotas, strict=True)
        ]
        return np.concatenate([*within, [len(self.order)]])

    def by_target(self) -> "TrainingRows":
        """Return the same in the order of the target, where it is numbers."""
        if not self.response.is_regression:
            return self
        order = np.argsort(self.response.numbers[self.order], kind="stable")
        return replace(self, order=self.order[order])

    def _repeated(self, times: Ints) -> "TrainingRows":
        order = np.repeat(self.order, times)
        return TrainingRows(self.response, order, *root_of(self.response, order), self.xlogx)


def times_drawn(key: int, n: int) -> Ints:
    """Return how often each of ``n`` rows is drawn with replacement by ``key``; int64 (n,)."""
    hashes = derive_array(derive(key, Purpose.BOOTSTRAP), np.arange(n, dtype=np.uint64))
    return np.bincount(scale_below(hashes, n).astype(np.int64), minlength=n)


def root_of(response: Response, order: Integers) -> tuple[Ints, float]:
    """Return the numbers of each class in ``order``, and what importances are divided by."""
    labels, n_classes = response.labels[order], response.n_classes
    stats = np.zeros((n_classes, 1 + response.n_channels), dtype=np.int64)
    stats[:, 0] = np.bincount(labels, minlength=n_classes)
    for c, channel in enumerate(response.channels):
        np.add.at(stats[:, 1 + c], labels, channel[order])
    if not response.is_regression:
        return stats, float(stats[:, -1].sum())
    weight, total = int(stats[0, -2]), int(stats[0, -1])
    sums = response.channels[-1][order].astype(np.int64)
    targets = sums // response.channels[0][order] if response.n_channels == 2 else sums
    products = sums * targets
    high, low = products >> 32, products & 0xFFFFFFFF
    squares = (int(high.sum()) << 32) + int(low.sum())  # weight times target squared, exactly
    return stats, float(squares * weight - total * total) / float(weight)


# How a tree is grown, and what it says.

IMPORTANCE_BITS = 36
"""Importances are counted in units of ``2**-36``, so that their sums are exact in any order."""
IMPURITIES = ("gini", "entropy", "variance")
"""What splits decrease; the last one of targets, the others of classes."""
SPLITTERS = ("random", "best")
THRESHOLDS = ("rank", "value")
"""Whether random thresholds are uniform between ranks (codes) or between values."""


@dataclass(frozen=True)
class TreeLimits:
    """How a tree is randomized and where it stops.

    Attributes
    ----------
    max_features : int
        K: candidate columns drawn at each node among those not constant there; all of them where
        it is at least the number of columns.
    max_depth : int or None
        Depth at which nodes are leaves; None for no limit.
    min_samples_leaf : int
        Fewest rows a split may leave on a side.
    impurity : {'gini', 'entropy', 'variance'}
        What splits decrease.
    min_decrease : int
        Least importance of a split, in units of ``2**-36``.
    splitter : {'random', 'best'}
        One random split a candidate (extra-trees), or the best one over its codes (CART).
    """

    max_features: int
    max_depth: int | None = None
    min_samples_leaf: int = 1
    impurity: str = "gini"
    min_decrease: int = 0
    splitter: str = "random"

    @property
    def native(self) -> _native.TreeLimits:
        """The same, as native code takes it."""
        return _native.TreeLimits(
            self.max_features,
            -1 if self.max_depth is None else self.max_depth,
            self.min_samples_leaf,
            self.min_decrease,
            self.splitter == "best",
            IMPURITIES.index(self.impurity),
        )

    def most_leaves(self, n_rows: int) -> int:
        """Return the most leaves a tree on ``n_rows`` rows can have."""
        leaves = max(1, n_rows // self.min_samples_leaf)
        if self.max_depth is not None and self.max_depth < leaves.bit_length():
            return min(leaves, 1 << self.max_depth)
        return leaves


@dataclass(frozen=True)
class GrownTree:
    """What one tree says.

    Attributes
    ----------
    importance : int64 (n_columns,)
        MDI importances (Eq. 1 of the paper, unnormalised) in units of ``2**-36``; of targets, the
        share of their variance in the training rows.
    n_nodes, n_leaves, depth : int
        Its size; a lone root has depth 0.
    record : bytes or None
        The tree itself, as ``tests/helpers/forest_reference.py`` tells; None unless asked for.
    """

    importance: Ints
    n_nodes: int
    n_leaves: int
    depth: int
    record: bytes | None = None
