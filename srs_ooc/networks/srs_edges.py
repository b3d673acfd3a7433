"""Sequential Random Subspace (Sutera et al. 2018, Algorithm 1) for every target of a network."""

from math import ceil

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import UsageError
from srs_ooc.base.options import Share, Whole, option
from srs_ooc.base.records import Iteration, Outcome
from srs_ooc.base.seeds import Purpose, derive, key_of
from srs_ooc.evidence.judges import ProbeJudge
from srs_ooc.evidence.tally import Tally, mean_importance
from srs_ooc.learners.tree_learner import PROBE_FEATURE, Columns, TreeLearner
from srs_ooc.networks.weighing import (
    TREES_AT_ONCE,
    EdgeContext,
    EdgeParams,
    trees_option,
)
from srs_ooc.runs.run_memory import TrainingShape
from srs_ooc.samplers.draws import Drawing
from srs_ooc.samplers.srs import SequentialRandomSubspace
from srs_ooc.trees.response import IMPORTANCE_BITS, TreeLimits

USUAL_SHARE, LEAST_SIZE = 0.05, 10
"""q by default: the runs' share of the regulators, and so many where there are as many."""


class SubspaceParams(ProbeJudge, EdgeParams):
    """Sequential Random Subspace under the paper's probe; trees as those of runs."""

    trees: int = trees_option()
    subspace_size: int | None = option(
        Whole(1),
        "Regulators in a subspace.",
        default_text=f"{USUAL_SHARE:.0%} of them, at least {LEAST_SIZE}",
        metavar="Q",
        flags=("--q",),
    )
    alpha: str = option(
        Share(),
        "Share of the subspace held for regulators already kept (0: Random Subspace).",
        default="0.5",
        metavar="SHARE",
    )

    grown = "subspaces"

    def size(self, n_regulators: int) -> int:
        """Return q for a target with so many regulators."""
        usual = max(LEAST_SIZE, ceil(USUAL_SHARE * n_regulators))
        return min(n_regulators, self.subspace_size or usual)

    def n_copied(self, n_regulators: int) -> int:
        """Return the columns of a subspace and of its probe."""
        return self.size(n_regulators) + 1

    def check_shape(self, shape: TrainingShape) -> None:
        """Refuse subspaces of more regulators than there are."""
        if self.subspace_size is not None and self.subspace_size > shape.n_candidates:
            raise UsageError(
                f"--subspace-size: expected at most {shape.n_candidates}, the regulators of a "
                f"target, found {self.subspace_size}. Choose a smaller one."
            )

    def weights(self, context: EdgeContext) -> NDArray[np.float64]:
        """Return the weight of each regulator by a run of its own over them.

        The score that runs rank by, as a share of the target's variance: the decreases in variance
        at the splits on a regulator, summed over the trees, over how many subspaces it was in; 0
        where it was in none.
        """
        context.fill()
        n = len(context.regulators)
        size = self.size(n)
        tally = Tally(n)
        drawing = Drawing(n, size, self.alpha)
        sampler = SequentialRandomSubspace(drawing, self, tally, n, 1)
        limits = TreeLimits(size, impurity="variance")
        learner = TreeLearner(context.rows, limits, size, categorical=context.categorical)
        first = key_of(self.seed, Purpose.EDGES, context.target)
        for t in range(self.trees):
            if t % TREES_AT_ONCE == 0:
                context.check_going()
            key = derive(first, t)
            subspace = sampler.propose(t, key)
            probe = self.probe(key, len(subspace.features))
            iteration = Iteration(t, subspace, derive(key, Purpose.TREE), probe)
            outcome = _fit(learner, context, iteration)
            tally.absorb(t, outcome)
            sampler.absorb(t, outcome)
        scores = np.maximum(mean_importance(tally, slice(None)), 0.0)
        return np.ldexp(scores, -IMPORTANCE_BITS)


def _fit(learner: TreeLearner, context: EdgeContext, iteration: Iteration) -> Outcome:
    """Grow the tree of an iteration on copies of its columns and of the probe's, permuted."""
    places, probe, regulators = iteration.features, iteration.probe, context.regulators
    assert probe is not None, "the judge compares with a probe"
    with_probe = np.append(places, places[probe.source]).astype(np.int32)
    own = context.block.only(with_probe)
    own.shuffle_column(probe.source, len(places), probe.key)
    names = np.append(regulators[places], np.uint32(PROBE_FEATURE))
    return learner.fit(own, Columns(names, regulators[with_probe]), iteration)
