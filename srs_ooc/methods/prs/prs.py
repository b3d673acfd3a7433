"""Parametric Random Subspace (Huynh-Thu and Geurts 2023, Algorithm S1).

Each feature has a probability of being in a subset. They are learnt by gradient descent on the
loss of the models' mean prediction, with models used again by importance weights until these are
worth too few of them. ``docs/methods/prs.md`` has the equations and what differs from the paper.
"""

from collections.abc import Mapping
from dataclasses import KW_ONLY, asdict, dataclass
from math import ceil, sqrt
from typing import Any, Self

import numpy as np

import srs_ooc.extend as core
from srs_ooc.methods.held_out import SCREEN_NBYTES, Folds, HeldOutMethod, HeldOutParams, Truth
from srs_ooc.methods.prs import prs_math
from srs_ooc.methods.prs.prs_math import BernoulliSubsets

GROWING, LEARNING, FINAL = "growing", "learning", "final"
MOST_RATIOS = 1 << 16
"""Features up to which what was computed for beta is kept for the next fold."""


@dataclass
class Standing:
    """Where the work stands, as the ledger keeps it.

    Attributes
    ----------
    phase : {'growing', 'learning', 'final'}
        What is done.
    drawn : int
        How often subsets were drawn anew.
    deal : int
        The deal of the rows into folds.
    begun, grown : int
        Models of all sets before, and of the one that is being grown, or was grown last.
    epoch, fold : int
        Epochs that are over; steps of the one under way.
    best_epoch, best_objective : int, float or None
        The best one, from 1, and its objective; 0 and None before there is one.
    first_power, second_power : float
        Adam's decay rates to the power of the steps taken.
    """

    phase: str = GROWING
    drawn: int = 0
    deal: int = 0
    begun: int = 0
    grown: int = 0
    epoch: int = 0
    fold: int = 0
    best_epoch: int = 0
    best_objective: float | None = None
    first_power: float = 1.0
    second_power: float = 1.0


