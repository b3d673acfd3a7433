"""Random Subspace Ensemble (Tian and Feng 2021, as Huynh-Thu and Geurts 2023 run it, D.4).

In each round, each of B1 models is the best of B2 small subspaces by held-out loss, or by an
information criterion; the share of the kept subspaces that hold a feature is its weight in the next
round. ``docs/methods/rase.md`` has the equations.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from math import exp, isqrt
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

import srs_ooc.extend as core
from srs_ooc.methods import held_out
from srs_ooc.methods.rase.criteria import EBIC, RIC, InformationCriterion, check_criterion

# What the models of a round of RaSE say together, by votes, and how often they are wrong.

HALF, TRAINING = "half", "training"
"""Share of votes above which the second of two classes is said: 1/2, or the one that errs least."""


@dataclass(eq=False)
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

    truth: held_out.Truth
    n_classes: int
    training: core.Ints32
    validation: core.Ints32
    cutoff: str = HALF

    def __post_init__(self) -> None:
        both = np.sort(np.concatenate([self.training, self.validation]))
        predicted = both if self.cutoff == TRAINING else self.validation
        self.split = core.RowSplit(self.training, predicted)
        self.held_out = np.isin(predicted, self.validation)
        self.sums = np.zeros((len(predicted), self.n_classes))
        self.begin()

    def begin(self, sums: core.Floats | float = 0.0, n_models: int = 0) -> None:
        """Forget the votes of an earlier round; take back those of so many models, if any."""
        self.sums[:] = sums
        self._n_models = n_models

    def add(self, predictions: core.Floats32) -> None:
        """Count the votes of a model, from its (n_predicted, n_outputs) predictions."""
        self._n_models += 1
        if self.n_classes == 1:
            self.sums[:, 0] += self.truth.votes(predictions, self.split.predicted)
        else:
            self.sums[np.arange(len(self.sums)), predictions.argmax(1)] += 1.0

    def loss(self) -> tuple[float | None, float]:
        """Return the loss on the rows held out, None where there are none, and the cutoff."""
        cutoff = 0.5
        if self.cutoff == TRAINING:
            # That which errs least on the training rows, of equal ones next to half; cutoffs lie
            # midway between two numbers of votes.
            cutoffs = (np.arange(self._n_models) + 0.5) / self._n_models
            cutoffs = cutoffs[np.argsort(np.abs(cutoffs - 0.5), kind="stable")]
            errors = [self._error(~self.held_out, one) for one in cutoffs.tolist()]
            cutoff = float(cutoffs[int(np.argmin(errors))])
        if not self.held_out.any():
            return None, cutoff
        rows = self.split.predicted[self.held_out]
        if self.n_classes == 1:
            return self.truth.loss(self.sums[self.held_out, 0] / self._n_models, rows), cutoff
        return self._error(self.held_out, cutoff), cutoff

    def _error(self, which: core.Bools, cutoff: float) -> float:
        rows = self.split.predicted[which]
        weights = self.truth.weights[rows]
        said = self.sums[which].argmax(1)
        if self.n_classes == 2:
            said = self.sums[which, 1] > cutoff * self._n_models
        return float(weights[said != self.truth.labels[rows]].sum() / weights.sum())


SEARCHING, VOTING, OVER = "searching", "voting", "over"


@dataclass
class Standing:
    """Where the work stands, as the ledger keeps it.

    Attributes
    ----------
    phase : {'searching', 'voting', 'over'}
        What is done.
    begun, done : int
        Iterations of all phases before, and of this one.
    version : int
        How often what is proposed has changed.
    least : float or None
        Of the model under way, the loss of its best subspace so far; None where it is infinite.
    losses : list of float or None
        Of the rows held out, by round; None where there are none: then the last round is the best.
    best_round : int
        Which round that is, from 0.
    cutoff : float
        Share of votes above which it says the second of two classes.
    """

    phase: str = SEARCHING
    begun: int = 0
    done: int = 0
    version: int = 0
    least: float | None = None
    losses: list[float | None] = field(default_factory=list)
    best_round: int = 0
    cutoff: float = 0.5


class RandomSubspaceEnsemble(core.Sampler):
    """Learns which features the best small subspaces hold.

    An iteration judges as many of a model's subspaces as ``capacity`` has room for. A round ends
    with an iteration for each model: the kept one, fitted on all training rows.

    Parameters
    ----------
    params : Rase
        How it searches.
    context : SamplerContext
        What is searched; its ``subspace_size`` is at least ``params.max_size``.
    votes : Votes
        What its models say of rows held out.
    score_name : str
        What :attr:`score` is called in the state.

    Attributes
    ----------
    score : float64 (n_features,)
        eta of the best round: share of its kept subspaces that hold a feature.
    best : list of uint32 arrays
        Its kept subspaces.
    at : Standing
        Where the work stands.
    """

    name = "rase"
    needs = frozenset({core.LOSS, core.PREDICTIONS})

    def __init__(
        self, params: "Rase", context: core.SamplerContext, votes: Votes, score_name: str = "score"
    ) -> None:
        self._params, self._votes, self._strata = params, votes, context.known.labels
        self._candidates, self._n_candidates = context.candidates, context.n_candidates
        self.capacity, self._score_name = context.subspace_size, score_name
        self._key = core.derive(context.key, core.Purpose.JUDGED_SUBSETS)
        self._rows_key = core.derive(context.key, core.Purpose.JUDGED_ROWS)
        self._batch = params.batch_size(self._n_candidates, self.capacity)
        self.n_batches = core.ceil_div(params.candidates, self._batch)
        self._criterion = params.judged_by(self._n_candidates)
        self.score = np.zeros(context.n_features)
        self._bettered = np.ones(core.n_pages(context.n_features), np.bool_)
        self.at = Standing()
        self._kept: list[core.Uints32] = []
        self.best: list[core.Uints32] = []
        self._drawn_by: list[core.Uints32] = []
        self._heavy, self._counts = self._weights_of([])

    def _weights_of(self, kept: list[core.Uints32]) -> tuple[core.Uints32, core.Ints32]:
        """Return the features with eta above C0 / log p, and how many kept subspaces hold each.

        All others weigh C0 / p; where nothing was kept that is all.
        """
        p, floor = self._n_candidates, float(self._params.floor)
        members, counts = eta(kept)
        if self._candidates is not None:
            members = np.searchsorted(self._candidates, members).astype(np.uint32)
        unit = 1.0 / self._params.models
        least = floor / core.numerics.log(float(p)) if p > 1 else np.inf
        heavy = counts * unit > least
        return members[heavy], counts[heavy].astype(np.int32)

    @property
    def round(self) -> int:
        """The round that is under way, from 0."""
        return len(self.at.losses)

    @property
    def _n_wanted(self) -> int:
        return self._params.models * (self.n_batches if self.at.phase == SEARCHING else 1)

    def propose(self, iteration: int, key: int) -> core.Subspace:
        """Return some of a model's subspaces, or the one that was kept."""
        number = (iteration - self.at.begun) % self._n_wanted
        if self.at.phase != SEARCHING:
            return core.Subspace(self._kept[number], split=self._votes.split)
        model, batch = divmod(number, self.n_batches)
        first = batch * self._batch
        count = min(self._batch, self._params.candidates - first)
        members, bounds = self._draw(model, first, count)
        features, places = np.unique(members, return_inverse=True)
        candidates = core.Candidates(
            places.astype(np.int32), bounds, self._splits(model), self._criterion
        )
        return core.Subspace(features, candidates)

    def _draw(self, model: int, first: int, count: int) -> tuple[core.Uints32, core.Ints]:
        key = core.derive(core.derive(self._key, self.round), model)
        sizes, weights = (self._params.max_size, self._n_candidates), (self._heavy, self._counts)
        unit, light = 1.0 / self._params.models, float(self._params.floor) / self._n_candidates
        members, bounds = core.draw_subsets(
            key, first, count, *sizes, *weights, unit=unit, light=light
        )
        return members if self._candidates is None else self._candidates[members], bounds

    def _splits(self, model: int) -> tuple[core.RowSplit, ...]:
        """Return the rows by which all subspaces of a model are judged."""
        params, whole = self._params, self._votes.split
        if self._criterion is not None:
            return (core.RowSplit(whole.fitted, whole.fitted[:0]),)
        if params.criterion == VALIDATION:
            return (core.RowSplit(whole.fitted, whole.predicted[self._votes.held_out]),)
        key, rows = core.derive(core.derive(self._rows_key, self.round), model), whole.fitted
        if params.criterion == OUT_OF_BAG:
            return tuple(
                held_out.resample(rows, core.derive(key, number)) for number in range(params.folds)
            )
        fold = held_out.deal(self._strata[rows], params.folds, key)
        return tuple(core.RowSplit(rows[fold != k], rows[fold == k]) for k in range(params.folds))

    def version(self, iteration: int) -> int:
        """Return how often what is proposed has changed."""
        return self.at.version

    def done(self, iteration: int) -> bool:
        """Return whether all rounds are over."""
        return self.at.phase == OVER

    def progress(self) -> core.Step:
        """Return the models whose subspace was chosen, of all rounds."""
        n_models, n_rounds = self._params.models, self._params.rounds
        done = n_models * self.round + len(self._kept)
        stage = f"round {min(self.round + 1, n_rounds)}"
        return core.Step(stage, done, n_models * n_rounds, unit="models")

    def absorb(self, iteration: int, outcome: core.Outcome) -> None:
        """Keep the best subspace so far, or count the votes of a kept one."""
        if self.at.phase == SEARCHING:
            self._choose(outcome)
        else:
            assert outcome.predictions is not None
            self._votes.add(outcome.predictions[0])
        self.at.done += 1
        if self.at.done == self._n_wanted:
            self._end_phase()

    def _choose(self, outcome: core.Outcome) -> None:
        """Keep the subspace of least loss; of equal ones the first, which is no better a draw."""
        assert outcome.losses is not None
        model, batch = divmod(self.at.done, self.n_batches)
        best = int(outcome.losses.argmin())
        loss = float(outcome.losses[best])
        if batch > 0 and loss >= (np.inf if self.at.least is None else self.at.least):
            return
        self.at.least = None if np.isinf(loss) else loss
        subspace = self._draw(model, batch * self._batch + best, 1)[0]
        if batch > 0:
            self._kept.pop()
        self._kept.append(subspace)

    def _end_phase(self) -> None:
        self.at.begun += self.at.done
        self.at.done = 0
        self.at.version += 1
        if self.at.phase == SEARCHING:
            self.at.phase = VOTING
            self._votes.begin()
            return
        loss, cutoff = self._votes.loss()
        earlier = self.at.losses[self.at.best_round] if self.at.losses else None
        if loss is None or earlier is None or loss < earlier:
            self.best, self.at.best_round, self.at.cutoff = self._kept, self.round, cutoff
            members, counts = eta(self.best)
            self.score[:] = 0.0
            self.score[members] = counts / self._params.models
            self._bettered[:] = True
        self.at.losses = [*self.at.losses, loss]
        self._drawn_by, self._kept = self._kept, []
        self._heavy, self._counts = self._weights_of(self._drawn_by)
        self.at.phase = OVER if self.round == self._params.rounds else SEARCHING

    def state(self) -> core.State:
        """Return what was learnt, and where the work stands."""
        arrays: dict[str, NDArray[Any]] = {"votes": self._votes.sums}
        for name, subspaces in self._lists().items():
            arrays[name] = np.concatenate([np.zeros(0, np.uint32), *subspaces])
            arrays[f"{name}_sizes"] = np.array([len(one) for one in subspaces], np.int64)
        pages = {self._score_name: core.Pages(self.score, self._bettered)}
        return core.State(pages, arrays, asdict(self.at))

    def _lists(self) -> dict[str, list[core.Uints32]]:
        return {"kept": self._kept, "best": self.best, "drawn_by": self._drawn_by}

    def restore(self, saved: core.Saved) -> None:
        """Take up the work where it was committed."""
        if saved.facts is None:
            return
        saved.fill(self._score_name, self.score)
        self._bettered[:] = False
        vars(self.at).update(saved.facts)
        arrays = saved.arrays
        self._votes.begin(arrays["votes"], self.at.done if self.at.phase == VOTING else 0)
        for name, subspaces in self._lists().items():
            ends = np.cumsum(arrays[f"{name}_sizes"])[:-1]
            parts = np.split(arrays[name], ends) if len(arrays[f"{name}_sizes"]) else []
            subspaces[:] = [part.astype(np.uint32) for part in parts]
        self._heavy, self._counts = self._weights_of(self._drawn_by)


