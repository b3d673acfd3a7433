"""What Parametric Random Subspace minimises: the loss of the mean prediction of its models."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from srs_ooc.native.numerics import logs
from srs_ooc.trees.response import Response

LEAST_SHARE = 1e-6
"""Least share of the true class, so that its logarithm is finite."""


@dataclass(frozen=True)
class Truth:
    """What the rows of a run are, for the loss.

    A model's *vote* for a row is the number that its loss depends on: 1 where it says the row's
    class (the likeliest, of equal ones the first) and 0 elsewhere, as the models at the end vote;
    or the predicted number less the mean of the training rows. Expectations under new
    probabilities are (1/T) sum of w f, so what is centred does not depend on the sum of w.

    Attributes
    ----------
    labels : int32 (n_rows,)
        Class codes.
    numbers : float64 (n_rows,) or None
        The target less its mean, in a regression; in the units of the response.
    weights : float64 (n_rows,)
        Of the rows.
    mean : float
        What is taken from predicted numbers, whose zero is the response's center.
    """

    labels: NDArray[np.int32]
    numbers: NDArray[np.float64] | None
    weights: NDArray[np.float64]
    mean: float

    @staticmethod
    def of(response: Response, training: NDArray[np.int32]) -> "Truth":
        """Return the truth of a response, centred by the mean of the ``training`` rows."""
        weights = np.ones(len(response.labels))
        if response.n_channels > int(response.is_regression):
            weights = response.channels[0].astype(np.float64)
        if response.scale is None:
            return Truth(response.labels, None, weights, 0.0)
        numbers = response.channels[-1] / weights / response.scale
        some = weights[training]
        mean = float((some * numbers[training]).sum()) / float(some.sum())
        return Truth(response.labels, numbers - mean, weights, mean)

    def votes(
        self, predictions: NDArray[np.float32], rows: NDArray[np.int32]
    ) -> NDArray[np.float32]:
        """Return the votes of a model; float32 (n,), from its (n, n_outputs) predictions."""
        if self.numbers is not None:
            numbers = predictions[:, 0].astype(np.float64) - self.mean
            return numbers.astype(np.float32)
        right: NDArray[np.bool_] = predictions.argmax(1) == self.labels[rows]
        return right.astype(np.float32)

    def slopes(
        self, mean_votes: NDArray[np.float64], rows: NDArray[np.int32]
    ) -> NDArray[np.float64]:
        """Return the derivative of the mean loss of ``rows`` by each row's mean vote."""
        weights: NDArray[np.float64] = self.weights[rows] / self.weights[rows].sum()
        slopes = -1.0 / np.clip(mean_votes, LEAST_SHARE, 1.0)
        if self.numbers is not None:
            slopes = 2.0 * (mean_votes - self.numbers[rows])
        weights *= slopes
        return weights

    def loss(self, mean_votes: NDArray[np.float64], rows: NDArray[np.int32]) -> float:
        """Return the mean loss of ``rows``: squared error, or cross-entropy."""
        weights = self.weights[rows] / self.weights[rows].sum()
        if self.numbers is not None:
            errors = mean_votes - self.numbers[rows]
            return float((weights * (errors * errors)).sum())
        return -float((weights * logs(np.clip(mean_votes, LEAST_SHARE, 1.0))).sum())
