"""Estimators of one kind made and fitted again and again: what never changes is looked up once."""

from copy import deepcopy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.seeds import derive
from srs_ooc.learners.import_paths import make_estimator

_SEEDS = 1 << 31


class EstimatorMaker:
    """Fits estimators of one kind with one set of parameters.

    Parameters
    ----------
    model : str
        A short name or an import path.
    params : dict
        What the constructor is given.
    is_regression : bool
        Whether it is to predict numbers.

    Raises
    ------
    UsageError
        If there is no such estimator; see :func:`make_estimator`.
    """

    def __init__(self, model: str, params: dict[str, Any], *, is_regression: bool) -> None:
        first = make_estimator(model, params, is_regression=is_regression)
        self.model, self._kind, self._params = model, type(first), params
        given = sorted(first.get_params().items(), key=lambda item: str(item[0]))
        self._unseeded = [
            (place, name)
            for place, (name, value) in enumerate(given)
            if name.split("__")[-1] == "random_state" and value is None
        ]
        self._is_checked = False

    def fitted(self, columns: NDArray[np.float64], known: NDArray[Any], key: int) -> Any:
        """Return a new estimator fitted on some rows.

        The first of a kind has its parameters checked by scikit-learn; for small models that
        takes as long as the fit.

        Parameters
        ----------
        columns : float64 (n_rows, n_columns)
            Finite.
        known : int32 or float64 (n_rows,)
            What the rows are.
        key : int
            64-bit key of what the estimator draws at random, where its parameters do not say.
        """
        estimator = self._made(key)
        if not self._is_checked:
            estimator.fit(columns, known)
            self._is_checked = True
            return estimator
        with unchecked():
            return estimator.fit(columns, known)

    def _made(self, key: int) -> Any:
        estimator = self._kind(**deepcopy(self._params))
        for place, name in self._unseeded:
            estimator.set_params(**{name: derive(key, place) % _SEEDS})
        return estimator


def unchecked() -> Any:
    """Return a context in which scikit-learn checks neither parameters nor for finite numbers."""
    from sklearn import config_context

    return config_context(assume_finite=True, skip_parameter_validation=True)
