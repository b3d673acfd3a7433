"""All targets of a network under one penalty (Huynh-Thu and Geurts 2023, Eq. 21)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.records import Saved, State
from srs_ooc.samplers.prs import GROWING, ParametricRandomSubspace


class JointTarget(ParametricRandomSubspace):
    """One target: it learns as by itself, but the epochs are counted and judged for all.

    Attributes
    ----------
    worth, loss : float
        After an epoch: models that the weights are worth, and the loss on the validation rows.
    """

    worth = loss = 0.0

    @property
    def begins_epoch(self) -> bool:
        """Whether the next step is an epoch's first."""
        return self._fold == 0

    @property
    def n_begun(self) -> int:
        """Models grown so far."""
        return self._first + self._n_grown

    def penalise(self, slopes: NDArray[np.float64]) -> None:
        """Take the derivative of the joint penalty for the next step, float64 (p,)."""
        self._penalty = slopes + self._descent.sparsity

    def keep_best(self) -> None:
        """Keep the probabilities as those of the best epoch."""
        self._keep_best()

    def renew(self) -> None:
        """Have models grown again if the weights are worth too few."""
        if self.worth < self._descent.effective_share * self._descent.n_models:
            self._draw_anew(GROWING, self.beta)

    def _end_epoch(self) -> None:
        self.worth, self.loss = self._looked()
        self.epoch += 1


class JointDescent:
    """Minimises Eq. 21, times the number of targets, by steps of all targets.

    With b_jg the probability of regulator j for target g of G, and L_g the loss of target g, it is
    ``sum of L_g + G lambda sum over j of sqrt(sum over g of b_jg^2)``. A target's step takes the
    derivative of the second term, ``G lambda b_jg / sqrt(sum over g of b_jg^2)``, from what all
    targets were before the step: the order of targets within it plays no part.

    Parameters
    ----------
    targets : list of JointTarget
        All that can be learnt.
    places : list of int64 arrays
        Of each target, where its regulators are among all.
    n_regulators : int
        All.
    strength : float
        lambda.
    n_epochs, patience : int
        Epochs at most; epochs without a better objective after which it ends.
    """

    def __init__(
        self,
        targets: list[JointTarget],
        places: list[NDArray[np.int64]],
        n_regulators: int,
        strength: float,
        n_epochs: int,
        patience: int,
    ) -> None:
        self.targets, self._places, self._n_regulators = targets, places, n_regulators
        self._strength, self._n_epochs, self._patience = strength, n_epochs, patience
        self.epoch = self.best_epoch = 0
        self.best_objective = np.inf
        self.is_done = not targets

    def step(self) -> None:
        """Take one step by one fold's rows in all targets, none of which is being grown."""
        norms = self._norms()
        factor = len(self.targets) * self._strength
        for target, places in zip(self.targets, self._places, strict=True):
            own = norms[places]
            slopes = np.divide(target.beta, own, out=np.zeros(len(own)), where=own > 0)
            target.penalise(factor * slopes)
            target.step()
        if self.targets[0].begins_epoch:
            self._end_epoch()

    def _norms(self) -> NDArray[np.float64]:
        squares = np.zeros(self._n_regulators)
        for target, places in zip(self.targets, self._places, strict=True):
            squares[places] += target.beta * target.beta
        return np.sqrt(squares)

    def _end_epoch(self) -> None:
        self.epoch += 1
        loss = sum(target.loss for target in self.targets) / len(self.targets)
        objective = loss + self._strength * float(self._norms().sum())
        if objective < self.best_objective:
            self.best_objective, self.best_epoch = objective, self.epoch
            for target in self.targets:
                target.keep_best()
        waited = self.epoch - self.best_epoch
        self.is_done = self.epoch == self._n_epochs or waited >= self._patience
        for target in self.targets:
            target.renew()

    def weights(self, number: int) -> NDArray[np.float64]:
        """Return the weight of each regulator for a target, float64 (n_regulators,)."""
        out = np.zeros(self._n_regulators)
        out[self._places[number]] = self.targets[number].best
        return out

    def state(self) -> State:
        """Return where the work stands; the targets have states of their own."""
        facts: dict[str, Any] = {
            "epoch": self.epoch,
            "best_epoch": self.best_epoch,
            "best_objective": self.best_objective if self.best_epoch else None,
            "done": self.is_done,
        }
        return State(facts=facts)

    def restore(self, saved: Saved) -> None:
        """Take up the work where it was committed."""
        if saved.facts is None:
            return
        self.epoch, self.best_epoch = int(saved.facts["epoch"]), int(saved.facts["best_epoch"])
        if self.best_epoch:
            self.best_objective = float(saved.facts["best_objective"])
        self.is_done = bool(saved.facts["done"])
