"""Parametric Random Subspace (Huynh-Thu and Geurts 2023, Algorithm S1).

Each feature has a probability of being in a subset. They are learnt by gradient descent on the
loss of the models' mean prediction, with models used again by importance weights until these are
worth too few of them. ``docs/methods/prs.md`` has the equations and what differs from the paper.
"""

from collections.abc import Mapping
from functools import partial
from math import ceil, sqrt
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import UsageError
from srs_ooc.base.options import Number, Params, Share, Whole, exact_share, option
from srs_ooc.base.records import PAGE_ITEMS, Outcome, Pages, Saved, State, Step, Subspace, n_pages
from srs_ooc.base.seeds import Purpose, derive
from srs_ooc.samplers.base import (
    IMPORTANCE,
    PREDICTIONS,
    Ensemble,
    Ground,
    Method,
    Sampler,
    Unbounded,
)
from srs_ooc.samplers.held_out import (
    Folds,
    Screened,
    ScreenParams,
    folds_for,
    folds_option,
    models_option,
    validation_share_option,
)
from srs_ooc.samplers.prs_math import NBYTES as GRID_NBYTES
from srs_ooc.samplers.prs_math import (
    Adam,
    BernoulliSubsets,
    Descent,
    Grid,
    GridSize,
    Truth,
    effective_number,
    feasible,
    gradient,
    log_ratios,
    projected,
    shortened,
    size_of,
    weights_by,
)

GROWING, LEARNING, FINAL = "growing", "learning", "final"
MOST_RATIOS = 1 << 16
"""Features up to which what was computed for beta is kept for the next fold."""


