"""Parametric Random Subspace for every target of a network: edges are learnt probabilities."""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from functools import partial
from math import ceil, sqrt
from threading import Event
from time import perf_counter
from typing import TypeVar

import numpy as np

import srs_ooc.extend as core
from srs_ooc.methods.held_out import Truth, make_folds
from srs_ooc.methods.networks.edges import JOINT, STAGE, EdgeStore
from srs_ooc.methods.networks.weighing import (
    EdgeContext,
    EdgeParams,
    EdgeScorer,
    Targets,
    targets_text,
)
from srs_ooc.methods.prs import prs

SETS_AN_EPOCH = 1 / 3
"""How often models are grown anew, before any epoch was seen: measured with the usual options on
100 genes of 100 rows. It counts as much as :data:`PRIOR_EPOCHS` epochs that were seen."""
PRIOR_EPOCHS = 3
FIRST_MODELS = 10
"""Models grown first, to see how many of them there is time for."""
LEAST_ROOM = 64
"""Regulators that a subset has room for at least, where there are so many."""
LOOK_SECONDS = 0.2
"""Time between two questions whether joint work is to go on, while models are grown."""


Fit = Callable[[core.Block, int, core.Subspace], core.Outcome]
"""Grows a model by its number on the columns of a subspace."""
Learning = TypeVar("Learning", bound=prs.ParametricRandomSubspace)


