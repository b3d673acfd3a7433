"""Parametric Random Subspace for every target of a network: edges are learnt probabilities."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from math import ceil, sqrt
from time import perf_counter
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import UsageError
from srs_ooc.base.options import Choice, Number, Share, Whole, exact_share, option
from srs_ooc.base.records import Iteration, Outcome, Subspace
from srs_ooc.base.seeds import Purpose, derive, key_of
from srs_ooc.base.text import MB
from srs_ooc.learners.tree_learner import Columns, TreeLearner
from srs_ooc.networks.weighing import Bench, EdgeParams, EdgeTable, Pace, Trial, targets_text
from srs_ooc.samplers.held_out import make_folds
from srs_ooc.samplers.prs import (
    FEATURE_NBYTES,
    FINAL,
    SPREADS,
    DescentParams,
    ParametricRandomSubspace,
    subsets_nbytes,
)
from srs_ooc.samplers.prs_math import Truth
from srs_ooc.trees.block import Block, block_nbytes, record_nbytes, scratch_nbytes
from srs_ooc.trees.response import THRESHOLDS, TrainingRows, TreeLimits

SETS_AN_EPOCH = 1 / 3
"""How often models are grown anew, before any epoch was seen: measured with the usual options on
100 genes of 100 rows. It counts as much as :data:`PRIOR_EPOCHS` epochs that were seen."""
PRIOR_EPOCHS = 3
FIRST_MODELS = 10
"""Models grown first, to see how many of them there is time for."""
LEAST_ROOM = 64
"""Regulators that a subset has room for at least, where there are so many."""
ROW_NBYTES = 64
"""Bytes of a row in each fold: where it is trained on, and where predicted."""


Fit = Callable[[Block, int, Subspace], Outcome]
"""Grows a model by its number on the columns of a subspace."""


class ProbabilityParams(DescentParams, EdgeParams):
    """Parametric Random Subspace as in Section 3.4 of its paper; trees are whole, splits best."""

    models: int = option(
        Whole(2, 100_000), "Models of each fold, the paper's T.", default=100, metavar="N"
    )
    folds: int = option(
        Whole(2, 100),
        "Folds: each one's rows are predicted by models grown on the others.",
        default=10,
        metavar="K",
    )
    validation_share: str = option(
        Share(), "Share of the rows held out to choose the epoch.", default="0.1", metavar="SHARE"
    )
    thresholds: str = option(
        Choice(THRESHOLDS), "Thresholds midway between ranks, or between values.", default="value"
    )
    joint: str = option(
        Number(),
        "All targets together, with the paper's joint penalty times this (Eq. 21): few regulators "
        "for all.",
        default="0.0",
        default_text="0: each target by itself",
        metavar="LAMBDA",
    )

    @classmethod
    def settle(cls, given: Mapping[str, Any], table: Any) -> Self:
        """Settle the options, in the words of a network."""
        share = given.get("validation_share")
        if share is not None:
            text = cls.options()["validation_share"].settle("validation_share", share)
            if not 0 < exact_share(text) <= exact_share("0.5"):
                raise UsageError(
                    f"--validation-share: expected a number above 0 and at most 0.5, found {text}."
                )
        return super().settle(given, table)

    @property
    def uses_values(self) -> bool:
        """Whether thresholds are midway between values: rows not grown on are predicted better."""
        return self.thresholds == "value"

    def n_copied(self, n_regulators: int) -> int:
        """Return how many columns a subset's tree has a copy of, and once more as it is made."""
        return 2 * self.room(n_regulators)

    @property
    def is_joint(self) -> bool:
        """Whether targets share a penalty."""
        return float(self.joint) > 0

    def room(self, n_regulators: int) -> int:
        """Return how many regulators a subset may have: four times the first mean, and more."""
        mean = 4 * float(self.inclusion) * n_regulators
        return min(n_regulators, max(LEAST_ROOM, ceil(mean + SPREADS * sqrt(mean))))

    def check_table(self, table: EdgeTable) -> None:
        """Check that the first subsets fit, and that each fold has rows."""
        self.check(table.n_rows, table.n_regulators, self.room(table.n_regulators))

    def target_nbytes(self, table: EdgeTable) -> int:
        """Return the bytes that one target keeps while it learns."""
        share = float(self.validation_share)
        n_predicted = ceil(table.n_rows * (share + (1 - share) / self.folds)) + 2
        votes = 4 * self.folds * self.models * n_predicted
        members = subsets_nbytes(self.models, self.room(table.n_regulators), self.folds)
        rows = ROW_NBYTES * table.n_rows * self.folds
        return FEATURE_NBYTES * table.n_regulators + votes + members + rows

    def work_nbytes(self, table: EdgeTable) -> int:
        """Return the bytes of a subset's columns and its tree, and of what the target keeps."""
        size = self.room(table.n_regulators)
        shape = table.n_rows, size, 1, table.code_nbytes, 1 + table.weighted
        columns = 2 * block_nbytes(size, table.n_rows, table.code_nbytes)
        tree = scratch_nbytes(*shape, best=True) + record_nbytes(table.n_rows, 1, TreeLimits(1))
        steps = 3 * 8 * self.models * table.n_rows + 16 * 8 * table.n_regulators
        own = 0 if self.is_joint else self.target_nbytes(table)
        return columns + tree + steps + own

    def shared_nbytes(self, table: EdgeTable) -> int:
        """Return the bytes of the probabilities, votes and subsets of all targets together."""
        if not self.is_joint:
            return 0
        response = 40 * table.n_rows * (1 + table.weighted)
        return table.n_targets * (self.target_nbytes(table) + response)

    @property
    def shorter(self) -> str:
        """Say which options make it shorter."""
        return "fewer --epochs or a --patience, fewer --models or --folds, fewer --targets"

    def remarks(self, table: EdgeTable) -> tuple[str, ...]:
        """Say where importance weights would collapse, and what all targets keep."""
        notes = self.slow_steps(table.n_regulators, "Name fewer regulators with --regulators.")
        if not self.is_joint:
            return notes
        state = self.shared_nbytes(table) / MB
        return (f"--joint: {state:.0f} MB for what all targets keep.", *notes)

    def pace(self, trial: Trial, n_left: int, seconds: float) -> Pace:
        """Learn some epochs of a few targets, one at least.

        Where there is no time for an epoch with all its models, it is one of fewer, and a step
        takes as many times longer.
        """
        n_workers = len(trial.blocks)
        (first,) = trial.each(partial(self.timed, 0.0, FIRST_MODELS), 1)
        room = int(seconds * first.n_models / (2 * self.folds * first.growing))
        tried = replace(self, models=min(self.models, max(2, room)))
        steps, until = [], seconds
        if self.is_joint:
            until = seconds / 2
            steps = trial.each(partial(tried.timed, until, None), 1)
        timed = trial.each(partial(tried.timed, until, None), n_workers)
        steps = steps or timed
        n_models, n_epochs = sum(t.n_models for t in timed), sum(t.n_epochs for t in timed)
        step_seconds = sum(t.stepping for t in steps) / max(1, sum(t.n_steps for t in steps))
        renewed = sum(t.n_renewed for t in timed) + PRIOR_EPOCHS * SETS_AN_EPOCH
        sets_an_epoch = renewed / (n_epochs + PRIOR_EPOCHS)
        return Pace(
            self.seconds(
                n_left,
                n_workers,
                sum(t.growing for t in timed) / n_models,
                step_seconds * self.models / tried.models,
                sets_an_epoch,
            ),
            n_workers,
            n_left,
            f"measured: {n_models:,} models and {n_epochs:,} epochs of "
            f"{targets_text(n_workers)}, models grown again every "
            f"{1 / sets_an_epoch:.2g} epochs",
            f"extrapolated to all {self.epochs:,} epochs of {n_left:,}",
            self.shorter,
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

    def timed(self, seconds: float, most_models: int | None, bench: Bench) -> "_Timed":
        """Learn one epoch at least and so long, or until there are ``most_models``."""
        sampler, fit = self._begun(bench)
        found, begun = _Timed(), perf_counter()
        while sampler.phase != FINAL and found.n_models != most_models:
            before = perf_counter()
            if sampler.step():
                found.stepping += perf_counter() - before
                found.n_steps += 1
                if sampler.epoch > 0 and before - begun >= seconds:
                    break
                continue
            number = found.n_models
            sampler.absorb(number, fit(bench.block, number, sampler.propose(number, 0)))
            found.growing += perf_counter() - before
            found.n_models += 1
        found.n_epochs = sampler.epoch
        found.n_renewed = sampler.n_drawn - (sampler.phase == FINAL)
        return found

    def weights(self, bench: Bench) -> NDArray[np.float64]:
        """Return the probability with which models had best be given each regulator.

        That of the epoch with the lowest loss on the validation rows.
        """
        sampler, fit = self._begun(bench)
        number = 0
        while sampler.phase != FINAL:
            bench.check_going()
            if not sampler.step():
                sampler.absorb(number, fit(bench.block, number, sampler.propose(number, 0)))
                number += 1
        return sampler.best

    def _begun(self, bench: Bench) -> tuple[ParametricRandomSubspace, Fit]:
        """Return what :meth:`learning` does; the block is filled."""
        bench.fill()
        columns = np.arange(len(bench.regulators), dtype=np.int32)
        return self.learning(ParametricRandomSubspace, bench, columns)

    def learning(
        self, kind: type[ParametricRandomSubspace], bench: Bench, columns: NDArray[np.int32]
    ) -> tuple[ParametricRandomSubspace, Fit]:
        """Return what learns of a target, and what grows its models.

        Best splits, all columns candidates, whole trees: a decision tree as it is usually meant.

        Parameters
        ----------
        kind : type
            Of the sampler.
        bench : Bench
            Of the target; its regulators name the trees' random numbers.
        columns : int32 (n_regulators,)
            Where each regulator is in the block.
        """
        rows, n = _standardised(bench.rows), len(bench.regulators)
        key, known = key_of(self.seed, Purpose.EDGES, bench.target), np.sort(rows.order)
        folds = make_folds(
            np.zeros(len(known), np.int32),
            self.folds,
            derive(key, Purpose.FOLDS),
            share=float(self.validation_share),
            rows=known,
        )
        truth = Truth.of(rows.response, folds.training)
        limits = TreeLimits(n, impurity="variance", splitter="best")
        learner = TreeLearner(rows, limits, n, categorical=bench.categorical)
        tree_key = derive(key, Purpose.TREE)

        def fit(block: Block, number: int, subspace: Subspace) -> Outcome:
            """Grow a model on a copy of its columns; the block may be read by others."""
            own = block.only(columns[subspace.features])
            names = bench.regulators[subspace.features]
            named = Subspace(names, split=subspace.split)
            return learner.fit(
                own, Columns(names, names), Iteration(number, named, derive(tree_key, number))
            )

        room = self.room(n)
        return kind(self, folds, truth, n, room, key), fit


@dataclass
class _Timed:
    """What one target took."""

    n_models: int = 0
    growing: float = 0.0
    n_steps: int = 0
    stepping: float = 0.0
    n_epochs: int = 0
    n_renewed: int = 0


def _standardised(rows: TrainingRows) -> TrainingRows:
    """Return the same rows with the target in units of its standard deviation.

    So the loss is a share of the target's variance, and one penalty suits all targets.
    """
    response = rows.response
    assert response.scale is not None, "a regression"
    weight = int(rows.root_stats[0, -2])
    return replace(rows, response=replace(response, scale=sqrt(rows.root_scale / weight)))
