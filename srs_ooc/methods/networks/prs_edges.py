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


class EdgeTarget(prs.ParametricRandomSubspace):
    """What learns of one target, with what grows its models.

    Attributes
    ----------
    places : int32 (p,)
        Where its regulators are in the block.
    regulators : uint32 (p,)
        Their stored positions.
    learner : TreeLearner
        Grows its trees.
    tree_key : int
        64-bit key of these.
    """

    places: core.Ints32
    regulators: core.Uints32
    learner: core.TreeLearner
    tree_key: int

    def grow(self, block: core.Block) -> None:
        """Grow the next model, on a copy of its columns; the block may be read by others."""
        number = self.at.begun + self.at.grown
        subspace = self.propose(number, 0)
        names = self.regulators[subspace.features]
        named = core.Subspace(names, split=subspace.split)
        iteration = core.Iteration(number, named, core.derive(self.tree_key, number))
        own = block.only(self.places[subspace.features])
        self.absorb(number, self.learner.fit(own, core.Columns(names, names), iteration))


Learning = TypeVar("Learning", bound=EdgeTarget)


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
        n_regulators = shape.n_candidates
        capacity = self.n_copied(n_regulators)
        return self.learning_nbytes(shape.n_rows, n_regulators, capacity, self.folds)

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
        target = self._begun(context)
        started, n_models, growing, n_steps, stepping = perf_counter(), 0, 0.0, 0, 0.0
        while target.at.phase != prs.FINAL and n_models != most_models:
            before = perf_counter()
            if target.step():
                stepping += perf_counter() - before
                n_steps += 1
                if target.at.epoch > 0 and before - started >= seconds:
                    break
                continue
            target.grow(context.block)
            growing += perf_counter() - before
            n_models += 1
        n_renewed = target.at.drawn - (target.at.phase == prs.FINAL)
        return n_models, growing, n_steps, stepping, target.at.epoch, n_renewed

    def weights(self, context: EdgeContext) -> core.Floats:
        """Return the probability with which models had best be given each regulator.

        That of the epoch with the lowest loss on the validation rows.
        """
        target = self._begun(context)
        while target.at.phase != prs.FINAL:
            context.check_going()
            if not target.step():
                target.grow(context.block)
        return target.best

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
                    learning[number] = self.learning(JointTarget, context, context.places)
            descent = JointDescent(self, learning, edges.n_regulators)
            descent.run(block, scorer.n_workers, edges, watch)

    def _begun(self, context: EdgeContext) -> EdgeTarget:
        """Return what :meth:`learning` does; the block is filled."""
        context.fill()
        return self.learning(
            EdgeTarget, context, np.arange(len(context.regulators), dtype=np.int32)
        )

    def learning(self, kind: type[Learning], context: EdgeContext, places: core.Ints32) -> Learning:
        """Return what learns of a target, of a ``kind``.

        Best splits, all columns candidates, whole trees: a decision tree as it is usually meant.
        ``places`` are where each regulator of the context is in the block, int32 (n_regulators,).
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
        target = kind(self, folds, truth, n, self.n_copied(n), key)
        target.learner = core.TreeLearner(rows, limits, n, categorical=context.categorical)
        target.places, target.regulators = places, context.regulators
        target.tree_key = core.derive(key, core.Purpose.TREE)
        return target


# All targets of a network under one penalty (Huynh-Thu and Geurts 2023, Eq. 21).


class JointTarget(EdgeTarget):
    """One target: it learns as by itself, but the epochs are counted and judged for all.

    Attributes
    ----------
    worth, loss : float
        After an epoch: models that the weights are worth, and the loss on the validation rows.
    """

    worth = loss = 0.0

    def grow_all(self, block: core.Block, stopping: Event) -> None:
        """Grow the models that are wanted, unless told to stop."""
        while self.at.phase == prs.GROWING and not stopping.is_set():
            self.grow(block)

    def _end_epoch(self) -> None:
        self.worth, self.loss = self._looked()
        self.at.epoch += 1


_FACTS = ("epoch", "best_epoch", "best_objective", "done")
"""Where the work on all targets stands."""


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
        self.best_objective: float | None = None
        self.done = not targets

    def step(self) -> None:
        """Take one step by one fold's rows in all targets, none of which is being grown."""
        norms = self._norms()
        factor = len(self.targets) * self._strength
        for target in self.targets:
            own = norms[target.places]
            slopes = np.divide(target.beta, own, out=np.zeros(len(own)), where=own > 0)
            target.penalty = factor * slopes + target.sparsity
            target.step()
        if self.targets[0].at.fold == 0:
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
        if self.best_objective is None or objective < self.best_objective:
            self.best_objective, self.best_epoch = objective, self.epoch
            for target in self.targets:
                target.keep_best()
        self.done = self._params.ends(self.epoch, self.best_epoch)
        for target in self.targets:
            if target.worth < target.wanted_worth:
                target.draw_anew(prs.GROWING, target.beta)

    def state(self) -> core.State:
        """Return where the work stands; the targets have states of their own."""
        return core.State(facts={name: getattr(self, name) for name in _FACTS})

    def restore(self, saved: core.Saved) -> None:
        """Take up the work where it was committed."""
        vars(self).update(saved.facts or {})

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
            while going and not self.done:
                going = self._grow(pool, block, goes_on)
                if going:
                    self.step()
                    going = goes_on()
                if going and edges.is_due:
                    edges.commit()
        edges.commit()
        if self.done:
            for number in range(edges.n_done, edges.n_targets):
                weights, target = np.zeros(self._n_regulators), self._by_number.get(number)
                if target is not None:
                    weights[target.places] = target.best
                edges.add(weights)
            edges.commit()
            goes_on()

    def _grow(
        self, pool: ThreadPoolExecutor, block: core.Block, goes_on: Callable[[], bool]
    ) -> bool:
        """Grow the models that targets want; return False if it was stopped on the way."""
        wanting = [target for target in self.targets if target.at.phase == prs.GROWING]
        for future in [pool.submit(one.grow_all, block, self._stopping) for one in wanting]:
            while wait([future], LOOK_SECONDS).not_done:
                if not goes_on():
                    self._stopping.set()
            future.result()
        return not self._stopping.is_set()