class ParametricRandomSubspace(Unbounded):
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
    smoothness : Grid, optional
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
        smoothness: Grid | None = None,
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
        self._ratios: tuple[NDArray[np.float64], tuple[float, NDArray[np.float64]]] | None = None
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
        """Return ``w_t`` of a fold's models under ``beta``; what all folds share, computed once.

        ``beta`` does not change in place before the ratios are forgotten.
        """
        if self._ratios is None or self._ratios[0] is not beta:
            self._ratios = beta, log_ratios(beta, self.alpha)
        found = weights_by(self._subsets.of_fold(fold), self._descent.n_models, self._ratios[1])
        if len(beta) > MOST_RATIOS:
            self._ratios = None
        return found

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
            self.keep_best()
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

    def keep_best(self) -> None:
        """Keep the probabilities as those of the best epoch."""
        self.best[:] = self.beta
        self._bettered[:] = True

    def _draw_anew(self, phase: str, probabilities: NDArray[np.float64]) -> None:
        self._first += self._n_grown
        self._n_grown, self.phase = 0, phase
        self.n_drawn += 1
        self.alpha[:] = probabilities
        self._ratios = None
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
        facts = {
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
        return State(pages=self._large(), facts=facts)

    def restore(self, saved: Saved) -> None:
        """Take up the work where it was committed."""
        facts = saved.facts
        if facts is None:
            return
        for name, pages in self._large().items():
            saved.fill(name, pages.array)
            pages.changed[:] = False
        self._ratios = None
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


# Options of learning probabilities by descent, for one target of a run or for many.

FEATURE_NBYTES = 104
"""Bytes for each feature, beyond those that every run may keep (law 11): beta, alpha, the best
epoch's probabilities and two moments stay, sums and terms of a step come and go."""
SPREADS = 6
"""Standard deviations of a subset's size that q leaves room for."""

COLLAPSE = 1000
"""Features beyond which one whole step spends what the models are worth."""


class DescentParams(Params):
    """How probabilities are learnt; defaults are the paper's."""

    models: int = models_option()
    inclusion: str = option(
        Share(), "Probability of each feature at first.", default="0.05", metavar="SHARE"
    )
    epochs: int = option(
        Whole(1, 1_000_000), "Epochs at most; each takes a step for every fold.", default=3000,
        metavar="N",
    )  # fmt: skip
    patience: int | None = option(
        Whole(1),
        "End after so many epochs without a better objective on the validation rows.",
        default_text="all epochs, as in the paper",
        metavar="N",
    )
    learning_rate: str = option(
        Number(), "Of Adam: about how far a probability moves in a step.", default="0.001",
        metavar="RATE",
    )  # fmt: skip
    folds: int = folds_option()
    effective_share: str = option(
        Share(),
        "Grow models again where their importance weights are worth fewer than this share of them.",
        default="0.9",
        metavar="SHARE",
    )
    sparsity: str = option(
        Number(),
        "Penalty on the mean size of a subset: times the sum of probabilities, added to the loss.",
        default="0.0",
        metavar="LAMBDA",
    )
    validation_share: str = validation_share_option()

    @classmethod
    def settle(cls, given: Mapping[str, Any], table: Any) -> Self:
        """Settle the options; where rows are named to be held out, no share of them is."""
        named = {"validation_share": "0"} if "validation" in given else {}
        params = super().settle(dict(given) | named, table)
        if not 0 < exact_share(params.inclusion) < 1:
            raise UsageError(
                f"--inclusion: expected a number between 0 and 1, found {params.inclusion}. "
                "At 0 nothing would ever be drawn."
            )
        if not named and not 0 < exact_share(params.validation_share) <= exact_share("0.5"):
            raise UsageError(
                "--validation-share: expected a number above 0 and at most 0.5, found "
                f"{params.validation_share}. Or name rows with --validation-rows."
            )
        return params

    def check(self, n_rows: int, n_candidates: int, subspace_size: int) -> None:
        """Check that the first subsets fit q, and that each fold has rows."""
        largest = largest_mean(subspace_size, n_candidates)
        if float(self.inclusion) * n_candidates > largest:
            raise UsageError(
                f"--inclusion: expected at most {largest / n_candidates:.3g} with subspaces of "
                f"{subspace_size} of {n_candidates} features, found {self.inclusion}: subsets of "
                "about so many would not fit. Raise --subspace-size or --memory-mb, or lower it."
            )
        n_training = n_rows - round(float(self.validation_share) * n_rows)
        if n_training < 2 * self.folds:
            raise UsageError(
                f"--folds: expected at least two rows for each fold, found {self.folds} folds of "
                f"{n_training} rows. Choose fewer folds."
            )

    def slow_steps(self, n_features: int, remedy: str) -> tuple[str, ...]:
        """Say so, and what to do, where importance weights would collapse."""
        if n_features <= COLLAPSE:
            return ()
        return (
            f"--method prs: with {n_features:,} features (more than {COLLAPSE:,}) steps of the "
            f"whole learning rate would leave few models with all the weight. They are shortened "
            f"so that T_eff stays above {float(self.effective_share) / 2:g} T, and about "
            f"{self.models * self.folds:,} models are grown at each epoch: slow. {remedy}",
        )

    def descent(self, n_features: int, subspace_size: int) -> Descent:
        """Return how the probabilities of so many features are learnt, in subsets of q at most."""
        return Descent(
            self.models,
            float(self.inclusion),
            self.epochs,
            self.epochs if self.patience is None else self.patience,
            float(self.learning_rate),
            float(self.effective_share),
            float(self.sparsity),
            largest_mean(subspace_size, n_features),
        )


def largest_mean(subspace_size: int, n_candidates: int) -> float:
    """Return the largest sum of probabilities whose subsets fit q, but for a chance below 1e-8.

    A subset's size has a variance of at most its mean m, so ``m + 6 sqrt(m) = q``.
    """
    if subspace_size >= n_candidates:
        return float(n_candidates)
    root = (sqrt(SPREADS * SPREADS + 4.0 * subspace_size) - SPREADS) / 2
    return root * root


# Options of Parametric Random Subspace, and what follows from them before a run starts.

LEAST_ROOM = 512
"""Features that q has room for at least, where there are so many."""


class PrsParams(ScreenParams, DescentParams):
    """Options of Parametric Random Subspace; defaults are the paper's."""

    smoothness: str = option(
        Number(),
        "Penalty on neighbours on --grid: times the sum of their probabilities' absolute "
        "differences, added to the loss.",
        default="0.0",
        metavar="LAMBDA",
    )
    grid: str | None = option(
        GridSize(),
        "Features that may be drawn are pixels of an image, row by row in the order of the table.",
        default_text="features have no neighbours",
        metavar="HEIGHTxWIDTH",
    )

    @classmethod
    def settle(cls, given: Mapping[str, Any], table: Any) -> Self:
        """Settle the options; a grid is of all features."""
        params = super().settle(given, table)
        if params.grid is None and float(params.smoothness) > 0:
            raise UsageError(
                "--smoothness: expected with --grid HEIGHTxWIDTH, found no grid. Features have "
                "neighbours on a grid only."
            )
        if params.grid is not None and params.screen is not None:
            raise UsageError(
                "--screen: expected without --grid, found both. A pixel that is left out has no "
                "place on the grid."
            )
        return params

    def default_subspace(self, n_candidates: int) -> int:
        """Return twice the mean size of a subset at first, and room for its spread."""
        n_learnt = self.n_learnt(n_candidates)
        mean = float(self.inclusion) * n_learnt
        room = max(LEAST_ROOM, ceil(2 * mean + SPREADS * sqrt(2 * mean)))
        return max(min(n_learnt, room), self.screen_size(n_candidates))

    def check(self, n_rows: int, n_candidates: int, subspace_size: int) -> None:
        """Check what is learnt, and that the grid has as many pixels as there are features."""
        super().check(n_rows, self.n_learnt(n_candidates), subspace_size)
        if self.grid is not None:
            height, width = size_of(self.grid)
            if height * width != n_candidates:
                raise UsageError(
                    f"--grid: expected as many pixels as features that may be drawn, found "
                    f"{height} x {width} = {height * width:,} and {n_candidates:,} features. "
                    "Features left out by --exclude are no pixels, and no pixel can be left out."
                )

    def state_nbytes(self, n_rows: int, n_features: int) -> int:
        """Return the bytes of probabilities, moments, subsets and votes."""
        share = float(self.validation_share)
        n_predicted = ceil(n_rows * (share + (1 - share) / self.folds)) if share else n_rows
        votes = (self.folds + 3) * self.models * (n_predicted + 2) * 4
        n_learnt = self.n_learnt(n_features)
        members = BernoulliSubsets.nbytes(self.models, n_learnt, self.folds)
        each = FEATURE_NBYTES + (0 if self.grid is None else GRID_NBYTES)
        own = each * n_learnt + votes + members + 64 * n_rows * self.folds
        return own + self.screen_nbytes(n_features)

    def mean_columns(self, n_candidates: int) -> int:
        """Return the mean size of a subset at first; later ones are smaller."""
        return max(1, ceil(float(self.inclusion) * self.n_learnt(n_candidates)))

    def most_iterations(self, n_candidates: int, subspace_size: int) -> tuple[int, str]:
        """Return the models there are at most: those of all epochs."""
        each = self.models * self.folds
        n_first = self.n_screen_trees(n_candidates, subspace_size)
        first = f"{n_first:,} trees of the screen, and " if n_first else ""
        return n_first + each * self.epochs + self.models, (
            f"{first}the most there can be, if models were grown again at each of {self.epochs:,} "
            f"epochs; it ends by itself, after {each:,} models for each time they are"
        )

    def notes(self, n_rows: int, n_candidates: int, n_copies: int = 1) -> tuple[str, ...]:
        """Say so where a screen leaves nothing out, and where importance weights would collapse."""
        return self.no_screen(n_candidates) + self.slow_steps(
            self.n_learnt(n_candidates),
            "Learn on fewer, such as --screen 500: those that random subspaces rank first.",
        )

    def needs_positions(self) -> bool:
        """Return whether features have neighbours."""
        return self.grid is not None

    def ensemble(self, facts: Mapping[str, Any]) -> Ensemble | None:
        """Return that the last models predict: their mean, or the majority of their votes."""
        return Ensemble(votes=True) if facts.get("phase") == FINAL else None


class ScreenedPrs(Screened):
    """The features that a screen ranks first, and then their probabilities."""

    name: ClassVar[str] = ParametricRandomSubspace.name
    needs: ClassVar[frozenset[str]] = ParametricRandomSubspace.needs | {IMPORTANCE}


def _make(params: PrsParams, ground: Ground) -> Sampler:
    response = ground.response
    assert response is not None, "a run has a response"
    folds = folds_for(ground, params.folds, params.validation_share)
    if params.screens(ground.n_candidates):
        return ScreenedPrs(params, ground, folds.training, partial(_make, params))
    smoothness = None
    if params.grid is not None and float(params.smoothness) > 0:
        offered = np.arange(ground.n_items) if ground.candidates is None else ground.candidates
        smoothness = Grid.of(
            size_of(params.grid), offered, ground.positions, float(params.smoothness)
        )
    return ParametricRandomSubspace(
        params.descent(ground.n_candidates, ground.subspace_size),
        folds,
        Truth.of(response, folds.training),
        ground.n_items,
        ground.subspace_size,
        ground.key,
        ground.candidates,
        smoothness,
    )


PRS = Method(
    "Parametric Random Subspace: learns each feature's probability",
    PrsParams,
    _make,
    judges=("none",),
    learner={"splitter": "best"},
    any_model=True,
    ranks_by=ParametricRandomSubspace.name,
    splits_rows=True,
)
