"""What methods that learn from rows held out share: folds, options, and a screen before them.

Rows are held out, and folds of the others made, by hashes alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

import srs_ooc.extend as core

# A screen before a method: it learns on the features that random subspaces rank first.

SCREEN_NBYTES = 12
"""Bytes a feature of a screen before a method: its score, and its place where some are excluded."""
PARTS = 20
"""A subspace of the screen is one in so many of the features: 5%, as of a run by default."""
_SCORE = "score_of_chosen"
"""What the method's array is called behind a screen: ``score`` is that of all features."""
_NONE = np.zeros(0, np.uint32)


class HeldOutMethod(core.Method):
    """A method that learns from rows held out, on all features or those that a screen ranks first.

    Without ``screen`` all features are learnt on. Its sampler has a large array ``score`` of the
    features, by which the method ranks.

    Attributes
    ----------
    screen : int | None
        Learn on N features only: those that trees on random subspaces rank first. These trees are
        grown on the rows that are not held out.
    screen_draws : int
        With screen: in how many subspaces each feature is, on average.
    """

    judges = ("none",)
    learner: ClassVar[Mapping[str, Any]] = {"splitter": "best"}
    any_model = True
    theory = ""
    screen: int | None = core.option(
        core.Whole(1), default_text="no screen: all features", metavar="N"
    )
    screen_draws: int = core.option(core.Whole(1, 100_000), default=100, metavar="N")

    @classmethod
    def settle(cls, given: Mapping[str, Any], table: Any) -> Self:
        """Settle the options; only trees tell what a feature of a subspace is worth."""
        params = super().settle(given, table)
        if params.screen is None and "screen_draws" in given:
            raise core.UsageError(
                "screen_draws: expected with screen, found none. Leave it out, or say how many "
                "features are learnt on."
            )
        if params.screen is not None and given.get("model", "tree") != "tree":
            raise core.UsageError(
                f"screen: expected with --model tree, found {given['model']}. Rank the features "
                "by another run, and leave out those at the end with --exclude."
            )
        return params

    def n_learnt(self, n_candidates: int) -> int:
        """Return how many features the method learns on."""
        return n_candidates if self.screen is None else min(self.screen, n_candidates)

    def no_screen(self, n_candidates: int) -> tuple[str, ...]:
        """Say so where a screen was asked for that leaves no feature out."""
        if self.screen is None or self.screen < n_candidates:
            return ()
        return (
            f"screen={self.screen:,}: there are {n_candidates:,} features that may be drawn, so "
            "all are learnt on, without a screen.",
        )

    def screen_size(self, n_candidates: int) -> int:
        """Return the features of a subspace of the screen, unless q is less; 0 without one."""
        learns_on_all = self.n_learnt(n_candidates) == n_candidates
        return 0 if learns_on_all else core.ceil_div(n_candidates, PARTS)

    def n_screen_trees(self, n_candidates: int, subspace_size: int) -> int:
        """Return the trees of the screen; 0 without one."""
        screen = self.behind_screen(n_candidates, subspace_size)
        return 0 if screen is None else screen[0]

    def behind_screen(
        self, n_candidates: int, subspace_size: int
    ) -> tuple[int, int, int, Self] | None:
        """Return the trees of the screen, and their size; the features learnt on, and how."""
        if not (size := min(subspace_size, self.screen_size(n_candidates))):
            return None
        n_trees = core.ceil_div(self.screen_draws * n_candidates, size)
        return n_trees, size, self.n_learnt(n_candidates), replace(self, screen=None)

    def make(self, context: core.SamplerContext) -> core.Sampler:
        """Return the sampler, behind a screen where that leaves features out."""
        folds = self.folds_of(context)
        if (screen := self.behind_screen(context.n_candidates, context.subspace_size)) is None:
            return self.learn(context, folds)
        return Screened(self, context, folds.training, *screen[:3])

    def learn(
        self, context: core.SamplerContext, folds: "Folds", score: str = "score"
    ) -> core.Sampler:
        """Return what learns on all the features of ``context``.

        ``score`` is what it calls the array that the method ranks by.
        """
        raise NotImplementedError

    def folds_of(self, context: core.SamplerContext) -> "Folds":
        """Return rows held out, and folds of the others, as even in each class as can be."""
        assert isinstance(self, HeldOutParams), "a method has the options of both"
        key, share = core.derive(context.key, core.Purpose.FOLDS), float(self.validation_share)
        labels, n_folds, held = context.known.labels, max(2, self.folds), context.validation
        return make_folds(labels, n_folds, key, share=share, validation=held)


