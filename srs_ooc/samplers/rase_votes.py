"""What the models of a round of RaSE say together, by votes, and how often they are wrong."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.records import RowSplit
from srs_ooc.samplers.prs_loss import Truth

HALF, TRAINING = "half", "training"
"""Share of votes above which the second of two classes is said: 1/2, or the one that errs least."""


class Votes:
    """Sums up the votes of models fitted on all training rows.

    Of a regression the mean prediction counts; of classes the most votes, or, of two, whether the
    second one's share is above a cutoff. Of equally likely classes a model votes for the first.

    Parameters
    ----------
    truth : Truth
        What the rows are.
    n_classes : int
        1 for a regression.
    training, validation : int32
        Rows fitted on; rows held out, ascending.
    cutoff : {'half', 'training'}
        How the cutoff of two classes is chosen.

    Attributes
    ----------
    split : RowSplit
        Rows to fit on and to predict.
    held_out : bool (n_predicted,)
        Which of those it predicts are not fitted on.
    sums : float64 (n_predicted, n_classes)
        Votes, or summed predictions, so far: whole numbers where there are classes.
    """

    def __init__(
        self,
        truth: Truth,
        n_classes: int,
        training: NDArray[np.int32],
        validation: NDArray[np.int32],
        cutoff: str = HALF,
    ) -> None:
        self._truth, self._n_classes, self._cutoff = truth, n_classes, cutoff
        predicted = validation
        if cutoff == TRAINING:
            predicted = np.sort(np.concatenate([training, validation]))
        self.split = RowSplit(training, predicted)
        self.held_out = np.isin(predicted, validation)
        self.sums = np.zeros((len(predicted), n_classes))
        self._n_models = 0

    def begin(self) -> None:
        """Forget the votes of an earlier round."""
        self.sums[:] = 0.0
        self._n_models = 0

    def add(self, predictions: NDArray[np.float32]) -> None:
        """Count the votes of a model, from its (n_predicted, n_outputs) predictions."""
        self._n_models += 1
        if self._n_classes == 1:
            self.sums[:, 0] += self._truth.votes(predictions, self.split.predicted)
        else:
            self.sums[np.arange(len(self.sums)), predictions.argmax(1)] += 1.0

    def loss(self) -> tuple[float | None, float]:
        """Return the loss on the rows held out, None where there are none, and the cutoff."""
        cutoff = self._best_cutoff() if self._cutoff == TRAINING else 0.5
        if not self.held_out.any():
            return None, cutoff
        rows = self.split.predicted[self.held_out]
        if self._n_classes == 1:
            return self._truth.loss(self.sums[self.held_out, 0] / self._n_models, rows), cutoff
        return self._error(self.held_out, cutoff), cutoff

    def _said(self, which: NDArray[np.bool_], cutoff: float) -> NDArray[np.intp]:
        if self._n_classes == 2:
            above: NDArray[np.bool_] = self.sums[which, 1] > cutoff * self._n_models
            return above.astype(np.intp)
        most: NDArray[np.intp] = self.sums[which].argmax(1)
        return most

    def _error(self, which: NDArray[np.bool_], cutoff: float) -> float:
        rows = self.split.predicted[which]
        weights = self._truth.weights[rows]
        wrong = self._said(which, cutoff) != self._truth.labels[rows]
        return float(weights[wrong].sum() / weights.sum())

    def _best_cutoff(self) -> float:
        """Return the cutoff that errs least on the training rows: of equal ones, next to half.

        Cutoffs lie midway between two numbers of votes.
        """
        cutoffs = (np.arange(self._n_models) + 0.5) / self._n_models
        cutoffs = cutoffs[np.argsort(np.abs(cutoffs - 0.5), kind="stable")]
        errors = [self._error(~self.held_out, cutoff) for cutoff in cutoffs.tolist()]
        return float(cutoffs[int(np.argmin(errors))])

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what was counted, for the ledger."""
        return {"votes": self.sums}

    def restore(self, arrays: dict[str, NDArray[Any]], n_models: int) -> None:
        """Take back what was counted of so many models."""
        self.sums[:] = arrays["votes"]
        self._n_models = n_models
