"""How good predictions are, where the target is there."""

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

SMALLEST = 1e-15
"""A probability below this counts as this in the log-loss."""


@dataclass
class Scores:
    """Accuracy and log-loss of the rows seen so far.

    A row whose label is none of the training classes counts as wrong, with probability 0.

    Parameters
    ----------
    classes : list of str
        The training classes.
    """

    classes: list[str]
    n_rows: int = 0
    n_right: int = 0
    n_unknown: int = 0
    r2 = rmse = None
    _loss: float = 0.0
    _codes: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._codes = {label: code for code, label in enumerate(self.classes)}

    def add(self, labels: list[str], predicted: list[int], shares: NDArray[np.float64]) -> None:
        """Count some rows: labels, predicted classes, probabilities (n_rows, n_classes)."""
        for row, (label, guess) in enumerate(zip(labels, predicted, strict=True)):
            code = self._codes.get(label, -1)
            probability = float(shares[row, code]) if code >= 0 else 0.0
            self._loss -= math.log(max(probability, SMALLEST))
            self.n_right += guess == code
            self.n_unknown += code < 0
        self.n_rows += len(labels)

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
    """R2 and root mean squared error of the rows seen so far; rows without a number are left out.

    Sums are taken of differences from the first target, so that a large offset costs no digits.
    """

    n_rows: int = 0
    n_unknown: int = 0
    accuracy = log_loss = None
    _first: float = 0.0
    _sums: NDArray[np.float64] = field(default_factory=lambda: np.zeros(3))

    def add(self, labels: list[str], predicted: list[int], means: NDArray[np.float64]) -> None:
        """Count some rows: targets as texts, and mean targets (n_rows, 1)."""
        for label, mean in zip(labels, means[:, 0].tolist(), strict=True):
            target = _number(label)
            if target is None:
                self.n_unknown += 1
                continue
            self._first = self._first if self.n_rows else target
            self.n_rows += 1
            away = target - self._first
            self._sums += away, away * away, (target - mean) ** 2

    @property
    def r2(self) -> float | None:
        """Share of the variance explained; None where there is none."""
        if not self.n_rows:
            return None
        spread = float(self._sums[1] - self._sums[0] ** 2 / self.n_rows)
        return 1 - float(self._sums[2]) / spread if spread > 0 else None

    @property
    def rmse(self) -> float | None:
        """Root of the mean squared error; None without rows."""
        return math.sqrt(self._sums[2] / self.n_rows) if self.n_rows else None


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