@dataclass(eq=False)
class Screened(core.Sampler):
    """Grows trees on random subspaces, then has a method learn on the features they rank first.

    The method knows nothing of it: its features are numbered from 0, and its iterations count from
    the end of the screen. Features are ranked by their mean importance in the subspaces that held
    them; ties are broken by a hash.

    Parameters
    ----------
    method : HeldOutMethod
        Which method, how many features it learns on, and how many trees rank them.
    context : SamplerContext
        What the method would be made for, were there no screen.
    rows : int32 (n,)
        Rows that trees are grown on, ascending: none that is held out.
    n_trees, size, count : int
        Trees of the screen, the features of each, and how many are then learnt on.
    """

    method: HeldOutMethod
    context: core.SamplerContext
    rows: core.Ints32
    n_trees: int
    size: int
    count: int

    def __post_init__(self) -> None:
        context = self.context
        self.capacity = context.subspace_size
        self._split = core.RowSplit(self.rows, self.rows[:0])
        self._drawing = core.Drawing(context.n_candidates, self.size, "0", context.candidates)
        self._score = np.zeros(context.n_features)
        self._scored = np.ones(core.n_pages(context.n_features), np.bool_)
        self._n_grown = 0
        self._chosen: core.Uints32 = _NONE
        self._sampler: core.Sampler | None = None
        self.name, self.needs = self.method.ranks_by, self.method.needs | {core.IMPORTANCE}

    def _begin(self, chosen: core.Uints32) -> core.Sampler:
        count, q = len(chosen), min(self.capacity, len(chosen))
        context = replace(self.context, n_features=count, candidates=None, subspace_size=q)
        folds = self.method.folds_of(context)
        self._chosen, self._sampler = chosen, self.method.learn(context, folds, _SCORE)
        return self._sampler

    def propose(self, iteration: int, key: int) -> core.Subspace:
        """Return a random subspace, or what the method proposes."""
        if self._sampler is None:
            return core.Subspace(
                self._drawing.draw(_NONE, key), split=self._split, in_ensemble=False
            )
        subspace = self._sampler.propose(iteration - self.n_trees, key)
        return replace(subspace, features=self._chosen[subspace.features])

    def version(self, iteration: int) -> int:
        """Return the method's, which is 0 or more; before there is one, -1."""
        return -1 if self._sampler is None else self._sampler.version(iteration - self.n_trees)

    def absorb(self, iteration: int, outcome: core.Outcome) -> None:
        """Count a tree of the screen, whose last one begins the method; or hand the outcome on."""
        if self._sampler is not None:
            places = np.searchsorted(self._chosen, outcome.features).astype(np.uint32)
            self._sampler.absorb(iteration - self.n_trees, replace(outcome, features=places))
            return
        self._n_grown += 1
        if self._n_grown == self.n_trees:
            self._begin(best_of(self.context, self.count))

    def step(self) -> bool:
        """Learn a little, where the method does."""
        return self._sampler is not None and self._sampler.step()

    def done(self, iteration: int) -> bool:
        """Return whether the method has ended."""
        return self._sampler is not None and self._sampler.done(iteration - self.n_trees)

    def progress(self) -> core.Step | None:
        """Return the trees of the screen, or where the method stands."""
        if self._sampler is not None:
            return self._sampler.progress()
        return core.Step("screen", self._n_grown, self.n_trees, unit="trees")

    def state(self) -> core.State:
        """Return how far the screen is; then what was chosen, and what the method learnt."""
        pages = {"score": core.Pages(self._score, self._scored)}
        facts = {"screened": self._n_grown}
        if self._sampler is None:
            return core.State(pages, facts=facts)
        own = self._sampler.state()
        if (score := own.pages[_SCORE]).changed.any():
            self._score[self._chosen] = score.array
            core.touch(self._scored, self._chosen)
        arrays = {**own.arrays, "chosen": self._chosen}
        return core.State({**own.pages, **pages}, arrays, facts | (own.facts or {}))

    def restore(self, saved: core.Saved) -> None:
        """Take up the screen, or the method's work, where it was committed."""
        if saved.facts is None:
            return
        self._n_grown = int(saved.facts["screened"])
        saved.fill("score", self._score)
        self._scored[:] = False
        if "chosen" in saved.arrays:
            self._begin(saved.arrays["chosen"].astype(np.uint32)).restore(saved)


