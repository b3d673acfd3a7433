"""How much models count under other probabilities than those that they were drawn with."""

import numpy as np
from numpy.typing import NDArray

from srs_ooc.samplers.prs_gradient import Subsets, log_ratios, weights_by

_KEPT = 1 << 16
"""Features up to which what was computed for beta is kept for the next fold."""


class Reweighing:
    """Weights of models drawn with alpha (Eq. 15); what all folds share is computed once.

    Parameters
    ----------
    alpha : float64 (p,)
        The probabilities that models are drawn with; :meth:`forget` when they change.
    n_models : int
        T.
    """

    def __init__(self, alpha: NDArray[np.float64], n_models: int) -> None:
        self._alpha, self._n_models = alpha, n_models
        self._kept: tuple[NDArray[np.float64], tuple[float, NDArray[np.float64]]] | None = None

    def forget(self) -> None:
        """Forget what was computed: alpha, or a beta that was asked about, has changed."""
        self._kept = None

    def weights(self, subsets: Subsets, beta: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return ``w_t`` of a fold's models under ``beta``, float64 (T,).

        ``beta`` must not change in place before :meth:`forget`.
        """
        if self._kept is None or self._kept[0] is not beta:
            ratios = log_ratios(beta, self._alpha)
            if len(beta) > _KEPT:
                return weights_by(subsets, self._n_models, ratios)
            self._kept = beta, ratios
        return weights_by(subsets, self._n_models, self._kept[1])
