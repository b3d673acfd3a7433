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