class ProbabilityParams(prs.DescentParams, EdgeParams):
    """Parametric Random Subspace as in Section 3.4 of its paper; trees are whole, splits best.

    Attributes
    ----------
    models : int
        Models of each fold, the paper's T.
    folds : int
        Folds: each one's rows are predicted by models grown on the others.
    validation_share : str
        Share of the rows held out to choose the epoch.
    thresholds : str
        Thresholds midway between ranks, or between values.
    joint : str
        All targets together, with the paper's joint penalty times this (Eq. 21): few regulators for
        all.
    """

    models: int = core.option(core.Whole(2, 100_000), default=100, metavar="N")
    folds: int = core.option(core.Whole(2, 100), default=10, metavar="K")
    validation_share: str = core.option(core.Share(), default="0.1", metavar="SHARE")
    thresholds: str = core.option(core.Choice(core.THRESHOLDS), default="value")
    joint: str = core.option(
        core.Number(), default="0.0", default_text="0: each target by itself", metavar="LAMBDA"
    )

    splits_best, instead = True, ""

    @property
    def is_joint(self) -> bool:
        """Whether targets share a penalty."""
        return float(self.joint) > 0

    def n_copied(self, n_regulators: int) -> int:
        """Return how many regulators a subset may have: four times the first mean, and more."""
        mean = 4 * float(self.inclusion) * n_regulators
        return min(n_regulators, max(LEAST_ROOM, ceil(mean + prs.SPREADS * sqrt(mean))))

    def check_shape(self, shape: core.TrainingShape) -> None:
        """Check that the first subsets fit, and that each fold has rows."""
        self.check(shape.n_rows, shape.n_candidates, self.n_copied(shape.n_candidates))

    def target_nbytes(self, shape: core.TrainingShape) -> int:
        """Return the bytes that one target keeps while it learns."""
        share, n_regulators = float(self.validation_share), shape.n_candidates
        n_predicted = ceil(shape.n_rows * (share + (1 - share) / self.folds)) + 2
        votes = 4 * self.folds * self.models * n_predicted
        members = prs.subsets_nbytes(self.models, self.n_copied(n_regulators), self.folds)
        rows = 64 * shape.n_rows * self.folds  # where it is trained on, and where predicted
        return prs.FEATURE_NBYTES * n_regulators + votes + members + rows

    def work_nbytes(self, shape: core.TrainingShape) -> int:
        """Return the bytes of a subset's columns and its tree, and of what the target keeps."""
        record = core.record_nbytes(shape.n_rows, 1, core.TreeLimits(1))
        steps = 3 * 8 * self.models * shape.n_rows + 8 * 8 * shape.n_candidates
        own = 0 if self.is_joint else self.target_nbytes(shape)
        return super().work_nbytes(shape) + record + steps + own

    def shared_nbytes(self, shape: core.TrainingShape, n_targets: int) -> int:
        """Return the bytes of the probabilities, votes and subsets of all targets together."""
        if not self.is_joint:
            return 0
        response = 40 * shape.n_rows * (1 + shape.n_channels)
        return n_targets * (self.target_nbytes(shape) + response)

    @property
    def shorter(self) -> str:
        """Say which options make it shorter."""
        return "fewer epochs or a patience, fewer models or folds, fewer --targets"

    def remarks(self, shape: core.TrainingShape, n_targets: int) -> tuple[str, ...]:
        """Say where importance weights would collapse, and what all targets keep."""
        notes = self.slow_steps(shape.n_candidates, "Name fewer regulators with --regulators.")
        if not self.is_joint:
            return notes
        state = self.shared_nbytes(shape, n_targets) / core.MB
        return (f"joint: {state:.0f} MB for what all targets keep.", *notes)

    def estimate(
        self, scorer: EdgeScorer, targets: Targets, n_left: int, seconds: float
    ) -> tuple[float, str, str]:
        """Learn some epochs of a few targets, one at least.

        Where there is no time for an epoch with all its models, it is one of fewer, and a step
        takes as many times longer.
        """
        n_workers = min(scorer.n_workers, n_left)
        few = partial(self.timed, 0.0, FIRST_MODELS)
        ((n_models, growing, *_),) = scorer.tried(few, targets, 1)
        room = int(seconds * n_models / (2 * self.folds * growing))
        tried = replace(self, models=min(self.models, max(2, room)))
        alone, until = [], seconds
        if self.is_joint:
            until = seconds / 2
            alone = scorer.tried(partial(tried.timed, until, None), targets, 1)
        timed = scorer.tried(partial(tried.timed, until, None), targets, n_workers)
        n_models, growing, *_, n_epochs, n_renewed = map(sum, zip(*timed, strict=True))
        _, _, n_steps, stepping, _, _ = map(sum, zip(*(alone or timed), strict=True))
        sets_an_epoch = (n_renewed + PRIOR_EPOCHS * SETS_AN_EPOCH) / (n_epochs + PRIOR_EPOCHS)
        step_seconds = stepping / max(1, n_steps) * self.models / tried.models
        return (
            self.seconds(n_left, n_workers, growing / n_models, step_seconds, sets_an_epoch),
            f"measured: {n_models:,} models and {n_epochs:,} epochs of {targets_text(n_workers)}, "
            f"models grown again every {1 / sets_an_epoch:.2g} epochs",
            f"extrapolated to all {self.epochs:,} epochs of {n_left:,}",
        )

    def seconds(
        self,
        n_targets: int,
        n_workers: int,
        model_seconds: float,
        step_seconds: float,
        sets_an_epoch: float,
    ) -> float:
        """Return the seconds of so many targets, all epochs of them.

        ``model_seconds`` are of a model and ``step_seconds`` of a step of one fold, as each of the
        workers takes; models are grown anew ``sets_an_epoch`` times in an epoch.
        """
        sets = 1 + sets_an_epoch * (self.epochs - 1)
        growing = sets * self.folds * self.models * model_seconds
        stepping = self.epochs * self.folds * step_seconds
        batches = max(1.0, n_targets / n_workers)
        # Joint steps are taken by one thread, one target after the other.
        return growing * batches + stepping * (n_targets if self.is_joint else batches)

    def timed(
        self, seconds: float, most_models: int | None, context: EdgeContext
    ) -> tuple[int, float, int, float, int, int]:
        """Learn one epoch at least and so long, or until there are ``most_models``.

        Returns
        -------
        n_models, growing, n_steps, stepping, n_epochs, n_renewed : int or float
            Models, their seconds, steps, theirs, epochs, and how often models were grown again.
        """
        sampler, fit = self._begun(context)
        started, n_models, growing, n_steps, stepping = perf_counter(), 0, 0.0, 0, 0.0
        while sampler.phase != prs.FINAL and n_models != most_models:
            before = perf_counter()
            if sampler.step():
                stepping += perf_counter() - before
                n_steps += 1
                if sampler.epoch > 0 and before - started >= seconds:
                    break
                continue
            sampler.absorb(n_models, fit(context.block, n_models, sampler.propose(n_models, 0)))
            growing += perf_counter() - before
            n_models += 1
        n_renewed = sampler.n_drawn - (sampler.phase == prs.FINAL)
        return n_models, growing, n_steps, stepping, sampler.epoch, n_renewed

    def weights(self, context: EdgeContext) -> core.Floats:
        """Return the probability with which models had best be given each regulator.

        That of the epoch with the lowest loss on the validation rows.
        """
        sampler, fit = self._begun(context)
        number = 0
        while sampler.phase != prs.FINAL:
            context.check_going()
            if not sampler.step():
                sampler.absorb(number, fit(context.block, number, sampler.propose(number, 0)))
                number += 1
        return sampler.best

    def work_together(
        self, scorer: EdgeScorer, targets: Targets, edges: EdgeStore, watch: core.Watch
    ) -> None:
        """Learn the probabilities of all targets, committed and resumed between steps."""
        learning: dict[int, JointTarget] = {}
        with core.taken(scorer.blocks) as block:
            block.tiled = False
            scorer.source.gather(scorer.regulators, block)
            for number, (target, values) in enumerate(targets):
                if (context := scorer.context(block, target, values)) is not None:
                    learning[number], fit = self.learning(JointTarget, context, context.places)
                    learning[number].places, learning[number].fit = context.places, fit
            descent = JointDescent(self, learning, edges.n_regulators)
            descent.run(block, scorer.n_workers, edges, watch)

    def _begun(self, context: EdgeContext) -> tuple[prs.ParametricRandomSubspace, Fit]:
        """Return what :meth:`learning` does; the block is filled."""
        context.fill()
        columns = np.arange(len(context.regulators), dtype=np.int32)
        return self.learning(prs.ParametricRandomSubspace, context, columns)

    def learning(
        self, kind: type[Learning], context: EdgeContext, columns: core.Ints32
    ) -> tuple[Learning, Fit]:
        """Return what learns of a target, a sampler of a ``kind``, and what grows its models.

        Best splits, all columns candidates, whole trees: a decision tree as it is usually meant.
        ``columns`` are where each regulator of the context is in the block, int32 (n_regulators,).
        """
        # The target in units of its standard deviation: the loss is a share of its variance, and
        # one penalty suits all targets.
        rows, n = context.rows, len(context.regulators)
        assert rows.response.scale is not None, "a regression"
        scale = sqrt(rows.root_scale / int(rows.root_stats[0, -2]))
        rows = replace(rows, response=replace(rows.response, scale=scale))
        key, known = core.key_of(self.seed, core.Purpose.EDGES, context.target), np.sort(rows.order)
        folds = make_folds(
            np.zeros(len(known), np.int32),
            self.folds,
            core.derive(key, core.Purpose.FOLDS),
            share=float(self.validation_share),
            rows=known,
        )
        truth = Truth.of(rows.response, folds.training)
        limits = core.TreeLimits(n, impurity="variance", splitter="best")
        learner = core.TreeLearner(rows, limits, n, categorical=context.categorical)
        tree_key = core.derive(key, core.Purpose.TREE)

        def fit(block: core.Block, number: int, subspace: core.Subspace) -> core.Outcome:
            """Grow a model on a copy of its columns; the block may be read by others."""
            own = block.only(columns[subspace.features])
            names = context.regulators[subspace.features]
            named = core.Subspace(names, split=subspace.split)
            iteration = core.Iteration(number, named, core.derive(tree_key, number))
            return learner.fit(own, core.Columns(names, names), iteration)

        return kind(self, folds, truth, n, self.n_copied(n), key), fit


