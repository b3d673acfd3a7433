"""What Parametric Random Subspace is for one target: its folds, its truth, its models."""

from dataclasses import dataclass, replace
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.records import Iteration, Outcome, Subspace
from srs_ooc.base.seeds import Purpose, derive
from srs_ooc.learners.tree_learner import Columns, TreeLearner
from srs_ooc.networks.probability_params import ProbabilityParams
from srs_ooc.samplers.held_out import Folds, make_folds
from srs_ooc.samplers.prs import ParametricRandomSubspace
from srs_ooc.samplers.prs_math import Truth
from srs_ooc.trees.block import Block
from srs_ooc.trees.response import TrainingRows, TreeLimits


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
