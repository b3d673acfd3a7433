"""Trees for every target of a network: edges are importances.

GENIE3 (Huynh-Thu, Irrthum, Wehenkel and Geurts 2010) grows forests, Sequential Random Subspace
(Sutera et al. 2018, Algorithm 1) a run of its own over the regulators.
"""

from math import ceil

import numpy as np

import srs_ooc.extend as core
from srs_ooc.methods.networks.weighing import TREES_AT_ONCE, EdgeContext, EdgeParams, trees_option

FOREST, EXTRA = "forest", "extra-trees"
ALL = "all"


class ForestParams(EdgeParams):
    """How forests are grown; GENIE3's by default.

    Attributes
    ----------
    ensemble : str
        Best splits on rows drawn with replacement, or random splits on all rows.
    max_features : str
        Candidate regulators drawn at each node: sqrt, log2, all, a whole number, or a share such as
        0.1.
    thresholds : str
        Thresholds between ranks or between values: drawn (extra-trees), or midway (prs).
    """

    ensemble: str = core.option(core.Choice((FOREST, EXTRA)), default=FOREST)
    max_features: str = core.option(core.Text(), default="sqrt", metavar="K", flags=("--k",))
    trees: int = trees_option()
    thresholds: str = core.option(
        core.Choice(core.THRESHOLDS),
        default=core.THRESHOLDS[0],
        default_text="rank; with --method prs value",
    )

    @property
    def splits_best(self) -> bool:
        """Whether trees look for the best split of each node: GENIE3's do."""
        return self.ensemble == FOREST

    bootstraps = splits_best

    def check_shape(self, shape: core.TrainingShape) -> None:
        """Refuse thresholds that are not drawn, or K that is none."""
        if self.thresholds != core.THRESHOLDS[0] and self.splits_best:
            raise core.UsageError(
                f"thresholds: expected {core.THRESHOLDS[0]} with ensemble={FOREST}, found "
                f"{self.thresholds}: best splits are exact, and draw no thresholds. Leave it out, "
                f"or take ensemble={EXTRA}."
            )
        self.candidates(shape.n_candidates)

    def candidates(self, n_regulators: int) -> int:
        """Return K for a target with so many regulators."""
        asked = None if self.max_features == ALL else self.max_features
        try:
            return core.settle_max_features(asked, n_regulators)
        except core.UsageError as error:
            raise core.UsageError(
                "--k: expected all, sqrt, log2, a share such as 0.1, or a whole number from 1 to "
                f"{n_regulators} (regulators a target may have), found {str(asked)[:40]}."
            ) from error

    @property
    def shorter(self) -> str:
        """Say which options make it shorter."""
        fewer = "" if self.max_features == "sqrt" else "--k sqrt, "
        return f"{fewer}{super().shorter}"

    def weights(self, context: EdgeContext) -> core.Floats:
        """Return the weight of each regulator by its importance in a forest for the target.

        The mean over the trees of the decreases in variance at the splits on a regulator, each
        times the share of the rows at its node, over the target's variance in all rows: so the
        weights of a target add up to about 1, and those of different targets compare.
        """
        regulators = context.regulators
        how = "best" if self.splits_best else "random"  # and whole, as GENIE3's are
        n_candidates = self.candidates(len(regulators))
        limits = core.TreeLimits(n_candidates, impurity="variance", splitter=how)
        # In tiles where a quarter or more of the regulators are candidates at each node. Runs draw
        # the line at a twentieth (srs_ooc.learners.tree_learner.wants_tiles), on more rows: here
        # nodes are small, and of small nodes single columns are read as fast.
        context.fill(tiled=4 * n_candidates > len(regulators))
        flags = None if context.categorical is None else context.categorical[regulators]
        key = core.key_of(self.seed, core.Purpose.EDGES, context.target)
        total = np.zeros(len(regulators), np.int64)
        for start in range(0, self.trees, TREES_AT_ONCE):
            context.check_going()
            total += core.grow_tree(
                context.block,
                regulators,
                context.rows,
                key,
                limits,
                trees=range(start, min(start + TREES_AT_ONCE, self.trees)),
                bootstrap=self.bootstraps,
                categorical=flags,
            ).importance
        return np.ldexp(total / self.trees, -core.IMPORTANCE_BITS)


USUAL_SHARE, LEAST_SIZE = 0.05, 10
"""q by default: the runs' share of the regulators, and so many where there are as many."""


class SubspaceParams(core.ProbeJudge, EdgeParams):
    """Sequential Random Subspace under the paper's probe; trees as those of runs.

    Attributes
    ----------
    subspace_size : int | None
        Regulators in a subspace.
    alpha : str
        Share of the subspace held for regulators already kept (0: Random Subspace).
    """

    trees: int = trees_option()
    subspace_size: int | None = core.option(
        core.Whole(1),
        default_text=f"{USUAL_SHARE:.0%} of them, at least {LEAST_SIZE}",
        metavar="Q",
        flags=("--q",),
    )
    alpha: str = core.option(core.Share(), default="0.5", metavar="SHARE")

    grown = "subspaces"

    def size(self, n_regulators: int) -> int:
        """Return q for a target with so many regulators."""
        usual = max(LEAST_SIZE, ceil(USUAL_SHARE * n_regulators))
        return min(n_regulators, self.subspace_size or usual)

    def n_copied(self, n_regulators: int) -> int:
        """Return the columns of a subspace and of its probe."""
        return self.size(n_regulators) + 1

    def check_shape(self, shape: core.TrainingShape) -> None:
        """Refuse subspaces of more regulators than there are."""
        if self.subspace_size is not None and self.subspace_size > shape.n_candidates:
            raise core.UsageError(
                f"--subspace-size: expected at most {shape.n_candidates}, the regulators of a "
                f"target, found {self.subspace_size}. Choose a smaller one."
            )

    def weights(self, context: EdgeContext) -> core.Floats:
        """Return the weight of each regulator by a run of its own over them.

        The score that runs rank by, as a share of the target's variance: the decreases in variance
        at the splits on a regulator, summed over the trees, over how many subspaces it was in; 0
        where it was in none.
        """
        context.fill()
        regulators, n = context.regulators, len(context.regulators)
        size = self.size(n)
        tally = core.Tally(n)
        drawing = core.Drawing(n, size, self.alpha)
        sampler = core.SequentialRandomSubspace(drawing, self, tally, n, 1)
        limits = core.TreeLimits(size, impurity="variance")
        learner = core.TreeLearner(context.rows, limits, size, categorical=context.categorical)
        first = core.key_of(self.seed, core.Purpose.EDGES, context.target)
        for t in range(self.trees):
            if t % TREES_AT_ONCE == 0:
                context.check_going()
            key = core.derive(first, t)
            subspace = sampler.propose(t, key)
            probe = self.probe(key, len(subspace.features))
            iteration = core.Iteration(t, subspace, core.derive(key, core.Purpose.TREE), probe)
            # Grown on copies of its columns, and of the probe's, permuted.
            places = subspace.features
            with_probe = np.append(places, places[probe.source]).astype(np.int32)
            own = context.block.only(with_probe)
            own.shuffle_column(probe.source, len(places), probe.key)
            names = np.append(regulators[places], np.uint32(core.PROBE_FEATURE))
            outcome = learner.fit(own, core.Columns(names, regulators[with_probe]), iteration)
            tally.absorb(t, outcome)
            sampler.absorb(t, outcome)
        scores = np.maximum(core.mean_importance(tally, slice(None)), 0.0)
        return np.ldexp(scores, -core.IMPORTANCE_BITS)