# All targets of a network under one penalty (Huynh-Thu and Geurts 2023, Eq. 21).


class JointTarget(prs.ParametricRandomSubspace):
    """One target: it learns as by itself, but the epochs are counted and judged for all.

    Attributes
    ----------
    worth, loss : float
        After an epoch: models that the weights are worth, and the loss on the validation rows.
    places : int32 (p,)
        Where its regulators are among all.
    fit : callable
        Grows its models.
    """

    worth = loss = 0.0
    places: core.Ints32
    fit: Fit

    @property
    def begins_epoch(self) -> bool:
        """Whether the next step is an epoch's first."""
        return self._fold == 0

    def grow(self, block: core.Block, stopping: Event) -> None:
        """Grow the models that are wanted, unless told to stop."""
        while self.phase == prs.GROWING and not stopping.is_set():
            number = self._first + self._n_grown
            self.absorb(number, self.fit(block, number, self.propose(number, 0)))

    def penalise(self, slopes: core.Floats) -> None:
        """Take the derivative of the joint penalty for the next step, float64 (p,)."""
        self._penalty = slopes + self._sparsity

    def renew(self) -> None:
        """Have models grown again if the weights are worth too few."""
        if self.worth < self._wanted_worth:
            self._draw_anew(prs.GROWING, self.beta)

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
    params : ProbabilityParams
        Lambda and how long to learn.
    targets : dict of int to JointTarget
        All that can be learnt, by their numbers in the network.
    n_regulators : int
        All.
    """

    def __init__(
        self, params: ProbabilityParams, targets: Mapping[int, JointTarget], n_regulators: int
    ) -> None:
        self._params, self._strength = params, float(params.joint)
        self._by_number, self.targets = targets, list(targets.values())
        self._n_regulators, self._stopping = n_regulators, Event()
        self.epoch = self.best_epoch = 0
        self.best_objective = np.inf
        self.is_done = not targets

    def step(self) -> None:
        """Take one step by one fold's rows in all targets, none of which is being grown."""
        norms = self._norms()
        factor = len(self.targets) * self._strength
        for target in self.targets:
            own = norms[target.places]
            slopes = np.divide(target.beta, own, out=np.zeros(len(own)), where=own > 0)
            target.penalise(factor * slopes)
            target.step()
        if self.targets[0].begins_epoch:
            self._end_epoch()

    def _norms(self) -> core.Floats:
        squares = np.zeros(self._n_regulators)
        for target in self.targets:
            squares[target.places] += target.beta * target.beta
        return np.sqrt(squares)

    def _end_epoch(self) -> None:
        self.epoch += 1
        loss = sum(target.loss for target in self.targets) / len(self.targets)
        objective = loss + self._strength * float(self._norms().sum())
        if objective < self.best_objective:
            self.best_objective, self.best_epoch = objective, self.epoch
            for target in self.targets:
                target.keep_best()
        self.is_done = self._params.ends(self.epoch, self.best_epoch)
        for target in self.targets:
            target.renew()

    def state(self) -> core.State:
        """Return where the work stands; the targets have states of their own."""
        return core.State(
            facts={
                "epoch": self.epoch,
                "best_epoch": self.best_epoch,
                "best_objective": self.best_objective if self.best_epoch else None,
                "done": self.is_done,
            }
        )

    def restore(self, saved: core.Saved) -> None:
        """Take up the work where it was committed."""
        if saved.facts is None:
            return
        self.epoch, self.best_epoch = int(saved.facts["epoch"]), int(saved.facts["best_epoch"])
        if self.best_epoch:
            self.best_objective = float(saved.facts["best_objective"])
        self.is_done = bool(saved.facts["done"])

    def run(self, block: core.Block, n_workers: int, edges: EdgeStore, watch: core.Watch) -> None:
        """Work until all is learnt, or ``watch`` says no; the block has all regulators.

        What was learnt is committed at least every second or so, and at the end.
        """
        parts: dict[str, core.Stateful] = {f"{JOINT}.{i}": t for i, t in enumerate(self.targets)}
        parts[JOINT] = self
        edges.begin(parts)

        def goes_on() -> bool:
            return watch(core.Step(STAGE, self.epoch, self._params.epochs, unit="epochs"))

        going = goes_on()
        with ThreadPoolExecutor(n_workers, "grow") as pool:
            while going and not self.is_done:
                going = self._grow(pool, block, goes_on)
                if going:
                    self.step()
                    going = goes_on()
                if going and edges.is_due:
                    edges.commit()
        edges.commit()
        if self.is_done:
            for number in range(edges.n_done, edges.n_targets):
                weights, target = np.zeros(self._n_regulators), self._by_number.get(number)
                if target is not None:
                    weights[target.places] = target.best
                edges.add(weights)
                if edges.is_full:
                    edges.commit()
            if edges.n_done > edges.committed.iteration:
                edges.commit()
            goes_on()

    def _grow(
        self, pool: ThreadPoolExecutor, block: core.Block, goes_on: Callable[[], bool]
    ) -> bool:
        """Grow the models that targets want; return False if it was stopped on the way."""
        wanting = [target for target in self.targets if target.phase == prs.GROWING]
        for future in [pool.submit(one.grow, block, self._stopping) for one in wanting]:
            while wait([future], LOOK_SECONDS).not_done:
                if not goes_on():
                    self._stopping.set()
            future.result()
        return not self._stopping.is_set()
