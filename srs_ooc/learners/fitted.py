"""One estimator fitted on some rows, as a function of others."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import UsageError
from srs_ooc.learners.makers import EstimatorMaker, unchecked

LARGEST_LOSS = 16.0
"""What the loss of a row counts at most; that of classes is at most 1."""


@dataclass(frozen=True)
class Target:
    """What rows are to be predicted as.

    Attributes
    ----------
    values : int32 or float64 (n_rows,)
        Class codes, or numbers.
    n_classes : int
        1 for numbers.
    """

    values: NDArray[np.int32] | NDArray[np.float64]
    n_classes: int

    @property
    def is_regression(self) -> bool:
        """Whether it is numbers."""
        return self.n_classes == 1

    def constant(self, fitted: NDArray[np.integer], n_held: int) -> NDArray[np.float64]:
        """Return the prediction of no model: the class shares of some rows, or their mean."""
        known = self.values[fitted]
        if self.is_regression:
            return np.full((n_held, 1), known.mean())
        shares = np.bincount(known.astype(np.intp), minlength=self.n_classes) / len(known)
        return np.tile(shares, (n_held, 1))

    def losses(
        self, predicted: NDArray[np.float64], rows: NDArray[np.integer]
    ) -> NDArray[np.float64]:
        """Return the loss of each row; float64 (n_held,).

        Half the Brier score, ``1/2 sum over k of (share_k - [y = k])^2``, which is the error rate
        of a model that gives whole votes; of numbers the squared error over the variance of all.
        """
        known = self.values[rows]
        if self.is_regression:
            off = (predicted[:, 0] - known) / self.values.std()
            found = off * off
        else:
            off = predicted.copy()
            off[np.arange(len(rows)), known.astype(np.intp)] -= 1.0
            found = np.square(off).sum(axis=1) / 2
        losses: NDArray[np.float64] = np.nan_to_num(found, nan=LARGEST_LOSS)
        return np.minimum(losses, LARGEST_LOSS)

    def errors(
        self, predicted: NDArray[np.float64], rows: NDArray[np.integer]
    ) -> NDArray[np.float64]:
        """Return the squared error of each row, or 1 where its class is not the likeliest.

        Of equally likely classes the first is said.
        """
        known = self.values[rows]
        if self.is_regression:
            off = predicted[:, 0] - known
            squared: NDArray[np.float64] = np.nan_to_num(off * off, nan=np.inf)
            return squared
        wrong: NDArray[np.float64] = (predicted.argmax(1) != known).astype(np.float64)
        return wrong


class FittedModel:
    """An estimator fitted on standardised rows.

    Parameters
    ----------
    maker : EstimatorMaker
        Of what kind the estimator is.
    target : Target
        Of all rows.
    columns : float64 (n_fitted, n_columns)
        The rows fitted on.
    fitted : int (n_fitted,)
        Which they are.
    key : int
        64-bit key of what the estimator draws at random, where its parameters do not say.

    Raises
    ------
    UsageError
        If the estimator cannot be fitted.
    """

    def __init__(
        self,
        maker: EstimatorMaker,
        target: Target,
        columns: NDArray[np.float64],
        fitted: NDArray[np.integer],
        key: int,
    ) -> None:
        self._model, self._target, self._fitted = maker.model, target, fitted
        known = target.values[fitted]
        self._center, self._scale = 0.0, 1.0
        self._estimator: Any = None
        if columns.shape[1] == 0 or bool((known == known[0]).all()):
            return  # nothing to learn by, or nothing to tell apart
        if target.is_regression:
            self._center, self._scale = float(known.mean()), float(known.std()) or 1.0
            known = (known - self._center) / self._scale
        try:
            self._estimator = maker.fitted(columns, known, key)
        except Exception as error:  # whatever a library raises
            raise _refused(maker.model, "fitted", error) from error

    def predict(self, columns: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return class shares, or one number, of each row; float64 (n_held, n_classes)."""
        if self._estimator is None or len(columns) == 0:  # which libraries refuse
            return self._target.constant(self._fitted, len(columns))
        try:
            with unchecked():
                return self._predicted(columns)
        except Exception as error:
            raise _refused(self._model, "asked to predict", error) from error

    def _predicted(self, columns: NDArray[np.float64]) -> NDArray[np.float64]:
        estimator, n_classes = self._estimator, self._target.n_classes
        if self._target.is_regression:
            said = np.asarray(estimator.predict(columns), np.float64).reshape(-1, 1)
            return self._center + self._scale * said
        shares = np.zeros((len(columns), n_classes))
        if hasattr(estimator, "predict_proba"):
            shares[:, estimator.classes_] = estimator.predict_proba(columns)
        else:
            shares[np.arange(len(columns)), estimator.predict(columns)] = 1.0
        return shares


def _refused(model: str, what: str, error: Exception) -> UsageError:
    return UsageError(
        f"--model {model}: expected an estimator that can be {what} on numbers, found that it "
        f"cannot: {type(error).__name__}: {str(error)[:300].rstrip('.')}. Change --model-params, "
        "--model-folds or --subspace-size, or choose another model."
    )