def best_of(context: core.SamplerContext, count: int) -> core.Uints32:
    """Return the features that may be drawn of the largest mean importance, ascending."""
    offered, tally = context.candidates, context.tally
    if offered is None:
        offered = np.arange(context.n_features, dtype=np.uint32)
    places = core.largest(
        lambda piece: core.mean_importance(tally, offered[piece]), len(offered), count, context.key
    )
    return np.sort(offered[places])


# Rows held out for validation and folds of the others, by hashes alone.

_VALIDATION, _FOLDS = 1, 2


@dataclass(frozen=True)
class Folds:
    """How rows are shared out.

    Attributes
    ----------
    validation : int32 (n_validation,)
        Rows on which nothing is fitted, ascending.
    training : int32 (n_training,)
        All others.
    splits : tuple of RowSplit
        Of each fold: fitted on the training rows of the others, predicting its own rows and the
        validation rows.
    held_out : tuple of bool arrays
        Which of the rows that each fold predicts are the validation rows; others are its own.
    strata : int (n_training,)
        Class of each training row.
    key : int
        64-bit key of the deals.
    """

    validation: core.Ints32
    training: core.Ints32
    splits: tuple[core.RowSplit, ...]
    held_out: tuple[core.Bools, ...]
    strata: core.Integers
    key: int

    @cached_property
    def most_predicted(self) -> int:
        """The most rows that a fold predicts."""
        return max(len(split.predicted) for split in self.splits)

    @cached_property
    def whole(self) -> core.RowSplit:
        """Fitted on all training rows, predicting the validation rows; one object."""
        return core.RowSplit(self.training, self.validation)

    def dealt(self, number: int, n_folds: int | None = None) -> "Folds":
        """Return the same rows held out, and the others dealt once more; 0 is the first deal."""
        n_folds = n_folds or len(self.splits)
        fold = deal(self.strata, n_folds, core.derive(self.key, number) if number else self.key)
        splits, held_out = [], []
        for k in range(n_folds):
            predicted = np.sort(np.concatenate([self.training[fold == k], self.validation]))
            splits.append(core.RowSplit(self.training[fold != k], predicted))
            held_out.append(np.isin(predicted, self.validation))
        return replace(self, splits=tuple(splits), held_out=tuple(held_out))


def make_folds(
    strata: core.Integers,
    n_folds: int,
    key: int,
    *,
    share: float = 0.0,
    validation: core.Ints32 | None = None,
    rows: core.Ints32 | None = None,
) -> Folds:
    """Return the folds of some rows: as even in each stratum as can be.

    Parameters
    ----------
    strata : int (n_rows,)
        Class of each row; all the same in a regression.
    n_folds : int
        At least 2.
    key : int
        64-bit key of the draws.
    share : float
        Share of each stratum's rows held out for validation, rounded.
    validation : int32, optional
        Places of the rows held out, ascending, instead.
    rows : int32 (n_rows,), optional
        Which rows they are, ascending; default all.
    """
    if validation is None:  # the first of each stratum
        order = _shuffled(strata, core.derive(key, _VALIDATION))
        in_order = strata[order]
        starts = np.searchsorted(in_order, in_order)
        sizes = np.searchsorted(in_order, in_order, side="right") - starts
        is_first = np.arange(len(order)) - starts < np.rint(share * sizes)
        validation = np.sort(order[is_first]).astype(np.int32)
    is_training = np.ones(len(strata), np.bool_)
    is_training[validation] = False
    training = np.flatnonzero(is_training).astype(np.int32)
    strata = strata[training]
    if rows is not None:
        training, validation = rows[training], rows[validation]
    return Folds(validation, training, (), (), strata, core.derive(key, _FOLDS)).dealt(0, n_folds)


def deal(strata: core.Integers, n_folds: int, key: int) -> core.Ints:
    """Return the fold of each row: as even in each stratum as can be; int64 (n_rows,)."""
    fold = np.empty(len(strata), np.int64)
    fold[_shuffled(strata, key)] = np.arange(len(strata)) % n_folds
    return fold


def resample(rows: core.Ints32, key: int) -> core.RowSplit:
    """Return as many of some rows, drawn with replacement, to predict those not drawn."""
    n_rows = len(rows)
    hashes = core.derive_array(key, np.arange(n_rows, dtype=np.uint64))
    times = np.bincount(core.scale_below(hashes, n_rows).astype(np.int64), minlength=n_rows)
    return core.RowSplit(np.repeat(rows, times), rows[times == 0])


