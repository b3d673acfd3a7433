"""Parametric Random Subspace for every target of a network: edges are learnt probabilities."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil, sqrt
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import UsageError
from srs_ooc.base.options import Choice, Number, Share, Whole, exact_share, option
from srs_ooc.base.records import Iteration, Outcome, Subspace
from srs_ooc.base.seeds import Purpose, derive, key_of
from srs_ooc.base.text import MB
from srs_ooc.learners.tree_learner import Columns, TreeLearner
from srs_ooc.networks.weighing import Bench, EdgeParams, EdgeTable
from srs_ooc.samplers.held_out import Folds, make_folds
from srs_ooc.samplers.prs import (
    FEATURE_NBYTES,
    FINAL,
    SPREADS,
    DescentParams,
    ParametricRandomSubspace,
)
from srs_ooc.samplers.prs_math import BernoulliSubsets, Truth
from srs_ooc.trees.block import Block, block_nbytes
from srs_ooc.trees.kernel import record_nbytes, scratch_nbytes
from srs_ooc.trees.response import THRESHOLDS, TrainingRows, TreeLimits

LEAST_ROOM = 64
"""Regulators that a subset has room for at least, where there are so many."""
ROW_NBYTES = 64
"""Bytes of a row in each fold: where it is trained on, and where predicted."""


@dataclass(frozen=True, kw_only=True)
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
        members = BernoulliSubsets.nbytes(self.models, self.room(table.n_regulators), self.folds)
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


# What Parametric Random Subspace is for one target: its folds, its truth, its models.


@dataclass(frozen=True)
class Models:
    """Grows the models of a target on columns of a block that holds its regulators.

    Attributes
    ----------
    learner : TreeLearner
        Best splits, all columns candidates, whole trees: a decision tree as it is usually meant.
    regulators : uint32 (n_regulators,)
        Stored positions; they name the trees' random numbers.
    columns : int32 (n_regulators,)
        Where each is in the block.
    key : int
        64-bit key of the trees.
    """

    learner: TreeLearner
    regulators: NDArray[np.uint32]
    columns: NDArray[np.int32]
    key: int

    def fit(self, block: Block, number: int, subspace: Subspace) -> Outcome:
        """Grow model ``number`` on a copy of its columns; the block may be read by others."""
        own = block.only(self.columns[subspace.features])
        names = self.regulators[subspace.features]
        named = Subspace(names, split=subspace.split)
        iteration = Iteration(number, named, derive(self.key, number))
        return self.learner.fit(own, Columns(names, names), iteration)


def models_of(
    rows: TrainingRows,
    regulators: NDArray[np.uint32],
    columns: NDArray[np.int32],
    categorical: NDArray[np.bool_] | None,
    key: int,
) -> Models:
    """Return what grows the models of a target; see :class:`Models`."""
    n = len(regulators)
    limits = TreeLimits(n, impurity="variance", splitter="best")
    learner = TreeLearner(rows, limits, n, categorical=categorical)
    return Models(learner, regulators, columns, derive(key, Purpose.TREE))


def sampler_of(
    kind: type[ParametricRandomSubspace],
    params: ProbabilityParams,
    rows: TrainingRows,
    n_regulators: int,
    key: int,
) -> ParametricRandomSubspace:
    """Return the sampler of a target; ``rows`` as :func:`standardised` gives them."""
    folds = _folds(rows, params, derive(key, Purpose.FOLDS))
    return kind(
        params.descent(n_regulators, params.room(n_regulators)),
        folds,
        Truth.of(rows.response, folds.training),
        n_regulators,
        params.room(n_regulators),
        key,
    )


def standardised(rows: TrainingRows) -> TrainingRows:
    """Return the same rows with the target in units of its standard deviation.

    So the loss is a share of the target's variance, and one penalty suits all targets.
    """
    response = rows.response
    assert response.scale is not None, "a regression"
    weight = int(rows.root_stats[0, -2])
    return replace(rows, response=replace(response, scale=sqrt(rows.root_scale / weight)))


def _folds(rows: TrainingRows, params: ProbabilityParams, key: int) -> Folds:
    """Return the folds of the rows in which the target is known."""
    known = np.sort(rows.order)
    strata, share = np.zeros(len(known), np.int32), float(params.validation_share)
    return make_folds(strata, params.folds, key, share=share, rows=known)


@dataclass(frozen=True)
class Probabilities:
    """Weighs the regulators of a target by the probabilities with which models had best draw them.

    Attributes
    ----------
    params : ProbabilityParams
        How they are learnt.
    bench : Bench
        What targets are worked on with.
    """

    params: ProbabilityParams
    bench: Bench

    def weights(
        self, block: Block, target: int, regulators: NDArray[np.uint32], rows: TrainingRows
    ) -> NDArray[np.float64]:
        """Return the weight of the edge from each of ``regulators`` to ``target``.

        The probabilities of the epoch with the lowest loss on the validation rows. Parameters and
        errors are those of :meth:`srs_ooc.networks.genie3.Forests.weights`.
        """
        sampler, models = self.begun(block, target, regulators, rows)
        number = 0
        while sampler.phase != FINAL:
            self.bench.check_going()
            if not sampler.step():
                outcome = models.fit(block, number, sampler.propose(number, 0))
                sampler.absorb(number, outcome)
                number += 1
        return sampler.best

    def begun(
        self, block: Block, target: int, regulators: NDArray[np.uint32], rows: TrainingRows
    ) -> tuple[ParametricRandomSubspace, Models]:
        """Return what learns, before it has learnt anything, and what grows its models.

        Parameters are those of :meth:`weights`; the block is filled.
        """
        block.tiled = False
        self.bench.source.gather(regulators, block)
        rows, n = standardised(rows), len(regulators)
        key = key_of(self.bench.seed, Purpose.EDGES, target)
        sampler = sampler_of(ParametricRandomSubspace, self.params, rows, n, key)
        columns = np.arange(n, dtype=np.int32)
        return sampler, models_of(rows, regulators, columns, self.bench.categorical, key)