# Options of Random Subspace Ensemble, and what follows from them before a run starts.

CROSS_VALIDATION, OUT_OF_BAG, VALIDATION = "cv", "oob", "validation"
CRITERIA = (CROSS_VALIDATION, OUT_OF_BAG, VALIDATION, RIC, EBIC)


class Rase(held_out.HeldOutParams, held_out.HeldOutMethod):
    """Random Subspace Ensemble; defaults are those of the PRS paper.

    Attributes
    ----------
    candidates : int
        B2: subspaces of which the best is each model's.
    max_size : int
        D: a subspace has from 1 to D features, each size as likely.
    rounds : int
        Rounds, counted from the first, which draws uniformly.
    criterion : str
        What chooses the best subspace: the models' held-out loss by cv (cross-validation), oob
        (rows left out of samples with replacement) or validation (the rows held out); or, of the
        training rows, ric (ratio information criterion; --model lda, qda or knn, two classes) or
        ebic (extended BIC; --model linear).
    ebic_gamma : str
        With criterion=ebic, a column costs log n + 2 gamma log p: 0 is BIC.
    floor : str
        C0: features in no more than C0 / log p of the kept subspaces weigh C0 / p in the next
        round.
    vote_cutoff : str
        Share of votes above which the second of two classes wins: half, or the one that errs least
        on the training rows.
    """

    summary = "Random Subspace Ensemble: the best of many small subspaces, round after round"
    ranks_by = RandomSubspaceEnsemble.name
    needs = RandomSubspaceEnsemble.needs
    candidates: int = core.option(core.Whole(1, 100_000), default=500, metavar="B2")
    max_size: int = core.option(
        core.Whole(1, 10_000),
        default=0,
        default_text="the root of the training rows, rounded down; at most all features",
        metavar="D",
    )
    rounds: int = core.option(core.Whole(1, 1000), default=10, metavar="N")
    criterion: str = core.option(core.Choice(CRITERIA), default=CROSS_VALIDATION)
    ebic_gamma: str = core.option(core.Share(), default="0", metavar="GAMMA")
    floor: str = core.option(core.Number(), default="0.1", metavar="C0")
    vote_cutoff: str = core.option(core.Choice((HALF, TRAINING)), default=HALF)

    @classmethod
    def settle(cls, given: Mapping[str, Any], table: Any) -> Self:
        """Settle the options; D follows from the rows that are not held out by share."""
        params = super().settle(given, table)
        if params.criterion not in (CROSS_VALIDATION, OUT_OF_BAG) and "folds" in given:
            by = "of one split" if params.criterion == VALIDATION else "of all training rows"
            raise core.UsageError(
                f"folds: expected with criterion=cv or oob, found {params.criterion}, which is "
                f"computed {by}. Leave it out."
            )
        if params.criterion != EBIC and "ebic_gamma" in given:
            raise core.UsageError(
                f"ebic_gamma: expected with criterion={EBIC} only, found {params.criterion}. "
                "Leave it out, or choose that."
            )
        if float(params.floor) == 0:
            raise core.UsageError(
                "floor: expected a number above 0, found 0. A feature that no kept subspace held "
                "would never be drawn again."
            )
        if core.exact_share(params.validation_share) > core.exact_share("0.5"):
            raise core.UsageError(
                f"validation_share: expected at most 0.5, found {params.validation_share}. "
                "Or name rows with validation_rows."
            )
        holds_none = params.validation_share == "0" and "validation" not in given
        if params.criterion == VALIDATION and holds_none:
            raise core.UsageError(
                "criterion=validation: expected rows held out, found validation_share=0. Hold "
                "some out, or choose cv or oob."
            )
        if params.vote_cutoff == TRAINING and table.n_classes != 2:
            raise core.UsageError(
                "vote_cutoff=training: expected two classes, found "
                f"{'a regression' if table.n_classes == 1 else table.n_classes}. Leave it out."
            )
        largest = min(params.n_learnt(table.n_candidates), isqrt(params.n_training(table.n_rows)))
        return replace(
            params,
            max_size=params.max_size or max(1, largest),
            folds=0 if params.is_information else params.folds,
        )

    @property
    def is_information(self) -> bool:
        """Whether a criterion of the training rows chooses, and no model is fitted for it."""
        return self.criterion in (RIC, EBIC)

    def default_subspace(self, n_candidates: int) -> int:
        """Return room for all subspaces of a model at once."""
        room = min(self.n_learnt(n_candidates), self.candidates * self.max_size)
        return max(room, self.screen_size(n_candidates))

    def check(self, n_rows: int, n_candidates: int, subspace_size: int) -> None:
        """Check that a subspace fits q, and that each fold has rows."""
        if self.max_size > subspace_size:
            raise core.UsageError(
                f"max_size: expected at most {subspace_size} (the features paged in at a time), "
                f"found {self.max_size}. Raise --subspace-size or --memory-mb, or lower it."
            )
        if self.max_size > (n_learnt := self.n_learnt(n_candidates)):
            raise core.UsageError(
                f"max_size: expected at most {n_learnt} (the features learnt on), found "
                f"{self.max_size}. Raise screen, or lower it."
            )
        if self.criterion == CROSS_VALIDATION:
            self.check_folds(n_rows)

    def state_nbytes(self, n_rows: int, n_features: int) -> int:
        """Return the bytes of eta, of kept subspaces, of batches and of votes."""
        needs = [
            8 * self.n_learnt(n_features),
            3 * 8 * self.models * self.max_size,
            160 * min(self.candidates, 100_000) * self.max_size,  # those proposed ahead included
            n_rows * (64 + 40 * self.folds),
            held_out.SCREEN_NBYTES * n_features if self.screen else 0,
        ]
        return sum(needs)

    def most_iterations(self, n_candidates: int, subspace_size: int) -> tuple[int, str]:
        """Return the iterations of all rounds."""
        each = self.models * (self._n_batches(n_candidates, subspace_size) + 1)
        n_first = self.n_screen_trees(n_candidates, subspace_size)
        first = f"{n_first:,} trees of the screen, then " if n_first else ""
        return n_first + each * self.rounds, (
            f"{first}{self.rounds} rounds of {self.models:,} models, each the best of "
            f"{self.candidates:,} subspaces; it ends by itself"
        )

    def judged_by(self, n_candidates: int) -> core.Criterion | None:
        """Return the information criterion, where one chooses."""
        if not self.is_information:
            return None
        return InformationCriterion(self.criterion, float(self.ebic_gamma), n_candidates)

    def check_model(self, model: str, n_classes: int) -> None:
        """Check that the criterion can be computed for a model."""
        check_criterion(self.criterion, model, n_classes)

    def most_columns(self, subspace_size: int) -> int:
        """Return D."""
        return self.max_size

    def work_each(self, n_candidates: int, subspace_size: int) -> tuple[float, float]:
        """Return the models of an iteration, were no subspace given up, and criteria."""
        n_each = self._n_batches(n_candidates, subspace_size) + 1
        if self.is_information:
            return 1 / n_each, self.candidates / n_each
        n_splits = 1 if self.criterion == VALIDATION else self.folds
        return (self.candidates * n_splits + 1) / n_each, 0.0

    def batch_size(self, n_features: int, capacity: int) -> int:
        """Return how many of a model's subspaces an iteration judges, of so many features.

        At least 1: a cap too small for one is refused elsewhere, with a number that this enters.
        """
        if capacity >= n_features:
            return self.candidates
        return max(1, min(self.candidates, capacity // self.max_size))

    def _n_batches(self, n_candidates: int, subspace_size: int) -> int:
        size = self.batch_size(self.n_learnt(n_candidates), subspace_size)
        return core.ceil_div(self.candidates, size)

    def notes(self, n_rows: int, n_candidates: int) -> tuple[str, ...]:
        """Say so where a screen leaves nothing out, and where a round sees too few features."""
        n_drawn = self.models * self.candidates * (self.max_size + 1) / 2  # in a round, on average
        said, n_learnt = self.no_screen(n_candidates), self.n_learnt(n_candidates)
        if n_learnt <= n_drawn:
            return said
        unseen = exp(-n_drawn / n_learnt)
        return (
            *said,
            f"--method rase: a round draws about {n_drawn:,.0f} features, fewer than the "
            f"{n_learnt:,} there are: about {unseen:.0%} of them are never seen in the first "
            "round, and later rounds draw mostly what it kept. Raise models, candidates or "
            "max_size, or learn on fewer, such as screen=1000.",
        )

    def least_subspace(self) -> int:
        """Return D: a subspace is paged in whole."""
        return self.max_size

    def ensemble(self, facts: Mapping[str, Any]) -> core.Ensemble | None:
        """Return that the kept subspaces of the best round predict, as they voted."""
        if not facts.get("losses"):
            return None
        first = int(facts["best_round"]) * self.models
        return core.Ensemble(first, self.models, votes=True, cutoff=float(facts["cutoff"]))

    def learn(
        self, context: core.SamplerContext, folds: held_out.Folds, score: str = "score"
    ) -> core.Sampler:
        """Return what searches."""
        truth, n_classes = held_out.Truth.of(context.known, folds.training), context.known.n_classes
        votes = Votes(truth, n_classes, folds.training, folds.validation, self.vote_cutoff)
        return RandomSubspaceEnsemble(self, context, votes, score)


def eta(subspaces: list[core.Uints32]) -> tuple[core.Uints32, core.Ints]:
    """Return the features that some subspaces hold, ascending, and how many hold each."""
    if not subspaces:
        return np.zeros(0, np.uint32), np.zeros(0, np.int64)
    members, counts = np.unique(np.concatenate(subspaces), return_counts=True)
    return members, counts.astype(np.int64)