def _shuffled(strata: core.Integers, key: int) -> core.Indices:
    """Return places by stratum, in each by hash."""
    hashes = core.derive_array(key, np.arange(len(strata), dtype=np.uint64))
    return np.lexsort((hashes, strata))


class HeldOutParams(core.Params):
    """Options of methods that learn from models on rows held out.

    Attributes
    ----------
    models : int
        Models: of each fold and of the final ensemble (prs, the paper's T), or of each round (rase,
        B1).
    folds : int
        Folds: each one's rows are predicted by models grown on the others; with criterion=oob
        samples of the rows.
    validation_share : str
        Share of the rows held out to choose the epoch (prs) or the round (rase; 0: take the last
        one); or name them by validation_rows.
    """

    models: int = core.option(core.Whole(2, 100_000), default=100, metavar="N")
    folds: int = core.option(core.Whole(2, 100), default=10, metavar="K")
    validation_share: str = core.option(core.Share(), default="0.2", metavar="SHARE")

    @classmethod
    def settle(cls, given: Mapping[str, Any], table: Any) -> Self:
        """Settle the options; where rows are named to be held out, no share of them is."""
        named = {"validation_share": "0"} if "validation" in given else {}
        return super().settle(dict(given) | named, table)

    def n_training(self, n_rows: int) -> int:
        """Return the rows that are not held out by share."""
        return n_rows - round(float(self.validation_share) * n_rows)

    def check_folds(self, n_rows: int) -> None:
        """Check that each fold has rows."""
        if (n_training := self.n_training(n_rows)) < 2 * self.folds:
            raise core.UsageError(
                f"folds: expected at least two rows for each fold, found {self.folds} folds of "
                f"{n_training} rows. Choose fewer folds."
            )


# The loss of the mean prediction of models, or of their votes.

LEAST_SHARE = 1e-6
"""Least share of the true class, so that its logarithm is finite."""


@dataclass(frozen=True)
class Truth:
    """What the rows of a run are, for the loss.

    A model's *vote* for a row is the number that its loss depends on: 1 where it says the row's
    class (the likeliest, of equal ones the first) and 0 elsewhere, as the models at the end vote;
    or the predicted number less the mean of the training rows. Expectations under new
    probabilities are (1/T) sum of w f, so what is centred does not depend on the sum of w.

    Attributes
    ----------
    labels : int32 (n_rows,)
        Class codes.
    numbers : float64 (n_rows,) or None
        The target less its mean, in a regression; in the units of the response.
    weights : float64 (n_rows,)
        Of the rows.
    mean : float
        What is taken from predicted numbers, whose zero is the response's center.
    """

    labels: core.Ints32
    numbers: core.Floats | None
    weights: core.Floats
    mean: float

    @staticmethod
    def of(response: core.Response, training: core.Ints32) -> "Truth":
        """Return the truth of a response, centred by the mean of the ``training`` rows."""
        weights = response.weights
        if response.scale is None:
            return Truth(response.labels, None, weights, 0.0)
        numbers = response.numbers / response.scale
        some = weights[training]
        mean = float((some * numbers[training]).sum()) / float(some.sum())
        return Truth(response.labels, numbers - mean, weights, mean)

    def votes(self, predictions: core.Floats32, rows: core.Ints32) -> core.Floats32:
        """Return the votes of a model; float32 (n,), from its (n, n_outputs) predictions."""
        if self.numbers is not None:
            return (predictions[:, 0].astype(np.float64) - self.mean).astype(np.float32)
        return np.asarray(predictions.argmax(1) == self.labels[rows], np.float32)

    def slopes(self, mean_votes: core.Floats, rows: core.Ints32) -> core.Floats:
        """Return the derivative of the mean loss of ``rows`` by each row's mean vote."""
        weights: core.Floats = self.weights[rows] / self.weights[rows].sum()
        if self.numbers is not None:
            return weights * (2.0 * (mean_votes - self.numbers[rows]))
        return weights * (-1.0 / np.clip(mean_votes, LEAST_SHARE, 1.0))

    def loss(self, mean_votes: core.Floats, rows: core.Ints32) -> float:
        """Return the mean loss of ``rows``: squared error, or cross-entropy."""
        weights = self.weights[rows] / self.weights[rows].sum()
        if self.numbers is not None:
            errors = mean_votes - self.numbers[rows]
            return float((weights * (errors * errors)).sum())
        return -float((weights * core.numerics.logs(np.clip(mean_votes, LEAST_SHARE, 1.0))).sum())
