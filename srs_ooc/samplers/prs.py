"""Parametric Random Subspace (Huynh-Thu and Geurts 2023, Algorithm S1).

Each feature has a probability of being in a subset. They are learnt by gradient descent on the
loss of the models' mean prediction, with models used again by importance weights until these are
worth too few of them. ``docs/methods/prs.md`` has the equations and what differs from the paper.
"""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.records import PAGE_ITEMS, Outcome, Pages, Saved, State, Step, Subspace, n_pages
from srs_ooc.base.seeds import Purpose, derive
from srs_ooc.samplers.base import PREDICTIONS
from srs_ooc.samplers.bernoulli import BernoulliSubsets
from srs_ooc.samplers.folds import Folds
from srs_ooc.samplers.grid import Smoothness
from srs_ooc.samplers.prs_gradient import effective_number, gradient
from srs_ooc.samplers.prs_loss import Truth
from srs_ooc.samplers.prs_steps import Adam, Descent, feasible, projected, shortened
from srs_ooc.samplers.prs_weights import Reweighing

GROWING, LEARNING, FINAL = "growing", "learning", "final"


class ParametricRandomSubspace:
    """Learns with which probability each feature is to be in a subset.

    Iteration by iteration it has T models grown for each fold; then it learns by steps until these
    models are worth too few, and has others grown; at last T models on all training rows.

    Parameters
    ----------
    descent : Descent
        How it learns.
    folds : Folds
        Rows held out.
    truth : Truth
        What the rows are.
    n_features : int
        p.
    capacity : int
        The most features of a subset.
    key : int
        64-bit key of the subsets.
    candidates : uint32, optional
        Features that may be drawn; default all.
    smoothness : Smoothness, optional
        Penalty on neighbours on a grid that differ; default none.

    Attributes
    ----------
    beta : float64 (p,)
        The probabilities as they are.
    alpha : float64 (p,)
        Those that the models at hand were drawn with.
    best : float64 (p,)
        Those of the best epoch so far.
    """

    name: ClassVar[str] = "prs"
    needs: ClassVar[frozenset[str]] = frozenset({PREDICTIONS})

    def __init__(
        self,
        descent: Descent,
        folds: Folds,
        truth: Truth,
        n_features: int,
        capacity: int,
        key: int,
        candidates: NDArray[np.uint32] | None = None,
        smoothness: Smoothness | None = None,
    ) -> None:
        self._descent, self._folds, self._truth = descent, folds, truth
        self._capacity, self._key = capacity, derive(key, Purpose.SUBSETS)
        self._may = None
        if candidates is not None:
            self._may = np.zeros(n_features, np.bool_)
            self._may[candidates] = True
        first = np.full(n_features, descent.inclusion)
        self.beta = feasible(first, self._may, descent.largest_mean, descent.inclusion)
        self.alpha, self.best = self.beta.copy(), self.beta.copy()
        self._reweighing = Reweighing(self.alpha, descent.n_models)
        self._adam = Adam(np.zeros(n_features), np.zeros(n_features))
        n_votes = self.n_folds * descent.n_models * folds.most_predicted
        self._votes = np.zeros(n_votes, np.float32)
        self._voted = np.ones(n_pages(n_votes), np.bool_)
        self._stepped, self._drawn, self._bettered = (
            np.ones(n_pages(n_features), np.bool_) for _ in range(3)
        )
        self._penalty: float | NDArray[np.float64] = descent.sparsity
        self._first_deal, self._smoothness = folds, smoothness
        self.phase, self.best_epoch, self.best_objective = GROWING, 0, np.inf
        self._first = self._n_grown = self.n_drawn = self.epoch = self._fold = 0
        self._begin_drawing(0)

    def _begin_drawing(self, deal: int) -> None:
        """Draw subsets by alpha, and deal the rows: what one deal alone teaches would fit it."""
        self._deal = deal
        shape = self._descent.n_models, self._capacity, self.n_folds
        self._subsets = BernoulliSubsets(self.alpha, derive(self._key, self.n_drawn), *shape)
        self._folds = self._first_deal.dealt(deal) if deal else self._first_deal

    @property
    def n_folds(self) -> int:
        """Folds, each with T models."""
        return len(self._folds.splits)

    @property
    def capacity(self) -> int:
        """The most features a subset has."""
        return self._capacity

    @property
    def n_kept(self) -> int:
        """None is kept on the way."""
        return 0

    @property
    def n_wanted(self) -> int:
        """Models of the set that is being grown, or was grown last."""
        return self._descent.n_models * (1 if self.phase == FINAL else self.n_folds)

    def propose(self, iteration: int, key: int) -> Subspace:
        """Return the subset of a model: T of the first fold come first, then T of the next."""
        fold, t = divmod((iteration - self._first) % self.n_wanted, self._descent.n_models)
        is_final = self.phase == FINAL
        split = self._folds.whole if is_final else self._folds.splits[fold]
        return Subspace(self._subsets.draw(fold, t), split=split, in_ensemble=is_final)

    def version(self, iteration: int) -> int:
        """Return how often subsets were drawn anew."""
        return self.n_drawn

    def done(self, iteration: int) -> bool:
        """Return whether the models on all training rows are there."""
        return self.phase == FINAL and self._n_grown == self.n_wanted

    def progress(self) -> Step:
        """Return the epochs, of which the models at the end count as the last."""
        models = f"{self._first + self._n_grown:,} models"
        return Step(models, self.epoch, self._descent.n_epochs + 1, unit="epochs")

    def absorb(self, iteration: int, outcome: Outcome) -> None:
        """Take the votes of a model; the last one of the set begins the learning."""
        if self.phase == GROWING:
            assert outcome.predictions is not None
            fold, t = divmod(self._n_grown, self._descent.n_models)
            rows = self._folds.splits[fold].predicted
            self._votes_of(fold)[t] = self._truth.votes(outcome.predictions[0], rows)
            start = self._n_grown * self._folds.most_predicted
            last = start + len(rows) - 1
            self._voted[start // PAGE_ITEMS : last // PAGE_ITEMS + 1] = True
        self._n_grown += 1
        if self.phase == GROWING and self._n_grown == self.n_wanted:
            self.phase = LEARNING

    def _votes_of(self, fold: int) -> NDArray[np.float32]:
        """Return the votes of a fold's models, (T, n_predicted); a view."""
        n_models, most = self._descent.n_models, self._folds.most_predicted
        votes = self._votes.reshape(self.n_folds, n_models, most)
        of_fold: NDArray[np.float32] = votes[fold, :, : len(self._folds.splits[fold].predicted)]
        return of_fold

    def step(self) -> bool:
        """Take one step by one fold's rows; after the last fold look at what it came to."""
        if self.phase != LEARNING:
            return False
        self._descend(self._fold)
        self._fold += 1
        if self._fold == self.n_folds:
            self._fold = 0
            self._end_epoch()
        return True

    def _weights(self, fold: int, beta: NDArray[np.float64]) -> NDArray[np.float64]:
        return self._reweighing.weights(self._subsets.of_fold(fold), beta)

    def _descend(self, fold: int) -> None:
        weights = self._weights(fold, self.beta)
        if effective_number(weights) < self._descent.least_worth:
            return  # other folds' steps took what these models are worth: nothing to learn
        rows = self._folds.splits[fold].predicted[self._folds.own[fold]]
        votes = self._votes_of(fold)[:, self._folds.own[fold]].astype(np.float64)
        mean = (weights[:, None] * votes).sum(0) / self._descent.n_models
        slopes = (self._truth.slopes(mean, rows) * votes).sum(1)
        by_beta = gradient(self._subsets.of_fold(fold), self.beta, weights, slopes)
        by_beta += self._penalty
        if self._smoothness is not None:
            by_beta += self._smoothness.slopes(self.beta)
        change = self._adam.step(projected(self.beta, by_beta), self._descent.rate)
        self.beta = self._bounded(fold, change)
        self._stepped[:] = True

    def _bounded(self, fold: int, change: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return beta less the change, shortened so that the fold's models keep their worth."""

        def taken(change: NDArray[np.float64]) -> NDArray[np.float64]:
            bounds = self._descent.largest_mean, 1.0 / self._descent.n_models
            return feasible(self.beta - change, self._may, *bounds)

        def keeps(beta: NDArray[np.float64]) -> bool:
            return effective_number(self._weights(fold, beta)) >= self._descent.least_worth

        return shortened(self.beta, change, taken, keeps)

    def _end_epoch(self) -> None:
        """Keep beta if it is the best so far; go on, have models grown anew, or end."""
        worth, objective = self._looked()
        self.epoch += 1
        if objective < self.best_objective:
            self.best_objective, self.best_epoch = objective, self.epoch
            self._keep_best()
        waited = self.epoch - self.best_epoch
        if self.epoch == self._descent.n_epochs or waited >= self._descent.patience:
            self._draw_anew(FINAL, self.best)
        elif worth < self._descent.effective_share * self._descent.n_models:
            self._draw_anew(GROWING, self.beta)

    def _looked(self) -> tuple[float, float]:
        """Return how many models the weights are worth, and the objective; means of the folds.

        The objective is that of T models, as many as there are at the end, not of all K T.
        """
        worth = loss = 0.0
        for fold in range(self.n_folds):
            weights = self._weights(fold, self.beta)
            worth += effective_number(weights) / self.n_folds
            votes = self._votes_of(fold)[:, self._folds.held_out[fold]]
            mean = (weights[:, None] * votes).sum(0) / self._descent.n_models
            loss += self._truth.loss(mean, self._folds.validation) / self.n_folds
        if self._smoothness is not None:
            loss += self._smoothness.value(self.beta)
        return worth, loss + self._descent.sparsity * float(self.beta.sum())

    def _keep_best(self) -> None:
        self.best[:] = self.beta
        self._bettered[:] = True

    def _draw_anew(self, phase: str, probabilities: NDArray[np.float64]) -> None:
        self._first += self._n_grown
        self._n_grown, self.phase = 0, phase
        self.n_drawn += 1
        self.alpha[:] = probabilities
        self._reweighing.forget()
        self._drawn[:] = True
        self._begin_drawing(self.n_drawn)

    def _large(self) -> dict[str, Pages]:
        return {
            "beta": Pages(self.beta, self._stepped),
            "first": Pages(self._adam.first, self._stepped),
            "second": Pages(self._adam.second, self._stepped),
            "alpha": Pages(self.alpha, self._drawn),
            "score": Pages(self.best, self._bettered),
            "votes": Pages(self._votes, self._voted),
        }

    def state(self) -> State:
        """Return what was learnt, and where the work stands."""
        return State(pages=self._large(), facts=self.facts())

    def facts(self) -> dict[str, Any]:
        """Return where the work stands, JSON-ready."""
        return {
            "phase": self.phase,
            "drawn": self.n_drawn,
            "deal": self._deal,
            "begun": self._first,
            "grown": self._n_grown,
            "epoch": self.epoch,
            "fold": self._fold,
            "best_epoch": self.best_epoch,
            "best_objective": None if self.best_epoch == 0 else self.best_objective,
            "first_power": self._adam.first_power,
            "second_power": self._adam.second_power,
        }

    def restore(self, saved: Saved) -> None:
        """Take up the work where it was committed."""
        facts = saved.facts
        if facts is None:
            return
        for name, pages in self._large().items():
            saved.fill(name, pages.array)
            pages.changed[:] = False
        self._reweighing.forget()
        self.phase, self.n_drawn = str(facts["phase"]), int(facts["drawn"])
        self._first, self._n_grown = int(facts["begun"]), int(facts["grown"])
        self.epoch, self._fold = int(facts["epoch"]), int(facts["fold"])
        # An older ledger has no deal; its objective was of all K T models, no bound for that of T.
        if facts["best_epoch"] and ("deal" in facts or self.phase == FINAL):
            self.best_epoch = int(facts["best_epoch"])
            self.best_objective = float(facts["best_objective"])
        self._adam.first_power = float(facts["first_power"])
        self._adam.second_power = float(facts["second_power"])
        self._begin_drawing(int(facts.get("deal", 0)))  # ledgers without it had one deal
