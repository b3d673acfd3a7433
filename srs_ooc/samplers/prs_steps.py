"""Steps of Parametric Random Subspace: Adam on the projected gradient, and the set beta lies in."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FIRST, SECOND, LEAST = 0.9, 0.999, 1e-8
"""Adam's decay rates and what is added to its denominator (Kingma and Ba 2015)."""
BOUND = 0.5
"""A step leaves the models that it was computed from worth this share of what has them grown again
(:func:`shortened`)."""
_HALVINGS = 60
_MOST_HALVINGS = 30


@dataclass(frozen=True)
class Descent:
    """How probabilities are learnt.

    Attributes
    ----------
    n_models : int
        T.
    inclusion : float
        Probability of each feature at first.
    n_epochs : int
        Epochs at most; each takes a step for every fold.
    patience : int
        Epochs without a better objective after which it ends.
    rate : float
        Adam's learning rate.
    effective_share : float
        Models are grown again where their weights are worth fewer than this share of them.
    sparsity : float
        The penalty's factor, lambda.
    largest_mean : float
        Bound of the sum of probabilities.
    """

    n_models: int
    inclusion: float
    n_epochs: int
    patience: int
    rate: float
    effective_share: float
    sparsity: float
    largest_mean: float

    @property
    def least_worth(self) -> float:
        """Models that a step leaves a fold's models worth, at least."""
        return BOUND * self.effective_share * self.n_models


@dataclass
class Adam:
    """Adam's memory.

    Attributes
    ----------
    first, second : float64 (p,)
        Moving averages of the gradient and of its square.
    first_power, second_power : float
        Decay rates to the power of the steps taken, which correct for the start at 0.
    """

    first: NDArray[np.float64]
    second: NDArray[np.float64]
    first_power: float = 1.0
    second_power: float = 1.0

    def step(self, gradient: NDArray[np.float64], rate: float) -> NDArray[np.float64]:
        """Take the gradient in; return what is to be taken from beta. ``gradient`` is lost."""
        self.first *= FIRST
        self.first += (1.0 - FIRST) * gradient
        self.second *= SECOND
        gradient *= gradient
        gradient *= 1.0 - SECOND
        self.second += gradient
        self.first_power *= FIRST
        self.second_power *= SECOND
        out = self.second / (1.0 - self.second_power)
        np.sqrt(out, out=out)
        out += LEAST
        np.divide(self.first, out, out=out)
        out *= rate / (1.0 - self.first_power)
        return out


def shortened(
    beta: NDArray[np.float64],
    change: NDArray[np.float64],
    taken: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    keeps: Callable[[NDArray[np.float64]], bool],
) -> NDArray[np.float64]:
    """Return where a change of beta leads, halved until it keeps the models' worth; or beta.

    A step is computed from the very subsets that it weighs anew, so it moves their weights
    together, in proportion to p: beyond a thousand features one whole step would leave a few of
    the models with all the weight.

    Parameters
    ----------
    beta : float64 (p,)
        The probabilities.
    change : float64 (p,)
        What is to be taken from them; changed.
    taken : callable
        Where a change leads.
    keeps : callable
        Whether the models are worth enough there.
    """
    for _ in range(_MOST_HALVINGS):
        found = taken(change)
        if keeps(found):
            return found
        change *= 0.5
    return beta


def projected(beta: NDArray[np.float64], gradient: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the gradient without what points out of [0, 1]: there beta cannot go."""
    outward = ((beta <= 0.0) & (gradient > 0.0)) | ((beta >= 1.0) & (gradient < 0.0))
    return np.where(outward, 0.0, gradient)


def feasible(
    beta: NDArray[np.float64], candidates: NDArray[np.bool_] | None, largest: float, least: float
) -> NDArray[np.float64]:
    """Return the nearest probabilities whose sum is at most ``largest``.

    Parameters
    ----------
    beta : float64 (p,)
        Any numbers; changed.
    candidates : bool (p,) or None
        Others stay at 0; None where all may be drawn.
    largest : float
        Bound of the mean size of a subset.
    least : float
        What all are set to where none is above 0: nothing would be drawn any more.
    """
    np.clip(beta, 0.0, 1.0, out=beta)
    if candidates is not None:
        beta[~candidates] = 0.0
    total = float(beta.sum())
    if total == 0.0:
        beta[:] = least
        if candidates is not None:
            beta[~candidates] = 0.0
    elif total > largest:
        beta = _shifted(beta, largest)
    return beta


def _shifted(beta: NDArray[np.float64], largest: float) -> NDArray[np.float64]:
    """Return the projection on the numbers from 0 to 1 with a sum of ``largest``: all less one."""
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if float(np.maximum(beta - middle, 0.0).sum()) > largest:
            low = middle
        else:
            high = middle
    return np.maximum(beta - high, 0.0)
