"""What trees are grown to predict, as whole numbers: classes or targets, with weights.

A kernel that decides in integers needs integers. Targets become whole numbers once per run: the
middle of their range is taken away, and what is left multiplied by a power of two, the largest that
keeps them within ``2**bits``, and rounded. Weights that are whole numbers from 1 to 4095 and add up
to no more than ``2**24`` are taken as they are; others are multiplied by the largest number that
brings them there, rounded, and 1 at least.

With n rows of total weight W, ``bits`` is 23, or as many fewer as keep ``W**2 2**bits`` within
``2**63`` and, with weights, the largest weight times ``2**bits`` within ``2**27``. So every
difference of products that a split is decided by fits 64 bits.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

LARGEST_WEIGHT = 4095
TOTAL_WEIGHT = 1 << 24
TARGET_BITS = 23
_WEIGHTED_BITS = 27
_LARGEST_EXPONENT = 1023
_LANE_SUM = (1 << 31) - 1


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

    labels: NDArray[np.int32]
    n_classes: int
    channels: NDArray[np.int32]
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
    def flush(self) -> int:
        """Rows whose channels add up within 32 bits."""
        largest = int(np.abs(self.channels).max(initial=1))
        return max(1, min(_LANE_SUM // largest, _LANE_SUM))

    @staticmethod
    def classes(
        labels: NDArray[np.integer], n_classes: int, weights: NDArray[np.floating] | None = None
    ) -> "Response":
        """Return the response of class codes below ``n_classes``, weighted or not."""
        channels = np.zeros((0, len(labels)), dtype=np.int32)
        if weights is not None:
            channels = whole_weights(weights)[None]
        return Response(labels.astype(np.int32, copy=False), n_classes, channels)

    @staticmethod
    def targets(
        values: NDArray[np.floating], weights: NDArray[np.floating] | None = None
    ) -> "Response":
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
        center = low / 2 + high / 2
        exponent = _bits(len(values), whole) - math.frexp(max(high - center, center - low))[1]
        exponent = min(exponent, _LARGEST_EXPONENT)
        targets = np.rint(np.ldexp(values - center, exponent)).astype(np.int32)
        channels = targets[None] if whole is None else np.stack([whole, whole * targets])
        labels = np.zeros(len(values), dtype=np.int32)
        return Response(labels, 1, channels, center, math.ldexp(1.0, exponent))


def _bits(n_rows: int, weights: NDArray[np.int32] | None) -> int:
    total = n_rows if weights is None else int(weights.sum(dtype=np.int64))
    bits = min(TARGET_BITS, 63 - 2 * (total - 1).bit_length())
    if weights is None:
        return bits
    return min(bits, _WEIGHTED_BITS - (int(weights.max()) - 1).bit_length())


def whole_weights(weights: NDArray[np.floating]) -> NDArray[np.int32]:
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
    whole: NDArray[np.int32] = np.maximum(np.rint(weights), 1).astype(np.int32)
    return whole
