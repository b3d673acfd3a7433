"""How good predictions are, where the target is there."""

import math
import re
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from srs_ooc.native.numerics import log

SMALLEST = 1e-15
"""A probability below this counts as this in the log-loss."""


_MISSING = re.compile("(NA)?|[+-]?[nN][aA][nN]")


@dataclass
class Scores:
    """Accuracy and log-loss of the rows seen so far.

    A row whose label is none of the training classes counts as wrong, with probability 0; one whose
    label is missing is left out.

    Parameters
    ----------
    classes : list of str
        The training classes.
    """

    classes: list[str]
    n_rows: int = 0
    n_right: int = 0
    n_unknown: int = 0
    n_unlabelled: int = 0
    r2 = rmse = None
    _loss: float = 0.0
    _codes: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._codes = {label: code for code, label in enumerate(self.classes)}

    def add(self, labels: list[str], predicted: list[int], shares: NDArray[np.float64]) -> None:
        """Count some rows: labels, predicted classes, probabilities (n_rows, n_classes)."""
        for row, (label, guess) in enumerate(zip(labels, predicted, strict=True)):
            code = self._codes.get(label, -1)
            if code < 0 and _MISSING.fullmatch(label):
                self.n_unlabelled += 1
                continue
            probability = float(shares[row, code]) if code >= 0 else 0.0
            self._loss -= log(max(probability, SMALLEST))
            self.n_right += guess == code
            self.n_unknown += code < 0
            self.n_rows += 1

    @property
    def accuracy(self) -> float | None:
        """Share of rows predicted right; None without rows."""
        return self.n_right / self.n_rows if self.n_rows else None

    @property
    def log_loss(self) -> float | None:
        """Mean of minus the natural logarithm of the label's probability; None without rows."""
        return self._loss / self.n_rows if self.n_rows else None


@dataclass
class TargetScores:
    """R2 and root mean squared error of the rows seen so far.

    Rows without a number as target are left out. Sums are taken of differences from the first
    target, so that a large offset costs no digits.

    Parameters
    ----------
    scale : float
        A power of two that brings targets to moderate numbers, so that no square overflows.
    """

    scale: float = 1.0
    n_rows: int = 0
    n_unknown: int = 0
    n_unlabelled: int = 0
    accuracy = log_loss = None
    _first: float = 0.0
    _sum: float = 0.0
    _squares: float = 0.0
    _errors: float = 0.0

    def add(self, labels: list[str], predicted: list[int], means: NDArray[np.float64]) -> None:
        """Count some rows: targets as texts, and mean targets (n_rows, 1)."""
        for label, mean in zip(labels, means[:, 0].tolist(), strict=True):
            number = _number(label)
            if number is None:
                missing = _MISSING.fullmatch(label) is not None
                self.n_unlabelled += missing
                self.n_unknown += not missing
                continue
            target = number * self.scale
            self._first = self._first if self.n_rows else target
            self.n_rows += 1
            away, error = target - self._first, target - mean * self.scale
            self._sum += away
            self._squares += away * away
            self._errors += error * error

    @property
    def r2(self) -> float | None:
        """Share of the variance explained; None where there is none, or no double holds it."""
        if not self.n_rows:
            return None
        spread = self._squares - self._sum * self._sum / self.n_rows
        return _finite(1 - self._errors / spread) if spread > 0 else None

    @property
    def rmse(self) -> float | None:
        """Root of the mean squared error; None without rows, or where no double holds it."""
        if not self.n_rows:
            return None
        return _finite(math.sqrt(self._errors / self.n_rows) / self.scale)


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