@dataclass(eq=False)
class ParametricRandomSubspace(core.Sampler):
    """Learns with which probability each feature is to be in a subset.

    Iteration by iteration it has T models grown for each fold; then it learns by steps until these
    models are worth too few, and has others grown; at last T models on all training rows.

    Parameters
    ----------
    params : DescentParams
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
    grid : int64 (height, width), optional
        The feature of each pixel; default features have no neighbours.
    smoothness : float
        Factor of the penalty on neighbours that differ, lambda_2.
    score : str
        What :attr:`best` is called in the state.

    Attributes
    ----------
    beta : float64 (p,)
        The probabilities as they are.
    alpha : float64 (p,)
        Those that the models at hand were drawn with.
    best : float64 (p,)
        Those of the best epoch so far.
    """

    name = "prs"
    needs = frozenset({core.PREDICTIONS})

    params: "DescentParams"
    folds: Folds
    truth: Truth
    n_features: int
    capacity: int
    key: int
    candidates: core.Uints32 | None = None
    _: KW_ONLY
    grid: core.Ints | None = None
    smoothness: float = 0.0
    score: str = "score"

    def __post_init__(self) -> None:
        params, n_features = self.params, self.n_features
        self._n_models, self.sparsity = params.models, float(params.sparsity)
        self.wanted_worth = float(params.effective_share) * params.models
        self._may, n_candidates = None, n_features
        if self.candidates is not None:
            self._may, n_candidates = np.zeros(n_features, np.bool_), len(self.candidates)
            self._may[self.candidates] = True
        self._largest_mean = largest_mean(self.capacity, n_candidates)
        inclusion = float(params.inclusion)
        first = np.full(n_features, inclusion)
        self.beta = prs_math.feasible(first, self._may, self._largest_mean, inclusion)
        self.alpha, self.best = self.beta.copy(), self.beta.copy()
        self._ratios: tuple[core.Floats, tuple[float, core.Floats]] | None = None
        self._moments = np.zeros((2, n_features))
        n_votes = self.n_folds * params.models * self.folds.most_predicted
        self._votes = np.zeros(n_votes, np.float32)
        self._voted = np.ones(core.n_pages(n_votes), np.bool_)
        self._stepped, self._drawn, self._bettered = (
            np.ones(core.n_pages(n_features), np.bool_) for _ in range(3)
        )
        self.penalty: float | core.Floats = self.sparsity
        self.at = Standing()
        self._begin_drawing()

    def _begin_drawing(self) -> None:
        """Draw subsets by alpha, and deal the rows: what one deal alone teaches would fit it."""
        key = core.derive(core.derive(self.key, core.Purpose.SUBSETS), self.at.drawn)
        shape = self._n_models, self.capacity, self.n_folds
        self._subsets = BernoulliSubsets(self.alpha, key, *shape)
        self._folds = self.folds.dealt(self.at.deal) if self.at.deal else self.folds

    @property
    def n_folds(self) -> int:
        """Folds, each with T models."""
        return len(self.folds.splits)

    @property
    def n_wanted(self) -> int:
        """Models of the set that is being grown, or was grown last."""
        return self._n_models * (1 if self.at.phase == FINAL else self.n_folds)

    def propose(self, iteration: int, key: int) -> core.Subspace:
        """Return the subset of a model: T of the first fold come first, then T of the next."""
        fold, t = divmod((iteration - self.at.begun) % self.n_wanted, self._n_models)
        is_final = self.at.phase == FINAL
        split = self._folds.whole if is_final else self._folds.splits[fold]
        return core.Subspace(self._subsets.draw(fold, t), split=split, in_ensemble=is_final)

    def version(self, iteration: int) -> int:
        """Return how often subsets were drawn anew."""
        return self.at.drawn

    def done(self, iteration: int) -> bool:
        """Return whether the models on all training rows are there."""
        return self.at.phase == FINAL and self.at.grown == self.n_wanted

    def progress(self) -> core.Step:
        """Return the epochs, of which the models at the end count as the last."""
        models = f"{self.at.begun + self.at.grown:,} models"
        return core.Step(models, self.at.epoch, self.params.epochs + 1, unit="epochs")

    def absorb(self, iteration: int, outcome: core.Outcome) -> None:
        """Take the votes of a model; the last one of the set begins the learning."""
        if self.at.phase == GROWING:
            assert outcome.predictions is not None
            fold, t = divmod(self.at.grown, self._n_models)
            rows = self._folds.splits[fold].predicted
            self._votes_of(fold)[t] = self.truth.votes(outcome.predictions[0], rows)
            start = self.at.grown * self._folds.most_predicted
            last = start + len(rows) - 1
            self._voted[start // core.PAGE_ITEMS : last // core.PAGE_ITEMS + 1] = True
        self.at.grown += 1
        if self.at.phase == GROWING and self.at.grown == self.n_wanted:
            self.at.phase = LEARNING

    def _votes_of(self, fold: int) -> core.Floats32:
        """Return the votes of a fold's models, (T, n_predicted); a view."""
        n_models, most = self._n_models, self._folds.most_predicted
        votes = self._votes.reshape(self.n_folds, n_models, most)
        return votes[fold, :, : len(self._folds.splits[fold].predicted)]

    def step(self) -> bool:
        """Take one step by one fold's rows; after the last fold look at what it came to."""
        if self.at.phase != LEARNING:
            return False
        self._descend(self.at.fold)
        self.at.fold += 1
        if self.at.fold == self.n_folds:
            self.at.fold = 0
            self._end_epoch()
        return True

    def _weights(self, fold: int, beta: core.Floats) -> core.Floats:
        """Return ``w_t`` of a fold's models under ``beta``; what all folds share, computed once.

        ``beta`` does not change in place before the ratios are forgotten.
        """
        if self._ratios is None or self._ratios[0] is not beta:
            self._ratios = beta, prs_math.log_ratios(beta, self.alpha)
        found = prs_math.weights_by(self._subsets.of_fold(fold), self._n_models, self._ratios[1])
        if len(beta) > MOST_RATIOS:
            self._ratios = None
        return found

    def _descend(self, fold: int) -> None:
        at, weights = self.at, self._weights(fold, self.beta)
        least_worth = prs_math.BOUND * self.wanted_worth
        if prs_math.effective_number(weights) < least_worth:
            return  # other folds' steps took what these models are worth: nothing to learn
        own = ~self._folds.held_out[fold]
        rows = self._folds.splits[fold].predicted[own]
        votes = self._votes_of(fold)[:, own].astype(np.float64)
        mean = (weights[:, None] * votes).sum(0) / self._n_models
        slopes = (self.truth.slopes(mean, rows) * votes).sum(1)
        by_beta = prs_math.gradient(self._subsets.of_fold(fold), self.beta, weights, slopes)
        by_beta += self.penalty
        if self.grid is not None:
            by_beta += prs_math.roughness_slopes(self.beta, self.grid, self.smoothness)
        powers, rate = (at.first_power, at.second_power), float(self.params.learning_rate)
        by_beta = prs_math.projected(self.beta, by_beta)
        change, powers = prs_math.adam_step(by_beta, self._moments, powers, rate)
        at.first_power, at.second_power = powers

        # A step is computed from the very subsets that it weighs anew, so it moves their weights
        # together, in proportion to p: beyond a thousand features one whole step would leave a few
        # of the models with all the weight. It is halved until it keeps their worth.
        bounds = self._largest_mean, 1.0 / self._n_models
        for _ in range(prs_math.MOST_HALVINGS):
            beta = prs_math.feasible(self.beta - change, self._may, *bounds)
            if prs_math.effective_number(self._weights(fold, beta)) >= least_worth:
                self.beta = beta
                break
            change *= 0.5
        self._stepped[:] = True

    def _end_epoch(self) -> None:
        """Keep beta if it is the best so far; go on, have models grown anew, or end."""
        worth, objective = self._looked()
        self.at.epoch += 1
        if self.at.best_objective is None or objective < self.at.best_objective:
            self.at.best_objective, self.at.best_epoch = objective, self.at.epoch
            self.keep_best()
        if self.params.ends(self.at.epoch, self.at.best_epoch):
            self.draw_anew(FINAL, self.best)
        elif worth < self.wanted_worth:
            self.draw_anew(GROWING, self.beta)

    def _looked(self) -> tuple[float, float]:
        """Return how many models the weights are worth, and the objective; means of the folds.

        The objective is that of T models, as many as there are at the end, not of all K T.
        """
        worth = loss = 0.0
        for fold in range(self.n_folds):
            weights = self._weights(fold, self.beta)
            worth += prs_math.effective_number(weights) / self.n_folds
            votes = self._votes_of(fold)[:, self._folds.held_out[fold]]
            mean = (weights[:, None] * votes).sum(0) / self._n_models
            loss += self.truth.loss(mean, self._folds.validation) / self.n_folds
        if self.grid is not None:
            loss += self.smoothness * prs_math.roughness(self.beta, self.grid)
        return worth, loss + self.sparsity * float(self.beta.sum())

    def keep_best(self) -> None:
        """Keep the probabilities as those of the best epoch."""
        self.best[:] = self.beta
        self._bettered[:] = True

    def draw_anew(self, phase: str, probabilities: core.Floats) -> None:
        """Have models grown for subsets that are drawn by other probabilities."""
        self.at.begun += self.at.grown
        self.at.grown, self.at.phase = 0, phase
        self.at.drawn += 1
        self.at.deal = self.at.drawn
        self.alpha[:] = probabilities
        self._ratios = None
        self._drawn[:] = True
        self._begin_drawing()

    def _large(self) -> dict[str, core.Pages]:
        return {
            "beta": core.Pages(self.beta, self._stepped),
            "first": core.Pages(self._moments[0], self._stepped),
            "second": core.Pages(self._moments[1], self._stepped),
            "alpha": core.Pages(self.alpha, self._drawn),
            self.score: core.Pages(self.best, self._bettered),
            "votes": core.Pages(self._votes, self._voted),
        }

    def state(self) -> core.State:
        """Return what was learnt, and where the work stands."""
        return core.State(pages=self._large(), facts=asdict(self.at))

    def restore(self, saved: core.Saved) -> None:
        """Take up the work where it was committed."""
        if saved.facts is None:
            return
        for name, pages in self._large().items():
            saved.fill(name, pages.array)
            pages.changed[:] = False
        self._ratios = None
        vars(self.at).update(saved.facts)
        # An older ledger has no deal; its objective was of all K T models, no bound for that of T.
        if "deal" not in saved.facts and self.at.phase != FINAL:
            self.at.best_epoch, self.at.best_objective = 0, None
        self._begin_drawing()


# Options of learning probabilities by descent, for one target of a run or for many.

FEATURE_NBYTES = 104
"""Bytes for each feature, beyond those that every run may keep (law 11): beta, alpha, the best
epoch's probabilities and two moments stay, sums and terms of a step come and go."""
SPREADS = 6
"""Standard deviations of a subset's size that q leaves room for."""

COLLAPSE = 1000
"""Features beyond which one whole step spends what the models are worth."""


class DescentParams(HeldOutParams):
    """How probabilities are learnt; defaults are the paper's.

    Attributes
    ----------
    inclusion : str
        Probability of each feature at first.
    epochs : int
        Epochs at most; each takes a step for every fold.
    patience : int | None
        End after so many epochs without a better objective on the validation rows.
    learning_rate : str
        Step of Adam: about how far a probability moves in a step.
    effective_share : str
        Grow models again where their importance weights are worth fewer than this share of them.
    sparsity : str
        Penalty on the mean size of a subset: times the sum of probabilities, added to the loss.
    """

    inclusion: str = core.option(core.Share(), default="0.05", metavar="SHARE")
    epochs: int = core.option(core.Whole(1, 1_000_000), default=3000, metavar="N")
    patience: int | None = core.option(
        core.Whole(1), default_text="all epochs, as in the paper", metavar="N"
    )
    learning_rate: str = core.option(core.Number(), default="0.001", metavar="RATE")
    effective_share: str = core.option(core.Share(), default="0.9", metavar="SHARE")
    sparsity: str = core.option(core.Number(), default="0.0", metavar="LAMBDA")
    instead = " Or name rows with validation_rows."

    @classmethod
    def settle(cls, given: Mapping[str, Any], table: Any) -> Self:
        """Settle the options."""
        params = super().settle(given, table)
        if not 0 < core.exact_share(params.inclusion) < 1:
            raise core.UsageError(
                f"inclusion: expected a number between 0 and 1, found {params.inclusion}. "
                "At 0 nothing would ever be drawn."
            )
        if "validation" not in given and not 0 < core.exact_share(
            params.validation_share
        ) <= core.exact_share("0.5"):
            raise core.UsageError(
                "validation_share: expected a number above 0 and at most 0.5, found "
                f"{params.validation_share}.{cls.instead}"
            )
        return params

    def check(self, n_rows: int, n_candidates: int, subspace_size: int) -> None:
        """Check that the first subsets fit q, and that each fold has rows."""
        largest = largest_mean(subspace_size, n_candidates)
        if float(self.inclusion) * n_candidates > largest:
            raise core.UsageError(
                f"inclusion: expected at most {largest / n_candidates:.3g} with subspaces of "
                f"{subspace_size} of {n_candidates} features, found {self.inclusion}: subsets of "
                "about so many would not fit. Raise --subspace-size or --memory-mb, or lower it."
            )
        self.check_folds(n_rows)

    def ends(self, epoch: int, best_epoch: int) -> bool:
        """Return whether learning ends after an epoch, the best one so far being known."""
        patience = self.epochs if self.patience is None else self.patience
        return epoch == self.epochs or epoch - best_epoch >= patience

    def learning_nbytes(self, n_rows: int, n_features: int, capacity: int, n_sets: int) -> int:
        """Return the bytes of probabilities, moments, subsets, rows, and votes of so many sets."""
        share, members = float(self.validation_share), self.folds * self.models * capacity
        if members > prs_math.STORED:
            members = self.models * capacity
        n_predicted = ceil(n_rows * (share + (1 - share) / self.folds)) if share else n_rows
        votes = 4 * n_sets * self.models * (n_predicted + 2)
        rows = 64 * n_rows * self.folds  # where models are trained, and where they predict
        return FEATURE_NBYTES * n_features + votes + 12 * members + rows

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


class Prs(HeldOutMethod, DescentParams):
    """Parametric Random Subspace; defaults are the paper's.

    Attributes
    ----------
    smoothness : str
        Penalty on neighbours on grid: times the sum of their probabilities' absolute differences,
        added to the loss.
    grid : str | None
        Features that may be drawn are pixels of an image, row by row in the order of the table.
    """

    summary = "Parametric Random Subspace: learns each feature's probability"
    ranks_by = ParametricRandomSubspace.name
    needs = ParametricRandomSubspace.needs
    smoothness: str = core.option(core.Number(), default="0.0", metavar="LAMBDA")
    grid: str | None = core.option(
        core.Text(lambda _, value: "x".join(map(str, prs_math.size_of(value)))),
        default_text="features have no neighbours",
        metavar="HEIGHTxWIDTH",
    )

    @classmethod
    def settle(cls, given: Mapping[str, Any], table: Any) -> Self:
        """Settle the options; a grid is of all features."""
        params = super().settle(given, table)
        if params.grid is None and float(params.smoothness) > 0:
            raise core.UsageError(
                "smoothness: expected with grid=HEIGHTxWIDTH, found no grid. Features have "
                "neighbours on a grid only."
            )
        if params.grid is not None and params.screen is not None:
            raise core.UsageError(
                "screen: expected without grid, found both. A pixel that is left out has no "
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
        DescentParams.check(self, n_rows, self.n_learnt(n_candidates), subspace_size)
        if self.grid is not None:
            height, width = prs_math.size_of(self.grid)
            if height * width != n_candidates:
                raise core.UsageError(
                    f"grid: expected as many pixels as features that may be drawn, found "
                    f"{height} x {width} = {height * width:,} and {n_candidates:,} features. "
                    "Features left out by --exclude are no pixels, and no pixel can be left out."
                )

    def state_nbytes(self, n_rows: int, n_features: int) -> int:
        """Return the bytes of probabilities, moments, subsets and votes."""
        n_learnt = self.n_learnt(n_features)
        own = self.learning_nbytes(n_rows, n_learnt, n_learnt, self.folds + 3)
        # of one with neighbours also its place, their differences, and sums of these
        neighbours = 0 if self.grid is None else 40 * n_learnt
        return own + neighbours + (SCREEN_NBYTES * n_features if self.screen else 0)

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

    def notes(self, n_rows: int, n_candidates: int) -> tuple[str, ...]:
        """Say so where a screen leaves nothing out, and where importance weights would collapse."""
        return self.no_screen(n_candidates) + self.slow_steps(
            self.n_learnt(n_candidates),
            "Learn on fewer, such as screen=500: those that random subspaces rank first.",
        )

    @property
    def needs_positions(self) -> bool:
        """Whether features have neighbours."""
        return self.grid is not None

    def ensemble(self, facts: Mapping[str, Any]) -> core.Ensemble | None:
        """Return that the last models predict: their mean, or the majority of their votes."""
        return core.Ensemble(votes=True) if facts.get("phase") == FINAL else None

    def learn(
        self, context: core.SamplerContext, folds: Folds, score: str = "score"
    ) -> core.Sampler:
        """Return what learns the probabilities."""
        grid, smoothness, may = None, float(self.smoothness), context.candidates
        if self.grid is not None and smoothness > 0:
            offered = np.arange(context.n_features) if may is None else may
            grid = prs_math.grid_of(prs_math.size_of(self.grid), offered, context.positions)
        return ParametricRandomSubspace(
            self,
            folds,
            Truth.of(context.known, folds.training),
            context.n_features,
            context.subspace_size,
            context.key,
            may,
            grid=grid,
            smoothness=smoothness,
            score=score,
        )
